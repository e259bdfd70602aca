"""SEND, SUBSCRIBE, MESSAGE, acknowledgement and return, on a real engine."""

from dataclasses import replace

import pytest

from delosmq.model.ids import WallMs
from delosmq.model.message import ANYCAST, MULTICAST, TEXT_BODY, Message
from delosmq.model.settings import QueueSettings
from tests.sessions.support import ACCEPTOR, Client, StompBench

VERSIONS = ("1.0", "1.1", "1.2")


def ack_headers(client: Client, frame: object) -> tuple[str, ...]:
    headers: dict[str, str] = frame.headers  # type: ignore[attr-defined]
    if client.version == 12:
        return (f"id:{headers['ack']}",)
    if client.version == 11:
        return (f"message-id:{headers['message-id']}", f"subscription:{headers['subscription']}")
    return (f"message-id:{headers['message-id']}",)


# -- sending and receiving ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sender", VERSIONS)
@pytest.mark.parametrize("receiver", VERSIONS)
def test_headers_travel_between_versions(sender: str, receiver: str) -> None:
    bench = StompBench()
    consumer = bench.connect(receiver)
    consumer.frame("SUBSCRIBE", "id:s", "destination:/queue/a")
    producer = bench.connect(sender)
    plain = "correlation-id:77" if sender == "1.0" else "correlation-id:a\\cb"
    producer.frame("SEND", "destination:/queue/a", plain, "x-y:z w", "receipt:1", body="hello")
    (message,) = consumer.take()
    assert message.headers["correlation-id"] == ("77" if sender == "1.0" else "a:b")
    assert message.headers["x-y"] == "z w"
    assert message.headers["destination"] == "/queue/a"
    assert message.headers["subscription"] == "s"
    assert message.body == b"hello"
    assert "receipt" not in message.headers


def test_a_message_says_what_the_broker_knows_of_it() -> None:
    bench = StompBench()
    client = bench.connect()
    client.frame("SUBSCRIBE", "id:s", "destination:/queue/a", "ack:client")
    client.frame(
        "SEND", "destination:/queue/a", "persistent:true", "priority:7", "timestamp:5", "message-id:x", body="b"
    )
    (message,) = client.take()
    sequence = message.headers["message-id"]
    assert message.headers == {
        "subscription": "s",
        "message-id": sequence,
        "ack": f"1-{sequence}",
        "redelivered": "false",
        "destination": "/queue/a",
        "persistent": "true",
        "priority": "7",
        "timestamp": str(bench.clock.now_ms),
    }


def test_bytes_stay_bytes_and_text_stays_text() -> None:
    client = StompBench().connect()
    client.frame("SUBSCRIBE", "id:s", "destination:/queue/a")
    client.send(b"SEND\ndestination:/queue/a\ncontent-length:3\n\na\0b\0")
    client.send("SEND\ndestination:/queue/a\n\ntext\0")
    first, second = client.take()
    assert (first.body, first.headers["content-length"]) == (b"a\0b", "3")
    assert second.body == b"text"
    assert "content-length" not in second.headers


def test_priorities_go_first() -> None:
    client = StompBench().connect()
    for priority in (1, 9, 4):
        client.frame("SEND", "destination:/queue/a", f"priority:{priority}", body=str(priority))
    client.frame("SUBSCRIBE", "id:s", "destination:/queue/a")
    assert client.take_bodies() == "9 4 1"


def test_a_topic_reaches_all_its_subscribers_and_a_queue_one_of_them() -> None:
    bench = StompBench()
    clients = [bench.connect() for _ in range(2)]
    for client in clients:
        client.frame("SUBSCRIBE", "id:t", "destination:/topic/t")
        client.frame("SUBSCRIBE", "id:q", "destination:/queue/q")
    for body in ("1", "2"):
        clients[0].frame("SEND", "destination:/topic/t", body="t" + body)
        clients[0].frame("SEND", "destination:/queue/q", body="q" + body)
    got = [client.take_bodies().split() for client in clients]
    assert [body for body in got[0] if body[0] == "t"] == ["t1", "t2"]
    assert [body for body in got[1] if body[0] == "t"] == ["t1", "t2"]
    assert sorted(body for bodies in got for body in bodies if body[0] == "q") == ["q1", "q2"]


@pytest.mark.parametrize("header", ["destination-type:ANYCAST", "destination-type:anycast"])
def test_without_a_prefix_the_header_picks_the_routing_type(header: str) -> None:
    bench = StompBench()
    client = bench.connect()
    client.frame("SEND", "destination:a", header, body="1")
    assert bench.queue("a").settings.routing_type == ANYCAST


@pytest.mark.parametrize("header", ["subscription-type:ANYCAST", "destination-type:ANYCAST"])
def test_a_subscription_may_pick_it_too(header: str) -> None:
    bench = StompBench()
    client = bench.connect()
    client.frame("SUBSCRIBE", "id:1", "destination:a", header)
    assert bench.queue("a").settings.routing_type == ANYCAST


def test_without_either_the_address_settings_decide() -> None:
    bench = StompBench(address_settings={"a": {"default_address_routing_type": ANYCAST}})
    client = bench.connect()
    client.frame("SUBSCRIBE", "id:1", "destination:a")
    client.frame("SUBSCRIBE", "id:2", "destination:b")
    assert bench.queue("a").settings.routing_type == ANYCAST
    assert "b" not in bench.broker.queues
    assert len(bench.broker.addresses["b"].multicast) == 1


def test_a_queue_of_an_address_is_addressed_directly() -> None:
    queues = tuple(QueueSettings(name, "orders", MULTICAST) for name in ("orders.work", "orders.archive"))
    bench = StompBench(queues=queues)
    client = bench.connect()
    client.frame("SEND", "destination:/topic/orders", body="both")
    client.frame("SEND", "destination:orders::orders.work", body="one")
    client.frame("SUBSCRIBE", "id:1", "destination:orders::orders.work")
    assert client.take_bodies() == "both one"
    assert bench.queue("orders.archive").message_count == 1


def test_a_message_of_another_protocol_goes_through_the_hub_form() -> None:
    bench = StompBench()
    client = bench.connect("1.1")
    client.frame("SUBSCRIBE", "id:1", "destination:/queue/a")
    # What STOMP 1.2 wrote, under the tag of a version that does not exist here.
    bench.broker.producers.send(
        Message("a", "stomp/13", b"x:1\n", b"b", body_kind=TEXT_BODY, timestamp_ms=WallMs(1)), routing=ANYCAST
    )
    bench.tick()
    (message,) = client.take()
    assert (message.headers["x"], message.headers["destination"]) == ("1", "/queue/a")


# -- acknowledging -----------------------------------------------------------------------------------------------------


def three_messages(bench: StompBench, version: str, mode: str) -> tuple[Client, list[object]]:
    client = bench.connect(version)
    client.frame("SUBSCRIBE", "id:s", "destination:/queue/a", f"ack:{mode}")
    for body in "123":
        client.frame("SEND", "destination:/queue/a", body=body)
    frames = client.take()
    assert len(frames) == 3
    return client, list(frames)


# ACK-1
@pytest.mark.parametrize("version", VERSIONS)
def test_client_acknowledges_everything_up_to_the_message(version: str) -> None:
    bench = StompBench()
    client, frames = three_messages(bench, version, "client")
    client.frame("ACK", *ack_headers(client, frames[1]), "receipt:a")
    assert [frame.headers["receipt-id"] for frame in client.take()] == ["a"]
    assert bench.queue("a").message_count == 1


# ACK-1
@pytest.mark.parametrize("version", VERSIONS)
def test_client_individual_acknowledges_one(version: str) -> None:
    bench = StompBench()
    client, frames = three_messages(bench, version, "client-individual")
    client.frame("ACK", *ack_headers(client, frames[1]))
    assert bench.queue("a").message_count == 2
    client.frame("DISCONNECT")
    other = bench.connect()
    other.frame("SUBSCRIBE", "id:s", "destination:/queue/a")
    assert other.take_bodies() == "1 3"


@pytest.mark.parametrize("version", VERSIONS)
def test_nack_returns_a_message_which_comes_again_as_redelivered(version: str) -> None:
    bench = StompBench()
    client, frames = three_messages(bench, version, "client-individual")
    client.frame("NACK", *ack_headers(client, frames[0]), "receipt:n")
    receipt, again = client.take()
    assert receipt.headers["receipt-id"] == "n"
    assert (again.body, again.headers["redelivered"]) == (b"1", "true")
    client.frame("ACK", *ack_headers(client, again))
    assert bench.queue("a").message_count == 2


# ACK-4
def test_a_message_that_fails_too_often_is_a_dead_letter_that_says_where_it_came_from() -> None:
    bench = StompBench(
        queues=(QueueSettings("DLQ", "DLQ"),),
        address_settings={"#": {"dead_letter_address": "DLQ", "max_delivery_attempts": 2}},
    )
    client = bench.connect()
    client.frame("SUBSCRIBE", "id:s", "destination:/queue/a", "ack:client-individual")
    lies = [f"_AMQ_ORIG_{name}:lie" for name in ("ADDRESS", "QUEUE", "MESSAGE_ID", "ROUTING_TYPE")]
    client.frame("SEND", "destination:/queue/a", *lies, "x:1", "content-length:1", body="p")
    for _ in range(2):
        (frame,) = client.take()
        client.frame("NACK", *ack_headers(client, frame))
    assert client.take() == []
    client.frame("SUBSCRIBE", "id:d", "destination:/queue/DLQ")
    (dead,) = client.take()
    assert dead.headers["destination"] == "/queue/DLQ"
    assert dead.headers["_AMQ_ORIG_ADDRESS"] == "a"
    assert dead.headers["_AMQ_ORIG_QUEUE"] == "a"
    assert "lie" not in dead.headers.values()
    assert dead.headers["x"] == "1"
    assert dead.body == b"p"


# ACK-1
def test_auto_is_acknowledged_when_it_is_written() -> None:
    bench = StompBench()
    client = bench.connect()
    client.frame("SUBSCRIBE", "id:s", "destination:/queue/a")
    client.reads = False
    client.frame("SEND", "destination:/queue/a", body="1")
    assert bench.queue("a").message_count == 1
    client.reads = True
    bench.tick()
    assert bench.queue("a").message_count == 0
    assert client.take_bodies() == "1"


def test_auto_returns_what_was_never_written_as_if_it_had_not_been_delivered() -> None:
    bench = StompBench()
    client = bench.connect()
    client.frame("SUBSCRIBE", "id:s", "destination:/queue/a")
    client.reads = False
    client.frame("SEND", "destination:/queue/a", body="1")
    client.session.connection_lost()
    bench.clients.remove(client)
    other = bench.connect()
    other.frame("SUBSCRIBE", "id:s", "destination:/queue/a")
    (message,) = other.take()
    assert message.headers["redelivered"] == "false"


@pytest.mark.parametrize("leave", ["DISCONNECT", "UNSUBSCRIBE", "lost", "eof"])
def test_who_leaves_gives_back_in_order_and_only_what_was_seen_is_redelivered(leave: str) -> None:
    bench = StompBench()
    client = bench.connect()
    client.frame("SUBSCRIBE", "id:s", "destination:/queue/a", "ack:client")
    client.frame("SEND", "destination:/queue/a", body="1")
    client.reads = False
    client.frame("SEND", "destination:/queue/a", body="2")
    if leave == "lost":
        client.session.connection_lost()
        bench.clients.remove(client)
    elif leave == "eof":
        client.session.handle_eof()
        assert client.host.finished
    else:
        client.frame(leave, "id:s")
    other = bench.connect()
    other.frame("SUBSCRIBE", "id:s", "destination:/queue/a")
    assert [(m.body, m.headers["redelivered"]) for m in other.take()] == [(b"1", "true"), (b"2", "false")]


def test_what_was_not_written_is_not_sent_after_unsubscribing() -> None:
    bench = StompBench()
    client = bench.connect()
    client.frame("SUBSCRIBE", "id:s", "destination:/queue/a", "ack:client")
    client.reads = False
    client.frame("SEND", "destination:/queue/a", "receipt:1", body="1")
    client.frame("UNSUBSCRIBE", "id:s", "receipt:2")
    client.reads = True
    bench.tick()
    assert [frame.command for frame in client.take()] == ["RECEIPT", "RECEIPT"]


def test_two_1_0_subscriptions_may_hold_the_same_message() -> None:
    queues = tuple(QueueSettings(name, "t", MULTICAST) for name in ("t.1", "t.2"))
    bench = StompBench(queues=queues)
    client = bench.connect("1.0")
    for name in ("t::t.1", "t::t.2"):
        client.frame("SUBSCRIBE", f"destination:{name}", "ack:client")
    client.frame("SEND", "destination:/topic/t", body="x")
    frames = client.take()
    assert len({frame.headers["message-id"] for frame in frames}) == 2
    for frame in frames:
        assert "subscription" not in frame.headers
        client.frame("ACK", *ack_headers(client, frame))
    assert [bench.queue(name).message_count for name in ("t.1", "t.2")] == [0, 0]
    client.frame("UNSUBSCRIBE", "destination:t::t.1", "receipt:u")
    assert client.take()[0].headers["receipt-id"] == "u"


# -- credit ------------------------------------------------------------------------------------------------------------


def in_delivery(headers: tuple[str, ...], window_bytes: int = 10_240) -> int:
    bench = StompBench(acceptor=replace(ACCEPTOR, stomp_consumer_window_bytes=window_bytes))
    client = bench.connect()
    for _ in range(30):
        client.feed("SEND\ndestination:/queue/a\n\n" + "x" * 500 + "\0")
    client.frame("SUBSCRIBE", "id:s", "destination:/queue/a", *headers)
    return bench.queue("a").delivering.count


def test_a_client_subscription_has_a_window_of_bytes() -> None:
    # 523 bytes each: 500 of body, 23 of head. Twenty make 10,460.
    assert in_delivery(("ack:client",)) == 20
    assert in_delivery(("ack:client", "consumer-window-size:2000")) == 4


@pytest.mark.parametrize("window", ["0", "1"])
def test_a_window_smaller_than_a_message_lets_one_through_at_a_time(window: str) -> None:
    assert in_delivery(("ack:client", f"consumer-window-size:{window}")) == 1


def test_a_prefetch_counts_messages() -> None:
    assert in_delivery(("ack:client-individual", "activemq.prefetchSize:3")) == 3


def test_there_may_be_no_window() -> None:
    assert in_delivery(("ack:client", "consumer-window-size:-1")) == 30
    assert in_delivery(("ack:client",), window_bytes=-1) == 30


# ACK-7
def test_a_peer_that_does_not_read_stops_its_own_deliveries() -> None:
    bench = StompBench(acceptor=replace(ACCEPTOR, outbox_limit_bytes=3_000))
    slow = bench.connect()
    slow.frame("SUBSCRIBE", "id:s", "destination:/queue/a")
    slow.reads = False
    producer = bench.connect()
    for _ in range(30):
        producer.feed("SEND\ndestination:/queue/a\n\n" + "x" * 500 + "\0")
    bench.tick()
    assert bench.queue("a").delivering.count == 4
    fast = bench.connect()
    fast.frame("SUBSCRIBE", "id:s", "destination:/queue/a")
    assert len(fast.take()) == 26
    slow.reads = True
    producer.frame("SEND", "destination:/queue/a", body="y")
    bench.tick()
    assert bench.queue("a").message_count == 0


def test_a_peer_that_reads_again_gets_the_rest() -> None:
    bench = StompBench(acceptor=replace(ACCEPTOR, outbox_limit_bytes=2_000))
    client = bench.connect()
    client.frame("SUBSCRIBE", "id:s", "destination:/queue/a")
    client.reads = False
    for _ in range(30):
        client.feed("SEND\ndestination:/queue/a\n\n" + "x" * 500 + "\0")
    bench.tick()
    client.reads = True
    bench.tick()
    assert len(client.take()) == 30
    assert bench.queue("a").message_count == 0
