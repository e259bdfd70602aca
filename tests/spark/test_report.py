"""The report of the main job on an archive with one fault of its kind."""

import json
from pathlib import Path
from typing import Any

import pytest

from examples.orders.report import report, write_receipts
from examples.orders.traffic import Receipts


@pytest.mark.spark
def test_the_audit_counts_what_nobody_published(spark: Any, tmp_path: Path) -> None:
    receipts = Receipts(published=["a", "b", "c"], acknowledged=["a", "b", "ghost"], dead=["c"])
    write_receipts(tmp_path / "receipts", receipts)
    order = {"customer": "x", "placed_at": "2026-03-02T10:00:00Z", "amount": 1.0}
    bodies = [json.dumps({**order, "order_id": name}).encode() for name in ("a", "b", "c", "unknown")]
    rows = [(bytearray(body),) for body in (*bodies, b"no order at all")]
    spark.createDataFrame(rows, "body binary").write.parquet(str(tmp_path / "archive"))
    made = report(spark, tmp_path / "archive", tmp_path / "receipts", tmp_path / "out", redelivered=0)
    assert (made.audit.lost, made.audit.doubled, made.audit.strange) == (0, 0, 3)
    assert not made.audit.passed
