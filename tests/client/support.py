"""What the tests of the client share."""

import threading
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from delosmq.client import AckMode, ClientConnection, ClientSession, MessageConsumer
from delosmq.client.aio_session import AsyncSession
from delosmq.client.threads.loop_thread import LoopThread
from tests.patience import PATIENCE_S

T = TypeVar("T")


class OpenSession(Protocol):
    def __call__(self, mode: AckMode = AckMode.AUTO) -> ClientSession: ...


class OpenAsync(Protocol):
    async def __call__(self, mode: AckMode = AckMode.AUTO) -> AsyncSession: ...


def wait_for_forgotten() -> None:
    """A forgotten connection is closed by its thread, and that ends with the last one."""
    for thread in threading.enumerate():
        if thread.name == "delosmq-client":
            thread.join(PATIENCE_S)


def fill(connection: ClientConnection, name: str, count: int) -> list[str]:
    """Texts that were sent to a queue."""
    texts = [f"{number}" for number in range(count)]
    with connection.create_session(AckMode.TRANSACTED) as session:
        producer = session.create_producer(name)
        for text in texts:
            producer.send(text)
        session.commit()
    return texts


def texts(consumer: MessageConsumer, count: int) -> list[str]:
    found = []
    for _ in range(count):
        message = consumer.receive(PATIENCE_S)
        assert message is not None
        found.append(message.text)
    return found


def settle(session: ClientSession) -> None:
    """What was received is done."""
    if session.mode == AckMode.TRANSACTED:
        session.commit()
    elif session.mode == AckMode.CLIENT:
        session.acknowledge()


class Counting(LoopThread):
    """Counts what is waited for."""

    runs = 0
    at_run: Callable[[], object] | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        self.runs += 1
        if self.at_run is not None:
            try:
                self.at_run()
            except BaseException:
                work.close()
                raise
        return super().run(work)
