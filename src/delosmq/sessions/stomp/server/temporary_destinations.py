"""Temporary destinations: private to a connection, gone with it, and reachable by others through ``reply-to``.

A peer writes ``/temp-queue/NAME``; others get to know it as ``/remote-temp-queue/CONNECTION.NAME``, to which they may
SEND. Those that clients of other protocols make are ``/remote-temp-queue/`` and their own name. Source:
LegacyFrameTranslator of ActiveMQ Classic for both forms.
"""

from typing import Final

from delosmq.engine.api import EngineBroker
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.names import QUEUE_MARK
from delosmq.sessions.permissions import Permissions
from delosmq.sessions.stomp.server.errors import temporary_foreign, temporary_wrong, too_many_temporaries
from delosmq.sessions.temporary_destinations import TemporaryDestinations
from delosmq.wire.stomp.conversion import OWN_QUEUE, OWN_TOPIC, REMOTE_QUEUE, REMOTE_TOPIC

# Prefix, routing type, beginning of the address.
_OWN: Final = (("/temp-queue/", ANYCAST, OWN_QUEUE), ("/temp-topic/", MULTICAST, OWN_TOPIC))
_REMOTE: Final = ((REMOTE_QUEUE, ANYCAST, OWN_QUEUE), (REMOTE_TOPIC, MULTICAST, OWN_TOPIC))
_FIRST: Final = ("/temp-", "/remote-temp-")
# A queue's name is stored in two-byte lengths.
_LONGEST_CHARACTERS: Final = 1_024


class StompTemporaryDestinations:
    """The temporary destinations of one connection, and the names of others'."""

    def __init__(self, broker: EngineBroker, known: TemporaryDestinations, connection_id: str, limit: int) -> None:
        self._broker = broker
        self._known = known
        self._connection_id = connection_id
        self._limit = limit
        self._permissions: Permissions | None = None
        self._addresses: dict[str, str] = {}

    def permit(self, permissions: Permissions) -> None:
        """Names the user; before the first destination."""
        self._permissions = permissions

    def find(self, destination: str, command: str) -> tuple[str, int] | None:
        """Address and routing type of a temporary destination, which is made if it is this connection's; None for
        all other destinations.

        Raises:
            PeerError: the name makes no sense, is another connection's, or there are too many.
        """
        if not destination.startswith(_FIRST):
            return None
        for prefix, routing, start in _OWN:
            if destination.startswith(prefix):
                return self._own(destination, destination[len(prefix) :], routing, start), routing
        for prefix, routing, start in _REMOTE:
            if destination.startswith(prefix):
                if command == "SUBSCRIBE":
                    raise temporary_foreign(destination)
                name = destination[len(prefix) :]
                _check(destination, name)
                return self._remote(name, start), routing
        return None

    def public_name(self, destination: str) -> str:
        """The name under which other connections reach what this one calls so."""
        for index, (prefix, routing, start) in enumerate(_OWN):
            if destination.startswith(prefix):
                address = self._own(destination, destination[len(prefix) :], routing, start)
                return _REMOTE[index][0] + address[len(start) :]
        return destination

    def own_name(self, address: str) -> str:
        """How the owner of a temporary address calls it; "" when it is gone."""
        known = self._broker.addresses.get(address)
        if known is not None and known.owner:
            for prefix, _, start in _OWN:
                lead = f"{start}{known.owner}."
                if address.startswith(lead):
                    return prefix + address[len(lead) :]
        return ""

    def _remote(self, name: str, start: str) -> str:
        """The address of another connection's."""
        addresses = self._broker.addresses
        if start + name not in addresses:
            known = addresses.get(name)
            # Only of those with a user, as no permission is asked for what is made to be answered.
            if known is not None and known.owner:
                return name
        return start + name

    def _own(self, destination: str, name: str, routing: int, start: str) -> str:
        address = self._addresses.get(destination)
        if address is None:
            _check(destination, name)
            if len(self._addresses) >= self._limit:
                raise too_many_temporaries(self._limit)
            address = f"{start}{self._connection_id}.{name}"
            permissions = self._permissions
            user = ""
            if permissions is not None:
                user = permissions.user
                permissions.require_temporary(address, queue=routing == ANYCAST)
            self._broker.resources.create_temporary(address, routing, self._connection_id, user)
            self._addresses[destination] = address
            self._known.made(address, routing, self._connection_id)
        return address

    def close(self) -> None:
        """Ends all of this connection."""
        if self._addresses:
            ended = list(self._addresses.values())
            self._addresses.clear()
            self._broker.resources.delete_temporary(self._connection_id)
            for address in ended:
                self._known.ended(address)


def _check(destination: str, name: str) -> None:
    if not name or QUEUE_MARK in name or len(name) > _LONGEST_CHARACTERS // 2:
        raise temporary_wrong(destination, _LONGEST_CHARACTERS // 2)
