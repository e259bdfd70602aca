"""Dead letters in groups: what consumers that fail leave behind, as people and programs get to see it."""

# PIPE-2

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import delosmq
from delosmq.cli.spark.app import spark_app
from delosmq.spark.dead_letters import TriageRun, triage
from delosmq.spark.dead_letters.triage import MOST_GROUPS, TOO_MANY, LetterSorter, json_keys
from tests.spark.letters import consume, fail, send


@pytest.fixture
def broker() -> Iterator[delosmq.Broker]:
    with delosmq.Broker() as running:
        yield running


def login(broker: delosmq.Broker) -> dict[str, str]:
    return {"servers": str(broker.http_url), "user": broker.user, "password": broker.password}


def run_command(broker: delosmq.Broker, *given: str) -> Any:
    who = ("--servers", str(broker.http_url), "--user", broker.user, "--password", broker.password)
    return CliRunner().invoke(spark_app, ("triage", *who, *given))


def test_letters_are_grouped_by_origin_and_shape_and_stay_where_they_are(broker: delosmq.Broker, tmp_path: Path):
    send(broker, "/queue/orders", ['{"id": 1, "total": 2}', '{"total": 3, "id": 9}', "no json"])
    fail(broker, "/queue/orders", 3)
    send(broker, "/queue/returns", ['[{"id": 7}]'], **{"content-length": "11"})
    fail(broker, "/queue/returns", 1)

    report = triage(TriageRun(["DLQ"], login(broker), to=str(tmp_path / "groups.parquet")))
    groups = {(group.address, group.body_kind, group.keys): group.count for group in report.groups}
    assert groups == {("orders", "text", "id, total"): 2, ("orders", "text", ""): 1, ("returns", "bytes", "[id]"): 1}
    assert report.messages == 4
    assert report.groups[0].count == 2
    assert report.groups[0].first <= report.groups[0].last
    assert report.groups[0].cause == "failed by its consumers (no cause written)"

    import pyarrow.parquet as parquet

    rows = parquet.read_table(tmp_path / "groups.parquet").to_pylist()
    assert [row["count"] for row in rows] == [2, 1, 1]
    assert len(consume(broker, "/queue/DLQ", 4)) == 4


def test_the_command_prints_a_table_and_writes_json(broker: delosmq.Broker, tmp_path: Path):
    send(broker, "/queue/orders", ["a", "b"])
    fail(broker, "/queue/orders", 2)
    ended = run_command(broker, "--to", str(tmp_path / "groups.json"))
    assert ended.exit_code == 0, ended.output
    assert "        2  DLQ from orders: failed by its consumers" in ended.output
    assert "messages    2\ngroups      1\n" in ended.output
    (row,) = json.loads((tmp_path / "groups.json").read_text())
    assert (row["queue"], row["original_queue"], row["count"]) == ("DLQ", "orders", 2)


def test_a_dry_run_counts_and_an_empty_queue_has_no_groups(broker: delosmq.Broker, tmp_path: Path):
    dry = run_command(broker, "--dry-run", "--to", str(tmp_path / "groups.json"))
    assert (dry.exit_code, dry.output) == (0, "messages in DLQ  0\n")
    assert not list(tmp_path.iterdir())
    assert "groups    0" in run_command(broker).output


def test_the_broker_applies_the_selector(broker: delosmq.Broker):
    for region in ("EU", "US"):
        send(broker, "/queue/orders", ["a"], region=region)
    fail(broker, "/queue/orders", 2)
    assert triage(TriageRun(["DLQ"], login(broker), selector="region = 'EU'")).messages == 1
    ended = run_command(broker, "--selector", "a = = b")
    assert ended.exit_code == 1
    assert "is expected, not '='" in ended.output


def test_names_can_not_write_to_the_terminal(broker: delosmq.Broker):
    name = "a\x1b[31m[bold]:tea:"
    send(broker, f"/queue/{name}", ["x"])
    fail(broker, f"/queue/{name}", 1)
    assert r"DLQ from a\x1b[31m[bold]:tea:: failed" in run_command(broker).output


@pytest.mark.parametrize(
    ("given", "code", "says"),
    [
        (("--queue", "nope"), 1, "DMQ8024: "),
        (("--to", "groups.csv"), 2, "DMQ8231: 'groups.csv' says no format"),
        (("--to", "/nowhere/groups.json"), 2, "DMQ8232: there is no directory for /nowhere/groups.json"),
        (("--password", "wrong"), 1, "DMQ8011: "),
    ],
)
def test_what_is_wrong_is_told_in_one_sentence(broker: delosmq.Broker, given: tuple[str, ...], code: int, says: str):
    ended = run_command(broker, *given)
    assert (ended.exit_code, ended.output.count("\n")) == (code, 1), ended.output
    assert ended.output.startswith(says)


def test_causes_differ_in_more_than_numbers_and_kinds_are_bounded():
    import pyarrow as pa

    from delosmq.spark.dead_letters.triage import COLUMNS
    from delosmq.spark.schema import arrow_schema

    def letters(causes: list[str]) -> pa.RecordBatch:
        rows = [
            {
                "body": b"",
                "message_id": f"ID:{at}",
                "sequence": at,
                "timestamp": at * 1_000_000,
                "protocol": "OPENWIRE",
                "properties": [("dlqDeliveryFailureCause", cause)],
                "body_kind": "empty",
            }
            for at, cause in enumerate(causes, 1)
        ]
        return pa.RecordBatch.from_pylist(rows, schema=arrow_schema(COLUMNS))

    sorting = LetterSorter()
    sorting.add("DLQ", letters(["order 17 is late", "order 4 is late", "no stock"]))
    assert {group.cause: group.count for group in sorting.groups.values()} == {"order # is late": 2, "no stock": 1}
    late = next(group for group in sorting.groups.values() if group.count == 2)
    assert (late.example_id, late.first.timestamp(), late.last.timestamp()) == ("ID:1", 1, 2)

    words = ["".join(chr(97 + int(digit)) for digit in str(at)) for at in range(MOST_GROUPS + 5)]
    sorting.add("DLQ", letters(words))
    assert len(sorting.groups) == MOST_GROUPS + 1
    assert next(group for group in sorting.groups.values() if group.cause == TOO_MANY).count == 7


@pytest.mark.parametrize(
    ("body", "keys"),
    [
        (b'{"b": 1, "a": {"c": 2}}', "a, b"),
        (b"[]", ""),
        (b"[1]", ""),
        (b"{broken", ""),
        (b"[" * 100_000, ""),
        (b'{"\xff": 1}', ""),
        (b"{}", ""),
        (b'{"a": "' + b"x" * 300_000 + b'"}', ""),
    ],
)
def test_only_json_objects_have_keys(body: bytes, keys: str):
    assert json_keys(body) == keys
