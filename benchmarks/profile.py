"""Where DelosMQ spends its time: `python -m benchmarks.profile`, which lists functions by their own time.

The pure form runs under cProfile while the generator sends; a compiled function would not be seen. The profiler makes
calls dearer than they are, so shares are a hint, and the CPU figures of the comparison the measure. `--protocol
openwire` has the real Java client send.
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
from benchmarks.cells import Cell
from benchmarks.comparison import COMPARISONS, Comparison
from benchmarks.load import GeneratorError
from benchmarks.measure import BrokerRound, Plan, run_cell


class ProfiledDelosMQ(DelosMQ):
    """The pure form under cProfile, which writes its statistics when the broker stops."""

    def __init__(self, protocol: str) -> None:
        super().__init__("delosmq-pure", environment=".venv", protocol=protocol)

    def command(self, directory: Path) -> list[str]:
        python, *rest = super().command(directory)
        return [python, "-m", "cProfile", "-o", str(directory / "profile.out"), *rest]


def main() -> int:
    """Profile one cell and list the functions."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile", description=__doc__)
    parser.add_argument("--protocol", choices=sorted(COMPARISONS), default="stomp")
    parser.add_argument("--cell", default="persistent", help="first whose name starts so")
    parser.add_argument("--messages", type=int, default=40_000)
    parser.add_argument("--functions", type=int, default=40)
    parser.add_argument("--sort", choices=("tottime", "cumtime"), default="tottime")
    arguments = parser.parse_args()
    comparison = COMPARISONS[arguments.protocol]
    cells = [cell for cell in comparison.cells if cell.name.startswith(arguments.cell)]
    if not cells:
        names = "; ".join(cell.name for cell in comparison.cells)
        parser.error(f"no cell begins with {arguments.cell!r}; there are: {names}")
    cell = dataclasses.replace(cells[0], messages=arguments.messages)
    try:
        _profile(comparison, cell, arguments.sort, arguments.functions)
    except (BrokerUnavailable, GeneratorError) as reason:
        print(reason, file=sys.stderr)
        return 2
    return 0


def _profile(comparison: Comparison, cell: Cell, sort: str, functions: int) -> None:
    driver = ProfiledDelosMQ(comparison.name.upper())
    driver.version()
    broker_core, generator_core = machine.cores()
    result = BrokerRound(driver.name)
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="run-", dir=CACHE) as name, comparison.load(generator_core) as load:
        plan = Plan(load, [cell], (), (), share=1.0, latency_s=0.0, broker_core=broker_core)
        directory, port = Path(name), machine.free_port()
        driver.prepare(directory, port)
        with RunningBroker(driver, directory, port, broker_core) as broker:
            load.await_first_confirmation(broker)
            run_cell(broker, cell, plan, result, latency=False)
        statistics = directory / "profile.out"
        if result.failures or not statistics.exists():
            raise GeneratorError("; ".join(result.failures) or "the broker ended without writing its profile")
        pstats.Stats(str(statistics)).strip_dirs().sort_stats(sort).print_stats(functions)
    for row in result.cells:
        print(f"{row.cell}: {row.rate_per_s:,.0f}/s under the profiler")


if __name__ == "__main__":
    sys.exit(main())
