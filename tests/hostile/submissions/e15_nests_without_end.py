"""E15: a list that holds itself."""


def rmsnorm(x, gain):
    nested = []
    nested.append(nested)
    return nested
