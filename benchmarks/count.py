"""Instructions of fixed work, compiled, against a stored base: `python -m benchmarks count`.

Valgrind counts every instruction that the broker's process executes between two marks, so the figures are the same on a
busy machine as on an idle one, and differ by less than 0.3 % between runs: a change of one per cent is a change of the
code. They depend on Python, the C compiler, its level and valgrind, which the base names; where these differ, compare
with a base of your own (``--save``, then ``--base``).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BASE = ROOT / "benchmarks" / "count_base.json"
COMPILED = ROOT / ".venv-compiled" / "bin" / "python"
MISSING = (
    "valgrind counts the instructions, and it is not on PATH: install it (Debian, Ubuntu: apt install valgrind;"
    " Fedora: dnf install valgrind; conda install -c conda-forge valgrind)"
)
TOTALS = re.compile(r"^totals: (\d+)", re.MULTILINE)


class CountError(Exception):
    """Nothing was counted; the message says why and what to do."""


def first_line(command: list[str]) -> str:
    """What a program says first; "" when it is not there."""
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return answer.stdout.partition("\n")[0].strip()


def made_with() -> dict[str, str]:
    """What the figures depend on beside the code."""
    flags = COMPILED.parent.parent / "compiled-with.txt"
    return {
        "machine": platform.machine(),
        "python": first_line([str(COMPILED), "-c", "import sys; print(sys.version)"]),
        "compiler": first_line([os.environ.get("CC", "cc"), "--version"]),
        "compiled with": flags.read_text("utf-8").strip() if flags.exists() else "unknown",
        "valgrind": first_line(["valgrind", "--version"]),
    }


def count(python: Path) -> dict[str, float]:
    """Instructions for a message, by the names of the worker's parts.

    Raises:
        CountError: valgrind or the compiled form is missing, or the worker failed.
    """
    if shutil.which("valgrind") is None:
        raise CountError(MISSING)
    if not python.exists():
        raise CountError(f"{python} is missing: make it with `make compiled`, or name another with --python")
    with tempfile.TemporaryDirectory(prefix="delosmq-count-") as directory:
        answer = run_worker(python, Path(directory, "out"))
        parts: list[str] = answer["parts"]
        if not answer["compiled"]:
            raise CountError(f"{python} runs the pure form; the compiled one counts")
        found: dict[str, float] = {}
        for number, name in enumerate(parts, start=1):
            if name:
                text = Path(directory, f"out.{number}").read_text("utf-8")
                total = TOTALS.search(text)
                if total is None:
                    raise CountError(f"valgrind wrote no totals for part {number}, {name}")
                found[name] = found.get(name, 0.0) + int(total[1]) / answer["counted"]
    return {name: round(instructions, 1) for name, instructions in found.items()}


def run_worker(python: Path, out: Path) -> dict[str, Any]:
    """The worker's answer; the counts lie in ``out`` and a number."""
    valgrind = ["valgrind", "--tool=callgrind", "--cache-sim=no", "--dump-before=getsid"]
    command = [*valgrind, f"--callgrind-out-file={out}", str(python), "-m", "benchmarks.count_worker"]
    # Nothing by chance, and nothing from the user's own settings.
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    environment = {**kept, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    answer = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise CountError(f"the work failed; the command was: {' '.join(command)}\n{answer.stderr[-4_000:]}")
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


def render(found: dict[str, float], base: dict[str, float]) -> list[str]:
    """A table in Markdown: instructions for a message, now and in the base."""
    lines = ["| instructions for a message | base | now | change |", "|---|---:|---:|---:|"]
    for name, now in found.items():
        before = base.get(name)
        change = "new" if before is None else f"{(now / before - 1) * 100:+.2f} %"
        lines.append(f"| {name} | {'' if before is None else f'{before:,.0f}'} | {now:,.0f} | {change} |")
    lines += [f"| {name} | {before:,.0f} | | gone |" for name, before in base.items() if name not in found]
    return lines


def differences(made: dict[str, str], base: dict[str, str]) -> list[str]:
    """What the figures depend on and is not as in the base."""
    return [
        f"the base was counted with {what} {base.get(what) or 'unknown'}, and this is {now or 'unknown'}"
        for what, now in made.items()
        if base.get(what) != now
    ]


def excess(found: dict[str, float], base: dict[str, float], most_per_cent: float) -> list[str]:
    """What takes more than the base by more than is allowed."""
    return [
        f"{name} takes {(now / base[name] - 1) * 100:.2f} % more instructions than the base"
        for name, now in found.items()
        if name in base and now > base[name] * (1 + most_per_cent / 100)
    ]


def main(argv: list[str] | None = None) -> int:
    """Count, compare and print. 1 when something takes more than ``--most`` allows, 2 when nothing was counted."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks count", description=__doc__)
    parser.add_argument("--python", type=Path, default=COMPILED, help="of an environment with the compiled form")
    parser.add_argument("--base", type=Path, default=BASE, help="figures to compare with")
    parser.add_argument("--save", type=Path, help="write the figures there, to be a base")
    parser.add_argument("--most", type=float, help="per cent more than the base that are allowed; else nothing fails")
    arguments = parser.parse_args(argv)
    try:
        found = count(arguments.python)
    except CountError as reason:
        print(reason, file=sys.stderr)
        return 2
    made = made_with()
    base = json.loads(arguments.base.read_text("utf-8")) if arguments.base.exists() else {}
    if arguments.save is not None:
        arguments.save.write_text(json.dumps({"made with": made, "instructions": found}, indent=1) + "\n", "utf-8")
    print("\n".join(render(found, base.get("instructions", {}))))
    for line in differences(made, base.get("made with", made)):
        print(f"not comparable: {line}")
    over = excess(found, base.get("instructions", {}), arguments.most) if arguments.most is not None else []
    for line in over:
        print(f"too many: {line}", file=sys.stderr)
    return 1 if over else 0
