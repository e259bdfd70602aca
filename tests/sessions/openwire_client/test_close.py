"""The end of a connection with many sessions."""

from delosmq.sessions.openwire.client.options import AckMode
from delosmq.wire.openwire.commands import RemoveInfo, ShutdownInfo, TransactionInfo
from tests.sessions.openwire_client.test_machine import Wire

MANY = 3_000


def test_a_connection_with_thousands_of_sessions_is_closed() -> None:
    wire = Wire()
    for _ in range(MANY):
        wire.machine.create_session(AckMode.AUTO)
    wire.take()
    wire.machine.close()
    assert [type(frame) for frame in wire.take()] == [RemoveInfo, ShutdownInfo]
    assert wire.told.ends == [None]


def test_transactions_are_rolled_back_before_it_ends() -> None:
    wire = Wire()
    for number in range(4):
        session = wire.machine.create_session(AckMode.TRANSACTED if number % 2 else AckMode.AUTO)
        if number % 2:
            session.transaction.begin()
    wire.take()
    wire.machine.close()
    said = [type(frame) for frame in wire.take()]
    assert said == [TransactionInfo, TransactionInfo, RemoveInfo, ShutdownInfo]
