"""stomp.py, unmodified, over STOMP 1.0, 1.1 and 1.2 against a whole broker on a journal."""

# BROKER-2

from typing import Any

import pytest
from stomp.utils import Frame

from tests.e2e.support import Client, RunningBroker

VERSIONS = ("1.0", "1.1", "1.2")
LATER_VERSIONS = ("1.1", "1.2")
WIDE = {"activemq.prefetchSize": "1000"}
every_version = pytest.mark.parametrize("version", VERSIONS)
later_versions = pytest.mark.parametrize("version", LATER_VERSIONS)


def redelivered(frames: list[Frame]) -> list[tuple[Any, str]]:
    return [(frame.body, frame.headers["redelivered"]) for frame in frames]


# -- bodies and headers ------------------------------------------------------------------------------------------


@every_version
def test_a_text_stays_text(broker: RunningBroker, version: str, name: str) -> None:
    with Client(broker.port, version, auto_content_length=False) as client:
        client.subscribe(f"/queue/{name}")
        client.send(f"/queue/{name}", "Grüße, 世界")
        assert client.bodies(1) == ["Grüße, 世界"]
        assert "content-length" not in client.inbox.messages[0].headers


@every_version
def test_bytes_stay_bytes(broker: RunningBroker, version: str, name: str) -> None:
    body = bytes(range(256)) * 4
    with Client(broker.port, version, auto_decode=False) as client:
        client.subscribe(f"/queue/{name}")
        client.send(f"/queue/{name}", body)
        assert client.bodies(1) == [body]
        assert client.inbox.messages[0].headers["content-length"] == "1024"


@every_version
def test_headers_come_back_as_they_were_sent(broker: RunningBroker, version: str, name: str) -> None:
    with Client(broker.port, version) as client:
        client.subscribe(f"/queue/{name}")
        client.connection.send(
            f"/queue/{name}",
            "x",
            content_type="text/plain",
            headers={"region": "Zürich", "correlation-id": "c1", "reply-to": "/queue/answers", "type": "order"},
        )
        client.bodies(1)
        headers = client.inbox.messages[0].headers
    assert headers["region"] == "Zürich"
    assert (headers["correlation-id"], headers["reply-to"], headers["type"]) == ("c1", "/queue/answers", "order")
    assert headers["content-type"] == "text/plain"
    assert headers["destination"] == f"/queue/{name}"
    assert headers["subscription"] == "s"
    assert headers["message-id"]
    assert (headers["redelivered"], headers["priority"]) == ("false", "4")


@later_versions
def test_colons_and_line_breaks_in_headers_are_escaped(broker: RunningBroker, version: str, name: str) -> None:
    value = "a:b\nc\\d" if version == "1.1" else "a:b\nc\\d\r"
    with Client(broker.port, version) as client:
        client.subscribe(f"/queue/{name}")
        client.connection.send(f"/queue/{name}", "x", headers={"odd": value})
        client.bodies(1)
        assert client.inbox.messages[0].headers["odd"] == value


@pytest.mark.parametrize("sender", VERSIONS)
@pytest.mark.parametrize("receiver", VERSIONS)
def test_every_version_reads_what_every_other_sent(
    broker: RunningBroker, sender: str, receiver: str, name: str
) -> None:
    with Client(broker.port, sender) as producer, Client(broker.port, receiver) as consumer:
        consumer.subscribe(f"/queue/{name}")
        producer.send(f"/queue/{name}", "hello", region="north")
        assert consumer.bodies(1) == ["hello"]
        assert consumer.inbox.messages[0].headers["region"] == "north"


# -- receipts ----------------------------------------------------------------------------------------------------


@every_version
def test_receipts_come_in_the_order_of_their_frames(broker: RunningBroker, version: str, name: str) -> None:
    with Client(broker.port, version) as client:
        wanted = [f"n{number}" for number in range(100)]
        for number, receipt in enumerate(wanted):
            persistent = "true" if number % 3 else "false"
            client.connection.send(f"/queue/{name}", "x", headers={"receipt": receipt, "persistent": persistent})
        client.inbox.wait(lambda inbox: len(inbox.receipts) == 100)
        assert client.inbox.receipts == wanted


@every_version
def test_disconnect_is_confirmed_after_all_before_it(broker: RunningBroker, version: str, name: str) -> None:
    with Client(broker.port, version) as client:
        client.connection.send(f"/queue/{name}", "x", headers={"receipt": "sent", "persistent": "true"})
        client.connection.disconnect(receipt="bye")
        client.inbox.wait(lambda inbox: "bye" in inbox.receipts)
        assert client.inbox.receipts == ["sent", "bye"]
        client.inbox.wait(lambda inbox: inbox.closed)


@every_version
def test_unsubscribing_ends_deliveries(broker: RunningBroker, version: str, name: str) -> None:
    with Client(broker.port, version) as client:
        client.subscribe(f"/queue/{name}")
        client.send(f"/queue/{name}", "one")
        assert client.bodies(1) == ["one"]
        client.connection.unsubscribe("s", receipt="off")
        client.confirmed("off")
        client.send(f"/queue/{name}", "two")
        client.subscribe("/queue/other", key="t")
        client.send("/queue/other", "three")
        assert client.bodies(2) == ["one", "three"]


# -- acknowledgement ---------------------------------------------------------------------------------------------


# ACK-1
@every_version
def test_auto_is_acknowledged_by_delivery(broker: RunningBroker, version: str, name: str) -> None:
    with Client(broker.port, version) as client:
        client.subscribe(f"/queue/{name}")
        client.send(f"/queue/{name}", "once")
        assert client.bodies(1) == ["once"]
        client.connection.disconnect(receipt="bye")
        client.inbox.wait(lambda inbox: inbox.closed)
    with Client(broker.port, version) as client:
        client.subscribe(f"/queue/{name}")
        client.nothing_more_comes(f"/queue/{name}", 0)


# ACK-1
@every_version
def test_client_acknowledges_all_up_to_that_message(broker: RunningBroker, version: str, name: str) -> None:
    with Client(broker.port, version) as client:
        client.subscribe(f"/queue/{name}", "client")
        for body in "abc":
            client.send(f"/queue/{name}", body)
        client.bodies(3)
        client.acknowledge(client.inbox.messages[1])
    with Client(broker.port, version) as client:
        client.subscribe(f"/queue/{name}", "client")
        client.nothing_more_comes(f"/queue/{name}", 1)
        assert redelivered(client.inbox.messages[:1]) == [("c", "true")]


# ACK-1
@every_version
def test_client_individual_acknowledges_one(broker: RunningBroker, version: str, name: str) -> None:
    with Client(broker.port, version) as client:
        client.subscribe(f"/queue/{name}", "client-individual")
        for body in "abc":
            client.send(f"/queue/{name}", body)
        client.bodies(3)
        client.acknowledge(client.inbox.messages[1])
    with Client(broker.port, version) as client:
        client.subscribe(f"/queue/{name}", "client-individual")
        client.nothing_more_comes(f"/queue/{name}", 2)
        assert redelivered(client.inbox.messages[:2]) == [("a", "true"), ("c", "true")]


@every_version
def test_what_was_not_acknowledged_comes_again_in_order(broker: RunningBroker, version: str, name: str) -> None:
    bodies = [f"m{number}" for number in range(20)]
    with Client(broker.port, version) as producer:
        for body in bodies:
            producer.send(f"/queue/{name}", body)
    with Client(broker.port, version) as client:
        client.subscribe(f"/queue/{name}", "client", **WIDE)
        assert client.bodies(20) == bodies
    with Client(broker.port, version) as client:
        client.subscribe(f"/queue/{name}", "client", **WIDE)
        client.bodies(20)
        assert redelivered(client.inbox.messages) == [(body, "true") for body in bodies]


@every_version
def test_a_prefetch_of_one_gives_one_at_a_time(broker: RunningBroker, version: str, name: str) -> None:
    with Client(broker.port, version) as slow, Client(broker.port, version) as quick:
        slow.subscribe(f"/queue/{name}", "client-individual", **{"activemq.prefetchSize": "1"})
        quick.subscribe(f"/queue/{name}", "client-individual", **{"activemq.prefetchSize": "100"})
        for number in range(10):
            slow.send(f"/queue/{name}", f"m{number}")
        quick.bodies(9)
        assert len(slow.inbox.messages) == 1
        slow.acknowledge(slow.inbox.messages[0])
        slow.send(f"/queue/{name}", "next")
        slow.send(f"/queue/{name}", "and next")
        slow.bodies(2)


# -- refusing ----------------------------------------------------------------------------------------------------


# ACK-4
@later_versions
def test_a_refused_message_comes_again_and_ends_as_a_dead_letter(
    broker: RunningBroker, version: str, name: str
) -> None:
    with Client(broker.port, version) as client, Client(broker.port, version) as undertaker:
        undertaker.subscribe("/queue/DLQ", "client")
        client.subscribe(f"/queue/{name}", "client-individual")
        client.send(f"/queue/{name}", name, region="north")
        for attempt in range(3):
            client.bodies(attempt + 1)
            client.acknowledge(client.inbox.messages[attempt], "nack")
        assert redelivered(client.inbox.messages) == [(name, "false"), (name, "true"), (name, "true")]
        undertaker.inbox.wait(lambda inbox: any(frame.body == name for frame in inbox.messages))
        dead = next(frame for frame in undertaker.inbox.messages if frame.body == name)
        undertaker.acknowledge(undertaker.inbox.messages[-1])
        client.nothing_more_comes(f"/queue/{name}", 3)
    assert (dead.headers["_AMQ_ORIG_ADDRESS"], dead.headers["_AMQ_ORIG_QUEUE"]) == (name, name)
    assert dead.headers["region"] == "north"


# ACK-4
@every_version
def test_a_message_that_kills_its_consumers_ends_as_a_dead_letter(
    broker: RunningBroker, version: str, name: str
) -> None:
    with Client(broker.port, version) as producer:
        producer.send(f"/queue/{name}", name)
    for _ in range(3):
        with Client(broker.port, version) as client:
            client.subscribe(f"/queue/{name}", "client")
            assert client.bodies(1) == [name]
    with Client(broker.port, version) as client:
        client.subscribe("/queue/DLQ", "client")
        client.inbox.wait(lambda inbox: any(frame.body == name for frame in inbox.messages))
        client.acknowledge(client.inbox.messages[-1])


# -- routing -----------------------------------------------------------------------------------------------------


# EXCL-3
@every_version
def test_higher_priorities_come_first(broker: RunningBroker, version: str, name: str) -> None:
    with Client(broker.port, version) as client:
        for body, priority in (("low", "1"), ("usual", "4"), ("high", "9"), ("second high", "9")):
            client.send(f"/queue/{name}", body, priority=priority)
        client.subscribe(f"/queue/{name}")
        assert client.bodies(4) == ["high", "second high", "usual", "low"]
        assert [frame.headers["priority"] for frame in client.inbox.messages] == ["9", "9", "4", "1"]


@every_version
def test_every_subscriber_of_a_topic_gets_a_copy_of_what_comes_later(
    broker: RunningBroker, version: str, name: str
) -> None:
    with Client(broker.port, version) as one, Client(broker.port, version) as other:
        one.send(f"/topic/{name}", "too early")
        one.subscribe(f"/topic/{name}")
        other.subscribe(f"/topic/{name}")
        one.send(f"/topic/{name}", "to all")
        assert one.bodies(1) == other.bodies(1) == ["to all"]


# EXCL-3
@every_version
def test_consumers_of_a_queue_share_its_messages(broker: RunningBroker, version: str, name: str) -> None:
    with Client(broker.port, version) as one, Client(broker.port, version) as other:
        one.subscribe(f"/queue/{name}")
        other.subscribe(f"/queue/{name}")
        for number in range(10):
            one.send(f"/queue/{name}", f"m{number}")
        one.inbox.wait(lambda inbox: len(inbox.messages) >= 5)
        other.inbox.wait(lambda inbox: len(inbox.messages) >= 5)
        assert sorted(frame.body for frame in one.inbox.messages + other.inbox.messages) == [
            f"m{number}" for number in range(10)
        ]


@every_version
def test_one_queue_of_a_multicast_address_can_be_named(broker: RunningBroker, version: str) -> None:
    with Client(broker.port, version) as client:
        client.subscribe("news::news.a", key="a")
        client.send("/topic/news", f"for both {version}")
        client.send("news::news.b", f"for b {version}")
        assert client.bodies(1) == [f"for both {version}"]
        client.subscribe("/topic/news::news.b", key="b")
        assert client.bodies(3)[1:] == [f"for both {version}", f"for b {version}"]


# RING-1
@every_version
def test_a_ring_keeps_the_newest(broker: RunningBroker, version: str) -> None:
    with Client(broker.port, version) as client:
        for body in "abcde":
            client.send(f"/queue/ring{version}", body)
        client.subscribe(f"/queue/ring{version}")
        assert client.bodies(3) == ["c", "d", "e"]
        client.nothing_more_comes(f"/queue/ring{version}", 3)


@every_version
def test_a_destination_type_stands_in_for_a_prefix(broker: RunningBroker, version: str, name: str) -> None:
    with Client(broker.port, version) as client:
        client.connection.send(name, "first", headers={"destination-type": "ANYCAST", "receipt": "sent"})
        client.confirmed("sent")
        client.subscribe(name, **{"subscription-type": "ANYCAST"})
        assert client.bodies(1) == ["first"]


# -- heart-beats -------------------------------------------------------------------------------------------------


@later_versions
def test_both_sides_beat_and_stay_connected(broker: RunningBroker, version: str) -> None:
    with Client(broker.port, version, heartbeats=(500, 500)) as client:
        assert client.inbox.connected["heart-beat"] == "500,500"
        # Its TTL is 1,000 ms: three beats of ours later it would be gone if its own were not seen.
        client.inbox.wait(lambda inbox: inbox.heart_beats >= 3)
        assert not client.inbox.errors
        assert not client.inbox.silences
        assert not client.inbox.closed
