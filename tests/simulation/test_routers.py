"""Routers under flapping targets, lost and late answers and clients that leave, briefly. Longer:
``python -m tests.simulation.routers --seeds 10000``."""

# ROUTE-2, ROUTE-3, ROUTE-4, ROUTE-5, ROUTE-6

import pytest

from tests.simulation.routers.mutants import MUTANTS
from tests.simulation.routers.oracle import Broken
from tests.simulation.routers.world import Tale, run_history

PART = 30
MOST_FOR_A_MUTANT = 400


@pytest.mark.parametrize("part", range(4))
def test_a_router_keeps_the_promises_of_the_page(part: int) -> None:
    total = Tale()
    for seed in range(part * PART, (part + 1) * PART):
        try:
            total.add(run_history(seed))
        except Broken as failure:
            failure.add_note(f"seed {seed}")
            raise
    assert min(vars(total).values()) > PART  # of each kind something happened


@pytest.mark.sources
@pytest.mark.parametrize("name", MUTANTS)
def test_one_that_breaks_a_promise_is_caught(name: str) -> None:
    for seed in range(MOST_FOR_A_MUTANT):
        try:
            run_history(seed, MUTANTS[name])
        except Broken:
            return
    raise AssertionError(f"{name} was not caught in {MOST_FOR_A_MUTANT} histories")
