"""A pair: one idea as a NumPy reference and as a Triton kernel, with its cost and the inputs that try it.

Everything said of a kernel (parity test, benchmark, roofline point, compile matrix, table in the docs) is derived from
its pair. This module holds the pair itself, finds all of them, and is the door to what is done with one; torch and
triton are imported only when a kernel file or one of those doors needs them.
"""

import ast
import importlib
import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from llminfer.core.public_names import CHAPTERS
from llminfer.core.tolerances import COMPARISONS, DTYPES

if TYPE_CHECKING:
    from llminfer.core.compilation import CompileResult
    from llminfer.core.parity import CheckResult
    from llminfer.core.timing import Measurement, RoofLike

PACKAGE = Path(__file__).parent.parent
ODD_SHAPES: tuple[tuple[int, int], ...] = ((1, 199), (37, 256), (199, 37), (5, 1))
"""(rows, width) of "odd" cases: ones, non-multiples of any block, a multiple; few rows, for the interpreter's sake."""


@dataclass(frozen=True)
class Pair:
    """One idea, twice. Named "<chapter package>.<idea>", such as "basics.rmsnorm".

    reference: NumPy arrays in, an array (or a tuple or a small dataclass of them) out; computes in the dtype given.
    kernel:    torch tensors in and out; same argument names and order as the reference.
    baseline:  plain torch of the same idea, at the same dtype: the yardstick for error and for time; it also says
               which dtype each output has.
    cases:     (rng, size, dtype) -> keyword arguments with NumPy arrays already in `dtype` (`array.astype(dtype)`
               knows "bfloat16" once ml_dtypes is imported), or a list of such dicts. "tiny" and "bench" are one case,
               "odd" is a list over ODD_SHAPES or shapes of that kind. The check adds scales, strides and guards.
    cost:      same keyword arguments -> Cost, the least that any version must do.
    mutates:   arguments written in place; they are compared like outputs. No other argument may change.
    compare:   "float" (error rule of core/tolerances.py), "exact", or "codes" (integers may differ by one at ties).
    variants:  further implementations, checked like the kernel. One that cannot run here raises NotImplementedError.
    scaled:    the floating arguments that the check multiplies by 1e-3 and by 30; None means all of them. Name those
               that may be, where others (rotation frequencies, probabilities) only make sense at their own size.

    A kernel need not take strided inputs, but then it has to say so with a ValueError; the check tries it.
    Raises ValueError or TypeError when a field is not as said here.
    """

    name: str
    reference: Callable
    kernel: Callable
    baseline: Callable
    cases: Callable
    cost: Callable
    dtypes: tuple[str, ...]
    mutates: tuple[str, ...] = ()
    compare: str = "float"
    variants: tuple[Callable, ...] = ()
    scaled: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*", self.name):
            raise ValueError(f"a pair is named '<chapter package>.<idea>' in lower case, got {self.name!r}")
        for field in ("reference", "kernel", "baseline", "cases", "cost"):
            if not callable(getattr(self, field)):
                raise TypeError(f"{field} of {self.name} must be callable, got {getattr(self, field)!r}")
        for field in ("dtypes", "mutates", "variants", "scaled"):
            if not isinstance(getattr(self, field), tuple | None):
                raise TypeError(f"{field} of {self.name} must be a tuple, got {getattr(self, field)!r}")
        if not self.dtypes or not set(self.dtypes) <= set(DTYPES):
            raise ValueError(f"dtypes of {self.name} must be some of {', '.join(DTYPES)}, got {self.dtypes}")
        if self.compare not in COMPARISONS:
            raise ValueError(f"compare of {self.name} must be one of {', '.join(COMPARISONS)}, got {self.compare!r}")
        arguments = argument_names(self.reference)
        for implementation in (self.kernel, self.baseline, *self.variants):
            if argument_names(implementation) != arguments:
                raise ValueError(
                    f"{getattr(implementation, '__qualname__', implementation)} of {self.name} must take the arguments "
                    f"of the reference in its order, {arguments}, got {argument_names(implementation)}"
                )
        for field in ("mutates", "scaled"):
            unknown = set(getattr(self, field) or ()) - set(arguments)
            if unknown:
                raise ValueError(f"{field} of {self.name} names {sorted(unknown)}; the arguments are {arguments}")

    @property
    def chapter(self) -> str:
        """The chapter's package: "basics" of "basics.rmsnorm"."""
        return self.name.split(".")[0]

    @property
    def implementations(self) -> dict[str, Callable]:
        """What is held against the reference: the kernel, then the variants by the names of their functions."""
        return {"kernel": self.kernel} | {variant.__name__: variant for variant in self.variants}


def argument_names(function: Callable) -> tuple[str, ...]:
    """Names of the arguments of `function`, in order."""
    return tuple(inspect.signature(function).parameters)


def pair_modules() -> dict[str, str]:
    """Pair name -> module that defines it, read from the sources of `llminfer/*/*_triton.py` without importing them."""
    found = {}
    for path in sorted(PACKAGE.glob("*/*_triton.py")):
        module = f"{PACKAGE.name}.{path.parent.name}.{path.stem}"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "Pair":
                named = [node.args[0]] if node.args else [k.value for k in node.keywords if k.arg == "name"]
                found |= {name.value: module for name in named if isinstance(name, ast.Constant)}
    order = list(CHAPTERS.values())
    place = {name: order.index(name.split(".")[0]) if name.split(".")[0] in order else len(order) for name in found}
    return {name: found[name] for name in sorted(found, key=lambda name: (place[name], found[name]))}


def pair_names(which: str | None = None) -> tuple[str, ...]:
    """Names of the pairs of a chapter ("3.1" or "basics"), of one pair ("basics.rmsnorm"), or of all; no kernel import.

    Raises ValueError for a name that nothing answers to.
    """
    names = tuple(pair_modules())
    if which is None:
        return names
    chapter = CHAPTERS.get(which, which)
    chosen = tuple(name for name in names if name == which or name.split(".")[0] == chapter)
    if not chosen and chapter not in CHAPTERS.values():
        raise ValueError(
            f"no pair or chapter is called {which!r}; chapters are {', '.join(CHAPTERS)} or "
            f"{', '.join(CHAPTERS.values())}; pairs are {', '.join(names) or 'not there yet'}"
        )
    return chosen


def find_pairs(which: str | None = None) -> tuple[Pair, ...]:
    """The pairs that `pair_names(which)` names; imports their kernel files, hence torch and triton.

    Raises ImportError with the remedy where torch or triton is missing, ValueError for an unknown name.
    """
    names, modules = pair_names(which), pair_modules()
    return tuple(_load(name, modules[name]) for name in names)


def all_pairs() -> tuple[Pair, ...]:
    """Every pair of the package, in the order of the chapters."""
    return find_pairs()


def _load(name: str, module_name: str) -> Pair:
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "triton"):
            raise
        raise ImportError(
            f"{name} needs {error.name}, which is not installed: pip install 'llminfer[kernels]' "
            "(triton exists for Linux only; the NumPy reference works everywhere)"
        ) from error
    for value in vars(module).values():
        if isinstance(value, Pair) and value.name == name:
            return value
    raise ValueError(f"{module_name} mentions {name} but holds no such pair at module level")


def check(pair: Pair, dtypes: tuple[str, ...] | None = None, sizes: tuple[str, ...] = ("tiny", "odd")) -> "CheckResult":
    """Hold the kernel and the variants of `pair` against its reference in float64; a failure is in the result.

    Sizes are "tiny", "odd", "bench". core/parity_torch.py says how it is done, core/tolerances.py what passes.
    Raises ValueError for a dtype that the pair does not have or an unknown size.
    """
    from llminfer.core.parity_torch import check as check_pair

    return check_pair(pair, dtypes, sizes)


def measure(
    pair: Pair,
    dtype: str | None = None,
    size: str = "bench",
    roof: "RoofLike | None" = None,
    predict_on: "Sequence[RoofLike]" = (),
) -> "Measurement":
    """Time `pair` on the machine at hand, and say what the kernel could do at best elsewhere; see core/timing_torch.py.

    On a GPU the kernel, the variants and the baseline; without one the reference and the baseline on the CPU, never the
    interpreter. `roof` and `predict_on` are devices: anything with a `name`, a `bandwidth` and `flops(dtype)`.
    Raises ValueError for a dtype that the pair does not have.
    """
    from llminfer.core.timing_torch import measure as measure_pair

    return measure_pair(pair, dtype, size, roof, predict_on)


def compile_for(pair: Pair, target: str, dtype: str | None = None) -> "CompileResult":
    """Compile what `pair` launches for `target`, such as "sm_90", without any GPU; see core/compilation.py.

    For many pairs or targets `compile_pairs` there is quicker: one process does them all.
    Raises ValueError for an unknown target or a dtype that the pair does not have.
    """
    from llminfer.core.compilation import compile_pairs

    [result] = compile_pairs([pair], [target], dtype)
    return result


def usual_dtype(pair: Pair) -> str:
    """The dtype in which a pair is compiled and timed when none is asked for: what models run in, where it can."""
    return next((dtype for dtype in ("bfloat16", "float16") if dtype in pair.dtypes), pair.dtypes[0])
