"""Whether one more address or queue may be made; asked before anything changes.

What clients make leaves operators and broker.xml a part of what the journal can describe, and no user takes more than a
share of it: docs/decisions/0057-shares-of-the-state.md.
"""

from typing import Final

from delosmq.engine.addresses.binding_codec import (
    address_state_bytes,
    branch_state_bytes,
    group_state_bytes,
    queue_state_bytes,
)
from delosmq.engine.addresses.destinations import Destinations
from delosmq.engine.addresses.history import keeping_queues
from delosmq.engine.addresses.settings_checks import check_settings
from delosmq.engine.log.log import Log
from delosmq.engine.queues.queue import Queue
from delosmq.model.errors import LimitError, MisuseError
from delosmq.model.message import MULTICAST
from delosmq.model.names import check_name
from delosmq.model.settings import QueueSettings

RECORD_BYTES: Final = 1_024
"""What the records of a new address or queue take beside its description, at most."""
REFERENCE_BYTES: Final = 64
"""And of each message that a new queue gets from the history of its address."""
OPERATORS_PART: Final = 4
"""1 / this of what the journal's files can describe is left for what no client makes."""


class DestinationChecks:
    def __init__(self, destinations: Destinations, log: Log) -> None:
        self._destinations = destinations
        self._log = log

    def check_address(self, name: str, routing_types: set[int], *, auto_created: bool, owner: str, user: str) -> None:
        """Whether an address may be made, or widened.

        Args:
            owner, user: as in `Bindings.create_address`.

        Raises:
            LimitError: as in `Bindings.create_address`.
        """
        size = self._growth(name, routing_types, auto_created=auto_created, owner=owner, user=user)
        count = 1 if name not in self._destinations.addresses else 0
        what = f"address '{name}'"
        self._destinations.client_limits.check(user, what, count=count, size_bytes=size)
        self._check_state(size, user)
        if size or not auto_created:
            self._log.ask_room(RECORD_BYTES + 2 * len(name) + 2 * size, what)

    def check_queue(
        self,
        settings: QueueSettings,
        *,
        of_client: bool = False,
        user: str = "",
        by_broker: bool = False,
        replaced: Queue | None = None,
    ) -> None:
        """Whether a queue may be made, and its address if need be.

        Args:
            of_client, user, by_broker: as in `Bindings.create_queue`.
            replaced: one of the same name that ends before.

        Raises:
            MisuseError, LimitError: as in `Bindings.create_queue`.
        """
        destinations = self._destinations
        what = f"queue '{settings.name}'"
        check_name("queue", settings.name)
        check_name("address", settings.address)
        check_settings(settings)
        known = destinations.queues.get(settings.name)
        if known is not None and known is not replaced:
            raise MisuseError("DMQ2102", f"{what} exists already; update it or choose another name")
        automatic = settings.auto_created or of_client
        size = self._growth(settings.address, {settings.routing_type}, auto_created=automatic, user=user)
        if settings.durable:
            size += queue_state_bytes(settings, user)
        freed = 0
        filter_freed = 0
        count = 0 if by_broker else 1
        if replaced is not None and replaced.made_by == user:
            freed = replaced.state_bytes
            filter_freed = replaced.filter_characters
            count = 0
        destinations.client_limits.check(user, what, count=count, size_bytes=size - freed)
        destinations.client_limits.check_filter(user, what, len(settings.filter) - filter_freed)
        self._check_state(size, user)
        address = destinations.addresses.get(settings.address)
        is_there = address is not None and address.covers({settings.routing_type}, automatic)
        if size or not (automatic or is_there):
            more = 0
            if settings.durable and address is not None and address.history is not None:
                more = REFERENCE_BYTES * address.history.pending.count
            self._log.ask_room(RECORD_BYTES + 2 * len(settings.address) + 2 * size + more, what)

    def check_group(self, name: str, run: str, user: str, selector: str = "") -> None:
        """Whether a lease group may be opened that is not there.

        Raises:
            LimitError: what the clients of this user have made takes as much as it may, or all do.
        """
        size = group_state_bytes(name, run, user, selector)
        self._destinations.client_limits.check(user, f"lease group '{name}'", count=0, size_bytes=size)
        self._check_state(size, user)

    def check_branch(self, xid: bytes, user: str) -> None:
        """Whether a branch of a distributed transaction may be begun.

        Raises:
            LimitError: the clients of this user have begun as many as they may, or what they have made takes as much
                as it may, or all do.
        """
        size = branch_state_bytes(xid, user)
        limits = self._destinations.client_limits
        limits.check_branch(user)
        limits.check(user, f"branch {xid.hex()}", count=0, size_bytes=size)
        self._check_state(size, user)

    def check_staged(self, what: str, size_bytes: int, user: str) -> None:
        """Whether a sink may stage a part, or publish for an application that has not published before.

        Raises:
            LimitError: what the clients of this user have made takes as much as it may, or all do.
        """
        self._destinations.client_limits.check(user, what, count=0, size_bytes=size_bytes)
        self._check_state(size_bytes, user)

    def _growth(
        self, name: str, routing_types: set[int], *, auto_created: bool, owner: str = "", user: str = ""
    ) -> int:
        """How many bytes a state block would grow by an address, with the queues that keep messages for queues to come.

        Raises:
            LimitError: there are as many as ``max-addresses`` says.
        """
        destinations = self._destinations
        known = destinations.addresses.get(name)
        if known is None and not owner and not destinations.wildcards.is_wild(name):
            destinations.limits.check(name)
        recorded = not auto_created and (known is None or known.auto_created)
        size = address_state_bytes(name, user) if recorded else 0
        if owner or (known is not None and known.owner) or MULTICAST not in routing_types:
            return size
        settings = destinations.settings_of(name) if known is None else known.settings
        for keeping in keeping_queues(name, settings, auto_created=auto_created):
            if keeping.name not in destinations.queues:
                size += queue_state_bytes(keeping, user)
        return size

    def _check_state(self, size_bytes: int, user: str) -> None:
        if not size_bytes:
            return
        destinations = self._destinations
        total = destinations.client_limits.state_bytes + size_bytes
        reserve = total // (OPERATORS_PART - 1) if user else 0
        if not self._log.takes_state(total, reserve):
            raise LimitError(
                "DMQ2204",
                f"there are {len(destinations.addresses)} addresses and {len(destinations.queues)} queues already, as"
                " many as the journal's files describe, and the disk has no room for larger ones; delete some, or free"
                " some space",
            )
