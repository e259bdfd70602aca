"""Prefetch as ActiveMQ Classic counts it."""

import pytest

from delosmq.engine.queues.credit import PrefetchCredit
from delosmq.model.errors import MisuseError
from tests.engine.dispatch_support import Field


def taken(credit: PrefetchCredit) -> int:
    """Takes all it gives."""
    count = 0
    while credit.has_room():
        credit.taken(1)
        count += 1
        assert count < 100
    return count


# ACK-1
def test_full_when_dispatched_less_extension_reaches_the_prefetch():
    credit = PrefetchCredit(3)
    assert taken(credit) == 3
    credit.extended(2)
    assert taken(credit) == 2
    assert (credit.dispatched, credit.extension) == (5, 2)


# ACK-1
def test_an_acknowledgement_outside_a_transaction_shrinks_the_extension_to_none_at_least():
    credit = PrefetchCredit(2)
    taken(credit)
    credit.extended(1)
    taken(credit)
    credit.settled(1)
    assert (credit.dispatched, credit.extension, credit.has_room()) == (2, 0, False)
    credit.settled(1)
    assert (credit.dispatched, credit.extension, credit.has_room()) == (1, 0, True)


# ACK-1, ACK-5
def test_a_range_in_a_transaction_leaves_the_extension_until_the_commit():
    credit = PrefetchCredit(2)
    taken(credit)
    credit.extended(2)
    assert taken(credit) == 2
    for _ in range(4):
        credit.promised(1)
    assert (credit.dispatched, credit.extension) == (4, 2)
    for _ in range(4):
        credit.committed(1)
    assert (credit.dispatched, credit.extension) == (0, 0)


# ACK-1, ACK-5
def test_single_acknowledgements_in_a_transaction_extend_and_shrink_at_its_end():
    credit = PrefetchCredit(2, singly=True)
    taken(credit)
    credit.promised(1)
    credit.promised(1)
    assert taken(credit) == 2
    credit.rolled_back(1)
    credit.rolled_back(1)
    assert (credit.dispatched, credit.extension, credit.has_room()) == (4, 0, False)


# ACK-4
def test_a_range_of_poison_shrinks_the_extension_once():
    credit = PrefetchCredit(5)
    taken(credit)
    credit.extended(3)
    credit.begin_range()
    for _ in range(3):
        credit.settled(1)
    credit.end_range()
    assert (credit.dispatched, credit.extension) == (2, 2)


# ACK-2
def test_without_prefetch_a_pull_gives_as_many_as_it_asks_for():
    credit = PrefetchCredit(0)
    assert not credit.has_room()
    credit.pulled(2)
    assert taken(credit) == 2
    credit.settled(1)
    credit.extended(1)
    assert not credit.has_room()
    credit.pulled(1)
    credit.pulled(1)
    assert taken(credit) == 1


# ACK-2
def test_a_pull_of_a_waiting_consumer_is_served_by_the_next_message():
    field = Field()
    peer = field.peer(PrefetchCredit(0))
    field.put("A B")
    assert peer.got == ""
    field.broker.consumers.pull(peer.consumer, 1)
    field.run()
    assert peer.got == "A"
    peer.ack("A")
    field.run()
    assert peer.got == "A"


# ACK-1
def test_delivered_lets_more_go_out_and_has_to_name_what_is_held():
    field = Field()
    peer = field.peer(PrefetchCredit(2))
    field.put("A B C D E")
    assert peer.got == "A B"
    last = peer.port.slots[1].sequence
    field.broker.consumers.extend(peer.consumer, last, 2)
    field.run()
    assert peer.got == "A B C D"
    with pytest.raises(MisuseError, match="not in delivery to consumer"):
        field.broker.consumers.extend(peer.consumer, last + 1000, 1)
    assert field.broker.consumers.acknowledge_through(peer.consumer, last)
    field.run()
    assert peer.got == "A B C D"  # two less in delivery, two less of extension
    peer.ack("C")
    field.run()
    assert peer.got == "A B C D E"


# ACK-5
def test_what_an_open_transaction_acknowledged_can_still_be_reported_as_delivered():
    field = Field()
    peer = field.peer(PrefetchCredit(1))
    field.put("A B")
    slot = peer.port.slots[0]
    peer.consumer.promise(slot, 7)
    field.run()
    assert peer.got == "A"
    field.broker.consumers.extend(peer.consumer, slot.sequence, 1)
    field.run()
    assert peer.got == "A B"


def test_room_is_what_still_goes_out():
    credit = PrefetchCredit(3)
    taken(credit)
    assert credit.room() == 0
    credit.extended(2)
    assert credit.room() == 2
    credit.resize(1)
    assert credit.room() == 0
    pulling = PrefetchCredit(0)
    assert pulling.room() == 0
    pulling.pulled(2)
    pulling.taken(1)
    assert pulling.room() == 1
