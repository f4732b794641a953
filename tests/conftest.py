"""Shapes cannot lie: every annotated function of the package is checked at run time while the tests run.

Kernel files are left out, because a jitted kernel must reach Triton as it was written.
"""

import importlib.util
import os
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")

import beartype
import jaxtyping
import pytest
from jaxtyping import install_import_hook

PACKAGE = Path(__file__).parent.parent / "llminfer"
UNCHECKED = ("_triton", "_torch", ".bounded_calls")  # the last has a function that runs at every instruction of another


def reference_modules() -> list[str]:
    """Every leaf module of the package that is not a kernel file."""
    found = pkgutil.walk_packages([str(PACKAGE)], prefix="llminfer.")
    return [module.name for module in found if not module.ispkg and not module.name.endswith(UNCHECKED)]


# In annotations an int is a float (PEP 484, "The numeric tower"), which beartype grants only when asked. The hook takes
# the checker by its dotted name, so the configured one is given a name.
beartype.with_numeric_tower = beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))
install_import_hook(reference_modules(), "beartype.with_numeric_tower")


@pytest.fixture
def without_shape_checks() -> Iterator[None]:
    """As users run the library: the tests' own checks of shapes and types would speak up before the library does."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


# Files that hold much against another library or start other processes; `make quick` leaves them to the full lane.
SLOW_FILES = {
    *("test_automata", "test_batched_sampling", "test_batched_sampling_triton", "test_bench_model", "test_compilation"),
    *("test_constrained_generation", "test_constraint_oracles", "test_constraints", "test_families", "test_grammars"),
    *("test_json_schemas", "test_launchers", "test_measurement", "test_percentiles", "test_record_results"),
    *("test_parity_torch", "test_regular_expressions", "test_sampling", "test_transformers_counts"),
    *("test_plots", "test_tokenizer_files", "test_triton_environment"),
}
NEEDS_TORCH = re.compile(r"^\s*(from|import) (torch|triton|transformers)\b|_(torch|triton)\b", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """A NumPy-only install leaves out the files that test kernels, or hold something against torch or transformers."""
    if importlib.util.find_spec("torch") or collection_path.suffix != ".py" or collection_path.name == "conftest.py":
        return None
    return True if NEEDS_TORCH.search(collection_path.read_text(encoding="utf-8")) else None


def pytest_collection_modifyitems(items: list) -> None:
    for item in items:
        if item.path.stem in SLOW_FILES:
            item.add_marker("slow")


def pytest_report_header() -> str | None:
    """Say so, lest a green run be taken for more than it is."""
    return None if importlib.util.find_spec("torch") else "torch is not installed: tests that need it are left out"
