"""Queues whose names are wildcards: nobody makes one that gathers what others are sent, without having said so."""

import pytest

from delosmq.model.message import ANYCAST
from delosmq.model.settings import QueueSettings
from tests.sessions.openwire.support import INVALID_DESTINATION, OpenWireBench, change, queue, topic

WILD = ["ws.>", "ws.*", ">", "ws.#", "*.ws", "plain,ws.>"]


@pytest.mark.parametrize("name", WILD)
def test_a_send_to_a_wildcard_is_refused_and_makes_nothing(name: str) -> None:
    bench = OpenWireBench()
    client = bench.connect()
    exception = client.refused(client.text(queue(name), "m1"))
    assert exception.class_name == INVALID_DESTINATION
    assert "DMQ5240" in (exception.message or "")
    assert name.rpartition(",")[2] in (exception.message or "")
    assert "DMQ5240" in (client.refused(client.producer_info(queue(name))).message or "")
    assert not bench.broker.queues


def test_no_message_comes_twice_after_such_a_send() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(queue("ws.>"))
    client.refused(client.text(queue("ws.>"), "m0"))
    client.publish(queue("ws.a"), "m1")
    assert reader.bodies() == "m1"


@pytest.mark.parametrize("name", ["a#b", "a>b.c", "C#.jobs", "a.*x"])
def test_within_a_word_such_letters_are_letters(name: str) -> None:
    bench = OpenWireBench()
    client = bench.connect()
    client.publish(queue(name), "m1")
    assert client.consume(queue(name)).bodies() == "m1"


def test_a_consumer_or_a_client_that_makes_destinations_does_not_make_one_either() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    assert "DMQ5240" in (client.refused(client.consumer_info(queue("ws.#"))).message or "")
    assert "DMQ5240" in (client.refused(change(client, queue("ws.#"), 0)).message or "")
    assert not bench.broker.queues


def test_one_that_an_operator_made_can_be_read_and_is_sent_to_by_its_full_name() -> None:
    bench = OpenWireBench(queues=(QueueSettings("ws.#", "ws.#", ANYCAST),))
    client = bench.connect()
    reader = client.consume(queue("ws.#"))
    client.publish(queue("ws.a"), "m1")
    client.publish(queue("ws.#::ws.#"), "m2")
    assert reader.bodies() == "m1 m2"
    client.refused(client.text(queue("ws.#"), "m3"))


def test_a_topic_with_wildcards_gathers_nothing() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(topic("ws.>"))
    client.publish(topic("ws.>"), "m1")
    client.publish(topic("ws.a"), "m2")
    assert reader.bodies() == "m1 m2"
