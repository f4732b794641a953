"""E12, E13, E15: a daemon that holds every pipe, a flood from a thread, and a loop."""

import contextlib
import os
import signal
import threading
import time


def flood():
    while True:
        with contextlib.suppress(OSError):
            print("x" * 100)


def rmsnorm(x, gain):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        if os.fork() == 0:
            os.setsid()
            time.sleep(60)
            os._exit(0)
    threading.Thread(target=flood).start()
    while True:
        pass
