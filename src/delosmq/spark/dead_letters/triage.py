"""The ready pipeline `triage`: dead letters in groups by cause, origin and shape. Takes nothing from the queues.

It needs no Spark: a group takes a few hundred bytes, however many messages it has, so one process reads what the broker
sends as fast as it comes.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from delosmq.spark.dead_letters.letters import ORIGINAL_ADDRESS, ORIGINAL_QUEUE, browse_queue, cause_of, printable
from delosmq.spark.errors import OptionError, PipelineError
from delosmq.spark.lease_client import LeaseClient
from delosmq.spark.options import SourceOptions, check_batch, parse_options
from delosmq.spark.pipeline import Say

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS: Final = ("body", "message_id", "sequence", "timestamp", "protocol", "properties", "body_kind")
NUMBERS: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|\d+", re.IGNORECASE)
CAUSE_LIMIT: Final = 300
"""Characters of a cause that tell groups apart: a stack trace need not be kept whole."""
PARSE_LIMIT_BYTES: Final = 256 * 1024
"""A longer body is not looked into."""
MOST_KEYS: Final = 20
MOST_GROUPS: Final = 10_000
"""What has another cause, origin or shape than all of these is counted together."""
TOO_MANY: Final = "(more kinds than are told apart)"
PROGRESS_ROWS: Final = 100_000
FORMATS: Final = (".parquet", ".json")


@dataclass(frozen=True)
class TriageRun:
    """Which queues are looked at, and what becomes of the groups.

    Attributes:
        selector: only messages that it lets through; the broker applies it.
        to: a file, .parquet or .json, with a row for each group; "" for none.
    """

    queues: Sequence[str]
    connection: Mapping[str, str] = field(repr=False)
    selector: str = ""
    to: str = ""

    def options(self) -> SourceOptions:
        """Those of the data source, checked.

        Raises:
            OptionError: one has a value that it can't have.
        """
        if not self.queues:
            raise OptionError("DMQ8230", "name at least one queue of dead letters, such as DLQ")
        if self.to and Path(self.to).suffix not in FORMATS:
            raise OptionError("DMQ8231", f"{self.to!r} says no format: end it with {' or '.join(FORMATS)}")
        # The queues are browsed by their names, which need no splitting at commas.
        options = parse_options({**self.connection, "subscribe": "any", "selector": self.selector})
        check_batch(options)
        return options


@dataclass(slots=True)
class LetterGroup:
    """Dead letters that are alike.

    Attributes:
        cause: without its numbers, which differ from message to message.
        keys: of bodies that are JSON objects or maps, "" for others.
        first, last: when the oldest and the newest of them were sent.
        example_id: of the oldest.
    """

    queue: str
    address: str
    original_queue: str
    cause: str
    protocol: str
    body_kind: str
    keys: str
    first: datetime
    last: datetime
    example_id: str
    count: int = 0


@dataclass(slots=True)
class TriageReport:
    """The groups, largest first, and how many messages were looked at."""

    messages: int
    groups: list[LetterGroup]


def check_triage(run: TriageRun) -> dict[str, int]:
    """Check the options, the login, the queues and that the file can be written; gives how much each queue holds.

    Raises:
        BrokerError: what is wrong, in one sentence.
    """
    options = run.options()
    if run.to and not Path(run.to).absolute().parent.is_dir():
        raise OptionError("DMQ8232", f"there is no directory for {run.to}: make it, or name another file")
    client = LeaseClient(options.connection)
    try:
        return {queue: client.queue(queue).message_count for queue in run.queues}
    finally:
        client.close()


def triage(run: TriageRun, *, on_progress: Say | None = None) -> TriageReport:
    """Group what the queues hold now; writes the file, if one is asked for, in whole or not at all.

    Raises:
        BrokerError: what is wrong, in one sentence.
    """
    check_triage(run)
    say = on_progress or (lambda line: None)
    sorting = LetterSorter()
    client = LeaseClient(run.options().connection)
    try:
        for queue in dict.fromkeys(run.queues):
            told = sorting.messages
            for batch in browse_queue(client, queue, COLUMNS, run.options().selector):
                sorting.add(queue, batch)
                if sorting.messages - told >= PROGRESS_ROWS:
                    told = sorting.messages
                    say(f"{told:,} messages looked at, {len(sorting.groups):,} groups")
    finally:
        client.close()
    report = TriageReport(sorting.messages, sorted(sorting.groups.values(), key=lambda group: -group.count))
    if run.to:
        write_groups(report.groups, Path(run.to))
    return report


class LetterSorter:
    """Puts messages into groups."""

    def __init__(self) -> None:
        self.messages = 0
        self.groups: dict[tuple[str, ...], LetterGroup] = {}

    def add(self, queue: str, batch: "pa.RecordBatch") -> None:
        values = [batch.column(batch.schema.get_field_index(name)).to_pylist() for name in COLUMNS]
        for body, message_id, _, sent, protocol, pairs, kind in zip(*values, strict=True):
            properties = dict(pairs)
            address = properties.get(ORIGINAL_ADDRESS) or ""
            cause = NUMBERS.sub("#", cause_of(properties))[:CAUSE_LIMIT]
            key = (queue, address, properties.get(ORIGINAL_QUEUE) or "", cause, protocol, kind, json_keys(body))
            if key not in self.groups and len(self.groups) >= MOST_GROUPS:
                key = (queue, "", "", TOO_MANY, "", "", "")
            group = self.groups.get(key)
            if group is None:
                group = self.groups[key] = LetterGroup(*key, first=sent, last=sent, example_id=message_id)
            group.count += 1
            if sent < group.first:
                group.first, group.example_id = sent, message_id
            group.last = max(group.last, sent)
        self.messages += batch.num_rows


def json_keys(body: bytes) -> str:
    """The keys of a body that is a JSON object, of the first object for an array of them; "" for anything else."""
    if len(body) > PARSE_LIMIT_BYTES or body.lstrip()[:1] not in (b"{", b"["):
        return ""
    try:
        decoded: Any = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    is_list = isinstance(decoded, list)
    if is_list:
        decoded = decoded[0] if decoded else None
    if not isinstance(decoded, dict):
        return ""
    keys = sorted(decoded)
    shown = ", ".join(key[:80] for key in keys[:MOST_KEYS]) + (", ..." if len(keys) > MOST_KEYS else "")
    return f"[{shown}]" if is_list else shown


def group_lines(groups: Iterable[LetterGroup]) -> Iterator[str]:
    """The groups for people: what they are on one line, how many and when on the next."""
    for group in groups:
        origin = group.original_queue or group.address or "(unknown)"
        if group.address and group.original_queue not in ("", group.address):
            origin = f"{group.address}::{group.original_queue}"
        shape = f"{group.protocol} {group.body_kind}" + (f" {{{group.keys}}}" if group.keys else "")
        yield printable(f"{group.count:>9,}  {group.queue} from {origin}: {group.cause}")
        yield printable(
            f"{'':>9}  {shape}; sent {group.first:%Y-%m-%d %H:%M:%S} to {group.last:%Y-%m-%d %H:%M:%S} UTC,"
            f" such as {group.example_id}"
        )


def write_groups(groups: Sequence[LetterGroup], file: Path) -> None:
    """The groups as a table, one row each.

    Raises:
        PipelineError: the file can't be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as parquet

    moment = pa.timestamp("us", tz="UTC")
    kinds = {"first": moment, "last": moment, "count": pa.int64()}
    names = list(LetterGroup.__slots__)
    rows = [{name: getattr(group, name) for name in names} for group in groups]
    building = file.with_name(f".{file.name}.new")
    try:
        if file.suffix == ".json":
            building.write_text(json.dumps(rows, indent=1, default=datetime.isoformat) + "\n", encoding="utf-8")
        else:
            schema = pa.schema([pa.field(name, kinds.get(name, pa.string())) for name in names])
            parquet.write_table(pa.Table.from_pylist(rows, schema=schema), building)
        building.replace(file)
    except OSError as wrong:
        raise PipelineError(
            "DMQ8233", f"{file} can't be written ({wrong.strerror or wrong}): name a file in another directory"
        ) from None
