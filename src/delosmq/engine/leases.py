"""Leases: numbered, immutable, ordered lists of messages that a reader may read again until it acknowledges them.

A group holds its messages as a consumer does (``lease GROUP``): in delivery, outside the ring, never lost by time
alone. Making and acknowledging leases of many messages is cut into slices; the one record that makes a lease, or
acknowledges it, is the moment at which it happens as a whole.
"""

import zlib
from abc import ABC, abstractmethod
from base64 import b64decode, b64encode
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.engine.acks import NONE_UNSEEN, Acknowledgements
from delosmq.engine.consumer import Consumer, ConsumerPort
from delosmq.engine.credit import OpenCredit
from delosmq.engine.dispatch import Dispatcher
from delosmq.engine.events import EngineEvents
from delosmq.engine.jobs import Job, Jobs
from delosmq.engine.log import Log
from delosmq.engine.queue import Queue
from delosmq.engine.records import ACKNOWLEDGED, LEASE, encode_json
from delosmq.engine.removals import Removals
from delosmq.engine.routing import Router
from delosmq.engine.slots import Slot
from delosmq.model.errors import BrokerError, MisuseError, StorageError
from delosmq.model.ids import ConsumerId
from delosmq.model.ports import Clock, Random

ROWS_PER_SLICE: Final = 500
RUNS_PER_LEASE: Final = 10_000
"""Runs of consecutive sequences in one lease; bounds the one record that makes it to about 30 KB."""
LIVE_WINDOW_MS: Final = 10_000
"""A run heard of this recently counts as alive: another may not take over its group without the incarnation."""
RETENTION_MS: Final = 7 * 24 * 3600 * 1000

GROUP_BUSY: Final = "GROUP_BUSY"
FOREIGN_INCARNATION: Final = "FOREIGN_INCARNATION"
FENCED: Final = "FENCED"
LEASE_LOST: Final = "LEASE_LOST"


class LeaseError(BrokerError):
    """A lease call that can't be served.

    Attributes:
        condition: one of the constants above, stable for clients.
    """

    def __init__(self, code: str, condition: str, message: str) -> None:
        super().__init__(code, message)
        self.condition = condition


@mypyc_attr(allow_interpreted_subclasses=True)
class LeaseWaiter(ABC):
    """Somebody who waits for messages to lease."""

    @abstractmethod
    def on_messages(self) -> None:
        """The queue has messages for the group, or a slice of the lease under way is done: request again."""


class _NoPort(ConsumerPort):
    def deliver(self, slot: Slot) -> None:
        pass

    def has_room(self) -> bool:
        return False

    def closed_by_broker(self, reason: BrokerError) -> None:
        pass


class Lease:
    """One lease, of at least one message. Its slots never change.

    Attributes:
        size_bytes: of the encoded messages.
        lowest_sequence, oldest_ms: over all rows; those of a high priority come first whatever their sequence.
    """

    def __init__(self, number: int, slots: list[Slot]) -> None:
        self.number = number
        self.slots = slots
        self.size_bytes: int = 0
        self.lowest_sequence: int = slots[0].sequence
        self.oldest_ms: int = slots[0].message.timestamp_ms
        for slot in slots:
            self.size_bytes += slot.message.encoded_size_bytes
            self.lowest_sequence = min(self.lowest_sequence, slot.sequence)
            self.oldest_ms = min(self.oldest_ms, slot.message.timestamp_ms)

    @property
    def first_sequence(self) -> int:
        """Sequence of the first row."""
        return self.slots[0].sequence

    @property
    def last_sequence(self) -> int:
        """Sequence of the last row."""
        return self.slots[-1].sequence


class LeaseGroup:
    """A reader's place in a queue.

    Attributes:
        acked: leases up to this number are acknowledged; newest: number of the newest lease made.
        building: slots taken for the lease under way.
        forgetting: acknowledged leases whose references are not all ended yet.
        contact_ms: wall clock of the last call by its run.
    """

    def __init__(self, name: str, queue: Queue, incarnation: str, consumer: Consumer) -> None:
        self.name = name
        self.queue = queue
        self.incarnation = incarnation
        self.consumer = consumer
        self.epoch: int = 0
        self.run: str = ""
        self.acked: int = 0
        self.newest: int = 0
        self.contact_ms: int = 0
        self.leases: dict[int, Lease] = {}
        self.forgetting: dict[int, Lease] = {}
        self.building: list[Slot] = []
        self.building_bytes: int = 0
        self.building_runs: int = 0
        self.waiters: list[LeaseWaiter] = []

    @property
    def leased_count(self) -> int:
        """Messages in leases that are not acknowledged, the one under way included."""
        count = len(self.building)
        for lease in self.leases.values():
            count += len(lease.slots)
        return count


def pack_sequences(slots: list[Slot]) -> str:
    """Sequences in order, as records hold them: runs of (distance to the end of the run before, length), compressed.

    Varints, the distance zigzag as priorities go back and forth. Queues that share a broker have many short runs, which
    look alike: as JSON 10,000 of them would take 160 KB, a large part of a small journal file.
    """
    packed: list[int] = []
    end = 0
    first = 0
    count = 0
    for slot in slots:
        if count and first + count == slot.sequence:
            count += 1
            continue
        if count:
            _pack_run(packed, first - end, count)
            end = first + count
        first = slot.sequence
        count = 1
    if count:
        _pack_run(packed, first - end, count)
    return b64encode(zlib.compress(bytes(packed), 1)).decode()


def _pack_run(packed: list[int], distance: int, count: int) -> None:
    for value in (distance * 2 if distance >= 0 else -distance * 2 - 1, count):
        while value > 127:
            packed.append(value & 127 | 128)
            value >>= 7
        packed.append(value)


def unpack_sequences(text: str) -> list[int]:
    """The sequences that `pack_sequences` wrote."""
    values: list[int] = []
    value = 0
    shift = 0
    for byte in zlib.decompress(b64decode(text)):
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            values.append(value)
            value = 0
            shift = 0
    found: list[int] = []
    end = 0
    for i in range(0, len(values), 2):
        zigzag = values[i]
        first = end + (zigzag >> 1 if zigzag & 1 == 0 else -(zigzag >> 1) - 1)
        end = first + values[i + 1]
        found.extend(range(first, end))
    return found


class _Forget(Job):
    """Ends the references of an acknowledged lease, a slice at a time."""

    def __init__(self, leases: "Leases", group: LeaseGroup, lease: Lease) -> None:
        self._leases = leases
        self._group = group
        self._lease = lease
        self._at = 0

    def step(self) -> bool:
        if self._lease.number not in self._group.forgetting:
            return True
        part = self._lease.slots[self._at : self._at + ROWS_PER_SLICE]
        self._at += len(part)
        self._leases.end_references(self._group, part)
        if self._at < len(self._lease.slots):
            return False
        del self._group.forgetting[self._lease.number]
        return True


class Leases:
    """All lease groups of a broker."""

    def __init__(
        self,
        log: Log,
        acks: Acknowledgements,
        removals: Removals,
        *,
        router: Router,
        dispatcher: Dispatcher,
        jobs: Jobs,
        clock: Clock,
        random: Random,
        events: EngineEvents,
    ) -> None:
        self._log = log
        self._acks = acks
        self._removals = removals
        self._router = router
        self._dispatcher = dispatcher
        self._jobs = jobs
        self._clock = clock
        self._random = random
        self._events = events
        self.groups: dict[str, LeaseGroup] = {}
        # While the broker was down nobody could be heard of: that time counts against no group.
        self._started_ms: int = clock.wall_ms()

    # -- opening -------------------------------------------------------------------------------------------------

    def open(self, name: str, queue: Queue, run: str, incarnation: str | None) -> LeaseGroup:
        """Gives ``run`` the group under a new epoch, which fences all earlier ones.

        Raises:
            LeaseError: another run is alive, or the group has a history that is not this reader's.
        """
        now = self._clock.wall_ms()
        group = self.groups.get(name)
        if group is None:
            if incarnation is not None:
                raise self._lost(name)
            if not queue.settings.durable:
                raise MisuseError(
                    "DMQ2409",
                    f"queue '{queue.name}' is not durable, so its leases would not survive a restart; lease a durable"
                    " queue",
                )
            group = self.restore(name, queue, self._random.token(12))
        else:
            self._check_open(group, queue, run, incarnation, now)
        group.epoch += 1
        group.run = run
        group.contact_ms = now
        # Whoever waits under an older epoch learns now that it is fenced.
        self._tell(group)
        self._record(
            {
                "op": "open",
                "group": name,
                "queue": int(group.queue.id),
                "incarnation": group.incarnation,
                "epoch": group.epoch,
                "run": run,
                "contact": now,
            }
        )
        self._log.close()
        self._events.lease_group_opened(name, group.epoch)
        return group

    def restore(self, name: str, queue: Queue, incarnation: str) -> LeaseGroup:
        """Makes a group known, live and in replay."""
        consumer = Consumer(ConsumerId(0), _NoPort(), OpenCredit())
        consumer.closed = True  # never in a rotation: leases are taken, not dispatched
        group = LeaseGroup(name, queue, incarnation, consumer)
        self.groups[name] = group
        queue.consumers.append(consumer)
        return group

    def _check_open(self, group: LeaseGroup, queue: Queue, run: str, incarnation: str | None, now: int) -> None:
        if group.queue is not queue:
            raise LeaseError(
                "DMQ2401",
                FOREIGN_INCARNATION,
                f"group '{group.name}' reads queue '{group.queue.name}', not '{queue.name}'; use another group.id",
            )
        if incarnation is None:
            if group.acked > 0:
                raise LeaseError(
                    "DMQ2402",
                    FOREIGN_INCARNATION,
                    f"group '{group.name}' has acknowledged leases that this reader knows nothing of: its checkpoint"
                    " was deleted, or a second query uses the same group.id. Give this query a group.id of its own, or"
                    " release the group if its query is gone for good",
                )
            silent_ms = now - self.heard_ms(group)
            if run != group.run and silent_ms < LIVE_WINDOW_MS:
                raise LeaseError(
                    "DMQ2403",
                    GROUP_BUSY,
                    f"group '{group.name}' is in use by another query, heard of {silent_ms} ms ago; one"
                    " group serves one checkpoint: give this query a group.id of its own",
                )
        elif incarnation != group.incarnation:
            raise LeaseError(
                "DMQ2404",
                FOREIGN_INCARNATION,
                f"the checkpoint belongs to another life of group '{group.name}': the group was released, or the"
                " checkpoint comes from elsewhere. Use the checkpoint made with it, or a new group.id with a new"
                " checkpoint",
            )

    def _lost(self, name: str) -> LeaseError:
        return LeaseError(
            "DMQ2405",
            LEASE_LOST,
            f"group '{name}' does not exist: it was released, its retention ended or its queue was deleted. Start over"
            " with a new checkpoint, or set failOnDataLoss=false",
        )

    def heard_ms(self, group: LeaseGroup) -> int:
        """Since when, at the earliest, the group may be counted as silent (wall clock)."""
        return max(group.contact_ms, self._started_ms)

    def find(self, name: str) -> LeaseGroup:
        """The group.

        Raises:
            LeaseError: condition LEASE_LOST when there is none.
        """
        group = self.groups.get(name)
        if group is None:
            raise self._lost(name)
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
        """
        group = self._live(name, epoch)
        self._check_made(group, after)
        if after < group.acked:
            raise self._unreadable(name, after + 1)
        self._acknowledge(group, after)
        existing = group.leases.get(after + 1)
        if existing is not None:
            return existing
        if self._collect(group, max_rows, max_bytes, until):
            return self._make(group)
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
        """Registers for one `LeaseWaiter.on_messages`."""
        self.find(name).waiters.append(waiter)

    def cancel_wait(self, name: str, waiter: LeaseWaiter) -> None:
        """Takes a registration back; harmless when it is gone."""
        group = self.groups.get(name)
        if group is not None and waiter in group.waiters:
            group.waiters.remove(waiter)

    def wake(self) -> bool:
        """Called each tick: tells waiters whose queue has messages. True when somebody was told."""
        told = False
        for group in self.groups.values():
            if group.waiters and (group.building or group.queue.pending.count):
                self._tell(group)
                told = True
        return told

    @staticmethod
    def _tell(group: LeaseGroup) -> None:
        waiters = group.waiters
        group.waiters = []
        for waiter in waiters:
            waiter.on_messages()

    def _collect(self, group: LeaseGroup, max_rows: int, max_bytes: int, until: int | None) -> bool:
        """Takes a slice of pending messages for the lease under way; True when it is complete."""
        pending = group.queue.pending
        for _ in range(ROWS_PER_SLICE):
            if self._is_complete(group, max_rows, max_bytes):
                return True
            slot = pending.head() if until is None else pending.head_upto(until)
            if slot is None:
                return len(group.building) > 0
            if not slot.recorded:
                self._store(group, slot)
            group.queue.hand_out(slot, group.consumer)
            if not group.building or group.building[-1].sequence + 1 != slot.sequence:
                group.building_runs += 1
            group.building.append(slot)
            group.building_bytes += slot.message.encoded_size_bytes
        return self._is_complete(group, max_rows, max_bytes)

    @staticmethod
    def _is_complete(group: LeaseGroup, max_rows: int, max_bytes: int) -> bool:
        return (
            len(group.building) >= max_rows
            or group.building_bytes >= max_bytes
            or group.building_runs >= RUNS_PER_LEASE
        )

    def _store(self, group: LeaseGroup, slot: Slot) -> None:
        # What is leased must survive a restart, or a replayed batch of the reader would differ. A decision of its own
        # per message, as a durable send is: the batches stay small, and one that fails changes nothing.
        message = slot.message
        home = message.home
        references = message.recorded_references
        position = message.position
        if home is None:
            self._router.store(message, [int(group.queue.id)])
        else:
            self._router.store_reference(message, int(group.queue.id))
        if slot.delivery_count > 0:
            self._acks.record_counts(group.queue, [slot])
        try:
            self._log.close()
        except StorageError:
            message.home = home
            message.recorded_references = references
            message.position = position
            raise
        slot.recorded = True

    def _make(self, group: LeaseGroup) -> Lease:
        lease = Lease(group.newest + 1, group.building)
        group.building = []
        self.adopt(group, lease)
        self._record({"op": "lease", "group": group.name, "lease": lease.number, "rows": pack_sequences(lease.slots)})
        try:
            self._log.close()
        except StorageError:
            del group.leases[lease.number]
            group.newest = lease.number - 1
            group.building = lease.slots
            raise
        group.building_bytes = 0
        group.building_runs = 0
        return lease

    @staticmethod
    def adopt(group: LeaseGroup, lease: Lease) -> None:
        """Makes a lease part of its group: live and in replay."""
        group.leases[lease.number] = lease
        group.newest = lease.number

    # -- reading -------------------------------------------------------------------------------------------------

    def rows(self, name: str, number: int, start: int, stop: int) -> list[Slot]:
        """Rows ``start`` to ``stop`` (exclusive) of a lease.

        Raises:
            LeaseError: LEASE_LOST when the lease is acknowledged or gone.
        """
        lease = self.find(name).leases.get(number)
        if lease is None:
            raise self._unreadable(name, number)
        return lease.slots[start:stop]

    def describe(self, name: str, after: int, upto: int) -> list[Lease]:
        """Leases ``after`` (exclusive) to ``upto`` (inclusive) that can still be read, in order."""
        group = self.find(name)
        numbers = range(max(after, group.acked) + 1, min(upto, group.newest) + 1)
        return [group.leases[k] for k in numbers if k in group.leases]

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
        group.contact_ms = self._clock.wall_ms()
        return group

    def _acknowledge(self, group: LeaseGroup, number: int) -> None:
        if number <= group.acked:
            return
        before = group.acked
        self.settle(group, number)
        self._record({"op": "ack", "group": group.name, "lease": number})
        self._log.close()
        for k in range(before + 1, number + 1):
            self.forget_later(group, k)

    @staticmethod
    def settle(group: LeaseGroup, number: int) -> None:
        """Marks leases up to ``number`` acknowledged, live and in replay."""
        for k in range(group.acked + 1, number + 1):
            lease = group.leases.pop(k, None)
            if lease is not None:
                group.forgetting[k] = lease
        group.acked = number
        group.newest = max(group.newest, number)

    def forget_later(self, group: LeaseGroup, number: int) -> None:
        """Ends the references of an acknowledged lease in slices."""
        lease = group.forgetting.get(number)
        if lease is not None:
            self._jobs.add(_Forget(self, group, lease))

    def end_references(self, group: LeaseGroup, slots: list[Slot]) -> None:
        """Ends a slice of acknowledged references, as a decision of its own."""
        held = [slot for slot in slots if slot.in_list is group.consumer.in_delivery]
        if not held:
            return
        for slot in held:
            group.queue.take_back(slot, group.consumer)
        group.queue.messages_acknowledged += len(held)
        self._removals.remove(group.queue, held, ACKNOWLEDGED)
        self._log.close()

    # -- ending --------------------------------------------------------------------------------------------------

    def release(self, name: str) -> int:
        """Ends a group: what it holds unacknowledged goes back in order, redelivered. Gives how many messages."""
        group = self.find(name)
        # Acknowledged is acknowledged, also for what the slices had not reached yet.
        for lease in group.forgetting.values():
            for at in range(0, len(lease.slots), ROWS_PER_SLICE):
                self.end_references(group, lease.slots[at : at + ROWS_PER_SLICE])
        group.forgetting = {}
        del self.groups[name]
        if group.consumer in group.queue.consumers:
            group.queue.consumers.remove(group.consumer)
        # The moment it happens; should the rest be lost in a crash, only counts of deliveries are.
        self._record({"op": "release", "group": name})
        self._log.close()
        returning: list[Slot] = []
        for lease in group.leases.values():
            returning.extend(lease.slots)
        returning.extend(group.building)
        returning.reverse()
        for at in range(0, len(returning), ROWS_PER_SLICE):
            self._acks.give_back(group.queue, group.consumer, returning[at : at + ROWS_PER_SLICE], NONE_UNSEEN)
            self._log.close()
        self._events.lease_group_ended(name, len(returning))
        self._tell(group)
        return len(returning)

    def end_overdue(self) -> list[str]:
        """Releases groups not heard of for `RETENTION_MS`; gives their names. Called now and then by a timer."""
        limit = self._clock.wall_ms() - RETENTION_MS
        overdue = [group.name for group in self.groups.values() if self.heard_ms(group) < limit]
        for name in overdue:
            self.release(name)
        return overdue

    def _record(self, value: dict[str, object]) -> None:
        self._log.record(encode_json(LEASE, value))
