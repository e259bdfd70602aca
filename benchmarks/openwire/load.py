"""Load over OpenWire: one Java virtual machine with the real client, told what to do line by line."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks import java
from benchmarks.brokers.base import CACHE, BrokerUnavailable, RunningBroker
from benchmarks.cells import Cell, Outcome
from benchmarks.load import GeneratorError, Load
from benchmarks.machine import pinned
from benchmarks.openwire.cells import BATCH, BODY_SIZE_BYTES, OPTIMIZED, TRANSACTED, OpenWireCell

_SOURCES = Path(__file__).resolve().parent / "java"
# One collector thread and a large young generation: pauses are short and few, and alike for all brokers.
_JVM_OPTIONS = ("-Xms640m", "-Xmx640m", "-Xmn480m", "-XX:+UseSerialGC", "-XX:-UsePerfData")
_START_TIMEOUT_S = 60.0
_STALL_AFTER_S = 60
_STOP_TIMEOUT_S = 10.0
_URL = "tcp://127.0.0.1:{port}?tcpNoDelay=true"


class OpenWireLoad(Load):
    """One virtual machine for a whole comparison: it is warm whichever broker comes first. `core` is its own."""

    def __init__(self, core: int | None, command: Sequence[str] | None = None) -> None:
        """
        Args:
            command: what generates the load; None compiles and runs our Java programs.

        Raises:
            BrokerUnavailable: no Java development kit, or no client.
        """
        self._command = _java_command() if command is None else list(command)
        self._core = core
        self._queues = 0
        self._generator: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        CACHE.mkdir(exist_ok=True)
        with pinned(self._core), (CACHE / "openwire-generator.log").open("w") as log:
            self._generator = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        generator = self._generator
        if generator is None:
            return
        assert generator.stdin is not None
        assert generator.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            generator.stdin.close()
        generator.stdout.close()
        try:
            generator.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            generator.kill()
            generator.wait()

    def await_first_confirmation(self, broker: RunningBroker) -> float:
        try:
            self._say("confirm", broker, queue="bench.probe", withinMs=int(_START_TIMEOUT_S * 1000))
            self._answer()
        except GeneratorError as error:
            broker.check_alive()
            raise BrokerUnavailable(f"{broker.driver.name} confirmed nothing: {error}") from error
        return round(time.perf_counter() - broker.started_at, 3)

    def open(self, broker: RunningBroker, cell: Cell, rate_per_s: float | None) -> None:
        assert isinstance(cell, OpenWireCell)
        self._say(
            "run",
            broker,
            queues=f"bench.{self._queues}.",
            persistent=_flag(cell.persistent),
            transacted=_flag(cell.mode == TRANSACTED),
            optimizeAcknowledge=_flag(cell.mode == OPTIMIZED),
            pairs=cell.connections,
            messages=cell.messages,
            batch=BATCH,
            bodyBytes=BODY_SIZE_BYTES,
            inFlightPerPair=cell.in_flight_per_pair,
            rate=rate_per_s or 0,
            stallAfterS=_STALL_AFTER_S,
        )
        self._answer()

    def go(self) -> Outcome:
        self._write("go")
        return Outcome.from_json(self._answer())

    def _say(self, command: str, broker: RunningBroker, **values: object) -> None:
        named = {
            "url": _URL.format(port=broker.port),
            "user": broker.driver.login,
            "password": broker.driver.passcode,
            **values,
        }
        self._write(" ".join([command, *(f"{name}={value}" for name, value in named.items())]))

    def _write(self, line: str) -> None:
        generator = self._generator
        assert generator is not None, "the load is not started"
        assert generator.stdin is not None
        try:
            generator.stdin.write(line + "\n")
            generator.stdin.flush()
        except BrokenPipeError as error:
            raise GeneratorError(f"the generator ended; see {CACHE / 'openwire-generator.log'}") from error

    def _answer(self) -> dict[str, Any]:
        generator = self._generator
        assert generator is not None, "the load is not started"
        assert generator.stdout is not None
        line = generator.stdout.readline()
        if not line:
            raise GeneratorError(f"the generator ended; see {CACHE / 'openwire-generator.log'}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            # What is left in queues must not reach the next load.
            self._queues += 1
            raise GeneratorError(answer["error"])
        return answer


def _java_command() -> list[str]:
    libraries, _ = java.client_libraries()
    classes = java.compiled(_SOURCES, libraries, CACHE / "classes")
    classpath = ":".join(str(path) for path in (classes, *libraries))
    return [java.tool("java"), *_JVM_OPTIONS, "-cp", classpath, "bench.Main"]


def _flag(value: bool) -> str:
    return "true" if value else "false"
