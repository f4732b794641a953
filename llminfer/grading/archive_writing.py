"""Zip files that depend on their content alone: the same files give the same bytes, whenever they are packed."""

import io
import zipfile
from collections.abc import Mapping

READABLE, EXECUTABLE = 0o644, 0o755


def zipped(files: Mapping[str, bytes | str], executable: tuple[str, ...] = ()) -> bytes:
    """A zip of files by name, in the order of their names."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(name)  # dated 1980, by default
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3  # Unix, where the mode means something; else it would depend on the machine
            info.external_attr = (EXECUTABLE if name in executable else READABLE) << 16
            archive.writestr(info, files[name])
    return out.getvalue()
