"""Connections of CORE clients: detection, pings, topology, sessions and their ends."""

import gc
from dataclasses import replace

import pytest

from delosmq.model.errors import PeerError
from delosmq.sessions.core.server.connection import CoreConnection
from delosmq.sessions.core.server.consumers.consumer import CoreConsumer
from delosmq.sessions.core.server.session import CoreSession
from delosmq.sessions.login import redirect, refuse, turn_away
from delosmq.sessions.machine import SessionMachine
from delosmq.wire.core.connection_packets import (
    CheckFailover,
    CheckFailoverReply,
    ClusterTopology,
    ClusterTopologyV3,
    ClusterTopologyV4,
    CreateSessionResponse,
    Disconnect,
    DisconnectV3,
    NullResponse,
    Ping,
    ReattachSession,
    ReattachSessionResponse,
    SubscribeTopology,
    SubscribeTopologyV2,
)
from delosmq.wire.core.decoder import HANDSHAKE
from delosmq.wire.core.session_packets import AddMetadataV2, SessionClose, SessionStop, UniqueAddMetadata
from delosmq.wire.first_bytes import MINE
from tests.sessions.core.support import ACCEPTOR, CoreBench, code_of
from tests.sessions.support import OTHER
from tests.sessions.test_login_port import Door


def test_the_first_bytes_tell_that_a_client_speaks_core() -> None:
    assert CoreBench().protocol.detect(HANDSHAKE) == MINE


def test_a_ping_comes_back_while_the_disk_is_busy() -> None:
    bench = CoreBench(hold=True)
    session = bench.session()
    session.tell(session.send_packet("orders", "a"))
    answer = session.client.ask(Ping(12_000), 0)
    assert isinstance(answer, Ping)
    assert answer.connection_ttl == 12_000
    assert session.take() == []  # the SEND is not synced


@pytest.mark.parametrize(
    ("version", "kind"), [(136, ClusterTopologyV4), (131, ClusterTopologyV4), (130, ClusterTopologyV3)]
)
def test_the_topology_is_one_node_and_complete(version: int, kind: type) -> None:
    client = CoreBench().connect(version)
    packet = SubscribeTopologyV2()
    packet.client_version = version
    answer = client.ask(packet, 0)
    assert type(answer) is kind
    assert isinstance(answer, ClusterTopology)
    assert (answer.exit, answer.last, answer.primary, answer.backup, len(answer.node_id)) == (
        False, True, None, None, 36,
    )  # fmt: skip
    if isinstance(answer, ClusterTopologyV4):
        assert answer.server_version == 136


def test_an_old_topology_request_gets_the_old_form() -> None:
    assert type(CoreBench().connect(129).ask(SubscribeTopology(), 0)) is ClusterTopology


def test_a_session_is_created_and_closed() -> None:
    session = CoreBench().session()
    assert isinstance(session.ask(SessionClose(), NullResponse), NullResponse)
    # Its channel means nothing any more.
    session.tell(SessionStop())
    assert session.client.take() == []
    assert not session.client.host.finished


def test_the_server_says_its_version() -> None:
    client = CoreBench().connect(130)
    answer = client.ask(client.request(), 1)
    assert isinstance(answer, CreateSessionResponse)
    assert answer.server_version == 136


def test_a_client_that_is_too_old_may_try_an_other_version() -> None:
    client = CoreBench().connect()
    assert code_of(client.ask(client.request(version=128), 1)) == "INCOMPATIBLE_CLIENT_SERVER_VERSIONS DMQ5621"
    client.open()


def test_a_newer_client_is_served() -> None:
    client = CoreBench().connect()
    client.open(version=140).stop()


def test_a_wrong_password_leaves_the_connection_and_its_sessions() -> None:
    client = CoreBench().connect()
    session = client.open()
    client.feed(client.request(password="wrong"), 1)
    assert not client.session.reading
    client.session.resume(False, client.bench.now)
    client.bench.tick()
    (answer,) = client.take()
    assert code_of(answer) == "SECURITY_EXCEPTION DMQ5622"
    session.stop()
    assert not client.host.finished


def test_a_channel_has_one_session() -> None:
    client = CoreBench().connect()
    session = client.open()
    assert code_of(client.ask(client.request(session_channel_id=session.channel), 1)) == "ILLEGAL_STATE DMQ5624"
    assert code_of(client.ask(client.request(session_channel_id=2), 1)) == "ILLEGAL_STATE DMQ5624"


def test_a_session_of_the_same_name_ends_the_old_one() -> None:
    bench = CoreBench()
    old = bench.session()
    bench.connect().open(name=old.request.name).stop()
    old.tell(SessionStop())
    assert old.client.take() == []
    (report,) = old.client.host.reports
    assert report.code == "DMQ5625"
    assert old.request.name not in str(report)


def test_another_user_does_not_get_the_name() -> None:
    bench = CoreBench()
    old = bench.session()
    client = bench.connect()
    refusal = code_of(client.ask(client.request(user=OTHER, name=old.request.name), 1))
    assert refusal == "SESSION_CREATION_REJECTED DMQ5633"
    old.stop()


def test_failover_checks_and_reattaching_are_answered() -> None:
    client = CoreBench().connect()
    check = client.ask(CheckFailover(), 1)
    assert isinstance(check, CheckFailoverReply)
    assert check.ok
    answer = client.ask(ReattachSession(), 1)
    assert isinstance(answer, ReattachSessionResponse)
    assert (answer.last_confirmed_command_id, answer.reattached) == (-1, False)


def test_what_comes_for_an_unknown_channel_is_left_out() -> None:
    client = CoreBench().connect()
    client.tell(SessionStop(), 77)
    assert client.take() == []
    assert not client.host.finished


def test_a_client_that_pings_may_live_without_a_session() -> None:
    client = CoreBench().connect()
    assert not client.machine.session.may_wait_to_log_in()
    client.ask(Ping(60_000), 0)
    assert client.machine.session.may_wait_to_log_in()


def test_a_silent_client_is_gone_after_the_ttl_that_it_said() -> None:  # TTL-1
    session = CoreBench().session()
    client = session.client
    client.ask(Ping(5_000), 0)
    client.bench.pass_time(4_900)
    assert not client.host.finished
    client.bench.pass_time(5_000)
    assert client.host.reason is not None
    assert client.host.reason.code == "DMQ5620"
    assert client.take() == []  # nothing says so


def test_pings_keep_a_client_alive() -> None:
    client = CoreBench().connect()
    for _ in range(5):
        client.ask(Ping(3_000), 0)
        client.bench.pass_time(2_500)
    assert not client.host.finished


def test_a_ttl_of_minus_one_is_for_ever_and_the_override_counts_more() -> None:  # TTL-2
    client = CoreBench().connect()
    client.ask(Ping(-1), 0)
    client.bench.pass_time(600_000)
    assert not client.host.finished
    other = CoreBench(ttl_override_ms=4_000).connect()
    other.ask(Ping(-1), 0)
    other.bench.pass_time(9_000)
    assert other.host.finished


def test_a_broker_that_stops_says_so() -> None:
    session = CoreBench().session()
    session.client.machine.fail(PeerError("DMQ6008", "the broker is stopping"))
    session.client.write()
    (packet,) = session.client.take()
    assert isinstance(packet, DisconnectV3)
    assert (packet.channel, packet.reason, packet.target_connector) == (0, 4, None)


def test_an_older_client_gets_the_older_disconnect() -> None:
    session = CoreBench().session(130)
    session.client.machine.fail(PeerError("DMQ6008", "the broker is stopping"))
    session.client.write()
    (packet,) = session.client.take()
    assert isinstance(packet, Disconnect)
    assert packet.code == 124


def test_a_malformed_frame_ends_the_connection_and_its_sessions_without_a_word() -> None:
    session = CoreBench().session()
    session.client.feed_raw(b"\0\0\0\x09\x63" + bytes(8))
    assert session.client.host.reason is not None
    assert session.client.host.reason.code == "DMQ5603"
    assert session.client.take() == []


def test_there_are_no_more_sessions_than_a_connection_may_have() -> None:
    client = CoreBench(acceptor=replace(ACCEPTOR, max_subscriptions=2)).connect()
    client.open()
    client.open()
    assert code_of(client.ask(client.request(), 1)) == "SESSION_CREATION_REJECTED DMQ5623"


def test_a_client_id_is_that_of_one_session() -> None:
    bench = CoreBench()
    first = bench.session()
    packet = UniqueAddMetadata()
    packet.key = "jms-client-id"
    packet.value = "anna"
    packet.requires_response = True
    first.ok(packet)
    second = bench.session()
    assert second.refused(packet) == "DUPLICATE_METADATA DMQ5630"
    first.client.leave()
    second.ok(packet)


def test_metadata_is_answered_where_it_is_asked_for() -> None:
    session = CoreBench().session()
    packet = AddMetadataV2()
    packet.key = "jms-session"
    session.tell(packet)
    assert session.take() == []
    packet.requires_response = True
    session.ok(packet)


def test_metadata_is_bounded() -> None:
    session = CoreBench().session()
    packet = AddMetadataV2()
    packet.requires_response = True
    packet.key = "k"
    packet.value = "x" * 2_000
    assert session.refused(packet) == "ILLEGAL_STATE DMQ5638"
    packet.value = "x"
    for number in range(100):
        packet.key = str(number)
        session.ok(packet)
    packet.key = "one more"
    assert session.refused(packet) == "ILLEGAL_STATE DMQ5631"


def test_a_router_sends_a_client_elsewhere() -> None:
    bench = CoreBench()
    bench.services.logins = door = Door(redirect("10.1.1.1", 61_617, tls=True))
    client = bench.connect()
    topology = SubscribeTopologyV2()
    topology.client_version = 136
    client.ask(topology, 0)
    client.tell(client.request(client_id="anna"), 1)
    told, refused = client.take()
    assert isinstance(told, DisconnectV3)
    assert told.reason == 0
    assert told.target_connector is not None
    params = {name: typed.value for name, typed in told.target_connector.params.items()}
    assert params == {"host": "10.1.1.1", "port": 61_617, "sslEnabled": True}
    assert code_of(refused) == "ROUTING_EXCEPTION DMQ5629"
    assert door.asked[0].client_id == "anna"


def test_a_login_that_is_refused_is_told() -> None:
    bench = CoreBench()
    bench.services.logins = Door(refuse("DMQ9999", "not today"))
    client = bench.connect()
    assert code_of(client.ask(client.request(), 1)) == "INTERNAL_ERROR DMQ9999"
    bench.services.logins = Door(turn_away("DMQ9999", "not here"))
    assert code_of(client.ask(client.request(), 1)) == "ROUTING_EXCEPTION DMQ5629"


@pytest.mark.parametrize("how", ["lost", "ended", "closed"])
def test_nothing_of_a_session_that_is_over_waits_for_the_garbage_collector(how: str) -> None:
    bench = CoreBench()
    kinds = (SessionMachine, CoreConnection, CoreSession, CoreConsumer)
    gc.disable()
    try:
        session = bench.session(auto_commit_sends=False)
        session.ok(session.queue("orders"))
        session.send("orders", "a")
        session.consumer("orders")
        session.start()
        assert {type(one) for one in gc.get_objects() if type(one) in kinds} == set(kinds)
        if how == "closed":
            session.close()
            assert [one for one in gc.get_objects() if type(one) in (CoreSession, CoreConsumer)] == []
        if how == "ended":
            session.client.session.end(None)
        session.client.session.connection_lost()
        bench.clients.clear()
        del session
        assert [type(one).__name__ for one in gc.get_objects() if type(one) in kinds] == []
    finally:
        gc.enable()
