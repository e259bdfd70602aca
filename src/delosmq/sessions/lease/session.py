"""The calls of a lease reader: permission first, then the engine. Long polls are stepped, never waited for."""

from dataclasses import dataclass
from typing import Final

from delosmq.engine.api import EngineBroker, Lease, LeaseError, LeaseGroup, LeaseParts, LeaseWaiter, Slot
from delosmq.engine.api import lease as leases
from delosmq.model.errors import MisuseError, NotFoundError
from delosmq.security.access import CONSUME, CREATE_ADDRESS, CREATE_DURABLE_QUEUE, AccessControl, Login
from delosmq.sessions.lease.answers import GroupDetail, GroupLimits, GroupStat, LeaseExtent, OpenedGroup

GROUP_LIMIT_BYTES: Final = 1024
"""As for queues: a subscription has the name of its group."""
VERSION: Final = 2
FEATURES: Final = (
    "limits",
    "touch",
    "expiry",
    "selector",
    "start",
    "browse-selector",
    "parts",
    "large-bodies",
    "incarnation",
    "release-epoch",
)
"""What programs may look for in the answer of `LeaseSession.open`, as brokers of the first version have none of it."""


@dataclass(frozen=True)
class LeaseRequest:
    """What a reader asks for.

    Attributes:
        after: it has safely stored all leases up to this one; they are acknowledged.
        max_rows, max_bytes: of the next lease, if it has to be made; it has one row at least.
        until: take nothing above this sequence, and don't wait.
    """

    after: int
    max_rows: int
    max_bytes: int
    epoch: int
    until: int | None = None


@dataclass(frozen=True)
class LeaseStep:
    """Where a request stands.

    Attributes:
        lease: the answer; None while there is none.
        collecting: a large lease is under way, or the store makes ready for it: step again when told, whatever the
            time.
        may_wait: without an answer the reader wants to wait for messages.
    """

    lease: LeaseExtent | None
    collecting: bool
    may_wait: bool


def extent(lease: Lease) -> LeaseExtent:
    """A lease as readers see it."""
    return LeaseExtent(lease.number, len(lease.slots), lease.rows.size_bytes, lease.first_sequence, lease.last_sequence)


def nothing_new(after: int) -> LeaseExtent:
    """The answer when no message came in time."""
    return LeaseExtent(after, 0, 0, 0, 0)


class LeaseSession:
    """The lease calls of one login. Answers must wait for the log's position after the call.

    Without ``consume`` on the address of the group's queue all calls but `open` raise LeaseError LEASE_LOST, as for a
    group that is not there; otherwise LeaseError as the engine's calls of the same name do.
    """

    def __init__(self, broker: EngineBroker, access: AccessControl, login: Login) -> None:
        self._broker = broker
        self._access = access
        self._login = login

    def open(
        self,
        group: str,
        *,
        queue: str,
        topic: str,
        run: str,
        incarnation: str | None,
        selector: str = "",
        start: leases.LeaseStart = leases.EARLIEST,
    ) -> OpenedGroup:
        """Gives ``run`` the group on a queue, or on a topic as a durable subscription named like the group.

        Raises:
            MisuseError: not exactly one of queue and topic, or no name for a group.
            NotFoundError: there is no such queue; or no such address, and it may not be created.
            SelectorError: ``selector`` is none.
        """
        if not 0 < len(group.encode()) <= GROUP_LIMIT_BYTES:
            raise MisuseError("DMQ5403", f"the name of a group has 1 to {GROUP_LIMIT_BYTES} bytes; choose another")
        if bool(queue) == bool(topic):
            raise MisuseError(
                "DMQ5401", f"group '{group}' needs either a queue or a topic to read, not both or neither"
            )
        if topic:
            self._check_topic(group, topic, incarnation)
        else:
            self._check_queue(queue)
        user = self._login.user
        opened = self._broker.lease_groups.open(
            group,
            queue=queue,
            topic=topic,
            run=run,
            incarnation=incarnation,
            user=user,
            selector=selector,
            start=start,
        )
        limits = self._broker.leases.limits
        return OpenedGroup(
            opened.name,
            opened.queue.name,
            opened.incarnation,
            opened.epoch,
            opened.acked,
            opened.newest,
            VERSION,
            list(FEATURES),
            GroupLimits(limits.max_rows, limits.max_bytes, limits.leased_rows, limits.leased_bytes),
        )

    def _check_queue(self, name: str) -> None:
        queue = self._broker.queues.get(name)
        if queue is None or not self._access.check(self._login.roles, queue.address.name, CONSUME):
            # One that may not be read is refused like one that is not there.
            self._access.require(self._login, name, CONSUME)
            raise NotFoundError("DMQ5404", f"there is no queue '{name}' to read; create it first")

    def _check_topic(self, group: str, topic: str, incarnation: str | None) -> None:
        # Before the engine makes a subscription that would then stay behind and fill up.
        self._access.require(self._login, topic, CONSUME)
        known = self._broker.leases.groups.get(group)
        if known is None and incarnation is not None:
            self._broker.leases.find(group)
        queue = known.queue if known is not None else self._broker.queues.get(group)
        if queue is None or queue.address.name != topic:
            if topic not in self._broker.addresses:
                self._access.require(self._login, topic, CREATE_ADDRESS)
            # One that is on another address is refused like one that is not there.
            self._access.require_queue(self._login, topic, group, CREATE_DURABLE_QUEUE)
        if queue is not None and queue.address.name != topic:
            raise LeaseError(
                "DMQ5402",
                leases.FOREIGN_INCARNATION,
                f"'{group}' is taken: a queue of that name gets the messages of another address than '{topic}'; use"
                " another group.id",
            )

    def request(self, group: str, wanted: LeaseRequest) -> LeaseStep:
        """One step towards the next lease; see `Leases.request`."""
        found = self._find(group)
        lease = self._broker.leases.request(
            group,
            after=wanted.after,
            max_rows=wanted.max_rows,
            max_bytes=wanted.max_bytes,
            epoch=wanted.epoch,
            until=wanted.until,
        )
        if lease is not None:
            return LeaseStep(extent(lease), False, False)
        return LeaseStep(None, found.collecting, wanted.until is None)

    def wait(self, group: str, waiter: LeaseWaiter) -> None:
        """Registers for one `LeaseWaiter.on_messages`."""
        self._broker.leases.wait(group, waiter)

    def cancel_wait(self, group: str, waiter: LeaseWaiter) -> None:
        """Takes a registration back; harmless when it is gone."""
        self._broker.leases.cancel_wait(group, waiter)

    def touch(self, group: str, epoch: int) -> GroupStat:
        """A sign of life of its run, and nothing else; gives where the group stands."""
        found = self._find(group)
        self._broker.leases.touch(group, epoch)
        return group_stat(self._broker, found)

    def describe(self, group: str, after: int, upto: int, epoch: int | None = None) -> list[LeaseExtent]:
        """Leases ``after`` (exclusive) to ``upto`` (inclusive) that can still be read, in order."""
        self._find(group)
        return [extent(lease) for lease in self._broker.leases.describe(group, after, upto, epoch)]

    def rows(
        self,
        group: str,
        number: int,
        start: int,
        stop: int,
        epoch: int | None = None,
        *,
        incarnation: str | None = None,
    ) -> list[Slot]:
        """A copy of rows ``start`` to ``stop`` (exclusive) of a lease, fewer when it is shorter. Changes nothing.

        Raises:
            LeaseError: LEASE_LOST, the group is of another life than ``incarnation``, if that is given.
        """
        self._find(group, incarnation)
        return self._broker.leases.rows(group, number, start, stop, epoch)

    def parts(
        self, group: str, number: int, of: int, epoch: int | None = None, *, incarnation: str | None = None
    ) -> LeaseParts:
        """The rows of a lease in so many parts; ``incarnation``: as in `rows`. Changes nothing."""
        found = self._find(group, incarnation)
        parts = self._broker.leases.lease(group, number).parts(of)
        self._broker.leases.note_reading(found, epoch)
        return parts

    def row(self, group: str, number: int, sequence: int, *, incarnation: str | None = None) -> Slot:
        """One row of a lease; ``incarnation``: as in `rows`.

        Raises:
            NotFoundError: the lease has no such row.
        """
        self._find(group, incarnation)
        slot = self._broker.leases.lease(group, number).rows.find(sequence)
        if slot is None:
            raise NotFoundError(
                "DMQ5405", f"lease {number} of group '{group}' has no row with sequence {sequence}; ask for its rows"
            )
        return slot

    def acknowledge(self, group: str, number: int, epoch: int) -> int:
        """Acknowledges all leases up to ``number``; gives the newest acknowledged."""
        self._find(group)
        return self._broker.leases.acknowledge(group, number, epoch)

    def may_release(self, group: str, epoch: int | None = None) -> bool:
        """Whether nothing is left to do for what the group acknowledged; `release` would do it at once."""
        self._check_run(group, epoch)
        return self._broker.leases.is_settled(group)

    def release(self, group: str, epoch: int | None = None) -> int:
        """Ends the group: what is not acknowledged goes back in order. Gives how many messages.

        Raises:
            LeaseError: FENCED, another run than that of ``epoch`` has the group. None: whichever has it.
        """
        self._check_run(group, epoch)
        return self._broker.lease_groups.release(group)

    def stat(self, group: str, epoch: int | None = None) -> GroupStat:
        """Where the group stands; with the epoch of its run a call of it."""
        found = self._find(group)
        standing = group_stat(self._broker, found)
        self._broker.leases.note_reading(found, epoch)
        return standing

    def show(self, group: str) -> GroupDetail:
        """Where the group stands, with its leases that are not acknowledged. Never a call of its run."""
        found = self._find(group)
        return GroupDetail(
            group_stat(self._broker, found), [extent(found.leases[number]) for number in sorted(found.leases)]
        )

    def stats(self) -> list[GroupStat]:
        """All groups that this login may read, by name."""
        groups = self._broker.leases.groups
        return [group_stat(self._broker, groups[name]) for name in sorted(groups) if self._may_read(groups[name])]

    def _check_run(self, group: str, epoch: int | None) -> None:
        self._find(group)
        if epoch is not None:
            self._broker.leases.touch(group, epoch)

    def _find(self, name: str, incarnation: str | None = None) -> LeaseGroup:
        group = self._broker.leases.find(name)
        if not self._may_read(group):
            # As if it were not there: a group has no address of its own that others could be told of.
            raise self._broker.leases.lost(name)
        if incarnation is not None and incarnation != group.incarnation:
            raise LeaseError(
                "DMQ5406",
                leases.LEASE_LOST,
                f"group '{name}' was ended and made anew since, and its leases are others now. Start over with a new"
                " checkpoint, or set failOnDataLoss=false",
            )
        return group

    def _may_read(self, group: LeaseGroup) -> bool:
        return self._access.check(self._login.roles, group.queue.address.name, CONSUME)


def group_stat(broker: EngineBroker, group: LeaseGroup) -> GroupStat:
    """Where a group stands."""
    now = broker.clock.wall_ms()
    oldest_ms = int(now)
    head = group.queue.pending.head()
    if head is not None:
        oldest_ms = min(oldest_ms, head.message.timestamp_ms)
    for lease in group.leases.values():
        oldest_ms = min(oldest_ms, lease.rows.oldest_ms)
    return GroupStat(
        group=group.name,
        queue=group.queue.name,
        incarnation=group.incarnation,
        newest_sequence=broker.transactions.newest_sequence(group.queue),
        ready=group.queue.pending.count,
        leased=group.leased_count,
        oldest_age_ms=now - oldest_ms,
        acked=group.acked,
        lease=group.newest,
        epoch=group.epoch,
        contact_age_ms=max(0, now - group.contact_ms),
        expires_in_ms=broker.leases.expires_in_ms(group),
    )
