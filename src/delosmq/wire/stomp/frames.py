"""A STOMP frame in memory, what the commands of the protocol allow, and SENDs with heads that repeat."""

from typing import Final

V10: Final = 10
V11: Final = 11
V12: Final = 12

WITH_BODY: Final = 0
WITHOUT_BODY: Final = 1
CONNECTING: Final = 2

NO_PATTERN: Final = 0
SEND_LINE: Final = b"SEND\n"
RECEIPT: Final = b"\nreceipt:"

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


class Pattern:
    """The head of the last SEND, to recognise the next one by: most producers change nothing but the receipt.

    Recognising saves 2 of 9 us per small message in pure Python: decoding the head and interpreting it again.

    Attributes:
        number: of this pattern; a decoder never gives one twice.
        version: the rules it was decoded with, never those of 1.0, which trims.
        before: the head up to the receipt's value, or all of it when it has no receipt.
        after: the head behind that value.
        length: what the decoder made of ``content-length``.
    """

    def __init__(self) -> None:
        self.number: int = NO_PATTERN
        self.version: int = V10
        self.before: bytes = b""
        self.after: bytes = b""
        self.has_receipt: bool = False
        self.headers: dict[str, str] = {}
        self.length: int = 0

    def learn(self, frame: StompFrame, block: bytes, version: int, length: int) -> None:
        """Takes a frame and ``block``, its whole head, to compare later ones with."""
        self.number += 1
        self.version = version
        self.headers = frame.headers
        self.length = length
        # Of repeated receipts the first one counts.
        at = block.find(RECEIPT)
        self.has_receipt = at >= 0
        if at < 0:
            self.before = block
            self.after = b""
        else:
            start = at + len(RECEIPT)
            end = block.find(b"\n", start)
            self.before = block[:start]
            self.after = b"" if end < 0 else block[end:]
        frame.pattern = self.number

    def match(self, block: bytes) -> StompFrame | None:
        """The frame that begins with ``block``, when that differs from the last head in the receipt at most."""
        before = self.before
        if not self.has_receipt:
            if block != before:
                return None
            frame = StompFrame("SEND", self.headers, block[len(SEND_LINE) :])
            frame.pattern = self.number
            return frame
        end = len(block) - len(self.after)
        if end < len(before) or not block.startswith(before) or not block.endswith(self.after):
            return None
        value = block[len(before) : end]
        # Line ends and escapes are left to those who know them.
        if not value.isascii():
            return None
        receipt = value.decode()
        if "\\" in receipt or not receipt.isprintable():
            return None
        headers = self.headers.copy()
        headers["receipt"] = receipt
        frame = StompFrame("SEND", headers, block[len(SEND_LINE) :])
        frame.pattern = self.number
        return frame
