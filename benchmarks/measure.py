"""One broker, one round: started in a fresh directory, measured cold and warm, stopped, started once more."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.brokers.base import CACHE, CHECKOUT, BrokerUnavailable, Driver, RunningBroker
from benchmarks.cells import COLD_CELLS, WARM_UP, Cell, Job, Outcome
from benchmarks.frames import RECEIPT_HEADER, send_frame
from benchmarks.generator import GeneratorError, await_reply, connect

_START_TIMEOUT_S = 60.0
_CONNECT_PAUSE_S = 0.002
_SETTLE_S = 2.0
_GENERATOR_TIMEOUT_S = 900.0


@dataclass(frozen=True)
class Plan:
    """How much of each: `share` of the message counts, seconds of open load per latency figure."""

    cells: Sequence[Cell]
    share: float
    latency_s: float
    cold: bool
    broker_core: int | None
    generator_core: int | None


@dataclass
class CellResult:
    """One cell in one round. Rates per second, CPU in seconds per million messages."""

    cell: str
    messages: int
    rate_per_s: float
    confirmed_per_s: float | None
    broker_cpu_s_per_million: float
    generator_cpu_s_per_million: float
    flushes_per_thousand: float | None
    written_bytes_per_message: float | None
    open_rate_per_s: float | None = None
    delivery: dict[str, Any] | None = None
    receipt: dict[str, Any] | None = None
    send_lag: dict[str, Any] | None = None


@dataclass
class BrokerRound:
    """All figures of one broker in one round."""

    broker: str
    start_fresh_s: float = 0.0
    start_again_s: float = 0.0
    memory_idle_mib: float = 0.0
    memory_loaded_mib: float = 0.0
    cells: list[CellResult] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def measure_round(driver: Driver, plan: Plan) -> BrokerRound:
    """Raises BrokerUnavailable if the broker does not start; a cell that fails is noted and the others go on."""
    result = BrokerRound(driver.name)
    with _fresh_directory() as directory:
        port = machine.free_port()
        driver.prepare(directory, port)
        with RunningBroker(driver, directory, port, plan.broker_core) as broker:
            result.start_fresh_s = wait_until_confirming(broker)
            time.sleep(_SETTLE_S)
            result.memory_idle_mib = machine.memory_mib(broker.roots)
            if plan.cold:
                for cell in COLD_CELLS:
                    run_cell(broker, cell.scaled(plan.share), plan, result, latency=False)
            if driver.needs_warm_up:
                for cell in WARM_UP:
                    _run_job(broker, _job(broker, cell.scaled(plan.share), plan))
            for cell in plan.cells:
                run_cell(broker, cell.scaled(plan.share), plan, result, latency=driver.measures_latency)
            result.memory_loaded_mib = machine.memory_mib(broker.roots)
        with RunningBroker(driver, directory, port, plan.broker_core) as broker:
            result.start_again_s = wait_until_confirming(broker)
    return result


@contextmanager
def _fresh_directory() -> Iterator[Path]:
    """Below the checkout, hence on a disk and not in memory as /tmp may be."""
    CACHE.mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="run-", dir=CACHE))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def wait_until_confirming(broker: RunningBroker) -> float:
    """Seconds from the start of the process until a persistent message was confirmed; the message stays."""
    probe = _job(broker, Cell("probe", True, 1, 1, 1), Plan((), 1.0, 0.0, False, None, None))
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


def _job(broker: RunningBroker, cell: Cell, plan: Plan, rate_per_s: float | None = None) -> Job:
    driver = broker.driver
    messages = cell.messages if rate_per_s is None else max(int(rate_per_s * plan.latency_s), 20 * cell.connections)
    return Job(
        port=broker.port,
        login=driver.login,
        passcode=driver.passcode,
        host=driver.host,
        subscribe_headers=driver.subscribe_headers(),
        persistent=cell.persistent,
        outstanding=cell.outstanding,
        connections=cell.connections,
        messages=messages // cell.connections * cell.connections,
        core=plan.generator_core,
        rate_per_s=rate_per_s,
    )


def run_cell(broker: RunningBroker, cell: Cell, plan: Plan, result: BrokerRound, *, latency: bool) -> None:
    """Measure one cell as fast as it goes, then with `latency` at half that rate, and add it to the result."""
    try:
        measured = _measure_load(broker, cell, plan)
        if latency and plan.latency_s:
            measured.open_rate_per_s = measured.rate_per_s / 2
            _, outcome, _ = _run_job(broker, _job(broker, cell, plan, measured.open_rate_per_s))
            measured.delivery = asdict(outcome.delivery) if outcome.delivery else None
            measured.receipt = asdict(outcome.receipt) if outcome.receipt else None
            measured.send_lag = asdict(outcome.send_lag) if outcome.send_lag else None
    except GeneratorError as error:
        result.failures.append(f"{cell.name}: {error}")
    else:
        result.cells.append(measured)


def _measure_load(broker: RunningBroker, cell: Cell, plan: Plan) -> CellResult:
    job = _job(broker, cell, plan)
    cpu_s, outcome, disk = _run_job(broker, job)
    if not outcome.sent == outcome.received == job.messages:
        raise GeneratorError(f"sent {outcome.sent} and received {outcome.received} of {job.messages}")
    confirmed_after_s = outcome.confirmed_after_s if cell.outstanding is not None else None
    return CellResult(
        cell=cell.name,
        messages=job.messages,
        rate_per_s=round(job.messages / outcome.elapsed_s, 1),
        confirmed_per_s=round(job.messages / confirmed_after_s, 1) if confirmed_after_s else None,
        broker_cpu_s_per_million=round(cpu_s / job.messages * 1e6, 2),
        generator_cpu_s_per_million=round(outcome.generator_cpu_s / job.messages * 1e6, 2),
        flushes_per_thousand=round(disk.flushes / job.messages * 1000, 1) if disk else None,
        written_bytes_per_message=round(disk.written_bytes / job.messages, 1) if disk else None,
    )


def _run_job(broker: RunningBroker, job: Job) -> tuple[float, Outcome, machine.DiskCount | None]:
    """The broker's CPU seconds, what the generator saw, and what the disk did meanwhile."""
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.generator"],
        cwd=CHECKOUT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as generator:
        assert generator.stdin is not None
        assert generator.stdout is not None
        generator.stdin.write(json.dumps(job.to_json()) + "\n")
        generator.stdin.flush()
        ready = generator.stdout.readline()
        disk_before, cpu_before = machine.disk_count(broker.directory), machine.cpu_s(broker.roots)
        output, errors = generator.communicate("go\n" if ready else None, timeout=_GENERATOR_TIMEOUT_S)
        cpu_after, disk_after = machine.cpu_s(broker.roots), machine.disk_count(broker.directory)
    if not output:
        raise GeneratorError((errors.strip().splitlines() or ["the generator ended without a word"])[-1])
    disk = disk_after.since(disk_before) if disk_after and disk_before else None
    return cpu_after - cpu_before, Outcome.from_json(json.loads(output)), disk
