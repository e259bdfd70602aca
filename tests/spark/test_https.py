"""Spark's transport and clients at the HTTP interface of a broker that speaks TLS. Needs no Java."""

from collections.abc import Iterator

import pyarrow as pa
import pytest

import delosmq
from delosmq.model.message import ANYCAST
from delosmq.model.settings import AddressDefinition, BrokerSettings, QueueSettings, TlsSettings
from delosmq.spark.errors import AnswerError, LoginRefusedError
from delosmq.spark.lease_client import LeaseClient
from delosmq.spark.options import ConnectionOptions, SourceDestination, parse_options
from delosmq.spark.staging_client import SendDefaults, StagingClient
from tests.certificates import Stores, make_stores

QUEUE = SourceDestination("queue", "orders")
LARGE = 40_000
"""More rows than one part, and megabytes of them."""

SETTINGS = BrokerSettings(
    addresses=(AddressDefinition("orders", frozenset({ANYCAST})),), queues=(QueueSettings("orders", "orders"),)
)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    return make_stores(tmp_path_factory.mktemp("stores"))


@pytest.fixture(scope="module")
def broker(stores: Stores) -> Iterator[delosmq.Broker]:
    """The certificate of its HTTP interface is for 127.0.0.1."""
    with delosmq.Broker(settings=SETTINGS, http_tls=TlsSettings(str(stores.server))) as running:
        yield running


def options_of(broker: delosmq.Broker, **more: str) -> ConnectionOptions:
    login = {"user": broker.user, "password": broker.password, "retryTimeoutMs": "5000", "subscribe": "orders"}
    return parse_options({"servers": broker.http_url, **login, **more}).connection


def ask(broker: delosmq.Broker, **more: str) -> None:
    """Has a client of its own ask for the queue."""
    client = LeaseClient(options_of(broker, **more))
    try:
        client.check_destination("g", QUEUE)
        client.queue("orders")
    finally:
        client.close()


def test_rows_are_staged_and_read(broker: delosmq.Broker, stores: Stores) -> None:
    options = options_of(broker, **{"tls.caFile": str(stores.authority)})
    bodies = [b"%d" % number * 20 for number in range(LARGE)]
    staging = StagingClient(options, SendDefaults("orders", "ANYCAST"))
    parts = staging.stage_rows("app", 1, iter([pa.record_batch({"body": bodies})]))
    assert len(parts) > 1
    assert staging.publish("app", 1, parts)
    staging.close()
    client = LeaseClient(options)
    group = client.open_group("g", QUEUE, None, sleep=lambda pause_s: None)
    found: list[bytes] = []
    number = 0
    while len(found) < LARGE:
        lease = client.lease(group, number, max_rows=30_000, max_bytes=1 << 30, wait_ms=0)
        number = lease.number
        for batch in client.rows("g", number, 0, lease.rows, ("sequence", "body")):
            found += batch.column(1).to_pylist()
    client.ack(group, number)
    client.release(group)
    client.close()
    assert sorted(found) == sorted(bodies)


def test_an_authority_that_is_not_known_is_named_at_once(broker: delosmq.Broker, stores: Stores) -> None:
    for more in ({}, {"tls.caFile": str(stores.stranger)}):
        with pytest.raises(LoginRefusedError, match=f"DMQ8013: the certificate of {broker.http_url} is not trusted"):
            ask(broker, **more)


def test_another_name_than_that_of_the_certificate_is_refused_unless_names_do_not_count(
    broker: delosmq.Broker, stores: Stores
) -> None:
    servers = broker.http_url.replace("127.0.0.1", "localhost")
    ours = {"servers": servers, "tls.caFile": str(stores.authority)}
    with pytest.raises(LoginRefusedError, match=r"DMQ8013: .*localhost"):
        ask(broker, **ours)
    ask(broker, **ours, **{"tls.verifyHostname": "false"})


def test_http_at_the_port_of_https_is_said_so_at_once(broker: delosmq.Broker) -> None:
    with pytest.raises(AnswerError, match=f"DMQ8015: .* speaks TLS: write {broker.http_url} in the option servers"):
        ask(broker, servers=broker.http_url.replace("https:", "http:"))


def test_a_certificate_of_the_reader_is_asked_for(stores: Stores) -> None:
    settings = TlsSettings(str(stores.server), trust_store_path=str(stores.authority), need_client_auth=True)
    ours = {"tls.caFile": str(stores.authority)}
    with delosmq.Broker(settings=SETTINGS, http_tls=settings) as broker:
        ask(broker, **ours, **{"tls.certFile": str(stores.client)})
        for more in ({}, {"tls.certFile": str(stores.stranger)}):
            with pytest.raises(LoginRefusedError, match=r"DMQ8016: .*set tls.certFile"):
                ask(broker, **ours, **more)
