"""Archives and folders from strangers: what is wanted is read, the rest is a reason, and nothing is an exception."""

import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llminfer.grading.archives import ARCHIVES, MAX_MEMBERS, Member, RefusedError, members, members_of_bytes, shown


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, raw in files.items():
            archive.writestr(name, raw)
    return out.getvalue()


def tarred(*infos: tuple[tarfile.TarInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for info, raw in infos:
            info.size = len(raw)
            archive.addfile(info, io.BytesIO(raw))
    return out.getvalue()


def split(found) -> tuple[dict[str, bytes], list[str]]:
    found = list(found)
    read = {"/".join(each.path): each.read(1000) for each in found if isinstance(each, Member)}
    return read, [str(each) for each in found if isinstance(each, RefusedError)]


def test_a_folder_gives_its_files_and_refuses_links_and_pipes(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.py").write_bytes(b"1")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_bytes(b"")
    (tmp_path / "link.py").symlink_to("/etc/passwd")
    (tmp_path / "folder").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe.py")
    read, refused = split(members(tmp_path))
    assert read == {"a/x.py": b"1"}
    assert [reason.split(" is ")[0] for reason in refused] == ["folder", "link.py", "pipe.py"]


def test_a_file_that_became_a_link_after_it_was_seen_is_not_followed(tmp_path):
    (tmp_path / "x.py").write_bytes(b"1")
    [member] = members(tmp_path)
    (tmp_path / "x.py").unlink()
    (tmp_path / "x.py").symlink_to("/etc/passwd")
    with pytest.raises(RefusedError, match="cannot be opened"):
        member.read(1000)


def test_paths_out_of_the_archive_are_refused_and_windows_paths_understood():
    names = ("ok.py", r"sub\win.py", "../up.py", "/abs.py", r"..\up.py", r"C:\drive.py", "a/../../b.py")
    read, refused = split(members_of_bytes("s.zip", zipped(dict.fromkeys(names, b"1"))))
    assert read == {"ok.py": b"1", "sub/win.py": b"1"}
    assert len(refused) == 5
    assert all(reason.endswith("points out of the archive") for reason in refused)


def test_links_and_devices_in_archives_are_refused():
    link = zipfile.ZipInfo("link.py")
    link.external_attr = 0o120777 << 16
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(link, "/etc/passwd")
    read, refused = split(members_of_bytes("s.zip", out.getvalue()))
    assert (read, len(refused)) == ({}, 1)

    kinds = {"soft": tarfile.SYMTYPE, "hard": tarfile.LNKTYPE, "device": tarfile.CHRTYPE, "pipe": tarfile.FIFOTYPE}
    infos = []
    for name, kind in kinds.items():
        info = tarfile.TarInfo(name)
        info.type, info.linkname = kind, "/etc/passwd"
        infos.append((info, b""))
    read, refused = split(members_of_bytes("s.tgz", tarred((tarfile.TarInfo("ok.py"), b"1"), *infos)))
    assert (read, len(refused)) == ({"ok.py": b"1"}, 4)


def test_no_more_is_read_than_is_allowed_whatever_the_archive_says():
    bomb = zipped({"big.py": b"0" * 10_000_000})
    assert len(bomb) < 20_000
    [member] = members_of_bytes("s.zip", bomb)
    with pytest.raises(RefusedError, match="larger than 100 KiB"):
        member.read(100 << 10)


def test_a_tar_that_unpacks_to_too_much_is_refused():
    [refused] = members_of_bytes("s.tar.gz", tarred((tarfile.TarInfo("big"), b"0" * (65 << 20))))
    assert "larger than" in str(refused)


def test_too_many_files_are_refused_before_they_are_listed():
    many = zipped({f"{number}.py": b"" for number in range(MAX_MEMBERS + 1)}, zipfile.ZIP_STORED)
    [refused] = members_of_bytes("s.zip", many)
    assert "more than 5000 files" in str(refused)


def test_an_encrypted_file_is_refused_when_it_is_read():
    raw = bytearray(zipped({"x.py": b"1"}, zipfile.ZIP_STORED))
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        raw[raw.index(signature) + flags] |= 1
    [member] = members_of_bytes("s.zip", bytes(raw))
    with pytest.raises(RefusedError, match="encrypted"):
        member.read(1000)


def test_what_systems_leave_behind_is_not_there():
    read, refused = split(members_of_bytes("s.zip", zipped({"__MACOSX/._x.py": b"", ".DS_Store": b"", "x.py": b"1"})))
    assert (read, refused) == ({"x.py": b"1"}, [])


def test_names_are_shown_on_one_harmless_line():
    assert shown("a\x1b[31mb\nc\udcffd") == "a\N{REPLACEMENT CHARACTER}[31mb" + "\N{REPLACEMENT CHARACTER}c?d".replace(
        "?", "\N{REPLACEMENT CHARACTER}"
    )


def test_neither_folder_nor_archive_is_the_callers_mistake(tmp_path):
    (tmp_path / "x.rar").write_bytes(b"")
    with pytest.raises(ValueError, match="neither a folder nor an archive"):
        list(members(tmp_path / "x.rar"))


GOOD = zipped({"a/x.py": b"1" * 100, "b.py": b"2"})
TAR = tarred((tarfile.TarInfo("a/x.py"), b"1" * 100))


@given(st.sampled_from(ARCHIVES), st.one_of(st.binary(max_size=300), st.just(GOOD), st.just(TAR)), st.data())
def test_damaged_archives_give_reasons_and_no_exceptions(ending, raw, data):
    raw = bytearray(raw)
    for place in data.draw(st.lists(st.integers(0, max(0, len(raw) - 1)), max_size=8)) if raw else ():
        raw[place] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(raw)))
    for found in members_of_bytes(f"s{ending}", bytes(raw[:cut])):
        if isinstance(found, Member):
            assert ".." not in found.path
            try:
                found.read(1000)
            except RefusedError:
                pass


def test_the_outermost_archive_is_read_from_its_file(tmp_path):
    path = Path(tmp_path / "all.zip")
    path.write_bytes(GOOD)
    assert split(members(path))[0] == {"a/x.py": b"1" * 100, "b.py": b"2"}
