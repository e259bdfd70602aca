"""Whoever may make queues on an address of theirs takes no name that is another user's: by every way to make one."""

# BROKER-4

from collections.abc import Callable
from dataclasses import replace

import pytest

from delosmq.engine.broker import EngineBroker
from delosmq.manage.control.queues import QueueControl
from delosmq.model.errors import PermissionDeniedError
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.settings import QueueSettings, SecurityMatch
from delosmq.model.virtual_topics import CLASSIC
from delosmq.security.access import PERMISSIONS, Login
from delosmq.sessions.lease.session import LeaseSession
from delosmq.wire.openwire.structures import QUEUE, TOPIC, Destination
from tests.sessions.openwire.support import Client as OpenWireClient
from tests.sessions.openwire.support import OpenWireBench
from tests.sessions.support import ACCEPTOR, Bench, StompBench

BOB = Login("bob", frozenset({"all"}))
ALL = {permission: frozenset({"all"}) for permission in PERMISSIONS}
NOTHING: dict[str, frozenset[str]] = {permission: frozenset({"others"}) for permission in PERMISSIONS}
SECURITY = (SecurityMatch("#", NOTHING), SecurityMatch("bob.#", ALL), SecurityMatch("VirtualTopic.bob", ALL))

FOREIGN = "orders.new"
VIRTUAL = "Consumer.orders.VirtualTopic.bob"


def stomp_subscribe(destination: str, *headers: str, connect: str = "") -> Callable[[tuple[SecurityMatch, ...]], str]:
    def run(security: tuple[SecurityMatch, ...], existing: QueueSettings | None = None) -> str:
        bench = StompBench(security=security, acceptor=replace(ACCEPTOR, virtual_topics=CLASSIC))
        before = prepare(bench, existing)
        client = bench.connect(headers=connect)
        client.frame("SUBSCRIBE", "id:1", f"destination:{destination}", *headers)
        message = client.error().headers["message"] if client.host.finished else ""
        return outcome(bench.broker, before, message)

    return run


def stomp_send(destination: str) -> Callable[[tuple[SecurityMatch, ...]], str]:
    def run(security: tuple[SecurityMatch, ...], existing: QueueSettings | None = None) -> str:
        bench = StompBench(security=security, acceptor=replace(ACCEPTOR, virtual_topics=CLASSIC))
        before = prepare(bench, existing)
        client = bench.connect()
        client.frame("SEND", f"destination:{destination}", body="x")
        return outcome(bench.broker, before, client.error().headers["message"] if client.host.finished else "")

    return run


def openwire(name: str, code: int, *, browser: bool = False, durable: str = "") -> Callable[..., str]:
    def ask(client: OpenWireClient) -> str:
        info = client.consumer_info(Destination(name, code))
        info.browser = browser
        info.subscription_name = durable or None
        answer = client.call(info)
        exception = getattr(answer, "exception", None)
        return "" if exception is None else exception.message or ""

    def run(security: tuple[SecurityMatch, ...], existing: QueueSettings | None = None) -> str:
        bench = OpenWireBench(security=security)
        before = prepare(bench, existing)
        message = ask(bench.connect(client_id="orders"))
        return outcome(bench.broker, before, message)

    return run


def lease(security: tuple[SecurityMatch, ...], existing: QueueSettings | None = None) -> str:
    bench = StompBench(security=security)
    bench.broker.resources.create_address("bob.topic", {MULTICAST})
    before = prepare(bench, existing)
    session = LeaseSession(bench.broker, bench.services.access, BOB)
    return refusal(
        bench.broker,
        before,
        lambda: session.open(FOREIGN, queue="", topic="bob.topic", run="r", incarnation=None),
    )


def management(security: tuple[SecurityMatch, ...], existing: QueueSettings | None = None) -> str:
    bench = StompBench(security=security)
    before = prepare(bench, existing)
    control = QueueControl(bench.broker, bench.services.access)
    return refusal(bench.broker, before, lambda: control.create(BOB, QueueSettings(FOREIGN, "bob.x")))


def refusal(broker: EngineBroker, before: object, command: Callable[[], object]) -> str:
    try:
        command()
    except PermissionDeniedError as error:
        return outcome(broker, before, str(error))
    return outcome(broker, before, "")


def prepare(bench: Bench, existing: QueueSettings | None) -> object:  # type: ignore[type-arg]
    if existing is not None:
        bench.broker.resources.create_queue(existing)
        bench.tick()
    return known(bench.broker)


def known(broker: EngineBroker) -> object:
    return sorted(broker.addresses), [(name, queue.settings) for name, queue in sorted(broker.queues.items())]


def outcome(broker: EngineBroker, before: object, message: str) -> str:
    """What the client was told; nothing may have changed when it was refused."""
    assert not message or known(broker) == before
    return message


WAYS: dict[str, Callable[..., str]] = {
    "STOMP SUBSCRIBE, anycast": stomp_subscribe(f"/queue/bob.x\\c\\c{FOREIGN}"),
    "STOMP SUBSCRIBE, multicast": stomp_subscribe(f"/topic/bob.x\\c\\c{FOREIGN}"),
    "STOMP SUBSCRIBE, no prefix": stomp_subscribe(f"bob.x\\c\\c{FOREIGN}"),
    "STOMP SUBSCRIBE, browser": stomp_subscribe(f"/queue/bob.x\\c\\c{FOREIGN}", "browser:true"),
    "STOMP SUBSCRIBE, durable": stomp_subscribe(
        "/topic/bob.x", "durable-subscription-name:new", connect="client-id:orders\n"
    ),
    "STOMP SUBSCRIBE, as of Classic": stomp_subscribe(
        "/topic/bob.x", "activemq.subscriptionName:new", connect="client-id:orders\n"
    ),
    "STOMP SUBSCRIBE, virtual topic": stomp_subscribe(f"/queue/{VIRTUAL}"),
    "OpenWire consumer, queue": openwire(f"bob.x::{FOREIGN}", QUEUE),
    "OpenWire consumer, topic": openwire(f"bob.x::{FOREIGN}", TOPIC),
    "OpenWire browser": openwire(f"bob.x::{FOREIGN}", QUEUE, browser=True),
    "OpenWire consumer, composite": openwire(f"bob.y,bob.x::{FOREIGN}", QUEUE),
    "OpenWire consumer, durable": openwire("bob.x", TOPIC, durable="new"),
    "OpenWire consumer, virtual topic": openwire(VIRTUAL, QUEUE),
    "lease group on a topic": lease,
    "management": management,
}
ELSEWHERE = [
    None,
    QueueSettings(FOREIGN, FOREIGN, ANYCAST),
    QueueSettings(FOREIGN, "secret", MULTICAST),
    QueueSettings(FOREIGN, "secret", ANYCAST, user="carol"),
]


@pytest.mark.parametrize("way", WAYS)
def test_a_name_of_others_is_refused_whether_or_not_there_is_such_a_queue(way: str) -> None:
    name = VIRTUAL if "virtual" in way else FOREIGN
    told = {WAYS[way](SECURITY, existing=None if queue is None else replace(queue, name=name)) for queue in ELSEWHERE}
    assert len(told) == 1
    (message,) = told
    assert "DMQ1001" in message
    assert repr(name) in message
    assert "secret" not in message


@pytest.mark.parametrize("of_both", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_who_holds_the_permission_for_the_name_makes_it(way: str, *, of_both: bool) -> None:
    name = VIRTUAL if "virtual" in way else FOREIGN
    address = "VirtualTopic.bob" if "virtual" in way else "bob.topic" if "lease" in way else "bob.x"
    match = f"{address}::{name.partition('.')[0]}.#" if of_both else name
    assert WAYS[way]((*SECURITY, SecurityMatch(match, ALL))) == ""
    assert "DMQ1001" in WAYS[way]((*SECURITY, SecurityMatch("other.#::#", ALL)))


def test_a_send_makes_no_queue_of_such_a_name_and_its_own_name_is_enough() -> None:
    assert "DMQ2108" in stomp_send(f"/queue/bob.x\\c\\c{FOREIGN}")(SECURITY)
    assert stomp_send("/queue/bob.x")(SECURITY) == ""
    assert stomp_subscribe("/queue/bob.x")(SECURITY) == ""
    assert stomp_subscribe("/queue/bob.x\\c\\cbob.y")(SECURITY) == ""
    durable = stomp_subscribe("/topic/bob.x", "durable-subscription-name:new", connect="client-id:bob\n")
    assert durable(SECURITY) == ""


def test_a_bare_name_does_not_tell_that_the_broker_made_such_a_queue_elsewhere() -> None:
    dead = QueueSettings("DLQ.orders", "DLQ", MULTICAST, auto_created=True)
    for way in (stomp_subscribe("/queue/DLQ.orders"), openwire("DLQ.orders", QUEUE)):
        there, not_there = way(SECURITY, existing=dead), way(SECURITY)
        assert there == not_there
        assert "'DLQ.orders'" in there
