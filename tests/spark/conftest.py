"""A fresh broker for each test."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from delosmq.spark.lease_client import LeaseClient
from delosmq.spark.options import parse_options
from tests.spark.brokers import BROKERS, BrokerUnderTest
from tests.spark.fake_broker import FakeBroker


@pytest.fixture
def fake() -> Iterator[FakeBroker]:
    broker = FakeBroker()
    yield broker
    broker.stop()


@pytest.fixture(params=sorted(BROKERS))
def any_broker(request: pytest.FixtureRequest) -> Iterator[BrokerUnderTest]:
    broker = BROKERS[request.param]()
    yield broker
    broker.stop()


@pytest.fixture
def client_of() -> Iterator[Any]:
    """Makes clients of a broker, one for each reader of a test."""
    clients = []

    def make(broker: BrokerUnderTest, **options: str) -> LeaseClient:
        raw = {"servers": broker.servers, "user": broker.user, "password": broker.password, "subscribe": "any"}
        client = LeaseClient(parse_options({**raw, "retryTimeoutMs": "5000", **options}).connection)
        clients.append(client)
        return client

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def cache(tmp_path: Path) -> dict[str, str]:
    """An environment without Java but with a place for ours."""
    return {"HOME": str(tmp_path), "PATH": "/nonexistent"}
