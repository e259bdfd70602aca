"""Branches of distributed transactions, as a client's XAResource has them."""

# ACK-5

import pytest

from delosmq.engine.transactions.transaction import ACTIVE, ENDED
from delosmq.model.settings import AddressFullPolicy
from delosmq.sessions.openwire.server.transactions import OpenWireTransactions
from delosmq.wire.openwire.commands import (
    BEGIN,
    COMMIT_ONE_PHASE,
    COMMIT_TWO_PHASE,
    END,
    FORGET,
    PREPARE,
    RECOVER,
    ROLLBACK,
    DataArrayResponse,
    IntegerResponse,
)
from delosmq.wire.openwire.structures import ConnectionId, Throwable, XATransactionId
from tests.sessions.openwire.support import JMS, XA, Client, OpenWireBench, Reader, queue
from tests.sessions.support import OTHER, USER

A = queue("a")
B = queue("b")
FULL = queue("full")


def xid(name: bytes = b"global") -> XATransactionId:
    return XATransactionId(4711, name, b"branch")


class Case:
    """A connection with something to consume, and a branch that is begun."""

    def __init__(self) -> None:
        self.bench = OpenWireBench()
        self.client: Client = self.bench.connect()
        self.client.publish(A, "0 1")
        self.reader: Reader = self.client.consume(A, 1)
        self.reader.take()
        self.xid = xid()
        self.go(BEGIN)
        self.reader.done(0, transaction=self.xid)
        self.client.publish(B, "out", self.xid)

    def go(self, kind: int) -> None:
        self.client.ok(self.client.transaction_info(self.xid, kind))

    def prepare(self) -> int:
        answer = self.client.call(self.client.transaction_info(self.xid, PREPARE))
        assert isinstance(answer, IntegerResponse)
        return answer.result

    @property
    def counts(self) -> tuple[int, int]:
        return self.bench.queue("a").message_count, self.bench.queue("b").message_count


def refused(client: Client, transaction: XATransactionId, kind: int) -> int:
    """The XA code of a refusal."""
    exception: Throwable = client.refused(client.transaction_info(transaction, kind))
    assert exception.class_name == XA, exception.message
    return int((exception.message or "").rpartition("xaErrorCode:")[2])


def recovered(client: Client) -> list[str]:
    answer = client.call(client.transaction_info(None, RECOVER))
    assert isinstance(answer, DataArrayResponse)
    assert answer.values is not None
    return [one.key() for one in answer.values if isinstance(one, XATransactionId)]


def test_two_phases() -> None:
    case = Case()
    case.go(END)
    assert case.prepare() == 0
    assert case.counts == (2, 0)
    case.go(COMMIT_TWO_PHASE)
    assert case.counts == (1, 1)
    assert case.reader.bodies() == "1"


def test_one_phase() -> None:
    case = Case()
    case.go(END)
    case.go(COMMIT_ONE_PHASE)
    assert case.counts == (1, 1)


def test_the_end_of_an_association_ends_the_work() -> None:
    case = Case()
    (branch,) = case.bench.broker.transactions.open.values()
    assert branch.state == ACTIVE
    case.go(END)
    assert branch.state == ENDED
    # Again is nothing.
    case.go(END)
    case.go(ROLLBACK)


def test_preparing_a_branch_in_which_nothing_was_done_ends_it() -> None:
    client = OpenWireBench().connect()
    for kind in (BEGIN, END):
        client.ok(client.transaction_info(xid(), kind))
    answer = client.call(client.transaction_info(xid(), PREPARE))
    assert isinstance(answer, IntegerResponse)
    assert answer.result == 3
    assert client.bench.broker.transactions.open == {}
    assert refused(client, xid(), COMMIT_TWO_PHASE) == -4


def test_acknowledging_alone_is_something() -> None:
    case = Case()
    case.client.publish(A, "2")
    other = xid(b"other")
    case.client.ok(case.client.transaction_info(other, BEGIN))
    reader = case.client.consume(A, 1)
    reader.take()
    reader.done(0, transaction=other)
    answer = case.client.call(case.client.transaction_info(other, PREPARE))
    assert isinstance(answer, IntegerResponse)
    assert answer.result == 0


def test_preparing_needs_no_end() -> None:
    case = Case()
    case.prepare()
    case.go(COMMIT_TWO_PHASE)
    assert case.counts == (1, 1)


@pytest.mark.parametrize("prepared", [False, True])
def test_a_rollback_leaves_acknowledged_messages_with_their_consumer(prepared: bool) -> None:
    case = Case()
    case.go(END)
    if prepared:
        case.prepare()
    case.go(ROLLBACK)
    assert case.counts == (2, 0)
    assert case.reader.bodies() == ""
    case.reader.done(0)
    assert case.reader.bodies() == "1"


def test_preparing_twice_is_answered_twice() -> None:
    case = Case()
    assert case.prepare() == 0
    assert case.prepare() == 0
    case.go(COMMIT_TWO_PHASE)


def test_the_answer_to_prepare_waits_for_the_disk() -> None:
    bench = OpenWireBench(hold=True)
    client = bench.connect()
    client.tell(client.transaction_info(xid(), BEGIN))
    client.tell(client.text(A, "x", xid()))
    assert client.ask(client.transaction_info(xid(), PREPARE)) == []
    bench.sync()
    bench.tick()
    (answer,) = client.take()
    assert isinstance(answer, IntegerResponse)
    assert answer.result == 0


# -- several connections -----------------------------------------------------------------------------------------------


def test_another_connection_may_end_what_one_has_begun() -> None:
    case = Case()
    case.go(END)
    other = case.bench.connect()
    answer = other.call(other.transaction_info(case.xid, PREPARE))
    assert isinstance(answer, IntegerResponse)
    other.ok(other.transaction_info(case.xid, COMMIT_TWO_PHASE))
    assert case.counts == (1, 1)


def test_two_connections_work_in_one_branch() -> None:
    case = Case()
    other = case.bench.connect()
    other.ok(other.transaction_info(case.xid, BEGIN))
    other.publish(B, "too", case.xid)
    other.ok(other.transaction_info(case.xid, END))
    case.go(END)
    case.go(COMMIT_ONE_PHASE)
    assert case.counts == (1, 2)


def finished(case: Case) -> tuple[int, int]:
    """What is in both queues once the connection that began the branch has sent more, prepared and committed."""
    case.client.publish(B, "more", case.xid)
    case.go(END)
    assert case.prepare() == 0
    case.go(COMMIT_TWO_PHASE)
    return case.counts


def test_a_connection_that_joined_a_branch_leaves_it_as_it_is() -> None:
    case = Case()
    other = case.bench.connect()
    other.ok(other.transaction_info(case.xid, BEGIN))
    other.publish(B, "too", case.xid)
    other.ok(other.transaction_info(case.xid, END))
    other.ok(other.remove_info(ConnectionId(other.name)))
    assert finished(case) == (1, 3)


@pytest.mark.parametrize("begins", [True, False])
def test_nor_does_losing_it_end_the_branch(begins: bool) -> None:
    case = Case()
    other = case.bench.connect()
    if begins:
        other.ok(other.transaction_info(case.xid, BEGIN))
    other.publish(B, "too", case.xid)
    other.drop()
    (branch,) = case.bench.broker.transactions.open.values()
    assert (branch.state, branch.associations) == (ACTIVE, 1)
    assert finished(case) == (1, 3)


def test_an_end_is_that_of_one_connection() -> None:
    case = Case()
    other = case.bench.connect()
    for _ in range(2):
        other.ok(other.transaction_info(case.xid, BEGIN))
    other.ok(other.transaction_info(case.xid, END))
    (branch,) = case.bench.broker.transactions.open.values()
    assert (branch.state, branch.associations) == (ACTIVE, 1)
    # What is sent after it counts, too.
    other.publish(B, "too", case.xid)
    assert branch.associations == 2
    assert finished(case) == (1, 3)


def test_after_everybody_s_end_a_branch_goes_on_with_what_is_sent_there() -> None:
    case = Case()
    case.go(END)
    case.client.publish(B, "late", case.xid)
    assert finished(case) == (1, 3)


def test_a_branch_ends_with_the_connection_that_began_it_though_others_work_there() -> None:
    case = Case()
    other = case.bench.connect()
    other.ok(other.transaction_info(case.xid, BEGIN))
    case.client.drop()
    assert case.bench.broker.transactions.open == {}
    assert other.refused(other.text(B, "too", case.xid)).class_name == JMS
    other.ok(other.transaction_info(case.xid, END))
    assert case.counts == (2, 0)


def joined_and_full() -> tuple[Case, Client]:
    """A message that another connection sends in the branch waits for space."""
    case = Case()
    settings = {"max_size_messages": 1, "address_full_policy": AddressFullPolicy.BLOCK}
    case.bench = OpenWireBench(address_settings={"full": settings})
    case.client = case.bench.connect()
    case.client.publish(FULL, "first")
    case.go(BEGIN)
    case.client.publish(B, "one", case.xid)
    other = case.bench.connect()
    other.ok(other.transaction_info(case.xid, BEGIN))
    other.tell(other.text(FULL, "second", case.xid))
    return case, other


def test_a_branch_is_not_prepared_without_what_was_lost_of_it() -> None:
    case, other = joined_and_full()
    other.drop()
    case.go(END)
    assert refused(case.client, case.xid, PREPARE) == 100
    assert case.bench.queue("b").message_count == 0


def test_who_leaves_in_order_waits_for_what_it_sent_in_the_branch_of_another() -> None:
    case, other = joined_and_full()
    left = other.feed(other.remove_info(ConnectionId(other.name)), answer=True)
    case.bench.tick()
    assert other.answers(left) == []
    reader = case.client.consume(FULL)
    assert reader.bodies() == "first"
    reader.done(0)
    assert len(other.answers(left)) == 1
    case.go(END)
    case.go(COMMIT_ONE_PHASE)
    assert reader.bodies() == "second"


def test_a_prepared_branch_outlives_its_connection() -> None:
    case = Case()
    case.prepare()
    case.client.drop()
    client = case.bench.connect()
    # What it acknowledged stays out of reach.
    assert client.consume(A).bodies() == "1"
    assert recovered(client) == [case.xid.key()]
    client.ok(client.transaction_info(case.xid, COMMIT_TWO_PHASE))
    assert case.counts == (1, 1)
    assert recovered(client) == []


def test_a_prepared_branch_outlives_an_orderly_close() -> None:
    case = Case()
    case.prepare()
    case.client.ok(case.client.remove_info(ConnectionId(case.client.name), case.reader.sequence(0)))
    client = case.bench.connect()
    reader = client.consume(A)
    assert reader.bodies() == "1"
    client.ok(client.transaction_info(case.xid, ROLLBACK))
    assert reader.bodies() == "0r1"
    assert case.counts == (2, 0)


def test_a_branch_that_is_not_prepared_ends_with_its_connection() -> None:
    case = Case()
    case.client.drop()
    client = case.bench.connect()
    assert recovered(client) == []
    assert refused(client, case.xid, PREPARE) == -4
    assert client.consume(A).bodies() == "0r1 1"


# -- recovering --------------------------------------------------------------------------------------------------------


def test_recovering_gives_an_empty_list_and_not_null() -> None:
    client = OpenWireBench().connect()
    assert recovered(client) == []


def test_recovering_gives_the_prepared_ones_with_all_their_parts() -> None:
    case = Case()
    assert recovered(case.client) == []
    case.prepare()
    answer = case.client.call(case.client.transaction_info(None, RECOVER))
    assert isinstance(answer, DataArrayResponse)
    (found,) = answer.values or []
    assert isinstance(found, XATransactionId)
    assert (found.format_id, found.global_transaction_id, found.branch_qualifier) == (4711, b"global", b"branch")


def test_forgetting_what_an_operator_did() -> None:
    case = Case()
    case.prepare()
    (branch,) = case.bench.broker.branches.prepared()
    assert branch.xid is not None
    case.bench.broker.branches.heuristic_commit(branch.xid)
    assert refused(case.client, case.xid, COMMIT_TWO_PHASE) == 7
    case.go(FORGET)
    assert refused(case.client, case.xid, COMMIT_TWO_PHASE) == -4


# -- errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [PREPARE, COMMIT_ONE_PHASE, COMMIT_TWO_PHASE, ROLLBACK, FORGET])
def test_an_unknown_branch(kind: int) -> None:
    client = OpenWireBench().connect()
    assert refused(client, xid(b"nobody"), kind) == -4


def test_two_phases_need_a_prepare() -> None:
    case = Case()
    case.go(END)
    assert refused(case.client, case.xid, COMMIT_TWO_PHASE) == -6
    # It is still there.
    case.go(COMMIT_ONE_PHASE)
    assert case.counts == (1, 1)


@pytest.mark.parametrize("ended", [True, False])
def test_a_branch_that_could_not_be_committed_still_ends_with_its_connection(ended: bool) -> None:
    case = Case()
    if ended:
        case.go(END)
    assert refused(case.client, case.xid, COMMIT_TWO_PHASE) == -6
    case.client.drop()
    assert not case.bench.broker.transactions.open
    assert case.bench.connect().consume(A).bodies() == "0r1 1"


def test_one_phase_is_too_late_after_a_prepare() -> None:
    case = Case()
    case.prepare()
    assert refused(case.client, case.xid, COMMIT_ONE_PHASE) == -6
    case.go(COMMIT_TWO_PHASE)
    assert case.counts == (1, 1)


def test_a_prepared_branch_takes_nothing_more() -> None:
    case = Case()
    case.prepare()
    info = case.client.transaction_info(case.xid, BEGIN)
    assert (case.client.refused(info).message or "").endswith("xaErrorCode:-6")
    case.go(ROLLBACK)


@pytest.mark.parametrize("kind", [PREPARE, COMMIT_ONE_PHASE])
def test_a_doomed_branch_says_that_it_was_rolled_back(kind: int) -> None:
    case = Case()
    case.client.tell(case.client.text(queue(""), "bad", case.xid))
    case.client.take()
    case.go(END)
    assert refused(case.client, case.xid, kind) == 100
    assert case.counts == (2, 0)
    assert case.bench.broker.transactions.open == {}
    # The client delivers again by itself what it has.
    assert case.reader.bodies() == ""
    case.reader.done(0)
    assert case.reader.bodies() == "1"


def test_a_doomed_branch_says_so_to_whoever_prepares_it() -> None:
    case = Case()
    case.client.tell(case.client.text(queue(""), "bad", case.xid))
    case.go(END)
    other = case.bench.connect()
    assert refused(other, case.xid, PREPARE) == 100
    assert case.counts == (2, 0)


def test_connections_of_one_user_do_not_take_all_branches() -> None:
    bench = OpenWireBench()
    allowed = bench.broker.settings.max_branches_per_user
    for number in range(4):
        client = bench.connect()
        for one in range(allowed // 3):
            branch = xid(b"%d %d" % (number, one))
            if number == 3:
                assert refused(client, branch, BEGIN) == -7
                break
            client.ok(client.transaction_info(branch, BEGIN))
        while number == 2 and bench.broker.client_limits.branches_of(USER) < allowed:
            client.ok(client.transaction_info(xid(b"rest"), BEGIN))
    other = bench.connect(user=OTHER)
    other.ok(other.transaction_info(xid(), BEGIN))


def test_branches_that_others_ended_are_forgotten() -> None:
    bench = OpenWireBench()
    client, other = bench.connect(), bench.connect()
    transactions = OpenWireTransactions(bench.broker, "one", "eve")
    for number in range(250):
        branch = XATransactionId(1, b"%d" % number, b"b")
        transactions.begin(branch)
        other.ok(other.transaction_info(branch, COMMIT_ONE_PHASE))
    assert len(transactions.open()) <= 100
    client.drop()
