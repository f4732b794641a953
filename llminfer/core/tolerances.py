"""The one place for tolerances: how far a kernel may be from its reference in float64.

A kernel passes when its largest error is at most twice that of plain torch at the same dtype plus a floor, and its
relative RMS error is within the budget of the dtype. The first rule calibrates itself to the problem (as the tests of
flash-attention do), the second cannot be talked out of by a bad baseline. Both are needed: a wrong element in a small
output escapes the RMS, a small bias in all of them escapes the maximum.
"""

from dataclasses import dataclass

import ml_dtypes
import numpy as np

COMPARISONS: tuple[str, ...] = ("float", "exact", "codes")
BASELINE_FACTOR = 2.0
"""A kernel's largest error may be this many times the baseline's."""
CODES_OFF_BY_ONE = 0.005
"""Fraction of integer codes that may fall on the other side of a rounding tie when the baseline's all agree."""
SCALES: tuple[float, ...] = (30.0, 1e-3)
"""Besides 1. Small random inputs hide errors that depend on magnitude: everything rounds to the same numbers."""


@dataclass(frozen=True)
class Tolerance:
    """floor_ulps: free error in units of eps * max|oracle|; relative_rms: budget for rms(error) / rms(oracle)."""

    floor_ulps: float
    relative_rms: float


# Narrow types: half an eps of RMS, the most that rounding a result once can cost (it costs a fifth on average; a sum of
# 1000 terms kept in float16 costs some five). float32: sums in another order drift by 1e-6, TF32 by 5e-4.
DTYPES: dict[str, Tolerance] = {
    "float32": Tolerance(floor_ulps=4.0, relative_rms=1e-5),
    "float16": Tolerance(floor_ulps=0.5, relative_rms=5e-4),
    "bfloat16": Tolerance(floor_ulps=0.5, relative_rms=4e-3),
    "float8_e4m3fn": Tolerance(floor_ulps=0.5, relative_rms=6.3e-2),
    "float8_e5m2": Tolerance(floor_ulps=0.5, relative_rms=1.26e-1),
    "int8": Tolerance(floor_ulps=0.0, relative_rms=0.0),
    "uint8": Tolerance(floor_ulps=0.0, relative_rms=0.0),
    "int32": Tolerance(floor_ulps=0.0, relative_rms=0.0),
    "int64": Tolerance(floor_ulps=0.0, relative_rms=0.0),
}
TRUNCATION = Tolerance(floor_ulps=1.0, relative_rms=4e-3)
"""Added for bfloat16 under the interpreter, which cuts off where a GPU rounds to nearest even: up to a whole eps.

It rounds float16. Its casts to float8 lose the carry from mantissa into exponent, which makes three results in a
hundred wrong by up to a half: no tolerance mends that, so a kernel that stores float8 can be checked on a GPU only.
"""


def is_floating(dtype: np.dtype | type | str) -> bool:
    """True for NumPy's floating types and for those of ml_dtypes, which NumPy does not count among its own."""
    dtype = np.dtype(dtype)
    return np.issubdtype(dtype, np.floating) or dtype.name.startswith(("bfloat", "float"))


def tolerance(dtype: str, output_dtype: str, interpreted: bool) -> Tolerance:
    """What an output of `output_dtype` may be off by in a check at `dtype`: the looser of the two.

    Under the interpreter it makes up for bfloat16 cut off in stores.
    """
    known = [DTYPES[name] for name in (dtype, output_dtype) if name in DTYPES] or [DTYPES["float32"]]
    loosest = max(known, key=lambda entry: entry.relative_rms)
    if not interpreted or "bfloat16" not in (dtype, output_dtype):
        return loosest
    return Tolerance(loosest.floor_ulps + TRUNCATION.floor_ulps, loosest.relative_rms + TRUNCATION.relative_rms)


def epsilon(dtype: str) -> float:
    """Distance from 1 to the next number of `dtype`; 0 for integers."""
    return float(ml_dtypes.finfo(np.dtype(dtype)).eps) if is_floating(dtype) else 0.0


def smallest_subnormal(dtype: str) -> float:
    """Step between the numbers nearest to zero; no result of this dtype can be closer than half of it."""
    return float(ml_dtypes.finfo(np.dtype(dtype)).smallest_subnormal) if is_floating(dtype) else 0.0
