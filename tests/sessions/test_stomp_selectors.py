"""The header ``selector``: who gets which message, and what a selector that can't be read is told."""

import pytest

from tests.sessions.support import StompBench


def send(bench: StompBench, body: str, *headers: str, to: str) -> None:
    bench.clients[0].frame("SEND", f"destination:{to}", *headers, body=body)


def both_colours(bench: StompBench, to: str) -> None:
    send(bench, "r1", "colour:red", to=to)
    send(bench, "b1", "colour:blue", to=to)
    send(bench, "r2", "colour:red", to=to)


def test_a_queue_keeps_what_a_selector_does_not_pick() -> None:
    bench = StompBench()
    bench.connect()
    client = bench.connect()
    client.frame("SUBSCRIBE", "id:1", "destination:/queue/a", "selector:colour = 'red'")
    both_colours(bench, "/queue/a")
    assert client.take_bodies() == "r1 r2"
    assert bench.queue("a").message_count == 1


@pytest.mark.parametrize("destination", ["/topic/t", "t"])
def test_what_a_subscription_to_a_topic_does_not_pick_never_enters_its_queue(destination: str) -> None:
    bench = StompBench()
    bench.connect()
    client = bench.connect()
    client.frame("SUBSCRIBE", "id:1", f"destination:{destination}", "selector:colour = 'red'")
    both_colours(bench, "/topic/t")
    assert client.take_bodies() == "r1 r2"
    (queue,) = bench.broker.queues.values()
    assert queue.message_count == 0
    # Where the destination says that it is a topic, the selector is looked at once, before the queue.
    assert [consumer.options.plain for consumer in queue.holders] == [destination == "/topic/t"]


def test_address_and_queue_are_picked_from_as_well() -> None:
    bench = StompBench()
    bench.connect()
    both_colours(bench, "/queue/a")
    client = bench.connect()
    client.frame("SUBSCRIBE", "id:1", "destination:a::a", "selector:colour = 'blue'")
    assert client.take_bodies() == "b1"
    assert bench.queue("a").message_count == 2


@pytest.mark.parametrize("header", ["selector:", "selector:  "])
def test_an_empty_selector_is_none(header: str) -> None:
    bench = StompBench()
    bench.connect()
    client = bench.connect()
    client.frame("SUBSCRIBE", "id:1", "destination:/queue/a", header)
    both_colours(bench, "/queue/a")
    assert client.take_bodies() == "r1 b1 r2"


def test_headers_are_strings_unless_a_selector_converts_them() -> None:
    bench = StompBench()
    bench.connect()
    plain, converting = bench.connect(), bench.connect()
    plain.frame("SUBSCRIBE", "id:1", "destination:/topic/t", "selector:price > 5")
    converting.frame("SUBSCRIBE", "id:1", "destination:/topic/t", "selector:convert_string_expressions\\cprice > 5")
    send(bench, "dear", "price:10", to="/topic/t")
    assert plain.take_bodies() == ""
    assert converting.take_bodies() == "dear"


def test_what_the_broker_knows_can_be_asked_for_too() -> None:
    bench = StompBench()
    bench.connect()
    client = bench.connect()
    client.frame("SUBSCRIBE", "id:1", "destination:/queue/a", "selector:JMSPriority > 5 AND JMSCorrelationID = 'c'")
    send(bench, "low", "correlation-id:c", to="/queue/a")
    send(bench, "high", "correlation-id:c", "priority:9", to="/queue/a")
    assert client.take_bodies() == "high"


def test_the_error_points_at_the_character() -> None:
    bench = StompBench()
    client = bench.connect()
    client.frame("SUBSCRIBE", "id:1", "destination:/queue/a", "selector:colour = = 'red'", "receipt:7")
    error = client.error()
    assert "DMQ5124" in error.headers["message"]
    assert "header selector of SUBSCRIBE" in error.headers["message"]
    assert error.headers["receipt-id"] == "7"
    sentence, line, caret = error.body.decode().rstrip("\n").split("\n")
    assert "selector" in sentence
    assert line.strip() == "colour = = 'red'"
    assert line[caret.index("^")] == "="
    assert "a" not in bench.broker.queues


def test_a_selector_of_nine_thousand_characters_is_refused() -> None:
    client = StompBench().connect()
    client.frame("SUBSCRIBE", "id:1", "destination:/queue/a", "selector:a = '" + "x" * 9_000 + "'")
    error = client.error()
    assert b"9,006 characters" in error.body
    assert len(error.body) < 500
