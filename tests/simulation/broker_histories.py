"""Random histories of a whole broker, cut off by power failures, and what must be true after each."""

from random import Random

from delosmq.engine.base.slots import Slot
from delosmq.engine.log.origin import ORIGINAL_QUEUE
from delosmq.model.settings import BrokerSettings
from delosmq.storage.journal.store import JournalStore
from tests.simulation.broker_world import (
    GROUP,
    QUEUES_OF,
    SETTINGS,
    Oracle,
    Reader,
    Reference,
    Snapshot,
    World,
    number_of,
)
from tests.simulation.disk import SimDisk
from tests.simulation.process_kills import MOST_STEPS, found_after
from tests.storage.on_disk import open_header, segments


class History:
    """What one seed went through, for the tests that ask whether enough happened.

    Attributes:
        rolls: segments begun in the lives together.
    """

    def __init__(self) -> None:
        self.rolls = 0
        self.confirmed = 0
        self.acknowledged = 0
        self.dead = 0
        self.archived = 0


def run_history(
    seed: int,
    kind: type[JournalStore] = JournalStore,
    *,
    cuts: int = 3,
    turns: int = 120,
    early: bool = False,
    settings: BrokerSettings = SETTINGS,
) -> History:
    """Several lives of one broker, each cut off at a random moment, and a last one that is drained."""
    random = Random(seed)
    disk = SimDisk(random, random.choice([512, 4096]))
    oracle = Oracle()
    history = History()
    expected: dict[int, Snapshot] = {}
    for _ in range(cuts):
        world = World(random, disk, oracle, kind=kind, expected=expected, early=early, settings=settings)
        check_recovered(world)
        _live(world, random.randrange(10, turns))
        history.rolls += open_header(world.disk)[1].number - 1
        expected = world.store.snapshots
        disk = _cut(world)
    world = World(random, disk, oracle, kind=kind, expected=expected, early=early, settings=settings)
    check_recovered(world)
    _drain(world, history)
    return history


def _cut(world: World) -> SimDisk:
    random = world.random
    if random.random() < 0.5:
        world.syncer.killed_after(random.randrange(MOST_STEPS))
    return found_after(random, world.disk, world.broker.settings.journal)


# -- what happens in a life --------------------------------------------------------------------------------------


def _live(world: World, turns: int) -> None:
    random = world.random
    sync_rate = random.choice([0.1, 0.5, 0.9])
    world.disk.short_writes = random.random() < 0.3
    for _ in range(turns):
        for _ in range(random.choice([1, 2, 5])):
            _command(world)
        if random.random() < 0.8:
            world.turn()
        if random.random() < sync_rate:
            world.syncer.step_sync()
        if random.random() < 0.7:
            world.syncer.step_order()
        if random.random() < sync_rate:
            world.store.on_readable()


def _command(world: World) -> None:
    random = world.random
    readers = world.readers
    kind = random.random()
    if kind < 0.45:
        world.send(
            random.choice(["jobs", "jobs", "orders", "orders", "prices"]),
            durable=random.random() < 0.85,
            size_bytes=random.choice([10, 300, random.randrange(8000)]),
            priority=random.choice([4, 4, 4, 9]),
        )
    elif kind < 0.52 and len(readers) < 6:
        world.subscribe(random.choice(["jobs", "orders.work", "prices", "DLQ"]), random.choice([1, 3, 20]))
    elif kind < 0.55 and readers:
        world.leave(random.choice(readers))
    elif kind < 0.85:
        _answer(world)
    elif kind < 0.97:
        world.lease(random.choice([1, 3, 10]))
    else:
        name = random.choice(["jobs", "prices"])
        world.broker.resources.update_queue(name, ring_size=random.choice([-1, 3, 10]), max_consumers=None)


def _answer(world: World) -> None:
    random = world.random
    able = [reader for reader in world.readers if reader.seen]
    if not able:
        return
    reader = random.choice(able)
    index = random.randrange(len(reader.seen))
    if random.random() < 0.3 and reader.queue != "DLQ":
        world.reject(reader, index)
    else:
        world.acknowledge(reader, index, through=random.random() < 0.4)


def _drain(world: World, history: History) -> None:
    """Consumes everything: what was confirmed and not acknowledged comes out, each once; then no segment is pinned."""
    oracle = world.oracle
    history.confirmed = len(oracle.confirmed)
    history.acknowledged = len(oracle.ack_confirmed)
    due = expected_references(world)
    if GROUP in world.broker.leases.groups:
        for _ in range(1000):
            world.lease(10)
            world.rest_a_while()
            group = world.broker.leases.groups[GROUP]
            if not group.leased_count and not group.queue.pending.count:
                break
        assert len(oracle.archived) == len(set(oracle.archived)), "a message lies in two acknowledged leases"
        history.archived = len(oracle.archived)
    readers = [world.subscribe(name, 1000) for name in list(world.broker.queues)]
    got: list[Reference] = []
    for _ in range(30):
        world.rest_a_while()
        for reader in readers:
            while reader.seen:
                got.append(_reference(reader))
                world.acknowledge(reader, 0, through=False)
    history.dead = sum(1 for _, queue in got if queue.startswith("dead:"))
    assert len(got) == len(set(got)), "delivered twice although nothing was returned"
    found = {(number, queue.removeprefix("dead:")) for number, queue in got}
    archived = {(number, "orders.archive") for number in oracle.archived}
    assert due <= found | archived, f"lost: {sorted(due - found - archived)[:5]}"
    check_segments_are_freed(world, next(reader for reader in readers if reader.queue == "jobs"))


def check_segments_are_freed(world: World, reader: Reader) -> None:
    """Segments are given back when one is begun: two more, and what is alive fits in them."""
    for _ in range(40):
        world.send("jobs", size_bytes=5000)
        world.rest_a_while()
        while reader.seen:
            world.acknowledge(reader, 0, through=False)
    world.rest_a_while()
    assert len(segments(world.disk)) <= 3, "segments are left that nothing needs"


def _reference(reader: Reader) -> Reference:
    slot = reader.seen[0]
    annotations = slot.message.annotations
    queue = reader.queue if annotations is None else "dead:" + annotations[ORIGINAL_QUEUE]
    return number_of(slot.message.body), queue


# -- what must be true after a restart ---------------------------------------------------------------------------


def expected_references(world: World) -> set[Reference]:
    """What was confirmed and can't have gone."""
    oracle = world.oracle
    dead_gone = {(number, queue.removeprefix("dead:")) for number, queue in oracle.ack_issued if queue[:5] == "dead:"}
    leased = {
        (number_of(body), "orders.archive")
        for k, rows in oracle.leased.items()
        if k <= max(oracle.lease_acked, oracle.lease_ack_issued)
        for _, body, _ in rows
    }
    return oracle.confirmed - oracle.ack_issued - oracle.replaced - dead_gone - leased


def check_recovered(world: World) -> None:
    """The broker has just started on what an earlier life left."""
    oracle = world.oracle
    alive: set[Reference] = set()
    dead: set[Reference] = set()
    for name, queue in world.broker.queues.items():
        slots: list[Slot] = queue.pending.in_order()
        for consumer in queue.holders:
            slots = slots + consumer.held_newest_first()
        for slot in slots:
            number = number_of(slot.message.body)
            assert slot.message.body == oracle.bodies[number], f"message {number} has another body"
            if name == "DLQ":
                assert slot.message.annotations is not None
                copy = (number, slot.message.annotations[ORIGINAL_QUEUE])
                assert copy not in dead, "two dead letters of one message"
                dead.add(copy)
            else:
                assert (number, name) not in alive
                alive.add((number, name))
                assert name in QUEUES_OF["jobs"] + QUEUES_OF["orders"] + QUEUES_OF["prices"]
    assert not alive & dead, f"dead letter and original: {sorted(alive & dead)[:5]}"
    assert not (alive | dead) & oracle.ack_confirmed, "an acknowledged message came back"
    lost = expected_references(world) - alive - dead
    assert not lost, f"lost: {sorted(lost)[:5]}"
    _check_leases(world)


def _check_leases(world: World) -> None:
    oracle = world.oracle
    group = world.broker.leases.groups.get(GROUP)
    known = {k: rows for k, rows in oracle.leased.items() if k > oracle.lease_ack_issued}
    if group is None:
        assert not known, "leases are lost"
        assert not oracle.lease_acked
        return
    assert oracle.lease_acked <= group.acked <= max(oracle.lease_acked, oracle.lease_ack_issued)
    for k, rows in known.items():
        found = [(s.sequence, s.message.body, s.delivery_count) for s in group.leases[k].slots]
        assert found == rows, f"lease {k} has changed"
