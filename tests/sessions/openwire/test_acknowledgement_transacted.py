"""What acknowledgements in transactions do, and what becomes of them at the end."""

# ACK-5

import pytest

from delosmq.wire.openwire.commands import (
    COMMIT_ONE_PHASE,
    DELIVERED_ACK,
    EXPIRED_ACK,
    INDIVIDUAL_ACK,
    POISON_ACK,
    REDELIVERED_ACK,
    ROLLBACK,
    STANDARD_ACK,
)
from delosmq.wire.openwire.structures import LocalTransactionId
from tests.sessions.openwire.support import Client, OpenWireBench, Reader, code_of, queue, topic

A = queue("a")
T = topic("t")
ENDS = (COMMIT_ONE_PHASE, ROLLBACK)


class Case:
    """A consumer of a queue with messages, and a transaction."""

    def __init__(self, prefetch: int, bodies: str = "0 1 2 3 4 5 6 7 8 9") -> None:
        self.bench = OpenWireBench()
        self.client: Client = self.bench.connect()
        self.client.publish(A, bodies)
        self.reader: Reader = self.client.consume(A, prefetch)
        self.reader.take()
        self.transaction: LocalTransactionId = self.client.begin()

    @property
    def left(self) -> int:
        return self.bench.queue("a").message_count

    def ack(self, kind: int, last: int, first: int | None = None) -> None:
        count = 1 if first is None else last - first + 1
        self.client.ok(self.reader.ack(kind, last, first=first, count=count, transaction=self.transaction))

    def end(self, kind: int) -> None:
        self.client.ok(self.client.transaction_info(self.transaction, kind))


def test_what_is_acknowledged_in_a_transaction_stays_till_its_commit() -> None:
    case = Case(10)
    case.ack(STANDARD_ACK, 2, 0)
    assert case.left == 10
    case.end(COMMIT_ONE_PHASE)
    assert case.left == 7


def test_the_count_of_a_range_is_not_looked_at_in_a_transaction() -> None:
    case = Case(10)
    case.client.ok(case.reader.ack(STANDARD_ACK, 2, first=0, count=99, transaction=case.transaction))
    case.end(COMMIT_ONE_PHASE)
    assert case.left == 7


def test_first_null_is_the_oldest_in_a_transaction_too() -> None:
    case = Case(10)
    case.ack(STANDARD_ACK, 2)
    case.end(COMMIT_ONE_PHASE)
    assert case.left == 7


def test_a_range_must_have_been_dispatched_in_a_transaction_too() -> None:
    case = Case(2)
    other = case.bench.connect().consume(A, 1)
    other.take()
    wrong = case.reader.ack(STANDARD_ACK, other.message_id(0), first=0, transaction=case.transaction)
    assert code_of(case.client.refused(wrong)) == "JMSException DMQ5260"


def test_standard_in_a_transaction_makes_no_room() -> None:
    case = Case(4)
    case.ack(STANDARD_ACK, 1, 0)
    assert case.reader.bodies() == ""


def test_a_transacted_session_reads_on_by_delivered_and_has_room_again_after_its_commit() -> None:
    case = Case(4)
    case.ack(DELIVERED_ACK, 1, 0)
    assert case.reader.bodies() == "4 5"
    # 6 in delivery, extension 2. The commit takes 2 and 2.
    case.ack(STANDARD_ACK, 1, 0)
    assert case.reader.bodies() == ""
    case.end(COMMIT_ONE_PHASE)
    assert case.reader.bodies() == ""
    case.client.ok(case.reader.ack(STANDARD_ACK, 2, first=2))
    assert case.reader.bodies() == "6"


def test_a_commit_of_what_was_never_called_delivered_makes_room_for_as_many() -> None:
    case = Case(4)
    case.ack(STANDARD_ACK, 1, 0)
    case.end(COMMIT_ONE_PHASE)
    assert case.reader.bodies() == "4 5"


def test_individual_in_a_transaction_makes_room_at_once() -> None:
    case = Case(3)
    case.ack(INDIVIDUAL_ACK, 0)
    assert case.reader.bodies() == "3"
    case.ack(INDIVIDUAL_ACK, 1)
    assert case.reader.bodies() == "4"
    # 5 in delivery and extension 2 become 3 and 0.
    case.end(COMMIT_ONE_PHASE)
    assert case.reader.bodies() == ""
    assert case.left == 8


def test_standard_after_individual_makes_no_room() -> None:
    case = Case(3)
    case.ack(INDIVIDUAL_ACK, 0)
    assert case.reader.bodies() == "3"
    case.ack(STANDARD_ACK, 1, 1)
    assert case.reader.bodies() == ""


def test_individual_twice_in_a_transaction_counts_once() -> None:
    case = Case(3)
    case.ack(INDIVIDUAL_ACK, 0)
    case.ack(INDIVIDUAL_ACK, 0)
    assert case.reader.bodies() == "3"
    case.end(COMMIT_ONE_PHASE)
    assert case.left == 9


def test_a_rollback_leaves_all_in_delivery_for_the_client_to_deliver_again() -> None:
    case = Case(3)
    case.ack(STANDARD_ACK, 2, 0)
    case.end(ROLLBACK)
    # Nothing is pushed again, and nothing is free for others.
    assert case.reader.bodies() == ""
    assert case.bench.connect().consume(A, 1).bodies() == "3"
    case.reader.done(0, 2)
    assert case.left == 7


def test_a_rollback_takes_back_the_room_that_individual_made() -> None:
    case = Case(3)
    case.ack(INDIVIDUAL_ACK, 0)
    assert case.reader.bodies() == "3"
    case.end(ROLLBACK)
    # 4 in delivery, extension 0.
    case.client.ok(case.reader.ack(INDIVIDUAL_ACK, 0))
    assert case.reader.bodies() == ""
    case.client.ok(case.reader.ack(INDIVIDUAL_ACK, 1))
    assert case.reader.bodies() == "4"


def test_a_rollback_shrinks_the_extension_by_each_message_of_the_transaction() -> None:
    case = Case(4)
    case.ack(DELIVERED_ACK, 1, 0)
    assert case.reader.bodies() == "4 5"
    case.ack(STANDARD_ACK, 1, 0)
    case.end(ROLLBACK)
    # 6 in delivery, extension 0: the application gets 0 and 1 again, and calls them delivered again.
    assert case.reader.bodies() == ""
    case.client.ok(case.reader.ack(DELIVERED_ACK, 1, first=0, count=2))
    assert case.reader.bodies() == ""
    case.client.ok(case.reader.ack(DELIVERED_ACK, 2, first=2))
    assert case.reader.bodies() == "6"


def test_after_a_rollback_the_same_may_be_acknowledged_in_the_next_transaction() -> None:
    case = Case(3)
    case.ack(STANDARD_ACK, 2, 0)
    case.end(ROLLBACK)
    case.client.ok(case.reader.ack(REDELIVERED_ACK, 2, first=0, count=3))
    case.transaction = case.client.begin()
    case.ack(STANDARD_ACK, 2, 0)
    case.end(COMMIT_ONE_PHASE)
    assert case.left == 7
    assert case.reader.bodies() == "3 4 5"


def test_after_a_rollback_poison_comes_outside_of_it() -> None:  # ACK-4
    case = Case(3)
    case.ack(STANDARD_ACK, 2, 0)
    case.end(ROLLBACK)
    case.client.ok(case.reader.ack(POISON_ACK, 2, first=0, count=3))
    assert case.left == 7


def test_poison_in_a_transaction_is_an_error() -> None:
    case = Case(3)
    wrong = case.reader.ack(POISON_ACK, 0, first=0, transaction=case.transaction)
    assert code_of(case.client.refused(wrong)) == "JMSException DMQ5262"
    assert case.left == 10
    topical = case.client.consume(T)
    case.client.publish(T, "x")
    topical.take()
    wrong = topical.ack(POISON_ACK, 0, first=0, transaction=case.transaction)
    assert code_of(case.client.refused(wrong)) == "JMSException DMQ5262"


@pytest.mark.parametrize("end", ENDS)
def test_what_expires_in_a_transacted_session_ends_at_once(end: int) -> None:
    """Clients send it without the transaction."""
    case = Case(3)
    case.client.ok(case.reader.ack(EXPIRED_ACK, 0, first=0))
    assert case.left == 9
    case.end(end)
    assert case.left == 9


def test_messages_that_one_transaction_acknowledges_are_out_of_reach_of_another() -> None:
    case = Case(3)
    case.ack(STANDARD_ACK, 0, 0)
    second = case.client.begin()
    case.client.ok(case.reader.ack(INDIVIDUAL_ACK, 0, transaction=second))
    case.client.ok(case.client.transaction_info(second, COMMIT_ONE_PHASE))
    assert case.left == 10
    case.end(COMMIT_ONE_PHASE)
    assert case.left == 9


def test_what_a_transaction_acknowledges_is_not_acknowledged_outside_of_it() -> None:
    case = Case(3)
    case.ack(STANDARD_ACK, 0, 0)
    assert code_of(case.client.refused(case.reader.ack(STANDARD_ACK, 0, first=0))) == "JMSException DMQ5260"
    case.end(COMMIT_ONE_PHASE)
    assert case.left == 9


@pytest.mark.parametrize("end", ENDS)
def test_a_topic_s_messages_count_when_their_transaction_ends(end: int) -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(T, 2)
    client.publish(T, "0 1 2 3")
    reader.take()
    transaction = client.begin()
    client.ok(reader.ack(STANDARD_ACK, 1, first=0, count=2, transaction=transaction))
    assert reader.bodies() == ""
    client.ok(client.transaction_info(transaction, end))
    if end == COMMIT_ONE_PHASE:
        assert reader.bodies() == "2 3"
    else:
        # The client has them, and acknowledges them once more.
        assert reader.bodies() == ""


def test_a_consumer_that_is_closed_before_the_commit_has_its_acknowledgements_kept() -> None:
    """As clients do that close a consumer in the midst of a transaction."""
    case = Case(3)
    case.ack(STANDARD_ACK, 1, 0)
    case.reader.close(case.reader.sequence(1))
    case.end(COMMIT_ONE_PHASE)
    assert case.left == 8
    assert case.client.consume(A, 1).bodies() == "2"


def test_a_consumer_that_is_closed_before_the_rollback_gives_back_what_it_had() -> None:
    case = Case(3, "0 1 2")
    case.ack(STANDARD_ACK, 1, 0)
    case.reader.close(case.reader.sequence(1))
    other = case.client.consume(A)
    assert other.bodies() == "2"
    case.end(ROLLBACK)
    assert other.bodies() == "0r1 1r1"
