"""Spark reads and writes DelosMQ beside Kafka, files and memory: `python -m benchmarks spark`.

    python -m benchmarks spark --rounds 5
    python -m benchmarks spark --rounds 1 --rows 10000 --batch 2500 --columns body --only read
    python -m benchmarks spark --show results.json

Each way has a session of Spark of its own for its figures, with two queries one after the other: the first has all that
a query pays once, the second shows the steady state. Rounds take the ways in turn; medians are shown. Exits with 1 when
DelosMQ is slower than Kafka in the first query.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks import machine
from benchmarks.brokers.base import CACHE, CHECKOUT, BrokerUnavailable, RunningBroker
from benchmarks.brokers.kafka import VERSION as KAFKA_VERSION
from benchmarks.brokers.kafka import Kafka, await_listening
from benchmarks.compare import RESULTS
from benchmarks.measure import fresh_directory
from benchmarks.restart import FORMS
from benchmarks.spark.broker import PASSWORD, arrived, broker_command, fill_queue, login_to
from benchmarks.spark.rows import SETS, count_parquet, write_arrow, write_parquet
from delosmq.spark.pipeline import explain_failure
from delosmq.testing import BrokerProcess
from interop.maven import SPARK_KAFKA, fetched
from interop.missing import Missing

DELOSMQ, KAFKA, PARQUET, MEMORY = "delosmq", "kafka", "parquet", "memory"
SOURCES: Final = (DELOSMQ, KAFKA, PARQUET, MEMORY)
SINKS: Final = (DELOSMQ, KAFKA)
READ, WRITE = "read", "write"
TITLES: Final = {
    (READ, DELOSMQ): "DelosMQ",
    (READ, KAFKA): "Kafka",
    (READ, PARQUET): "Parquet files (ceiling)",
    (READ, MEMORY): "a Python source, from memory",
    (WRITE, DELOSMQ): "DelosMQ",
    (WRITE, KAFKA): "Kafka",
}
NEAREST: Final = "4.2.0"
"""The newest connector that Maven Central was seen to have."""
QUERIES: Final = 2
CPU: Final = ("broker", "python", "jvm", "driver")
_TIMEOUT_S: Final = 1_800.0
_SAID: Final = 20_000
"""Of what a session that failed wrote, its last characters."""


@dataclass(frozen=True)
class Case:
    """A way and what goes along it: `task` is `READ` or `WRITE`, `columns` a name of `SETS`."""

    task: str
    columns: str
    way: str

    def __str__(self) -> str:
        return f"{self.task} {self.columns}, {self.way}"


@dataclass
class Peer:
    """Kafka while it runs, and what Spark needs to read it."""

    server: str
    pid: int
    jars: list[str]


@dataclass
class Bench:
    """Where and how much is measured; `kafka` is None where it can't be had."""

    directory: Path
    rows: int
    batch: int
    partitions: int
    command: list[str]
    kafka: Peer | None = None
    topics: Iterator[int] = field(default_factory=lambda: iter(range(1_000_000)))

    def prepare(self, columns: list[str]) -> None:
        """Files for those who read files or memory."""
        share = self.batch // self.partitions
        for name in {*columns, "body"}:
            write_parquet(self._parquet(name), SETS[name], self.rows, share)
            write_arrow(self._arrow(name), SETS[name], share)

    def _parquet(self, columns: str) -> Path:
        return self.directory / f"parquet-{columns}"

    def _arrow(self, columns: str) -> Path:
        return self.directory / f"{columns}.arrow"

    def fill_kafka(self) -> None:
        """Messages for all who read."""
        assert self.kafka is not None
        options = {"kafka.bootstrap.servers": self.kafka.server, "topic": "rows"}
        self._run(Case(WRITE, "all", "fill kafka"), self.directory, [options], self.kafka.pid)

    def measure(self, case: Case) -> dict[str, Any]:
        """
        Raises:
            RuntimeError: Spark failed, or rows were lost or doubled.
        """
        place = Path(tempfile.mkdtemp(dir=self.directory))
        found = (self._delosmq if case.way == DELOSMQ else self._other)(case, place)
        written = found.pop("written", None)
        if case.task == READ:
            written = [count_parquet(place / str(number) / "rows") for number in range(QUERIES)]
        if written != [self.rows] * QUERIES:
            raise RuntimeError(f"{case}: {written} rows arrived, not {self.rows}")
        return found

    def _delosmq(self, case: Case, place: Path) -> dict[str, Any]:
        queues = [f"bench.{number}" for number in range(QUERIES)]
        with BrokerProcess(place / "broker", password=PASSWORD, command=self.command) as broker:
            broker.start()
            login = login_to(broker)
            if case.task == WRITE:
                found = self._run(case, place, [{**login, "queue": queue} for queue in queues], broker.pid)
                found["written"] = [arrived(broker, queue, self.rows) for queue in queues]
                return found
            for queue in queues:
                fill_queue(broker, queue, self.rows)
            columns = {"columns": "body"} if case.columns == "body" else {"includeHeaders": "true"}
            options = [{**login, **columns, "subscribe": queue, "group.id": queue} for queue in queues]
            return self._run(case, place, options, broker.pid)

    def _other(self, case: Case, place: Path) -> dict[str, Any]:
        if case.way == MEMORY:
            sizes = {"rows": self.rows, "batch": self.batch, "partitions": self.partitions}
            rows = {"path": str(self._arrow(case.columns)), "columns": case.columns, **sizes}
            return self._run(case, place, [rows] * QUERIES, 0)
        if case.way == PARQUET:
            return self._run(case, place, [{}] * QUERIES, 0)
        assert self.kafka is not None
        server = {"kafka.bootstrap.servers": self.kafka.server}
        if case.task == WRITE:
            options = [{**server, "topic": f"written-{next(self.topics)}"} for _ in range(QUERIES)]
            return self._run(case, place, options, self.kafka.pid)
        read = {**server, "subscribe": "rows", "startingOffsets": "earliest"}
        if case.columns == "all":
            read["includeHeaders"] = "true"
        return self._run(case, place, [read] * QUERIES, self.kafka.pid)

    def _run(self, case: Case, place: Path, options: list[Any], broker_pid: int) -> dict[str, Any]:
        job = {
            "way": case.way,
            "sink": case.task == WRITE,
            "columns": case.columns,
            "rows": self.rows,
            "batch": self.batch,
            "partitions": self.partitions,
            "directory": str(place),
            "parquet": str(self._parquet(case.columns)),
            "options": options,
            "jars": self.kafka.jars if self.kafka is not None and case.way.endswith(KAFKA) else [],
            "broker_pid": broker_pid,
        }
        path = os.pathsep.join(filter(None, (str(CHECKOUT), os.environ.get("PYTHONPATH"))))
        try:
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.spark.worker"],
                input=json.dumps(job),
                env={**os.environ, "PYTHONPATH": path},
                cwd=place,
                capture_output=True,
                text=True,
                check=False,
                timeout=_TIMEOUT_S,
            )
        except subprocess.TimeoutExpired as error:
            raise RuntimeError(f"{case}: Spark takes longer than {_TIMEOUT_S:.0f} s") from error
        if done.returncode:
            raise RuntimeError(f"{case}: Spark failed: {explain_failure(done.stderr[-_SAID:])}")
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found


def spark_version() -> str:
    """Of the installed one. Raises BrokerUnavailable: there is none."""
    try:
        return metadata.version("pyspark")
    except metadata.PackageNotFoundError as error:
        raise BrokerUnavailable("Spark is not installed here: make it with tools/bootstrap.py venv") from error


def connector() -> tuple[list[str], str]:
    """Spark's connector to Kafka, and its version: that of Spark, or else the nearest.

    Raises:
        Missing: neither can be had.
    """
    try:
        version = spark_version()
        folder = fetched(version, CACHE, SPARK_KAFKA)
    except Missing as error:
        print(f"the connector of {NEAREST} instead: {error}", file=sys.stderr, flush=True)
        version = NEAREST
        folder = fetched(version, CACHE, SPARK_KAFKA)
    return [str(jar) for jar in sorted(folder.glob("*.jar"))], version


def order(cases: list[Case], number: int) -> list[Case]:
    """Of a round: each begins with another way."""
    turn = number % max(len(cases), 1)
    return [*cases[turn:], *cases[:turn]]


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """All rounds. Raises BrokerUnavailable: DelosMQ or Spark can't be had."""
    form, command = broker_command(arguments.form)
    cases = [Case(READ, columns, way) for columns in arguments.columns for way in SOURCES]
    cases += [Case(WRITE, "body", way) for way in SINKS]
    cases = [case for case in cases if case.way in arguments.ways and case.task in arguments.only]
    absent: dict[str, str] = {}
    versions = {DELOSMQ: form, "spark": spark_version()}
    rounds: list[dict[str, Any]] = []
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(fresh_directory())
        bench = Bench(directory, arguments.rows, arguments.batch, arguments.partitions, command)
        bench.prepare(arguments.columns)
        if any(case.way == KAFKA for case in cases):
            try:
                bench.kafka, versions["connector"] = start_kafka(stack, directory, arguments.partitions)
                versions[KAFKA] = KAFKA_VERSION
                bench.fill_kafka()
            except (BrokerUnavailable, Missing, RuntimeError) as error:
                absent[KAFKA] = str(error)
                print(f"without Kafka: {error}", file=sys.stderr, flush=True)
                cases = [case for case in cases if case.way != KAFKA]
        about = machine.describe(directory)
        for number in range(arguments.rounds):
            for case in order(cases, number):
                say(f"round {number + 1} of {arguments.rounds}: {case}")
                try:
                    found = bench.measure(case)
                except RuntimeError as error:
                    absent[str(case)] = str(error)
                    say(f"left out: {error}")
                    continue
                rounds.append({"round": number, "task": case.task, "columns": case.columns, "way": case.way, **found})
                say(", ".join(f"{query['rows_per_s']:,.0f} rows/s" for query in found["queries"]))
    sizes = {name: getattr(arguments, name) for name in ("rows", "batch", "partitions")}
    return {"machine": about, **sizes, "versions": versions, "absent": absent, "rounds": rounds}


def start_kafka(stack: contextlib.ExitStack, directory: Path, partitions: int) -> tuple[Peer, str]:
    """Runs until the stack ends; with the version of the connector. Raises BrokerUnavailable and Missing."""
    say("Kafka and Spark's connector, from Maven Central if they are not here yet")
    driver = Kafka(partitions)
    driver.version()
    jars, version = connector()
    place, port = directory / KAFKA, machine.free_port()
    place.mkdir()
    driver.prepare(place, port)
    broker = stack.enter_context(RunningBroker(driver, place, port, None))
    await_listening(broker)
    return Peer(f"127.0.0.1:{port}", broker.roots[0], jars), version


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class Figures:
    """Medians over the rounds of a results file."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content
        self.cases = list(
            dict.fromkeys(
                Case(task, columns, way)
                for task in (READ, WRITE)
                for columns in SETS
                for way in SOURCES
                if self._rows(Case(task, columns, way))
            )
        )

    def _rows(self, case: Case) -> list[dict[str, Any]]:
        wanted = (case.task, case.columns, case.way)
        return [row for row in self.content["rounds"] if (row["task"], row["columns"], row["way"]) == wanted]

    def of(self, case: Case, query: int, pick: Callable[[dict[str, Any]], float | None]) -> float | None:
        """One figure of a query, or None if there is none."""
        found = [value for row in self._rows(case) if (value := pick(row["queries"][query])) is not None]
        return median(found) if found else None

    def session_s(self) -> float:
        """Of all ways: until Spark takes queries."""
        return float(median(row["session_s"] for row in self.content["rounds"]))

    def rate(self, case: Case, query: int) -> float | None:
        """Rows per second."""
        return self.of(case, query, lambda found: found["rows_per_s"])


def render(content: dict[str, Any]) -> list[str]:
    """The tables, in Markdown."""
    figures = Figures(content)
    about, versions = content["machine"], content["versions"]
    count = 1 + max((row["round"] for row in content["rounds"]), default=-1)
    lines = [
        f"Measured {about['date']} on {about['processor']}, {about['cores']} cores, Linux {about['kernel']}, load"
        f" {about['load_before']:.1f} before: {content['rows']:,} messages, {content['batch']:,} a batch, local"
        f"[{content['partitions']}]; medians of {count} rounds. Spark {versions['spark']}, DelosMQ"
        f" {versions[DELOSMQ]}{_peer(versions)}.",
        *(f"- absent: {name}: {reason}" for name, reason in content["absent"].items()),
    ]
    if not figures.cases:
        return lines
    lines.append(f"A session took {figures.session_s():.1f} s to start, which counts nowhere.")
    for task, what in ((READ, "from, to Parquet files"), (WRITE, "from Parquet files, to")):
        if any(case.task == task for case in figures.cases):
            lines += ["", *_rates(figures, task, what), "", *_processor_time(figures, task, what)]
    return lines


def _peer(versions: dict[str, str]) -> str:
    if KAFKA not in versions:
        return ""
    connector_version = versions["connector"]
    remark = "" if connector_version == versions["spark"] else f", the nearest to be had to {versions['spark']}"
    return f", Kafka {versions[KAFKA]} with Spark's connector of {connector_version}{remark}"


def _rates(figures: Figures, task: str, what: str) -> list[str]:
    lines = [
        f"| columns | {what} | first batch after, s | first query, rows/s | second query, rows/s"
        " | its batches after the first, rows/s |",
        "|---" * 6 + "|",
    ]
    for case in figures.cases:
        if case.task == task:
            first = figures.of(case, 0, lambda query: query["first_batch_s"])
            rates = [_beside(figures, case, query, lambda query: query["rows_per_s"]) for query in range(QUERIES)]
            steady = _beside(figures, case, 1, lambda query: query["steady_per_s"])
            title = TITLES[task, case.way]
            lines.append(f"| {case.columns} | {title} | {first:.2f} | {' | '.join(rates)} | {steady} |")
    return lines


def _beside(figures: Figures, case: Case, query: int, pick: Callable[[dict[str, Any]], float | None]) -> str:
    """A rate, and how many times Kafka's it is."""
    rate = figures.of(case, query, pick)
    other = figures.of(Case(case.task, case.columns, KAFKA), query, pick)
    if rate is None:
        return "-"
    return f"{rate:,.0f}" + (f" ({rate / other:.2f} x)" if other and case.way != KAFKA else "")


def _processor_time(figures: Figures, task: str, what: str) -> list[str]:
    lines = [
        f"| columns | {what} | query | broker | Python of Spark | JVM of Spark | driver's program | all, CPU s per"
        " million rows |",
        "|---" * 8 + "|",
    ]
    for case in figures.cases:
        for query in range(QUERIES):
            if case.task == task:
                picks = [*(partial(_spent, name) for name in CPU), partial(_spent, "")]
                shown = " | ".join(f"{figures.of(case, query, pick):.1f}" for pick in picks)
                title = TITLES[task, case.way]
                lines.append(f"| {case.columns} | {title} | {('first', 'second')[query]} | {shown} |")
    return lines


def _spent(name: str, query: dict[str, Any]) -> float:
    """By one of `CPU`, or by all without a name."""
    spent: dict[str, float] = query["cpu_s_per_million"]
    return spent[name] if name else sum(spent.values())


def shortfalls(content: dict[str, Any]) -> list[str]:
    """Where DelosMQ is slower than Kafka, first query included."""
    figures = Figures(content)
    found = []
    for case in figures.cases:
        rate, other = figures.rate(case, 0), figures.rate(Case(case.task, case.columns, KAFKA), 0)
        if case.way == DELOSMQ and rate is not None and other is not None and rate < other:
            found.append(f"{case}: {rate:,.0f} rows/s in the first query, {rate / other:.2f} times what Kafka has")
    return found


def main(argv: list[str] | None = None) -> int:
    """Measure, keep the figures and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks spark", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--batch", type=int, default=50_000)
    parser.add_argument("--partitions", type=int, default=2, help="and as many cores for Spark")
    parser.add_argument("--ways", type=_words(SOURCES), default=list(SOURCES), help="default all: " + ",".join(SOURCES))
    parser.add_argument("--columns", type=_words(tuple(SETS)), default=list(SETS), help="body,all by default")
    parser.add_argument("--only", type=_words((READ, WRITE)), default=[READ, WRITE], help="read or write; both")
    parser.add_argument("--form", choices=sorted(FORMS), help="of DelosMQ's broker; compiled if it is there")
    parser.add_argument("--output", type=Path, help="results file (default benchmarks/results/spark-DATE.json)")
    parser.add_argument("--show", type=Path, help="print the tables of an earlier results file")
    arguments = parser.parse_args(argv)
    if arguments.rows % arguments.batch or arguments.batch % arguments.partitions:
        parser.error("--rows must be a multiple of --batch, and that one of --partitions")
    if arguments.show is not None:
        content = json.loads(arguments.show.read_text())
    else:
        try:
            content = run(arguments)
        except BrokerUnavailable as reason:
            print(reason, file=sys.stderr)
            return 2
        path = arguments.output or RESULTS / f"spark-{datetime.now(UTC).date().isoformat()}.json"
        path.write_text(json.dumps(content, indent=1) + "\n")
    print("\n".join(render(content)))
    short = shortfalls(content)
    for line in short:
        print(f"falls short: {line}")
    return 1 if short else 0


def _words(known: tuple[str, ...]) -> Callable[[str], list[str]]:
    def parse(text: str) -> list[str]:
        found = text.split(",")
        if wrong := [word for word in found if word not in known]:
            raise argparse.ArgumentTypeError(f"{wrong[0]!r} is none of {', '.join(known)}")
        return found

    return parse


if __name__ == "__main__":
    sys.exit(main())
