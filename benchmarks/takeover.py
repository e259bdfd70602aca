"""How long clients are without a broker: `python -m benchmarks takeover`, with a pair on one shared directory.

A producer and a consumer of our client with a ``failover:`` URL work all the time. The active broker is killed, and the
time counts until the consumer has a message that was sent after that. Then the other one is killed, and so on. It exits
with 1 when the median is above `AIM_S`, with default settings and a journal of few messages: reading a large one takes
as long as after any restart.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from pathlib import Path
from statistics import median

from benchmarks.measure import fresh_directory
from delosmq.client import connect
from delosmq.testing import BrokerPair

AIM_S = 2.0
_QUEUE = "takeover"
_USER = _PASSWORD = "admin"
_PATIENCE_S = 60.0


class Traffic:
    """Messages that say when they were sent, all the time."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._over = False
        self._changed = threading.Condition()
        self._newest_sent_at = 0.0
        self._received_at = 0.0
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._produce, self._consume)]
        for thread in self._threads:
            thread.start()

    def _produce(self) -> None:
        with connect(self._url, user=_USER, password=_PASSWORD) as connection:
            while not self._over:
                connection.send(_QUEUE, repr(time.monotonic()))

    def _consume(self) -> None:
        with connect(self._url, user=_USER, password=_PASSWORD) as connection:
            while not self._over:
                for message in connection.messages(_QUEUE, timeout_s=0.5):
                    with self._changed:
                        self._received_at = time.monotonic()
                        self._newest_sent_at = max(self._newest_sent_at, float(message.text))
                        self._changed.notify_all()

    def await_sent_after(self, moment: float) -> float:
        """When the first message came that was sent after ``moment``."""
        with self._changed:
            came = self._changed.wait_for(lambda: self._newest_sent_at > moment, _PATIENCE_S)
            if not came:
                raise TimeoutError(f"no message within {_PATIENCE_S:g} s of a kill")
            return self._received_at

    def stop(self) -> None:
        self._over = True
        for thread in self._threads:
            thread.join(_PATIENCE_S)


def measure(directory: Path, times: int) -> list[float]:
    """Seconds from each kill to the first message at the next broker."""
    seconds: list[float] = []
    with BrokerPair(directory, backup="<allow-failback>false</allow-failback>") as pair:
        pair.start()
        traffic = Traffic(pair.openwire_url)
        active, waiting = pair.primary, pair.backup
        for _ in range(times):
            traffic.await_sent_after(time.monotonic())
            killed_at = time.monotonic()
            active.kill()
            seconds.append(traffic.await_sent_after(killed_at) - killed_at)
            active.launch()
            active.await_waiting()
            active, waiting = waiting, active
        traffic.stop()
    return seconds


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks takeover")
    parser.add_argument("--times", type=int, default=20, help="kills")
    asked = parser.parse_args(arguments)
    with fresh_directory() as directory:
        seconds = sorted(measure(directory, asked.times))
    middle = median(seconds)
    sys.stdout.write(
        "| kills | median s | least s | most s |\n|---|---|---|---|\n"
        f"| {len(seconds)} | {middle:.2f} | {seconds[0]:.2f} | {seconds[-1]:.2f} |\n"
    )
    return 1 if middle > AIM_S else 0
