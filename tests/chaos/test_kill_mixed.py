"""kill -9 of a real broker at random moments, while clients of every feature that keeps something are at work.

``DELOSMQ_KILLS=200`` runs the long form; ``DELOSMQ_SEED`` chooses the moments.
"""

# ACK-1
# ACK-5

import logging
import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from operator import itemgetter
from pathlib import Path
from random import Random

import pytest

from tests.chaos import mixed_clients as clients
from tests.chaos import promises
from tests.chaos.broker_process import BrokerProcess
from tests.chaos.clients import Worker
from tests.chaos.events_seen import Happening, Record
from tests.chaos.mixed_clients import Load
from tests.chaos.queue_check import RingLook, empty
from tests.chaos.stomp_peer import StompPyPeer
from tests.patience import PATIENCE_S

KILLS = int(os.environ.get("DELOSMQ_KILLS", "5"))
SEED = int(os.environ.get("DELOSMQ_SEED", "1"))
SHORTEST_S = 0.1
LONGEST_S = 0.7
"""How long there is load before a kill."""
FILE_SIZE = "1M"
"""Small, so that files are recycled and compacted, and twice as large as the largest commit that is one batch."""
CHECK_EVERY = 50
RING = 40
REMEMBERED = 20_000
FEW_REMEMBERED = 300
"""About as many ids as two lives send, so that old ones are forgotten all the time."""
ATTEMPTS = 3
PLAIN = ("plain", "tx.in", "tx.out", "tx.copy", "bulk.in", "bulk.out", "later", "parked", "groups", "ids", "few.ids")
ADDRESSES = (
    "".join(f'<address name="{name}"><anycast><queue name="{name}"/></anycast></address>' for name in PLAIN)
    + f'<address name="ring"><anycast><queue name="ring" ring-size="{RING}"/></anycast></address>'
    '<address name="retry"><anycast><queue name="retry"/></anycast></address>'
    '<address name="retry.dead"><anycast><queue name="retry.dead"/></anycast></address>'
    '<address name="news"><multicast><queue name="news.all"/></multicast></address>'
)
# A transaction that is aborted, and a look at a ring, count as attempts.
SETTINGS = (
    "".join(
        f'<address-setting match="{match}"><max-delivery-attempts>-1</max-delivery-attempts></address-setting>'
        for match in ("tx.#", "bulk.#", "ring")
    )
    + f'<address-setting match="retry"><max-delivery-attempts>{ATTEMPTS}</max-delivery-attempts>'
    "<redelivery-delay>10</redelivery-delay><dead-letter-address>retry.dead</dead-letter-address></address-setting>"
    f'<address-setting match="ids"><id-cache-size>{REMEMBERED}</id-cache-size></address-setting>'
    f'<address-setting match="few.ids"><id-cache-size>{FEW_REMEMBERED}</id-cache-size></address-setting>'
)
BATCHES = Load("bulk.batches", "/queue/bulk.in", ("bulk.batches",))
NEWS = Load("news", "/topic/news", ("news.mine", "news.all"))
LOADS = [
    Load("plain", "/queue/plain", ("plain",)),
    Load("tx.in", "/queue/tx.in", ("tx.in",)),
    Load("later", "/queue/later", ("later",), headers=clients.later),
    Load("groups", "/queue/groups", ("groups",), headers=clients.in_a_group),
    Load("ids", "/queue/ids", ("ids",), headers=clients.with_an_id, remembered=REMEMBERED),
    Load("few.ids", "/queue/few.ids", ("few.ids",), headers=clients.with_an_id, remembered=FEW_REMEMBERED),
    Load("retry", "/queue/retry", ("retry",)),
    NEWS,
]
PARKED = Load("parked", "/queue/parked", (), headers=clients.much_later)
"""A few messages that none of all lives is long enough for."""
RINGS = Load("ring", "/queue/ring", ())
SOURCES = {
    **{name: name for name in ("plain", "tx.in", "later", "groups", "ids", "few.ids", "retry")},
    "news.mine": "news",
    "news.all": "news",
    "tx.out": "tx.in",
    "bulk.out": "bulk.batches",
}
"""Queue -> the load that it holds in the end."""
SUBSCRIPTION = {"destination": "/topic/news", "client_id": "reader", "headers": {"durable-subscription-name": "mine"}}


@pytest.fixture
def broker(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[BrokerProcess]:
    caplog.set_level(logging.CRITICAL, logger="stomp.py")  # which logs each broken connection at length
    process = BrokerProcess(tmp_path / "instance", FILE_SIZE, ADDRESSES, SETTINGS)
    yield process
    process.end()


class Lives:
    """All lives of one broker."""

    def __init__(self, broker: BrokerProcess) -> None:
        self.record = Record()
        self.random = Random(SEED)
        self._broker = broker
        self._ring = RingLook(self.record, "ring", RING)
        self._workers: list[Worker] = []

    def begin(self, life: int) -> None:
        """Starts the broker, and looks at what it has kept where no consumer would."""
        self._broker.start()
        record = self.record
        record.begin_life(life)
        record.last = life >= KILLS
        port = self._broker.stomp_port
        if life == 0:
            with StompPyPeer(port, "reader") as peer:
                peer.subscribe("/topic/news", "client", {"durable-subscription-name": "mine", "receipt": "made"})
                peer.skip_to_receipt("made")
        # At once, as what is waiting may become due meanwhile.
        self._start(clients.consume, "later", self._chance())
        self._start(clients.consume, "parked", self._chance())
        with StompPyPeer(port) as peer:
            clients.send(record, peer, PARKED, record.new_number(PARKED.name), self.random)
            clients.confirm(record, peer, PARKED)
        for queue in ("tx.out", "tx.copy", "bulk.out"):
            empty(record, port, queue)
        self._ring.look(port, take=self.random.random() < 0.2)

    def kill(self) -> None:
        """Load, and the end of it at some moment."""
        self._start_producers()
        self._start_consumers()
        with self.record.changed:
            self.record.changed.wait_for(lambda: self.record.wrong, self.random.uniform(SHORTEST_S, LONGEST_S))
        self._broker.kill()
        self._join()

    def drain(self) -> None:
        """A life in which all that is left is consumed, up to a last message of each load."""
        record = self.record
        self._start_consumers()
        port = self._broker.stomp_port
        for load in LOADS:
            if load.remembered:
                clients.produce(record, port, load, self.random)
        fences = {load.name: clients.fence(record, port, load, self.random) for load in LOADS}
        clients.produce_batches(record, port, BATCHES, self.random)
        record.wait(lambda: self._drained(fences))
        assert self._drained(fences), f"never drained: {self._left()} {record.wrong} {self._broker.log}"
        assert self._broker.stop() == 0
        self._join()

    def _drained(self, fences: dict[str, int]) -> bool:
        record = self.record
        fenced = all(fences[load.name] in record.answered[queue] for load in LOADS for queue in load.queues)
        return fenced and record.nothing_open() and not self._left()

    def _left(self) -> dict[str, list[int]]:
        """What was confirmed and not answered, by queue."""
        record = self.record
        left = {
            queue: record.confirmed[load.name] - record.answered[queue]
            for load in [*LOADS, BATCHES]
            for queue in load.queues
        }
        poison = {number for number in record.confirmed["retry"] if number % clients.POISON == 0}
        # What was refused often enough is answered only as a dead letter.
        left["retry.dead"] = poison - record.answered["retry.dead"]
        return {queue: sorted(numbers)[:5] for queue, numbers in left.items() if numbers}

    def end(self) -> None:
        """Nothing that was settled is there after one more restart."""
        self.begin(KILLS + 1)
        port = self._broker.stomp_port
        for queue in ("plain", "tx.in", "bulk.in", "groups", "ids", "few.ids", "retry", "retry.dead"):
            empty(self.record, port, queue)
        empty(self.record, port, "news.all", destination="news::news.all")
        assert self._broker.stop() == 0
        self._join()

    def _start(self, work: Callable[..., None], *values: object, **named: object) -> None:
        self._workers.append(Worker(self.record, partial(work, self.record, self._broker.stomp_port, *values, **named)))

    def _start_producers(self) -> None:
        self._start(clients.produce_batches, BATCHES, self._chance())
        for load in [*LOADS, RINGS]:
            self._start(clients.produce, load, self._chance())

    def _start_consumers(self) -> None:
        self._start(clients.move_batches)
        for queue in ("plain", "ids", "few.ids", "retry.dead"):
            self._start(clients.consume, queue, self._chance())
        for client in ("a", "b"):
            self._start(clients.consume, "groups", self._chance(), client=client)
            self._start(clients.transact, self._chance(), client)
        if not self.record.last:
            self._start(clients.consume, "plain", self._chance(), individual=False)
        self._start(clients.consume, "news.mine", self._chance(), **SUBSCRIPTION)
        self._start(clients.consume, "news.all", self._chance(), destination="news::news.all", individual=False)
        self._start(clients.refuse_poison, self._chance())

    def _chance(self) -> Random:
        return Random(self.random.random())

    def _join(self) -> None:
        for worker in self._workers:
            worker.join(PATIENCE_S)
            assert not worker.is_alive()
        self._workers.clear()
        assert not self.record.wrong, f"life {self.record.life}: {self.record.wrong} {self._broker.log}"


def broken_promises(record: Record, *, drained: bool) -> list[str]:
    """All that is wrong in what clients saw."""
    about = Sorted(record.happened).about
    wrong = promises.never_early(about("later"), "later", "later")
    wrong += promises.never_early(about("parked"), "parked", "parked")
    wrong += promises.groups_hold(about("groups"), "groups")
    wrong += promises.batches_whole(about("bulk.batches", "bulk.in"), "bulk.batches", "bulk.in")
    wrong += promises.same_outcomes(about("tx.out", "tx.copy"), "tx.out", "tx.copy")
    wrong += promises.once(about("bulk.out"), "bulk.out")
    wrong += promises.ring_kept(about("ring"), "ring", RING)
    wrong += promises.dead_letters(about("retry", "retry.dead"), "retry", "retry.dead", attempts=ATTEMPTS)
    for queue, load in SOURCES.items():
        happened = about(queue, load)
        wrong += promises.nothing_invented(happened, load, queue)
        wrong += promises.one_copy(happened, queue)
        if drained:
            wrong += promises.nothing_lost(happened, load, queue)
    wrong += promises.one_copy(about("retry.dead"), "retry.dead")
    for queue in [*SOURCES, "tx.copy", "bulk.in", "ring", "retry.dead"]:
        wrong += promises.nothing_back(about(queue), queue)
    if drained:
        wrong += promises.same_arrivals(about("news.mine", "news.all"), "news.mine", "news.all")
    return wrong


class Sorted:
    """Happenings by queue, so that each check reads only what it is about."""

    def __init__(self, happened: list[Happening]) -> None:
        self._by_queue: dict[str, list[tuple[int, Happening]]] = defaultdict(list)
        for index, each in enumerate(happened):
            self._by_queue[each.queue].append((index, each))

    def about(self, *queues: str) -> list[Happening]:
        """Those of some queues, in their order."""
        numbered = [entry for queue in set(queues) for entry in self._by_queue[queue]]
        return [each for _, each in sorted(numbered, key=itemgetter(0))]


@pytest.mark.timeout(60 + 30 * KILLS)
def test_mixed_clients_find_every_promise_kept_however_often_the_broker_is_killed(broker: BrokerProcess) -> None:
    lives = Lives(broker)
    record = lives.record
    for life in range(KILLS):
        lives.begin(life)
        lives.kill()
        if life % CHECK_EVERY == CHECK_EVERY - 1:
            assert broken_promises(record, drained=False) == []
    lives.begin(KILLS)
    lives.drain()
    lives.end()

    assert broken_promises(record, drained=True) == []
    for load in [*LOADS, RINGS, BATCHES]:
        assert record.confirmed[load.name], f"{load.name} did nothing"
