"""Writing exactly once without Spark: rows are staged in parts, and all parts of a batch are published as one.

Used by the sink, and by what sends rows back from an archive or a queue of dead letters. See "Staging" in docs/http.md.
"""

import io
import logging
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from delosmq.model.errors import BrokerError
from delosmq.model.phrases import counted
from delosmq.spark import errors
from delosmq.spark.options import ConnectionOptions
from delosmq.spark.send_destination import QUEUE_MARK
from delosmq.spark.transport import Transport, segment

if TYPE_CHECKING:
    import pyarrow as pa

PART_ROWS = 20_000
PART_BYTES = 4 * 1024 * 1024
"""Of one part; the broker takes 50,000 rows and 6 MiB, and more only of a row that is alone in its part."""
PAUSE_S = 1.0
LONGEST_PAUSE_S = 8.0
"""While an address stays full; the broker takes a batch that is silent for longer than 20 s for one that gave up."""
BUSY_ATTEMPTS = 60
WAIT_MS = 20_000
"""How long one call waits at the broker for room; then the log says so and the broker is asked again."""
MOST_NAMED = 5
"""Addresses in one sentence."""
ARROW_TYPE = "application/vnd.apache.arrow.stream"

logger = logging.getLogger("delosmq.spark")


@dataclass(frozen=True, slots=True)
class SendDefaults:
    """What holds for rows that do not say it.

    Attributes:
        address: "" when each row names its destination. routing_type: ANYCAST, MULTICAST, "" for any.
        time_to_live_ms: 0 for ever.
    """

    address: str = ""
    routing_type: str = ""
    durable: bool = True
    priority: int = 4
    time_to_live_ms: int = 0


@dataclass(frozen=True, slots=True)
class WriteAttempt:
    """Who stages: a dead attempt, or run of a task, then makes room for the next. Names are never used again.

    Attributes:
        name: of the attempt at a batch, or of all attempts that one start of a program makes.
        task: of the attempt, such as a partition; run: of the task.
    """

    name: str = ""
    task: str = ""
    run: str = ""


class StagingClient:
    """The staging calls of a broker. Not for several threads. Pickled: never.

    Attributes:
        last_published: the last batch of the application, as `publish` learned it.
    """

    def __init__(
        self,
        connection: ConnectionOptions,
        defaults: SendDefaults,
        attempt: WriteAttempt = WriteAttempt(),
        *,
        transport: Transport | None = None,
        pause_s: float = PAUSE_S,
    ) -> None:
        self.transport = transport or Transport(connection)
        self.last_published = 0
        self._attempt = attempt
        self._address = defaults.address
        self._pause_s = pause_s
        fields = {
            "address": defaults.address,
            "routing_type": defaults.routing_type,
            "durable": "true" if defaults.durable else "false",
            "priority": defaults.priority,
            "time_to_live_ms": defaults.time_to_live_ms,
            "wait_ms": WAIT_MS,
            "attempt": attempt.name,
            "task": attempt.task,
            "run": attempt.run,
        }
        self._query = urlencode(fields)

    def close(self) -> None:
        self.transport.close()

    def stage_rows(self, application: str, batch: int, rows: "Iterator[pa.RecordBatch]") -> list[str]:
        """Stages rows in as many parts as they need, under names that are never used again; gives the names, for
        `publish`. When it fails, or `rows` does, what was staged is discarded.

        Raises:
            RowsDroppedError: an address has no room for some of them, and drops what is too much.
            BrokerError: the broker refuses them.
        """
        parts: list[str] = []
        try:
            for encoded in encoded_parts(rows):
                part = str(uuid.uuid4())
                parts.append(part)
                try:
                    dropped = self.stage(application, batch, part, encoded)
                except errors.PartTooLargeError as refused:
                    raise _too_large(encoded, self._address, refused) from None
                if dropped:
                    raise _dropped(dropped, encoded, self._address)
        except BaseException:
            # What is left ends by itself after staged-retention.
            with suppress(BrokerError):
                self.discard(application, batch, parts)
            raise
        return parts

    def stage(self, application: str, batch: int, part: str, rows: bytes) -> int:
        """Stages a part; waits for as long as its address is full, and says so in the log.

        Args:
            rows: an Arrow IPC stream.

        Returns:
            How many rows are not in it, as their full address drops what is too much.

        Raises:
            FencedError: another attempt at the batch, or run of the task, has begun.
            BrokerError: the broker refuses it.
        """
        path = f"{_path(application, batch)}/parts/{segment(part)}?{self._query}"
        pause_s = self._pause_s
        busy = 0
        while True:
            try:
                answer = self.transport.call("POST", path, rows, content_type=ARROW_TYPE)
                return int(answer.get("dropped", 0))
            except errors.NoRoomError as full:
                logger.warning(f"DMQ8170: a task of '{application}' waits: {full.message}")
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            except errors.PartBusyError:
                # An earlier call of ours, whose answer was lost, is still at work.
                busy += 1
                if busy > BUSY_ATTEMPTS:
                    raise
                time.sleep(self._pause_s)

    def publish(self, application: str, batch: int, parts: list[str]) -> bool:
        """Publishes a batch; false when it, or a later one, was published before (`last_published`). Waits while the
        disk is full.

        Raises:
            PartLostError: one of the parts is gone; nothing was published.
            FencedError: another attempt has published since this one last did.
        """
        wanted: dict[str, object] = {"parts": parts, "attempt": self._attempt.name}
        while True:
            try:
                answer = self.transport.call("POST", f"{_path(application, batch)}/publish", wanted)
            except errors.NoRoomError as full:
                logger.warning(f"DMQ8170: batch {batch} of '{application}' waits: {full.message}")
                time.sleep(self._pause_s)
                continue
            self.last_published = int(answer.get("last", batch))
            return answer.get("already") is not True

    def discard(self, application: str, batch: int, parts: list[str]) -> None:
        """Discards parts; changes nothing once the batch is published."""
        self.transport.call("POST", f"{_path(application, batch)}/discard", {"parts": parts})

    def forget(self, application: str) -> None:
        """No batch of this name comes again."""
        self.transport.call("DELETE", f"/api/v1/staging/{segment(application)}")


def _path(application: str, batch: int) -> str:
    return f"/api/v1/staging/{segment(application)}/{batch}"


def encoded_parts(rows: "Iterator[pa.RecordBatch]") -> Iterator[bytes]:
    """Rows as Arrow streams, each a part; none of them empty."""
    import pyarrow as pa

    waiting: list[Any] = []
    count = size = 0
    for batch in rows:
        for piece in _pieces(batch):
            if waiting and (count + piece.num_rows > PART_ROWS or size + piece.nbytes > PART_BYTES):
                yield _encode(pa, waiting)
                waiting, count, size = [], 0, 0
            waiting.append(piece)
            count += piece.num_rows
            size += piece.nbytes
    if waiting:
        yield _encode(pa, waiting)


def _pieces(batch: "pa.RecordBatch") -> "Iterator[pa.RecordBatch]":
    """A batch in pieces that fit into a part, if their rows do."""
    if batch.num_rows <= 1 or (batch.num_rows <= PART_ROWS and batch.nbytes <= PART_BYTES):
        if batch.num_rows:
            yield batch
        return
    half = batch.num_rows // 2
    yield from _pieces(batch.slice(0, half))
    yield from _pieces(batch.slice(half))


def _too_large(part: bytes, address: str, refused: errors.PartTooLargeError) -> errors.PartTooLargeError:
    """The refusal of a part, with what its row is where there is one alone."""
    rows = _rows_of(part)
    if rows.num_rows != 1:
        return refused
    (row,) = rows.to_pylist()
    body = row["body"] or b""
    size = len(body.encode() if isinstance(body, str) else body)
    destination = row.get("destination") or address
    which = f" (message {row['message_id']})" if row.get("message_id") else ""
    return errors.PartTooLargeError(
        "DMQ8178",
        f"the row for {destination}{which} has a body of {size} bytes, more than the broker takes"
        f" of a row, and nothing of its batch was sent: {refused.message}. Leave it out of what is written",
    )


def _dropped(count: int, part: bytes, address: str) -> errors.RowsDroppedError:
    """What became of ``count`` rows of a part, with the addresses that may have dropped them."""
    rows = _rows_of(part)
    named = rows.column("destination").to_pylist() if "destination" in rows.column_names else []
    names = sorted({(name or address).partition(QUEUE_MARK)[0] for name in named} or {address.partition(QUEUE_MARK)[0]})
    more = f" or {len(names) - MOST_NAMED} others" if len(names) > MOST_NAMED else ""
    return errors.RowsDroppedError(
        "DMQ8179",
        f"{counted(count, 'row')} found no room at {' or '.join(names[:MOST_NAMED])}{more}, which drops what is too"
        " much (address-full-policy DROP), and nothing of the batch was sent: make room there, raise max-size-bytes or"
        " max-size-messages, or choose BLOCK, with which writers wait",
    )


def _rows_of(part: bytes) -> "pa.Table":
    import pyarrow as pa

    with pa.ipc.open_stream(part) as stream:
        return stream.read_all()


def _encode(pa: Any, batches: list[Any]) -> bytes:
    sink = io.BytesIO()
    # Each batch of a stream has a head of its own, which may well be longer than its row.
    joined = pa.Table.from_batches(batches).combine_chunks() if len(batches) > 1 else batches[0]
    with pa.ipc.new_stream(sink, batches[0].schema) as writer:
        writer.write(joined)
    return sink.getvalue()
