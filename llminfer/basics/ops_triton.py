"""The model's first door, in Triton: the names of `ops`, for torch tensors."""

from functools import partial

import torch
from torch import concatenate, tanh

from llminfer.basics.activations_triton import geglu, gelu, swiglu, swiglu_clamped
from llminfer.basics.embeddings_triton import embed
from llminfer.basics.norms_triton import layernorm, rmsnorm, rmsnorm_residual
from llminfer.basics.probabilities_triton import softmax
from llminfer.basics.projections_triton import matvec
from llminfer.basics.rotary_triton import rope, rotation
from llminfer.core.triton_environment import DEVICE

asarray = partial(torch.asarray, device=DEVICE)

__all__ = [
    "asarray",
    "concatenate",
    "embed",
    "geglu",
    "gelu",
    "layernorm",
    "matvec",
    "rmsnorm",
    "rmsnorm_residual",
    "rope",
    "rotation",
    "softmax",
    "swiglu",
    "swiglu_clamped",
    "tanh",
]
