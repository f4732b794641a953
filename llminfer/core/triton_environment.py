"""The one place that decides whether Triton compiles or interprets, and the only door through which it is imported.

Triton reads TRITON_INTERPRET when a kernel is decorated, so the choice is made here, before `import triton`, and holds
for the life of the process: compiled where a GPU is present, interpreted where none is. An explicit TRITON_INTERPRET in
the environment wins, and it does not matter who has imported Triton before. Kernel files write
`from llminfer.core.triton_environment import tl, triton`.
"""

import os
import sys
from collections.abc import Callable

import torch


def _choose_interpreter() -> bool:
    asked = os.environ.get("TRITON_INTERPRET")
    if asked is None:
        os.environ["TRITON_INTERPRET"] = "0" if torch.cuda.is_available() else "1"
    return os.environ["TRITON_INTERPRET"] == "1"


def _forget_compiled_triton() -> None:
    """Make `import triton` start anew where a library (transformers, say) imported it before the choice was made.

    Triton's own functions, such as `tl.sum`, are jitted on that import too, and those made for compiling cannot be
    called by the interpreter. Whoever holds the old modules keeps them; without a GPU they are of no use to anybody.
    """
    standard = sys.modules.get("triton.language.standard")
    if standard is None or type(standard.sum).__name__ == "InterpretedFunction":
        return
    for name in [name for name in sys.modules if name.split(".")[0] == "triton"]:
        if not name.startswith("triton._C"):  # the compiled part knows no choice, and loads only once
            del sys.modules[name]


INTERPRETED: bool = _choose_interpreter()
if INTERPRETED:
    _forget_compiled_triton()

import triton  # noqa: E402  (after the choice, which Triton reads on import and at every @triton.jit)
import triton.language as tl  # noqa: E402
from triton.runtime.jit import KernelInterface  # noqa: E402

DEVICE: str = "cpu" if INTERPRETED or not torch.cuda.is_available() else "cuda"

__all__ = ["DEVICE", "INTERPRETED", "autotune", "operand_dtype", "tl", "triton"]


def autotune(configs: list, key: list[str], **options) -> Callable:
    """`triton.autotune` on a GPU; without one, the first configuration, because there is nothing to time.

    The first configuration is therefore the one that the interpreter runs and the compile matrix shows.
    """
    if DEVICE == "cpu":
        return lambda kernel: _FirstConfiguration(kernel, configs[0])
    return triton.autotune(configs, key, **options)


class _FirstConfiguration(KernelInterface):
    """A kernel that is always launched with one configuration: block sizes, warps and stages."""

    def __init__(self, kernel: KernelInterface, configuration: "triton.Config") -> None:
        self.fn, self._arguments = kernel, configuration.all_kwargs()

    def run(self, *args, grid, warmup, **kwargs):
        return self.fn.run(*args, grid=grid, warmup=warmup, **kwargs, **self._arguments)


def operand_dtype(tensor: torch.Tensor) -> "tl.dtype":
    """The dtype in which `tl.dot` should take the values of `tensor`: its own, float32 under the interpreter.

    Tensor cores want the narrow type, but the interpreter computes bfloat16 on its bits as if they were integers.
    Pass it to the kernel as a constexpr and write `tl.load(...).to(OPERAND)`.
    """
    name = "float32" if INTERPRETED else str(tensor.dtype).removeprefix("torch.")
    return {"float8_e4m3fn": tl.float8e4nv, "float8_e5m2": tl.float8e5}.get(name) or getattr(tl, name)
