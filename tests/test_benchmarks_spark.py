"""What the benchmark of Spark beside Kafka computes: whose processor time it was, the pace of a query, its tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.cells import Latency
from benchmarks.spark import beside, compare
from benchmarks.spark.beside import Waits, between
from benchmarks.spark.compare import KAFKA, READ, Case, order, render, shortfalls
from benchmarks.spark.ping import pings
from benchmarks.spark.rows import BODY_BYTES, SETS, body, columns, count_parquet, mapped, write_arrow, write_parquet
from benchmarks.spark.usage import Pace, ProcessTime, Usage, pace, parse_stat, split

BATCHES = [
    {"timestamp": "2026-01-01T00:00:00.500Z", "numInputRows": 100, "durationMs": {"triggerExecution": 1_500}},
    {"timestamp": "2026-01-01T00:00:02.000Z", "numInputRows": 100, "durationMs": {"triggerExecution": 1_000}},
    {"timestamp": "2026-01-01T00:00:03.000Z", "numInputRows": 300, "durationMs": {"triggerExecution": 1_000}},
    {"timestamp": "2026-01-01T00:00:09.000Z", "numInputRows": 0, "durationMs": {"triggerExecution": 10}},
]
BEGAN_S = 1_767_225_600.0


def test_times_are_behind_a_name_that_holds_parentheses_and_spaces():
    line = "17 (a) b (c) S 1 1 1 0 -1 4194560 1 2 0 0 100 50 30 20 20 0 1 0 99 1 2 3"
    assert parse_stat(line) == ProcessTime(17, "a) b (c", 1.5, 0.5)


def test_children_of_java_that_ended_were_python():
    found = [
        ProcessTime(1, "python", 1.0, 0.5),
        ProcessTime(2, "java", 10.0, 3.0),
        ProcessTime(3, "python", 0.25, 4.0),
        ProcessTime(4, "python3.11", 2.0, 0.0),
    ]
    assert split(found, driver=1) == Usage(jvm_s=10.0, python_s=9.25, driver_s=1.5)


def test_a_worker_that_ends_between_two_looks_stays_in_the_account():
    before = split([ProcessTime(2, "java", 1.0, 0.0), ProcessTime(4, "python", 2.0, 0.0)], driver=1)
    after = split([ProcessTime(2, "java", 1.0, 2.5)], driver=1)
    assert after.since(before) == Usage(jvm_s=0.0, python_s=0.5, driver_s=0.0)


def test_pace_counts_from_the_start_of_the_query_and_later_batches_from_the_end_of_the_first():
    assert pace(BATCHES, BEGAN_S) == Pace(first_batch_s=2.0, steady_per_s=200.0)


def test_one_batch_has_no_steady_pace():
    assert pace(BATCHES[:1], BEGAN_S) == Pace(first_batch_s=2.0, steady_per_s=None)


def test_a_query_without_rows_has_no_pace():
    with pytest.raises(ValueError, match="no rows"):
        pace(BATCHES[-1:], BEGAN_S)


class Broker:
    """A clock that a round trip moves on, by what each of them takes in ms; waiting moves it on, too."""

    def __init__(self, *takes_ms: float, late_ms: float = 0.0) -> None:
        self._takes_ms = list(takes_ms)
        self._late_ms = late_ms
        self.now_s = 100.0

    def round_trip(self) -> None:
        self.now_s += self._takes_ms.pop(0) / 1_000

    def over(self, wait_s: float) -> bool:
        self.now_s += wait_s + (self._late_ms / 1_000 if wait_s else 0.0)
        return not self._takes_ms

    def pings_ms(self) -> list[float]:
        return [round(took * 1_000, 3) for _, took in pings(self.round_trip, self.over, lambda: self.now_s)]


def test_a_ping_behind_a_slow_one_counts_from_when_it_was_due():
    assert Broker(1.25, 16.25, 1.25, 1.25, 1.25, 1.25).pings_ms() == [1.25, 16.25, 12.5, 8.75, 5.0, 1.25]


def test_a_ping_that_is_late_by_itself_counts_from_when_it_was_sent():
    assert Broker(0.25, 0.25, 0.25, late_ms=5.0).pings_ms() == [0.25, 0.25, 0.25]


def test_pings_under_way_when_the_work_began_or_ended_count():
    seen = [(1.0, 0.5), (2.0, 1.5), (3.0, 0.25), (4.0, 2.0), (5.0, 0.125)]
    assert between(seen, 3.125, 4.5) == Latency(3, p50_ms=1_500.0, p99_ms=2_000.0, p999_ms=2_000.0, max_ms=2_000.0)


def _waits(what: str, longest_ms: float, p999_ms: float) -> Waits:
    quiet = Latency(2_000, 0.25, 0.5, 0.75, 1.0)
    return Waits(what, 2.0, quiet, Latency(2_000, 0.25, 0.5, p999_ms, longest_ms))


def test_what_waits_too_long_or_grows_falls_short():
    good, slow = _waits("good", 9.0, 4.0), _waits("slow", 11.0, 6.0)
    assert beside.shortfalls([good], [_waits("good", 50.0, 4.0)], {10_000: 8.0, 1_000_000: 9.0}, {}) == []
    assert beside.shortfalls([good, slow], [good, slow], {10_000: 8.0, 1_000_000: 12.0}, {}) == [
        "slow: a ping waits 11.0 ms; the aim is 10",
        "slow: one ping of a thousand waits 6.0 ms; the aim is 5",
        "a row takes 12.0 us with 1,000,000 messages behind it, 8.0 with 10,000",
    ]
    assert "| slow | 2.00 | 2,000 | 0.25 | 0.50 | 6.00 | 11.00 | 1.00 |" in beside.render_waits([slow])


def test_no_two_bodies_are_alike_and_all_have_one_length():
    bodies = {body(number) for number in range(1_000)}
    assert len(bodies) == 1_000
    assert {len(each) for each in bodies} == {BODY_BYTES}


@pytest.mark.parametrize("name", SETS)
def test_files_and_memory_hold_the_same_rows(name: str, tmp_path: Path):
    names = SETS[name]
    write_parquet(tmp_path / "files", names, rows=1_200, file_rows=500)
    write_arrow(tmp_path / "rows.arrow", names, rows=1_200)
    assert count_parquet(tmp_path / "files") == 1_200
    batches = list(mapped(str(tmp_path / "rows.arrow")))
    assert [batch.num_rows for batch in batches] == [500, 500, 200]
    assert batches[2].to_pylist() == columns(names, 1_000, 200).to_pylist()


def test_each_round_begins_with_another_way():
    cases = [Case(READ, "body", way) for way in ("a", "b", "c")]
    assert [order(cases, number)[0].way for number in range(4)] == ["a", "b", "c", "a"]
    assert all(set(order(cases, number)) == set(cases) for number in range(4))


def _row(way: str, rate: float) -> dict[str, Any]:
    cpu = {"broker": 5.0, "python": 4.0, "jvm": 30.0, "driver": 0.5}
    query = {"rows_per_s": rate, "first_batch_s": 1.0, "steady_per_s": rate * 2, "cpu_s_per_million": cpu}
    return {"round": 0, "task": READ, "columns": "body", "way": way, "session_s": 3.0, "queries": [query, query]}


def _content(*rounds: dict[str, Any], **more: Any) -> dict[str, Any]:
    machine = {"date": "D", "processor": "P", "cores": 2, "kernel": "K", "load_before": 0.5}
    versions = {"delosmq": "compiled", "spark": "4.3.0", "kafka": "4.3.1", "connector": "4.2.0"}
    sizes = {"rows": 200_000, "batch": 50_000, "partitions": 2}
    return {"machine": machine, **sizes, "versions": versions, "absent": {}, "rounds": list(rounds), **more}


def test_medians_stand_beside_those_of_kafka():
    rounds = [_row("delosmq", rate) for rate in (10_000.0, 20_000.0, 90_000.0)] + [_row(KAFKA, 40_000.0)]
    text = "\n".join(render(_content(*rounds)))
    assert "Spark's connector of 4.2.0, the nearest to be had to 4.3.0" in text
    assert "| body | DelosMQ | 1.00 | 20,000 (0.50 x) | 20,000 (0.50 x) | 40,000 (0.50 x) |" in text
    assert "| body | Kafka | first | 5.0 | 4.0 | 30.0 | 0.5 | 39.5 |" in text
    assert shortfalls(_content(*rounds)) == [
        "read body, delosmq: 20,000 rows/s in the first query, 0.50 times what Kafka has"
    ]


def test_what_can_not_be_had_is_named():
    content = _content(_row("delosmq", 10_000.0), absent={KAFKA: "there is no mvn"})
    del content["versions"][KAFKA]
    text = "\n".join(render(content))
    assert "- absent: kafka: there is no mvn" in text
    assert "| body | DelosMQ | 1.00 | 10,000 | 10,000 | 20,000 |" in text
    assert shortfalls(content) == []
    assert render(_content(absent={KAFKA: "there is no mvn"}))[-1] == "- absent: kafka: there is no mvn"


def test_a_word_that_is_no_way_is_refused(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        compare.main(["--ways", "delosmq,rabbit"])
    assert "is none of delosmq, kafka, parquet, memory" in capsys.readouterr().err
