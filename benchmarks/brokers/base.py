"""The port all brokers are driven through."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType

from benchmarks.cells import PREFETCH
from benchmarks.machine import pinned, process_tree

CHECKOUT = Path(__file__).resolve().parents[2]
CACHE = CHECKOUT / "benchmarks" / ".cache"

_STOP_TIMEOUT_S = 20.0


class BrokerUnavailable(Exception):
    """The broker can't be had here; the message is one sentence that says why and what to do."""


class Driver(ABC):
    """How one broker is obtained, configured and started. `prepare` comes first, then any number of starts."""

    name: str
    login = "bench"
    passcode = "bench-passcode"
    host = "/"
    needs_warm_up = False
    measures_latency = True

    @abstractmethod
    def version(self) -> str:
        """As its package says. Raises BrokerUnavailable."""

    @abstractmethod
    def prepare(self, directory: Path, port: int) -> None:
        """Write configuration for a fresh instance in the directory, with the protocol on the port."""

    @abstractmethod
    def command(self, directory: Path) -> list[str]:
        """The command that runs the prepared instance in the foreground."""

    def environment(self, directory: Path) -> dict[str, str]:
        """Variables for `command`."""
        return {}

    def companions(self, directory: Path) -> list[list[str]]:
        """Commands that must run beside it; they count as part of the broker."""
        return []

    @abstractmethod
    def subscribe_headers(self) -> dict[str, str]:
        """What asks for the common prefetch."""

    def settings(self) -> str:
        """In one sentence, what was set beside ports and paths."""
        return "defaults"


def prefetch_headers(name: str) -> dict[str, str]:
    """The common prefetch under the broker's name for it."""
    return {name: str(PREFETCH)}


class RunningBroker:
    """A started broker; leaving the context stops all its processes."""

    def __init__(self, driver: Driver, directory: Path, port: int, core: int | None) -> None:
        self.driver = driver
        self.directory = directory
        self.port = port
        self._core = core
        self._processes: list[subprocess.Popen[bytes]] = []
        self.started_at = 0.0

    def __enter__(self) -> RunningBroker:
        variables = {**os.environ, **self.driver.environment(self.directory)}
        commands = [*self.driver.companions(self.directory), self.driver.command(self.directory)]
        with pinned(self._core), (self.directory / "output.log").open("ab") as log:
            for command in commands:
                self.started_at = time.perf_counter()
                process = subprocess.Popen(
                    command,
                    cwd=self.directory,
                    env=variables,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
                self._processes.append(process)
        return self

    @property
    def roots(self) -> list[int]:
        """The processes we started; with their descendants they are the broker."""
        return [process.pid for process in self._processes]

    def check_alive(self) -> None:
        """Raises BrokerUnavailable with the end of its output if the broker has ended."""
        if self._processes[-1].poll() is not None:
            log = (self.directory / "output.log").read_text(errors="replace")[-1500:]
            raise BrokerUnavailable(f"{self.driver.name} ended while starting; its output ended with:\n{log}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in reversed(self._processes):
            tree = process_tree(process.pid)
            process.terminate()
            try:
                process.wait(_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            # Descendants that outlived it; a process id is not given away again within this moment.
            for pid in tree[1:]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
