"""Everything at once, briefly: clients of all kinds on a broker whose disk and power fail. Longer: `make simulate`.

Every found failure has a test of its own where it was mended; a seed that fails here is made short and told by
``python -m tests.simulation --seed N --short``.
"""

# BROKER-1, ACK-5

import logging

import pytest

from tests.simulation.whole.canaries import CANARIES
from tests.simulation.whole.history import ACTS, Broken, Canary, Tale, run_history, steps_of
from tests.simulation.whole.scarce import ScarceReserve, ScarceStore
from tests.simulation.whole.shrinker import failure_of, indexes, ranges, shrink

HISTORIES = 120
PART = 20


@pytest.fixture(autouse=True)
def no_torn_tails_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)


@pytest.mark.parametrize("part", range(HISTORIES // PART))
def test_what_any_client_was_told_is_true_after_any_failure(part: int) -> None:
    for seed in range(part * PART, (part + 1) * PART):
        try:
            run_history(seed)
        except Broken as failure:
            failure.add_note(f"python -m tests.simulation --seed {seed} --short")
            raise


def test_nor_does_a_disk_that_is_full_with_its_reserve_used_up() -> None:  # decision 0027
    before = ScarceReserve.owed_count
    for seed in range(3 * PART):
        try:
            run_history(seed, Canary(kind=ScarceStore))
        except Broken as failure:
            failure.add_note(f"seed {seed}, ScarceStore")
            raise
    assert ScarceReserve.owed_count - before >= PART


def test_enough_happens_in_the_histories() -> None:
    total = Tale()
    for seed in range(1_000, 1_000 + PART):
        total.add(run_history(seed))
    assert total.lives >= 3 * PART
    assert total.steps >= 50 * PART
    assert total.confirmed >= 5 * PART
    assert total.delivered >= 5 * PART
    assert total.acknowledged >= PART
    assert min(total.commits, total.prepared, total.duplicates, total.drained, total.leased, total.fenced) > 0


@pytest.mark.sources
@pytest.mark.parametrize("name", CANARIES)
def test_a_broker_that_breaks_a_promise_is_caught(name: str) -> None:
    canary = CANARIES[name]
    assert any(failure_of(seed, canary) is not None for seed in range(canary.within))


def test_every_kind_of_step_comes_up() -> None:
    assert {step.kind for seed in range(20) for step in steps_of(seed)} >= ACTS.keys()


@pytest.mark.sources
def test_a_failing_history_is_made_short_and_fails_again_as_before() -> None:
    canary = CANARIES["acknowledged lease served again"]
    seed = next(seed for seed in range(canary.within) if failure_of(seed, canary) is not None)
    found = shrink(seed, canary)
    assert found is not None
    kept, failure = found
    assert 0 < len(kept) < 20 < len(steps_of(seed))
    assert "has messages of leases before it" in str(failure)
    again = failure_of(seed, canary, indexes(ranges(kept)))
    assert again is not None
    assert (str(again), again.told) == (str(failure), failure.told)


def test_a_clean_history_has_nothing_to_make_short() -> None:
    assert shrink(0) is None


def test_steps_are_named_in_ranges() -> None:
    assert ranges([1, 4, 5, 6]) == "1,4-6"
    assert indexes("1,4-6") == [1, 4, 5, 6]
