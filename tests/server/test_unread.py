"""A peer that is in the middle of what is refused: its socket does not end before it has sent all of it."""

from unittest.mock import Mock

import pytest

from delosmq.model.errors import PeerError
from delosmq.server import connection as subject
from tests.server.support import RawPeer, RunningServer, running

SIZE = 600_000


def refuse(server: RunningServer, unread_bytes: int) -> Mock:
    """Refuses what the only peer has begun to send. Gives what counts the ends of writing."""
    (session,) = server.sessions
    (transport,) = server.transports.values()
    ends = Mock(wraps=transport.write_eof)
    transport.write_eof = ends  # type: ignore[method-assign]
    error = PeerError("DMQ5202", "too large")
    error.unread_bytes = unread_bytes
    session.fail(error)
    server.ticker.schedule()
    return ends


async def begun(server: RunningServer, unread_bytes: int) -> tuple[RawPeer, Mock]:
    peer = await server.connect()
    ends = refuse(server, unread_bytes)
    assert (await peer.frame()).command == "ERROR"
    return peer, ends


async def test_the_socket_ends_once_all_of_it_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    updated = subject.Connection.buffer_updated

    def buffer_updated(connection: subject.Connection, size_bytes: int) -> None:
        updated(connection, size_bytes)
        sizes.append(size_bytes)

    monkeypatch.setattr(subject.Connection, "buffer_updated", buffer_updated)
    async with running() as server:
        peer, ends = await begun(server, SIZE)
        sizes.clear()
        peer.send(b"x" * (SIZE - 1))
        await server.until(lambda: sum(sizes) == SIZE - 1)
        assert not ends.called
        peer.send(b"x")
        assert await peer.closed() == []
        await server.until(lambda: not server.listener.connections)


async def test_a_peer_that_sends_no_more_of_it_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "_UNREAD_S", 0.01)
    async with running() as server:
        peer, _ = await begun(server, SIZE)
        assert await peer.closed() == []
        await server.until(lambda: not server.listener.connections)


async def test_nor_for_more_than_anybody_may_send(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "_UNREAD_LIMIT_BYTES", 10)
    async with running() as server:
        peer, _ = await begun(server, SIZE)
        peer.send(b"x" * 10)
        assert await peer.closed() == []
        await server.until(lambda: not server.listener.connections)


async def test_what_is_whole_ends_the_socket_at_once() -> None:
    async with running() as server:
        peer, ends = await begun(server, 0)
        await server.until(lambda: ends.called)
        assert await peer.closed() == []


async def test_a_peer_that_leaves_meanwhile_is_gone() -> None:
    async with running() as server:
        peer, _ = await begun(server, SIZE)
        await peer.close()
        await server.until(lambda: not server.listener.connections)
