"""Python files of the repository as the rules see them, and what a rule says of one."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

PURE = frozenset({"model", "selectors", "security", "wire", "engine", "sessions", "routers", "cluster"})
"""No IO, no clock, no chance of their own; these compile."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, order=True)
class Finding:
    """One place where a rule is broken. ``rule`` is the name of the check that found it."""

    path: str
    line: int
    rule: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.sentence}"


@dataclass(frozen=True)
class SourceFile:
    """A parsed file. ``path`` is relative to the root of the repository, with forward slashes."""

    path: str
    text: str
    tree: ast.Module

    @cached_property
    def module(self) -> str:
        """The dotted name: ``delosmq.wire.stomp`` for src/delosmq/wire/stomp/__init__.py."""
        parts = self.path.removeprefix("src/").removesuffix(".py").split("/")
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def shipped(self) -> bool:
        return self.path.startswith("src/")

    @cached_property
    def layer(self) -> str | None:
        """The layer of a file below src/delosmq; None for the package's own ``__init__`` and for what is elsewhere."""
        return layer_of(self.module) if self.shipped else None

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the tree; each rule looks at them."""
        return list(ast.walk(self.tree))

    @cached_property
    def functions(self) -> list[Function]:
        return [node for node in self.nodes if isinstance(node, Function)]

    def imports(self) -> Iterator[tuple[int, str]]:
        """Line and full name of everything imported: ``from a.b import c`` gives ``a.b.c``."""
        package = self.module.split(".")
        if not self.path.endswith("__init__.py"):
            package = package[:-1]
        for node in self.nodes:
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = package[: len(package) - node.level + 1] if node.level else []
                start = ".".join([*base, node.module] if node.module else base)
                yield from ((node.lineno, f"{start}.{alias.name}") for alias in node.names)

    def finding(self, line: int, rule: str, sentence: str) -> Finding:
        return Finding(self.path, line, rule, sentence)


def layer_of(name: str) -> str | None:
    """The layer that the dotted ``name`` belongs to; None when it is none of ours or the top package itself."""
    parts = name.split(".")
    return parts[1] if parts[0] == "delosmq" and len(parts) > 1 else None


def is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in {"self", "cls"}


def read_tree(root: Path, folders: Iterable[str]) -> list[SourceFile]:
    """All Python files below ``folders``, but for what lies in hidden ones: what benchmarks fetch is not ours."""
    paths = sorted(path for folder in folders for path in (root / folder).rglob("*.py"))
    return [read_file(path, root) for path in paths if not any(part[0] == "." for part in path.relative_to(root).parts)]


def read_file(path: Path, root: Path) -> SourceFile:
    text = path.read_text("utf-8")
    return SourceFile(path.relative_to(root).as_posix(), text, ast.parse(text, str(path)))
