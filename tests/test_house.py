"""The measures of order: each counts what it says, and a limit only becomes lower."""

from pathlib import Path

import pytest

from tools import house
from tools.architecture import SourceFile, read_tree

pytestmark = pytest.mark.sources


def tree(tmp_path: Path, files: dict[str, str]) -> list[SourceFile]:
    for name, text in files.items():
        path = tmp_path / "src" / "delosmq" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return read_tree(tmp_path, ["src/delosmq"])


def test_the_fields_of_queue_are_what_its_methods_assign(tmp_path: Path) -> None:
    text = """class Queue:
    def __init__(self):
        self.name = self.size = 0
    def add(self, other):
        self.size += other.size
        self.late: int = 1
        other.foreign = 1
"""
    files = tree(tmp_path, {"engine/queue.py": text, "manage/queue.py": text})
    assert house.queue_fields(files) == 3


def test_names_are_counted_once_wherever_outside_the_engine_they_are_imported(tmp_path: Path) -> None:
    line = "from delosmq.engine.queue import Queue, Slot\n"
    files = tree(tmp_path, {"server/a.py": line, "manage/b.py": line, "engine/c.py": "from .log import Log\n"})
    assert house.engine_names(files) == {"delosmq.engine.queue.Queue", "delosmq.engine.queue.Slot"}


def test_a_room_imports_from_rooms_before_it_alone(tmp_path: Path) -> None:
    files = {
        "engine/log/log.py": "from delosmq.engine.base.jobs import Job\n",
        "engine/base/jobs.py": "from delosmq.engine.log.log import Log\n",
        "engine/dispatch/a.py": "from delosmq.engine.paging.b import B\nfrom delosmq.engine.dispatch.c import C\n",
        "engine/paging/b.py": "from delosmq.engine.broker import Broker\n",
        "engine/broker.py": "from delosmq.engine.paging.b import B\n",
    }
    assert house.upward_imports(tree(tmp_path, files)) == [
        ("delosmq.engine.base.jobs", "delosmq.engine.log.log.Log"),
        ("delosmq.engine.dispatch.a", "delosmq.engine.paging.b.B"),
        ("delosmq.engine.paging.b", "delosmq.engine.broker.Broker"),
    ]


def test_imports_for_annotations_make_circles_too(tmp_path: Path) -> None:
    files = {
        "engine/a.py": "from delosmq.engine import b\n",
        "engine/b.py": "if TYPE_CHECKING:\n    from delosmq.engine.c import C\n",
        "engine/c.py": "from delosmq.engine.a import A\n",
        "engine/d.py": "from delosmq.engine.a import A\n",
    }
    found = house.in_circles(house.import_graph(tree(tmp_path, files)))
    assert found == {f"delosmq.engine.{name}" for name in "abc"}


def test_a_class_name_in_two_files_stands_twice(tmp_path: Path) -> None:
    files = {
        "engine/a.py": "class A: ...\nclass B: ...\n",
        "server/b.py": "class B: ...\n",
        "cli/c.py": "class C: ...\n",
    }
    found = house.double_classes(tree(tmp_path, files))
    assert found == {"B": {"src/delosmq/engine/a.py", "src/delosmq/server/b.py"}}


def test_a_folder_of_seventeen_files_is_large_and_its_init_does_not_count(tmp_path: Path) -> None:
    files = {f"engine/f{number}.py": "" for number in range(17)} | {"engine/__init__.py": ""}
    files |= {f"server/f{number}.py": "" for number in range(16)} | {"server/__init__.py": ""}
    assert house.large_folders(tree(tmp_path, files)) == {"src/delosmq/engine": 17}


def test_what_is_worse_fails_and_what_is_better_becomes_the_limit() -> None:
    limits = {"fields of Queue": 10, "upward imports in the engine": 3}
    found = {"fields of Queue": 11, "upward imports in the engine": 2}
    (sentence,) = house.exceeded(found, limits)
    assert sentence.startswith("fields of Queue: 11, and 10 are allowed")
    assert house.lowered(found, limits) == {"fields of Queue": 10, "upward imports in the engine": 2}
    assert house.exceeded(limits, limits) == []


def test_a_durable_send_is_followed_up_to_its_record_the_same_way_each_time() -> None:
    first = house.way_of_a_durable_send()
    assert house.way_of_a_durable_send() == first  # nothing but zeros where the modules are compiled
