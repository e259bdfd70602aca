"""How long the broker was busy with one thing, at most: what one peer makes it do, all others wait for."""

import time
from typing import Unpack

from tests.sessions.openwire.support import ACCEPTOR, OpenWireBench
from tests.sessions.support import Options

_NS_PER_MS = 1_000_000
_FRAME_SHOWN = 60
"""Bytes, from its beginning."""


class Longest:
    """The longest read, tick of the engine and turn of a session, in time that this thread was running."""

    def __init__(self) -> None:
        self._read_ns = 0
        self._frame = b""
        self._tick_ns = 0
        self._turn_ns = 0

    @staticmethod
    def now() -> int:
        return time.thread_time_ns()

    def read(self, began: int, frame: bytes) -> None:
        took = time.thread_time_ns() - began
        if took > self._read_ns:
            self._read_ns = took
            self._frame = frame

    def tick(self, began: int) -> None:
        self._tick_ns = max(self._tick_ns, time.thread_time_ns() - began)

    def turn(self, began: int) -> None:
        """All that a session does after its peer has read, or when its timer goes off."""
        self._turn_ns = max(self._turn_ns, time.thread_time_ns() - began)

    def told(self) -> str:
        """For the reader."""
        frame = self._frame
        shown = frame[:_FRAME_SHOWN].hex() + ("..." if len(frame) > _FRAME_SHOWN else "")
        return (
            f"longest read {self._read_ns / _NS_PER_MS:.1f} ms ({len(frame)} bytes: {shown}),"
            f" tick {self._tick_ns / _NS_PER_MS:.1f} ms, turn {self._turn_ns / _NS_PER_MS:.1f} ms"
        )


class TimedBench(OpenWireBench):
    """A bench that watches how long each step takes."""

    def __init__(self, **options: Unpack[Options]) -> None:
        super().__init__(acceptor=ACCEPTOR, **options)
        self.longest = Longest()

    def tick(self) -> None:
        longest = self.longest
        for _ in range(1_000):
            began = longest.now()
            again = self.broker.tick()
            longest.tick(began)
            self.sync()
            for client in self.clients:
                again = client.write() or again
            if not again:
                return
        raise AssertionError("the broker never comes to rest")
