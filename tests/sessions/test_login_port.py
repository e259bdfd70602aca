"""What stands between a right password and a session, for every protocol: admit, refuse, redirect, wait."""

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import pytest

from delosmq.model.errors import InvariantError, LimitError
from delosmq.security.access import AccessControl
from delosmq.sessions.login import ADMIT, WAIT, LoginAnswer, LoginPort, LoginRequest, redirect, refuse, turn_away
from delosmq.sessions.machine import SessionMachine
from delosmq.wire.openwire.commands import (
    ConnectionControl,
    ConnectionError,
    ConnectionInfo,
    ExceptionResponse,
    Response,
)
from delosmq.wire.openwire.negotiation import WireFormatInfo
from delosmq.wire.openwire.structures import ConnectionId
from tests.sessions.openwire.support import Client as OpenWireClient
from tests.sessions.openwire.support import OpenWireBench
from tests.sessions.support import ACCEPTOR, PASSWORD, USER, Client, Host, StompBench


class Door(LoginPort):
    """Answers what the test says."""

    def __init__(self, answer: LoginAnswer) -> None:
        self.answer = answer
        self.asked: list[LoginRequest] = []
        self.withdrawn: list[LoginRequest] = []

    def decide(self, request: LoginRequest) -> LoginAnswer:
        self.asked.append(request)
        return self.answer

    def withdraw(self, request: LoginRequest) -> None:
        self.withdrawn.append(request)


class Attempt:
    """A peer that has said who it is, and all that came back."""

    def __init__(self, session: SessionMachine, host: Host, written: Callable[[], bytes]) -> None:
        self.session = session
        self.reasons = host.reasons
        self.troubles = host.reports
        self.written = written


def prepare(access: AccessControl, *, known: bool, vouched: bool) -> None:
    """Says how the user's login becomes right: by its password, verified before or not, or without."""
    if vouched or not known:
        access.reload({USER: "other"}, {USER: frozenset({"all"})}, ())
    if vouched:
        access.trust(USER, PASSWORD)


def by_stomp(door: Door, *, known: bool = True, vouched: bool = False) -> Attempt:
    bench = StompBench()
    bench.services.logins = door
    client = Client(bench)
    prepare(bench.services.access, known=known, vouched=vouched)
    client.send(
        f"CONNECT\naccept-version:1.2\nhost:h\nlogin:{USER}\npasscode:{PASSWORD}\nclient-id:me\nreceipt:r\n\n\0"
    )

    def written() -> bytes:
        bench.tick()
        return client.raw

    return Attempt(client.session, client.host, written)


def by_openwire(door: Door, *, known: bool = True, vouched: bool = False) -> Attempt:
    bench = OpenWireBench()
    bench.services.logins = door
    client = bench.negotiate()
    prepare(bench.services.access, known=known, vouched=vouched)
    info = ConnectionInfo()
    info.connection_id, info.client_id, info.user_name, info.password = ConnectionId("ID:c"), "me", USER, PASSWORD
    client.feed(info, answer=True)

    def written() -> bytes:
        bench.tick()
        texts = []
        for one in client.take():
            if isinstance(one, ExceptionResponse | ConnectionError) and one.exception is not None:
                texts.append(one.exception.message or "")
            elif isinstance(one, ConnectionControl):
                texts.append(one.connected_brokers or "")
        return " ".join(texts).encode()

    return Attempt(client.session, client.host, written)


def openwire_login(door: Door, version: int = 12) -> tuple[OpenWireClient, Host]:
    """A peer that speaks that version and has said who it is."""
    bench = OpenWireBench()
    bench.services.logins = door
    client = bench.negotiate(WireFormatInfo(version))
    info = ConnectionInfo()
    info.connection_id, info.client_id, info.user_name, info.password = ConnectionId("ID:c"), "me", USER, PASSWORD
    client.feed(info, answer=True)
    bench.tick()
    return client, client.host


EACH = pytest.mark.parametrize("attempt", [by_stomp, by_openwire])
Try = Callable[..., Attempt]


@EACH
def test_the_port_is_asked_once_the_password_is_right(attempt: Try) -> None:
    door = Door(ADMIT)
    made = attempt(door, known=False)
    assert (door.asked, made.session.established) == ([], False)
    made.session.resume(True, made.session.services.clock.monotonic_ns())
    (request,) = door.asked
    assert made.session.established
    assert (request.login.user, request.client_id, request.peer) == (USER, "me", "10.0.0.1:5000")
    assert request.acceptor == made.session.acceptor.name


@EACH
def test_a_wrong_password_never_reaches_it(attempt: Try) -> None:
    door = Door(ADMIT)
    made = attempt(door, known=False)
    made.session.resume(False, made.session.services.clock.monotonic_ns())
    assert door.asked == []
    assert len(made.reasons) == 1


@EACH
def test_who_is_refused_is_told_why_and_closed(attempt: Try) -> None:
    made = attempt(Door(refuse("DMQ9998", "the house is full")))
    assert b"DMQ9998: the house is full" in made.written()
    (reason,) = made.reasons
    assert reason is not None
    assert reason.code == "DMQ9998"
    assert not made.session.established


@EACH
def test_who_is_redirected_is_told_where_to(attempt: Try) -> None:
    made = attempt(Door(redirect("broker-2.example", 61613)))
    assert b"broker-2.example:61613" in made.written()
    assert len(made.reasons) == 1


@EACH
def test_who_is_to_try_others_is_told_why_and_closed(attempt: Try) -> None:
    made = attempt(Door(turn_away("DMQ9998", "no room for that key")))
    assert b"DMQ9998: no room for that key" in made.written()
    assert len(made.reasons) == 1


def test_stomp_names_the_other_broker_in_a_header() -> None:
    frame = by_stomp(Door(redirect("fe80::1", 61613))).written()
    assert frame.startswith(b"ERROR\n")
    assert b"\nredirect-to:[fe80\\c\\c1]\\c61613\n" in frame


@pytest.mark.parametrize(
    ("answer", "place"),
    [
        (redirect("broker-2.example", 61616), "tcp://broker-2.example:61616"),
        (redirect("fe80::1", 61617, tls=True), "ssl://[fe80::1]:61617"),
    ],
)
def test_openwire_is_told_the_other_broker_and_gets_no_answer_to_its_connection_info(
    answer: LoginAnswer, place: str
) -> None:
    client, host = openwire_login(Door(answer))
    (control,) = client.take()
    assert isinstance(control, ConnectionControl)
    assert (control.connected_brokers, control.rebalance_connection) == (place, True)
    assert len(host.reasons) == 1


def test_openwire_gets_a_connection_error_and_no_answer_when_others_may_serve_it() -> None:
    client, _ = openwire_login(Door(turn_away("DMQ9998", "no room for that key")))
    assert [type(one) for one in client.take()] == [ConnectionError]


def test_an_openwire_version_that_can_not_name_brokers_gets_a_connection_error() -> None:
    client, _ = openwire_login(Door(redirect("broker-2.example", 61616)), version=5)
    assert [type(one) for one in client.take()] == [ConnectionError]


def test_the_port_is_told_the_router_of_the_acceptor_and_the_server_name() -> None:
    door = Door(ADMIT)
    bench = StompBench(acceptor=replace(ACCEPTOR, router="europe"))
    bench.services.logins = door
    client = Client(bench)
    client.session.peer.sni_host = "eu.example.com"
    client.send(f"CONNECT\naccept-version:1.2\nhost:h\nlogin:{USER}\npasscode:{PASSWORD}\n\n\0")
    (request,) = door.asked
    assert (request.router, request.sni_host, request.source()) == ("europe", "eu.example.com", "10.0.0.1")


@EACH
def test_who_waits_is_not_read_until_the_port_knows(attempt: Try) -> None:
    door = Door(WAIT)
    made = attempt(door)
    session = made.session
    now = session.services.clock.monotonic_ns()
    session.handle_timer(now)
    assert (len(door.asked), session.reading, session.established) == (1, False, False)
    door.answer = ADMIT
    door.asked[0].ask_again()
    session.handle_timer(now)
    assert (len(door.asked), session.reading, session.established) == (2, True, True)
    assert not made.reasons


@EACH
def test_one_that_waits_and_is_refused_in_the_end_is_told(attempt: Try) -> None:
    door = Door(WAIT)
    made = attempt(door)
    door.answer = refuse("DMQ9998", "the house is full")
    door.asked[0].ask_again()
    made.session.handle_timer(made.session.services.clock.monotonic_ns())
    assert b"the house is full" in made.written()
    assert len(made.reasons) == 1
    assert door.withdrawn == []


@EACH
@pytest.mark.parametrize("end", [SessionMachine.handle_eof, SessionMachine.connection_lost])
def test_the_port_hears_of_one_that_waited_and_is_gone(attempt: Try, end: Callable[[SessionMachine], None]) -> None:
    door = Door(WAIT)
    made = attempt(door)
    end(made.session)
    assert door.withdrawn == door.asked
    assert len(door.asked) == 1


@EACH
def test_who_waited_has_the_roles_of_now(attempt: Try) -> None:
    door = Door(WAIT)
    made = attempt(door)
    access = made.session.services.access
    access.reload({USER: "stored"}, {USER: frozenset({"new"})}, ())
    door.asked[0].ask_again()
    made.session.handle_timer(made.session.services.clock.monotonic_ns())
    assert door.asked[1].login.roles == {"new"}


@EACH
@pytest.mark.parametrize("users", [{}, {USER: "another password"}])
def test_who_was_removed_or_changed_while_waiting_is_refused(attempt: Try, users: dict[str, str]) -> None:
    door = Door(WAIT)
    made = attempt(door)
    session = made.session
    session.services.access.reload(users, {USER: frozenset({"all"})}, ())
    door.answer = ADMIT
    door.asked[0].ask_again()
    session.handle_timer(session.services.clock.monotonic_ns())
    assert not session.established
    assert len(made.reasons) == 1
    assert len(door.asked) == 1
    assert door.withdrawn == door.asked


@EACH
@pytest.mark.parametrize("reloaded", [False, True])
def test_a_login_that_was_vouched_for_waits_no_longer_than_till_a_reload(attempt: Try, reloaded: bool) -> None:
    door = Door(WAIT)
    made = attempt(door, vouched=True)
    session = made.session
    if reloaded:
        session.services.access.reload({USER: "other"}, {USER: frozenset({"all"})}, ())
    door.answer = ADMIT
    door.asked[0].ask_again()
    session.handle_timer(session.services.clock.monotonic_ns())
    assert session.established is not reloaded


@EACH
@pytest.mark.parametrize("answer", [refuse("DMQ9998", "the house is full"), redirect("broker-2.example", 61613)])
def test_an_answer_for_many_logins_holds_on_to_none_of_them(attempt: Try, answer: LoginAnswer) -> None:
    door = Door(answer)
    (first,) = attempt(door).reasons
    (second,) = attempt(door).reasons
    assert first is not None
    assert second is not None
    assert first is not second
    assert (str(first), first.__traceback__) == (str(second), None)


class ShutDoor(Door):
    """Raises what others answer."""

    def decide(self, request: LoginRequest) -> LoginAnswer:
        super().decide(request)
        raise LimitError("DMQ9998", "the house is full")


@EACH
@pytest.mark.parametrize("door", [Door, ShutDoor])
def test_a_refusal_is_told_alike_whenever_the_password_was_verified(attempt: Try, door: type[Door]) -> None:
    before = attempt(door(refuse("DMQ9998", "the house is full")))
    now = attempt(door(refuse("DMQ9998", "the house is full")), known=False)
    now.session.resume(True, now.session.services.clock.monotonic_ns())
    assert (len(now.reasons), now.session.state) == (len(before.reasons), before.session.state)
    told = now.written()
    assert b"the house is full" in told
    assert told == before.written()


def test_what_was_sent_behind_a_login_that_is_refused_and_may_be_tried_again_is_handled() -> None:
    bench = OpenWireBench()
    bench.services.logins = ShutDoor(ADMIT)
    client = bench.negotiate()
    bench.services.access.reload({USER: "other"}, {USER: frozenset({"all"})}, ())
    info = ConnectionInfo()
    info.connection_id, info.client_id, info.user_name, info.password = ConnectionId("ID:c"), "me", USER, PASSWORD
    client.feed(info, answer=True)
    second = client.feed(ConnectionControl(), answer=True)
    client.session.resume(True, bench.now)
    bench.tick()
    told = client.take()
    refusal = next(one for one in told if isinstance(one, ExceptionResponse))
    assert [one.correlation_id for one in told if isinstance(one, Response)] == [refusal.correlation_id, second]


class BrokenDoor(Door):
    """Fails, as code that others write does."""

    def __init__(self, error: BaseException | None) -> None:
        super().__init__(WAIT)
        self.error = error

    def decide(self, request: LoginRequest) -> LoginAnswer:
        super().decide(request)
        if self.error is not None:
            raise self.error
        return cast(LoginAnswer, "yes")

    def withdraw(self, request: LoginRequest) -> None:
        super().withdraw(request)
        raise KeyError("who")


FAILURES = pytest.mark.parametrize("error", [KeyError("pool"), InvariantError("DMQ9998", "what now"), None])


@EACH
@FAILURES
@pytest.mark.parametrize("known", [True, False])
def test_a_port_that_fails_refuses_the_login_and_the_broker_goes_on(
    attempt: Try, error: BaseException | None, known: bool
) -> None:
    made = attempt(BrokenDoor(error), known=known)
    if not known:
        made.session.resume(True, made.session.services.clock.monotonic_ns())
    assert b"DMQ5304: the broker could not decide" in made.written()
    (reason,) = made.reasons
    assert reason is not None
    assert reason.code == "DMQ5304"
    assert not made.session.established
    (trouble,) = made.troubles
    assert trouble.code == "DMQ5303"
    assert ("test_login_port.py:" in trouble.message) is (error is not None)


@EACH
def test_a_port_that_fails_when_a_login_is_withdrawn_is_reported(attempt: Try) -> None:
    door = BrokenDoor(None)
    made = attempt(Door(WAIT))
    made.session.services.logins = door
    made.session.handle_eof()
    assert len(door.withdrawn) == 1
    assert [one.code for one in made.troubles] == ["DMQ5303"]
