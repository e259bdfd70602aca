"""Runs the Python examples of README.md and docs/, so that the documentation can't lie.

What runs is said in the fence, after the language (which renderers use for colours and whose rest they ignore):

    ```python run          runs as a program of its own, in an empty folder, with warnings as errors; must exit with 0
    ```python run spark    the same, where Spark and Java are at hand (`make test`, not the compiled run)
    ```python test         the same as a file of tests, by pytest with the plugins that are installed
    ```python              must compile
    ```python story        must compile; tools/doc_stories.py runs it
    ```text output         right after a program that runs: what it prints, to the letter

    python tools/doc_examples.py [FILE ...]        runs all, or those of the named files

A program that is not over after a minute has failed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TIME_LIMIT_S = 60.0
SPARK_TIME_LIMIT_S = 110.0
"""Starting Spark alone takes up to ten seconds on a small machine."""
FENCE = re.compile(
    r"^(?P<indent> *)```python(?P<words>[^\n`]*)\n(?P<code>.*?)^(?P=indent)```", re.DOTALL | re.MULTILINE
)
WORDS = {"run", "spark", "test", "story"}
PYTEST = ("-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider")
ASYNCIO = ("-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function")
OUTPUT = re.compile(r"\n*(?P<indent> *)```text output\n(?P<text>.*?)^(?P=indent)```", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Example:
    """A fenced block.

    Attributes:
        place: file:line of its first line of code.
        output: what it has to print, if the page says so.
    """

    place: str
    code: str
    words: frozenset[str]
    output: str | None = None

    @property
    def runs(self) -> bool:
        return bool({"run", "test"} & self.words)

    @property
    def is_test(self) -> bool:
        return "test" in self.words

    @property
    def needs_spark(self) -> bool:
        return "spark" in self.words


def documents(root: Path) -> list[Path]:
    """README.md and every page below docs/."""
    return [path for path in (root / "README.md", *sorted((root / "docs").rglob("*.md"))) if path.exists()]


def examples(document: Path, root: Path) -> Iterator[Example]:
    """The Python blocks of ``document``.

    Raises:
        ValueError: a fence carries a word that means nothing here.
    """
    text = document.read_text("utf-8")
    for block in FENCE.finditer(text):
        line = text.count("\n", 0, block.start("code")) + 1
        place = f"{document.relative_to(root).as_posix()}:{line}"
        words = frozenset(block["words"].split())
        if unknown := words - WORDS:
            raise ValueError(f"{place}: '{' '.join(sorted(unknown))}' after ```python; known are {sorted(WORDS)}")
        indent = len(block["indent"])
        code = "".join(row[indent:] if row.strip() else row for row in block["code"].splitlines(keepends=True))
        printed = OUTPUT.match(text, block.end())
        yield Example(place, code, words, None if printed is None else printed["text"])


def failure(example: Example) -> str | None:
    """Why ``example`` fails; None when it does what its fence says."""
    try:
        compile(example.code, example.place, "exec")
    except SyntaxError as error:
        return f"{example.place}: does not compile: {error}"
    if not example.runs:
        return None
    limit_s = SPARK_TIME_LIMIT_S if example.needs_spark else TIME_LIMIT_S
    with tempfile.TemporaryDirectory(prefix="delosmq-example-") as folder:
        program = Path(folder, "test_example.py" if example.is_test else "example.py")
        program.write_text(example.code, "utf-8")
        how = (*PYTEST, *ASYNCIO) if example.is_test else ()
        command = [sys.executable, "-W", "error", *how, str(program)]
        try:
            answer = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=limit_s, stdin=subprocess.DEVNULL
            )
        except subprocess.TimeoutExpired:
            return f"{example.place}: not over after {limit_s:.0f} s"
    if answer.returncode != 0:
        return f"{example.place}: exit code {answer.returncode}\n{answer.stdout}{answer.stderr}"
    if example.output is not None and answer.stdout != example.output:
        return f"{example.place}: prints this, and the page says otherwise:\n{answer.stdout}"
    return None


def main(names: list[str]) -> None:
    chosen = [Path(name).resolve() for name in names] or documents(ROOT)
    found = [example for document in chosen for example in examples(document, ROOT)]
    failures = [sentence for example in found if (sentence := failure(example))]
    for sentence in failures:
        print(sentence)
    ran = sum(example.runs for example in found)
    print(f"{len(found)} examples, {ran} of them run, {len(failures)} failed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
