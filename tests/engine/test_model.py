"""The engine against a reference made of lists: any sequence of commands leads both to the same state."""

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from delosmq.engine.base.events import EngineEvents
from delosmq.engine.base.slots import Slot
from delosmq.engine.log.log import Batch
from delosmq.engine.log.ports import Replay
from delosmq.engine.queues.consumer import Consumer
from delosmq.engine.queues.credit import MessageCredit, OpenCredit
from delosmq.engine.queues.queue import Queue
from delosmq.engine.routing.send_result import BLOCKED, NO_ROUTE, ROUTED
from delosmq.model.ids import Position
from delosmq.model.message import ANY_ROUTING, ANYCAST, MULTICAST
from delosmq.model.settings import UNLIMITED, AddressFullPolicy, QueueSettings
from tests.chance import tries
from tests.engine.reference import RefConsumer, Reference, RefGroup, RefQueue, RefSlot
from tests.engine.support import Bench, Collector, RecordingStore

ATTEMPTS = 3
SMALL_LIMIT = 4
GROUP = "archive"
QUEUES = (
    QueueSettings("plain", "plain", ANYCAST),
    QueueSettings("ring", "ring", ANYCAST, ring_size=3),
    QueueSettings("small", "small", ANYCAST),
    QueueSettings("dead", "dead", ANYCAST),
    QueueSettings("news.all", "news", MULTICAST),
    QueueSettings("news.last", "news", MULTICAST, ring_size=2),
    QueueSettings("news.live", "news", MULTICAST, durable=False),
)
SETTINGS: dict[str, dict[str, object]] = {
    "#": {"dead_letter_address": "dead", "max_delivery_attempts": ATTEMPTS},
    "dead": {"dead_letter_address": "", "max_delivery_attempts": UNLIMITED, "auto_delete_queues": False},
    "small": {"max_size_messages": SMALL_LIMIT, "address_full_policy": AddressFullPolicy.BLOCK},
}
FOCUSES = (
    ("plain",),
    ("ring",),
    ("ring",),
    ("small", "plain"),
    ("plain", "dead"),
    ("news.all", "news.last", "news.live"),
)
# What clears a queue, or all of them, must not come so often that little else is seen.
RARELY = st.sampled_from((False, False, False, True))
Delivery = tuple["Port", Slot]
Projection = dict[str, list[tuple[int, str, int, int, str]]]


class StateStore(RecordingStore):
    """Also keeps one state block, as a journal does at each new segment; replay begins with it."""

    def __init__(self, batches: list[tuple[int, list[bytes], list[bytes]]] | None = None) -> None:
        super().__init__(batches)
        self.block: tuple[int, bytes] | None = None
        self.stored = 0
        self.dangling: list[int] = []

    def recover(self, replay: Replay) -> Position:
        if self.block is not None:
            replay.replay_state(Position(self.block[0]), self.block[1])
        return super().recover(replay)

    def append(self, batch: Batch) -> None:
        self.stored += len(batch.stored)
        super().append(batch)
        self.dangling += [home.size_bytes for home in batch.targets if home.segment == 0]


class Port(Collector):
    """Notes what it gets in a list that all ports share: the order of deliveries over all of them."""

    def __init__(self, deliveries: list[Delivery]) -> None:
        super().__init__()
        self.deliveries = deliveries

    def deliver(self, slot: Slot) -> None:
        self.deliveries.append((self, slot))


def key(slot: Slot) -> tuple[str, int, int, bool]:
    return (slot.message.body.decode(), slot.message.priority, slot.delivery_count, slot.recorded)


def ref_key(slot: RefSlot) -> tuple[str, int, int, bool]:
    return (slot.message.body, slot.message.priority, slot.count, slot.recorded)


def consumer_slots(consumer: Consumer) -> list[Slot]:
    return list(reversed(consumer.held_newest_first()))


def all_slots(queue: Queue) -> list[Slot]:
    return queue.pending.in_order() + [slot for c in queue.holders for slot in consumer_slots(c)]


def durable_projection(bench: Bench) -> Projection:
    """What must outlive a crash: the recorded references of each durable queue and how often they were delivered."""
    leased = {id(group) for group in bench.broker.leases.groups.values()}
    found: Projection = {}
    for name, queue in bench.broker.queues.items():
        if queue.temporary or not queue.settings.durable:
            continue
        rows = [(slot, slot.delivery_count) for slot in queue.pending.in_order()]
        for consumer in queue.holders:
            under_way = 0 if id(consumer) in leased else 1
            rows += [(slot, slot.delivery_count - under_way) for slot in consumer_slots(consumer)]
        found[name] = sorted(
            (s.sequence, s.message.body.decode(), s.message.priority, count, str(s.message.annotations))
            for s, count in rows
            if s.recorded
        )
    return found


def lease_projection(bench: Bench) -> dict[str, object]:
    return {
        name: (
            group.queue.name,
            group.incarnation,
            group.epoch,
            group.acked,
            group.newest,
            {number: [slot.sequence for slot in lease.slots] for number, lease in group.leases.items()},
        )
        for name, group in bench.broker.leases.groups.items()
    }


class Engine(RuleBasedStateMachine):
    @initialize(focus=st.sampled_from(FOCUSES), consumers=st.lists(st.sampled_from((None, 2, 4)), max_size=2))
    def begin(self, focus: tuple[str, ...], consumers: list[int | None]) -> None:
        # A few queues a run: two commands on one queue meet more often than among all of them.
        self.focus = focus
        self.store = StateStore()
        self.bench = Bench(queues=QUEUES, settings=SETTINGS, store=self.store)
        self.deliveries: list[Delivery] = []
        self.ports: dict[RefConsumer, tuple[Consumer, Port]] = {}
        self.sent = 0
        self.reference = Reference([self._reference_queue(queue) for queue in QUEUES], "dead", {"small": SMALL_LIMIT})
        for limit in consumers:
            self._attach(self.reference.queues[focus[0]], limit, ANY_ROUTING)

    @staticmethod
    def _reference_queue(queue: QueueSettings) -> RefQueue:
        ring = UNLIMITED if queue.ring_size is None else queue.ring_size
        attempts = UNLIMITED if queue.address == "dead" else ATTEMPTS
        return RefQueue(queue.name, queue.address, queue.durable, ring, attempts)

    def _consumers(self) -> list[RefConsumer]:
        return list(self.ports)

    # -- rules: sending and queues -------------------------------------------------------------------------------

    @rule(
        pick=st.integers(0, 2),
        priority=st.sampled_from((4, 4, 4, 0, 9)),
        durable=st.booleans(),
        count=st.integers(1, 4),
        run=st.booleans(),
    )
    def send(self, pick: int, priority: int, durable: bool, count: int, run: bool) -> None:
        address = self.focus[pick % len(self.focus)].partition(".")[0]
        for _ in range(count):
            self.sent += 1
            body = f"m{self.sent}"
            full = self.reference.is_full(address)
            routable = any(queue.address == address for queue in self.reference.queues.values())
            expected = BLOCKED if full else ROUTED if routable else NO_ROUTE
            assert self.bench.send(address, body, durable=durable, priority=priority) == [expected]
            if expected == ROUTED:
                self.reference.send(address, body, priority=priority, durable=durable)
            if run:
                self.settle()

    @rule(pick=st.integers(0, 2), ring=st.integers(-1, 4))
    def resize(self, pick: int, ring: int) -> None:
        name = self.focus[pick % len(self.focus)]
        if name in self.reference.queues:
            self.bench.broker.resources.update_queue(name, ring_size=ring, max_consumers=None)
            self.reference.queues[name].ring = ring

    @rule(pick=st.integers(0, 2), sure=RARELY)
    def delete_or_create(self, pick: int, sure: bool) -> None:
        if not sure:
            return
        name = self.focus[pick % len(self.focus)]
        settings = next(queue for queue in QUEUES if queue.name == name)
        queue = self.reference.queues.get(name)
        if queue is None:
            self.bench.broker.resources.create_queue(settings)
            self.reference.queues[name] = self._reference_queue(settings)
            return
        gone = list(queue.consumers)
        self.bench.broker.resources.delete_queue(name)
        self.reference.delete(queue)
        for consumer in gone:
            assert self.ports.pop(consumer)[1].closed is not None
        self.settle()

    # -- rules: consuming ----------------------------------------------------------------------------------------

    @rule(pick=st.integers(0, 2), limit=st.sampled_from((None, 1, 2, 5)))
    def subscribe(self, pick: int, limit: int | None) -> None:
        queue = self.reference.queues.get(self.focus[pick % len(self.focus)])
        if queue is not None:
            self._attach(queue, limit, ANY_ROUTING)

    @precondition(lambda self: "news.all" in self.focus)
    @rule(limit=st.sampled_from((None, 1)))
    def subscribe_to_topic(self, limit: int | None) -> None:
        self._attach(RefQueue("", "news", durable=False, attempts=ATTEMPTS, temporary=True), limit, MULTICAST)

    def _attach(self, queue: RefQueue, limit: int | None, routing: int) -> None:
        port = Port(self.deliveries)
        credit = OpenCredit() if limit is None else MessageCredit(limit)
        consumer = self.bench.broker.consumers.subscribe(
            queue.address, port, credit, queue_name=queue.name, routing=routing
        )
        if queue.temporary:
            assert consumer.queue is not None
            queue.name = consumer.queue.name
            self.reference.queues[queue.name] = queue
        ours = RefConsumer(queue, limit)
        queue.consumers.append(ours)
        self.ports[ours] = (consumer, port)

    def settle(self) -> None:
        """Lets the engine come to rest and checks every delivery against the reference."""
        self.bench.run()
        by_port = {port: ours for ours, (_, port) in self.ports.items()}
        last: dict[RefQueue, list[RefConsumer]] = {}
        for port, slot in self.deliveries:
            ours = by_port[port]
            queue = ours.queue
            assert ours.has_room(), "delivered to a consumer without room"
            assert queue.pending, "delivered what is not pending"
            taken = self.reference.take(queue)
            ours.held.append(taken)
            assert (slot.message.body.decode(), slot.delivery_count) == (taken.message.body, taken.count)
            last.setdefault(queue, []).append(ours)
        self.deliveries.clear()
        for queue in self.reference.queues.values():
            waiting = [consumer for consumer in queue.consumers if consumer.has_room()]
            assert not queue.pending or not waiting, f"{queue.name}: messages and a consumer with room"
            self._check_turns(last.get(queue, []), waiting)

    @staticmethod
    def _check_turns(turns: list[RefConsumer], with_room: list[RefConsumer]) -> None:
        # Who has room at the end had room all the time, so nobody else may have come twice without him in between.
        for patient in with_room:
            since: set[RefConsumer] = set()
            for served in turns:
                if served is patient:
                    since.clear()
                else:
                    assert served not in since, "a consumer with room was passed over"
                    since.add(served)

    @precondition(lambda self: self.ports)
    @rule(picked=st.data(), cumulative=st.booleans(), accepted=st.booleans())
    def answer(self, picked: st.DataObject, cumulative: bool, accepted: bool) -> None:
        self.settle()
        ours = picked.draw(st.sampled_from(self._consumers()))
        consumer, _ = self.ports[ours]
        broker = self.bench.broker
        command = {
            (True, True): broker.consumers.acknowledge_through,
            (False, True): broker.consumers.acknowledge,
            (True, False): broker.consumers.reject_through,
            (False, False): broker.consumers.reject,
        }[cumulative, accepted]
        if not ours.held:
            assert not command(consumer, 1)
            return
        index = picked.draw(st.integers(0, len(ours.held) - 1))
        chosen = ours.held[: index + 1] if cumulative else [ours.held[index]]
        assert command(consumer, consumer_slots(consumer)[index].sequence)
        if accepted:
            self.reference.acknowledge(ours, chosen)
        else:
            self.reference.give_back(ours, chosen, [])

    @precondition(lambda self: self.ports)
    @rule(picked=st.data(), written=st.integers(0, 6))
    def close(self, picked: st.DataObject, written: int) -> None:
        self.settle()
        ours = picked.draw(st.sampled_from(self._consumers()))
        consumer, _ = self.ports.pop(ours)
        unseen: set[int] = {slot.sequence for slot in consumer_slots(consumer)[written:]}
        self.bench.broker.consumers.close(consumer, unseen)
        self.bench.broker.consumers.close(consumer, unseen)  # a second time changes nothing
        self.reference.close(ours, ours.held[written:])
        self.settle()

    @precondition(lambda self: self.ports)
    @rule(picked=st.data())
    def fill_or_drain_outbox(self, picked: st.DataObject) -> None:
        self.settle()
        ours = picked.draw(st.sampled_from(self._consumers()))
        consumer, port = self.ports[ours]
        ours.room = port.room = not port.room
        if port.room:
            self.bench.broker.consumers.credit_changed(consumer)

    # -- rules: leases -------------------------------------------------------------------------------------------

    @rule(rows=st.integers(1, 5))
    def lease(self, rows: int) -> None:
        name = self.focus[0]
        if name not in self.reference.queues:
            return
        leases = self.bench.broker.leases
        group = self.reference.groups.get(GROUP)
        if group is None:
            opened = self.bench.broker.lease_groups.open(GROUP, queue=name, topic="", run="r", incarnation=None)
            assert (opened.acked, opened.newest) == (0, 0)
            self.reference.groups[GROUP] = group = RefGroup(self.reference.queues[name])
        expected = self.reference.lease(GROUP, rows)
        number = group.newest
        epoch = leases.groups[GROUP].epoch
        # Numbers go on after the newest even if all of them are acknowledged.
        made = leases.request(
            GROUP, after=number - 1 if expected else number, max_rows=rows, max_bytes=10**9, epoch=epoch, until=None
        )
        self.reference.acknowledge_leases(GROUP, number - 1 if expected else number)
        assert [key(slot) for slot in made.slots] == [ref_key(slot) for slot in expected] if made else not expected
        self.settle()

    @precondition(lambda self: GROUP in self.reference.groups)
    @rule(back=st.integers(0, 2))
    def acknowledge_lease(self, back: int) -> None:
        group = self.reference.groups[GROUP]
        number = max(0, group.newest - back)
        leases = self.bench.broker.leases
        assert leases.acknowledge(GROUP, number, leases.groups[GROUP].epoch) == max(number, group.acked)
        self.reference.acknowledge_leases(GROUP, number)
        self.settle()

    @precondition(lambda self: GROUP in self.reference.groups)
    @rule()
    def release_group(self) -> None:
        expected = len(self.reference.groups[GROUP].held())
        assert self.bench.broker.leases.release(GROUP) == expected
        self.reference.release(GROUP)
        self.settle()

    # -- rules: restart ------------------------------------------------------------------------------------------

    @rule(sure=RARELY, block=st.booleans())
    def restart(self, sure: bool, block: bool) -> None:
        """Every time what a restart would bring is compared; the run goes on from there only now and then."""
        if block:
            self.store.block = (self.bench.broker.log.position, self.bench.broker.state.state())
        self.settle()
        before = durable_projection(self.bench)
        leases = lease_projection(self.bench)
        replayed = self._replayed()
        assert durable_projection(replayed) == before
        assert lease_projection(replayed) == leases
        if not sure:
            return
        self.ports.clear()
        again = StateStore(list(self.store.batches))
        again.block = self.store.block
        self.store = again
        self.bench = Bench(queues=self._configured(), settings=SETTINGS, store=again)
        self.reference.restart()
        again.stored = len(self._recorded_messages())
        again.released = 0

    def _configured(self) -> tuple[QueueSettings, ...]:
        # What was deleted is not configured any more, or each restart would make it again; rings are as resized.
        return tuple(
            QueueSettings(q.name, q.address, q.routing_type, q.durable, self.reference.queues[q.name].ring)
            for q in QUEUES
            if q.name in self.reference.queues
        )

    def _replayed(self) -> Bench:
        """What a crash at this moment would leave, before ordinary commands such as the trimming of rings."""
        store = StateStore(list(self.store.batches))
        store.block = self.store.block
        wide = tuple(QueueSettings(q.name, q.address, q.routing_type, q.durable, UNLIMITED) for q in self._configured())
        return Bench(queues=wide, settings=SETTINGS, store=store, events=EngineEvents())

    # -- invariants ----------------------------------------------------------------------------------------------

    def _recorded_messages(self) -> set[int]:
        broker = self.bench.broker
        return {s.sequence for queue in broker.queues.values() for s in all_slots(queue) if s.recorded}

    @invariant()
    def queues_are_as_in_the_reference(self) -> None:
        assert set(self.bench.broker.queues) == set(self.reference.queues)
        for name, ours in self.reference.queues.items():
            queue = self.bench.broker.queues[name]
            assert [key(s) for s in queue.pending.in_order()] == [ref_key(s) for s in ours.pending], name
            leased = sum(len(g.held()) for g in self.reference.groups.values() if g.queue is ours)
            assert queue.delivering.count == sum(len(c.held) for c in ours.consumers) + leased
            assert queue.pending.count == len(ours.pending)
            assert (queue.ring_size, queue.counters.added, queue.counters.acknowledged) == (
                ours.ring,
                ours.added,
                ours.acknowledged,
            ), name
            assert (queue.counters.replaced, queue.counters.killed) == (ours.replaced, ours.killed), name

    @invariant()
    def consumers_hold_what_the_reference_says(self) -> None:
        for ours, (consumer, _) in self.ports.items():
            assert [key(slot) for slot in consumer_slots(consumer)] == [ref_key(slot) for slot in ours.held]
            assert consumer.held_count == len(ours.held)

    @invariant()
    def memory_is_what_a_recount_gives(self) -> None:
        broker = self.bench.broker
        total = 0
        for address in broker.addresses.values():
            messages = {id(s.message): s.message for queue in address.queues() for s in all_slots(queue)}
            assert address.account.used_messages == len(messages), address.name
            size = sum(message.charge_bytes for message in messages.values())
            assert address.account.used_bytes == size, address.name
            total += size
        assert broker.used_bytes == total

    @invariant()
    def the_store_is_told_of_every_message_that_nothing_needs(self) -> None:
        assert not self.store.dangling
        assert self.store.stored - self.store.released == len(self._recorded_messages())


TestEngine = Engine.TestCase
TestEngine.settings = settings(
    max_examples=tries(250),
    stateful_step_count=40,
    deadline=None,
    # Without the phase that explains failures: it traces every line and takes minutes.
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
