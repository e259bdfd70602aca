"""The calls of sinks over HTTP, each with what can go wrong."""

import asyncio
import io
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pyarrow
import pytest

from delosmq.engine.transactions.transaction import ACTIVE
from delosmq.manage.http.arrow import ARROW_TYPE
from delosmq.manage.http.calls import staged_parts as staging_calls
from delosmq.manage.http.calls.staged_parts import AT_ONCE, LARGE_LIMIT_BYTES, STAGE_LIMIT_BYTES
from delosmq.model.message import BYTES_BODY, EMPTY_BODY, MAP_BODY, STREAM_BODY, TEXT_BODY, Message
from delosmq.sessions.staging.session import ROWS_LIMIT
from tests.manage.support import START_MS, Api, eventually, problem, succeeded

STAGING = "/api/v1/staging"
PROPERTIES = pyarrow.map_(pyarrow.string(), pyarrow.string())


def encoded(table: pyarrow.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    with pyarrow.ipc.new_stream(sink, table.schema, **options) as writer:
        writer.write_table(table)
    return sink.getvalue()


async def without_length(size_bytes: int) -> AsyncIterator[bytes]:
    yield b"x" * size_bytes


def words(bodies: str) -> pyarrow.Table:
    return pyarrow.table({"body": bodies.split()})


async def stage(
    api: Api,
    part: str,
    table: pyarrow.Table | bytes | AsyncIterator[bytes],
    *,
    batch: int = 0,
    user: str = "admin",
    content_type: str = ARROW_TYPE,
    **query: str | int | bool,
) -> httpx.Response:
    body = encoded(table) if isinstance(table, pyarrow.Table) else table
    fields = {"address": "q", **query}
    return await api.clients[user].post(
        f"{STAGING}/app/{batch}/parts/{part}", params=fields, content=body, headers={"Content-Type": content_type}
    )


async def publish(api: Api, *parts: str, batch: int = 0, user: str = "admin") -> httpx.Response:
    return await api.post(f"{STAGING}/app/{batch}/publish", {"parts": [*parts]}, user=user)


def messages(api: Api, queue: str = "q") -> list[Message]:
    return [slot.message for slot in api.broker.queues[queue].pending.in_order()]


def texts(api: Api, queue: str = "q") -> str:
    return " ".join(message.body.decode() for message in messages(api, queue))


async def test_rows_are_staged_and_published_once(api: Api):  # PIPE-1
    staged = succeeded(await stage(api, "a", words("1 2")))
    assert staged == {"part": "a", "rows": 2, "duplicates": 0, "dropped": 0, "published": False}
    assert succeeded(await stage(api, "a", words("1 2"))) == staged
    assert texts(api) == ""
    assert succeeded(await publish(api, "a")) == {"batch": 0, "already": False, "last": 0}
    await eventually(lambda: texts(api) == "1 2")
    assert succeeded(await publish(api, "a")) == {"batch": 0, "already": True, "last": 0}
    assert succeeded(await stage(api, "b", words("1 2")))["published"] is True
    assert texts(api) == "1 2"


async def test_each_column_becomes_what_it_says(api: Api):
    later = datetime.fromtimestamp(START_MS / 1000, UTC) + timedelta(hours=1)
    table = pyarrow.table(
        {
            "body": ["hello"],
            "destination": ["fresh"],
            "message_id": ["ID:7"],
            "properties": pyarrow.array([[("color", "red"), ("size", None)]], PROPERTIES),
            "group_id": ["g"],
            "correlation_id": ["c"],
            "reply_to": ["queue://answers"],
            "type": ["t"],
            "content_type": ["text/plain"],
            "expiration": [later],
            "priority": [7],
            "scheduled_at": pyarrow.array([None], pyarrow.timestamp("us", tz="UTC")),
            "duplicate_id": ["once"],
            "body_kind": ["text"],
        }
    )
    succeeded(await stage(api, "a", table, address="", routing_type="ANYCAST", durable=False))
    succeeded(await publish(api, "a"))
    await eventually(lambda: len(messages(api, "fresh")) == 1)
    (message,) = messages(api, "fresh")
    assert (message.body, message.body_kind, message.priority, message.durable) == (b"hello", TEXT_BODY, 7, False)
    assert (message.expires_at_ms, message.group_id, message.user) == (START_MS + 3_600_000, "g", "admin")
    (again,) = succeeded(await api.get("/api/v1/queues/fresh/messages"))["messages"]
    assert again["correlation_id"] == "c"
    assert again["properties"]["color"] == "red"
    assert again["properties"]["original_message_id"] == "ID:7"
    left_out = succeeded(await stage(api, "b", table, batch=1, address="", routing_type="ANYCAST"))
    assert (left_out["rows"], left_out["duplicates"]) == (0, 1)


async def test_a_row_is_the_kind_of_message_that_it_says(api: Api):
    kinds = ["map", "stream", "empty", "text", "bytes", None, None]
    bodies = [b'{"a":1}', b'["x"]', None, b"t", b"b", b"b", None]
    table = pyarrow.table({"body": pyarrow.array(bodies, pyarrow.binary()), "body_kind": kinds})
    succeeded(await stage(api, "a", table))
    succeeded(await publish(api, "a"))
    await eventually(lambda: len(messages(api, "q")) == len(kinds))
    (*found,) = messages(api, "q")
    assert [message.body_kind for message in found] == [
        *(MAP_BODY, STREAM_BODY, EMPTY_BODY, TEXT_BODY, BYTES_BODY, BYTES_BODY, TEXT_BODY)
    ]
    assert [message.body for message in found] == [body or b"" for body in bodies]


async def test_bytes_time_to_live_and_a_time_to_come(api: Api):
    due = datetime.fromtimestamp(START_MS / 1000, UTC) + timedelta(minutes=1)
    table = pyarrow.table({"body": [b"\x00\x01"], "scheduled_at": [due]})
    succeeded(await stage(api, "a", table, time_to_live_ms=90_000, priority=1))
    succeeded(await publish(api, "a"))
    await eventually(lambda: api.broker.queues["q"].scheduled.count == 1)
    (slot,) = api.broker.queues["q"].scheduled.in_order()
    message = slot.message
    assert (message.body, message.body_kind, message.priority) == (b"\x00\x01", BYTES_BODY, 1)
    assert (message.due_at_ms, message.expires_at_ms) == (START_MS + 60_000, START_MS + 90_000)


@pytest.mark.parametrize(
    ("table", "code"),
    [
        ({"text": ["x"]}, "DMQ6432"),
        ({"body": [1]}, "DMQ6433"),
        ({"body": ["x"], "priority": ["high"]}, "DMQ6433"),
        ({"body": ["x"], "expiration": [1]}, "DMQ6433"),
        ({"body": ["x"], "properties": ["a=b"]}, "DMQ6433"),
        ({"destination": ["x"]}, "DMQ6434"),
        ({"body": ["x"], "priority": [10]}, "DMQ5410"),
        ({"body": ["x"], "body_kind": ["object"]}, "DMQ5410"),
        ({"body": ["x"], "body_kind": ["empty"]}, "DMQ5410"),
        ({"body": ["x"], "duplicate_id": ["x" * 2_000]}, "DMQ5410"),
        ({"body": ["x"], "correlation_id": ["x" * 70_000]}, "DMQ5410"),
    ],
)
async def test_wrong_columns_and_rows_stage_nothing(api: Api, table: dict[str, list[object]], code: str):
    assert problem(await stage(api, "a", pyarrow.table(table)))[:2] == (400, code)
    await api.settle()
    assert api.broker.staging.parts == {}
    assert api.broker.used_bytes == 0


async def test_a_row_without_a_destination_is_named(api: Api):
    response = await stage(api, "a", pyarrow.table({"body": ["x", "y"], "destination": ["q", None]}), address="")
    assert problem(response) == (400, "DMQ5410", "INVALID")
    assert "row 2" in response.json()["detail"]


async def test_bodies_that_are_no_plain_rows_are_refused(api: Api):
    table = words("1 2")
    compressed = encoded(table, options=pyarrow.ipc.IpcWriteOptions(compression="zstd"))
    dictionary = encoded(pyarrow.table({"body": pyarrow.array(["x"]).dictionary_encode()}))
    for body in (b"", b"nonsense", encoded(table)[:-30], compressed, dictionary):
        status, code, _ = problem(await stage(api, "a", body))
        assert (status, code) in ((400, "DMQ6430"), (400, "DMQ6433")), body[:20]
    assert problem(await stage(api, "a", table, content_type="text/plain")) == (415, "DMQ6436", "NOT_ARROW")
    assert problem(await stage(api, "a", without_length(STAGE_LIMIT_BYTES + 1))) == (413, "DMQ6439", "TOO_LARGE")
    many = pyarrow.table({"body": ["" for _ in range(ROWS_LIMIT + 1)]})
    assert problem(await stage(api, "a", many)) == (413, "DMQ6431", "TOO_LARGE")
    assert api.broker.staging.parts == {}


async def test_a_row_as_large_as_a_message_is_a_part_of_its_own(api: Api):
    body = b"x" * (2 * STAGE_LIMIT_BYTES)
    assert succeeded(await stage(api, "a", pyarrow.table({"body": [body]})))["rows"] == 1
    assert problem(await stage(api, "b", pyarrow.table({"body": [body, b""]}))) == (413, "DMQ6439", "TOO_LARGE")
    succeeded(await publish(api, "a"))
    await eventually(lambda: len(messages(api)) == 1)
    assert messages(api)[0].body == body


async def test_a_part_that_is_larger_than_any_message_is_not_read(api: Api):
    read: list[bytes] = []

    async def rows() -> AsyncIterator[bytes]:
        read.append(b"x")
        yield b"x"

    answer = await api.clients["admin"].post(
        f"{STAGING}/app/0/parts/a",
        content=rows(),
        headers={"Content-Type": ARROW_TYPE, "Content-Length": str(LARGE_LIMIT_BYTES + 1)},
    )
    assert problem(answer) == (413, "DMQ6439", "TOO_LARGE")
    assert str(LARGE_LIMIT_BYTES) in answer.json()["detail"]
    assert read == []


async def test_large_parts_are_taken_one_after_another(api: Api):
    large = encoded(pyarrow.table({"body": [b"x" * STAGE_LIMIT_BYTES]}))
    half, ends = asyncio.Event(), asyncio.Event()

    async def slowly() -> AsyncIterator[bytes]:
        yield large[:9]
        half.set()
        await ends.wait()
        yield large[9:]

    headers = {"Content-Type": ARROW_TYPE, "Content-Length": str(len(large))}
    first = asyncio.create_task(
        api.clients["admin"].post(
            f"{STAGING}/app/0/parts/a", params={"address": "q"}, content=slowly(), headers=headers
        )
    )
    await half.wait()
    second = asyncio.create_task(stage(api, "b", large))
    assert succeeded(await stage(api, "c", words("1")))["rows"] == 1
    await api.settle()
    assert not second.done()
    ends.set()
    assert [succeeded(await one)["rows"] for one in (first, second)] == [1, 1]


async def test_offsets_that_point_outside_are_refused(api: Api):
    body = bytearray(encoded(words("abcdefgh ijklmnop")))
    at = bytes(body).index(b"\x08\x00\x00\x00\x10\x00\x00\x00")
    body[at : at + 4] = b"\xff\xff\xff\x7f"
    assert problem(await stage(api, "a", bytes(body)))[:2] == (400, "DMQ6430")


async def test_each_destination_needs_the_right_to_send(api: Api):
    assert problem(await stage(api, "a", words("1"), user="reader")) == (403, "DMQ1001", "NOT_PERMITTED")
    table = pyarrow.table({"body": ["x"], "destination": ["q"]})
    assert problem(await stage(api, "a", table, user="reader", address=""))[0] == 403
    assert problem(await stage(api, "a", pyarrow.table({"body": ["x"], "destination": ["manual.q"]})))[0] == 404
    await api.settle()
    assert api.broker.staging.parts == {}


async def test_another_user_can_neither_publish_nor_discard_nor_see(api: Api):
    succeeded(await stage(api, "a", words("1")))
    assert problem(await publish(api, "a", user="reader")) == (404, "DMQ2695", "PART_LOST")
    response = await api.post(f"{STAGING}/app/0/discard", {"parts": ["a"]}, user="reader")
    assert succeeded(response) == {"discarded": 0}
    assert succeeded(await api.get(f"{STAGING}/parts", user="reader"))["parts"] == []
    succeeded(await publish(api, "a"))
    assert problem(await publish(api, batch=1, user="reader")) == (403, "DMQ2698", "NOT_YOURS")


async def test_what_was_left_out_is_told_again_when_the_call_is_repeated(api: Api):
    table = pyarrow.table({"body": [*"123"], "duplicate_id": ["x", "x", None]})
    staged = succeeded(await stage(api, "a", table))
    assert staged == {"part": "a", "rows": 2, "duplicates": 1, "dropped": 0, "published": False}
    assert succeeded(await stage(api, "a", table)) == staged


async def test_a_full_address_lets_the_call_wait_and_then_says_so(api: Api):
    api.broker.addresses["q"].account.set_limits(-1, 1)
    api.send("q", "x")
    response = await stage(api, "a", words("1"), wait_ms=0)
    assert problem(response) == (503, "DMQ6437", "NO_ROOM_NOW")
    assert "'q'" in response.json()["detail"]
    await api.settle()
    assert api.broker.staging.parts == {}
    waiting = asyncio.create_task(stage(api, "a", words("1")))
    await eventually(lambda: bool(api.broker.addresses["q"].waiters))
    api.broker.resources.purge_queue("q")
    api.host.changed()
    assert succeeded(await waiting)["rows"] == 1


async def test_a_batch_that_fills_its_address_by_itself_is_refused(api: Api):
    api.broker.addresses["q"].account.set_limits(-1, 2)
    succeeded(await stage(api, "a", words("1")))
    assert problem(await stage(api, "b", words("1 2"))) == (429, "DMQ2693", "LIMIT")


async def test_a_part_that_is_being_staged_is_not_staged_twice(api: Api):
    transaction = api.broker.staging.begin("app", 0, "a", "admin")
    assert problem(await stage(api, "a", words("1"))) == (409, "DMQ2691", "PART_BUSY")
    assert transaction.state == ACTIVE
    assert problem(await publish(api, "a")) == (404, "DMQ2695", "PART_LOST")


async def test_many_rows_are_staged_in_slices_and_discarded(api: Api):
    bodies = " ".join(map(str, range(1_500)))
    assert succeeded(await stage(api, "a", words(bodies)))["rows"] == 1_500
    assert succeeded(await api.post(f"{STAGING}/app/0/discard", {"parts": ["a", "b"]})) == {"discarded": 1}
    await eventually(lambda: api.broker.used_bytes == 0)
    succeeded(await stage(api, "b", words(bodies)))
    succeeded(await publish(api, "b"))
    await eventually(lambda: texts(api) == bodies)


async def test_an_operator_sees_what_is_staged_and_cleans_up(api: Api):
    succeeded(await stage(api, "a", words("1 2")))
    api.host.clock.now_ms += 5_000
    (part,) = succeeded(await api.get(f"{STAGING}/parts"))["parts"]
    assert part == {
        "application": "app",
        "batch": 0,
        "part": "a",
        "user": "admin",
        "rows": 2,
        "bytes": api.broker.used_bytes,
        "addresses": ["q"],
        "age_ms": 5_000,
    }
    succeeded(await publish(api, batch=3, user="admin"))
    await eventually(lambda: not api.broker.staging.parts)  # of an earlier batch
    listed = succeeded(await api.get(f"{STAGING}/applications"))
    assert listed["applications"] == [{"application": "app", "published": 3, "user": "admin", "age_ms": 0}]
    succeeded(await stage(api, "b", words("1 2"), batch=4))
    assert succeeded(await api.clients["admin"].delete(f"{STAGING}/app/parts")) == {"discarded": 1}
    forgotten = succeeded(await api.clients["admin"].delete(f"{STAGING}/app"))
    assert forgotten == {"application": "app", "forgotten": True}
    assert succeeded(await api.get(f"{STAGING}/applications"))["applications"] == []


async def test_listings_come_in_pages(api: Api):
    for name in ("a", "b", "c"):
        succeeded(await stage(api, name, words("1")))
    page = succeeded(await api.get(f"{STAGING}/parts?limit=2"))
    assert ([part["part"] for part in page["parts"]], page["next"]) == (["a", "b"], "b")
    rest = succeeded(await api.get(f"{STAGING}/parts?limit=2&after=b"))
    assert ([part["part"] for part in rest["parts"]], rest["next"]) == (["c"], "")


async def test_numbers_of_batches_and_names_are_checked(api: Api):
    response = await api.post(f"{STAGING}/app/x/publish", {"parts": []})
    assert problem(response) == (400, "DMQ6438", "INVALID")
    response = await api.post(f"{STAGING}/{'a' * 300}/0/publish", {"parts": []})
    assert problem(response) == (400, "DMQ5411", "INVALID")


async def test_an_answer_waits_until_it_survives_a_crash(api: Api):
    api.host.store.held = True
    waiting = asyncio.create_task(stage(api, "a", words("1")))
    await eventually(lambda: any(t.part and t.part.is_staged for t in api.broker.staging.parts.values()))
    await api.settle()
    assert not waiting.done()
    api.host.store.held = False
    api.host.store.flush()
    succeeded(await waiting)


async def test_calls_that_wait_for_one_address_keep_none_from_another(api: Api):
    api.broker.addresses["q"].account.set_limits(-1, 1)
    api.send("q", "x")
    waiting = [asyncio.create_task(stage(api, f"w{k}", words("1"))) for k in range(AT_ONCE + 2)]
    await eventually(lambda: len(api.broker.addresses["q"].waiters) == len(waiting))
    succeeded(await stage(api, "other", words("1"), address="fresh", routing_type="ANYCAST"))
    api.broker.addresses["q"].account.set_limits(-1, 100)
    api.broker.resources.purge_queue("q")
    api.host.changed()
    assert {succeeded(one)["rows"] for one in await asyncio.gather(*waiting)} == {1}


async def test_bodies_that_wait_are_bounded_and_what_is_beyond_is_told_at_once(
    api: Api, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(staging_calls, "WAITING_LIMIT_BYTES", 2 * len(encoded(words("1"))))
    api.broker.addresses["q"].account.set_limits(-1, 1)
    api.send("q", "x")
    waiting = [asyncio.create_task(stage(api, f"w{k}", words("1"))) for k in range(AT_ONCE)]
    await eventually(lambda: len(api.broker.addresses["q"].waiters) == AT_ONCE)
    waiting += [asyncio.create_task(stage(api, f"more{k}", words("1"))) for k in range(2)]
    await eventually(lambda: len(api.broker.addresses["q"].waiters) == AT_ONCE + 2)
    # All places are taken by calls that wait, for whose bodies there is no memory elsewhere: they make way.
    succeeded(await stage(api, "other", words("1"), address="fresh", routing_type="ANYCAST"))
    api.broker.addresses["q"].account.set_limits(-1, 100)
    api.broker.resources.purge_queue("q")
    api.host.changed()
    answers = [answer.status_code for answer in await asyncio.gather(*waiting)]
    assert 200 in answers
    assert 503 in answers


async def test_a_full_place_is_no_dead_broker(api: Api, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(staging_calls, "PLACE_TIMEOUT_S", 0.01)
    monkeypatch.setattr(staging_calls, "WAITING_LIMIT_BYTES", 0)
    monkeypatch.setattr(staging_calls, "LOOK_AGAIN_S", 60.0)
    api.broker.addresses["q"].account.set_limits(-1, 1)
    api.send("q", "x")
    waiting = [asyncio.create_task(stage(api, f"w{k}", words("1"))) for k in range(AT_ONCE)]
    await eventually(lambda: len(api.broker.addresses["q"].waiters) == len(waiting))
    response = await stage(api, "other", words("1"), address="fresh", routing_type="ANYCAST")
    assert problem(response) == (503, "DMQ6441", "NO_ROOM_NOW")
    api.broker.resources.purge_queue("q")
    api.broker.addresses["q"].account.set_limits(-1, 100)
    api.host.changed()
    await asyncio.gather(*waiting)


async def test_what_is_staged_at_a_full_address_is_named(api: Api):
    api.broker.addresses["q"].account.set_limits(-1, 3)
    succeeded(await stage(api, "a", words("1 2"), batch=7))
    response = await stage(api, "b", words("1 2"), batch=8, wait_ms=0)
    assert problem(response) == (503, "DMQ6437", "NO_ROOM_NOW")
    assert "batch 7 of 'app' 2 messages" in response.json()["detail"]


async def test_another_attempt_takes_the_place_of_a_dead_one(api: Api):
    api.broker.addresses["q"].account.set_limits(-1, 3)
    succeeded(await stage(api, "a", words("1 2"), attempt="one", task="0", run="x"))
    succeeded(await stage(api, "b", words("1 2"), attempt="two", task="0", run="y"))
    assert problem(await stage(api, "c", words("1"), attempt="one")) == (409, "DMQ2665", "FENCED")
    body = {"parts": ["b"], "attempt": "two"}
    assert succeeded(await api.post(f"{STAGING}/app/0/publish", body))["last"] == 0
    third = {"parts": [], "attempt": "three"}
    assert succeeded(await api.post(f"{STAGING}/app/1/publish", third)) == {"batch": 1, "already": False, "last": 1}
    refused = await api.post(f"{STAGING}/app/2/publish", {"parts": [], "attempt": "two"})
    assert problem(refused) == (409, "DMQ2667", "FENCED")
    await eventually(lambda: texts(api) == "1 2")


async def test_a_row_may_go_to_one_queue_of_its_address(api: Api):
    for queue in ("one", "other"):
        await api.post("/api/v1/queues", {"name": queue, "address": "news", "routing_type": "MULTICAST"})
    succeeded(await stage(api, "p", pyarrow.table({"body": ["a", "b"], "destination": ["news::one", "news"]})))
    succeeded(await publish(api, "p"))
    assert (texts(api, "one"), texts(api, "other")) == ("a b", "b")
    for wrong in ("news::", "::one", "news::nope::x"):
        refused = await stage(api, "q", pyarrow.table({"body": ["a"], "destination": [wrong]}), batch=1)
        assert refused.status_code >= 400
