"""The text `tiny` learns from: the standard library of the running Python and its `help()` topics.

Every reader has this text already, so the model can be trained again anywhere without fetching a corpus.
Documents are split into training and held-out by a hash of their name, never by content or by chance.
"""

import hashlib
import re
import sysconfig
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

# Folders that are tests, other people's packages, or build results of one machine.
SKIPPED_FOLDERS = {"site-packages", "test", "tests", "idle_test", "lib-dynload", "__pycache__"}
SKIPPED_FOLDER_PREFIX = "config-"  # the interpreter's own build folder
SKIPPED_FILE_PREFIX = "_sysconfigdata"  # paths and flags of the machine that built the interpreter
TOPICS_FILE = "pydoc_data/topics.py"  # read as text below, not as one enormous Python literal
# Codec and look-up tables say so in their first lines. The words also stand in ast.py and lib2to3/pgen2/parse.py, which
# no machine wrote; leaving two files out is cheaper than a rule with exceptions.
GENERATED = re.compile(r"auto-?\s?generated|generated (from|by)", re.IGNORECASE)
GENERATED_WITHIN = 400  # characters

HELD_OUT_ONE_IN = 20


@dataclass(frozen=True)
class Document:
    """One text: `name` is the path below the standard library with forward slashes, or `topic:NAME`."""

    name: str
    text: str


def is_held_out(name: str) -> bool:
    """Whether a file is kept away from tokenizer and training: first SHA-256 byte of its name divisible by 20.

    Topics (`topic:...`) are never held out: they quote each other.
    """
    if name.startswith("topic:"):
        return False
    return hashlib.sha256(name.encode()).digest()[0] % HELD_OUT_ONE_IN == 0


def read_documents() -> list[Document]:
    """All documents of the running Python, sorted by name, exact duplicates and empty files removed."""
    seen: set[str] = set()
    documents = []
    for document in [*_library_files(), *_help_topics()]:
        if document.text.strip() and document.text not in seen:
            seen.add(document.text)
            documents.append(document)
    return documents


def split(documents: list[Document]) -> tuple[list[Document], list[Document]]:
    """Training documents and held-out documents, each in the given order."""
    training = [d for d in documents if not is_held_out(d.name)]
    return training, [d for d in documents if is_held_out(d.name)]


def bytes_in(documents: list[Document]) -> int:
    """Size of all texts together in UTF-8."""
    return sum(len(d.text.encode()) for d in documents)


def _library_files() -> list[Document]:
    root = Path(sysconfig.get_paths()["stdlib"])
    names = sorted(path.relative_to(root).as_posix() for path in root.rglob("*.py"))
    documents = []
    for name in names:
        if _is_skipped(PurePosixPath(name)):
            continue
        text = (root / name).read_bytes().decode("utf-8", errors="replace").replace("\r\n", "\n")
        if not GENERATED.search(text[:GENERATED_WITHIN]):
            documents.append(Document(name, text))
    return documents


def _is_skipped(path: PurePosixPath) -> bool:
    folders = path.parts[:-1]
    return (
        any(folder in SKIPPED_FOLDERS or folder.startswith(SKIPPED_FOLDER_PREFIX) for folder in folders)
        or path.name.startswith(SKIPPED_FILE_PREFIX)
        or path.as_posix() == TOPICS_FILE
    )


def _help_topics() -> list[Document]:
    """The language reference as `help("assert")` shows it; a paragraph that several topics quote is kept once."""
    from pydoc_data.topics import topics

    seen: set[str] = set()
    documents = []
    for name, text in sorted(topics.items()):
        fresh = [p for p in text.split("\n\n") if p not in seen]
        seen.update(fresh)
        documents.append(Document(f"topic:{name}", "\n\n".join(fresh)))
    return documents
