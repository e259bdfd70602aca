"""Queues: list, look at, create, change, pause, purge, delete, browse."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from delosmq.engine.api import EngineBroker, Purge, Queue
from delosmq.manage.control.browse import FILTERED_PER_SLICE, SLOTS_PER_SLICE, Browse, MessageFilter
from delosmq.manage.control.pagination import Page, listed, listing_notice
from delosmq.manage.control.queue_info import QueueInfo, queue_info
from delosmq.model.errors import MisuseError, NotFoundError
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.phrases import counted
from delosmq.model.settings import QueueSettings
from delosmq.security.access import BROWSE, CONSUME, EDIT, VIEW, AccessControl, Login

_DESTINATIONS: Final = (
    ("dead-letter-address", "dead_letter_address", "auto_create_dead_letter_resources"),
    ("expiry-address", "expiry_address", "auto_create_expiry_resources"),
)
ROUTING_TYPES: Final = {"ANYCAST": ANYCAST, "MULTICAST": MULTICAST}


class ExistsError(MisuseError):
    """What is to be created is there already."""


class InUseError(MisuseError):
    """What is to be deleted is in use, and that was not to be overlooked."""


class QueueControl:
    """The queues of one broker. Those it made for itself are not among them.

    Raises:
        NotFoundError: by each call that names a queue: there is none of that name.
    """

    def __init__(self, broker: EngineBroker, access: AccessControl) -> None:
        self._broker = broker
        self._access = access

    def names(self, login: Login, page: Page | None = None) -> list[str]:
        """Names of the queues this login may view, in order, one more than a page holds if there are more."""
        return listed(self._broker.queues, page, partial(self.may_view, login))

    def may_view(self, login: Login, name: str) -> bool:
        """Whether a list shows this login a queue of that name."""
        queue = self._broker.queues.get(name)
        return queue is not None and not queue.internal and self._access.check(login.roles, queue.address.name, VIEW)

    def notice(self, login: Login) -> str:
        """Says so when this login may not view everything; "" when it may."""
        return listing_notice(self._access, login)

    def get(self, login: Login, name: str) -> QueueInfo:
        return queue_info(self._broker, self.find(login, name, VIEW))

    def peek(self, login: Login, name: str) -> QueueInfo | None:
        """As `get`, or None when the queue went away since it was listed."""
        return queue_info(self._broker, self._permitted(login, name, VIEW)) if name in self._broker.queues else None

    def is_measured(self, name: str) -> bool:
        """Whether metrics show a queue (``enable-metrics`` of its address)."""
        queue = self._broker.queues.get(name)
        return queue is not None and queue.address.settings.enable_metrics

    def create(self, login: Login, settings: QueueSettings) -> QueueInfo:
        """Creates a queue and, if need be, its address.

        Raises:
            ExistsError: the name is taken.
            MisuseError: a setting makes no sense.
        """
        self._access.require_queue(login, settings.address, settings.name, EDIT)
        if settings.name in self._broker.queues:
            raise ExistsError("DMQ6204", f"queue '{settings.name}' exists already; update it or choose another name")
        return queue_info(self._broker, self._broker.resources.create_queue(replace(settings, user=login.user)))

    def update(self, login: Login, name: str, changes: Mapping[str, object]) -> QueueInfo:
        """Changes a queue while it runs; a smaller ring removes nothing by itself.

        Args:
            changes: fields of `QueueSettings`; None goes back to the default of the address.

        Raises:
            MisuseError: a setting makes no sense.
        """
        queue = self.find(login, name, EDIT)
        self._broker.resources.update_queue(name, **changes)
        return queue_info(self._broker, queue)

    def delete(self, login: Login, name: str, *, force: bool) -> int:
        """Deletes a queue and what it holds; gives how many messages that were.

        Raises:
            InUseError: it has consumers or lease groups, or dead or expired messages go there, and it is not forced.
        """
        queue = self.find(login, name, EDIT)
        if queue.holders and not force:
            raise InUseError(
                "DMQ6140",
                f"queue '{name}' has {counted(len(queue.holders), 'consumer')}; close them first, or force it:"
                " STOMP consumers are told that it is gone, JMS consumers read it again when it is made again, and its"
                " lease groups are lost",
            )
        if not force:
            self._keep_last_of_a_destination(queue)
        count = queue.message_count
        self._broker.resources.delete_queue(name)
        return count

    def _keep_last_of_a_destination(self, queue: Queue) -> None:
        """Refuses the end of the only queue to which dead or expired messages go, unless the broker makes a new one."""
        address = queue.address.name
        if len(self._broker.addresses[address].queues()) > 1:
            return
        for entry in self._broker.settings.address_settings:
            for setting, field, resources in _DESTINATIONS:
                if entry.fields.get(field) == address and not entry.fields.get(resources):
                    raise InUseError(
                        "DMQ6161",
                        f"queue '{queue.name}' is the only one of address '{address}', which is the {setting} of"
                        f" address-setting '{entry.match}': without it, what should go there is held where it"
                        " is; name another address there first, or force it",
                    )

    def pause(self, login: Login, name: str, *, paused: bool) -> QueueInfo:
        """Suspends or resumes delivery, over restarts too."""
        return self._switch(login, name, "paused", paused)

    def enable(self, login: Login, name: str, *, enabled: bool) -> QueueInfo:
        """Lets messages enter, or keeps them out, over restarts too."""
        return self._switch(login, name, "enabled", enabled)

    def _switch(self, login: Login, name: str, field: str, value: bool) -> QueueInfo:
        queue = self.find(login, name, EDIT)
        if getattr(queue.settings, field) is not value:
            self._broker.resources.update_queue(name, **{field: value})
        return queue_info(self._broker, queue)

    def purge(self, login: Login, name: str) -> Purge:
        """Begins to empty a queue of what is not in delivery; the rest of it happens in ticks."""
        self.find(login, name, EDIT)
        return self._broker.resources.purge_queue(name)

    def browse(
        self, login: Login, name: str, *, after: int, until: int, max_rows: int, only: MessageFilter | None = None
    ) -> Browse:
        """A look at messages with ``after`` < sequence <= ``until``, at most ``max_rows``, by sequence. Takes nothing.

        Who may consume may browse, as consuming shows as much."""
        queue = self.find(login, name, CONSUME, BROWSE)
        return Browse(
            self._broker,
            queue,
            after=after,
            until=until,
            max_rows=max_rows,
            only=None if only is None else only.takes,
            slots_per_slice=SLOTS_PER_SLICE if only is None else FILTERED_PER_SLICE,
        )

    def find(self, login: Login, name: str, *permissions: str) -> Queue:
        """As `_permitted`, without what has expired by now."""
        queue = self._permitted(login, name, *permissions)
        self._broker.expiry_scan.look(queue)
        return queue

    def _permitted(self, login: Login, name: str, *permissions: str) -> Queue:
        """The queue, for those who have one of the permissions on its address.

        Raises:
            PermissionDeniedError: they have none. That a queue doesn't exist learns only who might see it if it did: on
                an address of its name, as a queue has unless told otherwise.
            NotFoundError: there is none of that name.
        """
        queue = self._broker.queues.get(name)
        if queue is not None and queue.internal:
            queue = None
        address = queue.address.name if queue is not None else name
        if not any(self._access.check(login.roles, address, permission) for permission in permissions):
            # As for a queue that doesn't exist, whatever the user may do with the name.
            if not any(self._access.check(login.roles, name, permission) for permission in permissions):
                self._access.require(login, name, permissions[-1])
            queue = None
        if queue is None:
            raise NotFoundError("DMQ6201", f"there is no queue '{name}'; `delosmq queue stat` lists those that exist")
        return queue
