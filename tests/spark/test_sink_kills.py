"""Kills of everything that takes part in a query from a queue to a queue; afterwards each message is there once.

DELOSMQ_SPARK_KILLS is the number of kills per kind; the long form is 5. Without it a driver is killed once, between
what its tasks staged and what it publishes, and an executor once.
"""

# PIPE-1

import os
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.spark.brokers import RealBroker, StompBroker
from tests.spark.interceptor import Interceptor
from tests.spark.processes import CLUSTER, ONE_PROCESS, DriverProcess, KillableBroker
from tests.spark.test_sink_faults import bodies_in, staged_parts

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(3600)]

KILLS = int(os.environ.get("DELOSMQ_SPARK_KILLS", "0"))
ROUND_ROWS = 300
BATCH_ROWS = 100
BROKER = "broker"
LONG_FORM = ("driver-jvm", "driver-python", "executor", BROKER)
SHORT_FORM = ("executor",)
Strike = Callable[[DriverProcess, str, str], bool]
"""Sees when ("before", "after") and the path of each call; true when it has struck."""


class SinkScene:
    """A broker behind an interceptor, and all that was ever sent to the queue that is read."""

    def __init__(self, broker: StompBroker, directory: Path) -> None:
        self.broker = broker
        self.directory = directory
        self.interceptor = Interceptor(broker.servers)
        self.sent: list[bytes] = []
        broker.make_queue("out")
        self.send()

    def send(self) -> None:
        bodies = [b"%d" % (len(self.sent) + at) for at in range(ROUND_ROWS)]
        self.broker.publish("in", bodies)
        self.sent += bodies

    def run(self, strike: Strike | None = None, master: str = ONE_PROCESS) -> int:
        """One driver; its exit code."""
        connection = {
            "servers": self.interceptor.servers,
            "user": self.broker.user,
            "password": self.broker.password,
        }
        settings = {
            "connection": connection,
            "checkpoint": str(self.directory / "checkpoint"),
            "max_rows": BATCH_ROWS,
        }
        driver = DriverProcess("sink_child.py", self.directory, master, settings)
        lock = threading.Lock()
        struck = strike is None

        def hook(when: str, path: str, body: bytes) -> None:
            nonlocal struck
            with lock:
                if not struck and strike is not None:
                    struck = strike(driver, when, path)
                    if struck:
                        # This call is lost with whatever was killed: it goes no further in either direction.
                        raise ConnectionAbortedError

        self.interceptor.hook = hook
        code = driver.finish()
        assert struck, "the run ended before the moment of the kill came"
        return code

    def check(self) -> None:
        """A run without kills, then what was written equals what was sent."""
        output = self.directory / "output"
        assert self.run() == 0, output.read_text(errors="replace")[-3000:]
        assert sorted(map(int, bodies_in(self.broker, "out"))) == sorted(map(int, self.sent))
        assert staged_parts(self.broker) == []


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[SinkScene]:
    broker = KillableBroker(tmp_path / "broker") if KILLS else RealBroker()
    scene = SinkScene(broker, tmp_path)
    yield scene
    scene.interceptor.stop()
    broker.stop()


# PIPE-3
def test_a_driver_that_is_killed_between_staging_and_publishing_loses_and_doubles_nothing(scene: SinkScene):
    calls = 0

    def staged_and_not_published(driver: DriverProcess, when: str, path: str) -> bool:
        nonlocal calls
        calls += when == "before" and path.endswith("/publish")
        if calls == 2:
            driver.kill_all()
        return calls == 2

    assert scene.run(staged_and_not_published) != 0
    assert len(bodies_in(scene.broker, "out")) == BATCH_ROWS
    assert staged_parts(scene.broker) != []
    scene.check()


def test_random_kills_of_every_part_of_a_query_to_a_queue_lose_and_double_nothing(scene: SinkScene):
    chance = random.Random(20261124)
    for kind in [kind for kind in LONG_FORM for _ in range(KILLS)] if KILLS else SHORT_FORM:
        at = chance.randint(1, 9)
        when_wanted = chance.choice(["before", "after"])
        seen = 0

        def strike(
            driver: DriverProcess, when: str, path: str, kind: str = kind, at: int = at, wanted: str = when_wanted
        ) -> bool:
            nonlocal seen
            seen += when == wanted and ("/parts/" in path or path.endswith("/publish"))
            if seen < at:
                return False
            if kind != BROKER:
                return driver.kill(kind)
            assert isinstance(scene.broker, KillableBroker)
            scene.broker.process.kill()
            scene.broker.process.start()
            return True

        code = scene.run(strike, CLUSTER if kind == "executor" else ONE_PROCESS)
        # A cluster survives an executor, and a query the broker.
        assert (code == 0) == (kind in ("executor", BROKER)), (kind, at, when_wanted)
        scene.send()
    scene.check()
