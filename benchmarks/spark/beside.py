"""What others at the broker notice of Spark's reads and writes: `python -m benchmarks.spark.beside`, without Spark.

    python -m benchmarks.spark.beside                                 # all three, compiled; ten minutes
    python -m benchmarks.spark.beside publish --rows 1,10000
    python -m benchmarks.spark.beside fetch --seconds 5 --form pure
    python -m benchmarks.spark.beside backlog --sizes 10000,100000

`publish`: rows are staged, published and enter their queue. `fetch`: 100,000 rows of leases are read, again and again.
Meanwhile a STOMP connection in a process of its own sends a message each 5 ms and gets it back: how long that takes is
what counts, over sockets, with all the broker does. `backlog`: processor time of the broker for a row that is leased,
read and acknowledged, with so many messages behind it, and for one that a batch read of all of them browses. The broker
has a core of its own; the others share another.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from benchmarks import machine
from benchmarks.brokers.base import BrokerUnavailable
from benchmarks.cells import Latency
from benchmarks.measure import fresh_directory
from benchmarks.restart import FORMS
from benchmarks.spark.broker import PASSWORD, USER, arrived, broker_command, connection_to, fill_queue
from benchmarks.spark.rows import SETS, body
from delosmq.spark.lease_client import Group, LeaseClient
from delosmq.spark.options import SourceDestination
from delosmq.spark.staging_client import PART_ROWS, SendDefaults, StagingClient
from delosmq.testing import BrokerProcess

AIM_PUBLISH_MS: Final = 10.0
"""The longest wait while rows are published."""
AIM_FETCH_MS: Final = 5.0
"""At p99.9 while rows are fetched."""
AIM_GROWTH: Final = 1.25
"""Of the time for a row, from the smallest backlog to the largest."""
FETCH_ROWS: Final = 100_000
LEASE_ROWS: Final = 1_000
DRAINED: Final = 10_000
"""Rows in leases before the backlog is filled up again."""
TURNS: Final = 5
QUIET_S: Final = 2.0
_PING: Final = "benchmarks.spark.ping"


@dataclass(frozen=True)
class Waits:
    """What a ping took while something was done, and before that; `work_s` is how long it lasted."""

    what: str
    work_s: float
    quiet: Latency
    meanwhile: Latency


class Pinger:
    """Another connection, in a process of its own, until `ended`."""

    def __init__(self, port: int) -> None:
        command = [sys.executable, "-m", _PING, str(port), USER, PASSWORD]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self._process.stdout.readline()  # it is connected

    def ended(self) -> list[tuple[float, float]]:
        """When each ping was due, by the monotonic clock, and how long it took, in seconds."""
        said, _ = self._process.communicate("end\n")
        return [(due, took) for due, took in json.loads(said)]


def between(pings: Sequence[tuple[float, float]], start: float, end: float) -> Latency:
    """Of pings that were under way at some moment from `start` to `end`."""
    return Latency.of([took for due, took in pings if due < end and due + took > start])


@contextmanager
def running(command: list[str]) -> Iterator[tuple[BrokerProcess, LeaseClient]]:
    """A new broker on one core, this process on another."""
    core, other = machine.cores()
    with ExitStack() as stack:
        directory = stack.enter_context(fresh_directory())
        broker = stack.enter_context(BrokerProcess(directory / "broker", password=PASSWORD, command=command))
        with machine.pinned(core):
            broker.start()
        stack.enter_context(machine.pinned(other))
        client = LeaseClient(connection_to(broker))
        stack.callback(client.close)
        yield broker, client


def publish(command: list[str], rows: int) -> Waits:
    """Rows of 1 KB are staged; what counts is from the publication until all are in the queue."""
    with running(command) as (broker, _):
        client = StagingClient(connection_to(broker), SendDefaults("bench.out", routing_type="ANYCAST"))
        parts = client.stage_rows("bench", 0, bodies(rows))
        pinger = Pinger(broker.stomp_port)
        quiet = time.monotonic()
        time.sleep(QUIET_S)
        start = time.monotonic()
        client.publish("bench", 0, parts)
        found = arrived(broker, "bench.out", rows)
        end = time.monotonic()
        pings = pinger.ended()
        client.close()
        if found != rows:
            raise RuntimeError(f"{found} of {rows} rows were published")
        return Waits(
            f"publishing, rows: {rows:,}", end - start, between(pings, quiet, start), between(pings, start, end)
        )


def bodies(rows: int) -> Iterator[pa.RecordBatch]:
    """As Spark hands rows to its sink."""
    for first in range(0, rows, PART_ROWS):
        content = [body(number) for number in range(first, min(rows, first + PART_ROWS))]
        yield pa.record_batch({"body": pa.array(content, pa.binary())})


def fetch(command: list[str], columns: str, seconds: float) -> Waits:
    """All rows of a lease are read, again and again. Not the first time: the broker loads pyarrow then, once."""
    with running(command) as (broker, client):
        fill_queue(broker, "bench.in", FETCH_ROWS)
        group = opened(client)
        lease = client.lease(group, 0, max_rows=FETCH_ROWS, max_bytes=group.limits.max_bytes, wait_ms=0)
        if lease.rows != FETCH_ROWS:
            raise RuntimeError(f"a lease has {lease.rows} rows, not {FETCH_ROWS}")
        sum(batch.num_rows for batch in client.rows(group.name, 1, 0, LEASE_ROWS, SETS[columns]))
        pinger = Pinger(broker.stomp_port)
        quiet = time.monotonic()
        time.sleep(QUIET_S)
        start = end = time.monotonic()
        rows = 0
        while end - start < seconds:
            rows += sum(batch.num_rows for batch in client.rows(group.name, 1, 0, FETCH_ROWS, SETS[columns]))
            end = time.monotonic()
        pings = pinger.ended()
        what = f"fetching {columns}, {rows / (end - start):,.0f} rows/s"
        return Waits(what, end - start, between(pings, quiet, start), between(pings, start, end))


def opened(client: LeaseClient) -> Group:
    return client.open_group("bench", SourceDestination("queue", "bench.in"), None, sleep=time.sleep)


def backlog(command: list[str], size: int) -> float:
    """Processor time of the broker for a row, in us, all columns."""
    with running(command) as (broker, client):
        fill_queue(broker, "bench.in", size)
        group = opened(client)
        number, spent_s = 0, 0.0
        for turn in range(TURNS + 1):
            before = machine.cpu_s([broker.pid])
            for _ in range(DRAINED // LEASE_ROWS):
                lease = client.lease(group, number, max_rows=LEASE_ROWS, max_bytes=group.limits.max_bytes, wait_ms=0)
                number = lease.number
                if (
                    sum(batch.num_rows for batch in client.rows(group.name, number, 0, lease.rows, SETS["all"]))
                    != LEASE_ROWS
                ):
                    raise RuntimeError(f"lease {number} has not {LEASE_ROWS} rows")
            client.ack(group, number)
            if turn:  # the first one warms up
                spent_s += machine.cpu_s([broker.pid]) - before
            fill_queue(broker, "bench.in", DRAINED)
        return spent_s / (TURNS * DRAINED) * 1e6


def browsed(command: list[str], size: int) -> float:
    """Processor time of the broker for a row of a batch read of the whole queue, in us, all columns."""
    with running(command) as (broker, client):
        fill_queue(broker, "bench.in", size)
        until = client.queue("bench.in").newest_sequence
        sum(batch.num_rows for batch in client.browse("bench.in", 0, LEASE_ROWS, SETS["all"]))  # the first one warms up
        before = machine.cpu_s([broker.pid])
        if sum(batch.num_rows for batch in client.browse("bench.in", 0, until, SETS["all"])) != size:
            raise RuntimeError(f"a batch read has not {size} rows")
        return (machine.cpu_s([broker.pid]) - before) / size * 1e6


def render_waits(rows: Sequence[Waits]) -> list[str]:
    lines = [
        "| meanwhile | lasts, s | pings | p50, ms | p99, ms | p99.9, ms | longest, ms | longest before it, ms |",
        "|---" * 8 + "|",
    ]
    for row in rows:
        seen = row.meanwhile
        lines.append(
            f"| {row.what} | {row.work_s:.2f} | {seen.count:,} | {seen.p50_ms:.2f} | {seen.p99_ms:.2f}"
            f" | {seen.p999_ms:.2f} | {seen.max_ms:.2f} | {row.quiet.max_ms:.2f} |"
        )
    return lines


def shortfalls(
    published: Sequence[Waits], fetched: Sequence[Waits], rows_us: dict[int, float], browsed_us: dict[int, float]
) -> list[str]:
    """Aims that were not met."""
    found = [
        f"{row.what}: a ping waits {row.meanwhile.max_ms:.1f} ms; the aim is {AIM_PUBLISH_MS:.0f}"
        for row in published
        if row.meanwhile.max_ms > AIM_PUBLISH_MS
    ]
    found += [
        f"{row.what}: one ping of a thousand waits {row.meanwhile.p999_ms:.1f} ms; the aim is {AIM_FETCH_MS:.0f}"
        for row in fetched
        if row.meanwhile.p999_ms > AIM_FETCH_MS
    ]
    for what, each_us in (("", rows_us), ("that is browsed ", browsed_us)):
        if each_us and each_us[max(each_us)] > AIM_GROWTH * each_us[min(each_us)]:
            found.append(
                f"a row {what}takes {each_us[max(each_us)]:.1f} us with {max(each_us):,} messages behind it,"
                f" {each_us[min(each_us)]:.1f} with {min(each_us):,}"
            )
    return found


def _numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def main(argv: list[str] | None = None) -> int:
    """Measure and print the tables. 1 when an aim was not met."""
    parts = ("publish", "fetch", "backlog")
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark.beside", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*parts, []], help="all three without one")
    parser.add_argument("--rows", type=_numbers, default=[1, 10_000, 1_000_000], help="published")
    parser.add_argument("--seconds", type=float, default=20.0, help="of fetching, for each set of columns")
    parser.add_argument("--sizes", type=_numbers, default=[10_000, 100_000, 1_000_000], help="of the backlog")
    parser.add_argument("--form", choices=sorted(FORMS), help="of the broker; compiled if it is there")
    parser.add_argument("--json", type=Path, help="write the figures here")
    arguments = parser.parse_args(argv)
    wanted = arguments.parts or parts
    try:
        form, command = broker_command(arguments.form)
    except BrokerUnavailable as reason:
        print(reason, file=sys.stderr)
        return 2
    published = [publish(command, rows) for rows in arguments.rows] if "publish" in wanted else []
    fetched = [fetch(command, name, arguments.seconds) for name in SETS] if "fetch" in wanted else []
    rows_us = {size: backlog(command, size) for size in arguments.sizes} if "backlog" in wanted else {}
    browsed_us = {size: browsed(command, size) for size in arguments.sizes} if "backlog" in wanted else {}
    about = machine.describe(Path(tempfile.gettempdir()))
    print(f"DelosMQ {form}, {about['processor']}, {about['cores']} cores, load at the end {about['load_before']:.1f}\n")
    if published or fetched:
        print("\n".join(render_waits([*published, *fetched])))
    for size, us in rows_us.items():
        print(f"backlog of {size:,}: {us:.1f} us of the broker for a row, {browsed_us[size]:.1f} browsed")
    if arguments.json is not None:
        rows = [asdict(row) for row in (*published, *fetched)]
        arguments.json.write_text(
            json.dumps(
                {"machine": about, "form": form, "waits": rows, "rows_us": rows_us, "browsed_us": browsed_us}, indent=1
            )
        )
    short = shortfalls(published, fetched, rows_us, browsed_us)
    for line in short:
        print(f"falls short: {line}")
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
