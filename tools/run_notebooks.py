"""Execute the notebooks, two at a time: into the site's cache, into the repository, or only check what is stored.

--cache FOLDER  executes what FOLDER does not hold yet, for `make book`; the stored notebooks stay as they are.
--store         executes all and writes them back with outputs and the hash of their cells, for `make notebooks`.
--check         executes nothing; fails when stored outputs are not from the present cells, hold an error, or are big.
"""

import argparse
import hashlib
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import nbformat
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

ROOT = Path(__file__).resolve().parent.parent
MOST_BYTES = 1_500_000
CELL_TIMEOUT_S = 300
AT_A_TIME = 2


def notebook_paths() -> list[Path]:
    """Every notebook of the book, in reading order."""
    return sorted(path for path in (ROOT / "notebooks").rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts)


def source_hash(notebook: nbformat.NotebookNode) -> str:
    """A hash of what the reader typed: kinds and texts of the cells, nothing that execution writes."""
    cells = [[cell.cell_type, cell.source] for cell in notebook.cells]
    return hashlib.sha256(json.dumps(cells).encode()).hexdigest()


def execute(path: Path) -> tuple[nbformat.NotebookNode, float]:
    """Run a notebook from top to bottom in its own folder; returns it with outputs, and the seconds it took."""
    notebook = nbformat.read(path, as_version=4)
    started = time.perf_counter()
    NotebookClient(
        notebook, timeout=CELL_TIMEOUT_S, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}
    ).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # time stamps would differ at every run
    return notebook, time.perf_counter() - started


def name_failing_cell(path: Path, error: Exception) -> str:
    """Where it went wrong, for a reader who sees only the terminal."""
    return f"{path.relative_to(ROOT)}: a cell failed.\n{error}"


def run(paths: list[Path], keep) -> int:
    """Execute `paths`, hand each result to `keep(path, notebook, seconds)`; returns how many failed."""
    failures = 0
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        waiting = {pool.submit(execute, path): path for path in paths}
        for path in paths:
            print(f"  queued   {path.relative_to(ROOT)}", flush=True)
        for done in as_completed(waiting):
            path = waiting[done]
            try:
                notebook, seconds = done.result()
            except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
                failures += 1
                print(f"  FAILED   {name_failing_cell(path, error)}", file=sys.stderr, flush=True)
                continue
            keep(path, notebook, seconds)
            print(f"  done     {path.relative_to(ROOT)} in {seconds:.0f} s", flush=True)
    return failures


def store(path: Path, notebook: nbformat.NotebookNode, _seconds: float) -> None:
    """Write a notebook back, stamped with the hash of its cells."""
    notebook.metadata["llminfer"] = {"source_sha256": source_hash(notebook)}
    nbformat.write(notebook, path)


def complaints(path: Path) -> list[str]:
    """What is wrong with a stored notebook; empty when a reader can trust it."""
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    found = []
    if notebook.metadata.get("llminfer", {}).get("source_sha256") != source_hash(notebook):
        found.append("its outputs are not from its present cells")
    if any(output.output_type == "error" for cell in code for output in cell.outputs):
        found.append("it holds an error")
    if not any(cell.outputs for cell in code):
        found.append("it has no outputs")
    if path.stat().st_size > MOST_BYTES:
        found.append(f"it has {path.stat().st_size} bytes, more than {MOST_BYTES}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--cache", type=Path, metavar="FOLDER")
    what.add_argument("--store", action="store_true")
    what.add_argument("--check", action="store_true")
    options = parser.parse_args()

    if options.check:
        wrong = [(path, problem) for path in notebook_paths() for problem in complaints(path)]
        for path, problem in wrong:
            print(f"{path.relative_to(ROOT)}: {problem}; run `make notebooks` and look at it", file=sys.stderr)
        return bool(wrong)

    if options.store:
        return bool(run(notebook_paths(), store))

    cache = get_cache(options.cache)

    def is_missing(path: Path) -> bool:
        try:
            cache.match_cache_file(str(path))
        except KeyError:
            return True
        return False

    def keep(path: Path, notebook: nbformat.NotebookNode, seconds: float) -> None:
        bundle = CacheBundleIn(notebook, str(path), data={"execution_seconds": seconds})
        cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)

    return bool(run([path for path in notebook_paths() if is_missing(path)], keep))


if __name__ == "__main__":
    sys.exit(main())
