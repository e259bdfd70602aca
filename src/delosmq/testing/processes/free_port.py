"""Free ports for processes that are started again on the same one."""

import contextlib
import os
import socket
import threading
from pathlib import Path
from random import SystemRandom
from typing import Final

_FIRST_LISTENING_PORT: Final = 10_000
_USUAL_FIRST_OUTGOING_PORT: Final = 32_768
_OUTGOING_PORTS: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_BLOCK: Final = 50
_HOST: Final = "127.0.0.1"


def free_port() -> int:
    """A port on the loopback interface that nobody has, that no other process is given, and that is none of those of
    connections that go out. None is given out twice: the first to get it may not listen on it yet."""
    while True:
        port = _ports.take()
        with contextlib.suppress(OSError), socket.create_server((_HOST, port)):
            return port


class _Ports:
    """Ports of this process: by the block, whose first port it listens on for as long as it lives."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = 0
        self._left: list[int] = []

    def take(self) -> int:
        with self._lock:
            if not self._left or self._process != os.getpid():  # a fork has the ports of its parent
                self._left = _claim_block()
                self._process = os.getpid()
            return self._left.pop()


_ports: Final = _Ports()


def _claim_block() -> list[int]:
    firsts = range(_FIRST_LISTENING_PORT, _first_outgoing_port() - _BLOCK, _BLOCK)
    while True:
        first = SystemRandom().choice(firsts)
        with contextlib.suppress(OSError):
            socket.create_server((_HOST, first)).detach()  # open until this process ends
            return list(range(first + 1, first + _BLOCK))


def _first_outgoing_port() -> int:
    """From here on the system takes the ports of connections that go out."""
    try:
        first = int(_OUTGOING_PORTS.read_text("ascii").split()[0])
    except OSError:
        return _USUAL_FIRST_OUTGOING_PORT
    return first if first > _FIRST_LISTENING_PORT + 10 * _BLOCK else _USUAL_FIRST_OUTGOING_PORT
