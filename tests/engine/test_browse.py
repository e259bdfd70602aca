"""Readers that take nothing: browsers, and consumers of non-destructive queues."""

import pytest

from delosmq.engine.dispatch.dispatcher import WORK_PER_QUEUE_AND_TICK
from delosmq.engine.queues.consumer import ConsumerOptions
from delosmq.engine.queues.credit import Credit
from tests.engine.dispatch_support import CLASSIC, Field
from tests.engine.support import Bench, Collector, anycast, stood_on


# EXCL-3
def test_a_browser_sees_everything_and_consumes_nothing():
    field = Field()
    field.put("1 2", priority=4)
    field.put("3", priority=9)
    browser = field.peer(browser=True)
    field.run()
    assert (browser.got, browser.port.ends, field.waiting) == ("3 1 2", 1, "3 1 2")
    assert all(slot.borrowed for slot in browser.port.slots)
    consumer = field.peer()
    field.run()
    assert consumer.got == "3 1 2"


# EXCL-3
def test_a_browser_sees_what_is_in_delivery_to_others():
    field = Field()
    consumers = [field.peer(2), field.peer(1)]
    field.put("1 2 3 4 5")
    assert [peer.got for peer in consumers] == ["1 3", "2"]
    browser = field.peer(browser=True)
    field.run()
    assert (browser.got, browser.port.ends) == ("1 2 3 4 5", 1)


# EXCL-3
def test_a_browser_of_an_empty_queue_ends_at_once():
    field = Field()
    browser = field.peer(browser=True)
    field.run()
    assert (browser.got, browser.port.ends) == ("", 1)
    field.put("1")
    assert (browser.got, browser.port.ends) == ("", 1)


# EXCL-3
def test_a_browser_stays_within_its_credit():
    field = Field()
    field.put("1 2 3")
    browser = field.peer(2, browser=True)
    field.run()
    assert (browser.got, browser.port.ends) == ("1 2", 0)
    browser.ack("1")
    field.run()
    assert (browser.got, browser.port.ends) == ("1 2 3", 0)
    browser.reject("2")
    field.run()
    assert (browser.port.ends, field.waiting) == (1, "1 2 3")


# EXCL-3
def test_what_moves_while_a_browser_waits_is_seen_once():
    field = Field()
    consumer = field.peer(2)
    field.put("1 2 3 4")
    browser = field.peer(1, browser=True)
    field.run()
    assert browser.got == "1"
    consumer.ack("1")  # 3 goes out, behind the back of the browser
    consumer.reject("2")
    field.put("5")
    for body in ("1", "2", "3", "4", "5"):
        if body in browser.got.split():
            browser.ack(body)
        field.run()
    assert sorted(browser.got.split()) == ["1", "2", "3", "4", "5"]
    browser.ack(browser.got.split()[-1])
    field.run()
    assert browser.port.ends == 1


# EXCL-3
def test_what_came_back_after_it_was_seen_in_delivery_is_not_seen_again():
    field = Field()
    consumer = field.peer(2)
    field.put("1 2 3 4")
    browser = field.peer(3, browser=True)
    field.run()
    consumer.close()
    browser.ack("1")
    field.run()
    assert browser.got == "1 2 3 4"
    browser.ack("2")
    field.run()
    assert (browser.got, browser.port.ends) == ("1 2 3 4", 1)


# EXCL-3
def test_what_is_gone_when_a_browser_comes_to_it_is_not_seen():
    field = Field()
    consumer = field.peer(3)
    field.put("1 2 3 4")
    browser = field.peer(1, browser=True)
    field.run()
    consumer.ack("2")
    browser.ack("1")
    field.run()
    assert browser.got == "1 3"


# EXCL-3
def test_the_selector_of_a_browser_counts():
    field = Field()
    field.peer(1)
    field.put("1", user="red")
    field.put("2", user="blue")
    field.put("3", user="red")
    browser = field.peer(browser=True, selector="JMSXUserID = 'red'")
    field.run()
    assert (browser.got, browser.port.ends) == ("1 3", 1)


# EXCL-3
def test_a_classic_browser_sees_as_much_as_its_address_says():
    for page, seen in ((400, 400), (-1, 450)):
        field = Field(dispatch_profile=CLASSIC, max_browse_page_size=page)
        field.put(" ".join(str(k) for k in range(450)))
        browser = field.peer(browser=True)
        field.run()
        assert (len(browser.port.slots), browser.port.ends) == (seen, 1)


# EXCL-3
def test_an_artemis_browser_sees_all_over_several_ticks():
    field = Field()
    consumer = field.peer(1000)
    field.put(" ".join(str(k) for k in range(3000)))
    assert len(consumer.port.slots) == 1000
    browser = field.peer(browser=True)
    assert field.broker.tick()
    assert len(browser.port.slots) < 1000
    field.run()
    assert browser.got == " ".join(str(k) for k in range(3000))
    assert browser.port.ends == 1
    assert WORK_PER_QUEUE_AND_TICK < 1000


def test_an_answer_to_a_borrowed_message_is_true_once():
    field = Field()
    field.put("1 2")
    browser = field.peer(browser=True)
    field.run()
    sequence = browser.port.slots[1].sequence
    assert field.broker.consumers.acknowledge_through(browser.consumer, sequence)
    assert not field.broker.consumers.acknowledge_through(browser.consumer, sequence)
    assert not field.broker.consumers.acknowledge(browser.consumer, sequence)
    assert not field.broker.consumers.reject_through(browser.consumer, sequence)
    assert field.broker.queues["q"].counters.acknowledged == 0
    assert field.waiting == "1 2"


def test_a_browser_that_leaves_returns_nothing():
    field = Field()
    field.put("1 2")
    browser = field.peer(1, browser=True)
    field.run()
    browser.close()
    queue = field.broker.queues["q"]
    assert (field.waiting, queue.delivering.count, queue.message_count) == ("1 2", 0, 2)
    assert [slot.delivery_count for slot in queue.pending.in_order()] == [0, 0]
    assert stood_on(queue) == ""


def test_a_browsed_message_tells_how_often_it_was_delivered():
    field = Field()
    consumer = field.peer(1)
    field.put("1")
    consumer.reject("1")
    consumer.close()
    browser = field.peer(browser=True)
    field.run()
    assert [slot.delivery_count for slot in browser.port.slots] == [2]


# -- non-destructive queues --------------------------------------------------------------------------------------


# EXCL-3
def test_each_consumer_of_a_non_destructive_queue_gets_everything_from_the_head():
    field = Field(queue={"non_destructive": True})
    first = field.peer()
    field.put("1 2")
    second = field.peer(1)
    field.put("3")
    assert (first.got, second.got) == ("1 2 3", "1")
    second.ack("1")
    first.ack("1")
    field.run()
    assert (second.got, field.waiting) == ("1 2", "1 2 3")
    assert first.port.ends == 0


# EXCL-3
def test_exclusivity_and_groups_do_not_matter_where_nothing_is_taken():
    field = Field(queue={"non_destructive": True}, all_consumers_exclusive_by_default=True)
    peers = [field.peer(exclusive=True), field.peer()]
    field.put("a1 a2", group="a")
    assert [peer.got for peer in peers] == ["a1 a2", "a1 a2"]


# RING-11
def test_a_ring_replaces_the_oldest_message_of_a_non_destructive_queue():
    field = Field(queue={"non_destructive": True, "ring_size": 2})
    reader = field.peer()
    for body in "123":
        field.put(body)
    reader.ack("1")
    late = field.peer()
    field.run()
    assert (reader.got, late.got, field.waiting) == ("1 2 3", "2 3", "2 3")
    assert field.broker.queues["q"].counters.replaced == 1


def test_all_can_be_acknowledged_that_a_ring_has_replaced_since():
    field = Field(queue={"non_destructive": True, "ring_size": 1})
    reader = field.peer()
    for body in "123":
        field.put(body)
    assert field.broker.consumers.acknowledge_through(reader.consumer, reader.port.slots[1].sequence)
    assert (reader.got, field.waiting) == ("1 2 3", "3")
    assert reader.consumer.loans is not None
    assert reader.consumer.loans.holds(reader.port.slots[2].sequence)
    assert not reader.consumer.loans.holds(reader.port.slots[1].sequence)


class CountedCredit(Credit):
    def __init__(self) -> None:
        self.settled_count = 0

    def has_room(self) -> bool:
        return True

    def taken(self, size_bytes: int) -> None:
        pass

    def settled(self, size_bytes: int) -> None:
        self.settled_count += 1


@pytest.mark.parametrize("how", ["answer", "answer in a transaction", "reject", "close"])
def test_very_much_that_was_lent_is_let_go_of_in_slices(how: str):
    bench = Bench(queues=(anycast("q"),))
    bench.send("q", "m " * 3_000, durable=False)
    port, credit = Collector(), CountedCredit()
    reader = bench.broker.consumers.subscribe("q", port, credit, options=ConsumerOptions(browser=True))
    bench.run()
    sequences = [slot.sequence for slot in port.slots]
    last = sequences[-1]
    if how == "close":
        bench.broker.consumers.close(reader)
    elif how == "reject":
        assert bench.broker.consumers.reject_through(reader, last)
    else:
        assert bench.broker.consumers.acknowledge_through(
            reader, last, bench.broker.transactions.begin("s") if "trans" in how else None
        )
    assert credit.settled_count == 1_000
    # Whatever is under way, it is answered.
    assert not bench.broker.consumers.acknowledge_through(reader, last)
    assert not bench.broker.consumers.acknowledge(reader, sequences[2_000])
    assert not reader.holds(last)
    bench.broker.tick()
    assert credit.settled_count == 2_000
    bench.run()
    assert credit.settled_count == 3_000
    assert bench.counts("q") == (3_000, 0, 0)
    assert all(slot.in_list is None and slot.next is None for slot in port.slots)


def test_answers_for_more_and_more_of_what_was_lent_add_up():
    bench = Bench(queues=(anycast("q"),))
    bench.send("q", "m " * 3_000, durable=False)
    port, credit = Collector(), CountedCredit()
    reader = bench.broker.consumers.subscribe("q", port, credit, options=ConsumerOptions(browser=True))
    bench.run()
    sequences = [slot.sequence for slot in port.slots]
    assert bench.broker.consumers.acknowledge(reader, sequences[2_500])
    assert bench.broker.consumers.acknowledge_through(reader, sequences[1_999])
    assert bench.broker.consumers.acknowledge_through(reader, sequences[2_499])
    assert not bench.broker.consumers.acknowledge_through(reader, sequences[2_500])
    bench.run()
    assert credit.settled_count == 2_501
    assert [reader.holds(sequence) for sequence in (sequences[2_499], sequences[2_501])] == [False, True]
