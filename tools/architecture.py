"""The rules of the code base that neither ruff nor import-linter can check: sizes, names, error codes, tests.

    python -m tools.architecture        one line per finding; exit code 1 when there is one

Who imports whom is said in pyproject.toml, below ``tool.importlinter``.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tools.compiled_rules import declared_once, exact_types, one_native_base, one_type_per_caught_name
from tools.source_files import PURE, ROOT, Finding, Function, SourceFile, is_self, layer_of, read_tree

ENGINE_NAMES = 60
"""Names that other packages may import of the engine, at most."""
NOT_IN_PURE = frozenset(
    {
        *("asyncio", "socket", "socketserver", "ssl", "select", "signal"),
        *("threading", "_thread", "multiprocessing", "concurrent", "subprocess", "queue"),
        *("time", "random", "secrets", "sched"),
        *("os", "shutil", "tempfile", "pathlib", "mmap", "fcntl"),
    }
)
THIRD_PARTY_IN_PURE = {
    "mypy_extensions": PURE,
    "lark": frozenset({"selectors"}),
    "argon2": frozenset({"security"}),
}

MOST_FUNCTION_LINES = 70
MOST_FILE_LINES = 500
MOST_FOLDER_FILES = 16
MOST_POSITIONAL_PARAMETERS = 5
MOST_QUEUE_FIELDS = 40

EMPTY_WORDS = frozenset({"manager", "managers", "helper", "helpers", "util", "utils", "misc"})
"""Say nothing about what a thing does, in no part of a name."""
EMPTY_NAMES = EMPTY_WORDS | {"data", "process"}
"""As a whole name; as a part (``data_directory``, ``sync_process``) the last two are the field's own terms. A parameter
may be called ``process``: it is one of the operating system."""
FOREIGN_METHODS = frozenset({"data_received", "datagram_received"})
"""Called by asyncio, which names their parameters."""

CODE = re.compile(r"DMQ\d\w*")
WELL_FORMED_CODE = re.compile(r"DMQ\d{4}")


# --- what is imported


def pure_layers(file: SourceFile) -> Iterator[Finding]:
    """Time, chance and IO come into a pure layer through arguments or ports."""
    if file.layer not in PURE:
        return
    for line, name in file.imports():
        top = name.split(".")[0]
        if top in NOT_IN_PURE:
            yield file.finding(line, "pure_layers", f"{file.layer} is pure and may not import {top}")
        elif (
            top not in sys.stdlib_module_names
            and top != "delosmq"
            and file.layer not in THIRD_PARTY_IN_PURE.get(top, frozenset())
        ):
            yield file.finding(line, "pure_layers", f"{file.layer} is pure and may not depend on {top}")


def engine_front(file: SourceFile) -> Iterator[Finding]:
    """What other packages may import of the engine is not much."""
    if file.module == "delosmq.engine.api":
        names = sum(len(node.names) for node in ast.walk(file.tree) if isinstance(node, ast.ImportFrom))
        if names > ENGINE_NAMES:
            yield file.finding(1, "engine_front", f"{names} names, {ENGINE_NAMES} at most")


def light_package(file: SourceFile) -> Iterator[Finding]:
    """Importing delosmq loads its version alone; Spark finds us through a module that imports delosmq.spark only."""
    if file.module == "delosmq":
        for node in file.tree.body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or "." * node.level]
            for name in names:
                if name != "delosmq.version" and name.split(".")[0] not in sys.stdlib_module_names:
                    yield file.finding(node.lineno, "light_package", f"delosmq imports {name} as soon as it is loaded")
    elif file.module.split(".")[0] == "pyspark_delosmq":
        for line, name in file.imports():
            if layer_of(name) not in {None, "spark"}:
                yield file.finding(line, "light_package", f"pyspark_delosmq may import delosmq.spark only ({name})")


# --- sizes


def file_size(file: SourceFile) -> Iterator[Finding]:
    """Aim at 400 lines, stop at 500."""
    lines = len(file.text.splitlines())
    if lines > MOST_FILE_LINES:
        yield file.finding(1, "file_size", f"{lines} lines, {MOST_FILE_LINES} at most")


def folder_size(files: Iterable[SourceFile]) -> Iterator[Finding]:
    """A folder has so many files that one sees all of them at once; ``__init__.py`` does not count."""
    folders: defaultdict[str, int] = defaultdict(int)
    for file in files:
        folder, _, name = file.path.rpartition("/")
        folders[folder] += name != "__init__.py"
    for folder, count in folders.items():
        if count > MOST_FOLDER_FILES:
            yield Finding(folder, 1, "folder_size", f"{count} files, {MOST_FOLDER_FILES} at most")


def function_size(file: SourceFile) -> Iterator[Finding]:
    """Aim at 40 lines, stop at 70."""
    for function in file.functions:
        lines = (function.end_lineno or function.lineno) - function.lineno + 1
        if lines > MOST_FUNCTION_LINES:
            sentence = f"{function.name} has {lines} lines, {MOST_FUNCTION_LINES} at most"
            yield file.finding(function.lineno, "function_size", sentence)


def positional_parameters(file: SourceFile) -> Iterator[Finding]:
    """Past five, a caller can't read what is what: keyword-only from there on."""
    for function in file.functions:
        names = [parameter.arg for parameter in (*function.args.posonlyargs, *function.args.args)]
        count = len(names) - (names[:1] in (["self"], ["cls"]))
        if count > MOST_POSITIONAL_PARAMETERS:
            sentence = f"{function.name} has {count} positional parameters, {MOST_POSITIONAL_PARAMETERS} at most"
            yield file.finding(function.lineno, "positional_parameters", sentence)


def queue_fields(file: SourceFile) -> Iterator[Finding]:
    """A queue is made of parts, and holds little itself: every feature would like to add a field to it."""
    for cls in file.nodes if file.layer == "engine" else ():
        if isinstance(cls, ast.ClassDef) and cls.name == "Queue":
            stored = [node for node in ast.walk(cls) if isinstance(node, ast.Attribute)]
            fields = {node.attr for node in stored if isinstance(node.ctx, ast.Store) and is_self(node.value)}
            if len(fields) > MOST_QUEUE_FIELDS:
                yield file.finding(cls.lineno, "queue_fields", f"{len(fields)} fields, {MOST_QUEUE_FIELDS} at most")


# --- words


def words_of(name: str) -> list[str]:
    """The words of a snake_case or CamelCase ``name``, in lower case."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]


def empty_names(file: SourceFile) -> Iterator[Finding]:
    """Names say what a thing is or does."""
    stem = file.module.split(".")[-1]
    for line, name in [(1, stem)] * (not file.path.startswith("examples/data/")) + [*defined_names(file)]:
        words = words_of(name)
        if EMPTY_WORDS & set(words) or (len(words) == 1 and words[0] in EMPTY_NAMES):
            yield file.finding(line, "empty_names", f"'{name}' says nothing: name what it is or does")
        elif words[:1] == ["process"]:
            yield file.finding(line, "empty_names", f"'{name}': decode, handle, record, replay or run instead")
    for line, name in parameters(file):
        if EMPTY_WORDS & set(words_of(name)) or name == "data":
            yield file.finding(line, "empty_names", f"'{name}' says nothing: name what it holds")


def one_class_per_name(files: Iterable[SourceFile]) -> Iterator[Finding]:
    """A name stands for one class in the whole tree."""
    places: dict[str, str] = {}
    for file in files:
        for node in file.nodes if file.shipped else ():
            if isinstance(node, ast.ClassDef) and (first := places.setdefault(node.name, file.path)) != file.path:
                yield file.finding(node.lineno, "one_class_per_name", f"{node.name} is a class of {first} already")


def defined_names(file: SourceFile) -> Iterator[tuple[int, str]]:
    for node in file.nodes:
        if isinstance(node, ast.ClassDef | Function):
            yield node.lineno, node.name


def parameters(file: SourceFile) -> Iterator[tuple[int, str]]:
    for function in file.functions:
        if function.name not in FOREIGN_METHODS:
            arguments = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
            yield from ((argument.lineno, argument.arg) for argument in arguments)


# --- error codes


def docstrings(file: SourceFile) -> set[int]:
    """The ids of the constant nodes that are statements of their own: docstrings, of attributes too."""
    return {id(node.value) for node in file.nodes if isinstance(node, ast.Expr)}


def codes_of(file: SourceFile) -> Iterator[tuple[int, str]]:
    """Line and code of each DMQ code that the file raises or logs; docstrings and comparisons only mention one."""
    mentions = docstrings(file)
    for node in file.nodes:
        if isinstance(node, ast.Compare):
            mentions |= {id(inner) for inner in ast.walk(node)}
    for node in file.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in mentions:
            yield from ((node.lineno, found) for found in CODE.findall(node.value))


def code_form(file: SourceFile) -> Iterator[Finding]:
    """A code is DMQ and four digits."""
    if not file.shipped:
        return
    for line, code in codes_of(file):
        if not WELL_FORMED_CODE.fullmatch(code):
            yield file.finding(line, "code_form", f"{code} is not DMQ and four digits")


def one_meaning_per_code(files: Iterable[SourceFile]) -> Iterator[Finding]:
    """A code stands for one thing that can happen, so it is used in one file at most."""
    users: defaultdict[str, dict[str, tuple[SourceFile, int]]] = defaultdict(dict)
    for file in files:
        if file.shipped:
            for line, code in codes_of(file):
                users[code].setdefault(file.path, (file, line))
    for code, places in users.items():
        first, *others = sorted(places)
        for path in others:
            file, line = places[path]
            yield file.finding(line, "one_meaning_per_code", f"{code} is taken by {first}")


# --- tests


NAMEDTUPLE_METHODS = frozenset({"_replace", "_asdict", "_fields", "_make"})


def own_private_names(tree: ast.Module) -> set[str]:
    """Names of functions and classes that the file defines, and of attributes that its classes give themselves."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | Function):
            names.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_self(node.value):
            names.add(node.attr)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in NAMEDTUPLE_METHODS


def reaches_into(node: ast.AST) -> Iterator[str]:
    """The private names by which ``node`` reaches into another object or into a module of DelosMQ."""
    if isinstance(node, ast.Attribute) and is_private(node.attr) and not is_self(node.value):
        yield node.attr
    elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "delosmq":
        yield from (alias.name for alias in node.names if is_private(alias.name))
    elif isinstance(node, ast.Call) and len(node.args) > 1 and not is_self(node.args[0]):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        name = node.args[1]
        if (
            called in {"getattr", "setattr", "delattr"}
            and isinstance(name, ast.Constant)
            and is_private(str(name.value))
        ):
            yield str(name.value)


def private_members(file: SourceFile) -> Iterator[Finding]:
    """Tests reach into no private member of src: what they look at is what the code does, its public face, or a double
    that they hand in."""
    own = own_private_names(file.tree)
    for node in ast.walk(file.tree):
        for name in reaches_into(node):
            if name not in own:
                sentence = f"'{name}' is private: look at what the code does, or hand in a double"
                yield file.finding(getattr(node, "lineno", 1), "private_members", sentence)


REACH_IN = frozenset(("tests", "tests/cli", "tests/fuzz", "tests/server", "tests/sessions", "tests/simulation/whole"))
"""Folders whose tests still reach into private members. The list only gets shorter."""


def check_tests(files: list[SourceFile]) -> Iterator[Finding]:
    """What holds for tests: their doubles can stand beside compiled code, and they reach into no private member."""
    folders: set[str] = set()
    reaching: set[str] = set()
    for file in files:
        yield from one_native_base(file)
        folder = file.path.rpartition("/")[0]
        folders.add(folder)
        for finding in private_members(file):
            reaching.add(folder)
            if folder not in REACH_IN:
                yield finding
    for folder in sorted(REACH_IN & folders - reaching):
        yield Finding(folder, 1, "private_members", "none reaches in any more: take it from REACH_IN")


PER_FILE: tuple[Callable[[SourceFile], Iterator[Finding]], ...] = (
    pure_layers,
    engine_front,
    one_native_base,
    one_type_per_caught_name,
    light_package,
    file_size,
    function_size,
    positional_parameters,
    queue_fields,
    empty_names,
    code_form,
)
FOLDERS = ("src", "tools", "examples")
"""Where all rules hold; for tests see `check_tests`."""


def check(root: Path) -> list[Finding]:
    """All findings below ``root``, in order of file and line."""
    files = read_tree(root, FOLDERS)
    found = [finding for file in files for rule in PER_FILE for finding in rule(file)]
    tests = read_tree(root, ["tests"])
    beside = [*files, *tests, *read_tree(root, ["benchmarks", "interop"])]
    whole = (*folder_size(files), *one_class_per_name(files), *one_meaning_per_code(files), *declared_once(files))
    return sorted([*found, *check_tests(tests), *whole, *exact_types(files, beside)])


if __name__ == "__main__":
    try:
        findings = check(ROOT)
    except SyntaxError as error:
        sys.exit(f"{error.filename}:{error.lineno}: {error.msg}")
    for finding in findings:
        print(finding)
    sys.exit(f"{len(findings)} findings" if findings else 0)
