"""The ready pipeline `redrive`: dead letters go back to where they came from, each once, whatever is killed meanwhile.

How. The letters that the filter takes are leased; lease k of the group is batch k of a staging application that is
named after the life of the group. A batch is staged, published, written into the record, and then its lease is
acknowledged. A run that was killed is taken up by the next one with the same filter: it gets the same lease again, and
the broker answers "already" when its batch was published. No Spark is needed for that.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from time import sleep
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from delosmq.model.errors import BrokerError
from delosmq.spark.dead_letters.destinations import LetterDestinations
from delosmq.spark.dead_letters.letters import ORIGINAL_ADDRESS, ORIGINAL_QUEUE, browse_queue
from delosmq.spark.dead_letters.record import JSON_LINES, RECORD_FORMATS, RedriveRecord
from delosmq.spark.dead_letters.returned import COLUMNS, as_returned
from delosmq.spark.errors import FencedError, LeaseLostError, OptionError, PipelineError
from delosmq.spark.lease_client import Group, LeaseClient, LeaseSummary
from delosmq.spark.lease_requests import GroupWishes
from delosmq.spark.options import SourceOptions, check_streaming, parse_options
from delosmq.spark.pipeline import Say
from delosmq.spark.positions import parse_time
from delosmq.spark.staging_client import SendDefaults, StagingClient, WriteAttempt

if TYPE_CHECKING:
    import pyarrow as pa

MAX_BYTES: Final = 16 * 1024 * 1024
"""Of one batch, which passes through this process."""
PLAN_COLUMNS: Final = ("sequence", "message_id", "properties", "body_kind")
STAGED, PUBLISHED, RECORDED, ACKNOWLEDGED = "staged", "published", "recorded", "acknowledged"

Step = Callable[[str, int], None]
"""Is told what has just been done, and of which batch."""


@dataclass(frozen=True)
class RedriveRun:
    """What goes back, and where to.

    Attributes:
        selector: which letters; the broker applies it.
        origins: original addresses or queues; empty for all.
        since, before: when letters were sent, as date and time with a zone; "" for any time.
        to: an address or ``address::queue`` for all; "" for where each came from.
        rate: messages per second at most, 0 for as fast as it goes.
        time_to_live_ms: of the messages that go back; 0 for ever.
        record: directory for the record; "" for none. record_format: jsonl or parquet.
    """

    queue: str
    connection: Mapping[str, str] = field(repr=False)
    selector: str = ""
    origins: tuple[str, ...] = ()
    since: str = ""
    before: str = ""
    to: str = ""
    rate: float = 0
    time_to_live_ms: int = 0
    record: str = ""
    record_format: str = JSON_LINES
    max_rows: int = 5_000

    @property
    def full_selector(self) -> str:
        """All of the filter, for the broker."""
        parts = [f"({self.selector.strip()})"] if self.selector.strip() else []
        if self.origins:
            names = ", ".join("'{}'".format(name.replace("'", "''")) for name in self.origins)
            parts.append(f"({ORIGINAL_ADDRESS} IN ({names}) OR {ORIGINAL_QUEUE} IN ({names}))")
        elif not self.to:
            parts.append(f"{ORIGINAL_ADDRESS} IS NOT NULL")
        if self.since:
            parts.append(f"JMSTimestamp >= {parse_time('since', self.since)}")
        if self.before:
            parts.append(f"JMSTimestamp < {parse_time('before', self.before)}")
        return " AND ".join(parts)

    @property
    def group(self) -> str:
        """The name of the lease group: the same for the same filter and target, so that the next run goes on."""
        key = sha256("\0".join((self.queue, self.full_selector, self.to)).encode()).hexdigest()[:12]
        return f"redrive/{self.queue[:60]}/{key}"

    @property
    def batch_rows(self) -> int:
        """Messages of a batch, which is sent at once: with a cap those of a second at most."""
        return min(self.max_rows, max(1, int(self.rate))) if self.rate else self.max_rows

    def options(self) -> SourceOptions:
        """Those of the data source, checked.

        Raises:
            OptionError: one has a value that it can't have.
        """
        if not 0 <= self.rate <= 1e9:
            raise OptionError("DMQ8234", f"the rate is {self.rate} but should be messages per second, 0 for no cap")
        if self.record_format not in RECORD_FORMATS:
            raise OptionError(
                "DMQ8234", f"the record's format is {self.record_format!r}: choose {' or '.join(RECORD_FORMATS)}"
            )
        subscribe = "queue:" + self.queue.replace(",", "\\,")
        options = parse_options({**self.connection, "subscribe": subscribe, "group.id": self.group})
        check_streaming(options)
        return options


@dataclass(slots=True)
class RedrivePlan:
    """What a run would do. Attributes: counts: messages by where they would go. until: the newest sequence in it."""

    counts: dict[str, int]
    until: int

    @property
    def messages(self) -> int:
        return sum(self.counts.values())


@dataclass(slots=True)
class RedriveReport:
    """What a run did. ``counts``: messages by where they went; ``repeated``: batches that an earlier run had sent."""

    messages: int = 0
    batches: int = 0
    repeated: int = 0
    counts: dict[str, int] = field(default_factory=dict)


def plan_redrive(run: RedriveRun) -> RedrivePlan:
    """Look through the letters that the filter takes, and at where they would go; changes nothing.

    Raises:
        BrokerError: what is wrong, in one sentence: an option, the login, a letter that can't go back.
    """
    options = run.options()
    client = LeaseClient(options.connection)
    try:
        destinations = LetterDestinations(client.transport, run.to)
        plan = RedrivePlan({}, client.queue(run.queue).newest_sequence)
        for batch in browse_queue(client, run.queue, PLAN_COLUMNS, run.full_selector):
            columns = [batch.column(batch.schema.get_field_index(name)).to_pylist() for name in PLAN_COLUMNS]
            for sequence, message_id, pairs, kind in zip(*columns, strict=True):
                plan.until = max(plan.until, sequence)
                if kind == "object":
                    raise PipelineError(
                        "DMQ8235",
                        f"message {message_id} in {run.queue} is a serialized object, which only a client of its own"
                        " protocol can send: leave it out with a selector, or move it with a JMS client",
                    )
                target = destinations.of(dict(pairs), message_id)
                plan.counts[target] = plan.counts.get(target, 0) + 1
        return plan
    finally:
        client.close()


def redrive(
    run: RedriveRun,
    *,
    stop: threading.Event | None = None,
    on_progress: Say | None = None,
    on_step: Step | None = None,
) -> RedriveReport:
    """Send back what the filter takes and is there now; go on with what a killed run left.

    Args:
        stop: ends the run between two batches.

    Raises:
        BrokerError: what is wrong, in one sentence. What was sent stays, the next run goes on.
    """
    plan = plan_redrive(run)
    work = _Redrive(run, plan, stop or threading.Event(), on_progress or (lambda line: None), on_step)
    try:
        return work.run()
    finally:
        work.close()


class _Redrive:
    """One run."""

    def __init__(
        self, run: RedriveRun, plan: RedrivePlan, stop: threading.Event, say: Say, on_step: Step | None
    ) -> None:
        self._run = run
        self._plan = plan
        self._stop = stop
        self._say = say
        self._on_step = on_step or (lambda step, number: None)
        connection = run.options().connection
        self._leases = LeaseClient(connection)
        self._destinations = LetterDestinations(self._leases.transport, run.to)
        name = str(uuid4())
        # Durability is told with the call, not with the row.
        self._staging = {
            durable: StagingClient(
                connection,
                SendDefaults(durable=durable, time_to_live_ms=run.time_to_live_ms),
                WriteAttempt(name),
            )
            for durable in (True, False)
        }
        self._record = RedriveRecord(run.record, run.record_format) if run.record else None
        self._report = RedriveReport()

    def close(self) -> None:
        self._leases.close()
        for client in self._staging.values():
            client.close()

    def run(self) -> RedriveReport:
        known = self._incarnation()
        if known is None and not self._plan.messages:
            return self._report
        wishes = GroupWishes(selector=self._run.full_selector)
        options = self._run.options()
        group = self._leases.open_group(self._run.group, options.destination, known, sleep=sleep, wishes=wishes)
        done = group.acked
        while not self._stop.is_set():
            lease = self._leases.lease(
                group, done, max_rows=self._run.batch_rows, max_bytes=MAX_BYTES, wait_ms=0, until=self._plan.until
            )
            if lease.number == done or not lease.rows:
                break
            self._send(group, lease)
            done = lease.number
            if self._run.rate:
                self._stop.wait(lease.rows / self._run.rate)
        # All that was leased is acknowledged: the next run begins anew, unless it has the group already.
        try:
            self._leases.release(group)
        except FencedError:
            return self._report
        except LeaseLostError:
            pass  # ended by this call, when its first answer was lost
        self._staging[True].forget(_application(group))
        return self._report

    def _incarnation(self) -> str | None:
        """Of the group that a killed run left."""
        try:
            return self._leases.stat(self._run.group).incarnation
        except LeaseLostError:
            return None

    def _send(self, group: Group, lease: LeaseSummary) -> None:
        parts: list[str] = []
        try:
            rows, went = self._rows(group, lease)
            for durable, client in self._staging.items():
                if rows[durable]:
                    parts += client.stage_rows(_application(group), lease.number, _batches(rows[durable]))
        except FencedError:
            raise
        except BrokerError as refused:
            with suppress(BrokerError):
                self._staging[True].discard(_application(group), lease.number, parts)
            raise PipelineError(
                "DMQ8236",
                f"batch {lease.number} of {self._run.queue} was not sent: {refused.message}. Its {lease.rows} messages"
                f" stay leased: put that right and start again, or give them back with `delosmq lease release"
                f" {group.name}`",
            ) from refused
        self._on_step(STAGED, lease.number)
        new = self._staging[True].publish(_application(group), lease.number, parts)
        self._on_step(PUBLISHED, lease.number)
        if self._record is not None:
            self._record.write(group.incarnation, lease.number, went)
        self._on_step(RECORDED, lease.number)
        self._leases.ack(group, lease.number)
        self._on_step(ACKNOWLEDGED, lease.number)
        self._count(lease, went, new=new)

    def _rows(self, group: Group, lease: LeaseSummary) -> tuple[dict[bool, list[dict[str, Any]]], list[dict[str, Any]]]:
        """The messages to send, by whether they are durable, and what the record says of them."""
        rows: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
        went = []
        now = datetime.now(UTC)
        leased = self._leases.rows(group.name, lease.number, 0, lease.rows, COLUMNS, incarnation=group.incarnation)
        for batch in leased:
            for letter in batch.to_pylist():
                target = self._destinations.of(dict(letter["properties"]), letter["message_id"])
                rows[letter["durable"]].append(as_returned(letter, target))
                went.append(
                    {
                        "message_id": letter["message_id"],
                        "from": self._run.queue,
                        "to": target,
                        "when": now,
                        "batch": f"{group.incarnation}/{lease.number}",
                    }
                )
        return rows, went

    def _count(self, lease: LeaseSummary, went: list[dict[str, Any]], *, new: bool) -> None:
        report = self._report
        report.batches += 1
        report.messages += lease.rows
        report.repeated += not new
        for entry in went:
            report.counts[entry["to"]] = report.counts.get(entry["to"], 0) + 1
        note = "" if new else ", which an earlier run had sent"
        self._say(f"batch {lease.number}: {lease.rows} messages{note}; {report.messages} in this run")


def _application(group: Group) -> str:
    return f"redrive/{group.incarnation}"


def _batches(rows: list[dict[str, Any]]) -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa

    from delosmq.spark.dead_letters.returned import returned_schema

    yield pa.RecordBatch.from_pylist(rows, schema=returned_schema())
