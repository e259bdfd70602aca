"""Frames that are not complete: what all connections hold of them together is bounded."""

from delosmq.model.errors import PeerError
from delosmq.server.input_buffer import UNCOUNTED_BYTES, IncompleteFrames, Receiver
from tests.server.support import RawPeer, RunningServer, running

LIMIT = 1_000_000
PART = 400_000


class Holder(Receiver):
    def __init__(self, incomplete_frames: IncompleteFrames) -> None:
        self.incomplete_frames = incomplete_frames
        self.reasons: list[PeerError] = []

    def holds(self, count: int) -> None:
        self.incomplete_frames.count(self, count)

    def give_up(self, reason: PeerError) -> None:
        self.reasons.append(reason)


def test_the_frame_that_was_begun_first_goes() -> None:
    incomplete_frames = IncompleteFrames(LIMIT)
    first, second, third = (Holder(incomplete_frames) for _ in range(3))
    first.holds(PART)
    second.holds(PART)
    first.holds(PART + 1)
    assert not first.reasons
    third.holds(PART)
    assert [reason.code for reason in first.reasons] == ["DMQ6712"]
    assert not second.reasons
    assert not third.reasons
    assert incomplete_frames.used_bytes == 2 * PART


def test_as_many_go_as_have_to() -> None:
    incomplete_frames = IncompleteFrames(LIMIT)
    small = [Holder(incomplete_frames) for _ in range(3)]
    for holder in small:
        holder.holds(300_000)
    large = Holder(incomplete_frames)
    large.holds(LIMIT - 1)
    assert [len(holder.reasons) for holder in small] == [1, 1, 1]
    assert not large.reasons


def test_one_alone_may_hold_what_its_frame_may_have() -> None:
    incomplete_frames = IncompleteFrames(LIMIT)
    alone = Holder(incomplete_frames)
    alone.holds(5 * LIMIT)
    assert not alone.reasons
    Holder(incomplete_frames).holds(PART)
    assert alone.reasons


def test_what_is_complete_or_gone_is_not_counted() -> None:
    incomplete_frames = IncompleteFrames(LIMIT)
    holder = Holder(incomplete_frames)
    holder.holds(PART)
    incomplete_frames.remove(holder)
    incomplete_frames.remove(holder)
    assert incomplete_frames.used_bytes == 0


def test_without_global_max_size_there_is_a_bound_too() -> None:
    assert IncompleteFrames(-1).most_bytes > LIMIT


async def half(server: RunningServer, count: int = PART) -> RawPeer:
    """A peer in the middle of a SEND."""
    before = server.parts.incomplete_frames.used_bytes
    peer = await server.connect()
    peer.send(f"SEND\ndestination:q\ndestination-type:ANYCAST\ncontent-length:{10 * LIMIT}\n\n".encode() + b"x" * count)
    await server.until(lambda: server.parts.incomplete_frames.used_bytes >= before + count)
    return peer


async def test_its_peer_is_told_and_others_notice_nothing() -> None:
    async with running() as server:
        server.parts.incomplete_frames.most_bytes = LIMIT
        slow = await half(server)
        other = await half(server)
        peer = await server.connect()
        peer.send(
            b"SEND\ndestination:q\ndestination-type:ANYCAST\ncontent-length:600000\nreceipt:r\n\n"
            + b"x" * 600_000
            + b"\0"
        )
        answer = await slow.frame()
        assert answer.command == "ERROR"
        assert "DMQ6712" in answer.headers["message"]
        assert (await peer.frame()).command == "RECEIPT"
        other.send(b"x" * (10 * LIMIT - PART) + b"\0")
        await server.until(lambda: server.parts.incomplete_frames.used_bytes == 0)
        await server.until(lambda: server.broker.queues["q"].message_count == 2)
        for each in (slow, other, peer):
            await each.close()


async def test_a_peer_that_leaves_in_the_middle_holds_nothing() -> None:
    async with running() as server:
        peer = await half(server)
        await peer.close()
        await server.until(lambda: server.parts.incomplete_frames.used_bytes == 0)


async def test_what_one_read_brings_is_free() -> None:
    async with running() as server:
        peer = await server.connect()
        peer.send(
            b"SEND\ndestination:q\ndestination-type:ANYCAST\ncontent-length:2000000\n\n" + b"x" * (UNCOUNTED_BYTES // 2)
        )
        (session,) = server.sessions
        await server.until(lambda: session.buffered_bytes() > UNCOUNTED_BYTES // 2 - 1000)
        assert server.parts.incomplete_frames.used_bytes == 0
        await peer.close()


async def test_a_session_that_is_over_holds_nothing() -> None:
    async with running() as server:
        peer = await half(server)
        (connection,) = server.listener.connections
        (session,) = server.sessions
        connection.stop(PeerError("DMQ5999", "over"))
        assert session.buffered_bytes() == 0
        assert server.parts.incomplete_frames.used_bytes == 0
        await peer.close()
