"""Order, credit, acknowledgement, redelivery, dead letters, limits."""

from dataclasses import replace

import pytest

from delosmq.engine.addresses.address import SpaceWaiter
from delosmq.engine.base.events import EngineEvents
from delosmq.engine.broker import EngineBroker
from delosmq.engine.queues.credit import ByteCredit, MessageCredit, OpenCredit
from delosmq.engine.routing.send_result import BLOCKED, DROPPED, NO_ROUTE, ROUTED
from delosmq.model.errors import LimitError, MisuseError, NotFoundError
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.settings import AddressFullPolicy, JournalSettings, QueueSettings
from tests.engine.support import Bench, Collector, CountingRandom, RecordingStore, anycast


class Waiter(SpaceWaiter):
    def __init__(self) -> None:
        self.called = 0

    def on_space(self) -> None:
        self.called += 1


# EXCL-3
def test_higher_priorities_leave_first_and_equal_ones_in_order():
    bench = Bench(queues=(anycast("q"),))
    bench.send("q", "a b", priority=4)
    bench.send("q", "c d", priority=9)
    bench.send("q", "e", priority=0)
    _, port = bench.consume("q")
    bench.run()
    assert port.bodies == "c d a b e"


def test_priorities_may_mean_nothing():
    bench = Bench(queues=(anycast("q"),), settings={"q": {"prioritized_messages": False}})
    consumer, port = bench.consume("q", MessageCredit(3))
    bench.send("q", "a b", priority=4)
    bench.send("q", "c d", priority=9)
    bench.send("q", "e", priority=0)
    bench.run()
    bench.broker.consumers.close(consumer, {port.slots[1].sequence})
    _, port = bench.consume("q")
    bench.run()
    assert port.bodies == "a b c d e"
    assert [slot.message.priority for slot in port.slots] == [4, 4, 9, 9, 0]


def test_priorities_mean_nothing_after_a_restart_either():
    bench = Bench(queues=(anycast("q"),), settings={"q": {"prioritized_messages": False}})
    for body, priority in (("a", 0), ("b", 9), ("c", 4)):
        bench.send("q", body, priority=priority, durable=True)
    bench = bench.restart()
    _, port = bench.consume("q")
    bench.run()
    assert port.bodies == "a b c"


# EXCL-3
def test_consumers_take_turns():
    bench = Bench(queues=(anycast("q"),))
    ports = [bench.consume("q")[1] for _ in range(3)]
    bench.send("q", "1 2 3 4 5 6")
    bench.run()
    assert [port.bodies for port in ports] == ["1 4", "2 5", "3 6"]


# EXCL-3, ACK-7
def test_a_consumer_without_credit_holds_up_no_other():
    bench = Bench(queues=(anycast("q"),))
    slow, slow_port = bench.consume("q", MessageCredit(1))
    _, quick_port = bench.consume("q")
    bench.send("q", "1 2 3 4")
    bench.run()
    assert (slow_port.bodies, quick_port.bodies) == ("1", "2 3 4")
    assert bench.broker.consumers.acknowledge(slow, slow_port.slots[0].sequence)
    bench.send("q", "5 6")
    bench.run()
    assert len(slow_port.slots) == 2


def test_a_window_lets_one_message_through_that_is_larger_than_itself():
    bench = Bench(queues=(anycast("q"),))
    consumer, port = bench.consume("q", ByteCredit(1))
    bench.send("q", "A B")
    bench.run()
    assert port.bodies == "A"
    bench.broker.consumers.acknowledge(consumer, port.slots[0].sequence)
    bench.run()
    assert port.bodies == "A B"


def test_a_full_outbox_stops_dispatch_until_the_session_says_so():
    bench = Bench(queues=(anycast("q"),))
    consumer, port = bench.consume("q")
    port.room = False
    bench.send("q", "A")
    bench.run()
    assert port.bodies == ""
    port.room = True
    bench.broker.consumers.credit_changed(consumer)
    bench.run()
    assert port.bodies == "A"


def test_cumulative_acknowledgement_ends_everything_delivered_before():
    bench = Bench(queues=(anycast("q"),))
    consumer, port = bench.consume("q")
    bench.send("q", "A B C")
    bench.run()
    assert bench.broker.consumers.acknowledge_through(consumer, port.slots[1].sequence)
    assert consumer.held_count == 1
    assert bench.broker.queues["q"].counters.acknowledged == 2
    assert bench.store.released == 2


def test_acknowledging_what_is_not_held_changes_nothing():
    bench = Bench(queues=(anycast("q"),))
    consumer, port = bench.consume("q")
    bench.send("q", "A")
    bench.run()
    sequence = port.slots[0].sequence
    assert not bench.broker.consumers.acknowledge(consumer, sequence + 999)
    assert bench.broker.consumers.acknowledge(consumer, sequence)
    assert not bench.broker.consumers.acknowledge(consumer, sequence)
    assert not bench.broker.consumers.acknowledge_through(consumer, sequence)
    assert not bench.broker.consumers.reject(consumer, sequence)


def test_what_the_peer_never_saw_does_not_count_as_delivered():
    bench = Bench(queues=(anycast("q"),))
    consumer, port = bench.consume("q")
    bench.send("q", "A B")
    bench.run()
    bench.broker.consumers.close(consumer, {port.slots[1].sequence})
    _, again = bench.consume("q")
    bench.run()
    assert [(slot.message.body, slot.delivery_count) for slot in again.slots] == [(b"A", 2), (b"B", 1)]


# ACK-4
def test_rejected_messages_go_to_the_dead_letter_address_when_attempts_are_used_up():
    bench = Bench(
        queues=(anycast("q"), anycast("DLQ")),
        settings={"#": {"dead_letter_address": "DLQ", "max_delivery_attempts": 3}},
    )
    consumer, port = bench.consume("q")
    bench.send("q", "A")
    for _ in range(3):
        bench.run()
        assert bench.broker.consumers.reject(consumer, port.slots[-1].sequence)
    bench.run()
    assert [slot.delivery_count for slot in port.slots[:1]] == [3]
    assert len(port.slots) == 3
    dead = bench.broker.queues["DLQ"].pending.head()
    assert dead is not None
    assert dead.message.annotations == {
        "_AMQ_ORIG_ADDRESS": "q",
        "_AMQ_ORIG_QUEUE": "q",
        "_AMQ_ORIG_MESSAGE_ID": str(port.slots[0].message.message_id),
        "_AMQ_ORIG_ROUTING_TYPE": "1",
    }
    assert bench.broker.queues["q"].counters.killed == 1
    again = bench.restart()
    assert (again.pending("q"), again.pending("DLQ")) == ("", "A")


def test_without_a_dead_letter_queue_exhausted_messages_are_dropped():
    bench = Bench(queues=(anycast("q"),), settings={"#": {"max_delivery_attempts": 1}})
    consumer, port = bench.consume("q")
    bench.send("q", "A")
    bench.run()
    bench.broker.consumers.reject(consumer, port.slots[0].sequence)
    assert bench.broker.queues["q"].message_count == 0
    assert bench.broker.used_bytes == 0


def test_delivery_counts_survive_a_restart_once_the_message_is_back():
    bench = Bench(queues=(anycast("q"),))
    consumer, _ = bench.consume("q")
    bench.send("q", "A")
    bench.run()
    bench.broker.consumers.close(consumer)
    again = bench.restart()
    _, port = again.consume("q")
    again.run()
    assert port.slots[0].delivery_count == 2


def test_each_multicast_queue_gets_a_copy_and_anycast_queues_share():
    queues = (
        QueueSettings("m1", "a", MULTICAST),
        QueueSettings("m2", "a", MULTICAST),
        QueueSettings("c1", "a", ANYCAST),
        QueueSettings("c2", "a", ANYCAST),
    )
    bench = Bench(queues=queues)
    bench.send("a", "1 2")
    assert [bench.broker.queues[name].message_count for name in ("m1", "m2", "c1", "c2")] == [2, 2, 1, 1]
    bench.send("a", "3", routing=ANYCAST)
    assert bench.broker.queues["m1"].message_count == 2
    bench.send("a", "4", routing=MULTICAST)
    assert bench.broker.queues["m1"].message_count == 3


def test_one_queue_of_an_address_can_be_sent_to_directly():
    queues = (QueueSettings("m1", "a", MULTICAST), QueueSettings("m2", "a", MULTICAST))
    bench = Bench(queues=queues)
    bench.broker.producers.send(bench.message("a", "A"), queue_name="m2")
    assert (bench.pending("m1"), bench.pending("m2")) == ("", "A")
    with pytest.raises(NotFoundError, match="no queue 'm3'"):
        bench.broker.producers.send(bench.message("a", "A"), queue_name="m3")


def test_memory_counts_a_message_once_whatever_the_number_of_its_queues():
    queues = (QueueSettings("m1", "a", MULTICAST), QueueSettings("m2", "a", MULTICAST))
    bench = Bench(queues=queues)
    bench.send("a", "A")
    charge = bench.broker.used_bytes
    assert charge == bench.message("a", "A").charge_bytes
    for name in ("m1", "m2"):
        assert bench.broker.used_bytes == charge
        port = Collector()
        consumer = bench.broker.consumers.subscribe("a", port, OpenCredit(), queue_name=name)
        bench.run()
        bench.broker.consumers.acknowledge(consumer, port.slots[0].sequence)
    assert bench.broker.used_bytes == 0


def test_multicast_without_subscribers_is_no_error():
    bench = Bench()
    assert bench.send("news", "A") == [NO_ROUTE]
    assert bench.broker.addresses["news"].unrouted_messages == 1


def test_anycast_sends_create_their_queue():
    bench = Bench()
    assert bench.send("jobs", "A", routing=ANYCAST) == [ROUTED]
    assert bench.pending("jobs") == "A"
    assert bench.restart().pending("jobs") == "A"


def test_without_auto_creation_an_unknown_address_is_an_error():
    bench = Bench(settings={"#": {"auto_create_addresses": False, "auto_create_queues": False}})
    with pytest.raises(NotFoundError, match="no address 'jobs'"):
        bench.send("jobs", "A", routing=ANYCAST)
    with pytest.raises(NotFoundError, match="no address 'jobs'"):
        bench.consume("jobs")


def test_an_address_refuses_a_routing_type_it_was_not_made_for():
    bench = Bench(queues=(QueueSettings("m1", "a", MULTICAST),), settings={"#": {"auto_create_addresses": False}})
    with pytest.raises(MisuseError, match="takes MULTICAST, not ANYCAST"):
        bench.send("a", "A", routing=ANYCAST)


def test_an_address_that_may_be_created_gets_the_routing_type_it_lacks():
    bench = Bench(queues=(QueueSettings("m1", "a", MULTICAST),))
    bench.send("a", "A", routing=ANYCAST)
    assert bench.broker.addresses["a"].routing_types == {ANYCAST, MULTICAST}
    assert bench.broker.queues["a"].message_count == 1
    assert bench.broker.queues["m1"].message_count == 0


def test_a_topic_subscription_lives_as_long_as_its_consumer():
    bench = Bench()
    consumer, port = bench.consume("news", routing=MULTICAST)
    bench.send("news", "A")
    bench.run()
    assert port.bodies == "A"
    bench.send("news", "B")
    bench.broker.consumers.close(consumer)
    bench.run()
    assert bench.broker.queues == {}
    assert bench.broker.used_bytes == 0


def test_max_consumers_is_a_limit():
    bench = Bench(queues=(anycast("q", max_consumers=1),))
    consumer, _ = bench.consume("q")
    with pytest.raises(LimitError, match="max-consumers"):
        bench.consume("q")
    bench.broker.consumers.close(consumer)
    bench.consume("q")


# ACK-7
def test_block_changes_nothing_and_calls_back_when_there_is_room():
    bench = Bench(
        queues=(anycast("q"),), settings={"q": {"max_size_messages": 2, "address_full_policy": AddressFullPolicy.BLOCK}}
    )
    assert bench.send("q", "A B C") == [ROUTED, ROUTED, BLOCKED]
    waiter = Waiter()
    bench.broker.blocked_producers.wait("q", waiter)
    consumer, port = bench.consume("q")
    bench.run()
    assert waiter.called == 0
    bench.broker.consumers.acknowledge(consumer, port.slots[0].sequence)
    bench.run()
    assert waiter.called == 1
    assert bench.send("q", "C") == [ROUTED]


def test_senders_that_come_and_go_at_a_full_address_leave_nothing():
    class Told(EngineEvents):
        def __init__(self) -> None:
            self.told: list[str] = []

        def address_blocked(self, address: str) -> None:
            self.told.append("blocked " + address)

        def address_unblocked(self, address: str) -> None:
            self.told.append("unblocked " + address)

    events = Told()
    bench = Bench(
        queues=(anycast("q"),),
        settings={"q": {"max_size_messages": 1, "address_full_policy": AddressFullPolicy.BLOCK}},
        events=events,
    )
    bench.send("q", "A")
    for _ in range(100):
        waiter = Waiter()
        bench.broker.blocked_producers.wait("q", waiter)
        bench.broker.blocked_producers.cancel("q", waiter)
    last = Waiter()
    bench.broker.blocked_producers.wait("q", last)
    told = ["blocked q", "unblocked q"] * 100
    assert events.told == [*told, "blocked q"]
    consumer, port = bench.consume("q")
    bench.run()
    bench.broker.consumers.acknowledge(consumer, port.slots[0].sequence)
    bench.run()
    assert last.called == 1
    assert events.told == [*told, "blocked q", "unblocked q"]


def test_fail_and_drop():
    bench = Bench(
        queues=(anycast("f"), anycast("d")),
        settings={
            "f": {"max_size_messages": 1, "address_full_policy": AddressFullPolicy.FAIL},
            "d": {"max_size_messages": 1, "address_full_policy": AddressFullPolicy.DROP},
        },
    )
    bench.send("f", "A")
    with pytest.raises(LimitError, match="'f' refuses"):
        bench.send("f", "B")
    assert bench.send("d", "A B") == [ROUTED, DROPPED]
    assert bench.pending("d") == "A"


# BROKER-1
def test_the_global_limit_blocks_every_address():
    bench = Bench(queues=(anycast("p"), anycast("q")), global_max=600)
    assert bench.send("p", "A B") == [ROUTED, ROUTED]
    assert bench.send("q", "C") == [BLOCKED]


def test_a_store_without_room_blocks_durable_messages_only_and_recovers():
    bench = Bench(queues=(anycast("q"),), settings={"#": {"address_full_policy": AddressFullPolicy.DROP}})
    bench.broker.set_storage_low(True)
    assert bench.send("q", "A") == [BLOCKED]
    assert bench.send("q", "B", durable=False) == [ROUTED]
    waiter = Waiter()
    bench.broker.blocked_producers.wait("q", waiter)
    bench.broker.set_storage_low(False)
    bench.run()
    assert waiter.called == 1


def test_a_deleted_queue_closes_its_consumers_and_gives_back_its_memory():
    bench = Bench(queues=(anycast("q"),))
    _, port = bench.consume("q", MessageCredit(1))
    bench.send("q", " ".join(str(i) for i in range(1200)))
    bench.run()
    bench.broker.resources.delete_queue("q")
    bench.run()
    assert port.closed is not None
    assert bench.broker.used_bytes == 0
    assert bench.store.released == 1200
    assert "q" not in bench.restart().broker.queues or bench.restart().pending("q") == ""


def test_ids_are_never_given_out_twice():
    bench = Bench(queues=(anycast("q"),))
    bench.send("q", "A", durable=False)
    _, port = bench.consume("q")
    bench.run()
    again = bench.restart()
    again.send("q", "B", durable=False)
    _, later = again.consume("q")
    again.run()
    assert later.slots[0].sequence > port.slots[0].sequence


def test_many_dead_letters_at_once_are_pairs_of_their_own_in_the_journal():
    bench = Bench(
        queues=(anycast("q"), anycast("DLQ")),
        settings={"#": {"dead_letter_address": "DLQ", "max_delivery_attempts": 1}},
    )
    consumer, _ = bench.consume("q")
    bench.send("q", "A B C")
    bench.run()
    before = len(bench.store.batches)
    bench.broker.consumers.close(consumer)
    batches = bench.store.batches[before:]
    assert [len(metas) for _, metas, _ in batches] == [2, 2, 2]
    assert bench.restart().pending("DLQ") == "C B A"


def test_without_room_for_the_copy_an_exhausted_message_stays_in_its_queue():
    bench = Bench(
        queues=(anycast("q"), anycast("DLQ")),
        settings={"#": {"dead_letter_address": "DLQ", "max_delivery_attempts": 1}},
    )
    consumer, port = bench.consume("q")
    bench.send("q", "A")
    bench.run()
    bench.broker.set_storage_full(True)
    assert bench.broker.consumers.reject(consumer, port.slots[0].sequence)
    assert (bench.pending("q"), bench.pending("DLQ")) == ("A", "")
    bench.broker.set_storage_low(False)
    bench.run()
    assert bench.broker.consumers.reject(consumer, port.slots[1].sequence)
    assert (bench.pending("q"), bench.pending("DLQ")) == ("", "A")


def test_a_message_that_no_segment_can_hold_is_refused():
    bench = Bench(queues=(anycast("q"),))
    small = JournalSettings(directory="somewhere", file_size_bytes=64 * 1024)
    bench.broker = EngineBroker(
        replace(bench.settings, journal=small),
        RecordingStore(),
        clock=bench.clock,
        random=CountingRandom(),
        events=EngineEvents(),
    )
    bench.broker.start()
    with pytest.raises(LimitError, match="journal-file-size"):
        bench.send("q", "x" * 37_000, durable=False)
    assert bench.send("q", "x" * 36_000) == [ROUTED]


class CrowdedStore(RecordingStore):
    """Its disk has no room for a larger state."""

    def takes_state(self, size_bytes: int, reserve_bytes: int = 0) -> bool:
        return size_bytes + reserve_bytes <= 5_000


def test_there_are_no_more_addresses_and_queues_than_the_store_can_describe():
    bench = Bench()
    bench.broker = EngineBroker(
        bench.settings, CrowdedStore(), clock=bench.clock, random=CountingRandom(), events=EngineEvents()
    )
    bench.broker.start()
    names = " ".join(f"jobs.{number}" for number in range(1000))
    with pytest.raises(LimitError, match=r"DMQ2204: there are .* no room for larger ones; delete some"):
        _ = [bench.send(name, "A", routing=ANYCAST) for name in names.split()]
    assert len(bench.broker.state.state()) < 5_000
    assert bench.send("jobs.0", "B", routing=ANYCAST) == [ROUTED]


def test_an_auto_created_address_goes_with_its_last_subscription_and_is_never_recorded():
    bench = Bench()
    consumer, _ = bench.consume("reply.1", routing=MULTICAST)
    bench.broker.consumers.close(consumer)
    assert bench.broker.addresses == {}
    bench.send("reply.2", "A")
    assert "reply.2" not in bench.restart().broker.addresses


# RING-4
def test_a_ring_size_set_at_run_time_survives_a_change_of_another_setting():
    bench = Bench(queues=(anycast("q"),))
    bench.broker.resources.update_queue("q", ring_size=7, max_consumers=None)
    bench.settings = Bench(queues=(anycast("q", max_consumers=3),)).settings
    queue = bench.restart().broker.queues["q"]
    assert (queue.ring_size, queue.in_force.max_consumers) == (7, 3)


# ACK-4
def test_a_message_that_fails_in_the_dead_letter_queue_stays_there():
    bench = Bench(queues=(anycast("DLQ"),), settings={"#": {"dead_letter_address": "DLQ", "max_delivery_attempts": 1}})
    consumer, port = bench.consume("DLQ")
    bench.send("DLQ", "A")
    bench.run()
    assert bench.broker.consumers.reject(consumer, port.slots[0].sequence)
    bench.run()
    assert [slot.delivery_count for slot in port.slots] == [2, 2]
    assert port.slots[0] is port.slots[1]


def test_a_blocked_send_leaves_no_half_decision_behind():
    bench = Bench(settings={"#": {"address_full_policy": AddressFullPolicy.BLOCK, "max_size_messages": 0}})
    assert bench.send("q", "A", routing=ANYCAST) == [BLOCKED]
    assert "q" in bench.restart().broker.queues


def test_a_failed_broker_records_nothing_more():
    bench = Bench(queues=(anycast("q"),))
    before = len(bench.store.batches)
    bench.broker.log.stop()
    bench.send("q", "A")
    assert len(bench.store.batches) == before
