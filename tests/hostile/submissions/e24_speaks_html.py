"""E24: markup, scripts and control characters, in every text that a report may show."""

import numpy as np

ATTACK = "<script>alert(1)</script><img src=x onerror=alert(2)>\x1b]0;owned\x07\x1b[2J|`${7*7}`\u202e"
Attack = type(ATTACK, (Exception,), {})


def rmsnorm(x, gain):
    print(ATTACK)
    if x.shape[0] == 1:
        raise Attack(ATTACK)
    return {ATTACK: np.zeros_like(x)}
