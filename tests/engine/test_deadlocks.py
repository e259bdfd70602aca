"""Transactions never wait for each other for ever."""

from collections import Counter

import pytest
from hypothesis import given, strategies

from delosmq.engine.addresses.address import SpaceWaiter
from delosmq.engine.routing.send_result import BLOCKED, ROUTED
from delosmq.engine.transactions.deadlocks import AT_ONCE, PER_SLICE
from delosmq.engine.transactions.transaction import Transaction
from delosmq.model.errors import LimitError
from tests.engine.support import Bench, anycast

HALF = 2
LIMIT = {"max_size_messages": 2 * HALF}
REFUSED = -2650
CHARGED = 513
NAMES = ("p", "q", "r")
FOR_EVER = "DMQ2650.*would wait for ever"


def bench_of(*names: str) -> Bench:
    return Bench(queues=tuple(anycast(name) for name in names), settings={"#": LIMIT})


def send(bench: Bench, transaction: Transaction, address: str, count: int = 1) -> list[int]:
    return [bench.broker.transactions.send(transaction, bench.message(address, "m")) for _ in range(count)]


def test_the_second_of_two_that_hold_half_an_address_each_is_refused():
    bench = bench_of("q")
    first, second = bench.broker.transactions.begin("a"), bench.broker.transactions.begin("b")
    assert send(bench, first, "q", HALF) == send(bench, second, "q", HALF) == [ROUTED] * HALF
    assert send(bench, first, "q") == [BLOCKED]
    with pytest.raises(LimitError, match=rf"{FOR_EVER}: address 'q'.*2 open transactions"):
        send(bench, second, "q")
    assert send(bench, first, "q") == [BLOCKED]
    bench.broker.transactions.rollback(second)
    assert send(bench, first, "q") == [ROUTED]
    bench.broker.transactions.commit(first)
    assert bench.counts("q") == (HALF + 1, 0, 0)


def test_who_may_get_room_from_consumers_waits():
    bench = bench_of("q")
    bench.send("q", "m")
    first, second = bench.broker.transactions.begin("a"), bench.broker.transactions.begin("b")
    send(bench, first, "q")
    send(bench, second, "q", 2)
    assert send(bench, first, "q") == send(bench, second, "q") == [BLOCKED]
    consumer, port = bench.consume("q")
    bench.run()
    bench.broker.consumers.acknowledge(consumer, port.slots[0].sequence)
    assert send(bench, first, "q") == [ROUTED]


def test_who_may_get_room_from_a_transaction_that_does_not_wait_waits():
    bench = bench_of("q")
    first, second = bench.broker.transactions.begin("a"), bench.broker.transactions.begin("b")
    send(bench, first, "q", HALF)
    send(bench, second, "q", HALF)
    assert send(bench, first, "q") == [BLOCKED]
    bench.broker.transactions.commit(second)
    third = bench.broker.transactions.begin("c")
    assert send(bench, third, "q") == [BLOCKED]


def test_circles_over_several_addresses_are_found():
    bench = bench_of("p", "q", "r")
    names = ("p", "q", "r")
    circle = [bench.broker.transactions.begin(name) for name in names]
    for transaction, name in zip(circle, names, strict=True):
        send(bench, transaction, name, 2 * HALF)
    assert send(bench, circle[0], "q") == send(bench, circle[1], "r") == [BLOCKED]
    outsider = bench.broker.transactions.begin("o")
    assert send(bench, outsider, "p") == [BLOCKED]
    with pytest.raises(LimitError, match=FOR_EVER):
        send(bench, circle[2], "p")


def test_who_waits_behind_a_line_with_an_open_end_waits():
    bench = bench_of("p", "q")
    first, second = bench.broker.transactions.begin("a"), bench.broker.transactions.begin("b")
    send(bench, first, "p", 2 * HALF)
    bench.send("q", "m m m m")
    assert send(bench, first, "q") == [BLOCKED]
    assert send(bench, second, "p") == [BLOCKED]


def test_the_limit_of_the_whole_broker_counts_as_well():
    bench = Bench(queues=(anycast("p"), anycast("q")), global_max=600)
    first, second = bench.broker.transactions.begin("a"), bench.broker.transactions.begin("b")
    assert send(bench, first, "p") == send(bench, second, "q") == [ROUTED]
    outcomes = send(bench, first, "p")
    while outcomes == [ROUTED]:
        outcomes = send(bench, first, "p")
    with pytest.raises(LimitError, match=FOR_EVER):
        send(bench, second, "q")


def test_nothing_is_left_of_those_who_waited():
    bench = bench_of("q")
    for _ in range(3):
        first, second = bench.broker.transactions.begin("a"), bench.broker.transactions.begin("b")
        send(bench, first, "q", HALF)
        send(bench, second, "q", HALF)
        assert send(bench, first, "q") == [BLOCKED]
        bench.broker.transactions.rollback(first)
        bench.broker.transactions.rollback(second)
    third = bench.broker.transactions.begin("c")
    assert send(bench, third, "q", 2 * HALF) == [ROUTED] * (2 * HALF)


class Asking(SpaceWaiter):
    """A sender: asks again whenever it is told to, until its message is in or refused."""

    def __init__(self, field: "Field", transaction: Transaction, address: str) -> None:
        self._field = field
        self.transaction = transaction
        self.address = address
        self.outcome = 0

    def on_space(self) -> None:
        broker = self._field.bench.broker
        try:
            message = self._field.bench.message(self.address, "m", durable=False)
            self.outcome = broker.transactions.send(self.transaction, message)
        except LimitError as error:
            self.outcome = -int(error.code[3:])
        if self.outcome == BLOCKED:
            broker.blocked_producers.wait(self.address, self)
            if self._field.looks_at_once:
                assert self not in self._field.waiting_for_ever()
        elif self.outcome == REFUSED:
            self.outcome = BLOCKED
            assert self in self._field.waiting_for_ever()
            self.outcome = REFUSED

    def cancel(self) -> None:
        self._field.bench.broker.blocked_producers.cancel(self.address, self)


class Field:
    """Transactions that send, wait and end, as told by numbers."""

    def __init__(self, at_once: int, global_max: int) -> None:
        queues = tuple(anycast(name) for name in NAMES)
        self.bench = Bench(queues=queues, settings={"#": LIMIT}, global_max=global_max)
        self.bench.broker.transactions.deadlocks.at_once = at_once
        self.looks_at_once = at_once > 0
        self.transactions: dict[int, Transaction] = {}
        self.asking: dict[int, Asking] = {}

    def act(self, what: int, number: int, name: str) -> list[tuple[int, int]]:
        broker = self.bench.broker
        transaction = self.transactions.get(number)
        waits = number in self.asking and self.asking[number].outcome == BLOCKED
        if what == 0:
            broker.producers.send(self.bench.message(name, "m", durable=False))
        elif what == 1 and transaction is not None:
            if waits:
                self.asking.pop(number).cancel()
            broker.transactions.rollback(self.transactions.pop(number))
        elif what == 2 and transaction is not None and not waits:
            broker.transactions.commit(self.transactions.pop(number))
        elif what == 3:
            broker.resources.purge_queue(name)
        elif what > 3 and not waits:
            if transaction is None:
                transaction = broker.transactions.begin(str(number))
                self.transactions[number] = transaction
            self.asking[number] = Asking(self, transaction, name)
            self.asking[number].on_space()
        self.bench.run()
        assert not self.waiting_for_ever()
        return sorted((number, one.outcome) for number, one in self.asking.items())

    def waiting_for_ever(self) -> list[Asking]:
        """The definition: those whose address is filled by what they hold, all of whom the same is true of."""
        most = self.bench.settings.global_max_size_bytes
        stuck = [one for one in self.asking.values() if one.outcome == BLOCKED]
        while True:
            held: Counter[str] = Counter()
            size = 0
            for one in stuck:
                for name, account in one.transaction.charged.items():
                    held[name] += account.used_messages
                    size += account.used_bytes
            rest = [one for one in stuck if -1 < most <= size or held[one.address] >= 2 * HALF]
            if len(rest) == len(stuck):
                return stuck
            stuck = rest


ACTS = strategies.lists(
    strategies.tuples(strategies.integers(0, 9), strategies.integers(0, 5), strategies.sampled_from(NAMES)),
    min_size=10,
    max_size=60,
)


@given(ACTS, strategies.sampled_from([-1, 4_000, 6_000]))
def test_who_would_wait_for_ever_is_refused_and_nobody_else(acts: list[tuple[int, int, str]], most: int):
    at_once, in_slices = Field(1_000_000, most), Field(0, most)
    for what, number, name in acts:
        assert at_once.act(what, number, name) == in_slices.act(what, number, name)


@pytest.mark.parametrize("at_once", [1_000_000, 0])
def test_those_who_are_woken_with_one_that_is_refused_keep_their_turn(at_once: int):
    field = Field(at_once, 4_000)
    for name in "qqqr":
        field.act(0, 0, name)
    for number, name in ((0, "p"), (0, "p"), (1, "p"), (1, "p"), (1, "p"), (2, "q"), (0, "p"), (3, "p")):
        outcomes = field.act(4, number, name)
    assert outcomes == [(0, REFUSED), (1, BLOCKED), (2, BLOCKED), (3, BLOCKED)]
    # The whole broker has room for two, and those at p came before the one at q.
    assert field.act(1, 0, "") == [(0, REFUSED), (1, ROUTED), (2, BLOCKED), (3, ROUTED)]


def test_a_tick_spends_a_bounded_time_on_those_who_wait():
    count = 300
    field = Field(AT_ONCE, -1)
    bench = field.bench
    for number in range(count):
        transaction = bench.broker.transactions.begin(str(number))
        assert send(bench, transaction, f"a{number}", 2 * HALF) == [ROUTED] * 2 * HALF
        field.asking[number] = Asking(field, transaction, f"a{(number + 1) % count}")
    field.looks_at_once = False
    for one in field.asking.values():
        one.on_space()
    assert bench.broker.transactions.deadlocks.spent <= AT_ONCE
    assert {one.outcome for one in field.asking.values()} == {BLOCKED}
    turns = 0
    while bench.broker.tick():
        turns += 1
    assert [one.outcome for one in field.asking.values()] == [BLOCKED] * (count - 1) + [REFUSED]
    assert turns <= 50
    assert field.waiting_for_ever() == []


def test_who_is_found_to_wait_for_ever_but_gets_room_first_goes_on():
    field = Field(0, -1)
    bench = field.bench
    first, second = bench.broker.transactions.begin("a"), bench.broker.transactions.begin("b")
    for transaction in (first, second):
        send(bench, transaction, "p", HALF)
    assert send(bench, first, "p") == send(bench, second, "p") == [BLOCKED]
    bench.run()
    bench.broker.transactions.rollback(first)
    assert send(bench, second, "p") == [ROUTED]
    assert send(bench, second, "q", 2 * HALF) == [ROUTED] * 2 * HALF
    bench.send("p", "m m m", durable=False)
    assert send(bench, second, "p") == [BLOCKED]


def test_of_those_who_waited_unseen_the_ones_who_closed_a_circle_are_refused():
    field = Field(0, -1)
    broker = field.bench.broker
    names = ("a", "b", "c", "d")
    for name in names:
        transaction = broker.transactions.begin(name)
        send(field.bench, transaction, name, 2 * HALF)
        field.asking[len(field.asking)] = Asking(field, transaction, names[names.index(name) ^ 1])
    for name in ("a", "c", "b", "d") * 3:
        field.asking[len(field.asking)] = Asking(field, broker.transactions.begin("behind"), name)
    for number in (4, 0, 5, 1, 6, 7, 2, 8, 3, *range(9, len(field.asking))):
        field.asking[number].on_space()
    field.bench.run()
    assert [number for number, one in field.asking.items() if one.outcome == REFUSED] == [1, 3]
    assert field.waiting_for_ever() == []


@given(strategies.lists(strategies.integers(0, 7), min_size=8, max_size=8), strategies.permutations(range(8)))
def test_many_who_waited_unseen_end_as_if_each_had_been_seen(wanted: list[int], order: list[int]):
    outcomes = []
    for at_once in (1_000_000, 0):
        field = Field(at_once, -1)
        for number in range(8):
            transaction = field.bench.broker.transactions.begin(str(number))
            send(field.bench, transaction, f"a{number}", 2 * HALF if number % 4 else 1)
            if not number % 4:
                field.bench.send(f"a{number}", "m m m")
            field.asking[number] = Asking(field, transaction, f"a{wanted[number]}")
        for number in order:
            field.asking[number].on_space()
        field.bench.run()
        outcomes.append([one.outcome for one in field.asking.values()])
        assert field.waiting_for_ever() == []
    assert outcomes[0] == outcomes[1]


def test_who_the_limit_of_the_whole_broker_holds_up_goes_on_when_somebody_else_ends():
    field = Field(1_000_000, 6 * CHARGED)
    bench = field.bench
    first, second, third = (bench.broker.transactions.begin(name) for name in NAMES)
    for transaction, name in zip((first, second, third), NAMES, strict=True):
        send(bench, transaction, name, HALF)
    bench.broker.resources.purge_queue("p")
    asking = [Asking(field, transaction, "p") for transaction in (first, second, third)]
    for number, one in enumerate(asking):
        field.asking[number] = one
        one.on_space()
    assert [one.outcome for one in asking] == [BLOCKED, BLOCKED, REFUSED]


def test_who_goes_on_while_what_it_holds_is_counted_may_send_elsewhere():
    field = Field(0, -1)
    bench = field.bench
    transaction = bench.broker.transactions.begin("a")
    for number in range(3 * PER_SLICE // 2):
        assert send(bench, transaction, f"a{number}") == [ROUTED]
    bench.send("q", "m " * 2 * HALF)
    consumer, port = bench.consume("q")
    bench.run()
    assert send(bench, transaction, "q") == [BLOCKED]
    assert bench.broker.tick()
    bench.broker.consumers.acknowledge(consumer, port.slots[0].sequence)
    assert send(bench, transaction, "b") == [ROUTED]
    bench.run()
    assert send(bench, transaction, "q") == [ROUTED]
