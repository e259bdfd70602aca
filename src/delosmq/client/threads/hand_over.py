"""How a thread receives what the loop has handed over to it: many messages at a time, each counted when it is received.

The loop notes what it hands over in a dict. The thread takes a message by removing it there, and the loop takes
messages back in the same way when they are not to be delivered any more: after a close, a stop, a rollback, a break.
Removing is one step, so either the thread or the loop has the message, and one that was not received is as if it had
never left the loop.
"""

from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from inspect import CORO_CREATED, getcoroutinestate
from time import monotonic
from typing import Any

from delosmq.client.aio_consumer import AsyncConsumer
from delosmq.client.errors import receives_already
from delosmq.client.messages import JmsMessage
from delosmq.client.options.arguments import demand_timeout
from delosmq.client.threads.ordered_calls import NOT_YET, OrderedCalls
from delosmq.sessions.client_errors import ClientError
from delosmq.sessions.openwire.client.acknowledgement import Delivery


class Receipt:
    """What the loop is told of a message that the thread receives.

    It is given to the loop first, as that may be interrupted, and counts once nothing is left to do but to return.

    Attributes:
        received: whether the application has the message; None while that is open.
    """

    __slots__ = ("_consumed", "_delivery", "received")

    def __init__(self, consumed: Callable[[Delivery], None], delivery: Delivery) -> None:
        self.received: bool | None = None
        self._consumed = consumed
        self._delivery = delivery

    def __call__(self) -> object:
        """In the loop."""
        if self.received is None:
            return NOT_YET
        if self.received:
            self._consumed(self._delivery)
        return None


class HandOver:
    """Between one consumer and the thread that receives from it.

    Args:
        done: of the session, as acknowledgements follow the order of receiving from all its consumers.
    """

    def __init__(self, consumer: AsyncConsumer, done: OrderedCalls) -> None:
        self._consumer = consumer
        self._done = done
        self._handed_over = consumer.handed_over
        self._batch: deque[Delivery] = deque()  # no other thread looks at it; what was taken back may be in it
        self._taken: Delivery | None = None
        self._waiting: Coroutine[Any, Any, list[Delivery]] | None = None
        self._receiving = False
        self._interrupted = False

    def receive(self, timeout_s: float | None) -> JmsMessage | None:
        """As `AsyncConsumer.receive`; waits for the loop only where nothing is there.

        Raises:
            IllegalStateError: DMQ9083, the thread receives from this consumer already, and this is a signal handler.
        """
        if timeout_s is not None:
            demand_timeout(timeout_s)
        if self._receiving:
            raise receives_already(str(self._consumer.destination))
        receipt: Receipt | None = None
        self._receiving = True
        try:
            if self._interrupted:
                self._put_back()
            self._taken = None
            self._waiting = None
            found = self._next(timeout_s)
            if found is None:
                return None
            delivery, message = found
            receipt = Receipt(self._consumer.note_consumed, delivery)
            self._done.add(receipt)
            # CPython calls no signal handler between this and what the caller does with the message.
            receipt.received = True
            return message
        except BaseException:
            # First what no signal handler can interrupt. What one does interrupt below, the next `receive` does.
            if receipt is not None:
                receipt.received = False
            self._interrupted = True
            self._put_back()
            raise
        finally:
            self._receiving = False

    def _next(self, timeout_s: float | None) -> tuple[Delivery, JmsMessage] | None:
        """What the loop can't take back any more."""
        consumer, batch, handed_over = self._consumer, self._batch, self._handed_over
        ends_at_s = 0.0
        while True:
            while batch:
                delivery = self._taken = batch.popleft()
                if consumer.is_expired(delivery):
                    break  # the broker is to be told of it
                message = consumer.message_of(delivery)
                if handed_over.pop(delivery, False):
                    return delivery, message
            if timeout_s:
                ends_at_s = ends_at_s or monotonic() + timeout_s
                timeout_s = max(0.0, ends_at_s - monotonic())
            self._waiting = consumer.wait_for_batch(timeout_s)
            batch = self._batch = deque(self._done.run(self._waiting))
            if not batch:
                return None

    def _put_back(self) -> None:
        """The thread was interrupted: what it has not received waits in the loop again."""
        consumer, taken, waiting = self._consumer, self._taken, self._waiting
        with suppress(ClientError):  # the connection is closed, or this is its loop
            self._done.call(lambda: consumer.put_back(taken))
            if waiting is not None and getcoroutinestate(waiting) == CORO_CREATED:  # the loop was not given it
                waiting.close()
        self._interrupted = False
