"""Runs inside the interpreter under test: the engine alone, with records and without sockets; prints JSON.

`benchmarks.engine` starts it, once in the pure and once in the compiled form. What stands around the engine (store,
consumer) is made of functions of the interpreter written in C, so that it costs next to nothing beside a compiled one.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from delosmq.cli.run import GC_THRESHOLDS
from delosmq.engine import broker as engine_module
from delosmq.engine.base.events import EngineEvents
from delosmq.engine.broker import EngineBroker
from delosmq.engine.log.log import Store
from delosmq.engine.log.ports import Replay, StateSource, StoreEvents
from delosmq.engine.queues.consumer import PLAIN, Consumer, ConsumerOptions, ConsumerPort
from delosmq.engine.queues.credit import MessageCredit
from delosmq.model.errors import BrokerError
from delosmq.model.ids import MonotonicNs, Position, WallMs
from delosmq.model.message import ANYCAST, Home, Message
from delosmq.model.ports import Clock, Random
from delosmq.model.settings import BrokerSettings, JournalSettings, QueueSettings
from delosmq.selectors.selector import parse_selector
from delosmq.storage.journal import open_journal
from delosmq.storage.port import ServedStore

BODY = b"x" * 1024
HEAD = b"destination:q\n"
BATCH = 256
"""Messages in a turn: what one queue hands out in a tick."""
PREFETCH = 1_000
NOW = WallMs(time.time_ns() // 1_000_000)


class MachineClock(Clock):
    """The machine's, set forward at will."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def wall_ms(self) -> WallMs:
        return WallMs(time.time_ns() // 1_000_000 + self.ahead_ms)

    def monotonic_ns(self) -> MonotonicNs:
        return MonotonicNs(time.monotonic_ns() + self.ahead_ms * 1_000_000)


class Tokens(Random):
    """Numbers."""

    def token(self, size_bytes: int) -> str:
        return str(size_bytes)

    def fraction(self) -> float:
        return 0.5


class DroppingStore(Store):
    """Takes every batch, keeps none."""

    append = deque[Any](maxlen=0).append  # type: ignore[assignment]

    def recover(self, replay: Replay) -> Position:
        return Position(0)

    def flush(self) -> None: ...

    def read(self, home: Home) -> bytes:
        return b""


class Taker(ConsumerPort):
    """Notes what it gets."""

    taken: list[Any] = []  # noqa: RUF012 - one list for all, as `deliver` has to be a function in C
    deliver = taken.append  # type: ignore[assignment]
    has_room = itertools.repeat(True).__next__

    def closed_by_broker(self, reason: BrokerError) -> None: ...


class Unheard(StoreEvents):
    """Hears what a store reports."""

    def on_synced(self, position: Position) -> None: ...

    def on_space(self, low: bool) -> None: ...

    def on_full(self, full: bool) -> None: ...

    def on_failure(self, error: Exception) -> None:
        raise error


class NoState(StateSource):
    """A state block of nothing."""

    def state(self) -> bytes:
        return b"{}"


class Engine:
    """A broker with ``queues`` queues."""

    def __init__(
        self, queues: int = 1, store: ServedStore | None = None, clock: Clock | None = None, **settings: Any
    ) -> None:
        self.clock = MachineClock()
        self.names = [f"q{k}" for k in range(queues)]
        made = tuple(QueueSettings(name, name, ANYCAST) for name in self.names)
        self.served = store
        self.store: Store = store if store is not None else DroppingStore()
        parts: dict[str, Any] = {"clock": clock or self.clock, "random": Tokens(), "events": EngineEvents()}
        self.broker = EngineBroker(BrokerSettings(queues=made, **settings), self.store, **parts)
        self.consumers: dict[int, Consumer] = {}
        if store is not None:
            store.attach(Unheard(), NoState())
        self.broker.start()

    def attach(self, consumers: int = 1, selector: str = "", prefetch: int = PREFETCH) -> None:
        """Puts consumers on every queue."""
        for name in self.names:
            for _ in range(consumers):
                options = ConsumerOptions(selector=parse_selector(selector)) if selector else PLAIN
                credit = MessageCredit(prefetch)
                consumer = self.broker.consumers.subscribe(name, Taker(), credit, routing=ANYCAST, options=options)
                self.consumers[id(consumer.in_delivery)] = consumer

    def message(self, name: str, durable: bool, **more: Any) -> Message:
        """1 KB of body."""
        return Message(name, "stomp/12", HEAD, BODY, durable=durable, timestamp_ms=NOW, **more)

    def fill(self, count: int, durable: bool = False, **more: Any) -> None:
        """A backlog on the first queue."""
        for _ in range(count):
            self.broker.producers.send(self.message(self.names[0], durable, **more))


class Turns:
    """Sends, dispatches and acknowledges a batch at a time and keeps the best time of each."""

    def __init__(self, engine: Engine, durable: bool, batch: int = BATCH) -> None:
        self.engine = engine
        self.durable = durable
        self.batch = batch
        self.best: dict[str, float] = {}
        self._at = 0

    def _next_names(self) -> list[str]:
        names = self.engine.names
        found = [names[(self._at + k) % len(names)] for k in range(self.batch)]
        self._at += self.batch
        return found

    def turn(self) -> None:
        """One batch: as many as one queue hands out in a tick."""
        engine, broker, store = self.engine, self.engine.broker, self.engine.store
        names = self._next_names()
        send, acknowledge, tick, taken = broker.producers.send, broker.consumers.acknowledge, broker.tick, Taker.taken
        clock = time.perf_counter_ns
        start = clock()
        messages = [engine.message(name, self.durable) for name in names]
        made = clock()
        for message in messages:
            send(message)
        sent = clock()
        more = tick()
        while len(taken) < self.batch and more:
            more = tick()
        dispatched = clock()
        count = len(taken)
        if not count:
            raise RuntimeError("nothing was handed out")
        pairs = [(engine.consumers[id(slot.in_list)], slot.sequence) for slot in taken]
        taken.clear()
        ready = clock()
        for consumer, sequence in pairs:
            acknowledge(consumer, sequence)
        acknowledged = clock()
        store.flush()
        flushed = clock()
        if engine.served is not None:
            engine.served.on_readable()
        spent = {
            "make": (made - start) / self.batch,
            "send": (sent - made) / self.batch,
            "dispatch": (dispatched - sent) / count,
            "acknowledge": (acknowledged - ready) / count,
            "flush": (flushed - acknowledged) / count,
        }
        spent["together"] = spent["send"] + spent["dispatch"] + spent["acknowledge"]
        for name, ns in spent.items():
            self.best[name] = min(ns, self.best.get(name, ns))

    def run(self, turns: int) -> dict[str, float]:
        """The best of so many, ns per message."""
        for _ in range(turns):
            self.turn()
        return {name: round(ns) for name, ns in self.best.items()}


# -- what is measured ----------------------------------------------------------------------------------------------


def costs(arguments: argparse.Namespace) -> dict[str, dict[str, float]]:
    """One queue, one consumer, no backlog."""
    found = {}
    for name, durable in (("non-durable", False), ("durable, records dropped", True)):
        engine = Engine()
        engine.attach()
        found[name] = Turns(engine, durable).run(arguments.turns)
    found["durable, journal"] = on_journal(arguments.turns)
    return found


def on_journal(turns: int) -> dict[str, float]:
    """Durable messages with the journal of the product, on a file system in memory where there is one."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name:
        settings = JournalSettings(directory=name)
        store = open_journal(Path(name), settings, node_id=bytes(16), sync_process=True)
        engine = Engine(store=store, journal=settings)
        engine.attach()
        try:
            return Turns(engine, True).run(turns)
        finally:
            store.close(10.0)


RANGES: dict[str, tuple[int, ...]] = {
    "backlog": (1_000, 10_000, 100_000, 1_000_000),
    "queues": (1, 10, 100, 1_000, 10_000),
    "consumers": (1, 10, 100, 1_000),
    "equal selectors": (1, 10, 100, 1_000),
}
SELECTOR = "JMSXUserID = 'red' OR JMSPriority = 4"


def engine_of(what: str, size: int, prefetch: int = PREFETCH) -> Engine:
    """An engine at one point of a range."""
    engine = Engine(queues=size if what == "queues" else 1)
    if what == "backlog":
        engine.fill(size)
    consumers = size if what in ("consumers", "equal selectors") else 1
    engine.attach(consumers, SELECTOR if what == "equal selectors" else "", prefetch)
    return engine


def ranges(arguments: argparse.Namespace) -> dict[str, dict[str, float]]:
    """ns for a non-durable message, sent, dispatched and acknowledged."""
    found: dict[str, dict[str, float]] = {}
    for what, sizes in RANGES.items():
        for size in sizes:
            if size > arguments.largest:
                continue
            engine = engine_of(what, size)
            turns = max(arguments.turns, 2 * size // BATCH if what == "queues" else 0)
            found.setdefault(what, {})[str(size)] = Turns(engine, False).run(turns)["together"]
            del engine
            gc.collect()
    return found


def steps(arguments: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Lines of the engine run for a message, one at a time; only the pure form has lines."""
    if not engine_module.__file__.endswith(".py"):
        return {}
    found: dict[str, dict[str, float]] = {}
    for what, sizes in RANGES.items():
        for size in sizes:
            if size > arguments.largest:
                continue
            # A backlog would fill each tick, were there room for more than one message.
            turns = Turns(engine_of(what, size, 1 if what == "backlog" else PREFETCH), False, 1)
            turns.run(BATCH)
            with Steps() as counted:
                turns.run(BATCH)
            found.setdefault(what, {})[str(size)] = counted.count / BATCH
            del turns
            gc.collect()
    return found


class Steps:
    """Counts the lines of the engine that are run."""

    def __init__(self) -> None:
        self.count = 0
        self._folder = str(Path(engine_module.__file__).parent)

    def _line(self, frame: Any, event: str, _: Any) -> Any:
        if event == "line":
            self.count += 1
        return self._line

    def _call(self, frame: Any, event: str, _: Any) -> Any:
        return self._line if frame.f_code.co_filename.startswith(self._folder) else None

    def __enter__(self) -> Steps:
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)


# -- long work beside which others go on -----------------------------------------------------------------------------

HELD_AT_MOST = 65_536
OF_A_CONSUMER = ("cumulative ack of 65,536", "close with 65,536")
"""As much as one STOMP subscription may hold."""


def waits(arguments: argparse.Namespace) -> dict[str, dict[str, float]]:
    """How long others wait while the engine purges, expires, commits ``--long`` messages."""
    found = {}
    works = ("purge", "expiry", "commit of sends", "commit of acks", *OF_A_CONSUMER)
    for what, durable in itertools.product(works, (False, True)):
        count = min(arguments.long, HELD_AT_MOST) if what in OF_A_CONSUMER else arguments.long
        found[f"{what}, {'durable' if durable else 'non-durable'}"] = wait_for(what, count, durable)
        gc.collect()
    return found


def wait_for(what: str, count: int, durable: bool) -> dict[str, float]:
    """The ticks of one piece of long work, with the turn of another connection in between.

    In processor time: what another program on the machine takes is not the engine's doing.
    """
    engine = Engine(queues=2, message_expiry_scan_period_ms=1_000)
    broker, long, other = engine.broker, engine.names[0], engine.names[1]
    port = broker.consumers.subscribe(other, Taker(), MessageCredit(PREFETCH), routing=ANYCAST)
    transaction = broker.transactions.begin("bench") if what.startswith("commit") else None
    if what == "commit of sends":
        for _ in range(count):
            assert transaction is not None
            broker.transactions.send(transaction, engine.message(long, durable))
    else:
        engine.fill(count, durable, expires_at_ms=NOW + 60_000 if what == "expiry" else 0)
    if what == "commit of acks" or what in OF_A_CONSUMER:
        reader = broker.consumers.subscribe(long, Taker(), MessageCredit(count), routing=ANYCAST)
        while broker.tick():
            pass
        for slot in Taker.taken if transaction is not None else ():
            broker.consumers.acknowledge(reader, slot.sequence, transaction)
        newest = Taker.taken[-1].sequence
        Taker.taken.clear()
    start = time.thread_time_ns()
    if what == "purge":
        broker.resources.purge_queue(long)
    elif what == "expiry":
        engine.clock.ahead_ms = 120_000
    elif what == "cumulative ack of 65,536":
        broker.consumers.acknowledge_through(reader, newest)
    elif what == "close with 65,536":
        broker.consumers.close(reader)
    elif transaction is not None:
        broker.transactions.commit(transaction)
        transaction = None  # as a session does, so that what it takes to let go of it counts too
    command_ns = time.thread_time_ns() - start
    spent = [command_ns]
    over = False
    while not over:
        before = time.thread_time_ns()
        more = broker.tick()
        broker.producers.send(engine.message(other, durable))
        while Taker.taken:
            broker.consumers.acknowledge(port, Taker.taken.pop().sequence)
        spent.append(time.thread_time_ns() - before)
        over = not more and len(spent) > 10 and is_over(engine, what, count)
    total_s = (time.thread_time_ns() - start) / 1e9
    spent.sort()
    return {
        "longest_ms": round(spent[-1] / 1e6, 2),
        "p99_ms": round(spent[len(spent) * 99 // 100] / 1e6, 2),
        "median_ms": round(spent[len(spent) // 2] / 1e6, 2),
        "command_ms": round(command_ns / 1e6, 2),
        "ticks": len(spent),
        "total_s": round(total_s, 2),
    }


def is_over(engine: Engine, what: str, count: int) -> bool:
    """Whether the long work has come about."""
    queue = engine.broker.queues[engine.names[0]]
    if what == "close with 65,536":
        return queue.pending.count == count and not queue.suspensions
    return queue.message_count == (count if what == "commit of sends" else 0)


PARTS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "costs": costs,
    "ranges": ranges,
    "steps": steps,
    "waits": waits,
}


def main() -> int:
    """Measure the parts asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine_worker", description=__doc__)
    parser.add_argument("parts", nargs="+", choices=sorted(PARTS))
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--largest", type=int, default=1_000_000)
    parser.add_argument("--long", type=int, default=1_000_000)
    arguments = parser.parse_args()
    # As the server has it.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    found: dict[str, Any] = {"compiled": not engine_module.__file__.endswith(".py")}
    for part in arguments.parts:
        found[part] = PARTS[part](arguments)
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
