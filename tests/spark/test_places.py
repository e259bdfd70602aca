"""Streams of several queues and brokers: offsets, limits, what may change between runs."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from delosmq.model.errors import BrokerError
from delosmq.spark.errors import ForeignIncarnationError, LeaseLostError
from delosmq.spark.options import parse_options
from delosmq.spark.source.data_source import DelosSource
from delosmq.spark.source.places import decode_offset, encode_offset, places_of
from delosmq.spark.source.stream_reader import LeaseStreamReader, share_out
from tests.spark.fake_broker import FakeBroker

pytestmark = pytest.mark.spark


@pytest.fixture
def other() -> Iterator[FakeBroker]:
    broker = FakeBroker()
    yield broker
    broker.stop()


@pytest.fixture
def streams(fake: FakeBroker) -> Iterator[Any]:
    """Makes readers of what `subscribe` names, each as a new process would."""
    made = []

    def make(subscribe: str, servers: str = fake.servers, **options: str) -> LeaseStreamReader:
        raw = {"servers": servers, "user": fake.user, "password": fake.password, "subscribe": subscribe}
        raw |= {"group.id": "g", "columns": "body", "retryTimeoutMs": "0", "pollTimeoutMs": "0", **options}
        source = DelosSource(raw)
        reader = source.streamReader(source.schema())
        made.append(reader)
        return reader

    yield make
    for reader in made:
        reader.stop()


def read_all(reader: Any, start: Any, end: Any) -> list[bytes]:
    parts = reader.partitions(start, json.loads(json.dumps(end)))
    return [row for part in parts for batch in reader.read(part) for row in batch.column(0).to_pylist()]


def first_batch(reader: LeaseStreamReader, rows: int = 100) -> tuple[Any, Any]:
    start = reader.initialOffset()
    return start, reader.latestOffset(start, ReadMaxRows(rows))


def test_several_queues_are_one_stream_with_a_group_each(fake: FakeBroker, streams: Any):
    fake.publish("a", [b"a1", b"a2"])
    fake.publish("b", [b"b1"])
    reader = streams("a,b")
    start, end = first_batch(reader)
    assert end["version"] == 2
    assert sorted(end["places"]) == [f"http://{fake.servers}/a", f"http://{fake.servers}/b"]
    assert read_all(reader, start, end) == [b"a1", b"a2", b"b1"]
    assert sorted(fake.groups) == ["g", "g/b"]
    assert reader.latestOffset(end, ReadMaxRows(9)) == end
    assert [fake.groups[name].acked for name in ("g", "g/b")] == [1, 1]
    report = reader.reportLatestOffset()
    assert report is not None
    assert (report["ready"], report["leased"], len(report["places"])) == (0, 0, 2)


def test_several_brokers_are_one_stream(fake: FakeBroker, other: FakeBroker, streams: Any):
    fake.publish("q", [b"1"])
    other.publish("q", [b"2"])
    reader = streams("q", f"{fake.servers};{other.servers}")
    start, end = first_batch(reader)
    assert read_all(reader, start, end) == [b"1", b"2"]
    assert [sorted(broker.groups) for broker in (fake, other)] == [["g"], ["g"]]
    reader.commit(end)
    assert [broker.groups["g"].acked for broker in (fake, other)] == [1, 1]


def test_what_arrives_in_any_place_is_waited_for(fake: FakeBroker, streams: Any):
    for name in ("a", "b", "c"):
        fake.make_queue(name)
    reader = streams("a,b,c", pollTimeoutMs="30000")
    start = reader.initialOffset()
    import threading

    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(reader.latestOffset(start, ReadMaxRows(9))))
    thread.start()
    fake.publish("c", [b"new"])
    thread.join()
    assert read_all(reader, start, answers[0]) == [b"new"]


# PIPE-3
@pytest.mark.parametrize(
    "ready, total, shares",
    [([5, 5], 10, [5, 5]), ([9, 1], 4, [3, 1]), ([9, 9], 4, [2, 2]), ([0, 7], 4, [0, 4]), ([9, 9, 9], 2, [0, 1, 1])],
)
def test_places_share_the_limit(ready: list[int], total: int, shares: list[int]):
    assert share_out(ready, total) == shares


# PIPE-3
def test_a_batch_of_several_places_keeps_the_limits(fake: FakeBroker, streams: Any):
    fake.publish("a", [b"ten bytes."] * 20)
    fake.publish("b", [b"ten bytes."] * 2)
    reader = streams("a,b", maxBytesPerTrigger="100")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxRows(8))
    assert len(read_all(reader, start, end)) == 8
    after = reader.latestOffset(end, ReadMaxRows(1000))
    assert len(read_all(reader, end, after)) == 10
    rest = reader.latestOffset(after, ReadAllAvailable())
    assert len(read_all(reader, after, rest)) == 4


def test_available_now_ends_in_each_place_under_traffic(fake: FakeBroker, streams: Any):
    fake.publish("a", [b"a"])
    fake.publish("b", [b"b"])
    reader = streams("a,b", pollTimeoutMs="30000")
    reader.prepareForTriggerAvailableNow()
    _, end = first_batch(reader)
    fake.publish("a", [b"later"])
    fake.publish("b", [b"later"])
    assert reader.latestOffset(end, ReadMaxRows(9)) == end


def test_a_checkpoint_of_one_queue_goes_on_and_takes_further_ones(fake: FakeBroker, streams: Any):
    fake.publish("a", [b"a1", b"a2"])
    fake.publish("b", [b"b1"])
    _, end = first_batch(streams("a"), 1)
    assert set(end) == {"lease", "incarnation"}
    reader = streams("a,b")
    onward = reader.latestOffset(end, ReadMaxRows(9))
    assert read_all(reader, end, onward) == [b"a2", b"b1"]
    assert fake.groups["g"].acked == 1


def test_queues_may_be_named_in_another_order(fake: FakeBroker, streams: Any):
    fake.publish("a", [b"a1", b"a2"])
    fake.publish("b", [b"b1", b"b2"])
    _, end = first_batch(streams("a,b"), 2)
    reader = streams("b,c,a")
    fake.publish("c", [b"c1"])
    onward = reader.latestOffset(end, ReadMaxRows(9))
    assert sorted(read_all(reader, end, onward)) == [b"a2", b"b2", b"c1"]
    assert sorted(fake.groups) == ["g", "g/b", "g/c"]


def test_the_first_queue_of_a_checkpoint_stays_the_first(fake: FakeBroker, streams: Any):
    fake.publish("a", [b"a1"])
    fake.make_queue("b")
    _, end = first_batch(streams("a"))
    with pytest.raises(ForeignIncarnationError, match=r"DMQ8020: .*another queue"):
        streams("b,a").latestOffset(end, ReadMaxRows(9))


@pytest.mark.parametrize("left", ["a", "b"])
def test_a_queue_that_is_left_out_is_refused_unless_loss_is_allowed(fake: FakeBroker, streams: Any, left: str):
    fake.publish("a", [b"a1", b"a2"])
    fake.publish("b", [b"b1", b"b2"])
    start, end = first_batch(streams("a,b"), 2)
    for call in (
        lambda: streams(left).latestOffset(end, ReadMaxRows(9)),
        lambda: streams(left).partitions(start, end),
        lambda: streams(left).commit(end),
    ):
        with pytest.raises(BrokerError, match=r"DMQ8064: .*also reads .*/[ab], .*name it again"):
            call()
    reader = streams(left, failOnDataLoss="false")
    assert read_all(reader, start, end) == [f"{left}1".encode()]
    onward = reader.latestOffset(end, ReadMaxRows(9))
    assert read_all(reader, end, onward) == [f"{left}2".encode()]
    again = streams(left, failOnDataLoss="false")
    fake.publish(left, [b"later"])
    later = again.latestOffset(onward, ReadMaxRows(9))
    assert read_all(again, onward, later) == [b"later"]


def test_addresses_of_a_broker_may_change_while_one_stays(fake: FakeBroker, other: FakeBroker, streams: Any):
    fake.publish("q", [b"1", b"2"])
    other.publish("q", [b"3", b"4"])
    _, end = first_batch(streams("q", f"{fake.servers};{other.servers}"), 2)
    moved = f"{other.servers},localhost:1;{fake.servers}"
    reader = streams("q", moved)
    assert sorted(read_all(reader, end, reader.latestOffset(end, ReadMaxRows(9)))) == [b"2", b"4"]
    with pytest.raises(BrokerError, match="DMQ8064"):
        streams("q", f"localhost:1;{fake.servers}").latestOffset(end, ReadMaxRows(9))


def test_the_only_broker_may_move(fake: FakeBroker):
    def places(servers: str) -> Any:
        return places_of(parse_options({"servers": servers, "subscribe": "a,b", "group.id": "g"}))

    offset = encode_offset(decode_offset({"lease": 1, "incarnation": "x"}, places("old"), "g", may_lose=False), "g")
    assert offset == {"lease": 1, "incarnation": "x"}
    several = {f"http://old:8161/{name}": {"group": f"g{name}", "lease": 2, "incarnation": name} for name in "ab"}
    marks = decode_offset({"version": 2, "places": several}, places("new"), "g", may_lose=False)
    assert encode_offset(marks, "g")["places"] == {key.replace("old", "new"): told for key, told in several.items()}


def test_a_checkpoint_of_a_newer_version_is_refused(fake: FakeBroker, streams: Any):
    fake.make_queue("q")
    with pytest.raises(BrokerError, match=r"DMQ8065: .*offsets of version 3.*run the newer DelosMQ"):
        streams("q").latestOffset({"version": 3, "places": {}}, ReadMaxRows(9))


def test_one_of_several_groups_may_be_lost(fake: FakeBroker, streams: Any):
    fake.publish("a", [b"a1", b"a2"])
    fake.publish("b", [b"b1", b"b2"])
    start, end = first_batch(streams("a,b"), 2)
    fake.release("g/b")
    with pytest.raises(LeaseLostError):
        streams("a,b").latestOffset(end, ReadMaxRows(9))
    reader = streams("a,b", failOnDataLoss="false")
    assert read_all(reader, start, end) == [b"a1"]
    onward = reader.latestOffset(end, ReadMaxRows(9))
    assert read_all(reader, end, onward) == [b"a2", b"b1", b"b2"]
