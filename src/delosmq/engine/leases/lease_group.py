"""Lease groups and what they read: a queue, or a topic through a subscription made for them."""

from collections.abc import Callable
from typing import Final

from delosmq.engine.dispatch.lease_search import LeaseWish
from delosmq.engine.leases.lease import EARLIEST, EXPIRED, RELEASED, LeaseGroup, LeaseStart
from delosmq.engine.leases.leases import Leases
from delosmq.engine.lifecycle.deletion import Deletion
from delosmq.engine.queues.queue import Queue
from delosmq.engine.routing.parts import EngineParts
from delosmq.model.errors import NotFoundError
from delosmq.model.message import MULTICAST
from delosmq.model.settings import QueueSettings

RECORD_BYTES: Final = 1_024


class LeaseGroups:
    """Begins and ends lease groups."""

    def __init__(
        self, parts: EngineParts, leases: Leases, deletion: Deletion, newest_sequence: Callable[[Queue], int]
    ) -> None:
        self._newest_sequence = newest_sequence
        self._log = parts.log
        self._events = parts.events
        self._bindings = parts.bindings
        self._leases = leases
        self._deletion = deletion

    def open(
        self,
        group: str,
        *,
        queue: str,
        topic: str,
        run: str,
        incarnation: str | None,
        user: str = "",
        selector: str = "",
        start: LeaseStart = EARLIEST,
    ) -> LeaseGroup:
        """Opens a lease group on a queue, or on a topic as a durable subscription named like the group.

        Args:
            user: to whom the group and its subscription count, when they are new.
            selector: what matches is leased; it stays with the group.
            start: what a new group begins with.

        Raises:
            LeaseError: see `Leases.open`.
            SelectorError: ``selector`` is none.
            NotFoundError: there is no such queue; or no such address, and it may not be created.
            LimitError: the disk is full, or the user's clients have made as much as they may.
        """
        self._log.ask_room(RECORD_BYTES + 4 * (len(group) + len(selector)) + len(run), f"lease group '{group}'")
        selector = selector.strip()
        wish = LeaseWish(selector, start.sequence, start.time_ms)
        known = self._leases.groups.get(group)
        if known is None:
            self._bindings.checks.check_group(group, run, user, selector)
        if known is not None and topic and known.queue.address.name == topic:
            return self._leases.open(group, known.queue, run, incarnation, selector=selector)
        owns_queue = False
        if not topic:
            read = self._bindings.queue_named(queue)
        elif group in self._bindings.queues:
            read = self._bindings.queues[group]
        else:
            # All of this before the subscription is made: it would stay, and fill, without a reader.
            if known is not None:
                raise self._leases.reads_another(group, group)
            non_destructive = self._bindings.settings_of(topic).default_non_destructive
            self._leases.check_new(group, group, incarnation, durable=True, non_destructive=non_destructive)
            address = self._bindings.addresses.get(topic)
            if address is not None:
                self._bindings.check_routing(address, MULTICAST, user)
            elif not self._bindings.settings_of(topic).auto_create_addresses:
                raise NotFoundError(
                    "DMQ2114",
                    f"there is no address '{topic}' to subscribe to, and its address-settings don't auto-create it;"
                    " create it first",
                )
            settings = QueueSettings(group, topic, MULTICAST, durable=True, filter=selector)
            read = self._bindings.create_queue(settings, of_client=True, user=user)
            wish = LeaseWish("", start.sequence, start.time_ms)
            owns_queue = True
        if start.latest:
            wish = LeaseWish(wish.selector, self._newest_sequence(read) + 1)
        return self._leases.open(
            group, read, run, incarnation, owns_queue=owns_queue, user=user, selector=selector, wish=wish
        )

    def release(self, group: str, because: str = RELEASED) -> int:
        """Ends a lease group, and with it the subscription that was made for it, unless others read that too.

        Raises:
            LeaseError: there is no such group.
        """
        ended = self._leases.find(group)
        queue = ended.queue
        count = self._leases.release(group, because)
        if ended.owns_queue and not queue.holders and not queue.operators:
            self._deletion.drop(queue)  # it would never be emptied
        return count

    def end_overdue(self) -> list[str]:
        """Releases the groups that are not asked for any more; gives their names. Called now and then by a timer."""
        overdue = self._leases.overdue()
        for name in overdue:
            self._events.lease_group_expired(name)
            self.release(name, EXPIRED)
        return overdue
