"""Clients that lose their broker again and again, and remember what it told them."""

import base64
import http.client
import io
import json
import socket
import threading
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Protocol

import pyarrow.ipc

from tests.chaos.broker_process import PASSWORD, USER
from tests.patience import PATIENCE_S

WINDOW = 20
BACKLOG = 100
"""Producers wait for consumers who are this far behind, so that segments become free while the load lasts."""
END = -1
GROUP = "archive"
ALPHABET = b"abcdefghijklmnopqrstuvwxyz"
Gone = (OSError, EOFError, http.client.HTTPException)


def body_of(number: int) -> bytes:
    """What a message must look like for ever, 1 to 5 KB."""
    size_bytes = 1000 + number * 37 % 4000
    return b"%d:" % number + (ALPHABET * (size_bytes // len(ALPHABET) + 2))[number % 26 :][:size_bytes]


def number_of(body: bytes) -> int:
    number = int(body[: body.index(b":")])
    assert number == END or body == body_of(number), f"message {number} has another body"
    return number


class Memory:
    """What clients were told over all lives of the broker.

    Attributes:
        sent: issued, whether or not a receipt came; confirmed: with a receipt.
        ack_issued, ack_confirmed: the same for acknowledgements of orders.work.
        leases: lease -> rows as first fetched, ``leased`` of them in all; ``end_lease`` holds the last message.
        archived: the newest lease whose acknowledgement was confirmed.
        wrong: sentences about broken promises.
    """

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.next_number = 1
        self.receipts = 0
        self.sent: set[int] = set()
        self.confirmed: set[int] = set()
        self.ack_issued: set[int] = set()
        self.ack_confirmed: set[int] = set()
        self.leases: dict[int, list[dict[str, Any]]] = {}
        self.leased = 0
        self.end_lease = 0
        self.refetched = 0
        self.archived = 0
        self.incarnation: str | None = None
        self.drained = False
        self.wrong: list[str] = []

    def new_number(self) -> int:
        with self.changed:
            number = self.next_number
            self.next_number += 1
            self.sent.add(number)
            return number

    def count_receipt(self) -> None:
        with self.changed:
            self.receipts += 1
            self.changed.notify_all()

    def wait_for_consumers(self) -> None:
        """Until they have caught up, or are as dead as the broker."""
        with self.changed:
            self.changed.wait_for(self._consumers_are_close, 1.0)

    def _consumers_are_close(self) -> bool:
        confirmed = len(self.confirmed)
        return confirmed - len(self.ack_issued) < BACKLOG and confirmed - self.leased < BACKLOG

    def wait(self, what: Callable[[], bool]) -> bool:
        with self.changed:
            return self.changed.wait_for(lambda: bool(self.wrong) or what(), PATIENCE_S)

    def end_is_archived(self) -> bool:
        return 0 < self.end_lease <= self.archived

    def learn_lease(self, lease: int, rows: list[dict[str, Any]]) -> None:
        """What a lease holds, for the first time or once more."""
        with self.changed:
            known = self.leases.get(lease)
            if known is None:
                self.leases[lease] = rows
                self.leased += len(rows)
                if any(number_of(row["body"]) == END for row in rows):
                    self.end_lease = lease
            else:
                self.refetched += 1
                assert known == rows, f"lease {lease} has changed"
            self.changed.notify_all()


class StompPeer:
    """A socket that speaks STOMP 1.2 and raises `Gone` when the broker is dead."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        self._file = self._socket.makefile("rb")
        self.send("CONNECT", {"accept-version": "1.2", "host": "x", "login": USER, "passcode": PASSWORD})
        assert next(self.frames())[0] == "CONNECTED"

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def send(self, command: str, headers: dict[str, str], body: bytes = b"") -> None:
        head = "".join(f"{name}:{value}\n" for name, value in headers.items())
        if body:
            head += f"content-length:{len(body)}\n"
        self._socket.sendall(f"{command}\n{head}\n".encode() + body + b"\0")

    def frames(self) -> Iterator[tuple[str, dict[str, str], bytes]]:
        while True:
            command = self._line()
            if not command:
                continue
            headers: dict[str, str] = {}
            while line := self._line():
                name, _, value = line.partition(":")
                headers.setdefault(name, value)
            size = int(headers.get("content-length", "0"))
            body = self._exactly(size) if size else b""
            while (byte := self._exactly(1)) != b"\0":
                body += byte
            if command == "ERROR" and b"is stopping" in body:
                raise EOFError("the broker is stopping")
            assert command != "ERROR", f"{headers} {body!r}"
            yield command, headers, body

    def _line(self) -> str:
        line = self._file.readline()
        if not line.endswith(b"\n"):
            raise EOFError("closed")
        return line[:-1].decode()

    def _exactly(self, size: int) -> bytes:
        content = self._file.read(size)
        if len(content) < size:
            raise EOFError("closed")
        return content


class Wrongs(Protocol):
    """Where clients say what must not be."""

    changed: threading.Condition
    wrong: list[str]


class Worker(threading.Thread):
    """A client for one life of the broker: ends when the broker does."""

    def __init__(self, memory: Wrongs, work: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self._memory = memory
        self._work = work
        self.start()

    def run(self) -> None:
        try:
            self._work()
        except Gone:
            pass
        except BaseException as error:
            with self._memory.changed:
                self._memory.wrong.append(f"{type(error).__name__}: {error}")
                self._memory.changed.notify_all()


def produce(memory: Memory, port: int, last: list[int] | None = None) -> None:
    """Sends for ever, or only ``last``, with `WINDOW` receipts outstanding."""
    peer = StompPeer(port)
    try:
        frames = peer.frames()
        outstanding = 0
        while last is None or last or outstanding:
            memory.wait_for_consumers()
            while outstanding < WINDOW and (last is None or last):
                number = last.pop(0) if last else memory.new_number()
                body = body_of(number) if number != END else b"-1:"
                headers = {"destination": "/topic/orders", "persistent": "true", "receipt": str(number)}
                peer.send("SEND", headers, body)
                outstanding += 1
            command, headers, _ = next(frames)
            assert command == "RECEIPT", command
            outstanding -= 1
            memory.confirmed.add(int(headers["receipt-id"]))
            memory.count_receipt()
    finally:
        peer.close()


def consume(memory: Memory, port: int, *, individual: bool, random: Random) -> None:
    """Acknowledges what comes, one by one or several at once, and leaves out some for a while."""
    peer = StompPeer(port)
    try:
        ack = "client-individual" if individual else "client"
        peer.send(
            "SUBSCRIBE", {"id": "s", "destination": "orders::orders.work", "ack": ack, "activemq.prefetchSize": "50"}
        )
        unanswered: list[int] = []
        asked: dict[str, list[int]] = {}
        for command, headers, body in peer.frames():
            if command == "RECEIPT":
                memory.ack_confirmed.update(asked.pop(headers["receipt-id"]))
                memory.count_receipt()
                with memory.changed:
                    memory.drained = memory.drained or END in memory.ack_confirmed
                continue
            number = number_of(body)
            assert number not in memory.ack_confirmed, f"message {number} came back after its acknowledgement"
            assert number in memory.sent, f"message {number} was never sent"
            if individual:
                # What stays unanswered comes again in the next life, unless that is the last one.
                if random.random() < 0.002 and END not in memory.sent:
                    continue
                answered = [number]
            else:
                unanswered.append(number)
                if random.random() < 0.7 and END not in memory.sent:
                    continue
                answered, unanswered = unanswered, []
            asked[headers["ack"]] = answered
            with memory.changed:
                memory.ack_issued.update(answered)
                memory.changed.notify_all()
            peer.send("ACK", {"id": headers["ack"], "receipt": headers["ack"]})
    finally:
        peer.close()


class LeaseReader:
    """Follows orders.archive by leases over HTTP, as the Spark source does."""

    def __init__(self, memory: Memory, port: int, run: str, random: Random) -> None:
        self._memory = memory
        self._random = random
        self._run = run
        self._http = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        self._headers = {"Authorization": f"Basic {login}", "Content-Type": "application/json"}

    def follow(self) -> None:
        memory = self._memory
        try:
            opening = {"queue": "orders.archive", "run": self._run, "incarnation": memory.incarnation}
            opened = self._call("POST", "open", opening)
            memory.incarnation = opened["incarnation"]
            newest = max(memory.leases, default=0)
            assert memory.archived <= opened["acked"] <= newest, f"{opened}, archived {memory.archived}"
            assert opened["lease"] >= newest, f"lease {newest} is lost: {opened}"
            after = newest
            # What was fetched before the broker died must be the same now, as long as it isn't acknowledged.
            for k in range(int(opened["acked"]) + 1, newest + 1):
                self._fetch(k)
            while True:
                size = self._random.choice([1, 20, 200])
                asked = {"after": after, "max_rows": size, "max_bytes": 10**7, "wait_ms": 200, "epoch": opened["epoch"]}
                answer = self._call("POST", "lease", {**asked, "until": None})
                with memory.changed:
                    memory.archived = max(memory.archived, after)
                    memory.changed.notify_all()
                if answer["lease"] > after:
                    after = int(answer["lease"])
                    rows = self._fetch(after)
                    assert len(rows) == answer["rows"], answer
                    if self._random.random() < 0.2:
                        self._fetch(after)
        finally:
            self._http.close()

    def _fetch(self, lease: int) -> list[dict[str, Any]]:
        content = self._request("GET", f"{lease}/rows?lo=0&hi=1000000&headers=true", None)
        rows: list[dict[str, Any]] = pyarrow.ipc.open_stream(io.BytesIO(content)).read_all().to_pylist()
        self._memory.learn_lease(lease, rows)
        return rows

    def _call(self, method: str, path: str, value: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self._request(method, path, json.dumps(value)))
        return answer

    def _request(self, method: str, path: str, body: str | None) -> bytes:
        self._http.request(method, f"/api/v1/leases/{GROUP}/{path}", body, self._headers)
        response = self._http.getresponse()
        content = response.read()
        assert response.status == 200, f"{method} {path}: {response.status} {content!r}"
        return content
