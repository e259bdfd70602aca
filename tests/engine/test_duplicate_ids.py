"""Duplicate ids: what an address has been sent is not sent again, across restarts and acknowledgements."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delosmq.engine.addresses.id_cache_sizes import BySize, Sized
from delosmq.engine.base.events import EngineEvents
from delosmq.engine.broker import EngineBroker
from delosmq.engine.compaction.compactor import LOOK_EVERY_MS, PASSED_OVER_MS
from delosmq.engine.log.log import Batch
from delosmq.engine.routing.send_result import DUPLICATE, NO_ROUTE, ROUTED
from delosmq.engine.transactions.transaction import TransactionError
from delosmq.model.errors import LimitError
from delosmq.model.message import ANYCAST, MULTICAST, Message
from delosmq.model.settings import AddressFullPolicy
from tests.engine.support import Bench, anycast
from tests.engine.test_transactions import CountingStore, Waiter, drain


def marked(bench: Bench, address: str, duplicate_id: str, *, durable: bool = True) -> Message:
    message = bench.message(address, duplicate_id, durable=durable)
    message.duplicate_id = duplicate_id.encode()
    return message


def send(bench: Bench, address: str, ids: str, *, durable: bool = True) -> list[int]:
    return [bench.broker.producers.send(marked(bench, address, word, durable=durable)) for word in ids.split()]


def reopened(store: CountingStore, **more: dict[str, dict[str, object]]) -> tuple[Bench, CountingStore]:
    again = store.upto(len(store.batches))
    return Bench(queues=(anycast("q"),), store=again, settings=more.get("settings")), again


def test_a_duplicate_changes_nothing_and_is_no_error() -> None:
    class Seen(EngineEvents):
        def __init__(self) -> None:
            self.bodies: list[bytes] = []

        def message_duplicate(self, message: Message) -> None:
            self.bodies.append(message.body)

    seen = Seen()
    bench = Bench(queues=(anycast("q"), anycast("r")), events=seen)
    assert send(bench, "q", "1 2 1") == [ROUTED, ROUTED, DUPLICATE]
    assert seen.bodies == [b"1"]
    assert send(bench, "r", "1") == [ROUTED]  # ids are those of an address
    assert bench.pending("q") == "1 2"
    assert bench.broker.duplicate_ids.count("q") == 2
    assert bench.send("q", "a a") == [ROUTED, ROUTED]  # without an id nothing is looked at


def test_an_id_survives_restart_and_acknowledgement() -> None:
    store = CountingStore()
    bench = Bench(queues=(anycast("q"),), store=store)
    send(bench, "q", "1 2")
    drain(bench, "q")
    assert send(bench, "q", "1") == [DUPLICATE]
    again, _ = reopened(store)
    assert send(again, "q", "1 2 3") == [DUPLICATE, DUPLICATE, ROUTED]


def test_the_id_is_in_the_batch_of_its_message() -> None:
    store = CountingStore()
    bench = Bench(queues=(anycast("q"),), store=store)
    before = len(store.batches)
    send(bench, "q", "1")
    assert len(store.batches) == before + 1
    cut = Bench(queues=(anycast("q"),), store=store.upto(before))
    assert cut.pending("q") == ""
    assert send(cut, "q", "1") == [ROUTED]


def test_ids_of_non_durable_messages_are_in_memory_only() -> None:
    store = CountingStore()
    bench = Bench(queues=(anycast("q"),), store=store)
    batches = len(store.batches)
    assert send(bench, "q", "1 1", durable=False) == [ROUTED, DUPLICATE]
    assert len(store.batches) == batches
    again, _ = reopened(store)
    assert send(again, "q", "1") == [ROUTED]


def test_the_oldest_ids_go_and_their_places_with_them() -> None:
    settings: dict[str, dict[str, object]] = {"q": {"id_cache_size": 3}}
    store = CountingStore()
    bench = Bench(queues=(anycast("q"),), store=store, settings=settings)
    send(bench, "q", "1 2")
    send(bench, "q", "n", durable=False)
    send(bench, "q", "3 4 5")
    drain(bench, "q")
    assert bench.broker.duplicate_ids.count("q") == 3
    assert store.live == 3
    assert send(bench, "q", "3 4 5") == [DUPLICATE] * 3
    again, kept = reopened(store, settings=settings)
    assert send(again, "q", "5 4 3 2") == [DUPLICATE, DUPLICATE, DUPLICATE, ROUTED]
    drain(again, "q")
    assert kept.live == 3


def test_a_smaller_cache_after_a_restart_gives_up_the_oldest_ids() -> None:
    store = CountingStore()
    bench = Bench(queues=(anycast("q"),), store=store)
    send(bench, "q", "1 2 3 4")
    drain(bench, "q")
    smaller, kept = reopened(store, settings={"q": {"id_cache_size": 2}})
    assert smaller.broker.duplicate_ids.count("q") == 2
    assert kept.live == 2
    assert send(smaller, "q", "4 3 1") == [DUPLICATE, DUPLICATE, ROUTED]
    none, kept = reopened(kept, settings={"q": {"id_cache_size": 0}})
    drain(none, "q")
    assert kept.live == 0
    assert send(none, "q", "9 9") == [ROUTED, ROUTED]


def test_ids_can_be_cleared() -> None:
    store = CountingStore()
    bench = Bench(queues=(anycast("q"),), store=store)
    send(bench, "q", "1 2")
    drain(bench, "q")
    assert bench.broker.duplicate_ids.clear("q") == 2
    assert bench.broker.duplicate_ids.clear("unknown") == 0
    assert store.live == 0
    again, _ = reopened(store)
    assert again.broker.duplicate_ids.count("q") == 0
    assert send(again, "q", "1") == [ROUTED]


def test_a_refused_message_leaves_its_id_unknown() -> None:
    settings: dict[str, dict[str, object]] = {
        "q": {"max_size_messages": 1, "address_full_policy": AddressFullPolicy.FAIL}
    }
    bench = Bench(queues=(anycast("q"),), settings=settings)
    send(bench, "q", "1")
    with pytest.raises(LimitError):
        send(bench, "q", "2")
    assert send(bench, "q", "1") == [DUPLICATE]  # it is there, whether or not there is room
    drain(bench, "q")
    assert send(bench, "q", "2") == [ROUTED]


def test_an_id_nobody_took_is_known_all_the_same() -> None:
    bench = Bench()
    bench.broker.resources.create_address("news", {ANYCAST, MULTICAST})
    assert bench.broker.producers.send(marked(bench, "news", "1"), routing=MULTICAST) == NO_ROUTE
    assert bench.broker.producers.send(marked(bench, "news", "1"), routing=MULTICAST) == DUPLICATE


# -- transactions --------------------------------------------------------------------------------------------------


def test_one_id_covers_a_whole_transaction() -> None:  # ACK-5
    store = CountingStore()
    bench = Bench(queues=(anycast("q"),), store=store)
    for expected in ("1 a", "1 a"):
        transaction = bench.broker.transactions.begin("session")
        outcome = bench.broker.transactions.send(transaction, marked(bench, "q", "1"))
        bench.broker.transactions.send(transaction, bench.message("q", "a"))
        if outcome == DUPLICATE:
            with pytest.raises(TransactionError, match=r"DMQ2660.*'q'") as error:
                bench.broker.transactions.commit(transaction)
            assert error.value.condition == "DUPLICATE_ID"
        else:
            bench.broker.transactions.commit(transaction)
        assert bench.pending("q") == expected
    drain(bench, "q")
    assert store.live == 1
    again, _ = reopened(store)
    assert send(again, "q", "1") == [DUPLICATE]


def test_an_id_counts_with_the_commit_only() -> None:  # ACK-5
    bench = Bench(queues=(anycast("q"),))
    first = bench.broker.transactions.begin("session")
    second = bench.broker.transactions.begin("session")
    assert bench.broker.transactions.send(first, marked(bench, "q", "1")) == ROUTED
    assert bench.broker.transactions.send(second, marked(bench, "q", "1")) == ROUTED
    bench.broker.transactions.rollback(first)
    assert bench.broker.duplicate_ids.count("q") == 0
    assert send(bench, "q", "1") == [ROUTED]
    with pytest.raises(TransactionError, match="DMQ2660"):
        bench.broker.transactions.commit(second)
    assert bench.pending("q") == "1"
    assert bench.broker.used_bytes == bench.broker.addresses["q"].account.used_bytes > 0
    assert bench.broker.addresses["q"].account.used_messages == 1


def _large(bench: Bench, first: int, count: int) -> tuple[EngineBroker, Waiter]:
    transaction = bench.broker.transactions.begin("session")
    for k in range(first, first + count):
        bench.broker.transactions.send(transaction, marked(bench, "q", str(k)))
    waiter = Waiter()
    bench.broker.transactions.commit(transaction, waiter)
    return bench.broker, waiter


def test_ids_of_a_large_commit_count_from_its_record_on_wherever_it_crashes() -> None:  # ACK-5
    store = CountingStore()
    bench = Bench(queues=(anycast("q"),), store=store)
    before = len(store.batches)
    _, waiter = _large(bench, 0, 300)
    bench.run()
    assert waiter.ended == [None]
    assert send(bench, "q", "7") == [DUPLICATE]
    for count in range(before, len(store.batches) + 1):
        kept = store.upto(count)
        cut = Bench(queues=(anycast("q"),), store=kept)
        there = cut.pending("q") != ""
        assert cut.broker.duplicate_ids.count("q") == (300 if there else 0), count
        assert send(cut, "q", "7 299") == ([DUPLICATE] * 2 if there else [ROUTED] * 2)
        drain(cut, "q")
        cut.broker.duplicate_ids.clear("q")
        assert kept.live == 0, count


def test_a_send_beside_a_large_commit_meets_its_ids_from_the_moment_on() -> None:  # ACK-5
    bench = Bench(queues=(anycast("q"),))
    broker, waiter = _large(bench, 0, 300)
    while broker.queues["q"].barrier_sequence == 0:
        bench.broker.tick()
    assert send(bench, "q", "299") == [DUPLICATE]
    bench.run()
    assert waiter.ended == [None]
    assert bench.broker.queues["q"].pending.count == 300


def test_of_two_large_commits_with_one_id_the_later_fails_whole() -> None:  # ACK-5
    store = CountingStore()
    bench = Bench(queues=(anycast("q"),), store=store)
    _, first = _large(bench, 0, 300)
    _, second = _large(bench, 299, 300)
    bench.run()
    assert first.ended == [None]
    assert isinstance(second.ended[0], TransactionError)
    assert bench.broker.queues["q"].pending.count == 300
    drain(bench, "q")
    assert bench.broker.used_bytes == 0
    assert store.live == 300


# -- compaction ----------------------------------------------------------------------------------------------------


class TwoSegments(CountingStore):
    """Puts what is stored into the first segment, and from a word of the test on into the second; then it wants the
    first one emptied."""

    def __init__(self) -> None:
        super().__init__()
        self.segment = 1
        self.stored_in_2 = 0

    def append(self, batch: Batch) -> None:
        super().append(batch)
        for _, home in batch.stored:
            home.segment = self.segment
        if self.segment == 2:
            self.stored_in_2 += len(batch.stored)

    def compaction_victim(self) -> int:
        return self.segment - 1


def test_ids_of_a_nearly_dead_segment_are_stored_again_elsewhere() -> None:
    store = TwoSegments()
    bench = Bench(queues=(anycast("q"),), store=store)
    send(bench, "q", "1 2 3")
    drain(bench, "q")
    before = len(store.batches)
    store.segment = 2
    bench.later(LOOK_EVERY_MS)
    assert store.stored_in_2 == 3
    assert store.live == 3
    bench.later(PASSED_OVER_MS)
    assert store.stored_in_2 == 3  # nothing is left there
    # Both with the old records and, once their segment is free, without them.
    for batches in (store.batches, [store.batches[0], *store.batches[before:]]):
        again = Bench(queues=(anycast("q"),), store=CountingStore(list(batches)))
        assert again.broker.duplicate_ids.count("q") == 3
        assert send(again, "q", "3 1 2") == [DUPLICATE] * 3


def test_ids_that_moved_keep_their_place_in_the_order() -> None:
    settings: dict[str, dict[str, object]] = {"q": {"id_cache_size": 4}}
    store = TwoSegments()
    bench = Bench(queues=(anycast("q"),), store=store, settings=settings)
    send(bench, "q", "1 2")
    drain(bench, "q")
    store.segment = 2
    before = len(store.batches)
    send(bench, "q", "3")
    drain(bench, "q")
    bench.later(LOOK_EVERY_MS)
    send(bench, "q", "4")
    drain(bench, "q")
    # Once the segment of their first records is free, 1 and 2 are found behind 3. They are the oldest all the same.
    for batches in (store.batches, [store.batches[0], *store.batches[before:]]):
        kept = CountingStore(list(batches))
        again = Bench(queues=(anycast("q"),), store=kept, settings=settings)
        assert send(again, "q", "5 6") == [ROUTED, ROUTED]
        once_more, _ = reopened(kept, settings=settings)
        assert send(once_more, "q", "3 4 5 6 1 2") == [DUPLICATE] * 4 + [ROUTED] * 2


# -- memory --------------------------------------------------------------------------------------------------------


class Full(EngineEvents):
    def __init__(self) -> None:
        self.told: list[int] = []

    def duplicate_ids_full(self, most_bytes: int) -> None:
        self.told.append(most_bytes)


LEAST = 1 << 20
"""What ids may take in any case."""


def fill(bench: Bench, user: str, addresses: int, each: int, *, durable: bool = True, size: int = 1_000) -> None:
    for place in range(addresses):
        for number in range(each):
            message = marked(bench, f"{user}.{place}", f"{user} {place} {number} ".ljust(size, "x"), durable=durable)
            message.user = user
            assert bench.broker.producers.send(message, routing=ANYCAST) == ROUTED
        bench.broker.resources.purge_queue(f"{user}.{place}")
        bench.run()


def known_ids(bench: Bench) -> dict[str, set[bytes]]:
    return {name: set(known.ids) for name, known in bench.broker.duplicate_ids.addresses.items()}


def actual_bytes(bench: Bench) -> int:
    return sum(336 + len(one) for ids in known_ids(bench).values() for one in ids)


@pytest.mark.parametrize("durable", [True, False])
def test_ids_of_many_addresses_take_no_more_memory_than_they_may(durable: bool) -> None:
    events, store = Full(), CountingStore()
    bench = Bench(global_max=8 * LEAST, store=store, events=events)
    fill(bench, "bob", 2, 40, durable=durable, size=100)
    fill(bench, "eve", 100, 30, durable=durable)
    assert LEAST - 5_000 < actual_bytes(bench) <= LEAST
    assert events.told == [LEAST]
    assert store.live == (sum(map(len, known_ids(bench).values())) if durable else 0)
    again = Bench(global_max=8 * LEAST, store=store.upto(len(store.batches)))
    assert known_ids(again) == (known_ids(bench) if durable else {})
    # What was forgotten is taken again, what is known is not.
    oldest = [marked(bench, f"eve.{place}", f"eve {place} 0 ".ljust(1_000, "x"), durable=durable) for place in (0, 1)]
    assert [bench.broker.producers.send(one, routing=ANYCAST) for one in oldest] == [ROUTED, ROUTED]
    assert bench.broker.producers.send(marked(bench, "bob.0", "bob 0 0 ".ljust(100, "x"))) == DUPLICATE
    assert bench.broker.duplicate_ids.count("bob.0") == bench.broker.duplicate_ids.count("bob.1") == 40


def test_the_newest_id_is_known_and_no_record_is_lost_when_caches_of_one_id_each_are_full() -> None:
    store = CountingStore()
    bench = Bench(global_max=8 * LEAST, store=store)
    fill(bench, "eve", 1_000, 1)
    assert LEAST - 5_000 < actual_bytes(bench) <= LEAST
    assert store.live == sum(map(len, known_ids(bench).values())) < 1_000
    again = marked(bench, "eve.999", "eve 999 0 ".ljust(1_000, "x"))
    assert bench.broker.producers.send(again, routing=ANYCAST) == DUPLICATE
    # The only id of the largest cache.
    fill(bench, "bob", 1, 1, size=20_000)
    assert bench.broker.producers.send(marked(bench, "bob.0", "bob 0 0 ".ljust(20_000, "x"))) == DUPLICATE
    # Several in one batch, where the later push out the first.
    transaction = bench.broker.transactions.begin("client")
    for place in range(3):
        bench.broker.transactions.send(transaction, marked(bench, f"eve.{place}", f"late {place}".ljust(30_000, "x")))
    bench.broker.transactions.commit(transaction, Waiter())
    for place in range(3):
        bench.broker.resources.purge_queue(f"eve.{place}")
        bench.run()
    assert [bench.broker.duplicate_ids.count(f"eve.{place}") for place in (0, 2)] == [0, 1]
    assert actual_bytes(bench) <= LEAST
    assert store.live == sum(map(len, known_ids(bench).values()))
    assert known_ids(Bench(global_max=8 * LEAST, store=store.upto(len(store.batches)))) == known_ids(bench)


@pytest.mark.parametrize("users", [1, 1_000])
def test_of_caches_of_one_id_each_the_oldest_gives_way(users: int) -> None:
    bench = Bench(global_max=8 * LEAST)
    for number in range(1_800):
        message = marked(bench, f"a{number}", f"{number} ".ljust(1_000, "x"))
        message.user = f"eve {number % users}"
        assert bench.broker.producers.send(message, routing=ANYCAST) == ROUTED
    assert actual_bytes(bench) > LEAST - 5_000
    kept = len(known_ids(bench))
    assert set(known_ids(bench)) == {f"a{number}" for number in range(1_800 - kept, 1_800)}


def test_a_user_with_many_caches_pushes_out_ids_of_no_other_before_and_after_a_restart() -> None:
    store = CountingStore()
    bench = Bench(global_max=8 * LEAST, store=store)
    fill(bench, "bob", 1, 600, size=500)
    kept = bench.broker.duplicate_ids.count("bob.0")
    assert kept == 600
    # Each of hers is far smaller than his.
    fill(bench, "eve", 400, 3)
    assert bench.broker.duplicate_ids.count("bob.0") == kept
    store = store.upto(len(store.batches))
    again = Bench(global_max=8 * LEAST, store=store)
    fill(again, "eve", 400, 3, size=999)
    assert again.broker.duplicate_ids.count("bob.0") == kept
    assert actual_bytes(again) <= LEAST


def test_a_smaller_bound_after_a_restart_or_a_reload_is_kept_to() -> None:
    store = CountingStore()
    bench = Bench(global_max=32 * LEAST, store=store)
    fill(bench, "eve", 20, 100)
    before = actual_bytes(bench)
    assert before > 2 * LEAST
    again = Bench(global_max=8 * LEAST, store=store.upto(len(store.batches)))
    assert actual_bytes(again) <= LEAST
    assert again.store.batches != store.batches
    bench.broker.reload(replace(bench.settings, global_max_size_bytes=8 * LEAST))
    fill(bench, "bob", 1, 100)
    assert actual_bytes(bench) <= LEAST


def test_ids_of_commits_large_and_small_are_within_the_bound() -> None:
    store = CountingStore()
    bench = Bench(queues=(anycast("q"),), global_max=8 * LEAST, store=store)
    for size in (2, 450, 450, 450, 150):
        transaction = bench.broker.transactions.begin("client")
        for number in range(size):
            message = marked(bench, "q", f"{transaction.id}.{number}.".ljust(1_000, "x"))
            assert bench.broker.transactions.send(transaction, message) == ROUTED
        bench.broker.transactions.commit(transaction, Waiter())
        bench.run()
        drain(bench, "q")
    assert LEAST - 5_000 < actual_bytes(bench) <= LEAST
    assert store.live == bench.broker.duplicate_ids.count("q")
    assert known_ids(Bench(global_max=8 * LEAST, store=store.upto(len(store.batches)))) == known_ids(bench)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5_000))))
def test_the_one_found_is_half_as_large_as_the_largest_at_least(changes: list[tuple[int, int]]) -> None:
    sizes, ones = BySize(), [Sized() for _ in range(21)]
    assert sizes.take_turn() is None
    for which, size in changes:
        sizes.change(ones[which], size)
        largest = max(one.size_bytes for one in ones)
        found = sizes.take_turn()
        assert (found is None) == (largest == 0)
        assert found is None or 2 * found.size_bytes > largest
