"""The audit: exact numbers of archives made for it, what it refuses, names that would be markup, a real broker."""

# PIPE-2

import json
import re
import threading
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import delosmq
from delosmq.cli.spark.app import spark_app
from delosmq.model.message import MULTICAST
from delosmq.model.settings import BrokerSettings, QueueSettings
from delosmq.spark.archive import ArchiveRun, archive
from delosmq.spark.audit import AuditReport, AuditRun, audit
from delosmq.spark.audit.report import units
from delosmq.spark.audit.report.markup import el, name, printable
from delosmq.spark.audit.traffic import BUCKETS, period_of, width_of
from delosmq.spark.errors import ArchiveError, AuditError
from tests.spark.audit_archives import NOON_MS, make_archive, make_events, message, record

HOSTILE = "<script>alert(1)</script>\"'&\x1b[2J\u202e"


class Page(HTMLParser):
    """What a reader of a page gets: its words, and the elements and attributes in it."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(Path(path).read_text("utf-8"))
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(key for key, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def rows(report: AuditReport, table: str, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[column] for column in columns) for row in report.tables[table].rows]


def told_times(event: str, events: Path) -> int:
    import pyarrow.dataset as ds

    if not list(events.glob("day=*")):
        return 0
    bodies = ds.dataset(events, partitioning="hive").to_table(["body"])["body"].to_pylist()
    return sum(json.loads(line)["event"] == event for body in bodies for line in body.splitlines())


def test_text_is_never_markup():
    assert el("td", HOSTILE[:8], title='"') == '<td title="&quot;">&lt;script&gt;</td>'
    assert name("a\x1b[2J\u202e") == "<bdi>a\ufffd[2J\ufffd</bdi>"
    assert name("x" * 1_000) == f"<bdi>{'x' * 200}…</bdi>"
    assert printable("a\nb") == "a\ufffdb"


@pytest.mark.parametrize("span_ms", [0, 1, 999, 119_000, 7_200_000, 86_400_000 * 3, 86_400_000 * 36_500])
def test_a_plot_has_a_bounded_number_of_intervals_and_of_ticks(span_ms: int):
    assert span_ms // width_of(0, span_ms) + 2 <= BUCKETS + 1
    ticks = units.time_ticks(1_000, 1_000 + span_ms)
    assert len(ticks) <= 7
    assert len({text for _, text in ticks}) == len(ticks)


def test_numbers_are_written_for_people():
    assert [units.duration(ms) for ms in (None, 0, 999, 1_000, 90_000)] == ["–", "0 ms", "999 ms", "1 s", "1.5 min"]
    assert [units.share(part) for part in (None, 0.0, 0.00001, 0.125)] == ["–", "0 %", "< 0.01 %", "12.5 %"]
    assert [units.round_end(value) for value in (0, 0.3, 1, 1.1, 7)] == [1, 0.4, 1, 2, 8]
    assert units.decades(0) == [1, 10]
    assert units.decades(101) == [1, 10, 100, 1_000]
    assert units.counted(1, "number of producers") == "1 number of producers"
    assert units.counted(2_000, "gap") == "2,000 gaps"


def test_what_cant_be_audited_is_refused_before_spark_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr("delosmq.spark.pipeline.open_session", lambda name, master: pytest.fail("Spark was started"))
    good = make_archive(tmp_path / "good", [])
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter").touch()
    to = ("--to", str(tmp_path / "new"))
    for given, code, says in (
        (("--archive", str(tmp_path), *to), 1, "DMQ8244: "),
        (("--events", str(tmp_path / "nope"), *to), 1, "DMQ8244: "),
        (("--archive", good, "--to", str(tmp_path / "other")), 1, "DMQ8211: "),
        (("--archive", good, "--to", f"{good}/audit"), 1, "DMQ8211: "),
        (("--archive", good, "--to", "/proc/x"), 1, "DMQ8062: "),
        (("--archive", good, "--to", "s3a://bucket/x"), 2, "DMQ8213: "),
        (to, 2, "DMQ8214: "),
        (("--archive", good, "--producer-property", "p", *to), 2, "DMQ8216: "),
        (("--events", good, "--producer-property", "p", "--sequence-property", "n", *to), 2, "DMQ8216: "),
        (("--archive", good, "--dry-run", *to), 0, "would audit "),
    ):
        ended = CliRunner().invoke(spark_app, ("audit", *given))
        assert (ended.exit_code, ended.output.count("\n")) == (code, 1), ended.output
        assert ended.output.startswith(says)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["good", "other"]


@pytest.mark.spark
@pytest.mark.timeout(300)
class TestOnSpark:
    def test_numbers_are_exact(self, spark: Any, tmp_path: Path):
        told = [
            part
            for number in range(1, 101)
            for part in (
                record("enqueue", number, 0, producer="ID:p:1", producer_sequence=number + (3 if number > 50 else 0)),
                record("dispatch", number, number, consumer="7"),
                record("acknowledge", number, number + 20, consumer="7"),
            )
        ]
        told += [
            record("enqueue", 101, 0, producer="ID:p:1", producer_sequence=103),  # again
            record("enqueue", 101, 0, "copies", producer="ID:p:1", producer_sequence=103),  # the same in another queue
            record("dispatch", 101, 10, consumer="8"),
            record("redeliver", 101, 500, delivery_count=1),
            record("dispatch", 101, 1_000, consumer="7", delivery_count=2),
            record("dead-letter", 101, 1_500, cause="DLQ"),
            record("replace", 102, 1),
            record("expire", 103, 1),
            record("dispatch", 104, -5, consumer="7"),  # the clock went back
            {"time_ms": told[0]["time_ms"], "event": "lost", "cause": "17 records: more than 20 in a second"},
        ]
        for target, times in (("this broker", 3), ("east:61616", 1)):
            cause = f"front: {target}, because the key, because it is new, hashes to it"
            told += [{"time_ms": told[0]["time_ms"], "event": "route", "cause": cause, "producer": "c"}] * times
        damaged = ('{"time_ms": 1, "event": "enq', '{"event": "enqueue"}', '{"time_ms": "x", "event": "enqueue"}', "7")
        archived = [message(number, body=b"x" * number, redelivered=number == 9) for number in range(1, 11)]
        run = AuditRun(
            str(tmp_path / "audit"),
            make_archive(tmp_path / "a", [*archived, archived[3]]),
            make_events(tmp_path / "e", told, damaged),
        )
        lines: list[str] = []
        report = audit(spark, run, on_progress=lines.append)
        assert "read 11 messages of the archive" in lines
        assert f"read {len(told)} records, and 4 damaged lines" in lines
        assert (report.damaged, report.lost, report.missing, report.doubles) == (4, 17, 3, 2)
        percentiles = ("p50_ms", "p90_ms", "p99_ms", "p999_ms", "max_ms")
        assert sorted(rows(report, "latency", "step", "messages", *percentiles, "clock_went_back")) == [
            ("accepted to acknowledged", 100, 70, 110, 119, 120, 120, 0),
            ("accepted to dispatched", 101, 50, 90, 99, 100, 100, 1),
            ("dispatched to acknowledged", 100, 20, 20, 20, 20, 20, 0),
        ]
        assert ("orders", "8", "accepted to dispatched", 1, 10) in rows(
            report, "latency_by_consumer", "queue", "consumer", "step", "messages", "p50_ms"
        )
        kinds = ("enqueued", "dispatched", "acknowledged", "redelivered", "evicted", "expired", "dead_lettered")
        assert rows(report, "queues", "queue", "archived", "body_bytes", "archived_redelivered", *kinds) == [
            ("orders", 11, 59, 1, 101, 103, 100, 1, 1, 1, 1),
            ("copies", None, None, None, 1, 0, 0, 0, 0, 0, 0),
        ]
        assert rows(report, "queues", "redelivery_rate", "eviction_rate", "dead_letter_rate") == [
            (1 / 103, 1 / 101, 1 / 101),
            (None, 0.0, 0.0),
        ]
        numbered = ("producer", "numbers", "first", "last", "gaps", "missing", "doubles")
        assert rows(report, "producers", *numbered) == [("ID:p:1", 100, 1, 103, 1, 3, 1)]
        assert rows(report, "gaps", "first_missing", "last_missing", "missing") == [(51, 53, 3)]
        assert rows(report, "doubles", "source", "queue", "name", "number", "times") == [
            ("message id", "orders", "ID:4", None, 2),
            ("records", "orders", "ID:p:1", 103, 2),
        ]
        reason = "the key, because it is new, hashes to it"
        assert rows(report, "routers", "router", "decision", "target", "reason", "connections", "share") == [
            ("front", "route", "this broker", reason, 3, 0.75),
            ("front", "route", "east:61616", reason, 1, 0.25),
        ]
        assert sum(row["messages"] for row in report.tables["archived_traffic"].rows) == 11
        assert sum(row["dispatched"] for row in report.tables["traffic"].rows) == 103
        assert spark.read.parquet(str(tmp_path / "audit" / "gaps")).count() == 1
        page = Page(report.report)
        for words in (
            "3 numbers of producers missing, in 1 gap.",
            "4 lines of the records left out",
            "dropped 17 records",
        ):
            assert words in page.text

    def test_nothing_and_no_records_are_told_and_the_page_fetches_nothing(self, spark: Any, tmp_path: Path):
        empty = audit(spark, AuditRun(str(tmp_path / "audit"), make_archive(tmp_path / "a", [])))
        page = Page(empty.report)
        assert (empty.messages, empty.records) == (0, 0)
        assert "The archive holds no messages." in page.text
        assert "No records were read. Switch them on with delosmq-events" in page.text
        assert not page.tags & {"script", "link", "img", "iframe", "object"}
        assert not re.search(r"https?:|url\(|@import", Path(empty.report).read_text("utf-8"))

    def test_hostile_names_stay_text_and_numbers_may_be_in_properties(self, spark: Any, tmp_path: Path):
        numbers: Sequence[str] = ("1", "2", "2", "5", "9223372036854775807", "-3", "many", "")
        sent = [
            message(at, HOSTILE, address="q", properties={"who": HOSTILE, "n": number})
            for at, number in enumerate(numbers)
        ]
        told = [
            record(event, 1, 5, HOSTILE, consumer=HOSTILE, producer=HOSTILE, producer_sequence=at, cause=HOSTILE)
            for at, event in enumerate(("enqueue", "enqueue", "dispatch", "acknowledge", "dead-letter", "route"))
        ]
        run = AuditRun(
            str(tmp_path / "a b{1}%20[*]"),
            make_archive(tmp_path / "a", sent),
            make_events(tmp_path / "e", told),
            producer_property="who",
            sequence_property="n",
        )
        report = audit(spark, run)
        counted = ("source", "numbers", "first", "last", "missing", "doubles")
        assert sorted(rows(report, "producers", *counted)) == [
            ("properties", 3, 1, 5, 2, 1),
            ("records", 2, 0, 1, 0, 0),
        ]
        page = Page(report.report)
        assert "script" not in page.tags
        assert not [key for key in page.attributes if key.startswith("on")]
        assert "<script>alert(1)</script>\"'&\ufffd[2J\ufffd" in page.text
        assert "\x1b" not in page.text
        assert "4 messages of the archive without a number" in page.text

    def test_a_few_wrong_clocks_dont_stretch_the_plot(self, spark: Any):
        times = spark.range(1_000).selectExpr("if(id = 7, -62000000000000, id * 1000) as at")
        period = period_of(times, "at")
        assert (period.rows, period.width_ms) == (1_000, 10_000)
        assert period.last_ms - period.first_ms < 1_000_000
        assert 1 <= period.outside <= 11
        steady = period_of(times.where("at >= 0"), "at")
        assert (steady.first_ms, steady.last_ms, steady.outside) == (0, 999_000, 0)

    def test_records_with_a_wrong_clock_dont_make_the_page_grow(self, spark: Any, tmp_path: Path):
        def lives(first: int, last: int, off_ms: int) -> list[dict[str, Any]]:
            steps = (("enqueue", 0), ("dispatch", 5), ("acknowledge", 9))
            return [record(step, number, off_ms + at) for number in range(first, last) for step, at in steps]

        sound = lives(0, 300, 0)
        told = [*sound, *lives(300, 301, -NOON_MS), *lives(301, 302, 20 * 365 * 86_400_000)]
        steady = audit(spark, AuditRun(str(tmp_path / "steady"), events=make_events(tmp_path / "e", sound)))
        report = audit(spark, AuditRun(str(tmp_path / "audit"), events=make_events(tmp_path / "f", told)))
        assert report.records == steady.records + 6
        for table in ("traffic", "latency_over_time"):
            starts = [row["start"] for row in report.tables[table].rows]
            assert NOON_MS - 60_000 <= min(starts) <= max(starts) <= NOON_MS + 310_000
        assert [row["enqueued"] for row in report.tables["queues"].rows] == [302]
        text = Page(report.report).text
        (outside,) = re.findall(r"(\d+) records with times far from all others", text)
        assert int(outside) == report.records - sum(
            row["enqueued"] + row["dispatched"] + row["acknowledged"] for row in report.tables["traffic"].rows
        )
        assert "far from all others" not in Page(steady.report).text
        assert Path(report.report).stat().st_size < 2 * Path(steady.report).stat().st_size

    def test_an_archive_of_something_else_is_no_archive_of_records(self, spark: Any, tmp_path: Path):
        other = make_archive(tmp_path / "a", [message(1)])
        with pytest.raises(ArchiveError, match="DMQ8212"):
            audit(spark, AuditRun(str(tmp_path / "audit"), events=other))

    def test_a_stopped_audit_says_so_and_the_next_one_ends(self, spark: Any, tmp_path: Path):
        run = AuditRun(str(tmp_path / "audit"), make_archive(tmp_path / "a", [message(1)]))
        stop = threading.Event()

        def stop_after_first(line: str) -> None:
            if line.startswith("table "):
                with pytest.raises(AuditError, match="DMQ8215"):
                    audit(spark, run)
                stop.set()

        with pytest.raises(AuditError, match="DMQ8217"):
            audit(spark, run, stop=stop, on_progress=stop_after_first)
        assert not (tmp_path / "audit" / "report.html").exists()
        for _ in range(2):  # over what the one before left, and over the whole
            assert audit(spark, run).tables["queues"].rows[0]["archived"] == 1
        assert "1 message of " in Page(f"{run.to}/report.html").text

    def test_a_real_brokers_records_are_archived_and_audited(self, spark: Any, tmp_path: Path):
        queues = (
            QueueSettings("orders", "orders"),
            QueueSettings("audit", "delosmq.events", routing_type=MULTICAST, ring_size=-1),
        )
        settings = BrokerSettings(delosmq_events=20_000, queues=queues)
        with delosmq.Broker(settings=settings) as broker:
            with delosmq.connect(broker.openwire_url, user=broker.user, password=broker.password) as connection:
                for number in range(20):
                    connection.send("orders", f"order {number}")
            login = {"servers": str(broker.http_url), "user": broker.user, "password": broker.password}
            archive(spark, ArchiveRun("orders", str(tmp_path / "a"), login))
            for _ in range(60):  # records leave within a second or two
                archive(spark, ArchiveRun("audit", str(tmp_path / "e"), login))
                if told_times("acknowledge", tmp_path / "e") == 20:
                    break
        report = audit(spark, AuditRun(str(tmp_path / "audit"), str(tmp_path / "a"), str(tmp_path / "e")))
        assert (report.messages, report.damaged, report.lost, report.missing, report.doubles) == (20, 0, 0, 0, 0)
        assert rows(report, "queues", "queue", "archived", "enqueued", "dispatched", "acknowledged") == [
            ("orders", 20, 20, 20, 20)
        ]
        assert rows(report, "latency_by_consumer", "consumer", "messages") == [("lease archive-orders", 20)] * 3
        assert rows(report, "producers", "first", "last", "numbers", "missing") == [(1, 20, 20, 0)]
