"""The permissions of the user of one connection. Decisions are cached until the configuration is reloaded."""

from typing import Final

from delosmq.engine.api import NO_OPTIONS, EngineBroker, SubscriptionOptions
from delosmq.security.access import (
    CREATE_ADDRESS,
    CREATE_DURABLE_QUEUE,
    CREATE_NON_DURABLE_QUEUE,
    AccessControl,
    Login,
)


class Permissions:
    """The rights of one login, as the session asks for them.

    Attributes:
        user: for messages and logs.
    """

    def __init__(self, login: Login, access: AccessControl, broker: EngineBroker) -> None:
        self.user: str = login.user
        self._login = login
        self._access = access
        self._broker = broker
        self._granted: set[tuple[str, str]] = set()
        self._reloads: int = access.reloads

    def login(self) -> Login:
        """The user with the roles of now."""
        self._renew()
        return self._login

    def require(self, address: str, permission: str) -> None:
        """Raises PermissionDeniedError unless the user holds ``permission`` on ``address``."""
        self._renew()
        key = (address, permission)
        if key not in self._granted:
            self._access.require(self._login, address, permission)
            if len(self._granted) >= _GRANTED_LIMIT:
                self._granted.clear()
            self._granted.add(key)

    def _renew(self) -> None:
        """Takes over the roles of a reload. Each question comes first to this: `_login` is old until then."""
        if self._reloads == self._access.reloads:
            return
        self._reloads = self._access.reloads
        self._login = self._access.renewed(self._login)
        self._granted.clear()

    def require_temporary(self, address: str, *, queue: bool) -> None:
        """Raises PermissionDeniedError unless the user may make a temporary destination of that name."""
        settings = self._broker.settings
        namespace = settings.temporary_queue_namespace
        name = f"{namespace}{settings.wildcards.delimiter}{address}" if namespace else address
        self.require(name, CREATE_ADDRESS)
        if queue:
            self.require(name, CREATE_NON_DURABLE_QUEUE)

    def may_create(self, address: str) -> bool:
        """Whether a send may create whatever it needs, so that it is not looked up each time."""
        self._renew()
        roles = self._login.roles
        access = self._access
        return access.check(roles, address, CREATE_ADDRESS) and access.check(roles, address, CREATE_DURABLE_QUEUE)

    def require_creation(
        self,
        address: str,
        queue_name: str,
        routing: int,
        *,
        for_subscription: bool,
        subscription: SubscriptionOptions = NO_OPTIONS,
    ) -> None:
        """Raises PermissionDeniedError when the command would create something that the user may not create."""
        self._renew()
        for permission, name, queue in self._broker.required_permissions.needs_creation(
            address, queue_name, routing, for_subscription=for_subscription, subscription=subscription
        ):
            if queue:
                self._access.require_queue(self._login, name, queue, permission)
            else:
                self.require(name, permission)

    def require_use(self, address: str, queue_name: str, permission: str) -> None:
        """Raises PermissionDeniedError unless the user holds ``permission`` on the address of the queue to be used. A
        user who could not use it under its name is told the same as if there were none, and never its address.

        Args:
            queue_name: as it was asked for; "" for the queue of the address.
        """
        self._renew()
        if queue_name and not self._access.check(self._login.roles, address, permission):
            self.require(queue_name, permission)
            raise self._access.refusal_for(self._login, queue_name, permission)
        self.require(address, permission)


_GRANTED_LIMIT: Final = 1_000
