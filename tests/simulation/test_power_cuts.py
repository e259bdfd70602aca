"""A journal on a disk that keeps any subset of the unsynced sectors: nothing confirmed is lost, nothing comes back.

``DELOSMQ_POWER_CUTS=1000`` runs more seeds than the suite does; every seed cuts power several times.
"""

# BROKER-1

import os

import pytest

from delosmq.model.errors import BrokerError
from delosmq.storage.journal.store import JournalStore
from tests.simulation.mutants import MUTANTS, TakesSmallFiles, TrustsTheManifestInThePageCache
from tests.simulation.power import growing_states, killed_starts, power_cuts

SEEDS = max(1, int(os.environ.get("DELOSMQ_POWER_CUTS", "100")) // 4)
GROWING_SEEDS = max(1, SEEDS // 3)
KILLING_SEEDS = max(1, SEEDS // 6)
CANARY_SEEDS = 300


@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_confirmed_is_lost_and_nothing_removed_comes_back(seed: int) -> None:
    power_cuts(seed, cuts=4)


@pytest.mark.parametrize("seed", range(GROWING_SEEDS))
def test_a_state_that_outgrows_the_files_loses_nothing(seed: int) -> None:
    growing_states(seed)


@pytest.mark.parametrize("seed", range(KILLING_SEEDS))
def test_starts_that_are_killed_on_what_a_kill_left_lose_nothing(seed: int) -> None:
    assert killed_starts(seed) > 0


def test_a_journal_that_trusts_a_manifest_in_the_page_cache_is_caught() -> None:
    for seed in range(CANARY_SEEDS):
        try:
            killed_starts(seed, TrustsTheManifestInThePageCache)
        except (AssertionError, BrokerError):
            return
    pytest.fail(f"it went unnoticed in {CANARY_SEEDS} runs")


def test_a_journal_that_begins_segments_in_small_files_is_caught() -> None:
    for seed in range(CANARY_SEEDS):
        try:
            growing_states(seed, TakesSmallFiles)
        except (AssertionError, BrokerError):
            return
    pytest.fail(f"it went unnoticed in {CANARY_SEEDS} runs")


def test_the_simulation_has_states_that_outgrow_the_files() -> None:
    assert max(growing_states(seed) for seed in range(5)) >= 1024 * 1024


def test_the_simulation_rolls_and_recycles() -> None:
    assert max(power_cuts(seed) for seed in range(5)) > 8


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_broken_journal_is_caught(mutant: type[JournalStore]) -> None:
    for seed in range(CANARY_SEEDS):
        try:
            power_cuts(seed, mutant)
        except (AssertionError, BrokerError):
            return
    pytest.fail(f"{mutant.__name__} went unnoticed in {CANARY_SEEDS} runs")
