"""What a broker counts as its durable state is what a restart makes of the store, at every batch: also while messages
are on their way back from a consumer that has left, and a dead letter among them is a decision of its own.
"""

# BROKER-1, ACK-5

from collections.abc import Callable
from typing import Any

import pytest

from delosmq.engine.broker import EngineBroker
from delosmq.engine.log.log import Batch
from tests.engine.support import Bench, RecordingStore, anycast
from tests.simulation.holders import Holders
from tests.simulation.whole.recount import check_counters, check_same, durable_state
from tests.simulation.whole.times import SetClock

ATTEMPTS = 2
MOMENT_MS = 10
MANY = 60
XID = b"branch"


class CountedStore(RecordingStore):
    """Notes the durable state at each batch; has room for nothing but removals while ``room`` is 0."""

    def __init__(self) -> None:
        super().__init__()
        self.broker: EngineBroker | None = None
        self.holders = Holders()
        self.states: dict[int, Any] = {}
        self.room = 1 << 20

    def takes(self, size_bytes: int) -> bool:
        return size_bytes <= self.room

    def append(self, batch: Batch) -> None:
        if self.broker is not None:
            self.states[batch.position] = durable_state(self.broker, self.holders)
        super().append(batch)


class Scene:
    """A consumer of ``q`` that holds the messages 1 to ``count``, ``last`` of them for the last time."""

    def __init__(self, count: int = 3, *, last: tuple[int, ...] = (2,)) -> None:
        self.store = CountedStore()
        self.bench = Bench(
            queues=(anycast("other"), anycast("DLQ")),
            settings={"q": {"dead_letter_address": "DLQ", "max_delivery_attempts": ATTEMPTS}},
            store=self.store,
        )
        self.broker = self.bench.broker
        self.broker.resources.create_queue(anycast("q"))
        self.store.broker = self.broker
        self.bench.send("q", " ".join(f"{number}:" for number in range(1, count + 1)))
        self.consumer, self.port = self.bench.consume("q")
        self.run()
        for slot in [self.port.slots[number - 1] for number in last]:
            self.broker.consumers.reject(self.consumer, slot.sequence)
            self.run()

    def held(self) -> list[int]:
        """The sequences in delivery."""
        return [int(slot.sequence) for slot in reversed(self.consumer.held_newest_first())]

    def run(self) -> None:
        self.bench.run()
        self.store.holders.of(self.broker)

    def turn(self) -> None:
        self.broker.tick()
        self.store.holders.of(self.broker)

    def has_room(self, room: bool) -> None:
        """Whether the store's next file is ready."""
        self.store.room = 1 << 20 if room else 0
        self.broker.set_storage_low(not room)

    def later(self) -> None:
        self.bench.clock.now_ms += MOMENT_MS
        self.run()

    def check(self) -> None:
        """At each batch a crash brings back what there was, and all counts are right now."""
        check_counters(self.broker, self.store.holders)
        assert self.store.states
        for position, live in self.store.states.items():
            replayed = durable_state(self.bench.restart(position).broker, Holders())
            clock = SetClock()
            clock.now_ms = self.bench.clock.now_ms
            check_same(replayed, live, where=f"at {position}", clock=clock, lagging=False)


def leaves(scene: Scene) -> None:
    scene.broker.consumers.close(scene.consumer)


def refuses_all_and_leaves(scene: Scene) -> None:
    assert scene.broker.consumers.reject_through(scene.consumer, scene.held()[-1])
    leaves(scene)


def leaves_and_rolls_back(scene: Scene) -> None:
    transaction = scene.broker.transactions.begin("somebody")
    for sequence in scene.held():
        assert scene.broker.consumers.acknowledge(scene.consumer, sequence, transaction)
    leaves(scene)
    scene.broker.transactions.rollback(transaction)


def leaves_and_a_branch_is_rolled_back(scene: Scene) -> None:
    branch = scene.broker.branches.start(XID)
    for sequence in scene.held():
        assert scene.broker.consumers.acknowledge(scene.consumer, sequence, branch)
    scene.broker.branches.end(XID)
    scene.broker.branches.prepare(XID)
    scene.run()
    leaves(scene)
    scene.broker.branches.rollback(XID)


RETURNS = [leaves, refuses_all_and_leaves, leaves_and_rolls_back]


@pytest.mark.parametrize("act", [*RETURNS, leaves_and_a_branch_is_rolled_back], ids=lambda act: act.__name__)
def test_a_dead_letter_among_what_returns_leaves_the_rest_where_it_is(act: Callable[[Scene], None]) -> None:
    scene = Scene()
    act(scene)
    scene.run()
    assert (scene.bench.pending("q"), scene.bench.pending("DLQ")) == ("1: 3:", "2:")
    scene.check()


def test_so_does_each_of_many_that_take_several_turns() -> None:
    scene = Scene(MANY, last=tuple(range(1, MANY + 1, 2)))
    leaves(scene)
    assert scene.bench.counts("q")[1] > 0
    for number in range(MANY + 1, MANY + 4):
        scene.bench.send("other", f"{number}:")
        scene.turn()
    scene.run()
    assert scene.bench.counts("DLQ")[0] == MANY // 2
    scene.check()


@pytest.mark.parametrize("act", RETURNS, ids=lambda act: act.__name__)
@pytest.mark.parametrize("last", [(2,), ()])
def test_what_waits_for_a_file_is_held_meanwhile_by_who_left(
    act: Callable[[Scene], None], last: tuple[int, ...]
) -> None:
    scene = Scene(last=last)
    scene.bench.send("other", "9:")
    other, port = scene.bench.consume("other")
    scene.run()
    scene.has_room(False)
    act(scene)
    scene.later()
    assert scene.broker.consumers.acknowledge(other, port.slots[0].sequence)
    assert scene.bench.counts("q")[1] > 0
    scene.check()
    scene.has_room(True)
    scene.later()
    assert scene.bench.counts("q")[1] == 0
    scene.check()


def test_and_goes_with_its_queue() -> None:
    scene = Scene()
    scene.has_room(False)
    leaves(scene)
    scene.later()
    scene.broker.resources.delete_queue("q")
    scene.has_room(True)
    scene.later()
    assert scene.bench.pending("DLQ") == ""
    scene.check()
    assert scene.broker.used_bytes == 0
    assert scene.store.released == 3


def test_a_lease_group_that_ends_holds_the_rest_until_that_is_back() -> None:
    scene = Scene()
    leaves(scene)
    scene.run()
    scene.broker.lease_groups.open("readers", queue="q", topic="", run="run", incarnation=None)
    leases = scene.broker.leases
    epoch = leases.groups["readers"].epoch
    assert leases.request("readers", after=0, max_rows=9, max_bytes=1000, epoch=epoch, until=None) is not None
    scene.store.holders.of(scene.broker)
    scene.broker.lease_groups.release("readers")
    scene.run()
    assert scene.bench.counts("DLQ")[0] == 3
    scene.check()
