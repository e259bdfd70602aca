"""Histories of a whole broker that compacts all the time: what clients were told stays true, and segments become free.

``DELOSMQ_HISTORIES=1000`` runs the long form; ``DELOSMQ_SEED`` says where its seeds begin.
"""

# BROKER-1

import logging
import os
from dataclasses import replace

import pytest

from delosmq.model.errors import InvariantError, StorageError
from tests.simulation.broker_histories import run_history
from tests.simulation.broker_world import SETTINGS
from tests.simulation.compaction import COMPACTION_MUTANTS, EAGER, Compacting

HISTORIES = int(os.environ.get("DELOSMQ_HISTORIES", "60")) // 2
FIRST_SEED = int(os.environ.get("DELOSMQ_SEED", "0"))
EAGERLY = replace(SETTINGS, journal=EAGER)
PATIENCE = 60
"""A canary must be caught within so many histories."""


@pytest.fixture(autouse=True)
def counted_from_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    Compacting.compactions = 0


@pytest.mark.timeout(600)
def test_what_clients_were_told_is_true_whenever_power_goes_during_a_compaction() -> None:
    for seed in range(FIRST_SEED, FIRST_SEED + HISTORIES):
        try:
            run_history(seed, Compacting, settings=EAGERLY)
        except AssertionError as error:
            error.add_note(f"run_history({seed}, Compacting, settings=EAGERLY) brings it back")
            raise
    assert Compacting.compactions > 20 * HISTORIES, "nothing was compacted, so nothing was proved"


@pytest.mark.parametrize("mutant", COMPACTION_MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_broken_compaction_is_caught(mutant: type[Compacting]) -> None:
    for seed in range(PATIENCE):
        try:
            run_history(seed, mutant, settings=EAGERLY)
        except (AssertionError, StorageError, InvariantError):
            return
    pytest.fail(f"{mutant.__name__} went unnoticed in {PATIENCE} histories")
