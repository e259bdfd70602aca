"""Password checks: two at once and a bounded line for the whole broker; nobody is hashed for who is gone."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from delosmq.model.errors import LimitError
from delosmq.security.access import LoginAttempt
from delosmq.server.passwords import AT_ONCE, WAITING_LIMIT, Answer, PasswordCheck, PasswordChecks
from tests.server.support import running
from tests.sessions.support import USER


def attempt(number: int) -> LoginAttempt:
    return LoginAttempt(f"user{number}", None, "stored", b"%d" % number)


class Hashes:
    """Hashes that end when the test says so."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.passwords: list[str] = []

    def verify(self, stored: str, password: str) -> bool:
        self.passwords.append(password)
        self.release.wait(10)
        return password == "right"


@pytest.fixture
def hashes() -> Iterator[Hashes]:
    made = Hashes()
    yield made
    made.release.set()


async def test_the_line_is_bounded_and_the_newest_is_refused(hashes: Hashes) -> None:
    checks = PasswordChecks(asyncio.get_running_loop(), verify=hashes.verify)
    most = AT_ONCE + WAITING_LIMIT
    waiting = [asyncio.create_task(checks.verify(attempt(number), "right")) for number in range(most)]
    await asyncio.sleep(0)
    with pytest.raises(LimitError, match="DMQ6705"):
        await checks.verify(attempt(most), "right")
    hashes.release.set()
    assert await asyncio.gather(*waiting) == [True] * most
    checks.close()


async def test_who_is_gone_is_not_hashed_for(hashes: Hashes) -> None:
    checks = PasswordChecks(asyncio.get_running_loop(), verify=hashes.verify)
    running_ones = [asyncio.create_task(checks.verify(attempt(number), "first")) for number in range(AT_ONCE)]
    gone = [asyncio.create_task(checks.verify(attempt(9 + number), "gone")) for number in range(WAITING_LIMIT)]
    await asyncio.sleep(0)
    for task in gone:
        task.cancel()
    await asyncio.gather(*gone, return_exceptions=True)
    later = asyncio.create_task(checks.verify(attempt(999), "right"))
    await asyncio.sleep(0)
    hashes.release.set()
    assert await later
    assert await asyncio.gather(*running_ones) == [False] * AT_ONCE
    assert sorted(hashes.passwords) == ["first"] * AT_ONCE + ["right"]
    checks.close()


async def test_many_logins_of_one_user_are_one_hash(hashes: Hashes) -> None:
    checks = PasswordChecks(asyncio.get_running_loop(), verify=hashes.verify)
    same = [asyncio.create_task(checks.verify(attempt(1), "right")) for _ in range(500)]
    await asyncio.sleep(0)
    hashes.release.set()
    assert await asyncio.gather(*same) == [True] * 500
    assert hashes.passwords == ["right"]
    checks.close()


class CountedChecks(PasswordChecks):
    """Counts those who ask, and those who wait no more."""

    asked = 0
    cancelled = 0

    def check(self, attempt: LoginAttempt, password: str, answer: Answer) -> PasswordCheck:
        found = super().check(attempt, password, answer)
        self.asked += 1
        return found

    def cancel(self, check: PasswordCheck, answer: Answer) -> None:
        super().cancel(check, answer)
        self.cancelled += 1


async def test_stomp_peers_beyond_the_line_are_told_and_those_that_leave_make_room(hashes: Hashes) -> None:
    checks = CountedChecks(asyncio.get_running_loop(), verify=hashes.verify)
    async with running(passwords=checks) as server:
        peers = [await server.open() for _ in range(AT_ONCE + WAITING_LIMIT)]
        for number, peer in enumerate(peers):
            peer.send_frame("CONNECT", "accept-version:1.2", f"login:{USER}", f"passcode:{number}")
        await server.until(lambda: checks.asked == AT_ONCE + WAITING_LIMIT)
        refused = await server.open()
        refused.send_frame("CONNECT", "accept-version:1.2", f"login:{USER}", "passcode:x")
        (error,) = await refused.closed()
        assert "too many logins" in error.headers["message"]
        for connection in list(server.listener.connections):
            connection.abort()
        await server.until(lambda: checks.cancelled == AT_ONCE + WAITING_LIMIT)
        hashes.release.set()
        await server.until(lambda: not server.listener.connections)
        last = await server.open()
        last.send_frame("CONNECT", "accept-version:1.2", f"login:{USER}", "passcode:last")
        await last.closed()
        assert len(hashes.passwords) == AT_ONCE + 1
        assert hashes.passwords[-1] == "last"
        for peer in peers:
            await peer.close()
