"""One broker, one round: started in a fresh directory, measured cold and warm, stopped, started once more."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.brokers.base import CACHE, Driver, RunningBroker
from benchmarks.cells import Cell
from benchmarks.load import GeneratorError, Load

_SETTLE_S = 2.0


@dataclass(frozen=True)
class Plan:
    """What is measured with which load, and how much of each: `share` of the message counts, seconds of open load per
    latency figure."""

    load: Load
    cells: Sequence[Cell]
    cold_cells: Sequence[Cell]
    warm_up: Sequence[Cell]
    share: float
    latency_s: float
    broker_core: int | None


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
    with fresh_directory() as directory:
        port = machine.free_port()
        driver.prepare(directory, port)
        with RunningBroker(driver, directory, port, plan.broker_core) as broker:
            result.start_fresh_s = plan.load.await_first_confirmation(broker)
            time.sleep(_SETTLE_S)
            result.memory_idle_mib = machine.memory_mib(broker.roots)
            for cell in plan.cold_cells:
                run_cell(broker, cell.scaled(plan.share), plan, result, latency=False)
            if driver.needs_warm_up:
                warm_up(broker, plan)
            for cell in plan.cells:
                run_cell(broker, cell.scaled(plan.share), plan, result, latency=driver.measures_latency)
            result.memory_loaded_mib = machine.memory_mib(broker.roots)
        with RunningBroker(driver, directory, port, plan.broker_core) as broker:
            result.start_again_s = plan.load.await_first_confirmation(broker)
    return result


def warm_up(broker: RunningBroker, plan: Plan) -> None:
    """What a virtual machine that compiles as it runs is given before anything counts."""
    for cell in plan.warm_up:
        scaled = cell.scaled(plan.share)
        plan.load.open(broker, _whole(scaled.messages, scaled), None)
        plan.load.go()


@contextmanager
def fresh_directory() -> Iterator[Path]:
    """Below the checkout, hence on a disk and not in memory as /tmp may be."""
    CACHE.mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="run-", dir=CACHE))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _whole(messages: int, cell: Cell) -> Cell:
    """The cell with so many messages, as many for each connection."""
    return replace(cell, messages=messages // cell.connections * cell.connections)


def run_cell(broker: RunningBroker, cell: Cell, plan: Plan, result: BrokerRound, *, latency: bool) -> None:
    """Measure one cell as fast as it goes, then with `latency` at half that rate, and add it to the result."""
    try:
        measured = _measure_load(broker, cell, plan.load)
        if latency and plan.latency_s:
            measured.open_rate_per_s = measured.rate_per_s / 2
            messages = max(int(measured.open_rate_per_s * plan.latency_s), 20 * cell.connections)
            plan.load.open(broker, _whole(messages, cell), measured.open_rate_per_s)
            outcome = plan.load.go()
            measured.delivery = asdict(outcome.delivery) if outcome.delivery else None
            measured.receipt = asdict(outcome.receipt) if outcome.receipt else None
            measured.send_lag = asdict(outcome.send_lag) if outcome.send_lag else None
    except GeneratorError as error:
        result.failures.append(f"{cell.name}: {error}")
    else:
        result.cells.append(measured)


def _measure_load(broker: RunningBroker, cell: Cell, load: Load) -> CellResult:
    cell = _whole(cell.messages, cell)
    load.open(broker, cell, None)
    disk_before, cpu_before = machine.disk_count(broker.directory), machine.cpu_s(broker.roots)
    outcome = load.go()
    cpu_s, disk_after = machine.cpu_s(broker.roots) - cpu_before, machine.disk_count(broker.directory)
    disk = disk_after.since(disk_before) if disk_after and disk_before else None
    if not outcome.sent == outcome.received == cell.messages:
        raise GeneratorError(f"sent {outcome.sent} and received {outcome.received} of {cell.messages}")
    confirmed_after_s = outcome.confirmed_after_s if cell.outstanding is not None else None
    return CellResult(
        cell=cell.name,
        messages=cell.messages,
        rate_per_s=round(cell.messages / outcome.elapsed_s, 1),
        confirmed_per_s=round(cell.messages / confirmed_after_s, 1) if confirmed_after_s else None,
        broker_cpu_s_per_million=round(cpu_s / cell.messages * 1e6, 2),
        generator_cpu_s_per_million=round(outcome.generator_cpu_s / cell.messages * 1e6, 2),
        flushes_per_thousand=round(disk.flushes / cell.messages * 1000, 1) if disk else None,
        written_bytes_per_message=round(disk.written_bytes / cell.messages, 1) if disk else None,
    )
