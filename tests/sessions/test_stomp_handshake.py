"""CONNECT: versions, logins, heart-beats, TTL."""

from dataclasses import replace

import pytest

from delosmq.model.errors import PeerError
from delosmq.model.settings import AddressFullPolicy
from delosmq.sessions.stomp.server.handshake import choose_version
from delosmq.wire.stomp.versions import V10, V11, V12
from tests.sessions.support import ACCEPTOR, PASSWORD, USER, Client, StompBench

BLOCK = AddressFullPolicy.BLOCK
LOGIN = f"login:{USER}\npasscode:{PASSWORD}\n"


@pytest.mark.parametrize(
    "offered, version",
    [(None, V10), ("1.0", V10), ("1.1", V11), ("1.0,1.1,1.2", V12), ("1.1, 1.0", V11), ("9.9,1.2", V12)],
)
def test_the_newest_common_version_is_chosen(offered: str | None, version: int) -> None:
    assert choose_version(offered) == version


def test_without_a_common_version_the_supported_ones_are_listed() -> None:
    client = Client(StompBench())
    client.send(f"CONNECT\naccept-version:2.0\n{LOGIN}\n\0")
    error = client.error()
    assert error.headers["version"] == "1.0,1.1,1.2"
    assert "accept-version" in error.headers["message"]


@pytest.mark.parametrize("command", ["CONNECT", "STOMP"])
def test_connected_names_version_session_server_and_heart_beat(command: str) -> None:
    client = Client(StompBench())
    client.send(f"{command}\naccept-version:1.2\nhost:h\n{LOGIN}\n\0")
    (connected,) = client.take()
    assert connected.headers == {
        "version": "1.2",
        "session": "c1",
        "server": "DelosMQ/test",
        "heart-beat": "0,30000",
    }
    assert client.session.established


def test_a_1_0_client_hears_nothing_of_heart_beats() -> None:
    client = Client(StompBench())
    client.send(f"CONNECT\nheart-beat:1000,1000\n{LOGIN}\n\0")
    (connected,) = client.take()
    assert connected.headers["version"] == "1.0"
    assert "heart-beat" not in connected.headers
    assert client.session.next_timer() == client.bench.now + 2_000_000_000


@pytest.mark.parametrize("missing", ["login", "passcode"])
def test_a_login_is_always_required(missing: str) -> None:
    client = Client(StompBench())
    headers = "\n".join(line for line in LOGIN.split("\n") if line and not line.startswith(missing))
    client.send(f"CONNECT\naccept-version:1.2\n{headers}\n\n\0")
    assert f"no header {missing}" in client.error().headers["message"]


def test_while_the_password_is_checked_nothing_is_decoded() -> None:
    bench = StompBench()
    client = Client(bench)
    client.send(
        f"CONNECT\naccept-version:1.2\nlogin:{USER}\npasscode:other\n\n\0SEND\ndestination:/queue/a\nreceipt:r\n\nx\0"
    )
    ((attempt, password),) = client.host.attempts
    assert (attempt.user, password) == (USER, "other")
    assert not client.is_read()
    assert client.take() == []
    client.session.resume(True, bench.now)
    bench.tick()
    assert [frame.command for frame in client.take()] == ["CONNECTED", "RECEIPT"]
    assert client.is_read()


def test_a_wrong_password_is_refused_without_saying_what_was_wrong() -> None:
    bench = StompBench()
    client = Client(bench)
    client.send(f"CONNECT\naccept-version:1.2\nlogin:{USER}\npasscode:guess\n\n\0SEND\ndestination:/queue/a\n\nx\0")
    client.session.resume(False, bench.now)
    bench.tick()
    error = client.error()
    assert "login 'anna' or its passcode is wrong" in error.headers["message"]
    assert b"guess" not in error.body
    assert "guess" not in str(client.host.reason)
    assert "a" not in bench.broker.queues


def test_an_answer_after_the_connection_is_gone_is_ignored() -> None:
    bench = StompBench()
    client = Client(bench)
    client.send(f"CONNECT\naccept-version:1.2\nlogin:{USER}\npasscode:other\n\n\0")
    client.session.connection_lost()
    client.session.resume(True, bench.now)
    assert client.take_raw() == b""


@pytest.mark.parametrize("command", ["SEND", "SUBSCRIBE", "ACK", "BEGIN", "DISCONNECT"])
def test_nothing_comes_before_connect(command: str) -> None:
    client = Client(StompBench())
    client.send(f"{command}\nreceipt:7\n\n\0")
    error = client.error()
    assert "before CONNECT" in error.headers["message"]
    assert error.headers["receipt-id"] == "7"


def test_connect_comes_once() -> None:
    client = StompBench().connect()
    client.send(f"CONNECT\naccept-version:1.2\n{LOGIN}\n\0")
    assert "connected already" in client.error().headers["message"]


def test_a_bad_heart_beat_is_named() -> None:
    client = Client(StompBench())
    client.send(f"CONNECT\naccept-version:1.2\nheart-beat:soon\n{LOGIN}\n\0")
    assert "heart-beat" in client.error().headers["message"]


def test_the_server_beats_within_the_time_agreed() -> None:
    bench = StompBench()
    client = bench.connect(headers="heart-beat:0,1000\n")
    bench.pass_time(999)
    assert client.take_raw() == b"\n"
    bench.pass_time(1_000)
    assert client.take_raw() == b"\n"


def test_a_silent_client_is_told_and_closed_after_its_ttl() -> None:
    bench = StompBench()
    client = bench.connect(headers="heart-beat:2000,0\n")
    for _ in range(10):
        bench.pass_time(2_000)
        client.send("\n")
    assert not client.host.finished
    bench.pass_time(9_000)
    error = client.error()
    assert "10.0.0.1:5000" in error.headers["message"]
    assert "4000 ms" in error.headers["message"]
    assert isinstance(client.host.reason, PeerError)


def test_the_override_replaces_what_the_client_agreed_on() -> None:
    bench = StompBench(ttl_override_ms=3_000)
    client = Client(bench)
    client.send(f"CONNECT\naccept-version:1.2\nheart-beat:60000,0\n{LOGIN}\n\0")
    assert client.take()[0].headers["heart-beat"] == "0,1500"
    bench.pass_time(7_000)
    assert "3000 ms" in client.error().headers["message"]


def test_a_connection_that_we_paused_is_exempt_from_its_ttl() -> None:
    bench = StompBench(
        address_settings={"a": {"max_size_messages": 1, "address_full_policy": BLOCK}},
        acceptor=replace(ACCEPTOR, parked_limit_bytes=100),
    )
    client = bench.connect(headers="heart-beat:1000,0\n")
    client.frame("SEND", "destination:/queue/a", body="1")
    client.frame("SEND", "destination:/queue/a", body="2")
    assert not client.is_read()
    bench.pass_time(60_000)
    assert not client.host.finished
    consumer = bench.connect()
    consumer.frame("SUBSCRIBE", "id:1", "destination:/queue/a")
    assert client.is_read()
    bench.pass_time(10_000)
    assert "TTL" in client.error().headers["message"]


def test_a_connection_without_a_login_is_silent_no_longer_than_the_ttl() -> None:
    bench = StompBench(acceptor=replace(ACCEPTOR, connection_ttl_ms=1_000))
    client = Client(bench)
    bench.pass_time(5_000)
    assert "TTL" in client.error().headers["message"]
