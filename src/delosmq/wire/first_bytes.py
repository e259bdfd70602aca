"""Which protocol a connection speaks, by its first bytes.

Each protocol brings its own ``detect``; this module knows how to match words and to name what we can't serve.
"""

from typing import Final

FOREIGN: Final = 0
MINE: Final = 1
UNDECIDED: Final = 2

# Longer than any first word or magic of the protocols we look for.
LONGEST_START_BYTES: Final = 16

_LOOKS_LIKE: Final = (
    (b"\x16\x03", "TLS"),
    (b"GET ", "HTTP"),
    (b"POST ", "HTTP"),
    (b"HEAD ", "HTTP"),
    (b"PUT ", "HTTP"),
    (b"PATCH ", "HTTP"),
    (b"DELETE ", "HTTP"),
    (b"OPTIONS ", "HTTP"),
    (b"PRI * HTTP/2", "HTTP/2"),
    (b"AMQP", "AMQP"),
    (b"\x10", "MQTT"),
    (b"ARTEMIS", "CORE"),
    (b"SSH-", "SSH"),
    (b"PROXY ", "the PROXY protocol"),
)


def match_first_line(start: bytes, words: frozenset[bytes]) -> int:
    """Whether the first line is one of ``words``; line ends before it are skipped, a CR at its end is ignored."""
    line = start.lstrip(b"\r\n")
    end = line.find(b"\n")
    if end >= 0:
        return MINE if line[:end].rstrip(b"\r") in words else FOREIGN
    if len(line) > LONGEST_START_BYTES:
        return FOREIGN
    partial = line.rstrip(b"\r")
    for word in words:
        if word.startswith(partial):
            return UNDECIDED
    return FOREIGN


def is_http(start: bytes) -> bool:
    """Whether foreign bytes begin a request of HTTP/1.1."""
    return any(name == "HTTP" and start.startswith(magic) for magic, name in _LOOKS_LIKE)


def describe(start: bytes) -> str:
    """What foreign bytes look like, for a log line: a protocol's name, or the bytes."""
    for magic, name in _LOOKS_LIKE:
        if start.startswith(magic):
            return f"{name} ({start[:LONGEST_START_BYTES]!r})"
    if start[4:5] == b"\x01" and b"ActiveMQ" in start[:32]:
        return f"OpenWire ({start[:LONGEST_START_BYTES]!r})"
    return repr(start[:LONGEST_START_BYTES])
