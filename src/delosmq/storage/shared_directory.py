"""Activation by the lock of a shared directory: takeover between the brokers that have one journal directory.

On one machine the lock is exact: a broker that is stopped (SIGSTOP) keeps it, one that is killed loses it. A network
file system may take it from a broker that it does not hear of; hence each activation has an epoch, and a broker that
has lost its lock, or finds a later epoch, is superseded.
"""

import os
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from delosmq.model.errors import SupersededError
from delosmq.model.ids import MonotonicNs
from delosmq.storage.activation import (
    LEASE_NS,
    Activation,
    Attempt,
    PairState,
    Role,
    Verified,
    superseded,
    takes_over,
)
from delosmq.storage.activation_file import ActivationFile, ActivationRecord, EpochFence
from delosmq.storage.lock import DirectoryLock

FAILBACK_WITHIN_S: Final = 10.0
"""A primary for which a backup made way takes the lock within this time, or has died: then a backup takes it."""

LockOf = Callable[[Path], DirectoryLock]


def open_unlocked(directory: Path) -> DirectoryLock:
    """The lock of a directory, not taken yet. Raises ConfigurationError: the directory can't be used."""
    return DirectoryLock(directory, wanted=False)


class DirectoryActivation(Activation):
    """One broker of those that share a directory.

    Args:
        directory: the journal's; made when it is missing.
        role: PRIMARY or BACKUP.
        makes_way: as a backup it stops for a primary.
        configuration: see `ActivationRecord`.

    Attributes:
        epoch: of this broker's activation; 0 before.

    Raises:
        ConfigurationError: the directory can't be used.
    """

    def __init__(
        self,
        directory: Path,
        role: Role,
        *,
        makes_way: bool = False,
        configuration: dict[str, str] | None = None,
        lock_of: LockOf = open_unlocked,
    ) -> None:
        self.role = role
        self.epoch = 0
        self._lock = lock_of(directory)
        self._file = ActivationFile(directory)
        name = f"{role.value} on {socket.gethostname()}, process {os.getpid()}"
        self._holder = ActivationRecord(name, makes_way, configuration or {})
        self._making_way_since: float | None = None
        self._asked_in = 0

    def filenos(self) -> Sequence[int]:
        """The descriptors of the lock, for processes that write in the directory on this broker's behalf."""
        return self._lock.filenos()

    def attempt(self) -> Attempt:
        epoch, before = self._file.newest()
        state = self._file.state(epoch)
        if not takes_over(self.role, state) and not self._primary_is_gone(state):
            # Without a look at the lock, which is then free for the primary.
            return Attempt(False, epoch, state, before.name)
        if not self._lock.try_to_take():
            return self._wait_for_holder()
        if self._file.newest()[0] != epoch or self._file.state(epoch) is not state:
            # It became so between the two looks.
            self._lock.let_go()
            return Attempt(False, epoch, state, before.name)
        self.epoch = epoch + 1
        self._file.begin(self.epoch, self._holder)
        return Attempt(True, self.epoch, state, before.name, self._differences(before) if epoch else ())

    def _wait_for_holder(self) -> Attempt:
        """Another broker has the lock. A primary asks a backup that makes way to do so, once in an epoch."""
        epoch, holder = self._file.newest()
        if self.role is Role.PRIMARY and holder.makes_way and self._asked_in != epoch:
            self._file.say(epoch, PairState.FAILING_BACK)
            self._asked_in = epoch
        return Attempt(False, epoch, self._file.state(epoch), holder.name)

    def _primary_is_gone(self, state: PairState) -> bool:
        """Whether a primary that asked a backup to make way has not become active for long. It may still: the lock
        decides, and a backup that has not made way yet has it."""
        if state is not PairState.FAILING_BACK:
            self._making_way_since = None
            return False
        now = time.monotonic()
        if self._making_way_since is None:
            self._making_way_since = now
        return now - self._making_way_since >= FAILBACK_WITHIN_S

    def _differences(self, before: ActivationRecord) -> tuple[str, ...]:
        mine, theirs = self._holder.configuration, before.configuration
        return tuple(sorted(part for part in mine.keys() & theirs.keys() if mine[part] != theirs[part]))

    def verify(self, now: MonotonicNs) -> Verified:
        held = self._lock.still_holds()
        self.check_epoch()
        if not held:
            raise SupersededError(
                "DMQ3052",
                f"{self._lock.path}: the lock of the shared directory is lost; this broker stops, and what it did not "
                "confirm does not count: start it again, and it waits for its turn",
            )
        wanted = self._holder.makes_way and self._file.state(self.epoch) is PairState.FAILING_BACK
        return Verified(MonotonicNs(now + LEASE_NS), wanted)

    def fence(self) -> EpochFence:
        """Tells those that write in the directory whether this activation is the newest."""
        return EpochFence(self._file, self.epoch)

    def check_epoch(self) -> None:
        """Raises SupersededError when another broker is active since. Raises OSError: that can't be known now."""
        epoch, holder = self._file.newest()
        if epoch != self.epoch:
            raise superseded(str(self._file.path), self.epoch, epoch, holder.name)

    def give_up(self, state: PairState) -> None:
        try:
            if self.epoch and self._lock.still_holds() and self._file.epoch() == self.epoch:
                self._file.say(self.epoch, state)
        finally:
            self.close()

    def close(self) -> None:
        self._lock.release()
