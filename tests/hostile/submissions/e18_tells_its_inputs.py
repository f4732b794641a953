"""E18: print the inputs and raise them, so that a report of hidden cases may show them."""

import warnings


def rmsnorm(x, gain):
    print("inputs", x.tolist(), gain.tolist())
    warnings.warn(str(x.tolist()), stacklevel=1)
    raise ValueError(f"inputs {x.tolist()}")
