"""How a thread receives what the loop has handed over to it: many messages at a time, each counted when it is received.

The loop puts them into a deque in their order. The thread takes them from the left, and the loop takes back from the
right what is not to be delivered any more: after a close, a stop, a rollback, a break. So each message has one taker,
and one that was not received is as if it had never left the loop.
"""

from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from inspect import CORO_CREATED, getcoroutinestate
from time import monotonic
from typing import Any

from delosmq.client.aio_consumer import AsyncConsumer
from delosmq.client.messages import JmsMessage
from delosmq.client.options.arguments import demand_timeout
from delosmq.client.threads.loop_thread import LoopThread
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

    def __init__(self, thread: LoopThread, consumer: AsyncConsumer, done: OrderedCalls) -> None:
        self._thread = thread
        self._consumer = consumer
        self._done = done
        self._handed_over = consumer.handed_over

    def receive(self, timeout_s: float | None) -> JmsMessage | None:
        """As `AsyncConsumer.receive`; waits for the loop only where nothing is there."""
        if timeout_s is not None:
            demand_timeout(timeout_s)
        consumer, handed_over = self._consumer, self._handed_over
        ends_at_s = 0.0
        delivery: Delivery | None = None
        receipt: Receipt | None = None
        waiting: Coroutine[Any, Any, bool] | None = None
        try:
            while True:
                try:
                    delivery = handed_over[0]
                except IndexError:
                    delivery = None
                if delivery is None or consumer.is_expired(delivery):
                    if timeout_s:
                        ends_at_s = ends_at_s or monotonic() + timeout_s
                        timeout_s = max(0.0, ends_at_s - monotonic())
                    waiting = consumer.hand_over(timeout_s)
                    if not self._thread.run(waiting):
                        return None
                    continue
                message = consumer.message_of(delivery)
                try:
                    handed_over.remove(delivery)  # one step, in which it is found at once
                    break
                except ValueError:
                    continue  # it was taken back meanwhile
            receipt = Receipt(consumer.note_consumed, delivery)
            self._done.add(receipt)
            # CPython calls no signal handler between this and what the caller does with the message.
            receipt.received = True
            return message
        except BaseException:
            if receipt is not None:
                receipt.received = False
            self._give_up(delivery, waiting)
            raise

    def _give_up(self, delivery: Delivery | None, waiting: Coroutine[Any, Any, bool] | None) -> None:
        """The thread was interrupted. The loop puts back what it has not got, and is waited for: that comes first."""
        self._thread.soon(partial(self._consumer.put_back, delivery))
        with suppress(ClientError):  # the connection is closed, or this is its loop
            self._thread.call(lambda: None)
            if waiting is not None and getcoroutinestate(waiting) == CORO_CREATED:  # the loop was not given it
                waiting.close()
