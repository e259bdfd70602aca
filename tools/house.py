"""How orderly the tree is, in numbers: what one message crosses, what stands too close together, what stands twice.

    python -m tools.house            each measure with its limit and its aim; exit code 1 when a limit is exceeded
    python -m tools.house --all      names each thing that counts, too
    python -m tools.house --lower    takes what has become less as the new limit

The limits stand in tools/house.json and only ever become lower. Lines and calls are told and not limited: merged
functions and denser lines would meet a limit.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from types import FrameType

from benchmarks.engine_worker import DroppingStore
from benchmarks.fixed_work import CLIENT, StompConversation
from tools.architecture import ROOT, SourceFile, read_tree

LIMITS = ROOT / "tools" / "house.json"
LONG_FILE_LINES = 500
LARGE_FOLDER_FILES = 16
AIMS = {
    "file changes of a durable SEND": 20,
    "fields of Queue": 40,
    "names imported from the engine": 60,
    "upward imports in the engine": 0,
    "modules in import circles": 0,
    "class names that stand twice": 0,
    f"files over {LONG_FILE_LINES} lines": 0,
    f"folders over {LARGE_FOLDER_FILES} files": 0,
}
ROOMS: tuple[frozenset[str], ...] = (
    frozenset({"base"}),
    frozenset({"log"}),
    frozenset({"queues"}),
    frozenset({"addresses", "dispatch", "paging"}),
    frozenset({"routing"}),
    frozenset({"delivery", "lifecycle"}),
    frozenset({"transactions", "leases"}),
    frozenset({"recovery", "compaction"}),
)
"""Folders of the engine: each imports only from those before it, and none from another of the same set. What lies
beside them imports from all."""
PACKAGE = "/src/delosmq/"


# --- one message


class Stopped(DroppingStore):
    """Ends the watching when a record comes."""

    watching = False

    def append(self, batch: object) -> None:
        if self.watching:
            sys.setprofile(None)


def way_of_a_durable_send() -> tuple[int, int]:
    """File changes and calls between the arrival of a STOMP SEND and its record at the store, of a broker in use.

    A change is a call from one file of the package into another, or a return to it.
    """
    conversation = StompConversation()
    store = Stopped()
    conversation.bench = conversation.new_bench(store)
    conversation.hold(64, durable=True)
    files: list[str] = []
    calls: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        runs = frame if event == "call" else frame.f_back if event == "return" else None
        if runs is not None and PACKAGE in runs.f_code.co_filename:
            files.append(runs.f_code.co_filename)
            if event == "call":
                calls.append(runs.f_code.co_qualname)

    session = conversation.bench.sessions[CLIENT]
    store.watching = True
    sys.setprofile(note)
    session.receive(conversation.frame(durable=True), conversation.bench.now)
    sys.setprofile(None)
    return sum(one != other for one, other in pairwise(files)), len(calls)


# --- the tree


def classes(files: Iterable[SourceFile]) -> Iterator[tuple[SourceFile, ast.ClassDef]]:
    """All classes, with their files."""
    for file in files:
        for node in ast.walk(file.tree):
            if isinstance(node, ast.ClassDef):
                yield file, node


def fields_of(cls: ast.ClassDef) -> set[str]:
    """What instances of it hold: all that any of its methods assigns to ``self``."""
    assigned = (node for node in ast.walk(cls) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store))
    return {node.attr for node in assigned if isinstance(node.value, ast.Name) and node.value.id == "self"}


def queue_fields(files: list[SourceFile]) -> int:
    """Fields of the engine's Queue."""
    return sum(len(fields_of(cls)) for file, cls in classes(files) if file.layer == "engine" and cls.name == "Queue")


def engine_names(files: list[SourceFile]) -> set[str]:
    """What other packages import from the engine."""
    return {
        name
        for file in files
        if file.layer != "engine"
        for _, name in file.imports()
        if name.startswith("delosmq.engine.")
    }


def place_of(module: str) -> int:
    """Where the room of a module of the engine stands; behind all rooms when it lies in none."""
    parts = module.split(".")
    if len(parts) > 3:
        for number, rooms in enumerate(ROOMS):
            if parts[2] in rooms:
                return number
    return len(ROOMS)


def upward_imports(files: list[SourceFile]) -> list[tuple[str, str]]:
    """Imports of the engine from a room that is not before one's own; only what lies in rooms has an order."""
    found = []
    for file in files:
        own = place_of(file.module)
        if file.layer == "engine" and own < len(ROOMS):
            for _, name in file.imports():
                same = name.split(".")[2:3] == file.module.split(".")[2:3]
                if name.startswith("delosmq.engine.") and not same and place_of(name) >= own:
                    found.append((file.module, name))
    return found


def import_graph(files: list[SourceFile]) -> dict[str, set[str]]:
    """Which module imports which, imports for annotations among them."""
    known = {file.module for file in files}
    graph: dict[str, set[str]] = {}
    for file in files:
        targets = set()
        for _, name in file.imports():
            target = name if name in known else name.rpartition(".")[0]
            if target in known and target != file.module:
                targets.add(target)
        graph[file.module] = targets
    return graph


def in_circles(graph: dict[str, set[str]]) -> set[str]:
    """The modules that import themselves over others."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        seen: set[str] = set()
        waiting = list(graph[start])
        while waiting:
            module = waiting.pop()
            if module not in seen:
                seen.add(module)
                waiting += graph[module]
        reached[start] = seen
    return {module for module, seen in reached.items() if module in seen}


def double_classes(files: list[SourceFile]) -> dict[str, set[str]]:
    """Names of classes that stand in several files, and the files."""
    places: defaultdict[str, set[str]] = defaultdict(set)
    for file, cls in classes(files):
        places[cls.name].add(file.path)
    return {name: paths for name, paths in places.items() if len(paths) > 1}


def large_folders(files: list[SourceFile]) -> dict[str, int]:
    """Folders with more files than one sees at a glance; ``__init__.py`` does not count."""
    counts: defaultdict[str, int] = defaultdict(int)
    for file in files:
        folder, _, name = file.path.rpartition("/")
        counts[folder] += name != "__init__.py"
    return {folder: count for folder, count in counts.items() if count > LARGE_FOLDER_FILES}


def measures(files: list[SourceFile]) -> dict[str, int]:
    """What is limited, in the order of ``AIMS``."""
    changes, _ = way_of_a_durable_send()
    figures = (
        changes,
        queue_fields(files),
        len(engine_names(files)),
        len(upward_imports(files)),
        len(in_circles(import_graph(files))),
        len(double_classes(files)),
        sum(lines_of(file) > LONG_FILE_LINES for file in files),
        len(large_folders(files)),
    )
    return dict(zip(AIMS, figures, strict=True))


def lines_of(file: SourceFile) -> int:
    return len(file.text.splitlines())


def exceeded(found: dict[str, int], limits: dict[str, int]) -> list[str]:
    """What has become worse, a sentence each."""
    return [
        f"{name}: {figure}, and {limits.get(name, 0)} are allowed; `python -m tools.house --all` names them"
        for name, figure in found.items()
        if figure > limits.get(name, 0)
    ]


def lowered(found: dict[str, int], limits: dict[str, int]) -> dict[str, int]:
    """The limits, with what has become less."""
    return {name: min(figure, limits.get(name, figure)) for name, figure in found.items()}


def name_all(files: list[SourceFile]) -> Iterator[str]:
    """Each thing that counts, a line each."""
    yield from (f"imported from the engine: {name}" for name in sorted(engine_names(files)))
    yield from (f"upward: {module} imports {name}" for module, name in upward_imports(files))
    yield from (f"in a circle: {module}" for module in sorted(in_circles(import_graph(files))))
    yield from (f"twice: {name} in {', '.join(sorted(paths))}" for name, paths in sorted(double_classes(files).items()))
    yield from (f"long: {file.path}, {lines_of(file)} lines" for file in files if lines_of(file) > LONG_FILE_LINES)
    yield from (f"large: {folder}, {count} files" for folder, count in sorted(large_folders(files).items()))


def main(argv: list[str]) -> int:
    """Print the measures; 1 when one is exceeded."""
    parser = argparse.ArgumentParser(prog="python -m tools.house", description=__doc__)
    parser.add_argument("--lower", action="store_true", help="take what has become less as the new limit")
    parser.add_argument("--all", action="store_true", help="name each thing that counts")
    arguments = parser.parse_args(argv)
    files = read_tree(ROOT, ["src/delosmq"])
    limits: dict[str, int] = json.loads(LIMITS.read_text("utf-8")) if LIMITS.exists() else {}
    found = measures(files)
    if arguments.all:
        print("\n".join(name_all(files)))
    for name, figure in found.items():
        print(f"{figure:>6}  {name} ({limits.get(name, 0)} allowed, {AIMS[name]} aimed at)")
    _, calls = way_of_a_durable_send()
    print(f"{calls:>6}  calls of a durable SEND, up to its record")
    print(f"{sum(map(lines_of, files)):>6}  lines of src/delosmq")
    if arguments.lower:
        LIMITS.write_text(json.dumps(lowered(found, limits), indent=1) + "\n", "utf-8")
        return 0
    for sentence in exceeded(found, limits):
        print(sentence, file=sys.stderr)
    return 1 if exceeded(found, limits) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
