"""Addresses: list, look at, create, delete, forget their duplicate ids."""

from dataclasses import dataclass
from functools import partial
from typing import Final

from delosmq.engine.api import Address, EngineBroker
from delosmq.manage.control.pagination import Page, listed, listing_notice
from delosmq.manage.control.queues import ROUTING_TYPES, InUseError
from delosmq.model.errors import NotFoundError
from delosmq.model.message import ROUTING_NAMES
from delosmq.model.phrases import counted
from delosmq.model.settings import AddressSettings
from delosmq.security.access import EDIT, VIEW, AccessControl, Login

_PERCENT: Final = 100


@dataclass(frozen=True)
class AddressInfo:
    """An address as it stands.

    Attributes:
        queues, diverts: by name.
        used_bytes, used_messages: what its messages count against its limits, each message once.
        address_limit_percent: how much of its tightest limit that is, 0 when it has none.
        blocked_senders: that wait for space.
        duplicate_ids: remembered, at most ``id_cache_size``.
        retroactive_message_count: kept for queues to come.
        routed_messages, unrouted_messages: since the broker started.
    """

    name: str
    routing_types: list[str]
    queues: list[str]
    diverts: list[str]
    auto_created: bool
    temporary: bool
    used_bytes: int
    used_messages: int
    max_size_bytes: int
    max_size_messages: int
    address_limit_percent: int
    address_full_policy: str
    blocked_senders: int
    duplicate_ids: int
    id_cache_size: int
    retroactive_message_count: int
    routed_messages: int
    unrouted_messages: int


class AddressControl:
    """The addresses of one broker.

    Raises:
        NotFoundError: by each call that names an address: there is none of that name.
    """

    def __init__(self, broker: EngineBroker, access: AccessControl) -> None:
        self._broker = broker
        self._access = access

    def names(self, login: Login, page: Page | None = None) -> list[str]:
        """Names of the addresses this login may view, in order, one more than a page holds if there are more."""
        return listed(self._broker.addresses, page, partial(self.may_view, login))

    def may_view(self, login: Login, name: str) -> bool:
        """Whether a list shows this login an address of that name."""
        return self._access.check(login.roles, name, VIEW)

    def notice(self, login: Login) -> str:
        """Says so when this login may not view everything; "" when it may."""
        return listing_notice(self._access, login)

    def get(self, login: Login, name: str) -> AddressInfo:
        return self._info(self.find(login, name, VIEW))

    def peek(self, login: Login, name: str) -> AddressInfo | None:
        """As `get`, or None when the address went away since it was listed."""
        return self.get(login, name) if name in self._broker.addresses else None

    def settings_of(self, login: Login, name: str) -> AddressSettings:
        """What an address of that name obeys, whether there is one or not."""
        self._access.require(login, name, VIEW)
        return self._broker.bindings.settings_of(name)

    def is_measured(self, name: str) -> bool:
        """Whether metrics show an address (``enable-metrics``)."""
        address = self._broker.addresses.get(name)
        return address is not None and address.settings.enable_metrics

    def create(self, login: Login, name: str, routing_types: list[str]) -> AddressInfo:
        """Creates an address, or adds routing types to one that is there.

        Raises:
            MisuseError: the name makes no sense.
        """
        self._access.require(login, name, EDIT)
        return self._info(self._broker.resources.create_address(name, {ROUTING_TYPES[kind] for kind in routing_types}))

    def delete(self, login: Login, name: str, *, force: bool) -> int:
        """Deletes an address, with ``force`` its queues too; gives how many queues that were.

        Raises:
            InUseError: it has queues, and is not forced.
        """
        address = self.find(login, name, EDIT)
        queues = [queue.name for queue in address.queues()]
        if queues and not force:
            raise InUseError(
                "DMQ6141",
                f"address '{name}' has {counted(len(queues), 'queue')}, '{queues[0]}' among them; delete them first, "
                "or force it: they go with all they hold",
            )
        self._broker.resources.delete_address(name, force=force)
        return len(queues)

    def clear_duplicate_ids(self, login: Login, name: str) -> int:
        """Forgets which duplicate ids were sent to an address; gives how many."""
        self.find(login, name, EDIT)
        return self._broker.duplicate_ids.clear(name)

    def find(self, login: Login, name: str, permission: str) -> Address:
        """The address, for those who have the permission on it."""
        self._access.require(login, name, permission)
        address = self._broker.addresses.get(name)
        if address is None:
            raise NotFoundError(
                "DMQ6203", f"there is no address '{name}'; `delosmq address stat` lists those that exist"
            )
        return address

    def _info(self, address: Address) -> AddressInfo:
        settings = address.settings
        return AddressInfo(
            name=address.name,
            routing_types=[ROUTING_NAMES[kind] for kind in sorted(address.routing_types)],
            queues=[queue.name for queue in address.queues()],
            diverts=[divert.name for divert in address.diverts],
            auto_created=address.auto_created,
            temporary=address.owner != "",
            used_bytes=address.account.used_bytes,
            used_messages=address.account.used_messages,
            max_size_bytes=settings.max_size_bytes,
            max_size_messages=settings.max_size_messages,
            address_limit_percent=max(
                _percent(address.account.used_bytes, settings.max_size_bytes),
                _percent(address.account.used_messages, settings.max_size_messages),
            ),
            address_full_policy=settings.address_full_policy.value,
            blocked_senders=len(address.waiters),
            duplicate_ids=self._broker.duplicate_ids.count(address.name),
            id_cache_size=settings.id_cache_size,
            retroactive_message_count=settings.retroactive_message_count,
            routed_messages=address.routed_messages,
            unrouted_messages=address.unrouted_messages,
        )


def _percent(used: int, limit: int) -> int:
    return used * _PERCENT // limit if limit > 0 else 0
