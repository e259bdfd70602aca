"""The query of both_child.py beside all that can be killed, and what has become of each message."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.spark.interceptor import Interceptor
from tests.spark.processes import PATIENCE_S, DriverProcess, KillableBroker

ROUND_ROWS: Final = 200
BATCH_ROWS: Final = 100
MOST_CALLS: Final = 24
"""A kill comes before or after one of so many calls: about those of two batches."""
BROKER: Final = "broker"
ENDS_QUERY: Final = frozenset(("driver-python", "driver-jvm", "source"))
"""Kinds after which a new driver must start; the others a query survives."""
OUTPUT_CHARACTERS: Final = 5000
SLOW_START: Final = "Timed out while waiting for the Python worker to connect back"
"""Spark gives a Python process beside the driver ten seconds to start, whatever else the machine does; a driver that
ends by it is started again."""

Kill = Callable[[], bool]
"""Kills something, unless there is nothing to be killed yet."""


@dataclass(frozen=True)
class Tally:
    """How often each message that was sent has arrived in one place. ``strange``: arrived and was never sent."""

    place: str
    sent: int
    arrived: int
    lost: int
    doubled: int
    strange: int

    @property
    def is_right(self) -> bool:
        return self.lost == self.doubled == self.strange == 0


def tally(place: str, sent: Sequence[bytes], arrived: Sequence[bytes]) -> Tally:
    """`sent` has each message once."""
    counts = Counter(arrived)
    known = set(sent)
    return Tally(
        place,
        sent=len(sent),
        arrived=len(arrived),
        lost=sum(body not in counts for body in known),
        doubled=sum(count - 1 for body, count in counts.items() if body in known),
        strange=sum(body not in known for body in arrived),
    )


@dataclass
class _Strike:
    """A kill at the `at`-th call, `when` it has not gone on yet ("before") or its answer has not ("after")."""

    kill: Kill
    when: str
    at: int
    seen: int = 0
    done: threading.Event = field(default_factory=threading.Event)


class BothScene:
    """A broker behind an interceptor, and one query that runs on while things are killed.

    Args:
        kills: kinds of things to kill that are not below the driver, and how; the broker is one by itself.
    """

    def __init__(
        self, broker: KillableBroker, directory: Path, master: str, kills: Mapping[str, Kill] | None = None
    ) -> None:
        self.to = directory / "archive"
        self.sent: list[bytes] = []
        self._broker, self._directory, self._master = broker, directory, master
        self._kills = dict(kills or {})
        self._driver: DriverProcess | None = None
        self._printed_before = 0
        self._lock = threading.Lock()
        self._strike: _Strike | None = None
        self._interceptor = Interceptor(broker.servers)
        self._interceptor.hook = self._on_call
        broker.make_queue("in")
        broker.make_queue("out")

    def kill(self, kind: str, chance: random.Random) -> None:
        """Send a round of messages; kill one thing of that kind while they are worked on.

        Raises:
            AssertionError: the moment did not come, or the query ended where it should go on.
        """
        if self._driver is None:
            self._driver = self._start(endless=True)
        strike = _Strike(self._how(kind), chance.choice(["before", "after"]), chance.randint(1, MOST_CALLS))
        with self._lock:
            self._strike = strike
        self._send()
        deadline = time.monotonic() + PATIENCE_S
        while not strike.done.wait(0.1):
            if not self._driver.is_running:
                assert SLOW_START in self.output, f"the query ended before the kill of {kind}: {self.output}"
                self._driver.finish()
                self._driver = self._start(endless=True)
            assert time.monotonic() < deadline, f"there was no {kind} to kill: {self.output}"
        if kind in ENDS_QUERY:
            assert self._driver.finish() != 0, f"the kill of {kind} did not end the query: {self.output}"
            self._driver = None

    def drain(self) -> None:
        """One more kill, of all of the driver; then a run to the end of the queue that nothing disturbs."""
        if self._driver is not None:
            self._driver.kill_all()
            self._driver.finish()
        self._send()
        code = 1
        while code != 0:
            self._driver = self._start(endless=False)
            code = self._driver.finish()
            self._driver = None
            assert code == 0 or SLOW_START in self.output, self.output

    @property
    def output(self) -> str:
        """The end of what the driver that was started last has printed."""
        printed = (self._directory / "output").read_bytes()[self._printed_before :]
        return printed.decode(errors="replace")[-OUTPUT_CHARACTERS:]

    def stop(self) -> None:
        if self._driver is not None:
            self._driver.kill_all()
            self._driver.finish()
        self._interceptor.stop()

    def _send(self) -> None:
        bodies = [b"%d" % (len(self.sent) + at) for at in range(ROUND_ROWS)]
        self._broker.publish("in", bodies)
        self.sent += bodies

    def _start(self, *, endless: bool) -> DriverProcess:
        output = self._directory / "output"
        self._printed_before = output.stat().st_size if output.exists() else 0
        settings = {
            "connection": {
                "servers": self._interceptor.servers,
                "user": self._broker.user,
                "password": self._broker.password,
            },
            "to": str(self.to),
            "checkpoint": str(self._directory / "checkpoint"),
            "max_rows": BATCH_ROWS,
            "endless": endless,
        }
        return DriverProcess("both_child.py", self._directory, self._master, settings)

    def _how(self, kind: str) -> Kill:
        if kind == BROKER:
            return self._kill_broker
        return self._kills.get(kind) or (lambda: self._driver is not None and self._driver.kill(kind))

    def _kill_broker(self) -> bool:
        self._broker.restart()
        return True

    def _on_call(self, when: str, path: str, body: bytes) -> None:
        with self._lock:
            strike = self._strike
            if strike is None or when != strike.when:
                return
            strike.seen += 1
            if strike.seen >= strike.at and strike.kill():
                self._strike = None
                strike.done.set()
                # This call is lost with whatever was killed: it goes no further in either direction.
                raise ConnectionAbortedError
