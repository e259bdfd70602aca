"""Message by message: priorities and spilling, turns, strict order, redeliveries, waiting for consumers, fairness."""

from delosmq.engine.dispatch.dispatch_start import DispatchStart
from delosmq.engine.dispatch.dispatcher import MESSAGES_PER_QUEUE_AND_TICK, QUEUES_PER_TICK
from delosmq.engine.dispatch.rotation import DispatchBudget
from delosmq.engine.dispatch.waiting_reason import (
    BEHIND,
    EXCLUSIVE_OWNER,
    FULL,
    GROUP_OWNER,
    GROUP_SELECTOR,
    NO_CONSUMER,
    NOT_PENDING,
    NOT_STARTED,
    OWNER_SELECTOR,
    PAUSED,
    READY,
    SELECTOR,
    why_waiting,
)
from delosmq.model.conversion import Conversions
from delosmq.selectors.subject import Subject
from tests.engine.dispatch_support import CLASSIC, Field
from tests.engine.support import Bench, anycast
from tests.memory import living


# EXCL-3
def test_a_higher_priority_fills_first_and_the_rest_spills():
    field = Field()
    low = field.peer(priority=0)
    high = field.peer(2, priority=5)
    middle = field.peer(1, priority=3)
    field.put("1 2 3 4 5")
    assert (high.got, middle.got, low.got) == ("1 2", "3", "4 5")
    high.ack("1")
    field.put("6 7")
    assert (high.got, middle.got, low.got) == ("1 2 6", "3", "4 5 7")


# EXCL-3
def test_equal_priorities_take_turns():
    field = Field()
    peers = [field.peer(priority=5), field.peer(priority=5), field.peer(priority=1)]
    field.put("1 2 3 4")
    assert [peer.got for peer in peers] == ["1 3", "2 4", ""]


# EXCL-3
def test_turns_are_shared_by_consumers_with_and_without_selectors():
    field = Field()
    all_of_them = field.peer()
    red = field.peer(selector="JMSXUserID = 'red'")
    field.put("1 2 3 4", user="red")
    assert (all_of_them.got, red.got) == ("1 3", "2 4")


# EXCL-3
def test_when_all_are_full_dispatch_stops():
    field = Field()
    peers = [field.peer(1, priority=5), field.peer(1)]
    field.put("1 2 3")
    assert ([peer.got for peer in peers], field.waiting) == (["1", "2"], "3")


# EXCL-4
def test_without_consumer_priority_only_arrival_counts():
    field = Field(use_consumer_priority=False)
    peers = [field.peer(priority=1), field.peer(priority=9)]
    field.put("1 2 3")
    assert [peer.got for peer in peers] == ["1 3", "2"]


# EXCL-3, EXCL-4
def test_strict_order_does_not_rotate_and_full_consumers_keep_their_place():
    field = Field(strict_order_dispatch=True)
    first = field.peer(2)
    second = field.peer(2)
    field.put("1 2 3")
    assert (first.got, second.got) == ("1 2", "3")
    first.ack("1")
    field.put("4 5")
    assert (first.got, second.got) == ("1 2 4", "3 5")


# EXCL-3
def test_classic_redeliveries_are_ahead_of_all_others_in_the_order_of_their_return():
    field = Field(dispatch_profile=CLASSIC)
    peers = [field.peer(2), field.peer(2)]
    field.put("A B C D E F")
    assert [peer.got for peer in peers] == ["A C", "B D"]
    full = field.peer(1)
    field.run()
    assert full.got == "E"
    peers[1].close()
    assert field.waiting == "B D F"
    peers[0].close()
    assert field.waiting == "B D A C F"


# EXCL-3
def test_artemis_redeliveries_return_to_their_places():
    field = Field()
    peers = [field.peer(2), field.peer(2)]
    field.put("A B C D")
    peers[1].close()
    peers[0].close()
    assert field.waiting == "A B C D"


# EXCL-4
def test_strict_order_puts_redeliveries_first_when_the_last_consumer_leaves():
    field = Field(dispatch_profile=CLASSIC, strict_order_dispatch=True)
    first = field.peer(2)
    second = field.peer(2)
    field.put("A B C D E")
    first.close()
    assert field.waiting == "A B E"
    second.close()
    assert field.waiting == "C D A B E"


# EXCL-3
def test_redeliveries_and_others_are_merged_by_priority():
    field = Field(dispatch_profile=CLASSIC)
    peer = field.peer(1)
    field.put("low", priority=2)
    field.put("high", priority=8)
    field.put("late", priority=2)
    peer.close()
    assert field.waiting == "high low late"


# EXCL-4
def test_classic_waits_for_consumers_a_second_at_most():
    field = Field(dispatch_profile=CLASSIC, default_consumers_before_dispatch=2)
    first = field.peer()
    field.put("1")
    assert first.got == ""
    field.later(999)
    assert first.got == ""
    field.later(1)
    assert first.got == "1"


# EXCL-4
def test_the_consumers_waited_for_start_dispatch_and_browsers_count():
    field = Field(dispatch_profile=CLASSIC, default_consumers_before_dispatch=3)
    first = field.peer()
    field.put("1 2 3 4")
    second = field.peer()
    field.run()
    assert (first.got, second.got) == ("", "")
    field.peer(browser=True)
    field.run()
    assert (first.got, second.got) == ("1 3", "2 4")


# EXCL-4
def test_the_wait_is_armed_whenever_a_first_consumer_comes():
    field = Field(dispatch_profile=CLASSIC, default_consumers_before_dispatch=2, time_before_dispatch_starts=50)
    first = field.peer()
    field.put("1")
    field.later(50)
    assert first.got == "1"
    first.close()
    again = field.peer()
    field.run()
    assert again.got == ""
    field.later(50)
    assert again.got == "1"


# EXCL-4
def test_classic_time_alone_is_a_plain_delay():
    field = Field(dispatch_profile=CLASSIC, time_before_dispatch_starts=200)
    peers = [field.peer(), field.peer()]
    field.put("1 2")
    field.later(199)
    assert [peer.got for peer in peers] == ["", ""]
    field.later(1)
    assert [peer.got for peer in peers] == ["1", "2"]


# EXCL-4
def test_artemis_waits_for_consumers_for_ever_without_a_delay():
    field = Field(queue={"consumers_before_dispatch": 2})
    first = field.peer()
    field.put("1 2")
    field.later(1_000_000)
    assert first.got == ""
    second = field.peer()
    field.run()
    assert (first.got, second.got) == ("1", "2")
    first.close()
    field.run()
    assert second.got == "2 1"  # once begun, it goes on with fewer


# EXCL-4
def test_artemis_waits_no_longer_than_the_delay():
    field = Field(queue={"consumers_before_dispatch": 2, "delay_before_dispatch": 300})
    first = field.peer()
    field.put("1")
    field.later(299)
    assert first.got == ""
    field.later(1)
    assert first.got == "1"


# EXCL-4
def test_consumers_that_come_and_go_before_the_delay_is_over_leave_nothing_behind():
    field = Field(queue={"consumers_before_dispatch": 2, "delay_before_dispatch": 3_600_000})
    before = len(living(DispatchStart))
    for _ in range(500):
        field.peer().close()
        field.run()
    assert len(living(DispatchStart)) - before < 50
    first = field.peer()
    field.put("1")
    field.later(3_599_999)
    assert first.got == ""
    field.later(1)
    assert first.got == "1"


# EXCL-3
def test_a_flooded_queue_holds_up_no_quiet_one():
    # 101 queues and 64 per tick: whatever the flood, a quiet message leaves within the second tick.
    names = [f"quiet{k}" for k in range(100)]
    bench = Bench(queues=(anycast("flood"), *(anycast(name) for name in names)))
    _, flood = bench.consume("flood")
    quiet = [bench.consume(name)[1] for name in names]
    bench.send("flood", " ".join(["x"] * (20 * MESSAGES_PER_QUEUE_AND_TICK)), durable=False)
    bench.broker.tick()
    for name in names:
        bench.send(name, "hello")
    ticks = -(-(len(names) + 1) // QUEUES_PER_TICK)
    assert ticks == 2
    for _ in range(ticks):
        before = len(flood.slots)
        bench.broker.tick()
        assert len(flood.slots) - before <= MESSAGES_PER_QUEUE_AND_TICK
    assert [port.bodies for port in quiet] == ["hello"] * 100
    assert bench.broker.queues["flood"].pending.count > 0


def test_a_tick_hands_out_a_bounded_number_with_rules_too():
    field = Field()
    peer = field.peer(priority=1)
    field.put(" ".join(["x"] * (MESSAGES_PER_QUEUE_AND_TICK + 1)), run=False)
    assert field.broker.tick()
    assert len(peer.port.slots) == MESSAGES_PER_QUEUE_AND_TICK
    field.run()
    assert len(peer.port.slots) == MESSAGES_PER_QUEUE_AND_TICK + 1


def test_a_delivery_is_stamped_with_its_time():
    field = Field()
    peer = field.peer()
    field.later(5)
    field.put("1")
    assert peer.port.slots[0].delivered_at_ms == field.clock.now_ms
    other = field.peer(priority=3)
    field.later(5)
    field.put("2")
    assert other.port.slots[0].delivered_at_ms == field.clock.now_ms


def test_rules_come_and_go_with_the_consumers_that_need_them():
    field = Field()
    plain = field.peer(1)
    other = field.peer()
    field.put("1")
    special = field.peer(priority=3)
    field.put("2 3")
    assert (plain.got, other.got, special.got) == ("1", "", "2 3")
    plain.ack("1")
    special.close()
    field.run()
    assert sorted((plain.got + " " + other.got).split()) == ["1", "2", "3"]
    plain.close()
    other.close()
    assert field.broker.queues["q"].rules is None
    assert not field.broker.queues["q"].needs_rules


def test_a_paused_queue_hands_out_nothing():
    field = Field()
    plain = field.peer(1)
    field.broker.resources.update_queue("q", paused=True)
    field.put("1")
    assert plain.got == ""
    assert ask(field, 0) == PAUSED
    field.broker.resources.update_queue("q", paused=False)
    field.put("2")
    assert plain.got == "1"


# -- why a message waits -----------------------------------------------------------------------------------------


def ask(field: Field, at: int) -> str:
    """Why the message at a place among the pending ones waits."""
    queue = field.broker.queues["q"]
    found = field.broker.inspector.standing(queue, queue.pending.in_order()[at])
    assert found is not None
    return found.rule


def test_why_a_message_waits_on_a_plain_queue():
    field = Field()
    field.put("1 2 3")
    assert ask(field, 0) == NO_CONSUMER
    peer = field.peer(1)
    assert (ask(field, 0), ask(field, 1)) == (READY, BEHIND)
    field.run()
    assert (ask(field, 0), ask(field, 1)) == (FULL, FULL)
    queue = field.broker.queues["q"]
    assert why_waiting(queue, peer.port.slots[0], DispatchBudget(Subject(Conversions({})))) == NOT_PENDING


def test_why_a_message_waits_because_of_selectors():
    field = Field()
    field.peer(1, selector="JMSXUserID = 'red'")
    field.put("1 2", user="red")
    field.put("3", user="blue")
    assert (ask(field, 0), ask(field, 1)) == (FULL, SELECTOR)


def test_why_a_message_waits_because_of_an_owner():
    field = Field()
    field.peer(1, exclusive=True, selector="JMSXUserID = 'red'")
    field.peer()
    field.put("1 2", user="red")
    field.put("3", user="blue")
    assert (ask(field, 0), ask(field, 1)) == (EXCLUSIVE_OWNER, OWNER_SELECTOR)


def test_why_a_message_waits_because_of_its_group():
    field = Field(dispatch_profile=CLASSIC)
    field.peer(1, selector="JMSXUserID = 'red'")
    field.put("1 2", group="g", user="red")
    field.put("3", group="g", user="blue")
    field.peer()
    field.run()
    assert (ask(field, 0), ask(field, 1)) == (GROUP_OWNER, GROUP_SELECTOR)


def test_why_a_message_waits_for_consumers():
    field = Field(queue={"consumers_before_dispatch": 2})
    field.peer()
    field.put("1")
    assert ask(field, 0) == NOT_STARTED


def test_max_consumers_counts_browsers():
    field = Field(queue={"max_consumers": 2})
    field.peer(browser=True)
    field.peer()
    assert field.broker.queues["q"].consumer_count == 2
