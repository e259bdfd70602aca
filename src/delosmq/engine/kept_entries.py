"""Kept entries: each kept entry is what a part of the broker keeps beyond its life, as the cache of a router does.

An entry is a durable message of an internal queue, so that it lies in any store as messages do: replay, compaction and
the output gate know it. The queue takes no part in routing; clients neither see it nor send to it.
"""

import json
from typing import Final

from delosmq.engine.addresses.address import KEPT_PREFIX
from delosmq.engine.base.slots import Slot
from delosmq.engine.lifecycle.deletion import Deletion
from delosmq.engine.log.records import ACKNOWLEDGED
from delosmq.engine.queues.queue import Queue
from delosmq.engine.routing.parts import EngineParts
from delosmq.model.ids import Position
from delosmq.model.message import ANYCAST, DEFAULT_PRIORITY, TEXT_BODY, HubMessage, Message
from delosmq.model.protocol_names import STOMP
from delosmq.model.settings import UNLIMITED, QueueSettings

_FAMILY: Final = STOMP.lower()


class KeptEntries:
    """The entries of one keeper, by key. Each call is one decision."""

    def __init__(self, parts: EngineParts, name: str) -> None:
        self._parts = parts
        self._slots: dict[str, Slot] = {}
        full = kept_name(name)
        known = parts.bindings.queues.get(full)
        if known is None:
            settings = QueueSettings(full, full, ANYCAST, durable=True, auto_delete=False, ring_size=UNLIMITED)
            known = parts.bindings.create_queue(settings, checked=True)
            parts.log.close()
        self._queue: Queue = known

    def load(self) -> list[tuple[str, str]]:
        """All entries, the oldest first."""
        found: list[tuple[str, str]] = []
        for slot in list(self._queue.pending.in_order()):
            key, value = json.loads(slot.message.body)
            older = self._slots.get(key)
            if older is not None:  # a crash came between the newer one and the end of this one
                self._end(older)
            self._slots[key] = slot
            found.append((key, value))
        return found

    def put(self, key: str, value: str) -> bool:
        """Keeps a value in the place of the one before; False when the store takes nothing more."""
        parts = self._parts
        if parts.log.storage_low or parts.log.storage_full:
            return False
        queue = self._queue
        body = json.dumps([key, value]).encode()
        form = parts.conversions.from_hub(_FAMILY, HubMessage(b"", TEXT_BODY), queue.name)
        message = Message(
            queue.name,
            form.protocol,
            form.head,
            body,
            body_kind=TEXT_BODY,
            durable=True,
            timestamp_ms=parts.clock.wall_ms(),
        )
        older = self._slots.get(key)
        parts.enqueuer.enqueue(message, [queue], queue.address)
        slot = queue.pending.last(DEFAULT_PRIORITY)
        assert slot is not None  # it was added
        self._slots[key] = slot
        if older is not None:
            self._end(older)
        parts.log.close()
        return True

    def remove(self, key: str) -> None:
        """Its entry is kept no more."""
        slot = self._slots.pop(key, None)
        if slot is not None:
            self._end(slot)
            self._parts.log.close()

    @property
    def position(self) -> Position:
        """What has to be synced for all entries to survive a crash."""
        return self._parts.log.position

    def _end(self, slot: Slot) -> None:
        self._queue.pending.remove(slot)
        self._parts.removals.remove_one(self._queue, slot, ACKNOWLEDGED)


def kept_name(name: str) -> str:
    """The queue of a keeper, whose own name may be a wildcard or too long."""
    return KEPT_PREFIX + name.encode().hex()


def drop_kept(parts: EngineParts, deletion: Deletion, wanted: list[str]) -> None:
    """Forgets the entries of all other keepers."""
    stays = {kept_name(name) for name in wanted}
    for queue in [one for one in parts.bindings.queues.values() if one.name.startswith(KEPT_PREFIX)]:
        if queue.name not in stays:
            address = parts.bindings.addresses[queue.name]
            deletion.drop(queue)
            if parts.bindings.addresses.get(queue.name) is address:
                deletion.drop_address(address)
