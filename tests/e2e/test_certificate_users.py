"""Certificates of TLS clients that name a user, over STOMP and OpenWire with real sockets."""

# BROKER-4, ROUTE-1

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import trustme

from delosmq.config.broker_xml import load_broker_xml
from delosmq.model.declared.java_regex import JavaRegex
from delosmq.model.settings import JournalSettings
from delosmq.routers.decision import Outcome
from delosmq.security.certificates import CertificateUsers
from delosmq.storage.memory import MemoryStore
from tests.certificates import write_identity
from tests.e2e.conftest import SETTINGS
from tests.e2e.openwire_peer import OpenWirePeer
from tests.e2e.support import ADMIN, HOST, RunningBroker
from tests.patience import PATIENCE_S

BROKER_XML = """
<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
<acceptors><acceptor name="secure">tcp://127.0.0.1:61617?sslEnabled=true;keyStorePath=server.pem;\
trustStorePath=authority.pem;{auth}ClientAuth=true{options}</acceptor></acceptors>
<connection-routers><connection-router name="users"><key-type>USER_NAME</key-type>
<local-target-filter>alice</local-target-filter></connection-router></connection-routers>
<security-settings><security-setting match="#"/></security-settings>
</core></configuration>
"""
ALICE = "CN=alice, OU=Tea, O=Example"
USERS = CertificateUsers(
    {ALICE: "alice", "CN=guest, OU=Tea, O=Example": "visitor"},
    ((JavaRegex("CN=sensor-[0-9]+, OU=Tea, O=Example"), "sensors"),),
    {"alice": frozenset({"amq"}), "sensors": frozenset({"amq"})},
)
Answer = Callable[[RunningBroker, ssl.SSLContext], str]


@dataclass(frozen=True)
class Clients:
    """Certificates of one authority, as files.

    Attributes:
        directory: with ``server.pem`` and ``authority.pem``.
    """

    directory: Path
    authority: trustme.CA

    def context(self, common_name: str, authority: trustme.CA | None = None) -> ssl.SSLContext:
        """Of a client with that name; "" for one without a certificate."""
        context = ssl.create_default_context(cafile=self.directory / "authority.pem")
        if common_name:
            issued = (authority or self.authority).issue_cert(
                "client@test", common_name=common_name, organization_name="Example", organization_unit_name="Tea"
            )
            path = self.directory / "client.pem"
            path.write_bytes(issued.private_key_and_cert_chain_pem.bytes())
            context.load_cert_chain(path)
        return context


@pytest.fixture
def clients(tmp_path: Path) -> Clients:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    write_identity(authority, tmp_path / "server.pem")
    return Clients(tmp_path, authority)


@contextmanager
def serving(
    clients: Clients, *, auth: str = "need", options: str = "", users: CertificateUsers | None = USERS
) -> Iterator[RunningBroker]:
    path = clients.directory / "broker.xml"
    path.write_text(BROKER_XML.format(auth=auth, options=options))
    loaded = load_broker_xml(path, properties={}, memory_bytes=1024**3).settings
    settings = replace(
        SETTINGS,
        acceptors=(replace(loaded.acceptors[0], port=0),),
        connection_routers=loaded.connection_routers,
        journal=JournalSettings(),
    )
    with RunningBroker(settings, MemoryStore, certificates=users) as broker:
        yield broker


@contextmanager
def secured(broker: RunningBroker, context: ssl.SSLContext) -> Iterator[ssl.SSLSocket]:
    with (
        socket.create_connection((HOST, broker.port), PATIENCE_S) as plain,
        context.wrap_socket(plain, server_hostname=HOST) as secure,
    ):
        yield secure


def stomp(broker: RunningBroker, context: ssl.SSLContext, login: str = "", more: str = "") -> str:
    """What a CONNECT and ``more`` are answered with, to the end."""
    with secured(broker, context) as secure:
        secure.sendall(f"CONNECT\naccept-version:1.2\nhost:h\n{login}\n\0{more}DISCONNECT\nreceipt:end\n\n\0".encode())
        answer = b""
        while chunk := secure.recv(65_536):
            answer += chunk
    return answer.decode()


def by_stomp(broker: RunningBroker, context: ssl.SSLContext) -> str:
    """ "" for a client that is served, else why it is not; it names neither user nor password."""
    answer = stomp(broker, context)
    return "" if answer.startswith("CONNECTED") else answer


def by_openwire(broker: RunningBroker, context: ssl.SSLContext) -> str:
    """The same, of a client with a user and password that are wrong."""
    with secured(broker, context) as secure:
        try:
            OpenWirePeer(secure, "nobody", "wrong")
        except AssertionError as refusal:
            return str(refusal)
    return ""


EACH = pytest.mark.parametrize("told", [by_stomp, by_openwire])


@EACH
@pytest.mark.parametrize("name", ["alice", "sensor-7"])
def test_a_certificate_is_all_that_its_user_needs(clients: Clients, told: Answer, name: str) -> None:
    with serving(clients) as broker:
        assert told(broker, clients.context(name)) == ""


@EACH
@pytest.mark.parametrize("name", ["bob", "sensor-x", "alice, O=Example"])
def test_a_certificate_of_no_user_is_refused(clients: Clients, told: Answer, name: str) -> None:
    with serving(clients) as broker:
        assert "DMQ5305" in told(broker, clients.context(name))


def test_nor_does_a_right_password_help_it(clients: Clients) -> None:
    with serving(clients) as broker:
        login = f"login:{ADMIN.name}\npasscode:{ADMIN.password}\n"
        assert "DMQ5305" in stomp(broker, clients.context("bob"), login)


def test_a_certificate_of_another_authority_names_no_user(clients: Clients) -> None:
    with serving(clients) as broker, pytest.raises((ssl.SSLError, ConnectionError)):
        stomp(broker, clients.context("alice", trustme.CA()))


def test_where_certificates_are_wanted_only_others_give_a_password(clients: Clients) -> None:
    with serving(clients, auth="want") as broker:
        assert by_stomp(broker, clients.context("alice")) == ""
        assert "login" in by_stomp(broker, clients.context(""))
        login = f"login:{ADMIN.name}\npasscode:{ADMIN.password}\n"
        assert stomp(broker, clients.context(""), login).startswith("CONNECTED")


def test_without_the_file_a_password_is_needed_as_before(clients: Clients) -> None:
    with serving(clients, users=None) as broker:
        assert by_stomp(broker, clients.context("alice")) != ""
        login = f"login:{ADMIN.name}\npasscode:{ADMIN.password}\n"
        assert stomp(broker, clients.context("alice"), login).startswith("CONNECTED")


def test_the_roles_of_the_user_decide_what_it_may(clients: Clients) -> None:
    send = "SEND\ndestination:/queue/work\nreceipt:sent\n\nx\0"
    with serving(clients, options=";anycastPrefix=/queue/") as broker:
        assert "receipt-id:sent" in stomp(broker, clients.context("alice"), more=send)
        refused = stomp(broker, clients.context("guest"), more=send)
        assert "user 'visitor' lacks the permission" in refused
        # What the client calls itself counts for nothing.
        login = f"login:{ADMIN.name}\npasscode:{ADMIN.password}\n"
        assert "user 'visitor' lacks the permission" in stomp(broker, clients.context("guest"), login, send)


@EACH
def test_its_user_is_the_key_of_a_router(clients: Clients, told: Answer) -> None:
    with serving(clients, options=";router=users") as broker:
        assert told(broker, clients.context("alice")) == ""
        assert told(broker, clients.context("sensor-1")) != ""
        assert broker.composed is not None
        counts = broker.composed.connection_routers.by_name["users"].counts
        assert (counts[Outcome.LOCAL], counts[Outcome.USE_ANOTHER]) == (1, 1)
