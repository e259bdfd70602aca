"""Free ports for processes that are started again on the same one."""

import contextlib
import socket
from pathlib import Path
from random import SystemRandom
from typing import Final

_FIRST_LISTENING_PORT: Final = 10_000
_USUAL_FIRST_OUTGOING_PORT: Final = 32_768
_OUTGOING_PORTS: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_found_ports: set[int] = set()
"""No port is given out twice: the first to get it may not listen on it yet."""


def free_port() -> int:
    """A port on the loopback interface that nobody has, nor gets for a connection of his own while a broker is down."""
    while True:
        port = SystemRandom().randrange(_FIRST_LISTENING_PORT, _first_outgoing_port())
        if port in _found_ports:
            continue
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            _found_ports.add(port)
            return port


def _first_outgoing_port() -> int:
    """From here on the system takes the ports of connections that go out."""
    try:
        first = int(_OUTGOING_PORTS.read_text("ascii").split()[0])
    except OSError:
        return _USUAL_FIRST_OUTGOING_PORT
    return first if first > _FIRST_LISTENING_PORT else _USUAL_FIRST_OUTGOING_PORT
