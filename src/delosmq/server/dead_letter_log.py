"""Tells in the log of dead letters, within the bounds of `PeerLog`."""

import logging
from typing import Final

from delosmq.engine.api import EngineEvents, Slot
from delosmq.server.peer_log import PeerLog

_REMEDY: Final = "`delosmq queue stat` counts them; look why the consumers of these queues refuse their messages"


class DeadLetterLog(EngineEvents):
    """One line for each, and a count of each queue for those beyond the bound."""

    def __init__(self) -> None:
        self._log: PeerLog | None = None

    def begin(self, logger: logging.Logger) -> None:
        """Tells from now on: the broker has started. To be called within a running loop."""
        self._log = PeerLog(logger, _REMEDY)

    def close(self) -> None:
        """Says what was not written so far."""
        if self._log is not None:
            self._log.close()

    def message_dead_lettered(self, queue: str, slot: Slot, dead_letter_address: str) -> None:
        if self._log is None:
            return
        if dead_letter_address:
            where = f"is a dead letter in '{dead_letter_address}'"
        else:
            where = "is dropped, as no dead-letter-address takes it,"
        self._log.info(
            f"queue '{queue}'",
            f"DMQ6181: message {slot.message.message_id} of queue '{queue}' {where} after {slot.delivery_count} "
            "deliveries",
        )
