"""One client can't use up all addresses and queues: what it made goes with its last use, and it has a bound."""

import gc
import tracemalloc

import pytest

from delosmq.engine.lifecycle.subscriptions import SubscriptionOptions
from delosmq.model.errors import LimitError
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.settings import BrokerSettings, QueueSettings
from tests.engine.routing_support import RoutingBench
from tests.engine.support import Bench, anycast

SCAN_MS = 30_000


def bounded(of_all: int = -1, of_user: int = -1) -> RoutingBench:
    return RoutingBench(BrokerSettings(max_destinations=of_all, max_destinations_per_user=of_user))


def send(bench: RoutingBench, name: str, user: str, routing: int) -> None:
    message = bench.message(name, "A")
    message.user = user
    bench.broker.producers.send(message, routing=routing)


def make_many(bench: RoutingBench, way: str, users: str) -> None:
    for number in range(50):
        make(bench, way, f"x{number}", users.format(number))


def make(bench: RoutingBench, way: str, name: str, user: str) -> None:
    """One use of a name, that is over at once."""
    if way == "topic":
        bench.broker.consumers.close(bench.listen(name, user=user)[0])
    elif way == "wildcard":
        bench.broker.consumers.close(bench.listen(f"{name}.#", user=user)[0])
    elif way == "send":
        send(bench, name, user, MULTICAST)
    elif way == "queue":
        bench.broker.consumers.close(bench.listen(name, routing=ANYCAST, user=user)[0])
    elif way == "named queue":
        consumer, _ = bench.listen("one", queue_name=name, routing=ANYCAST, user=user)
        bench.broker.consumers.close(consumer)
    elif way == "durable":
        bench.broker.consumers.close(bench.listen(name, name=f"{name}.s", durable=True, user=user)[0])
        bench.broker.resources.unsubscribe(f"{name}.s")
    elif way == "rolled back":
        transaction = bench.broker.transactions.begin("c")
        message = bench.message(name, "A")
        message.user = user
        bench.broker.transactions.send(transaction, message, routing=ANYCAST)
        bench.broker.transactions.rollback(transaction)
    elif way == "advisory":
        bench.broker.consumers.close(bench.listen(f"ActiveMQ.Advisory.{name}", user=user)[0])
    else:
        bench.broker.resources.create_temporary(name, MULTICAST if way == "temporary topic" else ANYCAST, "c", user)
        bench.broker.resources.delete_temporary("c")


WAYS = [
    "topic",
    "wildcard",
    "send",
    "queue",
    "named queue",
    "durable",
    "rolled back",
    "advisory",
    "temporary topic",
    "temporary queue",
]


def rooms(bench: Bench) -> tuple[object, ...]:
    """What there is, how much eve and then bob may still make, and what the store is told that all of it takes."""
    there = sorted(bench.broker.addresses), sorted(bench.broker.queues)
    made = [made_until_refused(bench, user, code) for user, code in (("eve", "DMQ2654"), ("bob", "DMQ2655"))]
    return *there, made, bench.store.state_bytes


def made_until_refused(bench: Bench, user: str, code: str) -> int:
    for number in range(1_000):
        try:
            bench.broker.resources.create_queue(anycast(f"{user}{number}"), user)
        except LimitError as error:
            if error.code != code:
                raise
            return number
    raise AssertionError("there is no bound")


@pytest.mark.parametrize("way", WAYS)
def test_what_a_client_made_and_left_goes(way: str):
    settings = BrokerSettings(queues=(anycast("kept"),), max_destinations=300, max_destinations_per_user=200)
    bench = RoutingBench(settings)
    for number in range(50):
        make(bench, way, f"x{number}", "eve")
    for _ in range(4):
        bench.later(SCAN_MS)
    again = bench.restart()
    assert rooms(bench) == rooms(again) == rooms(RoutingBench(settings))


@pytest.mark.parametrize("way", ["send", "queue", "named queue"])
def test_a_user_at_its_bound_makes_no_more_and_others_do(way: str):
    bench = bounded(of_user=20)
    with pytest.raises(LimitError, match=r"DMQ2654: .*'eve' have made 2[01] .*max-destinations-per-user is 20"):
        make_many(bench, way, "eve")
    make(bench, "queue", "orders", "bob")
    assert "orders" in bench.broker.queues
    # What is there may be used on, and what operators make is not counted as hers.
    make(bench, way, "x1", "eve")
    bench.broker.resources.create_queue(QueueSettings("more", "more", ANYCAST))
    for _ in range(4):
        bench.later(SCAN_MS)
    make(bench, way, "again", "eve")


def test_the_bound_of_all_is_for_clients_and_not_for_operators():
    bench = bounded(of_all=10)
    with pytest.raises(LimitError, match=r"DMQ2655: .*there are 1[01] addresses .* max-destinations is 10"):
        make_many(bench, "queue", "user{}")
    bench.broker.resources.create_queue(QueueSettings("more", "more", ANYCAST))


@pytest.mark.slow
def test_tens_of_thousands_leave_another_user_room_and_the_memory_returns():
    bench = bounded(of_user=50_000)  # a round takes more than half of that
    made = 10_000
    tracemalloc.start()
    try:
        for round in range(2):
            for number in range(made):
                make(bench, "topic", f"a{round}.{number}", "eve")
                make(bench, "send", f"b{round}.{number}", "eve")
            for number in range(made // 10):
                make(bench, "queue", f"c{round}.{number}", "eve")
            make(bench, "queue", f"orders{round}", "bob")
            bench.broker.resources.create_queue(QueueSettings(f"kept{round}", "kept", ANYCAST))
            for _ in range(4):
                bench.later(SCAN_MS)
            bench.store.batches.clear()
            bench.store.bodies.clear()
            gc.collect()
            used = tracemalloc.get_traced_memory()[0]
            if round == 0:
                first = used
        assert used < first + 500_000
    finally:
        tracemalloc.stop()
    assert sorted(bench.broker.queues) == ["kept0", "kept1"]


def test_a_client_that_comes_back_finds_its_queue_and_what_is_in_it():
    bench = bounded(of_user=6)
    for _ in range(20):
        consumer, port = bench.listen("orders", routing=ANYCAST, user="bob")
        durable, _ = bench.listen("news", name="bob.s", durable=True, user="bob")
        bench.run()
        bench.take_all(consumer, port)
        bench.broker.consumers.close(consumer)
        bench.broker.consumers.close(durable)
        send(bench, "orders", "bob", ANYCAST)
        bench.later(2 * SCAN_MS)
        assert bench.pending("orders") == "A"
        assert "bob.s" in bench.broker.queues


def test_options_of_a_subscription_name_its_user():
    assert SubscriptionOptions(user="bob").user == "bob"
