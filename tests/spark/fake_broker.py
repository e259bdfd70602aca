"""A broker that offers the lease and browse calls over HTTP and nothing else; memory only.

It follows the same contract as the real one (tests/spark/test_lease_contract.py runs on both) and can be stopped and
started again at its port, as a broker that restarts.
"""

import json
import threading
import time
import uuid
import zlib
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.spark.fake_rows import (
    COLUMN_OF,
    FakeQueue,
    Problem,
    arrow_stream,
    check_selector,
    described,
    first_sequence,
    make_message,
    passes,
    time_ms,
)

USER, PASSWORD = "spark", "s3cret-of-tests"
BUSY_S = 10.0
"""How long a reader counts as alive: shorter than with the real one, so that tests with two in turn wait less."""
MAX_ROWS, MAX_BYTES, MAX_WAIT_MS = 1_000_000, 1 << 30, 30_000
"""What the real one takes at most (delosmq.manage.http.requests)."""
FEATURES = ("start", "selector", "touch", "parts", "large-bodies", "filtered-browse", "release-epoch")
ROWS_FIELDS = {"headers", "columns"}


@dataclass
class FakeGroup:
    """A group and its leases by number."""

    name: str
    queue: FakeQueue
    incarnation: str
    epoch: int
    run: str
    heard_at: float
    selector: str = ""
    from_sequence: int = 0
    acked: int = 0
    newest: int = 0
    leases: dict[int, list[dict[str, Any]]] = field(default_factory=dict)


class FakeBroker:
    """State and HTTP server. `publish` puts messages; `stop` and `start` as a restart; `fetches` counts row calls."""

    def __init__(self) -> None:
        self.queues: dict[str, FakeQueue] = {}
        self.groups: dict[str, FakeGroup] = {}
        self.sequence = 0
        self.user, self.password = USER, PASSWORD
        self.busy_s = BUSY_S
        self.limits = {"max_rows": MAX_ROWS, "max_bytes": MAX_BYTES}
        self.clock: Callable[[], float] = time.monotonic
        self.version = 2
        # No new group has an epoch of one that has ended.
        self.ended_epoch = 0
        # Of version 2, but older than these fields.
        self.unknown: set[str] = set()
        self.fetches: list[str] = []
        self.touches = 0
        self.forbidden = False
        self.asked: dict[str, str] = {}
        self.cut_after_bytes: int | None = None
        self.changed = threading.Condition()
        self._port = 0
        self._server: ThreadingHTTPServer | None = None
        self.start()

    @property
    def servers(self) -> str:
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        broker = self

        class Handler(_Handler):
            fake = broker

        self._server = _Server(("127.0.0.1", self._port), Handler)
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()
        self._server.cut_all()

    def make_queue(self, name: str, address: str | None = None, routing_type: str = "ANYCAST") -> None:
        with self.changed:
            self.queues.setdefault(name, FakeQueue(name, address or name))

    def publish(
        self, name: str, bodies: list[bytes], address: str | None = None, headers: Sequence[Mapping[str, str]] = ({},)
    ) -> None:
        self.make_queue(name, address)
        with self.changed:
            queue = self.queues[name]
            for body, given in zip(bodies, cycle(headers), strict=False):
                self.sequence += 1
                columns: dict[str, Any] = {COLUMN_OF[header]: value for header, value in given.items()}
                if "priority" in columns:
                    columns["priority"] = int(columns["priority"])
                queue.ready.append(make_message(self.sequence, queue, body) | columns)
                queue.newest = self.sequence
            self.changed.notify_all()

    # -- the calls ---------------------------------------------------------------------------------------------------

    def open(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        self._check_fields(body, {"queue", "topic", "run", "incarnation"}, {"selector", "start"})
        queue = self._destination(body)
        group = self.groups.get(name)
        wanted = body["incarnation"]
        if group is None:
            if wanted is not None:
                raise Problem(404, "LEASE_LOST", f"group {name!r} is gone")
            group = FakeGroup(name, queue, uuid.uuid4().hex, self.ended_epoch, body["run"], self.clock())
            group.selector = body.get("selector", "")
            check_selector(group.selector)
            group.from_sequence = first_sequence(queue, body.get("start", "earliest"))
            self.groups[name] = group
        elif group.queue is not queue:
            raise Problem(409, "FOREIGN_INCARNATION", f"group {name!r} reads another queue than {queue.name!r}")
        elif group.selector != body.get("selector", ""):
            raise Problem(409, "OTHER_SELECTOR", f"group {name!r} was made with another selector")
        elif wanted is None:
            if group.acked:
                raise Problem(409, "FOREIGN_INCARNATION", f"group {name!r} belongs to another checkpoint")
            if group.run != body["run"] and self.clock() - group.heard_at < self.busy_s:
                raise Problem(409, "GROUP_BUSY", f"another reader of group {name!r} is alive")
        elif wanted != group.incarnation:
            raise Problem(409, "FOREIGN_INCARNATION", f"group {name!r} belongs to another checkpoint")
        group.epoch += 1
        group.run, group.heard_at = body["run"], self.clock()
        return {
            "group": name,
            "queue": group.queue.name,
            "incarnation": group.incarnation,
            "epoch": group.epoch,
            "acked": group.acked,
            "lease": group.newest,
            "limits": self.limits,
        } | ({"version": self.version, "features": list(FEATURES)} if self.version > 1 else {})

    def touch(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        if self.version == 1:
            raise Problem(404, "NOT_FOUND", "no such path")
        self._fence(self._group(name), body)
        self.touches += 1
        self.changed.notify_all()
        return {}

    def lease(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        most = {"max_rows": self.limits["max_rows"], "max_bytes": self.limits["max_bytes"], "wait_ms": MAX_WAIT_MS}
        for asked, limit in most.items():
            if not (asked != "wait_ms") <= body[asked] <= limit:
                raise Problem(400, "INVALID", f"'{asked}' is {body[asked]} but {limit} is the most")
        group = self._group(name)
        deadline = time.monotonic() + body["wait_ms"] / 1000
        self._fence(group, body)
        if body["after"] > group.newest:
            raise Problem(409, "FOREIGN_INCARNATION", f"group {name!r} has made leases up to {group.newest}")
        if body["after"] < group.acked:
            raise Problem(404, "LEASE_LOST", f"lease {body['after'] + 1} of group {name!r} is acknowledged")
        self._ack(group, body["after"])
        number = body["after"] + 1
        if number <= group.newest and number not in group.leases:
            raise Problem(404, "LEASE_LOST", f"lease {number} of group {name!r} was lost")
        while number not in group.leases:
            taken = self._take(group, body)
            if taken:
                group.leases[number] = taken
                group.newest = number
                break
            left = deadline - time.monotonic()
            if left <= 0 or body["until"] is not None:
                return {"lease": body["after"], "rows": 0, "bytes": 0, "first_sequence": 0, "last_sequence": 0}
            self.changed.wait(left)
            self._fence(group, body)
        return described(number, group.leases[number])

    def stat(self, name: str) -> dict[str, Any]:
        group = self._group(name)
        leased = sum(len(rows) for rows in group.leases.values())
        return {
            "group": name,
            "queue": group.queue.name,
            "incarnation": group.incarnation,
            "newest_sequence": group.queue.newest,
            "ready": len(group.queue.ready),
            "leased": leased,
            "expires_in_ms": 7 * 86_400_000,
            "oldest_age_ms": 1234 if leased or group.queue.ready else 0,
            "acked": group.acked,
            "lease": group.newest,
        }

    def describe(self, name: str, after: int, upto: int) -> dict[str, Any]:
        group = self._group(name)
        return {"leases": [described(k, rows) for k, rows in sorted(group.leases.items()) if after < k <= upto]}

    def ack(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        group = self._group(name)
        self._fence(group, body)
        self._ack(group, body["lease"])
        return {"acked": group.acked}

    def release(self, name: str, body: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
        group = self._group(name)
        self._check_fields(body, set(), {"epoch"})
        if "epoch" in body:
            self._fence(group, body)
        del self.groups[name]
        self.ended_epoch = max(self.ended_epoch, group.epoch)
        rows = [row for lease in group.leases.values() for row in lease]
        group.queue.leased = [row for row in group.queue.leased if row not in rows]
        group.queue.ready = sorted(rows + group.queue.ready, key=lambda row: row["sequence"])
        return {"released": len(rows)}

    def lease_rows(self, name: str, number: int, query: dict[str, str]) -> bytes:
        self.fetches.append(f"{name}/{number}?{query['lo']}-{query['hi']}")
        self._check_fields(query, ROWS_FIELDS | {"lo", "hi"}, {"part", "of", "max_body_bytes", "large", "incarnation"})
        group = self._group(name, query)
        if number not in group.leases:
            raise Problem(404, "LEASE_LOST", f"lease {number} of group {name!r} is gone")
        rows = group.leases[number][int(query["lo"]) : int(query["hi"])]
        part, of = int(query.get("part", 0)), int(query.get("of", 1))
        rows = [row for row in rows if zlib.crc32(str(row["group_id"] or row["sequence"]).encode()) % of == part]
        return arrow_stream([self._bounded(row, query) for row in rows], query)

    @staticmethod
    def _bounded(row: dict[str, Any], query: dict[str, str]) -> dict[str, Any]:
        limit = int(query.get("max_body_bytes", 1 << 40))
        if len(row["body"]) <= limit:
            return row
        if query["large"] == "refuse":
            detail = f"message {row['message_id']} has a body of {len(row['body'])} bytes, above the {limit} allowed"
            raise Problem(409, "BODY_TOO_LARGE", detail)
        return {**row, "body": b"", "body_bytes": len(row["body"])}

    def body(self, name: str, number: int, sequence: int, query: dict[str, str]) -> bytes:
        self._check_fields(query, set(), {"incarnation"})
        group = self._group(name, query)
        if number not in group.leases:
            raise Problem(404, "LEASE_LOST", f"lease {number} of group {name!r} is gone")
        (row,) = [row for row in group.leases[number] if row["sequence"] == sequence]
        return bytes(row["body"])

    def queue_rows(self, name: str, query: dict[str, str]) -> bytes:
        self.fetches.append(f"{name}?{query['after']}-{query['until']}")
        self.asked = query
        self._check_fields(query, ROWS_FIELDS | {"after", "until", "max_rows"}, {"selector", "since_ms", "before_ms"})
        queue = self._queue(name)
        rows = sorted(queue.ready + queue.leased, key=lambda row: row["sequence"])
        since, before = int(query.get("since_ms", 0)), int(query.get("before_ms", 1 << 62))
        chosen = [
            row
            for row in rows
            if int(query["after"]) < row["sequence"] <= int(query["until"])
            and since <= time_ms(row) < before
            and passes(row, query.get("selector", ""))
        ]
        return arrow_stream(chosen[: int(query["max_rows"])], query)

    def queue_stat(self, name: str) -> dict[str, Any]:
        queue = self._queue(name)
        held = [row["sequence"] for row in queue.ready + queue.leased]
        return {
            "name": name,
            "address": queue.address,
            "message_count": len(held),
            "delivering_count": len(queue.leased),
            "oldest_sequence": min(held, default=0),
            "newest_sequence": queue.newest,
        }

    def _check_fields(self, given: Mapping[str, Any], known: set[str], newer: set[str]) -> None:
        if self.version > 1:
            known = known | (newer - self.unknown)
        for name in given:
            if name not in known:
                raise Problem(400, "INVALID", f"'{name}' is unknown; leave it out", unknown=name)

    def _destination(self, body: dict[str, Any]) -> FakeQueue:
        if "topic" in body:
            self.make_queue(f"subscription.{body['topic']}", body["topic"])
            return self.queues[f"subscription.{body['topic']}"]
        return self._queue(body["queue"])

    def _queue(self, name: str) -> FakeQueue:
        if name not in self.queues:
            raise Problem(404, "NOT_FOUND", f"queue {name!r} does not exist")
        return self.queues[name]

    def _group(self, name: str, query: Mapping[str, str] = MappingProxyType({})) -> FakeGroup:
        group = self.groups.get(name)
        if group is None or query.get("incarnation", group.incarnation) != group.incarnation:
            raise Problem(404, "LEASE_LOST", f"group {name!r} is gone")
        if self.version == 1:
            group.heard_at = self.clock()
        return group

    def _fence(self, group: FakeGroup, body: Mapping[str, Any]) -> None:
        if body["epoch"] != group.epoch:
            raise Problem(409, "FENCED", f"a newer reader has taken over group {group.name!r}")
        group.heard_at = self.clock()

    def _ack(self, group: FakeGroup, upto: int) -> None:
        for number in [number for number in group.leases if number <= upto]:
            gone = {row["sequence"] for row in group.leases.pop(number)}
            group.queue.leased = [row for row in group.queue.leased if row["sequence"] not in gone]
        group.acked = max(group.acked, upto)

    def _take(self, group: FakeGroup, body: dict[str, Any]) -> list[dict[str, Any]]:
        taken: list[dict[str, Any]] = []
        size = 0
        queue, until = group.queue, body["until"]
        for row in list(queue.ready):
            if len(taken) == body["max_rows"] or (until is not None and row["sequence"] > until):
                break
            if row["sequence"] < group.from_sequence or not passes(row, group.selector):
                continue
            size += len(row["body"])
            if taken and size > body["max_bytes"]:
                break
            taken.append(row)
            queue.ready.remove(row)
        queue.leased += taken
        return taken


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._open: set[Any] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that vanish are what the tests are about."""

    def cut_all(self) -> None:
        for request in list(self._open):
            self.shutdown_request(request)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fake: FakeBroker

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            self._check_login()
            with self.fake.changed:
                answer = self._route(json.loads(body) if body else {})
        except Problem as problem:
            document: dict[str, Any] = {
                "title": "no",
                "detail": problem.detail,
                "condition": problem.condition,
                "code": "DMQ6000",
            }
            if problem.unknown:
                document["faults"] = [{"field": problem.unknown, "message": "is unknown; leave it out"}]
            self._send(problem.status, "application/problem+json", json.dumps(document).encode())
            return
        if isinstance(answer, bytes):
            self._send(200, "application/vnd.apache.arrow.stream", answer)
        else:
            self._send(200, "application/json", json.dumps(answer).encode())

    def _check_login(self) -> None:
        token = b64encode(f"{self.fake.user}:{self.fake.password}".encode()).decode()
        if self.headers.get("Authorization") != f"Basic {token}":
            raise Problem(401, "LOGIN_REFUSED", "login required")
        if self.fake.forbidden:
            raise Problem(403, "FORBIDDEN", "consume on 'q' is needed")

    def _route(self, body: dict[str, Any]) -> dict[str, Any] | bytes:
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query, keep_blank_values=True).items()}
        match self.command, [unquote(segment) for segment in parts.path.split("/")[1:]]:
            case "POST", ["api", "v1", "leases", group, "open"]:
                return self.fake.open(group, body)
            case "POST", ["api", "v1", "leases", group, "lease"]:
                return self.fake.lease(group, body)
            case "POST", ["api", "v1", "leases", group, "ack"]:
                return self.fake.ack(group, body)
            case "POST", ["api", "v1", "leases", group, "touch"]:
                return self.fake.touch(group, body)
            case "POST", ["api", "v1", "leases", group, "release"]:
                return self.fake.release(group, body)
            case "GET", ["api", "v1", "leases", group, "stat"]:
                return self.fake.stat(group)
            case "GET", ["api", "v1", "leases", group, "describe"]:
                return self.fake.describe(group, int(query["from"]), int(query["to"]))
            case "GET", ["api", "v1", "leases", group, number, "rows"]:
                return self.fake.lease_rows(group, int(number), query)
            case "GET", ["api", "v1", "leases", group, number, "rows", sequence, "body"]:
                return self.fake.body(group, int(number), int(sequence), query)
            case "GET", ["api", "v1", "leases"]:
                return {"leases": [self.fake.stat(name) for name in self.fake.groups]}
            case "GET", ["api", "v1", "queues", queue, "rows"]:
                return self.fake.queue_rows(queue, query)
            case "GET", ["api", "v1", "queues", queue]:
                return self.fake.queue_stat(queue)
            case "GET", ["health", "ready"]:
                return {"status": "UP"}
            case _:
                raise Problem(404, "NOT_FOUND", f"no such path: {parts.path}")

    def _send(self, status: int, kind: str, content: bytes) -> None:
        cut = self.fake.cut_after_bytes
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if cut is not None and kind.endswith("stream"):
            self.fake.cut_after_bytes = None
            self.wfile.write(content[:cut])
            self.close_connection = True
            return
        self.wfile.write(content)
