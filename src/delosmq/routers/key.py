"""The key of a connection: what a router decides by.

Source: Artemis, KeyResolver.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Final

from delosmq.model.declared.java_regex import JavaRegex
from delosmq.model.declared.router import NULL_KEY, KeyType

MOST_LETTERS: Final = 1_024
"""A value with more counts as none: filters are tried on it, and what takes long grows faster than its length."""


@dataclass(frozen=True)
class RouteRequest:
    """A connection that asks for a broker. "" is what it does not have.

    Attributes:
        source: the peer's address without its port.
        sni_host: the server name that its TLS handshake asked for.
    """

    client_id: str = ""
    user: str = ""
    roles: frozenset[str] = frozenset()
    source: str = ""
    sni_host: str = ""


class KeyResolver:
    """Takes keys of one type from connections.

    Attributes:
        key_filter: searched in the value, and what it finds is the key; None takes the value whole. May be set while
            the broker runs.
    """

    def __init__(self, key_type: KeyType, key_filter: JavaRegex | None) -> None:
        self.key_type = key_type
        self.key_filter = key_filter

    def resolve(self, request: RouteRequest) -> str:
        """The key; `NULL_KEY` when there is no value, or nothing in it that the filter finds."""
        for value in self._values(request):
            found = self._key_of(value)
            if found is not None:
                return found
        return NULL_KEY

    def key_of(self, value: str) -> str:
        """The key of a connection with this value, "" for one that has none."""
        found = self._key_of(canonical_address(value) if self.key_type is KeyType.SOURCE_IP else value)
        return NULL_KEY if found is None else found

    def _key_of(self, value: str) -> str | None:
        if not value or len(value) > MOST_LETTERS:
            return None
        return value if self.key_filter is None else self.key_filter.search(value)

    def _values(self, request: RouteRequest) -> Iterable[str]:
        match self.key_type:
            case KeyType.CLIENT_ID:
                return (request.client_id,)
            case KeyType.SNI_HOST:
                return (request.sni_host,)
            case KeyType.SOURCE_IP:
                return (canonical_address(request.source),)
            case KeyType.USER_NAME:
                return (request.user,)
            case KeyType.ROLE_NAME:
                # Artemis takes them in the order of a hash set, which is no order to route by.
                return sorted(request.roles)


def canonical_address(address: str) -> str:
    """An IP address in its one shortest form, without brackets and zone; IPv4 within IPv6 is IPv4, as Java has it."""
    bare = address.removeprefix("[").removesuffix("]").partition("%")[0]
    try:
        found = ip_address(bare)
    except ValueError:
        return bare
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(found)
