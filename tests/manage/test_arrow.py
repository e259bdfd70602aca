"""Rows as Arrow: schema, values, slices, and a broker without pyarrow."""

import asyncio
import io
import logging
import sys
import zlib
from datetime import UTC, datetime

import pyarrow
import pytest

from delosmq.manage.http.arrow import SLICE_BYTES, SLICE_ROWS
from delosmq.model.ids import WallMs
from delosmq.model.message import MAP_BODY, OBJECT_BODY, Message
from delosmq.wire.openwire.commands import OBJECT_MESSAGE, MessageCommand
from delosmq.wire.openwire.heads import encode_head
from delosmq.wire.openwire.structures import Destination, MessageId, ProducerId
from tests.manage.support import START_MS, Api, bodies, problem, table

ROWS = "/api/v1/leases/g/1/rows"
HEAD = (
    b"destination:q\ncorrelation-id:c1\nreply-to:back\ntype:order\ncontent-type:text/plain\nJMSXGroupID:g7\n"
    b"k\\c1:v\\n1\n"
)


async def leased(api: Api, words: str, head: bytes = b"", max_bytes: int = 1 << 30) -> None:
    api.send("q", words, head=head)
    await api.open("g")
    await api.lease(0, 1, max_rows=100_000, max_bytes=max_bytes)


async def test_a_row_has_every_column(api: Api):
    await leased(api, "hello", HEAD)
    message = api.broker.leases.find("g").leases[1].slots[0].message
    found = table(await api.get(f"{ROWS}?headers=true"))
    assert found.to_pylist() == [
        {
            "body": b"hello",
            "message_id": f"ID:{message.message_id}",
            "address": "q",
            "queue": "q",
            "sequence": message.sequence,
            "priority": 4,
            "durable": True,
            "timestamp": datetime.fromtimestamp(START_MS / 1000, UTC),
            "expiration": None,
            "redelivered": False,
            "delivery_count": 1,
            "group_id": "g7",
            "correlation_id": "c1",
            "reply_to": "back",
            "type": "order",
            "content_type": "text/plain",
            "user": "producer",
            "protocol": "STOMP",
            "properties": [("k:1", "v\n1")],
            "body_kind": "text",
        }
    ]


async def test_the_schema_is_the_published_one(api: Api):
    await leased(api, "a")
    string, stamp = pyarrow.string(), pyarrow.timestamp("us", tz="UTC")
    expected = [
        ("body", pyarrow.binary(), False),
        ("message_id", string, False),
        ("address", string, False),
        ("queue", string, False),
        ("sequence", pyarrow.int64(), False),
        ("priority", pyarrow.int32(), False),
        ("durable", pyarrow.bool_(), False),
        ("timestamp", stamp, False),
        ("expiration", stamp, True),
        ("redelivered", pyarrow.bool_(), False),
        ("delivery_count", pyarrow.int32(), False),
        ("group_id", string, True),
        ("correlation_id", string, True),
        ("reply_to", string, True),
        ("type", string, True),
        ("content_type", string, True),
        ("user", string, True),
        ("protocol", string, False),
        ("properties", pyarrow.map_(string, string), False),
        ("body_kind", string, False),
    ]
    schema = table(await api.get(f"{ROWS}?headers=true")).schema
    assert [(field.name, field.type, field.nullable) for field in schema] == expected


async def test_properties_come_only_with_headers(api: Api):
    await leased(api, "a", HEAD)
    assert "properties" not in table(await api.get(ROWS)).column_names
    assert table(await api.get(f"{ROWS}?columns=properties,body")).column_names == ["body"]


async def test_columns_are_those_asked_for_in_the_order_of_the_schema(api: Api):
    await leased(api, "a")
    assert table(await api.get(f"{ROWS}?columns=sequence,body")).column_names == ["body", "sequence"]


async def test_a_column_that_does_not_exist(api: Api):
    await leased(api, "a")
    response = await api.get(f"{ROWS}?columns=body,bdy")
    assert problem(response) == (400, "DMQ6411", "INVALID")
    assert "'bdy'" in response.json()["detail"]


async def test_lo_and_hi_cut_a_lease_and_change_nothing(api: Api):
    await leased(api, "a b c d")
    for _ in range(2):
        assert bodies(await api.get(f"{ROWS}?lo=1&hi=3")) == "b c"
    assert bodies(await api.get(f"{ROWS}?lo=3&hi=99")) == "d"
    assert table(await api.get(f"{ROWS}?lo=4&hi=99")).num_rows == 0
    assert table(await api.get(f"{ROWS}?columns=delivery_count")).column(0).to_pylist() == [1, 1, 1, 1]


async def test_expiration_and_redelivery_are_shown(api: Api):
    api.broker.producers.send(
        Message(
            "q",
            "stomp/12",
            b"",
            b"{}",
            body_kind=MAP_BODY,
            timestamp_ms=api.host.clock.wall_ms(),
            expires_at_ms=START_MS + 1,
        )
    )
    await api.open("g")
    await api.lease(0, 1)
    await api.post("/api/v1/leases/g/release", {})
    again = await api.open("g")
    await api.lease(0, again["epoch"])
    row = table(await api.get(ROWS)).to_pylist()[0]
    assert (row["redelivered"], row["delivery_count"], row["user"], row["body_kind"]) == (True, 2, None, "map")
    assert row["expiration"] == datetime.fromtimestamp((START_MS + 1) / 1000, UTC)


async def test_times_that_a_client_sets_too_late_for_any_reader_are_the_last_that_all_have(api: Api):
    never = (1 << 63) - 1
    api.broker.producers.send(
        Message("q", "openwire/12", b"", b"x", timestamp_ms=WallMs(never), expires_at_ms=WallMs(never))
    )
    await api.open("g")
    await api.lease(0, 1)
    row = table(await api.get(f"{ROWS}?columns=timestamp,expiration")).to_pylist()[0]
    last = datetime(9999, 12, 31, 23, 59, 59, 999_000, UTC)
    assert row == {"timestamp": last, "expiration": last}


async def test_batches_end_at_the_row_limit(api: Api):
    await leased(api, " ".join("x" * (2 * SLICE_ROWS + 1)))
    found = table(await api.get(ROWS))
    assert [batch.num_rows for batch in found.to_batches()] == [SLICE_ROWS, SLICE_ROWS, 1]


async def test_batches_end_at_the_size_limit(api: Api):
    await leased(api, " ".join(["x" * (SLICE_BYTES // 2)] * 5))
    found = table(await api.get(f"{ROWS}?columns=body"))
    assert [batch.num_rows for batch in found.to_batches()] == [2, 2, 1]


async def test_bodies_that_are_not_asked_for_make_no_batches(api: Api):
    await leased(api, " ".join(["x" * (SLICE_BYTES // 2)] * 5))
    found = table(await api.get(f"{ROWS}?columns=sequence,timestamp"))
    assert [batch.num_rows for batch in found.to_batches()] == [5]


async def test_batches_end_at_the_size_that_compressed_bodies_grow_to(api: Api):
    sent = MessageCommand(OBJECT_MESSAGE)
    sent.destination = Destination("q")
    sent.message_id = MessageId(ProducerId("ID:c", 1, 1), 1)
    sent.content = zlib.compress(bytes(SLICE_BYTES // 2))
    sent.compressed = True
    head, now = encode_head(sent, 12, 0), api.host.clock.wall_ms()
    for _ in range(5):
        api.broker.producers.send(
            Message("q", "openwire/12", head, sent.content, body_kind=OBJECT_BODY, timestamp_ms=now)
        )
    await leased(api, "x")
    found = table(await api.get(f"{ROWS}?columns=body"))
    assert [batch.num_rows for batch in found.to_batches()] == [2, 2, 2]
    assert len(found.column("body")[0].as_py()) == SLICE_BYTES // 2


async def test_rows_of_a_lease_that_is_acknowledged_or_of_no_group(api: Api):
    await leased(api, "a")
    await api.post("/api/v1/leases/g/ack", {"lease": 1, "epoch": 1})
    assert problem(await api.get(ROWS)) == (404, "DMQ2407", "LEASE_LOST")
    assert problem(await api.get("/api/v1/leases/none/1/rows")) == (404, "DMQ2405", "LEASE_LOST")


@pytest.mark.parametrize("number", ["x", "-1", "1" * 30])
async def test_what_is_no_number_of_a_lease(api: Api, number: str):
    await api.open("g")
    assert problem(await api.get(f"/api/v1/leases/g/{number}/rows")) == (400, "DMQ6408", "INVALID")


async def test_a_parameter_given_twice(api: Api):
    await leased(api, "a")
    assert problem(await api.get(f"{ROWS}?lo=0&lo=1")) == (400, "DMQ6406", "INVALID")


async def test_a_message_of_an_unknown_encoding_does_not_stop_the_rest(api: Api, caplog: pytest.LogCaptureFixture):
    api.broker.producers.send(Message("q", "carrier-pigeon", b"?", b"coo", timestamp_ms=api.host.clock.wall_ms()))
    await leased(api, "a")
    with caplog.at_level(logging.WARNING):
        found = table(await api.get(f"{ROWS}?headers=true"))
    assert found.column("body").to_pylist() == [b"coo", b"a"]
    assert found.column("properties").to_pylist() == [[], []]
    assert "DMQ6413" in caplog.text


async def test_rows_under_way_outlive_the_acknowledgement(api: Api):
    await leased(api, " ".join("x" * (3 * SLICE_ROWS)))
    fetching = asyncio.create_task(api.get(f"{ROWS}?columns=body"))
    await api.settle()
    await api.post("/api/v1/leases/g/ack", {"lease": 1, "epoch": 1})
    with pyarrow.ipc.open_stream(io.BytesIO((await fetching).content)) as reader:
        assert reader.read_all().num_rows == 3 * SLICE_ROWS


async def test_a_broker_without_pyarrow_says_what_to_install(api: Api, monkeypatch: pytest.MonkeyPatch):
    await leased(api, "a")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    response = await api.get(ROWS)
    assert problem(response) == (501, "DMQ6412", "NOT_INSTALLED")
    assert "pip install 'delosmq[arrow]'" in response.json()["detail"]
