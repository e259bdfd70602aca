"""Tells in the log of dead letters, within the bounds of `PeerLog`."""

from delosmq.engine.events import EngineEvents
from delosmq.engine.slots import Slot
from delosmq.server.peer_log import PeerLog


class DeadLetterLog(EngineEvents):
    """One line for each, and a count for those beyond the bound.

    Attributes:
        log: None while the broker starts.
    """

    def __init__(self) -> None:
        self.log: PeerLog | None = None

    def message_dead_lettered(self, queue: str, slot: Slot, dead_letter_address: str) -> None:
        if self.log is None:
            return
        if dead_letter_address:
            where = f"is a dead letter in '{dead_letter_address}'"
        else:
            where = "is dropped, as no dead-letter-address takes it,"
        self.log.info(
            f"queue '{queue}'",
            "DMQ6181: message %d of queue '%s' %s after %d deliveries",
            slot.message.message_id,
            queue,
            where,
            slot.delivery_count,
        )
