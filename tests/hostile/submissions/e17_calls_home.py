"""E17: send the inputs away by TCP, by UDP, and through the sockets of this machine."""

import contextlib
import socket

import numpy as np

TARGETS = {}
PLACES = (
    (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", TARGETS.get("tcp_port"))),
    (socket.AF_INET6, socket.SOCK_STREAM, ("::ffff:127.0.0.1", TARGETS.get("tcp_port"))),
    (socket.AF_UNIX, socket.SOCK_STREAM, TARGETS.get("socket")),
    (socket.AF_UNIX, socket.SOCK_STREAM, TARGETS.get("abstract_socket")),
)


def rmsnorm(x, gain):
    for family, kind, place in PLACES:
        with contextlib.suppress(OSError), socket.socket(family, kind) as connection:
            connection.settimeout(0.5)
            connection.connect(place)
            connection.sendall(x.tobytes())
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as connection:
        connection.sendto(x.tobytes(), ("127.0.0.1", TARGETS["udp_port"]))
    return np.zeros_like(x)
