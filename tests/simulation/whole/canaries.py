"""Brokers that break one promise each. Each must be caught, or the simulation proves nothing.

They work on a compiled engine too: they stand in front of it, behind it in the store, or change what it holds.
"""

from collections.abc import Callable
from typing import Any

from delosmq.engine.broker import EngineBroker
from delosmq.engine.leases.lease import Lease
from delosmq.engine.log import records
from delosmq.engine.log.log import NO_BODY, Batch
from delosmq.engine.log.ports import Replay
from delosmq.engine.log.records import (
    COUNTED,
    DUE_FLAG,
    KILLED,
    PROMISED,
    REMOVED,
    SCHEDULED,
    STORED,
    TRANSACTION,
)
from delosmq.engine.queues.consumer import Consumer, consumers_of
from delosmq.engine.queues.credit import Credit
from delosmq.engine.routing.held_messages import DEAD
from delosmq.engine.routing.send_result import DUPLICATE
from delosmq.engine.transactions.transaction import Transaction
from delosmq.model.ids import Position
from delosmq.model.message import Home, Message
from delosmq.storage.journal.store import JournalStore
from tests.simulation.mutants import TrustsStaleBytes
from tests.simulation.whole.history import SET, Canary
from tests.simulation.whole.stomp import StompPeer
from tests.simulation.whole.times import MeasuresDelaysByTheWall, NeverHearsOfASetting

FLAGS_AT = 51
"""Of a STORED record; the counts and sizes before it, and the due time behind the annotations, as in `records`."""
NOTHING = b"\x04\x01" + bytes(8)
"""A record that changes nothing."""


class Front:
    """The engine, as its clients see it; what is not overridden goes to the real one.

    Attributes:
        part: whose methods are overridden; "" for those of the broker itself.
    """

    part = ""

    def __init__(self, broker: EngineBroker) -> None:
        self.real = broker

    def __getattr__(self, name: str) -> Any:
        real = getattr(self.real, name)
        return FrontOfPart(self, real) if name == self.part else real


class FrontOfPart:
    """A part of the engine, of which a front overrides methods."""

    def __init__(self, front: Front, real: Any) -> None:
        self._front = front
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._front if name in vars(type(self._front)) else self._real, name)


# -- in front of the engine --------------------------------------------------------------------------------------


class RingOffByOne(Front):
    """Every ring keeps one message more than it should."""

    def tick(self) -> bool:
        for queue in self.real.queues.values():
            size = queue.settings.ring_size
            if size is not None and size >= 0:
                queue.ring.size = size + 1
        return self.real.tick()


class LosesRollbacks(Front):
    """What a transaction acknowledged stays acknowledged when it is rolled back."""

    part = "transactions"

    def rollback(self, transaction: Transaction) -> None:
        promised = [(item.consumer, item.slot.sequence) for item in transaction.acks]
        self.real.transactions.rollback(transaction, keep_delivered=True)
        for consumer, sequence in promised:
            self.real.consumers.acknowledge(consumer, sequence)


class SwapsReturns(Front):
    """Puts a returned message behind the next one."""

    part = "consumers"

    def reject(self, consumer: Consumer, sequence: int, **named: Any) -> bool:
        slot = consumer.held(sequence)
        queue = consumer.queue
        done = self.real.consumers.reject(consumer, sequence, **named)
        if slot is not None and queue is not None and queue.pending.holds(slot) and slot.next is not None:
            behind = slot.next
            queue.pending.remove(slot)
            queue.pending.remove(behind)
            slot.order, behind.order = behind.order, slot.order
            queue.pending.put_back(behind)
            queue.pending.put_back(slot)
        return done


class ForgetsIdsOfTransactions(Front):
    """A duplicate id counts outside of transactions only."""

    part = "transactions"

    def send(self, transaction: Transaction, message: Message, *more: Any, **named: Any) -> int:
        message.duplicate_id = b""
        return self.real.transactions.send(transaction, message, *more, **named)


class ExpiresWhatIsInDelivery(Front):
    """Ends expired messages that a consumer holds."""

    def tick(self) -> bool:
        now_ms = self.real.clock.wall_ms()
        for queue in self.real.queues.values():
            for consumer in consumers_of(queue):
                for slot in consumer.held_newest_first():
                    if 0 < slot.message.expires_at_ms <= now_ms:
                        self.real.consumers.expire_delivered(consumer, slot.sequence)
        return self.real.tick()


class DropsWhatIsHeld(Front):
    """Drops dead letters that no queue takes."""

    def tick(self) -> bool:
        core = self.real._parts
        for queue in self.real.queues.values():
            while (bucket := queue.scheduled.due_at(DEAD)) is not None and bucket.head is not None:
                slot = bucket.head
                queue.scheduled.remove(slot)
                queue.counters.killed += 1
                core.removals.remove_one(queue, slot, KILLED)
                core.events.message_dead_lettered(queue.name, slot, "")
                core.log.close()
        return self.real.tick()


class PurgeForgetsScheduled(Front):
    """A purge leaves what is not due yet."""

    part = "resources"

    def purge_queue(self, name: str) -> Any:
        queue = self.real.queues[name]
        kept = [(slot, slot.due_at_ms) for slot in queue.scheduled.in_order()]
        for slot, _ in kept:
            queue.scheduled.remove(slot)
        work = self.real.resources.purge_queue(name)
        for slot, due_at_ms in kept:
            queue.scheduled.add(slot, due_at_ms)
        return work


class KeepsGroupOwners(Front):
    """A consumer that owns groups is not let go."""

    part = "consumers"

    def close(self, consumer: Consumer, unseen: Any) -> None:
        if consumer.owned_groups == 0:
            self.real.consumers.close(consumer, unseen)


class TwoOwners(Front):
    """An exclusive queue forgets who owns it."""

    def tick(self) -> bool:
        for queue in self.real.queues.values():
            if queue.rules is not None:
                queue.rules.ownership.owner = None
        return self.real.tick()


class ElectsTheFirst(Front):
    """When the owner of a queue leaves, the first exclusive consumer is next, whatever its priority."""

    part = "consumers"

    def close(self, consumer: Consumer, unseen: Any) -> None:
        queue = consumer.queue
        rules = None if queue is None else queue.rules
        owned = rules is not None and rules.ownership.owner is consumer
        self.real.consumers.close(consumer, unseen)
        if owned and queue is not None and queue.rules is not None:
            exclusive = (other for other in consumers_of(queue) if other.options.exclusive)
            queue.rules.ownership.owner = next(exclusive, None)


class HandsOutExpired(Front):
    """Only the scan of each second ends what has expired."""

    def tick(self) -> bool:
        self.real._parts.dispatcher.before = None
        self.real._parts.expiry_times.listener = None
        return self.real.tick()


class KeepsIdsOfRollbacks(Front):
    """The duplicate ids of a branch that is rolled back keep their places in the store."""

    part = "branches"

    def rollback(self, xid: bytes) -> None:
        for note in self.real.transactions.branches[xid].duplicate_ids:
            note.home = None
        self.real.branches.rollback(xid)


class LosesAccounts(Front):
    """An acknowledgement gives back less memory than the message took."""

    part = "consumers"

    def acknowledge(self, consumer: Consumer, sequence: int, transaction: Transaction | None = None) -> bool:
        slot = consumer.held(sequence)
        account = None if slot is None else slot.message.account
        done = self.real.consumers.acknowledge(consumer, sequence, transaction)
        if account is not None and transaction is None:
            account.used_bytes += 1
        return done


class AcceptsDuplicates(Front):
    """Sends a duplicate all the same."""

    part = "producers"

    def send(self, message: Message, *more: Any, **named: Any) -> int:
        outcome = self.real.producers.send(message, *more, **named)
        if outcome == DUPLICATE and not named and not more:
            message.duplicate_id = b""
            return self.real.producers.send(message)
        return outcome


class LetsTransactionsWaitForEachOther(Front):
    """Does not look who waits."""

    part = "transactions"

    def send(self, transaction: Transaction, message: Message, *more: Any, **named: Any) -> int:
        self.real.transactions.deadlocks._waiting.clear()
        return self.real.transactions.send(transaction, message, *more, **named)


class LosesTheLastSend(Front):
    """Loses the last message of each commit."""

    part = "transactions"

    def commit(self, transaction: Transaction, waiter: Any = None) -> bool:
        if len(transaction.sends) > 1:
            self.real._parts.memory.release(transaction.sends.pop().message)
        return self.real.transactions.commit(transaction, waiter)


class LeakyCredit(Credit):
    """Every third message that is settled gives no credit back."""

    def __init__(self, limit: int) -> None:
        self._room = limit
        self._settled = 0

    def has_room(self) -> bool:
        return self._room > 0

    def taken(self, size_bytes: int) -> None:
        self._room -= 1

    def settled(self, size_bytes: int) -> None:
        self._settled += 1
        if self._settled % 3:
            self._room += 1


class NotesWritesInAnotherOrder(StompPeer):
    """Takes an earlier message for the last one that is in the client's socket."""

    def confirm_written(self) -> None:
        self.session.outbox._in_flight.reverse()
        super().confirm_written()


class HearsZombies(Front):
    """Takes calls of every epoch."""

    part = "leases"

    def request(self, name: str, *, epoch: int, **named: Any) -> Lease | None:
        made: Lease | None = self.real.leases.request(name, epoch=self._newest(name, epoch), **named)
        return made

    def acknowledge(self, name: str, number: int, epoch: int) -> int:
        acked: int = self.real.leases.acknowledge(name, number, self._newest(name, epoch))
        return acked

    def touch(self, name: str, epoch: int) -> object:
        return self.real.leases.touch(name, self._newest(name, epoch))

    def _newest(self, name: str, epoch: int) -> int:
        group = self.real.leases.groups.get(name)
        return epoch if group is None else int(group.epoch)


class ServesAcknowledgedLeases(Front):
    """The lease after one that is acknowledged has its rows again."""

    part = "leases"

    def request(self, name: str, *, after: int, **named: Any) -> Lease | None:
        group = self.real.leases.groups.get(name)
        before = None if group is None else group.leases.get(after)
        made = self.real.leases.request(name, after=after, **named)
        return made if made is None or before is None else Lease(made.number, before.rows)


class ForgetsSelectors(Front):
    """Leases all of a queue, whatever the selector of the group."""

    part = "lease_groups"

    def open(self, group: str, *, selector: str, **named: Any) -> Any:
        opened = self.real.lease_groups.open(group, selector=selector, **named)
        if not named["topic"]:
            opened.wish.parsed = None
        return opened


# -- behind the engine -------------------------------------------------------------------------------------------


class Editing(JournalStore):
    """Changes batches on their way into the store."""

    def append(self, batch: Batch) -> None:
        self.edit(batch)
        if not batch.metas:
            # The position stays taken.
            batch.metas[:], batch.bodies[:] = [NOTHING], [NO_BODY]
        super().append(batch)

    def edit(self, batch: Batch) -> None:
        """Overridden."""

    @staticmethod
    def keep(batch: Batch, wanted: Callable[[bytes], bool]) -> list[tuple[bytes, bytes]]:
        """Leaves records out; gives those."""
        homes = dict(batch.stored)
        kept: list[tuple[bytes, bytes]] = []
        out: list[tuple[bytes, bytes]] = []
        batch.stored[:] = []
        for index, (meta, body) in enumerate(zip(batch.metas, batch.bodies, strict=True)):
            if index in homes or wanted(meta):
                if index in homes:
                    batch.stored.append((len(kept), homes[index]))
                kept.append((meta, body))
            else:
                out.append((meta, body))
        batch.metas[:], batch.bodies[:] = [meta for meta, _ in kept], [body for _, body in kept]
        return out


class SplitsBatches(Editing):
    """Removals go into the next batch: a commit, or a dead letter, may then happen in part."""

    _left: list[tuple[bytes, bytes]]

    def edit(self, batch: Batch) -> None:
        left: list[tuple[bytes, bytes]] = getattr(self, "_left", [])
        self._left = self.keep(batch, lambda meta: meta[0] != REMOVED) if batch.stored else []
        batch.metas.extend(meta for meta, _ in left)
        batch.bodies.extend(body for _, body in left)


class ForgetsCounts(Editing):
    """Records no delivery counts."""

    def edit(self, batch: Batch) -> None:
        self.keep(batch, lambda meta: meta[0] != COUNTED)


class ForgetsRollbacks(Editing):
    """Does not record that a prepared branch was rolled back."""

    def edit(self, batch: Batch) -> None:
        self.keep(batch, lambda meta: not (meta[0] == TRANSACTION and b'"rollback"' in meta))


class ForgetsPromises(Editing):
    """Does not record what a prepared branch acknowledges."""

    def edit(self, batch: Batch) -> None:
        self.keep(batch, lambda meta: meta[0] != PROMISED)


class ForgetsWhatIsPublished(Editing):
    """Records that parts are committed, and of which batch they are only in memory."""

    def edit(self, batch: Batch) -> None:
        for at, meta in enumerate(batch.metas):
            if meta[0] == TRANSACTION and b'"publish"' in meta:
                batch.metas[at] = meta.replace(b'"app":"query', b'"app":"other')


class ForgetsLeases(Editing):
    """Records no lease that is made."""

    def edit(self, batch: Batch) -> None:
        self.keep(batch, lambda meta: not (meta[0] == records.LEASE and b'"op":"lease"' in meta))


class AcknowledgesInPart(Editing):
    """Records every other slice of what is acknowledged in slices."""

    _count = 0

    def edit(self, batch: Batch) -> None:
        if any(meta[0] == PROMISED for meta in batch.metas):
            self._count = getattr(self, "_count", 0) + 1
            self.keep(batch, lambda meta: meta[0] != PROMISED or self._count % 2 == 0)


class CommitsBeforeItsMessages(Editing):
    """What a transaction sends is not on the disk when its commit is."""

    def edit(self, batch: Batch) -> None:
        sent = [index for index, _ in batch.stored if batch.metas[index][0] == STORED]
        if len(sent) > 1:
            batch.metas[sent[-1]] = NOTHING


class ForgetsIds(Editing):
    """Duplicate ids don't survive."""

    def edit(self, batch: Batch) -> None:
        for index, meta in enumerate(batch.metas):
            if meta[0] == records.DUPLICATE:
                batch.metas[index] = NOTHING


class ForgetsDelays(Editing):
    """Records no delay of a redelivery."""

    def edit(self, batch: Batch) -> None:
        self.keep(batch, lambda meta: meta[0] != SCHEDULED)


class _Unscheduled(Replay):
    def __init__(self, real: Replay) -> None:
        self.real = real

    def replay_state(self, position: Position, state: bytes) -> None:
        self.real.replay_state(position, state)

    def replay_record(self, position: Position, meta: bytes, home: Home) -> None:
        if meta[0] == STORED and meta[1] > 1 and meta[FLAGS_AT] & DUE_FLAG:
            at = self._due_at(meta)
            meta = meta[:at] + bytes(8) + meta[at + 8 :]
        self.real.replay_record(position, meta, home)

    @staticmethod
    def _due_at(meta: bytes) -> int:
        queues = int.from_bytes(meta[40:42], "little")
        sizes = int.from_bytes(meta[42:44], "little") + meta[44]
        sizes += int.from_bytes(meta[45:47], "little") + int.from_bytes(meta[47:51], "little")
        return 52 + 8 * queues + sizes


class PromisesQueuesEarly(Editing):
    """Over OpenWire that a queue was made is answered before that is synced."""

    world: Any

    def edit(self, batch: Batch) -> None:
        self.world.broker.log.bindings_position = Position(0)


class ForgetsTheSchedule(JournalStore):
    """After a restart everything is due at once."""

    def recover(self, replay: Replay) -> Position:
        return super().recover(_Unscheduled(replay))


TRANSACTED = ("send", "begin", "transacted send", "transacted acknowledgement")

READ = ("group open", "group ask", "zombie", "send")

CANARIES: dict[str, Canary] = {
    "gate opened early": Canary(early=True, within=15),
    "queues promised early": Canary(
        kind=PromisesQueuesEarly, often=("openwire connect", "openwire make", "openwire receive"), within=40
    ),
    "stale bytes of a recycled segment accepted": Canary(kind=TrustsStaleBytes, within=15),
    "ring off by one": Canary(front=RingOffByOne, within=30),
    "lost rollback": Canary(front=LosesRollbacks, often=(*TRANSACTED, "roll back"), within=100),
    "order swapped on return": Canary(front=SwapsReturns, about=("jobs",), often=("send", "subscribe", "return")),
    "duplicate id outside its transaction": Canary(
        front=ForgetsIdsOfTransactions, often=(*TRANSACTED, "commit"), within=120
    ),
    "duplicates accepted": Canary(front=AcceptsDuplicates),
    "expiry of a message in delivery": Canary(
        front=ExpiresWhatIsInDelivery, about=("jobs",), often=("send", "time", "acknowledge"), within=120
    ),
    "held dead letters dropped": Canary(
        front=DropsWhatIsHeld, about=("jobs",), often=("send", "subscribe", "return", "delete sink"), within=80
    ),
    "purge forgets scheduled": Canary(front=PurgeForgetsScheduled, often=("send", "purge")),
    "group owner not released": Canary(front=KeepsGroupOwners, about=("teams",), often=("send", "subscribe", "leave")),
    "two exclusive owners": Canary(front=TwoOwners, about=("solo",), often=("send", "subscribe")),
    "the first exclusive consumer elected": Canary(
        front=ElectsTheFirst, about=("chief",), often=("send", "succeed"), within=20
    ),
    "expired messages handed out": Canary(front=HandsOutExpired, often=("send", "subscribe", "time"), within=60),
    "duplicate ids of a rollback keep their places": Canary(
        front=KeepsIdsOfRollbacks, often=(*TRANSACTED, "prepare", "decide"), within=60
    ),
    "memory account leaks": Canary(front=LosesAccounts),
    "commit loses a message": Canary(front=LosesTheLastSend, often=(*TRANSACTED, "commit"), within=35),
    "acknowledgement in slices happens in part": Canary(
        kind=AcknowledgesInPart, often=("acknowledgement in slices",), within=60
    ),
    "transactions wait for each other": Canary(
        front=LetsTransactionsWaitForEachOther, often=("transacted sends that wait",), within=20
    ),
    "credit leak": Canary(credits=LeakyCredit, about=("jobs",), often=("send", "subscribe", "return"), within=30),
    "batch split": Canary(kind=SplitsBatches, within=50),
    "delivery count lost": Canary(kind=ForgetsCounts),
    "rollback of a branch not recorded": Canary(kind=ForgetsRollbacks, often=(*TRANSACTED, "prepare", "decide")),
    "published batch not recorded": Canary(
        kind=ForgetsWhatIsPublished, often=("stage", "publish", "come late"), within=20
    ),
    "zombies of a lease group heard": Canary(front=HearsZombies, often=READ, within=30),
    "acknowledged lease served again": Canary(front=ServesAcknowledgedLeases, about=("jobs",), often=READ, within=30),
    "selector of a lease group forgotten": Canary(front=ForgetsSelectors, about=("jobs",), often=READ, within=30),
    "leases not recorded": Canary(kind=ForgetsLeases, about=("jobs",), often=READ, within=30),
    "acknowledgements of a branch not recorded": Canary(
        kind=ForgetsPromises, often=(*TRANSACTED, "prepare"), within=150
    ),
    "commit before its messages": Canary(kind=CommitsBeforeItsMessages, often=(*TRANSACTED, "commit"), within=35),
    "duplicate ids forgotten at restart": Canary(kind=ForgetsIds),
    "redelivery delay forgotten at restart": Canary(
        kind=ForgetsDelays, about=("late",), often=("send", "subscribe", "return")
    ),
    "what is written noted in another order": Canary(
        peer=NotesWritesInAnotherOrder,
        about=("teams",),
        often=("stomp connect", "stomp send", "stomp subscribe", "stomp unsubscribe", "stomp lose"),
        within=60,
    ),
    "delays end when the clock is set": Canary(
        clock=MeasuresDelaysByTheWall, about=("late",), often=(SET, "send", "subscribe", "return"), within=30
    ),
    "setting of the clock not noticed": Canary(
        clock=NeverHearsOfASetting, about=("late",), often=(SET, "send", "subscribe")
    ),
    "schedule forgotten at restart": Canary(kind=ForgetsTheSchedule),
}
