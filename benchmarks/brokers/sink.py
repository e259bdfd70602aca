"""The stand-in that shows how fast the generator is."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.brokers.base import CHECKOUT, Driver


class SinkDriver(Driver):
    """benchmarks.sink, in a process of its own."""

    name = "sink"
    measures_latency = False  # half of what the generator can do at most would measure the generator

    def version(self) -> str:
        return "-"

    def prepare(self, directory: Path, port: int) -> None:
        self._port = port

    def command(self, directory: Path) -> list[str]:
        return [sys.executable, "-m", "benchmarks.sink", str(self._port)]

    def environment(self, directory: Path) -> dict[str, str]:
        return {"PYTHONPATH": str(CHECKOUT)}

    def subscribe_headers(self) -> dict[str, str]:
        return {}

    def settings(self) -> str:
        return "keeps nothing, checks nothing"
