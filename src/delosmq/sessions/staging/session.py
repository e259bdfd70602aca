"""The calls of a sink: permission first, then the engine. What waits for room is stepped, never waited for."""

from dataclasses import dataclass
from typing import Final

from delosmq.engine.api import BLOCKED, EngineBroker, JobWaiter, SpaceWaiter, Transaction
from delosmq.model.conversion import Conversions
from delosmq.model.errors import MisuseError
from delosmq.model.message import ANY_ROUTING, Message
from delosmq.model.names import QUEUE_MARK
from delosmq.security.access import MANAGE, SEND, AccessControl, Login
from delosmq.sessions.permissions import Permissions
from delosmq.sessions.staging.rows import RowDefaults, Rows

NAME_LIMIT_BYTES: Final = 256
ROWS_LIMIT: Final = 50_000


@dataclass(frozen=True)
class PartInfo:
    """A staged part.

    Attributes:
        age_ms: since it was staged; -1 while it is being staged.
        bytes: of its messages; addresses: to which they go.
    """

    application: str
    batch: int
    part: str
    user: str
    rows: int
    bytes: int
    addresses: list[str]
    age_ms: int


@dataclass(frozen=True)
class PartCounts:
    """What became of the rows of a part: ``rows`` were sent, ``duplicates`` left out as their duplicate id was known,
    ``dropped`` by their full address."""

    rows: int
    duplicates: int
    dropped: int


@dataclass(frozen=True)
class ApplicationInfo:
    """An application that publishes. ``age_ms``: since it published that batch."""

    application: str
    published: int
    user: str
    age_ms: int


class StagedPartCall:
    """One part being staged, step by step.

    Attributes:
        waits_for: the address that has no room, "" when the next row may be added.
    """

    def __init__(
        self,
        broker: EngineBroker,
        permissions: Permissions,
        conversions: Conversions,
        transaction: Transaction,
        *,
        defaults: RowDefaults,
        routing: int,
    ) -> None:
        self._broker = broker
        self._permissions = permissions
        self._conversions = conversions
        self._transaction = transaction
        self._defaults = defaults
        self._routing = routing
        self._allowed: set[tuple[str, str]] = set()
        self._blocked: Message | None = None
        self._blocked_queue: str = ""
        self.waits_for: str = ""

    def add(self, rows: Rows, at: int, stop: int) -> int:
        """Sends rows from ``at`` on; gives where to go on: before ``stop`` when `waits_for` says why.

        Raises:
            BrokerError: the part can't be staged; abandon it.
        """
        broker = self._broker
        now_ms = broker.clock.wall_ms()
        self.waits_for = ""
        while at < stop:
            message = self._blocked
            queue_name = self._blocked_queue
            if message is None:
                message = rows.message(at, self._defaults, self._conversions, self._permissions.user, now_ms)
                queue_name = rows.queue_name(at, self._defaults)
                self._check(message.address, queue_name)
            self._blocked = None
            outcome = broker.staging.add(self._transaction, message, self._routing, queue_name)
            if outcome == BLOCKED:
                self._blocked = message
                self._blocked_queue = queue_name
                self.waits_for = message.address
                return at
            at += 1
        return at

    @property
    def counts(self) -> PartCounts:
        """What became of the rows added so far."""
        part = self._transaction.part
        assert part is not None
        return PartCounts(part.rows, part.duplicates, part.dropped)

    def _check(self, address: str, queue_name: str) -> None:
        if (address, queue_name) in self._allowed:
            return
        self._permissions.require(address, SEND)
        self._permissions.require_creation(address, queue_name, self._routing, for_subscription=False)
        self._allowed.add((address, queue_name))

    def staged_there(self) -> str:
        """What is staged for the address that has no room, for a sentence."""
        return self._broker.staging.batches.held_there(self.waits_for, self._permissions.user)

    def wait(self, waiter: SpaceWaiter) -> None:
        """Registers for one `SpaceWaiter.on_space` after `add` stopped for want of room."""
        size = 0 if self._blocked is None else self._blocked.encoded_size_bytes
        self._broker.blocked_producers.wait(self.waits_for, waiter, size_bytes=size)

    def cancel_wait(self, address: str, waiter: SpaceWaiter) -> None:
        """Takes a registration back; harmless when it is gone."""
        self._broker.blocked_producers.cancel(address, waiter)

    def prepare(self, waiter: JobWaiter) -> bool:
        """Makes the part durable. True when that is done but for the log's position; False: ``waiter`` is told."""
        return self._broker.staging.prepare(self._transaction, waiter)

    def abandon(self) -> None:
        """Gives the part up unless it is staged."""
        self._broker.staging.abandon(self._transaction)


class StagingSession:
    """The staging calls of one login. Answers must wait for the log's position after the call."""

    def __init__(self, broker: EngineBroker, access: AccessControl, login: Login, conversions: Conversions) -> None:
        self._broker = broker
        self._access = access
        self._login = login
        self._conversions = conversions

    def is_published(self, application: str, batch: int) -> bool:
        """Whether the batch was published already, so that nothing is left to stage."""
        self._check_name("application", application)
        self._broker.staging.published.check_owner(application, self._login.user)
        return self._broker.staging.published.holds(application, batch)

    def staged(self, application: str, batch: int, part: str) -> PartCounts | None:
        """What became of the rows of a part that was staged before; None when it has to be.

        Raises:
            StagingError: it is being staged by another call, or is no part of that batch.
        """
        self._check_name("part", part)
        found = self._broker.staging.staged(application, batch, part, self._login.user)
        return None if found is None else PartCounts(found.rows, found.duplicates, found.dropped)

    def begin(
        self,
        application: str,
        batch: int,
        part: str,
        *,
        defaults: RowDefaults,
        routing: int = ANY_ROUTING,
        attempt: str = "",
        task: str = "",
        run: str = "",
    ) -> StagedPartCall:
        """Begins to stage a part.

        Args:
            attempt, task, run: see `Staging.begin`.

        Raises:
            PermissionDeniedError: the user may not send to the address.
            StagingError, LimitError: as `Staging.begin`.
        """
        permissions = Permissions(self._login, self._access, self._broker)
        if defaults.address:
            permissions.require(defaults.address.partition(QUEUE_MARK)[0], SEND)
        transaction = self._broker.staging.begin(
            application, batch, part, self._login.user, attempt=attempt, task=task, run=run
        )
        return StagedPartCall(
            self._broker, permissions, self._conversions, transaction, defaults=defaults, routing=routing
        )

    def publish(self, application: str, batch: int, parts: list[str], *, attempt: str = "") -> bool:
        """Publishes a batch. False when it was published before, which is success."""
        self._check_name("application", application)
        return self._broker.staging.publish(application, batch, parts, self._login.user, attempt=attempt)

    def last_published(self, application: str) -> int:
        """The last batch that was published; there is one."""
        return self._broker.staging.published.by_name[application].batch

    def discard(self, application: str, batch: int, parts: list[str]) -> int:
        """Discards parts of a batch that is not published; gives how many there were."""
        self._check_name("application", application)
        return self._broker.staging.discard(application, batch, parts, self._login.user)

    # -- operators -----------------------------------------------------------------------------------------------

    def parts(self, after: str, limit: int) -> list[PartInfo]:
        """Parts by their uuid: of this user, or of all users for an operator."""
        found: list[PartInfo] = []
        now_ms = self._broker.clock.wall_ms()
        transactions = self._broker.staging.parts
        for uuid in sorted(uuid for uuid in transactions if uuid > after):
            transaction = transactions[uuid]
            part = transaction.part
            if part is None or not self._may_see(part.made_by):
                continue
            size = 0
            for account in transaction.charged.values():
                size += account.used_bytes
            age_ms = now_ms - transaction.prepared_ms if part.is_staged else -1
            addresses = sorted(transaction.charged)
            found.append(PartInfo(part.application, part.batch, uuid, part.made_by, part.rows, size, addresses, age_ms))
            if len(found) == limit:
                break
        return found

    def applications(self, after: str, limit: int) -> list[ApplicationInfo]:
        """Applications that publish, by name, likewise."""
        found: list[ApplicationInfo] = []
        now_ms = self._broker.clock.wall_ms()
        published = self._broker.staging.published.by_name
        for name in sorted(name for name in published if name > after):
            last = published[name]
            if self._may_see(last.made_by):
                found.append(ApplicationInfo(name, last.batch, last.made_by, now_ms - last.at_ms))
            if len(found) == limit:
                break
        return found

    def discard_all(self, application: str) -> int:
        """Discards all parts of an application that this user may see, those of all users for an operator."""
        self._check_name("application", application)
        count = 0
        for made_by in {one.part.made_by for one in self._broker.staging.parts.values() if one.part is not None}:
            if self._may_see(made_by):
                count += self._broker.staging.discard_all(application, made_by)
        return count

    def forget(self, application: str) -> bool:
        """Forgets which batch an application published last. False when none is known."""
        self._check_name("application", application)
        last = self._broker.staging.published.by_name.get(application)
        if last is None or not self._may_see(last.made_by):
            return False
        return self._broker.staging.published.record_forget(application)

    def _may_see(self, made_by: str) -> bool:
        if made_by == self._login.user:
            return True
        return self._access.check(self._login.roles, self._broker.settings.management_address, MANAGE)

    @staticmethod
    def _check_name(what: str, name: str) -> None:
        if not 0 < len(name.encode()) <= NAME_LIMIT_BYTES:
            raise MisuseError("DMQ5411", f"the name of {what} has 1 to {NAME_LIMIT_BYTES} bytes; choose another")
