"""Addresses: list and look at."""

from dataclasses import dataclass

from delosmq.engine.address import Address
from delosmq.engine.broker import Broker
from delosmq.model.errors import NotFoundError
from delosmq.model.message import ROUTING_NAMES
from delosmq.security.access import VIEW, AccessControl, Login


@dataclass(frozen=True)
class AddressInfo:
    """An address as it stands.

    Attributes:
        used_bytes, used_messages: what its messages count against its limits, each message once.
        routed_messages, unrouted_messages: since the broker started.
    """

    name: str
    routing_types: list[str]
    queues: list[str]
    auto_created: bool
    used_bytes: int
    used_messages: int
    max_size_bytes: int
    max_size_messages: int
    address_full_policy: str
    blocked_senders: int
    routed_messages: int
    unrouted_messages: int


class AddressControl:
    """The addresses of one broker."""

    def __init__(self, broker: Broker, access: AccessControl) -> None:
        self._broker = broker
        self._access = access

    def names(self, login: Login) -> list[str]:
        """Names of the addresses this login may view, in order."""
        return [name for name in sorted(self._broker.addresses) if self._access.check(login.roles, name, VIEW)]

    def get(self, login: Login, name: str) -> AddressInfo:
        """One address.

        Raises:
            NotFoundError: there is none of that name.
        """
        self._access.require(login, name, VIEW)
        address = self._broker.addresses.get(name)
        if address is None:
            raise NotFoundError("DMQ6203", f"there is no address '{name}'; check the name")
        return _address_info(address)

    def peek(self, login: Login, name: str) -> AddressInfo | None:
        """As `get`, or None when the address went away since it was listed."""
        return self.get(login, name) if name in self._broker.addresses else None


def _address_info(address: Address) -> AddressInfo:
    return AddressInfo(
        name=address.name,
        routing_types=[ROUTING_NAMES[kind] for kind in sorted(address.routing_types)],
        queues=[queue.name for queue in address.queues()],
        auto_created=address.auto_created,
        used_bytes=address.account.used_bytes,
        used_messages=address.account.used_messages,
        max_size_bytes=address.settings.max_size_bytes,
        max_size_messages=address.settings.max_size_messages,
        address_full_policy=address.settings.address_full_policy.value,
        blocked_senders=len(address.waiters),
        routed_messages=address.routed_messages,
        unrouted_messages=address.unrouted_messages,
    )
