"""Takeovers under load: the active broker is killed, or paused and woken when another one is active; on PostgreSQL the
database is killed as well, before the broker is, together with it, or while it is paused.

``python -m tests.ha.takeovers --kills 100 --wakes 50`` is the long form, ``--store postgres`` that on PostgreSQL, and
``--store replicated-postgres`` that on a primary and a standby, which is promoted when the primary dies. Clients of two
kinds remember what they were told: those of `tests.chaos`, which end with their broker, and two with a ``failover:``
URL, which go on with the next.
"""

import argparse
import itertools
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random

from delosmq.client import AckMode, ClientError, connect
from delosmq.testing import BrokerPair, BrokerProcess
from tests.chaos.broker_process import PASSWORD, USER
from tests.chaos.clients import END, LeaseReader, Memory, StompPeer, Worker, consume, number_of, produce
from tests.ha.shared_stores import SharedDirectory, SharedStore, SharedTables
from tests.patience import PATIENCE_S
from tests.postgres_server import PostgresServer
from tests.replicated_postgres import ReplicatedPostgres

KILL = "kill"
WAKE = "wake"
CRASH = "crash"
"""The database dies and comes back, then the broker is killed."""
KILL_IN_CRASH = "kill in crash"
"""The database dies, then the broker; the database comes back."""
WAKE_AFTER_CRASH = "wake after crash"
"""The database dies and comes back while the broker is paused."""
WAKES = (WAKE, WAKE_AFTER_CRASH)
QUEUE = "failover.orders"
LATE = "sent.to.the.paused"
MOST_RECEIPTS = 200


class FailoverLoad:
    """A producer and a consumer that go on with whichever broker is active.

    Attributes:
        kills: takeovers that were begun.
        confirmed: numbers of which `send` returned.
        doubtful: of these such as were sent while a broker died, so that they may be there twice.
        taken: how often the taking of each was committed.
        uncertain: numbers of which the commit failed, so that it may have taken place.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self.kills = 0
        self.changed = threading.Condition()
        self.wrong: list[str] = []
        self.confirmed: set[int] = set()
        self.doubtful: set[int] = set()
        self.taken: Counter[int] = Counter()
        self.uncertain: set[int] = set()
        self._sending = True
        self._ended = False
        self._threads = [threading.Thread(target=self._guard, args=(work,)) for work in (self._produce, self._consume)]
        for thread in self._threads:
            thread.daemon = True
            thread.start()

    def _guard(self, work: object) -> None:
        try:
            assert callable(work)
            work()
        except BaseException as error:
            with self.changed:
                self.wrong.append(f"{type(error).__name__}: {error}")
                self.changed.notify_all()

    def _produce(self) -> None:
        with connect(self._url, user=USER, password=PASSWORD) as connection:
            for number in itertools.count(1):
                if not self._sending:
                    return
                before = self.kills
                connection.send(QUEUE, str(number))
                with self.changed:
                    self.confirmed.add(number)
                    if self.kills != before:
                        self.doubtful.add(number)
                    self.changed.notify_all()

    def _consume(self) -> None:
        with connect(self._url, user=USER, password=PASSWORD) as connection:
            connection.start()
            with connection.create_session(AckMode.TRANSACTED) as session:
                consumer = session.create_consumer(QUEUE)
                while not self._ended:
                    message = consumer.receive(timeout_s=0.2)
                    if message is None:
                        continue
                    number = int(message.text)
                    try:
                        session.commit()
                    except ClientError:
                        with self.changed:
                            self.uncertain.add(number)
                        continue
                    with self.changed:
                        self.taken[number] += 1
                        self.changed.notify_all()

    def await_progress(self, more: int) -> None:
        with self.changed:
            wanted = len(self.confirmed) + more
            came = self.changed.wait_for(lambda: self.wrong or len(self.confirmed) >= wanted, PATIENCE_S)
        assert came, "the failover clients come to nothing"
        assert not self.wrong, self.wrong

    def finish(self) -> None:
        """Nothing more is sent, and all that is there is taken; what was promised has been kept."""
        self._sending = False
        self._threads[0].join(PATIENCE_S)
        assert not self._threads[0].is_alive()
        # One commit for each message: what there is may take a while, as long as it becomes less.
        with self.changed:
            more = True
            while more and self.lost() and not self.wrong:
                wanted = len(self.taken) + min(100, len(self.lost()))
                more = self.changed.wait_for(partial(self._has_taken, wanted), PATIENCE_S)
        self._ended = True
        self._threads[1].join(PATIENCE_S)
        assert not self.wrong, self.wrong
        assert not self.lost(), f"confirmed and lost: {len(self.lost())}, such as {sorted(self.lost())[:10]}"
        again = [number for number, times in self.taken.items() if times > 1 and number not in self.doubtful]
        assert not again, f"taken, and back again: {again[:10]}"

    def _has_taken(self, wanted: int) -> bool:
        return bool(self.wrong) or len(self.taken) >= wanted

    def lost(self) -> set[int]:
        return self.confirmed - set(self.taken) - self.uncertain


class LateSender:
    """What an active broker finds in its socket when it wakes: it may confirm none of it."""

    SENDS = 20

    def __init__(self, port: int) -> None:
        self._peer = StompPeer(port)

    def send(self) -> None:
        """To the broker that is paused."""
        for number in range(self.SENDS):
            durable = "true" if number % 2 else "false"
            headers = {"destination": f"/queue/{LATE}", "persistent": durable, "receipt": f"late{number}"}
            self._peer.send("SEND", headers, b"late")

    def follow(self) -> None:
        try:
            for command, headers, _ in self._peer.frames():
                raise AssertionError(f"a broker that woke up answers {command} {headers}")
        finally:
            self._peer.close()


class Takeovers:
    """One pair under load."""

    def __init__(self, store: SharedStore, pair: BrokerPair, random: Random) -> None:
        self._store = store
        self._pair = pair
        self._random = random
        self._memory = Memory()
        self._active, self._passive = pair.primary, pair.backup
        self._wakes: BrokerProcess | None = None
        self.seconds: list[float] = []

    def run(self, moments: Sequence[str]) -> None:
        self._pair.start()
        load = FailoverLoad(self._pair.openwire_url)
        for life, moment in enumerate(moments):
            self._one_life(load, life, moment)
        load.finish()
        self._drain(len(moments))

    def _one_life(self, load: FailoverLoad, life: int, moment: str) -> None:
        memory, active, passive = self._memory, self._active, self._passive
        workers = self._clients(active, life)
        workers += [Worker(memory, lambda: produce(memory, active.stomp_port)) for _ in range(2)]
        load.await_progress(10)
        wanted = memory.receipts + self._random.randrange(20, MOST_RECEIPTS)
        assert memory.wait(lambda: memory.receipts >= wanted), f"no progress: {active.log}"
        load.kills += 1
        if moment in WAKES:
            workers.append(self._wake(active, passive, moment))
        else:
            self._kill(active, passive, moment)
        for worker in workers:
            worker.join(PATIENCE_S)
            assert not worker.is_alive()
        assert not memory.wrong, memory.wrong
        self._wakes = None
        active.launch()
        active.await_waiting()
        self._active, self._passive = passive, active

    def _kill(self, active: BrokerProcess, passive: BrokerProcess, moment: str) -> None:
        if moment == CRASH:
            self._store.crash()
            self._store.restart()
            if not self._goes_on(active, passive):
                self._check_fenced(active)
                return
        elif moment == KILL_IN_CRASH:
            self._store.crash()
        active.kill()
        if moment == KILL_IN_CRASH:
            self._store.restart()
        self._await(passive)

    def _goes_on(self, active: BrokerProcess, passive: BrokerProcess) -> bool:
        """Whether the active broker was the first to renew its lease when the database was back."""
        memory = self._memory
        wanted = memory.receipts + self._random.randrange(20, MOST_RECEIPTS)
        ready = threading.Event()

        def moves() -> bool:
            health = passive.health()
            if health is not None and health.ready:
                ready.set()
            return ready.is_set() or bool(memory.wrong) or memory.receipts >= wanted

        passive.wait_for(moves, "that either goes on")
        return not ready.is_set()

    def _wake(self, active: BrokerProcess, passive: BrokerProcess, moment: str) -> Worker:
        late = LateSender(active.stomp_port)
        active.pause()
        late.send()
        if moment == WAKE_AFTER_CRASH:
            self._store.crash()
            self._store.restart()
        self._store.take_away()
        self._await(passive)
        self._wakes = active
        follower = Worker(self._memory, late.follow)
        active.resume()
        self._check_fenced(active)
        return follower

    def _check_fenced(self, active: BrokerProcess) -> None:
        self._wakes = active
        assert active.await_end() == 1, active.log
        assert any(piece in active.log for piece in self._store.fenced), active.log

    def _await(self, passive: BrokerProcess) -> None:
        begun = time.monotonic()
        passive.await_ready()
        self.seconds.append(time.monotonic() - begun)

    def _clients(self, broker: BrokerProcess, life: int) -> list[Worker]:
        memory = self._memory
        seeds = [self._random.random() for _ in range(3)]
        workers = [
            Worker(memory, lambda: consume(memory, broker.stomp_port, individual=True, random=Random(seeds[0]))),
            Worker(memory, lambda: self._follow(broker, f"run{life}", Random(seeds[1]))),
        ]
        if END not in memory.sent:
            workers.append(
                Worker(memory, lambda: consume(memory, broker.stomp_port, individual=False, random=Random(seeds[2])))
            )
        return workers

    def _follow(self, broker: BrokerProcess, run: str, random: Random) -> None:
        try:
            LeaseReader(self._memory, broker.http_port, run, random).follow()
        except AssertionError as error:
            # A broker that wakes and ends may say so: 500 or 503, which promises nothing.
            if self._wakes is broker and ": 50" in str(error):
                raise EOFError("the broker is stopping") from None
            raise

    def _drain(self, life: int) -> None:
        """A life without producers but for one last message: when that has come, everything before it has."""
        memory, broker = self._memory, self._active
        memory.sent.add(END)
        workers = self._clients(broker, life)
        workers.append(Worker(memory, lambda: produce(memory, broker.stomp_port, [END])))
        assert memory.wait(lambda: memory.drained and memory.end_is_archived()), f"never drained: {broker.log}"
        assert broker.stop() == 0
        for worker in workers:
            worker.join(PATIENCE_S)
        assert not memory.wrong, memory.wrong
        lost = memory.confirmed - memory.ack_issued
        assert not lost, f"lost: {sorted(lost)[:10]}"
        archived = [number_of(row["body"]) for rows in memory.leases.values() for row in rows]
        assert len(archived) == len(set(archived)), "a message lies in two leases"
        assert memory.confirmed <= set(archived) <= memory.sent

    def summary(self) -> str:
        memory = self._memory
        told = f"{len(memory.confirmed)} messages and {len(memory.ack_confirmed)} acknowledgements confirmed"
        seconds = sorted(self.seconds)
        if not seconds:
            return told
        half = seconds[len(seconds) // 2]
        return f"{len(seconds)} takeovers: {told}; ready after {half:.2f} s (median), {seconds[-1]:.2f} s at most"


def run_takeovers(directory: Path, store: SharedStore, moments: Sequence[str], random: Random) -> str:
    """Gives a sentence about what was seen. Raises AssertionError: a promise was broken."""
    with store.pair(directory) as pair:
        takeovers = Takeovers(store, pair, random)
        takeovers.run(moments)
        return takeovers.summary()


def _run_on_directories(kills: int, wakes: int, seed: int) -> None:
    for moment, times in ((KILL, kills), (WAKE, wakes)):
        if times:
            with tempfile.TemporaryDirectory() as name:
                store = SharedDirectory(as_on_a_network=moment == WAKE)
                _say(moment, run_takeovers(Path(name), store, [moment] * times, Random(seed)))


def _run_on_postgres(server: PostgresServer | ReplicatedPostgres, kills: int, wakes: int, seed: int) -> None:
    """Of four lives two have a database that dies as well."""
    try:
        for moments, times in (((KILL, CRASH, KILL, KILL_IN_CRASH), kills), ((WAKE, WAKE_AFTER_CRASH), wakes)):
            if times:
                with tempfile.TemporaryDirectory() as name:
                    every = list(itertools.islice(itertools.cycle(moments), times))
                    _say(", ".join(moments), run_takeovers(Path(name), SharedTables(server), every, Random(seed)))
    finally:
        server.remove()


def _say(moment: str, sentence: str) -> None:
    sys.stdout.write(f"{moment}: {sentence}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.ha.takeovers")
    parser.add_argument("--store", choices=("directory", "postgres", "replicated-postgres"), default="directory")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--wakes", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    if asked.store == "directory":
        _run_on_directories(asked.kills, asked.wakes, asked.seed)
    elif asked.store == "postgres":
        server = PostgresServer()
        server.start()
        _run_on_postgres(server, asked.kills, asked.wakes, asked.seed)
    else:
        _run_on_postgres(ReplicatedPostgres(), asked.kills, asked.wakes, asked.seed)


if __name__ == "__main__":
    main()
