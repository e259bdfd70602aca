"""The whole gate, as `make check` and continuous integration run it: quick steps first, stop at the first failure.

The last two steps, which take nearly all of the time, run side by side: the tests of one keep one core busy.

Runs in .venv. Names of steps as arguments run only these, in this order: ``python tools/check.py lint types``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).resolve().parent.parent
CHECKED = [name for name in ("src", "tools", "examples", "benchmarks", "interop") if (ROOT / name).exists()]
PYTHON = sys.executable
COMPILED_PYTHON = str(ROOT / ".venv-compiled" / "bin" / "python")

STEPS: dict[str, tuple[str, list[list[str]]]] = {
    "format": ("Format (ruff format)", [[PYTHON, "-m", "ruff", "format", "--check", "--quiet", "."]]),
    "lint": ("Lint (ruff check)", [[PYTHON, "-m", "ruff", "check", "--quiet", "."]]),
    "rules": ("Layers, sizes, names, error codes", [[PYTHON, "tools/architecture.py"]]),
    "types": ("Types (mypy --strict)", [[PYTHON, "-m", "mypy", *CHECKED]]),
    "compiled": (
        "The compiled form: all tests but Spark's",
        [
            [PYTHON, "tools/bootstrap.py", "compiled"],
            [COMPILED_PYTHON, "-m", "pytest", "-q", "-m", "not spark", "--durations=5"],
        ],
    ),
    "test": ("The whole test suite", [[PYTHON, "-m", "pytest", "-q", "--durations=10"]]),
}

SETTINGS = {
    # compiling for tests: the quick way (see setup.py)
    "compiled": {"DELOSMQ_OPT": os.environ.get("DELOSMQ_OPT", "0"), "DELOSMQ_EXPECT_COMPILED": "1"},
}


SIDE_BY_SIDE = ("compiled", "test")


def run_step(name: str, output: TextIO | None = None) -> float:
    """Run one step; its duration in seconds. Ends the program when a command of it fails.

    Args:
        output: where to write what it prints; None for our own output.
    """
    title, commands = STEPS[name]
    print(f"\n== {title}", file=output, flush=True)
    started = time.monotonic()
    environment = {**os.environ, **SETTINGS.get(name, {})}
    environment.pop("PYTHONPATH", None)  # tests take delosmq from what is installed
    for command in commands:
        code = subprocess.run(
            command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False
        ).returncode
        if code != 0:
            raise StepFailed(f"\ncheck failed at '{name}' (exit code {code}); again alone: make {name}-only")
    return time.monotonic() - started


class StepFailed(Exception):
    """A command of a step failed; the message says which and what to do."""


def run_side_by_side(names: tuple[str, ...]) -> dict[str, float]:
    """Run steps at once; the output of each in one piece. Raises the first failure when all have ended."""
    took: dict[str, float] = {}
    failures: list[StepFailed] = []
    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor(len(names)) as pool:
        files = {name: Path(directory, name) for name in names}

        def run(name: str) -> None:
            with files[name].open("w") as output:
                took[name] = run_step(name, output)

        under_way = {pool.submit(run, name): name for name in names}
        for future in as_completed(under_way):
            print(files[under_way[future]].read_text(errors="replace"), end="", flush=True)
            if isinstance(error := future.exception(), StepFailed):
                failures.append(error)
            else:
                future.result()
    if failures:
        raise failures[0]
    return took


def main(names: list[str]) -> None:
    if unknown := set(names) - set(STEPS):
        sys.exit(f"no such step: {', '.join(sorted(unknown))}; there are {', '.join(STEPS)}")
    wanted = names or list(STEPS)
    together = SIDE_BY_SIDE if set(SIDE_BY_SIDE) <= set(wanted) else ()
    try:
        took = {name: run_step(name) for name in wanted if name not in together}
        if together:
            took |= run_side_by_side(together)
    except StepFailed as failure:
        sys.exit(str(failure))
    print("\npassed: " + ", ".join(f"{name} {seconds:.0f} s" for name, seconds in took.items()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
