"""The comparison over OpenWire: what is asked of the generator, and what the report makes of the figures."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.brokers.base import RunningBroker
from benchmarks.brokers.sink import SinkDriver
from benchmarks.load import GeneratorError
from benchmarks.openwire.cells import BATCH, CELLS, TRANSACTED
from benchmarks.openwire.load import OpenWireLoad
from benchmarks.report import Results, render

# Says what it was told; an error for the first job, an outcome for others.
_STAND_IN = """
import json, sys
runs = 0
for line in sys.stdin:
    command, *words = line.split()
    values = dict(word.split("=", 1) for word in words)
    if command == "run":
        runs += 1
        asked = values
        print(json.dumps({"error": "gone"} if runs == 1 else {"ready": True}), flush=True)
    else:
        count = int(asked["messages"])
        print(json.dumps({"sent": count, "confirmed": 0, "received": count, "acks": count, "elapsed_s": 1.0,
            "confirmed_after_s": None, "generator_cpu_s": 0.5, "delivery": None, "receipt": None, "send_lag": None,
            "notes": [asked["queues"], asked["transacted"], asked["inFlightPerPair"]]}), flush=True)
"""


def test_the_generator_is_told_what_the_cell_is_and_a_failed_load_leaves_its_queues_behind(tmp_path: Path) -> None:
    cell = next(cell for cell in CELLS if cell.mode == TRANSACTED and cell.connections == 16)
    broker = RunningBroker(SinkDriver(), tmp_path, 1, None)
    with OpenWireLoad(None, [sys.executable, "-c", _STAND_IN]) as load:
        with pytest.raises(GeneratorError, match="gone"):
            load.open(broker, cell, None)
        load.open(broker, cell, None)
        outcome = load.go()
    assert outcome.received == cell.messages
    assert outcome.notes == ["bench.1.", "true", str(2 * BATCH)]


def test_a_generator_that_ends_is_told_of(tmp_path: Path) -> None:
    cell = CELLS[0]
    broker = RunningBroker(SinkDriver(), tmp_path, 1, None)
    with OpenWireLoad(None, [sys.executable, "-c", "input()"]) as load:
        with pytest.raises(GeneratorError, match="the generator ended"):
            load.open(broker, cell, None)


def test_every_pair_of_a_cell_has_whole_batches_and_room_for_two() -> None:
    for cell in CELLS:
        assert cell.messages % (cell.connections * BATCH) == 0, cell.name
        assert cell.in_flight_per_pair >= 2 * BATCH, cell.name
        assert (cell.outstanding is not None) == cell.persistent


def _round(broker: str, cpu: float, start: float) -> dict[str, Any]:
    row = {"cell": CELLS[0].name, "broker_cpu_s_per_million": cpu}
    overall = {"start_fresh_s": start, "start_again_s": 0.1, "memory_idle_mib": 80.0, "memory_loaded_mib": 90.0}
    return {"round": 0, "broker": broker, "cells": [row], "failures": [], **overall}


def test_the_report_compares_cpu_and_start_with_classic() -> None:
    conditions = ("body_size_bytes", "batch", "in_flight", "in_flight_per_pair_at_least")
    content = {
        "kind": "openwire",
        "quick": False,
        "pinned": True,
        "machine": dict.fromkeys(("date", "processor", "cores", "memory_gib", "kernel", "filesystem", "python"), "?"),
        "conditions": dict.fromkeys(conditions, 1),
        "versions": {},
        "settings": {},
        "absent": {},
        "rounds": [_round("delosmq-compiled", 18.0, 0.2), _round("activemq", 24.0, 1.0)],
    }
    text = "\n".join(render(Results(content)))
    assert f"| DelosMQ compiled | CPU, {CELLS[0].name} | at most 0.7 x | 0.75 | **falls short** |" in text
    assert "| DelosMQ compiled | start to first confirmed | at most 0.33 x | 0.20 | met |" in text
    assert "RabbitMQ" not in text
