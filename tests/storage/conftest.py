"""A journal on a simulated disk, with a hand on everything that happens in the background."""

from random import Random

import pytest

from tests.storage.bench import Bench


@pytest.fixture
def bench() -> Bench:
    return Bench(Random(1))
