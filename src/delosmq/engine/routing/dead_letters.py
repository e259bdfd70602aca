"""Dead letters: where a message goes that used up its delivery attempts, or that no consumer takes.

Source: Artemis QueueImpl.sendToDeadLetterAddress, PostOfficeImpl.maybeSendToDLA; Classic AbstractDeadLetterStrategy.
"""

from typing import Final

from delosmq.engine.base.slots import Slot
from delosmq.engine.log.batch_limits import FITS
from delosmq.engine.log.origin import ORIGINAL_ADDRESS, ORIGINAL_MESSAGE_ID, ORIGINAL_QUEUE, annotations_of
from delosmq.engine.log.records import KILLED
from delosmq.engine.queues.in_delivery import Holder
from delosmq.engine.queues.queue import Queue
from delosmq.engine.routing.copies import MovedCopies, as_classic
from delosmq.engine.routing.dropped import DEAD_LETTER_ADDRESS
from delosmq.engine.routing.enqueue import RoutedMessage
from delosmq.engine.routing.held_messages import DEAD, HeldMessages
from delosmq.engine.routing.parts import EngineParts
from delosmq.model.message import Message
from delosmq.model.settings import UNLIMITED, AddressSettings, DispatchProfile

ATTEMPTS_USED_UP: Final = "max-delivery-attempts reached"
CALLED_POISON: Final = "given up by the client (poison acknowledgement)"


class DeadLetters:
    """Copies to the dead-letter address and ends the original, both in the decision under way."""

    def __init__(self, parts: EngineParts, copies: MovedCopies, held: HeldMessages) -> None:
        self._log = parts.log
        self._held = held
        held.movers[DEAD] = (self.may_bury, self.bury_held)
        self._removals = parts.removals
        self._events = parts.events
        self._dropped = parts.dropped
        self._copies = copies

    @staticmethod
    def exhausted(queue: Queue, consumer: Holder, slot: Slot) -> bool:
        """Whether the attempts of a slot that ``consumer`` returns are used up.

        Never in the dead-letter address itself: what is there would only be copied to where it is, again and again. In
        the profile classic never by the count alone where the client counts too: Classic's broker has no limit, and
        what was lost with a connection may never have been looked at.
        """
        settings = queue.address.settings
        limit = settings.max_delivery_attempts
        if limit == UNLIMITED or slot.delivery_count < limit or settings.dead_letter_address == queue.address.name:
            return False
        return not (consumer.client_counts and settings.dispatch_profile is DispatchProfile.CLASSIC)

    @staticmethod
    def at_home(queue: Queue) -> bool:
        """Whether what a queue holds is where dead letters go: it stays there (docs/decisions/0033). Classic drops it,
        as it keeps one dead letter of a message."""
        settings = queue.address.settings
        return (
            settings.dead_letter_address == queue.address.name
            and settings.dispatch_profile is not DispatchProfile.CLASSIC
        )

    def room_for(self, queue: Queue, slot: Slot) -> int:
        """Whether the store has room for a dead letter; see `MovedCopies.room_for`."""
        settings = queue.address.settings
        classic = settings.dispatch_profile is DispatchProfile.CLASSIC
        return self._copies.room_for(slot, settings.dead_letter_address, kept_safe=classic)

    def bury(self, queue: Queue, slot: Slot, cause: str) -> None:
        """Moves a slot that is in no list to the dead-letter address; without any it ends. When no queue of that
        address takes it, it stays in its queue, held.

        Args:
            cause: the reason, as text.
        """
        moved_to = self._copy(queue, slot, cause)
        if moved_to is None:
            self._held.hold(queue, slot, DEAD)
            self._dropped.tell_held(queue.name, DEAD_LETTER_ADDRESS, queue.address.settings.dead_letter_address)
        else:
            self._end(queue, slot, moved_to)

    def may_bury(self, queue: Queue) -> bool:
        """Whether a queue may take now what is held."""
        settings = queue.address.settings
        name = settings.dead_letter_address
        return name != "" and (settings.auto_create_dead_letter_resources or self._copies.may_deliver(settings, name))

    def bury_held(self, queue: Queue, slot: Slot) -> bool:
        """Moves a slot that is held, as a decision of its own; False when that can't be yet."""
        if self.room_for(queue, slot) != FITS:
            return False
        limit = queue.address.settings.max_delivery_attempts
        used_up = limit != UNLIMITED and slot.delivery_count >= limit
        moved_to = self._copy(queue, slot, ATTEMPTS_USED_UP if used_up else CALLED_POISON)
        if moved_to is not None:
            queue.scheduled.remove(slot)
            self._end(queue, slot, moved_to)
        self._log.close()
        return moved_to is not None

    def _copy(self, queue: Queue, slot: Slot, cause: str) -> str | None:
        """Puts a copy where dead letters go: gives the address, "" when none is wanted; None when no queue takes it."""
        settings = queue.address.settings
        name = settings.dead_letter_address
        if not name:
            return ""
        classic = settings.dispatch_profile is DispatchProfile.CLASSIC
        wanted = settings.dead_letter_non_durable or slot.message.durable
        wanted = wanted and self._copies.is_first(settings, slot.message)
        if not wanted or (classic and name == queue.address.name):
            return ""
        taker: Queue | None = None
        if settings.auto_create_dead_letter_resources:
            taker = self._copies.make_resources(
                name,
                queue.address.name,
                slot.message.user,
                prefix=settings.dead_letter_queue_prefix,
                suffix=settings.dead_letter_queue_suffix,
            )
        copy = self._copies.of(queue, slot.message, name)
        if classic:
            copy = as_classic(copy, slot.message, cause)
        if not self._copies.deliver(copy, taker, always=classic):
            return None
        self._copies.remember(settings, slot.message)
        return copy.address

    def _end(self, queue: Queue, slot: Slot, moved_to: str) -> None:
        queue.counters.killed += 1
        self._removals.remove_one(queue, slot, KILLED)
        self._events.message_dead_lettered(queue.name, slot, moved_to)

    def route_unrouted(self, settings: AddressSettings, message: Message) -> list[RoutedMessage]:
        """Routes a message that no queue of its address takes to the dead-letter address, when
        ``send-to-dla-on-no-route`` says so. Empty when it doesn't, or no queue takes dead letters either: then the
        message is as it was.

        Args:
            settings: of the address it was sent to.
        """
        name = settings.dead_letter_address
        if not settings.send_to_dla_on_no_route or not name or name == message.address:
            return []
        address = message.address
        annotations = message.annotations
        expires_at_ms = message.expires_at_ms
        stamped = annotations_of(message)
        stamped[ORIGINAL_ADDRESS] = address
        stamped[ORIGINAL_QUEUE] = ""  # it was in none, whatever its sender wrote
        stamped[ORIGINAL_MESSAGE_ID] = str(self._log.next_id())
        message.address = name
        message.annotations = stamped
        message.expires_at_ms = 0
        classic = settings.dispatch_profile is DispatchProfile.CLASSIC
        routed = self._copies.route(message, always=classic)
        if routed:
            return routed
        message.address = address
        message.annotations = annotations
        message.expires_at_ms = expires_at_ms
        return []
