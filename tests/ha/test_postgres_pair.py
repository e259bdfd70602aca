"""A primary and its backup on PostgreSQL: who is active after a kill, a pause, a stop, a return."""

# HA-2

from collections.abc import Iterator
from pathlib import Path

import pytest

from delosmq.testing import TcpProxy
from tests.chance import tries
from tests.chaos.clients import Gone, StompPeer
from tests.ha.pair_contract import MakePair, PairContract, pairs_in, received, send
from tests.postgres_server import PostgresServer


@pytest.fixture
def make_pair(tmp_path: Path, postgres: PostgresServer) -> Iterator[MakePair]:
    with pairs_in(tmp_path, postgres) as make:
        yield make


class TestOnPostgres(PairContract):
    """HA-2."""


@pytest.mark.parametrize("turn", range(tries(1)))
def test_a_paused_primary_wakes_up_fenced_and_confirms_nothing(turn: int, make_pair: MakePair) -> None:
    pair = make_pair()
    pair.start()
    send(pair.primary, "before the pause")
    peer = StompPeer(pair.primary.stomp_port)
    pair.primary.pause()
    # What the old one finds in its sockets when it wakes up.
    for number in range(20):
        durable = "true" if number % 2 else "false"
        peer.send("SEND", {"destination": "/queue/orders", "persistent": durable, "receipt": str(number)}, b"lost")
    peer.send("SUBSCRIBE", {"id": "s", "destination": "/queue/orders", "receipt": "subscribed"})
    pair.backup.await_ready()
    pair.primary.resume()
    assert pair.primary.await_end() != 0
    with pytest.raises(Gone):
        next(peer.frames())
    assert "DMQ3071" in pair.primary.log or "DMQ3050" in pair.primary.log
    assert received(pair.backup) == "before the pause"
    peer.close()


def test_a_clean_stop_that_the_database_can_not_be_told_of_says_so(
    make_pair: MakePair, postgres: PostgresServer
) -> None:
    pair = make_pair()
    with TcpProxy(postgres.port) as network:
        pair.primary.configure((f"//127.0.0.1:{postgres.port}/", f"//127.0.0.1:{network.port}/"))
        pair.primary.start()
        send(pair.primary, "before the stop")
        network.refuse()
        network.cut()
        assert pair.primary.stop() == 1
    assert "DMQ7024" in pair.primary.log
    assert "Traceback" not in pair.primary.log
    pair.backup.start()
    assert received(pair.backup) == "before the stop"


def test_a_primary_that_is_cut_off_from_its_database_confirms_nothing_and_stops_when_it_is_back(
    make_pair: MakePair, postgres: PostgresServer
) -> None:
    pair = make_pair()
    with TcpProxy(postgres.port) as network:
        pair.primary.configure((f"//127.0.0.1:{postgres.port}/", f"//127.0.0.1:{network.port}/"))
        pair.start()
        send(pair.primary, "before the cut")
        peer = StompPeer(pair.primary.stomp_port)
        network.blackhole()
        for number in range(10):
            headers = {"destination": "/queue/orders", "persistent": "true", "receipt": str(number)}
            peer.send("SEND", headers, b"lost")
        pair.backup.await_ready()
        network.restore()
        assert pair.primary.await_end() != 0
        with pytest.raises(Gone):
            next(peer.frames())
        peer.close()
    assert "DMQ3071" in pair.primary.log or "DMQ3050" in pair.primary.log
    assert received(pair.backup) == "before the cut"
