"""A whole broker on a disk that forgets: seeded histories of sends, acknowledgements, leases and power cuts.

``DELOSMQ_HISTORIES=1000`` runs the long form; ``DELOSMQ_SEED`` says where its seeds begin.
"""

# BROKER-1

import logging
import os
from random import Random

import pytest

from delosmq.model.errors import InvariantError, StorageError
from delosmq.storage.journal.store import JournalStore
from tests.simulation.broker_histories import History, check_segments_are_freed, run_history
from tests.simulation.broker_mutants import LosesABatch, SplitsDecisions
from tests.simulation.broker_world import Oracle, World
from tests.simulation.disk import SimDisk
from tests.simulation.mutants import OpensTheGateEarly, RecyclesEarly

HISTORIES = int(os.environ.get("DELOSMQ_HISTORIES", "60"))
FIRST_SEED = int(os.environ.get("DELOSMQ_SEED", "0"))
PART = 20
PATIENCE = 60
"""A canary must be caught within so many histories."""


@pytest.fixture(autouse=True)
def no_torn_tails_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", range((HISTORIES + PART - 1) // PART))
def test_what_clients_were_told_is_true_after_any_power_cut(part: int) -> None:
    total = History()
    seeds = range(FIRST_SEED + part * PART, FIRST_SEED + min(HISTORIES, (part + 1) * PART))
    for seed in seeds:
        try:
            history = run_history(seed)
        except AssertionError as error:
            error.add_note(f"run_history({seed}) brings it back")
            raise
        for name, count in vars(history).items():
            setattr(total, name, getattr(total, name) + count)
    # A history in which nothing happens proves nothing.
    lives = len(seeds)
    assert total.rolls >= 3 * lives
    assert total.confirmed >= 50 * lives
    assert total.acknowledged >= 20 * lives
    assert total.archived >= 20 * lives
    assert total.dead >= lives // 5


@pytest.mark.parametrize("seed", [51, 1030, 3427])
def test_counts_recorded_before_a_dead_letter_are_all_that_has_changed_by_then(seed: int) -> None:
    run_history(seed)


@pytest.mark.parametrize("kind", [OpensTheGateEarly, RecyclesEarly, SplitsDecisions, LosesABatch])
def test_a_store_that_breaks_its_promise_is_caught(kind: type[JournalStore]) -> None:
    assert caught_after(kind=kind) <= PATIENCE


def test_a_gate_that_opens_early_is_caught() -> None:
    assert caught_after(early=True) <= PATIENCE


def caught_after(*, kind: type[JournalStore] = JournalStore, early: bool = False) -> int:
    """How many histories it takes."""
    for seed in range(PATIENCE):
        try:
            run_history(seed, kind, early=early)
        except (AssertionError, StorageError, InvariantError):
            return seed + 1
    return PATIENCE + 1


def test_a_queue_deleted_just_before_a_crash_leaves_no_segment_behind() -> None:
    random = Random(1)
    oracle = Oracle()
    world = World(random, SimDisk(random), oracle, expected={})
    for _ in range(60):
        world.send("prices", size_bytes=3000)
    world.broker.resources.update_queue("prices", ring_size=-1, max_consumers=None)
    for _ in range(60):
        world.send("prices", size_bytes=3000)
        world.rest_a_while()
    # The decision is on the disk, the purge that follows in slices is not.
    world.broker.resources.delete_queue("prices")
    world.store.flush()
    world.syncer.run_all()
    world.disk.process_crash()
    again = World(random, world.disk, oracle, expected=world.store.snapshots)
    assert not again.broker.queues["prices"].message_count
    check_segments_are_freed(again, again.subscribe("jobs", 1000))
