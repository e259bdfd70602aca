"""A kill between what the tasks of a query to a queue staged and what its driver publishes; each message is there once.

Kills at random, of everything that takes part: `python -m tests.spark.cluster`, which `make check` runs in short.
"""

# PIPE-1

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.spark.brokers import RealBroker, StompBroker
from tests.spark.interceptor import Interceptor
from tests.spark.processes import ONE_PROCESS, DriverProcess
from tests.spark.test_sink_faults import bodies_in, staged_parts

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(3600)]

SENT = 300
BATCH_ROWS = 100
Strike = Callable[[DriverProcess, str, str], bool]
"""Sees when ("before", "after") and the path of each call; true when it has struck."""


class SinkScene:
    """A broker behind an interceptor, and all that was ever sent to the queue that is read."""

    def __init__(self, broker: StompBroker, directory: Path) -> None:
        self.broker = broker
        self.directory = directory
        self.interceptor = Interceptor(broker.servers)
        self.sent = [b"%d" % at for at in range(SENT)]
        broker.make_queue("out")
        broker.publish("in", self.sent)

    def run(self, strike: Strike | None = None) -> int:
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
        driver = DriverProcess("sink_child.py", self.directory, ONE_PROCESS, settings)
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
    broker = RealBroker()
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
