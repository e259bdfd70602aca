"""What waits for a consumer of a topic, not durable, beyond its prefetch: how much, and what goes.

Source: TopicSubscription and the MessageEvictionStrategy classes of ActiveMQ Classic.
"""

# RING-5, RING-11

from dataclasses import replace

import pytest

from delosmq.model.properties import INT_KIND, TypedValue
from delosmq.model.settings import AcceptorSettings, MessageEviction
from delosmq.wire.openwire.commands import DELIVERED_ACK, STANDARD_ACK, ConsumerInfo, MessageCommand, MessagePull
from delosmq.wire.openwire.primitives import encode_map
from delosmq.wire.openwire.properties import decode_properties
from delosmq.wire.openwire.structures import Destination
from tests.sessions.openwire.support import ACCEPTOR, Client, OpenWireBench, Reader, queue, topic

T = topic("t")


def connected(limit: int = 2, acceptor: AcceptorSettings = ACCEPTOR, **settings: object) -> Client:
    settings.setdefault("pending_message_limit", limit)
    return OpenWireBench(address_settings={"t": settings}, acceptor=acceptor).connect("ID:one", client_id="one")


def take_all(reader: Reader) -> str:
    """What it gets as it acknowledges one by one."""
    found: list[str] = []
    at = len(reader.got)
    while bodies := reader.bodies():
        found.append(bodies)
        while at < len(reader.got):
            reader.done(at)
            at += 1
    return " ".join(found)


def burst(client: Client, bodies: str, destination: Destination = T) -> None:
    """Many within one tick."""
    for body in bodies.split():
        client.feed(client.text(destination, body))
    client.bench.tick()


def replaced(client: Client) -> int:
    return sum(one.counters.replaced for one in client.bench.broker.queues.values())


# -- how much ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at_once", [True, False])
def test_beyond_the_prefetch_the_newest_are_kept(at_once: bool) -> None:
    client = connected(limit=2)
    reader = client.consume(T, 3)
    if at_once:
        burst(client, "a b c d e f g")
    else:
        client.publish(T, "a b c d e f g")
    assert take_all(reader) == "a b c f g"
    assert replaced(client) == 2


def test_a_burst_within_the_prefetch_loses_nothing() -> None:
    client = connected(limit=0)
    reader = client.consume(T, 600)
    names = " ".join(str(number) for number in range(600))
    burst(client, names)
    assert (take_all(reader), replaced(client)) == (names, 0)


def test_a_limit_of_0_keeps_nothing() -> None:
    client = connected(limit=0)
    reader = client.consume(T, 1)
    client.publish(T, "a b c")
    assert take_all(reader) == "a"
    client.publish(T, "d e")
    assert take_all(reader) == "d"


def test_a_consumer_that_pulls_has_room_for_what_it_asks_for() -> None:
    client = connected(limit=1)
    reader = client.consume(T, 0)
    client.publish(T, "a b c")
    pull = MessagePull()
    pull.consumer_id, pull.destination = reader.id, T
    client.ok(pull)
    assert reader.bodies() == "c"


def test_without_a_limit_everything_is_kept() -> None:
    client = OpenWireBench().connect()
    reader = client.consume(T, 1)
    client.publish(T, "a b c d e f")
    assert take_all(reader) == "a b c d e f"


def test_room_that_is_earned_is_filled_before_anything_goes() -> None:
    client = connected(limit=1)
    reader = client.consume(T, 2)
    client.publish(T, "a b c")
    reader.take()
    client.feed(reader.ack(STANDARD_ACK, 1, first=0, count=2))
    burst(client, "d e f")
    assert (reader.bodies(), replaced(client)) == ("c d", 1)
    client.ok(reader.ack(DELIVERED_ACK, 3, first=2, count=2))
    assert reader.bodies() == "f"


@pytest.mark.parametrize(
    ("multiplier", "limit", "kept"), [(0.5, -1, "a b c d f g"), (0.5, 1, "a b c d g"), (2.0, 0, "a b c d")]
)
def test_a_multiple_of_the_prefetch(multiplier: float, limit: int, kept: str) -> None:
    client = connected(limit, pending_message_limit_multiplier=multiplier)
    reader = client.consume(T, 4)
    client.publish(T, "a b c d e f g")
    assert take_all(reader) == kept


def test_it_is_of_the_prefetch_that_the_destination_gives() -> None:
    client = connected(-1, pending_message_limit_multiplier=1.0, topic_prefetch=2)
    reader = client.consume(T, 32_767)
    client.publish(T, "a b c d e f")
    assert take_all(reader) == "a b e f"


@pytest.mark.parametrize(("own", "kept"), [(1, "a d"), (5, "a c d"), (0, "a c d")])
def test_a_consumer_may_ask_for_less(own: int, kept: str) -> None:
    client = connected(2)
    info = client.consumer_info(T, 1)
    info.maximum_pending_message_limit = own
    reader = client.subscribe(info)
    client.publish(T, "a b c d")
    assert take_all(reader) == kept


def test_a_consumer_alone_sets_no_limit() -> None:
    client = connected(-1)
    info = client.consumer_info(T, 1)
    info.maximum_pending_message_limit = 1
    reader = client.subscribe(info)
    client.publish(T, "a b c d")
    assert take_all(reader) == "a b c d"


@pytest.mark.parametrize("destination", [T, Destination("t,u", T.code)])
def test_a_peer_that_does_not_read_has_what_its_prefetch_allows(destination: Destination) -> None:
    client = connected(limit=1, acceptor=replace(ACCEPTOR, outbox_limit_bytes=4_000))
    sender = client.bench.connect()
    reader = client.consume(destination, 6)
    client.reads = False
    large = "x" * 3_000
    for number in range(10):
        sender.ok(sender.text(T, f"{number}{large}"))
    assert client.bench.queue(reader_queue(client)).message_count == 7
    client.reads = True
    client.bench.tick()
    assert [body[0] for body in take_all(reader).split()] == ["0", "1", "5", "6", "7", "8", "9"]


def reader_queue(client: Client) -> str:
    (name,) = [name for name, one in client.bench.broker.queues.items() if one.address.name == "t"]
    return name


def test_a_pause_does_not_fill_the_memory() -> None:
    client = connected(limit=1)
    client.consume(T, 2)
    name = reader_queue(client)
    client.bench.broker.resources.update_queue(name, paused=True)
    client.publish(T, "a b c d e f")
    assert client.bench.queue(name).message_count == 3


# -- whose -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["durable", "queue", "virtual topic"])
def test_others_lose_nothing(kind: str) -> None:
    client = OpenWireBench(address_settings={"#": {"pending_message_limit": 1}}).connect(client_id="one")
    if kind == "durable":
        reader, where = client.durable("s", T, 1), T
    elif kind == "queue":
        reader, where = client.consume(queue("q"), 1), queue("q")
    else:
        reader, where = client.consume(queue("Consumer.a.VirtualTopic.t"), 1), topic("VirtualTopic.t")
    client.publish(where, "a b c d e")
    assert take_all(reader) == "a b c d e"


def test_a_consumer_with_a_priority_has_the_same_limit() -> None:
    client = connected(limit=1)
    info = client.consumer_info(T, 1)
    info.priority = 3
    reader = client.subscribe(info)
    burst(client, "a b c d")
    client.publish(T, "e f")
    assert take_all(reader) == "a f"


def test_what_a_slow_consumer_loses_others_get() -> None:
    client = connected(limit=1)
    slow, quick = client.consume(T, 1), client.consume(T, 10)
    burst(client, "a b c d")
    assert (take_all(slow), take_all(quick)) == ("a d", "a b c d")


def test_the_last_consumer_takes_the_limit_with_it() -> None:
    client = connected(limit=1)
    client.consume(T, 1).close()
    reader = client.consume(T, 10)
    burst(client, "a b c d")
    assert take_all(reader) == "a b c d"
    assert client.bench.broker.used_bytes == 0


def test_the_memory_of_what_goes_returns() -> None:
    client = connected(limit=1)
    client.consume(T, 1)
    client.publish(T, "a b c")
    used = client.bench.broker.used_bytes
    client.publish(T, "d e f")
    assert client.bench.broker.used_bytes == used


# -- what goes ---------------------------------------------------------------------------------------------------------


def message(client: Client, text: str) -> MessageCommand:
    """``BODY``, ``BODY:PRIORITY`` or ``BODY=PROPERTY``."""
    body, _, priority = text.partition(":")
    body, _, value = body.partition("=")
    command = client.text(T, body)
    command.priority = int(priority or 4)
    if value:
        command.marshalled_properties = encode_map({"k": TypedValue(INT_KIND, int(value))})
    return command


def kept(client: Client, reader: Reader, messages: str, *, at_once: bool) -> str:
    for text in messages.split():
        client.feed(message(client, text))
        if not at_once:
            client.bench.tick()
    client.bench.tick()
    return take_all(reader)


@pytest.mark.parametrize("prioritized", [False, True])
@pytest.mark.parametrize("at_once", [False, True])
def test_the_oldest_goes_whatever_its_priority(prioritized: bool, at_once: bool) -> None:
    client = connected(2, prioritized_messages=prioritized)
    assert kept(client, client.consume(T, 1), "a:4 b:1 c:9 d:1", at_once=at_once) == (
        "c b d" if prioritized and at_once else "a c d"
    )


@pytest.mark.parametrize("prioritized", [False, True])
def test_the_oldest_of_the_lowest_priority_goes(prioritized: bool) -> None:
    client = connected(2, prioritized_messages=prioritized, message_eviction=MessageEviction.LOWEST_PRIORITY)
    assert kept(client, client.consume(T, 1), "a:4 b:9 c:1 d:1 e:5", at_once=False) == "a b e"


@pytest.mark.parametrize("at_once", [False, True])
def test_the_newest_of_each_value_stays(at_once: bool) -> None:
    client = connected(3, message_eviction=MessageEviction.UNIQUE_PROPERTY, message_eviction_key="k")
    # With the fifth there are too many: what is superseded goes, and what says nothing with it.
    assert kept(client, client.consume(T, 1), "a b=1 c d=2 e=1", at_once=at_once) == "a d e"
    assert replaced(client) == 2


def test_the_newest_is_the_last_that_was_sent_whatever_its_priority() -> None:
    client = connected(2, message_eviction=MessageEviction.UNIQUE_PROPERTY, message_eviction_key="k")
    assert kept(client, client.consume(T, 1), "a b=1:1 c=1:9 d=2:1", at_once=False) == "a c d"


@pytest.mark.parametrize("key", ["k", "other", ""])
def test_where_nothing_is_superseded_the_oldest_goes(key: str) -> None:
    client = connected(2, message_eviction=MessageEviction.UNIQUE_PROPERTY, message_eviction_key=key)
    assert kept(client, client.consume(T, 1), "a b=1 c=2 d=3 e=4", at_once=False) == "a d e"


# -- what is told ------------------------------------------------------------------------------------------------------


def test_what_goes_is_told_of() -> None:
    client = connected(1, advisory_for_discarding_messages=True)
    heard = client.consume(topic("ActiveMQ.Advisory.MessageDiscarded.Topic.t"))
    reader = client.consume(T, 1)
    client.publish(T, "a b c d")
    found = []
    for one in heard.take():
        assert one.message is not None
        told = decode_properties(one.message.marshalled_properties)
        found.append((told["discardedCount"].value, told["consumerId"].value))
    assert found == [(1, reader.id.key()), (2, reader.id.key())]


def test_advisories_have_the_limit_of_their_own_name() -> None:
    bench = OpenWireBench(address_settings={"ActiveMQ.Advisory.#": {"pending_message_limit": 1}})
    client = bench.connect()
    info: ConsumerInfo = client.consumer_info(topic("ActiveMQ.Advisory.Queue"), 1)
    heard = client.subscribe(info)
    for name in "abcd":
        client.publish(queue(name), "m")
    assert len(heard.take()) == 1
    heard.done(0)
    assert len(heard.take()) == 1
    heard.done(1)
    assert heard.take() == []
