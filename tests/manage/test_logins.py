"""The HTTP interface asks the login port, as the protocols do."""

# BROKER-4

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import pytest
import pytest_asyncio

from delosmq.manage.http import logins
from delosmq.model.errors import LimitError
from delosmq.sessions.login import ADMIT, WAIT, LoginAnswer, LoginPort, LoginRequest, redirect, refuse
from tests.manage.support import Api, problem

BROKER = "/api/v1/broker"


class HttpDoor(LoginPort):
    """Answers what the test says, one after the other; the last one for ever."""

    def __init__(self) -> None:
        self.answers: list[object] = [ADMIT]
        self.asked: asyncio.Queue[LoginRequest] = asyncio.Queue()
        self.withdrawn: asyncio.Queue[LoginRequest] = asyncio.Queue()

    def decide(self, request: LoginRequest) -> LoginAnswer:
        self.asked.put_nowait(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return cast(LoginAnswer, answer)

    def withdraw(self, request: LoginRequest) -> None:
        self.withdrawn.put_nowait(request)


@pytest.fixture
def door() -> HttpDoor:
    return HttpDoor()


@pytest_asyncio.fixture
async def guarded(door: HttpDoor) -> AsyncIterator[Api]:
    made = Api(logins=door)
    yield made
    await made.close()


async def test_each_call_with_a_right_password_is_asked_for(guarded: Api, door: HttpDoor) -> None:
    assert (await guarded.get(BROKER)).status_code == 200
    request = door.asked.get_nowait()
    assert (request.login.user, request.client_id, request.acceptor) == ("admin", "", "http")
    assert request.peer == "127.0.0.1:123"  # as httpx says it
    async with guarded.client("admin", "wrong") as wrong:
        assert (await wrong.get(BROKER)).status_code == 401
    assert (await guarded.anonymous.get("/health/live")).status_code == 200
    assert door.asked.empty()


@pytest.mark.parametrize(
    ("answer", "status", "code", "condition"),
    [
        (refuse("DMQ9998", "the house is full"), 403, "DMQ9998", "REFUSED"),
        (redirect("broker-2.example", 61613), 403, "DMQ5301", "REFUSED"),
        (LimitError("DMQ9998", "the house is full"), 429, "DMQ9998", "LIMIT"),
        (KeyError("pool"), 403, "DMQ5304", "REFUSED"),
        ("yes", 403, "DMQ5304", "REFUSED"),
    ],
)
async def test_who_is_refused_is_told_why_and_closed(
    guarded: Api,
    door: HttpDoor,
    caplog: pytest.LogCaptureFixture,
    answer: object,
    status: int,
    code: str,
    condition: str,
) -> None:
    door.answers = [answer]
    response = await guarded.get(BROKER)
    assert problem(response) == (status, code, condition)
    assert response.headers["Connection"] == "close"
    assert ("DMQ5303: HttpDoor, which decides on logins" in caplog.text) is (code == "DMQ5304")
    door.answers = [ADMIT]
    assert (await guarded.get(BROKER)).status_code == 200
    assert guarded.host.fatal is None


async def test_one_that_waits_is_answered_when_the_port_knows(guarded: Api, door: HttpDoor) -> None:
    door.answers = [WAIT, WAIT, ADMIT]
    call = asyncio.ensure_future(guarded.get(BROKER))
    (await door.asked.get()).ask_again()
    again = await door.asked.get()
    assert not call.done()
    again.ask_again()
    assert (await call).status_code == 200
    assert door.withdrawn.empty()


async def test_one_whose_user_is_removed_while_it_waits_is_refused(guarded: Api, door: HttpDoor) -> None:
    door.answers = [WAIT, ADMIT]
    call = asyncio.ensure_future(guarded.get(BROKER))
    waiting = await door.asked.get()
    guarded.access.reload({}, {}, ())
    waiting.ask_again()
    assert problem(await call) == (401, "DMQ6302", "LOGIN_REQUIRED")
    assert door.withdrawn.get_nowait() is waiting
    assert door.asked.empty()


@pytest.mark.parametrize("leaves", [True, False])
async def test_one_that_waits_too_long_or_leaves_is_withdrawn(
    guarded: Api, door: HttpDoor, monkeypatch: pytest.MonkeyPatch, leaves: bool
) -> None:
    door.answers = [WAIT]
    if leaves:
        call = asyncio.ensure_future(guarded.get(BROKER))
        await door.asked.get()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    else:
        monkeypatch.setattr(logins, "LONGEST_WAIT_S", 0.001)
        assert problem(await guarded.get(BROKER)) == (503, "DMQ6306", "BUSY")
    assert door.withdrawn.qsize() == 1
