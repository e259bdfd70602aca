"""What all ready pipelines share: a Spark session, progress, the closing table, stopping, failures in one sentence."""

import json
import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from delosmq.model.errors import BrokerError
from delosmq.spark.errors import OptionError, PipelineError, SparkMissingError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AVAILABLE_NOW: Final = "available-now"
CONTINUOUS: Final = "continuous"
DONE: Final = 0
FAILED: Final = 1
MISUSED: Final = 2
"""Exit codes of the commands: the last is for an option's value, whatever the broker says."""
LOOK_EVERY_S: Final = 0.5
STOP_WITHIN_S: Final = 30.0
"""How long a stop waits for the batch being written; the next run repeats it otherwise."""
SENTENCE: Final = re.compile(r"(DMQ\d{4}: [^\n]+)")
CAUSE: Final = re.compile(r"^(?:Caused by: |: )?((?:[\w$]+\.)+\w*(?:Error|Exception): [^\n]+)", re.MULTILINE)
"""As Java and py4j write what was raised, and Python that of a package, at the begin of a line."""
PROXY: Final = "Python Proxy"
"""What was raised within foreachBatch comes back from Java as an error of py4j's proxy."""

Say = Callable[[str], None]
"""Gets a line of progress, for people."""


@dataclass(slots=True)
class QueryReport:
    """What a run did: batches committed and messages in them, as Spark counted them; and what waits at its sources."""

    batches: int = 0
    rows: int = 0
    backlog: int = 0


def exit_code(failure: BrokerError) -> int:
    """What a command that failed ends with."""
    return MISUSED if isinstance(failure, OptionError) else FAILED


def check_trigger(trigger: str) -> None:
    """Check that a run until the present content is done, or for ever, is asked for.

    Raises:
        OptionError: neither is.
    """
    if trigger not in (AVAILABLE_NOW, CONTINUOUS):
        raise OptionError("DMQ8050", f"trigger {trigger!r} is unknown: use {AVAILABLE_NOW} or {CONTINUOUS}")


def open_session(name: str, master: str) -> "SparkSession":
    """A session of Spark.

    Raises:
        JavaMissingError: there is no Java that Spark can run on.
        SparkMissingError: it did not start, in one sentence.
    """
    from delosmq.spark.session import start_session

    try:
        return start_session(name, master=master)
    except BrokerError:
        raise
    except Exception as failure:  # pyspark and py4j raise many unrelated types; all mean the same here
        why = str(failure).strip().partition("\n")[0] or type(failure).__name__
        raise SparkMissingError(
            "DMQ8061", f"Spark did not start at {master} ({why}): `delosmq spark doctor` looks for what it lacks"
        ) from failure


def stop_on_signals() -> threading.Event:
    """Set by SIGTERM and SIGINT. Call it after the session is there: pyspark puts a handler of its own in place."""
    stop = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    return stop


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Turn what Spark raises into one sentence about `what`, such as "the archive of queue:orders to archive/".

    Raises:
        PipelineError: Spark raised something; what was done stays, the next run goes on.
    """
    from py4j.protocol import Py4JJavaError, Py4JNetworkError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JNetworkError, ConnectionError) as gone:
        raise PipelineError(
            "DMQ8055",
            f"Spark's Java process ended during {what}: look for what ended it (memory?) and start again, it goes on "
            "where it was",
        ) from gone
    except (PySparkException, Py4JJavaError) as failure:
        raise PipelineError("DMQ8053", f"{what} stopped: {explain_failure(str(failure))}") from failure


def explain_failure(text: str) -> str:
    """Our own sentence out of Spark's long stack of causes, or the deepest cause, or the first line."""
    found = SENTENCE.findall(text) or [cause for cause in CAUSE.findall(text) if PROXY not in cause]
    return str(found[-1]) if found else text.strip().partition("\n")[0]


def closing_table(rows: Mapping[str, object]) -> list[str]:
    """Lines with what a run did: names on the left, numbers with commas."""
    width = max(len(name) for name in rows)
    return [f"{name:<{width}}  {f'{value:,}' if type(value) is int else value}" for name, value in rows.items()]


def follow(query: Any, stop: threading.Event, say: Say) -> QueryReport:
    """Wait for the end of a streaming query, or until `stop` is set; a line for each of its batches."""
    return follow_all({"the queue": query}, stop, say)


def follow_all(queries: Mapping[str, Any], stop: threading.Event, say: Say) -> QueryReport:
    """`follow` of several queries at once, by the name of what each reads; the report is of all together.

    What ends one of them with an error is raised; the others go on, until their caller stops them.
    """
    report = QueryReport()
    followed = [_Followed(name, query) for name, query in queries.items()]
    while not stop.is_set() and not _have_ended(followed):
        for one in followed:
            one.count_progress(report, say)
    if stop.is_set():
        for one in followed:
            _stop_between_batches(one.query)
    for one in followed:
        one.count_progress(report, say)
    return report


def _have_ended(followed: "Sequence[_Followed]") -> bool:
    """Wait a moment for each; one that failed raises, although others go on."""
    ended = [bool(one.query.awaitTermination(LOOK_EVERY_S / len(followed))) for one in followed]
    return all(ended)


class _Followed:
    """How far the progress of a query was told."""

    def __init__(self, name: str, query: Any) -> None:
        self.name, self.query = name, query
        self._last_batch = -1
        self._backlog = 0

    def count_progress(self, report: QueryReport, say: Say) -> None:
        for progress in self.query.recentProgress:
            rows, number = progress["numInputRows"], progress["batchId"]
            if not rows or number <= self._last_batch:
                continue
            self._last_batch = number
            waiting = _backlog(progress)
            report.batches += 1
            report.rows += rows
            report.backlog += waiting - self._backlog
            self._backlog = waiting
            say(f"batch {number}: {rows} messages, {report.rows} in this run, {waiting} waiting in {self.name}")


def _backlog(progress: Any) -> int:
    latest = progress["sources"][0]["latestOffset"]
    if isinstance(latest, str):
        latest = json.loads(latest)
    return int(latest.get("ready", 0)) if latest else 0


def _stop_between_batches(query: Any) -> None:
    """Stop when no batch is being written, so that the next run has nothing to repeat; not at any price."""
    deadline = monotonic() + STOP_WITHIN_S
    at_signal = query.lastProgress["batchId"] if query.lastProgress else -1
    while query.isActive and monotonic() < deadline:
        latest = query.lastProgress["batchId"] if query.lastProgress else -1
        if not query.status["isDataAvailable"] or latest > at_signal:
            break
        query.awaitTermination(0.1)
    query.stop()
