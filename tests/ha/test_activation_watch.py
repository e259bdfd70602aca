"""While it is not certain that a broker is the active one, nothing leaves it."""

# HA-1

import asyncio
import logging
import time

import pytest

from delosmq.composition.activation_watch import ActivationWatch
from delosmq.model.errors import BrokerError, SupersededError
from delosmq.model.ids import MonotonicNs, WallMs
from delosmq.model.ports import Clock
from delosmq.storage.activation import Activation, Attempt, LeaseClock, PairState, Role, Verified
from delosmq.storage.memory import MemoryStore
from delosmq.storage.postgres.activation import PostgresActivation
from delosmq.storage.shared_directory import DirectoryActivation


class HandClock(Clock):
    def __init__(self) -> None:
        self.now = 1_000

    def wall_ms(self) -> WallMs:
        return WallMs(0)

    def monotonic_ns(self) -> MonotonicNs:
        return MonotonicNs(self.now)


class Scripted(Activation):
    """Answers what the test says."""

    role = Role.BACKUP

    def __init__(self, *answers: Verified | Exception) -> None:
        self._answers = list(answers)

    def attempt(self) -> Attempt:
        raise NotImplementedError

    def verify(self, now: MonotonicNs) -> Verified:
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def give_up(self, state: PairState) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class Seen:
    def __init__(self, *answers: Verified | Exception) -> None:
        self.clock = HandClock()
        self.verified = asyncio.Event()
        self.superseded: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        self.watch = ActivationWatch(
            Scripted(*answers),
            self.clock,
            logging.getLogger("tests.activation"),
            on_verified=self.verified.set,
            on_superseded=self.superseded.set_result,
        )


async def test_the_lease_holds_from_the_first_look_until_its_end() -> None:
    seen = Seen(Verified(MonotonicNs(2_000)))
    assert not seen.watch.lease.holds()
    seen.watch.start()
    await seen.verified.wait()
    assert seen.watch.lease.holds()
    store = MemoryStore()
    store.lease = seen.watch.lease
    assert store.may_leave()
    seen.clock.now = 2_000
    assert not seen.watch.lease.holds()
    assert not store.may_leave()
    await seen.watch.stop()


async def test_a_primary_that_is_back_is_told() -> None:
    seen = Seen(Verified(MonotonicNs(2_000), failback_wanted=True))
    seen.watch.start()
    await seen.watch.failback_wanted.wait()
    await seen.watch.stop()


async def test_a_broker_that_is_superseded_is_told_so_and_its_lease_does_not_hold() -> None:
    error: BrokerError = SupersededError("DMQ3050", "another broker is active")
    seen = Seen(error)
    seen.watch.start()
    assert await seen.superseded is error
    assert not seen.watch.lease.holds()
    await seen.watch.stop()


def test_the_clock_of_a_lease_goes_on_while_the_machine_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = {7: 1_000, time.CLOCK_MONOTONIC: 400}
    monkeypatch.setattr(time, "CLOCK_BOOTTIME", 7, raising=False)
    monkeypatch.setattr(time, "clock_gettime_ns", readings.__getitem__)
    monkeypatch.setattr(time, "monotonic_ns", lambda: 400)
    assert LeaseClock().monotonic_ns() == 1_000
    monkeypatch.delattr(time, "CLOCK_BOOTTIME")
    assert LeaseClock().monotonic_ns() == 400


async def test_what_is_not_known_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    seen = Seen(OSError("no server"), Verified(MonotonicNs(2_000)))
    seen.watch.start()
    await seen.verified.wait()
    assert (
        "DMQ6030: whether this broker is still the active one can't be known: no server; nothing leaves it"
        in caplog.text
    )
    await seen.watch.stop()


def test_what_a_doubt_means_is_said_of_tables_and_of_a_directory_apart() -> None:
    assert "nothing leaves it" in DirectoryActivation.in_doubt
    assert "goes by the lease in its tables" in PostgresActivation.in_doubt
