"""The pair: what it says of itself, and how pairs are found."""

import dataclasses
import subprocess
import sys

import pytest

from llminfer.core import pairs
from llminfer.core.pairs import Pair, find_pairs, pair_names


def double(x):
    return 2 * x


PAIR = Pair("test.double", double, double, double, lambda rng, size, dtype: {}, double, ("float32",))


def test_a_pair_knows_its_chapter_and_all_its_implementations():
    pair = dataclasses.replace(PAIR, name="kv_cache.append", variants=(double,))
    assert pair.chapter == "kv_cache"
    assert pair.implementations == {"kernel": double, "double": double}


@pytest.mark.parametrize(
    ("changes", "error", "named"),
    [
        ({"name": "RMSNorm"}, ValueError, "RMSNorm"),
        ({"kernel": None}, TypeError, "kernel"),
        ({"dtypes": ("float31",)}, ValueError, "float31"),
        ({"dtypes": ()}, ValueError, "dtypes"),
        ({"dtypes": "float32"}, TypeError, "tuple"),
        ({"mutates": ("y",)}, ValueError, "'y'"),
        ({"scaled": ("gains",)}, ValueError, "gains"),
        ({"compare": "nearly"}, ValueError, "nearly"),
        ({"kernel": lambda x, y: None}, ValueError, "its order"),
        ({"baseline": lambda y: None}, ValueError, "its order"),
        ({"variants": (lambda y: None,)}, ValueError, "its order"),
    ],
)
def test_a_pair_checks_its_fields(changes, error, named):
    with pytest.raises(error, match=named):
        dataclasses.replace(PAIR, **changes)


@pytest.fixture
def a_house_with_two_kernels(tmp_path, monkeypatch):
    for path, source in {
        "kv_cache/paged_triton.py": 'PAGED = Pair("kv_cache.paged", reference=1)',
        "basics/norms_triton.py": 'A = Pair(name="basics.rmsnorm")\nB = Pair("basics.layernorm")',
        "basics/norms.py": 'NOT = Pair("basics.not_a_kernel_file")',
    }.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(source)
    monkeypatch.setattr(pairs, "PACKAGE", tmp_path)


def test_names_are_read_from_kernel_files_in_the_order_of_the_chapters(a_house_with_two_kernels):
    assert pair_names() == ("basics.rmsnorm", "basics.layernorm", "kv_cache.paged")


@pytest.mark.parametrize("which", ["3.1", "basics"])
def test_a_chapter_is_found_by_number_and_by_package(a_house_with_two_kernels, which):
    assert pair_names(which) == ("basics.rmsnorm", "basics.layernorm")


def test_a_pair_is_found_by_its_name_and_a_chapter_may_be_empty(a_house_with_two_kernels):
    assert pair_names("kv_cache.paged") == ("kv_cache.paged",)
    assert pair_names("3.8") == ()


def test_an_unknown_name_is_answered_with_the_known_ones(a_house_with_two_kernels):
    with pytest.raises(ValueError, match=r"basics\.rmsnrm.*3\.1.*basics\.rmsnorm"):
        pair_names("basics.rmsnrm")


def test_a_source_that_names_a_pair_must_hold_it():
    with pytest.raises(ValueError, match="holds no such pair"):
        pairs._load("basics.rmsnorm", "llminfer.core.cost")


def test_every_pair_of_the_package_loads_under_the_name_its_source_gives():
    pytest.importorskip("llminfer.core.triton_environment", exc_type=ImportError)  # torch or triton may be missing
    assert tuple(pair.name for pair in find_pairs()) == pair_names()


def test_listing_names_needs_neither_torch_nor_triton():
    code = (
        "import sys; from llminfer.core import pairs; pairs.pair_names(); print({'torch', 'triton'} & set(sys.modules))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "set()"


def test_without_torch_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "llminfer.core.tensors_torch", raising=False)
    with pytest.raises(ImportError, match=r"needs torch.*pip install"):
        pairs._load("basics.rmsnorm", "llminfer.core.tensors_torch")
