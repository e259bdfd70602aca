"""The stream processor's example: revenue per minute, checked against sums that plain Python makes of the orders."""

# PIPE-2

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

import delosmq
from delosmq.spark.machine.java import ensure_java
from examples.revenue.__main__ import (
    CONFIG,
    ORDERS,
    Outcome,
    address_of,
    archive_all,
    archived,
    audited,
    login_of,
    run,
)
from examples.revenue.clients import LATE_ORDER, order_lines, send_orders, take_revenue
from examples.revenue.corrections import Account, correct
from examples.revenue.stream import publish_minutes, read_shops

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]
HIVE = ("--conf", "spark.sql.catalogImplementation=hive", "--conf", "spark.ui.enabled=false")
"""A catalogue that the second run finds."""
CITIES = {"s-1": "Bremen", "s-2": "Bremen", "s-3": "Hamburg", "s-4": "Kiel", "s-5": "unknown"}
Revenue = dict[tuple[str, str], tuple[int, int]]


def revenue_of(lines: list[str]) -> Revenue:
    """(minute, city) -> orders and cents."""
    counts: Counter[tuple[str, str]] = Counter()
    cents: Counter[tuple[str, str]] = Counter()
    for line in lines:
        order = json.loads(line)
        minute = datetime.fromisoformat(order["placed_at"]).strftime("%Y-%m-%dT%H:%M:00Z")
        key = (minute, CITIES[order["shop"]])
        counts[key] += 1
        cents[key] += order["cents"]
    return {key: (counts[key], cents[key]) for key in counts}


def published(outcome: Outcome, kind: str) -> Revenue:
    """The same of messages that accounting took, each minute and city once."""
    results = [result for result in outcome.revenue if result["kind"] == kind]
    revenue = {(result["minute"], result["city"]): (result["orders"], result["cents"]) for result in results}
    assert len(revenue) == len(results)
    return revenue


def over(lines: list[str]) -> Revenue:
    """What is published of orders that came in time: minutes that ended two minutes before the latest of them."""
    latest = max(datetime.fromisoformat(json.loads(line)["placed_at"]) for line in lines)
    closed = (latest - timedelta(minutes=3)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {key: value for key, value in revenue_of(lines).items() if key[0] <= closed}


def test_each_order_counts_once_for_its_minute_or_for_a_correction(spark: Any, tmp_path: Path) -> None:
    in_time, late = list(order_lines(ORDERS)), json.dumps(LATE_ORDER)
    with delosmq.Broker(config=CONFIG, stomp_port=0) as broker:
        address = address_of(broker)
        outcome = run(spark, address, tmp_path)
        assert published(outcome, "minute") == over(in_time)
        # Its minute was published when it came: it is in the archive, and one correction is due to it.
        assert outcome.dropped == 1
        assert published(outcome, "correction") == revenue_of([late])
        counted = sum(orders for orders, _ in over(in_time).values())
        waiting = len(in_time) - counted
        assert outcome.account == Account(len(in_time) + 2, counted, late=1, waiting=waiting, unreadable=1)
        assert outcome.account.balanced
        # What is run again publishes nothing again: the stream, corrections of an older archive, and of a newer one.
        shops = read_shops(spark)
        publish_minutes(spark, login_of(address), tmp_path / "checkpoint", max_orders=100)
        correct(spark, login_of(address), archived(spark, tmp_path), shops)
        report = audited(spark, address, tmp_path)
        assert correct(spark, login_of(address), archived(spark, tmp_path), shops) == outcome.account
        assert take_revenue(address) == []
        # Another one that is too late, in the same minute of the stream, is a correction of its own.
        send_orders(address, [json.dumps({**LATE_ORDER, "order_id": "o-later"})])
        archive_all(spark, login_of(address), tmp_path)
        before = archived(spark, tmp_path)
        assert correct(spark, login_of(address), before, shops) == replace(outcome.account, orders=ORDERS + 3, late=2)
        correct(spark, login_of(address), before, shops)
        archive_all(spark, login_of(address), tmp_path)
        assert correct(spark, login_of(address), archived(spark, tmp_path), shops).late == 2
        assert [json.loads(frame.body)["orders"] for frame in take_revenue(address)] == [1]
    # The audit saw all: orders, minutes and the correction, none missing and none twice.
    assert report.messages == outcome.account.orders + outcome.minutes + outcome.corrections
    assert (report.missing, report.doubles, report.lost) == (0, 0, 0)
    assert report.records > report.messages
    assert Path(report.report).read_text("utf-8").startswith("<!")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_pipelines_project_goes_on_where_its_first_run_ended(tmp_path: Path) -> None:
    project = shutil.copytree(ROOT / "examples" / "revenue" / "pipeline", tmp_path / "pipeline")
    spec = project / "spark-pipeline.yml"
    # Its tables' place, and that of its catalogue, are of this test.
    spec.write_text(spec.read_text("utf-8").replace("/var/tmp/delosmq-revenue", str(tmp_path / "storage")), "utf-8")
    lines = list(order_lines(ORDERS))
    ensure_java()
    frames = []
    with delosmq.Broker(config=CONFIG, stomp_port=0) as broker:
        address = address_of(broker)
        login = {f"DELOSMQ_{name.upper()}": value for name, value in login_of(address).items()}
        path = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        python = {"PYTHONPATH": os.pathsep.join(path), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        for half in (lines[: ORDERS // 2], lines[ORDERS // 2 :]):
            send_orders(address, half)
            ran = subprocess.run(
                [Path(sys.executable).parent / "spark-pipelines", "run", "--spec", spec, *HIVE],
                cwd=tmp_path,
                env={**os.environ, **login, **python},
                capture_output=True,
                text=True,
                check=False,
            )
            assert ran.returncode == 0, ran.stdout + ran.stderr
            frames += take_revenue(address)
    results = [json.loads(frame.body) for frame in frames]
    revenue = {(result["minute"], result["city"]): (result["orders"], result["cents"]) for result in results}
    assert revenue == over(lines)
    assert len(results) == len(revenue)


def test_an_order_in_two_places_is_no_balance() -> None:
    assert Account(orders=3, counted=1, late=1, waiting=1, unreadable=0).balanced
    assert not Account(orders=3, counted=2, late=1, waiting=1, unreadable=0).balanced


def test_the_page_shows_what_is_in_the_files() -> None:
    files = [*(ROOT / "examples" / "revenue").rglob("*.*"), Path(__file__)]
    sources = "".join(
        dedent(line)
        for file in files
        if file.suffix in (".py", ".yml", ".csv")
        for line in file.read_text("utf-8").splitlines(keepends=True)
    )
    page = (ROOT / "docs" / "example-revenue.md").read_text("utf-8")
    blocks = re.findall(r"^```(?:python|yaml|csv)\n(.*?)```", page, re.DOTALL | re.MULTILINE)
    assert blocks
    assert HIVE[1] in page
    for block in blocks:
        assert "".join(dedent(line) for line in block.splitlines(keepends=True)) in sources
