"""What a client does in its own process: it is told a job, says when it is ready, works, and says what it took.

    python worker.py KIND '{"operation": "send", ...}'      KIND: blocking, asyncio, stomp.py or proton

Run by the interpreter that has the client, by path: it imports nothing of the benchmarks.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

PREFETCH = 1_000
PATIENCE_S = 60.0


class Job:
    """
    Attributes:
        operation: "send" waits for no answer but the last, "confirm" for each; "receive" acknowledges each message.
        urls: of the broker, by protocol.
        messages: of all sessions together.
    """

    def __init__(self, fields: dict[str, Any]) -> None:
        self.operation: str = fields["operation"]
        self.urls: dict[str, str] = fields["urls"]
        self.user: str = fields["user"]
        self.password: str = fields["password"]
        self.queue: str = fields["queue"]
        self.sessions: int = fields["sessions"]
        self.messages: int = fields["messages"]
        self.warm_up: int = fields["warm_up"]
        self.body: str = "x" * fields["body_bytes"]

    @property
    def each(self) -> int:
        """Messages of a session."""
        return self.messages // self.sessions

    def queue_of(self, session: int) -> str:
        return f"{self.queue}.{session}"

    def check(self, body: str | bytes) -> None:
        if len(body) != len(self.body):
            raise ValueError(f"a message of {len(self.body)} characters has become one of {len(body)}")


class Client(ABC):
    """One library. `connect`, `work` and `close` are called in this order, once."""

    def __init__(self, job: Job) -> None:
        self.job = job

    @abstractmethod
    def connect(self) -> None: ...

    @abstractmethod
    def work(self) -> None:
        """The whole job; sessions side by side."""

    @abstractmethod
    def close(self) -> None:
        """Returns when the broker has everything, if that was not waited for before."""


def in_threads(count: int, function: Callable[[int], None]) -> None:
    if count == 1:
        function(0)
        return
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            function(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def openwire_url(job: Job) -> str:
    options = {"send": "jms.useAsyncSend=true", "confirm": "jms.alwaysSyncSend=true", "receive": ""}[job.operation]
    return f"{job.urls['openwire']}?jms.prefetchPolicy.queuePrefetch={PREFETCH}&{options}".rstrip("&")


class Blocking(Client):
    """`delosmq.client`: a thread for each session."""

    def connect(self) -> None:
        from delosmq.client import connect

        self.connection = connect(openwire_url(self.job), user=self.job.user, password=self.job.password)

    def work(self) -> None:
        in_threads(self.job.sessions, self._receive if self.job.operation == "receive" else self._send)

    def _send(self, number: int) -> None:
        job = self.job
        with self.connection.create_session() as session:
            producer = session.create_producer(job.queue_of(number))
            for _ in range(job.each):
                producer.send(job.body, persistent=False)

    def _receive(self, number: int) -> None:
        with self.connection.create_session() as session:
            consumer = session.create_consumer(self.job.queue_of(number))
            for _ in range(self.job.each):
                message = consumer.receive(PATIENCE_S)
                assert message is not None
                self.job.check(message.text)

    def close(self) -> None:
        self.connection.close()


class Asyncio(Client):
    """`delosmq.client.aio`: a task for each session."""

    def connect(self) -> None:
        from delosmq.client import aio

        self._loop = asyncio.Runner()
        self._connect = aio.connect
        self._loop.run(self._open())

    async def _open(self) -> None:
        self.connection = await self._connect(openwire_url(self.job), user=self.job.user, password=self.job.password)

    def work(self) -> None:
        self._loop.run(self._work())

    async def _work(self) -> None:
        one = self._receive if self.job.operation == "receive" else self._send
        await asyncio.gather(*(one(number) for number in range(self.job.sessions)))

    async def _send(self, number: int) -> None:
        job = self.job
        async with await self.connection.create_session() as session:
            producer = await session.create_producer(job.queue_of(number))
            for _ in range(job.each):
                await producer.send(job.body, persistent=False)

    async def _receive(self, number: int) -> None:
        async with await self.connection.create_session() as session:
            consumer = await session.create_consumer(self.job.queue_of(number))
            for _ in range(self.job.each):
                message = await consumer.receive(PATIENCE_S)
                assert message is not None
                self.job.check(message.text)

    def close(self) -> None:
        self._loop.run(self.connection.close())
        self._loop.close()


class StompPy(Client):
    """stomp.py: a connection for each session, as it knows no others."""

    def connect(self) -> None:
        import stomp

        host, _, port = self.job.urls["stomp"].rpartition("/")[2].rpartition(":")
        self._connections = []
        for _ in range(self.job.sessions):
            connection = stomp.Connection12([(host, int(port))], heartbeats=(0, 0))
            connection.connect(self.job.user, self.job.password, wait=True)
            self._connections.append(connection)
        self._listener = stomp.ConnectionListener

    def work(self) -> None:
        in_threads(self.job.sessions, self._receive if self.job.operation == "receive" else self._send)

    def _send(self, number: int) -> None:
        job, connection = self.job, self._connections[number]
        answered = threading.Event()
        listener = self._listener()
        listener.on_receipt = lambda _frame: answered.set()
        connection.set_listener("", listener)
        for at in range(job.each):
            if job.operation == "confirm" or at == job.each - 1:
                answered.clear()
                connection.send(f"/queue/{job.queue_of(number)}", job.body, receipt="r")
                assert answered.wait(PATIENCE_S)
            else:
                connection.send(f"/queue/{job.queue_of(number)}", job.body)

    def _receive(self, number: int) -> None:
        job, connection = self.job, self._connections[number]
        count = 0
        done = threading.Event()

        def take(frame: Any) -> None:
            nonlocal count
            job.check(frame.body)
            count += 1
            if count == job.each:
                connection.ack(frame.headers["ack"], receipt="r")
            elif count < job.each:
                connection.ack(frame.headers["ack"])

        listener = self._listener()
        listener.on_message = take
        listener.on_receipt = lambda _frame: done.set()
        connection.set_listener("", listener)
        prefetch = str(PREFETCH)
        window = {"activemq.prefetchSize": prefetch}
        connection.subscribe(f"/queue/{job.queue_of(number)}", id="1", ack="client-individual", headers=window)
        assert done.wait(PATIENCE_S)

    def close(self) -> None:
        for connection in self._connections:
            connection.disconnect()


class Proton(Client):
    """python-qpid-proton's blocking client: a connection for each session, as each has a loop of its own."""

    def connect(self) -> None:
        from proton import Message
        from proton.reactor import AtMostOnce
        from proton.utils import BlockingConnection

        job = self.job
        url = job.urls["amqp"].replace("tcp://", f"amqp://{job.user}:{job.password}@")
        self._connections = [BlockingConnection(url, timeout=PATIENCE_S) for _ in range(job.sessions)]
        self._message = Message
        self._unsettled = AtMostOnce

    def work(self) -> None:
        in_threads(self.job.sessions, self._receive if self.job.operation == "receive" else self._send)

    def _send(self, number: int) -> None:
        job, connection = self.job, self._connections[number]
        options = None if job.operation == "confirm" else self._unsettled()
        sender = connection.create_sender(job.queue_of(number), options=options)
        for _ in range(job.each):
            sender.send(self._message(body=job.body, durable=False))
        sender.close()

    def _receive(self, number: int) -> None:
        job, connection = self.job, self._connections[number]
        receiver = connection.create_receiver(job.queue_of(number), credit=PREFETCH)
        for _ in range(job.each):
            job.check(receiver.receive(PATIENCE_S).body)
            receiver.accept()
        receiver.close()

    def close(self) -> None:
        for connection in self._connections:
            connection.close()


CLIENTS: dict[str, Callable[[Job], Client]] = {
    "blocking": Blocking,
    "asyncio": Asyncio,
    "stomp.py": StompPy,
    "proton": Proton,
}


def run(kind: str, fields: dict[str, Any]) -> dict[str, float]:
    warm = Job({**fields, "queue": f"{fields['queue']}.warm", "messages": fields["warm_up"]})
    measured = Job(fields)
    for job in (warm, measured):
        client = CLIENTS[kind](job)
        client.connect()
        if job is measured:
            print("ready", flush=True)
            sys.stdin.readline()
            gc.collect()
        wall, cpu = time.perf_counter(), time.process_time()
        client.work()
        client.close()
        took = {"elapsed_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
    return took


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], json.loads(sys.argv[2]))), flush=True)
