"""Load over STOMP: `benchmarks.generator`, in a process of its own for each job."""

from __future__ import annotations

import json
import subprocess
import sys
import time

from benchmarks.brokers.base import CHECKOUT, BrokerUnavailable, RunningBroker
from benchmarks.cells import Cell, Job, Outcome
from benchmarks.frames import RECEIPT_HEADER, send_frame
from benchmarks.generator import await_reply, connect
from benchmarks.load import GeneratorError, Load

_START_TIMEOUT_S = 60.0
_CONNECT_PAUSE_S = 0.002
_GENERATOR_TIMEOUT_S = 900.0


class StompLoad(Load):
    """`core` is the generator's."""

    def __init__(self, core: int | None) -> None:
        self._core = core
        self._generator: subprocess.Popen[str] | None = None

    def await_first_confirmation(self, broker: RunningBroker) -> float:
        probe = self._job(broker, Cell("probe", True, 1, 1, 1), None)
        while True:
            try:
                connection = connect(probe)
                break
            except (OSError, GeneratorError):
                broker.check_alive()
                if time.perf_counter() - broker.started_at > _START_TIMEOUT_S:
                    raise BrokerUnavailable(
                        f"{broker.driver.name} did not open its port in {_START_TIMEOUT_S} s."
                    ) from None
                time.sleep(_CONNECT_PAUSE_S)
        with connection:
            connection.sendall(send_frame("/queue/probe", persistent=True, receipt="probe"))
            await_reply(connection, RECEIPT_HEADER)
            return round(time.perf_counter() - broker.started_at, 3)

    def _job(self, broker: RunningBroker, cell: Cell, rate_per_s: float | None) -> Job:
        driver = broker.driver
        return Job(
            port=broker.port,
            login=driver.login,
            passcode=driver.passcode,
            host=driver.host,
            subscribe_headers=driver.subscribe_headers(),
            persistent=cell.persistent,
            outstanding=cell.outstanding,
            connections=cell.connections,
            messages=cell.messages,
            core=self._core,
            rate_per_s=rate_per_s,
        )

    def open(self, broker: RunningBroker, cell: Cell, rate_per_s: float | None) -> None:
        self._generator = generator = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.generator"],
            cwd=CHECKOUT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert generator.stdin is not None
        assert generator.stdout is not None
        generator.stdin.write(json.dumps(self._job(broker, cell, rate_per_s).to_json()) + "\n")
        generator.stdin.flush()
        if not generator.stdout.readline():
            self._end(generator, None)

    def go(self) -> Outcome:
        generator = self._generator
        assert generator is not None, "open comes first"
        return Outcome.from_json(json.loads(self._end(generator, "go\n")))

    def _end(self, generator: subprocess.Popen[str], last_words: str | None) -> str:
        """What it wrote. Raises GeneratorError with its own last line when that is nothing."""
        with generator:
            output, errors = generator.communicate(last_words, timeout=_GENERATOR_TIMEOUT_S)
        self._generator = None
        if not output:
            raise GeneratorError((errors.strip().splitlines() or ["the generator ended without a word"])[-1])
        return output
