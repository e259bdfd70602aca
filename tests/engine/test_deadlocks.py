"""Transactions never wait for each other for ever."""

import pytest

from delosmq.engine.outcome import BLOCKED, ROUTED
from delosmq.engine.transactions import Transaction
from delosmq.model.errors import LimitError
from tests.engine.support import Bench, anycast

HALF = 2
LIMIT = {"max_size_messages": 2 * HALF}
FOR_EVER = "DMQ2650.*would wait for ever"


def bench_of(*names: str) -> Bench:
    return Bench(queues=tuple(anycast(name) for name in names), settings={"#": LIMIT})


def send(bench: Bench, transaction: Transaction, address: str, count: int = 1) -> list[int]:
    return [bench.broker.send(bench.message(address, "m"), transaction=transaction) for _ in range(count)]


def test_the_second_of_two_that_hold_half_an_address_each_is_refused():
    bench = bench_of("q")
    first, second = bench.broker.begin("a"), bench.broker.begin("b")
    assert send(bench, first, "q", HALF) == send(bench, second, "q", HALF) == [ROUTED] * HALF
    assert send(bench, first, "q") == [BLOCKED]
    with pytest.raises(LimitError, match=rf"{FOR_EVER}: address 'q'.*2 open transactions"):
        send(bench, second, "q")
    assert send(bench, first, "q") == [BLOCKED]
    bench.broker.rollback(second)
    assert send(bench, first, "q") == [ROUTED]
    bench.broker.commit(first)
    assert bench.counts("q") == (HALF + 1, 0, 0)


def test_who_may_get_room_from_consumers_waits():
    bench = bench_of("q")
    bench.send("q", "m")
    first, second = bench.broker.begin("a"), bench.broker.begin("b")
    send(bench, first, "q")
    send(bench, second, "q", 2)
    assert send(bench, first, "q") == send(bench, second, "q") == [BLOCKED]
    consumer, port = bench.consume("q")
    bench.run()
    bench.broker.acknowledge(consumer, port.slots[0].sequence)
    assert send(bench, first, "q") == [ROUTED]


def test_who_may_get_room_from_a_transaction_that_does_not_wait_waits():
    bench = bench_of("q")
    first, second = bench.broker.begin("a"), bench.broker.begin("b")
    send(bench, first, "q", HALF)
    send(bench, second, "q", HALF)
    assert send(bench, first, "q") == [BLOCKED]
    bench.broker.commit(second)
    third = bench.broker.begin("c")
    assert send(bench, third, "q") == [BLOCKED]


def test_circles_over_several_addresses_are_found():
    bench = bench_of("p", "q", "r")
    names = ("p", "q", "r")
    circle = [bench.broker.begin(name) for name in names]
    for transaction, name in zip(circle, names, strict=True):
        send(bench, transaction, name, 2 * HALF)
    assert send(bench, circle[0], "q") == send(bench, circle[1], "r") == [BLOCKED]
    outsider = bench.broker.begin("o")
    assert send(bench, outsider, "p") == [BLOCKED]
    with pytest.raises(LimitError, match=FOR_EVER):
        send(bench, circle[2], "p")


def test_who_waits_behind_a_line_with_an_open_end_waits():
    bench = bench_of("p", "q")
    first, second = bench.broker.begin("a"), bench.broker.begin("b")
    send(bench, first, "p", 2 * HALF)
    bench.send("q", "m m m m")
    assert send(bench, first, "q") == [BLOCKED]
    assert send(bench, second, "p") == [BLOCKED]


def test_the_limit_of_the_whole_broker_counts_as_well():
    bench = Bench(queues=(anycast("p"), anycast("q")), global_max=600)
    first, second = bench.broker.begin("a"), bench.broker.begin("b")
    assert send(bench, first, "p") == send(bench, second, "q") == [ROUTED]
    outcomes = send(bench, first, "p")
    while outcomes == [ROUTED]:
        outcomes = send(bench, first, "p")
    with pytest.raises(LimitError, match=FOR_EVER):
        send(bench, second, "q")


def test_nothing_is_left_of_those_who_waited():
    bench = bench_of("q")
    for _ in range(3):
        first, second = bench.broker.begin("a"), bench.broker.begin("b")
        send(bench, first, "q", HALF)
        send(bench, second, "q", HALF)
        assert send(bench, first, "q") == [BLOCKED]
        bench.broker.rollback(first)
        bench.broker.rollback(second)
    third = bench.broker.begin("c")
    assert send(bench, third, "q", 2 * HALF) == [ROUTED] * (2 * HALF)
