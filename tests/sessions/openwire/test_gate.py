"""An answer waits for the disk if a power cut could undo what its peer concludes from it, and only then."""

from collections.abc import Callable

import pytest

from delosmq.model.settings import QueueSettings
from delosmq.wire.openwire.commands import (
    BEGIN,
    END,
    PREPARE,
    STANDARD_ACK,
    ConnectionControl,
    ConsumerInfo,
    MessagePull,
    RemoveSubscriptionInfo,
)
from delosmq.wire.openwire.negotiation import WireFormatInfo
from delosmq.wire.openwire.structures import TEMP_QUEUE, Command, ConnectionId, Destination, SessionId, XATransactionId
from tests.sessions.openwire.support import Client, OpenWireBench, Reader, change, queue, text_of, topic

BRANCH = XATransactionId(1, b"global", b"branch")
ADD, REMOVE = 0, 1


def bench_and_client() -> tuple[OpenWireBench, Client]:
    """Nothing is synced from now on; the queue is there."""
    bench = OpenWireBench(queues=(QueueSettings("a", "a"),), hold=True)
    bench.sync()
    return bench, bench.connect(client_id="app")


def store_unsynced(bench: OpenWireBench) -> None:
    """Another client stores a message that nobody waits for."""
    other = bench.connect()
    other.tell(other.text(queue("a"), "stored"))
    assert bench.gate.synced < bench.broker.log.position


def reader_of(client: Client) -> Reader:
    """A consumer that has one message."""
    reader = client.consume(queue("a"))
    client.ask(client.text(queue("a"), "first"))
    client.bench.sync()
    client.bench.tick()
    assert reader.bodies() == "first"
    return reader


def pull(client: Client) -> Command:
    command = MessagePull()
    command.consumer_id = client.consume(queue("a"), 0).id
    command.timeout = -1
    return command


def branch(client: Client, kind: int) -> Command:
    """A step of a branch in which a message was sent; PREPARE comes after END."""
    if kind != BEGIN:
        client.ok(client.transaction_info(BRANCH, BEGIN))
        client.ask(client.text(queue("a"), "in a branch", BRANCH))
    if kind == PREPARE:
        client.ask(client.transaction_info(BRANCH, END))
    return client.transaction_info(BRANCH, kind)


def removal(client: Client, name: str) -> Command:
    info = RemoveSubscriptionInfo()
    info.client_id = "app"
    info.subscription_name = name
    return info


def durable(client: Client, name: str) -> ConsumerInfo:
    info = client.consumer_info(topic("t"))
    info.subscription_name = name
    return info


ENDS: dict[str, Callable[[Client], Command]] = {
    "consumer": lambda client: client.remove_info(client.consume(queue("a")).id),
    "session": lambda client: client.remove_info(SessionId(client.name, 1)),
    "connection": lambda client: client.remove_info(ConnectionId(client.name)),
}

GRANTED: dict[str, Callable[[Client], Command]] = {
    "session": lambda client: client.session_info(7),
    "consumer": lambda client: client.consumer_info(queue("a")),
    "consumer of a topic": lambda client: client.consumer_info(topic("t")),
    "consumer of advisories": lambda client: client.consumer_info(topic("ActiveMQ.Advisory.Queue")),
    "producer": lambda client: client.producer_info(queue("a")),
    "temporary queue": lambda client: change(client, Destination(f"{client.name}:1", TEMP_QUEUE), ADD),
    "destination that is there": lambda client: change(client, queue("a"), ADD),
    "pull": pull,
    "begin": lambda client: branch(client, BEGIN),
    "end of a branch's association": lambda client: branch(client, END),
    "connection control": lambda client: ConnectionControl(),
}

WAITING: dict[str, Callable[[Client], Command]] = {
    "message": lambda client: client.text(queue("a"), "x"),
    "acknowledgement": lambda client: reader_of(client).ack(STANDARD_ACK, 0, first=0),
    "prepare": lambda client: branch(client, PREPARE),
    "consumer that makes its queue": lambda client: client.consumer_info(queue("new")),
    "destination that is new": lambda client: change(client, queue("new"), ADD),
    "end of a destination": lambda client: change(client, queue("a"), REMOVE),
    "durable subscription": lambda client: durable(client, "s"),
}


@pytest.mark.parametrize("name", GRANTED)
def test_what_says_nothing_about_messages_is_answered_while_they_are_synced(name: str) -> None:
    bench, client = bench_and_client()
    client.open_session(1)
    store_unsynced(bench)
    assert len(client.ask(GRANTED[name](client))) == 1


@pytest.mark.parametrize("name", WAITING)
def test_what_a_power_cut_could_undo_is_answered_after_the_sync(name: str) -> None:
    bench, client = bench_and_client()
    client.open_session(1)
    command = WAITING[name](client)
    store_unsynced(bench)
    number = client.feed(command, answer=True)
    bench.tick()
    assert client.answers(number) == []
    bench.sync()
    bench.tick()
    assert len(client.answers(number)) == 1


@pytest.mark.parametrize("name", ENDS)
def test_an_end_waits_for_what_its_connection_sent(name: str) -> None:
    bench, client = bench_and_client()
    client.open_session(1)
    command = ENDS[name](client)
    client.tell(client.text(queue("a"), "without an answer"))
    number = client.feed(command, answer=True)
    bench.tick()
    assert client.answers(number) == []
    bench.sync()
    bench.tick()
    assert len(client.answers(number)) == 1


@pytest.mark.parametrize("name", ENDS)
def test_an_end_waits_for_nothing_that_others_sent_nor_for_acknowledgements(name: str) -> None:
    bench, client = bench_and_client()
    client.open_session(1)
    reader = reader_of(client)
    command = ENDS[name](client)
    client.tell(reader.ack(STANDARD_ACK, 0, first=0))
    store_unsynced(bench)
    assert len(client.ask(command)) == 1


def test_what_another_client_made_is_promised_once_it_is_synced() -> None:
    bench, client = bench_and_client()
    other = bench.connect(client_id="other")
    other.ask(other.consumer_info(queue("new")))  # makes the queue
    command = client.consumer_info(queue("new"))
    number = client.feed(command, answer=True)
    bench.tick()
    assert client.answers(number) == []
    bench.sync()
    bench.tick()
    assert len(client.answers(number)) == 1


def test_a_durable_subscription_is_promised_to_its_next_consumer_too() -> None:
    bench, client = bench_and_client()
    first = durable(client, "s")
    client.ask(first)
    client.tell(client.remove_info(first.consumer_id))
    number = client.feed(durable(client, "s"), answer=True)
    bench.tick()
    assert client.answers(number) == []
    bench.sync()
    bench.tick()
    assert len(client.answers(number)) == 1


def test_the_end_of_a_durable_subscription_is_promised_once_it_is_synced() -> None:
    bench, client = bench_and_client()
    first = durable(client, "s")
    client.ask(first)
    client.tell(client.remove_info(first.consumer_id))
    bench.sync()
    number = client.feed(removal(client, "s"), answer=True)
    bench.tick()
    assert client.answers(number) == []
    bench.sync()
    bench.tick()
    assert len(client.answers(number)) == 1


def test_a_grant_leaves_before_an_answer_that_waits() -> None:
    bench, client = bench_and_client()
    sent = client.feed(client.text(queue("a"), "x"), answer=True)
    assert len(client.ask(client.session_info(7))) == 1
    assert client.answers(sent) == []
    bench.sync()
    bench.tick()
    assert len(client.answers(sent)) == 1
    assert client.session.outbox.reply_bytes == 0


def test_a_consumer_per_message_waits_for_no_acknowledgement() -> None:
    """`JmsTemplate.receive`: what it acknowledges wants no answer, and the next consumer comes without a sync."""
    bench, client = bench_and_client()
    for body in ("x", "y", "z"):
        client.ask(client.text(queue("a"), body))
    bench.sync()
    for body in ("x", "y", "z"):
        reader = client.consume(queue("a"))
        assert text_of(reader.take()[0]) == body
        client.tell(reader.ack(STANDARD_ACK, 0, first=0))
        client.tell(client.remove_info(reader.id, reader.sequence(0)))
    assert bench.gate.awaited == bench.gate.synced < bench.broker.log.position


def test_connecting_does_not_wait_for_the_disk() -> None:
    bench, _ = bench_and_client()
    store_unsynced(bench)
    late = Client(bench)
    late.negotiate(WireFormatInfo())
    assert [type(one).__name__ for one in late.take()] == ["BrokerInfo"]
    late.log_in("ID:late", manageable=True)
    assert [type(one).__name__ for one in late.take()] == ["ConnectionControl"]
