"""`delosmq.testing.TcpProxy`: what a test can do to the connections that pass it."""

# HA-1, HA-2

import socket
import socketserver
import threading
from collections.abc import Iterator

import pytest

from delosmq.testing import ProxiedPiece, TcpProxy
from tests.patience import PATIENCE_S


class Echo(socketserver.StreamRequestHandler):
    """Gives back each line; tells the server of the end."""

    def handle(self) -> None:
        for line in self.rfile:
            self.wfile.write(line)


class EchoServer(socketserver.ThreadingTCPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Connections break here."""


@pytest.fixture
def server() -> Iterator[int]:
    with EchoServer(("127.0.0.1", 0), Echo) as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield made.server_address[1]
        made.shutdown()
        thread.join()


class Client:
    def __init__(self, proxy: TcpProxy) -> None:
        self.socket = socket.create_connection(("127.0.0.1", proxy.port), timeout=PATIENCE_S)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def say(self, text: str) -> None:
        self.socket.sendall(text.encode())

    def hear(self, size_bytes: int) -> str:
        """So much, or what comes until the end."""
        heard = b""
        while len(heard) < size_bytes and (more := self.socket.recv(size_bytes - len(heard))):
            heard += more
        return heard.decode()

    def asked(self, text: str) -> str:
        self.say(text)
        return self.hear(len(text))

    def breaks(self) -> bool:
        try:
            return not self.socket.recv(1)
        except ConnectionResetError:
            return True


def test_what_is_said_passes_in_both_directions_and_is_counted(server: int) -> None:
    with TcpProxy(server) as proxy:
        with Client(proxy) as one, Client(proxy) as other:
            assert one.asked("one\n") == "one\n"
            assert other.asked("x" * 1_000_000 + "\n") == "x" * 1_000_000 + "\n"
            proxy.wait_for(accepted=2, answered=2)
            assert proxy.ended == 0
        proxy.wait_for(ended=2)


def test_a_cut_breaks_all_connections_and_the_next_one_passes(server: int) -> None:
    with TcpProxy(server) as proxy:
        with Client(proxy) as one, Client(proxy) as other:
            one.asked("one\n")
            other.asked("other\n")
            proxy.cut()
            assert one.breaks()
            assert other.breaks()
            with Client(proxy) as third:
                assert third.asked("third\n") == "third\n"


def test_connections_break_after_as_many_bytes_as_are_wanted(server: int) -> None:
    with TcpProxy(server) as proxy, Client(proxy) as client:
        client.asked("one\n")
        proxy.cut_after(len("two\n") + len("tw"))
        client.say("two\n")
        assert client.hear(2) == "tw"
        proxy.wait_for_cut()
        assert client.breaks()


def test_a_black_hole_lets_nothing_pass_and_all_of_it_later(server: int) -> None:
    with TcpProxy(server) as proxy, Client(proxy) as client:
        client.asked("one\n")
        proxy.blackhole()
        client.say("two\n")
        with Client(proxy) as late:
            late.say("late\n")
            proxy.wait_for(accepted=2)
            assert proxy.answered == 1
            proxy.restore()
            assert late.hear(5) == "late\n"
        assert client.hear(4) == "two\n"


def test_one_direction_can_be_a_black_hole_while_the_other_one_passes(server: int) -> None:
    seen = threading.Event()

    def note(piece: ProxiedPiece) -> bytes:
        if not piece.to_client and piece.content == b"two\n":
            seen.set()
        return piece.content

    with TcpProxy(server, change=note) as proxy, Client(proxy) as client:
        client.asked("one\n")
        proxy.blackhole(to_server=False)
        client.say("two\n")
        assert seen.wait(PATIENCE_S)
        proxy.restore()
        assert client.hear(4) == "two\n"


def test_the_end_of_a_connection_does_not_pass_a_black_hole(server: int) -> None:
    with TcpProxy(server) as proxy:
        with Client(proxy) as client:
            client.asked("one\n")
            proxy.blackhole()
        with Client(proxy) as other:
            other.say("two\n")
            proxy.wait_for(accepted=2)
            assert proxy.ended == 0
            proxy.restore()
            assert other.hear(4) == "two\n"
            proxy.wait_for(ended=1)


def test_what_is_delayed_arrives_in_its_order(server: int) -> None:
    with TcpProxy(server) as proxy, Client(proxy) as client:
        client.asked("one\n")
        proxy.delay(0.05)
        client.say("two\n")
        client.say("three\n")
        assert client.hear(10) == "two\nthree\n"
        proxy.delay(3_600)
        client.say("never\n")
        proxy.restore()
        with Client(proxy) as other:
            assert other.asked("four\n") == "four\n"


def test_nobody_can_connect_while_it_refuses_and_connections_stay(server: int) -> None:
    with TcpProxy(server) as proxy, Client(proxy) as client:
        client.asked("one\n")
        proxy.refuse()
        with pytest.raises(ConnectionRefusedError):
            Client(proxy)
        assert client.asked("two\n") == "two\n"
        proxy.start()
        with Client(proxy) as other:
            assert other.asked("three\n") == "three\n"


def test_it_can_be_closed_and_started_again_on_the_same_port(server: int) -> None:
    proxy = TcpProxy(server)
    for text in ("one\n", "two\n"):
        with proxy, Client(proxy) as client:
            assert client.asked(text) == text
            proxy.close()
            assert client.breaks()
        with pytest.raises(ConnectionRefusedError):
            Client(proxy)
    assert proxy.accepted == 2


def test_a_client_gets_what_is_injected(server: int) -> None:
    with TcpProxy(server) as proxy, Client(proxy) as client:
        client.asked("one\n")
        proxy.inject(b"more\n")
        assert client.hear(5) == "more\n"


def test_a_piece_can_be_changed_left_out_or_made_the_end(server: int) -> None:
    left_out = threading.Event()

    def change(piece: ProxiedPiece) -> bytes | None:
        if not piece.to_client:
            return piece.content
        if piece.number == 2:
            left_out.set()
        return {1: b"ONE\n", 2: b""}.get(piece.number)

    with TcpProxy(server, change=change) as proxy, Client(proxy) as client:
        assert client.asked("one\n") == "ONE\n"
        client.say("two\n")
        assert left_out.wait(PATIENCE_S)
        client.say("three\n")
        assert client.breaks()


def test_a_client_is_cut_off_where_there_is_no_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    with TcpProxy(port) as proxy, Client(proxy) as client:
        assert client.breaks()
        proxy.wait_for(accepted=1, ended=1)


def test_what_a_change_raises_comes_out_of_close(server: int) -> None:
    def fail(piece: ProxiedPiece) -> bytes:
        raise ValueError(piece.content)

    proxy = TcpProxy(server, change=fail)
    proxy.start()
    with Client(proxy) as client:
        client.say("one\n")
        assert client.breaks()
    with pytest.raises(ValueError, match="one"):
        proxy.close()


async def test_a_coroutine_waits_without_holding_up_its_loop(server: int) -> None:
    with TcpProxy(server) as proxy, Client(proxy) as client:
        client.say("one\n")
        await proxy.wait_for_async(answered=1)
        with pytest.raises(TimeoutError, match="no accepted=2, answered=0, ended=0 at the proxy; it has accepted=1"):
            await proxy.wait_for_async(accepted=2, timeout_s=0)
