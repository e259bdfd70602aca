"""How the wheel is built: compiled where that can be done, else pure with one line that says why; only what changed."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

from tools import bootstrap, build_extensions
from tools.compile_list import compiled_files
from tools.source_files import read_file

pytestmark = pytest.mark.sources

ROOT = Path(__file__).resolve().parent.parent


def test_a_build_needs_what_compiled_modules_import() -> None:
    requires = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["build-system"]["requires"]
    needed = {requirement.partition(">=")[0] for requirement in requires}
    files = [read_file(ROOT / path, ROOT) for path in compiled_files(ROOT)]
    imported = {name.split(".")[0] for file in files for _, name in file.imports()}
    foreign = imported - sys.stdlib_module_names - {"delosmq", "mypy_extensions"}  # the last comes with mypy
    assert {"argon2-cffi" if name == "argon2" else name for name in foreign} == needed - {
        "setuptools",
        "mypy",
        "lxml-stubs",
    }
    said = (ROOT / "setup.py").read_text("utf-8")
    assert all(f" {name}" in said for name in needed)


class Compiler:
    """Notes what it compiles."""

    compiler_so = ("cc",)

    def __init__(self) -> None:
        self.compiled: list[str] = []

    def object_filenames(self, sources: list[str], *, output_dir: str) -> list[str]:
        return [source + ".o" for source in sources]

    def compile(self, sources: list[str], **options: object) -> None:
        for source in sources:
            self.compiled.append(Path(source).name)
            Path(source + ".o").touch()


def build(sources: list[str], *, headers: str = "h", flags: tuple[str, ...] = ("-O0",)) -> list[str]:
    compiler = Compiler()
    made = build_extensions.in_parallel(compiler, headers)(sources, output_dir="", extra_postargs=flags, depends=[])
    assert made == [source + ".o" for source in sources]
    return sorted(compiler.compiled)


def test_only_what_changed_is_compiled_again(tmp_path: Path) -> None:
    sources = []
    for name in ("a.c", "b.c"):
        Path(tmp_path, name).write_text(name, "ascii")
        sources.append(str(tmp_path / name))
    assert build(sources) == ["a.c", "b.c"]
    assert build(sources) == []
    Path(tmp_path, "b.c").write_text("other", "ascii")
    assert build(sources) == ["b.c"]
    assert build(sources, flags=("-O2",)) == ["a.c", "b.c"]
    assert build(sources, headers="other", flags=("-O2",)) == ["a.c", "b.c"]
    Path(tmp_path, "a.c.o").unlink()
    assert build(sources, headers="other", flags=("-O2",)) == ["a.c"]


def test_a_missing_compiler_and_a_missing_header_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "/nowhere/cc")
    assert build_extensions.why_not([str(tmp_path)]) == "there is no C compiler (/nowhere/cc)"
    refusing = tmp_path / "cc"
    refusing.write_text("#!/bin/sh\nexit 1\n", "ascii")
    refusing.chmod(0o755)
    monkeypatch.setenv("CC", str(refusing))
    assert build_extensions.why_not([str(tmp_path)]).startswith("the C compiler finds no Python.h")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A package of one module that compiles, built as ours is."""
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE", "MANIFEST.in"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "tools").mkdir()
    for name in ("build_extensions.py", "compile_list.py"):
        shutil.copy(ROOT / "tools" / name, tmp_path / "tools" / name)
    model = tmp_path / "src" / "delosmq" / "model"
    model.mkdir(parents=True)
    (model.parent / "__init__.py").touch()
    (model.parent / "version.py").write_text('__version__ = "0.1"\n', "ascii")
    (model / "__init__.py").touch()
    (model / "one.py").write_text("def one() -> int:\n    return 1\n", "ascii")
    return tmp_path


def wheel_of(project: Path, **environment: str) -> tuple[list[str], subprocess.CompletedProcess[str]]:
    made = project / "made"
    made.mkdir(exist_ok=True)
    answer = subprocess.run(
        [sys.executable, "-c", bootstrap.BUILD, str(made)],
        cwd=project,
        env={**os.environ, "DELOSMQ_COMPILED": "", "DELOSMQ_OPT": "0", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return [path.name for path in made.glob("*.whl")], answer


def test_with_a_c_compiler_the_wheel_is_compiled_without_being_asked(project: Path) -> None:
    (name,), answer = wheel_of(project)
    reason = build_extensions.why_not([sysconfig.get_path("include")])
    assert name.endswith("-none-any.whl") == bool(reason), answer.stderr[-2000:]
    assert reason in answer.stderr


def test_without_a_c_compiler_the_wheel_is_pure_and_one_line_says_so(project: Path) -> None:
    names, answer = wheel_of(project, CC="/nowhere/cc")
    assert names == ["delosmq-0.1-py3-none-any.whl"]
    said = [line for line in answer.stderr.splitlines() if line.startswith("delosmq: ")]
    assert said == ["delosmq: there is no C compiler (/nowhere/cc), so this is the pure form, which is slower"]


def test_who_asks_for_the_compiled_form_gets_no_other(project: Path) -> None:
    names, answer = wheel_of(project, CC="/nowhere/cc", DELOSMQ_COMPILED="1")
    assert names == []
    assert answer.returncode != 0
    assert "delosmq: the compiled form can't be built: there is no C compiler (/nowhere/cc)" in answer.stderr


def test_a_compiler_that_fails_in_the_middle_leaves_the_pure_form(project: Path) -> None:
    failing = project / "cc"
    failing.write_text('#!/bin/sh\ncase "$*" in *trial.c*) exit 0;; *) exit 1;; esac\n', "ascii")
    failing.chmod(0o755)
    (name,), answer = wheel_of(project, CC=str(failing))
    assert answer.returncode == 0, answer.stderr[-2000:]
    assert "so this is the pure form" in answer.stderr
    with ZipFile(project / "made" / name) as wheel:
        listed = wheel.namelist()
    assert "delosmq/model/one.py" in listed
    assert [name for name in listed if name.endswith(".so")] == []


def test_who_asks_for_the_pure_form_gets_it(project: Path) -> None:
    names, _ = wheel_of(project, DELOSMQ_COMPILED="0")
    assert names == ["delosmq-0.1-py3-none-any.whl"]


def test_a_copy_to_build_in_follows_its_original(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, copy = tmp_path / "root", tmp_path / "copy"
    monkeypatch.setattr(bootstrap, "ROOT", root)
    for name in ("a.py", "b.py"):
        (root / "src").mkdir(parents=True, exist_ok=True)
        (root / "src" / name).write_text(name, "ascii")
    bootstrap.copy_changed(list((root / "src").iterdir()), copy)
    kept = (copy / "src" / "a.py").stat().st_mtime_ns
    (copy / "build").mkdir()
    (copy / "build" / "a.o").touch()
    (root / "src" / "b.py").unlink()
    bootstrap.copy_changed(list((root / "src").iterdir()), copy)
    assert [path.name for path in (copy / "src").iterdir()] == ["a.py"]
    assert (copy / "src" / "a.py").stat().st_mtime_ns == kept
    assert (copy / "build" / "a.o").exists()
