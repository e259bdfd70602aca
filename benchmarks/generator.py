"""The load generator: one process, plain sockets, frames made beforehand, replies counted in bulk.

Run as `python -m benchmarks.generator`: reads a job as one line of JSON, connects and subscribes, writes `ready`, waits
for a line, runs, and writes the outcome as one line of JSON. The harness reads the broker's CPU time around it.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import socket
import sys
from collections.abc import Callable
from dataclasses import asdict
from time import perf_counter

from benchmarks.cells import Job, Latency, Outcome
from benchmarks.frames import (
    ACK_HEADER,
    BODY_SIZE_BYTES,
    RECEIPT_HEADER,
    FrameReader,
    SendRing,
    ack_frame,
    connect_frame,
    subscribe_frame,
)
from benchmarks.load import GeneratorError

_CONNECT_TIMEOUT_S = 30.0


def connect(job: Job) -> socket.socket:
    """A logged-in connection, still blocking."""
    connection = socket.create_connection(("127.0.0.1", job.port), timeout=_CONNECT_TIMEOUT_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(connect_frame(job.login, job.passcode, job.host))
    await_reply(connection, b"CONNECTED\n")
    return connection


def await_reply(connection: socket.socket, expected: bytes) -> None:
    """Block until a frame that holds `expected` has come whole."""
    received = b""
    while expected not in received or not received.rstrip(b"\n").endswith(b"\0"):
        piece = connection.recv(65536)
        if not piece or b"ERROR\n" in received + piece:
            raise GeneratorError(f"expected {expected!r}, got {received + piece!r}")
        received += piece


class Producer:
    """Sends on one connection as far as its limit allows and counts the receipts."""

    def __init__(self, job: Job, destination: str) -> None:
        self.socket = connect(job)
        self.socket.setblocking(False)
        self._ring = SendRing(destination, persistent=job.persistent, receipts=job.outstanding is not None)
        self._reader = FrameReader()
        self._sent_bytes = 0
        self.allowed = 0
        self.confirmed = 0
        self.confirmed_at: list[tuple[float, int]] = []

    @property
    def sent(self) -> int:
        """Messages that have wholly left."""
        return self._sent_bytes // self._ring.frame_size_bytes

    @property
    def blocked(self) -> bool:
        """Whether something allowed has not left yet."""
        return self._sent_bytes < self.allowed * self._ring.frame_size_bytes

    def send(self) -> None:
        """Send until the limit or until the socket is full."""
        limit = self.allowed * self._ring.frame_size_bytes
        try:
            while self._sent_bytes < limit:
                piece = self._ring.piece(self._sent_bytes, limit - self._sent_bytes)
                self._sent_bytes += self.socket.send(piece)
        except BlockingIOError:
            return

    def receive(self) -> None:
        """Take what came and count the receipts."""
        reader = self._reader
        size = self.socket.recv_into(reader.free_space())
        if size == 0:
            raise GeneratorError("the broker closed a producing connection")
        reader.received(size)
        count = reader.count(RECEIPT_HEADER)
        reader.next()
        if count:
            self.confirmed += count
            self.confirmed_at.append((perf_counter(), self.confirmed))


class Consumer:
    """Receives on one connection and acknowledges every so many messages, the last one with a receipt."""

    def __init__(self, job: Job, destination: str, expected: int) -> None:
        self.socket = connect(job)
        self.socket.sendall(subscribe_frame(destination, job.subscribe_headers))
        await_reply(self.socket, RECEIPT_HEADER)
        self.socket.setblocking(False)
        self._reader = FrameReader()
        self._ack_every = job.ack_every
        self._expected = expected
        self._unacknowledged = 0
        self._unsent = b""
        self.received = 0
        self.acks = 0
        self.finished = False
        self.received_at: list[tuple[float, int]] = []

    @property
    def blocked(self) -> bool:
        """Whether an acknowledgement has not left yet."""
        return bool(self._unsent)

    def send(self) -> None:
        """Send waiting acknowledgements as far as the socket takes them."""
        try:
            while self._unsent:
                self._unsent = self._unsent[self.socket.send(self._unsent) :]
        except BlockingIOError:
            return

    def receive(self) -> None:
        """Take what came, count the messages and acknowledge."""
        reader = self._reader
        size = self.socket.recv_into(reader.free_space())
        if size == 0:
            raise GeneratorError("the broker closed a consuming connection")
        reader.received(size)
        count = reader.count(ACK_HEADER)
        if count:
            self.received += count
            self.received_at.append((perf_counter(), self.received))
            self._acknowledge(count)
        elif self.received == self._expected and reader.count(RECEIPT_HEADER):
            self.finished = True
        reader.next()
        if self._unsent:
            self.send()

    def _acknowledge(self, count: int) -> None:
        reader, position = self._reader, 0
        last = self.received >= self._expected
        frames = []
        while count >= (missing := self._ack_every - self._unacknowledged):
            # An acknowledgement header is followed by a body, so a search may begin behind its length.
            for _ in range(missing):
                found = reader.buffer.find(ACK_HEADER, position, reader.end)
                position = found + BODY_SIZE_BYTES
            count -= missing
            self._unacknowledged = 0
            if count or not last:
                frames.append(ack_frame(reader.header_at(found, ACK_HEADER), receipt=False))
        self._unacknowledged += count
        if last:
            found = reader.buffer.rfind(ACK_HEADER, 0, reader.end)
            frames.append(ack_frame(reader.header_at(found, ACK_HEADER), receipt=True))
        self.acks += len(frames)
        self._unsent += b"".join(frames)


class Generator:
    """Drives one job over its pairs of connections."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._per_pair = job.messages // job.connections
        destinations = [f"/queue/bench.{index}" for index in range(job.connections)]
        self._consumers = [Consumer(job, name, self._per_pair) for name in destinations]
        self._producers = [Producer(job, name) for name in destinations]
        self._pairs = list(zip(self._producers, self._consumers, strict=True))
        self._poll = select.epoll()
        self._ends: dict[int, tuple[int, Producer | Consumer]] = {}
        for index, pair in enumerate(self._pairs):
            for end in pair:
                self._ends[end.socket.fileno()] = (index, end)
                self._poll.register(end.socket.fileno(), select.EPOLLIN)
        self._writing: set[int] = set()
        self._lags: list[float] = []

    def run(self) -> Outcome:
        """Send everything, until every message is acknowledged and every receipt has come."""
        gc.collect()
        gc.disable()
        cpu_before = _own_cpu_s()
        started = perf_counter()
        if self._job.rate_per_s is None:
            self._run_closed()
        else:
            self._run_open(started, self._job.rate_per_s)
        return self._outcome(started, perf_counter(), _own_cpu_s() - cpu_before)

    def close(self) -> None:
        """Say goodbye and close."""
        self._poll.close()
        for _, end in self._ends.values():
            with end.socket:
                end.socket.setblocking(True)
                end.socket.sendall(b"DISCONNECT\n\n\0")

    def _run_closed(self) -> None:
        """As fast as answers come: limited by receipts, or without them by what is in flight."""
        job, last = self._job, self._per_pair
        window = job.outstanding or max(job.in_flight // job.connections, 1)
        by_receipts = job.outstanding is not None
        for producer in self._producers:
            producer.allowed = min(window, last)
            self._send(producer)
        while not self._finished():
            for index in self._step(job.stall_after_s):
                producer, consumer = self._pairs[index]
                answered = producer.confirmed if by_receipts else consumer.received
                allowed = min(answered + window, last)
                if allowed > producer.allowed:
                    producer.allowed = allowed
                    self._send(producer)

    def _run_open(self, started: float, rate_per_s: float) -> None:
        """By the clock, whatever the answers: message i leaves at started + i / rate, round over the connections."""
        pairs, total = self._pairs, self._per_pair * len(self._pairs)
        sent, heard_at = 0, started
        while sent < total or not self._finished():
            now = perf_counter()
            due = min(total, int((now - started) * rate_per_s) + 1)
            if due > sent:
                for index in range(sent, min(due, sent + len(pairs))):
                    self._lags.append(now - started - index / rate_per_s)
                self._let_go(sent, due)
                sent = due
            if self._step(0.0):
                heard_at = now
            elif now - heard_at > self._job.stall_after_s:
                raise GeneratorError(self._stalled())

    def _let_go(self, first: int, end: int) -> None:
        pairs = len(self._pairs)
        for index in range(first, min(end, first + pairs)):
            producer = self._producers[index % pairs]
            producer.allowed += (end - 1 - index) // pairs + 1
            self._send(producer)

    def _step(self, timeout_s: float) -> list[int]:
        """Serve what is ready; the pairs that heard something."""
        events = self._poll.poll(timeout_s)
        if not events and timeout_s:
            raise GeneratorError(self._stalled())
        heard = []
        for descriptor, mask in events:
            index, end = self._ends[descriptor]
            if mask & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
                end.receive()
                heard.append(index)
                if end.blocked:
                    self._watch_writing(end)
            if mask & select.EPOLLOUT:
                self._send(end)
        return heard

    def _send(self, end: Producer | Consumer) -> None:
        end.send()
        if end.blocked or end.socket.fileno() in self._writing:
            self._watch_writing(end)

    def _watch_writing(self, end: Producer | Consumer) -> None:
        descriptor = end.socket.fileno()
        if end.blocked and descriptor not in self._writing:
            self._writing.add(descriptor)
            self._poll.modify(descriptor, select.EPOLLIN | select.EPOLLOUT)
        elif not end.blocked and descriptor in self._writing:
            self._writing.discard(descriptor)
            self._poll.modify(descriptor, select.EPOLLIN)

    def _finished(self) -> bool:
        if self._job.outstanding is not None and any(one.confirmed < self._per_pair for one in self._producers):
            return False
        return all(consumer.finished for consumer in self._consumers)

    def _stalled(self) -> str:
        sent, confirmed, received = self._sums()
        return (
            f"nothing came for {self._job.stall_after_s:.0f} s: {sent} sent, {confirmed} confirmed, {received} received"
            f" of {self._per_pair * len(self._pairs)}"
        )

    def _sums(self) -> tuple[int, int, int]:
        return (
            sum(producer.sent for producer in self._producers),
            sum(producer.confirmed for producer in self._producers),
            sum(consumer.received for consumer in self._consumers),
        )

    def _outcome(self, started: float, ended: float, cpu_s: float) -> Outcome:
        sent, confirmed, received = self._sums()
        last_receipt = max((one.confirmed_at[-1][0] for one in self._producers if one.confirmed_at), default=None)
        outcome = Outcome(
            sent=sent,
            confirmed=confirmed,
            received=received,
            acks=sum(consumer.acks for consumer in self._consumers),
            elapsed_s=ended - started,
            confirmed_after_s=last_receipt - started if last_receipt is not None else None,
            generator_cpu_s=cpu_s,
        )
        if self._job.rate_per_s is not None:
            seen = self._latencies(started, lambda producer, consumer: consumer.received_at)
            outcome.delivery = Latency.of(seen)
            outcome.send_lag = Latency.of(self._lags)
            if confirmed:
                outcome.receipt = Latency.of(self._latencies(started, lambda producer, consumer: producer.confirmed_at))
        return outcome

    def _latencies(
        self, started: float, events: Callable[[Producer, Consumer], list[tuple[float, int]]]
    ) -> list[float]:
        """One per message: answers come in the order of sending, so the n-th answer is that of the n-th message."""
        assert self._job.rate_per_s is not None
        pairs, interval = len(self._pairs), 1.0 / self._job.rate_per_s
        latencies = []
        for pair, (producer, consumer) in enumerate(self._pairs):
            done = 0
            for at, count in events(producer, consumer):
                latencies += [at - started - (index * pairs + pair) * interval for index in range(done, count)]
                done = count
        return latencies


def _own_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Serve one job."""
    job = Job(**json.loads(sys.stdin.readline()))
    if job.core is not None:
        os.sched_setaffinity(0, {job.core})
    generator = Generator(job)
    print("ready", flush=True)
    sys.stdin.readline()
    outcome = generator.run()
    generator.close()
    print(json.dumps(asdict(outcome)), flush=True)


if __name__ == "__main__":
    main()
