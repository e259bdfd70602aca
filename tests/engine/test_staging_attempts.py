"""Attempts at a batch, runs of a task, and batches that wait for room which only one of them would make."""

import pytest

from delosmq.engine.base.events import EngineEvents
from delosmq.engine.routing.send_result import BLOCKED, ROUTED
from delosmq.engine.transactions.staging_batches import STILL_WAITS_NS
from delosmq.engine.transactions.staging_errors import FENCED, NO_ROOM_NOW, PART_LOST, StagingError
from delosmq.engine.transactions.transaction import Transaction
from delosmq.model.errors import LimitError
from delosmq.model.message import ANY_ROUTING, Message
from delosmq.model.settings import AddressFullPolicy
from tests.engine.support import Bench, RecordingStore, anycast
from tests.engine.test_staging import USER, StateStore, Told, bench_of, condition, drain, parts, restarted, row
from tests.engine.test_transactions import recount
from tests.simulation.whole.recount import check_shares

MANY = 450


def limited(most: int, policy: AddressFullPolicy = AddressFullPolicy.BLOCK) -> Bench:
    return bench_of(settings={"out": {"max_size_messages": most, "address_full_policy": policy}})


class Sink:
    """Tasks of one driver."""

    def __init__(
        self, bench: Bench, attempt: str = "", *, application: str = "query-1", batch: int = 0, user: str = USER
    ) -> None:
        self.bench, self.attempt, self.application, self.batch, self.user = bench, attempt, application, batch, user

    def begin(self, uuid: str, task: str = "", run: str = "") -> Transaction:
        return self.bench.broker.staging.begin(
            self.application, self.batch, uuid, self.user, attempt=self.attempt, task=task, run=run
        )

    def add(self, part: Transaction, body: str, address: str = "out") -> int:
        return self.bench.broker.staging.add(part, self.message(body, address), ANY_ROUTING)

    def message(self, body: str, address: str = "out") -> Message:
        message = row(self.bench, body, address)
        message.user = self.user
        return message

    def prepare(self, part: Transaction) -> None:
        told = Told()
        if not self.bench.broker.staging.prepare(part, told):
            while not told.ended:
                self.bench.broker.tick()
            assert told.ended == [None]

    def stage(self, uuid: str, bodies: str, task: str = "", run: str = "") -> None:
        part = self.begin(uuid, task, run)
        for body in bodies.split():
            assert self.add(part, body) == ROUTED
        self.prepare(part)

    def publish(self, *uuids: str) -> bool:
        published = self.bench.broker.staging.publish(
            self.application, self.batch, list(uuids), self.user, attempt=self.attempt
        )
        drain(self.bench)
        return published


# -- attempts ------------------------------------------------------------------------------------------------------


def test_another_attempt_ends_what_a_dead_one_staged_and_takes_its_room() -> None:
    bench = limited(10)
    Sink(bench, "one").stage("a", "1 2 3 4 5 6")
    second = Sink(bench, "two")
    part = second.begin("b")
    for body in ["1", "2", "3", "4", "5", "6"]:
        while second.add(part, body) == BLOCKED:
            assert bench.broker.tick()  # what the first one staged is being given up
    second.prepare(part)
    assert parts(bench) == "b"
    assert second.publish("b")
    assert bench.pending("out") == "1 2 3 4 5 6"
    assert bench.broker.used_bytes == recount(bench.broker)
    check_shares(bench.broker)


@pytest.mark.parametrize("count", [6, MANY])
def test_an_address_that_fails_when_full_lets_the_next_attempt_wait_for_the_end_of_the_dead_one(count: int) -> None:
    bench = limited(count, AddressFullPolicy.FAIL)
    Sink(bench, "one").stage("a", " ".join(map(str, range(count))))
    second = Sink(bench, "two")
    part = second.begin("b")
    assert second.add(part, "1") == BLOCKED
    drain(bench)
    assert second.add(part, "1") == ROUTED
    for number in range(count - 1):
        assert second.add(part, str(number)) == ROUTED
    with pytest.raises(LimitError, match="DMQ2201"):
        second.add(part, "x")


def test_late_calls_of_an_earlier_attempt_are_refused() -> None:
    bench = bench_of()
    first, second = Sink(bench, "one"), Sink(bench, "two")
    first.stage("a", "1")
    open_part = first.begin("b")
    second.stage("c", "1")
    drain(bench)
    with pytest.raises(StagingError) as caught:
        first.begin("d")
    assert condition(caught) == FENCED
    with pytest.raises(StagingError) as caught:
        first.add(open_part, "2")
    assert condition(caught) == PART_LOST
    with pytest.raises(StagingError) as caught:
        first.publish("a")
    assert condition(caught) == PART_LOST
    assert second.publish("c")
    assert bench.pending("out") == "1"


def test_attempts_at_other_batches_and_of_other_users_end_nothing() -> None:
    bench = bench_of()
    Sink(bench, "one").stage("a", "1")
    Sink(bench, "one", batch=1).stage("b", "1")
    Sink(bench, "two", application="query-2").stage("c", "1")
    Sink(bench, "two", user="eve").stage("d", "1")
    Sink(bench).stage("e", "1")  # of a program that names no attempt
    drain(bench)
    assert parts(bench) == "a b c d e"


def test_attempts_are_known_after_a_restart() -> None:
    bench = bench_of()
    Sink(bench, "one").stage("a", "1")
    for again in (restarted(bench), bench_of(StateStore(bench))):
        staged = again.broker.staging.parts["a"].part
        assert staged is not None
        assert staged.attempt == "one"
        Sink(again, "two").stage("b", "1", task="3", run="x")
        drain(again)
        assert parts(again) == "b"
        check_shares(again.broker)
    with pytest.raises(StagingError) as caught:
        Sink(again, "one").begin("c")
    assert condition(caught) == FENCED


def test_what_a_restart_brings_back_of_an_ended_attempt_ends_again() -> None:
    bench = bench_of()
    Sink(bench, "one").stage("a", "1")
    bench.broker.staging.begin("query-1", 0, "b", USER, attempt="two")
    bench = restarted(bench)  # before what the first one staged is given up
    assert parts(bench) == "a"
    Sink(bench, "two").stage("b", "1")
    drain(bench)
    assert parts(bench) == "b"


# -- runs of a task ------------------------------------------------------------------------------------------------


def test_another_run_of_a_task_takes_the_room_of_the_one_before() -> None:
    bench = limited(10)
    sink = Sink(bench, "one")
    sink.stage("other", "1 2", task="0", run="z")
    sink.stage("a", "3 4 5 6 7", task="1", run="x")
    part = sink.begin("b", task="1", run="y")
    for body in ["3", "4", "5", "6", "7"]:
        while sink.add(part, body) == BLOCKED:
            assert bench.broker.tick()
    sink.prepare(part)
    assert parts(bench) == "b other"
    with pytest.raises(StagingError) as caught:
        sink.begin("late", task="1", run="x")
    assert condition(caught) == FENCED


def test_while_there_is_room_the_driver_may_choose_either_run() -> None:
    bench = limited(10)
    sink = Sink(bench, "one")
    sink.stage("a", "1 2", task="1", run="x")
    sink.stage("b", "1 2", task="1", run="y")
    drain(bench)
    assert sink.publish("a")
    assert bench.pending("out") == "1 2"
    drain(bench)
    assert parts(bench) == ""


def test_of_two_runs_that_find_no_room_the_later_goes_on() -> None:
    bench = limited(4)
    sink = Sink(bench, "one")
    earlier = sink.begin("a", task="1", run="x")
    assert sink.add(earlier, "1") == ROUTED
    later = sink.begin("b", task="1", run="y")
    for _ in range(3):
        assert sink.add(later, "1") == ROUTED
    with pytest.raises(StagingError) as caught:
        sink.add(earlier, "2")
    assert condition(caught) == FENCED
    assert sink.add(later, "2") == BLOCKED
    drain(bench)
    assert sink.add(later, "2") == ROUTED


# -- batches that wait ---------------------------------------------------------------------------------------------


def test_of_two_batches_that_would_wait_for_each_other_the_younger_is_refused_and_what_is_staged_named() -> None:
    bench = limited(10)
    older, younger = Sink(bench, application="old"), Sink(bench, application="young")
    older.stage("a", "1 2 3 4 5")
    younger.stage("b", "1 2 3 4 5")
    waits = older.begin("c")
    assert older.add(waits, "6") == BLOCKED
    with pytest.raises(LimitError, match=r"'young' would wait for ever.*batch 0 of 'old' 5 messages") as caught:
        younger.add(younger.begin("d"), "6")
    assert caught.value.code == "DMQ2699"
    assert older.add(waits, "6") == BLOCKED
    bench.broker.staging.discard_all("young", USER)
    drain(bench)
    assert older.add(waits, "6") == ROUTED


def test_the_younger_is_refused_when_it_waits_first_and_looks_again() -> None:
    bench = limited(10)
    older, younger = Sink(bench, application="old"), Sink(bench, application="young")
    older.stage("a", "1 2 3 4 5")
    younger.stage("b", "1 2 3 4 5")
    waits = younger.begin("d")
    assert younger.add(waits, "6") == BLOCKED
    assert older.add(older.begin("c"), "6") == BLOCKED
    with pytest.raises(LimitError, match="DMQ2699"):
        younger.add(waits, "6")


def test_a_batch_of_which_nothing_is_staged_yet_tries_again_instead() -> None:
    bench = limited(10)
    older, younger = Sink(bench, application="old"), Sink(bench, application="young")
    older.stage("a", "1 2 3 4 5")
    open_part = younger.begin("b")
    for body in ["1", "2", "3", "4", "5"]:
        assert younger.add(open_part, body) == ROUTED
    waits = older.begin("c")
    assert older.add(waits, "6") == BLOCKED
    with pytest.raises(StagingError) as caught:
        younger.add(open_part, "6")
    assert condition(caught) == NO_ROOM_NOW
    bench.broker.staging.abandon(open_part)
    drain(bench)
    assert older.add(waits, "6") == ROUTED


def test_batches_wait_where_consumers_make_room_or_another_batch_may_be_published() -> None:
    bench = limited(10)
    bench.send("out", "x")
    sinks = [Sink(bench, application=name) for name in ("old", "young", "idle")]
    for sink in sinks:
        sink.stage(f"{sink.application}-a", "1 2 3")
    for sink in sinks[:2]:
        assert sink.add(sink.begin(f"{sink.application}-b"), "4") == BLOCKED
    # All three fill the address, but for the message; "idle" waits for nothing and may be published.
    assert bench.broker.staging.batches.held_there("out", USER).count("messages") == 3
    assert bench.broker.staging.batches.held_there("out", "eve") == "staged there: 3 more"


def test_a_batch_that_asks_no_more_is_not_counted_as_waiting() -> None:
    bench = limited(10)
    older, younger = Sink(bench, application="old"), Sink(bench, application="young")
    older.stage("a", "1 2 3 4 5")
    younger.stage("b", "1 2 3 4 5")
    waits = older.begin("c")
    assert older.add(waits, "6") == BLOCKED
    bench.broker.staging.abandon(waits)
    bench.clock.now_ms += STILL_WAITS_NS // 1_000_000 + 1
    assert younger.add(younger.begin("d"), "6") == BLOCKED


def test_the_memory_of_the_whole_broker_is_an_address_in_this_respect() -> None:
    size = message_bytes()
    bench = Bench(queues=(anycast("out"),), global_max=6 * size, events=EngineEvents())
    older, younger = Sink(bench, application="old"), Sink(bench, application="young")
    older.stage("a", "1 2 3")
    younger.stage("b", "1 2 3")
    assert older.add(older.begin("c"), "4") == BLOCKED
    with pytest.raises(LimitError, match="DMQ2699"):
        younger.add(younger.begin("d"), "4")


def message_bytes() -> int:
    bench = bench_of()
    bench.broker.producers.send(row(bench, "1"))
    return bench.broker.used_bytes


# -- two queries with one name -------------------------------------------------------------------------------------


def test_a_query_is_refused_once_another_with_its_name_has_published() -> None:
    bench = bench_of()
    query, copy = Sink(bench, "run-1", batch=4), Sink(bench, "run-2", batch=4)
    query.stage("a", "1")
    assert query.publish("a")
    assert not copy.publish()
    query.batch = copy.batch = 5
    with pytest.raises(StagingError, match="checkpoint") as caught:
        query.publish()
    assert condition(caught) == FENCED
    query.batch = 4
    assert not query.publish("a")  # its answer was lost: that batch it did publish
    copy.stage("b", "2")
    assert copy.publish("b")
    assert bench.pending("out") == "1 2"


def test_writes_one_after_the_other_are_no_copies() -> None:
    bench = bench_of(RecordingStore())
    for batch in range(20):
        write = Sink(bench, f"write-{batch}", batch=batch)
        write.stage(f"part-{batch}", str(batch))
        assert write.publish(f"part-{batch}")
        assert not write.publish(f"part-{batch}")
    assert bench.pending("out") == " ".join(map(str, range(20)))
