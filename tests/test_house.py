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
    assert house.queue_fields(files) == {"name", "size", "late"}


def test_what_is_worse_fails_and_what_is_better_becomes_the_limit() -> None:
    limits = {"fields of Queue": 10, "file changes of a durable SEND": 3}
    found = {"fields of Queue": 11, "file changes of a durable SEND": 2}
    (sentence,) = house.exceeded(found, limits)
    assert sentence.startswith("fields of Queue: 11, and 10 are allowed")
    assert house.lowered(found, limits) == {"fields of Queue": 10, "file changes of a durable SEND": 2}
    assert house.exceeded(limits, limits) == []


def test_a_durable_send_is_followed_up_to_its_record_the_same_way_each_time() -> None:
    first = house.way_of_a_durable_send()
    assert house.way_of_a_durable_send() == first  # nothing but zeros where the modules are compiled
