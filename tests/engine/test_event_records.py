"""Records of what becomes of messages, on the address ``delosmq.events``."""

import json
from typing import Any

import pytest

from delosmq.engine.event_records import RECORDS_PER_MESSAGE, WAITING_AT_MOST
from delosmq.engine.queues.consumer import ConsumerOptions
from delosmq.engine.queues.credit import OpenCredit
from delosmq.model.message import ANY_ROUTING, ANYCAST, MULTICAST
from delosmq.model.settings import AddressFullPolicy, BrokerSettings, DivertSettings, QueueSettings
from tests.engine.routing_support import RoutingBench
from tests.engine.support import Bench, Collector

A = QueueSettings("a", "a")
LOG = QueueSettings("log", "delosmq.events", MULTICAST)
"""Keeps what is told."""
PLENTY = 100_000


class EventBench(Bench):
    """An engine that records, with a queue for the records."""

    def __init__(self, *queues: QueueSettings, per_second: int = PLENTY, **settings: dict[str, object]) -> None:
        super().__init__(queues=(LOG, *queues), settings=settings, core={"delosmq_events": per_second})

    def told(self) -> list[dict[str, Any]]:
        """The records that are in the queue after a second."""
        self.later(1_000)
        return records_in(self)

    def events(self, *fields: str) -> list[str]:
        """The event of each of these, and some of its fields."""
        return [" ".join(str(one.get(name, "-")) for name in ("event", *fields)) for one in self.told()]


def records_in(bench: Bench) -> list[dict[str, Any]]:
    bodies = [slot.message.body for slot in bench.broker.queues["log"].pending.in_order()]
    return [json.loads(line) for body in bodies for line in body.decode().splitlines()]


# -- each kind ---------------------------------------------------------------------------------------------------


def test_a_message_that_is_consumed() -> None:
    bench = EventBench(A)
    begun_ms = bench.clock.now_ms
    message = bench.message("a", "m")
    message.user = "alice"
    message.connection_id = "connection-1"
    bench.broker.producers.send(message)
    bench.clock.now_ms += 5
    consumer, port = bench.consume("a")
    bench.run()
    bench.clock.now_ms += 7
    bench.broker.consumers.acknowledge(consumer, port.slots[0].sequence)
    common = {
        "address": "a",
        "queue": "a",
        "sequence": message.sequence,
        "message_id": f"ID:{message.message_id}",
        "accepted_ms": begun_ms,
    }
    taken = {**common, "consumer": str(consumer.id), "delivery_count": 1}
    assert bench.told() == [
        {"time_ms": begun_ms, "event": "enqueue", **common, "user": "alice", "producer": "connection-1"},
        {"time_ms": begun_ms + 5, "event": "dispatch", **taken},
        {"time_ms": begun_ms + 12, "event": "acknowledge", **taken},
    ]


def test_keys_have_the_order_of_the_manual() -> None:
    bench = EventBench(A)
    message = bench.message("a", "m")
    message.user, message.connection_id = "u", "c"
    bench.broker.producers.send(message)
    (record,) = bench.told()
    keys = "time_ms event address queue sequence message_id accepted_ms user producer"
    assert " ".join(record) == keys


def test_a_message_of_a_queue_with_rules_is_told_of_as_well() -> None:
    bench = EventBench(A)
    port = Collector()
    ranked = ConsumerOptions(priority=1)
    consumer = bench.broker.consumers.subscribe("a", port, OpenCredit(), routing=ANYCAST, options=ranked)
    bench.send("a", "m")
    bench.run()
    bench.broker.consumers.acknowledge(consumer, port.slots[0].sequence)
    assert bench.events("consumer") == ["enqueue -", f"dispatch {consumer.id}", f"acknowledge {consumer.id}"]


def test_a_cumulative_acknowledgement_tells_each_message() -> None:
    bench = EventBench(A)
    consumer, port = bench.consume("a")
    bench.send("a", "m n")
    bench.run()
    bench.broker.consumers.acknowledge_through(consumer, port.slots[1].sequence)
    first, second = (slot.sequence for slot in port.slots)
    assert bench.events("sequence")[-2:] == [f"acknowledge {first}", f"acknowledge {second}"]


def test_a_transaction_is_told_at_its_commit() -> None:
    bench = EventBench(A, QueueSettings("b", "b"))
    consumer, port = bench.consume("a")
    bench.send("a", "m")
    bench.run()
    work = bench.broker.transactions.begin("session")
    bench.broker.consumers.acknowledge(consumer, port.slots[0].sequence, work)
    bench.broker.transactions.send(work, bench.message("b", "n"))
    assert bench.events("queue") == ["enqueue a", "dispatch a"]
    bench.broker.transactions.commit(work)
    bench.run()
    assert bench.events("queue", "consumer")[2:] == [f"acknowledge a {consumer.id}", "enqueue b -"]


def test_redelivered_and_dead() -> None:
    bench = EventBench(A, QueueSettings("dead", "dead"), a={"max_delivery_attempts": 2, "dead_letter_address": "dead"})
    consumer, port = bench.consume("a")
    bench.send("a", "m")
    bench.run()
    for _ in range(2):
        bench.broker.consumers.reject(consumer, port.slots[-1].sequence)
        bench.run()
    assert bench.events("address", "delivery_count", "cause") == [
        "enqueue a - -",
        "dispatch a 1 -",
        "redeliver a 1 -",
        "dispatch a 2 -",
        "enqueue dead - -",
        "dead-letter a 2 dead",
    ]


def test_expired() -> None:
    bench = EventBench(A)
    bench.send("a", "m", expires_in_ms=10)
    bench.later(20)
    bench.consume("a")
    bench.run()
    assert bench.events("queue", "cause") == ["enqueue a -", "expire a -"]


def test_replaced_in_a_ring() -> None:
    bench = EventBench(QueueSettings("a", "a", ring_size=1))
    bench.send("a", "m n")
    assert bench.events("sequence")[1].startswith("replace")


def test_a_lease_takes_and_ends_messages() -> None:
    bench = EventBench(QueueSettings("a", "a", durable=True))
    bench.send("a", "m")
    leases = bench.broker.leases
    group = bench.broker.lease_groups.open("g", queue="a", topic="", run="r", incarnation=None, user="spark")
    leases.request("g", after=0, max_rows=1, max_bytes=1 << 20, epoch=group.epoch, until=None)
    leases.acknowledge("g", 1, group.epoch)
    bench.run()
    assert bench.events("consumer", "user") == ["enqueue - -", "dispatch lease g spark", "acknowledge lease g spark"]


def test_decisions_of_routers() -> None:
    bench = EventBench()
    records = bench.broker.event_records
    records.connection_routed(False, "alice", "client-1", "by-user: local, because it may")
    records.connection_routed(True, "", "", "by-user: b, because it may")
    now = bench.clock.now_ms
    cause = "by-user: local, because it may"
    first = {"time_ms": now, "event": "route", "user": "alice", "producer": "client-1", "cause": cause}
    second = {"time_ms": now, "event": "redirect", "cause": "by-user: b, because it may"}
    assert bench.told() == [first, second]


# -- what is not recorded ----------------------------------------------------------------------------------------


def test_without_the_setting_there_is_nothing() -> None:
    bench = Bench(queues=(LOG, A))
    bench.send("a", "m")
    bench.later(2_000)
    assert bench.pending("log") == ""
    assert not bench.broker.addresses["a"].tells_routed
    assert not bench.broker.queues["a"].traits.recorded


def test_while_no_queue_is_bound_nothing_is_recorded() -> None:
    bench = Bench(queues=(A,), core={"delosmq_events": PLENTY})
    bench.send("a", "m")
    bench.broker.resources.create_queue(LOG)
    bench.send("a", "n")
    bench.later(1_000)
    newest = bench.broker.queues["a"].newest_sequence
    assert [one["sequence"] for one in records_in(bench)] == [newest]


def rounds(bench: EventBench, count: int = 10) -> int:
    """Lets so many seconds pass; how many messages of records there are then."""
    for _ in range(count):
        bench.later(1_000)
    return bench.broker.addresses["delosmq.events"].routed_messages


def test_records_about_records_are_not_made() -> None:
    bench = EventBench(A)
    consumer, port = bench.consume("log", routing=MULTICAST)
    bench.send("a", "m")
    assert rounds(bench) == 1
    bench.broker.consumers.reject(consumer, port.slots[0].sequence)
    bench.run()
    bench.broker.consumers.acknowledge(consumer, port.slots[1].sequence)
    assert rounds(bench) == 1


def test_nor_about_copies_of_records_that_lie_elsewhere() -> None:
    settings = BrokerSettings(
        queues=(
            A,
            QueueSettings("copies", "copies"),
            QueueSettings("dead", "dead"),
            QueueSettings("all", "#", MULTICAST),
        ),
        diverts=(DivertSettings("d", "delosmq.events", ("copies",)),),
        delosmq_events=PLENTY,
    )
    dead = {"max_delivery_attempts": 1, "dead_letter_address": "dead"}
    bench = RoutingBench(settings, addresses={"copies": dead})
    bench.put("a", "m", routing=ANYCAST)
    bench.later(1_000)
    reader, port = bench.listen("copies", routing=ANYCAST)
    bench.run()
    bench.broker.consumers.reject(reader, port.slots[0].sequence)
    reader, port = bench.listen("#", routing=ANY_ROUTING, queue_name="all")
    bench.run()
    assert len(port.slots) == 3
    bench.take_all(reader, port)
    bench.later(5_000)
    assert bench.counts("dead") == (1, 0, 0)
    # One: what is told of the message itself.
    assert bench.broker.addresses["delosmq.events"].routed_messages == 1


@pytest.mark.parametrize("address", ["ActiveMQ.Advisory.Connection", "activemq.management"])
def test_nor_where_the_broker_speaks_of_itself(address: str) -> None:
    bench = EventBench(QueueSettings("q", address, ring_size=1))
    bench.send(address, "m n")
    assert bench.told() == []


# -- bounds ------------------------------------------------------------------------------------------------------


def sizes(bench: Bench) -> list[str]:
    """How many records each message has."""
    slots = bench.broker.queues["log"].pending.in_order()
    return [(slot.message.annotations or {})["_DELOSMQ_RECORDS"] for slot in slots]


def test_a_message_has_500_records_at_most_and_does_not_wait_then() -> None:
    bench = EventBench(A)
    bench.send("a", "m " * (RECORDS_PER_MESSAGE - 1))
    bench.run()
    assert sizes(bench) == []
    bench.send("a", "m m m")
    bench.run()
    assert sizes(bench) == ["500"]
    bench.later(999)
    assert sizes(bench) == ["500"]
    bench.later(1)
    assert sizes(bench) == ["500", "2"]
    bench.send("a", "m " * 2 * RECORDS_PER_MESSAGE)
    bench.run()
    assert sizes(bench) == ["500", "2", "500", "500"]


def test_what_is_too_much_for_a_second_is_counted_and_told() -> None:
    bench = EventBench(A, per_second=3)
    bench.send("a", "m m m m m")
    now = bench.clock.now_ms
    told = bench.told()
    assert [one["event"] for one in told] == ["lost", "enqueue", "enqueue", "enqueue"]
    assert told[0] == {
        "time_ms": now + 1_000,
        "event": "lost",
        "cause": "2 records: more than 3 a second, than 20000 at once, or than the address takes",
    }
    assert bench.broker.event_records.lost == 2
    bench.send("a", "m")
    assert bench.events()[4:] == ["enqueue"]


def test_so_much_waits_at_most() -> None:
    bench = EventBench(A, per_second=10 * PLENTY)
    bench.send("a", "m " * (WAITING_AT_MOST + 7))
    assert bench.told()[0]["cause"].startswith("7 records: ")


@pytest.mark.parametrize("policy", [AddressFullPolicy.BLOCK, AddressFullPolicy.DROP, AddressFullPolicy.FAIL])
def test_a_full_address_costs_records_and_holds_nothing_up(policy: AddressFullPolicy) -> None:
    full: dict[str, object] = {"max_size_messages": 1, "address_full_policy": policy}
    bench = EventBench(A, **{"delosmq.events": full})
    bench.send("a", "m")
    assert bench.events() == ["enqueue"]
    bench.send("a", "m m")
    bench.later(1_000)
    bench.later(1_000)
    assert bench.broker.event_records.lost == 2
    reader, port = bench.consume("log", routing=MULTICAST)
    bench.run()
    bench.broker.consumers.acknowledge(reader, port.slots[0].sequence)
    bench.later(1_000)
    assert json.loads(port.slots[1].message.body)["cause"].startswith("2 records: ")


def test_times_of_acceptance_are_kept_for_messages_with_the_time_of_their_sender() -> None:
    bench = EventBench(A)
    message = bench.message("a", "m")
    message.protocol = "openwire/12"
    message.timestamp_ms -= 1_000_000
    accepted_ms = bench.clock.now_ms
    bench.broker.producers.send(message)
    bench.clock.now_ms += 10
    bench.consume("a")
    bench.run()
    assert bench.events("accepted_ms") == [f"enqueue {accepted_ms}", f"dispatch {accepted_ms}"]


# -- life --------------------------------------------------------------------------------------------------------


def test_a_flush_tells_what_waits() -> None:
    bench = EventBench(A)
    bench.send("a", "m")
    bench.broker.event_records.flush()
    assert [one["event"] for one in records_in(bench)] == ["enqueue"]
    bench.broker.event_records.flush()
    assert bench.events() == ["enqueue"]


def test_a_durable_queue_keeps_records_over_a_restart_which_records_nothing_itself() -> None:
    bench = EventBench(QueueSettings("a", "a", durable=True))
    bench.send("a", "m")
    bench.later(1_000)
    again = bench.restart()
    again.later(2_000)
    assert [one["event"] for one in records_in(again)] == ["enqueue"]


def test_an_address_that_was_deleted_gets_nothing_and_breaks_nothing() -> None:
    bench = EventBench(A)
    bench.send("a", "m")
    bench.broker.resources.delete_queue("log")
    bench.broker.resources.delete_address("delosmq.events")
    bench.later(1_000)
    bench.send("a", "m")
    bench.later(1_000)
    assert bench.pending("a") == "m m"


def test_the_address_is_there_from_the_start() -> None:
    bench = Bench(core={"delosmq_events": 1})
    assert bench.broker.addresses["delosmq.events"].routing_types == {MULTICAST}
