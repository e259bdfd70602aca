"""Batches: one record without lists says what the lists say, and one batch serves all decisions in turn."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delosmq.engine.log.log import NO_BODY, Batch, Log
from delosmq.model.errors import StorageError
from delosmq.model.ids import Position
from delosmq.model.message import Home
from tests.engine.support import RecordingStore

NOTE = 0
STORE = 1
REMOVE = 2
REMOVE_LAST = 3


def recorded(kinds: list[int]) -> tuple[Batch, list[Home]]:
    """A batch with records of these kinds, and the home of the message that each is about."""
    batch = Batch()
    homes = [Home() for _ in kinds]
    for index, (kind, home) in enumerate(zip(kinds, homes, strict=True)):
        meta = b"meta %d" % index
        if kind == NOTE:
            batch.add(meta)
        elif kind == STORE:
            batch.add_stored(meta, b"body %d" % index, home)
        else:
            batch.add_removed(meta, home, kind == REMOVE_LAST)
    return batch, homes


@given(st.lists(st.integers(NOTE, REMOVE_LAST), max_size=4))
def test_the_lists_say_what_was_recorded(kinds: list[int]) -> None:
    batch, homes = recorded(kinds)
    assert batch.sole == (len(kinds) == 1)
    counts = (batch.record_count, batch.stored_count)
    assert counts == (len(kinds), kinds.count(STORE))
    assert batch.metas == [b"meta %d" % index for index in range(len(kinds))]
    assert batch.bodies == [b"body %d" % index if kind == STORE else NO_BODY for index, kind in enumerate(kinds)]
    assert batch.stored == [(index, homes[index]) for index, kind in enumerate(kinds) if kind == STORE]
    assert batch.targets == [home for home, kind in zip(homes, kinds, strict=True) if kind >= REMOVE]
    assert batch.released == [home for home, kind in zip(homes, kinds, strict=True) if kind == REMOVE_LAST]
    # What the lists say now is all that counts.
    assert not batch.sole
    assert (batch.record_count, batch.stored_count) == counts


def test_what_is_added_to_the_lists_joins_the_record_before() -> None:
    batch, (home,) = recorded([REMOVE])
    other = Home()
    batch.targets.append(other)
    batch.metas.append(b"more")
    batch.bodies.append(NO_BODY)
    assert (batch.sole, batch.record_count) == (False, 2)
    assert (batch.metas, batch.targets, batch.released) == ([b"meta 0", b"more"], [home, other], [])


def test_the_next_decision_changes_no_list_that_a_store_kept() -> None:
    store = RecordingStore()
    log = Log(store)
    for number in range(3):
        log.batch().add_stored(b"stored", b"%d" % number, Home())
        for _ in range(number):
            log.record(b"more")
        assert log.close() == number + 1
    assert [(position, metas, bodies) for position, metas, bodies in store.batches] == [
        (1, [b"stored"], [b"0"]),
        (2, [b"stored", b"more"], [b"1", NO_BODY]),
        (3, [b"stored", b"more", b"more"], [b"2", NO_BODY, NO_BODY]),
    ]


class Refusing(RecordingStore):
    refuses = True

    def append(self, batch: Batch) -> None:
        if self.refuses:
            raise StorageError("DMQ3003", "too large")
        super().append(batch)


def test_nothing_of_a_refused_batch_comes_with_the_next_one() -> None:
    store = Refusing()
    log = Log(store)
    log.batch().add_stored(b"refused", b"body", Home())
    log.record(b"with it")
    with pytest.raises(StorageError):
        log.close()
    assert log.position == 0
    store.refuses = False
    assert log.close() == 0
    log.record(b"taken")
    assert log.close() == 1
    assert store.batches == [(Position(1), [b"taken"], [NO_BODY])]


def test_a_log_that_stopped_keeps_nothing_and_what_depends_on_it_waits_for_ever() -> None:
    store = RecordingStore()
    log = Log(store)
    log.batch().add_stored(b"half", b"body", Home())
    log.stop()
    assert log.close() == log.position == 1
    assert (store.batches, log.batch().record_count, log.batch().body) == ([], 0, NO_BODY)


def test_a_closed_batch_holds_no_body() -> None:
    log = Log(RecordingStore())
    batch = log.batch()
    batch.add_stored(b"stored", b"large", Home())
    log.close()
    assert (batch.record_count, batch.body, batch.home) == (0, NO_BODY, None)
