"""E15: a result of very many small values."""


def rmsnorm(x, gain):
    return [[] for _ in range(200_000)]
