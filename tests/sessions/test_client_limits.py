"""What clients make counts to their user, whatever they speak."""

import pytest

from delosmq.engine.broker import EngineBroker
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.settings import QueueSettings
from delosmq.security.access import Login
from delosmq.sessions.lease.session import LeaseSession
from delosmq.wire.openwire.commands import ADD_DESTINATION, ExceptionResponse
from delosmq.wire.openwire.structures import TEMP_QUEUE, Destination
from tests.engine.support import RecordingStore
from tests.sessions.openwire.support import OpenWireBench, change, queue, throwable, topic
from tests.sessions.support import OTHER, USER, Bench, StompBench


def made_by(broker: EngineBroker) -> int:
    return broker.client_limits.made_by(USER)


def check(bench: Bench, expected: int) -> None:  # type: ignore[type-arg]
    assert made_by(bench.broker) == expected
    limits = bench.broker.client_limits
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
    bench.broker.resources.create_address("news", {MULTICAST})
    session = LeaseSession(bench.broker, bench.services.access, Login(USER, frozenset({"all"})))
    session.open("g", queue="", topic="news", run="r", incarnation=None)
    check(bench, 1)
    session.release("g")
    check(bench, 0)


SIZE = 40_000
FILTER = "color = '" + "x" * 7_900 + "'"


def check_the_rest(bench: Bench) -> None:  # type: ignore[type-arg]
    """The operator goes on."""
    bench.broker.resources.create_queue(QueueSettings("operators", "operators", ANYCAST))
    bench.broker.resources.delete_queue("operators")
    limits = bench.broker.client_limits
    assert SIZE - 10_000 < limits.state_bytes_of(USER) <= SIZE


def test_long_selectors_over_stomp() -> None:
    store = RecordingStore()
    for start in range(2):
        bench = StompBench(store=store, size_per_user=8 * SIZE)
        refused = 0
        for number in range(9):
            client = bench.connect(headers=f"client-id:c{start}.{number}\n")
            headers = ("id:1", "destination:/topic/a", "durable-subscription-name:n", f"selector:{FILTER}", "receipt:1")
            client.frame("SUBSCRIBE", *headers)
            if (answer := client.take()[-1]).command == "ERROR":
                assert "DMQ2688" in answer.body.decode() + answer.headers["message"]
                assert f"user '{USER}'" in answer.body.decode() + answer.headers["message"]
                refused += 1
        assert refused == 9 - (0 if start else 5)
        bench.broker.resources.create_queue(QueueSettings("operators", "operators", ANYCAST))
        bench.broker.resources.delete_queue("operators")
        assert SIZE - 10_000 < bench.broker.client_limits.filter_characters_of(USER) <= SIZE
        other = bench.connect(headers=f"client-id:d{start}\n", user=OTHER)
        other.frame(
            "SUBSCRIBE",
            "id:1",
            "destination:/topic/a",
            "durable-subscription-name:n",
            f"selector:{FILTER}",
            "receipt:1",
        )
        assert other.take()[-1].command == "RECEIPT"
        other.frame("SEND", "destination:/queue/mine", "receipt:2")
        assert other.take()[-1].command == "RECEIPT"
        store = RecordingStore(list(store.batches))


def test_long_names_over_openwire() -> None:
    store = RecordingStore()
    for start in range(2):
        bench = OpenWireBench(store=store, size_per_user=SIZE)
        client = bench.connect(client_id="c")
        refusal = ""
        for number in range(100):
            text = client.text(queue(f"{start}.{number}." + "n" * 1_000), "x")
            answer = client.call(text)
            if isinstance(answer, ExceptionResponse):
                refusal = throwable(answer).message or ""
                break
        assert "DMQ2686" in refusal
        assert f"user '{USER}'" in refusal
        assert start == 0 or number == 0
        # The queues that are there take messages as before.
        client.publish(queue("0.0." + "n" * 1_000), "y")
        check_the_rest(bench)
        other = bench.connect(client_id="d", user=OTHER)
        other.publish(queue(f"mine.{start}"), "x")
        store = RecordingStore(list(store.batches))
