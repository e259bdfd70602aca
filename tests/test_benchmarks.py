"""The load generator counts rightly and the report compares rightly; speed is for the benchmark itself to show."""

from __future__ import annotations

import argparse
import dataclasses
import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from benchmarks import engine, engine_worker, machine, restart
from benchmarks.cells import CELL_NAMES, Job
from benchmarks.generator import Generator
from benchmarks.report import Results, render
from benchmarks.sink import Sink, SinkThread, count_across

TIMES = {"send_cpu_s": 0.3, "start_s": 0.5, "start_cpu_s": 0.4}


def _job(port: int, *, messages: int, outstanding: int | None, connections: int, rate_per_s: float | None) -> Job:
    return Job(
        port=port,
        login="bench",
        passcode="bench",
        host="/",
        subscribe_headers={},
        persistent=outstanding is not None,
        outstanding=outstanding,
        connections=connections,
        messages=messages,
        core=None,
        rate_per_s=rate_per_s,
    )


# As many as one acknowledgement covers, times a whole number, or some left over for the last one.
@pytest.mark.parametrize("messages", [1_600, 1_616])
@pytest.mark.parametrize("connections", [1, 16])
@pytest.mark.parametrize("outstanding", [None, 1, 100])
@pytest.mark.parametrize("rate_per_s", [None, 40_000.0])
def test_every_message_is_confirmed_received_and_acknowledged(
    messages: int, connections: int, outstanding: int | None, rate_per_s: float | None
) -> None:
    with SinkThread() as sink:
        job = _job(
            sink.port, messages=messages, outstanding=outstanding, connections=connections, rate_per_s=rate_per_s
        )
        generator = Generator(job)
        outcome = generator.run()
        generator.close()
    per_pair = messages // connections
    assert outcome.sent == outcome.received == messages
    assert outcome.confirmed == (messages if outstanding else 0)
    assert outcome.acks == connections * -(-per_pair // job.ack_every)
    if rate_per_s is not None:
        assert outcome.delivery is not None
        assert outcome.delivery.count == messages
        assert (outcome.receipt is None) == (outstanding is None)


def test_a_sink_may_end_as_soon_as_it_is_told_to() -> None:
    class Prompt(Sink):
        """Has ended before `stop` does anything else."""

        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            if value is True:
                with suppress(OSError):  # it has ended already
                    socket.create_connection(("127.0.0.1", self.port)).close()
                thread.join()

    sink = Prompt()
    thread = threading.Thread(target=sink.serve)
    thread.start()
    sink.stop()
    assert not thread.is_alive()


@pytest.mark.parametrize("cut", range(6))
def test_sink_counts_a_command_that_is_cut_in_two_once(cut: int) -> None:
    text = b"SEND\n"
    whole = text[:cut].count(text) + text[cut:].count(text)
    assert whole + count_across(text, cut, text) == 1


def _round(broker: str, cpu: float, confirmed_per_s: float) -> dict[str, Any]:
    row = {"cell": CELL_NAMES[2], "broker_cpu_s_per_million": cpu, "confirmed_per_s": confirmed_per_s}
    overall = {"start_fresh_s": 0.2, "start_again_s": 0.1, "memory_idle_mib": 80.0, "memory_loaded_mib": 90.0}
    return {"round": 0, "broker": broker, "cells": [row], "failures": [], **overall}


def test_report_compares_with_the_better_peer_and_says_what_falls_short() -> None:
    content = {
        "quick": False,
        "pinned": True,
        "machine": dict.fromkeys(("date", "processor", "cores", "memory_gib", "kernel", "filesystem", "python"), "?"),
        "conditions": {"body_size_bytes": 1, "prefetch": 1, "ack_every": 1, "in_flight_without_receipts": 1},
        "versions": {"delosmq-compiled": "1"},
        "settings": {"delosmq-compiled": "defaults"},
        "absent": {"delosmq-pure": "delosmq-pure: there is no interpreter."},
        "rounds": [
            _round("delosmq-compiled", 30.0, 20_000.0),
            _round("delosmq-compiled", 20.0, 22_000.0),
            _round("delosmq-compiled", 10.0, 60_000.0),
            _round("rabbitmq", 100.0, 11_000.0),
            _round("activemq", 200.0, 2_800.0),
        ],
    }
    text = "\n".join(render(Results(content)))
    assert f"| DelosMQ compiled | CPU, {CELL_NAMES[2]} | at most 0.2 x | 0.20 | met |" in text
    assert f"| DelosMQ compiled | confirmed rate, {CELL_NAMES[2]} | at least 3 x | 2.00 | **falls short** |" in text
    assert "| DelosMQ compiled | memory idle | at most 70 MiB | 80.0 | **falls short** |" in text
    assert "- absent: delosmq-pure: there is no interpreter." in text
    assert f"| {CELL_NAMES[2]} | 20.0 (0.20 x) | - | 100 | 200 |" in text


SMALL = argparse.Namespace(turns=2, largest=10, long=1_000)


def test_the_engine_alone_is_measured_in_all_its_parts() -> None:
    ranges = engine_worker.ranges(SMALL)
    assert sorted(ranges) == ["consumers", "equal selectors", "queues"]
    assert all(list(row) == ["1", "10"] for row in ranges.values())
    assert all(ns > 0 for row in ranges.values() for ns in row.values())
    for row in engine_worker.costs(SMALL).values():
        assert row["together"] > row["send"] > 0


def test_long_work_ends_and_is_measured_in_slices() -> None:
    for what, row in engine_worker.waits(SMALL).items():
        assert row["ticks"] > 1, what
        assert row["longest_ms"] >= row["median_ms"], what


def test_lines_run_for_a_message_do_not_grow() -> None:
    # None in the compiled form, which has no lines.
    assert engine.growth(engine_worker.steps(SMALL)) == []
    assert engine.growth({"queues": {"1": 100.0, "10": 110.0}}) != []


def test_the_best_of_several_rounds_counts_and_what_misses_its_aim_is_said() -> None:
    cost = dict.fromkeys(engine.STEPS, 950.0)
    wait = {"longest_ms": 12.0, "p99_ms": 1.0, "median_ms": 1.0, "command_ms": 0.1, "total_s": 1.0}
    one = {
        "costs": {"durable, records dropped": cost},
        "ranges": {"queues": {"1": 300.0, "10": 310.0}},
        "waits": {"purge, durable": wait},
    }
    best = engine.least(one, {**one, "waits": {"purge, durable": {**wait, "longest_ms": 8.0}}})
    content: dict[str, Any] = {
        "machine": {**dict.fromkeys(("date", "processor", "cores", "kernel", "python"), "?"), "load_before": 0.0},
        "rounds": 2,
        "forms": {"pure": {**one, "steps": {"queues": {"1": 200.0, "10": 200.0}}}, "compiled": best},
    }
    missed = engine.shortfalls(content)
    assert [line.split(":")[0] for line in missed] == [
        "a durable message with its records takes 950 ns compiled; the aim is 900",
        "purge, durable, pure",
    ]
    text = "\n".join(engine.render(content))
    assert "| purge, durable | compiled | 8.00 |" in text
    assert "| lines run (pure) | 200.0 | 200.0 |" in text


def test_a_port_for_a_broker_is_none_that_the_system_gives_to_connections() -> None:
    """Else a broker that stops and starts again may find its port taken by a connection that went out meanwhile."""
    outgoing = Path("/proc/sys/net/ipv4/ip_local_port_range")
    first, last = map(int, outgoing.read_text().split()) if outgoing.exists() else (32_768, 60_999)
    ports = [machine.free_port() for _ in range(100)]
    assert len(set(ports)) == len(ports)
    assert first <= 10_000 or not [port for port in ports if first <= port <= last]


def test_a_restart_is_measured(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    made = restart.Figures("pure", 10, 5, accounted=2.0, idle=60.0, sent=2.0, started=2.1, peak=2.4, **TIMES)
    monkeypatch.setattr(restart, "measure", lambda form, messages, body_bytes: made)
    assert restart.main(["--form", "pure"]) == 1
    printed = capsys.readouterr().out
    assert "| pure | 10 | 5 | 2 | 2 | 2 | 2 | 1.20 | 0.5 | 0.4 | 0.3 |" in printed
    assert "falls short: pure takes 1.20 times what is accounted; the aim is 1.1" in printed
    slow = dataclasses.replace(made, form="compiled", peak=2.0, started=2.0, start_cpu_s=8.1)
    assert restart.shortfalls([slow]) == ["compiled starts with 8.1 s of processor time; the aim is 8.0"]
    assert restart.shortfalls([dataclasses.replace(slow, form="pure")]) == []
