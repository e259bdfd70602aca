"""Queues, topics, wildcards, virtual topics, composite consumers; destinations that clients make and delete."""

import pytest

from delosmq.model.settings import QueueSettings
from delosmq.wire.openwire.commands import ADD_DESTINATION, EXPIRED_ACK, POISON_ACK, REMOVE_DESTINATION, STANDARD_ACK
from delosmq.wire.openwire.structures import TOPIC, Destination, MessageId, ProducerId
from tests.sessions.openwire.support import Client, OpenWireBench, Reader, change, code_of, queue, topic

A = queue("a")


def seen(reader: Reader) -> list[str]:
    """Where the messages that came since the last call say they were sent to."""
    names: list[str] = []
    for dispatch in reader.take():
        assert dispatch.message is not None
        assert dispatch.message.destination is not None
        names.append(dispatch.message.destination.qualified_name())
    return names


# -- queues and topics -------------------------------------------------------------------------------------------------


def test_a_queue_s_consumers_share_and_a_topic_s_all_get_everything() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    queues = [client.consume(A), client.consume(A)]
    topics = [client.consume(topic("t")), client.consume(topic("t"))]
    client.publish(A, "0 1")
    client.publish(topic("t"), "0 1")
    assert sorted(reader.bodies() for reader in queues) == ["0", "1"]
    assert [reader.bodies() for reader in topics] == ["0 1", "0 1"]


def test_a_topic_without_subscribers_keeps_nothing() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    client.publish(topic("t"), "lost")
    assert client.consume(topic("t")).bodies() == ""


def test_a_queue_and_a_topic_of_one_name_are_two() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    listener = client.consume(topic("same"))
    reader = client.consume(queue("same"))
    client.publish(queue("same"), "q")
    client.publish(topic("same"), "t")
    assert (reader.bodies(), listener.bodies()) == ("q", "t")


def test_a_message_names_where_it_was_sent_to() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(A)
    client.publish(A, "x")
    (dispatch,) = reader.take()
    assert dispatch.destination is not None
    assert dispatch.destination.qualified_name() == "queue://a"
    assert dispatch.message is not None
    assert dispatch.message.destination is not None
    assert dispatch.message.destination.qualified_name() == "queue://a"


def test_a_queue_of_an_address_by_both_names() -> None:
    bench = OpenWireBench(queues=(QueueSettings("news.eu", "news"),))
    client = bench.connect()
    reader = client.consume(queue("news::news.eu"))
    client.publish(queue("news::news.eu"), "x")
    assert reader.bodies() == "x"


# -- wildcards ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        ("a.>", ["a.b", "a.b.c"]),
        ("a.*", ["a.b"]),
        ("*.b", ["a.b", "z.b"]),
        (">", ["a.b", "a.b.c", "z.b"]),
        ("a.*.c", ["a.b.c"]),
        ("a.b", ["a.b"]),
    ],
)
def test_a_wildcard_of_topics(pattern: str, matched: list[str]) -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(topic(pattern))
    for name in ("a.b", "a.b.c", "z.b"):
        client.publish(topic(name), "x")
    assert seen(reader) == [f"topic://{name}" for name in matched]


def test_a_wildcard_of_queues_reads_all_that_match() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    for name in ("q.a", "q.b", "other"):
        client.publish(queue(name), "x")
    reader = client.consume(queue("q.>"))
    assert sorted(seen(reader)) == ["queue://q.a", "queue://q.b"]
    client.publish(queue("q.b"), "y")
    assert seen(reader) == ["queue://q.b"]
    # Acknowledgements find their queues.
    client.ok(reader.ack(STANDARD_ACK, 2, first=2))
    assert bench.queue("q.b").message_count == 1


def test_names_with_stars_within_words_are_names() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(queue("a*b"))
    client.publish(queue("a*b"), "x")
    assert reader.bodies() == "x"
    assert list(bench.broker.queues) == ["a*b"]


# -- composite consumers -----------------------------------------------------------------------------------------------


def test_a_composite_consumer_reads_all_parts_within_one_prefetch() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    client.publish(queue("a"), "0 1")
    client.publish(queue("b"), "2 3")
    reader = client.consume(queue("a,b"), 3)
    assert len(reader.take()) == 3
    client.ok(reader.ack(STANDARD_ACK, 0, first=0))
    assert len(reader.take()) == 1
    for index in (1, 2, 3):
        client.ok(reader.ack(STANDARD_ACK, index, first=index))
    assert (bench.queue("a").message_count, bench.queue("b").message_count) == (0, 0)


def reader_of_two() -> tuple[OpenWireBench, Client, Reader]:
    """A consumer of two queues that has three messages."""
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(queue("a,b"))
    for name, body in (("a", "0"), ("b", "1"), ("a", "2")):
        client.publish(queue(name), body)
    assert reader.bodies() == "0 1 2"
    return bench, client, reader


@pytest.mark.parametrize(("kind", "count"), [(STANDARD_ACK, 2), (EXPIRED_ACK, 9), (POISON_ACK, 9)])
def test_a_range_ends_messages_of_all_parts_and_is_counted_where_one_queue_s_is(kind: int, count: int) -> None:
    bench, client, reader = reader_of_two()
    client.ok(reader.ack(kind, 1, first=0, count=count))
    assert (bench.queue("a").message_count, bench.queue("b").message_count) == (1, 0)


@pytest.mark.parametrize("known", [False, True])
def test_a_range_of_a_composite_begins_in_what_was_dispatched(known: bool) -> None:
    _, client, reader = reader_of_two()
    ack = reader.ack(STANDARD_ACK, 1, count=2)
    # After the last, or of a client that gives back no sequence.
    ack.first_message_id = reader.message_id(2) if known else MessageId(ProducerId("ID:nobody", 1, 1), 7)
    exception = client.refused(ack)
    assert code_of(exception) == "JMSException DMQ5260"
    assert "(start of ack)" in (exception.message or "")


def test_a_composite_of_queue_and_topic() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(Destination("queue://a,topic://t", TOPIC))
    client.publish(A, "x")
    client.publish(topic("t"), "y")
    assert seen(reader) == ["queue://a", "topic://t"]


def test_closing_a_composite_consumer_closes_all_its_parts() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(queue("a,b"))
    client.publish(queue("b"), "x")
    reader.take()
    reader.close(reader.sequence(0))
    assert bench.queue("a").holders == bench.queue("b").holders == []
    assert client.consume(queue("b")).bodies() == "xr1"


# -- virtual topics ----------------------------------------------------------------------------------------------------


def test_queues_of_a_virtual_topic_each_get_everything_and_share_it() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    one = client.consume(queue("Consumer.one.VirtualTopic.orders"))
    two = [client.consume(queue("Consumer.two.VirtualTopic.orders")) for _ in range(2)]
    plain = client.consume(topic("VirtualTopic.orders"))
    client.publish(topic("VirtualTopic.orders"), "0 1")
    assert one.bodies() == "0 1"
    assert sorted(reader.bodies() for reader in two) == ["0", "1"]
    assert plain.bodies() == "0 1"


def test_a_virtual_topic_s_queue_keeps_what_comes_while_nobody_reads() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    client.consume(queue("Consumer.one.VirtualTopic.orders")).close()
    client.publish(topic("VirtualTopic.orders"), "kept")
    assert client.consume(queue("Consumer.one.VirtualTopic.orders")).bodies() == "kept"


def test_a_virtual_topic_s_queue_shows_itself_as_the_destination() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(queue("Consumer.one.VirtualTopic.orders"))
    client.publish(topic("VirtualTopic.orders"), "x")
    (dispatch,) = reader.take()
    message = dispatch.message
    assert message is not None
    assert message.destination is not None
    assert message.original_destination is not None
    assert message.destination.qualified_name() == "queue://Consumer.one.VirtualTopic.orders"
    assert message.original_destination.qualified_name() == "topic://VirtualTopic.orders"


def test_a_virtual_topic_s_queue_checks_acknowledgements() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(queue("Consumer.one.VirtualTopic.orders"))
    client.publish(topic("VirtualTopic.orders"), "x")
    reader.take()
    assert code_of(client.refused(reader.ack(STANDARD_ACK, 0, first=0, count=2))) == "JMSException DMQ5261"
    reader.done(0)


def test_sending_straight_to_a_virtual_topic_s_queue_reaches_it_alone() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    one = client.consume(queue("Consumer.one.VirtualTopic.orders"))
    two = client.consume(queue("Consumer.two.VirtualTopic.orders"))
    client.publish(queue("Consumer.one.VirtualTopic.orders"), "x")
    assert (one.bodies(), two.bodies()) == ("x", "")


# -- making and deleting -----------------------------------------------------------------------------------------------


def test_a_destination_is_made_by_name() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    for _ in range(2):
        client.ok(change(client, A, ADD_DESTINATION))
    assert list(bench.broker.queues) == ["a"]
    client.ok(change(client, topic("t"), ADD_DESTINATION))
    assert "t" in bench.broker.addresses
    client.ok(change(client, topic("ActiveMQ.Advisory.Connection"), ADD_DESTINATION))
    client.ok(change(client, queue("a.>"), ADD_DESTINATION))
    assert sorted(bench.broker.addresses) == ["a", "t"]


def test_a_destination_is_deleted_with_its_messages() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    client.publish(A, "x")
    client.ok(change(client, A, REMOVE_DESTINATION))
    assert bench.broker.queues == {}
    assert bench.broker.addresses == {}
    client.ok(change(client, A, REMOVE_DESTINATION))


def test_a_destination_that_somebody_reads_is_not_deleted() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(A)
    exception = client.refused(change(client, A, REMOVE_DESTINATION))
    assert code_of(exception) == "JMSException DMQ5243"
    client.publish(A, "x")
    assert reader.bodies() == "x"


def test_a_queue_that_an_operator_deletes_leaves_its_consumer_without_it() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    client.publish(A, "x")
    reader = client.consume(A)
    reader.take()
    bench.broker.resources.delete_queue("a")
    bench.tick()
    client.tell(reader.ack(STANDARD_ACK, 0, first=0))
    client.take()
    reader.close()
    client.publish(A, "y")
    assert client.consume(A).bodies() == "y"


def test_the_queue_of_a_virtual_topic_is_deleted_alone() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    names = ("Consumer.A.VirtualTopic.T", "Consumer.B.VirtualTopic.T")
    for name in names:
        client.consume(queue(name)).close()
    client.publish(topic("VirtualTopic.T"), "x")
    client.ok(change(client, queue(names[0]), REMOVE_DESTINATION))
    assert [name in bench.broker.queues for name in names] == [False, True]
    assert client.consume(queue(names[1])).bodies() == "x"
    # Again is nothing, and somebody reads the other one.
    client.ok(change(client, queue(names[0]), REMOVE_DESTINATION))
    assert code_of(client.refused(change(client, queue(names[1]), REMOVE_DESTINATION))) == "JMSException DMQ5243"


def test_a_topic_with_durable_subscriptions_stays() -> None:
    bench = OpenWireBench()
    client = bench.connect(client_id="c")
    client.durable("s", topic("t")).close()
    client.publish(topic("t"), "x")
    assert code_of(client.refused(change(client, topic("t"), REMOVE_DESTINATION))) == "JMSException DMQ5281"
    assert client.durable("s", topic("t")).bodies() == "x"
