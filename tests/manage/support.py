"""The HTTP API on a real engine, driven in-process: a loop turn is a tick, and the test decides when the disk syncs."""

import asyncio
import io
import logging
from collections.abc import Callable
from typing import Any

import httpx
import pyarrow

from delosmq.engine.base.events import EngineEvents
from delosmq.engine.broker import EngineBroker
from delosmq.engine.log.log import Batch, Store
from delosmq.engine.log.ports import Replay, StateSource, StoreEvents
from delosmq.manage.control.host import Host, Reason
from delosmq.manage.http.app import HttpApi
from delosmq.model.conversion import Conversions
from delosmq.model.errors import InvariantError
from delosmq.model.ids import MonotonicNs, Position, WallMs
from delosmq.model.message import MULTICAST, TEXT_BODY, Home, Message
from delosmq.model.ports import Clock, Random
from delosmq.model.settings import AddressMatch, BrokerSettings, DivertSettings, QueueSettings, SecurityMatch
from delosmq.security.access import PERMISSIONS, AccessControl
from delosmq.security.passwords import hash_password
from delosmq.server.passwords import PasswordChecks
from delosmq.sessions.login import ADMIT_ALL, LoginPort
from delosmq.sessions.outbox import Gate
from delosmq.wire.openwire.conversion import OpenWireConversion
from delosmq.wire.stomp.conversion import StompConversion

START_MS = 1_700_000_000_000
PASSWORD = "correct horse"
STORED = hash_password(PASSWORD, b"sixteen bytes...")
BROKER_URL = "http://broker"

ROLES = {
    "admin": frozenset({"admin"}),
    "viewer": frozenset({"viewer"}),
    "reader": frozenset({"reader"}),
    "browser": frozenset({"browser"}),
}
SECURITY = (
    SecurityMatch(
        "#",
        {
            **{name: frozenset({"admin"}) for name in PERMISSIONS},
            "view": frozenset({"admin", "viewer"}),
            "consume": frozenset({"admin", "reader"}),
            "browse": frozenset({"admin", "browser"}),
        },
    ),
    SecurityMatch("secret.#", {name: frozenset({"admin"}) for name in PERMISSIONS}),
)


class SteppedClock(Clock):
    def __init__(self) -> None:
        self.now_ms = START_MS

    def wall_ms(self) -> WallMs:
        return WallMs(self.now_ms)

    def monotonic_ns(self) -> MonotonicNs:
        return MonotonicNs(self.now_ms * 1_000_000)


class CountingRandom(Random):
    def __init__(self) -> None:
        self.count = 0

    def token(self, size_bytes: int) -> str:
        self.count += 1
        return f"token{self.count}"

    def fraction(self) -> float:
        self.count += 1
        return self.count * 0.25 % 1


class SlowStore(Store):
    """Syncs at each flush, unless ``held``."""

    def __init__(self) -> None:
        self.held = False
        self.last = Position(0)
        self.events: StoreEvents | None = None

    def recover(self, replay: Replay) -> Position:
        return Position(0)

    def append(self, batch: Batch) -> None:
        self.last = batch.position

    def flush(self) -> None:
        if not self.held and self.events is not None:
            self.events.on_synced(self.last)

    def read(self, home: Home) -> bytes:
        raise AssertionError("nothing is paged")

    def attach(self, events: StoreEvents, state: StateSource) -> None:
        self.events = events


class LoopHost(Host, StoreEvents):
    """Ticks in the next turn of the loop."""

    def __init__(self, diverts: tuple[DivertSettings, ...]) -> None:
        self.clock = SteppedClock()
        self.store = SlowStore()
        self.gate = Gate()
        settings = BrokerSettings(
            address_settings=(
                AddressMatch(
                    "quiet.#", {"enable_metrics": False, "max_delivery_attempts": 5, "default_max_consumers": 9}
                ),
                AddressMatch("quiet.*", {"default_max_consumers": 2}),
                AddressMatch("manual.#", {"auto_create_addresses": False}),
            ),
            diverts=diverts,
            queues=(
                QueueSettings("q", "q"),
                QueueSettings("orders.archive", "orders", MULTICAST),
                QueueSettings("secret.q", "secret.q"),
            ),
        )
        self.broker = EngineBroker(
            settings,
            self.store,
            clock=self.clock,
            random=CountingRandom(),
            events=EngineEvents(),
            conversions=Conversions({"stomp": StompConversion(), "openwire": OpenWireConversion()}),
        )
        self.reasons: list[Reason] = []
        self.fatal: InvariantError | None = None
        self.store.attach(self, self.broker.state)
        self.broker.start()
        self.store.flush()
        self._scheduled = False

    def changed(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._tick)

    def _tick(self) -> None:
        self._scheduled = False
        again = self.broker.tick()
        self.store.flush()
        if again:
            self.changed()

    def troubles(self) -> list[Reason]:
        return self.reasons

    def broken(self, error: InvariantError) -> None:
        self.fatal = error

    def on_synced(self, position: Position) -> None:
        self.broker.log.synced = position
        self.gate.on_synced(position)

    def on_space(self, low: bool) -> None:
        raise AssertionError("not part of these tests")

    def on_full(self, full: bool) -> None:
        raise AssertionError("not part of these tests")

    def on_failure(self, error: Exception) -> None:
        raise error


class Api:
    """The API, a client for each user (``admin`` is the default), and the engine behind it."""

    def __init__(self, diverts: tuple[DivertSettings, ...] = (), logins: LoginPort = ADMIT_ALL) -> None:
        self.host = LoopHost(diverts)
        self.broker = self.host.broker
        self.access = AccessControl(dict.fromkeys(ROLES, STORED), dict(ROLES), SECURITY, cache_key=b"k" * 32)
        for user in ROLES:  # as if verified before: hashing takes its time
            self.access.finish(self.access.attempt(user, PASSWORD), True)
        self.passwords = PasswordChecks(asyncio.get_running_loop())
        self.app = HttpApi(
            self.broker,
            self.host,
            self.host.gate,
            access=self.access,
            passwords=self.passwords,
            conversions=Conversions({"stomp": StompConversion(), "openwire": OpenWireConversion()}),
            version="9.9",
            logger=logging.getLogger("tests.http"),
            logins=logins,
        )
        self.clients = {user: self.client(user, PASSWORD) for user in ROLES}
        self.anonymous = httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url=BROKER_URL)

    def client(self, user: str, password: str) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(self.app)
        return httpx.AsyncClient(transport=transport, base_url=BROKER_URL, auth=(user, password))

    async def close(self) -> None:
        for client in (*self.clients.values(), self.anonymous):
            await client.aclose()
        self.passwords.close()

    async def get(self, path: str, *, user: str = "admin") -> httpx.Response:
        return await self.clients[user].get(path)

    async def post(self, path: str, body: object, *, user: str = "admin") -> httpx.Response:
        return await self.clients[user].post(path, json=body)

    async def patch(self, path: str, body: object, *, user: str = "admin") -> httpx.Response:
        return await self.clients[user].patch(path, json=body)

    def message(self, address: str, body: bytes, **fields: Any) -> Message:
        """A durable text message."""
        wanted: dict[str, Any] = {"body_kind": TEXT_BODY, "durable": True, "user": "producer"} | fields
        return Message(
            address, "stomp/12", wanted.pop("head", b""), body, timestamp_ms=self.host.clock.wall_ms(), **wanted
        )

    def send(self, address: str, bodies: str, **fields: Any) -> None:
        """Sends each word as a message and lets the broker work."""
        for body in bodies.split():
            self.broker.producers.send(self.message(address, body.encode(), **fields))
        self.host.changed()

    async def settle(self) -> None:
        """Lets everything run that is ready to run."""
        for _ in range(50):
            await asyncio.sleep(0)

    # -- leases --------------------------------------------------------------------------------------------------

    async def open(self, group: str = "g", **fields: object) -> dict[str, Any]:
        """Opens a group on queue ``q``."""
        wanted: dict[str, object] = {"queue": "q", "run": "run-1", "incarnation": None, **fields}
        return succeeded(await self.post(f"/api/v1/leases/{group}/open", wanted))

    async def lease(self, after: int, epoch: int, *, group: str = "g", **fields: object) -> httpx.Response:
        """Asks for the lease after ``after``, without waiting unless told."""
        wanted: dict[str, object] = {
            "after": after,
            "max_rows": 1000,
            "max_bytes": 1 << 20,
            "wait_ms": 0,
            "epoch": epoch,
            "until": None,
            **fields,
        }
        return await self.post(f"/api/v1/leases/{group}/lease", wanted)


async def eventually(condition: Callable[[], bool]) -> None:
    """Lets the loop turn until something is so; the test's own time limit ends it."""
    while True:
        if condition():
            return
        await asyncio.sleep(0)


def succeeded(response: httpx.Response) -> dict[str, Any]:
    """The JSON object of a success."""
    assert response.status_code in (200, 201), response.text
    assert response.headers["content-type"] == "application/json"
    found: dict[str, Any] = response.json()
    return found


def problem(response: httpx.Response) -> tuple[int, str, str]:
    """Status, code and condition of a problem document."""
    assert response.headers["content-type"] == "application/problem+json", response.text
    found = response.json()
    assert found["status"] == response.status_code
    assert found["type"] == "about:blank"
    assert found["title"]
    assert found["detail"]
    return response.status_code, found["code"], found["condition"]


def table(response: httpx.Response) -> pyarrow.Table:
    """The rows of an Arrow answer."""
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/vnd.apache.arrow.stream"
    with pyarrow.ipc.open_stream(io.BytesIO(response.content)) as reader:
        return reader.read_all()


def bodies(response: httpx.Response) -> str:
    """The bodies of an Arrow answer, as words."""
    return " ".join(body.decode() for body in table(response).column("body").to_pylist())
