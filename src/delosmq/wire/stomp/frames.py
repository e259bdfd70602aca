"""A STOMP frame in memory, and what the commands of the protocol allow."""

from typing import Final

V10: Final = 10
V11: Final = 11
V12: Final = 12

WITH_BODY: Final = 0
WITHOUT_BODY: Final = 1
CONNECTING: Final = 2

NO_PATTERN: Final = 0

# Source: STOMP 1.2, "Body" and "Value Encoding". CONNECTING frames have no body and no escapes in any version.
COMMANDS: Final[dict[str, int]] = {
    "SEND": WITH_BODY,
    "MESSAGE": WITH_BODY,
    "ERROR": WITH_BODY,
    "ACK": WITHOUT_BODY,
    "NACK": WITHOUT_BODY,
    "SUBSCRIBE": WITHOUT_BODY,
    "UNSUBSCRIBE": WITHOUT_BODY,
    "BEGIN": WITHOUT_BODY,
    "COMMIT": WITHOUT_BODY,
    "ABORT": WITHOUT_BODY,
    "DISCONNECT": WITHOUT_BODY,
    "RECEIPT": WITHOUT_BODY,
    "CONNECT": CONNECTING,
    "STOMP": CONNECTING,
    "CONNECTED": CONNECTING,
}


class StompFrame:
    r"""One STOMP frame as it was received.

    Attributes:
        command: for example ``SEND``.
        headers: decoded names and values in the order received; the first of repeated headers wins. Treat it as
            read-only: ``encoder.relay_head`` matches it with ``head`` by position.
        head: the header lines as received, still escaped, joined by ``\n`` and without one at the end; without
            command line and blank line. CR LF of the versions that have it is ``\n`` here, and what STOMP 1.0 trims
            is gone. Repeated headers are still in it.
        body: without the closing NUL.
        pattern: frames of one decoder with the same number, other than `NO_PATTERN`, have equal headers but for the
            value of ``receipt``, so interpreters of headers may keep what they found.
    """

    __slots__ = ("body", "command", "head", "headers", "pattern")

    command: str
    headers: dict[str, str]
    head: bytes
    body: bytes
    pattern: int

    def __init__(self, command: str, headers: dict[str, str], head: bytes = b"", body: bytes = b"") -> None:
        self.command = command
        self.headers = headers
        self.head = head
        self.body = body
        self.pattern = NO_PATTERN

    def __repr__(self) -> str:
        # Names only: values may be credentials, and frames end up in logs.
        return f"Frame({self.command}, headers={list(self.headers)}, body_size_bytes={len(self.body)})"
