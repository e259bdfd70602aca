"""Tables from a results file: `python -m benchmarks.report [results.json]` writes Markdown for docs/performance.md.

Without an argument the newest file of benchmarks/results is taken. Ratios are against the better of the peers; an aim
that is not met is marked "falls short".
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.aims import Aim
from benchmarks.brokers import OURS
from benchmarks.compare import RESULTS
from benchmarks.comparison import COMPARISONS, STOMP

_TITLES = {
    "delosmq-compiled": "DelosMQ compiled",
    "delosmq-pure": "DelosMQ pure",
    "rabbitmq": "RabbitMQ",
    "activemq": "ActiveMQ Classic",
    "activemq-group-commit": "ActiveMQ Classic, group commit",
    "sink": "sink (generator alone)",
}

CellRow = dict[str, Any]


class Results:
    """One results file, figures as medians over its rounds."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content
        self.comparison = COMPARISONS[content.get("kind", STOMP.name)]
        self.rounds: list[dict[str, Any]] = content["rounds"]
        shown = {entry["broker"] for entry in self.rounds} | set(self.comparison.columns)
        self.brokers = [name for name in _TITLES if name in shown]

    def cell(self, broker: str, cell: str, pick: Callable[[CellRow], float | None]) -> float | None:
        """The median of one figure of a cell, or None if it was never measured."""
        rows = [
            row for entry in self.rounds if entry["broker"] == broker for row in entry["cells"] if row["cell"] == cell
        ]
        return _median(pick(row) for row in rows)

    def overall(self, broker: str, figure: str) -> float | None:
        """The median of a figure of the whole round."""
        return _median(entry[figure] or None for entry in self.rounds if entry["broker"] == broker)

    def best_peer(self, value: Callable[[str], float | None], *, higher_is_better: bool) -> float | None:
        """The better figure of the peers."""
        found = [figure for peer in self.comparison.peers if (figure := value(peer)) is not None]
        if not found:
            return None
        return max(found) if higher_is_better else min(found)


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def number(value: float | None) -> str:
    """Three significant figures, or a dash."""
    if value is None:
        return "-"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def figure(name: str, part: str | None = None) -> Callable[[CellRow], float | None]:
    """Picks a figure from a cell's row, or a percentile from its latencies."""

    def pick(row: CellRow) -> float | None:
        value = row.get(name)
        if part is not None:
            value = value.get(part) if value else None
        return None if value is None else float(value)

    return pick


def table(head: list[str], rows: Iterable[list[str]]) -> list[str]:
    """A Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]


def cell_table(results: Results, pick: Callable[[CellRow], float | None], *, higher_is_better: bool) -> list[str]:
    """One row per cell, one column per broker, ours with the ratio to the better peer in brackets."""
    rows = []
    for cell in results.comparison.cells:
        columns = [cell.name]

        def value(broker: str, cell: str = cell.name) -> float | None:
            return results.cell(broker, cell, pick)

        best = results.best_peer(value, higher_is_better=higher_is_better)
        for broker in results.brokers:
            own = value(broker)
            ratio = f" ({own / best:.2f} x)" if own is not None and best and broker in OURS else ""
            columns.append(number(own) + ratio)
        if any(column != "-" for column in columns[1:]):
            rows.append(columns)
    if not rows:
        return ["Not measured.", ""]
    return table(["", *(_TITLES[broker] for broker in results.brokers)], rows)


def overall_table(results: Results) -> list[str]:
    """Start and memory."""
    rows = []
    for name, key in (
        ("process start to first confirmed message, fresh directory, s", "start_fresh_s"),
        ("the same, directory in use before, s", "start_again_s"),
        ("memory idle, MiB", "memory_idle_mib"),
        ("memory after all cells, MiB", "memory_loaded_mib"),
    ):
        rows.append([name, *(number(results.overall(broker, key)) for broker in results.brokers)])
    return table(["", *(_TITLES[broker] for broker in results.brokers)], rows)


def cold_table(results: Results) -> list[str]:
    """What a broker does right after its start."""
    rows = []
    for cell in results.comparison.cold_cells:
        for name, key in (("messages/s", "rate_per_s"), ("CPU s per million", "broker_cpu_s_per_million")):
            values = (results.cell(broker, cell.name, figure(key)) for broker in results.brokers)
            rows.append([f"{cell.name}: {name}", *(number(value) for value in values)])
    return table(["", *(_TITLES[broker] for broker in results.brokers)], rows)


def aim_table(results: Results) -> list[str]:
    """Every aim with what was measured, and whether it was met."""
    rows = []
    for aim in results.comparison.aims:
        measured = _aim_value(results, aim)
        if measured is None:
            verdict = "not measured"
        else:
            met = measured >= aim.limit if aim.at_least else measured <= aim.limit
            verdict = "met" if met else "**falls short**"
        sign = "at least" if aim.at_least else "at most"
        rows.append([_TITLES[aim.broker], aim.name, f"{sign} {aim.limit:g}{aim.unit}", number(measured), verdict])
    return table(["", "what", "aim", "measured", ""], rows)


def _aim_value(results: Results, aim: Aim) -> float | None:
    def value(broker: str) -> float | None:
        if aim.cell is None:
            return results.overall(broker, aim.figure)
        return results.cell(broker, aim.cell, figure(aim.figure, aim.part))

    own = value(aim.broker)
    if aim.plain:
        return own
    best = results.best_peer(value, higher_is_better=aim.at_least)
    return own / best if own is not None and best else None


def introduction(results: Results) -> list[str]:
    """Machine, date, conditions and who is absent."""
    content = results.content
    host, conditions = content["machine"], content["conditions"]
    rounds = 1 + max((entry["round"] for entry in results.rounds), default=0)
    pinned = "broker on one core, generator on another" if content["pinned"] else "broker and generator on one core"
    lines = [
        f"Measured {host['date']} on {host['processor']}, {host['cores']} cores, {host['memory_gib']} GiB, Linux "
        f"{host['kernel']}, {host['filesystem']}, Python {host['python']}; {pinned}; medians of {rounds} round(s).",
        "",
    ]
    if content["quick"]:
        lines += ["**Quick run: it shows that the harness works; its figures mean nothing.**", ""]
    lines += [results.comparison.describe(conditions), ""]
    for broker, version in content["versions"].items():
        lines.append(f"- {_TITLES[broker]} {version}: {content['settings'][broker]}.")
    lines += [f"- absent: {reason}" for reason in content["absent"].values()]
    failures = [f"- failed: {entry['broker']}, {text}" for entry in results.rounds for text in entry["failures"]]
    return [*lines, *failures, ""]


def render(results: Results) -> list[str]:
    """The whole section."""
    lines = introduction(results)
    lines += ["### Aims", "", *aim_table(results)]
    for title, key, part, higher_is_better in (
        ("Broker CPU seconds per million messages", "broker_cpu_s_per_million", None, False),
        ("Messages per second, until all are consumed and acknowledged", "rate_per_s", None, True),
        ("Confirmed messages per second", "confirmed_per_s", None, True),
        ("Latency from send to delivery at half load, median, ms", "delivery", "p50_ms", False),
        ("Latency from send to delivery at half load, p99, ms", "delivery", "p99_ms", False),
        ("Latency from send to delivery at half load, p99.9, ms", "delivery", "p999_ms", False),
        ("Latency from send to receipt at half load, median, ms", "receipt", "p50_ms", False),
        ("Latency from send to receipt at half load, p99, ms", "receipt", "p99_ms", False),
        ("Latency from send to receipt at half load, p99.9, ms", "receipt", "p999_ms", False),
        ("Flushes of the disk per 1,000 messages", "flushes_per_thousand", None, False),
        ("Bytes written to the disk per message", "written_bytes_per_message", None, False),
        ("The generator's own CPU seconds per million messages", "generator_cpu_s_per_million", None, False),
        ("How late the generator sent at half load, p99, ms", "send_lag", "p99_ms", False),
    ):
        lines += [f"### {title}", "", *cell_table(results, figure(key, part), higher_is_better=higher_is_better)]
    lines += ["### Start and memory", "", *overall_table(results)]
    return [*lines, "### Cold, right after the start", "", *cold_table(results)]


def main() -> int:
    """Print the section for the file named, or for the newest one."""
    paths = [Path(name) for name in sys.argv[1:]] or sorted(
        RESULTS.glob("*.json"), key=lambda path: path.stat().st_mtime
    )
    if not paths:
        print("There are no results yet: run `make bench`.", file=sys.stderr)
        return 2
    return write(paths[-1])


def write(path: Path) -> int:
    """Print the section for one results file."""
    print("\n".join(render(Results(json.loads(path.read_text())))).rstrip())
    return 0


if __name__ == "__main__":
    sys.exit(main())
