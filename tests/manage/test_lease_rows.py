"""Rows of a lease in parts, and with a bound for their bodies."""

import pyarrow
import pytest

from delosmq.manage.http.arrow import ROWS_PER_TURN
from delosmq.sessions.lease.columns import NAMES
from tests.manage.support import Api, bodies, problem, table

ROWS = "/api/v1/leases/g/1/rows"


async def leased(api: Api) -> None:
    await api.open("g")
    await api.lease(0, 1, max_rows=100_000)


async def rows(api: Api, query: str) -> pyarrow.Table:
    return table(await api.get(f"{ROWS}?{query}"))


@pytest.mark.parametrize("of", [1, 2, 3, 7])
async def test_parts_hold_each_row_once_in_order_and_groups_whole(api: Api, of: int):
    groups: dict[int, str] = {}
    for number in range(60):
        group = f"group {number % 11}" if number % 5 else ""
        api.send("q", f"m{number}", group_id=group)
        groups[number] = group
    await leased(api)
    parts = [bodies(await api.get(f"{ROWS}?part={part}&of={of}")).split() for part in range(of)]
    assert sorted(body for part in parts for body in part) == sorted(f"m{number}" for number in groups)
    places = [{groups[int(body[1:])] for body in part} - {""} for part in parts]
    assert sum(len(place) for place in places) == 11
    for part in parts:
        numbers = [int(body[1:]) for body in part]
        assert numbers == sorted(numbers)
    if of > 1:
        assert all(any(groups[int(body[1:])] == "" for body in part) for part in parts)


async def test_the_part_of_a_group_is_the_same_in_every_lease(api: Api):
    for _ in range(2):
        api.send("q", "tea", group_id="tea")
    await api.open("g")
    for lease in range(2):
        await api.lease(lease, 1, max_rows=1)
        found = [bodies(await api.get(f"/api/v1/leases/g/{lease + 1}/rows?part={part}&of=5")) for part in range(5)]
        assert found == ["", "", "", "", "tea"]  # crc32 of "tea" is 4 of 5, in every release


async def test_a_part_is_taken_of_the_rows_asked_for(api: Api):
    api.send("q", "a b c d")
    await leased(api)
    assert sorted([bodies(await api.get(f"{ROWS}?lo=1&hi=3&part={part}&of=2")) for part in range(2)]) == ["b", "c"]


@pytest.mark.parametrize("query", ["part=2&of=2", "part=1", "of=0", "part=-1&of=2", "of=10001"])
async def test_parts_that_are_none_are_refused(api: Api, query: str):
    api.send("q", "a")
    await leased(api)
    assert problem(await api.get(f"{ROWS}?{query}"))[::2] == (400, "INVALID")


async def test_a_body_that_is_too_long_is_refused_before_any_row_is_sent(api: Api):
    api.send("q", " ".join(["a"] * ROWS_PER_TURN + ["long"]))
    await leased(api)
    newest = api.broker.queues["q"].newest_sequence
    response = await api.get(f"{ROWS}?max_body_bytes=3")
    assert problem(response) == (409, "DMQ6420", "BODY_TOO_LARGE")
    assert f"message {newest} has 4 bytes, and max_body_bytes is 3" in response.json()["detail"]
    assert (await rows(api, "max_body_bytes=4")).column_names == [name for name in NAMES if name != "properties"]
    assert (await rows(api, f"max_body_bytes=3&hi={ROWS_PER_TURN}")).num_rows == ROWS_PER_TURN


async def test_a_body_that_is_too_long_is_left_out_where_references_are_wanted(api: Api):
    api.send("q", "a long b")
    await leased(api)
    found = await rows(api, "columns=body,sequence&max_body_bytes=3&large=reference")
    assert found.column_names == ["body", "sequence", "body_bytes"]
    assert found["body"].to_pylist() == [b"a", b"", b"b"]
    assert found["body_bytes"].to_pylist() == [1, 4, 1]
    sequence = found["sequence"].to_pylist()[1]
    response = await api.get(f"{ROWS}/{sequence}/body")
    assert (response.status_code, response.content) == (200, b"long")
    assert response.headers["content-type"] == "application/octet-stream"


async def test_the_length_of_bodies_is_a_column_of_those_who_ask_for_it(api: Api):
    api.send("q", "a long")
    await leased(api)
    assert (await rows(api, "columns=body_bytes")).to_pydict() == {"body_bytes": [1, 4]}


async def test_a_body_of_a_row_that_is_not_there(api: Api):
    api.send("q", "a b")
    await api.open("g")
    await api.lease(0, 1, max_rows=1)
    newest = api.broker.queues["q"].newest_sequence
    assert problem(await api.get(f"{ROWS}/{newest}/body")) == (404, "DMQ5405", "NOT_FOUND")
    assert problem(await api.get(f"/api/v1/leases/g/2/rows/{newest}/body")) == (404, "DMQ2407", "LEASE_LOST")
    assert problem(await api.get(f"{ROWS}/x/body"))[::2] == (400, "INVALID")
