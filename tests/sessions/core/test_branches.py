"""Branches of distributed transactions over CORE, their states and errors."""

from delosmq.model.errors import XAER_DUPID, XAER_NOTA, XAER_PROTO
from delosmq.model.message import ANYCAST
from delosmq.model.settings import QueueSettings
from delosmq.wire.core.message_packets import SessionReceiveMessage
from delosmq.wire.core.packet import CoreXid
from delosmq.wire.core.session_packets import (
    XaCommit,
    XaEnd,
    XaFailed,
    XaForget,
    XaGetTimeout,
    XaGetTimeoutResponse,
    XaInDoubtXids,
    XaInDoubtXidsResponse,
    XaJoin,
    XaPacket,
    XaPrepare,
    XaResponse,
    XaResume,
    XaRollback,
    XaSetTimeout,
    XaSetTimeoutResponse,
    XaStart,
    XaSuspend,
)
from tests.sessions.core.support import CoreBench, Session

ORDERS = (QueueSettings("orders", "orders", ANYCAST),)
ONE = CoreXid(7, b"branch", b"global")


def opened() -> Session:
    return CoreBench(queues=ORDERS).session(xa=True)


def told(session: Session, packet: XaPacket | XaSuspend, xid: CoreXid = ONE) -> int:
    """The code of the answer: 0 for success, else that of the XAException."""
    if isinstance(packet, XaPacket):
        packet.xid = xid
    answer = session.ask(packet, XaResponse)
    assert answer.error == (answer.response_code != 0)
    return answer.response_code


def ended(session: Session, bodies: str) -> None:
    """A branch with messages, in which nothing more is done."""
    assert told(session, XaStart()) == 0
    session.send("orders", bodies)
    assert told(session, XaEnd()) == 0


def in_doubt(session: Session) -> list[tuple[int, bytes, bytes]]:
    answer = session.ask(XaInDoubtXids(), XaInDoubtXidsResponse)
    return [xid.key() for xid in answer.xids]


def test_two_phases() -> None:
    session = opened()
    ended(session, "a b")
    assert told(session, XaPrepare()) == 0
    assert session.bench.queue("orders").message_count == 0
    assert in_doubt(session) == [ONE.key()]
    assert told(session, XaCommit()) == 0
    assert session.bench.queue("orders").message_count == 2
    assert told(session, XaCommit()) == XAER_NOTA


def test_one_phase() -> None:
    session = opened()
    ended(session, "a")
    packet = XaCommit()
    packet.one_phase = True
    assert told(session, packet) == 0
    assert session.bench.queue("orders").message_count == 1


def test_a_rolled_back_branch_gives_back_what_it_acknowledged() -> None:
    session = opened()
    session.send("orders", "a")  # outside of any branch
    reader = session.consumer("orders")
    told(session, XaStart())
    session.start()
    assert reader.bodies() == "a"
    session.tell(reader.ack(0))
    told(session, XaEnd())
    packet = XaRollback()
    packet.xid = ONE
    session.tell(packet)
    answer = session.take()
    assert [type(one) for one in answer] == [XaResponse, SessionReceiveMessage]
    session.client.keep(answer[1:])
    assert reader.bodies() == "ax2"


def test_suspended_resumed_and_joined() -> None:
    session = opened()
    told(session, XaStart())
    assert told(session, XaSuspend()) == 0
    assert told(session, XaSuspend()) == XAER_PROTO
    assert told(session, XaResume()) == 0
    session.send("orders", "a")
    assert told(session, XaEnd()) == 0
    other = session.client.open(xa=True)
    assert told(other, XaJoin()) == 0
    other.send("orders", "b")
    assert told(other, XaEnd()) == 0
    assert told(other, XaPrepare()) == 0
    assert told(other, XaCommit()) == 0
    assert session.bench.queue("orders").message_count == 2


def test_errors_have_the_codes_of_xa() -> None:
    session = opened()
    assert told(session, XaEnd()) == XAER_NOTA
    assert told(session, XaForget()) == XAER_NOTA
    told(session, XaStart())
    assert told(session, XaPrepare()) == XAER_PROTO
    other = session.client.open(xa=True)
    assert told(other, XaStart()) == XAER_DUPID
    assert told(other, XaStart(), CoreXid(1, bytes(65), b"x")) == XAER_PROTO


def test_a_branch_that_is_open_when_another_starts_is_rolled_back() -> None:
    session = opened()
    told(session, XaStart())
    session.send("orders", "a")
    assert told(session, XaStart(), CoreXid(7, b"other", b"global")) == 0
    assert told(session, XaEnd()) == XAER_NOTA


def test_a_branch_outlives_the_refusal_to_resume_it_while_it_runs() -> None:
    session = opened()
    told(session, XaStart())
    session.send("orders", "a")
    assert told(session, XaResume()) == XAER_PROTO
    assert told(session, XaEnd()) == 0
    packet = XaCommit()
    packet.one_phase = True
    assert told(session, packet) == 0
    assert session.bench.queue("orders").message_count == 1


def test_a_branch_outlives_the_refusal_to_work_in_another_one() -> None:
    session = opened()
    told(session, XaStart())
    session.send("orders", "a")
    assert told(session, XaJoin(), CoreXid(7, b"unknown", b"global")) == XAER_NOTA
    assert told(session, XaResume(), CoreXid(7, b"unknown", b"global")) == XAER_PROTO
    assert told(session, XaEnd()) == 0


def test_prepared_branches_outlive_a_lost_connection_and_others_do_not() -> None:
    session = opened()
    ended(session, "a")
    told(session, XaPrepare())
    told(session, XaStart(), CoreXid(7, b"other", b"global"))
    session.send("orders", "b")
    bench = session.bench
    session.client.leave()
    other = bench.session(xa=True)
    assert in_doubt(other) == [ONE.key()]
    assert len(bench.broker.branches.prepared()) == len(bench.broker.transactions.branches) == 1
    assert told(other, XaCommit()) == 0
    assert bench.queue("orders").message_count == 1


def test_a_closed_session_leaves_its_branches() -> None:
    session = opened()
    ended(session, "a")
    session.close()
    other = session.client.open(xa=True)
    assert told(other, XaPrepare()) == 0


def test_a_branch_that_its_client_lost_can_only_be_rolled_back() -> None:
    session = opened()
    ended(session, "a")
    packet = XaFailed()
    packet.xid = ONE
    session.tell(packet)
    assert session.take() == []
    assert told(session, XaPrepare()) != 0
    assert session.bench.queue("orders").message_count == 0


def test_the_timeout_is_the_brokers() -> None:
    session = opened()
    assert not session.ask(XaSetTimeout(5), XaSetTimeoutResponse).ok
    assert session.ask(XaGetTimeout(), XaGetTimeoutResponse).timeout_seconds == 300


def test_a_timeout_that_is_longer_than_an_answer_can_say_is_told_as_the_longest() -> None:
    session = opened()
    session.bench.broker.branches.timeout_ms = 2**63 - 1
    assert session.ask(XaGetTimeout(), XaGetTimeoutResponse).timeout_seconds == 2**31 - 1
