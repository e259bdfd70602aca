"""Kills of everything that takes part in an archive; afterwards each message is there once.

DELOSMQ_SPARK_KILLS is the number of kills per kind; the long form is 5. Without it two kinds are killed once each.
"""

# PIPE-1

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.spark.brokers import BROKERS, BrokerUnderTest
from tests.spark.interceptor import Interceptor
from tests.spark.test_archive import read_with_pyarrow

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(3600)]

KILLS = int(os.environ.get("DELOSMQ_SPARK_KILLS", "0"))
ROUND_ROWS = 400
BATCH_ROWS = 100
ROOT = Path(__file__).parents[2]

# kind = what to look for in the command line of a process below the driver; None is the driver's Python itself.
CLUSTER = "local-cluster[2,1,512]"
"""Two executors, each a process of its own."""
ONE_PROCESS = "local[2]"
"""The driver is executor too: for moments at which everything dies together."""

KINDS = {
    "driver-jvm": "org.apache.spark.deploy.SparkSubmit",
    "driver-python": None,
    "source": "python_streaming_source_runner",
    "executor": "CoarseGrainedExecutorBackend",
}
SHORT_FORM = ("source", "driver-jvm")
MASTERS = {"source": CLUSTER, "executor": CLUSTER}
"""Elsewhere `ONE_PROCESS`, which starts three times as fast."""


class Driver:
    """A run of archive_child.py and all processes below it."""

    def __init__(
        self, interceptor: Interceptor, broker: BrokerUnderTest, to: Path, master: str, die_at_batch: int = -1
    ) -> None:
        self._scratch = to.parent / "scratch"
        self._scratch.mkdir(exist_ok=True)
        settings = {
            "connection": {"servers": interceptor.servers, "user": broker.user, "password": broker.password},
            "to": str(to),
            "master": master,
            "scratch": str(self._scratch),
            "max_rows": BATCH_ROWS,
            "die_at_batch": die_at_batch,
        }
        # Absolute, because the child runs elsewhere.
        paths = [os.path.abspath(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
        self._output = open(to.parent / "output", "ab")  # noqa: SIM115 - closed in finish
        self._process = subprocess.Popen(
            [sys.executable, str(ROOT / "tests" / "spark" / "archive_child.py"), json.dumps(settings)],
            cwd=self._scratch,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([*paths, str(ROOT)])},
            stdout=self._output,
            stderr=self._output,
        )
        self._seen: set[psutil.Process] = set()

    def kill(self, kind: str) -> bool:
        """Kill one process of that kind; false when there is none (yet, or any more)."""
        self._look()
        wanted = KINDS[kind]
        for process in [psutil.Process(self._process.pid)] if wanted is None else list(self._seen):
            try:
                if wanted is None or any(wanted in argument for argument in process.cmdline()):
                    process.kill()
                    return True
            except psutil.NoSuchProcess:
                continue
        return False

    def kill_all(self) -> None:
        """As if the driver's machine lost its power."""
        self._look()
        for process in [psutil.Process(self._process.pid), *self._seen]:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue

    def finish(self) -> int:
        """Wait for the driver, then end what it left behind; returns its exit code."""
        code = self._process.wait(timeout=600)
        for process in self._seen:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        deadline = time.monotonic() + 60
        while any(_runs(process) for process in self._seen):
            assert time.monotonic() < deadline, "a killed process does not end"
            time.sleep(0.02)
        self._output.close()
        return code

    def _look(self) -> None:
        try:
            self._seen.update(psutil.Process(self._process.pid).children(recursive=True))
        except psutil.NoSuchProcess:
            return


def _runs(process: psutil.Process) -> bool:
    """False also for the zombies of orphans, which nobody may ever collect."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Scene:
    """A broker behind an interceptor, an archive, and all that was ever published."""

    def __init__(self, broker: BrokerUnderTest, directory: Path) -> None:
        self.broker, self.to = broker, directory / "archive"
        self.master = ONE_PROCESS
        self.interceptor = Interceptor(broker.servers)
        self.published: list[bytes] = []
        self.publish()

    def publish(self) -> None:
        bodies = [b"%d" % (len(self.published) + at) for at in range(ROUND_ROWS)]
        self.broker.publish("q", bodies)
        self.published += bodies

    def run(self, strike: Callable[[Driver, str, str, bytes], bool] | None = None, die_at_batch: int = -1) -> int:
        """One driver; `strike` sees every call until it answers that it has struck."""
        driver = Driver(self.interceptor, self.broker, self.to, self.master, die_at_batch)
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


# PIPE-3
def test_random_kills_of_every_part_lose_and_double_nothing(scene: Scene):
    chance = random.Random(20260301)
    for kind in [kind for kind in KINDS for _ in range(KILLS)] if KILLS else SHORT_FORM:
        calls = chance.randint(1, 12)
        seen = 0

        def strike(driver: Driver, when: str, path: str, body: bytes, kind: str = kind, at: int = calls) -> bool:
            nonlocal seen
            seen += "/rows" in path or path.endswith("/lease")
            return seen >= at and driver.kill(kind)

        scene.master = MASTERS.get(kind, ONE_PROCESS)
        code = scene.run(strike)
        # A cluster survives an executor; the query goes on.
        assert (code == 0) == (kind == "executor"), (kind, (scene.to.parent / "output").read_text()[-3000:])
        scene.publish()
    scene.check()


def test_kills_at_every_moment_of_one_batch_lose_and_double_nothing(scene: Scene):
    """Each run takes up what the one before left of the second batch, and gets one moment further."""

    def leased_but_not_in_sparks_offset_log(driver: Driver, when: str, path: str, body: bytes) -> bool:
        if when == "after" and path.endswith("/lease") and json.loads(body)["lease"] == 2:
            driver.kill_all()
            return True
        return False

    def committed_but_the_lease_not_acknowledged(driver: Driver, when: str, path: str, body: bytes) -> bool:
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
