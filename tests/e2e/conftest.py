"""One broker on a journal for the whole folder: each test uses addresses of its own, named after the test."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.settings import (
    AcceptorSettings,
    AddressMatch,
    BrokerSettings,
    JournalSettings,
    QueueSettings,
    SecurityMatch,
)
from delosmq.storage.journal import open_journal
from delosmq.storage.port import ServedStore
from tests.e2e.support import HOST, Client, RunningBroker

NODE = bytes(range(16))
EVERYTHING = (
    "send",
    "consume",
    "createAddress",
    "createDurableQueue",
    "createNonDurableQueue",
    "manage",
    "view",
    "edit",
)
ACCEPTOR = AcceptorSettings(
    "stomp",
    HOST,
    0,
    ("STOMP",),
    ("/queue/",),
    ("/topic/",),
    connection_ttl_min_ms=100,
    max_frame_bytes=200_000,
    max_head_bytes=8_000,
    max_headers=100,
    max_subscriptions=20,
)
SETTINGS = BrokerSettings(
    journal=JournalSettings("journal", file_size_bytes=1024 * 1024),
    connection_ttl_check_interval_ms=50,
    acceptors=(ACCEPTOR,),
    queues=(
        QueueSettings("DLQ", "DLQ", ANYCAST),
        QueueSettings("news.a", "news", MULTICAST),
        QueueSettings("news.b", "news", MULTICAST),
        *(QueueSettings(f"ring{version}", f"ring{version}", ANYCAST, ring_size=3) for version in ("1.0", "1.1", "1.2")),
    ),
    address_settings=(AddressMatch("#", {"dead_letter_address": "DLQ", "max_delivery_attempts": 3}),),
    security_settings=(
        SecurityMatch("#", {name: frozenset({"amq"}) for name in EVERYTHING}),
        SecurityMatch("public.#", {name: frozenset({"amq", "guests"}) for name in EVERYTHING}),
        SecurityMatch("readable", {"send": frozenset({"amq"}), "consume": frozenset({"amq", "guests"})}),
    ),
)


def journal_in(directory: Path) -> ServedStore:
    return open_journal(directory, SETTINGS.journal, node_id=NODE, sync_process=False)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    directory = tmp_path_factory.mktemp("journal")
    with RunningBroker(SETTINGS, lambda: journal_in(directory)) as running:
        yield running


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """An address nobody else uses."""
    return re.sub(r"[^A-Za-z0-9.]+", ".", str(request.node.name))


@pytest.fixture
def witness(broker: RunningBroker) -> Iterator[Client]:
    """A connection that must not notice what others do wrong: checked when the test ends."""
    with Client(broker.port, "1.2") as client:
        client.subscribe("/queue/witness")
        yield client
        received = len(client.inbox.messages)
        client.send("/queue/witness", "still here")
        assert client.bodies(received + 1)[-1] == "still here"
        assert not client.inbox.errors
