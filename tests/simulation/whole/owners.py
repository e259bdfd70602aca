"""Who owns a queue exclusively, and who comes before whom: worked out anew from who came, went and got something.

The rules stand in docs/dispatch.md. Nothing here asks the engine who the owner is.
"""

from delosmq.engine.base.slots import Slot
from delosmq.engine.broker import EngineBroker
from delosmq.engine.queues.consumer import Consumer, consumers_of

ALWAYS_FIRST = 127


class Present:
    """The consumers of one queue.

    Attributes:
        here: in the order of their arrival; browsers are none.
        owner: who gets everything, None while all share.
    """

    def __init__(self) -> None:
        self.here: list[Consumer] = []
        self.owner: Consumer | None = None


class Owners:
    """Of all queues in one life of a broker. Told of those who come and go, and of each delivery before it counts."""

    def __init__(self) -> None:
        self.broker: EngineBroker | None = None
        self._queues: dict[str, Present] = {}

    def came(self, queue: str, consumer_id: int) -> None:
        """A consumer joined: it owns the queue when it asks for that and outranks the present owner."""
        assert self.broker is not None
        known = self.broker.queues[queue]
        consumer = next(one for one in consumers_of(known) if one.id == consumer_id)
        if consumer.options.browser or known.in_force.non_destructive:
            return
        present = self._queues.setdefault(queue, Present())
        present.here.append(consumer)
        owner = present.owner
        priority = consumer.options.priority
        if self._asks(queue, consumer) and (
            owner is None or priority >= ALWAYS_FIRST or priority > owner.options.priority
        ):
            present.owner = consumer

    def went(self, queue: str, consumer_id: int) -> None:
        """A consumer left: of those that ask for it the one of the highest priority is next, of several the one that
        came first."""
        present = self._queues.get(queue, Present())
        gone = next((one for one in present.here if one.id == consumer_id), None)
        if gone is None:
            return
        present.here.remove(gone)
        if gone is present.owner or self._all_ask(queue):
            asking = [one for one in present.here if self._asks(queue, one)]
            present.owner = max(asking, key=lambda one: one.options.priority, default=None)

    def forget(self, queue: str) -> None:
        """It is deleted."""
        self._queues.pop(queue, None)

    def owner(self, queue: str) -> Consumer | None:
        """Who gets everything, if anybody does."""
        present = self._queues.get(queue)
        return None if present is None else present.owner

    def _all_ask(self, queue: str) -> bool:
        assert self.broker is not None
        known = self.broker.queues.get(queue)
        return known is not None and known.address.settings.all_consumers_exclusive_by_default

    def _asks(self, queue: str, consumer: Consumer) -> bool:
        return consumer.options.exclusive or self._all_ask(queue)

    def check(self, queue: str, consumer: Consumer, slot: Slot) -> None:
        """A consumer gets a message, which it holds already: it is the owner, or there is none and it comes first."""
        assert self.broker is not None
        present = self._queues[queue]
        owner = present.owner
        assert owner in (None, consumer), (
            f"{queue} is owned by consumer {owner.id if owner is not None else 0}, {consumer.id} gets {slot.sequence}"
        )
        if owner is not None:
            return
        for other in present.here:
            options = other.options
            takes_all = options.selector is None and not options.no_local
            first = options.priority > consumer.options.priority and takes_all and not slot.message.group_id
            # What is full stays so until it is told otherwise.
            assert not (first and not other.full and other.has_room()), (
                f"consumer {consumer.id} of {queue} gets {slot.sequence} before {other.id}, whose priority is higher"
            )
        if self.broker.queues[queue].in_force.exclusive:
            holders = [other.id for other in present.here if other is not consumer and other.held_count]
            assert not holders, f"{queue} has two owners: {holders} hold messages, and {consumer.id} gets one"
            present.owner = consumer
