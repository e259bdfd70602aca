"""The tap lets all bytes pass as they are, however they are cut and whatever is ordered meanwhile for other frames."""

import asyncio
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from delosmq.model.errors import PeerError
from delosmq.server.layers import Upper
from delosmq.testing.dialogue import StompDialogue
from delosmq.testing.frame_faults import DROPPED, FrameFault
from delosmq.testing.frame_tap import FrameTap, TapLayer
from delosmq.testing.trace import Trace

BY_CLIENT = (
    b"CONNECT\naccept-version:1.2\n\n\0\n\n"
    b"SEND\ndestination:tea\ncontent-length:5\n\n\0\n\0\n\0\0\r\nSEND\ndestination:tea\n\none pot\0\n"
    b"ACK\nid:1\n\n\0DISCONNECT\n\n\0"
)
BY_BROKER = b"CONNECTED\nversion:1.2\n\n\0\n\nMESSAGE\nmessage-id:1\nack:1\n\none pot\0\nRECEIPT\nreceipt-id:1\n\n\0"


BEFORE = b"CONNECT\naccept-version:1.2\n\n\0SEND\ndestination:tea\ncontent-length:5\n\n\0\n\0\n\0\0"
MEANT = b"SEND\ndestination:tea\n\none pot\0"
BEHIND = b"ACK\nid:1\n\n\0DISCONNECT\n\n\0"


class Session(Upper):
    """Keeps what it gets."""

    def __init__(self) -> None:
        self.got = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None: ...

    def receive(self, chunk: bytes) -> None:
        self.got += chunk

    def break_off(self, reason: PeerError) -> None: ...

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...

    def connection_lost(self, exc: Exception | None) -> None: ...


class Wire(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""

    def write(self, chunk: bytes | bytearray | memoryview) -> None:
        self.written += chunk

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None: ...


def pieces(stream: bytes, sizes: list[int]) -> Iterator[bytes]:
    """The stream cut into pieces of these sizes, the last of which goes on and on."""
    at = 0
    for size in sizes:
        yield stream[at : at + size]
        at += size
    yield stream[at:]


@given(
    st.lists(st.integers(1, 40), max_size=12),
    st.lists(st.booleans(), min_size=13, max_size=13),
)
def test_all_bytes_pass_as_they_are(sizes: list[int], ordered: list[bool]) -> None:
    tap = FrameTap(Trace())
    session, wire = Session(), Wire()
    layer = TapLayer(session, tap, 1, StompDialogue())
    layer.attach(wire)
    for chunk, is_ordered in zip(pieces(BY_CLIENT, sizes), ordered, strict=False):
        tap.faults = [FrameFault(DROPPED, "NACK", 1)] if is_ordered else []
        layer.receive(chunk)
    for chunk, is_ordered in zip(pieces(BY_BROKER, sizes), ordered, strict=False):
        tap.faults = [FrameFault(DROPPED, "NACK", 1)] if is_ordered else []
        layer.write(chunk)
    assert (session.got, wire.written) == (BY_CLIENT, BY_BROKER)
    assert " ".join(line.split()[3] for line in tap.trace.lines) == (
        "CONNECT SEND SEND ACK DISCONNECT CONNECTED MESSAGE RECEIPT"
    )


@given(st.lists(st.integers(1, 40), max_size=12))
def test_what_is_dropped_is_one_frame(sizes: list[int]) -> None:
    tap = FrameTap(Trace())
    session = Session()
    layer = TapLayer(session, tap, 1, StompDialogue())
    layer.attach(Wire())
    tap.faults = [FrameFault(DROPPED, "SEND", 2)]
    for chunk in pieces(BEFORE + MEANT + BEHIND, sizes):
        layer.receive(chunk)
    assert session.got == BEFORE + BEHIND
