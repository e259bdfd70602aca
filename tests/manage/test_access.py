"""Who may call what: logins and permissions."""

# BROKER-4

import asyncio
import base64
import logging
import re
import threading

import httpx
import pytest

from delosmq.manage.http.logins import BasicLogins
from delosmq.manage.http.problems import ProblemError
from delosmq.model.message import ANYCAST
from delosmq.model.settings import QueueSettings, SecurityMatch
from delosmq.security.access import PERMISSIONS, AccessControl
from delosmq.server.passwords import AT_ONCE, WAITING_LIMIT, PasswordChecks
from delosmq.server.peer_log import PeerLog
from delosmq.sessions.login import ADMIT_ALL
from tests.manage.support import PASSWORD, STORED, Api, problem

PEER_LOG = PeerLog(logging.getLogger("tests.http"))
OPEN = {"queue": "q", "run": "r"}
CALLS = [
    ("GET", "/api/v1/queues", None),
    ("GET", "/api/v1/queues/q", None),
    ("POST", "/api/v1/queues", {"name": "new"}),
    ("PATCH", "/api/v1/queues/q", {"ring_size": 1}),
    ("GET", "/api/v1/queues/q/rows", None),
    ("GET", "/api/v1/leases", None),
    ("POST", "/api/v1/leases/g/open", OPEN),
    ("POST", "/api/v1/leases/g/lease", {"after": 0, "max_rows": 1, "max_bytes": 1, "wait_ms": 0, "epoch": 1}),
    ("GET", "/api/v1/leases/g/stat", None),
    ("GET", "/api/v1/leases/g/describe", None),
    ("GET", "/api/v1/leases/g/1/rows", None),
    ("POST", "/api/v1/leases/g/ack", {"lease": 0, "epoch": 1}),
    ("POST", "/api/v1/leases/g/release", {}),
    ("GET", "/api/v1/broker", None),
    ("GET", "/api/v1/addresses", None),
    ("GET", "/api/v1/addresses/q", None),
    ("GET", "/metrics", None),
    ("GET", "/openapi.json", None),
]
LISTS_WHAT_MAY_BE_SEEN = {"/api/v1/queues", "/api/v1/leases", "/api/v1/addresses"}
FOR_ANY_LOGIN = {"/api/v1/broker", "/metrics", "/openapi.json"}


@pytest.mark.parametrize(("method", "path", "body"), CALLS)
async def test_every_call_needs_a_login(api: Api, method: str, path: str, body: object):
    response = await api.anonymous.request(method, path, json=body)
    assert problem(response) == (401, "DMQ6301", "LOGIN_REQUIRED")
    assert response.headers["www-authenticate"] == 'Basic realm="DelosMQ", charset="UTF-8"'


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        call
        for call in CALLS
        if call[1] not in FOR_ANY_LOGIN and (call[0] == "POST" or call[1] not in LISTS_WHAT_MAY_BE_SEEN)
    ],
)
async def test_every_call_on_a_resource_needs_its_permission(api: Api, method: str, path: str, body: object):
    await api.open("g")
    api.access.reload({"admin": STORED}, {"admin": frozenset({"nothing"})}, ())
    api.access.finish(api.access.attempt("admin", PASSWORD), True)
    response = await api.clients["admin"].request(method, path, json=body)
    if path.startswith("/api/v1/leases/") and not path.endswith("/open"):
        assert problem(response) == (404, "DMQ2405", "LEASE_LOST")  # as for a group that is not there
    else:
        assert problem(response) == (403, "DMQ1001", "NOT_PERMITTED")
    assert "new" not in api.broker.queues
    assert api.broker.queues["q"].ring_size == -1


@pytest.mark.parametrize(
    ("user", "method", "path", "status"),
    [
        ("viewer", "GET", "/api/v1/queues/q", 200),
        ("viewer", "PATCH", "/api/v1/queues/q", 403),
        ("viewer", "GET", "/api/v1/queues/q/rows", 403),
        ("viewer", "GET", "/api/v1/leases/g/stat", 404),
        ("viewer", "GET", "/api/v1/queues/secret.q", 403),
        ("reader", "GET", "/api/v1/queues/q", 403),
        ("reader", "GET", "/api/v1/queues/q/rows", 200),
        ("reader", "GET", "/api/v1/leases/g/stat", 200),
        ("reader", "GET", "/api/v1/queues/secret.q/rows", 403),
        ("browser", "GET", "/api/v1/queues/q/rows", 200),
        ("browser", "GET", "/api/v1/leases/g/stat", 404),
    ],
)
async def test_view_edit_consume_and_browse_are_told_apart(api: Api, user: str, method: str, path: str, status: int):
    await api.open("g")
    response = await api.clients[user].request(method, path, json={} if method == "PATCH" else None)
    assert response.status_code == status


@pytest.mark.parametrize("path", ["/api/v1/queues/{}", "/api/v1/queues/{}/rows", "/api/v1/addresses/{}"])
@pytest.mark.parametrize("method", ["GET", "PATCH"])
async def test_what_is_not_there_looks_like_what_may_not_be_seen(api: Api, method: str, path: str):
    if method == "PATCH" and path != "/api/v1/queues/{}":
        method = "GET"
    told = []
    for name in ("secret.q", "secret.nothing"):
        response = await api.clients["viewer"].request(
            method, path.format(name), json={} if method == "PATCH" else None
        )
        assert problem(response) == (403, "DMQ1001", "NOT_PERMITTED")
        told.append(response.json()["detail"].replace(name, "NAME"))
    assert told[0] == told[1]


async def test_who_may_see_a_queue_is_told_that_it_is_not_there(api: Api):
    for user, path in (("viewer", "nothing"), ("browser", "nothing/rows"), ("reader", "nothing/rows")):
        assert problem(await api.get(f"/api/v1/queues/{path}", user=user)) == (404, "DMQ6201", "NOT_FOUND")
    assert problem(await api.get("/api/v1/queues/nothing", user="reader"))[0] == 403


async def test_a_new_subscription_to_a_topic_needs_the_right_to_create_it(api: Api):
    wanted = {"topic": "orders", "run": "r"}
    response = await api.post("/api/v1/leases/new/open", wanted, user="reader")
    assert problem(response) == (403, "DMQ1001", "NOT_PERMITTED")
    assert "createDurableQueue" in response.json()["detail"]
    assert "new" not in api.broker.queues


@pytest.mark.parametrize(("user", "password"), [("admin", "tr0ub4dor"), ("nobody", PASSWORD), ("admin", ""), ("", "")])
async def test_a_wrong_password_and_an_unknown_user_look_alike(
    api: Api, caplog: pytest.LogCaptureFixture, user: str, password: str
):
    async with api.client(user, password) as client:
        with caplog.at_level(logging.WARNING):
            response = await client.get("/api/v1/queues")
    assert problem(response) == (401, "DMQ6302", "LOGIN_REQUIRED")
    assert response.json()["detail"] == f"user '{user}' or its password is wrong; check both"
    assert "DMQ6302" in caplog.text
    assert not password or password not in caplog.text


@pytest.mark.parametrize(
    "authorization",
    [
        "Bearer abc",
        "Basic",
        "Basic ***",
        "Basic " + base64.b64encode(b"nocolon").decode(),
        "Basic " + base64.b64encode(b"\xff\xfe:x").decode(),
    ],
)
async def test_a_login_that_can_not_be_read_is_refused(api: Api, authorization: str):
    response = await api.anonymous.get("/api/v1/queues", headers={"Authorization": authorization})
    assert problem(response)[0] == 401


def basic(password: str) -> str:
    return "Basic " + base64.b64encode(f"admin:{password}".encode()).decode()


async def test_a_password_is_hashed_once_and_not_on_the_loop():
    hashed: list[threading.Thread] = []

    def verify(stored: str, password: str) -> bool:
        hashed.append(threading.current_thread())
        return password == PASSWORD

    access = AccessControl({"admin": STORED}, {"admin": frozenset({"amq"})}, (), cache_key=b"k" * 32)
    logins = BasicLogins(access, PasswordChecks(asyncio.get_running_loop(), verify=verify), ADMIT_ALL, PEER_LOG)
    for _ in range(3):
        assert (await logins.login(basic(PASSWORD))).roles == {"amq"}
    assert len(hashed) == 1
    assert hashed[0] is not threading.current_thread()
    with pytest.raises(ProblemError):
        await logins.login(basic("wrong"))
    assert len(hashed) == 2


async def test_a_flood_of_logins_is_turned_away_beyond_a_bound():
    release = threading.Event()

    def verify(stored: str, password: str) -> bool:
        release.wait()
        return True

    access = AccessControl({"admin": STORED}, {}, (), cache_key=b"k" * 32)
    logins = BasicLogins(access, PasswordChecks(asyncio.get_running_loop(), verify=verify), ADMIT_ALL, PEER_LOG)
    waiting = [asyncio.create_task(logins.login(basic(f"p{i}"))) for i in range(WAITING_LIMIT + AT_ONCE)]
    await asyncio.sleep(0)
    with pytest.raises(ProblemError) as refused:
        await logins.login(basic("one too many"))
    assert (refused.value.status, refused.value.code) == (503, "DMQ6303")
    assert refused.value.response().headers["connection"] == "close"
    release.set()
    assert len(await asyncio.gather(*waiting)) == WAITING_LIMIT + AT_ONCE


# -- what may not be seen looks like what is not there -----------------------------------------------------------------

# A user may do everything but on secret addresses. "hidden" is a queue and a lease group there; "absent" is nothing.
SECRET = SecurityMatch("secret.#", {permission: frozenset() for permission in PERMISSIONS})
OTHERS = SecurityMatch("#", {permission: frozenset({"some"}) for permission in PERMISSIONS})
NOTHING = SecurityMatch("#", {})
TAKES_A_NAME = {"createQueue", "createAddress", "openGroup", "discardAllParts", "forgetApplication"}
BODIES: dict[str, object] = {
    "updateQueue": {"ring_size": 1},
    "sendText": {"text": "x"},
    "nextLease": {"after": 0, "max_rows": 1, "max_bytes": 1, "wait_ms": 0, "epoch": 1},
    "ackLeases": {"lease": 0, "epoch": 1},
}


def operations_on(api: Api, name: str) -> list[tuple[str, str, str, object]]:
    """Every call of the API that names something: its name, method, path and body."""
    found = []
    for operation in api.app.operations:
        if "{" in operation.path:
            path = operation.path.replace("{lease}", "1")
            for parameter in ("{name}", "{group}", "{id}", "{xid}"):
                path = path.replace(parameter, name)
            body = BODIES.get(operation.name, {} if operation.has_body else None)
            found.append((operation.name, operation.method, path, body))
    return found


@pytest.fixture
async def guarded(api: Api) -> Api:
    """With a queue of a secret address that has a lease group, an address and a message."""
    api.broker.resources.create_queue(QueueSettings("hidden", "secret.a", ANYCAST))
    api.send("secret.a", "m")
    await api.open("hidden", queue="hidden")
    return api


def grant(api: Api, *matches: SecurityMatch) -> None:
    api.access.reload({"admin": STORED}, {"admin": frozenset({"some"})}, matches)
    api.access.finish(api.access.attempt("admin", PASSWORD), True)


def told(response: httpx.Response, name: str) -> tuple[int, str]:
    return response.status_code, re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "NAME", response.text)


@pytest.mark.parametrize("matches", [(OTHERS, SECRET), (NOTHING,)], ids=["all but this", "nothing"])
async def test_no_call_tells_that_there_is_something_that_may_not_be_used(
    guarded: Api, matches: tuple[SecurityMatch, ...]
):
    (slot,) = guarded.broker.queues["hidden"].pending.in_order()
    grant(guarded, *matches)
    faults = []
    message = str(slot.message.message_id)
    for there, absent in (("hidden", "absent"), ("secret.a", "secret.absent"), (message, "999999")):
        for one, other in zip(operations_on(guarded, there), operations_on(guarded, absent), strict=True):
            if one[0] in TAKES_A_NAME or (there == message and one[0] != "explainMessage"):
                continue
            answers = []
            for name, (_, method, path, body) in ((there, one), (absent, other)):
                response = await guarded.clients["admin"].request(method, path, json=body)
                answers.append(told(response, name))
            if answers[0] != answers[1] or answers[0][0] < 400 or "secret" in answers[0][1]:
                faults.append((one[:3], answers))
    assert faults == []


async def test_a_name_that_is_taken_is_told_without_the_address_that_took_it(guarded: Api):
    grant(guarded, OTHERS, SECRET)
    client = guarded.clients["admin"]
    for path, body in (
        ("/api/v1/queues", {"name": "hidden"}),
        ("/api/v1/leases/hidden/open", {"topic": "orders", "run": "r"}),
        ("/api/v1/leases/hidden/open", {"queue": "q", "run": "r"}),
    ):
        response = await client.post(path, json=body)
        assert response.status_code == 409, response.text
        assert "secret" not in response.text
    answers = []
    for name in ("hidden", "absent"):
        response = await client.post("/api/v1/leases/new/open", json={"queue": name, "run": "r"})
        answers.append(told(response, name))
    assert answers[0] == answers[1]
    for path in ("/api/v1/queues", "/api/v1/leases", "/api/v1/addresses", "/metrics"):
        assert "hidden" not in (await client.get(path)).text
