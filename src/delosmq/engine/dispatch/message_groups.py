"""Message groups: messages with the same group id go to the same consumer, one after the other.

Source: activemq-broker Queue.assignMessageGroup and CachedMessageGroupMap; Artemis QueueImpl.handleMessageGroup and
BucketMessageGroups.
"""

from collections import OrderedDict
from heapq import heappop, heappush
from itertools import islice
from typing import Final
from zlib import crc32

from delosmq.engine.base.slots import PendingObserver, PendingSlots, Slot
from delosmq.engine.dispatch.rotation import precedes
from delosmq.engine.queues.consumer import Consumer
from delosmq.model.message import Message
from delosmq.model.settings import UNLIMITED

REMEMBERED: Final = 1_024
"""Groups that a queue with Classic's habits remembers: those used last. Source: CachedMessageGroupMapFactory."""
REMEMBERED_OTHERWISE: Final = 100_000
"""The same with Artemis's habits, which has no bound: there the ids that clients make up fill the memory."""
EVICTION_TRIES: Final = 8
"""Groups with messages that wait for their owner are not evicted; looked at before one group more is kept."""

CLOSED: Final = -1


class MessageGroup:
    """A group that has an owner.

    Attributes:
        waiting: its messages that were passed over, as the owner was full or does not take them.
    """

    def __init__(self, key: str, owner: Consumer) -> None:
        self.key = key
        self.owner = owner
        self.waiting: int = 0


class WaitingMessage:
    """A message that waits for the owner of its group to have room.

    Attributes:
        slot: None once it is pending no more, or waits for another owner: no limit counts what is kept here alone.
    """

    def __init__(self, slot: Slot, group: MessageGroup) -> None:
        self.slot: Slot | None = slot
        self.group = group


class MessageGroups(PendingObserver):
    """The groups of one queue.

    Attributes:
        classic: with Classic's habits: any negative sequence closes a group, 1 takes it away from its owner, and a full
            owner holds up its own groups only.
    """

    def __init__(self, pending: PendingSlots, buckets: int, *, classic: bool, remembered: int | None = None) -> None:
        """
        Args:
            remembered: how many groups; `UNLIMITED` for all, None for what the habits say.
        """
        self._pending = pending
        pending.observers.append(self)
        self._buckets = buckets
        self.classic = classic
        habit = REMEMBERED if classic else REMEMBERED_OTHERWISE
        self._remembered: int = habit if remembered is None else remembered
        self._by_key: OrderedDict[str, MessageGroup] = OrderedDict()
        self._of_owner: dict[int, set[MessageGroup]] = {}
        self._made: int = 0
        # Per owner: what waits for its room, in the order of the queue; those without a slot are gone.
        self._waiting: dict[int, list[tuple[int, int, int, WaitingMessage]]] = {}
        # Those with a slot, by sequence: a message waits once, however many consumers passed it over. Each has a mark.
        self._marked: dict[int, WaitingMessage] = {}
        # Owners with room for which something waits, by the first of it.
        self._ready: list[tuple[int, int, int, Consumer]] = []
        # Groups of which anything waits.
        self._waited: set[MessageGroup] = set()

    def close(self) -> None:
        """Drops everything, and hears of no slots any more."""
        self.clear_waiting()
        self.clear()
        self._pending.observers.remove(self)

    # -- owners --------------------------------------------------------------------------------------------------

    def key_of(self, message: Message) -> str:
        """Messages with the same key have the same owner."""
        if self._buckets > 0:
            return str(crc32(message.group_id.encode()) % self._buckets)
        return message.group_id

    def find(self, message: Message) -> MessageGroup | None:
        """The group of a message, None when it has no owner."""
        key = self.key_of(message)
        group = self._by_key.get(key)
        if group is None:
            return None
        if group.owner.closed:
            self._remove(group)
            return None
        self._by_key.move_to_end(key)
        return group

    def owner_of(self, message: Message) -> MessageGroup | None:
        """As `find`, without counting as a use of the group."""
        group = self._by_key.get(self.key_of(message))
        return None if group is None or group.owner.closed else group

    def assign(self, message: Message, owner: Consumer) -> MessageGroup | None:
        """Gives the group of a message, which has no owner, to a consumer; gives the group that is evicted for it."""
        key = self.key_of(message)
        group = MessageGroup(key, owner)
        self._by_key[key] = group
        self._of_owner.setdefault(owner.id, set()).add(group)
        owner.owned_groups += 1
        if self._buckets > 0 or self._remembered == UNLIMITED:
            return None
        return self._least_used() if len(self._by_key) > self._remembered else None

    def _least_used(self) -> MessageGroup | None:
        for _ in range(EVICTION_TRIES):
            key = next(iter(self._by_key))
            group = self._by_key[key]
            if group.waiting == 0 or group.owner.closed:
                return group
            self._by_key.move_to_end(key)
        return None

    def release(self, group: MessageGroup) -> bool:
        """Ends the ownership of a group. True when messages were passed over because of that owner."""
        self._remove(group)
        if not group.owner.closed:
            group.owner.owned_groups -= 1
        return group.waiting > 0

    def _remove(self, group: MessageGroup) -> None:
        if self._by_key.get(group.key) is group:
            del self._by_key[group.key]
        owned = self._of_owner.get(group.owner.id)
        if owned is not None:
            owned.discard(group)

    def closes(self, message: Message) -> bool:
        sequence = message.group_sequence
        return sequence < 0 if self.classic else sequence == CLOSED

    def reassigns(self, message: Message) -> bool:
        """Whether a message begins its group anew, whatever owner it had."""
        return self.classic and message.group_sequence == 1

    def left(self, consumer: Consumer) -> bool:
        """An owner has gone, and its groups are free. True when messages were passed over because of it."""
        for group in self._of_owner.pop(consumer.id, set()):
            self._remove(group)
        return consumer.id in self._waiting

    def clear(self) -> None:
        """No group has an owner any more."""
        self._by_key = OrderedDict()
        self._of_owner = {}

    def owners(self, at_most: int) -> list[tuple[str, Consumer]]:
        """Groups and their owners. Diagnostics only."""
        return [(key, group.owner) for key, group in islice(self._by_key.items(), at_most)]

    @property
    def count(self) -> int:
        return len(self._by_key)

    # -- what waits for an owner ---------------------------------------------------------------------------------

    def wait_for_owner(self, slot: Slot, group: MessageGroup) -> None:
        """Notes a message that was passed over until the owner of its group has room."""
        entry = self._marked.get(slot.sequence)
        if entry is not None:
            if entry.group is group:
                return
            self.on_removed(slot)
        entry = WaitingMessage(slot, group)
        self._marked[slot.sequence] = entry
        slot.marks += 1
        waiting = self._waiting.setdefault(group.owner.id, [])
        self._made += 1
        heappush(waiting, (-slot.level, slot.order, self._made, entry))
        self._wait(group)
        if len(waiting) > 2 * self._pending.count + 64:
            self._sweep(group.owner.id, waiting)

    def on_removed(self, slot: Slot) -> None:
        entry = self._marked.pop(slot.sequence, None)
        if entry is not None:
            entry.slot = None
            slot.marks -= 1

    def pass_over(self, group: MessageGroup) -> None:
        """Notes a message that was passed over because the owner of its group does not take it."""
        self._waiting.setdefault(group.owner.id, [])
        self._wait(group)

    def _wait(self, group: MessageGroup) -> None:
        if group.waiting == 0:
            self._waited.add(group)
        group.waiting += 1

    def _wait_no_more(self, group: MessageGroup) -> None:
        group.waiting -= 1
        if group.waiting == 0:
            self._waited.discard(group)

    def on_room(self, owner: Consumer) -> None:
        """An owner has room again."""
        waiting = self._waiting.get(owner.id)
        if waiting:
            self._drop_gone(waiting)
            if waiting:
                self._made += 1
                heappush(self._ready, (waiting[0][0], waiting[0][1], self._made, owner))

    def next_waiting(self) -> WaitingMessage | None:
        """The first message that waits for an owner which may have room."""
        ready = self._ready
        while ready:
            owner = ready[0][3]
            waiting = self._waiting.get(owner.id)
            if not owner.closed and not owner.full and waiting:
                self._drop_gone(waiting)
                if waiting:
                    first = waiting[0]
                    if (first[0], first[1]) == (ready[0][0], ready[0][1]):
                        return first[3]
                    heappop(ready)
                    self.on_room(owner)
                    continue
            heappop(ready)
        return None

    def remove_waiting(self, group: MessageGroup) -> None:
        """Removes what `next_waiting` gave."""
        slot = heappop(self._waiting[group.owner.id])[3].slot
        if slot is not None:
            self.on_removed(slot)
        self._wait_no_more(group)
        heappop(self._ready)
        self.on_room(group.owner)

    def clear_waiting(self) -> None:
        """Dispatch looks again at all that was passed over."""
        for entry in self._marked.values():
            if entry.slot is not None:
                entry.slot.marks -= 1
        self._marked = {}
        self._waiting = {}
        self._ready = []
        for group in self._waited:
            group.waiting = 0
        self._waited = set()

    def _drop_gone(self, waiting: list[tuple[int, int, int, WaitingMessage]]) -> None:
        while waiting and waiting[0][3].slot is None:
            self._wait_no_more(heappop(waiting)[3].group)

    def _sweep(self, owner_id: int, waiting: list[tuple[int, int, int, WaitingMessage]]) -> None:
        kept: list[tuple[int, int, int, WaitingMessage]] = []
        for entry in waiting:
            if entry[3].slot is not None:
                kept.append(entry)
            else:
                self._wait_no_more(entry[3].group)
        self._waiting[owner_id] = sorted(kept, key=_place)


def _place(entry: tuple[int, int, int, WaitingMessage]) -> tuple[int, int, int]:
    return entry[0], entry[1], entry[2]


def first_of(waiting: Slot, slot: Slot | None) -> bool:
    """Whether what waits for an owner comes before another message."""
    return slot is None or waiting is slot or precedes(waiting, slot)
