"""Connections break and the broker is killed while clients are at work; what was promised must come true.

    python -m tests.client.breaks --kills 50 --cuts 100 --mode CLIENT --surface blocking --backup

Two connections consume a queue, or one a durable subscription (DUPS_OK, which batches of topics alone), and one
produces, all by way of ``failover:``. A cut breaks all connections after so many bytes, amid a frame as a rule. With a
backup each client has a spare connection by another way, which cuts spare; a kill ends both. With a listener consumers
do not ask for messages.
"""

import argparse
import asyncio
import logging
import random
import sys
import tempfile
import traceback
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from delosmq.client import (
    AckMode,
    ClientConnection,
    ClientSession,
    MessageConsumer,
    MessageProducer,
    TransactionInDoubtError,
    TransactionRolledBackError,
    XaResource,
    XaSession,
    aio,
    connect,
)
from delosmq.testing import BrokerFixture, TcpProxy
from tests.chaos.broker_process import PASSWORD, USER, BrokerProcess
from tests.client.coordinator import CoordinatedSession
from tests.client.ledger import Arrival, Ledger
from tests.client.listening import Listener

SURFACES = ("asyncio", "blocking")
BATCH = 5
AHEAD = 60
"""How many messages may be there that no consumer has seen."""
LARGE_EVERY = 20
LARGE = "x" * 30_000
AGAIN_AT_ONCE = 0.2
"""How many cuts are followed by one amid the new connections."""
PATIENCE_S = 300.0
POLL_S = 0.05
OPTIONS = (
    "initialReconnectDelay=5&maxReconnectDelay=50&randomize=false&jms.prefetchPolicy.all=10&jms.redeliveryPolicy.redeliveryDelay=1"
    "&jms.redeliveryPolicy.initialRedeliveryDelay=1"
)
BLOCKING = (ClientConnection, ClientSession, XaSession, MessageConsumer, MessageProducer)
XA = "XA"
"""A mode by the side of those of acknowledgement: TRANSACTED by branches of distributed transactions."""
MODES = (*(mode.name for mode in AckMode), XA)


class Threaded:
    """A blocking connection, session, consumer or producer, of which each call is made in a thread and awaited."""

    def __init__(self, inner: object) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if isinstance(method, XaResource):
            return Threaded(method)

        async def call(*given: object, **named: object) -> object:
            result = await asyncio.to_thread(method, *given, **named)
            return Threaded(result) if type(result) in BLOCKING else result

        return call


class BreakableBroker(ABC):
    """
    Attributes:
        port: for OpenWire.
    """

    port: int
    user: str
    password: str

    @abstractmethod
    def kill(self) -> None:
        """It is gone, and started again."""


class KilledProcess(BreakableBroker):
    """A process that ends by ``kill -9``."""

    def __init__(self, broker: BrokerProcess) -> None:
        self._broker = broker
        self.port = broker.openwire_port
        self.user, self.password = USER, PASSWORD

    def kill(self) -> None:
        self._broker.kill()
        self._broker.start()


class CrashedFixture(BreakableBroker):
    """A broker of the test kit: quicker, and what was not synced is lost as well."""

    def __init__(self, broker: BrokerFixture) -> None:
        self._broker = broker
        self.port = broker.openwire_port
        self.user, self.password = broker.user, broker.password

    def kill(self) -> None:
        self._broker.crash()
        self._broker.start()


class BreaksSeen(logging.Handler):
    """Counts what clients notice of breaks, by what they log.

    Attributes:
        clients_at: how many are connected by each way, by its port.
    """

    def __init__(self, ledger: Ledger, ways: Sequence[TcpProxy], clients: int) -> None:
        super().__init__()
        self._ledger = ledger
        self.clients_at = Counter({ways[0].port: clients})

    def emit(self, record: logging.LogRecord) -> None:
        said = record.getMessage()
        self._ledger.noticed += said.startswith("DMQ9068")
        if said.startswith("DMQ9069"):
            self._ledger.again += 1
            port = int(said.rpartition(":")[2])
            self._ledger.ways.add(port)
            self.clients_at[port] += 1


class Load:
    """Clients at work in one acknowledgement mode, by one surface."""

    def __init__(
        self,
        broker: BreakableBroker,
        ways: Sequence[TcpProxy],
        mode_name: str,
        surface: str,
        chance: random.Random,
        *,
        listens: bool,
    ) -> None:
        self._listens = listens
        self._xa = mode_name == XA
        mode = AckMode.TRANSACTED if self._xa else AckMode[mode_name]
        self.ledger = Ledger(mode, listens=listens)
        self._broker = broker
        listed = ",".join(f"tcp://127.0.0.1:{way.port}" for way in ways)
        self._url = f"failover:({listed})?{OPTIONS}{'&backup=true' if len(ways) > 1 else ''}"
        self._ways = ways
        self._mode = mode
        self._surface = surface
        self._chance = chance
        self._ends = asyncio.Event()
        self._all_sent = asyncio.Event()
        self._next = 0
        topic = mode == AckMode.DUPS_OK
        self.name = f"breaks.{mode_name}.{surface}"
        self._destination = f"topic://{self.name}" if topic else self.name
        self._consumers = 1 if topic else 2
        self._ready = asyncio.Barrier(self._consumers + 1)

    @asynccontextmanager
    async def _connection(self, client_id: str = "") -> AsyncIterator[Any]:
        login: dict[str, Any] = {"user": self._broker.user, "password": self._broker.password, "client_id": client_id}
        if self._surface == "asyncio":
            async with aio.connect(self._url, **login) as connection:
                yield connection
            return
        made = Threaded(await asyncio.to_thread(connect, self._url, **login))
        try:
            yield made
        finally:
            await made.close()

    async def run(self, breaking: "Breaking") -> None:
        seen = BreaksSeen(self.ledger, self._ways, self._consumers + 1)
        logger = logging.getLogger("delosmq.client")
        level = logger.level
        logger.addHandler(seen)
        logger.setLevel(logging.INFO)
        try:
            async with asyncio.TaskGroup() as group:
                consumers = [group.create_task(self._consume(client)) for client in range(self._consumers)]
                producing = group.create_task(self._produce())
                await breaking.break_all(self.ledger, seen.clients_at)
                self._ends.set()
                await producing
                self._all_sent.set()
                await asyncio.wait(consumers, timeout=PATIENCE_S)
            await self._look()
        finally:
            logger.removeHandler(seen)
            logger.setLevel(level)

    async def _session(self, connection: Any, user: str, mode: AckMode) -> Any:
        if self._xa:
            return CoordinatedSession(await connection.create_xa_session(), f"{self.name} {user}")
        return await connection.create_session(mode)

    async def _begin(self, session: Any) -> None:
        if self._xa:
            await session.begin()

    # --- producing

    async def _produce(self) -> None:
        async with self._connection() as connection:
            session = await self._session(connection, "producer", self._producing_mode)
            producer = await session.create_producer(self._destination)
            await self._ready.wait()
            while not self._ends.is_set():
                if len(self.ledger.under_way) > AHEAD:
                    await asyncio.sleep(0.001)
                elif self._mode == AckMode.TRANSACTED:
                    await self._send_batch(session, producer)
                else:
                    await producer.send(*self._message(number := self._number()))
                    self.ledger.confirmed.add(number)

    @property
    def _producing_mode(self) -> AckMode:
        return AckMode.TRANSACTED if self._mode == AckMode.TRANSACTED else AckMode.AUTO

    def _number(self) -> int:
        self._next += 1
        self.ledger.sends(self._next)
        return self._next

    def _message(self, number: int) -> tuple[str]:
        return (f"{number} {LARGE if number % LARGE_EVERY == 0 else ''}",)

    async def _send_batch(self, session: Any, producer: Any) -> None:
        await self._begin(session)
        batch = [self._number() for _ in range(BATCH)]
        for number in batch:
            await producer.send(*self._message(number))
        if self._chance.random() < 0.1:
            await session.rollback()
            self.ledger.takes_back(batch)
            return
        try:
            await session.commit()
        except TransactionInDoubtError:
            self.ledger.doubts(batch)
        except TransactionRolledBackError:
            self.ledger.takes_back(batch)
        else:
            self.ledger.confirmed.update(batch)

    # --- consuming

    async def _consume(self, client: int) -> None:
        topic = self._mode == AckMode.DUPS_OK
        async with self._connection(f"client-{self._surface}" if topic else "") as connection:
            session = await self._session(connection, f"consumer {client}", self._mode)
            if topic:
                consumer = await session.create_durable_consumer(self._destination, "s")
            else:
                consumer = await session.create_consumer(self._destination)
            producer = await session.create_producer(f"{self.name}.out")
            await self._ready.wait()
            if self._listens:
                await self._listen(client, session, consumer, producer)
                return
            while not await self._take_some(client, session, consumer, producer):
                pass

    async def _listen(self, client: int, session: Any, consumer: Any, producer: Any) -> None:
        async def settle(number: int, message: Any) -> None:
            if self._mode == AckMode.TRANSACTED:
                await producer.send(str(number))
            await self._settle(session, [message])
            await self._begin(session)

        await self._begin(session)
        by_return = self._mode in (AckMode.AUTO, AckMode.DUPS_OK)
        await Listener(self.ledger, client, settle, by_return=by_return).begin(consumer, self._surface)
        seen = -1
        while not self._all_sent.is_set() or self.ledger.missing() or seen != self.ledger.received:
            seen = self.ledger.received
            await asyncio.sleep(POLL_S)

    async def _take_some(self, client: int, session: Any, consumer: Any, producer: Any) -> bool:
        """Whether all is done: everything has come, and nothing more comes."""
        messages = []
        await self._begin(session)
        some = 1 if self._mode in (AckMode.AUTO, AckMode.DUPS_OK) else self._chance.randint(1, BATCH)
        for _ in range(some):
            over, noticed = self.ledger.over, self.ledger.noticed
            message = await consumer.receive(POLL_S)
            if message is None:
                break
            number = int(message.text.partition(" ")[0])
            self.ledger.arrived(number, Arrival(client, over, noticed))
            messages.append((number, message))
            if self._mode == AckMode.TRANSACTED:
                await producer.send(str(number))
        await self._settle(session, [message for _, message in messages])
        for number, _ in messages:
            self.ledger.acknowledged(number, client)
        return not messages and self._all_sent.is_set() and not self.ledger.missing()

    async def _settle(self, session: Any, messages: list[Any]) -> None:
        if self._mode == AckMode.TRANSACTED:
            await self._end_transaction(session)
        elif self._mode == AckMode.CLIENT and messages:
            await acknowledge(messages[-1], self._surface)
        elif self._mode == AckMode.INDIVIDUAL:
            for message in messages:
                await acknowledge(message, self._surface)

    async def _end_transaction(self, session: Any) -> None:
        if self._chance.random() < 0.1:
            await session.rollback()
            return
        with suppress(TransactionInDoubtError, TransactionRolledBackError):
            await session.commit()

    # --- afterwards

    async def _look(self) -> None:
        """What is where, when all is done."""
        async with self._connection() as connection:
            session = await connection.create_session()
            self.ledger.dead = await taken(session, "DLQ")
            if self._mode != AckMode.DUPS_OK:
                self.ledger.left = await taken(session, self.name)
            if self._mode == AckMode.TRANSACTED:
                self.ledger.copied = await taken(session, f"{self.name}.out")


async def acknowledge(message: Any, surface: str) -> None:
    if surface == "asyncio":
        message.acknowledge()
    else:
        await asyncio.to_thread(message.acknowledge)


async def taken(session: Any, queue: str) -> list[int]:
    """All that is in a queue; the broker says when there is nothing more."""
    found = []
    consumer = await session.create_consumer(f"{queue}?consumer.prefetchSize=0")
    while (message := await consumer.receive(0)) is not None:
        found.append(int(message.text.partition(" ")[0]))
    await consumer.close()
    return found


class Breaking:
    """When what breaks."""

    def __init__(
        self,
        broker: BreakableBroker,
        ways: Sequence[TcpProxy],
        chance: random.Random,
        *,
        kills: int,
        cuts: int,
        longest_s: float,
    ) -> None:
        self._broker = broker
        self._ways = ways
        self._chance = chance
        self._order = [True] * kills + [False] * cuts
        self._longest_s = longest_s
        chance.shuffle(self._order)

    async def break_all(self, ledger: Ledger, clients_at: "Counter[int]") -> None:
        clients = clients_at.total()
        for kill in self._order:
            async with asyncio.timeout(PATIENCE_S):
                await self._break(ledger, clients, clients_at, kill=kill)

    async def _break(self, ledger: Ledger, clients: int, clients_at: "Counter[int]", *, kill: bool) -> None:
        enough = len(ledger.arrivals) + self._chance.randint(1, 40)
        while len(ledger.arrivals) < enough:  # noqa: ASYNC110 - what clients do is seen from outside
            await asyncio.sleep(0.001)
        await asyncio.sleep(self._chance.uniform(0, self._longest_s))
        before = ledger.noticed
        ledger.breaks += 1
        if kill:
            clients_at.clear()
            await asyncio.to_thread(self._broker.kill)
        elif len(self._ways) > 1:
            clients = await self._cut_one_way(clients, clients_at)
        else:
            await cut_after(self._ways[0], self._chance.randint(1, 20_000))
            if self._chance.random() < AGAIN_AT_ONCE:
                await cut_after(self._ways[0], self._chance.randint(1, 2_000))
        while ledger.noticed < before + clients or ledger.noticed > ledger.again:  # noqa: ASYNC110 - likewise
            await asyncio.sleep(0.001)
        ledger.over += 1

    async def _cut_one_way(self, clients: int, clients_at: "Counter[int]") -> int:
        """Cuts the way by which most clients are connected, or all where that is not known of each, as one of them was
        connected twice since the last break. Gives how many clients have to notice."""
        if clients_at.total() != clients:
            clients_at.clear()
            for way in self._ways:
                way.cut()
            return clients
        way = max(self._ways, key=lambda one: clients_at[one.port])
        clients = clients_at.pop(way.port)
        await cut_after(way, self._chance.randint(1, 20_000))
        return clients


async def cut_after(way: TcpProxy, size_bytes: int) -> None:
    """Returns when the connections are broken."""
    way.cut_after(size_bytes)
    await asyncio.to_thread(way.wait_for_cut, PATIENCE_S)


async def run(
    broker: BreakableBroker,
    mode_name: str,
    surface: str,
    *,
    kills: int,
    cuts: int,
    seed: int,
    longest_s: float = 0.1,
    backup: bool = False,
    listens: bool = False,
) -> Ledger:
    """One load, with all its breaks."""
    chance = random.Random(f"{seed} {mode_name} {surface}")
    with ExitStack() as stack:
        ways = [stack.enter_context(TcpProxy(broker.port)) for _ in range(1 + backup)]
        load = Load(broker, ways, mode_name, surface, chance, listens=listens)
        await load.run(Breaking(broker, ways, chance, kills=kills, cuts=cuts, longest_s=longest_s))
    return load.ledger


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.client.breaks", description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--cuts", type=int, default=100)
    parser.add_argument("--mode", choices=MODES, action="append", help="all without one")
    parser.add_argument("--surface", choices=SURFACES, action="append", help="both without one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--backup", action="store_true", help="with spare connections")
    parser.add_argument("--listener", action="store_true", help="by listeners, not by receive()")
    wanted = parser.parse_args(given)
    code = 0
    for name in wanted.mode or MODES:
        for surface in wanted.surface or SURFACES:
            wrong = run_on_process(name, surface, wanted)
            sys.stdout.write("".join(f"  WRONG: {one}\n" for one in wrong))
            sys.stdout.flush()
            code = code or bool(wrong)
    return int(code)


def run_on_process(mode_name: str, surface: str, wanted: argparse.Namespace) -> list[str]:
    """What went wrong with a broker in a process of its own."""
    with tempfile.TemporaryDirectory() as directory:
        process = BrokerProcess(Path(directory) / "broker", "1M")
        process.start()
        broker = KilledProcess(process)
        try:
            ledger = asyncio.run(
                run(
                    broker,
                    mode_name,
                    surface,
                    kills=wanted.kills,
                    cuts=wanted.cuts,
                    seed=wanted.seed,
                    backup=wanted.backup,
                    listens=wanted.listener,
                )
            )
        except Exception:
            return [f"{surface} {mode_name}: {traceback.format_exc()}"]
        finally:
            process.end()
    sys.stdout.write(f"{surface} {mode_name}: {ledger.summary()}\n")
    return ledger.broken_promises()


if __name__ == "__main__":
    sys.exit(main())
