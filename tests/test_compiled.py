"""Each environment runs the form it claims to run: all of the compile list compiled, or all of it as .py."""

import ast
import importlib
import os
from pathlib import Path

import pytest

from tools.compile_list import compiled_files, module_name

ROOT = Path(__file__).resolve().parent.parent
EXPECTED_FORM = "compiled" if os.environ.get("DELOSMQ_EXPECT_COMPILED") == "1" else "python"
MODULES = [module_name(path) for path in compiled_files(ROOT)]


@pytest.mark.parametrize("name", MODULES)
def test_a_module_of_the_compile_list_runs_in_the_expected_form(name: str) -> None:
    """A stale library beside the sources, or a module that quietly was not compiled, would be noticed here."""
    loaded_from = Path(importlib.import_module(name).__file__ or "")
    form = "python" if loaded_from.suffix == ".py" else "compiled"
    assert form == EXPECTED_FORM, f"{name} was loaded from {loaded_from}"


@pytest.mark.sources
def test_no_field_of_a_compiled_dataclass_is_any_object() -> None:
    """mypyc looks for the name of such a type in the module, where `object` is not, and the import fails."""
    found = [
        f"{path}:{field.lineno}"
        for path in compiled_files(ROOT)
        for made in ast.walk(ast.parse((ROOT / path).read_text("utf-8")))
        if isinstance(made, ast.ClassDef) and any("dataclass" in ast.unparse(one) for one in made.decorator_list)
        for field in made.body
        if isinstance(field, ast.AnnAssign) and ast.unparse(field.annotation) == "object"
    ]
    assert found == []


def repository(root: Path, exclude: str = "") -> Path:
    package = root / "src" / "delosmq"
    for name, text in {
        "model/__init__.py": '"""Only words."""\n',
        "model/message.py": "x = 1\n",
        "engine/__init__.py": "x = 1\n",
        "cli/main.py": "x = 1\n",
        "storage/journal/records.py": "x = 1\n",
        "storage/journal/files.py": "x = 1\n",
    }.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text, "utf-8")
    listed = 'packages = ["model", "engine"]\nmodules = ["storage/journal/records.py"]\n'
    (root / "pyproject.toml").write_text(f"[tool.delosmq.compile]\n{listed}[tool.delosmq.compile.exclude]\n{exclude}")
    return root


def test_the_list_is_all_of_the_listed_packages_and_modules_that_hold_code(tmp_path: Path) -> None:
    names = [module_name(path) for path in compiled_files(repository(tmp_path))]
    assert names == ["delosmq.engine", "delosmq.model.message", "delosmq.storage.journal.records"]


def test_an_excluded_module_stays_interpreted(tmp_path: Path) -> None:
    root = repository(tmp_path, '"model/message.py" = "pickled by Spark"\n')
    assert "delosmq.model.message" not in [module_name(path) for path in compiled_files(root)]


def test_an_exclusion_without_effect_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"cli/main\.py"):
        compiled_files(repository(tmp_path, '"cli/main.py" = "no reason"\n'))
