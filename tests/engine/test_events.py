"""Every change of state is told: plugins, audit and metrics hear of it after it has happened."""

import pytest

from delosmq.engine.base.events import NO_EVENTS, EngineEvents, events_for
from delosmq.engine.base.slots import Slot
from delosmq.engine.broker import EngineBroker
from delosmq.engine.queues.consumer import ConsumerOptions
from delosmq.engine.queues.credit import MessageCredit, OpenCredit
from delosmq.model.message import ANYCAST, MULTICAST, Message
from delosmq.model.settings import BrokerSettings, DivertSettings, QueueSettings
from tests.engine.support import Bench, Collector, CountingRandom, ManualClock, RecordingStore
from tests.memory import living


class Heard(EngineEvents):
    """Notes what is told, in order."""

    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []

    def queue_paused(self, queue: str) -> None:
        self.told.append(("paused", queue))

    def queue_resumed(self, queue: str) -> None:
        self.told.append(("resumed", queue))

    def queue_disabled(self, queue: str) -> None:
        self.told.append(("disabled", queue))

    def queue_enabled(self, queue: str) -> None:
        self.told.append(("enabled", queue))

    def queue_purged(self, queue: str, removed: int) -> None:
        self.told.append(("purged", queue, removed))

    def address_created(self, address: str) -> None:
        self.told.append(("created", address))

    def address_deleted(self, address: str) -> None:
        self.told.append(("deleted", address))

    def exclusive_owner_changed(self, queue: str, consumer_id: int) -> None:
        self.told.append(("owner", queue, consumer_id))

    def group_assigned(self, queue: str, group: str, consumer_id: int) -> None:
        self.told.append(("group", queue, group, consumer_id))

    def message_scheduled(self, queue: str, slot: Slot) -> None:
        self.told.append(("scheduled", queue, slot.due_at_ms))

    def message_due(self, queue: str, slot: Slot) -> None:
        self.told.append(("due", queue, slot.due_at_ms))

    def message_diverted(self, message: Message, divert: str, copy: Message) -> None:
        self.told.append(("diverted", message.address, divert, copy.address, copy.message_id > 0))

    def lease_made(self, group: str, lease: int, messages: int) -> None:
        self.told.append(("lease", group, lease, messages))

    def lease_acknowledged(self, group: str, lease: int) -> None:
        self.told.append(("acked", group, lease))

    def duplicate_ids_cleared(self, address: str, count: int) -> None:
        self.told.append(("cleared", address, count))

    def transaction_timed_out(self, transaction: int, xid: bytes) -> None:
        self.told.append(("timed out", xid))

    def branch_ended_by_operator(self, transaction: int, xid: bytes, committed: bool) -> None:
        self.told.append(("operator", xid, committed))


def bench(**settings: object) -> tuple[Bench, Heard]:
    """An engine with queue q, and what it has told since its start."""
    heard = Heard()
    made = Bench(queues=(QueueSettings("q", "q"),), events=heard, settings={"q": settings} if settings else None)
    heard.told.clear()
    return made, heard


def send(made: Bench, count: int = 1, **fields: object) -> None:
    for _ in range(count):
        message = made.message("q", "m")
        for name, value in fields.items():
            setattr(message, name, value)
        made.broker.producers.send(message)
    run(made)


def run(made: Bench) -> None:
    while made.broker.tick():
        pass


def test_a_switch_is_told_once_and_only_when_it_changes() -> None:
    made, heard = bench()
    for changes in ({"paused": True}, {"paused": True}, {"paused": False}, {"enabled": False}, {"enabled": True}):
        made.broker.resources.update_queue("q", **changes)
    made.broker.resources.update_queue("q", ring_size=5)
    assert heard.told == [("paused", "q"), ("resumed", "q"), ("disabled", "q"), ("enabled", "q")]


def test_a_purge_is_told_when_all_is_gone() -> None:
    made, heard = bench()
    send(made, 1_200)
    work = made.broker.resources.purge_queue("q")
    assert not work.done
    assert heard.told == []
    run(made)
    assert heard.told == [("purged", "q", 1_200)]
    made.broker.resources.delete_queue("q")
    assert heard.told[1:] == []


def test_addresses_come_and_go() -> None:
    made, heard = bench()
    made.broker.resources.create_address("news", {MULTICAST})
    made.broker.resources.create_address("news", {ANYCAST})
    made.broker.resources.delete_address("news")
    made.broker.resources.create_queue(QueueSettings("auto", "auto", auto_created=True))
    made.broker.resources.delete_queue("auto")
    assert heard.told == [("created", "news"), ("deleted", "news"), ("created", "auto"), ("deleted", "auto")]


def test_an_exclusive_owner_is_told_with_its_successor_and_its_end() -> None:  # EXCL-2
    made, heard = bench()
    exclusive = ConsumerOptions(exclusive=True)
    consumers = [
        made.broker.consumers.subscribe("q", Collector(), OpenCredit(), queue_name="q", options=exclusive) for _ in "ab"
    ]
    for consumer in consumers:
        made.broker.consumers.close(consumer)
    first, second = (consumer.id for consumer in consumers)
    assert heard.told == [("owner", "q", first), ("owner", "q", second), ("owner", "q", 0)]


def test_a_group_is_told_with_its_owner() -> None:
    made, heard = bench()
    consumer = made.broker.consumers.subscribe("q", Collector(), MessageCredit(10), queue_name="q")
    send(made, 2, group_id="g")
    assert heard.told == [("group", "q", "g", consumer.id)]


def test_a_scheduled_message_is_told_and_told_again_when_it_is_due() -> None:
    made, heard = bench()
    due_at_ms = made.clock.now_ms + 50
    send(made, due_at_ms=due_at_ms)
    assert heard.told == [("scheduled", "q", due_at_ms)]
    made.clock.now_ms += 60
    run(made)
    assert heard.told[1:] == [("due", "q", 0)]


def test_a_delayed_redelivery_is_told_as_scheduled() -> None:
    made, heard = bench(redelivery_delay=1_000)
    consumer = made.broker.consumers.subscribe("q", Collector(), MessageCredit(1), queue_name="q")
    send(made)
    made.broker.consumers.reject(consumer, made.broker.queues["q"].newest_sequence)
    assert heard.told == [("scheduled", "q", made.clock.now_ms + 1_000)]


def diverted(heard: Heard) -> Bench:
    divert = DivertSettings("audit", "q", ("copy",))
    made = Bench.__new__(Bench)
    made.clock = ManualClock()
    made.settings = BrokerSettings(queues=(QueueSettings("q", "q"), QueueSettings("copy", "copy")), diverts=(divert,))
    made.broker = EngineBroker(made.settings, RecordingStore(), clock=made.clock, random=CountingRandom(), events=heard)
    made.broker.start()
    heard.told.clear()
    return made


def test_a_copy_of_a_divert_is_told() -> None:
    heard = Heard()
    send(diverted(heard))
    assert heard.told == [("diverted", "q", "audit", "copy", True)]


def test_a_copy_in_a_transaction_is_told_with_its_commit_however_large() -> None:
    for count in (1, 3_000):
        heard = Heard()
        made = diverted(heard)
        transaction = made.broker.transactions.begin("owner")
        for _ in range(count):
            made.broker.transactions.send(transaction, made.message("q", "m"))
        assert heard.told == []
        made.broker.transactions.commit(transaction)
        run(made)
        assert heard.told == [("diverted", "q", "audit", "copy", True)] * count


def test_leases_are_told() -> None:
    made, heard = bench()
    send(made, 3)
    group = made.broker.lease_groups.open("g", queue="q", topic="", run="r", incarnation=None)
    made.broker.leases.request("g", after=0, max_rows=2, max_bytes=1 << 20, epoch=group.epoch, until=None)
    made.broker.leases.acknowledge("g", 1, group.epoch)
    made.broker.leases.acknowledge("g", 1, group.epoch)
    assert heard.told == [("lease", "g", 1, 2), ("acked", "g", 1)]


def test_forgetting_duplicate_ids_is_told() -> None:
    made, heard = bench()
    send(made, duplicate_id=b"1")
    send(made, duplicate_id=b"2")
    made.broker.duplicate_ids.clear("q")
    assert heard.told == [("cleared", "q", 2)]


def test_what_operators_and_time_do_to_branches_is_told() -> None:  # ACK-5
    made, heard = bench()
    for xid in (b"1", b"2"):
        made.broker.branches.start(xid)
        made.broker.branches.end(xid)
        made.broker.branches.prepare(xid)
    made.broker.branches.heuristic_commit(b"1")
    made.broker.branches.heuristic_rollback(b"2")
    made.broker.branches.start(b"3")
    made.clock.now_ms += made.settings.transaction_timeout_ms + 2_000
    run(made)
    assert heard.told == [("operator", b"1", True), ("operator", b"2", False), ("timed out", b"3")]


# -- several listeners hear what one would ---------------------------------------------------------------------

EVENTS = [name for name in dir(EngineEvents) if not name.startswith("_")]


class Noting(EngineEvents):
    def __init__(self, notes: list[str], name: str) -> None:
        self.notes = notes
        self.name = name

    def queue_created(self, queue: str, address: str) -> None:
        self.notes.append(f"{self.name} {queue} of {address}")


@pytest.mark.parametrize("event", EVENTS)
def test_all_who_listen_are_told(event: str) -> None:
    heard: list[tuple[object, ...]] = []

    def note(self: EngineEvents, *told: object) -> None:
        heard.append(told)

    listener = type("Listener", (EngineEvents,), {event: note})
    getattr(events_for([listener(), Noting([], "deaf"), listener()]), event)("orders", 2)
    assert heard == [("orders", 2), ("orders", 2)]


def test_a_method_that_one_object_has_of_its_own_is_told() -> None:
    heard: list[tuple[object, ...]] = []
    listener = Noting([], "a")
    setattr(listener, "queue_deleted", lambda *told: heard.append(told))  # noqa: B010
    events_for([Noting([], "b"), listener]).queue_deleted("orders")
    assert heard == [("orders",)]


def test_an_event_that_is_nowhere_overridden_is_not_passed_on() -> None:
    class Listener(EngineEvents):
        """Overrides nothing."""

    fan_out = events_for([Listener(), Noting([], "a"), Noting([], "b")])
    assert list(vars(fan_out)) == ["queue_created"]


def test_all_are_told_in_their_order() -> None:
    notes: list[str] = []
    made = Bench(events=events_for([Noting(notes, "a"), NO_EVENTS, Noting(notes, "b")]))
    made.broker.resources.create_queue(QueueSettings("q", "orders", ANYCAST))
    assert notes == ["a q of orders", "b q of orders"]


def test_nobody_and_one_need_nothing_between() -> None:
    only = Noting([], "a")
    assert events_for([]) is NO_EVENTS
    assert events_for([NO_EVENTS]) is NO_EVENTS
    assert events_for([NO_EVENTS, only]) is only


def test_listeners_go_with_their_broker() -> None:
    for _ in range(3):
        events_for([Heard(), Heard()]).address_created("orders")
    assert living(Heard) == []
