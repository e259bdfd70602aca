"""Peers that reset their connection: each harms itself alone, and what did not leave goes to somebody else."""

import asyncio
import socket
import struct
from dataclasses import replace

import pytest

from tests.server.support import TCP, RawPeer, RunningServer, running

ROUNDS = 20
LARGE = "x" * 3_000_000


def reset(peer: RawPeer) -> None:
    """Closes with RST instead of FIN."""
    taken: socket.socket = peer.writer.get_extra_info("socket")
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.writer.transport.abort()


async def reset_at_once(server: RunningServer) -> None:
    reset(await server.open())


async def reset_in_the_login(server: RunningServer) -> None:
    peer = await server.open()
    peer.send("CONNECT\nlogin:an")
    reset(peer)


async def reset_while_served(server: RunningServer) -> None:
    peer = await server.connect()
    peer.send_frame("SUBSCRIBE", "id:s", "destination:/queue/a", "ack:client")
    peer.send_frame("SEND", "destination:/queue/b", "receipt:1", body="x")
    reset(peer)


async def reset_after_a_wrong_frame(server: RunningServer) -> None:
    peer = await server.connect()
    peer.send_frame("FLY")
    reset(peer)


async def reset_after_leaving(server: RunningServer) -> None:
    peer = await server.connect()
    peer.send_frame("SEND", "destination:/queue/b", "receipt:1", body="x")
    peer.send_frame("DISCONNECT", "receipt:bye")
    await asyncio.sleep(0)
    reset(peer)


WAYS = [reset_at_once, reset_in_the_login, reset_while_served, reset_after_a_wrong_frame, reset_after_leaving]


@pytest.mark.parametrize("way", WAYS)
async def test_a_reset_harms_nobody_else(way: object) -> None:
    async with running() as server:
        witness = await server.connect()
        for number in range(ROUNDS):
            await way(server)  # type: ignore[operator]
            witness.send_frame("SEND", "destination:/queue/w", f"receipt:{number}", body="x")
            assert (await witness.frame()).headers["receipt-id"] == str(number)
        await server.until(lambda: len(server.listener.connections) == 1)
        await witness.close()


async def test_a_socket_that_is_connected_no_more_ends_its_own_connection() -> None:
    def fail() -> None:
        # What the kernel knows before the loop does.
        raise OSError(107, "Transport endpoint is not connected")

    async with running() as server:
        witness = await server.connect()
        peer = await server.connect()
        list(server.transports.values())[1].write_eof = fail  # type: ignore[method-assign]
        peer.send_frame("FLY")
        await server.until(lambda: len(server.listener.connections) == 1)
        assert any("DMQ6704" in line for line in server.logged.lines)
        witness.send_frame("SEND", "destination:/queue/w", "receipt:1", body="x")
        assert (await witness.frame()).command == "RECEIPT"
        await peer.close()
        await witness.close()


async def test_a_write_that_fails_is_the_end_of_its_connection_alone() -> None:
    async with running() as server:
        peer = await server.connect()
        (transport,) = server.transports.values()

        def fail(chunk: bytes) -> None:
            raise OSError(32, "Broken pipe")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(transport, "write", fail)
            peer.send_frame("SEND", "destination:/queue/a", "receipt:1", body="x")
            await server.until(lambda: not server.listener.connections)
        await peer.close()
        witness = await server.connect()
        await witness.close()


async def bodies(peer: RawPeer, count: int) -> list[str]:
    return [(await peer.frame()).body[-1:].decode() for _ in range(count)]


async def test_what_was_not_written_before_a_reset_goes_to_the_next_subscriber() -> None:
    async with running(replace(TCP, outbox_limit_bytes=50_000_000)) as server:
        producer = await server.connect()
        for number in range(5):
            producer.send_frame("SEND", "destination:/queue/a", f"receipt:{number}", body=f"{LARGE}{number}")
            await producer.frame()
        peer = await server.connect()
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
        peer.send_frame("SUBSCRIBE", "id:s", "destination:/queue/a", "ack:auto")
        await server.until(lambda: len(server.stuck) == 1)
        left = server.broker.queues["a"].message_count
        assert left > 1
        reset(peer)
        await server.until(lambda: len(server.listener.connections) == 1)
        producer.send_frame("SUBSCRIBE", "id:s", "destination:/queue/a")
        assert await bodies(producer, left) == ["0", "1", "2", "3", "4"][-left:]
        await producer.close()


async def test_a_write_to_a_reset_connection_acknowledges_nothing() -> None:
    async with running() as server:
        producer = await server.connect()
        (of_producer,) = server.listener.connections
        peer = await server.connect()
        peer.send_frame("SUBSCRIBE", "id:s", "destination:/queue/a", "ack:auto", "receipt:s")
        await peer.frame()
        (connection,) = set(server.listener.connections) - {of_producer}
        transport = server.transports[connection]
        # The loop does not see the reset before it writes.
        transport.pause_reading()
        reset(peer)
        await asyncio.sleep(0)
        for number in range(5):
            producer.send_frame("SEND", "destination:/queue/a", f"receipt:{number}", body=str(number))
            await producer.frame()
        await server.until(lambda: len(server.listener.connections) == 1)
        producer.send_frame("SUBSCRIBE", "id:s", "destination:/queue/a")
        assert await bodies(producer, 5) == ["0", "1", "2", "3", "4"]
        await producer.close()


async def test_line_ends_without_end_are_no_protocol() -> None:
    async with running() as server:
        peer = await server.open()
        peer.send(b"\n" * 100_000)
        await server.until(lambda: any("DMQ6702" in line for line in server.logged.lines))
        reset(peer)
