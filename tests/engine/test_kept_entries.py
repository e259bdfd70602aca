"""Entries that a part of the broker keeps in its store, by key."""

# ROUTE-5

import pytest

from delosmq.engine.kept_entries import KeptEntries
from delosmq.model.message import ANYCAST
from delosmq.model.names import INTERNAL_PREFIX
from delosmq.model.settings import QueueSettings
from tests.engine.support import Bench


def kept(bench: Bench, name: str = "router") -> tuple[KeptEntries, list[tuple[str, str]]]:
    entries = bench.broker.kept_entries(name)
    return entries, entries.load()


def test_what_is_put_is_there_after_a_restart_and_what_is_removed_is_not() -> None:
    bench = Bench()
    entries, found = kept(bench)
    assert found == []
    for key, value in (("a", "1"), ("b", "1"), ("c", "1"), ("a", "2"), ("é\0", "3")):
        assert entries.put(key, value)
    entries.remove("c")
    entries.remove("never there")
    bench = bench.restart()
    entries, found = kept(bench)
    assert found == [("b", "1"), ("a", "2"), ("é\0", "3")]
    entries.put("b", "4")
    entries.remove("a")
    assert kept(bench.restart())[1] == [("é\0", "3"), ("b", "4")]


def test_a_crash_at_any_place_loses_no_entry_that_was_synced_and_shows_one_value_of_each() -> None:
    bench = Bench()
    entries, _ = kept(bench)
    states: dict[int, dict[str, str]] = {}
    state: dict[str, str] = {}
    for number in range(20):
        key = f"{number % 3}"
        if number % 7 == 6:
            entries.remove(key)
            state.pop(key, None)
        else:
            entries.put(key, f"{number}")
            state[key] = f"{number}"
        states[int(entries.position)] = dict(state)
    for position, expected in states.items():
        assert dict(kept(bench.restart(position))[1]) == expected


def test_keepers_are_apart_and_those_that_are_gone_leave_nothing() -> None:
    bench = Bench()
    for name in ("one", "other", "*.#"):
        kept(bench, name)[0].put("key", name)
    bench.broker.drop_kept_entries(["one"])
    bench.run()
    bench = bench.restart()
    assert [name for name in bench.broker.queues if name.startswith(INTERNAL_PREFIX)] == [
        INTERNAL_PREFIX + "kept." + b"one".hex()
    ]
    assert len([name for name in bench.broker.addresses if name.startswith(INTERNAL_PREFIX)]) == 1
    assert kept(bench, "one")[1] == [("key", "one")]
    assert kept(bench, "other")[1] == []


@pytest.mark.parametrize(
    "fields",
    [{"default_ring_size": 1}, {"default_last_value_key": "k"}, {"expiry_delay": 1}, {"max_size_bytes": 1}],
    ids=lambda fields: next(iter(fields)),
)
def test_settings_of_all_addresses_mean_nothing_to_it(fields: dict[str, object]) -> None:
    bench = Bench(settings={"#": fields})
    entries, _ = kept(bench)
    for key in "abc":
        assert entries.put(key, "1")
    bench.clock.now_ms += 100_000
    bench.run()
    assert kept(bench.restart())[1] == [("a", "1"), ("b", "1"), ("c", "1")]


def test_clients_neither_send_nor_read_there() -> None:
    bench = Bench(queues=(QueueSettings("all", "#", ANYCAST),))
    entries, _ = kept(bench)
    entries.put("key", "1")
    (name,) = [name for name in bench.broker.queues if name.startswith(INTERNAL_PREFIX)]
    bench.broker.producers.send(bench.message(name, "x"))
    assert bench.broker.queues[name].message_count == 1
    assert [slot.message.body for slot in bench.broker.queues["all"].pending.in_order()] == [b"x"]


def test_a_store_that_is_full_takes_none_and_says_so() -> None:
    bench = Bench()
    entries, _ = kept(bench)
    bench.broker.set_storage_low(True)
    assert not entries.put("key", "1")
    bench.broker.set_storage_low(False)
    assert entries.put("key", "1")
