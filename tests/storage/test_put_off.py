"""Syncs that nobody waits for: none of their own, along with the next one, and within a bounded time."""

from random import Random

import pytest

from delosmq.engine.log.ports import StoreEvents
from delosmq.model.ids import NOTHING_DURABLE, Position
from tests.storage import on_disk
from tests.storage.bench import Bench
from tests.storage.support import Listener


class Waiting(Listener):
    """Somebody waits for what it says."""

    def __init__(self) -> None:
        super().__init__()
        self.waits_for = Position(0)

    def awaited(self) -> Position:
        return self.waits_for


@pytest.fixture
def listener() -> Waiting:
    return Waiting()


@pytest.fixture
def bench(listener: Waiting) -> Bench:
    """One whose first flush is over."""
    made = Bench(Random(1))
    made.sync()
    made.store.attach(listener, made.listener.source)
    return made


def asked(bench: Bench) -> int:
    return len(bench.syncer.syncs)


def answer(bench: Bench) -> None:
    bench.syncer.step_sync()
    bench.store.on_readable()


def test_what_nobody_waits_for_is_written_and_asks_for_no_sync(bench: Bench, listener: Waiting) -> None:
    bench.note()
    bench.store.flush()
    assert on_disk.open_segment(bench.disk).position == 1
    assert asked(bench) == 0
    assert bench.store.put_off() == 1


def test_a_batch_put_off_comes_along_with_the_sync_that_somebody_waits_for(bench: Bench, listener: Waiting) -> None:
    bench.note()
    bench.store.flush()
    bench.note()
    listener.waits_for = Position(2)
    bench.store.flush()
    assert asked(bench) == 1
    assert bench.store.put_off() == NOTHING_DURABLE
    answer(bench)
    assert listener.synced == [2]
    assert asked(bench) == 0


def test_a_batch_put_off_is_synced_once_the_store_is_told_to_catch_up(bench: Bench, listener: Waiting) -> None:
    bench.note()
    bench.store.flush()
    bench.store.catch_up(bench.store.put_off())
    answer(bench)
    assert listener.synced == [1]
    bench.store.catch_up(Position(1))
    assert asked(bench) == 0, "it is there"


def test_catching_up_while_a_sync_is_under_way_takes_the_next_one(bench: Bench, listener: Waiting) -> None:
    bench.note()
    listener.waits_for = Position(1)
    bench.store.flush()
    bench.note()
    bench.store.flush()
    bench.store.catch_up(bench.store.put_off())
    answer(bench)
    assert listener.synced == [1]
    assert asked(bench) == 1
    answer(bench)
    assert listener.synced == [1, 2]


def test_a_wait_for_the_sync_under_way_asks_for_no_other(bench: Bench, listener: Waiting) -> None:
    bench.note()
    listener.waits_for = Position(1)
    bench.store.flush()
    bench.note()
    bench.store.flush()
    answer(bench)
    assert asked(bench) == 0
    assert bench.store.put_off() == 2


def test_a_wait_that_begins_during_a_sync_has_the_next_one(bench: Bench, listener: Waiting) -> None:
    bench.note()
    listener.waits_for = Position(1)
    bench.store.flush()
    bench.note()
    listener.waits_for = Position(2)
    bench.store.flush()
    answer(bench)
    assert asked(bench) == 1


def test_waiting_for_a_position_and_closing_sync_everything(bench: Bench, listener: Waiting) -> None:
    bench.note()
    bench.wait()
    assert listener.synced == [1]
    bench.note()
    bench.store.close(5)
    assert listener.synced == [1, 2]


def test_a_power_cut_forgets_what_was_put_off_and_nothing_that_was_awaited(bench: Bench, listener: Waiting) -> None:
    bench.note(b"awaited")
    listener.waits_for = Position(1)
    bench.store.flush()
    answer(bench)
    bench.note(b"put off")
    bench.store.flush()
    bench.disk = bench.disk.power_cut()
    bench.start()
    assert (1, b"awaited") in bench.kept.records
    assert bench.position in (1, 2)


def test_a_listener_that_says_nothing_waits_for_everything() -> None:
    bench = Bench(Random(1))
    bench.sync()
    bench.note()
    bench.store.flush()
    assert asked(bench) == 1
    assert StoreEvents.awaited(bench.listener) > 1
