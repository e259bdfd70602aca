"""Tells which user's client made and deleted what, in the log ``delosmq.audit``, within the bounds of `PeerLog`.

Operators' calls are told by the HTTP interface. What clients make that ends with them, as temporary queues do, is told
at debug only.
"""

import logging
from typing import Final

from delosmq.engine.api import EngineEvents
from delosmq.model.phrases import counted
from delosmq.server.peer_log import PeerLog

_REMEDY: Final = "`delosmq queue stat` lists the queues; max-destinations-per-user bounds what clients make"


class ClientAudit(EngineEvents):
    """A line for each queue and address, and a count of each user for those beyond the bound."""

    def __init__(self) -> None:
        self._log: PeerLog | None = None

    def begin(self, logger: logging.Logger) -> None:
        """Tells from now on: the broker has started. To be called within a running loop."""
        self._log = PeerLog(logger.getChild("audit"), _REMEDY)

    def close(self) -> None:
        """Says what was not written so far."""
        if self._log is not None:
            self._log.close()

    def created_by_client(self, queue: str, address: str, user: str, lasting: bool) -> None:
        if self._log is not None:
            tell = self._log.info if lasting else self._log.debug
            tell(f"user '{user}'", f"DMQ6182: a client of user '{user}' created {_named(queue, address)}")

    def deleted_by_client(self, queue: str, address: str, user: str, messages: int) -> None:
        if self._log is not None:
            who = f"user '{user}'"
            self._log.info(who, f"DMQ6183: a client of {who} deleted {_with_messages(queue, address, messages)}")

    def deleted_unused(self, queue: str, address: str, messages: int) -> None:
        if self._log is not None:
            setting = "auto-delete-queues" if queue else "auto-delete-addresses"
            what = _with_messages(queue, address, messages)
            self._log.info(setting, f"DMQ6184: {what} was not used any more and is deleted ({setting})")


def _with_messages(queue: str, address: str, messages: int) -> str:
    return _named(queue, address) + (f" with {counted(messages, 'message')}" if queue else "")


def _named(queue: str, address: str) -> str:
    return f"queue '{queue}' of address '{address}'" if queue else f"address '{address}'"
