"""stomp.py, unmodified, against a broker with a real socket: versions 1.0, 1.1 and 1.2."""

# BROKER-2

import asyncio
import queue
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import stomp
from stomp.utils import Frame as StompPyFrame

from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.settings import AddressMatch, BrokerSettings, QueueSettings
from delosmq.storage.memory import MemoryStore
from tests.patience import PATIENCE_S
from tests.server.support import TCP, RunningServer
from tests.sessions.support import PASSWORD, USER

VERSIONS = ("1.0", "1.1", "1.2")
_CONNECTIONS = {"1.0": stomp.Connection10, "1.1": stomp.Connection11, "1.2": stomp.Connection12}

SETTINGS = BrokerSettings(
    queues=(
        QueueSettings("DLQ", "DLQ"),
        QueueSettings("prices", "prices", ANYCAST, ring_size=3),
        QueueSettings("orders.work", "orders", MULTICAST),
        QueueSettings("orders.archive", "orders", MULTICAST),
    ),
    address_settings=(AddressMatch("#", {"dead_letter_address": "DLQ", "max_delivery_attempts": 2}),),
)


class Inbox(stomp.ConnectionListener):  # type: ignore[misc]
    """Puts what arrives where a test can wait for it."""

    def __init__(self) -> None:
        self.messages: queue.Queue[StompPyFrame] = queue.Queue()
        self.receipts: queue.Queue[str] = queue.Queue()
        self.errors: queue.Queue[StompPyFrame] = queue.Queue()
        self.heart_beats: queue.Queue[None] = queue.Queue()

    def on_message(self, frame: StompPyFrame) -> None:
        self.messages.put(frame)

    def on_receipt(self, frame: StompPyFrame) -> None:
        self.receipts.put(frame.headers["receipt-id"])

    def on_error(self, frame: StompPyFrame) -> None:
        self.errors.put(frame)

    def on_heartbeat(self) -> None:
        self.heart_beats.put(None)


class Client:
    """One stomp.py connection and its inbox; used from a thread of its own."""

    def __init__(self, port: int, version: str, heartbeats: tuple[int, int] = (0, 0)) -> None:
        options: dict[str, Any] = {} if version == "1.0" else {"heartbeats": heartbeats}
        self.version = version
        self.inbox = Inbox()
        self.connection = _CONNECTIONS[version]([("127.0.0.1", port)], **options)
        self.connection.set_listener("inbox", self.inbox)
        self.connection.connect(USER, PASSWORD, wait=True)
        self._receipts = 0

    def send(self, destination: str, body: str | bytes, **headers: str) -> None:
        """Sends and waits for the receipt."""
        self._receipts += 1
        receipt = f"r{self._receipts}"
        self.connection.send(destination, body, headers={"receipt": receipt, "persistent": "true", **headers})
        assert self.inbox.receipts.get(timeout=PATIENCE_S) == receipt

    def subscribe(self, destination: str, ack: str = "auto", key: str = "s") -> None:
        self.connection.subscribe(destination, key, ack=ack, headers={"receipt": f"sub-{key}"})
        assert self.inbox.receipts.get(timeout=PATIENCE_S) == f"sub-{key}"

    def message(self) -> StompPyFrame:
        return self.inbox.messages.get(timeout=PATIENCE_S)

    def answer(self, command: Callable[..., None], frame: StompPyFrame) -> None:
        """ACK or NACK as the version has it, and waits for its receipt."""
        receipt = f"answer-{frame.headers['message-id']}"
        if self.version == "1.2":
            command(frame.headers["ack"], receipt=receipt)
        elif self.version == "1.1":
            command(frame.headers["message-id"], frame.headers["subscription"], receipt=receipt)
        else:
            command(frame.headers["message-id"], receipt=receipt)
        assert self.inbox.receipts.get(timeout=PATIENCE_S) == receipt

    def ack(self, frame: StompPyFrame) -> None:
        self.answer(self.connection.ack, frame)

    def nack(self, frame: StompPyFrame) -> None:
        self.answer(self.connection.nack, frame)

    def close(self) -> None:
        self.connection.disconnect(receipt="bye")


@pytest.fixture
async def server() -> AsyncIterator[RunningServer]:
    running = RunningServer(SETTINGS, MemoryStore())
    running.store.wait_synced(running.broker.start(), 5.0)
    running.server.bind((TCP,))
    await running.server.start()
    running.ticker.start()
    yield running
    await running.stop()


async def each(server: RunningServer, version: str, work: Callable[[Client], None]) -> None:
    """Runs ``work`` with a client, beside the loop."""

    def run() -> None:
        client = Client(server.listener.port, version)
        work(client)
        client.close()

    await asyncio.to_thread(run)


@pytest.mark.parametrize("version", VERSIONS)
async def test_auto(server: RunningServer, version: str) -> None:
    def work(client: Client) -> None:
        client.subscribe("/queue/a")
        for number in range(50):
            client.send("/queue/a", f"body {number}", color="red")
        for number in range(50):
            frame = client.message()
            assert (frame.body, frame.headers["color"]) == (f"body {number}", "red")

    await each(server, version, work)
    assert server.broker.queues["a"].message_count == 0


# ACK-1
@pytest.mark.parametrize("version", VERSIONS)
async def test_client_acknowledges_all_up_to_one(server: RunningServer, version: str) -> None:
    def work(client: Client) -> None:
        client.subscribe("/queue/a", "client")
        for number in range(3):
            client.send("/queue/a", str(number))
        frames = [client.message() for _ in range(3)]
        client.ack(frames[1])

    await each(server, version, work)
    assert server.broker.queues["a"].message_count == 1


# ACK-1, ACK-4
@pytest.mark.parametrize("version", ["1.1", "1.2"])
async def test_individual_nack_redelivery_and_dead_letter(server: RunningServer, version: str) -> None:
    def work(client: Client) -> None:
        client.subscribe("/queue/a", "client-individual")
        client.send("/queue/a", "poison")
        client.send("/queue/a", "good")
        first, second = client.message(), client.message()
        client.ack(second)
        client.nack(first)
        again = client.message()
        assert (again.body, again.headers["redelivered"]) == ("poison", "true")
        client.nack(again)
        client.subscribe("/queue/DLQ", key="d")
        dead = client.message()
        assert (dead.body, dead.headers["_AMQ_ORIG_QUEUE"]) == ("poison", "a")

    await each(server, version, work)
    assert server.broker.queues["a"].message_count == 0


@pytest.mark.parametrize("version", VERSIONS)
async def test_what_was_not_acknowledged_comes_again(server: RunningServer, version: str) -> None:
    def work(client: Client) -> None:
        client.subscribe("/queue/a", "client")
        client.send("/queue/a", "x")
        assert client.message().headers["redelivered"] == "false"

    def again(client: Client) -> None:
        client.subscribe("/queue/a", "client")
        frame = client.message()
        assert frame.headers["redelivered"] == "true"
        client.ack(frame)

    await each(server, version, work)
    await each(server, version, again)
    assert server.broker.queues["a"].message_count == 0


@pytest.mark.parametrize("version", VERSIONS)
async def test_priorities_and_escapes(server: RunningServer, version: str) -> None:
    def work(client: Client) -> None:
        odd = "a:b" if version == "1.0" else "a:b\nc\\d"
        for priority in ("1", "9", "4"):
            client.send("/queue/a", priority, priority=priority, odd=odd)
        client.subscribe("/queue/a")
        frames = [client.message() for _ in range(3)]
        assert [frame.body for frame in frames] == ["9", "4", "1"]
        assert frames[0].headers["odd"] == odd

    await each(server, version, work)


@pytest.mark.parametrize("version", VERSIONS)
async def test_multicast_and_ring(server: RunningServer, version: str) -> None:
    def work(client: Client) -> None:
        client.subscribe("/topic/news", key="n")
        client.send("/topic/news", "extra")
        assert client.message().body == "extra"
        client.send("/topic/orders", "order")
        for price in range(5):
            client.send("/queue/prices", str(price))
        client.subscribe("/queue/prices", key="p")
        assert [client.message().body for _ in range(3)] == ["2", "3", "4"]

    await each(server, version, work)
    assert server.broker.queues["orders.work"].message_count == 1
    assert server.broker.queues["orders.archive"].message_count == 1


@pytest.mark.parametrize("version", ["1.1", "1.2"])
async def test_heart_beats_keep_a_connection(server: RunningServer, version: str) -> None:
    def work() -> None:
        client = Client(server.listener.port, version, heartbeats=(500, 500))
        client.inbox.heart_beats.get(timeout=PATIENCE_S)
        client.close()

    await asyncio.to_thread(work)


@pytest.mark.parametrize("version", VERSIONS)
async def test_errors_are_told(server: RunningServer, version: str) -> None:
    def work() -> None:
        client = Client(server.listener.port, version)
        client.connection.subscribe("/queue/a", "s", headers={"selector": "a !! 1"})
        error = client.inbox.errors.get(timeout=PATIENCE_S)
        assert "selector" in error.headers["message"]

    await asyncio.to_thread(work)
