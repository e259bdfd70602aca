"""What the engine alone costs, pure and compiled, and how long others wait: `python -m benchmarks engine`.

No sockets, no sessions: messages of 1 KB are sent, dispatched and acknowledged one by one, in turns of 256. Rounds of
both forms alternate and the best of each figure counts, since others on the machine only ever make it slower. It fails
when the lines run for a message grow with the backlog, the queues, the consumers or the selectors.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import machine

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
FORMS = {"pure": ROOT / ".venv" / "bin" / "python", "compiled": ROOT / ".venv-compiled" / "bin" / "python"}
AIM_NS = 900
"""A durable message sent, dispatched and acknowledged, with its records, compiled."""
AIM_WAIT_MS = 10.0
LINES_MORE = 1
"""At the largest size than at the smallest: one consumer alone has no turn to pass on."""
STEPS = ("send", "dispatch", "acknowledge", "together", "make", "flush")


def measure(form: str, arguments: list[str]) -> dict[str, Any]:
    """One run of the worker.

    Raises:
        RuntimeError: it failed, or is not of the form wanted.
    """
    command = [str(FORMS[form]), "-m", "benchmarks.engine_worker", *arguments]
    answer = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if answer.returncode != 0:
        raise RuntimeError(f"the {form} form failed (see above); the command was: {' '.join(command)}")
    found: dict[str, Any] = json.loads(answer.stdout)
    if found.pop("compiled") != (form == "compiled"):
        raise RuntimeError(f"{FORMS[form]} does not run the {form} form; make it with tools/bootstrap.py")
    return found


def least(one: Any, other: Any) -> Any:
    """The smaller of each figure."""
    if isinstance(one, dict):
        return {name: least(one[name], other[name]) for name in one}
    return min(one, other)


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """All rounds of both forms."""
    forms = [form for form in FORMS if FORMS[form].exists()]
    parts = ["costs", "ranges", "waits"]
    size = ["--largest", str(arguments.largest), "--long", str(arguments.long)]
    found: dict[str, Any] = {}
    for number in range(arguments.rounds):
        for form in forms:
            print(f"round {number + 1} of {arguments.rounds}: {form}", file=sys.stderr, flush=True)
            figures = measure(form, [*parts, *size])
            found[form] = least(found[form], figures) if form in found else figures
    print("counting lines", file=sys.stderr, flush=True)
    found["pure"].update(measure("pure", ["steps", *size]))
    return {"machine": machine.describe(RESULTS), "rounds": arguments.rounds, "forms": found}


def growth(steps: dict[str, dict[str, float]]) -> list[str]:
    """The ranges in which the lines run for a message grow."""
    found = []
    for what, counts in steps.items():
        ordered = [counts[size] for size in sorted(counts, key=int)]
        if ordered[-1] > ordered[0] + LINES_MORE:
            found.append(
                f"{what}: {ordered[0]:.1f} lines for a message at the smallest size, {ordered[-1]:.1f} at the largest"
            )
    return found


def render(content: dict[str, Any]) -> list[str]:
    """The tables, in Markdown."""
    forms: dict[str, Any] = content["forms"]
    about = content["machine"]
    names = list(forms)
    lines = [
        f"Measured {about['date']} on {about['processor']}, {about['cores']} cores, Linux {about['kernel']}, Python"
        f" {about['python']}; the best of {content['rounds']} rounds, load of the machine before them"
        f" {about['load_before']:.1f}.",
        "",
        "### ns for a message of 1 KB",
        "",
        "| | form | " + " | ".join(STEPS) + " |",
        "|---" * (len(STEPS) + 2) + "|",
    ]
    for what in forms[names[0]]["costs"]:
        for form in names:
            row = forms[form]["costs"][what]
            lines.append(f"| {what} | {form} | " + " | ".join(f"{row[step]:,.0f}" for step in STEPS) + " |")
    for what in forms[names[0]]["ranges"]:
        sizes = list(forms[names[0]]["ranges"][what])
        lines += ["", f"### ns for a non-durable message, by {what}", ""]
        lines += ["| | " + " | ".join(f"{int(size):,}" for size in sizes) + " |", "|---" * (len(sizes) + 1) + "|"]
        for form in names:
            row = forms[form]["ranges"][what]
            lines.append(f"| {form} | " + " | ".join(f"{row[size]:,.0f}" for size in sizes) + " |")
        counts = forms["pure"]["steps"][what]
        lines.append("| lines run (pure) | " + " | ".join(f"{counts[size]:.1f}" for size in sizes) + " |")
    lines += ["", "### How long others wait during long work", ""]
    kinds = ("longest_ms", "p99_ms", "median_ms", "command_ms", "total_s")
    lines += ["| | form | longest ms | p99 ms | median ms | the command itself ms | in all s |", "|---" * 7 + "|"]
    for what in forms[names[0]]["waits"]:
        for form in names:
            row = forms[form]["waits"][what]
            lines.append(f"| {what} | {form} | " + " | ".join(f"{row[kind]:,.2f}" for kind in kinds) + " |")
    return lines


def shortfalls(content: dict[str, Any]) -> list[str]:
    """Aims that were not met."""
    forms = content["forms"]
    found = []
    if "compiled" in forms:
        together = forms["compiled"]["costs"]["durable, records dropped"]["together"]
        if together > AIM_NS:
            found.append(f"a durable message with its records takes {together:,.0f} ns compiled; the aim is {AIM_NS}")
    for form, figures in forms.items():
        for what, row in figures["waits"].items():
            if row["longest_ms"] > AIM_WAIT_MS:
                found.append(f"{what}, {form}: others wait {row['longest_ms']} ms; the aim is {AIM_WAIT_MS:.0f}")
    return found


def main(argv: list[str] | None = None) -> int:
    """Measure, keep the figures and print the tables. 1 when lines grow."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks engine", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--largest", type=int, default=1_000_000, help="backlog")
    parser.add_argument("--long", type=int, default=1_000_000, help="messages purged, expired, committed")
    parser.add_argument("--show", type=Path, help="print the tables of an earlier results file")
    arguments = parser.parse_args(argv)
    if arguments.show is not None:
        content = json.loads(arguments.show.read_text())
    else:
        try:
            content = run(arguments)
        except RuntimeError as reason:
            print(reason, file=sys.stderr)
            return 2
        path = RESULTS / f"engine-{datetime.now(UTC).date().isoformat()}.json"
        path.write_text(json.dumps(content, indent=1) + "\n")
    print("\n".join(render(content)))
    for line in shortfalls(content):
        print(f"falls short: {line}")
    grown = growth(content["forms"]["pure"]["steps"])
    for line in grown:
        print(f"grows: {line}", file=sys.stderr)
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
