"""What any call answers to bad requests, slow disks and broken promises."""

import asyncio
import logging

import pytest

from delosmq.manage.http import sync_wait as gating
from delosmq.model.errors import InvariantError, LimitError, StorageError
from delosmq.model.values import BODY_LIMIT_BYTES
from delosmq.sessions.outbox import GateWaiter
from tests.manage.support import Api, eventually, problem, succeeded
from tests.memory import reached

QUEUES = "/api/v1/queues"
JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize("body", [b"", b"{", b'{"name": }', b"\xff", b"[" * 100_000, b'{"name": "x"} y'])
async def test_a_body_that_is_not_json(api: Api, body: bytes):
    response = await api.clients["admin"].post(QUEUES, content=body, headers=JSON)
    assert problem(response) == (400, "DMQ6403", "NOT_JSON")


async def test_what_is_nested_too_deeply_is_said_so(api: Api):
    response = await api.clients["admin"].post(QUEUES, content=b"[" * 200_000, headers=JSON)
    assert "nested too deeply" in response.json()["detail"]


async def test_a_field_given_twice_is_refused(api: Api):
    body = b'{"name": "twice", "ring_size": 1, "ring_size": 2}'
    response = await api.clients["admin"].post(QUEUES, content=body, headers=JSON)
    assert problem(response) == (400, "DMQ6163", "INVALID")
    assert response.json()["detail"] == "'ring_size' is given twice; give it once"
    assert response.json()["faults"] == [{"field": "ring_size", "message": "is given twice; give it once"}]
    assert "twice" not in api.broker.queues


async def test_an_entry_of_a_list_is_named_by_its_number(api: Api):
    response = await api.post("/api/v1/addresses", {"name": "x", "routing_types": ["BOTH"]})
    assert response.json()["detail"].startswith("'routing_types[0]' must be")


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_slash_at_the_end_is_a_problem_and_no_redirection(api: Api, method: str):
    response = await api.clients["admin"].request(method, f"{QUEUES}/")
    assert problem(response) == (404, "DMQ6421", "NOT_FOUND")
    assert response.json()["detail"] == f"there is no {QUEUES}/; leave out the slash at its end"


@pytest.mark.parametrize("body", [b"[]", b"5", b'"q"', b"null"])
async def test_json_that_is_no_object(api: Api, body: bytes):
    response = await api.clients["admin"].post(QUEUES, content=body, headers=JSON)
    assert problem(response) == (400, "DMQ6407", "INVALID")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
async def test_a_body_of_another_type_as_a_form_of_another_site_would_send(api: Api, kind: str):
    response = await api.clients["admin"].post(QUEUES, content=b'{"name":"x"}', headers={"Content-Type": kind})
    assert problem(response) == (415, "DMQ6402", "NOT_JSON")
    assert "x" not in api.broker.queues


async def test_a_body_larger_than_the_limit(api: Api):
    body = b'{"name":"' + b"x" * BODY_LIMIT_BYTES + b'"}'
    assert problem(await api.clients["admin"].post(QUEUES, content=body, headers=JSON)) == (
        413,
        "DMQ6405",
        "TOO_LARGE",
    )


async def test_a_body_that_does_not_say_how_large_it_is(api: Api):
    async def parts():  # type: ignore[no-untyped-def]
        for _ in range(17):
            yield b"x" * (BODY_LIMIT_BYTES // 16)

    response = await api.clients["admin"].post(QUEUES, content=parts(), headers=JSON)
    assert problem(response) == (413, "DMQ6405", "TOO_LARGE")


async def test_a_path_that_does_not_exist(api: Api):
    assert problem(await api.get("/api/v1/nothing")) == (404, "DMQ6421", "NOT_FOUND")


async def test_a_method_that_does_not_exist_is_answered_with_those_that_do(api: Api):
    response = await api.clients["admin"].put(f"{QUEUES}/q", json={})
    assert problem(response) == (405, "DMQ6422", "INVALID")
    assert response.headers["allow"] == "DELETE, GET, HEAD, PATCH"
    assert f"PUT is not a method of {QUEUES}/q; use DELETE, GET" in response.json()["detail"]


async def test_answers_are_not_kept_by_caches_nor_guessed_at(api: Api):
    for response in (await api.get(QUEUES), await api.anonymous.get(QUEUES)):
        assert response.headers["cache-control"] == "no-store"
        assert response.headers["x-content-type-options"] == "nosniff"


# -- the gate -----------------------------------------------------------------------------------------------------


async def test_no_answer_leaves_before_what_it_tells_survives_a_crash(api: Api):
    api.send("q", "a")
    await api.open("g")
    await api.lease(0, 1)
    api.host.store.held = True
    group = api.broker.leases.find("g")
    calls = [
        api.get(f"{QUEUES}/q"),
        api.get("/api/v1/leases/g/1/rows"),
        api.get(f"{QUEUES}/q/rows"),
        api.post(QUEUES, {"name": "new"}),
        api.post("/api/v1/leases/g/ack", {"lease": 1, "epoch": 1}),
    ]
    waiting = [asyncio.create_task(call) for call in calls]
    await eventually(lambda: "new" in api.broker.queues and group.acked == 1)
    waiting.append(asyncio.create_task(api.get(f"{QUEUES}/new")))  # tells of what is not on disk yet
    await api.settle()
    assert [task.done() for task in waiting[3:]] == [False, False, False]
    api.host.store.held = False
    api.host.changed()
    assert [(await task).status_code for task in waiting] == [200, 200, 200, 201, 200, 200]


async def test_a_store_that_does_not_confirm_is_not_waited_for_for_ever(api: Api, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gating, "SYNC_TIMEOUT_S", 0.0)
    api.host.store.held = True
    assert problem(await api.post(QUEUES, {"name": "new"})) == (503, "DMQ6102", "STORAGE")
    assert reached(api.host.gate, GateWaiter) == []


async def test_health_and_metrics_do_not_wait_for_the_disk(api: Api):
    api.host.store.held = True
    api.send("q", "a")
    await api.settle()
    assert (await api.get("/health/live")).status_code == 200
    assert (await api.get("/metrics")).status_code == 200


# -- failures -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (LimitError("DMQ2202", "full"), (429, "DMQ2202", "LIMIT")),
        (StorageError("DMQ3100", "disk"), (503, "DMQ3100", "STORAGE")),
    ],
)
async def test_errors_of_the_engine_keep_their_code(
    api: Api, monkeypatch: pytest.MonkeyPatch, error: Exception, expected: tuple[int, str, str]
):
    fail_with(monkeypatch, error)
    assert problem(await api.get(f"{QUEUES}/q")) == expected


async def test_a_broken_invariant_stops_the_broker(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    error = InvariantError("DMQ2001", "impossible")
    fail_with(monkeypatch, error)
    assert problem(await api.get(f"{QUEUES}/q")) == (500, "DMQ2001", "BROKEN")
    assert api.host.fatal is error
    assert "DMQ2001: impossible" in caplog.text


async def test_a_mistake_of_ours_is_logged_and_not_shown(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    fail_with(monkeypatch, KeyError("inner secret"))
    with caplog.at_level(logging.ERROR):
        response = await api.get(f"{QUEUES}/q")
    assert problem(response) == (500, "DMQ6409", "BROKEN")
    assert "inner secret" not in response.text
    assert "inner secret" in caplog.text


def fail_with(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    from delosmq.manage.control.queues import QueueControl

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(QueueControl, "get", fail)


# -- documentation ------------------------------------------------------------------------------------------------


async def test_openapi_describes_every_call(api: Api):
    document = succeeded(await api.get("/openapi.json"))
    assert document["openapi"].startswith("3.1")
    described = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    assert described == {(operation.method, operation.path) for operation in api.app.operations}
    names = [operation["operationId"] for item in document["paths"].values() for operation in item.values()]
    assert len(set(names)) == len(names)


async def test_openapi_refers_only_to_schemas_it_has_and_names_all_path_parameters(api: Api):
    document = succeeded(await api.get("/openapi.json"))
    schemas = document["components"]["schemas"]
    references: set[str] = set()

    def walk(value: object) -> None:
        if isinstance(value, dict):
            if "$ref" in value:
                references.add(value["$ref"])
            for item in value.values():
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)

    walk(document)
    assert references == {f"#/components/schemas/{name}" for name in schemas}
    assert {"BrokerInfo", "TransactionInfo"} <= set(schemas)  # whatever the classes are called
    for path, item in document["paths"].items():
        for operation in item.values():
            named = {one["name"] for one in operation["parameters"] if one["in"] == "path"}
            assert named == {part[1:-1] for part in path.split("/") if part.startswith("{")}


async def test_openapi_names_fields_as_the_calls_take_them(api: Api):
    document = succeeded(await api.get("/openapi.json"))
    describe = document["paths"]["/api/v1/leases/{group}/describe"]["get"]
    assert {one["name"] for one in describe["parameters"]} == {"group", "from", "to", "epoch"}
    wanted = document["components"]["schemas"]["NextLease"]
    assert set(wanted["required"]) == {"after", "max_rows", "max_bytes", "wait_ms", "epoch"}
    assert document["paths"]["/health/live"]["get"]["security"] == []
