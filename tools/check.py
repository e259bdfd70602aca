"""The whole gate, as `make check` and continuous integration run it: quick steps first, stop at the first failure.

Runs in .venv. Names of steps as arguments run only these, in this order: ``python tools/check.py lint types``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHECKED = [name for name in ("src", "tools", "examples", "benchmarks") if (ROOT / name).exists()]
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


def run_step(name: str) -> float:
    """Run one step; its duration in seconds. Ends the program when a command of it fails."""
    title, commands = STEPS[name]
    print(f"\n== {title}", flush=True)
    started = time.monotonic()
    environment = {**os.environ, **SETTINGS.get(name, {})}
    environment.pop("PYTHONPATH", None)  # tests take delosmq from what is installed
    for command in commands:
        code = subprocess.run(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, check=False).returncode
        if code != 0:
            sys.exit(f"\ncheck failed at '{name}' (exit code {code}); again alone: make {name}-only")
    return time.monotonic() - started


def main(names: list[str]) -> None:
    if unknown := set(names) - set(STEPS):
        sys.exit(f"no such step: {', '.join(sorted(unknown))}; there are {', '.join(STEPS)}")
    took = {name: run_step(name) for name in names or STEPS}
    print("\npassed: " + ", ".join(f"{name} {seconds:.0f} s" for name, seconds in took.items()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
