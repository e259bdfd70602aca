"""``/temp-queue/`` and ``/temp-topic/``: private to a connection, gone with it, and reachable through ``reply-to``."""

import pytest

from delosmq.model.settings import AddressFullPolicy, SecurityMatch
from delosmq.security.access import PERMISSIONS
from tests.sessions.support import Client, StompBench

KINDS = ["queue", "topic"]
each_kind = pytest.mark.parametrize("kind", KINDS)


def requester(bench: StompBench, kind: str = "queue") -> Client:
    client = bench.connect()
    client.frame("SUBSCRIBE", "id:r", f"destination:/temp-{kind}/answers")
    return client


def reply_to(bench: StompBench, client: Client, kind: str = "queue") -> tuple[Client, str]:
    """A responder that has got a request, and where it is to answer."""
    client.frame("SEND", "destination:/queue/work", f"reply-to:/temp-{kind}/answers", body="question")
    responder = bench.connect()
    responder.frame("SUBSCRIBE", "id:w", "destination:/queue/work")
    (request,) = responder.take()
    return responder, request.headers["reply-to"]


@each_kind
def test_an_answer_finds_its_way_to_the_connection_that_asked(kind: str) -> None:
    bench = StompBench()
    client, other = requester(bench, kind), requester(bench, kind)
    responder, address = reply_to(bench, client, kind)
    assert address.startswith(f"/remote-temp-{kind}/")
    responder.frame("SEND", f"destination:{address}", "correlation-id:1", "receipt:r", body="answer")
    (answer,) = client.take()
    assert (answer.body, answer.headers["subscription"]) == (b"answer", "r")
    assert answer.headers["destination"] == f"/temp-{kind}/answers"
    assert answer.headers["correlation-id"] == "1"
    assert other.take() == []
    assert responder.receipts() == ["r"]


def test_an_answer_may_come_before_the_subscription() -> None:
    bench = StompBench()
    client = bench.connect()
    responder, address = reply_to(bench, client)
    responder.frame("SEND", f"destination:{address}", body="early")
    client.frame("SUBSCRIBE", "id:r", "destination:/temp-queue/answers")
    assert client.take_bodies() == "early"


@each_kind
def test_the_same_name_is_another_destination_on_each_connection(kind: str) -> None:
    bench = StompBench()
    first, second = requester(bench, kind), requester(bench, kind)
    first.frame("SEND", f"destination:/temp-{kind}/answers", body="mine")
    assert first.take_bodies() == "mine"
    assert second.take_bodies() == ""


@each_kind
def test_it_goes_with_its_connection(kind: str) -> None:
    bench = StompBench()
    client = requester(bench, kind)
    client.frame("SEND", f"destination:/temp-{kind}/other", body="unread")
    assert len([name for name in bench.broker.addresses if name.startswith(f"temp-{kind}.")]) == 2
    client.session.connection_lost()
    bench.tick()
    assert not [name for name in (*bench.broker.addresses, *bench.broker.queues) if name.startswith("temp-")]
    assert bench.broker.used_bytes == 0


@pytest.mark.parametrize("end", ["DISCONNECT", "FLY"])
def test_it_goes_with_whatever_ends_the_connection(end: str) -> None:
    bench = StompBench()
    client = requester(bench)
    client.frame(end)
    assert not [name for name in bench.broker.addresses if name.startswith("temp-")]


@each_kind
def test_an_answer_to_somebody_who_has_gone_goes_nowhere(kind: str) -> None:
    bench = StompBench()
    client = requester(bench, kind)
    responder, address = reply_to(bench, client, kind)
    client.session.connection_lost()
    responder.frame("SEND", f"destination:{address}", "persistent:true", "receipt:r", body="late")
    assert responder.receipts() == ["r"]
    assert not [name for name in bench.broker.addresses if name.startswith("temp-")]
    assert not responder.host.finished


def test_an_answer_that_waits_for_space_goes_nowhere_when_the_other_has_gone() -> None:
    bench = StompBench(
        address_settings={"temp-queue.#": {"max_size_messages": 1, "address_full_policy": AddressFullPolicy.BLOCK}}
    )
    client = bench.connect()
    responder, address = reply_to(bench, client)
    for number in range(2):
        responder.frame("SEND", f"destination:{address}", f"receipt:{number}", body="x")
    assert responder.receipts() == ["0"]
    client.session.connection_lost()
    bench.tick()
    assert responder.receipts() == ["1"]
    assert not [name for name in bench.broker.addresses if name.startswith("temp-")]


@pytest.mark.parametrize("kind", KINDS)
def test_only_its_connection_consumes_from_it(kind: str) -> None:
    bench = StompBench()
    client = requester(bench, kind)
    _, address = reply_to(bench, client, kind)
    name = address.rpartition("/")[2]
    for destination, code in ((address, "DMQ5128"), (f"/{kind}/temp-{kind}.{name}", "DMQ2635")):
        thief = bench.connect()
        thief.frame("SUBSCRIBE", "id:1", f"destination:{destination}")
        assert code in thief.error().headers["message"]
    client.frame("SEND", f"destination:/temp-{kind}/answers", body="still mine")
    assert client.take_bodies() == "still mine"


@pytest.mark.parametrize("name", ["", "a::b", "x" * 513])
@pytest.mark.parametrize("frame", ["SEND", "SUBSCRIBE", "reply-to"])
def test_a_name_must_make_sense(name: str, frame: str) -> None:
    client = StompBench().connect()
    if frame == "reply-to":
        client.frame("SEND", "destination:/queue/a", f"reply-to:/temp-queue/{name}")
    else:
        client.frame(frame, "id:1", f"destination:/temp-queue/{name}")
    message = client.error().headers["message"]
    assert "DMQ5129" in message
    assert len(message) < 300


def test_they_are_limited() -> None:
    client = StompBench().connect()
    for number in range(client.bench.acceptor.max_subscriptions + 1):
        client.feed(f"SEND\ndestination:/temp-queue/{number}\n\nx\0")
    client.bench.tick()
    assert "1000 temporary destinations" in client.error().headers["message"]


@pytest.mark.parametrize("missing", ["createAddress", "createNonDurableQueue", "send"])
def test_the_permissions_of_its_address_count(missing: str) -> None:
    allowed = {permission: frozenset({"all"}) for permission in PERMISSIONS if permission != missing}
    everything = {permission: frozenset({"all"}) for permission in PERMISSIONS}
    bench = StompBench(security=(SecurityMatch("#", everything), SecurityMatch("temp-queue.#", allowed)))
    client = bench.connect()
    client.frame("SEND", "destination:/temp-queue/a", body="x")
    message = client.error().headers["message"]
    assert f"'{missing}'" in message
    assert "temp-queue." in message


def test_permissions_to_make_them_may_be_those_of_a_namespace() -> None:
    nothing: dict[str, frozenset[str]] = {permission: frozenset() for permission in PERMISSIONS}
    using = {name: frozenset({"all"}) for name in ("send", "consume")}
    making = {"createAddress": frozenset({"all"}), "createNonDurableQueue": frozenset({"all"})}
    security = (SecurityMatch("#", {**nothing, **using}), SecurityMatch("temp.#", {**nothing, **making}))
    client = StompBench(security=security).connect()
    client.frame("SUBSCRIBE", "id:1", "destination:/temp-queue/a")
    assert "'createAddress'" in client.error().headers["message"]
    client = StompBench(security=security, temporary_namespace="temp").connect()
    client.frame("SUBSCRIBE", "id:1", "destination:/temp-queue/a")
    client.frame("SEND", "destination:/temp-queue/a", body="x")
    assert [message.body for message in client.take()] == [b"x"]


def test_other_reply_to_headers_travel_unchanged() -> None:
    client = StompBench().connect()
    client.frame("SUBSCRIBE", "id:1", "destination:/queue/a")
    client.frame("SEND", "destination:/queue/a", "reply-to:/queue/b", body="x")
    (message,) = client.take()
    assert message.headers["reply-to"] == "/queue/b"
