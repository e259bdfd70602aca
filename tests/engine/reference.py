"""What a broker means, with lists and loops: the reference that the stateful test holds the engine against."""

from dataclasses import dataclass, field

from delosmq.model.settings import UNLIMITED


@dataclass(eq=False)
class RefMessage:
    body: str
    priority: int
    durable: bool
    order: int
    address: str


@dataclass(eq=False)
class RefSlot:
    message: RefMessage
    recorded: bool
    count: int = 0

    @property
    def place(self) -> tuple[int, int]:
        return (-self.message.priority, self.message.order)


@dataclass(eq=False)
class RefConsumer:
    queue: "RefQueue"
    limit: int | None
    room: bool = True
    held: list[RefSlot] = field(default_factory=list)

    def has_room(self) -> bool:
        return self.room and (self.limit is None or len(self.held) < self.limit)


@dataclass(eq=False)
class RefQueue:
    name: str
    address: str
    durable: bool = True
    ring: int = UNLIMITED
    attempts: int = UNLIMITED
    temporary: bool = False
    pending: list[RefSlot] = field(default_factory=list)
    consumers: list[RefConsumer] = field(default_factory=list)
    added: int = 0
    acknowledged: int = 0
    replaced: int = 0
    killed: int = 0

    def order(self) -> None:
        self.pending.sort(key=lambda slot: slot.place)


@dataclass(eq=False)
class RefGroup:
    queue: RefQueue
    acked: int = 0
    leases: dict[int, list[RefSlot]] = field(default_factory=dict)

    @property
    def newest(self) -> int:
        return max(self.leases, default=self.acked)

    def held(self) -> list[RefSlot]:
        return [slot for lease in self.leases.values() for slot in lease]


class Reference:
    """Queues as lists. ``dead`` names the queue that takes what used up its attempts; it is made if it is missing."""

    def __init__(self, queues: list[RefQueue], dead: str, limits: dict[str, int]) -> None:
        self.queues = {queue.name: queue for queue in queues}
        self.dead = dead
        self.limits = limits
        self.groups: dict[str, RefGroup] = {}
        self.next_order = 1

    # -- looking -------------------------------------------------------------------------------------------------

    def slots_of(self, queue: RefQueue) -> list[RefSlot]:
        held = [slot for consumer in queue.consumers for slot in consumer.held]
        leased = [slot for group in self.groups.values() if group.queue is queue for slot in group.held()]
        return queue.pending + held + leased

    def messages(self, address: str) -> set[RefMessage]:
        return {s.message for queue in self.queues.values() if queue.address == address for s in self.slots_of(queue)}

    def is_full(self, address: str) -> bool:
        return address in self.limits and len(self.messages(address)) >= self.limits[address]

    # -- sending -------------------------------------------------------------------------------------------------

    def send(self, address: str, body: str, *, priority: int, durable: bool) -> None:
        self._put(RefMessage(body, priority, durable, self.next_order, address))

    def _put(self, message: RefMessage) -> None:
        self.next_order += 1
        for queue in self.queues.values():
            if queue.address != message.address:
                continue
            queue.added += 1
            queue.pending.append(RefSlot(message, message.durable and queue.durable))
            queue.order()
            if queue.ring != UNLIMITED and len(queue.pending) > queue.ring:
                queue.pending.pop(0)
                queue.replaced += 1

    # -- consuming -----------------------------------------------------------------------------------------------

    def take(self, queue: RefQueue) -> RefSlot:
        slot = queue.pending.pop(0)
        slot.count += 1
        return slot

    def acknowledge(self, consumer: RefConsumer, slots: list[RefSlot]) -> None:
        for slot in slots:
            consumer.held.remove(slot)
            consumer.queue.acknowledged += 1

    def give_back(self, consumer: RefConsumer, slots: list[RefSlot], unseen: list[RefSlot]) -> None:
        """``slots`` in order of delivery; they return the last one first."""
        for slot in reversed(slots):
            consumer.held.remove(slot)
            self.give_back_one(consumer.queue, slot, unseen=slot in unseen)

    def give_back_one(self, queue: RefQueue, slot: RefSlot, *, unseen: bool) -> None:
        if unseen:
            slot.count -= 1
        elif queue.attempts != UNLIMITED and slot.count >= queue.attempts:
            message = slot.message
            queue.killed += 1
            if self.dead not in self.queues:
                self.queues[self.dead] = RefQueue(self.dead, self.dead)
            self._put(RefMessage(message.body, message.priority, message.durable, self.next_order, self.dead))
            return
        if queue.ring != UNLIMITED and len(queue.pending) >= queue.ring:
            queue.replaced += 1
            return
        queue.pending.append(slot)
        queue.order()

    def close(self, consumer: RefConsumer, unseen: list[RefSlot]) -> None:
        queue = consumer.queue
        self.give_back(consumer, list(consumer.held), unseen)
        queue.consumers.remove(consumer)
        if queue.temporary and not queue.consumers:
            del self.queues[queue.name]

    def delete(self, queue: RefQueue) -> None:
        for name in [name for name, group in self.groups.items() if group.queue is queue]:
            self.release(name)
        for consumer in list(queue.consumers):
            self.give_back(consumer, list(consumer.held), [])
        queue.consumers.clear()
        del self.queues[queue.name]

    # -- leases --------------------------------------------------------------------------------------------------

    def lease(self, name: str, rows: int) -> list[RefSlot]:
        group = self.groups[name]
        taken = [self.take(group.queue) for _ in range(min(rows, len(group.queue.pending)))]
        for slot in taken:
            slot.recorded = True
        if taken:
            group.leases[group.newest + 1] = taken
        return taken

    def acknowledge_leases(self, name: str, upto: int) -> None:
        group = self.groups[name]
        for number in [k for k in group.leases if k <= upto]:
            group.queue.acknowledged += len(group.leases.pop(number))
        group.acked = max(group.acked, upto)

    def release(self, name: str) -> None:
        group = self.groups.pop(name)
        for slot in reversed(group.held()):
            self.give_back_one(group.queue, slot, unseen=False)

    # -- restart -------------------------------------------------------------------------------------------------

    def restart(self) -> None:
        """A crash: what was in flight is pending again and not counted, what is not durable is gone."""
        for queue in [queue for queue in self.queues.values() if queue.temporary]:
            del self.queues[queue.name]
        for queue in self.queues.values():
            for consumer in queue.consumers:
                for slot in consumer.held:
                    slot.count -= 1
                queue.pending += consumer.held
            queue.consumers.clear()
            queue.pending = [slot for slot in queue.pending if slot.recorded]
            queue.order()
            queue.added = queue.acknowledged = queue.killed = queue.replaced = 0
            while queue.ring != UNLIMITED and len(queue.pending) > queue.ring:
                queue.pending.pop(0)
                queue.replaced += 1
