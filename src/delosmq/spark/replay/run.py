"""Sends messages of an archive again, each once, whatever is killed meanwhile.

How. All of them are one batch write of the sink, published as one under a transactional id that is made of what is
replayed: archive, times, addresses, condition, target. A run that is killed has sent nothing; what was sent is not sent
again.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from delosmq.spark.errors import OptionError, PipelineError
from delosmq.spark.options import ConnectionOptions, parse_options
from delosmq.spark.pipeline import Say, explained
from delosmq.spark.positions import parse_time
from delosmq.spark.replay.messages import MOMENT, as_rows, chosen_messages
from delosmq.spark.send_destination import check_named, find_destination
from delosmq.spark.transport import Transport

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOW, ORIGINAL = "now", "original"
TIMINGS: Final = (NOW, ORIGINAL)
MOST_ADDRESSES: Final = 10_000
LEAD_S: Final = 10.0
MOST_LEAD_S: Final = 86_400.0
NEIGHBOURS: Final = 100
"""Names of applications that may begin like ours."""


@dataclass(frozen=True)
class ReplayRun:
    """What is sent again, where to, and when.

    Attributes:
        archive: the directory of an archive.
        since, before: when messages were sent, as date and time with a zone; "" for any time.
        addresses: which the messages were sent to; empty for all.
        where: a condition of Spark SQL on the archive's columns.
        to: an address or ``address::queue``; "" for the address of each.
        timing: now, or original: as long after the first as then.
        speed: with original timing, how many times as fast.
        lead_s: with original timing, when the first one is due, counted from the start: what is due before all are
            published is sent then, and loses its distances. None for `LEAD_S`.
        name: another name makes another replay of the same messages.
    """

    archive: str
    connection: Mapping[str, str] = field(repr=False)
    since: str = ""
    before: str = ""
    addresses: tuple[str, ...] = ()
    where: str = ""
    to: str = ""
    timing: str = NOW
    speed: float = 1.0
    lead_s: float | None = None
    name: str = ""

    @property
    def since_ms(self) -> int | None:
        return parse_time("since", self.since) if self.since else None

    @property
    def before_ms(self) -> int | None:
        return parse_time("before", self.before) if self.before else None

    @property
    def lead(self) -> float:
        return LEAD_S if self.lead_s is None else self.lead_s

    @property
    def transactional_id(self) -> str:
        """Made of what is replayed, and where to: the same replay has the same."""
        from delosmq.spark.archive.files import local_path

        place = local_path(self.archive)
        archive = self.archive if place is None else str(place.resolve())
        what = (archive, str(self.since_ms), str(self.before_ms), *sorted(set(self.addresses)), self.where, self.to)
        return f"replay/{sha256(repr((what, self.name)).encode()).hexdigest()[:32]}"

    def checked(self) -> ConnectionOptions:
        """How to reach the broker.

        Raises:
            OptionError: an option has a value that it can't have.
        """
        if self.timing not in TIMINGS:
            raise OptionError("DMQ8250", f"timing is {self.timing!r}: choose {' or '.join(TIMINGS)}")
        for name, value, is_valid, wanted in (
            ("speed", self.speed, 0 < self.speed <= 1e6, "above 0, as in 2.0 for twice as fast"),
            ("lead", self.lead, 0 <= self.lead <= MOST_LEAD_S, f"from 0 to {MOST_LEAD_S:.0f} seconds"),
        ):
            if not is_valid:
                raise OptionError("DMQ8250", f"{name} is {value} but should be {wanted}")
        for name, is_given in (("speed", self.speed != 1), ("lead", self.lead_s is not None)):
            if is_given and self.timing != ORIGINAL:
                raise OptionError("DMQ8250", f"{name} is about original timing: give --timing original, too")
        since, before = self.since_ms, self.before_ms
        if since is not None and before is not None and before <= since:
            raise OptionError("DMQ8250", f"nothing lies between {self.since} and {self.before}")
        return parse_options({**self.connection, "subscribe": "any"}).connection


@dataclass(slots=True)
class ReplayReport:
    """What was, or would be, sent. ``published_before``: the same replay ran already, and nothing was sent now."""

    messages: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    first: datetime | None = None
    last: datetime | None = None
    published_before: bool = False


def check_replay(run: ReplayRun) -> bool:
    """Check what can be known without Spark; whether the replay ran already.

    Raises:
        BrokerError: what is wrong, in one sentence: an option, the login, the target.
    """
    transport = Transport(run.checked())
    try:
        if run.to:
            check_named(transport, run.to)
        # Names are listed by what comes after another name.
        fields = urlencode({"after": run.transactional_id[:-1], "limit": NEIGHBOURS})
        answer = transport.call("GET", f"/api/v1/staging/applications?{fields}")
        return any(one["application"] == run.transactional_id for one in answer["applications"])
    finally:
        transport.close()


def plan_replay(spark: "SparkSession", run: ReplayRun) -> ReplayReport:
    """What would be sent; changes nothing.

    Raises:
        BrokerError: what is wrong, in one sentence.
    """
    ran = check_replay(run)
    with explained(f"the replay of {run.archive}"):
        report = _look(run, _messages(spark, run))
    report.published_before = ran
    return report


def replay(spark: "SparkSession", run: ReplayRun, *, on_progress: Say | None = None) -> ReplayReport:
    """Send the messages, all or none; none when this very replay ran already.

    Raises:
        BrokerError: what is wrong, in one sentence. Nothing was sent, unless the broker had published it already.
    """
    say = on_progress or (lambda line: None)
    if check_replay(run):
        say("this replay was sent before, and nothing is sent now; another --name sends it once more")
        return ReplayReport(published_before=True)
    with explained(f"the replay of {run.archive}"):
        messages = _messages(spark, run)
        report = _look(run, messages)
        if report.first is None:
            return report
        say(f"{report.messages:,} messages are staged, and published as one")
        # Due times are staged with their messages, before it is known when those are published.
        begun = datetime.now(UTC)
        due = begun + timedelta(seconds=run.lead)
        timing = (report.first, due, run.speed) if run.timing == ORIGINAL else None
        options = {**run.connection, "transactionalId": run.transactional_id}
        as_rows(messages, run.to, timing).write.format("delosmq").options(**options).mode("append").save()
        took_s = (datetime.now(UTC) - begun).total_seconds()
        if timing is not None and took_s > run.lead:
            say(too_late(run.lead, took_s))
    return report


def too_late(lead_s: float, took_s: float) -> str:
    """What is told when messages were due before all were staged."""
    return (
        f"staging took {took_s:.0f} s, longer than the lead of {lead_s:g} s: what was due in the first"
        f" {took_s - lead_s:.0f} s was sent at once; --lead {math.ceil(took_s * 1.5)} keeps its distances another time"
    )


def _messages(spark: "SparkSession", run: ReplayRun) -> "DataFrame":
    from delosmq.spark.archive import read_archive

    return chosen_messages(
        read_archive(spark, run.archive),
        since_ms=run.since_ms,
        before_ms=run.before_ms,
        addresses=run.addresses,
        where=run.where,
    )


def _look(run: ReplayRun, messages: "DataFrame") -> ReplayReport:
    """Count the messages, and look at where they would go."""
    from pyspark.sql import functions as f

    moments = messages.groupBy("address").agg(
        f.count(f.lit(1)).alias("messages"),
        f.unix_micros(f.min(MOMENT)).alias("first"),
        f.unix_micros(f.max(MOMENT)).alias("last"),
        f.min(f.when(f.col("body_kind") == "object", f.col("message_id"))).alias("object"),
    )
    found = moments.limit(MOST_ADDRESSES + 1).collect()
    if len(found) > MOST_ADDRESSES:
        raise PipelineError(
            "DMQ8252", f"the messages are of more than {MOST_ADDRESSES} addresses: replay some of them at a time"
        )
    report = ReplayReport()
    transport = Transport(run.checked())
    try:
        for row in sorted(found, key=lambda row: str(row["address"])):
            if row["object"] is not None:
                raise PipelineError(
                    "DMQ8253",
                    f"message {row['object']} to {row['address']} is a serialized object, which only a client of its"
                    " own protocol can send: leave such messages out with --where \"body_kind <> 'object'\"",
                )
            if not run.to:
                which = f"messages of {run.archive} were sent to"
                find_destination(transport, row["address"], "", which, "create it, or send all elsewhere with --to")
            target = run.to or row["address"]
            report.counts[target] = report.counts.get(target, 0) + row["messages"]
            report.messages += row["messages"]
            first, last = _moment(row["first"]), _moment(row["last"])
            report.first = min(report.first or first, first)
            report.last = max(report.last or last, last)
    finally:
        transport.close()
    return report


def _moment(micros: int) -> datetime:
    # Not as Spark gives timestamps: those are in this machine's time zone, without saying so.
    return datetime.fromtimestamp(micros // 1_000_000, UTC).replace(microsecond=micros % 1_000_000)
