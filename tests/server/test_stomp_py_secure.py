"""stomp.py and websocket-client, unmodified: TLS, WebSocket, both at once, and all of them on one broker."""

# BROKER-2, BROKER-4

import asyncio
import contextlib
import queue
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import stomp
from stomp.adapter.ws import WSStompConnection
from stomp.utils import Frame as StompPyFrame

from delosmq.model.settings import AcceptorSettings, TlsSettings
from tests.certificates import Stores, make_stores
from tests.patience import PATIENCE_S
from tests.server.support import TCP, RunningServer, running
from tests.sessions.support import PASSWORD, USER

_HOST = "127.0.0.1"
LARGE = "x" * 400_000


class Inbox(stomp.ConnectionListener):  # type: ignore[misc]
    """Puts what arrives where a test can wait for it."""

    def __init__(self) -> None:
        self.messages: queue.Queue[StompPyFrame] = queue.Queue()
        self.receipts: queue.Queue[str] = queue.Queue()
        self.heart_beats: queue.Queue[None] = queue.Queue()

    def on_message(self, frame: StompPyFrame) -> None:
        self.messages.put(frame)

    def on_receipt(self, frame: StompPyFrame) -> None:
        self.receipts.put(frame.headers["receipt-id"])

    def on_heartbeat(self) -> None:
        self.heart_beats.put(None)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    return make_stores(tmp_path_factory.mktemp("stores"))


def tls_acceptor(stores: Stores, *, need_client_auth: bool = False) -> AcceptorSettings:
    settings = TlsSettings(
        str(stores.server), trust_store_path=str(stores.authority), need_client_auth=need_client_auth
    )
    return replace(TCP, tls=settings)


def connect(connection: Any) -> Inbox:
    inbox = Inbox()
    connection.set_listener("inbox", inbox)
    connection.connect(USER, PASSWORD, wait=True)
    return inbox


def exchange(connection: Any, name: str) -> None:
    """Sends two messages, gets them back, acknowledges them and leaves."""
    inbox = connect(connection)
    destination = f"/queue/{name}"
    connection.subscribe(destination, "s", ack="client-individual", headers={"receipt": "subscribed"})
    assert inbox.receipts.get(timeout=PATIENCE_S) == "subscribed"
    for number, body in enumerate((f"hello from {name}", LARGE)):
        # One frame of a WebSocket each, hence below its limit.
        for part in range(0, len(body), 60_000):
            connection.send(destination, body[part : part + 60_000], headers={"receipt": f"{number}-{part}"})
            assert inbox.receipts.get(timeout=PATIENCE_S) == f"{number}-{part}"
    got = ""
    while len(got) < len(LARGE) + len(f"hello from {name}"):
        frame = inbox.messages.get(timeout=PATIENCE_S)
        got += frame.body
        connection.ack(frame.headers["ack"])
    assert got == f"hello from {name}{LARGE}"
    connection.disconnect(receipt="bye")
    assert inbox.receipts.get(timeout=PATIENCE_S) == "bye"


def over_tls(port: int, stores: Stores, identity: str | None = None) -> Any:
    connection = stomp.Connection12([(_HOST, port)])
    connection.set_ssl([(_HOST, port)], ca_certs=str(stores.authority), cert_file=identity, key_file=identity)
    return connection


def over_web_socket(port: int, stores: Stores) -> Any:
    return WSStompConnection([(_HOST, port)], ws_path="/stomp", binary_mode=True)


def over_web_socket_in_text(port: int, stores: Stores) -> Any:
    return WSStompConnection([(_HOST, port)], header={"Sec-WebSocket-Protocol": "v12.stomp"})


def over_secure_web_socket(port: int, stores: Stores) -> Any:
    connection = WSStompConnection([(_HOST, port)], binary_mode=True)
    connection.set_ssl([(_HOST, port)], ca_certs=str(stores.authority))
    return connection


Connect = Callable[[int, Stores], Any]


async def work(server: RunningServer, stores: Stores, way: Connect, name: str = "a") -> None:
    await asyncio.to_thread(lambda: exchange(way(server.listener.port, stores), name))


@pytest.mark.parametrize("way", [over_tls, over_secure_web_socket])
async def test_with_tls(stores: Stores, way: Connect) -> None:
    async with running(tls_acceptor(stores)) as server:
        await work(server, stores, way)
        assert server.broker.queues["a"].message_count == 0
        await server.until(lambda: not server.listener.connections)


@pytest.mark.parametrize("way", [over_web_socket, over_web_socket_in_text])
async def test_with_a_websocket(stores: Stores, way: Connect) -> None:
    async with running() as server:
        await work(server, stores, way)
        assert server.broker.queues["a"].message_count == 0
        await server.until(lambda: not server.listener.connections)


async def test_with_a_certificate_of_its_own(stores: Stores) -> None:
    async with running(tls_acceptor(stores, need_client_auth=True)) as server:
        await asyncio.to_thread(lambda: exchange(over_tls(server.listener.port, stores, str(stores.client)), "a"))


async def test_a_missing_certificate_keeps_its_client_out(stores: Stores) -> None:
    async with running(tls_acceptor(stores, need_client_auth=True)) as server:
        port = server.listener.port
        connection = stomp.Connection12([(_HOST, port)], reconnect_attempts_max=1, timeout=PATIENCE_S)
        connection.set_ssl([(_HOST, port)], ca_certs=str(stores.authority))
        try:
            # Without waiting: stomp.py waits for ever when the refusal comes as an error of TLS and not as the end.
            with contextlib.suppress(stomp.exception.ConnectFailedException, stomp.exception.NotConnectedException):
                await asyncio.to_thread(lambda: connection.connect(USER, PASSWORD))
            await server.until(lambda: bool(server.logged.lines))
            assert "needClientAuth" in server.logged.lines[0]
            assert not connection.is_connected()
        finally:
            await asyncio.to_thread(connection.transport.stop)


async def test_all_ways_at_once_on_one_broker(stores: Stores) -> None:
    async with running() as server:
        server.server.bind((replace(tls_acceptor(stores), name="secure"),))
        plain, secure = server.server.listeners
        await secure.start()
        ways: list[tuple[Connect, int]] = [
            (over_web_socket, plain.port),
            (over_web_socket_in_text, plain.port),
            (over_tls, secure.port),
            (over_secure_web_socket, secure.port),
        ]
        await asyncio.gather(
            *(
                asyncio.to_thread(lambda way=way, port=port: exchange(way(port, stores), way.__name__))  # type: ignore[misc]
                for way, port in ways
            ),
            asyncio.to_thread(lambda: exchange(stomp.Connection12([(_HOST, plain.port)]), "plain")),
        )
        assert all(queue.message_count == 0 for queue in server.broker.queues.values())


async def test_heart_beats_keep_a_secure_websocket(stores: Stores) -> None:
    def beat(port: int) -> None:
        connection = WSStompConnection([(_HOST, port)], heartbeats=(500, 500))
        connection.set_ssl([(_HOST, port)], ca_certs=str(stores.authority))
        inbox = connect(connection)
        inbox.heart_beats.get(timeout=PATIENCE_S)
        connection.disconnect(receipt="bye")

    async with running(tls_acceptor(stores)) as server:
        await asyncio.to_thread(beat, server.listener.port)
