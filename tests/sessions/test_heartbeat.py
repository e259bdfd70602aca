"""Heart-beat negotiation, by the table of Artemis's manual."""

import pytest

from delosmq.model.errors import PeerError
from delosmq.sessions.stomp.server.heartbeat import HeartBeat, HeartBeatLimits, negotiate, parse

LIMITS = HeartBeatLimits(ttl_ms=1_000, ttl_min_ms=5_000, ttl_max_ms=10_000, modifier=2.0)
DEFAULTS = HeartBeatLimits(ttl_ms=60_000, ttl_min_ms=1_000, ttl_max_ms=0, modifier=2.0)


# TTL-1
@pytest.mark.parametrize(
    "client, send, expect, ttl",
    [("0,0", 0, 500, 1_000), ("1,0", 0, 2_500, 5_000), ("20000,0", 0, 5_000, 10_000), ("4000,0", 0, 4_000, 8_000)],
)
def test_the_ttl_follows_the_client_within_the_acceptors_bounds(client: str, send: int, expect: int, ttl: int) -> None:
    assert negotiate(*parse(client), LIMITS) == HeartBeat(send, expect, ttl)


@pytest.mark.parametrize("wanted, send", [(0, 0), (1, 500), (500, 500), (30_000, 30_000)])
def test_the_server_never_beats_faster_than_every_half_second(wanted: int, send: int) -> None:
    assert negotiate(0, wanted, DEFAULTS).send_every_ms == send


def test_there_may_be_no_maximum() -> None:
    assert negotiate(200_000, 0, DEFAULTS) == HeartBeat(0, 200_000, 400_000)


# TTL-2
def test_the_override_decides_alone() -> None:
    limits = HeartBeatLimits(60_000, 1_000, 0, 2.0, override_ms=7_000)
    assert negotiate(100, 0, limits) == HeartBeat(0, 3_500, 7_000)
    assert negotiate(0, 0, limits) == HeartBeat(0, 3_500, 7_000)


def test_a_connection_without_ttl_expects_no_heart_beat_from_those_who_have_none() -> None:
    limits = HeartBeatLimits(-1, 1_000, 0, 2.0)
    assert negotiate(0, 0, limits) == HeartBeat(0, 0, -1)
    assert negotiate(10_000, 0, limits) == HeartBeat(0, 10_000, 20_000)


@pytest.mark.parametrize("header", ["", "1", "1,", ",1", "a,b", "-1,0", "1,2,3", "1.5,0", "99999999999,0", "²,0"])
def test_anything_else_is_refused_by_name(header: str) -> None:
    with pytest.raises(PeerError, match="heart-beat"):
        parse(header)
