"""Leases: numbered, immutable, ordered lists of messages that a reader may read again until it acknowledges them.

A group holds its messages as a consumer does (``lease GROUP``): in delivery, outside the ring, never lost by time
alone. Making and acknowledging leases of many messages is cut into slices; the one record that makes a lease, or
acknowledges it, is the moment at which it happens as a whole.
"""

from typing import Final

from delosmq.engine.addresses.binding_codec import group_state_bytes
from delosmq.engine.addresses.client_limits import ClientLimits
from delosmq.engine.base.events import EngineEvents
from delosmq.engine.base.jobs import Jobs
from delosmq.engine.base.slots import Slot
from delosmq.engine.base.timers import NS_PER_MS
from delosmq.engine.delivery.acknowledgements import Acknowledgements
from delosmq.engine.dispatch.dispatcher import Dispatcher
from delosmq.engine.dispatch.lease_search import TAKES_ALL, LeaseWish
from delosmq.engine.leases.lease import (
    DELETED,
    EXPIRED,
    FENCED,
    FOREIGN_INCARNATION,
    GROUP_BUSY,
    LEASE_LOST,
    LINKED,
    NEXT_TICK,
    RELEASED,
    RESUMED,
    ROOM,
    Lease,
    LeaseBounds,
    LeaseError,
    LeaseGroup,
    LeaseWaiter,
)
from delosmq.engine.leases.lease_collector import LeaseCollector
from delosmq.engine.leases.lease_settler import LeaseSettler
from delosmq.engine.log.log import Log
from delosmq.engine.log.records import LEASE, VERSION, WISH_VERSION, encode_json
from delosmq.engine.queues.queue import Queue
from delosmq.engine.queues.removal import Removals
from delosmq.model.declared.lease_life import LIVE_WINDOW_MS
from delosmq.model.errors import MisuseError
from delosmq.model.ports import Clock, Random
from delosmq.model.settings import BrokerSettings

WARNED_OF: Final = 7
"""That a retention ends is told when less than a seventh of it is left: of seven days a day before."""


class Leases:
    """All lease groups of a broker.

    Attributes:
        settler: what ends in slices.
        limits: of leases and of groups.
        ended: groups since the start, by why they ended.
        ended_epoch: no group that has ended had a higher epoch; those of new ones are, or its readers would be heard.
    """

    def __init__(
        self,
        log: Log,
        acks: Acknowledgements,
        removals: Removals,
        *,
        dispatcher: Dispatcher,
        jobs: Jobs,
        clock: Clock,
        random: Random,
        events: EngineEvents,
        ordinary_message_bytes: int,
        client_limits: ClientLimits,
        settings: BrokerSettings,
    ) -> None:
        self._log = log
        self._client_limits = client_limits
        self._clock = clock
        self._dispatcher = dispatcher
        self._random = random
        self._events = events
        self._retention_ms: int = settings.lease_retention_ms
        self.limits: LeaseBounds = LeaseBounds(settings)
        self.ended_epoch: int = 0
        self.ended: dict[str, int] = {RELEASED: 0, EXPIRED: 0, DELETED: 0}
        self._collector: LeaseCollector = LeaseCollector(
            log,
            dispatcher=dispatcher,
            clock=clock,
            events=events,
            ordinary_message_bytes=ordinary_message_bytes,
            limits=self.limits,
        )
        self.settler: LeaseSettler = LeaseSettler(log, acks, removals, dispatcher=dispatcher, jobs=jobs)
        self.groups: dict[str, LeaseGroup] = {}
        # While the broker was down no reader could call: that time counts against no group.
        self._started_ns: int = clock.monotonic_ns()

    # -- opening -------------------------------------------------------------------------------------------------

    def open(
        self,
        name: str,
        queue: Queue,
        run: str,
        incarnation: str | None,
        *,
        owns_queue: bool = False,
        user: str = "",
        selector: str = "",
        wish: LeaseWish = TAKES_ALL,
    ) -> LeaseGroup:
        """Gives ``run`` the group under a new epoch, which fences all earlier ones.

        Args:
            owns_queue: the queue was just made for this group, to end with it.
            user: to whom a new group counts.
            selector: of the reader; it stays with the group.
            wish: what a new group takes.

        Raises:
            LeaseError: another run is alive, or the group has a history that is not this reader's.
        """
        group = self.groups.get(name)
        if group is None:
            self.check_new(
                name,
                queue.name,
                incarnation,
                durable=queue.settings.durable,
                non_destructive=queue.in_force.non_destructive,
            )
            group = self.restore(name, queue, self._random.token(12), wish)
            group.made_by = user
            group.selector = selector
            group.epoch = self.ended_epoch
        else:
            self._check_open(group, queue, run, incarnation)
            group.check_selector(selector)
        if owns_queue:
            group.owns_queue = True
        group.epoch += 1
        group.run = run
        self.count_state(group)
        self.note_contact(group)
        # Calls that wait under an older epoch learn now that it is fenced.
        self._tell(group)
        opened: dict[str, object] = {
            "op": "open",
            "group": name,
            "queue": int(group.queue.id),
            "incarnation": group.incarnation,
            "epoch": group.epoch,
            "run": run,
            "contact": group.contact_ms,
            "owns": group.owns_queue,
        }
        if group.made_by:
            opened["made_by"] = group.made_by
        wishes = group.wish_as_json()
        self._record(opened | wishes, WISH_VERSION if wishes else VERSION)
        self._log.close()
        self._events.lease_group_opened(name, group.epoch)
        return group

    def restore(self, name: str, queue: Queue, incarnation: str, wish: LeaseWish) -> LeaseGroup:
        """Makes a group known, live and in replay."""
        group = LeaseGroup(name, queue, incarnation, wish)
        self.groups[name] = group
        queue.holders.append(group)
        return group

    def count_state(self, group: LeaseGroup) -> None:
        """Counts the state of a group to the user that opened it first; live and in replay."""
        size = group_state_bytes(group.name, group.run, group.made_by, group.selector)
        self._client_limits.change(group.made_by, 0, size - group.state_bytes)
        group.state_bytes = size

    def _check_open(self, group: LeaseGroup, queue: Queue, run: str, incarnation: str | None) -> None:
        if group.queue is not queue:
            raise self.reads_another(group.name, queue.name)
        if incarnation is None:
            if group.acked > 0:
                raise LeaseError(
                    "DMQ2402",
                    FOREIGN_INCARNATION,
                    f"group '{group.name}' has acknowledged leases that this reader knows nothing of: its checkpoint"
                    " was deleted, or a second query uses the same group.id. Give this query a group.id of its own, or"
                    " release the group if its query is gone for good",
                )
            silent_ms = self.silent_ms(group)
            if run != group.run and silent_ms < LIVE_WINDOW_MS:
                wait_s = -(-(LIVE_WINDOW_MS - silent_ms) // 1000)
                raise LeaseError(
                    "DMQ2403",
                    GROUP_BUSY,
                    f"group '{group.name}' is in use by another query, heard of {silent_ms} ms ago; it is free in"
                    f" {wait_s} s if nothing more is heard of that one. One group serves one checkpoint: give this"
                    " query a group.id of its own",
                )
        elif incarnation != group.incarnation:
            raise LeaseError(
                "DMQ2404",
                FOREIGN_INCARNATION,
                f"the checkpoint belongs to another life of group '{group.name}': the group was released, or the"
                " checkpoint comes from elsewhere. Use the checkpoint made with it, or a new group.id with a new"
                " checkpoint",
            )

    def check_new(
        self, name: str, queue_name: str, incarnation: str | None, *, durable: bool, non_destructive: bool
    ) -> None:
        """Whether a group that is not there may be opened on a queue, which need not be there yet either.

        Args:
            durable, non_destructive: what the queue is, or will be.

        Raises:
            MisuseError: nothing of such a queue can be leased.
            LeaseError: the reader knows a group that is gone.
        """
        if non_destructive:
            raise MisuseError(
                "DMQ2410",
                f"queue '{queue_name}' is non-destructive, and leases take what they acknowledge; lease another"
                " queue of its address, or browse this one",
            )
        if not durable:
            raise MisuseError(
                "DMQ2409",
                f"queue '{queue_name}' is not durable, so its leases would not survive a restart; lease a durable"
                " queue",
            )
        if incarnation is not None:
            raise self.lost(name)

    @staticmethod
    def reads_another(name: str, queue_name: str) -> LeaseError:
        """Why a group is not opened on a queue: it has another one."""
        return LeaseError(
            "DMQ2401",
            FOREIGN_INCARNATION,
            f"group '{name}' reads another queue than '{queue_name}'; use another group.id",
        )

    def lost(self, name: str) -> LeaseError:
        """The error of a group that is lost; it says no more, as the user may have no right to know of the group."""
        return LeaseError(
            "DMQ2405",
            LEASE_LOST,
            f"group '{name}' does not exist: it was released, its retention ended or its queue was deleted; or you may"
            " not consume from its queue. Start over with a new checkpoint, or set failOnDataLoss=false",
        )

    def silent_ms(self, group: LeaseGroup) -> int:
        """For how long the group has had no call."""
        return (self._clock.monotonic_ns() - max(group.contact_ns, self._started_ns)) // NS_PER_MS

    def expires_in_ms(self, group: LeaseGroup) -> int:
        """When the group ends unless it is called."""
        return max(0, self._retention_ms - self.silent_ms(group))

    def note_contact(self, group: LeaseGroup) -> None:
        """A call of its run."""
        group.warned = False
        group.contact_ms = self._clock.wall_ms()
        group.contact_ns = self._clock.monotonic_ns()

    def find(self, name: str) -> LeaseGroup:
        """The group.

        Raises:
            LeaseError: condition LEASE_LOST when there is none.
        """
        group = self.groups.get(name)
        if group is None:
            raise self.lost(name)
        return group

    # -- making leases -------------------------------------------------------------------------------------------

    def request(
        self, name: str, *, after: int, max_rows: int, max_bytes: int, epoch: int, until: int | None
    ) -> Lease | None:
        """Acknowledges all leases up to ``after`` and gives the next one; None when it isn't there yet.

        Call again after `LeaseWaiter.on_messages`: a large lease is collected in slices, so that others are served
        meanwhile. The answer must wait for the log's position.

        Raises:
            LeaseError: FENCED; LEASE_LOST when the next lease is acknowledged already; FOREIGN_INCARNATION when
                ``after`` was never made.
            LimitError: the disk is full. What is acknowledged is acknowledged.
        """
        group = self._live(name, epoch)
        self._check_made(group, after)
        if after < group.acked:
            raise self._unreadable(name, after + 1)
        self._acknowledge(group, after)
        existing = group.leases.get(after + 1)
        if existing is not None:
            return existing
        if after < group.newest:
            raise self._unreadable(name, after + 1)  # lost with a damaged file
        if self._collector.collect(group, max_rows, max_bytes, until):
            return self._collector.make(group)
        return None

    @staticmethod
    def _check_made(group: LeaseGroup, number: int) -> None:
        if number > group.newest:
            raise LeaseError(
                "DMQ2406",
                FOREIGN_INCARNATION,
                f"group '{group.name}' has made leases up to {group.newest}, not {number}: the checkpoint is not of"
                " this group. Use the checkpoint made with it, or a new group.id with a new checkpoint",
            )

    @staticmethod
    def _unreadable(name: str, number: int) -> LeaseError:
        return LeaseError(
            "DMQ2407",
            LEASE_LOST,
            f"lease {number} of group '{name}' is acknowledged or was never made, so it can't be read; a checkpoint"
            " older than that can't be resumed",
        )

    def wait(self, name: str, waiter: LeaseWaiter) -> None:
        """Registers for one `LeaseWaiter.on_messages`, after `request` gave None."""
        group = self.find(name)
        group.waiters.append(waiter)
        group.queue.lease_waits = True

    def cancel_wait(self, name: str, waiter: LeaseWaiter) -> None:
        """Takes a registration back; harmless when it is gone."""
        group = self.groups.get(name)
        if group is not None and waiter in group.waiters:
            group.waiters.remove(waiter)

    def wake(self) -> None:
        """Called each tick, after dispatch: tells waiters that what they wait for may be there."""
        for group in self.groups.values():
            if group.waiters and self._may_go_on(group):
                self._tell(group)

    def _may_go_on(self, group: LeaseGroup) -> bool:
        if group.waits_for == NEXT_TICK:
            return True
        if group.waits_for == ROOM:
            return self._log.storage_full or not self._log.storage_low
        if group.waits_for == RESUMED:
            return group.queue.suspensions == 0
        if group.waits_for == LINKED and group.queue.barrier_sequence == 0:
            return True
        # A change, not a state: what a queue holds need not be for leases.
        return not group.queue.lease_waits

    @staticmethod
    def _tell(group: LeaseGroup) -> None:
        waiters = group.waiters
        group.waiters = []
        for waiter in waiters:
            waiter.on_messages()

    # -- reading -------------------------------------------------------------------------------------------------

    def rows(self, name: str, number: int, start: int, stop: int, epoch: int | None = None) -> list[Slot]:
        """Rows ``start`` to ``stop`` (exclusive) of a lease. Reading is allowed to all; of its run with its ``epoch``
        alone it is a sign of life.

        Raises:
            LeaseError: LEASE_LOST when the lease is acknowledged or gone.
        """
        lease = self.lease(name, number)
        self.note_reading(self.groups[name], epoch)
        return lease.slots[start:stop]

    def lease(self, name: str, number: int) -> Lease:
        """A lease that can still be read. Changes nothing.

        Raises:
            LeaseError: LEASE_LOST when it is acknowledged or gone.
        """
        lease = self.find(name).leases.get(number)
        if lease is None:
            raise self._unreadable(name, number)
        return lease

    def describe(self, name: str, after: int, upto: int, epoch: int | None = None) -> list[Lease]:
        """Leases ``after`` (exclusive) to ``upto`` (inclusive) that can still be read, in order; ``epoch``: as in
        `rows`."""
        group = self.find(name)
        self.note_reading(group, epoch)
        numbers = range(max(after, group.acked) + 1, min(upto, group.newest) + 1)
        return [group.leases[k] for k in numbers if k in group.leases]

    def note_reading(self, group: LeaseGroup, epoch: int | None) -> None:
        """A call that changes nothing; only with the epoch of its run one of it."""
        if epoch == group.epoch:
            self.note_contact(group)

    def touch(self, name: str, epoch: int) -> LeaseGroup:
        """A sign of life of a run, and nothing else.

        Raises:
            LeaseError: FENCED, LEASE_LOST.
        """
        return self._live(name, epoch)

    # -- acknowledging -------------------------------------------------------------------------------------------

    def acknowledge(self, name: str, number: int, epoch: int) -> int:
        """Acknowledges all leases up to ``number``; gives the newest acknowledged. Idempotent.

        Raises:
            LeaseError: FENCED, LEASE_LOST, or FOREIGN_INCARNATION when ``number`` was never made.
        """
        group = self._live(name, epoch)
        self._check_made(group, number)
        self._acknowledge(group, number)
        return group.acked

    def _live(self, name: str, epoch: int) -> LeaseGroup:
        group = self.find(name)
        if epoch != group.epoch:
            raise LeaseError(
                "DMQ2408",
                FENCED,
                f"group '{name}' was opened by another run since (epoch {group.epoch}, this one has {epoch}); this run"
                " must stop",
            )
        self.note_contact(group)
        return group

    def _acknowledge(self, group: LeaseGroup, number: int) -> None:
        if number <= group.acked:
            return
        before = group.acked
        group.acknowledge(number)
        self._record({"op": "ack", "group": group.name, "lease": number})
        self._log.close()
        for k in range(before + 1, number + 1):
            self.settler.settle_later(group, k)
        self._events.lease_acknowledged(group.name, number)

    # -- ending --------------------------------------------------------------------------------------------------

    def release(self, name: str, because: str = RELEASED) -> int:
        """Ends a group: what it holds unacknowledged goes back in order, redelivered. Gives how many messages.

        They go back slice by slice, and none of the queue is delivered before all are in place. Should the broker
        end meanwhile, the rest is back after its start.

        Acknowledged leases that are not worked off yet are, at once: call when `is_settled`, if that can wait.
        """
        group = self.find(name)
        # Acknowledged is acknowledged, also for what the slices had not reached yet.
        self.settler.settle_all(group)
        del self.groups[name]
        self.ended_epoch = max(self.ended_epoch, group.epoch)
        self._client_limits.change(group.made_by, 0, -group.state_bytes)
        if group in group.queue.holders:
            group.queue.holders.remove(group)
        if not any(other.wish.key == group.wish.key for other in self.on_queue(group.queue)):
            self._dispatcher.end_search(group.queue, group.wish)
        # The moment it happens; should the rest be lost in a crash, only counts of deliveries are.
        self._record({"op": "release", "group": name})
        self._log.close()
        count = self.settler.give_back_all(group)
        self.ended[because] += 1
        self._events.lease_group_ended(name, count)
        self._tell(group)
        return count

    def on_queue(self, queue: Queue) -> list[LeaseGroup]:
        """Groups that hold messages of a queue, those included that return them just now."""
        return [group for group in (*self.groups.values(), *self.settler.releasing) if group.queue is queue]

    def is_settled(self, name: str) -> bool:
        """Whether nothing is left to do for what the group acknowledged."""
        return not self.find(name).settling

    def overdue(self) -> list[str]:
        """Names of groups not heard of for as long as they are kept. Tells of each one that it soon will be, once."""
        found: list[str] = []
        for group in self.groups.values():
            if self.silent_ms(group) > self._retention_ms:
                found.append(group.name)
            elif not group.warned and self.expires_in_ms(group) < self._retention_ms // WARNED_OF:
                group.warned = True
                self._events.lease_group_expiring(group.name, self.expires_in_ms(group))
        return found

    def _record(self, value: dict[str, object], version: int = VERSION) -> None:
        self._log.record(encode_json(LEASE, value, version))
