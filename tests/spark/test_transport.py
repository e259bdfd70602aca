"""Broken connections, restarts and several servers."""

import socket
import threading
from typing import Any

import pytest

import delosmq
from delosmq.spark.errors import AnswerError, BrokerUnreachableError, LoginRefusedError
from delosmq.spark.lease_client import LeaseClient
from delosmq.spark.options import SourceDestination, parse_options
from delosmq.spark.transport import Transport
from tests.spark.fake_broker import FakeBroker

NAMES = ("sequence", "body")


class SteppedTime:
    """A clock that moves when somebody sleeps; `on_sleep` happens once, at the first sleep."""

    def __init__(self, on_sleep: Any = None) -> None:
        self.now_s = 0.0
        self.pauses: list[float] = []
        self._on_sleep = on_sleep

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, pause_s: float) -> None:
        self.pauses.append(pause_s)
        self.now_s += pause_s
        if self._on_sleep is not None:
            on_sleep, self._on_sleep = self._on_sleep, None
            on_sleep()


def client_at(servers: str, broker: FakeBroker, time: SteppedTime, retry_ms: int = 60_000) -> LeaseClient:
    raw = {"servers": servers, "user": broker.user, "password": broker.password, "subscribe": "q"}
    options = parse_options({**raw, "retryTimeoutMs": str(retry_ms)}).connection
    return LeaseClient(options, transport=Transport(options, monotonic=time.monotonic, sleep=time.sleep))


def closed_port() -> str:
    """An address that refuses connections."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken.getsockname()[1]}"


def test_nobody_there_is_a_sentence_after_bounded_retries(fake: FakeBroker):
    time = SteppedTime()
    server = closed_port()
    with pytest.raises(BrokerUnreachableError, match=rf"DMQ8010: .*http://{server} for 60 s .*refused"):
        client_at(server, fake, time).queue("q")
    assert time.now_s <= 60
    assert time.pauses[:6] == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0]


def test_a_broker_that_restarts_is_waited_for(fake: FakeBroker):
    fake.publish("q", [b"a"])
    time = SteppedTime(on_sleep=fake.start)
    client = client_at(fake.servers, fake, time)
    assert client.queue("q").message_count == 1
    fake.stop()
    assert client.queue("q").message_count == 1
    assert len(time.pauses) == 1
    client.close()


def test_a_connection_closed_while_idle_costs_no_pause(fake: FakeBroker):
    fake.make_queue("q")
    time = SteppedTime()
    client = client_at(fake.servers, fake, time)
    client.queue("q")
    fake.stop()
    fake.start()
    client.queue("q")
    assert time.pauses == []
    client.close()


def test_the_next_server_is_asked_before_any_pause(fake: FakeBroker):
    fake.make_queue("q")
    time = SteppedTime()
    client = client_at(f"{closed_port()},{fake.servers}", fake, time)
    client.queue("q")
    assert time.pauses == []
    client.close()


def test_a_wrong_password_is_not_tried_again_and_not_shown(fake: FakeBroker):
    time = SteppedTime()
    client = client_at(fake.servers, fake, time)
    fake.password = "another"
    with pytest.raises(LoginRefusedError, match=r"DMQ8011: .*user 'spark'") as refusal:
        client.queue("q")
    assert "s3cret" not in str(refusal.value)
    assert time.pauses == []
    client.close()


@pytest.mark.parametrize("cut_after_bytes", [0, 3, 300, 20_000])
def test_rows_go_on_where_the_connection_broke(fake: FakeBroker, cut_after_bytes: int):
    fake.publish("q", [b"%d" % number for number in range(2_000)])
    time = SteppedTime()
    client = client_at(fake.servers, fake, time)
    group = client.open_group("g", SourceDestination("queue", "q"), None, sleep=time.sleep)
    client.lease(group, 0, max_rows=2_000, max_bytes=1 << 20, wait_ms=0)
    fake.cut_after_bytes = cut_after_bytes
    rows = [row for batch in client.rows("g", 1, 0, 2_000, NAMES) for row in batch.to_pylist()]
    assert [row["body"] for row in rows] == [b"%d" % number for number in range(2_000)]
    assert len(fake.fetches) == 2
    client.close()


def test_a_browse_goes_on_where_the_connection_broke(fake: FakeBroker):
    fake.publish("q", [b"%d" % number for number in range(2_000)])
    client = client_at(fake.servers, fake, SteppedTime())
    fake.cut_after_bytes = 20_000
    bodies = [value for batch in client.browse("q", 0, 2_000, ("body",)) for value in batch.column(0).to_pylist()]
    assert bodies == [b"%d" % number for number in range(2_000)]
    client.close()


@pytest.mark.parametrize("protocol", ["stomp", "openwire"])
def test_the_port_of_another_protocol_is_said_so_at_once_with_the_one_of_http(fake: FakeBroker, protocol: str):
    with delosmq.Broker() as broker:
        port = {"stomp": broker.stomp_port, "openwire": broker.openwire_port}[protocol]
        time = SteppedTime()
        client = client_at(f"127.0.0.1:{port}", fake, time)
        for call in (
            lambda: client.queue("q"),
            lambda: client.open_group("g", SourceDestination("queue", "q"), None, sleep=time.sleep),
        ):
            with pytest.raises(AnswerError) as refusal:
                call()
            assert refusal.value.code == "DMQ8014"
            assert f"The HTTP interface of this broker is at port {broker.http_url.rpartition(':')[2]}" in str(
                refusal.value
            )
        assert time.pauses == []
        client.close()


def test_what_speaks_first_and_no_http_is_said_so(fake: FakeBroker):
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"ERROR\nmessage:what is this\n\n\0\n")

        thread = threading.Thread(target=serve)
        thread.start()
        client = client_at(f"127.0.0.1:{listener.getsockname()[1]}", fake, SteppedTime())
        with pytest.raises(AnswerError, match=r"DMQ8014: .*it answers in another protocol"):
            client.queue("q")
        thread.join()
        client.close()


def test_https_at_a_port_of_http_is_said_so_at_once(fake: FakeBroker):
    with delosmq.Broker() as broker:
        time = SteppedTime()
        port = broker.http_port
        client = client_at(f"https://127.0.0.1:{port}", fake, time)
        with pytest.raises(AnswerError, match=f"DMQ8015: .*write http://127.0.0.1:{port} in the option servers"):
            client.queue("q")
        assert time.pauses == []
        client.close()


def test_http_at_a_port_of_https_is_said_so_at_once(fake: FakeBroker):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                # The alert of OpenSSL's server: unexpected message.
                connection.sendall(b"\x15\x03\x01\x00\x02\x02\x0a")

        thread = threading.Thread(target=serve)
        thread.start()
        time = SteppedTime()
        client = client_at(f"127.0.0.1:{port}", fake, time)
        with pytest.raises(AnswerError, match=f"DMQ8015: .* speaks TLS: write https://127.0.0.1:{port} in"):
            client.queue("q")
        assert time.pauses == []
        thread.join()
        client.close()


def test_something_that_is_no_broker_is_said_so(fake: FakeBroker):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        client = client_at(f"127.0.0.1:{listener.getsockname()[1]}", fake, SteppedTime())
        with pytest.raises(Exception, match=r"DMQ8058: .*is this a DelosMQ HTTP listener"):
            client.queue("q")
        thread.join()
        client.close()
