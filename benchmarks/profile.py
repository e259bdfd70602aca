"""Where DelosMQ spends its time: `python -m benchmarks.profile`, which lists functions by their own time.

The pure form runs under cProfile while the generator sends; a compiled function would not be seen. The profiler makes
calls dearer than they are, so shares are a hint, and the CPU figures of `benchmarks.stomp_compare` the measure.
"""

from __future__ import annotations

import argparse
import dataclasses
import pstats
import sys
import tempfile
from pathlib import Path

from benchmarks import machine
from benchmarks.brokers.base import CACHE, BrokerUnavailable, RunningBroker
from benchmarks.brokers.delosmq import DelosMQ
from benchmarks.cells import CELLS, Cell
from benchmarks.generator import GeneratorError
from benchmarks.measure import BrokerRound, Plan, run_cell, wait_until_confirming


class ProfiledDelosMQ(DelosMQ):
    """The pure form under cProfile, which writes its statistics when the broker stops."""

    def __init__(self) -> None:
        super().__init__("delosmq-pure", environment=".venv")

    def command(self, directory: Path) -> list[str]:
        python, *rest = super().command(directory)
        return [python, "-m", "cProfile", "-o", str(directory / "profile.out"), *rest]


def main() -> int:
    """Profile one cell and list the functions."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile", description=__doc__)
    parser.add_argument(
        "--cell", default="persistent, 100 outstanding, 1 connection", help="first whose name starts so"
    )
    parser.add_argument("--messages", type=int, default=40_000)
    parser.add_argument("--functions", type=int, default=40)
    parser.add_argument("--sort", choices=("tottime", "cumtime"), default="tottime")
    arguments = parser.parse_args()
    cells = [cell for cell in CELLS if cell.name.startswith(arguments.cell)]
    if not cells:
        parser.error(f"no cell begins with {arguments.cell!r}; there are: {'; '.join(cell.name for cell in CELLS)}")
    cell = dataclasses.replace(cells[0], messages=arguments.messages)
    try:
        _profile(cell, arguments.sort, arguments.functions)
    except (BrokerUnavailable, GeneratorError) as reason:
        print(reason, file=sys.stderr)
        return 2
    return 0


def _profile(cell: Cell, sort: str, functions: int) -> None:
    driver = ProfiledDelosMQ()
    driver.version()
    broker_core, generator_core = machine.cores()
    plan = Plan([cell], 1.0, 0.0, False, broker_core, generator_core)
    result = BrokerRound(driver.name)
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="run-", dir=CACHE) as name:
        directory, port = Path(name), machine.free_port()
        driver.prepare(directory, port)
        with RunningBroker(driver, directory, port, broker_core) as broker:
            wait_until_confirming(broker)
            run_cell(broker, cell, plan, result, latency=False)
        statistics = directory / "profile.out"
        if result.failures or not statistics.exists():
            raise GeneratorError("; ".join(result.failures) or "the broker ended without writing its profile")
        pstats.Stats(str(statistics)).strip_dirs().sort_stats(sort).print_stats(functions)
    for row in result.cells:
        print(f"{row.cell}: {row.rate_per_s:,.0f}/s under the profiler")


if __name__ == "__main__":
    sys.exit(main())
