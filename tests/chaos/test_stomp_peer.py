"""A client of the chaos tests that meets the death of its broker at an odd moment says so, and nothing else."""

import socket
import threading
from collections.abc import Iterator

import pytest

from tests.chaos.stomp_peer import StompPyPeer
from tests.patience import PATIENCE_S


@pytest.fixture
def peer() -> Iterator[StompPyPeer]:
    """Connected to what answers CONNECT and says nothing more."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepted: list[socket.socket] = []

        def answer() -> None:
            connection, _ = listener.accept()
            accepted.append(connection)
            connection.settimeout(PATIENCE_S)
            while b"\0" not in connection.recv(4096):
                pass
            connection.sendall(b"CONNECTED\nversion:1.2\n\n\0")

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            with StompPyPeer(listener.getsockname()[1]) as peer:
                thread.join(PATIENCE_S)
                yield peer
        finally:
            thread.join(PATIENCE_S)
            for connection in accepted:
                connection.close()


def use_no_socket() -> None:
    """What a send of stomp.py does whose socket is dropped by the reading thread after it was looked at."""
    raise AttributeError("'NoneType' object has no attribute 'sendall'")


def test_a_socket_that_is_dropped_under_a_send_means_that_the_broker_has_gone(peer: StompPyPeer) -> None:
    peer.drop_socket()
    with pytest.raises(EOFError):
        peer.call(use_no_socket)


def test_an_error_on_a_living_connection_is_raised(peer: StompPyPeer) -> None:
    with pytest.raises(AttributeError):
        peer.call(use_no_socket)
