"""STOMP frames made once, and a reader that counts instead of parsing.

The load generator spends its time in these few calls, so they look at bytes only: message bodies hold small letters
and no NUL, hence a pattern found is always a header or the end of a frame.
"""

from __future__ import annotations

from collections.abc import Mapping

BODY_SIZE_BYTES = 1024
BODY = b"abcdefghijklmnop" * (BODY_SIZE_BYTES // 16)

# Every MESSAGE of STOMP 1.2 with client acknowledgement has exactly one of the first, every RECEIPT one of the second.
ACK_HEADER = b"\nack:"
RECEIPT_HEADER = b"\nreceipt-id:"
ERROR_COMMAND = b"ERROR\n"

_RECEIVE_SIZE_BYTES = 512 * 1024


def connect_frame(login: str, passcode: str, host: str) -> bytes:
    """A CONNECT of STOMP 1.2 without heart-beats."""
    text = f"CONNECT\naccept-version:1.2\nheart-beat:0,0\nhost:{host}\nlogin:{login}\npasscode:{passcode}\n\n\0"
    return text.encode()


def subscribe_frame(destination: str, headers: Mapping[str, str]) -> bytes:
    """A SUBSCRIBE with cumulative client acknowledgement that asks for a receipt."""
    extra = "".join(f"{name}:{value}\n" for name, value in headers.items())
    return f"SUBSCRIBE\nid:0\ndestination:{destination}\nack:client\nreceipt:subscribed\n{extra}\n\0".encode()


def ack_frame(ack_id: bytes, *, receipt: bool) -> bytes:
    """An ACK of everything up to `ack_id`, which is taken as it came, header escapes included."""
    return b"ACK\nid:%b\n%b\n\0" % (ack_id, b"receipt:acknowledged\n" if receipt else b"")


def send_frame(destination: str, *, persistent: bool, receipt: str | None) -> bytes:
    """One SEND with the standard body."""
    head = f"SEND\ndestination:{destination}\ncontent-length:{BODY_SIZE_BYTES}\n"
    if persistent:
        head += "persistent:true\n"
    if receipt is not None:
        head += f"receipt:{receipt}\n"
    return head.encode() + b"\n" + BODY + b"\0"


class SendRing:
    """Frames of equal length, sent round and round; receipt ids repeat only after `frame_count` messages."""

    frame_count = 128

    def __init__(self, destination: str, *, persistent: bool, receipts: bool) -> None:
        frames = [
            send_frame(destination, persistent=persistent, receipt=f"r{index:04d}" if receipts else None)
            for index in range(self.frame_count)
        ]
        self.frame_size_bytes = len(frames[0])
        self._ring = memoryview(b"".join(frames))

    def piece(self, position_bytes: int, wanted_bytes: int) -> memoryview:
        """What to send next, at most `wanted_bytes`, given how many bytes have been sent so far."""
        offset = position_bytes % len(self._ring)
        return self._ring[offset : offset + wanted_bytes]


class FrameReader:
    """Whole frames received on one connection, in one reused buffer; what is cut off at the end stays for later."""

    def __init__(self) -> None:
        self.buffer = bytearray(_RECEIVE_SIZE_BYTES)
        self._view = memoryview(self.buffer)
        self._kept = 0
        self.end = 0

    def free_space(self) -> memoryview:
        """Where the socket writes to."""
        return self._view[self._kept :]

    def received(self, size_bytes: int) -> None:
        """Tell how much came; then `buffer[:end]` holds whole frames until `next`."""
        filled = self._kept + size_bytes
        self.end = self.buffer.rfind(b"\0", 0, filled) + 1
        self._kept = filled
        if self.buffer.find(ERROR_COMMAND, 0, self.end) >= 0:
            start = self.buffer.find(ERROR_COMMAND, 0, self.end)
            raise RuntimeError(f"the broker answered with {bytes(self.buffer[start : self.end])[:500]!r}")

    def next(self) -> None:
        """Forget the whole frames."""
        rest = self._kept - self.end
        if rest and self.end:
            self._view[:rest] = bytes(self._view[self.end : self._kept])
        self._kept = rest
        self.end = 0

    def count(self, pattern: bytes) -> int:
        """How often the pattern stands in the whole frames."""
        return self.buffer.count(pattern, 0, self.end)

    def header_at(self, position: int, name: bytes) -> bytes:
        """The value of the header whose `\\nname:` begins at `position`."""
        start = position + len(name)
        return bytes(self.buffer[start : self.buffer.find(b"\n", start, self.end)])
