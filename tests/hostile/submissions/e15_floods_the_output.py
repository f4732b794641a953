"""E15: print without end."""


def rmsnorm(x, gain):
    while True:
        print("x" * 100_000)
