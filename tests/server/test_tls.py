"""TLS on an acceptor, with real sockets: who gets in, who doesn't, and that nobody else notices."""

# BROKER-4

import asyncio
import logging
import os
import ssl
from dataclasses import replace
from pathlib import Path

import pytest

from delosmq.config.tls import TlsNames
from delosmq.model.errors import LimitError
from delosmq.model.settings import AcceptorSettings, TlsSettings
from delosmq.server.tls import HandshakeTurns, TlsContexts, TlsLayer
from tests.certificates import Stores, make_stores
from tests.server.layers import Above, Below
from tests.server.support import TCP, RawPeer, RunningServer, running
from tests.server.test_ticker import PipeStore
from tests.sessions.support import PASSWORD, USER

LOGIN = f"CONNECT\naccept-version:1.2\nhost:h\nlogin:{USER}\npasscode:{PASSWORD}\n\n\0"


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    return make_stores(tmp_path_factory.mktemp("stores"))


def with_tls(stores: Stores, **changes: object) -> AcceptorSettings:
    settings = TlsSettings(str(stores.server), trust_store_path=str(stores.authority))
    return replace(TCP, tls=replace(settings, **changes))  # type: ignore[arg-type]


async def open_tls(server: RunningServer, context: ssl.SSLContext) -> RawPeer:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.listener.port, ssl=context)
    return RawPeer(reader, writer)


async def log_in(server: RunningServer, context: ssl.SSLContext) -> RawPeer:
    peer = await open_tls(server, context)
    peer.send(LOGIN)
    assert (await peer.frame()).command == "CONNECTED"
    return peer


async def is_served(peer: RawPeer) -> None:
    """Whether a connection still does its work."""
    peer.send_frame("SEND", "destination:/queue/witness", "receipt:w", body="x")
    assert (await peer.frame()).headers["receipt-id"] == "w"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_messages_of_every_size_go_both_ways(stores: Stores, version: ssl.TLSVersion) -> None:
    context = stores.client_context()
    context.minimum_version = context.maximum_version = version
    async with running(replace(with_tls(stores), outbox_limit_bytes=50_000_000)) as server:
        peer = await log_in(server, context)
        peer.send_frame("SUBSCRIBE", "id:s", "destination:/queue/a", "consumer-window-size:-1")
        sizes = [0, 1, 16_383, 16_384, 65_536, 300_000, 5_000_000]
        for size in sizes:
            peer.send_frame("SEND", "destination:/queue/a", body="x" * size)
        assert [len((await peer.frame()).body) for _ in sizes] == sizes
        peer.send_frame("DISCONNECT", "receipt:bye")
        assert [frame.headers["receipt-id"] for frame in await peer.closed()] == ["bye"]
        await server.until(lambda: not server.listener.connections)
        assert server.logged.lines == []


async def test_a_peer_that_does_not_read_is_bounded_and_gets_everything_later(stores: Stores) -> None:
    async with running(replace(with_tls(stores), outbox_limit_bytes=100_000)) as server:
        slow = await log_in(server, stores.client_context())
        slow.send_frame("SUBSCRIBE", "id:s", "destination:/queue/a", "consumer-window-size:-1", "receipt:s")
        await slow.frame()
        slow.writer.transport.pause_reading()  # type: ignore[attr-defined]
        producer = await log_in(server, stores.client_context())
        for number in range(400):
            producer.send_frame("SEND", "destination:/queue/a", f"receipt:{number}", body="x" * 50_000)
            assert (await producer.frame()).headers["receipt-id"] == str(number)
        queue = server.broker.queues["a"]
        assert queue.pending.count > 0
        slow.writer.transport.resume_reading()  # type: ignore[attr-defined]
        for _ in range(400):
            assert len((await slow.frame()).body) == 50_000
        await server.until(lambda: queue.message_count == 0)
        await producer.close()
        await slow.close()


async def test_what_a_reset_peer_did_not_take_goes_to_the_next_one(stores: Stores) -> None:
    async with running(replace(with_tls(stores), outbox_limit_bytes=50_000_000)) as server:
        producer = await log_in(server, stores.client_context())
        for number in range(5):
            producer.send_frame("SEND", "destination:/queue/a", f"receipt:{number}", body="x" * 3_000_000 + str(number))
            await producer.frame()
        peer = await log_in(server, stores.client_context())
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
        peer.send_frame("SUBSCRIBE", "id:s", "destination:/queue/a", "ack:auto", "consumer-window-size:-1")
        await server.until(lambda: len(server.stuck) == 1)
        left = server.broker.queues["a"].message_count
        assert left > 1
        peer.writer.transport.abort()
        await server.until(lambda: len(server.listener.connections) == 1)
        producer.send_frame("SUBSCRIBE", "id:s", "destination:/queue/a", "consumer-window-size:-1")
        assert [(await producer.frame()).body[-1:] for _ in range(left)] == [b"0", b"1", b"2", b"3", b"4"][-left:]
        await producer.close()


@pytest.mark.parametrize("says_goodbye", [True, False])
async def test_who_has_sent_everything_still_gets_its_receipts(stores: Stores, says_goodbye: bool) -> None:
    store = PipeStore()
    async with running(with_tls(stores), store=store) as server:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = stores.client_context().wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
        peer = await server.open()
        await finish_handshake(client, incoming, outgoing, peer)
        client.write(LOGIN.encode())
        peer.send(outgoing.read())
        assert b"CONNECTED" in await read_tls(client, incoming, peer)
        client.write(b"SEND\ndestination:/queue/a\npersistent:true\nreceipt:1\n\nx\0")
        if says_goodbye:
            with pytest.raises(ssl.SSLWantReadError):
                client.unwrap()
        peer.send(outgoing.read())
        peer.writer.write_eof()
        await server.until(lambda: server.finished == 1)
        store.sync()
        assert b"receipt-id:1" in await read_tls(client, incoming, peer)
        await peer.close()


async def read_tls(client: ssl.SSLObject, incoming: ssl.MemoryBIO, peer: RawPeer) -> bytes:
    async with asyncio.timeout(10):
        while True:
            try:
                return client.read(100_000)
            except ssl.SSLWantReadError:
                incoming.write(await peer.reader.read(65_536))


async def finish_handshake(
    client: ssl.SSLObject, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, peer: RawPeer
) -> None:
    async with asyncio.timeout(10):
        while True:
            try:
                client.do_handshake()
            except ssl.SSLWantReadError:
                peer.send(outgoing.read())
                incoming.write(await peer.reader.read(65_536))
            else:
                peer.send(outgoing.read())
                return


async def test_a_handshake_may_arrive_byte_by_byte(stores: Stores) -> None:
    async with running(with_tls(stores)) as server:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = stores.client_context().wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
        with pytest.raises(ssl.SSLWantReadError):
            client.do_handshake()
        peer = await server.open()
        for byte in outgoing.read():
            peer.send(bytes((byte,)))
            await peer.writer.drain()
            await asyncio.sleep(0)
        incoming.write(await peer.reader.read(65_536))
        await finish_handshake(client, incoming, outgoing, peer)
        client.write(LOGIN.encode())
        peer.send(outgoing.read())
        async with asyncio.timeout(10):
            await server.until(lambda: len(server.sessions) == 1)
        await peer.close()


async def test_a_plain_client_on_a_tls_port_is_closed_and_named(stores: Stores) -> None:
    async with running(with_tls(stores)) as server:
        witness = await log_in(server, stores.client_context())
        peer = await server.open()
        peer.send(LOGIN)
        assert await peer.closed() == []
        (line,) = server.logged.lines
        assert "DMQ6114" in line
        assert "without TLS" in line
        assert PASSWORD not in line
        await is_served(witness)
        await witness.close()


async def test_a_tls_client_on_a_plain_port_is_closed_and_named(stores: Stores) -> None:
    async with running() as server:
        witness = await server.connect()
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await open_tls(server, stores.client_context())
        (line,) = server.logged.lines
        assert "DMQ6130" in line
        assert "sslEnabled=true" in line
        await is_served(witness)
        await witness.close()


HOSTILE = [
    b"\x16\x03\x01\x00\x05hello",
    b"\x16\x03\x01\xff\xff" + b"\xff" * 70_000,
    b"\x16" * 200,
    b"\x16\x03\x01\x00\x00" * 100,
]


@pytest.mark.parametrize("start", HOSTILE)
async def test_garbage_in_a_handshake_harms_its_sender_alone(stores: Stores, start: bytes) -> None:
    async with running(with_tls(stores)) as server:
        witness = await log_in(server, stores.client_context())
        peer = await server.open()
        peer.send(start)
        await server.until(lambda: any("DMQ6113" in line for line in server.logged.lines))
        await is_served(witness)
        peer.writer.transport.abort()
        await server.until(lambda: len(server.listener.connections) == 1)
        await witness.close()


async def test_garbage_after_the_handshake_ends_that_connection_and_returns_its_messages(stores: Stores) -> None:
    async with running(with_tls(stores)) as server:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = stores.client_context().wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
        peer = await server.open()
        await finish_handshake(client, incoming, outgoing, peer)
        client.write(
            LOGIN.encode() + b"SEND\ndestination:/queue/a\n\nx\0SUBSCRIBE\nid:s\ndestination:/queue/a\nack:client\n\n\0"
        )
        peer.send(outgoing.read())
        await server.until(lambda: "a" in server.broker.queues and server.broker.queues["a"].pending.count == 0)
        peer.send(b"\x17\x03\x03\x00\x20" + os.urandom(32))
        await server.until(lambda: server.broker.queues["a"].pending.count == 1)
        assert any("DMQ6103" in line for line in server.logged.lines)
        await peer.close()


async def test_a_client_certificate_that_is_needed(stores: Stores) -> None:
    async with running(with_tls(stores, need_client_auth=True)) as server:
        peer = await log_in(server, stores.client_context(stores.client))
        await is_served(peer)
        for identity, found in ((None, "needClientAuth=true"), (stores.stranger, "is not accepted")):
            with pytest.raises((ssl.SSLError, ConnectionError, AssertionError)):
                await log_in(server, stores.client_context(identity))
            assert "DMQ6113" in server.logged.lines[-1]
            assert found in server.logged.lines[-1]
        await is_served(peer)
        await peer.close()


async def test_a_client_certificate_that_is_wanted_may_be_missing_but_not_be_wrong(stores: Stores) -> None:
    async with running(with_tls(stores, want_client_auth=True)) as server:
        for identity in (None, stores.client):
            peer = await log_in(server, stores.client_context(identity))
            await peer.close()
        with pytest.raises((ssl.SSLError, ConnectionError, AssertionError)):
            await log_in(server, stores.client_context(stores.stranger))


async def test_a_certificate_is_no_login(stores: Stores) -> None:
    async with running(with_tls(stores, need_client_auth=True)) as server:
        peer = await open_tls(server, stores.client_context(stores.client))
        peer.send_frame("CONNECT", "accept-version:1.2")
        (error,) = await peer.closed()
        assert error.command == "ERROR"


@pytest.mark.parametrize(
    ("changes", "client", "works"),
    [
        ({"enabled_protocols": ("TLSv1.2",)}, ssl.TLSVersion.TLSv1_3, False),
        ({"enabled_protocols": ("TLSv1.3",)}, ssl.TLSVersion.TLSv1_2, False),
        ({"enabled_protocols": ("TLSv1.2", "TLSv1.3")}, ssl.TLSVersion.TLSv1_2, True),
        ({"enabled_cipher_suites": ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",)}, ssl.TLSVersion.TLSv1_2, True),
        ({"enabled_cipher_suites": ("ECDHE-ECDSA-AES256-GCM-SHA384",)}, ssl.TLSVersion.TLSv1_3, False),
        ({"enabled_cipher_suites": ("TLS_AES_256_GCM_SHA384",)}, ssl.TLSVersion.TLSv1_2, False),
        ({"enabled_cipher_suites": ("TLS_AES_256_GCM_SHA384",)}, ssl.TLSVersion.TLSv1_3, True),
    ],
)
async def test_versions_and_suites(
    stores: Stores, changes: dict[str, object], client: ssl.TLSVersion, works: bool
) -> None:
    context = stores.client_context()
    context.minimum_version = context.maximum_version = client
    async with running(with_tls(stores, **changes)) as server:
        if works:
            await (await log_in(server, context)).close()
        else:
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await log_in(server, context)


async def test_a_peer_that_says_nothing_is_closed_in_time_and_told_about_tls(stores: Stores) -> None:
    async with running(replace(with_tls(stores), handshake_timeout_s=0)) as server:
        peer = await server.open()
        assert await peer.closed() == []
        assert "DMQ6703" in server.logged.lines[0]
        assert "begin with TLS" in server.logged.lines[0]


async def test_connections_are_counted_before_their_handshake(stores: Stores) -> None:
    async with running(replace(with_tls(stores), connections_allowed=1)) as server:
        first = await server.open()
        await server.until(lambda: len(server.listener.connections) == 1)
        second = await server.open()
        assert await second.closed() == []
        assert "DMQ6701" in server.logged.lines[0]
        await first.close()
        await server.until(lambda: not server.listener.connections)
        third = await log_in(server, stores.client_context())
        await third.close()


async def test_handshakes_take_turns() -> None:
    class Waiting:
        def __init__(self, name: str) -> None:
            self.name = name

        def handshake(self) -> None:
            seen.append(self.name)

    seen: list[str] = []
    loop = asyncio.get_running_loop()
    turns = HandshakeTurns(loop)
    for name in ("a", "b", "c"):
        turns.ask(Waiting(name))  # type: ignore[arg-type]
    for expected in (["a"], ["a", "b"], ["a", "b", "c"]):
        await asyncio.sleep(0)
        assert seen == expected


async def test_a_peer_that_keeps_tls_busy_and_reads_nothing_is_cut_off(tmp_path: Path) -> None:
    stores = make_stores(tmp_path)
    authority = stores.authority.read_bytes()
    # A chain so long that the first answer alone is more than may wait.
    stores.server.write_bytes(stores.server.read_bytes() + authority * (100_000 // len(authority)))
    acceptor = with_tls(stores)
    assert acceptor.tls is not None
    contexts = TlsContexts(TlsNames("acceptor 'a'"), acceptor.tls, logging.Logger("test"))
    above, below = Above(), Below()
    layer = TlsLayer(above, contexts, HandshakeTurns(asyncio.get_running_loop()), memoryview(bytearray(1)))
    layer.connection_made(below)
    layer.pause_writing()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = stores.client_context().wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    layer.receive(outgoing.read())
    await asyncio.sleep(0)
    assert above.broken is not None
    assert above.broken.code == "DMQ6105"
    assert below.closed


async def finished_in_memory(layer: TlsLayer, below: Below, stores: Stores) -> tuple[ssl.SSLObject, ssl.MemoryBIO]:
    """A client of ``layer`` after the handshake, and what it reads."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = stores.client_context().wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    while True:
        try:
            client.do_handshake()
        except ssl.SSLWantReadError:
            layer.receive(outgoing.read())
            await asyncio.sleep(0)
            incoming.write(below.written)
            below.written = b""
        else:
            layer.receive(outgoing.read())
            await asyncio.sleep(0)
            return client, incoming


@pytest.mark.parametrize("ended_by", ["us", "the peer"])
async def test_what_was_written_goes_out_before_the_connection_is_closed(stores: Stores, ended_by: str) -> None:
    acceptor = with_tls(stores)
    assert acceptor.tls is not None
    contexts = TlsContexts(TlsNames("acceptor 'a'"), acceptor.tls, logging.Logger("test"))
    below = Below()
    turns = HandshakeTurns(asyncio.get_running_loop())
    layer = TlsLayer(Above(), contexts, turns, memoryview(bytearray(1)))
    layer.connection_made(below)
    client, incoming = await finished_in_memory(layer, below, stores)
    incoming.write(below.written)
    below.written = b""
    layer.pause_writing()
    layer.write(b"x" * 10_000)
    assert layer.get_write_buffer_size() == 10_000
    if ended_by == "us":
        layer.close()
    else:
        assert layer.eof_received()
    assert layer.is_closing()
    assert not below.closed
    layer.resume_writing()
    assert below.closed
    incoming.write(below.written)
    assert client.read(20_000) == b"x" * 10_000
    assert client.read(1) == b""


class HeldTurns(HandshakeTurns):
    """Gives nobody a turn until it is told to."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.held: list[TlsLayer] = []
        self.released = False

    def ask(self, layer: TlsLayer) -> None:
        if self.released:
            super().ask(layer)
        else:
            self.held.append(layer)

    def release(self) -> None:
        self.released = True
        for layer in self.held:
            self.ask(layer)


async def test_a_handshake_waits_for_its_turn_while_others_are_served(stores: Stores) -> None:
    async with running(with_tls(stores)) as server:
        witness = await log_in(server, stores.client_context())
        held = server.parts.handshakes = HeldTurns(asyncio.get_running_loop())
        opening = asyncio.create_task(open_tls(server, stores.client_context()))
        await server.until(lambda: len(held.held) == 1)
        await is_served(witness)
        assert not opening.done()
        server.parts.handshakes = HandshakeTurns(asyncio.get_running_loop())
        second = await log_in(server, stores.client_context())
        held.release()
        first = await opening
        for peer in (first, second, witness):
            await peer.close()


async def test_many_handshakes_at_once_all_succeed(stores: Stores) -> None:
    async with running(with_tls(stores)) as server:
        peers = await asyncio.gather(*(log_in(server, stores.client_context()) for _ in range(40)))
        for peer in peers:
            await peer.close()


async def test_a_renewed_certificate_is_taken_when_that_is_wanted(tmp_path: Path) -> None:
    old, new = make_stores(tmp_path), make_stores(_directory(tmp_path / "new"))
    async with running(with_tls(old, auto_reload=True)) as server:
        before = await log_in(server, old.client_context())
        old.server.write_bytes(new.server.read_bytes())
        after = await log_in(server, new.client_context())
        assert any("DMQ6112" in line for line in server.logged.lines)
        await is_served(before)
        old.server.write_bytes(b"half a file")
        again = await log_in(server, new.client_context())
        assert "DMQ6111" in server.logged.lines[-1]
        for peer in (before, after, again):
            await peer.close()


async def test_a_renewed_certificate_waits_for_a_restart_otherwise(tmp_path: Path) -> None:
    old, new = make_stores(tmp_path), make_stores(_directory(tmp_path / "new"))
    async with running(with_tls(old)) as server:
        old.server.write_bytes(new.server.read_bytes())
        await (await log_in(server, old.client_context())).close()


async def test_an_acceptor_without_a_usable_certificate_gives_its_port_back(tmp_path: Path) -> None:
    with pytest.raises(LimitError, match=r"DMQ6110: acceptor 'stomp' can't speak TLS: .*gone\.pem is missing"):
        async with running(replace(TCP, tls=TlsSettings(str(tmp_path / "gone.pem")))):
            pass


def _directory(path: Path) -> Path:
    path.mkdir()
    return path
