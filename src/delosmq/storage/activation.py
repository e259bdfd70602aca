"""Activation: which of the brokers that share a store is the active one.

The port. A lock of a directory and a lease in a database look alike from here: a broker attempts to become active, is
active for so long as it verifies that, and gives up. Each activation has an epoch, one more than the last one, by which
a store tells what a broker writes that was active once and does not know yet that another one is.

    waiting --attempt--> active --give_up--> waiting
                           '------verify: superseded--> ended
"""

import errno
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import Final

from delosmq.model.errors import SupersededError
from delosmq.model.ids import MonotonicNs, WallMs
from delosmq.model.ports import Clock

SUPERSEDED: Final = "DMQ3050"
SUPERSEDED_ERRNO: Final = errno.EOWNERDEAD
"""Of an OSError that says so, which crosses the boundary of a process as a number. No file operation has this one."""


class PairState(Enum):
    """How a shared store stands. Source of the letters: Artemis's FileLockNodeManager."""

    NOT_STARTED = "N"
    """No broker was active yet."""
    ACTIVE = "L"
    """A broker is active, or ended without giving up: killed, crashed, or stopped with failover-on-shutdown."""
    PAUSED = "P"
    """The active broker was stopped for good: backups wait until a primary starts."""
    FAILING_BACK = "F"
    """A primary is back and waits for the active backup to make way."""


class Role(Enum):
    """What ha-policy makes of a broker."""

    ALONE = "primary-only"
    PRIMARY = "primary"
    BACKUP = "backup"


_TAKES_OVER: Final = {
    Role.PRIMARY: frozenset(PairState),
    Role.BACKUP: frozenset({PairState.ACTIVE}),
}


def takes_over(role: Role, state: PairState) -> bool:
    """Whether a broker becomes active when nobody has the store, which is in ``state``."""
    return state in _TAKES_OVER[role]


@dataclass(frozen=True, slots=True)
class Attempt:
    """What an attempt to become active came to.

    Attributes:
        active: this broker is the active one now.
        epoch: of this activation; without one that of the last.
        state: of the store before the attempt.
        holder: who had the store last, for people; "" when that is not known.
        differences: what that broker's configuration says and this one's does not, or the other way round.
    """

    active: bool
    epoch: int
    state: PairState
    holder: str = ""
    differences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verified:
    """What `Activation.verify` found.

    Attributes:
        until: for so long this broker is the active one for certain.
        failback_wanted: a primary waits for this broker to make way.
    """

    until: MonotonicNs
    failback_wanted: bool = False


class Fence(ABC):
    """Tells whether an epoch is the newest."""

    @abstractmethod
    def check(self) -> None:
        """Returns when it is. Raises OSError: it is not (`SUPERSEDED_ERRNO`), or that can't be known."""


class LeaseClock(Clock):
    """Goes on while the machine sleeps, as the time of other brokers does. Where there is no such clock it is the
    monotonic one, which stands still."""

    def wall_ms(self) -> WallMs:
        return WallMs(time.time_ns() // 1_000_000)

    def monotonic_ns(self) -> MonotonicNs:
        which = getattr(time, "CLOCK_BOOTTIME", None)  # Linux
        return MonotonicNs(time.monotonic_ns() if which is None else time.clock_gettime_ns(which))


class ActiveLease:
    """For how long a broker that shares its store is the active one.

    Attributes:
        until: on the clock that it was given.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.until = MonotonicNs(0)

    def holds(self) -> bool:
        """Whether this broker is the active one for certain."""
        return self._clock.monotonic_ns() < self.until


class Activation(ABC):
    """The right of one broker to be active. Calls may block for as long as a disk or the network takes: the server
    makes them outside its loop, one at a time."""

    role: Role
    in_doubt: str = "nothing leaves it until that is known again: check the disk or network of the shared store"
    """What follows for a broker that can't verify that it is the active one, and what its operator does."""

    @abstractmethod
    def attempt(self) -> Attempt:
        """Becomes active if that is free and this broker's turn. A primary that finds a backup active asks it to make
        way. Asked again every `ATTEMPT_EVERY_S`, also after an OSError.

        Raises:
            BrokerError: it will never come to anything.
            OSError: the store can't be reached now.
        """

    @abstractmethod
    def verify(self, now: MonotonicNs) -> Verified:
        """Looks whether this broker is still the active one. Asked every `VERIFY_EVERY_S`, also after an OSError.

        Args:
            now: taken before the call, so that what the call takes is off the lease.

        Raises:
            SupersededError: it is not.
            OSError: that can't be known now.
        """

    @abstractmethod
    def give_up(self, state: PairState) -> None:
        """Ends the activity of a broker whose store is closed, and says how others find it. A broker that another one
        has superseded says nothing.

        Raises:
            OSError: it could not be said. The right is given up all the same.
        """

    @abstractmethod
    def close(self) -> None:
        """Lets go of everything, as a crash would. May be repeated."""


ATTEMPT_EVERY_S: Final = 0.5
"""Source: Artemis's FileLockNodeManager looks for the lock as often."""
VERIFY_EVERY_S: Final = 1.0
"""Artemis's looks every 2 s whether it was lost; four looks fit into `LEASE_NS`."""
LEASE_NS: Final = 4_000_000_000
"""For so long one look holds. A file server waits longer before it takes the locks of a silent client (NFS: 90 s)."""


def superseded(where: str, epoch: int, present: int, holder: str) -> SupersededError:
    """What to raise in a broker of ``epoch`` when the activation file or row at ``where`` says another."""
    by = f" ({holder})" if holder else ""
    return SupersededError(
        SUPERSEDED,
        f"{where}: another broker{by} is active since, with epoch {present}, this one had {epoch}; it stops, and "
        "what it did not confirm does not count: start it again, and it waits for its turn",
    )
