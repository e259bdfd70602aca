"""What clients make counts to their user, whatever they speak."""

import pytest

from delosmq.engine.broker import Broker
from delosmq.model.message import MULTICAST
from delosmq.security.access import Login
from delosmq.sessions.lease.session import LeaseSession
from delosmq.wire.openwire.commands import ADD_DESTINATION, TEMP_QUEUE, Destination
from tests.sessions.openwire.support import OpenWireBench, change, queue, topic
from tests.sessions.support import USER, Bench, StompBench


def made_by(broker: Broker) -> int:
    return broker._core.bindings.client_limits.made_by(USER)


def check(bench: Bench, expected: int) -> None:  # type: ignore[type-arg]
    assert made_by(bench.broker) == expected
    limits = bench.broker._core.bindings.client_limits
    queues = [one for one in bench.broker.queues.values() if not one.internal]
    assert limits.count == len(bench.broker.addresses) + len(queues)


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (("SEND", "destination:/queue/a"), 2),
        (("SEND", "destination:/topic/a"), 1),
        (("SUBSCRIBE", "id:1", "destination:/queue/a"), 2),
        (("SUBSCRIBE", "id:1", "destination:/topic/a"), 2),
        (("SUBSCRIBE", "id:1", "destination:/topic/a.#"), 2),
        (("SUBSCRIBE", "id:1", "destination:/topic/a", "durable-subscription-name:n"), 2),
        (("SUBSCRIBE", "id:1", "destination:/temp-queue/a"), 2),
    ],
)
def test_over_stomp(frame: tuple[str, ...], expected: int) -> None:
    bench = StompBench()
    client = bench.connect(headers="client-id:c\n")
    client.frame(*frame)
    check(bench, expected)


def test_over_openwire() -> None:
    bench = OpenWireBench()
    client = bench.connect(client_id="c")
    before = made_by(bench.broker)
    client.publish(queue("a"), "x")
    client.publish(topic("b"), "x")
    check(bench, before + 3)
    client.consume(queue("c"))
    client.consume(topic("d"))
    client.durable("n", topic("e"))
    check(bench, before + 9)
    client.ok(change(client, queue("f"), ADD_DESTINATION))
    client.ok(change(client, Destination(f"{client.name}:1", TEMP_QUEUE), ADD_DESTINATION))
    check(bench, before + 13)


def test_by_a_lease_group() -> None:
    bench = StompBench()
    bench.broker.create_address("news", {MULTICAST})
    session = LeaseSession(bench.broker, bench.services.access, Login(USER, frozenset({"all"})))
    session.open("g", queue="", topic="news", run="r", incarnation=None)
    check(bench, 1)
    session.release("g")
    check(bench, 0)
