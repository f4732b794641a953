"""The one place that decides whether Triton compiles or interprets, and the only door through which it is imported.

Triton reads TRITON_INTERPRET when a kernel is decorated, so the choice is made here, before `import triton`, and holds
for the life of the process: compiled where a GPU is present, interpreted where none is. An explicit TRITON_INTERPRET in
the environment wins. Kernel files write `from llminfer.core.triton_environment import tl, triton`.
"""

import os

import torch


def _choose_interpreter() -> bool:
    asked = os.environ.get("TRITON_INTERPRET")
    if asked is None:
        os.environ["TRITON_INTERPRET"] = "0" if torch.cuda.is_available() else "1"
    return os.environ["TRITON_INTERPRET"] == "1"


INTERPRETED: bool = _choose_interpreter()

import triton  # noqa: E402  (after the choice, which Triton reads on import and at every @triton.jit)
import triton.language as tl  # noqa: E402

DEVICE: str = "cpu" if INTERPRETED or not torch.cuda.is_available() else "cuda"

__all__ = ["DEVICE", "INTERPRETED", "tl", "triton"]
