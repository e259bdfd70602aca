"""The newest journal file, damaged in every way in which others are: the start is refused, and never in silence."""

# BROKER-1

import contextlib
import logging
from collections.abc import Callable
from itertools import product

import pytest

from delosmq.model.errors import StorageError
from delosmq.storage.journal.manifest import MANIFEST_NAME
from delosmq.storage.journal.records import DATA_START, decode_file_header
from tests.storage.bench import Bench
from tests.storage.on_disk import manifest_mark

FILE_SIZE = 64 * 1024


class Case:
    """A journal with confirmed batches in its newest file, and what was copied of that file on the way."""

    def __init__(self, bench: Bench, earlier: str) -> None:
        self.bench = bench
        self.copies: dict[str, bytes] = {}
        EARLIER[earlier](self)
        self.name = bench.open_segment.name
        for copy in ("while it was begun", "with less in it"):
            bench.note(copy.encode())
            bench.sync()
            self.copies[copy] = bench.content(self.name)
        for _ in range(3):
            bench.put(bytes(500))
            bench.sync()
        self.confirmed = bench.position
        self.end = bench.open_segment.end


def of_one(case: Case) -> None:
    case.bench.sync()


def of_several(case: Case) -> None:
    for _ in range(3):
        case.bench.fill_segment()


def of_a_second_life(case: Case) -> None:
    case.bench.fill_segment()
    case.bench.note()
    case.bench.sync()
    case.bench.start()
    case.bench.sync()


def of_recycled_ones(case: Case) -> None:
    """The newest file has held another segment before, and copies of that and of its time as a spare are there."""
    bench = case.bench
    lives: dict[tuple[str, int], list[bytes]] = {}
    for _ in range(8):
        bench.release(*bench.fill_segment())
        bench.sync()
        for name in bench.disk.files:
            content = bench.content(name)
            if (header := decode_file_header(content[:64])) is not None:
                lives.setdefault((name, header.number), []).append(content)
    opened = bench.open_segment
    number = opened.header.number
    case.copies["of a former life"] = next(
        contents[-1] for (name, former), contents in lives.items() if name == opened.name and former < number
    )
    mark = opened.header.mark.to_bytes(8, "little")
    case.copies["while it was a spare"] = next(
        content for content in lives[opened.name, number] if not content.startswith(mark, DATA_START)
    )


def of_a_compaction(case: Case) -> None:
    """What lives was stored again and the files freed by that are in use again."""
    bench = case.bench
    homes = bench.fill_segment()
    bench.release(*homes[1:])
    bench.fill_segment()
    bench.move(homes[0], bytes(3000))
    bench.fill_segment()
    bench.fill_segment()


EARLIER: dict[str, Callable[[Case], None]] = {
    "one segment": of_one,
    "several": of_several,
    "after a restart": of_a_second_life,
    "recycled": of_recycled_ones,
    "compacted": of_a_compaction,
}


def blank(content: bytes, start: int, end: int) -> bytes:
    return content[:start] + bytes(end - start) + content[end:]


def cut_to(size: int) -> Callable[[Case], None]:
    return lambda case: case.bench.replace(case.name, case.bench.content(case.name)[:size])


def copied(copy: str) -> Callable[[Case], None]:
    return lambda case: case.bench.replace(case.name, case.copies[copy])


def blanked(start: int, end: int) -> Callable[[Case], None]:
    return lambda case: case.bench.replace(case.name, blank(case.bench.content(case.name), start, end))


def flipped(offset: int) -> Callable[[Case], None]:
    return lambda case: case.bench.damage(case.name, offset if offset > 0 else case.end + offset)


DAMAGE: dict[str, Callable[[Case], None]] = {
    "deleted": lambda case: case.bench.delete(case.name),
    "empty": cut_to(0),
    "cut within its header": cut_to(40),
    "cut behind its header": cut_to(DATA_START),
    "cut within its first block": cut_to(DATA_START + 30),
    "cut within its batches": cut_to(DATA_START + 400),
    "cut at its end": cut_to(FILE_SIZE - 1),
    "blank": blanked(0, FILE_SIZE),
    "without header": blanked(0, 64),
    "without blocks": blanked(DATA_START, FILE_SIZE),
    "without state block": blanked(DATA_START, DATA_START + 60),
    "header damaged": flipped(20),
    "mark of its first block damaged": flipped(DATA_START),
    "state block damaged": flipped(DATA_START + 20),
    "last batch damaged": flipped(-10),
    "while it was begun": copied("while it was begun"),
    "with less in it": copied("with less in it"),
    "while it was a spare": copied("while it was a spare"),
    "of a former life": copied("of a former life"),
}
COPIES = ("while it was a spare", "of a former life")
CASES = [
    (earlier, damage) for earlier, damage in product(EARLIER, DAMAGE) if damage not in COPIES or earlier == "recycled"
]


@pytest.mark.parametrize("end", ["crash", "clean stop", "power cut"])
@pytest.mark.parametrize(("earlier", "damage"), CASES)
def test_a_damaged_newest_file_refuses_the_start(
    bench: Bench, caplog: pytest.LogCaptureFixture, earlier: str, damage: str, end: str
) -> None:
    case = Case(bench, earlier)
    if end == "clean stop":
        bench.store.close(1)
    DAMAGE[damage](case)
    if end == "power cut":
        bench.disk = bench.disk.power_cut()
    caplog.set_level(logging.WARNING)
    # What a power cut leaves of the noted position may be older: then less is known to have been there.
    hard_to_see = {"last batch damaged", "while it was begun", "with less in it"}
    with (
        contextlib.suppress(StorageError)
        if end == "power cut" and damage in hard_to_see
        else pytest.raises(StorageError, match=rf"DMQ\d+: /sim/{case.name}: .* backup")
    ):
        bench.start()
    assert "nothing confirmed is lost" not in caplog.text


@pytest.mark.parametrize("end", ["crash", "clean stop"])
@pytest.mark.parametrize(("earlier", "damage"), CASES)
def test_an_operator_may_go_on_with_what_is_left(
    bench: Bench, caplog: pytest.LogCaptureFixture, earlier: str, damage: str, end: str
) -> None:
    case = Case(bench, earlier)
    if end == "clean stop":
        bench.store.close(1)
    DAMAGE[damage](case)
    bench.start(accept_loss=True)
    assert "DMQ3032: going on without it" in caplog.text
    assert bench.position >= case.confirmed, "no position is used again"
    caplog.clear()
    bench.note(b"later")
    bench.sync()
    bench.start()
    assert bench.kept.records[-1] == (bench.position, b"later")
    assert caplog.text == ""


@pytest.mark.parametrize("end", ["crash", "clean stop"])
@pytest.mark.parametrize("damage", ["deleted", "empty", "cut", "header blank", "header damaged", "edit damaged"])
def test_a_damaged_manifest_refuses_the_start_and_can_be_made_again(bench: Bench, damage: str, end: str) -> None:
    case = Case(bench, "several")
    if end == "clean stop":
        bench.store.close(1)
    content = bench.content(MANIFEST_NAME)
    edits = 8192
    damaged = {
        "deleted": b"",
        "empty": b"",
        "cut": content[:edits],
        "header blank": blank(content, 0, 64),
        "header damaged": content[:20] + b"\xff" + content[21:],
        "edit damaged": content[: edits + 30] + b"\xff" + content[edits + 31 :],
    }[damage]
    bench.replace(MANIFEST_NAME, damaged)
    if damage == "deleted":
        bench.delete(MANIFEST_NAME)
    with pytest.raises(StorageError, match=r"DMQ303[01]: /sim/manifest: .*restore the journal directory"):
        bench.start()
    bench.start(accept_loss=True)
    assert bench.position == case.confirmed
    kept = bench.kept.records
    bench.start()
    assert bench.kept.records == kept


def test_a_lost_last_edit_of_the_manifest_does_no_harm(bench: Bench) -> None:
    case = Case(bench, "several")
    content = bench.content(MANIFEST_NAME)
    last = content.rfind(manifest_mark(bench.disk))
    bench.replace(MANIFEST_NAME, blank(content, last, last + 20))
    bench.start()
    assert bench.position == case.confirmed


def test_an_older_manifest_is_noticed(bench: Bench) -> None:
    bench.fill_segment()
    older = bench.content(MANIFEST_NAME)
    for _ in range(4):
        bench.release(*bench.fill_segment())
    bench.replace(MANIFEST_NAME, older)
    with pytest.raises(StorageError, match=r"DMQ3009|DMQ3010"):
        bench.start()


def test_a_missing_file_in_the_middle_can_be_gone_without(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    kept = [home for _ in range(3) for home in bench.fill_segment()]
    name = bench.name_of(kept[0].segment)
    bench.delete(name)
    with pytest.raises(StorageError, match=f"DMQ3009: /sim/{name}: .*--accept-loss"):
        bench.start()
    bench.start(accept_loss=True)
    assert f"/sim/{name}" in caplog.text
    assert {home.segment for home in bench.kept.homes} == {home.segment for home in kept} - {kept[0].segment}
    bench.start()
