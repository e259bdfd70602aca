"""Messages of an archive go back into addresses, each once."""

# PIPE-2

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as dataset
import pytest
from typer.testing import CliRunner

import delosmq
from delosmq.cli.spark.app import spark_app
from delosmq.model.errors import BrokerError
from delosmq.spark.archive.marker import MARKER, PARQUET, ArchiveClaim
from delosmq.spark.dead_letters.letters import browse_queue
from delosmq.spark.lease_client import LeaseClient
from delosmq.spark.options import parse_options
from delosmq.spark.replay import ReplayRun, plan_replay, replay
from delosmq.spark.replay.messages import as_rows, chosen_messages
from delosmq.spark.replay.run import too_late
from delosmq.spark.schema import arrow_schema, column_names
from tests.spark.interceptor import Interceptor
from tests.spark.letters import call, consume, send

pytestmark = pytest.mark.spark

PLACES = ("orders", "it's, odd")


@pytest.fixture
def broker() -> Iterator[delosmq.Broker]:
    with delosmq.Broker() as running:
        yield running


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of two queues: six messages in one, of two regions and two kinds of bodies, one in the other."""
    place = tmp_path_factory.mktemp("kept") / "archive"
    with delosmq.Broker() as broker:
        send(broker, "/queue/orders", [f"text {number}" for number in range(3)], region="EU")
        send(broker, "/queue/orders", ["bytes"], region="US", **{"content-length": "5", "priority": "7"})
        send(broker, "/queue/orders", ["late", "later"], region="US", **{"correlation-id": "c7"})
        send(broker, f"/queue/{PLACES[1]}", ["else"])
        client = LeaseClient(parse_options({**login(broker), "subscribe": "any"}).connection)
        batches = [batch for name in PLACES for batch in browse_queue(client, name, column_names(include_headers=True))]
        client.close()
    table = pa.Table.from_batches(batches)
    days = [sent.date().isoformat() for sent in table["timestamp"].to_pylist()]
    table = table.append_column("day", pa.array(days)).append_column("batch", pa.array(["q0-000000000"] * len(days)))
    dataset.write_dataset(
        table, place, format="parquet", partitioning=["day", "address", "batch"], partitioning_flavor="hive"
    )
    (place / MARKER).write_text(ArchiveClaim(PARQUET, tuple(f"queue:{name}" for name in PLACES)).text)
    return place


def login(broker: delosmq.Broker) -> dict[str, str]:
    return {"servers": str(broker.http_url), "user": broker.user, "password": broker.password}


def make_queues(broker: delosmq.Broker, *names: str) -> None:
    for name in names:
        call(broker, "POST", "/api/v1/queues", {"name": name})


def count(broker: delosmq.Broker, queue: str) -> int:
    held: int = call(broker, "GET", f"/api/v1/queues/{queue}")["message_count"]
    return held


def test_messages_come_back_as_they_were_and_in_order_and_once(spark: Any, broker: delosmq.Broker, kept: Path):
    make_queues(broker, *PLACES)
    run = ReplayRun(str(kept), login(broker))
    assert plan_replay(spark, run).counts == {"orders": 6, PLACES[1]: 1}
    assert count(broker, "orders") == 0
    said: list[str] = []
    assert replay(spark, run, on_progress=said.append).messages == 7
    again = replay(spark, run, on_progress=said.append)
    assert (again.messages, again.published_before) == (0, True)
    assert said[-1].startswith("this replay was sent before")

    frames = consume(broker, "/queue/orders", 6)
    # The one with the higher priority comes first.
    assert [frame.body for frame in frames] == ["bytes", "text 0", "text 1", "text 2", "late", "later"]
    assert (frames[0].headers["content-length"], frames[0].headers["region"]) == ("5", "US")
    assert "content-length" not in frames[1].headers
    assert (frames[5].headers["correlation-id"], frames[1].headers["persistent"]) == ("c7", "true")
    assert frames[1].headers["original_message_id"].startswith("ID:")
    assert [frame.body for frame in consume(broker, f"/queue/{PLACES[1]}", 1)] == ["else"]
    assert count(broker, "orders") == 0


def test_filters_choose_and_another_name_sends_once_more(spark: Any, broker: delosmq.Broker, kept: Path):
    make_queues(broker, "copy")
    more: dict[str, Any] = {"to": "copy", "addresses": ("orders",), "where": "properties['region'] = 'US'"}
    run = ReplayRun(str(kept), login(broker), **more)
    assert replay(spark, run).counts == {"copy": 3}
    assert replay(spark, ReplayRun(str(kept), login(broker), **more, timing="original")).published_before
    assert replay(spark, ReplayRun(str(kept), login(broker), **more, name="second")).messages == 3
    assert count(broker, "copy") == 6
    long_ago, soon = "2001-01-01T00:00:00Z", (datetime.now(UTC) + timedelta(days=1)).isoformat()
    assert replay(spark, ReplayRun(str(kept), login(broker), to="copy", before=long_ago)).messages == 0
    planned = plan_replay(spark, ReplayRun(str(kept), login(broker), to="copy", since=long_ago, before=soon))
    assert planned.messages == 7


def test_original_timing_keeps_distances_and_the_order_of_a_queue(spark: Any):
    start = datetime(2026, 3, 1, 12, tzinfo=UTC)
    # The clock of the sender of the third message was set back.
    sent = [start, start + timedelta(seconds=10), start - timedelta(hours=1), start + timedelta(seconds=40)]
    rows = frame_of(spark, [letter(at, moment) for at, moment in enumerate(sent, 1)])
    chosen = chosen_messages(rows, since_ms=None, before_ms=None, addresses=(), where="")
    later = start + timedelta(days=3)
    found = as_rows(chosen, "", (start, later, 2.0)).selectExpr(
        "decode(body, 'UTF-8') AS body",
        "unix_millis(scheduled_at) AS due",
        "unix_millis(expiration) AS ends",
        "map_keys(properties) AS names",
    )
    due = [(row["body"], (row["due"] - later.timestamp() * 1000) / 1000) for row in found.collect()]
    assert due == [("1", 0), ("2", 5), ("3", 5), ("4", 20)]
    assert [(row["ends"] - row["due"]) / 1000 for row in found.collect()] == [60, 60, 60, 60]
    assert found.first()["names"] == ["kept"]


def letter(at: int, sent: datetime) -> dict[str, Any]:
    return {
        "body": str(at).encode(),
        "message_id": f"ID:{at}",
        "address": "a",
        "queue": "a",
        "sequence": at,
        "priority": 4,
        "durable": True,
        "timestamp": sent,
        "expiration": sent + timedelta(seconds=60),
        "redelivered": False,
        "delivery_count": 0,
        "protocol": "STOMP",
        "properties": [("kept", "1"), ("_AMQ_ORIG_QUEUE", "x")],
        "body_kind": "text",
    }


def frame_of(spark: Any, rows: list[dict[str, Any]]) -> Any:
    table = pa.Table.from_pylist(rows, schema=arrow_schema(column_names(include_headers=True)))
    return spark.createDataFrame(table)


def test_what_is_due_later_waits_in_the_queue(spark: Any, broker: delosmq.Broker, kept: Path):
    make_queues(broker, "copy")
    run = ReplayRun(str(kept), login(broker), to="copy", timing="original", speed=0.000_001, lead_s=0)
    assert replay(spark, run).messages == 7
    queue = call(broker, "GET", "/api/v1/queues/copy")
    assert queue["message_count"] == 7
    # The first is due at once, and so is what was sent in the same millisecond.
    assert 1 <= queue["scheduled_count"] <= 6


def test_the_first_message_is_due_after_the_lead(spark: Any, broker: delosmq.Broker, kept: Path):
    make_queues(broker, "copy")
    said: list[str] = []
    run = ReplayRun(str(kept), login(broker), to="copy", timing="original", lead_s=3_600)
    assert replay(spark, run, on_progress=said.append).messages == 7
    # All were staged in time, and none is due.
    assert call(broker, "GET", "/api/v1/queues/copy")["scheduled_count"] == 7
    assert not any("lead" in line for line in said)
    late = ReplayRun(str(kept), login(broker), to="copy", timing="original", lead_s=0, name="late")
    replay(spark, late, on_progress=said.append)
    assert "longer than the lead of 0 s" in said[-1]


def test_staging_that_took_longer_than_the_lead_is_told_with_one_that_would_do():
    assert too_late(10, 60) == (
        "staging took 60 s, longer than the lead of 10 s: what was due in the first 50 s was sent at once;"
        " --lead 90 keeps its distances another time"
    )


def test_a_place_that_is_not_there_is_told_and_nothing_is_sent(spark: Any, broker: delosmq.Broker, kept: Path):
    make_queues(broker, "orders")
    with pytest.raises(
        BrokerError, match=r"messages of .* were sent to address 'it's, odd', and there is none: create"
    ):
        replay(spark, ReplayRun(str(kept), login(broker)))
    assert count(broker, "orders") == 0


def test_what_fails_before_it_is_published_sent_nothing_and_a_lost_answer_doubles_nothing(
    spark: Any, broker: delosmq.Broker, kept: Path
):
    make_queues(broker, "copy")
    interceptor = Interceptor(str(broker.http_url))
    connection = {**login(broker), "servers": interceptor.servers, "retryTimeoutMs": "1000"}
    run = ReplayRun(str(kept), connection, to="copy")
    lost: list[str] = []

    def lose(when: str, path: str, body: bytes) -> None:
        if path.endswith("/publish") and when == moment and (when == "before" or not lost):
            lost.append(path)
            raise ConnectionAbortedError

    try:
        moment = "before"
        interceptor.hook = lose
        with pytest.raises(BrokerError, match=r"the replay of .* stopped: DMQ8010"):
            replay(spark, run)
        assert (count(broker, "copy"), bool(lost)) == (0, True)
        moment = "after"
        lost.clear()
        assert replay(spark, run).messages == 7
        assert (count(broker, "copy"), len(lost)) == (7, 1)
        assert replay(spark, run).published_before
    finally:
        interceptor.stop()


def test_a_condition_that_is_none_is_an_options_error(spark: Any, broker: delosmq.Broker, kept: Path):
    for where in ("no_such_column = 1", "= =", "1 + 1"):
        with pytest.raises(BrokerError) as refusal:
            plan_replay(spark, ReplayRun(str(kept), login(broker), where=where))
        assert refusal.value.code == "DMQ8251", where


def test_what_is_no_archive_is_told(spark: Any, broker: delosmq.Broker, tmp_path: Path):
    with pytest.raises(BrokerError, match="is no archive"):
        plan_replay(spark, ReplayRun(str(tmp_path), login(broker)))


@pytest.mark.parametrize(
    ("given", "code", "says"),
    [
        (("--timing", "later"), 2, "DMQ8250: timing is 'later'"),
        (("--speed", "2"), 2, "DMQ8250: speed is about original timing"),
        (("--timing", "original", "--speed", "0"), 2, "DMQ8250: speed is 0.0"),
        (("--lead", "2"), 2, "DMQ8250: lead is about original timing"),
        (("--timing", "original", "--lead", "-1"), 2, "DMQ8250: lead is -1.0 but should be from 0 to 86400"),
        (("--since", "today"), 2, "DMQ8007: the time 'today' in since"),
        (("--since", "2026-01-02T00:00:00Z", "--before", "2026-01-01T00:00:00Z"), 2, "DMQ8250: nothing lies"),
        (("--to", "nowhere"), 1, "DMQ8239: --to names address 'nowhere', and there is none: create it"),
        (("--to", "orders::"), 1, "DMQ8239: --to is 'orders::': write an address, or address::queue"),
        (("--password", "wrong"), 1, "DMQ8011: "),
    ],
)
def test_what_is_wrong_is_told_in_one_sentence_before_spark(
    broker: delosmq.Broker, monkeypatch: pytest.MonkeyPatch, given: tuple[str, ...], code: int, says: str
):
    def no_spark(name: str, master: str) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("delosmq.spark.pipeline.open_session", no_spark)
    who = ("--servers", str(broker.http_url), "--user", broker.user, "--password", broker.password)
    ended = CliRunner().invoke(spark_app, ("replay", "--from", "archive", *who, *given))
    assert (ended.exit_code, ended.output.count("\n")) == (code, 1), ended.output
    assert ended.output.startswith(says)
