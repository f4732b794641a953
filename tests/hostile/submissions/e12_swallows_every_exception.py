"""E12: a loop that no exception and no signal ends."""

import signal

for number in signal.valid_signals():
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass


def rmsnorm(x, gain):
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
