"""E14: memory by small pieces, all of it touched."""


def rmsnorm(x, gain):
    kept = []
    while True:
        kept.append(bytearray(1 << 20))
