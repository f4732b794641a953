"""E12: hang where the interpreter looks at no signal."""

import re


def rmsnorm(x, gain):
    return re.match(r"(a+)+$", "a" * 64 + "b")
