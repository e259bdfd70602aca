"""What sinks stage: nobody sees it before its batch is published, which happens once, whatever is called again."""

import pytest

from delosmq.engine.base.events import EngineEvents
from delosmq.engine.base.jobs import JobWaiter
from delosmq.engine.routing.send_result import BLOCKED, DROPPED, DUPLICATE, ROUTED
from delosmq.engine.transactions.staged_parts import SCAN_PERIOD_MS
from delosmq.engine.transactions.staging_errors import (
    NO_ROOM_NOW,
    NOT_YOURS,
    PART_BUSY,
    PART_LOST,
    StagingError,
)
from delosmq.engine.transactions.staging_published import MOST_APPLICATIONS, SURE_MS
from delosmq.engine.transactions.transaction import Transaction
from delosmq.model.errors import BrokerError, LimitError
from delosmq.model.message import ANY_ROUTING, Message
from delosmq.model.settings import AddressFullPolicy
from tests.engine.support import Bench, RecordingStore, anycast
from tests.engine.test_transactions import recount
from tests.simulation.whole.recount import check_shares

APP = "query-1"
USER = "sam"
MANY = 450
DAY_MS = 24 * 3_600_000


class Told(JobWaiter):
    def __init__(self) -> None:
        self.ended: list[BrokerError | None] = []

    def on_ended(self, error: BrokerError | None) -> None:
        self.ended.append(error)


def bench_of(store: RecordingStore | None = None, settings: dict[str, dict[str, object]] | None = None) -> Bench:
    return Bench(queues=(anycast("in"), anycast("out")), store=store, settings=settings, events=EngineEvents())


def row(bench: Bench, body: str, address: str = "out", duplicate_id: bytes = b"", durable: bool = True) -> Message:
    return Message(
        address,
        "stomp/12",
        b"",
        body.encode(),
        durable=durable,
        timestamp_ms=bench.clock.wall_ms(),
        user=USER,
        duplicate_id=duplicate_id,
    )


def begin(bench: Bench, uuid: str, bodies: str = "", batch: int = 0) -> Transaction:
    part = bench.broker.staging.begin(APP, batch, uuid, USER)
    for body in bodies.split():
        assert bench.broker.staging.add(part, row(bench, body), ANY_ROUTING) == ROUTED
    return part


def stage(bench: Bench, uuid: str, bodies: str, batch: int = 0) -> None:
    part = begin(bench, uuid, bodies, batch)
    told = Told()
    if not bench.broker.staging.prepare(part, told):
        while not told.ended:
            bench.broker.tick()
        assert told.ended == [None]


def drain(bench: Bench) -> None:
    """Until nothing is left to do."""
    while bench.broker.tick():
        pass


def publish(bench: Bench, batch: int, *uuids: str, user: str = USER) -> bool:
    published = bench.broker.staging.publish(APP, batch, list(uuids), user)
    drain(bench)
    return published


def parts(bench: Bench) -> str:
    return " ".join(sorted(bench.broker.staging.parts))


def restarted(bench: Bench) -> Bench:
    again = bench_of(RecordingStore(bench.store.batches))
    check_shares(again.broker)
    return again


def condition(error: pytest.ExceptionInfo[StagingError]) -> str:
    return error.value.condition


def test_what_is_staged_is_seen_when_its_batch_is_published_in_the_order_of_its_parts() -> None:
    bench = bench_of()
    stage(bench, "a", "1 2")
    stage(bench, "b", "3 4")
    assert bench.pending("out") == ""
    assert publish(bench, 0, "b", "a")
    assert bench.pending("out") == "3 4 1 2"
    assert parts(bench) == ""
    assert bench.broker.used_bytes == recount(bench.broker)
    check_shares(bench.broker)


def test_a_batch_is_published_once_and_later_attempts_are_discarded() -> None:
    bench = bench_of()
    stage(bench, "a", "1")
    stage(bench, "b", "1 2", batch=5)
    stage(bench, "c", "3", batch=6)
    assert publish(bench, 5)
    assert parts(bench) == "c"  # the others are of batches that are through
    assert not publish(bench, 5)
    assert not publish(bench, 4, "b")
    with pytest.raises(StagingError) as caught:
        stage(bench, "d", "1 2", batch=5)
    assert condition(caught) == PART_LOST
    drain(bench)
    assert publish(bench, 6, "c")
    assert bench.pending("out") == "3"
    assert not publish(bench, 6, "c")
    assert bench.broker.staging.published.holds(APP, 6)
    assert not bench.broker.staging.published.holds(APP, 7)
    assert bench.pending("out") == "3"
    assert parts(bench) == ""
    assert bench.broker.used_bytes == recount(bench.broker)


def test_staged_parts_and_the_last_published_batch_survive_a_restart() -> None:
    bench = bench_of()
    stage(bench, "a", "1 2")
    bench = restarted(bench)
    assert bench.pending("out") == ""
    assert bench.broker.staging.staged(APP, 0, "a", USER) is not None
    assert publish(bench, 0, "a")
    bench = restarted(bench)
    assert bench.pending("out") == "1 2"
    assert not publish(bench, 0, "a")
    assert parts(bench) == ""
    assert bench.pending("out") == "1 2"


@pytest.mark.parametrize("count", [3, MANY])
def test_a_crash_right_after_the_moment_leaves_all_of_a_batch(count: int) -> None:
    bench = bench_of()
    bodies = [str(k) for k in range(count)]
    stage(bench, "a", " ".join(bodies))
    stage(bench, "b", "x")
    assert bench.broker.staging.publish(APP, 0, ["a", "b"], USER)
    bench = restarted(bench)
    assert bench.pending("out").split() == [*bodies, "x"]


def test_a_crash_while_a_part_is_staged_leaves_nothing_of_it() -> None:
    bench = bench_of()
    part = begin(bench, "a", " ".join(map(str, range(MANY))))
    assert not bench.broker.staging.prepare(part, Told())
    bench.broker.tick()
    bench.broker.tick()
    again = restarted(bench)
    assert parts(again) == ""
    with pytest.raises(StagingError) as caught:
        publish(again, 0, "a")
    assert condition(caught) == PART_LOST


def test_the_state_block_says_what_is_staged_and_published() -> None:
    bench = bench_of()
    stage(bench, "a", "1 2")
    assert publish(bench, 0, "a")
    stage(bench, "b", "3", batch=1)
    again = bench_of(StateStore(bench))
    assert parts(again) == "b"
    assert again.broker.staging.published.holds(APP, 0)
    staged = again.broker.staging.staged(APP, 1, "b", USER)
    assert staged is not None
    assert staged.rows == 1
    check_shares(again.broker)


class StateStore(RecordingStore):
    """Replays the state of another broker and its records, all of which the state covers."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench.store.batches)
        self._state = bench.broker.state.state()
        self._at = bench.broker.log.position

    def recover(self, replay):  # type: ignore[no-untyped-def]
        replay.replay_state(self._at, self._state)
        return super().recover(replay)


def test_a_part_that_is_not_staged_keeps_its_batch_from_being_published() -> None:
    bench = bench_of()
    stage(bench, "a", "1")
    begin(bench, "open", "2")
    for uuids in (["a", "b"], ["a", "open"]):
        with pytest.raises(StagingError) as caught:
            publish(bench, 0, *uuids)
        assert condition(caught) == PART_LOST
    with pytest.raises(StagingError):
        publish(bench, 1, "a")
    assert bench.pending("out") == ""
    assert publish(bench, 0, "a")


def test_a_part_is_staged_once() -> None:
    bench = bench_of()
    part = begin(bench, "a", "1")
    with pytest.raises(StagingError) as caught:
        bench.broker.staging.staged(APP, 0, "a", USER)
    assert condition(caught) == PART_BUSY
    assert bench.broker.staging.prepare(part, Told()) or True
    drain(bench)
    staged = bench.broker.staging.staged(APP, 0, "a", USER)
    assert staged is not None
    assert staged.rows == 1
    with pytest.raises(StagingError) as caught:
        bench.broker.staging.staged(APP, 1, "a", USER)
    assert condition(caught) == PART_BUSY


def test_discarding_frees_all_and_never_undoes_what_is_published() -> None:
    bench = bench_of()
    stage(bench, "a", "1 2")
    stage(bench, "b", " ".join(map(str, range(MANY))))
    assert bench.broker.staging.discard(APP, 0, ["a", "b", "c"], USER) == 2
    drain(bench)
    assert parts(bench) == ""
    assert bench.broker.used_bytes == 0
    stage(bench, "c", "1")
    assert publish(bench, 0, "c")
    assert bench.broker.staging.discard(APP, 0, ["c"], USER) == 0
    drain(bench)
    assert bench.pending("out") == "1"
    bench = restarted(bench)
    assert bench.pending("out") == "1"
    assert parts(bench) == ""
    check_shares(bench.broker)


def test_a_part_that_is_discarded_while_it_is_staged_comes_to_nothing() -> None:
    bench = bench_of()
    part = begin(bench, "a", " ".join(map(str, range(MANY))))
    told = Told()
    assert not bench.broker.staging.prepare(part, told)
    assert bench.broker.staging.discard(APP, 0, ["a"], USER) == 1
    drain(bench)
    (refusal,) = told.ended
    assert isinstance(refusal, StagingError)
    assert refusal.condition == PART_LOST
    assert parts(bench) == ""
    assert bench.broker.used_bytes == 0


def test_a_task_that_goes_away_leaves_nothing() -> None:
    bench = bench_of()
    bench.broker.staging.abandon(begin(bench, "a", "1 2"))
    large = begin(bench, "b", " ".join(map(str, range(MANY))))
    bench.broker.staging.prepare(large, Told())
    bench.broker.staging.abandon(large)
    drain(bench)
    assert parts(bench) == ""
    assert bench.broker.used_bytes == 0
    check_shares(bench.broker)


def test_orphans_are_discarded_after_their_retention() -> None:
    bench = bench_of()
    stage(bench, "a", "1")
    bench.clock.now_ms += bench.settings.staged_retention_ms - SCAN_PERIOD_MS
    drain(bench)
    assert parts(bench) == "a"
    bench.clock.now_ms += 2 * SCAN_PERIOD_MS
    drain(bench)
    assert parts(bench) == ""
    assert bench.broker.used_bytes == 0
    assert parts(restarted(bench)) == ""


def test_a_published_batch_is_forgotten_after_its_retention_and_not_because_of_a_clock_that_is_set() -> None:
    bench = bench_of()
    assert publish(bench, 0)
    bench.clock.set_by_ms = 400 * DAY_MS
    bench.clock.now_ms += SURE_MS - SCAN_PERIOD_MS
    drain(bench)
    assert bench.broker.staging.published.holds(APP, 0)
    bench.clock.now_ms += 2 * SCAN_PERIOD_MS
    drain(bench)
    assert not bench.broker.staging.published.holds(APP, 0)
    assert not restarted(bench).broker.staging.published.holds(APP, 0)


def test_an_operator_forgets_an_application() -> None:
    bench = bench_of()
    assert publish(bench, 0)
    assert bench.broker.staging.published.record_forget(APP)
    assert not bench.broker.staging.published.record_forget(APP)
    assert not restarted(bench).broker.staging.published.holds(APP, 0)
    check_shares(bench.broker)


def test_another_user_neither_publishes_nor_discards_for_an_application() -> None:
    bench = bench_of()
    stage(bench, "a", "1")
    assert bench.broker.staging.discard(APP, 0, ["a"], "eve") == 0
    with pytest.raises(StagingError) as caught:
        publish(bench, 0, "a", user="eve")
    assert condition(caught) == PART_LOST
    assert publish(bench, 0, "a")
    for call in (
        lambda: publish(bench, 1, user="eve"),
        lambda: bench.broker.staging.discard(APP, 1, [], "eve"),
        lambda: bench.broker.staging.begin(APP, 1, "b", "eve"),
    ):
        with pytest.raises(StagingError) as caught:
            call()
        assert condition(caught) == NOT_YOURS


def test_a_row_with_a_known_duplicate_id_is_left_out() -> None:
    bench = bench_of()
    part = begin(bench, "a")
    add = bench.broker.staging.add
    assert add(part, row(bench, "1", duplicate_id=b"x"), ANY_ROUTING) == ROUTED
    assert add(part, row(bench, "1", duplicate_id=b"x"), ANY_ROUTING) == DUPLICATE
    bench.broker.staging.prepare(part, Told())
    drain(bench)
    assert publish(bench, 0, "a")
    part = begin(bench, "b", batch=1)
    assert add(part, row(bench, "2", duplicate_id=b"x"), ANY_ROUTING) == DUPLICATE
    assert bench.pending("out") == "1"


def test_what_was_left_out_of_a_part_is_known_after_a_restart_too() -> None:
    dropping: dict[str, dict[str, object]] = {
        "out": {"max_size_messages": 1, "address_full_policy": AddressFullPolicy.DROP}
    }
    store = RecordingStore()
    bench = bench_of(store, dropping)
    part = begin(bench, "a", "1")
    add = bench.broker.staging.add
    assert [add(part, row(bench, body), ANY_ROUTING) for body in "23"] == [DROPPED] * 2
    assert add(part, row(bench, "4", "in", duplicate_id=b"x"), ANY_ROUTING) == ROUTED
    assert add(part, row(bench, "5", "in", duplicate_id=b"x"), ANY_ROUTING) == DUPLICATE
    assert bench.broker.staging.prepare(part, Told())
    for one in (bench, bench_of(StateStore(bench), dropping), restarted(bench)):
        staged = one.broker.staging.staged(APP, 0, "a", USER)
        assert staged is not None
        assert (staged.rows, staged.duplicates, staged.dropped) == (2, 1, 2)


def test_a_full_address_lets_a_part_wait_and_a_batch_that_fills_it_alone_is_refused() -> None:
    bench = bench_of(settings={"out": {"max_size_messages": 3, "address_full_policy": AddressFullPolicy.BLOCK}})
    bench.send("out", "x")
    stage(bench, "a", "1")
    part = begin(bench, "b", "2")
    assert bench.broker.staging.add(part, row(bench, "3"), ANY_ROUTING) == BLOCKED
    consumer, port = bench.consume("out")
    bench.run()
    assert bench.broker.consumers.acknowledge(consumer, port.slots[0].sequence)
    assert bench.broker.staging.add(part, row(bench, "3"), ANY_ROUTING) == ROUTED
    with pytest.raises(LimitError) as caught:
        bench.broker.staging.add(part, row(bench, "4"), ANY_ROUTING)
    assert caught.value.code == "DMQ2693"


def test_there_are_bounds_for_parts_and_applications() -> None:
    bench = bench_of()
    staging = bench.broker.staging
    staging.most_parts_of_batch = 1
    stage(bench, "a", "1")
    stage(bench, "b", "1")
    with pytest.raises(LimitError) as caught:
        publish(bench, 0, "a", "b")
    assert caught.value.code == "DMQ2696"
    for k in range(MOST_APPLICATIONS):
        staging.note_published(f"app-{k}", 0, 1, "")
    with pytest.raises(LimitError) as caught:
        publish(bench, 0, "a")
    assert caught.value.code == "DMQ2697"


def test_a_store_without_room_stages_nothing_and_says_that_the_call_may_be_repeated() -> None:
    store = RefusingStore()
    bench = bench_of(store)
    part = begin(bench, "a", "1")
    store.refuses = True
    bench.broker.set_storage_full(True)
    told = Told()
    assert not bench.broker.staging.prepare(part, told)
    drain(bench)
    (refusal,) = told.ended
    assert isinstance(refusal, StagingError)
    assert refusal.condition == NO_ROOM_NOW
    assert parts(bench) == ""
    assert bench.broker.used_bytes == 0


class RefusingStore(RecordingStore):
    refuses = False

    def takes(self, size_bytes: int) -> bool:
        return not self.refuses


def test_rows_that_are_not_durable_are_staged_as_well_and_a_restart_loses_only_them() -> None:
    bench = bench_of()
    part = begin(bench, "a", "1")
    assert bench.broker.staging.add(part, row(bench, "2", durable=False), ANY_ROUTING) == ROUTED
    bench.broker.staging.prepare(part, Told())
    drain(bench)
    bench = restarted(bench)
    assert publish(bench, 0, "a")
    assert bench.pending("out") == "1"
