"""A query's connection to a broker without leases: it receives, and acknowledges what Spark has committed."""

import logging
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from delosmq import client
from delosmq.spark.errors import BrokerUnreachableError
from delosmq.spark.options import SourceDestination, tls_context
from delosmq.spark.stock.options import StockOptions, name_at_broker
from delosmq.spark.stock.rows import StockRows

if TYPE_CHECKING:
    import pyarrow as pa

    from delosmq.client import ClientConnection, ClientError, JmsMessage

PAUSE_S = 0.5
"""Between two rounds through the servers."""
LINGER_S = 0.05
"""How long a batch that has messages waits for one more of its consumers."""
TURN = 100
"""Messages of one consumer before the next one's."""

PARTITION_BYTES = 16 * 1024 * 1024
"""Of rows that travel in one task, after which one message of 100 MiB may follow (``wireFormat.maxFrameSize``): Spark
sends no task of 128 MiB (``spark.rpc.message.maxSize``)."""

logger = logging.getLogger("delosmq.spark")


class QueueConsumer:
    """One consumer, in a session of its own, and the rows that it has received."""

    def __init__(self, connection: "ClientConnection", options: StockOptions, destination: SourceDestination) -> None:
        self.session = connection.create_session(client.AckMode.CLIENT)
        name, selector = name_at_broker(destination), options.common.selector
        plain = name.partition("?")[0]
        if destination.kind == "topic":
            self.consumer = self.session.create_durable_consumer(self.session.topic(name), plain, selector)
        else:
            self.consumer = self.session.create_consumer(self.session.queue(name), selector)
        self._rows = StockRows(options.columns, plain)
        self._batches: list[pa.RecordBatch] = []

    def add(self, message: "JmsMessage") -> int:
        """Takes what it has received for a row; gives its size in bytes."""
        size_bytes = self._rows.add(message)
        if self._rows.size_bytes >= PARTITION_BYTES:
            self._batches.append(self._rows.take())
        return size_bytes

    def take(self) -> "list[pa.RecordBatch]":
        """All rows since the last time; each batch fits into a task."""
        batches, self._batches = self._batches, []
        return [*batches, self._rows.take()] if self._rows.count else batches


class StockConsumers:
    """All consumers of a query on one connection, which is made again when it is lost. Runs on: the source process.

    What was received and not acknowledged goes back to its queue with the connection, and comes again.

    Attributes:
        consumers: of the connection that there is; their rows are to be taken after `receive`.
        oldest_ms: when the oldest message of the last `receive` was sent, as its sender's clock has it.
    """

    def __init__(self, options: StockOptions) -> None:
        self._options = options
        self._connection: ClientConnection | None = None
        self.consumers: list[QueueConsumer] = []
        self.oldest_ms = 0

    def receive(self, most_rows: int, most_bytes: int, wait_s: float) -> int:
        """Collect what comes until a limit is reached, nothing more is there, or the time is over; gives how many.

        Raises:
            BrokerUnreachableError: no server has answered for ``retryTimeoutMs``.
            ClientError: the broker refuses the login, a queue or the selector.
            AnswerError: a message can't become a row.
        """
        deadline = time.monotonic() + self._options.common.connection.retry_timeout_s
        while True:
            try:
                self._open()
                return self._collect(most_rows, most_bytes, time.monotonic() + wait_s)
            except (client.ConnectionLostError, client.TimedOutError, client.InvalidClientIdError) as lost:
                # The client id may be that of a driver that was killed and has not quite ended.
                self.close()
                if time.monotonic() >= deadline:
                    raise _unreachable(self._options, lost) from None
                time.sleep(PAUSE_S)

    def acknowledge(self) -> None:
        """All that was received. Where the connection was lost since, it comes again."""
        try:
            for each in self.consumers:
                each.session.acknowledge()
        except client.ClientError as lost:
            logger.warning(f"DMQ8295: a batch that is committed could not be acknowledged, and comes again: {lost}")
            self.close()

    def close(self) -> None:
        """Give back what was not acknowledged; the next `receive` connects again."""
        if self._connection is not None:
            with suppress(client.ClientError):
                self._connection.close()
        self._connection = None
        self.consumers = []

    def _open(self) -> None:
        if self._connection is not None and not self._connection.closed:
            return
        self.close()
        self._connection = connect_to(self._options)
        self.consumers = [
            QueueConsumer(self._connection, self._options, destination)
            for destination in self._options.common.destinations
            for _ in range(self._options.consumers)
        ]

    def _collect(self, most_rows: int, most_bytes: int, deadline: float) -> int:
        rows = size_bytes = 0
        self.oldest_ms = 0
        for message, consumer in self._messages(deadline):
            rows += 1
            size_bytes += consumer.add(message)
            if rows == 1 or message.timestamp_ms < self.oldest_ms:
                self.oldest_ms = message.timestamp_ms
            if rows >= most_rows or size_bytes >= most_bytes:
                break
        return rows

    def _messages(self, deadline: float) -> "Iterator[tuple[JmsMessage, QueueConsumer]]":
        """What comes, by turns of the consumers; waits for the first until the deadline."""
        any_came = False
        while True:
            came = False
            for each in self.consumers:
                for _ in range(TURN):
                    message = each.consumer.receive(0)
                    if message is None:
                        break
                    came = any_came = True
                    yield message, each
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return
            if came:
                continue
            slice_s = min(left_s, LINGER_S) / len(self.consumers)
            for each in self.consumers:
                message = each.consumer.receive(slice_s)
                if message is not None:
                    came = any_came = True
                    yield message, each
            if any_came and not came:
                return


def connect_to(options: StockOptions) -> "ClientConnection":
    """A connection to the first server that answers.

    Raises:
        ClientError: none does, or the login is refused.
    """
    common = options.common.connection
    lost: client.ClientError | None = None
    for server in options.servers:
        try:
            return client.connect(
                server,
                user=common.user,
                password=common.password,
                client_id=options.common.group_id,
                ssl_context=tls_context(common.tls) if server.startswith("ssl:") else None,
            )
        except (client.ConnectionLostError, client.TimedOutError) as unanswered:
            lost = unanswered
    assert lost is not None
    raise lost


def browse(options: StockOptions, destination: SourceDestination) -> "Iterator[JmsMessage]":
    """What a queue holds, which stays there. Runs on: an executor."""
    deadline = time.monotonic() + options.common.connection.retry_timeout_s
    while True:
        try:
            connection = connect_to(options)
            break
        except (client.ConnectionLostError, client.TimedOutError) as lost:
            if time.monotonic() >= deadline:
                raise _unreachable(options, lost) from None
            time.sleep(PAUSE_S)
    with connection, connection.create_session() as session:
        yield from session.create_browser(name_at_broker(destination), options.common.selector)


def _unreachable(options: StockOptions, lost: "ClientError") -> BrokerUnreachableError:
    waited_s = options.common.connection.retry_timeout_s
    return BrokerUnreachableError(
        "DMQ8293",
        f"no consumer could be had at {', '.join(options.servers)} for {waited_s:g} s: {lost} Start the query again "
        "when the broker is there, or let it wait for longer (retryTimeoutMs)",
    )
