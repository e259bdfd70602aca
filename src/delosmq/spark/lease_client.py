"""The lease calls of a broker over HTTP, and its browse call for batch reads.

A lease is a numbered, immutable, ordered list of messages of one queue, held by one group, readable again and again
until it is acknowledged. Runs on: the source process (all calls) and executors (`rows` and `browse` only).
"""

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from delosmq.spark import errors
from delosmq.spark.lease_requests import (
    ALL_ROWS,
    NO_WISHES,
    OPTIONS_OF_FIELDS,
    UNFILTERED,
    BrowseFilter,
    GroupWishes,
    RowChoice,
)
from delosmq.spark.options import ConnectionOptions, SourceDestination
from delosmq.spark.schema import HEADERS_COLUMN, REFERENCE_COLUMN, conform, split_reference, with_references
from delosmq.spark.transport import Transport, UnansweredError, segment

if TYPE_CHECKING:
    from http.client import HTTPResponse

    import pyarrow as pa

T = TypeVar("T")

BUSY_ATTEMPTS = 180
BUSY_PAUSE_S = 0.5
"""Together 90 s: longer than `LIVE_WINDOW_MS`, for which a broker holds a group for a reader that is silent. A query
killed before its checkpoint had its first offset is restarted within."""
BROWSE_PAGE_ROWS = 10_000
MAX_LEASE_ROWS, MAX_LEASE_BYTES = 1_000_000, 1 << 30
"""What a broker takes that does not tell its limits; it refuses a request for more."""


INTERFACE_VERSION = 2
"""Of the lease calls, as this client knows them. A broker that tells none has version 1 and no features."""
TOUCH, RELEASE_EPOCH = "touch", "release-epoch"


@dataclass(frozen=True, slots=True)
class LeaseLimits:
    """The largest lease that the broker makes."""

    max_rows: int = MAX_LEASE_ROWS
    max_bytes: int = MAX_LEASE_BYTES


@dataclass(frozen=True, slots=True)
class Group:
    """A group as opened: its life (incarnation), our epoch in it, newest acknowledged and newest made lease."""

    name: str
    queue: str
    incarnation: str
    epoch: int
    acked: int
    lease: int
    limits: LeaseLimits = LeaseLimits()
    features: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class LeaseSummary:
    """One lease; ``rows`` is 0 when nothing new was there."""

    number: int
    rows: int
    bytes: int
    first_sequence: int
    last_sequence: int


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """Where a group stands: messages ready in its queue and leased, the age of the oldest, and until when the group is
    kept without contact, if the broker says so."""

    queue: str
    incarnation: str
    newest_sequence: int
    ready: int
    leased: int
    oldest_age_ms: int
    acked: int
    lease: int
    expires_in_ms: int | None = None


@dataclass(frozen=True, slots=True)
class QueueRange:
    """The sequences of the messages in a queue; both 0 when it never had any."""

    oldest_sequence: int
    newest_sequence: int
    message_count: int


class LeaseClient:
    """The calls, one method each. Not for several threads. Pickled: never; make it where it is used."""

    def __init__(self, options: ConnectionOptions, *, transport: Transport | None = None) -> None:
        self.transport = transport or Transport(options)
        self.run = str(uuid.uuid4())
        self._knows_no_lives = False

    def close(self) -> None:
        self.transport.close()

    def open_group(
        self,
        name: str,
        destination: SourceDestination,
        incarnation: str | None,
        *,
        sleep: Callable[[float], None],
        wishes: GroupWishes = NO_WISHES,
    ) -> Group:
        """Open the group for this reader and get a new epoch, which fences all older ones.

        `incarnation` None makes the group, or takes over one of which nothing was ever acknowledged. While the broker
        says that another reader was heard of a moment ago, asks again for 90 s.

        Raises:
            GroupBusyError: the other reader is still alive.
            ForeignIncarnationError: the checkpoint was deleted or copied, or another query uses the group.
            LeaseLostError: the group of the checkpoint is gone.
            VersionError: the broker is too old for what is wished for, or too new for this client.
        """
        body: dict[str, object] = {destination.kind: destination.name, "run": self.run, "incarnation": incarnation}
        body |= wishes.fields()
        attempt = 0
        while True:
            try:
                answer = self.transport.call("POST", f"/api/v1/leases/{segment(name)}/open", body)
                break
            except errors.UnknownFieldError as unknown:
                only_asked = wishes.newer if wishes.start is None and unknown.field == "start" else ""
                raise self._too_old(unknown, only_asked) from None
            except errors.GroupBusyError:
                attempt += 1
                if attempt > BUSY_ATTEMPTS:
                    raise
                sleep(BUSY_PAUSE_S)
        return self._opened(answer)

    def touch(self, group: Group) -> None:
        """A sign of life of the group's reader, and nothing else.

        Raises:
            FencedError: a newer reader has opened the group.
        """
        if TOUCH in group.features:
            self.transport.call("POST", f"/api/v1/leases/{segment(group.name)}/touch", {"epoch": group.epoch})
        else:
            # An older broker takes it as one, whoever asks; it knows no better.
            self.stat(group.name)

    def check_destination(self, name: str, destination: SourceDestination) -> None:
        """Ask whether the group `name` may read `destination`; changes nothing at the broker.

        The broker looks at the destination before the incarnation, and refuses one that no group has.

        Raises:
            QueueMissingError: there is no such queue.
            ForbiddenError: the user may not consume from it.
            ForeignIncarnationError: the group reads another one.
        """
        body: dict[str, object] = {destination.kind: destination.name, "run": self.run, "incarnation": self.run}
        with suppress(errors.LeaseLostError, errors.GroupBusyError):
            try:
                self.transport.call("POST", f"/api/v1/leases/{segment(name)}/open", body)
            except errors.ForeignIncarnationError:
                read = self.stat(name).queue
                if read != (name if destination.kind == "topic" else destination.name):
                    raise errors.ForeignIncarnationError(
                        "DMQ8071", f"group {name!r} reads queue {read!r}, and not {destination}: name another group"
                    ) from None

    def lease(
        self, group: Group, after: int, *, max_rows: int, max_bytes: int, wait_ms: int, until: int | None = None
    ) -> LeaseSummary:
        """Acknowledge all leases up to `after` and get the next one, durable before the answer.

        More rows or bytes than the broker leases at once are not asked for: they come with the next lease.

        The same lease again if it was made before; one with number `after` and no rows if nothing came in `wait_ms`.

        Raises:
            FencedError: a newer reader has opened the group.
        """
        body: dict[str, object] = {
            "after": after,
            "max_rows": min(max_rows, group.limits.max_rows),
            "max_bytes": min(max_bytes, group.limits.max_bytes),
            "wait_ms": wait_ms,
            "epoch": group.epoch,
            "until": until,
        }
        lease = _read(
            LeaseSummary,
            self.transport.call("POST", f"/api/v1/leases/{segment(group.name)}/lease", body),
            number="lease",
        )
        if lease.number not in (after, after + 1):
            raise errors.AnswerError(
                "DMQ8030", f"group {group.name!r} answered lease {lease.number} to a request after lease {after}"
            )
        return lease

    def stat(self, group: str) -> GroupSummary:
        """Where the group stands; changes nothing."""
        answer = self.transport.call("GET", f"/api/v1/leases/{segment(group)}/stat")
        return _read(GroupSummary, {"expires_in_ms": None, **answer})

    def describe(self, group: str, after: int, upto: int, *, complete: bool = True) -> list[LeaseSummary]:
        """The leases above `after` up to `upto`, for splitting them; those that are left, unless it must be complete.

        Raises:
            LeaseLostError: the group is gone, or one of them, and it must be complete.
        """
        path = f"/api/v1/leases/{segment(group)}/describe?from={after}&to={upto}"
        leases = [
            _read(LeaseSummary, entry, number="lease") for entry in _list(self.transport.call("GET", path), "leases")
        ]
        if complete and [lease.number for lease in leases] != list(range(after + 1, upto + 1)):
            raise errors.LeaseLostError(
                "DMQ8023",
                f"group {group!r} no longer has all leases from {after + 1} to {upto}: they were released or ended; "
                "start with a new checkpoint, or set failOnDataLoss to false",
            )
        return leases

    def ack(self, group: Group, number: int) -> int:
        """Acknowledge all leases up to `number`; a lower number than before is a no-op.

        Raises:
            FencedError: a newer reader has opened the group.
        """
        body: dict[str, object] = {"lease": number, "epoch": group.epoch}
        return _count(self.transport.call("POST", f"/api/v1/leases/{segment(group.name)}/ack", body), "acked")

    def release(self, group: Group) -> int:
        """End the group: what it has not acknowledged goes back to the queue in order. Returns how many messages.

        Raises:
            LeaseLostError: it has ended, perhaps by an earlier attempt at this call.
            FencedError: a newer reader has opened the group, and keeps it.
        """
        # An older broker ends it whoever has it.
        body: dict[str, object] = {"epoch": group.epoch} if RELEASE_EPOCH in group.features else {}
        return _count(self.transport.call("POST", f"/api/v1/leases/{segment(group.name)}/release", body), "released")

    def queue(self, name: str) -> QueueRange:
        """Which sequences the queue holds now."""
        return _read(QueueRange, self.transport.call("GET", f"/api/v1/queues/{segment(name)}"))

    def rows(
        self,
        group: str,
        number: int,
        lo: int,
        hi: int,
        names: tuple[str, ...],
        *,
        wanted: RowChoice = ALL_ROWS,
        incarnation: str = "",
    ) -> Iterator["pa.RecordBatch"]:
        """Rows `lo` (inclusive) to `hi` (exclusive) of a lease in order, with exactly the columns `names`.

        A connection that breaks off is taken up again at the row where it broke. Changes nothing at the broker.

        Args:
            incarnation: the life of the group in which the lease was made; "" for any.

        Raises:
            LeaseLostError: the lease is gone, or the group lives anew.
            BodyTooLargeError: a body is longer than the limit.
            SchemaMismatchError: rows of another shape arrived.
        """
        rows_path = f"/api/v1/leases/{segment(group)}/{number}/rows"
        rows_at = ",".join(str(server) for server in self.transport.options.servers) + rows_path
        fetched = names
        if REFERENCE_COLUMN in names:
            fetched = tuple(name for name in (*names, "sequence") if name != REFERENCE_COLUMN)
        base = f"{rows_path}?{_columns(tuple(dict.fromkeys(fetched)))}{wanted.query()}"
        retries = self.transport.retries()
        # How many rows of groups come is not known before: what came already is asked for, and left out, again.
        counted = wanted.of == 1
        came, complete = 0, False
        while not complete and (not counted or lo + came < hi):
            left_out = 0 if counted else came
            first = lo + came if counted else lo
            try:
                for batch in self._stream(f"{base}&lo={first}&hi={hi}", incarnation):
                    new = batch.slice(min(left_out, batch.num_rows))
                    left_out -= batch.num_rows - new.num_rows
                    if not new.num_rows:
                        continue
                    came += new.num_rows
                    if lo + came > hi:
                        raise errors.AnswerError(
                            "DMQ8030", f"lease {number} of {group!r} sent more rows than asked for"
                        )
                    retries.progress()
                    if fetched is not names:
                        new = with_references(new, rows_at, wanted.max_body_bytes, incarnation)
                    yield conform(new, names)
                complete = True
                if counted and lo + came < hi:
                    raise UnansweredError(f"{hi - lo - came} rows of lease {number} are missing")
            except UnansweredError as failure:
                complete = False
                self.transport.retry(retries, failure)

    def body(self, reference: str) -> bytes:
        """The body that a row of a lease of this broker refers to, however long.

        Raises:
            LeaseLostError: the lease is acknowledged, or gone.
        """
        _, path, incarnation = split_reference(reference)
        retries = self.transport.retries()
        while True:
            try:
                with self._open(path, incarnation) as response:
                    content = self.transport.reading(response.read)
                    if response.length:
                        raise UnansweredError(f"{response.length} bytes of the body are missing")
                    return content
            except UnansweredError as failure:
                self.transport.retry(retries, failure)

    def browse(
        self,
        queue: str,
        after: int,
        until: int,
        names: tuple[str, ...],
        *,
        wanted: BrowseFilter = UNFILTERED,
    ) -> Iterator["pa.RecordBatch"]:
        """The messages of `queue` with `after` < sequence <= `until` in order of sequence; takes nothing.

        Raises:
            VersionError: the broker is too old to filter.
        """
        fetched = names if "sequence" in names else (*names, "sequence")
        base = f"/api/v1/queues/{segment(queue)}/rows?{_columns(fetched)}&until={until}&max_rows={BROWSE_PAGE_ROWS}"
        base += wanted.query()
        retries = self.transport.retries()
        at, more = after, True
        while more and at < until:
            more = False
            try:
                for batch in self._stream(f"{base}&after={at}"):
                    if not batch.num_rows:
                        continue
                    complete = conform(batch, fetched)
                    at = complete.column(complete.schema.get_field_index("sequence"))[-1].as_py()
                    more = True
                    retries.progress()
                    yield complete if fetched == names else conform(complete, names)
            except UnansweredError as failure:
                self.transport.retry(retries, failure)
                more = True

    def _opened(self, answer: Mapping[str, Any]) -> Group:
        """The group that the broker told of, if it speaks a version that is known here."""
        version = _count(answer, "version") if "version" in answer else 1
        if version > INTERFACE_VERSION:
            raise errors.VersionError(
                "DMQ8066",
                f"{self.transport.server} has version {version} of the lease calls, and this DelosMQ knows "
                f"{INTERFACE_VERSION} at most: install the broker's version of DelosMQ on Spark's driver and executors",
            )
        limits, features = answer.get("limits"), answer.get("features")
        return Group(
            name=_text(answer, "group"),
            queue=_text(answer, "queue"),
            incarnation=_text(answer, "incarnation"),
            epoch=_count(answer, "epoch"),
            acked=_count(answer, "acked"),
            lease=_count(answer, "lease"),
            limits=_read(LeaseLimits, limits) if isinstance(limits, dict) else LeaseLimits(),
            features=frozenset(map(str, features)) if isinstance(features, list) else frozenset(),
        )

    def _too_old(self, unknown: errors.UnknownFieldError, option: str = "") -> errors.VersionError:
        option = option or OPTIONS_OF_FIELDS.get(unknown.field, unknown.field)
        return errors.VersionError(
            "DMQ8067",
            f"the broker at {self.transport.server} is too old for the option {option}: update it to the version of "
            "DelosMQ that Spark runs, or leave the option out",
        )

    def _open(self, path: str, incarnation: str) -> "HTTPResponse":
        """The answer about one life of a group, "" for any. A broker that is too old to tell them apart is asked
        without."""
        if incarnation and not self._knows_no_lives:
            try:
                joint = "&" if "?" in path else "?"
                return self.transport.open("GET", f"{path}{joint}incarnation={segment(incarnation)}")
            except errors.UnknownFieldError as unknown:
                if unknown.field != "incarnation":
                    raise
                self._knows_no_lives = True
        return self.transport.open("GET", path)

    def _stream(self, path: str, incarnation: str = "") -> Iterator["pa.RecordBatch"]:
        """The record batches of one answer; one that breaks off ends in an UnansweredError."""
        import http.client

        import pyarrow as pa

        try:
            response = self._open(path, incarnation)
        except errors.UnknownFieldError as unknown:
            raise self._too_old(unknown) from None
        with response:
            try:
                with pa.ipc.open_stream(response) as reader:
                    while True:
                        try:
                            batch = reader.read_next_batch()
                        except StopIteration:
                            break
                        yield batch
                response.read()
                if response.length:
                    raise UnansweredError(f"{response.length} bytes of the answer are missing")
            except (OSError, http.client.HTTPException, pa.ArrowInvalid) as wrong:
                self.transport.close()
                raise UnansweredError(str(wrong) or type(wrong).__name__) from wrong
            except GeneratorExit:
                # Spark stops reading early (limit): what is left on this connection is not read.
                self.transport.close()
                raise


def _columns(names: tuple[str, ...]) -> str:
    headers = "true" if HEADERS_COLUMN in names else "false"
    return f"headers={headers}&columns={','.join(names)}"


def _read(kind: type[T], answer: Mapping[str, Any], **names: str) -> T:
    """An answer as an object of a dataclass of texts and counts.

    Args:
        names: of fields that the answer calls otherwise.
    """
    readers: dict[object, Callable[[Mapping[str, Any], str], Any]] = {int: _count, str: _text, int | None: _perhaps}
    return kind(
        **{field: readers[wanted](answer, names.get(field, field)) for field, wanted in get_type_hints(kind).items()}
    )


def _count(answer: Mapping[str, Any], name: str) -> int:
    value = answer.get(name)
    if type(value) is not int or value < 0:
        raise _misshapen(name, "a count")
    return value


def _perhaps(answer: Mapping[str, Any], name: str) -> int | None:
    return None if answer.get(name) is None else _count(answer, name)


def _text(answer: Mapping[str, Any], name: str) -> str:
    value = answer.get(name)
    if not isinstance(value, str):
        raise _misshapen(name, "text")
    return value


def _list(answer: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    value = answer.get(name)
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise _misshapen(name, "a list")
    return value


def _misshapen(name: str, kind: str) -> errors.AnswerError:
    return errors.AnswerError(
        "DMQ8030", f"the broker's answer lacks {name!r} as {kind}: run the same version on the broker and on Spark"
    )
