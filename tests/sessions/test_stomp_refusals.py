"""Everything a peer can do wrong gets one ERROR that names it, ends that connection, and nobody else notices."""

# BROKER-4

from dataclasses import replace

import pytest

from delosmq.model.message import ANYCAST
from delosmq.model.settings import QueueSettings, SecurityMatch
from delosmq.security.access import PERMISSIONS
from tests.sessions.support import ACCEPTOR, EVERYTHING, PASSWORD, USER, StompBench

SEND = ("SEND", "destination:/queue/a")
SUBSCRIBE = ("SUBSCRIBE", "id:9", "destination:/queue/a")

REPEATED = ("AMQ_SCHEDULED_PERIOD", "AMQ_SCHEDULED_REPEAT", "AMQ_SCHEDULED_CRON")


def bystander_still_works(bench: StompBench) -> None:
    client = bench.clients[0]
    client.frame("SEND", "destination:/queue/quiet", "receipt:fine", body="x")
    assert [f.headers["receipt-id"] for f in client.take() if f.command == "RECEIPT"] == ["fine"]
    assert not client.host.finished


@pytest.mark.parametrize("name", REPEATED)
def test_repeated_delivery_is_refused_with_a_remedy(name: str) -> None:
    bench = StompBench()
    bench.connect()
    client = bench.connect()
    client.frame(*SEND, f"{name}:1", "receipt:7")
    error = client.error()
    assert f"the header {name} of SEND asks for repeated delivery" in error.headers["message"]
    # What to do is in the body alone, so that nobody reads all of it twice.
    assert error.headers["message"].endswith("which this broker does not do")
    assert error.body.startswith(f"{error.headers['message']}: send once with AMQ_SCHEDULED_DELAY".encode())
    assert error.headers["receipt-id"] == "7"
    assert name.encode() in error.body
    assert "a" not in bench.broker.queues
    bystander_still_works(bench)


@pytest.mark.parametrize(
    "frame, named",
    [
        (("SUBSCRIBE", "id:9", "destination:/remote-temp-queue/c1.a"), "destination"),
        ((*SEND, "expires:soon"), "expires"),
        ((*SEND, "expires:-1"), "expires"),
        ((*SEND, f"expires:{2**63}"), "expires"),
        ((*SEND, "AMQ_SCHEDULED_DELAY:1s"), "AMQ_SCHEDULED_DELAY"),
        ((*SEND, "AMQ_SCHEDULED_TIME:-5"), "AMQ_SCHEDULED_TIME"),
        ((*SEND, "_AMQ_SCHED_DELIVERY:x"), "_AMQ_SCHED_DELIVERY"),
        ((*SEND, "JMSXGroupID:g", "JMSXGroupSeq:one"), "JMSXGroupSeq"),
        ((*SEND, "JMSXGroupID:g", f"JMSXGroupSeq:{2**31}"), "JMSXGroupSeq"),
        ((*SEND, "JMSXGroupID:" + "g" * 1_025), "JMSXGroupID"),
        ((*SEND, "_AMQ_DUPL_ID:" + "d" * 1_025), "_AMQ_DUPL_ID"),
        ((*SEND, "transaction:none"), "transaction"),
        (("BEGIN",), "transaction"),
        (("BEGIN", "transaction:"), "transaction"),
        (("COMMIT",), "transaction"),
        (("COMMIT", "transaction:none"), "transaction"),
        (("ABORT",), "transaction"),
        (("ABORT", "transaction:none"), "transaction"),
        ((*SUBSCRIBE, "selector:price >"), "selector"),
        ((*SUBSCRIBE, "no-local:maybe"), "no-local"),
        ((*SUBSCRIBE, "activemq.noLocal:maybe"), "activemq.noLocal"),
        ((*SUBSCRIBE, "activemq.exclusive:1"), "activemq.exclusive"),
        ((*SUBSCRIBE, "activemq.priority:high"), "activemq.priority"),
        ((*SUBSCRIBE, "activemq.priority:128"), "activemq.priority"),
        ((*SUBSCRIBE, "browser:perhaps"), "browser"),
        ((*SUBSCRIBE, "durable-subscription-name:n"), "durable-subscription-name"),
        (("UNSUBSCRIBE", "durable-subscription-name:n"), "durable-subscription-name"),
        (("SEND",), "destination"),
        (("SEND", "destination:"), "destination"),
        (("SEND", "destination:/queue/"), "destination"),
        (("SEND", "destination:a::"), "destination"),
        (("SEND", "destination:::q"), "destination"),
        (("SEND", "destination:" + "x" * 2_000), "destination"),
        (("SEND", "destination:a", "destination-type:BOTH"), "destination-type"),
        (("SEND", "destination:/queue/a", "priority:10"), "priority"),
        (("SEND", "destination:/queue/a", "priority:high"), "priority"),
        (("SEND", "destination:/queue/a", "persistent:yes"), "persistent"),
        (("SUBSCRIBE", "id:9"), "destination"),
        (("SUBSCRIBE", "destination:/queue/a"), "id"),
        (("SUBSCRIBE", "id:s", "destination:/queue/a"), "id"),
        (("SUBSCRIBE", "id:9", "destination:/queue/a", "ack:never"), "ack"),
        (("SUBSCRIBE", "id:9", "destination:/queue/a", "consumer-window-size:-2"), "consumer-window-size"),
        (("SUBSCRIBE", "id:9", "destination:/queue/a", "consumer-window-size:"), "consumer-window-size"),
        (("SUBSCRIBE", "id:9", "destination:/queue/a", "activemq.prefetchSize:0"), "activemq.prefetchSize"),
        (("SUBSCRIBE", "id:9", "destination:/queue/a", "subscription-type:SOME"), "subscription-type"),
        (("UNSUBSCRIBE",), "id"),
        (("UNSUBSCRIBE", "id:unknown"), "id"),
        (("ACK",), "id"),
        (("ACK", "id:"), "id"),
        (("ACK", "id:1-999"), "id"),
        (("ACK", "id:99-1"), "id"),
        (("NACK", "id:" + "9" * 5_000), "id"),
    ],
    ids=lambda value: "-".join(value)[:60] if isinstance(value, tuple) else None,
)
def test_a_wrong_header_is_named(frame: tuple[str, ...], named: str) -> None:
    bench = StompBench()
    bench.connect()
    client = bench.connect()
    client.frame("SUBSCRIBE", "id:s", "destination:/queue/s")
    client.frame(*frame, "receipt:7")
    error = client.error()
    assert f"header {named}" in error.headers["message"]
    assert error.headers["receipt-id"] == "7"
    assert len(error.headers["message"]) < 500
    bystander_still_works(bench)


@pytest.mark.parametrize(
    "sent",
    [
        b"FLY\n\n\0",
        b"MESSAGE\n\n\0",
        b"send\n\n\0",
        b"\x16\x03\x01\x02\n\n\0",
        b"SEND\nno colon here\n\n\0",
        b"SEND\nx:\\t\n\n\0",
        b"SEND\ncontent-length:no\n\n\0",
        b"SEND\ndestination:/queue/a\ncontent-length:2\n\nabc\0",
        b"SEND\ncontent-length:99999999999\n\n",
        b"SEND\nx:" + b"y" * 70_000 + b"\n\n\0",
        b"SEND\n" + b"".join(b"h%d:v\n" % i for i in range(1_001)) + b"\n\0",
        b"SEND\nx:\xff\xfe\n\n\0",
        b"SUBSCRIBE\nid:1\ndestination:/queue/a\n\nbody\0",
    ],
)
def test_malformed_and_oversized_frames_end_their_connection_and_no_other(sent: bytes) -> None:
    bench = StompBench()
    bench.connect()
    client = bench.connect()
    client.feed(b"SEND\ndestination:/queue/a\nreceipt:before\n\nx\0" + sent + b"SEND\ndestination:/queue/a\n\nx\0")
    bench.tick()
    before, error = client.take()
    assert before.headers["receipt-id"] == "before"
    assert error.command == "ERROR"
    assert error.headers["message"].startswith("DMQ50") or error.headers["message"].startswith("DMQ5107")
    assert len(error.body) > 40
    assert client.host.finished
    assert bench.queue("a").message_count == 1
    bystander_still_works(bench)


def test_an_acknowledgement_counts_once() -> None:
    client = StompBench().connect()
    client.frame("SUBSCRIBE", "id:s", "destination:/queue/a", "ack:client")
    client.frame("SEND", "destination:/queue/a", body="x")
    (message,) = client.take()
    client.frame("ACK", f"id:{message.headers['ack']}")
    assert client.take() == []
    client.frame("ACK", f"id:{message.headers['ack']}")
    assert "id" in client.error().headers["message"]


def test_auto_has_nothing_to_acknowledge() -> None:
    client = StompBench().connect("1.1")
    client.frame("SUBSCRIBE", "id:s", "destination:/queue/a")
    client.frame("SEND", "destination:/queue/a", body="x")
    (message,) = client.take()
    client.frame("ACK", f"message-id:{message.headers['message-id']}", "subscription:s")
    assert "message-id" in client.error().headers["message"]


def test_another_connections_delivery_can_not_be_acknowledged() -> None:
    bench = StompBench()
    owner = bench.connect()
    owner.frame("SUBSCRIBE", "id:s", "destination:/queue/a", "ack:client")
    owner.frame("SEND", "destination:/queue/a", body="x")
    (message,) = owner.take()
    thief = bench.connect()
    thief.frame("ACK", f"id:{message.headers['ack']}")
    thief.error()
    assert bench.queue("a").message_count == 1


def test_what_an_ended_connection_held_comes_back() -> None:
    bench = StompBench()
    client = bench.connect()
    client.frame("SUBSCRIBE", "id:s", "destination:/queue/a", "ack:client")
    client.frame("SEND", "destination:/queue/a", body="x")
    client.take()
    client.frame("FLY")
    client.error()
    assert bench.queue("a").pending.count == 1


def test_subscriptions_are_limited() -> None:
    client = StompBench(acceptor=replace(ACCEPTOR, max_subscriptions=2)).connect()
    for number in range(3):
        client.frame("SUBSCRIBE", f"id:{number}", "destination:/queue/a")
    assert "2 subscriptions" in client.error().headers["message"]


def test_a_queue_takes_no_more_consumers_than_it_may() -> None:
    bench = StompBench(queues=(QueueSettings("a", "a", max_consumers=1),))
    bench.connect().frame("SUBSCRIBE", "id:1", "destination:/queue/a")
    client = bench.connect()
    client.frame("SUBSCRIBE", "id:1", "destination:/queue/a", "receipt:s")
    assert client.error().headers["receipt-id"] == "s"


def test_when_a_queue_is_deleted_its_consumers_are_told() -> None:
    bench = StompBench()
    client = bench.connect()
    client.frame("SUBSCRIBE", "id:1", "destination:/queue/a")
    client.frame("SUBSCRIBE", "id:2", "destination:/queue/a")
    bench.broker.resources.delete_queue("a")
    bench.tick()
    assert "'a' was deleted" in client.error().headers["message"]


def test_a_frame_that_is_refused_ends_the_conversation() -> None:
    bench = StompBench()
    client = bench.connect()
    client.send("FLY\n\n\0SEND\ndestination:/queue/a\n\nx\0")
    client.send("SEND\ndestination:/queue/a\n\nx\0")
    assert [frame.command for frame in client.take()] == ["ERROR"]
    assert "a" not in bench.broker.queues


# -- permissions -------------------------------------------------------------------------------------------------------


def allowed(*permissions: str) -> SecurityMatch:
    return SecurityMatch("#", {permission: frozenset({"all"}) for permission in permissions})


CREATING_SEND = ("send", "createAddress", "createDurableQueue")
CREATING_CONSUME = ("consume", "createAddress", "createDurableQueue", "createNonDurableQueue")


@pytest.mark.parametrize(
    "frame, needed",
    [
        (("SEND", "destination:/queue/a"), CREATING_SEND),
        (("SEND", "destination:/topic/a"), ("send", "createAddress")),
        (("SUBSCRIBE", "id:1", "destination:/queue/a"), ("consume", "createAddress", "createDurableQueue")),
        (("SUBSCRIBE", "id:1", "destination:/topic/a"), ("consume", "createAddress", "createNonDurableQueue")),
    ],
)
def test_each_permission_is_needed_and_together_they_suffice(frame: tuple[str, ...], needed: tuple[str, ...]) -> None:
    for missing in needed:
        client = StompBench(security=(allowed(*(p for p in PERMISSIONS if p != missing)),)).connect()
        client.frame(*frame)
        message = client.error().headers["message"]
        assert f"'{missing}'" in message
        assert "'a'" in message
    client = StompBench(security=(allowed(*needed),)).connect()
    client.frame(*frame, "receipt:fine")
    assert client.take()[0].headers["receipt-id"] == "fine"


def test_nothing_is_created_for_who_may_send_only() -> None:
    bench = StompBench(security=(allowed("send", "consume"),), queues=(QueueSettings("a", "a"),))
    client = bench.connect()
    client.frame("SEND", "destination:/queue/a", "receipt:fine", body="x")
    assert client.take()[0].headers["receipt-id"] == "fine"
    client.frame("SUBSCRIBE", "id:1", "destination:/queue/a", "receipt:sub")
    assert client.take_bodies() == "x"
    bench.broker.resources.delete_queue("a")
    bench.tick()
    client = bench.connect()
    client.frame("SEND", "destination:/queue/b", body="x")
    assert "createAddress" in client.error().headers["message"]
    assert "b" not in bench.broker.addresses


def test_the_most_specific_match_decides() -> None:
    bench = StompBench(security=(EVERYTHING, SecurityMatch("secret.#", {})))
    client = bench.connect()
    client.frame("SEND", "destination:/queue/open", "receipt:1", body="x")
    assert client.take()[0].command == "RECEIPT"
    client.frame("SEND", "destination:/queue/secret.x", body="x")
    assert "'send'" in client.error().headers["message"]


@pytest.mark.parametrize("name", ["outer::inner", "new.address::new.queue"])
def test_roles_of_a_reload_count_for_the_first_command_of_an_open_connection(name: str) -> None:
    bench = StompBench()
    access = bench.services.access
    stored = access.attempt(USER, "").stored
    bench.broker.resources.create_queue(QueueSettings("inner", "outer", ANYCAST))
    loses = bench.connect()
    access.reload({USER: stored}, {}, (EVERYTHING,))
    loses.frame("SUBSCRIBE", "id:0", f"destination:{name}", "receipt:r")
    assert "DMQ1001" in loses.error().headers["message"]
    access.trust(USER, PASSWORD)
    gains = bench.connect()
    access.reload({USER: stored}, {USER: frozenset({"all"})}, (EVERYTHING,))
    gains.frame("SUBSCRIBE", "id:0", f"destination:{name}", "receipt:r")
    bench.sync()
    assert gains.receipts() == ["r"]
