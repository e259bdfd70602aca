"""Activation by the lock of a shared directory: whose turn it is, and what a broker learns that has lost its lock."""

# HA-1

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from delosmq.model.errors import SupersededError
from delosmq.model.ids import MonotonicNs
from delosmq.storage.activation import LEASE_NS, PairState, Role, takes_over
from delosmq.storage.activation_file import ActivationFile
from delosmq.storage.lock import DirectoryLock
from delosmq.storage.shared_directory import DirectoryActivation

NOW = MonotonicNs(5_000_000_000)
Enter = Callable[..., DirectoryActivation]


class NetworkLock(DirectoryLock):
    """A lock that a file server has given to the next one who asks, as its holder was not heard of."""

    taken = False

    def take_away(self) -> None:
        self.let_go()
        self.taken = True

    def still_holds(self) -> bool:
        return not self.taken and super().still_holds()


@pytest.fixture
def enter(tmp_path: Path) -> Iterator[Enter]:
    entered: list[DirectoryActivation] = []

    def one(role: Role, **more: object) -> DirectoryActivation:
        entered.append(DirectoryActivation(tmp_path / "shared", role, **more))  # type: ignore[arg-type]
        return entered[-1]

    yield one
    for activation in entered:
        activation.close()


@pytest.mark.parametrize(
    ("state", "primary", "backup"),
    [
        (PairState.NOT_STARTED, True, False),
        (PairState.ACTIVE, True, True),
        (PairState.PAUSED, True, False),
        (PairState.FAILING_BACK, True, False),
    ],
)
def test_whose_turn_it_is_when_nobody_has_the_store(state: PairState, primary: bool, backup: bool) -> None:
    assert takes_over(Role.PRIMARY, state) is primary
    assert takes_over(Role.BACKUP, state) is backup


def test_the_second_one_waits_and_each_activation_has_an_epoch_of_its_own(enter: Enter) -> None:
    primary, backup = enter(Role.PRIMARY), enter(Role.BACKUP)
    assert not backup.attempt().active
    first = primary.attempt()
    assert (first.active, first.epoch, first.holder) == (True, 1, "")
    waiting = backup.attempt()
    assert (waiting.active, waiting.state) == (False, PairState.ACTIVE)
    assert waiting.holder.startswith("primary on ")
    primary.close()
    second = backup.attempt()
    assert (second.active, second.epoch) == (True, 2)


@pytest.mark.parametrize(("state", "active"), [(PairState.PAUSED, False), (PairState.ACTIVE, True)])
def test_how_the_last_one_gave_up_decides_whether_a_backup_takes_over(
    enter: Enter, state: PairState, active: bool
) -> None:
    primary, backup = enter(Role.PRIMARY), enter(Role.BACKUP)
    primary.attempt()
    primary.give_up(state)
    assert backup.attempt().active is active


def test_a_backup_learns_that_a_primary_is_back_and_leaves_the_store_to_it(enter: Enter) -> None:
    first, backup = enter(Role.PRIMARY), enter(Role.BACKUP, makes_way=True)
    first.attempt()
    first.close()
    assert backup.attempt().active
    assert not backup.verify(NOW).failback_wanted
    returned = enter(Role.PRIMARY)
    assert returned.attempt().state is PairState.FAILING_BACK
    assert backup.verify(NOW).failback_wanted
    backup.give_up(PairState.FAILING_BACK)
    assert not enter(Role.BACKUP).attempt().active
    assert returned.attempt().epoch == 3


def test_a_backup_that_makes_way_for_nobody_is_not_asked(enter: Enter) -> None:
    first, backup = enter(Role.PRIMARY), enter(Role.BACKUP)
    first.attempt()
    first.close()
    backup.attempt()
    returned = enter(Role.PRIMARY)
    assert returned.attempt().state is PairState.ACTIVE
    assert not backup.verify(NOW).failback_wanted


def test_a_look_holds_for_the_lease_from_before_it_was_taken(enter: Enter) -> None:
    primary = enter(Role.PRIMARY)
    primary.attempt()
    assert primary.verify(NOW).until == NOW + LEASE_NS


def test_who_lost_the_lock_and_finds_a_later_epoch_is_superseded_and_pauses_nothing(
    enter: Enter, tmp_path: Path
) -> None:
    locks: list[NetworkLock] = []

    def lock_of(directory: Path) -> DirectoryLock:
        locks.append(NetworkLock(directory, wanted=False))
        return locks[-1]

    old, successor = enter(Role.PRIMARY, lock_of=lock_of), enter(Role.BACKUP)
    old.attempt()
    locks[0].take_away()
    with pytest.raises(SupersededError, match=r"DMQ3052: .* is lost"):
        old.verify(NOW)
    assert successor.attempt().epoch == 2
    with pytest.raises(SupersededError, match=r"DMQ3050: .*another broker .backup on .* epoch 2, this one had 1"):
        old.verify(NOW)
    old.give_up(PairState.PAUSED)
    assert ActivationFile(tmp_path / "shared").state(2) is PairState.ACTIVE
    assert successor.verify(NOW).until > NOW


def test_a_replaced_lock_file_is_a_lost_lock(enter: Enter, tmp_path: Path) -> None:
    primary = enter(Role.PRIMARY)
    primary.attempt()
    lock = tmp_path / "shared" / "lock"
    lock.unlink()
    assert primary.verify(NOW).until > NOW, "the directory is locked still"
    lock.touch()
    with pytest.raises(SupersededError):
        primary.verify(NOW)


def test_differences_of_the_two_configurations_are_named(enter: Enter) -> None:
    first = enter(Role.PRIMARY, configuration={"queues": "a", "addresses": "b"})
    first.attempt()
    first.close()
    assert enter(Role.BACKUP, configuration={"queues": "c", "addresses": "b"}).attempt().differences == ("queues",)
