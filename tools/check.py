"""The whole gate, as `make check` and continuous integration run it: quick steps first, stop at the first failure.

Two steps that take nearly all of the time run side by side: the tests of one keep one core busy. The last step, which
starts a cluster of Spark, has the machine for itself.

Runs in .venv. Names of steps as arguments run only these, in this order: ``python -m tools.check lint types``.
`make quick` is ``python -m tools.check format lint rules quick``: the part of the gate that answers within a minute.
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
TYPED_TESTS = ("tests/client", "tests/testing", "tests/examples")
"""Programs as users write them: with the client in both its forms, and with the test kit."""
CHECKED = [
    name for name in ("src", "tools", "examples", "benchmarks", "interop", *TYPED_TESTS) if (ROOT / name).exists()
]
PYTHON = sys.executable
LINT_IMPORTS = [str(Path(PYTHON).with_name("lint-imports")), "--no-cache", "--no-logo"]
COMPILED_PYTHON = str(ROOT / ".venv-compiled" / "bin" / "python")

QUICK_LAYERS = ("model", "selectors", "security", "wire", "engine", "storage", "sessions", "config", "migration")
"""What a broker decides, reads and writes: no sockets, no processes, no Java."""
QUICK_FOLDERS = [f"tests/{layer}" for layer in QUICK_LAYERS if (ROOT / "tests" / layer).is_dir()]
IN_TWO_PROCESSES = ("-n", "2", "--dist", "loadgroup")
"""A file of tests is of one process; see tests/conftest.py."""
COMPILED_FOLDERS = [
    f"tests/{name}"
    for name in (
        *(layer for layer in QUICK_LAYERS if layer not in ("config", "migration", "model")),
        *("client", "e2e", "fuzz", "manage", "routers", "server", "simulation"),
    )
]
"""What mypyc compiles, and what drives it as clients do. `make compiled` tries all on it, as before a release."""
QUICK_EXAMPLES = "0.2"
"""What Hypothesis tries in a quick run and in the compiled one, as a part of what it tries in the whole suite."""

STEPS: dict[str, tuple[str, list[list[str]]]] = {
    "format": ("Format (ruff format)", [[PYTHON, "-m", "ruff", "format", "--check", "--quiet", "."]]),
    "lint": ("Lint (ruff check)", [[PYTHON, "-m", "ruff", "check", "--quiet", "."]]),
    "rules": (
        "Layers, sizes, names, error codes; how orderly the tree is",
        [LINT_IMPORTS, [PYTHON, "-m", "tools.architecture"], [PYTHON, "-m", "tools.house"]],
    ),
    "types": (
        "Types (mypy --strict), of the examples in the manual as well",
        [[PYTHON, "-m", "tools.doc_types"], [PYTHON, "-m", "mypy", *CHECKED, "build/doc_types"]],
    ),
    "quick": (
        f"Tests of {', '.join(QUICK_LAYERS)}, without the slow ones",
        [[PYTHON, "-m", "pytest", "-q", *IN_TWO_PROCESSES, "-m", "not slow", *QUICK_FOLDERS]],
    ),
    "compiled": (
        "The compiled form: tests of what is compiled, and of clients, without the slow ones",
        [
            [PYTHON, "tools/bootstrap.py", "compiled"],
            [
                *(COMPILED_PYTHON, "-m", "pytest", "-q", *IN_TWO_PROCESSES),
                *("-m", "not spark and not sources and not slow", *COMPILED_FOLDERS),
                *("tests/test_compiled.py", "tests/chaos/test_kill.py", "tests/chaos/test_kill_mixed.py"),
            ],
        ],
    ),
    "test": (
        "The whole test suite",
        [
            [PYTHON, "-m", "tools.spark_classes"],
            [PYTHON, "-m", "pytest", "-q", *IN_TWO_PROCESSES, "--durations=10"],
        ],
    ),
    "cluster": ("Spark's pipelines on a cluster of processes, with kills", [[PYTHON, "-m", "tests.spark.cluster"]]),
}

SETTINGS = {
    "quick": {"DELOSMQ_EXAMPLES": os.environ.get("DELOSMQ_EXAMPLES", QUICK_EXAMPLES)},
    # Compiling for tests: the quick way (see setup.py). What many examples find, the pure form shows as well.
    "compiled": {
        "DELOSMQ_OPT": os.environ.get("DELOSMQ_OPT", "0"),
        "DELOSMQ_EXPECT_COMPILED": "1",
        "DELOSMQ_EXAMPLES": os.environ.get("DELOSMQ_EXAMPLES", QUICK_EXAMPLES),
    },
}

WHOLE = [name for name in STEPS if name != "quick"]
"""The gate; the quick tests are part of the whole suite."""
SIDE_BY_SIDE = (("rules", "quick"), ("compiled", "test"))
"""Steps that run at the same time when both are wanted."""


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


def run_all(wanted: list[str]) -> dict[str, float]:
    """Run the steps in order, some side by side; how long each took. Raises the first failure."""
    took: dict[str, float] = {}
    for name in wanted:
        group = next((pair for pair in SIDE_BY_SIDE if name in pair and set(pair) <= set(wanted)), None)
        if group is None:
            took[name] = run_step(name)
        elif name == group[0]:
            took |= run_side_by_side(group)
    return took


def main(names: list[str]) -> None:
    if unknown := set(names) - set(STEPS):
        sys.exit(f"no such step: {', '.join(sorted(unknown))}; there are {', '.join(STEPS)}")
    try:
        took = run_all(names or WHOLE)
    except StepFailed as failure:
        sys.exit(str(failure))
    print("\npassed: " + ", ".join(f"{name} {seconds:.0f} s" for name, seconds in took.items()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
