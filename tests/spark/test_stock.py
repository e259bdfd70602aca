"""The source over OpenWire as Spark calls it, without Spark; DelosMQ is the broker, whose leases it does not use."""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

import delosmq
from delosmq.client import BytesMessage, ClientConnection, MapMessage, StreamMessage, TextMessage
from delosmq.model.errors import BrokerError
from delosmq.spark.errors import AnswerError, BrokerUnreachableError, OptionError
from delosmq.spark.options import SourceOptions
from delosmq.spark.schema import COLUMNS
from delosmq.spark.source.data_source import DelosSource
from delosmq.spark.stock import consumers
from delosmq.spark.stock.options import MISSING_COLUMNS, MOST_BYTES, MOST_ROWS, REFUSED, StockOptions
from delosmq.spark.stock.readers import StockStreamReader

# No JVM is started, but pyspark has to be there.
pytestmark = pytest.mark.spark

LEAST = {"servers": "tcp://localhost:61616", "subscribe": "q"}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[delosmq.Broker]:
    with delosmq.Broker(tmp_path / "data") as broker:
        yield broker


@pytest.fixture
def sender(broker: delosmq.Broker) -> Iterator[ClientConnection]:
    with delosmq.connect(f"failover:({broker.openwire_url})", user=broker.user, password=broker.password) as connection:
        yield connection


@pytest.fixture
def source_of(broker: delosmq.Broker) -> Callable[..., DelosSource]:
    def make(**options: str) -> DelosSource:
        raw = {"servers": broker.openwire_url, "user": broker.user, "password": broker.password, "subscribe": "q"}
        given = {name.replace("_", "."): text for name, text in options.items()}
        return DelosSource({**raw, "columns": "body,redelivered", "retryTimeoutMs": "20000", **given})

    return make


@pytest.fixture
def reader_of(source_of: Callable[..., DelosSource]) -> Iterator[Callable[..., Any]]:
    """Makes stream readers, each as the source process of a new run would."""
    made: list[Any] = []

    def make(**options: str) -> Any:
        source = source_of(**{"pollTimeoutMs": "10000", **options})
        made.append(source.streamReader(source.schema()))
        return made[-1]

    yield make
    for reader in made:
        reader.stop()


def rows_of(reader: Any, start: Any, end: Any) -> list[dict[str, Any]]:
    """What tasks read, in processes of their own."""
    partitions = pickle.loads(pickle.dumps(reader.partitions(start, end)))
    remote = pickle.loads(pickle.dumps(reader))
    return [row for partition in partitions for batch in remote.read(partition) for row in batch.to_pylist()]


def numbers_of(reader: Any, start: Any, end: Any) -> list[int]:
    return [int(row["body"]) for row in rows_of(reader, start, end)]


def send(sender: ClientConnection, numbers: range, to: str = "q", **headers: Any) -> None:
    for number in numbers:
        sender.send(to, str(number), **headers)


# PIPE-4
def test_a_batch_is_acknowledged_by_the_call_that_follows_it(sender: ClientConnection, reader_of: Callable[..., Any]):
    send(sender, range(25))
    first = reader_of()
    start = first.initialOffset()
    one = first.latestOffset(start, ReadMaxRows(10))
    two = first.latestOffset(one, ReadMaxRows(10))
    assert numbers_of(first, one, two) == list(range(10, 20))
    first.stop()
    second = reader_of()
    assert second.partitions(one, two) == []  # what a restarted query repeats comes later
    three = second.latestOffset(two, ReadMaxRows(100))
    rows = rows_of(second, two, three)
    assert [int(row["body"]) for row in rows] == list(range(10, 25))
    assert [row["redelivered"] for row in rows[:10]] == [True] * 10
    assert [one["batch"], two["batch"], three["batch"]] == [1, 2, 3]


def test_a_batch_stays_as_it_is_until_the_next_one_is_asked_for(
    sender: ClientConnection, reader_of: Callable[..., Any]
):
    send(sender, range(5))
    reader = reader_of()
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxRows(3))
    assert reader.latestOffset(start, ReadMaxRows(3)) == end
    assert [numbers_of(reader, start, end) for _ in range(2)] == [[0, 1, 2]] * 2
    after = reader.latestOffset(end, ReadMaxRows(3))
    with pytest.raises(AnswerError, match="DMQ8296"):
        reader.partitions(start, end)
    assert numbers_of(reader, end, after) == [3, 4]
    reader.commit(after)
    assert reader_of(pollTimeoutMs="100").latestOffset(after, ReadMaxRows(3)) == after


def test_batches_are_bounded_by_bytes(sender: ClientConnection, reader_of: Callable[..., Any]):
    for _ in range(3):
        sender.send("q", b"x" * 10_000)
    reader = reader_of(maxBytesPerTrigger="15000")
    start = reader.initialOffset()
    assert len(rows_of(reader, start, reader.latestOffset(start, ReadMaxRows(100)))) == 2


def test_rows_travel_in_tasks_of_bounded_size(
    sender: ClientConnection, reader_of: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(consumers, "PARTITION_BYTES", 1_000)
    send(sender, range(20))
    reader = reader_of()
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxRows(20))
    assert len(reader.partitions(start, end)) == 4
    assert numbers_of(reader, start, end) == list(range(20))


def test_each_consumer_has_a_partition_and_a_group_one_consumer(
    sender: ClientConnection, reader_of: Callable[..., Any]
):
    reader = reader_of(minPartitions="3", columns="body,group_id", pollTimeoutMs="300")
    start = reader.initialOffset()
    assert reader.latestOffset(start, ReadMaxRows(1)) == start  # its consumers are there now
    for number in range(30):
        sender.send("q", TextMessage(str(number), group_id=f"g{number % 6}"))
    count, most, end = 0, 0, start
    while count < 30:
        begun, end = end, reader.latestOffset(end, ReadMaxRows(30))
        partitions = [] if begun == end else reader.partitions(begun, end)
        groups = [
            [row["group_id"] for batch in reader.read(partition) for row in batch.to_pylist()]
            for partition in partitions
        ]
        assert sum(len(set(one)) for one in groups) == len({group for one in groups for group in one})
        count, most = count + sum(map(len, groups)), max(most, len(groups))
    assert (count, most) == (30, 3)


def test_a_broker_that_restarts_gives_again_what_was_not_acknowledged(
    broker: delosmq.Broker, sender: ClientConnection, reader_of: Callable[..., Any]
):
    send(sender, range(10))
    reader = reader_of()
    start = reader.initialOffset()
    one = reader.latestOffset(start, ReadMaxRows(4))
    two = reader.latestOffset(one, ReadMaxRows(4))
    broker.restart()
    assert numbers_of(reader, one, two) == [4, 5, 6, 7]
    seen: list[int] = []
    end = two
    while len(seen) < 6:
        begun, end = end, reader.latestOffset(end, ReadMaxRows(100))
        seen += numbers_of(reader, begun, end) if begun != end else []
    assert sorted(seen) == list(range(4, 10))


def test_a_topic_keeps_messages_while_the_query_is_away(sender: ClientConnection, reader_of: Callable[..., Any]):
    first = reader_of(subscribe="topic://prices", group_id="report", pollTimeoutMs="100")
    start = first.initialOffset()
    assert first.latestOffset(start, ReadMaxRows(5)) == start
    first.stop()
    send(sender, range(3), "topic://prices")
    second = reader_of(subscribe="topic:prices", group_id="report", columns="body,address,queue")
    end = second.latestOffset(start, ReadMaxRows(5))
    rows = rows_of(second, start, end)
    assert [int(row["body"]) for row in rows] == [0, 1, 2]
    assert {(row["address"], row["queue"]) for row in rows} == {("prices", "prices")}


def test_the_broker_selects(sender: ClientConnection, reader_of: Callable[..., Any]):
    send(sender, range(2), properties={"kind": "cheap"})
    send(sender, range(2, 4), properties={"kind": "dear"})
    reader = reader_of(selector="kind = 'dear'", subscribe="q?consumer.priority=5")
    start = reader.initialOffset()
    assert numbers_of(reader, start, reader.latestOffset(start, ReadMaxRows(9))) == [2, 3]


def test_what_is_available_now_ends_under_traffic(sender: ClientConnection, reader_of: Callable[..., Any]):
    send(sender, range(3))
    reader = reader_of()
    end = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    seen = []
    for batch in range(10):
        send(sender, range(10 * batch + 10, 10 * batch + 13))
        begun, end = end, reader.latestOffset(end, ReadMaxRows(3))
        if begun == end:
            break
        seen += numbers_of(reader, begun, end)
    assert seen == [0, 1, 2, 10, 11, 12]
    assert reader.latestOffset(end, ReadMaxRows(9)) == end


# PIPE-4
def test_rows_are_those_of_the_source_over_leases(
    broker: delosmq.Broker, sender: ClientConnection, source_of: Callable[..., DelosSource]
):
    properties = {"price": 2.5, "count": 3, "urgent": True, "name": "Ä"}
    sender.send("q", "täxt", properties=properties, priority=7, persistent=False, time_to_live_ms=600_000)
    sender.send("q", BytesMessage(b"\x00\xff", correlation_id="c", reply_to="topic://answers", type="t", group_id="g"))
    sender.send("q", MapMessage({"a": 1, "b": b"x", "c": [1.5, None]}))
    sender.send("q", StreamMessage(["x", 1 << 40]))
    sender.send("q", None)

    def read(servers: str) -> list[dict[str, Any]]:
        source = source_of(servers=servers, columns=",".join(sorted({c.name for c in COLUMNS} - set(MISSING_COLUMNS))))
        reader = source.reader(source.schema())
        tables = [pa.Table.from_batches(list(reader.read(partition))) for partition in reader.partitions()]
        return sorted(pa.concat_tables(tables).to_pylist(), key=lambda row: str(row["body"]))

    assert broker.http_url is not None
    with_leases, over_openwire = read(broker.http_url), read(broker.openwire_url)
    differing = ("message_id", "timestamp", "expiration", "delivery_count", "user")
    for one, other in zip(with_leases, over_openwire, strict=True):
        assert {name: other[name] for name in one if name not in differing} == {
            name: value for name, value in one.items() if name not in differing
        }
        assert other["message_id"].startswith("ID:")
        assert abs((one["timestamp"] - other["timestamp"]).total_seconds()) < 60
        assert (one["expiration"] is None) == (other["expiration"] is None)
    assert {row["body_kind"] for row in over_openwire} == {"text", "bytes", "map", "stream", "empty"}


def test_halves_of_characters_do_not_stop_a_query(sender: ClientConnection, reader_of: Callable[..., Any]):
    sender.send("q", "a\ud800", properties={"half": "\ud800b"})
    reader = reader_of(columns="body,properties")
    start = reader.initialOffset()
    (row,) = rows_of(reader, start, reader.latestOffset(start, ReadMaxRows(9)))
    assert (row["body"], row["properties"]) == (b"a\xed\xa0\x80", [("half", "?b")])


def test_times_that_no_reader_has_do_not_stop_a_query(sender: ClientConnection, reader_of: Callable[..., Any]):
    sender.send("q", "a", time_to_live_ms=(1 << 62) - 1)
    reader = reader_of(columns="expiration")
    start = reader.initialOffset()
    (row,) = rows_of(reader, start, reader.latestOffset(start, ReadMaxRows(9)))
    assert row["expiration"] == datetime(9999, 12, 31, 23, 59, 59, 999_000, UTC)


def test_an_executor_loads_nothing_of_a_client_and_gets_no_password(
    sender: ClientConnection, reader_of: Callable[..., Any], tmp_path: Path
):
    send(sender, range(3))
    reader = reader_of()
    start = reader.initialOffset()
    (partition,) = reader.partitions(start, reader.latestOffset(start, ReadMaxRows(9)))
    pickled = pickle.dumps((reader, partition))
    assert b"61616" not in pickled
    assert b"tcp://" not in pickled
    program = """
import pickle, sys
import pyspark_delosmq
reader, partition = pickle.load(open(sys.argv[1], "rb"))
print(*(row["body"] for batch in reader.read(partition) for row in batch.to_pylist()))
print(*(name for name in sys.modules if name.startswith(("delosmq.client.", "delosmq.wire", "delosmq.sessions"))))
"""
    (tmp_path / "task").write_bytes(pickled)
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "task")],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ,
        timeout=120,
    )
    assert done.stdout.splitlines() == ["b'0' b'1' b'2'", ""]


def test_a_broker_that_is_away_is_named_with_the_remedy(broker: delosmq.Broker, reader_of: Callable[..., Any]):
    reader = reader_of(retryTimeoutMs="0", servers="tcp://127.0.0.1:1,tcp://127.0.0.1:2")
    with pytest.raises(
        BrokerUnreachableError, match=r"DMQ8293.*tcp://127\.0\.0\.1:1, tcp://127\.0\.0\.1:2.*retryTimeoutMs"
    ):
        reader.latestOffset(reader.initialOffset(), ReadMaxRows(1))


def test_the_servers_are_tried_in_turn(broker: delosmq.Broker, sender: ClientConnection, reader_of: Callable[..., Any]):
    send(sender, range(1))
    reader = reader_of(servers=f"tcp://127.0.0.1:1,{broker.openwire_url}")
    start = reader.initialOffset()
    assert numbers_of(reader, start, reader.latestOffset(start, ReadMaxRows(1))) == [0]


def test_a_wrong_password_is_refused_at_once(reader_of: Callable[..., Any]):
    reader = reader_of(password="wrong")
    with pytest.raises(BrokerError, match="DMQ9020"):
        reader.latestOffset(reader.initialOffset(), ReadMaxRows(1))


def test_checkpoints_of_the_other_kind_of_source_are_refused(
    broker: delosmq.Broker, reader_of: Callable[..., Any], source_of: Callable[..., DelosSource]
):
    with pytest.raises(AnswerError, match=r"DMQ8297.*over leases"):
        reader_of().latestOffset({"lease": 1, "incarnation": "x"}, ReadMaxRows(1))
    over_leases = source_of(servers=str(broker.http_url), group_id="g")
    with pytest.raises(AnswerError, match=r"DMQ8298.*over OpenWire"):
        over_leases.streamReader(over_leases.schema()).latestOffset({"run": "x", "batch": 1}, ReadMaxRows(1))


def options_of(**options: str) -> StockOptions:
    parsed = DelosSource({**LEAST, **{name.replace("_", "."): text for name, text in options.items()}}).parsed
    assert isinstance(parsed, StockOptions)
    return parsed


def test_addresses_have_the_ports_of_brokers():
    options = options_of(servers="tcp://a,ssl://b, tcp://[::1]:5")
    assert options.servers == ("tcp://a:61616", "ssl://b:61617", "tcp://[::1]:5")
    assert isinstance(DelosSource({**LEAST, "servers": "a"}).parsed, SourceOptions)
    assert (options.common.max_rows, options.common.max_bytes) == (MOST_ROWS, MOST_BYTES)
    assert "sequence" not in options.columns
    assert "properties" in options_of(includeHeaders="true").columns


@pytest.mark.parametrize(
    "wrong, sentence",
    [
        *(({name: "1"}, f"DMQ8291.*{name} is not for servers.*{REFUSED[name][:20]}") for name in REFUSED),
        ({"STARTINGOFFSETS": "latest"}, "DMQ8291.*startingOffsets"),
        *(({"columns": f"body,{name}"}, f"DMQ8291.*{name}.*{MISSING_COLUMNS[name]}") for name in MISSING_COLUMNS),
        ({"servers": "tcp://a;tcp://b"}, "DMQ8290.*a query for each"),
        ({"servers": "tcp://a,http://b"}, "DMQ8290.*'http://b'.*can't be mixed"),
        ({"servers": "failover:(tcp://a)"}, "DMQ8290.*failover: would hide"),
        ({"servers": "tcp://a:x"}, "DMQ8290.*wrong port"),
        ({"servers": "tcp://a?jms.useCompression=true"}, "DMQ8290.*is not tcp://host:port"),
        ({"servers": "tcp://me:s3cret@a"}, "DMQ8290.*must not carry a login"),
        ({"tls.verifyHostname": "false"}, "DMQ8290.*write ssl://"),
        ({"minPartitions": "65"}, "DMQ8290.*64 at most"),
        ({"subscripe": "x"}, "DMQ8001.*did you mean subscribe"),
        ({"maxOffsetsPerTrigger": "0"}, "DMQ8003.*whole number"),
    ],
)
def test_a_wrong_option_is_refused_with_a_sentence(wrong: dict[str, str], sentence: str):
    with pytest.raises(OptionError, match=sentence) as refused:
        _ = DelosSource({**LEAST, **wrong}).parsed
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize(
    "wrong, sentence",
    [
        ({"group.id": "g"}, "DMQ8291.*group.id is for topics"),
        ({"subscribe": "topic:t"}, "DMQ8292.*group.id is needed"),
        ({"subscribe": "topic:t", "group.id": "g", "minPartitions": "2"}, "DMQ8292.*one consumer"),
    ],
)
def test_a_stream_refuses_what_it_cannot_keep(wrong: dict[str, str], sentence: str):
    source = DelosSource({**LEAST, **wrong})
    reader = source.streamReader(source.schema())
    assert isinstance(reader, StockStreamReader)
    with pytest.raises(OptionError, match=sentence):
        reader.initialOffset()


@pytest.mark.parametrize(
    "wrong, sentence",
    [
        ({"subscribe": "topic:t"}, "DMQ8292.*name a queue bound to it"),
        ({"group.id": "g"}, "DMQ8291.*group.id is for streams"),
        ({"minPartitions": "2"}, "DMQ8291.*minPartitions is for streams"),
    ],
)
def test_a_batch_refuses_what_it_cannot_keep(wrong: dict[str, str], sentence: str):
    source = DelosSource({**LEAST, **wrong})
    with pytest.raises(OptionError, match=sentence):
        source.reader(source.schema())
