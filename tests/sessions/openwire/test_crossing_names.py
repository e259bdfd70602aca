"""Names that both protocols understand: virtual topics, ids of messages, where a dead letter came from."""

from dataclasses import replace

import pytest

from delosmq.model.properties import BOOLEAN_KIND, INT_KIND, LONG_KIND, STRING_KIND, TypedValue
from delosmq.model.virtual_topics import CLASSIC, parse_virtual_topics, virtual_topic_of
from delosmq.wire.openwire.commands import POISON_ACK
from delosmq.wire.openwire.primitives import encode_map
from tests.sessions.openwire.stomp_peer import StompPeer
from tests.sessions.openwire.support import ACCEPTOR, OpenWireBench, code_of, queue, topic
from tests.sessions.support import ACCEPTOR as STOMP_ACCEPTOR

A = queue("a")
WITH_VIRTUAL_TOPICS = replace(STOMP_ACCEPTOR, virtual_topics=CLASSIC)

# -- virtual topics ----------------------------------------------------------------------------------------------------


def test_stomp_consumers_get_what_anybody_sends_to_a_virtual_topic() -> None:
    bench = OpenWireBench()
    client, stomp = bench.connect(), StompPeer(bench, WITH_VIRTUAL_TOPICS)
    stomp.frame("SUBSCRIBE", "id:0", "destination:/queue/Consumer.A.VirtualTopic.x")
    client.publish(topic("VirtualTopic.x"), "jms")
    stomp.frame("SEND", "destination:/topic/VirtualTopic.x", body=b"stomp")
    frames = stomp.take()
    assert [frame.body for frame in frames] == [b"jms", b"stomp"]
    assert {frame.headers["destination"] for frame in frames} == {"/queue/Consumer.A.VirtualTopic.x"}
    assert bench.queue("Consumer.A.VirtualTopic.x").address.name == "VirtualTopic.x"


def test_consumers_of_both_protocols_share_a_queue_of_a_virtual_topic() -> None:
    bench = OpenWireBench()
    client, stomp = bench.connect(), StompPeer(bench, WITH_VIRTUAL_TOPICS)
    reader = client.consume(queue("Consumer.A.VirtualTopic.x"))
    stomp.frame("SUBSCRIBE", "id:0", "destination:/queue/Consumer.A.VirtualTopic.x")
    client.publish(topic("VirtualTopic.x"), "0 1 2 3")
    assert (len(reader.take()), len(stomp.take())) == (2, 2)


def test_a_send_to_a_queue_of_a_virtual_topic_reaches_that_queue_alone() -> None:
    bench = OpenWireBench()
    client, stomp = bench.connect(), StompPeer(bench, WITH_VIRTUAL_TOPICS)
    first, second = (client.consume(queue(f"Consumer.{name}.VirtualTopic.x")) for name in "AB")
    stomp.frame("SEND", "destination:/queue/Consumer.A.VirtualTopic.x", body=b"one")
    assert (first.bodies(), second.bodies()) == ("one", "")


def test_without_the_option_such_a_queue_is_one_of_its_own_for_stomp() -> None:
    bench = OpenWireBench()
    stomp = StompPeer(bench)
    stomp.frame("SUBSCRIBE", "id:0", "destination:/queue/Consumer.A.VirtualTopic.x")
    assert bench.queue("Consumer.A.VirtualTopic.x").address.name == "Consumer.A.VirtualTopic.x"


def test_openwire_takes_the_rules_of_its_acceptor() -> None:
    bench = OpenWireBench(acceptor=replace(ACCEPTOR, virtual_topics=parse_virtual_topics("VTC.*.>;2")))
    client = bench.connect()
    reader, other = client.consume(queue("VTC.A.news.uk")), client.consume(queue("Consumer.A.VirtualTopic.x"))
    client.publish(topic("news.uk"), "x")
    client.publish(topic("VirtualTopic.x"), "y")
    assert (reader.bodies(), other.bodies()) == ("x", "")


@pytest.mark.parametrize(
    ("rules", "name", "found"),
    [
        ("Consumer.*.VirtualTopic.>;2", "Consumer.A.VirtualTopic.x.y", "VirtualTopic.x.y"),
        ("Consumer.*.VirtualTopic.>;2", "Consumer.A.VirtualTopic", ""),
        ("Consumer.*.VirtualTopic.>;2", "Consumer..VirtualTopic.x", ""),
        ("Consumer.*.VirtualTopic.>;2", "Consumer.A.Other.x", ""),
        ("Consumer.*.>;2", "Consumer.A.x", "x"),
        ("C.*.*.EE;3;selectorAware=false", "C.a.b.EE", "EE"),
        ("C.*.*.EE;3", "C.a.b.EE.x", ""),
        ("A.>;1 , B.*.>;2", "B.x.topic", "topic"),
        ("", "Consumer.A.VirtualTopic.x", ""),
    ],
)
def test_rules_of_virtual_topics(rules: str, name: str, found: str) -> None:
    assert virtual_topic_of(name, parse_virtual_topics(rules)) == found


@pytest.mark.parametrize(
    "text", ["Consumer.*.>", "Consumer.*.>;0", "A.>;2", "A..>;1", "A.>.B;1", "A.>;1;selectorAware=true"]
)
def test_a_rule_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="such as Consumer"):
        parse_virtual_topics(text)


# -- ids ---------------------------------------------------------------------------------------------------------------


def test_a_selector_finds_a_message_by_the_id_its_sender_gave_it() -> None:
    bench = OpenWireBench()
    client, stomp = bench.connect(), StompPeer(bench)
    first, second = client.text(A, "0"), client.text(A, "1")
    client.ok(first)
    client.ok(second)
    assert second.message_id is not None
    stomp.frame("SUBSCRIBE", "id:0", "destination:/queue/a", f"selector:JMSMessageID = '{second.message_id.key()}'")
    assert [frame.body for frame in stomp.take()] == [b"1"]


def test_messages_of_stomp_have_ids_with_one_prefix() -> None:
    bench = OpenWireBench()
    reader = bench.connect().consume(A)
    StompPeer(bench).frame("SEND", "destination:/queue/a", body=b"x")
    reader.take()
    key = reader.message_id(0).key()
    assert key.startswith("ID:")
    assert key.count("ID:") == 1


# -- dead letters ------------------------------------------------------------------------------------------------------


def test_a_dead_letter_names_where_it_was_in_artemis_s_profile_too() -> None:
    bench = OpenWireBench(address_settings={"#": {"dead_letter_address": "DLQ"}})
    client, stomp = bench.connect(), StompPeer(bench)
    graves = client.consume(queue("DLQ"))
    client.publish(A, "jms")
    stomp.frame("SEND", "destination:/queue/a", body=b"stomp")
    reader = client.consume(A)
    reader.take()
    client.ok(reader.ack(POISON_ACK, 1, first=0, count=2))
    for dispatch in graves.take():
        assert dispatch.message is not None
        assert dispatch.message.original_destination is not None
        assert dispatch.message.original_destination.qualified_name() == "queue://a"
        assert dispatch.message.destination is not None
        assert dispatch.message.destination.qualified_name() == "queue://DLQ"
    assert len(graves.got) == 2


# -- schedules ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AMQ_SCHEDULED_CRON", TypedValue(STRING_KIND, "0 * * * *")),
        ("AMQ_SCHEDULED_PERIOD", TypedValue(LONG_KIND, 1000)),
        ("AMQ_SCHEDULED_REPEAT", TypedValue(INT_KIND, 9)),
        ("AMQ_SCHEDULED_REPEAT", TypedValue(STRING_KIND, "9")),
    ],
)
def test_what_asks_to_be_repeated_is_refused_by_name(name: str, value: TypedValue) -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(A)
    command = client.text(A, "x")
    command.marshalled_properties = encode_map({"AMQ_SCHEDULED_DELAY": TypedValue(LONG_KIND, 1), name: value})
    exception = client.refused(command)
    assert code_of(exception) == "JMSException DMQ5274"
    assert name in (exception.message or "")
    bench.pass_time(10)
    assert reader.bodies() == ""


@pytest.mark.parametrize(
    "value", [TypedValue(INT_KIND, 0), TypedValue(STRING_KIND, ""), TypedValue(BOOLEAN_KIND, False)]
)
def test_repeated_no_time_is_no_wish(value: TypedValue) -> None:
    bench = OpenWireBench()
    client = bench.connect()
    command = client.text(A, "x")
    command.marshalled_properties = encode_map({"AMQ_SCHEDULED_REPEAT": value, "AMQ_SCHEDULED_CRON": value})
    client.ok(command)
    assert client.consume(A).bodies() == "x"
