"""The model's first door, in NumPy: every small function of a layer under one roof.

`ops_triton` holds the same names for torch tensors; a model takes either. With them come the few array functions that a
model needs and that NumPy and torch spell differently.
"""

from numpy import asarray, concatenate, tanh

from llminfer.basics.activations import geglu, gelu, swiglu, swiglu_clamped
from llminfer.basics.embeddings import embed
from llminfer.basics.norms import layernorm, rmsnorm, rmsnorm_residual
from llminfer.basics.probabilities import softmax
from llminfer.basics.projections import matvec
from llminfer.basics.rotary import rope, rotation

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
