"""Instructions are compared with the base name by name, and what can't be counted is said in one sentence."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import count, count_worker
from benchmarks.fixed_work import Conversation, OpenWireConversation, StompConversation

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("kind", [StompConversation, OpenWireConversation])
@pytest.mark.parametrize("durable", [True, False])
def test_a_conversation_is_the_same_when_it_is_said_again(kind: type[Conversation], durable: bool) -> None:
    conversation = kind()
    heard: list[tuple[int, bytes]] = []
    said = conversation.hold(64, durable)
    again = kind().hold(64, durable)
    assert said == again
    bench = conversation.new_bench()
    for number, chunk in said:
        bench.turn(number, chunk, lambda to, piece: heard.append((to, piece)))
    assert bench.broker.queues["q"].message_count == 0
    assert sum(chunk.count(b"x" * 1024) for _, chunk in heard) == 64


def test_the_worker_marks_before_and_behind_each_part_that_counts() -> None:
    parts = count_worker.Parts()
    count_worker.count_engine(parts, durable=True)
    assert {name for name in parts.names if name} == {
        f"engine, durable: {step}" for step in ("send", "dispatch", "acknowledge")
    }
    assert parts.names.count("engine, durable: send") == count_worker.COUNTED // count_worker.BATCH


def test_a_table_says_what_changed_against_the_base() -> None:
    lines = count.render({"send": 1010.0, "fresh": 5.0}, {"send": 1000.0, "former": 7.0})
    assert lines[2:] == ["| send | 1,000 | 1,010 | +1.00 % |", "| fresh |  | 5 | new |", "| former | 7 | | gone |"]


def test_only_what_takes_more_than_is_allowed_fails() -> None:
    assert count.excess({"send": 1004.0, "new": 9.0}, {"send": 1000.0}, 0.5) == []
    assert count.excess({"send": 1006.0}, {"send": 1000.0}, 0.5) == [
        "send takes 0.60 % more instructions than the base"
    ]


def test_another_compiler_is_named() -> None:
    assert count.differences({"compiler": "gcc 13"}, {"compiler": "gcc 12"}) == [
        "the base was counted with compiler gcc 12, and this is gcc 13"
    ]


def test_the_stored_base_names_all_that_is_counted() -> None:
    base = json.loads(count.BASE.read_text("utf-8"))
    kinds = ("durable", "non-durable")
    expected = {f"engine, {kind}: {step}" for kind in kinds for step in ("send", "dispatch", "acknowledge")}
    expected |= {f"{name}, {kind}: send, deliver, acknowledge" for name in ("STOMP", "OpenWire") for kind in kinds}
    assert set(base["instructions"]) == expected
    assert base["made with"]["valgrind"]


def test_without_valgrind_one_sentence_says_how_to_get_it(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks", "count", "--python", sys.executable]
    environment = {**os.environ, "PATH": str(tmp_path)}
    answer = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert answer.returncode == 2
    assert answer.stderr == count.MISSING + "\n"


def test_the_pure_form_is_not_counted(tmp_path: Path) -> None:
    with pytest.raises(count.CountError, match="is missing: make it with `make compiled`"):
        count.count(tmp_path / "python")
