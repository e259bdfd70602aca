"""Local transactions: sends and acknowledgements that happen together or not at all."""

# ACK-5

from delosmq.wire.openwire.commands import (
    BEGIN,
    COMMIT_ONE_PHASE,
    COMMIT_TWO_PHASE,
    END,
    FORGET,
    INDIVIDUAL_ACK,
    PREPARE,
    ROLLBACK,
    ConnectionError,
    Response,
)
from delosmq.wire.openwire.structures import ConnectionId, LocalTransactionId, Structure
from tests.sessions.openwire.support import ROLLED_BACK, Client, OpenWireBench, code_of, queue, topic

A = queue("a")
B = queue("b")


def commit(client: Client, transaction: LocalTransactionId) -> None:
    client.ok(client.transaction_info(transaction, COMMIT_ONE_PHASE))


def rollback(client: Client, transaction: LocalTransactionId) -> None:
    client.ok(client.transaction_info(transaction, ROLLBACK))


def connection_errors(received: list[Structure]) -> list[str]:
    return [code_of(one.exception) for one in received if isinstance(one, ConnectionError) and one.exception]


# -- sends -------------------------------------------------------------------------------------------------------------


def test_what_a_transaction_sends_comes_with_its_commit_in_order() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(A)
    transaction = client.begin()
    client.publish(A, "one", transaction)
    client.publish(A, "outside")
    client.publish(A, "two", transaction)
    assert reader.bodies() == "outside"
    commit(client, transaction)
    assert reader.bodies() == "one two"
    assert all(one.message is not None and one.message.transaction_id is None for one in reader.got)


def test_what_was_rolled_back_was_never_sent() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    transaction = client.begin()
    client.publish(A, "gone", transaction)
    rollback(client, transaction)
    assert bench.queue("a").message_count == 0
    assert bench.broker.transactions.open == {}


def test_beginning_is_answered_only_when_that_is_asked_for() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    transaction = client.begin()
    assert client.take() == []
    # Again is nothing: a failover replays it.
    client.ok(client.transaction_info(transaction, BEGIN))
    assert len(bench.broker.transactions.open) == 1


def test_sends_and_acknowledgements_happen_together() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    client.publish(A, "in")
    reader = client.consume(A)
    reader.take()
    transaction = client.begin()
    reader.done(0, transaction=transaction)
    client.publish(B, "out", transaction)
    assert (bench.queue("a").message_count, bench.queue("b").message_count) == (1, 0)
    commit(client, transaction)
    assert (bench.queue("a").message_count, bench.queue("b").message_count) == (0, 1)


def test_several_transactions_are_open_side_by_side() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    first, second = client.begin(), client.begin()
    client.publish(A, "0", first)
    client.publish(A, "1", second)
    commit(client, second)
    rollback(client, first)
    assert bench.connect().consume(A).bodies() == "1"


def test_a_composite_send_belongs_to_its_transaction() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    transaction = client.begin()
    client.publish(queue("a,b"), "x", transaction)
    assert bench.queue("a").message_count == 0
    commit(client, transaction)
    assert (bench.queue("a").message_count, bench.queue("b").message_count) == (1, 1)


def test_topics_take_part() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(topic("t"))
    transaction = client.begin()
    client.publish(topic("t"), "x", transaction)
    assert reader.bodies() == ""
    commit(client, transaction)
    assert reader.bodies() == "x"


def test_the_answer_to_a_commit_waits_for_the_disk() -> None:
    bench = OpenWireBench(hold=True)
    client = bench.connect()
    transaction = client.begin()
    client.tell(client.text(A, "x", transaction))
    assert client.ask(client.transaction_info(transaction, COMMIT_ONE_PHASE)) == []
    bench.sync()
    bench.tick()
    (answer,) = client.take()
    assert type(answer) is Response


def test_a_lost_connection_s_transactions_are_rolled_back() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    client.publish(A, "x", client.begin())
    client.drop()
    assert bench.broker.transactions.open == {}
    assert bench.queue("a").message_count == 0


# -- unknown ones ------------------------------------------------------------------------------------------------------


def test_a_transaction_that_was_never_begun_is_an_error() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    stranger = LocalTransactionId(99, ConnectionId(client.name))
    for kind in (COMMIT_ONE_PHASE, COMMIT_TWO_PHASE, ROLLBACK):
        assert code_of(client.refused(client.transaction_info(stranger, kind))) == "JMSException DMQ5270"
    assert code_of(client.refused(client.text(A, "x", stranger))) == "JMSException DMQ5270"
    assert bench.broker.queues == {}


def test_a_transaction_ends_once() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    transaction = client.begin()
    commit(client, transaction)
    assert code_of(client.refused(client.transaction_info(transaction, ROLLBACK))) == "JMSException DMQ5270"


def test_another_connection_s_transaction_is_unknown() -> None:
    bench = OpenWireBench()
    transaction = bench.connect().begin()
    client = bench.connect()
    info = client.transaction_info(transaction, COMMIT_ONE_PHASE)
    assert code_of(client.refused(info)) == "JMSException DMQ5270"


def test_a_command_that_does_not_exist_is_an_error() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    transaction = client.begin()
    for kind in (8, 99):
        assert code_of(client.refused(client.transaction_info(transaction, kind))) == "JMSException DMQ5271"
    assert code_of(client.refused(client.transaction_info(None, BEGIN))) == "JMSException DMQ5234"
    commit(client, transaction)


def test_a_local_transaction_is_no_branch() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    transaction = client.begin()
    client.publish(A, "x", transaction)
    client.ok(client.transaction_info(transaction, END))
    for kind in (PREPARE, FORGET):
        exception = client.refused(client.transaction_info(transaction, kind))
        assert code_of(exception) == "XAException DMQ5272"
        assert (exception.message or "").endswith("xaErrorCode:-6")
    commit(client, transaction)
    assert bench.queue("a").message_count == 1


def test_two_phases_commit_a_local_transaction_too() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    transaction = client.begin()
    client.publish(A, "x", transaction)
    client.ok(client.transaction_info(transaction, COMMIT_TWO_PHASE))
    assert bench.queue("a").message_count == 1


# -- doomed ------------------------------------------------------------------------------------------------------------


def test_a_send_that_failed_without_an_answer_dooms_its_transaction() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    transaction = client.begin()
    client.publish(A, "fine", transaction)
    client.tell(client.text(queue(""), "bad", transaction))
    assert connection_errors(client.take()) == ["InvalidDestinationException DMQ5240"]
    exception = client.refused(client.transaction_info(transaction, COMMIT_ONE_PHASE))
    assert exception.class_name == ROLLED_BACK
    assert "DMQ5273" in (exception.message or "")
    assert bench.queue("a").message_count == 0
    assert bench.broker.transactions.open == {}


def test_a_send_that_failed_with_an_answer_dooms_nothing() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    transaction = client.begin()
    client.refused(client.text(queue(""), "bad", transaction))
    client.publish(A, "fine", transaction)
    commit(client, transaction)
    assert bench.queue("a").message_count == 1


def test_an_acknowledgement_that_failed_dooms_its_transaction() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    client.publish(A, "0 1")
    reader, other = client.consume(A, 1), client.consume(A, 1)
    reader.take()
    other.take()
    transaction = client.begin()
    reader.done(0, transaction=transaction)
    client.tell(reader.ack(2, other.message_id(0), first=0, transaction=transaction))
    assert connection_errors(client.take()) == ["JMSException DMQ5260"]
    exception = client.refused(client.transaction_info(transaction, COMMIT_ONE_PHASE))
    assert exception.class_name == ROLLED_BACK
    assert bench.queue("a").message_count == 2


def test_what_a_doomed_commit_gives_back_stays_with_its_consumers() -> None:
    """The client delivers it again by itself, as after a rollback that it asked for."""
    bench = OpenWireBench()
    client = bench.connect()
    client.publish(A, "0 1")
    reader = client.consume(A, 1)
    reader.take()
    transaction = client.begin()
    reader.done(0, transaction=transaction)
    client.tell(client.text(queue(""), "bad", transaction))
    client.refused(client.transaction_info(transaction, COMMIT_ONE_PHASE))
    assert reader.bodies() == ""
    reader.done(0)
    assert reader.bodies() == "1"


def test_a_doomed_transaction_may_be_rolled_back() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    client.publish(A, "0")
    reader = client.consume(A, 1)
    reader.take()
    transaction = client.begin()
    client.ok(reader.ack(INDIVIDUAL_ACK, 0, transaction=transaction))
    client.tell(client.text(queue(""), "bad", transaction))
    rollback(client, transaction)
    reader.done(0)
    assert bench.queue("a").message_count == 0


def test_open_transactions_are_bounded() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    for _ in range(100):
        client.begin()
    info = client.transaction_info(LocalTransactionId(9_999, ConnectionId(client.name)), BEGIN)
    assert code_of(client.refused(info)) == "ResourceAllocationException DMQ2662"
