"""Compare brokers over one protocol; the tables come from `benchmarks.report`.

In each round every broker gets its turn alone, started afresh on one core with the generator on another, and the order
changes from round to round. Figures are medians over the rounds and mean something as ratios within one run.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.brokers.base import CACHE, CHECKOUT, BrokerUnavailable, Driver, RunningBroker
from benchmarks.comparison import Comparison
from benchmarks.load import GeneratorError, Load
from benchmarks.measure import BrokerRound, Plan, fresh_directory, measure_round, warm_up

RESULTS = CHECKOUT / "benchmarks" / "results"
_FORMAT_VERSION = 1
_QUICK_SHARE = 0.03


def run(comparison: Comparison, words: list[str]) -> tuple[int, Path | None]:
    """Run with these arguments and write the results file; the exit code and its path."""
    arguments = _arguments(comparison, words)
    if not sys.platform.startswith("linux"):
        print("The benchmark needs Linux: it pins processes to cores and reads /proc.", file=sys.stderr)
        return 2, None
    CACHE.mkdir(exist_ok=True)
    broker_core, generator_core = machine.cores()
    drivers, versions, absent = _available(comparison, arguments.brokers)
    described = machine.describe(CACHE)
    try:
        load = comparison.load(generator_core)
    except BrokerUnavailable as reason:
        print(f"The load can't be had: {reason}", file=sys.stderr)
        return 2, None
    with load:
        plan = _plan(comparison, arguments, load, broker_core)
        rounds = _rounds(comparison, drivers, plan, 1 if arguments.quick else arguments.rounds)
    output = {
        "format": _FORMAT_VERSION,
        "kind": comparison.name,
        "quick": arguments.quick,
        "machine": described,
        "pinned": broker_core is not None,
        "conditions": {**comparison.conditions, "latency_s": plan.latency_s, "share": plan.share},
        "versions": versions,
        "settings": {driver.name: driver.settings() for driver in drivers},
        "absent": absent,
        "rounds": rounds,
    }
    return 0, _write(output, arguments.output)


def _plan(comparison: Comparison, arguments: argparse.Namespace, load: Load, broker_core: int | None) -> Plan:
    wanted = arguments.cell or [""]
    return Plan(
        load=load,
        cells=[cell for cell in comparison.cells if any(part in cell.name for part in wanted)],
        cold_cells=comparison.cold_cells,
        warm_up=comparison.warm_up,
        share=_QUICK_SHARE if arguments.quick else arguments.share,
        latency_s=0.5 if arguments.quick else arguments.latency_s,
        broker_core=broker_core,
    )


def _rounds(comparison: Comparison, drivers: list[Driver], plan: Plan, count: int) -> list[dict[str, Any]]:
    rounds: list[dict[str, Any]] = []
    if comparison.warms_load and drivers:
        _warm_load(drivers[0], plan)
    for number in range(count):
        turn = number % len(drivers) if drivers else 0
        for driver in drivers[turn:] + drivers[:turn]:
            result = _one_turn(driver, plan, number)
            if result is not None:
                rounds.append({"round": number, **dataclasses.asdict(result)})
    return rounds


def _warm_load(driver: Driver, plan: Plan) -> None:
    print(f"warming the generator with {driver.name}", file=sys.stderr)
    port = machine.free_port()
    with fresh_directory() as directory:
        driver.prepare(directory, port)
        with RunningBroker(driver, directory, port, plan.broker_core) as broker:
            try:
                plan.load.await_first_confirmation(broker)
                warm_up(broker, plan)
            except (BrokerUnavailable, GeneratorError) as reason:
                print(reason, file=sys.stderr)


def _arguments(comparison: Comparison, words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks {comparison.name}", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few thousand messages and one round: does it work?")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--share", type=float, default=1.0, help="of the messages of each cell (default all)")
    parser.add_argument("--latency-s", type=float, default=8.0, help="seconds at half load per cell (default 8)")
    parser.add_argument("--cell", action="append", help="only cells whose name contains this; may be repeated")
    parser.add_argument("--output", type=Path, help="results file (default benchmarks/results/<date>.json)")
    parser.add_argument(
        "--brokers",
        type=lambda text: text.split(","),
        default=list(comparison.default_brokers),
        help=f"of {','.join(comparison.drivers)} (default {','.join(comparison.default_brokers)})",
    )
    arguments = parser.parse_args(words)
    unknown = [name for name in arguments.brokers if name not in comparison.drivers]
    if unknown:
        parser.error(f"there is no broker {unknown[0]}; there are {', '.join(comparison.drivers)}")
    return arguments


def _available(comparison: Comparison, names: list[str]) -> tuple[list[Driver], dict[str, str], dict[str, str]]:
    """The drivers that can run here, the versions of their brokers, and why the others can't."""
    drivers, versions, absent = [], {}, {}
    for name in names:
        driver = comparison.drivers[name]()
        try:
            versions[name] = driver.version()
        except BrokerUnavailable as reason:
            absent[name] = str(reason)
            print(reason, file=sys.stderr)
        else:
            drivers.append(driver)
    return drivers, versions, absent


def _one_turn(driver: Driver, plan: Plan, number: int) -> BrokerRound | None:
    print(f"round {number + 1}: {driver.name}", file=sys.stderr)
    try:
        result = measure_round(driver, plan)
    except (BrokerUnavailable, GeneratorError) as reason:
        print(reason, file=sys.stderr)
        return None
    for cell in result.cells:
        print(
            f"  {cell.cell}: {cell.rate_per_s:,.0f}/s, {cell.broker_cpu_s_per_million:.1f} CPU s per million",
            file=sys.stderr,
        )
    for failure in result.failures:
        print(f"  failed: {failure}", file=sys.stderr)
    return result


def _write(output: dict[str, Any], path: Path | None) -> Path:
    if path is None:
        RESULTS.mkdir(exist_ok=True)
        kind = f"{output['kind']}-quick" if output["quick"] else output["kind"]
        path = RESULTS / f"{kind}-{datetime.now(UTC):%Y-%m-%dT%H%M%SZ}.json"
    path.write_text(json.dumps(output, indent=1) + "\n")
    return path
