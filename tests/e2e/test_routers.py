"""Connection routers without a pool: what stays on this broker, with real clients over TCP and TLS."""

# ROUTE-1, ROUTE-2, ROUTE-6, ROUTE-7

import contextlib
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import stomp

from delosmq.client import ClientError, connect
from delosmq.config.broker_xml import load_broker_xml
from delosmq.model.settings import JournalSettings
from delosmq.routers.decision import Outcome
from delosmq.storage.memory import MemoryStore
from tests.certificates import make_stores
from tests.e2e.conftest import SETTINGS
from tests.e2e.support import ADMIN, GUEST, HOST, Inbox, RunningBroker, User
from tests.patience import PATIENCE_S

BROKER_XML = """
<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
<acceptors><acceptor name="artemis">tcp://127.0.0.1:61616?router=partition{options}</acceptor></acceptors>
<connection-routers><connection-router name="partition">{router}</connection-router></connection-routers>
<security-settings><security-setting match="#"/></security-settings>
</core></configuration>
"""
CLIENT_ID = "<key-type>CLIENT_ID</key-type><key-filter>^.{3}</key-filter><local-target-filter>FOO</local-target-filter>"
# AAA is in shard 0 and BBB in shard 1: the hashes of Artemis.
SHARD = (
    "<key-type>CLIENT_ID</key-type><local-target-filter>NULL|0</local-target-filter>"
    '<policy name="CONSISTENT_HASH_MODULO"><property key="MODULO" value="2"/></policy>'
)
USER_NAME = "<key-type>USER_NAME</key-type><local-target-filter>admin</local-target-filter>"
ROLE_NAME = "<key-type>ROLE_NAME</key-type><local-target-filter>amq</local-target-filter>"


@contextmanager
def routed(directory: Path, router: str, options: str = "") -> Iterator[RunningBroker]:
    """A broker whose only acceptor has that router."""
    path = directory / "broker.xml"
    path.write_text(BROKER_XML.format(router=router, options=options))
    loaded = load_broker_xml(path, properties={}, memory_bytes=1024**3).settings
    (acceptor,) = loaded.acceptors
    settings = replace(
        SETTINGS,
        acceptors=(replace(acceptor, port=0),),
        connection_routers=loaded.connection_routers,
        journal=JournalSettings(),
    )
    with RunningBroker(settings, MemoryStore) as broker:
        yield broker


def by_stomp(broker: RunningBroker, user: User, client_id: str) -> str:
    """ "" when stomp.py gets a session, else what it is told."""
    inbox = Inbox()
    connection = stomp.Connection12([(HOST, broker.port)], reconnect_attempts_max=1)
    connection.set_listener("inbox", inbox)
    connection.connect(user.name, user.password, headers={"client-id": client_id} if client_id else {})
    inbox.wait(lambda inbox: bool(inbox.connected or inbox.errors))
    connection.transport.disconnect_socket()
    inbox.wait(lambda inbox: inbox.closed)
    return inbox.errors[0].headers["message"] if inbox.errors else ""


def by_openwire(broker: RunningBroker, user: User, client_id: str) -> str:
    """The same of the Python client."""
    url = f"tcp://{HOST}:{broker.port}"
    try:
        with connect(url, user=user.name, password=user.password, client_id=client_id):
            return ""
    except ClientError as refusal:
        return str(refusal)


AWAY: dict[object, str] = {by_stomp: "DMQ5510", by_openwire: "the broker has closed it"}
"""What clients without `failover:` are told. Over OpenWire the reason goes to the exception listener, as in Java."""
EACH = pytest.mark.parametrize("told", [by_stomp, by_openwire])
Told = Callable[[RunningBroker, User, str], str]


@EACH
@pytest.mark.parametrize(
    ("router", "ours", "theirs"),
    [
        pytest.param(CLIENT_ID, (ADMIN, "FOO_1"), (ADMIN, "BAR_1"), id="client id"),
        pytest.param(SHARD, (ADMIN, "AAA"), (ADMIN, "BBB"), id="shard"),
        pytest.param(USER_NAME, (ADMIN, "a"), (GUEST, "b"), id="user"),
        pytest.param(ROLE_NAME, (ADMIN, "a"), (GUEST, "b"), id="role"),
    ],
)
def test_a_partition_takes_its_own_and_sends_others_away(
    tmp_path: Path, told: Told, router: str, ours: tuple[User, str], theirs: tuple[User, str]
) -> None:
    with routed(tmp_path, router) as broker:
        assert told(broker, *ours) == ""
        assert AWAY[told] in told(broker, *theirs)
        assert told(broker, *ours) == ""


@EACH
@pytest.mark.parametrize(("local", "served"), [("127[.]0[.]0[.]1", True), ("10[.].*", False)])
def test_a_partition_of_addresses(tmp_path: Path, told: Told, local: str, served: bool) -> None:
    with routed(tmp_path, f"<local-target-filter>{local}</local-target-filter>") as broker:
        assert (told(broker, ADMIN, "") == "") is served


@EACH
def test_a_wrong_password_is_told_before_any_router_is_asked(tmp_path: Path, told: Told) -> None:
    with routed(tmp_path, CLIENT_ID) as broker:
        said = told(broker, replace(ADMIN, password="wrong"), "BAR_1")
    assert said != ""
    assert AWAY[told] not in said


def test_stomp_without_a_client_id_has_no_key(tmp_path: Path) -> None:
    with routed(tmp_path, SHARD) as broker:
        assert by_stomp(broker, ADMIN, "") == ""
    with routed(tmp_path, CLIENT_ID) as broker:
        assert "'NULL'" in by_stomp(broker, ADMIN, "")


def test_what_was_sent_to_one_partition_is_there_for_its_clients(tmp_path: Path) -> None:
    with routed(tmp_path, CLIENT_ID) as broker:
        url = f"tcp://{HOST}:{broker.port}"
        with connect(url, user=ADMIN.name, password=ADMIN.password, client_id="FOO_PRODUCER") as connection:
            connection.send("orders", "tea")
        with connect(url, user=ADMIN.name, password=ADMIN.password, client_id="FOO_CONSUMER") as connection:
            with connection.create_session() as session:
                message = session.create_consumer("orders").receive(PATIENCE_S)
                assert message is not None


def test_the_http_interface_is_not_routed(tmp_path: Path) -> None:
    with routed(tmp_path, CLIENT_ID) as broker:
        assert broker.get("/api/v1/broker")[0] == 200


def stomp_over_tls(broker: RunningBroker, context: ssl.SSLContext, server_name: str | None) -> bytes:
    """The answer to a CONNECT on a connection that asks for that server name."""
    with (
        socket.create_connection((HOST, broker.port), PATIENCE_S) as plain,
        context.wrap_socket(plain, server_hostname=server_name) as secure,
    ):
        login = f"login:{ADMIN.name}\npasscode:{ADMIN.password}"
        secure.sendall(f"CONNECT\naccept-version:1.2\nhost:h\n{login}\n\n\0".encode())
        answer = b""
        with contextlib.suppress(ConnectionError):
            while chunk := secure.recv(65_536):
                answer += chunk
                if b"\0" in answer:
                    break
    return answer


def test_the_server_name_of_a_tls_handshake_is_a_key(tmp_path: Path) -> None:
    stores = make_stores(tmp_path)
    router = "<key-type>SNI_HOST</key-type><local-target-filter>eu[.]example[.]com</local-target-filter>"
    context = stores.client_context()
    context.check_hostname = False
    with routed(tmp_path, router, ";sslEnabled=true;keyStorePath=server.pem") as broker:
        assert stomp_over_tls(broker, context, "eu.example.com").startswith(b"CONNECTED")
        assert b"'us.example.com'" in stomp_over_tls(broker, context, "us.example.com")
        assert b"'NULL'" in stomp_over_tls(broker, context, None)


def test_the_server_name_is_a_key_over_openwire_as_well(tmp_path: Path) -> None:
    stores = make_stores(tmp_path)
    context = stores.client_context()
    context.check_hostname = False
    router = "<key-type>SNI_HOST</key-type><local-target-filter>localhost</local-target-filter>"
    with routed(tmp_path, router, ";sslEnabled=true;keyStorePath=server.pem") as broker:
        where, address = f"ssl://localhost:{broker.port}", f"ssl://{HOST}:{broker.port}"
        with connect(where, ssl_context=context, user=ADMIN.name, password=ADMIN.password) as connection:
            connection.send("orders", "tea")
        # An address is no server name (RFC 6066), so that there is no key.
        with pytest.raises(ClientError):
            connect(address, ssl_context=context, user=ADMIN.name, password=ADMIN.password)
        assert broker.composed is not None
        counts = broker.composed.connection_routers.by_name["partition"].counts
        assert (counts[Outcome.LOCAL], counts[Outcome.USE_ANOTHER]) == (1, 1)
