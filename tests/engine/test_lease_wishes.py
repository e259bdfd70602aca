"""What a group takes of its queue: by selector, and from a start on; the rest stays, in its order, for others."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delosmq.engine.dispatch.dispatcher import WORK_PER_QUEUE_AND_TICK
from delosmq.engine.leases.lease import OTHER_SELECTOR, LeaseError, LeaseGroup, LeaseStart
from delosmq.engine.log.records import LEASE
from delosmq.engine.queues.credit import MessageCredit
from delosmq.selectors.errors import SelectorError
from tests.engine.support import Bench, anycast, stood_on
from tests.engine.test_leases import Reader, condition_of, restart_from_state, words

CAPITALS = "JMSExpiration > 0"
OTHERS = "JMSExpiration = 0"
NEVER_MS = 10**10


class Wishing(Reader):
    """A reader with a wish."""

    def __init__(self, bench: Bench, *, queue: str = "q", topic: str = "", **wishes: Any) -> None:
        self.bench = bench
        wanted = {"queue": "" if topic else queue, "topic": topic, "run": "run", "incarnation": None} | wishes
        self.group: LeaseGroup = bench.broker.lease_groups.open("g", **wanted)
        self.epoch = self.group.epoch


def bench_with(bodies: str) -> Bench:
    bench = Bench(queues=(anycast("q"),))
    send(bench, bodies)
    return bench


def send(bench: Bench, bodies: str, address: str = "q") -> None:
    """Sends each word as a message; what is in capitals has an expiry that never comes."""
    for body in bodies.split():
        bench.send(address, body, expires_in_ms=NEVER_MS if body.isupper() else 0)


def taken_by(bench: Bench, group: str, **wishes: Any) -> str:
    """What the first lease of another group takes."""
    wanted = {"queue": "q", "topic": "", "run": "run", "incarnation": None} | wishes
    epoch = bench.broker.lease_groups.open(group, **wanted).epoch
    lease = bench.broker.leases.request(group, after=0, max_rows=99, max_bytes=999, epoch=epoch, until=None)
    return "" if lease is None else words(lease)


def test_a_group_with_a_selector_leases_what_matches_and_leaves_the_rest() -> None:
    bench = bench_with("a B c D")
    reader = Wishing(bench, selector=CAPITALS)
    assert reader.take(0) == "B D"
    send(bench, "e F")
    assert reader.take(1) == "F"
    assert bench.pending("q") == "a c e"
    bench.broker.lease_groups.release("g")
    bench.run()
    assert bench.pending("q") == "a c e F"


def test_a_group_that_ends_leaves_no_place_in_its_queue() -> None:
    bench = bench_with("a B c D")
    queue = bench.broker.queues["q"]
    Wishing(bench, selector=CAPITALS).take(0, until=3)
    assert stood_on(queue) != ""
    bench.broker.lease_groups.release("g")
    bench.run()
    assert (stood_on(queue), queue.rules, queue.needs_rules) == ("", None, False)


def test_groups_with_different_selectors_share_a_queue() -> None:
    bench = bench_with("a B c D")
    assert Wishing(bench, selector=CAPITALS).take(0) == "B D"
    assert taken_by(bench, "others", selector=OTHERS) == "a c"


def test_consumers_get_what_a_selector_leaves_and_a_lease_what_they_leave() -> None:
    bench = bench_with("a B c D")
    reader = Wishing(bench, selector=CAPITALS)
    assert reader.take(0, max_rows=1) == "B"
    consumer, port = bench.consume("q", MessageCredit(1))
    bench.run()
    assert port.bodies == "a"
    assert reader.take(1) == "D"
    bench.broker.consumers.close(consumer)
    bench.run()
    send(bench, "E")
    assert (reader.take(2), bench.pending("q")) == ("E", "a c")


def test_until_goes_with_a_selector() -> None:
    bench = bench_with("a B c D")
    until = bench.broker.queues["q"].newest_sequence
    send(bench, "E")
    reader = Wishing(bench, selector=CAPITALS)
    assert [reader.take(0, until=until, max_rows=1), reader.take(1, until=until)] == ["B", "D"]
    assert reader.take(2, until=until) == ""
    assert reader.take(2) == "E"


@pytest.mark.parametrize("bounded", [False, True])
def test_what_matches_far_behind_is_looked_for_in_slices_and_until_does_not_end_early(bounded: bool) -> None:
    many = 3 * WORK_PER_QUEUE_AND_TICK
    bench = bench_with(" ".join("a" * many) + " B")
    reader = Wishing(bench, selector=CAPITALS)
    until = bench.broker.queues["q"].newest_sequence if bounded else None
    leases = bench.broker.leases
    steps = 1
    while (
        lease := leases.request("g", after=0, max_rows=9, max_bytes=9, epoch=reader.epoch, until=until)
    ) is None and reader.group.collecting:
        steps += 1
    assert (lease and words(lease), steps) == ("B", 4)
    assert leases.request("g", after=1, max_rows=9, max_bytes=9, epoch=reader.epoch, until=until) is None
    assert not reader.group.collecting


def test_a_large_lease_of_what_matches_looks_at_a_bounded_number_of_messages_in_a_tick() -> None:
    bench = bench_with("a B " * WORK_PER_QUEUE_AND_TICK)
    reader = Wishing(bench, selector=CAPITALS)
    bench.broker.leases.request("g", after=0, max_rows=999, max_bytes=9999, epoch=reader.epoch, until=None)
    assert len(reader.group.building) == WORK_PER_QUEUE_AND_TICK // 2


def test_another_selector_is_refused_and_the_same_one_is_not() -> None:
    bench = bench_with("a")
    incarnation = Wishing(bench, selector=CAPITALS).group.incarnation
    assert Wishing(bench, selector=f" {CAPITALS}\n", incarnation=incarnation).epoch == 2
    for other in ("", OTHERS):
        with pytest.raises(LeaseError, match="DMQ2411") as refused:
            Wishing(bench, selector=other, incarnation=incarnation)
        assert condition_of(refused) == OTHER_SELECTOR


def test_what_is_no_selector_makes_no_group() -> None:
    bench = bench_with("a")
    with pytest.raises(SelectorError):
        Wishing(bench, selector="colour = ")
    assert bench.broker.leases.groups == {}


def test_a_topic_is_filtered_at_the_subscription() -> None:
    bench = Bench()
    reader = Wishing(bench, topic="news", selector=CAPITALS)
    send(bench, "a B c D", "news")
    bench.run()
    assert bench.pending("g") == "B D"
    assert reader.take(0) == "B D"
    with pytest.raises(LeaseError, match="DMQ2411"):
        Wishing(bench, topic="news", incarnation=reader.group.incarnation)


def test_several_groups_on_one_topic_get_all_of_it_each() -> None:
    bench = Bench()
    names = ("one", "two", "three")
    for name in names:
        assert taken_by(bench, name, queue="", topic="news") == ""
    send(bench, "a b", "news")
    leases = bench.broker.leases
    leases.acknowledge("one", 0, 1)
    for name in names:
        lease = leases.request(name, after=0, max_rows=9, max_bytes=9, epoch=1, until=None)
        assert lease is not None
        assert words(lease) == "a b"
    leases.acknowledge("one", 1, 1)
    bench.run()
    bench.broker.lease_groups.release("two")
    bench.run()
    assert [bench.broker.queues[name].message_count for name in ("one", "three")] == [0, 2]
    assert "two" not in bench.broker.queues
    again = bench.restart()
    assert sorted(again.broker.leases.groups) == ["one", "three"]
    assert words(again.broker.leases.groups["three"].leases[1]) == "a b"


# -- starts -------------------------------------------------------------------------------------------------------


def test_a_group_starts_with_a_sequence() -> None:
    bench = bench_with("a b c d")
    head = bench.broker.queues["q"].pending.head()
    assert head is not None
    reader = Wishing(bench, start=LeaseStart(head.sequence + 2))
    assert reader.take(0) == "c d"
    send(bench, "e")
    assert (reader.take(1), bench.pending("q")) == ("e", "a b")


def test_a_group_starts_with_a_time() -> None:
    bench = bench_with("a b")
    bench.clock.now_ms += 10
    send(bench, "c")
    assert Wishing(bench, start=LeaseStart(time_ms=bench.clock.wall_ms())).take(0) == "c"
    assert bench.pending("q") == "a b"


def test_a_group_starts_with_what_comes_after_it_was_made() -> None:
    bench = bench_with("a b")
    reader = Wishing(bench, start=LeaseStart(latest=True))
    assert reader.take(0) == ""
    send(bench, "c")
    assert reader.take(0) == "c"
    again = Wishing(bench, start=LeaseStart(latest=True), incarnation=reader.group.incarnation)
    send(bench, "d")
    assert again.take(0) == "c"
    assert again.take(1) == "d"


@pytest.mark.parametrize("from_state", [False, True])
def test_selector_and_start_survive_a_restart(from_state: bool) -> None:
    bench = bench_with("A b C")
    reader = Wishing(bench, selector=CAPITALS, start=LeaseStart(latest=True))
    send(bench, "d E")
    again = restart_from_state(bench) if from_state else bench.restart()
    with pytest.raises(LeaseError, match="DMQ2411"):
        Wishing(again, incarnation=reader.group.incarnation)
    assert Wishing(again, selector=CAPITALS, incarnation=reader.group.incarnation).take(0) == "E"
    assert again.pending("q") == "A b C d"


def test_records_of_groups_with_wishes_have_a_version_that_older_releases_refuse() -> None:
    bench = bench_with("a")
    for wishes, versions in (({}, (1, 1)), ({"selector": CAPITALS}, (2, 2)), ({"start": LeaseStart(5)}, (2, 2))):
        Wishing(bench, **wishes)
        opened = [meta for _, metas, _ in bench.store.batches for meta in metas if meta[0] == LEASE][-1]
        assert (opened[1], json.loads(bench.broker.state.state())["version"]) == versions
        bench.broker.lease_groups.release("g")


@given(st.text("aB", min_size=1, max_size=30), st.integers(0, 35), st.integers(1, 5))
def test_leases_with_a_selector_take_each_match_once_in_order(bodies: str, until: int, rows: int) -> None:
    bench = bench_with(" ".join(bodies))
    reader = Wishing(bench, selector=CAPITALS)
    got: list[int] = []
    for bound in (until, None):
        while (
            lease := reader.next(len(reader.group.leases) + reader.group.acked, max_rows=rows, until=bound)
        ) is not None:
            got += [slot.sequence for slot in lease.slots]
    first = bench.broker.queues["q"].newest_sequence - len(bodies) + 1
    assert got == [first + at for at, body in enumerate(bodies) if body == "B"]
