"""Takeovers under load: the active broker is killed, or paused and woken when another one is active.

``python -m tests.ha.takeovers --kills 100 --wakes 50`` is the long form. Clients of two kinds remember what they were
told: those of `tests.chaos`, which end with their broker, and two with a ``failover:`` URL, which go on with the next.
"""

import argparse
import itertools
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

from delosmq.client import AckMode, ClientError, connect
from delosmq.testing import BrokerPair, BrokerProcess
from tests.chaos.broker_process import ADDRESSES, PASSWORD, PATIENCE_S, USER
from tests.chaos.clients import END, LeaseReader, Memory, Worker, consume, number_of, produce
from tests.ha.network_lock import take_lock_away

KILL = "kill"
WAKE = "wake"
QUEUE = "failover.orders"
CHANGES = (
    ("<journal-file-size>64M<", "<journal-file-size>64K<"),
    ("<addresses>", f"<addresses>{ADDRESSES}"),
)
STAYS = "<allow-failback>false</allow-failback>"
WITH_SERVER_LOCK = (sys.executable, "-m", "tests.ha.network_lock")
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
        with self.changed:
            self.changed.wait_for(lambda: self.wrong or not self.lost(), PATIENCE_S)
        self._ended = True
        self._threads[1].join(PATIENCE_S)
        assert not self.wrong, self.wrong
        assert not self.lost(), f"confirmed and lost: {sorted(self.lost())[:10]}"
        again = [number for number, times in self.taken.items() if times > 1 and number not in self.doubtful]
        assert not again, f"taken, and back again: {again[:10]}"

    def lost(self) -> set[int]:
        return self.confirmed - set(self.taken) - self.uncertain


class Takeovers:
    """One pair under load."""

    def __init__(self, pair: BrokerPair, random: Random) -> None:
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
        if moment == KILL:
            active.kill()
            self._await(passive)
        else:
            active.pause()
            take_lock_away(self._pair.shared)
            self._await(passive)
            self._wakes = active
            active.resume()
            assert active.await_end() == 1, active.log
            assert "another broker" in active.log, active.log
        for worker in workers:
            worker.join(PATIENCE_S)
            assert not worker.is_alive()
        assert not memory.wrong, memory.wrong
        self._wakes = None
        active.launch()
        active.await_waiting()
        self._active, self._passive = passive, active

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
        seconds = sorted(self.seconds)
        half = seconds[len(seconds) // 2]
        return (
            f"{len(seconds)} takeovers: {len(memory.confirmed)} messages and {len(memory.ack_confirmed)} "
            f"acknowledgements confirmed; ready after {half:.2f} s (median), {seconds[-1]:.2f} s at most"
        )


def run_takeovers(directory: Path, moments: Sequence[str], random: Random) -> str:
    """Gives a sentence about what was seen. Raises AssertionError: a promise was broken."""
    pair = BrokerPair(
        directory,
        CHANGES,
        backup=STAYS,
        password=PASSWORD,
        command=WITH_SERVER_LOCK if WAKE in moments else None,
    )
    with pair:
        takeovers = Takeovers(pair, random)
        takeovers.run(moments)
        return takeovers.summary()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.ha.takeovers")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--wakes", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    for moment, times in ((KILL, asked.kills), (WAKE, asked.wakes)):
        if times:
            with tempfile.TemporaryDirectory() as name:
                said = run_takeovers(Path(name), [moment] * times, Random(asked.seed))
            sys.stdout.write(f"{moment}: {said}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
