"""Temporary destinations of other protocols' connections, told to OpenWire clients as their own kind are."""

from delosmq.model.message import ANYCAST
from delosmq.sessions.openwire.server.advisories.advisories import Advisories
from delosmq.sessions.temporary_destinations import TemporaryListener
from delosmq.wire.openwire.commands import TEMP_QUEUE, TEMP_TOPIC, ConnectionId, Destination


class ForeignTemporaries(TemporaryListener):
    """Passes on what is made and ended."""

    def __init__(self, advisories: Advisories) -> None:
        self._advisories = advisories

    def made(self, address: str, routing: int, owner: str) -> None:
        self._advisories.temporary_made(_destination(address, routing), ConnectionId(owner))

    def ended(self, address: str, routing: int, owner: str) -> None:
        self._advisories.temporary_ended(_destination(address, routing))


def _destination(address: str, routing: int) -> Destination:
    return Destination(address, TEMP_QUEUE if routing == ANYCAST else TEMP_TOPIC)
