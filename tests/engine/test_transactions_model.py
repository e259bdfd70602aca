"""Transactions against a list: whatever is done in whatever order, a queue holds what the model says, in its order."""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from delosmq.engine.queues.consumer import Consumer
from delosmq.engine.queues.credit import OpenCredit
from delosmq.engine.transactions.transaction import Transaction
from tests.chance import tries
from tests.engine.support import Bench, Collector, anycast
from tests.engine.test_transactions import CountingStore, Waiter

MANY = 205
"""More than a transaction may do to be committed in one batch."""


class Open:
    def __init__(self, transaction: Transaction, xid: bytes | None) -> None:
        self.transaction = transaction
        self.xid = xid
        self.prepared = False
        self.sends: list[str] = []
        self.acks: list[str] = []


class Machine(RuleBasedStateMachine):
    """``alive``: what is in the queue, in order; ``held`` and ``promised`` of it are with a consumer."""

    @initialize()
    def begin_all(self) -> None:
        self.store = CountingStore()
        self.bench = Bench(queues=(anycast("q"),), store=self.store)
        self.alive: list[str] = []
        self.held: set[str] = set()
        self.open: list[Open] = []
        self.count = 0
        self.branches = 0
        self.subscribe()

    def subscribe(self) -> None:
        self.consumer: Consumer
        self.port: Collector
        self.consumer, self.port = self.bench.consume("q", OpenCredit())
        self.port.room = False

    def promised(self) -> set[str]:
        return {name for one in self.open for name in one.acks}

    def name(self) -> str:
        self.count += 1
        return f"m{self.count}"

    def sequence(self, name: str) -> int:
        slot = self.consumer.in_delivery.head
        while slot is not None and slot.message.body.decode() != name:
            slot = slot.next
        assert slot is not None
        return slot.sequence

    def send_one(self) -> None:
        name = self.name()
        self.bench.broker.producers.send(self.bench.message("q", name))
        self.alive.append(name)

    @rule(count=st.integers(1, 3))
    def send(self, count: int) -> None:
        for _ in range(count):
            self.send_one()

    @rule(branch=st.booleans())
    def begin(self, branch: bool) -> None:
        if len(self.open) >= 3:
            return
        if branch:
            self.branches += 1
            xid = b"x%d" % self.branches
            self.open.append(Open(self.bench.broker.branches.start(xid), xid))
        else:
            self.open.append(Open(self.bench.broker.transactions.begin("session"), None))

    def working(self) -> list[Open]:
        return [one for one in self.open if not one.prepared]

    @precondition(lambda self: self.working())
    @rule(which=st.integers(0, 2), count=st.sampled_from((1, 2, MANY)), durable=st.booleans())
    def send_within(self, which: int, count: int, durable: bool) -> None:
        one = self.working()[which % len(self.working())]
        for _ in range(count):
            name = self.name()
            one.sends.append(name)
            message = self.bench.message("q", name, durable=durable or one.xid is not None)
            self.bench.broker.transactions.send(one.transaction, message)

    @rule()
    def deliver(self) -> None:
        self.port.room = True
        self.bench.broker.consumers.credit_changed(self.consumer)
        self.bench.run()
        self.port.room = False
        self.held = set(self.alive) - self.promised()

    @precondition(lambda self: self.held and self.working())
    @rule(which=st.integers(0, 2), at=st.integers(0, 10), through=st.booleans())
    def acknowledge_within(self, which: int, at: int, through: bool) -> None:
        one = self.working()[which % len(self.working())]
        names = [name for name in self.delivered() if name in self.held]
        name = names[at % len(names)]
        if through:
            assert self.bench.broker.consumers.acknowledge_through(self.consumer, self.sequence(name), one.transaction)
            taken = names[: names.index(name) + 1]
        else:
            assert self.bench.broker.consumers.acknowledge(self.consumer, self.sequence(name), one.transaction)
            taken = [name]
        one.acks += taken
        self.held -= set(taken)

    def delivered(self) -> list[str]:
        found = []
        slot = self.consumer.in_delivery.head
        while slot is not None:
            found.append(slot.message.body.decode())
            slot = slot.next
        return found

    @precondition(lambda self: self.held)
    @rule(at=st.integers(0, 10))
    def acknowledge(self, at: int) -> None:
        names = sorted(self.held)
        name = names[at % len(names)]
        assert self.bench.broker.consumers.acknowledge(self.consumer, self.sequence(name))
        self.held.remove(name)
        self.alive.remove(name)

    @precondition(lambda self: self.open)
    @rule(which=st.integers(0, 2), interrupted_after=st.integers(0, 6))
    def commit(self, which: int, interrupted_after: int) -> None:
        one = self.open.pop(which % len(self.open))
        broker = self.bench.broker
        waiter = Waiter()
        if one.xid is None:
            done = broker.transactions.commit(one.transaction, waiter)
        elif one.prepared:
            done = broker.branches.commit(one.xid, False, waiter)
        else:
            broker.branches.end(one.xid)
            done = broker.branches.commit(one.xid, True, waiter)
        if not done:
            for _ in range(interrupted_after):
                broker.tick()
            if not one.transaction.position:
                self.send_one()
            else:
                name = self.name()
                broker.producers.send(self.bench.message("q", name))
                self.alive += one.sends
                one.sends = []
                self.alive.append(name)
            self.bench.run()
            assert waiter.ended == [None]
        self.alive += one.sends
        for name in one.acks:
            self.alive.remove(name)

    @precondition(lambda self: self.open)
    @rule(which=st.integers(0, 2), keep=st.booleans())
    def roll_back(self, which: int, keep: bool) -> None:
        one = self.open.pop(which % len(self.open))
        if one.xid is None:
            self.bench.broker.transactions.rollback(one.transaction, keep_delivered=keep)
            if keep:
                here = set(self.delivered())
                self.held |= {name for name in one.acks if name in here}
        else:
            if not one.prepared:
                self.bench.broker.branches.end(one.xid)
            self.bench.broker.branches.rollback(one.xid)
        self.bench.run()

    @precondition(lambda self: any(one.xid is not None for one in self.working()))
    @rule()
    def prepare(self) -> None:
        one = next(one for one in self.working() if one.xid is not None)
        assert one.xid is not None
        self.bench.broker.branches.end(one.xid)
        self.bench.broker.branches.prepare(one.xid)
        self.bench.run()
        one.prepared = True

    @rule()
    def close(self) -> None:
        self.bench.broker.consumers.close(self.consumer)
        self.bench.run()  # many come back in slices
        self.held = set()
        self.subscribe()

    @rule()
    def restart(self) -> None:
        gone = {name for name in self.alive if not self.recorded(name)}
        self.store = self.store.upto(len(self.store.batches))
        self.bench = Bench(queues=(anycast("q"),), store=self.store)
        self.alive = [name for name in self.alive if name not in gone]
        self.held = set()
        self.open = [one for one in self.open if one.prepared]
        for one in self.open:
            one.acks = [name for name in one.acks if name not in gone]
        found = {branch.xid: branch for branch in self.bench.broker.branches.prepared()}
        assert set(found) == {one.xid for one in self.open}
        for one in self.open:
            one.transaction = found[one.xid]
        self.subscribe()

    def recorded(self, name: str) -> bool:
        for slot in self.bench.broker.queues["q"].pending.in_order():
            if slot.message.body.decode() == name:
                return slot.recorded
        slots = [item.slot for one in self.open for item in one.transaction.acks]
        slot_held = self.consumer.in_delivery.head
        while slot_held is not None:
            slots.append(slot_held)
            slot_held = slot_held.next
        return any(slot.recorded for slot in slots if slot.message.body.decode() == name)

    @invariant()
    def holds_what_the_model_says(self) -> None:
        queue = self.bench.broker.queues["q"]
        out = self.held | self.promised()
        assert self.bench.pending("q").split() == [name for name in self.alive if name not in out]
        assert queue.delivering.count == len(out)
        assert queue.message_count == len(self.alive)
        waiting = sum(len(one.sends) for one in self.open)
        assert self.bench.broker.addresses["q"].account.used_messages == len(self.alive) + waiting
        assert queue.barrier_sequence == 0
        assert queue.suspensions == 0

    def teardown(self) -> None:
        if not hasattr(self, "store"):
            return
        for one in list(self.open):
            self.open = [one]
            self.roll_back(0, False)
        self.bench.broker.consumers.close(self.consumer)
        consumer, _ = self.bench.consume("q")
        self.bench.run()
        while consumer.in_delivery.tail is not None:
            self.bench.broker.consumers.acknowledge_through(consumer, consumer.in_delivery.tail.sequence)
            self.bench.run()
        assert self.store.live == 0
        assert self.bench.broker.used_bytes == 0


Machine.TestCase.settings = settings(
    max_examples=tries(25), stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
TestTransactionsModel = Machine.TestCase
