"""A journal on a simulated disk, with a hand on everything that happens in the background."""

import contextlib
from collections.abc import Iterator
from random import Random

import pytest

from delosmq.model.errors import StorageError
from delosmq.model.settings import DatabaseStoreSettings
from tests.storage.bench import Bench
from tests.storage.held_store import Held, Hold


@pytest.fixture
def bench() -> Bench:
    return Bench(Random(1))


@pytest.fixture
def hold() -> Iterator[Hold]:
    made: list[Held] = []

    def make(settings: DatabaseStoreSettings) -> Held:
        made.append(Held(settings))
        return made[-1]

    yield make
    for held in made:
        with contextlib.suppress(StorageError):
            held.store.close(10)
