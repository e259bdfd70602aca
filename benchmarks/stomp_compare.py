"""Compare brokers over STOMP: `python -m benchmarks.stomp_compare`; the tables come from `benchmarks.report`.

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
from benchmarks.brokers import DRIVERS, OURS, PEERS
from benchmarks.brokers.base import CACHE, CHECKOUT, BrokerUnavailable, Driver
from benchmarks.cells import ACK_EVERY, CELLS, IN_FLIGHT, PREFETCH
from benchmarks.frames import BODY_SIZE_BYTES
from benchmarks.measure import BrokerRound, Plan, measure_round

RESULTS = CHECKOUT / "benchmarks" / "results"
_DEFAULT_BROKERS = (*OURS, *PEERS, "sink")
_FORMAT_VERSION = 1


def main() -> int:
    """Run and print the path of the results file."""
    code, path = run(sys.argv[1:])
    if path is not None:
        print(path)
    return code


def run(words: list[str]) -> tuple[int, Path | None]:
    """Run with these arguments and write the results file; the exit code and its path."""
    arguments = _arguments(words)
    if not sys.platform.startswith("linux"):
        print("The benchmark needs Linux: it pins processes to cores and reads /proc.", file=sys.stderr)
        return 2, None
    CACHE.mkdir(exist_ok=True)
    broker_core, generator_core = machine.cores()
    plan = Plan(
        cells=[cell for cell in CELLS if not arguments.cell or any(part in cell.name for part in arguments.cell)],
        share=0.03 if arguments.quick else 1.0,
        latency_s=0.5 if arguments.quick else arguments.latency_s,
        cold=True,
        broker_core=broker_core,
        generator_core=generator_core,
    )
    drivers, versions, absent = _available(arguments.brokers)
    rounds: list[dict[str, Any]] = []
    described = machine.describe(CACHE)
    for number in range(1 if arguments.quick else arguments.rounds):
        turn = number % len(drivers) if drivers else 0
        for driver in drivers[turn:] + drivers[:turn]:
            result = _one_turn(driver, plan, number)
            if result is not None:
                rounds.append({"round": number, **dataclasses.asdict(result)})
    output = {
        "format": _FORMAT_VERSION,
        "quick": arguments.quick,
        "machine": described,
        "pinned": broker_core is not None,
        "conditions": _conditions(plan),
        "versions": versions,
        "settings": {driver.name: driver.settings() for driver in drivers},
        "absent": absent,
        "rounds": rounds,
    }
    return 0, _write(output, arguments.output)


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stomp_compare", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few thousand messages and one round: does it work?")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--latency-s", type=float, default=8.0, help="seconds at half load per cell (default 8)")
    parser.add_argument("--cell", action="append", help="only cells whose name contains this; may be repeated")
    parser.add_argument("--output", type=Path, help="results file (default benchmarks/results/<date>.json)")
    parser.add_argument(
        "--brokers",
        type=lambda text: text.split(","),
        default=list(_DEFAULT_BROKERS),
        help=f"of {','.join(DRIVERS)} (default {','.join(_DEFAULT_BROKERS)})",
    )
    arguments = parser.parse_args(words)
    unknown = [name for name in arguments.brokers if name not in DRIVERS]
    if unknown:
        parser.error(f"there is no broker {unknown[0]}; there are {', '.join(DRIVERS)}")
    return arguments


def _available(names: list[str]) -> tuple[list[Driver], dict[str, str], dict[str, str]]:
    """The drivers that can run here, the versions of their brokers, and why the others can't."""
    drivers, versions, absent = [], {}, {}
    for name in names:
        driver = DRIVERS[name]()
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
    except BrokerUnavailable as reason:
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


def _conditions(plan: Plan) -> dict[str, Any]:
    return {
        "body_size_bytes": BODY_SIZE_BYTES,
        "prefetch": PREFETCH,
        "ack_every": ACK_EVERY,
        "in_flight_without_receipts": IN_FLIGHT,
        "latency_s": plan.latency_s,
        "share": plan.share,
    }


def _write(output: dict[str, Any], path: Path | None) -> Path:
    if path is None:
        RESULTS.mkdir(exist_ok=True)
        kind = "stomp-quick" if output["quick"] else "stomp"
        path = RESULTS / f"{kind}-{datetime.now(UTC):%Y-%m-%dT%H%M%SZ}.json"
    path.write_text(json.dumps(output, indent=1) + "\n")
    return path


if __name__ == "__main__":
    sys.exit(main())
