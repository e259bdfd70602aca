"""Requests and their replies: one temporary queue for all replies to a connection, told apart by correlation id."""

import asyncio
from itertools import count
from typing import Self

from delosmq.client.aio_producer import AsyncProducer
from delosmq.client.aio_session import AsyncSession
from delosmq.client.destinations import JmsDestination
from delosmq.client.errors import wrong_argument
from delosmq.client.link import Link
from delosmq.client.messages import JmsMessage, take_headers


class ReplyQueue:
    """Where the replies to a connection's requests come."""

    def __init__(self, link: Link, session: AsyncSession, producer: AsyncProducer, queue: JmsDestination) -> None:
        self._link = link
        self._session = session
        self._producer = producer
        self._queue = queue
        self._numbers = count(1)
        self._waiting: dict[str, asyncio.Future[JmsMessage]] = {}

    @classmethod
    async def open(cls, link: Link, session: AsyncSession) -> Self:
        """
        Args:
            session: of its own.
        """
        try:
            queue = await session.create_temporary_queue()
            replies = cls(link, session, await session.create_producer(), queue)
            consumer = await session.create_consumer(queue)
            await consumer.set_listener(replies._take)
        except BaseException:
            await session.close()
            raise
        return replies

    def _take(self, reply: JmsMessage) -> None:
        waiting = self._waiting.get(reply.correlation_id or "")
        if waiting is not None and not waiting.done():
            waiting.set_result(reply)

    async def ask(self, destination: JmsDestination, request: JmsMessage, timeout_s: float | None) -> JmsMessage:
        """The reply to a request, which expires with the timeout; what comes after this was cancelled is dropped.

        Raises:
            ClientOptionError: DMQ9056, another request waits under the same correlation id; as `take_headers`.
            ConnectionLostError, IllegalStateError: the connection is lost, or closed.
        """
        take_headers(request)
        if request.correlation_id is None:
            request.correlation_id = f"{self._queue.name}:{next(self._numbers)}"
        if request.correlation_id in self._waiting:
            wanted = "one under which no other request of this connection waits for its reply"
            raise wrong_argument("correlation_id", request.correlation_id, wanted)
        request.reply_to = self._queue
        reply: asyncio.Future[JmsMessage] = asyncio.get_running_loop().create_future()
        self._waiting[request.correlation_id] = reply
        try:
            life_ms = 0 if timeout_s is None else max(1, int(timeout_s * 1_000))
            await self._producer.send(request, destination=destination, persistent=False, time_to_live_ms=life_ms)
            return await self._link.outcome(reply)
        finally:
            del self._waiting[request.correlation_id]
