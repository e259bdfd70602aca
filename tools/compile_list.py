"""Which modules mypyc compiles: the list in pyproject.toml, expanded.

One list for setup.py, which builds the wheel, and for the test that none of these modules was loaded from its .py.
"""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

PACKAGE = Path("src", "delosmq")


def compiled_files(root: Path) -> list[Path]:
    """The files below ``root`` to compile, relative to ``root`` and sorted.

    An ``__init__.py`` that holds nothing but its docstring is left out: there is nothing to compile.

    Raises:
        ValueError: an excluded path does not exist or is on no listed package, so that the entry has no effect.
    """
    listed = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["delosmq"]["compile"]
    base = root / PACKAGE
    found = {path for package in listed["packages"] for path in (base / package).rglob("*.py")}
    found |= {base / name for name in listed["modules"] if (base / name).exists()}
    excluded = {base / name for name in listed.get("exclude", {})}
    if without_effect := excluded - found:
        names = ", ".join(sorted(path.relative_to(base).as_posix() for path in without_effect))
        raise ValueError(f"pyproject.toml [tool.delosmq.compile.exclude] names what is not on the list: {names}")
    return sorted(path.relative_to(root) for path in found - excluded if _holds_code(path))


def module_name(path: Path) -> str:
    """The dotted name under which ``path`` (relative to the repository) is imported."""
    parts = path.relative_to("src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _holds_code(path: Path) -> bool:
    if path.name != "__init__.py":
        return True
    body = ast.parse(path.read_text("utf-8")).body
    return any(not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)) for node in body)
