"""What the engine tells plugins, audit and metrics. The base class is the null object: override what you need."""

from mypy_extensions import mypyc_attr

from delosmq.engine.slots import Slot
from delosmq.model.message import Message


@mypyc_attr(allow_interpreted_subclasses=True)
class EngineEvents:
    """Called on the engine's thread after the change; must return at once and not call the engine."""

    def queue_created(self, queue: str, address: str) -> None:
        """A queue exists now."""

    def queue_updated(self, queue: str) -> None:
        """Its settings were changed while it runs."""

    def queue_deleted(self, queue: str) -> None:
        """A queue and all it held are gone."""

    def consumer_created(self, queue: str, consumer_id: int) -> None:
        """A consumer joined."""

    def consumer_closed(self, queue: str, consumer_id: int) -> None:
        """A consumer left; what it held is back in the queue."""

    def message_redelivered(self, queue: str, slot: Slot) -> None:
        """A message went back to its queue after a delivery."""

    def message_replaced(self, queue: str, slot: Slot) -> None:
        """A ring pushed a message out."""

    def message_dead_lettered(self, queue: str, slot: Slot, dead_letter_address: str) -> None:
        """A message used up its delivery attempts; the address is "" when it was dropped for want of one."""

    def message_expired(self, queue: str, slot: Slot, expiry_address: str) -> None:
        """A message grew too old; the address is "" when it was dropped for want of one."""

    def message_dropped(self, message: Message) -> None:
        """A send met a full address with policy DROP."""

    def address_blocked(self, address: str) -> None:
        """Sends to the address wait for space."""

    def address_unblocked(self, address: str) -> None:
        """Space is back."""

    def lease_group_opened(self, group: str, epoch: int) -> None:
        """A reader opened a lease group; older epochs are fenced."""

    def lease_group_ended(self, group: str, returned: int) -> None:
        """A group was released, or its retention ended: ``returned`` messages are back in the queue."""

    def message_duplicate(self, message: Message) -> None:
        """A send carried a duplicate id that its address has seen; it is not routed."""

    def transaction_committed(self, transaction: int, sends: int, acknowledgements: int) -> None:
        """Everything of a transaction has happened."""

    def transaction_rolled_back(self, transaction: int, sends: int, acknowledgements: int) -> None:
        """Nothing of a transaction happens."""

    def transaction_prepared(self, transaction: int, xid: bytes) -> None:
        """A branch waits for the decision of its coordinator, over restarts if need be."""
