"""`delosmq lease`: what operators see of readers, and how they end one."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

import delosmq
from delosmq.cli import address_commands
from delosmq.cli.http_client import HttpClient
from tests.cli.test_management import Call, caller, refused, said, send

LEASES = "/api/v1/leases"


@pytest.fixture
def broker() -> Iterator[delosmq.Broker]:
    with delosmq.Broker() as running:
        yield running


@pytest.fixture
def call(broker: delosmq.Broker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    return caller(broker, monkeypatch, capsys)


def lease(broker: delosmq.Broker, group: str, rows: int) -> dict[str, Any]:
    """Opens a group on queue orders and makes its first lease."""
    client = HttpClient(broker.http_url, broker.user, None)
    epoch = client.call("POST", f"{LEASES}/{group}/open", {"queue": "orders", "run": "r", "incarnation": None})["epoch"]
    wanted = {"after": 0, "epoch": epoch, "max_rows": rows, "max_bytes": 1_000_000, "wait_ms": 0, "until": None}
    made: dict[str, Any] = client.call("POST", f"{LEASES}/{group}/lease", wanted)
    return made


def test_without_groups_the_list_says_so(call: Call) -> None:
    code, out, errors = call("lease", "list")
    assert (code, out) == (0, "")
    assert errors == "there is no lease group that user 'admin' may consume from\n"
    assert json.loads(said(call("lease", "list", "--json"))) == []


def test_groups_are_listed_shown_and_released(call: Call, broker: delosmq.Broker) -> None:
    said(call("queue", "create", "orders"))
    send(broker, "/queue/orders", 3)
    made = lease(broker, "report", 2)
    heading, row = said(call("lease", "list")).splitlines()
    columns = ["GROUP", "QUEUE", "READY", "LEASED", "OLDEST-S", "ACKED", "LEASE", "EPOCH", "CONTACT-S", "EXPIRES-S"]
    assert heading.split() == columns
    assert row.split()[:4] == ["report", "orders", "1", "2"]
    assert said(call("lease", "show", "report")).splitlines()[-1].split() == [
        str(made[name]) for name in ("lease", "rows", "bytes", "first_sequence", "last_sequence")
    ]
    (shown,) = json.loads(said(call("lease", "show", "report", "--json")))
    assert (shown["group"]["leased"], shown["leases"]) == (2, [made])
    assert (
        said(call("lease", "release", "report", "--force")) == "group 'report' is released, and 2 messages went back\n"
    )
    assert "group 'report' does not exist" in refused(call("lease", "show", "report"))


def test_a_group_whose_reader_is_at_work_is_released_by_force_only(
    call: Call, broker: delosmq.Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    said(call("queue", "create", "orders"))
    send(broker, "/queue/orders", 1)
    lease(broker, "report", 1)
    assert refused(call("lease", "release", "report")).startswith("DMQ7117: the reader of group 'report' was heard of")
    assert json.loads(said(call("lease", "list", "--json")))[0]["leased"] == 1
    monkeypatch.setattr(address_commands, "LIVE_WINDOW_MS", 0)
    assert said(call("lease", "release", "report")) == "group 'report' is released, and 1 message went back\n"
