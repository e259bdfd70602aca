"""The HTTP interface with TLS, on real sockets: who is served, who is not, and that no other client notices."""

# BROKER-4

import asyncio
import base64
import contextlib
import json
import logging
import socket
import ssl
import struct
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from delosmq.composition.standby import Standby
from delosmq.config.tls import HTTP_TLS
from delosmq.manage.http import server as http_server
from delosmq.manage.http.server import HttpServer
from delosmq.model.errors import LimitError
from delosmq.model.settings import TlsSettings
from delosmq.server.listener import bind
from delosmq.server.server_parts import READ_BYTES
from delosmq.server.slow_readers import SlowReaders
from delosmq.server.tls import HandshakeTurns, TlsContexts, TlsLayer
from delosmq.storage.activation import Activation, Role
from tests.certificates import Stores, make_stores
from tests.manage.support import PASSWORD, Api, eventually, succeeded

HEALTH = b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n"
LOGIN = b"Authorization: Basic " + base64.b64encode(f"admin:{PASSWORD}".encode())
LARGE = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n" + LOGIN + b"\r\n"


class Served:
    """An API behind TLS."""

    def __init__(self, api: Api, slow_readers: SlowReaders, server: HttpServer) -> None:
        self.api = api
        self.slow_readers = slow_readers
        self.server = server
        self.url = f"https://127.0.0.1:{server.port}"

    async def open(self, context: ssl.SSLContext | None = None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.server.port, ssl=context)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    return make_stores(tmp_path_factory.mktemp("stores"))


@pytest_asyncio.fixture
async def served(api: Api, stores: Stores) -> AsyncIterator[Served]:
    async with serving(api, TlsSettings(str(stores.server))) as served:
        yield served


@contextlib.asynccontextmanager
async def serving(api: Api, settings: TlsSettings) -> AsyncIterator[Served]:
    contexts = TlsContexts(HTTP_TLS, settings, logging.getLogger("delosmq"))
    turns = HandshakeTurns(asyncio.get_running_loop())
    tls = partial(TlsLayer, contexts=contexts, turns=turns, buffer=memoryview(bytearray(READ_BYTES)))
    slow_readers = SlowReaders(-1)
    server = HttpServer(api.app, bind("127.0.0.1", 0, "the HTTP interface"), slow_readers, tls)
    await server.start()
    yield Served(api, slow_readers, server)
    await server.stop()


class Witness:
    """A client that was served before, and must go on being served on the connection it has."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def is_served(self) -> None:
        self._writer.write(HEALTH)
        async with asyncio.timeout(10):
            assert (await self._reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
            await self._reader.readuntil(b"}")

    def leave(self) -> None:
        self._writer.transport.abort()


async def witness_of(served: Served, stores: Stores) -> Witness:
    witness = Witness(*await served.open(stores.client_context()))
    await witness.is_served()
    return witness


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_requests_are_served_and_an_ending_server_ends_their_connections(
    served: Served, stores: Stores, version: ssl.TLSVersion
) -> None:
    context = stores.client_context()
    context.minimum_version = context.maximum_version = version
    async with httpx.AsyncClient(auth=("admin", PASSWORD), verify=context) as client:
        assert succeeded(await client.get(f"{served.url}/api/v1/queues/q"))["name"] == "q"
        assert succeeded(await client.post(f"{served.url}/api/v1/queues", json={"name": "made"}))["name"] == "made"
        assert served.server.connection_count == 1
        await served.server.stop()
        with pytest.raises(httpx.TransportError):
            await client.get(f"{served.url}/health/live")


async def test_a_request_without_tls_is_answered_and_named(
    served: Served, stores: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    witness = await witness_of(served, stores)
    reader, writer = await served.open()
    writer.write(HEALTH)
    async with asyncio.timeout(5):
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["code"] == "DMQ6165"
    assert "write https://" in json.loads(body)["detail"]
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith(
        f"DMQ6114: 127.0.0.1:{writer.get_extra_info('sockname')[1]} speaks without TLS, and the HTTP"
    )
    assert "https://" in line
    writer.close()
    await witness.is_served()
    witness.leave()


async def test_another_protocol_without_tls_is_named_and_not_answered(
    served: Served, stores: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    reader, writer = await served.open()
    writer.write(b"CONNECT\naccept-version:1.2\nhost:h\n\n\0")
    async with asyncio.timeout(5):
        assert await reader.read() == b""
    assert "DMQ6114" in caplog.text
    writer.close()


@pytest.mark.parametrize("start", [b"\x16\x03\x01\x00\x05hello", b"\x16" * 200])
async def test_garbage_in_a_handshake_harms_its_sender_alone(
    served: Served, stores: Stores, caplog: pytest.LogCaptureFixture, start: bytes
) -> None:
    witness = await witness_of(served, stores)
    _, writer = await served.open()
    writer.write(start)
    await eventually(lambda: "DMQ6113: no TLS with 127.0.0.1:" in caplog.text)
    await witness.is_served()
    writer.transport.abort()
    witness.leave()


async def test_a_client_that_refuses_and_is_gone_leaves_nothing(
    served: Served, stores: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    loop = asyncio.get_running_loop()
    peer = socket.socket()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.setblocking(False)
    await loop.sock_connect(peer, ("127.0.0.1", served.server.port))
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    await loop.sock_sendall(peer, outgoing.read())
    incoming.write(await loop.sock_recv(peer, 65_536))
    with pytest.raises(ssl.SSLCertVerificationError):
        client.do_handshake()
    peer.send(outgoing.read())
    # The loop has not run since: the socket is reset when the broker reads why.
    peer.close()
    await eventually(lambda: served.server.connection_count == 0)
    assert "Exception" not in caplog.text


async def test_garbage_after_the_handshake_ends_that_connection(
    served: Served, stores: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    client = socket.create_connection(("127.0.0.1", served.server.port))
    secured = await asyncio.to_thread(partial(stores.client_context().wrap_socket, client, server_hostname="127.0.0.1"))
    plain = socket.socket(fileno=secured.detach())
    plain.sendall(b"\x17\x03\x03\x00\x20" + bytes(32))
    await eventually(lambda: "DMQ6103" in caplog.text)
    plain.close()
    await eventually(lambda: served.server.connection_count == 0)


@pytest.mark.parametrize("start", [b"", b"\x16\x03\x01\x02\x00\x01", b"hello"])
async def test_a_handshake_that_never_ends_is_ended_in_time(
    served: Served, monkeypatch: pytest.MonkeyPatch, start: bytes
) -> None:
    monkeypatch.setattr(http_server, "HEAD_TIMEOUT_S", 0.01)
    reader, writer = await served.open()
    writer.write(start)
    async with asyncio.timeout(5):
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
    await eventually(lambda: served.server.connection_count == 0)
    writer.close()


async def test_handshakes_count_and_give_way_to_who_comes_next(
    served: Served, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "CONNECTION_LIMIT", 3)
    silent = [await served.open() for _ in range(3)]
    await eventually(lambda: served.server.connection_count == 3)
    witness = await witness_of(served, stores)
    assert served.server.connection_count == 3
    async with asyncio.timeout(5):
        with contextlib.suppress(ConnectionError):
            assert await silent[0][0].read() == b""
    for _, writer in silent:
        writer.transport.abort()
    witness.leave()


async def test_a_client_that_does_not_read_is_cut_off(
    served: Served, stores: Stores, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(http_server, "READ_WITHIN_MS", 50)
    _, writer = await served.open(stores.client_context())
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    writer.write((LARGE + b"\r\n") * 500)
    await eventually(lambda: served.slow_readers.used_bytes > 0)
    await eventually(lambda: "DMQ6714" in caplog.text)
    await eventually(lambda: served.server.connection_count == 0)
    assert served.slow_readers.used_bytes == 0
    writer.transport.abort()


async def test_a_certificate_of_the_client_is_asked_for(
    api: Api, stores: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    settings = TlsSettings(str(stores.server), trust_store_path=str(stores.authority), need_client_auth=True)
    async with serving(api, settings) as served:
        witness = Witness(*await served.open(stores.client_context(stores.client)))
        await witness.is_served()
        for identity, found in ((None, "clientAuth=true asks for"), (stores.stranger, "is not accepted")):
            caplog.clear()
            with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
                await Witness(*await served.open(stores.client_context(identity))).is_served()
            await eventually(lambda: "DMQ6113" in caplog.text)
            assert found in caplog.text
        await witness.is_served()
        witness.leave()


async def test_a_renewed_certificate_is_taken_when_that_is_wanted(
    api: Api, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "new").mkdir()
    old, new = make_stores(tmp_path), make_stores(tmp_path / "new")
    caplog.set_level(logging.INFO)
    async with serving(api, TlsSettings(str(old.server), auto_reload=True)) as served:
        before = await witness_of(served, old)
        old.server.write_bytes(new.server.read_bytes())
        after = await witness_of(served, new)
        assert "DMQ6112: the HTTP interface has read its certificate again" in caplog.text
        await before.is_served()
        before.leave()
        after.leave()


def test_files_that_are_gone_are_named(stores: Stores) -> None:
    with pytest.raises(LimitError, match=r"DMQ6110: the HTTP interface can't speak TLS: the key store .* is missing"):
        TlsContexts(HTTP_TLS, TlsSettings(str(stores.directory / "gone.pem")), logging.getLogger("delosmq"))


class Unreachable:
    """A shared store that can't be reached."""

    role = Role.BACKUP

    def attempt(self) -> Any:
        raise OSError("the disk is away")


async def test_a_broker_that_waits_speaks_tls_too(stores: Stores) -> None:
    bound = bind("127.0.0.1", 0, "the HTTP interface")
    activation: Activation = Unreachable()  # type: ignore[assignment]
    logger = logging.getLogger("delosmq")
    standby = Standby(activation, bound, name="b", logger=logger, tls=TlsSettings(str(stores.server)))
    stop = asyncio.Event()
    waiting = asyncio.create_task(standby.wait(stop))
    url = f"https://127.0.0.1:{bound.getsockname()[1]}/health/ready"
    async with httpx.AsyncClient(verify=stores.client_context()) as client:
        answer = await client.get(url, timeout=30)
    assert answer.status_code == 503
    assert answer.json()["role"] == "backup"
    stop.set()
    assert await waiting is None
    bound.close()
