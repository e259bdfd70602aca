"""Leases beside what else happens to messages: purge, expiry, pause, deletion, dead letters, transactions."""

import pytest

from delosmq.engine.leases.lease import LEASE_LOST, LeaseError
from tests.engine.support import Bench, anycast
from tests.engine.test_leases import Reader, bench_with, condition_of, words


def test_a_purge_leaves_what_is_leased() -> None:
    bench = bench_with("a b c d")
    reader = Reader(bench)
    assert reader.take(0, max_rows=2) == "a b"
    bench.broker.resources.purge_queue("q")
    bench.run()
    assert (bench.pending("q"), words(reader.group.leases[1])) == ("", "a b")
    bench.broker.lease_groups.release("g")
    bench.run()
    assert bench.pending("q") == "a b"


def test_what_is_leased_expires_only_after_it_went_back() -> None:
    bench = Bench(queues=(anycast("q"), anycast("EXP")), settings={"q": {"expiry_address": "EXP"}})
    bench.send("q", "a b", expires_in_ms=1_000)
    reader = Reader(bench)
    assert reader.take(0, max_rows=1) == "a"
    bench.later(60_000)
    assert (bench.pending("q"), bench.pending("EXP")) == ("", "b")
    assert words(reader.group.leases[1]) == "a"
    bench.broker.lease_groups.release("g")
    bench.later(60_000)
    assert (bench.counts("q")[0], bench.pending("EXP")) == (0, "b a")


def test_a_paused_queue_leases_nothing_and_keeps_what_is_leased() -> None:
    bench = bench_with("a b")
    reader = Reader(bench)
    assert reader.take(0, max_rows=1) == "a"
    bench.broker.resources.update_queue("q", paused=True)
    assert reader.take(1) == ""
    assert (reader.group.acked, bench.pending("q")) == (1, "b")
    bench.broker.resources.update_queue("q", paused=False)
    assert reader.take(1) == "b"


def test_a_deleted_queue_takes_its_group_along_over_a_restart() -> None:
    bench = bench_with("a b")
    Reader(bench).take(0, max_rows=1)
    bench.broker.resources.delete_queue("q")
    bench.run()
    again = bench.restart()
    with pytest.raises(LeaseError) as lost:
        again.broker.leases.find("g")
    assert condition_of(lost) == LEASE_LOST


DEAD: dict[str, dict[str, object]] = {"#": {"max_delivery_attempts": 2, "dead_letter_address": "DLQ"}}


def test_a_lease_that_is_released_was_a_delivery_attempt() -> None:
    bench = Bench(queues=(anycast("q"), anycast("DLQ")), settings=DEAD)
    bench.send("q", "a")
    where = []
    for _ in range(2):
        assert Reader(bench).take(0) == "a"
        bench.broker.lease_groups.release("g")
        bench.run()
        where.append((bench.pending("q"), bench.pending("DLQ")))
    assert where == [("a", ""), ("", "a")]


def test_dead_letters_are_leased_as_other_messages() -> None:
    bench = Bench(queues=(anycast("q"), anycast("DLQ")), settings={"#": {**DEAD["#"], "max_delivery_attempts": 1}})
    bench.send("q", "a")
    consumer, port = bench.consume("q")
    bench.run()
    bench.broker.consumers.reject(consumer, port.slots[0].sequence)
    bench.run()
    reader = Reader(bench, queue="DLQ")
    assert reader.take(0) == "a"
    reader.ack(1)
    assert bench.counts("DLQ")[0] == 0


def test_what_is_sent_in_a_transaction_is_leased_after_its_commit() -> None:
    bench = bench_with()
    reader = Reader(bench)
    transaction = bench.broker.transactions.begin("session")
    bench.broker.transactions.send(transaction, bench.message("q", "a"))
    assert reader.take(0) == ""
    bench.broker.transactions.commit(transaction)
    bench.run()
    assert reader.take(0) == "a"


def test_what_a_transaction_acknowledges_is_leased_only_after_its_rollback() -> None:
    bench = bench_with("a b")
    consumer, port = bench.consume("q")
    bench.run()
    transaction = bench.broker.transactions.begin("session")
    assert bench.broker.transactions.acknowledge(transaction, consumer, port.slots[0].sequence)
    bench.broker.consumers.close(consumer)
    bench.run()
    reader = Reader(bench)
    assert reader.take(0) == "b"
    bench.broker.transactions.rollback(transaction)
    bench.run()
    assert reader.take(1) == "a"
