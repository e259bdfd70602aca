"""The history of an address: which of its last messages it keeps for queues to come, and for how long.

Source: Artemis manual, "Retroactive Addresses"; activemq-broker, the SubscriptionRecoveryPolicy classes.
"""

from collections import deque
from typing import Final

from delosmq.engine.addresses.address import RETAINED_PREFIX
from delosmq.engine.base.slots import PendingSlots, Slot
from delosmq.engine.base.timers import NS_PER_MS, Timer, Timers
from delosmq.engine.log.log import Log
from delosmq.engine.log.records import BINDING, encode_json
from delosmq.engine.queues.eviction import Evictions
from delosmq.engine.queues.queue import Queue
from delosmq.engine.queues.ring import Ring
from delosmq.model.ids import MonotonicNs
from delosmq.model.message import MULTICAST
from delosmq.model.names import INTERNAL_PREFIX
from delosmq.model.ports import Clock
from delosmq.model.settings import AddressSettings, QueueSettings

HISTORY_PREFIX: Final = INTERNAL_PREFIX + "history."
MOST_KEPT: Final = 100_000
"""Messages of an address that has a bound for their age or size alone."""
_SHORTEST_PERIOD_MS: Final = 1_000
"""Source: TimedSubscriptionRecoveryPolicy looks each second."""
_CHECKS_PER_DURATION: Final = 256
"""In the life of a message: more than that are no more exact, and each leaves a mark."""
_REMOVED_AT_ONCE: Final = 500
_SOON_NS: Final = 1_000_000


def recovers(settings: AddressSettings) -> bool:
    """Whether messages are kept for subscribers that ask, beyond ``retroactive-message-count``."""
    return (
        settings.subscription_recovery_count > 0
        or settings.subscription_recovery_duration > 0
        or settings.subscription_recovery_size > 0
    )


def ring_of(settings: AddressSettings) -> int:
    """The most messages that an address keeps for queues to come; 0 for none."""
    recovered = settings.subscription_recovery_count or MOST_KEPT if recovers(settings) else 0
    return max(settings.retroactive_message_count, recovered)


def keeping_queues(address: str, settings: AddressSettings, *, auto_created: bool) -> list[QueueSettings]:
    """The queues in which an address keeps messages for queues to come: a history, a retained message, or neither."""
    found: list[QueueSettings] = []
    ring_size = ring_of(settings)
    if ring_size > 0:
        found.append(_keeping(HISTORY_PREFIX + address, address, ring_size, auto_created))
    if settings.subscription_recovery_retained:
        found.append(_keeping(RETAINED_PREFIX + address, address, 1, auto_created))
    return found


def _keeping(name: str, address: str, ring_size: int, auto_created: bool) -> QueueSettings:
    return QueueSettings(
        name, address, MULTICAST, durable=True, ring_size=ring_size, auto_created=auto_created, auto_delete=False
    )


class HistoryFills:
    """Durable queues that are still given, in slices, what their address keeps for queues to come. Their subscribers
    may have been told that they are there, so a restart goes on with it.

    Attributes:
        progress: by id of the queue: from which sequence on, 0 for all that is kept; through which it has references;
            through which it has copies of what is retained.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self.progress: dict[int, tuple[int, int, int]] = {}

    def note(self, queue: Queue, first: int, through: int, copied: int) -> None:
        """Records that a queue does not have all yet, and what it has been given."""
        progress = (first, through, copied)
        if queue.settings.durable and self.progress.get(queue.id) != progress:
            self.progress[queue.id] = progress
            value: dict[str, object] = {"fill": int(queue.id), "first": first, "through": through, "copied": copied}
            self._log.record(encode_json(BINDING, value))

    def end(self, queue: Queue) -> None:
        """Records that it has."""
        if self.progress.pop(queue.id, None) is not None:
            self._log.record(encode_json(BINDING, {"filled": int(queue.id)}))


class HistoryRing(Ring):
    """The ring of a history: beside its size it obeys what the settings of its address say of bytes and age.

    Attributes:
        age_limit: takes out what grows too old; None while nothing does.
    """

    def __init__(self, queue: Queue) -> None:
        super().__init__(queue.ring.size)
        self.age_limit: HistoryAgeLimit | None = None
        self._queue = queue

    def pushed_out(self, pending: PendingSlots) -> Slot | None:
        """After an add: the oldest message, while there are too many, or too large ones."""
        if self.age_limit is not None:
            self.age_limit.arm()
        return None if self._fits(pending) else pending.head()

    def next_out(self, pending: PendingSlots) -> Slot | None:
        """A large message takes the place of many; of those that are too many one goes with each that comes."""
        return pending.head() if self.surplus(pending) else None

    def surplus(self, pending: PendingSlots) -> bool:
        return not self._fits_bytes(pending)

    def _fits(self, pending: PendingSlots) -> bool:
        return pending.count <= self.size and self._fits_bytes(pending)

    def _fits_bytes(self, pending: PendingSlots) -> bool:
        settings = self._queue.address.settings
        if pending.count <= settings.retroactive_message_count:
            return True
        size_bytes = settings.subscription_recovery_size
        queue = self._queue
        return not size_bytes or queue.pending.bytes + queue.delivering.bytes + queue.scheduled.bytes <= size_bytes


class HistoryAgeLimit(Timer):
    """Takes out of a history what is older than ``subscription-recovery-duration``, looking now and then.

    It knows when messages came by marks: up to which one all were there at some time. After a restart all count as new.
    """

    def __init__(self, history: Queue, evictions: Evictions, *, timers: Timers, clock: Clock) -> None:
        self._history = history
        self._evictions = evictions
        self._timers = timers
        self._clock = clock
        self._armed: bool = False
        self._marks: deque[tuple[int, int]] = deque()
        self._too_old: int = 0

    def arm(self) -> None:
        """There is something, or was: looks at it later."""
        if not self._armed:
            self._armed = True
            duration_ms = self._history.address.settings.subscription_recovery_duration
            period_ms = max(_SHORTEST_PERIOD_MS, duration_ms // _CHECKS_PER_DURATION)
            self._timers.at(self._clock.monotonic_ns() + period_ms * NS_PER_MS, self)

    def on_timer(self, now: MonotonicNs) -> None:
        self._armed = False
        history = self._history
        if history.deleted:
            return
        marks = self._marks
        if not marks or marks[-1][1] != history.newest_sequence:
            marks.append((now, history.newest_sequence))
        duration_ns = history.address.settings.subscription_recovery_duration * NS_PER_MS
        while marks and marks[0][0] + duration_ns <= now:
            self._too_old = marks.popleft()[1]
        if not self._evictions.take_out(history, self._next_out, _REMOVED_AT_ONCE):
            self._armed = True
            self._timers.at(now + _SOON_NS, self)
        elif history.pending.count:
            self.arm()

    def _next_out(self, pending: PendingSlots) -> Slot | None:
        slot = pending.head()
        if slot is None or slot.sequence > self._too_old:
            return None
        return slot if pending.count > self._history.address.settings.retroactive_message_count else None
