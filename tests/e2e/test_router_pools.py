"""Connection routers with a static pool: clients are sent to real brokers, which are asked how they are."""

# ROUTE-1, ROUTE-3, ROUTE-4, ROUTE-5, ROUTE-7

import contextlib
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import stomp

from delosmq.client import connect
from delosmq.config.broker_xml import load_broker_xml
from delosmq.model.message import MULTICAST
from delosmq.model.settings import AcceptorSettings, BrokerSettings, JournalSettings, QueueSettings
from delosmq.sessions.client_errors import ClientError
from delosmq.storage.memory import MemoryStore
from delosmq.testing.processes.free_port import free_port
from tests.e2e.conftest import SETTINGS
from tests.e2e.support import ADMIN, HOST, Inbox, RunningBroker
from tests.patience import PATIENCE_S

BROKER_XML = """
<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
<acceptors><acceptor name="artemis">tcp://127.0.0.1:61616?router=r</acceptor></acceptors>
<connectors>{connectors}</connectors>
<connection-routers><connection-router name="r"><key-type>CLIENT_ID</key-type>{router}
<pool><username>{user}</username><password>{password}</password><check-period>100</check-period>{pool}
<static-connectors>{refs}</static-connectors></pool></connection-router></connection-routers>
<security-settings><security-setting match="#"/></security-settings>
</core></configuration>
"""
FIRST, HASH = '<policy name="FIRST_ELEMENT"/>', '<policy name="CONSISTENT_HASH"/>'
ROUND, LEAST = '<policy name="ROUND_ROBIN"/>', '<policy name="LEAST_CONNECTIONS"/>'
PLAIN: BrokerSettings = replace(
    SETTINGS, acceptors=(AcceptorSettings("artemis", HOST, 0, ("STOMP", "OPENWIRE")),), journal=JournalSettings()
)


@contextmanager
def targets(count: int) -> Iterator[list[RunningBroker]]:
    """So many brokers without routers."""
    with ExitStack() as stack:
        yield [stack.enter_context(RunningBroker(PLAIN, MemoryStore)) for _ in range(count)]


@contextmanager
def routed(
    directory: Path,
    ports: Sequence[int],
    router: str,
    pool: str = "",
    *,
    password: str = ADMIN.password,
    port: int = 0,
    plain: BrokerSettings = PLAIN,
) -> Iterator[RunningBroker]:
    """A broker that routes to those ports."""
    names = [f"t{number}" for number in range(len(ports))]
    path = directory / "broker.xml"
    path.write_text(
        BROKER_XML.format(
            connectors="".join(
                f'<connector name="{name}">tcp://{HOST}:{port}</connector>'
                for name, port in zip(names, ports, strict=True)
            ),
            router=router,
            user=ADMIN.name,
            password=password,
            pool=pool,
            refs="".join(f"<connector-ref>{name}</connector-ref>" for name in names),
        )
    )
    loaded = load_broker_xml(path, properties={}, memory_bytes=1024**3).settings
    acceptor = replace(loaded.acceptors[0], port=port)
    settings = replace(plain, acceptors=(acceptor,), connection_routers=loaded.connection_routers)
    with RunningBroker(settings, MemoryStore) as broker:
        yield broker


def ready(broker: RunningBroker, count: int) -> None:
    """Waits until so many targets are ready."""
    assert broker.composed is not None
    pool = broker.composed.connection_routers.by_name["r"].pool
    assert pool is not None
    end = time.monotonic() + PATIENCE_S
    while len(pool.ready_targets()) != count:
        assert time.monotonic() < end, [(one.name, one.trouble) for one in pool.targets]


def ask(port: int, client_id: str) -> str:
    """Where stomp.py is sent: host:port; "" when it is served, else what it is told."""
    inbox = Inbox()
    connection = stomp.Connection12([(HOST, port)], reconnect_attempts_max=1)
    connection.set_listener("inbox", inbox)
    connection.connect(ADMIN.name, ADMIN.password, headers={"client-id": client_id})
    inbox.wait(lambda inbox: bool(inbox.connected or inbox.errors))
    connection.transport.disconnect_socket()
    inbox.wait(lambda inbox: inbox.closed)
    if not inbox.errors:
        return ""
    headers = inbox.errors[0].headers
    return str(headers.get("redirect-to", headers["message"]))


def place(broker: RunningBroker) -> str:
    return f"{HOST}:{broker.port}"


def test_stomp_clients_follow_redirect_to_and_a_key_stays_with_its_broker(tmp_path: Path) -> None:
    with targets(2) as brokers, routed(tmp_path, [one.port for one in brokers], HASH) as router:
        ready(router, 2)
        sent_to = {key: ask(router.port, key) for key in ("a", "b", "c", "d", "e", "f")}
        assert set(sent_to.values()) <= {place(one) for one in brokers}
        assert {key: ask(router.port, key) for key in sent_to} == sent_to
        for where in sent_to.values():
            assert ask(int(where.rpartition(":")[2]), "any") == ""


def test_an_openwire_client_with_failover_goes_where_it_is_sent(tmp_path: Path) -> None:
    with targets(1) as (target,), routed(tmp_path, [target.port], FIRST) as router:
        ready(router, 1)
        url = f"failover:(tcp://{HOST}:{router.port})?randomize=false"
        with connect(url, user=ADMIN.name, password=ADMIN.password, client_id="me") as connection:
            connection.send("orders", "tea")
            assert target.composed is not None
            assert target.composed.broker.queues["orders"].message_count == 1
        assert router.composed is not None
        assert "orders" not in router.composed.broker.queues


def test_the_local_target_is_one_of_them_and_serves_by_itself(tmp_path: Path) -> None:
    local = "<local-target-enabled>true</local-target-enabled>"
    with targets(1) as (target,), routed(tmp_path, [target.port], ROUND, local) as router:
        ready(router, 2)
        assert Counter(ask(router.port, key) for key in "abcd") == {"": 2, place(target): 2}


def test_least_connections_spread_what_comes_within_one_period(tmp_path: Path) -> None:
    with targets(2) as brokers, routed(tmp_path, [one.port for one in brokers], LEAST) as router:
        ready(router, 2)
        assert set(Counter(ask(router.port, str(number)) for number in range(6))) == {place(one) for one in brokers}


def test_a_cache_keeps_a_key_where_it_was_though_the_policy_goes_round(tmp_path: Path) -> None:
    with targets(2) as brokers, routed(tmp_path, [one.port for one in brokers], ROUND + "<cache/>") as router:
        ready(router, 2)
        assert len({ask(router.port, "a") for _ in range(4)}) == 1
        assert len({ask(router.port, str(number)) for number in range(4)}) == 2


def test_a_broker_that_stops_gets_no_clients_and_its_keys_go_to_the_next(tmp_path: Path) -> None:
    with targets(1) as (stays,):
        with targets(1) as (goes,), routed(tmp_path, [goes.port, stays.port], FIRST) as router:
            ready(router, 2)
            assert ask(router.port, "a") == place(goes)
            goes.__exit__(None, None, None)
            ready(router, 1)
            assert ask(router.port, "a") == place(stays)


def test_without_a_quorum_clients_are_told_to_try_later(tmp_path: Path) -> None:
    pool = "<quorum-size>2</quorum-size><quorum-timeout>300</quorum-timeout>"
    with socket.create_server((HOST, 0)) as closed:
        port = closed.getsockname()[1]
    with targets(1) as (target,), routed(tmp_path, [target.port, port], FIRST, pool) as router:
        ready(router, 1)
        assert "DMQ5511" in ask(router.port, "a")


def test_a_wrong_password_makes_no_target_ready_and_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pool = "<quorum-timeout>0</quorum-timeout>"
    with targets(1) as (target,), routed(tmp_path, [target.port], FIRST, pool, password="wrong-password") as router:
        assert "DMQ5511" in ask(router.port, "a")
        trouble = until_told(router)
    assert "DMQ5106" in trouble
    assert "wrong-password" not in trouble + caplog.text


def until_told(router: RunningBroker) -> str:
    """Why the only target is not ready, once it was asked."""
    assert router.composed is not None
    pool = router.composed.connection_routers.by_name["r"].pool
    assert pool is not None
    end = time.monotonic() + PATIENCE_S
    while pool.targets[0].trouble == "not asked yet":
        assert time.monotonic() < end
    return pool.targets[0].trouble


NONSENSE = [
    b"",
    b"HTTP/1.1 400 Bad Request\r\n\r\n",
    b"\0" * 100,
    b"CONNECTED\nversion:1.2\n\n\0RECEIPT\nreceipt-id:0\n\n\0MESSAGE\nsubscription:0\nmessage-id:1\ndestination:d\n\n[\0",
    b"CONNECTED\nversion:1.2\n\n\0RECEIPT\nreceipt-id:0\n\n\0MESSAGE\nsubscription:0\nmessage-id:1\ndestination:d\n\n"
    + b"[" * 60_000
    + b"\0",
    b"CONNECTED\nversion:1.2\n\n\0RECEIPT\nreceipt-id:0\n\n\0MESSAGE\nsubscription:0\nmessage-id:1\ndestination:d\n"
    b"_AMQ_OperationSucceeded:true\n\n[7]\0",
    b"CONNECTED\nversion:1.2\n\n\0RECEIPT\nreceipt-id:0\ncontent-length:99999999\n\nx",
]


@pytest.mark.parametrize("nonsense", NONSENSE, ids=range(len(NONSENSE)))
def test_a_target_that_answers_nonsense_is_not_ready(tmp_path: Path, nonsense: bytes) -> None:
    with socket.create_server((HOST, 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    peer, _ = server.accept()
                    with peer:
                        peer.recv(65_536)
                        peer.sendall(nonsense)
                        peer.shutdown(socket.SHUT_WR)
                        while peer.recv(65_536):
                            pass

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        pool = "<quorum-timeout>0</quorum-timeout>"
        with routed(tmp_path, [server.getsockname()[1]], FIRST, pool) as router:
            assert until_told(router) != ""
            assert "DMQ5511" in ask(router.port, "a")
        server.shutdown(socket.SHUT_RDWR)
    thread.join(PATIENCE_S)


@contextmanager
def circle(directory: Path, size: int = 2) -> Iterator[list[RunningBroker]]:
    """Brokers each of which sends all clients to the next."""
    ports = [free_port() for _ in range(size)]
    with ExitStack() as stack:
        found = [
            stack.enter_context(routed(directory, [ports[(number + 1) % size]], FIRST, port=ports[number]))
            for number in range(size)
        ]
        for one in found:
            ready(one, 1)
        yield found


def follow(broker: RunningBroker, client_id: str) -> str:
    """What stomp.py is told in the end that goes wherever it is sent."""
    port, end = broker.port, time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        told = ask(port, client_id)
        host, _, text = told.rpartition(":")
        if host != HOST:
            return told
        port = int(text)
    return "goes round and round"


@pytest.mark.parametrize(("client_id", "size"), [("me", 2), ("", 2), ("me", 3)])
def test_a_client_of_stomp_py_that_goes_in_a_circle_is_seen_told_and_stopped(
    tmp_path: Path, client_id: str, size: int, caplog: pytest.LogCaptureFixture
) -> None:  # ROUTE-6
    with circle(tmp_path, size) as brokers:
        assert "DMQ5512" in follow(brokers[0], client_id)
        composed = [broker.composed for broker in brokers]
        assert sum(found.connection_routers.by_name["r"].loops for found in composed if found is not None) == 1
    assert "DMQ5514" in caplog.text
    assert "DMQ5518" in caplog.text


def test_a_client_with_failover_that_goes_in_a_circle_is_told_and_stopped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:  # ROUTE-6
    with circle(tmp_path) as (one, _):
        url = f"failover:(tcp://{HOST}:{one.port})?randomize=false&maxReconnectDelay=20"
        with pytest.raises(ClientError, match="DMQ5512"):
            connect(url, user=ADMIN.name, password=ADMIN.password, client_id="me").start()
    assert "DMQ5518" in caplog.text


def test_a_healthy_client_that_connects_for_each_job_is_never_stopped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:  # ROUTE-6
    with targets(1) as (target,), routed(tmp_path, [target.port], FIRST) as router:
        ready(router, 1)
        assert router.composed is not None
        pool = router.composed.connection_routers.by_name["r"].pool
        assert pool is not None
        end = time.monotonic() + PATIENCE_S
        # As long as it takes until the target was asked for the key, and as many again.
        while not pool.targets[0].suspects and time.monotonic() < end:
            assert ask(router.port, "me") == place(target)
        for _ in range(30):
            assert ask(router.port, "me") == place(target)
        assert pool.targets[0].suspects
    assert "DMQ5512" not in caplog.text


def decisions(broker: RunningBroker) -> list[tuple[str, str, str, str]]:
    """What event records tell of connections, so far; waits for the first of them."""
    assert broker.composed is not None
    queue = broker.composed.broker.queues["log"]
    end = time.monotonic() + PATIENCE_S
    while not queue.message_count:
        assert time.monotonic() < end, "nothing is recorded"
    lines = [line for slot in queue.pending.in_order() for line in slot.message.body.splitlines()]
    records = [json.loads(line) for line in lines]
    return [(one["event"], one["user"], one["producer"], one["cause"]) for one in records]


def test_decisions_are_recorded_as_routes_and_redirects(tmp_path: Path) -> None:
    log = QueueSettings("log", "delosmq.events", MULTICAST)
    plain = replace(PLAIN, queues=(*PLAIN.queues, log), delosmq_events=1_000)
    local = "<local-target-enabled>true</local-target-enabled>"
    with targets(1) as (target,), routed(tmp_path, [target.port], ROUND, local, plain=plain) as router:
        ready(router, 2)
        served = {key: ask(router.port, key) == "" for key in "ab"}
        found = decisions(router)
    assert sorted(served.values()) == [False, True]
    expected = [
        ("route", "r: this broker", key) if here else ("redirect", f"r: t0 ({place(target)})", key)
        for key, here in served.items()
    ]
    assert [(event, cause.partition(",")[0], key) for event, _, key, cause in found] == expected
    assert [(user, cause.partition(", ")[2]) for _, user, _, cause in found] == [
        (ADMIN.name, "because the policy chose it")
    ] * 2
