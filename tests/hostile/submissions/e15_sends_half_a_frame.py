"""E15: begin a frame and never end it."""

import gc
import io
import struct
import time


def rmsnorm(x, gain):
    for pipe in gc.get_objects():
        if isinstance(pipe, io.BufferedWriter) and pipe.fileno() > 2:
            pipe.write(struct.pack("<IQ", 100, 1000) + b"{")
            pipe.flush()
    time.sleep(600)
