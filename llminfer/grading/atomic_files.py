"""Files that are there whole or not at all, however the process that writes them ends."""

import hashlib
import os
import re
import tempfile
from pathlib import Path

# What Windows reads as a device, whatever the ending.
DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)


def write_atomically(path: Path, content: bytes | str, mode: int = 0o644) -> None:
    """Write beside the place and move into it; a file that already says the same is left alone."""
    raw = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
    if path.is_file() and not path.is_symlink() and path.read_bytes() == raw:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, beside = tempfile.mkstemp(prefix=".writing-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(raw)
        os.chmod(beside, mode)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


def folder_name(name: str) -> str:
    """A student's id as the name of a file or folder: itself where that is harmless, otherwise told apart by a hash."""
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9@._+-]{0,79}", name) and not DEVICES.fullmatch(name) and name[-1] != ".":
        return name
    kept = re.sub(r"[^A-Za-z0-9]+", "-", name)[:40].strip("-")
    return f"{kept}-{hashlib.sha256(name.encode('utf-8', 'surrogateescape')).hexdigest()[:10]}".lstrip("-")


def team_folder(members: tuple[str, ...]) -> str:
    """One name for those who hand in together. The spaces make a hash of it, so that it is nobody's own name."""
    return folder_name(" + ".join(members))
