"""OpenWire on an acceptor with TLS, as broker.xml describes it."""

# BROKER-4

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from delosmq.config.broker_xml import load_broker_xml
from delosmq.model.settings import JournalSettings
from delosmq.storage.memory import MemoryStore
from delosmq.wire.openwire.negotiation import WireFormatInfo, encode_wire_format_info
from delosmq.wire.openwire.structures import destination_of
from tests.certificates import Stores, make_stores
from tests.e2e.conftest import SETTINGS
from tests.e2e.openwire_peer import OpenWirePeer
from tests.e2e.support import ADMIN, HOST, RunningBroker
from tests.patience import PATIENCE_S

# The last: the broker closes before it says anything.
REFUSED = (ssl.SSLError, ConnectionError, AssertionError)
WORK = destination_of("queue://work")
BROKER_XML = """
<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">
<acceptors>
<acceptor name="openwire">tcp://127.0.0.1:61617?sslEnabled=true;keyStorePath=server.pem;trustStorePath=authority.pem;\
protocols=OPENWIRE{options}</acceptor>
</acceptors>
<security-settings><security-setting match="#"/></security-settings>
</core></configuration>
"""


@pytest.fixture
def stores(tmp_path: Path) -> Stores:
    """Beside broker.xml, where relative paths begin."""
    return make_stores(tmp_path)


@contextmanager
def serving(stores: Stores, options: str = "") -> Iterator[RunningBroker]:
    """A broker with that acceptor, on a free port."""
    path = stores.directory / "broker.xml"
    path.write_text(BROKER_XML.replace("\\\n", "").format(options=options))
    (acceptor,) = load_broker_xml(path, properties={}, memory_bytes=1024**3).settings.acceptors
    settings = replace(SETTINGS, acceptors=(replace(acceptor, port=0),), journal=JournalSettings())
    with RunningBroker(settings, MemoryStore) as broker:
        yield broker


def connect(broker: RunningBroker, context: ssl.SSLContext, password: str = ADMIN.password) -> OpenWirePeer:
    """A peer that has logged in."""
    plain = socket.create_connection((HOST, broker.port), PATIENCE_S)
    try:
        secure = context.wrap_socket(plain, server_hostname=HOST)
    except BaseException:
        plain.close()
        raise
    try:
        return OpenWirePeer(secure, ADMIN.name, password)
    except BaseException:
        secure.close()
        raise


def is_served(peer: OpenWirePeer) -> None:
    """Gets what it sends."""
    peer.consume(WORK)
    peer.send(WORK, b"x")
    assert peer.receive().content == b"\0\0\0\1x"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_messages_of_every_size_go_both_ways(stores: Stores, version: ssl.TLSVersion) -> None:
    context = stores.client_context()
    context.minimum_version = context.maximum_version = version
    with serving(stores) as broker, connect(broker, context) as peer:
        peer.consume(WORK)
        for size in (0, 1, 16_384, 300_000, 5_000_000):
            peer.send(WORK, bytes(size))
            content = peer.receive().content
            assert content is not None
            assert len(content) == size + 4


def test_a_client_without_tls_gets_no_word(stores: Stores) -> None:
    with serving(stores) as broker, socket.create_connection((HOST, broker.port), PATIENCE_S) as plain:
        plain.sendall(encode_wire_format_info(WireFormatInfo()))
        assert plain.recv(65_536) == b""


def test_a_client_certificate_that_is_needed(stores: Stores) -> None:
    with serving(stores, ";needClientAuth=true") as broker:
        with connect(broker, stores.client_context(stores.client)) as peer:
            for identity in (None, stores.stranger):
                with pytest.raises(REFUSED):
                    connect(broker, stores.client_context(identity))
            is_served(peer)


def test_a_client_certificate_that_is_wanted_may_be_missing_but_not_be_wrong(stores: Stores) -> None:
    with serving(stores, ";wantClientAuth=true") as broker:
        for identity in (None, stores.client):
            with connect(broker, stores.client_context(identity)) as peer:
                is_served(peer)
        with pytest.raises(REFUSED):
            connect(broker, stores.client_context(stores.stranger))


def test_a_certificate_is_no_login(stores: Stores) -> None:
    with serving(stores, ";needClientAuth=true") as broker, pytest.raises(AssertionError, match="DMQ5236"):
        connect(broker, stores.client_context(stores.client), "wrong")
