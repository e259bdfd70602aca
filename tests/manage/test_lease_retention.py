"""Lease groups that their readers left are told of before they end and when they do; with a turned clock."""

import base64
import json
import logging
import urllib.request
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from delosmq.model.settings import BrokerSettings, QueueSettings
from delosmq.testing import BrokerFixture

SETTINGS = BrokerSettings(lease_retention_ms=14 * 60_000, queues=(QueueSettings("orders", "orders"),))


def call(broker: BrokerFixture, method: str, path: str, body: dict[str, object] | None = None) -> bytes:
    token = base64.b64encode(f"{broker.user}:{broker.password}".encode()).decode()
    headers = {"Authorization": f"Basic {token}", "Content-Type": "application/json"}
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(broker.http_url + path, content, headers, method=method)
    with urllib.request.urlopen(request) as answer:
        read: bytes = answer.read()
        return read


def opened(broker: BrokerFixture) -> dict[str, Any]:
    wanted = {"queue": "orders", "run": "r", "incarnation": None}
    answer: dict[str, Any] = json.loads(call(broker, "POST", "/api/v1/leases/report/open", wanted))
    return answer


def metrics(broker: BrokerFixture) -> dict[tuple[str, str], float]:
    text = call(broker, "GET", "/metrics").decode()
    return {
        (sample.name, sample.labels.get("group", sample.labels.get("reason", ""))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_group_that_nobody_calls_is_told_of_a_seventh_of_its_retention_before_it_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    with BrokerFixture(http=True, settings=SETTINGS) as broker:
        broker.clock.freeze()
        epoch = opened(broker)["epoch"]
        broker.clock.advance(minutes=11)
        assert "lease group" not in caplog.text
        broker.clock.advance(minutes=2)
        assert caplog.text.count("DMQ6192: lease group 'report' is not called by its reader and ends in") == 1
        assert metrics(broker)["delosmq_lease_group_expires_in_seconds", "report"] == 60
        stat = json.loads(call(broker, "GET", "/api/v1/leases/report/stat"))
        assert (stat["expires_in_ms"], stat["contact_age_ms"]) == (60_000, 13 * 60_000)
        stat = json.loads(call(broker, "POST", "/api/v1/leases/report/touch", {"epoch": epoch}))
        assert (stat["expires_in_ms"], stat["contact_age_ms"]) == (14 * 60_000, 0)
        broker.clock.advance(minutes=16)
        assert caplog.text.count("DMQ6192") == 2
        assert "DMQ6007: lease group 'report' was not heard of for as long as lease-retention says" in caplog.text
        found = metrics(broker)
        assert ("delosmq_lease_group_expires_in_seconds", "report") not in found
        assert found["delosmq_lease_groups_ended_total", "expired"] == 1
        assert found["delosmq_lease_groups_ended_total", "released"] == 0
