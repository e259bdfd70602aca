"""Long work: a slice a tick; a slice that raises ends its job, is reported, and other work goes on."""

import gc
import sys
from collections.abc import Callable, Iterator

import pytest

from delosmq.engine.base.events import EngineEvents
from delosmq.engine.base.jobs import LOOK_AGAIN_NS, NEXT_TICK, OTHERS_FIRST, Job, Jobs, PhasedJob
from delosmq.engine.base.slots import Slot
from delosmq.engine.base.timers import NS_PER_MS, Timers
from delosmq.engine.log.log import Batch
from delosmq.engine.transactions.commit import Commit
from delosmq.model.message import MULTICAST
from delosmq.model.settings import QueueSettings
from tests.engine.support import Bench, ManualClock, RecordingStore, anycast
from tests.engine.test_leases import Reader

WORDS = " ".join(f"m{k}" for k in range(650))


class SliceError(Exception):
    """Nothing that the engine expects."""


class World:
    """Jobs, and what they have done."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers = Timers()
        self.jobs = Jobs(self.clock, self.timers)
        self.done: list[str] = []

    def add(self, name: str, *naps: int, raises_at: int = -1) -> PhasedJob:
        job = PhasedJob(self.jobs, self.phases(name, naps, raises_at))
        self.jobs.add(job)
        return job

    def phases(self, name: str, naps: tuple[int, ...], raises_at: int) -> Iterator[int]:
        for number, nap_ns in enumerate([*naps, NEXT_TICK]):
            if number == raises_at:
                raise SliceError(name)
            self.done.append(f"{name}{number}")
            if number < len(naps):
                yield nap_ns

    def seen(self) -> str:
        done, self.done = self.done, []
        return " ".join(done)


def test_each_tick_does_a_slice_of_each() -> None:
    world = World()
    world.add("a", NEXT_TICK)
    world.add("b", OTHERS_FIRST, NEXT_TICK)
    seen = []
    while True:
        more = world.jobs.run()
        seen.append(world.seen())
        if not more:
            break
    assert seen == ["a0 b0", "a1 b1", "b2"]


def test_one_that_sleeps_comes_back_by_itself() -> None:
    world = World()
    job = world.add("a", LOOK_AGAIN_NS)
    assert not world.jobs.run()
    assert (world.seen(), job.over) == ("a0", False)
    world.clock.now_ms += LOOK_AGAIN_NS // NS_PER_MS
    world.timers.run(world.clock.monotonic_ns())
    assert world.jobs.waiting
    assert not world.jobs.run()
    assert (world.seen(), job.over) == ("a1", True)
    assert world.timers.next_at == 0


@pytest.mark.parametrize("number", range(3))
def test_one_that_raises_is_over_and_others_go_on(number: int) -> None:
    world = World()
    job = world.add("a", NEXT_TICK, NEXT_TICK, raises_at=number)
    world.add("b", *[NEXT_TICK] * number)
    for _ in range(number):
        world.jobs.run()
        assert not job.over
    with pytest.raises(SliceError, match="a"):
        world.jobs.run()
    assert job.over
    world.done = []
    assert not world.jobs.run()
    assert world.seen() == f"b{number}"
    assert job.step()
    assert world.seen() == ""


def test_a_job_without_phases_that_raises_is_dropped() -> None:
    class Raising(Job):
        def step(self) -> bool:
            raise SliceError

    world = World()
    world.jobs.add(Raising())
    world.add("a")
    with pytest.raises(SliceError):
        world.jobs.run()
    assert not world.jobs.run()
    assert world.seen() == "a0"


@pytest.mark.parametrize("raises_at", [-1, 1])
def test_what_a_job_worked_on_is_freed_though_it_is_asked_later(raises_at: int) -> None:
    # By the count of references alone: no cycle keeps what it worked on until the garbage collector comes.
    class Message:
        pass

    def phases(messages: list[Message]) -> Iterator[int]:
        for number, _ in enumerate(messages):
            if number == raises_at:
                raise SliceError
            yield NEXT_TICK

    world = World()
    messages = [Message(), Message()]
    job = PhasedJob(world.jobs, phases(messages))
    world.jobs.add(job)
    before = sys.getrefcount(messages)
    try:
        while world.jobs.run():
            pass
    except SliceError:
        pass
    assert job.over
    assert sys.getrefcount(messages) < before


class Trap:
    """Counts what the engine asks of others, and raises at one of these calls."""

    def __init__(self) -> None:
        self.count = 0
        self.raises_at = -1

    def spring(self) -> None:
        self.count += 1
        if self.count - 1 == self.raises_at:
            raise SliceError


class TrapStore(RecordingStore):
    def __init__(self, trap: Trap) -> None:
        super().__init__()
        self.trap = trap
        self.victim = 0

    def compaction_victim(self) -> int:
        return self.victim

    def append(self, batch: Batch) -> None:
        self.trap.spring()
        super().append(batch)


class TrapEvents(EngineEvents):
    """Of what happens in a slice that records nothing."""

    def __init__(self, trap: Trap) -> None:
        self.trap = trap

    def message_due(self, queue: str, slot: Slot) -> None:
        self.trap.spring()


XID = b"branch"


def commit(bench: Bench) -> Callable[[], object]:
    fill_a_branch(bench)
    return lambda: bench.broker.branches.commit(XID, one_phase=True)


def prepare(bench: Bench) -> Callable[[], object]:
    fill_a_branch(bench)
    return lambda: bench.broker.branches.prepare(XID)


def commit_prepared(bench: Bench) -> Callable[[], object]:
    prepare(bench)()
    bench.run()
    return lambda: bench.broker.branches.commit(XID, one_phase=False)


def roll_back_prepared(bench: Bench) -> Callable[[], object]:
    prepare(bench)()
    bench.run()
    return lambda: bench.broker.branches.rollback(XID)


def fill_a_branch(bench: Bench) -> None:
    """It acknowledges, and sends with duplicate ids."""
    broker = bench.broker
    bench.send("q", WORDS)
    consumer, port = bench.consume("q")
    bench.run()
    branch = broker.branches.start(XID)
    for slot in port.slots:
        broker.consumers.acknowledge(consumer, slot.sequence, branch)
    for word in WORDS.split():
        message = bench.message("q", word)
        message.duplicate_id = word.encode()
        broker.transactions.send(branch, message)
    broker.branches.end(XID)


def compact(bench: Bench) -> Callable[[], object]:
    bench.send("q", WORDS)
    store = bench.store
    assert isinstance(store, TrapStore)
    store.victim = 1
    return lambda: bench.later(1_000)


def become_due(bench: Bench) -> Callable[[], object]:
    bench.send("q", WORDS, due_in_ms=1_000)
    return lambda: bench.later(1_000)


def expire(bench: Bench) -> Callable[[], object]:
    bench.send("q", WORDS, expires_in_ms=1_000)
    return lambda: bench.later(60_000)


def move_held(bench: Bench) -> Callable[[], object]:
    bench.send("kept", WORDS, expires_in_ms=1_000)
    bench.later(60_000)
    assert bench.scheduled("kept")
    bench.broker.resources.create_queue(anycast("late"))
    return lambda: bench.later(60_000)


def settle_a_lease(bench: Bench) -> Callable[[], object]:
    return read_leases(bench, acknowledged=True)


def release_a_group(bench: Bench) -> Callable[[], object]:
    return read_leases(bench, acknowledged=False)


def read_leases(bench: Bench, *, acknowledged: bool) -> Callable[[], object]:
    bench.send("q", WORDS * 3)
    reader = Reader(bench)
    reader.take(0)
    if acknowledged:
        return lambda: bench.broker.leases.acknowledge("g", 1, reader.epoch)
    return lambda: bench.broker.lease_groups.release("g")


def close_a_consumer(bench: Bench) -> Callable[[], object]:
    bench.send("q", WORDS * 3)
    consumer, port = bench.consume("q")
    bench.run()
    assert len(port.slots) > 1_900
    return lambda: bench.broker.consumers.close(consumer)


def fill(bench: Bench) -> Callable[[], object]:
    bench.send("news", WORDS * 3, routing=MULTICAST)
    queue = QueueSettings("late", "news", MULTICAST)
    return lambda: bench.broker.resources.create_queue(queue)


WORKS = {
    one.__name__: one
    for one in (
        commit,
        prepare,
        commit_prepared,
        roll_back_prepared,
        compact,
        become_due,
        expire,
        move_held,
        settle_a_lease,
        release_a_group,
        close_a_consumer,
        fill,
    )
}


def begun(work: str) -> tuple[Trap, Bench, Callable[[], object]]:
    trap = Trap()
    bench = Bench(
        queues=(anycast("q"), anycast("kept"), anycast("other")),
        settings={
            "kept": {"expiry_address": "late"},
            "news": {"subscription_recovery_count": 2_000, "always_retroactive": True},
            "#": {"auto_create_queues": False},
        },
        store=TrapStore(trap),
        events=TrapEvents(trap),
    )
    begin = WORKS[work](bench)
    trap.count = 0
    return trap, bench, begin


def carry_out(bench: Bench, begin: Callable[[], object]) -> None:
    begin()
    bench.run()


@pytest.mark.slow
@pytest.mark.parametrize("work", WORKS)
def test_whichever_slice_raises_the_engine_says_so_and_goes_on(work: str) -> None:
    trap, bench, begin = begun(work)
    carry_out(bench, begin)
    calls = trap.count
    assert calls >= 3
    for number in range(0, calls, max(1, calls // 10)):
        trap, bench, begin = begun(work)
        trap.raises_at = number
        with pytest.raises(SliceError):
            carry_out(bench, begin)
        bench.run()
        bench.send("other", WORDS)
        purge = bench.broker.resources.purge_queue("other")
        bench.run()
        assert (purge.done, purge.removed, bench.counts("other")) == (True, 650, (0, 0, 0))
        _, port = bench.consume("other")
        bench.send("other", "a b")
        bench.run()
        assert port.bodies == "a b"


@pytest.mark.slow
@pytest.mark.parametrize("work", WORKS)
def test_finished_work_is_freed(work: str) -> None:
    _, bench, begin = begun(work)
    carry_out(bench, begin)
    del begin
    gc.collect()
    found = gc.get_objects()
    assert all(one.over for one in found if type(one) is PhasedJob)
    assert not any(type(one) is Commit for one in found)
