"""Batches that are large for a journal file, and what they do to the space of the next ones."""

from random import Random

import pytest

from tests.storage.bench import Bench

SIZES = (500, 3_000, 10_000, 20_000)


@pytest.mark.parametrize("seed", range(5))
def test_space_is_short_before_a_message_is_refused(seed: int) -> None:
    """Whoever looks at what `on_space` told before each message has none refused: also right after a roll that a large
    message asked for, with no other file ready."""
    random = Random(seed)
    bench = Bench(Random(seed))
    bench.sync()
    for _ in range(60):
        homes = []
        while not (bench.listener.space and bench.listener.space[-1]) and random.random() < 0.97:
            homes.append(bench.put(bytes(random.choice(SIZES))))
            bench.store.flush()
        if homes and random.random() < 0.9:
            bench.release(*homes)
        bench.sync()
