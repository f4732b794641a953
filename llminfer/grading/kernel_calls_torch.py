"""Call a student's kernel: arrays become tensors, buffers keep their borders, what was written is read back."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from llminfer.core.tensors_torch import to_numpy, to_torch
from llminfer.core.triton_environment import DEVICE
from llminfer.grading.guarded_buffers import Guarded
from llminfer.grading.student_code import Outcome


def with_tensors(
    call: Callable[[dict[str, Any]], Outcome], arguments: Mapping[str, Any], outputs: Sequence[str]
) -> Outcome:
    """Call with tensors in place of arrays. The value is what the `outputs` hold afterwards, borders included."""
    buffers = {name: to_torch(_flat(value), DEVICE) for name, value in arguments.items() if _is_array(value)}
    views = {name: _inside(buffer, arguments[name]) for name, buffer in buffers.items()}
    outcome = call({**arguments, **views})
    if outcome.status == "ok" and outcome.value is not None:
        outcome = Outcome("bad_reply", error="a kernel writes to its outputs and returns None")
    try:
        after = {name: _read_back(buffer, arguments[name]) for name, buffer in buffers.items()}
    except RuntimeError as problem:  # what a kernel did wrong on a GPU may show only here
        return Outcome("exception", type(problem).__name__, f"{type(problem).__name__}: {str(problem)[:300]}")
    if outcome.status == "ok":
        outcome.value = {name: after.pop(name) for name in outputs}
    outcome.arguments_after = {**arguments, **after}
    return outcome


def _is_array(value: Any) -> bool:
    return isinstance(value, Guarded | np.ndarray)


def _flat(value: Guarded | np.ndarray) -> np.ndarray:
    return value.buffer if isinstance(value, Guarded) else value


def _inside(buffer: torch.Tensor, value: Guarded | np.ndarray) -> torch.Tensor:
    if isinstance(value, Guarded):
        return buffer[value.border : len(buffer) - value.border].view(value.shape)
    return buffer


def _read_back(buffer: torch.Tensor, value: Guarded | np.ndarray) -> Guarded | np.ndarray:
    array = to_numpy(buffer)
    return Guarded(array, value.shape, value.border) if isinstance(value, Guarded) else array
