"""Connection routers by HTTP, the command line, management messages and metrics."""

# ROUTE-8

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from delosmq.cli.app import run_app
from delosmq.client import connect
from delosmq.model.ids import MonotonicNs
from tests.e2e.support import ADMIN, GUEST, HOST, RunningBroker, User
from tests.e2e.test_router_pools import HASH, ROUND, ask, place, ready, routed, targets
from tests.patience import PATIENCE_S

LOCAL = "<key-filter>^.{3}</key-filter><local-target-filter>FOO</local-target-filter>"


def http(broker: RunningBroker, method: str, path: str, body: object = None, user: User = ADMIN) -> tuple[int, Any]:
    login = base64.b64encode(f"{user.name}:{user.password}".encode()).decode()
    headers = {"Authorization": f"Basic {login}", "Content-Type": "application/json"}
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{broker.http_url}/api/v1/{path}", content, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[RunningBroker, RunningBroker]]:
    """A router with a local partition and a pool of one, and that one."""
    with targets(1) as (target,), routed(tmp_path, [target.port], HASH + LOCAL) as router:
        ready(router, 1)
        yield router, target


def test_a_client_without_redirects_asks_http_where_its_key_belongs(pair: tuple[RunningBroker, RunningBroker]) -> None:
    router, target = pair
    code, found = http(router, "POST", "routers/r/target", {"key": "BAR"})
    assert code == 200
    assert (found["outcome"], f"{found['host']}:{found['port']}") == ("redirect", place(target))
    assert target.composed is not None
    assert found["node_id"] == target.composed.node_id()
    _, found = http(router, "POST", "routers/r/test", {"value": "FOO_EU"})
    assert (found["outcome"], found["because"]) == ("local", "local-target-filter takes the key")


def test_routers_and_their_targets_are_listed_with_what_they_decided(
    pair: tuple[RunningBroker, RunningBroker],
) -> None:
    router, target = pair
    assert ask(router.port, "FOO_1") == ""
    assert ask(router.port, "BAR_1") == place(target)
    _, listed = http(router, "GET", "routers")
    (one,) = listed["routers"]
    assert (one["name"], one["key_type"], one["policy"]) == ("r", "CLIENT_ID", "CONSISTENT_HASH")
    assert (one["local"], one["redirected"], one["ready_targets"]) == (1, 1, 1)
    (shown,) = one["targets"]
    assert (shown["name"], shown["port"], shown["ready"], shown["trouble"]) == ("t0", target.port, True, "")


def test_a_filter_that_is_changed_live_moves_new_connections_only(pair: tuple[RunningBroker, RunningBroker]) -> None:
    router, target = pair
    url = f"tcp://{HOST}:{router.port}"
    with connect(url, user=ADMIN.name, password=ADMIN.password, client_id="FOO_1") as connection:
        code, changed = http(router, "PATCH", "routers/r", {"local_target_filter": "BAR"})
        assert (code, changed["local_target_filter"], changed["key_filter"]) == (200, "BAR", "^.{3}")
        connection.send("orders", "still here")
        assert (ask(router.port, "FOO_2"), ask(router.port, "BAR_1")) == (place(target), "")
    http(router, "PATCH", "routers/r", {"key_filter": ""})
    assert ask(router.port, "BAR_1") == place(target)


def test_a_test_takes_no_turn(tmp_path: Path) -> None:
    with targets(2) as brokers, routed(tmp_path, [one.port for one in brokers], ROUND) as router:
        ready(router, 2)
        tested = {http(router, "POST", "routers/r/test", {"value": "a"})[1]["port"] for _ in range(3)}
        decided = {http(router, "POST", "routers/r/target", {"key": "a"})[1]["port"] for _ in range(2)}
    assert (len(tested), len(decided)) == (1, 2)


@pytest.mark.parametrize(
    ("method", "path", "body", "user", "status", "code"),
    [
        ("GET", "routers", None, GUEST, 403, "DMQ1001"),
        ("POST", "routers/x/test", {"value": "a"}, ADMIN, 404, "DMQ6190"),
        ("PATCH", "routers/r", {"key_filter": "("}, ADMIN, 400, "DMQ6191"),
        ("PATCH", "routers/r", {"local_target_filter": "[a&&[b]]"}, ADMIN, 400, "DMQ6191"),
    ],
)
def test_what_can_not_be_done_is_told(
    pair: tuple[RunningBroker, RunningBroker],
    method: str,
    path: str,
    body: object,
    user: User,
    status: int,
    code: str,
) -> None:
    found, problem = http(pair[0], method, path, body, user)
    assert (found, problem["code"]) == (status, code)


def command(router: RunningBroker, monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setenv("DELOSMQ_PASSWORD", ADMIN.password)
    monkeypatch.setattr("sys.argv", ["delosmq", "router", *words, "--url", router.http_url, "--user", ADMIN.name])
    return run_app()


def test_the_command_line_shows_and_explains(
    pair: tuple[RunningBroker, RunningBroker], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    router, target = pair
    assert command(router, monkeypatch, "stat") == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("CONSISTENT_HASH", "t0", str(target.port), "READY"))
    assert command(router, monkeypatch, "target", "r", "BAR") == 0
    assert capsys.readouterr().out.strip() == f"redirect {place(target)}"
    assert command(router, monkeypatch, "test", "r", "BAR_EU") == 0
    steps = [line.split(None, 1) for line in capsys.readouterr().out.replace("ready targets", "ready").splitlines()]
    node_id = target_id(target)
    assert [(step, text.strip()) for step, text in steps] == [
        ("value", "CLIENT_ID BAR_EU"),
        ("key-filter", "^.{3}"),
        ("key", "BAR"),
        ("policy", "CONSISTENT_HASH"),
        ("transformed", "BAR"),
        ("local-target-filter", "FOO does not take it"),
        ("cache", "no target"),
        ("ready", f"1 of 1 wanted: t0 {node_id}"),
        ("choice", node_id),
        ("outcome", f"redirect {place(target)}"),
        ("because", "the policy chose it"),
    ]


def asked(router: RunningBroker, operation: str, *arguments: object) -> tuple[bool, Any]:
    """A management message to the router's resource, from a client whose key belongs there."""
    url = f"tcp://{HOST}:{router.port}"
    question = {"_AMQ_ResourceName": "connectionrouter.r", "_AMQ_OperationName": operation}
    with connect(url, user=ADMIN.name, password=ADMIN.password, client_id="FOO_manager") as connection:
        reply = connection.request(
            "activemq.management", json.dumps(arguments), properties=question, timeout_s=PATIENCE_S
        )
    text = getattr(reply, "text", "")
    return bool(reply.properties["_AMQ_OperationSucceeded"]), json.loads(text)[0] if text else None


def test_a_key_that_is_too_long_is_none_and_is_not_kept(tmp_path: Path) -> None:
    with (
        targets(1) as (target,),
        routed(
            tmp_path, [target.port], "<local-target-filter>FOO_manager</local-target-filter>" + HASH + "<cache/>"
        ) as router,
    ):
        ready(router, 1)
        assert router.composed is not None
        cache = router.composed.connection_routers.by_name["r"].cache
        assert cache is not None
        for key, kept in (("k" * 1_025, "NULL"), ("k" * 200_000, "NULL"), ("k" * 1_024, "k" * 1_024)):
            assert asked(router, "getTargetAsJSON", key)[0]
            assert cache.peek(key, MonotonicNs(0)) == (None if kept == "NULL" else target_id(target))
            assert cache.peek(kept, MonotonicNs(0)) == target_id(target)


def target_id(target: RunningBroker) -> str:
    assert target.composed is not None
    return target.composed.node_id()


def test_management_messages_have_artemis_s_operations(pair: tuple[RunningBroker, RunningBroker]) -> None:
    router, target = pair
    done, text = asked(router, "getTargetAsJSON", "BAR")
    assert done
    found = json.loads(text)
    assert target.composed is not None
    assert (found["nodeID"], found["local"]) == (target.composed.node_id(), False)
    assert found["connector"]["name"] == "t0"
    assert found["connector"]["params"] == {"host": HOST, "port": str(target.port)}
    assert asked(router, "getTarget", "FOO") == (True, {"nodeID": None, "local": True, "connector": None})
    assert asked(router, "getLocalTargetFilter") == (True, "FOO")
    assert asked(router, "setLocalTargetFilter", "FOO|BAR")[0]
    assert asked(router, "getTarget", "BAR")[1]["local"]
    assert asked(router, "setTargetKeyFilter", "^...")[0]
    assert asked(router, "getTargetKeyFilter") == (True, "^...")


def test_metrics_count_decisions_and_ready_targets(pair: tuple[RunningBroker, RunningBroker]) -> None:
    router, _ = pair
    ask(router.port, "BAR_1")
    _, shown = router.get("/metrics")
    assert 'delosmq_router_decisions_total{result="redirect",router="r"} 1.0' in shown
    assert 'delosmq_router_ready_targets{router="r"} 1.0' in shown
    assert 'delosmq_router_loops_total{router="r"} 0.0' in shown
