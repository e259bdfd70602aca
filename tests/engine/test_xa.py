"""Branches of distributed transactions: what their coordinator may ask for, and what survives."""

import json
from functools import partial

import pytest

from delosmq.engine.base.events import EngineEvents
from delosmq.engine.base.jobs import JobWaiter
from delosmq.engine.log.log import Batch
from delosmq.engine.log.ports import Replay
from delosmq.engine.routing.send_result import DUPLICATE, ROUTED
from delosmq.engine.transactions.transaction import ROLLED_BACK, Transaction
from delosmq.engine.transactions.xa import MOST_BRANCHES, XaError
from delosmq.model.errors import (
    TMFAIL,
    TMJOIN,
    TMRESUME,
    TMSUSPEND,
    XA_HEURCOM,
    XA_HEURRB,
    XA_RBOTHER,
    XA_RBROLLBACK,
    XA_RBTIMEOUT,
    XAER_DUPID,
    XAER_INVAL,
    XAER_NOTA,
    XAER_PROTO,
    XAER_RMFAIL,
    BrokerError,
    StorageError,
)
from delosmq.model.ids import Position
from tests.engine.support import Bench, Collector, anycast
from tests.engine.test_transactions import CountingStore, drain, numbers, promise, recount, send
from tests.simulation.whole.recount import check_shares

X = b"branch-1"
Y = b"branch-2"
MANY = 450


def code(error: pytest.ExceptionInfo[XaError]) -> int:
    return error.value.xa_code


def worked(bench: Bench, xid: bytes = X, count: int = 2, sends: str = "x y") -> tuple[Transaction, Collector]:
    """A branch that acknowledges ``count`` messages of 'in', sends to 'out', and has ended its work."""
    consumer, port = bench.consume("in")
    bench.send("in", numbers(0, count))
    bench.run()
    branch = bench.broker.branches.start(xid)
    send(bench, branch, "out", sends)
    promise(bench, branch, consumer, port.slots)
    port.room = False
    bench.broker.branches.end(xid)
    return branch, port


def bench_of(store: CountingStore | None = None, events: EngineEvents | None = None) -> Bench:
    return Bench(queues=(anycast("in"), anycast("out")), store=store, events=events)


# -- protocol ------------------------------------------------------------------------------------------------------


def test_a_branch_commits_in_one_phase_and_in_two() -> None:  # ACK-5
    bench = bench_of()
    worked(bench, X)
    assert bench.broker.branches.commit(X, True)
    assert bench.pending("out") == "x y"
    worked(bench, Y, sends="z")
    assert bench.broker.branches.prepare(Y)
    assert bench.pending("out") == "x y"
    assert bench.broker.branches.recover() == [Y]
    assert bench.broker.branches.commit(Y, False)
    assert bench.pending("out") == "x y z"
    assert bench.pending("in") == ""
    assert bench.broker.branches.recover() == []
    assert bench.broker.used_bytes == recount(bench.broker)


def test_unknown_branches_are_refused() -> None:
    bench = bench_of()
    for call in (
        lambda: bench.broker.branches.end(X),
        lambda: bench.broker.branches.prepare(X),
        lambda: bench.broker.branches.commit(X, False),
        lambda: bench.broker.branches.rollback(X),
        lambda: bench.broker.branches.forget(X),
        lambda: bench.broker.branches.start(X, TMJOIN),
        lambda: bench.broker.branches.heuristic_commit(X),
        lambda: bench.broker.branches.heuristic_rollback(X),
    ):
        with pytest.raises(XaError, match="DMQ2677") as error:
            call()
        assert code(error) == XAER_NOTA


def test_calls_in_the_wrong_state_are_refused_and_change_nothing() -> None:
    bench = bench_of()
    bench.broker.branches.start(X)
    for call in (
        lambda: bench.broker.branches.prepare(X),
        lambda: bench.broker.branches.commit(X, True),
        lambda: bench.broker.branches.commit(X, False),
        lambda: bench.broker.branches.rollback(X),
        lambda: bench.broker.branches.start(X, TMRESUME),
    ):
        with pytest.raises(XaError, match="DMQ2679") as error:
            call()
        assert code(error) == XAER_PROTO
    bench.broker.branches.end(X)
    with pytest.raises(XaError, match="DMQ2679"):
        bench.broker.branches.commit(X, False)  # not prepared
    with pytest.raises(XaError, match="DMQ2679"):
        bench.broker.branches.heuristic_commit(X)
    bench.broker.branches.prepare(X)
    assert bench.broker.branches.prepare(X)  # again: it is
    with pytest.raises(XaError, match="DMQ2679"):
        bench.broker.branches.commit(X, True)
    with pytest.raises(XaError, match="DMQ2679"):
        bench.broker.branches.start(X, TMJOIN)
    assert bench.broker.branches.commit(X, False)


def test_a_branch_is_begun_once() -> None:
    bench = bench_of()
    bench.broker.branches.start(X)
    with pytest.raises(XaError, match="DMQ2671") as error:
        bench.broker.branches.start(X)
    assert code(error) == XAER_DUPID
    with pytest.raises(XaError, match="DMQ2670") as invalid:
        bench.broker.branches.start(Y, 12345)
    assert code(invalid) == XAER_INVAL


def test_sessions_join_suspend_and_resume() -> None:
    bench = bench_of()
    branch = bench.broker.branches.start(X)
    assert bench.broker.branches.start(X, TMJOIN) is branch
    bench.broker.branches.end(X)
    with pytest.raises(XaError, match="DMQ2679"):
        bench.broker.branches.prepare(X)  # the other one still works in it
    bench.broker.branches.end(X)
    bench.broker.branches.start(X, TMJOIN)
    bench.broker.branches.end(X, TMSUSPEND)
    with pytest.raises(XaError, match="DMQ2679"):
        bench.broker.branches.start(X, TMJOIN)
    with pytest.raises(XaError, match="DMQ2679"):
        bench.broker.branches.prepare(X)
    assert bench.broker.branches.start(X, TMRESUME) is branch
    assert send(bench, branch, "out", "x") == [ROUTED]
    bench.broker.branches.end(X)
    bench.broker.branches.commit(X, True)
    assert bench.pending("out") == "x"


def test_a_failed_branch_can_only_be_rolled_back() -> None:
    bench = bench_of()
    branch = bench.broker.branches.start(X)
    send(bench, branch, "out", "x")
    bench.broker.branches.end(X, TMFAIL)
    with pytest.raises(XaError) as error:
        bench.broker.branches.prepare(X)
    assert code(error) == XA_RBROLLBACK
    assert bench.pending("out") == ""
    assert bench.broker.used_bytes == 0
    with pytest.raises(XaError) as gone:
        bench.broker.branches.rollback(X)
    assert code(gone) == XAER_NOTA


def test_a_branch_with_a_duplicate_is_rolled_back() -> None:
    bench = bench_of()
    message = bench.message("out", "x")
    message.duplicate_id = b"1"
    bench.broker.producers.send(message)
    branch = bench.broker.branches.start(X)
    again = bench.message("out", "x")
    again.duplicate_id = b"1"
    assert bench.broker.transactions.send(branch, again) == DUPLICATE
    bench.broker.branches.end(X)
    with pytest.raises(XaError) as error:
        bench.broker.branches.commit(X, True)
    assert code(error) == XA_RBOTHER
    assert bench.pending("out") == "x"


# -- prepared ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, MANY])
@pytest.mark.parametrize("restarts", [0, 1, 2])
@pytest.mark.parametrize("commit", [True, False])
def test_a_prepared_branch_survives_restarts_and_then_ends_either_way(  # ACK-5
    count: int, restarts: int, commit: bool
) -> None:
    store = CountingStore()
    bench = bench_of(store)
    words = numbers(1000, count)
    worked(bench, X, count, words)
    bench.broker.branches.prepare(X)
    bench.run()
    changes = store.changes
    for _ in range(restarts):
        store = CountingStore(list(store.batches), list(changes))
        changes = store.changes
        bench = Bench(queues=(anycast("in"), anycast("out")), store=store)
        assert bench.broker.branches.recover() == [X]
        assert (bench.pending("in"), bench.pending("out")) == ("", "")
        assert bench.broker.queues["in"].delivering.count == count
        [branch] = bench.broker.branches.prepared()
        assert (len(branch.planned), len(branch.acks), branch.prepared_ms > 0) == (count, count, True)
    if commit:
        bench.broker.branches.commit(X, False)
    else:
        bench.broker.branches.rollback(X)
    bench.run()
    expected = ("", words) if commit else (numbers(0, count), "")
    assert (bench.pending("in"), bench.pending("out")) == expected
    assert bench.broker.queues["in"].delivering.count == 0
    assert bench.broker.used_bytes == recount(bench.broker)
    assert all(queue.pending_commits == 0 for queue in bench.broker.queues.values())
    again = bench.restart()
    assert (again.pending("in"), again.pending("out")) == expected
    assert again.broker.branches.recover() == []
    drain(bench, "in")
    drain(bench, "out")
    assert bench.broker.used_bytes == 0
    assert store.live == 0


@pytest.mark.parametrize("ending", ["commit", "rollback"])
def test_a_crash_anywhere_in_two_phases_leaves_all_or_nothing(ending: str) -> None:  # ACK-5
    store = CountingStore()
    bench = bench_of(store)
    words = numbers(1000, MANY)
    worked(bench, X, MANY, words)
    before = len(store.batches)
    bench.broker.branches.prepare(X)
    bench.run()
    prepared = len(store.batches)
    if ending == "commit":
        bench.broker.branches.commit(X, False)
    else:
        bench.broker.branches.rollback(X)
    bench.run()
    for count in range(before, len(store.batches) + 1):
        cut_store = store.upto(count)
        cut = Bench(queues=(anycast("in"), anycast("out")), store=cut_store)
        in_doubt = cut.broker.branches.recover()
        assert in_doubt == ([X] if count == prepared else [])
        if in_doubt:
            assert (cut.pending("in"), cut.pending("out")) == ("", "")
            cut.broker.branches.rollback(X)
            cut.run()
        done = ending == "commit" and count > prepared
        assert (cut.pending("in"), cut.pending("out")) == (("", words) if done else (numbers(0, MANY), ""))
        assert cut.broker.used_bytes == recount(cut.broker)
        drain(cut, "in")
        drain(cut, "out")
        assert cut_store.live == 0, count
        assert cut.broker.used_bytes == 0


class StateStore(CountingStore):
    """Begins with a state block, as a journal does."""

    def __init__(self, store: CountingStore, state: bytes) -> None:
        super().__init__(list(store.batches), list(store.changes))
        self.state = state

    def recover(self, replay: Replay) -> Position:
        replay.replay_state(Position(len(self.batches)), self.state)
        return super().recover(replay)


def test_the_state_block_knows_prepared_branches_and_heuristic_ends() -> None:  # ACK-5
    store = CountingStore()
    bench = bench_of(store)
    worked(bench, X)
    bench.broker.branches.prepare(X)
    worked(bench, Y, sends="z")
    bench.broker.branches.prepare(Y)
    bench.broker.branches.heuristic_rollback(Y)
    bench.run()
    again = Bench(store=StateStore(store, bench.broker.state.state()))
    assert again.broker.branches.recover() == [X, Y]
    again.broker.branches.commit(X, False)
    assert again.pending("out") == "x y"
    with pytest.raises(XaError) as error:
        again.broker.branches.commit(Y, False)
    assert code(error) == XA_HEURRB


def test_a_queue_deleted_meanwhile_ends_its_part_of_a_prepared_branch() -> None:
    store = CountingStore()
    bench = bench_of(store)
    worked(bench, X)
    bench.broker.branches.prepare(X)
    bench.broker.resources.delete_queue("out")
    bench.broker.resources.delete_queue("in")
    bench.run()
    store = CountingStore(list(store.batches), list(store.changes))
    again = Bench(store=store)
    assert again.broker.branches.recover() == [X]
    again.broker.branches.commit(X, False)
    again.run()
    assert again.broker.used_bytes == 0
    assert store.live == 0


# -- heuristic -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("committed", [True, False])
def test_what_an_operator_decided_is_told_until_it_is_forgotten(committed: bool) -> None:
    bench = bench_of()
    worked(bench, X)
    bench.broker.branches.prepare(X)
    if committed:
        bench.broker.branches.heuristic_commit(X)
    else:
        bench.broker.branches.heuristic_rollback(X)
    bench.run()
    again = bench.restart()
    for side in (bench, again):
        assert side.pending("out") == ("x y" if committed else "")
        assert side.broker.branches.recover() == [X]
        assert side.broker.branches.prepared() == []
        for call in (partial(side.broker.branches.commit, X, False), partial(side.broker.branches.rollback, X)):
            with pytest.raises(XaError, match="DMQ2678") as error:
                call()
            assert code(error) == (XA_HEURCOM if committed else XA_HEURRB)
        with pytest.raises(XaError, match="DMQ2671"):
            side.broker.branches.start(X)
    again.broker.branches.forget(X)
    assert again.broker.branches.recover() == []
    assert again.restart().broker.branches.recover() == []


@pytest.mark.parametrize("restart", [False, True])
def test_a_branch_rolled_back_leaves_a_ring_its_newest(restart: bool) -> None:  # RING-6, RING-7
    bench = Bench(queues=(anycast("in", ring_size=500),))
    consumer, port = bench.consume("in")
    for start in range(0, 900, 100):
        bench.send("in", numbers(start, 100))
        bench.run()
    branch = bench.broker.branches.start(X)
    promise(bench, branch, consumer, port.slots)
    bench.broker.branches.end(X)
    bench.broker.branches.prepare(X)
    bench.run()
    port.room = False
    if restart:
        bench = bench.restart()
    bench.broker.branches.rollback(X)
    bench.run()
    assert bench.pending("in") == numbers(400, 500)
    assert bench.restart().pending("in") == numbers(400, 500)


# -- time ----------------------------------------------------------------------------------------------------------


def test_a_branch_that_takes_too_long_is_rolled_back_and_a_prepared_one_never() -> None:
    bench = bench_of()
    slow, _ = worked(bench, X)
    prepared, _ = worked(bench, Y)
    bench.broker.branches.prepare(Y)
    bench.clock.now_ms += 299_000
    bench.run()
    assert slow.state != ROLLED_BACK
    assert bench.broker.next_timer_at > 0
    bench.clock.now_ms += 2_000
    bench.run()
    assert slow.state == ROLLED_BACK
    assert bench.pending("in") == "0 1"
    with pytest.raises(XaError) as error:
        bench.broker.branches.commit(X, True)
    assert code(error) == XAER_NOTA
    bench.clock.now_ms += 10_000_000
    bench.run()
    assert prepared.state == "prepared"


def test_a_session_learns_of_the_timeout_when_it_ends_its_work() -> None:
    bench = bench_of()
    bench.broker.branches.timeout_ms = 5_000
    branch = bench.broker.branches.start(X)
    send(bench, branch, "out", "x")
    for _ in range(7):
        bench.clock.now_ms += 1_000
        bench.run()
    assert bench.broker.used_bytes == 0
    with pytest.raises(BrokerError, match="DMQ2663"):
        send(bench, branch, "out", "y")
    with pytest.raises(XaError, match=r"DMQ2674.*5000 ms") as error:
        bench.broker.branches.end(X)
    assert code(error) == XA_RBTIMEOUT
    bench.broker.branches.start(X)


def test_a_branch_whose_session_never_learns_of_its_timeout_is_forgotten_after_another() -> None:
    bench = bench_of()
    bench.broker.branches.timeout_ms = 5_000
    bench.broker.branches.start(X)
    bench.later(6_000)
    bench.later(4_000)
    assert bench.broker.branches.branch(X) is not None
    bench.later(2_000)
    assert bench.broker.branches.branch(X) is None


def test_a_branch_that_timed_out_may_be_begun_again() -> None:
    bench = bench_of()
    bench.broker.branches.timeout_ms = 5_000
    bench.broker.branches.start(X)
    bench.later(6_000)
    again = bench.broker.branches.start(X)
    send(bench, again, "out", "x")
    bench.broker.branches.end(X)
    assert bench.broker.branches.commit(X, True)
    assert bench.pending("out") == "x"


def doubtful(bench: Bench, number: int, user: str) -> bytes:
    """A branch that ``user`` has prepared, over a connection of its own."""
    xid = b"%06d" % number
    branch = bench.broker.branches.start(xid, owner=f"connection {number}", user=user)
    send(bench, branch, "out", "x")
    bench.broker.branches.end(xid)
    bench.broker.branches.prepare(xid)
    return xid


def shares(bench: Bench, user: str = "eve") -> tuple[int, int]:
    """The branches that count to a user, and what they take of the state."""
    check_shares(bench.broker)
    limits = bench.broker.client_limits
    return limits.branches_of(user), limits.state_bytes_of(user)


def test_one_user_does_not_take_all_branches_there_may_be() -> None:
    bench = bench_of()
    allowed = bench.settings.max_branches_per_user
    assert 0 < 4 * allowed <= MOST_BRANCHES
    for number in range(allowed):
        bench.broker.branches.start(b"%d" % number, owner=f"connection {number % 10}", user="eve")
    with pytest.raises(XaError, match=r"DMQ2673.*'eve' have 2500.*max-branches-per-user is 2500") as error:
        bench.broker.branches.start(X, owner="another connection", user="eve")
    assert code(error) == XAER_RMFAIL
    assert bench.broker.branches.start(X, owner="modest", user="bob").xid == X
    bench.broker.branches.end(b"0")
    bench.broker.branches.rollback(b"0")
    assert bench.broker.branches.start(Y, user="eve").xid == Y


def test_what_branches_take_of_the_state_counts_to_their_user_until_they_are_forgotten() -> None:
    store = CountingStore()
    bench = bench_of(store)
    empty = len(bench.broker.state.state())

    def reborn() -> Bench:
        """On nothing but the state."""
        return Bench(queues=bench.settings.queues, store=StateStore(store, bench.broker.state.state()))

    def check(count: int) -> None:
        counted = shares(bench)
        assert counted[0] == count
        assert len(bench.broker.state.state()) <= empty + counted[1]
        assert shares(bench.restart()) == shares(reborn()) == counted

    xids = [doubtful(bench, number, "eve") for number in range(6)]
    bench.run()
    check(6)
    bench.broker.branches.heuristic_commit(xids[0])
    bench.broker.branches.heuristic_rollback(xids[1])
    bench.run()
    check(6)
    for xid in xids[2:]:
        bench.broker.branches.rollback(xid)
    bench.run()
    check(2)
    for xid in xids[:2]:
        bench.broker.branches.forget(xid)
    check(0)
    assert shares(bench) == (0, 0)


def test_a_user_whose_share_is_used_up_begins_no_branch() -> None:
    bench = Bench(queues=(anycast("out"),), size_per_user=20_000)

    def begin_many() -> None:
        for number in range(1_000):
            doubtful(bench, number, "eve")

    with pytest.raises(XaError, match=r"DMQ2686: branch [0-9a-f]+ is not made: .*'eve'") as error:
        begin_many()
    assert code(error) == XAER_RMFAIL
    doubtful(bench, 5_000, "bob")
    bench.broker.branches.heuristic_rollback(b"000000")
    with pytest.raises(XaError, match="DMQ2686"):
        doubtful(bench, 5_001, "eve")
    bench.broker.branches.forget(b"000000")
    doubtful(bench, 5_001, "eve")


def test_records_that_do_not_say_whose_a_branch_is_are_read() -> None:
    bench = bench_of()
    doubtful(bench, 1, "")
    bench.broker.branches.heuristic_commit(doubtful(bench, 2, ""))
    bench.run()
    assert not any(b"made_by" in meta for _, metas, _ in bench.store.batches for meta in metas)
    assert b"made_by" not in bench.broker.state.state()
    again = bench.restart()
    assert again.broker.branches.recover() == [b"000001", b"000002"]
    check_shares(again.broker)


def test_what_no_operator_ended_can_not_be_forgotten() -> None:
    bench = bench_of()
    xid = doubtful(bench, 1, "eve")
    with pytest.raises(XaError, match=r"DMQ2689: branch .* is prepared .*; commit it or roll it back") as error:
        bench.broker.branches.forget(xid)
    assert code(error) == XAER_NOTA
    with pytest.raises(XaError, match="DMQ2677"):
        bench.broker.branches.forget(X)


# -- large ---------------------------------------------------------------------------------------------------------


class Waiter(JobWaiter):
    def __init__(self) -> None:
        self.ended: list[BrokerError | None] = []

    def on_ended(self, error: BrokerError | None) -> None:
        self.ended.append(error)


class Seen(EngineEvents):
    def __init__(self) -> None:
        self.prepared: list[bytes] = []

    def transaction_prepared(self, transaction: int, xid: bytes) -> None:
        self.prepared.append(xid)


def test_a_large_prepare_and_commit_go_in_slices() -> None:
    seen = Seen()
    bench = bench_of(events=seen)
    worked(bench, X, MANY, numbers(1000, MANY))
    waiter = Waiter()
    assert not bench.broker.branches.prepare(X, waiter)
    assert bench.broker.branches.recover() == []
    with pytest.raises(XaError, match="DMQ2679"):
        bench.broker.branches.commit(X, False)
    with pytest.raises(XaError, match="DMQ2679"):
        bench.broker.branches.rollback(X)
    bench.run()
    assert waiter.ended == [None]
    assert seen.prepared == [X]
    assert bench.broker.branches.recover() == [X]
    assert not bench.broker.branches.commit(X, False, waiter)
    bench.run()
    assert waiter.ended == [None, None]
    assert bench.pending("out") == numbers(1000, MANY)


class RollingStore(CountingStore):
    """Asks for the whole state as it takes a batch, as a journal does that begins a segment with it."""

    bench: Bench | None = None
    state = b""

    def append(self, batch: Batch) -> None:
        super().append(batch)
        if self.bench is not None:
            self.state = self.bench.broker.state.state()


def test_the_state_taken_with_the_batch_that_prepares_a_branch_knows_it() -> None:  # ACK-5
    store = RollingStore()
    bench = bench_of(store)
    store.bench = bench
    branch, _ = worked(bench)
    assert bench.broker.branches.prepare(X)
    assert [item["tx"] for item in json.loads(store.state)["prepared"]] == [branch.id]
    bench.broker.branches.commit(X, one_phase=False)
    assert json.loads(store.state)["prepared"] == []


class RefusingStore(CountingStore):
    """Has no room once told so."""

    full = False

    def append(self, batch: Batch) -> None:
        if self.full and any(b'"prepare"' in meta for meta in batch.metas):
            raise StorageError("DMQ3004", "no room")
        super().append(batch)


def test_a_branch_that_could_not_be_recorded_as_prepared_is_not() -> None:  # ACK-5
    store = RefusingStore()
    bench = bench_of(store)
    worked(bench)
    store.full = True
    with pytest.raises((XaError, StorageError)):
        bench.broker.branches.prepare(X)
    assert bench.broker.branches.recover() == []
