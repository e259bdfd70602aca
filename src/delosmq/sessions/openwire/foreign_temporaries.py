"""Temporary destinations of other protocols' connections, told to OpenWire clients as their own kind are."""

from delosmq.model.message import ANYCAST
from delosmq.sessions.openwire.advisories import Advisories
from delosmq.sessions.temporary_destinations import TemporaryListener
from delosmq.wire.openwire.commands import TEMP_QUEUE, TEMP_TOPIC, ConnectionId, Destination, DestinationInfo


class ForeignTemporaries(TemporaryListener):
    """Passes on what is made and ended."""

    def __init__(self, advisories: Advisories) -> None:
        self._advisories = advisories

    def made(self, address: str, routing: int, owner: str) -> None:
        self._advisories.destination_changed(_info(address, routing, owner), added=True)

    def ended(self, address: str, routing: int, owner: str) -> None:
        self._advisories.destination_changed(_info(address, routing, owner), added=False)


def _info(address: str, routing: int, owner: str) -> DestinationInfo:
    info = DestinationInfo()
    info.connection_id = ConnectionId(owner)
    info.destination = Destination(address, TEMP_QUEUE if routing == ANYCAST else TEMP_TOPIC)
    return info
