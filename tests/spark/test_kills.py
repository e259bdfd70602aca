"""Kills of an archive's driver at each moment that differs from the others; each message is there once.

Kills at random, of everything that takes part: `python -m tests.spark.cluster`, which `make check` runs in short and
which has `--kills 200` as its long form.
"""

# PIPE-1

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from delosmq.spark.archive.marker import DELTA, PARQUET
from tests.spark.brokers import BROKERS, BrokerUnderTest
from tests.spark.interceptor import Interceptor
from tests.spark.processes import ONE_PROCESS, DriverProcess
from tests.spark.test_archive import read_with_pyarrow
from tests.spark.test_archive_kinds import read_delta

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(3600)]

ROUND_ROWS = 400
BATCH_ROWS = 100


class Scene:
    """A broker behind an interceptor, an archive, and all that was ever published."""

    def __init__(self, broker: BrokerUnderTest, directory: Path) -> None:
        self.broker, self.to = broker, directory / "archive"
        self.kind = PARQUET
        self.interceptor = Interceptor(broker.servers)
        self.published: list[bytes] = []
        self.publish()

    def publish(self) -> None:
        bodies = [b"%d" % (len(self.published) + at) for at in range(ROUND_ROWS)]
        self.broker.publish("q", bodies)
        self.published += bodies

    def run(
        self, strike: Callable[[DriverProcess, str, str, bytes], bool] | None = None, die_at_batch: int = -1
    ) -> int:
        """One driver; `strike` sees every call until it answers that it has struck."""
        settings = {
            "connection": {
                "servers": self.interceptor.servers,
                "user": self.broker.user,
                "password": self.broker.password,
            },
            "to": str(self.to),
            "kind": self.kind,
            "max_rows": BATCH_ROWS,
            "die_at_batch": die_at_batch,
        }
        driver = DriverProcess("archive_child.py", self.to.parent, ONE_PROCESS, settings)
        lock = threading.Lock()
        struck = strike is None

        def hook(when: str, path: str, body: bytes) -> None:
            nonlocal struck
            with lock:
                if not struck and strike is not None:
                    struck = strike(driver, when, path, body)
                    if struck:
                        # This call is lost with whatever was killed: it goes no further in either direction.
                        raise ConnectionAbortedError

        self.interceptor.hook = hook
        code = driver.finish()
        assert struck, "the run ended before the moment of the kill came"
        return code

    def check(self) -> None:
        """A run without kills, then the archive equals what was published."""
        output = self.to.parent / "output"
        assert self.run() == 0, output.read_text(errors="replace")[-3000:]
        if self.kind == DELTA:
            assert read_delta(self.to) == self.published
            return
        assert read_with_pyarrow(self.to) == self.published
        import pyarrow.parquet as pq

        # Every file by itself, the way a reader without any notion of partitions would.
        assert sum(pq.ParquetFile(path).metadata.num_rows for path in self.to.rglob("*.parquet")) == len(self.published)
        assert not list(self.to.glob(".spark-staging-*"))


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    broker = BROKERS[max(BROKERS)]()
    scene = Scene(broker, tmp_path)
    yield scene
    scene.interceptor.stop()
    broker.stop()


def test_kills_at_every_moment_of_one_batch_lose_and_double_nothing(scene: Scene):
    """Each run takes up what the one before left of the second batch, and gets one moment further."""

    def leased_but_not_in_sparks_offset_log(driver: DriverProcess, when: str, path: str, body: bytes) -> bool:
        if when == "after" and path.endswith("/lease") and json.loads(body)["lease"] == 2:
            driver.kill_all()
            return True
        return False

    def committed_but_the_lease_not_acknowledged(driver: DriverProcess, when: str, path: str, body: bytes) -> bool:
        if when == "before" and path.endswith("/lease") and json.loads(body)["after"] == 2:
            driver.kill_all()
            return True
        return False

    assert scene.run(leased_but_not_in_sparks_offset_log) != 0
    assert read_with_pyarrow(scene.to) == scene.published[:BATCH_ROWS]
    assert scene.run(die_at_batch=1) != 0  # its rows are written, it is not committed
    assert read_with_pyarrow(scene.to) == scene.published[: 2 * BATCH_ROWS]
    assert scene.run(committed_but_the_lease_not_acknowledged) != 0
    assert read_with_pyarrow(scene.to) == scene.published[: 2 * BATCH_ROWS]
    scene.check()


# PIPE-2
def test_a_batch_that_is_in_the_delta_table_when_its_driver_is_killed_is_there_once(scene: Scene):
    scene.kind = DELTA
    assert scene.run(die_at_batch=1) != 0
    assert read_delta(scene.to) == scene.published[: 2 * BATCH_ROWS]
    scene.check()
