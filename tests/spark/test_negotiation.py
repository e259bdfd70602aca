"""What a source asks of a broker beyond the first version of the lease calls: selectors, places to begin, large bodies,
partitions by message group, signs of life; and what it says of a broker that lacks them."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from delosmq.model.declared.lease_life import LIVE_WINDOW_MS
from delosmq.model.errors import BrokerError
from delosmq.spark.errors import BodyTooLargeError, GroupBusyError, LeaseLostError, OptionError
from delosmq.spark.lease_client import BUSY_ATTEMPTS, BUSY_PAUSE_S
from delosmq.spark.source import heartbeat
from delosmq.spark.source.data_source import DelosSource
from delosmq.spark.source.large_bodies import LargeBodies
from delosmq.spark.source.stream_reader import LeaseStreamReader
from tests.spark.fake_broker import FakeBroker
from tests.spark.fake_rows import START

pytestmark = pytest.mark.spark


@pytest.fixture
def sources(fake: FakeBroker) -> Iterator[Any]:
    """Makes readers of queue q, each as a new process would."""
    made: list[Any] = []

    def make(kind: str = "stream", **options: str) -> Any:
        raw = {"servers": fake.servers, "user": fake.user, "password": fake.password, "subscribe": "q"}
        raw |= {"columns": "body,sequence", "retryTimeoutMs": "0"}
        raw |= ({"group.id": "g", "pollTimeoutMs": "0"} if kind == "stream" else {}) | options
        source = DelosSource(raw)
        reader = source.streamReader(source.schema()) if kind == "stream" else source.reader(source.schema())
        made.append(reader)
        return reader

    yield make
    for reader in made:
        reader.stop() if isinstance(reader, LeaseStreamReader) else reader.close()


def rows_of(reader: Any, partitions: Any) -> list[Any]:
    return [row for part in partitions for batch in reader.read(part) for row in batch.to_pylist()]


def streamed(reader: Any, rows: int = 100) -> list[int]:
    start = reader.initialOffset()
    return [row["sequence"] for row in rows_of(reader, reader.partitions(start, next_of(reader, start, rows)))]


def next_of(reader: Any, start: Any, rows: int = 100) -> Any:
    return reader.latestOffset(start, ReadMaxRows(rows))


def browsed(reader: Any) -> list[int]:
    return [row["sequence"] for row in rows_of(reader, reader.partitions())]


def time_of(sequence: int) -> int:
    return int(START.timestamp() * 1000) + 1000 * sequence


@pytest.mark.parametrize(
    "start, first",
    [
        ("earliest", 1),
        ("latest", 6),
        ('{"sequence": 3}', 3),
        (f'{{"time_ms": {time_of(4)}}}', 4),
        ('{"time": "2026-03-01T23:50:01.500Z"}', 2),
    ],
)
def test_a_stream_begins_where_it_is_told_to(fake: FakeBroker, sources: Any, start: str, first: int):
    fake.publish("q", [b"x"] * 5)
    reader = sources(startingOffsets=start)
    begun = reader.initialOffset()
    fake.publish("q", [b"x"] * 2)
    parts = reader.partitions(begun, next_of(reader, begun))
    assert [row["sequence"] for row in rows_of(reader, parts)] == list(range(first, 8))


def test_where_to_begin_counts_only_when_the_group_is_made(fake: FakeBroker, sources: Any):
    fake.publish("q", [b"x"] * 5)
    reader = sources()
    end = next_of(reader, reader.initialOffset(), 2)
    reader = sources(startingOffsets="latest")
    assert [row["sequence"] for row in rows_of(reader, reader.partitions(end, next_of(reader, end)))] == [3, 4, 5]


def test_a_selector_leaves_the_rest_in_the_queue(fake: FakeBroker, sources: Any):
    fake.publish("q", [b"x"] * 6, headers=[{"priority": "9"}, {"priority": "1"}])
    assert streamed(sources(selector="JMSPriority > 5")) == [1, 3, 5]
    assert len(fake.queues["q"].ready) == 3
    with pytest.raises(BrokerError, match="another selector"):
        sources(selector="JMSPriority > 6").initialOffset()


@pytest.mark.parametrize(
    "options, sequences",
    [
        ({"selector": "JMSPriority > 5"}, [1, 3, 5]),
        ({"startingOffsets": f'{{"time_ms": {time_of(2)}}}'}, [2, 3, 4, 5, 6]),
        ({"endingOffsets": f'{{"time_ms": {time_of(3)}}}'}, [1, 2]),
        ({"startingOffsets": '{"sequence": 2}', "endingOffsets": f'{{"time_ms": {time_of(4)}}}'}, [2, 3]),
    ],
)
def test_a_batch_reads_what_it_is_told_to(fake: FakeBroker, sources: Any, options: Any, sequences: list[int]):
    fake.publish("q", [b"x"] * 6, headers=[{"priority": "9"}, {"priority": "1"}])
    assert browsed(sources("batch", **options, minPartitions="3")) == sequences


def test_a_batch_reads_several_queues(fake: FakeBroker, sources: Any):
    fake.publish("a", [b"1", b"2"])
    fake.publish("b", [b"3"])
    assert browsed(sources("batch", subscribe="a,b")) == [1, 2, 3]


# PIPE-3
def test_a_message_group_stays_in_one_partition_and_in_order(fake: FakeBroker, sources: Any):
    names = ["a", "b", "c", "d", "e"]
    fake.publish("q", [b"x"] * 100, headers=[{"JMSXGroupID": name} for name in names])
    reader = sources(partitionBy="group", minPartitions="3", columns="group_id,sequence")
    start = reader.initialOffset()
    partitions = reader.partitions(start, next_of(reader, start))
    assert len(partitions) == 3
    read = [rows_of(reader, [part]) for part in partitions]
    groups = [{row["group_id"] for row in rows} for rows in read]
    assert sorted(name for some in groups for name in some) == names
    assert all(rows == sorted(rows, key=lambda row: row["sequence"]) for rows in read)
    assert sum(map(len, read)) == 100


def test_a_part_that_breaks_off_is_taken_up_where_it_broke(fake: FakeBroker, sources: Any):
    fake.publish("q", [b"x" * 100] * 2000, headers=[{"JMSXGroupID": str(name)} for name in range(50)])
    reader = sources(partitionBy="group", minPartitions="2", retryTimeoutMs="5000")
    start = reader.initialOffset()
    partitions = reader.partitions(start, next_of(reader, start, 2000))
    whole = [rows_of(reader, [part]) for part in partitions]
    fake.cut_after_bytes = 70_000
    broken = [rows_of(reader, [part]) for part in partitions]
    assert broken == whole
    assert sum(map(len, whole)) == 2000
    assert len(fake.fetches) > 4


def test_a_large_body_is_refused_or_comes_as_a_reference(fake: FakeBroker, sources: Any):
    fake.publish("q", [b"small", b"much too large"])
    reader = sources(maxBodyBytes="10")
    start = reader.initialOffset()
    end = next_of(reader, start)
    with pytest.raises(BodyTooLargeError, match=r"DMQ8068: .*ID:2.*14 bytes"):
        rows_of(reader, reader.partitions(start, end))
    reader = sources(maxBodyBytes="10", largeBodies="reference")
    rows = rows_of(reader, reader.partitions(start, end))
    assert [row["body"] for row in rows] == [b"small", b""]
    assert rows[0]["body_reference"] is None
    login = {"servers": fake.servers, "user": fake.user, "password": fake.password, "subscribe": "q"}
    with LargeBodies(login) as bodies:
        assert bodies.fetch(rows[1]["body_reference"]) == b"much too large"
        fake.release("g")
        with pytest.raises(LeaseLostError):
            bodies.fetch(rows[1]["body_reference"])


@pytest.fixture
def other() -> Iterator[FakeBroker]:
    broker = FakeBroker()
    yield broker
    broker.stop()


def test_a_reference_is_fetched_from_the_broker_of_its_row(fake: FakeBroker, other: FakeBroker, sources: Any):
    fake.publish("q", [b"body of the first broker"])
    other.publish("q", [b"body of the second one"])
    both = f"{fake.servers};{other.servers}"
    reader = sources(servers=both, maxBodyBytes="10", largeBodies="reference")
    start = reader.initialOffset()
    references = [row["body_reference"] for row in rows_of(reader, reader.partitions(start, next_of(reader, start)))]
    login = {"user": fake.user, "password": fake.password, "subscribe": "q"}
    for servers in (both, f"{other.servers};http://other:1,{fake.servers}"):
        with LargeBodies({**login, "servers": servers}) as bodies:
            assert [*map(bodies.fetch, references)] == [b"body of the first broker", b"body of the second one"]
    with LargeBodies({**login, "servers": fake.servers}) as bodies:
        with pytest.raises(OptionError, match=rf"DMQ8069: .*{other.servers}/.*options of the query"):
            bodies.fetch(references[1])
        with pytest.raises(OptionError, match=r"DMQ8072: .*column body_reference"):
            bodies.fetch("/api/v1/leases/g/1/rows/1/body")


# -- versions ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, named",
    [
        ({"selector": "a = 1"}, "selector"),
        ({"startingOffsets": "latest"}, "startingOffsets"),
        ({"partitionBy": "group"}, "partitionBy"),
        ({"maxBodyBytes": "10"}, "maxBodyBytes"),
    ],
)
def test_a_broker_that_is_too_old_is_named_with_the_remedy(fake: FakeBroker, sources: Any, options: Any, named: str):
    fake.version = 1
    fake.publish("q", [b"x"])
    with pytest.raises(BrokerError, match=rf"DMQ8067: .*{fake.servers} is too old for the option {named}: update it"):
        sources(**options).initialOffset()
    assert fake.groups == {}


@pytest.mark.parametrize(
    "options, named",
    [({"selector": "a = 1"}, "selector"), ({"endingOffsets": '{"time_ms": 1}'}, "endingOffsets")],
)
def test_so_is_one_that_cant_filter_a_batch(fake: FakeBroker, sources: Any, options: Any, named: str):
    fake.version = 1
    fake.publish("q", [b"x"])
    with pytest.raises(BrokerError, match=rf"DMQ8067: .*too old for the option {named}"):
        browsed(sources("batch", **options))


def test_an_older_broker_does_for_what_it_knows(fake: FakeBroker, sources: Any):
    fake.version = 1
    fake.publish("q", [b"x"] * 3)
    reader = sources()
    assert streamed(reader) == [1, 2, 3]
    reader.heartbeat.beat()
    assert browsed(sources("batch")) == [1, 2, 3]


def test_so_does_one_that_can_not_tell_lives_of_a_group_apart(fake: FakeBroker, sources: Any):
    fake.unknown = {"incarnation"}
    fake.publish("q", [b"small", b"much too large"])
    reader = sources(maxBodyBytes="10", largeBodies="reference")
    start = reader.initialOffset()
    rows = rows_of(reader, reader.partitions(start, next_of(reader, start)))
    with LargeBodies({"servers": fake.servers, "user": fake.user, "password": fake.password, "subscribe": "q"}) as read:
        assert read.fetch(rows[1]["body_reference"]) == b"much too large"


def test_a_broker_that_is_too_new_is_named_with_the_remedy(fake: FakeBroker, sources: Any):
    fake.version = 3
    fake.publish("q", [b"x"])
    with pytest.raises(BrokerError, match=r"DMQ8066: .*version 3 .*install the broker's version of DelosMQ"):
        sources().initialOffset()


# -- signs of life -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 2])
def test_a_first_batch_that_takes_long_keeps_its_group(fake: FakeBroker, sources: Any, version: int):
    now = 0.0
    fake.version, fake.clock, fake.busy_s = version, lambda: now, 60
    fake.publish("q", [b"x"])
    slow = sources()
    next_of(slow, slow.initialOffset())
    for _ in range(10):
        now += 30
        slow.heartbeat.beat()
    with pytest.raises(GroupBusyError):
        sources().client_of(0).transport.call(
            "POST", "/api/v1/leases/g/open", {"queue": "q", "run": "other", "incarnation": None}
        )


def test_a_group_with_a_newer_reader_is_not_touched_any_more(fake: FakeBroker, sources: Any):
    fake.publish("q", [b"x"])
    old = sources()
    end = next_of(old, old.initialOffset())
    newer = sources()
    newer.latestOffset(end, ReadMaxRows(1))
    old.heartbeat.beat()
    old.heartbeat.beat()
    assert fake.touches == 0
    newer.heartbeat.beat()
    assert fake.touches == 1
    fake.release("g")
    newer.heartbeat.beat()
    assert fake.touches == 1


def test_what_readers_brokers_and_operators_take_for_a_sign_of_life_fits_together():
    # Three heartbeats may be lost; and a reader outwaits one that was killed.
    assert 4 * heartbeat.PAUSE_S * 1000 <= LIVE_WINDOW_MS
    assert LIVE_WINDOW_MS < BUSY_ATTEMPTS * BUSY_PAUSE_S * 1000


def test_signs_of_life_come_by_themselves_and_end_with_the_reader(
    fake: FakeBroker, sources: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(heartbeat, "PAUSE_S", 0.01)
    fake.publish("q", [b"x"])
    reader = sources()
    before = set(threading.enumerate())
    reader.initialOffset()
    (thread,) = [each for each in threading.enumerate() if each not in before and "heartbeat" in each.name]
    with fake.changed:
        assert fake.changed.wait_for(lambda: fake.touches >= 3, timeout=30)
    reader.stop()
    thread.join(30)
    assert not thread.is_alive()
