"""E18: return the inputs, so that a comparison may show them."""


def rmsnorm(x, gain):
    return x + 0
