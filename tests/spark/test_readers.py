"""The readers as Spark calls them, without Spark."""

import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows

from delosmq.model.declared.lease_life import LIVE_WINDOW_MS
from delosmq.model.errors import BrokerError
from delosmq.spark.errors import FencedError, LeaseLostError, OptionError, SchemaMismatchError
from delosmq.spark.lease_client import LeaseClient, LeaseSummary
from delosmq.spark.options import SourceDestination, parse_options
from delosmq.spark.source.browse_reader import BrowseReader
from delosmq.spark.source.data_source import DelosSource
from delosmq.spark.source.partitions import LeaseOfGroup, LeaseRange, split_leases, split_sequences
from delosmq.spark.source.stream_reader import LeaseStreamReader
from pyspark_delosmq import DefaultSource
from tests.spark.fake_broker import FakeBroker

# No JVM is started, but pyspark has to be there.
pytestmark = pytest.mark.spark


@pytest.fixture
def readers(fake: FakeBroker) -> Iterator[Any]:
    """Makes readers of queue q, each as a new process would."""
    made = []

    def make(kind: str = "stream", **options: str) -> Any:
        raw = {
            "servers": fake.servers,
            "user": fake.user,
            "password": fake.password,
            "subscribe": "q",
            "columns": "body",
        }
        if kind == "stream":
            raw["group.id"] = "g"
        source = DelosSource({**raw, "retryTimeoutMs": "0", **{k.replace("_", "."): v for k, v in options.items()}})
        reader = source.streamReader(source.schema()) if kind == "stream" else source.reader(source.schema())
        made.append(reader)
        return reader

    yield make
    for reader in made:
        reader.stop() if isinstance(reader, LeaseStreamReader) else reader.close()


def read_all(reader: Any, partitions: Any) -> list[bytes]:
    return [row for part in partitions for batch in reader.read(part) for row in batch.column(0).to_pylist()]


def test_a_stream_in_the_order_of_sparks_calls(fake: FakeBroker, readers: Any):
    fake.publish("q", [b"%d" % number for number in range(5)])
    reader: LeaseStreamReader = readers()
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxRows(3))
    assert end == {"lease": 1, "incarnation": start["incarnation"]}
    assert read_all(reader, reader.partitions(start, end)) == [b"0", b"1", b"2"]
    assert fake.groups["g"].acked == 0
    after = reader.latestOffset(end, ReadMaxRows(3))
    assert fake.groups["g"].acked == 1
    assert read_all(reader, reader.partitions(end, after)) == [b"3", b"4"]
    reader.commit(after)
    assert fake.groups["g"].acked == 2
    assert reader.partitions(after, after) == []
    reader.stop()


def test_a_restart_between_lease_and_offset_log_gets_the_same_lease(fake: FakeBroker, readers: Any):
    fake.busy_s = 0
    fake.publish("q", [b"a", b"b"])
    before = readers()
    lost = before.latestOffset(before.initialOffset(), ReadMaxRows(1))
    reader = readers()
    start = reader.initialOffset()
    assert reader.latestOffset(start, ReadMaxRows(2)) == lost
    assert read_all(reader, reader.partitions(start, lost)) == [b"a"]


@pytest.fixture
def two_clients(fake: FakeBroker) -> Iterator[tuple[LeaseClient, LeaseClient]]:
    raw = {"servers": fake.servers, "user": fake.user, "password": fake.password, "subscribe": "q"}
    connection = parse_options(raw).connection
    clients = LeaseClient(connection), LeaseClient(connection)
    yield clients
    for client in clients:
        client.close()


def test_a_reader_outwaits_one_that_was_killed_in_its_first_batch(
    fake: FakeBroker, two_clients: tuple[LeaseClient, LeaseClient]
):
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    fake.clock = lambda: now
    fake.busy_s = LIVE_WINDOW_MS / 1000
    fake.publish("q", [b"a"])
    killed, restarted = two_clients
    killed.open_group("g", SourceDestination("queue", "q"), None, sleep=sleep)
    group = restarted.open_group("g", SourceDestination("queue", "q"), None, sleep=sleep)
    assert (group.epoch, now) == (2, fake.busy_s)


def test_a_restart_repeats_a_batch_without_asking_for_its_end(fake: FakeBroker, readers: Any):
    fake.publish("q", [b"a", b"b"])
    before = readers()
    start = before.initialOffset()
    end = before.latestOffset(start, ReadMaxRows(2))
    reader = readers()
    assert read_all(reader, reader.partitions(start, end)) == [b"a", b"b"]
    assert reader.latestOffset(end, ReadMaxRows(2)) == end
    assert fake.groups["g"].acked == 1
    with pytest.raises(FencedError):
        before.latestOffset(end, ReadMaxRows(2))


def test_available_now_ends_under_traffic(fake: FakeBroker, readers: Any):
    fake.publish("q", [b"a", b"b"])
    reader = readers(pollTimeoutMs="30000")
    reader.prepareForTriggerAvailableNow()
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxRows(2))
    fake.publish("q", [b"c"])
    assert reader.latestOffset(end, ReadMaxRows(2)) == end


# PIPE-3
@pytest.mark.parametrize("limit, rows", [(ReadMaxRows(4), 4), (ReadMaxBytes(30), 3), (ReadAllAvailable(), 20)])
def test_sparks_limit_decides(fake: FakeBroker, readers: Any, limit: Any, rows: int):
    fake.publish("q", [b"ten bytes."] * 20)
    reader = readers(maxOffsetsPerTrigger="7", maxBytesPerTrigger="1000")
    assert reader.getDefaultReadLimit() == ReadMaxRows(7)
    reader.latestOffset(reader.initialOffset(), limit)
    assert len(fake.groups["g"].leases[1]) == rows


# PIPE-3
@pytest.mark.parametrize("limit", [ReadAllAvailable(), ReadMaxRows((1 << 31) - 1), ReadMaxBytes(1 << 40), None])
def test_no_limit_is_above_what_a_broker_takes(fake: FakeBroker, readers: Any, limit: Any):
    fake.publish("q", [b"a"] * 3)
    reader = readers(maxOffsetsPerTrigger="10000000", maxBytesPerTrigger=str(1 << 40))
    end = reader.latestOffset(reader.initialOffset(), limit or reader.getDefaultReadLimit())
    assert (end["lease"], len(fake.groups["g"].leases[1])) == (1, 3)


def test_the_limits_that_a_broker_tells_count(fake: FakeBroker, readers: Any):
    fake.limits = {"max_rows": 5, "max_bytes": 30}
    fake.publish("q", [b"ten bytes."] * 4)
    reader = readers()
    reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert len(fake.groups["g"].leases[1]) == 3


def test_a_group_lost_while_its_query_runs_fails_it(fake: FakeBroker, readers: Any):
    fake.publish("q", [b"a", b"b"])
    reader = readers()
    end = reader.latestOffset(reader.initialOffset(), ReadMaxRows(1))
    fake.release("g")
    for call in (
        reader.reportLatestOffset,
        lambda: reader.commit(end),
        lambda: reader.latestOffset(end, ReadMaxRows(1)),
    ):
        with pytest.raises(LeaseLostError):
            call()


def test_a_group_lost_while_its_query_runs_is_made_anew_where_loss_is_allowed(fake: FakeBroker, readers: Any):
    fake.publish("q", [b"a", b"b"])
    reader = readers(failOnDataLoss="false")
    end = reader.latestOffset(reader.initialOffset(), ReadMaxRows(1))
    fake.release("g")
    assert reader.reportLatestOffset() is None
    reader.commit(end)
    onward = reader.latestOffset(end, ReadMaxRows(1))
    assert onward["incarnation"] != end["incarnation"]
    assert read_all(reader, reader.partitions(end, onward)) == [b"a"]


def test_the_end_of_available_now_is_found_although_the_group_is_lost_there(fake: FakeBroker, readers: Any):
    fake.publish("q", [b"a", b"b"])
    reader = readers(failOnDataLoss="false")
    reader.prepareForTriggerAvailableNow()
    start = reader.initialOffset()
    fake.release("g")
    end = reader.latestOffset(start, ReadMaxRows(5))
    assert read_all(reader, reader.partitions(start, end)) == [b"a", b"b"]
    assert reader.latestOffset(end, ReadMaxRows(5)) == end


def test_a_checkpoint_older_than_what_is_acknowledged_goes_on_where_loss_is_allowed(fake: FakeBroker, readers: Any):
    fake.publish("q", [b"a", b"b", b"c", b"d"])
    before = readers()
    old = before.latestOffset(before.initialOffset(), ReadMaxRows(1))
    newer = before.latestOffset(before.latestOffset(old, ReadMaxRows(1)), ReadMaxRows(1))
    assert (old["lease"], newer["lease"], fake.groups["g"].acked) == (1, 3, 2)
    with pytest.raises(LeaseLostError):
        readers().latestOffset(old, ReadMaxRows(1))
    reader = readers(failOnDataLoss="false")
    end = reader.latestOffset(old, ReadMaxRows(1))
    assert end == newer
    assert read_all(reader, reader.partitions(old, end)) == [b"c"]
    assert reader.latestOffset(end, ReadMaxRows(1)) == {**end, "lease": 4}


def test_a_lost_group_fails_unless_loss_is_allowed(fake: FakeBroker, readers: Any):
    fake.publish("q", [b"a", b"b", b"c"])
    before = readers()
    start = before.initialOffset()
    end = before.latestOffset(start, ReadMaxRows(2))
    ranges = before.partitions(start, end)
    del fake.groups["g"]
    strict, tolerant = readers(), readers(failOnDataLoss="false")
    for call in (
        lambda: strict.latestOffset(end, ReadMaxRows(1)),
        lambda: strict.partitions(start, end),
        lambda: read_all(strict, ranges),
    ):
        with pytest.raises(LeaseLostError):
            call()
    assert tolerant.partitions(start, end) == []
    assert read_all(tolerant, ranges) == []
    onward = tolerant.latestOffset(end, ReadMaxRows(1))
    assert onward["incarnation"] != end["incarnation"]
    assert read_all(tolerant, tolerant.partitions(end, onward)) == [b"c"]


def test_a_group_made_anew_is_not_mistaken_for_the_old_one(fake: FakeBroker, readers: Any):
    fake.publish("q", [b"a", b"b", b"c"])
    before = readers()
    start = before.initialOffset()
    end = before.latestOffset(start, ReadMaxRows(1))
    del fake.groups["g"]
    other = readers()
    other.latestOffset(other.initialOffset(), ReadMaxRows(1))
    with pytest.raises(LeaseLostError, match="made anew"):
        readers().partitions(start, end)


def test_progress_tells_the_backlog(fake: FakeBroker, readers: Any):
    fake.publish("q", [b"a", b"b", b"c"])
    reader = readers()
    assert reader.reportLatestOffset() is None
    reader.latestOffset(reader.initialOffset(), ReadMaxRows(1))
    report = reader.reportLatestOffset()
    assert report is not None
    assert (report["ready"], report["leased"], report["oldest_age_ms"], report["lease"]) == (2, 1, 1234, 1)


def test_what_is_pickled_holds_no_connection(fake: FakeBroker, readers: Any):
    fake.publish("q", [b"a"])
    reader = readers()
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxRows(1))
    for pickled in (pickle.dumps(reader), pickle.dumps(readers("batch"))):
        assert b"LeaseClient" not in pickled
    assert read_all(pickle.loads(pickle.dumps(reader)), pickle.loads(pickle.dumps(reader.partitions(start, end))))


def test_a_batch_read_takes_nothing_and_ends_at_its_snapshot(fake: FakeBroker, readers: Any):
    fake.publish("q", [b"%d" % number for number in range(10)])
    reader: BrowseReader = readers("batch", minPartitions="3")
    ranges = reader.partitions()
    assert len(ranges) == 3
    fake.publish("q", [b"later"])
    assert read_all(reader, ranges) == [b"%d" % number for number in range(10)]
    assert len(fake.queues["q"].ready) == 11


def test_batch_offsets_are_inclusive_and_exclusive_as_in_kafka(fake: FakeBroker, readers: Any):
    fake.publish("q", [b"%d" % number for number in range(1, 11)])
    reader = readers("batch", startingOffsets='{"sequence": 3}', endingOffsets='{"sequence": 5}')
    assert read_all(reader, reader.partitions()) == [b"3", b"4"]


def test_an_empty_queue_reads_as_no_rows(fake: FakeBroker, readers: Any):
    fake.make_queue("q")
    reader = readers("batch")
    assert reader.partitions() == []


# PIPE-3
@pytest.mark.parametrize(
    "rows, wanted, sizes",
    [
        ([10], 3, [3, 3, 4]),
        ([2], 5, [1, 1]),
        ([25_000], 0, [25_000]),
        ([25_001], 0, [12_500, 12_501]),
        ([3, 1], 2, [1, 2, 1]),
    ],
)
def test_leases_are_split_without_gap_or_overlap(rows: list[int], wanted: int, sizes: list[int]):
    leases = [LeaseSummary(number, count, 0, 0, 0) for number, count in enumerate(rows, 1)]
    ranges = split_leases([LeaseOfGroup(0, "g", lease) for lease in leases], wanted)
    assert [part.hi - part.lo for part in ranges] == sizes
    for lease in leases:
        covered = [row for part in ranges if part.lease == lease.number for row in range(part.lo, part.hi)]
        assert covered == list(range(lease.rows))


@pytest.mark.parametrize("may_lose", [False, True])
def test_a_range_of_a_group_that_was_made_anew_yields_no_rows_of_the_new_one(
    fake: FakeBroker, readers: Any, may_lose: bool
):
    fake.publish("q", [b"a"])
    fake.publish("other", [b"b"])
    reader = readers(failOnDataLoss="false" if may_lose else "true")
    start = reader.initialOffset()
    planned = reader.partitions(start, reader.latestOffset(start, ReadMaxRows(1)))
    fake.release("g")
    anew = readers(subscribe="other")
    begun = anew.initialOffset()
    assert read_all(anew, anew.partitions(begun, anew.latestOffset(begun, ReadMaxRows(1)))) == [b"b"]
    if may_lose:
        assert read_all(reader, planned) == []
    else:
        with pytest.raises(LeaseLostError, match="DMQ8057"):
            read_all(reader, planned)


def test_sequences_are_split_without_gap_or_overlap():
    ranges = split_sequences(4, 11, 3)
    assert ranges == [(4, 6), (6, 8), (8, 11)]
    assert split_sequences(4, 4, 3) == []
    assert len(split_sequences(4, 6, 3)) == 2


def test_partitions_show_what_they_are():
    shown = "LeaseRange(group='g', lease=1, lo=0, hi=5, part=0, of=1, broker=0, incarnation='x')"
    assert repr(LeaseRange("g", 1, 0, 5, incarnation="x")) == shown


def test_options_of_the_sink_are_none_of_the_source():
    source = DefaultSource({"topic": "x"})
    with pytest.raises(OptionError, match="unknown option 'topic'"):
        source.schema()


def test_a_schema_of_ones_own_is_refused(fake: FakeBroker):
    from pyspark.sql.types import StructType

    source = DelosSource({"servers": fake.servers, "subscribe": "q", "password": "s3cret"})
    with pytest.raises(SchemaMismatchError, match=r"DMQ8005: .*leave schema"):
        source.reader(StructType())
    assert "s3cret" not in repr(vars(source))


@pytest.mark.parametrize(
    ("more", "schema", "sentence"),
    [
        ({}, None, "DMQ8002: .*group.id"),
        ({"group.id": "g", "endingOffsets": "latest"}, None, "DMQ8004: endingOffsets"),
        ({"group.id": "g"}, "empty", "DMQ8005: "),
    ],
)
def test_a_stream_is_refused_by_its_first_call(fake: FakeBroker, more: dict[str, str], schema: Any, sentence: str):
    from pyspark.sql.types import StructType

    # Spark replaces what is raised while the reader is made by an error of its own.
    source = DelosSource({"servers": fake.servers, "subscribe": "q", **more})
    reader = source.streamReader(StructType() if schema else source.schema())
    reader.prepareForTriggerAvailableNow()
    offset = {"lease": 1, "incarnation": "x"}
    for call in (
        reader.initialOffset,
        lambda: reader.latestOffset(offset, reader.getDefaultReadLimit()),
        lambda: reader.partitions(offset, {"lease": 2, "incarnation": "x"}),
    ):
        with pytest.raises(BrokerError, match=sentence):
            call()
    reader.stop()


# A lease that the broker's store has lost is a loss like that of its group: said, or passed over where that is wanted.
def test_a_lease_that_the_store_lost_ends_a_query_unless_loss_is_allowed(fake: FakeBroker, readers: Any):
    fake.publish("q", [b"1", b"2"])
    reader = readers()
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxRows(1))
    lost = reader.latestOffset(end, ReadMaxRows(1))
    fake.groups["g"].leases.clear()
    fake.publish("q", [b"3"])
    for _ in range(2):
        with pytest.raises(LeaseLostError):
            readers().latestOffset(end, ReadMaxRows(9))
    lenient = readers(failOnDataLoss="false")
    onward = lenient.latestOffset(end, ReadMaxRows(9))
    assert onward == {"lease": lost["lease"] + 1, "incarnation": start["incarnation"]}
    assert read_all(lenient, lenient.partitions(end, onward)) == [b"3"]
    assert lenient.latestOffset(onward, ReadMaxRows(9)) == onward


def test_a_query_goes_on_with_the_leases_behind_one_that_was_lost(fake: FakeBroker, readers: Any):
    fake.publish("q", [b"1", b"2"])
    reader = readers(failOnDataLoss="false")
    start = reader.initialOffset()
    reader.latestOffset(start, ReadMaxRows(1))
    group = fake.groups["g"]
    # As the broker finds it at its start: lease 1 can't be read any more, lease 2 can.
    group.leases = {2: group.leases[1]}
    group.newest = 2
    end = readers(failOnDataLoss="false").latestOffset(start, ReadMaxRows(9))
    assert end["lease"] == 2
    assert read_all(reader, reader.partitions(start, end)) == [b"1"]
    assert group.acked == 1


def test_an_offset_passes_lost_leases_although_nothing_new_is_there(fake: FakeBroker, readers: Any):
    fake.publish("q", [b"1"])
    reader = readers(failOnDataLoss="false", pollTimeoutMs="0")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxRows(1))
    fake.groups["g"].leases.clear()
    again = readers(failOnDataLoss="false", pollTimeoutMs="0")
    onward = again.latestOffset(start, ReadMaxRows(9))
    assert onward == end
    assert again.partitions(start, onward) == []
    assert again.latestOffset(onward, ReadMaxRows(9)) == onward
