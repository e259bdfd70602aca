"""Retroactive addresses: a new subscription starts with the last messages of its address.

They wait in an internal queue (`history`); a new queue gets references to them, the same messages at the same places.
Of a message that its sender marked to be retained it gets a copy, which says so.

Source: Artemis manual, "Retroactive Addresses"; activemq-broker, the SubscriptionRecoveryPolicy classes.
"""

from collections.abc import Iterator
from heapq import heappop, heappush, heapreplace
from typing import Final

from delosmq.engine.addresses.address import RETAIN, Address, address_of
from delosmq.engine.addresses.bindings import Bindings, QueueListener
from delosmq.engine.addresses.filter import Conditions
from delosmq.engine.addresses.history import HistoryAgeLimit, HistoryRing
from delosmq.engine.base.jobs import NEXT_TICK, PhasedJob
from delosmq.engine.base.slots import Cursor, Slot
from delosmq.engine.log.batch_limits import FITS
from delosmq.engine.log.origin import annotations_of, copy_for
from delosmq.engine.queues.queue import Queue
from delosmq.engine.routing.parts import EngineParts, record_room_bytes
from delosmq.model.message import MULTICAST, Message
from delosmq.model.settings import UNLIMITED

MESSAGES_PER_SLICE: Final = 500
LINK_COST: Final = 5
"""Finding the wildcards of an address, in messages that are referred to."""
COPY_COST: Final = 20
"""A copy of a retained message."""
MARK_BYTES: Final = 1_024
"""What such a copy says beside the message, at most."""
RETAINED: Final = "ActiveMQ.Retained"
"""Marks what a late subscriber gets because its sender had it kept. Source: ActiveMQMessage."""


class Retroactive(QueueListener):
    """Fills new multicast queues."""

    def __init__(self, parts: EngineParts) -> None:
        self._parts = parts
        self._conditions = Conditions(parts.conversions)
        self._record_room_bytes: int = record_room_bytes(parts.settings.journal)

    def history_added(self, history: Queue) -> None:
        ring = history.ring
        if not isinstance(ring, HistoryRing) or history.address.settings.subscription_recovery_duration == 0:
            return
        parts = self._parts
        ring.age_limit = HistoryAgeLimit(history, parts.evictions, timers=parts.timers, clock=parts.clock)
        if history.pending.count:
            ring.age_limit.arm()

    def queue_added(self, queue: Queue, *, asked: bool) -> None:
        if queue.settings.routing_type != MULTICAST or queue.no_entry():
            return
        address = address_of(queue)
        settings = address.settings
        all_of_it = asked or settings.always_retroactive is True
        work = _Fill(self, queue)
        if all_of_it:
            work.take_all(address, self._parts.bindings if address.wild else None)
        elif settings.always_retroactive is None and address.history is not None:
            work.take_last(address.history, settings.retroactive_message_count)
        job = PhasedJob(self._parts.jobs, work.phases())
        if not job.step():
            self._go_on(work, job, queue)

    def _go_on(self, work: "_Fill", job: PhasedJob, queue: Queue) -> None:
        self._parts.dispatcher.suspend(queue)
        work.holds_dispatch = True
        self._parts.jobs.add(job)

    def fill_again(self, queue: Queue, first: int, through: int, copied: int) -> None:
        """Goes on where a crash broke off; the numbers as in `HistoryFills`."""
        address = address_of(queue)
        work = _Fill(self, queue)
        work.go_on(first, through, copied)
        if first == 0:
            work.take_all(address, self._parts.bindings if address.wild else None)
        elif address.history is not None:
            work.take(address.history)
        self._go_on(work, PhasedJob(self._parts.jobs, work.phases()), queue)

    def give_retained(self, work: "_Fill", queue: Queue, retained: Queue) -> bool:
        """Gives a queue a copy of what was retained before it was made. False when the store has no room for it now:
        nothing has changed."""
        slot = retained.pending.head()
        if slot is None or slot.sequence > queue.id:
            return True
        message = slot.message
        parts = self._parts
        expired = 0 < message.expires_at_ms <= parts.clock.wall_ms()
        # An empty one is sent to have nothing retained.
        if expired or not message.body:
            return True
        self._conditions.look_at(message)
        if not self._conditions.admit(queue):
            return True
        stored = message.durable and queue.settings.durable
        if stored:
            parts.log.close()  # the copy may fill a batch of its own
            if not self._has_room(message):
                return False
        parts.enqueuer.enqueue(self._as_retained(message), [queue], queue.address)
        if stored:
            work.copied = int(slot.sequence)
            work.record()
            parts.log.close()
        return True

    def _has_room(self, message: Message) -> bool:
        log = self._parts.log
        size = message.encoded_size_bytes + self._record_room_bytes
        if message.encoded_size_bytes + MARK_BYTES > self._parts.ordinary_message_bytes:
            return not log.storage_full and log.ask_large(size) == FITS
        return log.takes(size)

    def _as_retained(self, message: Message) -> Message:
        annotations = annotations_of(message)
        annotations.pop(RETAIN, None)
        annotations[RETAINED] = "true"
        head = self._parts.conversions.rewritten_head(message, (RETAIN,), {}, (RETAINED,))
        return copy_for(message, message.address, head, annotations)

    def refer(self, queue: Queue, slots: list[Slot]) -> None:
        """Gives a queue references to messages that the history of its address holds."""
        parts = self._parts
        for held in slots:
            message = held.message
            self._conditions.look_at(message)
            if not self._conditions.admit(queue):
                continue
            recorded = held.recorded and queue.settings.durable
            if recorded:
                parts.log.store_reference(message, queue.id)
            message.references += 1
            slot = queue.link(message, recorded)
            if queue.last_values is not None and not parts.last_value_rule.returned(queue, slot):
                continue  # a newer one of its key came while the queue was filled
            if queue.ring.size != UNLIMITED:
                pushed_out = queue.ring.pushed_out(queue.pending)
                if pushed_out is not None:
                    parts.evictions.replace(queue, pushed_out)

    def note(self, queue: Queue, first: int, through: int, copied: int) -> None:
        """Records how far it is, within the decision under way."""
        self._parts.bindings.history_fills.note(queue, first, through, copied)

    def filled(self, queue: Queue, *, holds_dispatch: bool) -> None:
        """All is there."""
        parts = self._parts
        parts.bindings.history_fills.end(queue)
        if holds_dispatch:
            parts.log.close()
            parts.dispatcher.resume(queue)

    def pause(self, *, needs_room: bool) -> int:
        """Ends the decision under way; gives when to go on."""
        log = self._parts.log
        log.close()
        return log.nap_ns if needs_room else NEXT_TICK


class _Fill:
    """Refers to what was there when the queue was made, then copies what was retained. What the ring pushes out before
    its turn is no longer among the last messages, and left out.

    Attributes:
        holds_dispatch: the queue delivers nothing till all is there.
        first: the sequence of the first of the last messages of one address; 0 for all that is kept.
        copied: the sequence of the last retained message that was copied; their copies come in that order.
    """

    def __init__(self, retroactive: Retroactive, queue: Queue) -> None:
        self._retroactive = retroactive
        self._queue = queue
        self._bindings: Bindings | None = None
        self._addresses: list[Address] = []
        self._histories: list[Queue] = []
        self._cursors: list[Cursor] = []
        self._retained: list[Queue] = []
        # Those of which no copy was made yet: the sequence of what is retained, and which.
        self._uncopied: list[tuple[int, int]] = []
        # What comes next of each history: its sequence, and which.
        self._next: list[tuple[int, int]] = []
        self._last: int = 0
        self._copied_from: set[str] = set()
        self.first: int = 0
        self.copied: int = 0
        self._needs_room: bool = False
        self.holds_dispatch: bool = False

    def take_all(self, address: Address, bindings: Bindings | None) -> None:
        """What the address keeps; given ``bindings``, that of those for which it stands, too."""
        self._take_from(address)
        if bindings is not None:
            self._bindings = bindings
            self._addresses = list(bindings.addresses.values())
            self._addresses.reverse()

    def take_last(self, history: Queue, count: int) -> None:
        """The last ``count`` messages of what one address keeps."""
        cursor = self.take(history)
        self.first = 1
        before: Slot | None = None
        for level in history.pending.levels():
            before = level.tail if level.count else before  # all have the same level
        for _ in range(count):
            if before is None:
                return
            before = before.previous
        if before is not None:
            cursor.advance(before)
            self.first = int(before.sequence) + 1

    def go_on(self, first: int, through: int, copied: int) -> None:
        """After a restart, before it is told what to take: only that from ``first`` on, and behind what was given.
        Where an older release has recorded nothing of that, what is pending tells it."""
        self.first = first
        self.copied = copied
        self._last = max(first - 1, through)
        for slot in self._queue.pending.in_order():
            message = slot.message
            if slot.sequence <= self._queue.id:
                if through == 0:
                    self._last = max(self._last, int(slot.sequence))
            elif message.annotations is not None and RETAINED in message.annotations:
                self._copied_from.add(message.address)

    def record(self) -> None:
        """With what it says: whatever takes messages out of the queue, a restart gives them no second time."""
        self._retroactive.note(self._queue, self.first, self._last, self.copied)

    def phases(self) -> Iterator[int]:
        """Looks for addresses, refers to what they keep, then copies; each slice has room for some of that."""
        while not self._queue.deleted:
            room = self._refer(self._look(MESSAGES_PER_SLICE))
            if room <= 0 or self._uncopied:
                self.record()  # more follows in decisions of its own
            if self._copy(room):
                break
            # The first slice is part of the decision that makes the queue.
            yield self._retroactive.pause(needs_room=self._needs_room) if self.holds_dispatch else NEXT_TICK
        for history, cursor in zip(self._histories, self._cursors, strict=True):
            history.pending.drop(cursor)
        self._retroactive.filled(self._queue, holds_dispatch=self.holds_dispatch)

    def _look(self, room: int) -> int:
        """Finds addresses for which a wildcard stands and that keep messages; gives what is left of ``room``."""
        addresses = self._addresses
        bindings = self._bindings
        while addresses and room > 0 and bindings is not None:
            address = addresses.pop()
            room -= 1
            if address.wild or (address.history is None and address.retained is None):
                continue
            if address.linked_at != bindings.wild_changes:
                bindings.relink(address)
                room -= LINK_COST
            if self._queue.address in address.links:
                self._take_from(address)
        return room

    def _take_from(self, address: Address) -> None:
        if address.history is not None:
            self.take(address.history)
        retained = address.retained
        slot = None if retained is None else retained.pending.head()
        if retained is None or slot is None or address.name in self._copied_from:
            return
        if slot.sequence > self.copied:
            heappush(self._uncopied, (int(slot.sequence), len(self._retained)))
            self._retained.append(retained)

    def take(self, history: Queue) -> Cursor:
        """What one address keeps."""
        cursor = history.pending.cursor()
        heappush(self._next, (0, len(self._cursors)))
        self._histories.append(history)
        self._cursors.append(cursor)
        return cursor

    def _refer(self, room: int) -> int:
        """Each message once, in the order they came."""
        coming = self._next
        newest = int(self._queue.id)  # what has a higher number came by itself
        slots: list[Slot] = []
        while coming and room > 0:
            sequence, index = coming[0]
            cursor = self._cursors[index]
            slot = cursor.peek()
            if slot is not None and slot.sequence == sequence:
                cursor.advance(slot)
                room -= 1
                if sequence > self._last:
                    slots.append(slot)
                    self._last = sequence
                slot = cursor.peek()
            else:
                room -= 1
            if slot is None or slot.sequence > newest:
                heappop(coming)
            else:
                heapreplace(coming, (int(slot.sequence), index))
        self._retroactive.refer(self._queue, slots)
        return room

    def _copy(self, room: int) -> bool:
        """Copies what was retained. True when all is there, and ``room`` is left."""
        uncopied = self._uncopied
        self._needs_room = False
        while uncopied and room > 0:
            if not self._retroactive.give_retained(self, self._queue, self._retained[uncopied[0][1]]):
                self._needs_room = True
                return False
            heappop(uncopied)
            room -= COPY_COST
        return room > 0
