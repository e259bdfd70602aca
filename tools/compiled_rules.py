"""Rules for what mypyc compiles, and what stands beside it: each from something that went wrong only when compiled."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from tools.source_files import PURE, Finding, SourceFile, is_self, layer_of

COMPILED = PURE | {"storage"}
"""Of storage what is listed in pyproject.toml; its abstract classes are."""


def one_native_base(file: SourceFile) -> Iterator[Finding]:
    """A class has at most one base among the classes that compile.

    mypyc refuses a second one, an interpreted class with two fails with "instance lay-out conflict", and with a
    ``trait`` as base the interpreter crashes (mypy 2.4, CPython 3.11).
    """
    origins = {name.split(".")[-1]: name for _, name in file.imports()}
    origins |= {node.name: file.module + "." for node in file.tree.body if isinstance(node, ast.ClassDef)}
    for node in file.nodes:
        if isinstance(node, ast.ClassDef):
            bases = [ast.unparse(base) for base in node.bases]
            native = [base for base in bases if layer_of(origins.get(re.split(r"[.[]", base)[0], "")) in PURE]
            if len(native) > 1:
                sentence = f"{node.name} has several bases that compile ({', '.join(native)}): hold one, be the other"
                yield file.finding(node.lineno, "one_native_base", sentence)
    for line, name in file.imports():
        if name == "mypy_extensions.trait":
            yield file.finding(line, "one_native_base", "a trait as base of an interpreted class crashes")


def one_type_per_caught_name(file: SourceFile) -> Iterator[Finding]:
    """In a function that compiles, ``except A as error`` and ``except B as error`` need two names.

    mypyc gives the name the first type for the whole function, and the second handler raises TypeError (mypy 2.4).
    """
    if file.layer not in PURE:
        return
    for function in file.functions:
        types: dict[str, str] = {}
        for node in ast.walk(function):
            if isinstance(node, ast.ExceptHandler) and node.name and node.type:
                caught = ast.unparse(node.type)
                if types.setdefault(node.name, caught) != caught:
                    sentence = f"'{node.name}' is {types[node.name]} already in {function.name}: use a second name"
                    yield file.finding(node.lineno, "one_type_per_caught_name", sentence)


def declared_once(files: list[SourceFile]) -> Iterator[Finding]:
    """A class annotates no attribute that a class above it has annotated: compiled, the garbage collector would visit
    it twice, and keep for ever what it believes to be in use."""
    places: dict[str, SourceFile] = {}
    classes: dict[str, ast.ClassDef] = {}
    for file in files:
        for node in file.nodes if file.layer in PURE else ():
            if isinstance(node, ast.ClassDef):
                places[node.name], classes[node.name] = file, node
    annotated = {name: annotations_of(node) for name, node in classes.items()}
    for name, node in classes.items():
        for above in ancestors_of(node, classes) & classes.keys():
            for attribute in annotated[name].keys() & annotated[above].keys():
                sentence = f"{above} annotates '{attribute}' already; give it a value without an annotation here"
                yield places[name].finding(annotated[name][attribute], "declared_once", sentence)


def annotations_of(node: ast.ClassDef) -> dict[str, int]:
    """The attributes that a class annotates, itself or on ``self``, with their lines."""
    found: dict[str, int] = {}
    for part in ast.walk(node):
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Attribute) and is_self(part.target.value):
            found[part.target.attr] = part.lineno
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            found[statement.target.id] = statement.lineno
    return found


def ancestors_of(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> set[str]:
    """The names of the classes above one, as far as ``classes`` leads."""
    found: set[str] = set()
    for base in node.bases:
        name = ast.unparse(base).split("[")[0].rpartition(".")[2]
        found.add(name)
        if name in classes:
            found |= ancestors_of(classes[name], classes)
    return found


def exact_types(shipped: Iterable[SourceFile], files: Iterable[SourceFile]) -> Iterator[Finding]:
    """What is not compiled asks ``isinstance`` of no abstract class that is.

    mypyc gives these no caches of their own, so all share those of `abc.ABC`: that an object is none of one class is
    taken for an answer about every other (mypy 2.4).
    """
    classes = {
        node.name: node
        for file in shipped
        for node in file.nodes
        if file.layer in COMPILED and isinstance(node, ast.ClassDef)
    }
    abstract = {name for name, node in classes.items() if "ABC" in ancestors_of(node, classes)}
    for file in files:
        if file.layer in PURE:
            continue
        known = {name.rpartition(".")[2] for _, name in file.imports() if layer_of(name) in COMPILED} & abstract
        for node in file.nodes if known else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {"isinstance", "issubclass"}:
                for asked in {one.id for one in ast.walk(node.args[1]) if isinstance(one, ast.Name)} & known:
                    sentence = f"{asked} is abstract and compiled: ask for a concrete class, or compare type()"
                    yield file.finding(node.lineno, "exact_types", sentence)
