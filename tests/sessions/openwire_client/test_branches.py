"""What the client's machine keeps of branches of distributed transactions that were ended, and for how long."""

# ACK-5

import pytest

from delosmq.model.errors import TMFAIL, TMSUCCESS, XA_RBINTEGRITY, XAER_NOTA
from delosmq.sessions.client_errors import XaTransactionError
from delosmq.sessions.openwire.client.consumer import OpenWireConsumer
from delosmq.sessions.openwire.client.options import AckMode, ClientOptions, RedeliveryPolicy
from delosmq.sessions.openwire.client.session import ConsumerWish, OpenWireClientSession
from delosmq.sessions.openwire.client.transactions.xa import XaBranches
from delosmq.wire.openwire.commands import (
    BEGIN,
    COMMIT_ONE_PHASE,
    END,
    FORGET,
    PREPARE,
    RECOVER,
    ROLLBACK,
    BrokerInfo,
    DataArrayResponse,
    ExceptionResponse,
    RemoveInfo,
    Response,
    TransactionInfo,
)
from delosmq.wire.openwire.structures import BrokerId, Structure, Throwable, XATransactionId
from tests.sessions.openwire_client.support import OPTIONS
from tests.sessions.openwire_client.test_machine import QUEUE, Wire, consume
from tests.sessions.openwire_client.test_reconnecting import cut, resumed

XID = XATransactionId(7, b"global", b"branch")
OTHER = XATransactionId(7, b"global", b"other")
AT_ONCE = ClientOptions(watch_topic_advisories=False, redelivery_policy=RedeliveryPolicy(initial_redelivery_delay_ms=0))
UNKNOWN = Throwable("javax.transaction.xa.XAException", "no such branch xaErrorCode:-4")


class Branch:
    """A session in a branch, with a consumer that is closed in it when it has received a message; and another one."""

    def __init__(self, *, fault_tolerant: bool = False) -> None:
        self.wire = Wire(AT_ONCE, fault_tolerant=fault_tolerant)
        self.session = self.new_session()
        self.consumer, _ = self.session.add_consumer(ConsumerWish(QUEUE, OPTIONS))
        self.resource = resource_of(self.session)
        self.other = resource_of(self.new_session())

    def new_session(self) -> OpenWireClientSession:
        return self.wire.machine.create_session(AckMode.TRANSACTED, xa=True)

    def is_kept(self, xid: XATransactionId) -> bool:
        return self.wire.machine.ended_branches.find(xid.key()) is not None

    def work(self) -> None:
        """One message is received, and the session's part is done."""
        self.begin()
        self.resource.end(XID, TMSUCCESS)
        self.wire.take()

    def begin(self) -> None:
        self.resource.start(XID)
        self.wire.take()
        self.wire.dispatch(self.consumer)
        consume(self.consumer)
        self.wire.take()

    def ask(self, wire: Wire, answer: Response) -> list[Structure]:
        """What is said now, the last of which is answered so; all else is answered well."""
        wire.answers = False
        said = wire.take()
        *others, last = [one for one in said if isinstance(one, TransactionInfo)]
        wire.answers = True
        for other in others:
            wire.say(Response(other.command_id))
        answer.correlation_id = last.command_id
        wire.say(answer)
        return said


def resource_of(session: OpenWireClientSession) -> XaBranches:
    assert session.xa is not None
    return session.xa


def kinds(said: list[Structure]) -> list[int]:
    return [one.type for one in said if isinstance(one, TransactionInfo)]


def is_there(consumer: OpenWireConsumer) -> bool:
    """A message is there to be received, in a branch."""
    return consumer.waiting_count > 0


@pytest.mark.parametrize("committed", [True, False])
def test_a_branch_that_another_connection_has_ended_ends_here_as_well(committed: bool) -> None:
    branch = Branch()
    branch.work()
    branch.wire.machine.ended_branches.end(XID.key(), committed=committed)
    assert is_there(branch.consumer) is not committed
    assert not branch.is_kept(XID)
    branch.wire.machine.ended_branches.end(OTHER.key(), committed=True)  # of which nothing is known here


def test_the_end_of_a_branch_is_told_for_other_connections() -> None:
    branch = Branch()
    for xid, one_phase in ((XID, True), (OTHER, False)):
        branch.resource.start(xid)
        branch.resource.end(xid, TMSUCCESS)
        if one_phase:
            branch.other.commit(xid, one_phase=True)
        else:
            branch.other.rollback(xid)
        branch.wire.take()
    branch.other.commit(XID, one_phase=False)  # prepared by others
    branch.wire.take()
    assert branch.wire.told.branches == [(XID.key(), True), (OTHER.key(), False), (XID.key(), True)]


def test_a_consumer_that_was_closed_in_a_branch_ends_when_another_connection_commits_it() -> None:
    branch = Branch()
    branch.begin()
    branch.session.close_consumer(branch.consumer)
    branch.resource.end(XID, TMSUCCESS)
    assert not any(isinstance(one, RemoveInfo) for one in branch.wire.take())
    branch.wire.machine.ended_branches.end(XID.key(), committed=True)
    assert [one.object_id for one in branch.wire.take() if isinstance(one, RemoveInfo)]


def test_what_a_closed_consumer_received_in_a_branch_is_no_duplicate_after_its_rollback() -> None:
    branch = Branch(fault_tolerant=True)
    branch.work()
    branch.consumer.close()
    branch.resource.rollback(XID)
    branch.wire.take()
    _, other = branch.wire.consumer()
    branch.wire.dispatch(other, number=1)
    assert other.waiting_count == 1


@pytest.mark.parametrize("kind", [COMMIT_ONE_PHASE, ROLLBACK, PREPARE])
def test_a_branch_that_the_broker_does_not_know_is_kept_no_longer_and_not_delivered_again(kind: int) -> None:
    branch = Branch()
    branch.work()
    if kind == PREPARE:
        request = branch.other.prepare(XID)
    elif kind == ROLLBACK:
        request = branch.other.rollback(XID)
    else:
        request = branch.other.commit(XID, one_phase=True)
    assert kinds(branch.ask(branch.wire, ExceptionResponse(0, UNKNOWN))) == [kind]
    assert isinstance(request.error, XaTransactionError)
    assert request.error.error_code == XAER_NOTA
    assert not branch.is_kept(XID)
    assert not is_there(branch.consumer)


def test_a_prepared_branch_that_is_no_longer_listed_is_kept_no_longer() -> None:
    branch = Branch()
    branch.work()
    branch.other.prepare(XID)
    branch.wire.take()
    branch.other.recover()
    assert kinds(branch.ask(branch.wire, DataArrayResponse(0, [XID]))) == [RECOVER]
    assert branch.is_kept(XID)
    branch.other.recover()
    branch.ask(branch.wire, DataArrayResponse(0, []))
    assert not branch.is_kept(XID)
    assert not is_there(branch.consumer)


def test_a_branch_that_is_not_prepared_is_never_listed_and_kept() -> None:
    branch = Branch()
    branch.work()
    branch.other.recover()
    branch.other.prepare(XID)
    branch.wire.take()  # the list is from before
    assert branch.is_kept(XID)


def test_a_branch_that_is_forgotten_ends_what_waited_for_it() -> None:
    branch = Branch()
    branch.begin()
    branch.session.close_consumer(branch.consumer)
    branch.resource.end(XID, TMSUCCESS)
    branch.wire.take()
    branch.other.forget(XID)
    said = branch.wire.take()
    assert kinds(said) == [FORGET]
    assert any(isinstance(one, RemoveInfo) for one in [*said, *branch.wire.take()])


def test_a_branch_whose_sessions_are_closed_can_only_be_rolled_back_when_the_connection_breaks() -> None:
    branch = Branch(fault_tolerant=True)
    branch.work()
    branch.wire.machine.close_session(branch.session)
    for number, session in list(branch.wire.machine.sessions.items()):
        branch.wire.machine.close_session(session)
        assert number not in branch.wire.machine.sessions
    branch.wire.take()
    cut(branch.wire)
    resumed(branch.wire)
    late = resource_of(branch.new_session())
    with pytest.raises(XaTransactionError, match="roll it back") as caught:
        late.commit(XID, one_phase=True)
    assert caught.value.error_code == XA_RBINTEGRITY


def test_a_branch_that_was_lost_with_its_connection_is_rolled_back_already() -> None:
    branch = Branch(fault_tolerant=True)
    branch.work()
    cut(branch.wire)
    resumed(branch.wire)
    request = branch.other.rollback(XID)
    assert kinds(branch.ask(branch.wire, ExceptionResponse(0, UNKNOWN))) == [ROLLBACK]
    assert request.error is None
    assert not branch.is_kept(XID)


@pytest.mark.parametrize("whole", [True, False], ids=["connection", "session"])
def test_a_session_that_is_closed_in_a_branch_ends_it_before_it_rolls_it_back(whole: bool) -> None:
    branch = Branch()
    branch.begin()
    if whole:
        branch.wire.machine.close()
    else:
        branch.wire.machine.close_session(branch.session)
    said: list[Structure] = []
    while more := branch.wire.take():
        said += more
    assert kinds(said) == [END, ROLLBACK]
    assert not branch.is_kept(XID)


def test_what_another_session_has_received_in_a_branch_comes_again_when_this_one_is_closed_in_it() -> None:
    branch = Branch()
    branch.work()
    second = branch.new_session()
    resource_of(second).start(XID)
    branch.wire.take()
    branch.wire.machine.close_session(second)
    branch.wire.take()
    assert is_there(branch.consumer)


def test_a_session_that_is_closed_in_a_branch_without_a_connection_waits_for_none() -> None:
    branch = Branch(fault_tolerant=True)
    branch.work()
    second = branch.new_session()
    third = branch.new_session()
    for one in (second, third):
        resource_of(one).start(XID)
    branch.wire.take()
    cut(branch.wire)
    assert branch.wire.machine.close_session(second).done
    # What the third one does in it must not be committed alone.
    assert kinds(resumed(branch.wire)) == [BEGIN, ROLLBACK]
    assert not branch.is_kept(XID)


def test_a_branch_that_was_ended_as_failed_stays_so() -> None:
    branch = Branch()
    branch.begin()
    branch.resource.end(XID, TMFAIL)
    branch.wire.take()
    with pytest.raises(XaTransactionError):
        branch.other.prepare(XID)
    branch.other.rollback(XID)
    branch.wire.take()
    assert is_there(branch.consumer)


def test_the_broker_is_known_by_its_id() -> None:
    wire = Wire()
    assert wire.machine.broker_id == ""
    info = BrokerInfo()
    info.broker_id = BrokerId("ID:broker-1")
    wire.say(info)
    assert wire.machine.broker_id == "ID:broker-1"


@pytest.mark.parametrize("prepared", [False, True])
def test_what_was_received_in_an_ended_branch_comes_again_after_a_break_and_is_no_duplicate(prepared: bool) -> None:
    branch = Branch(fault_tolerant=True)
    branch.work()
    if prepared:
        branch.resource.prepare(XID)
        branch.wire.take()
    cut(branch.wire)
    resumed(branch.wire)
    branch.wire.dispatch(branch.consumer, number=1, redelivered=1)
    assert branch.wire.acks() == []
    assert branch.consumer.waiting_count == 1
