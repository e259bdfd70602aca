"""Random traffic on one queue against an obvious reference: message by message, first consumer that has room."""

from dataclasses import dataclass, field

from hypothesis import Phase, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from delosmq.engine.dispatch.waiting_reason import (
    BEHIND,
    COMMITTING,
    NO_CONSUMER,
    NOT_STARTED,
    QUEUE_SUSPENDED,
    READY,
)
from delosmq.model.settings import DispatchProfile
from tests.chance import tries
from tests.engine.dispatch_support import Field, Peer

USERS = ("red", "blue")
ALWAYS_FIRST = 127
LIFE_MS = 1_000


@dataclass(eq=False)
class Letter:
    """A message of the reference."""

    body: str
    priority: int
    group: str
    sequence: int
    user: str
    place: tuple[int, int]
    expires: bool


@dataclass(eq=False)
class Reader:
    """A consumer of the reference."""

    number: int
    limit: int
    priority: int
    exclusive: bool
    wants: str
    turn: int = 0
    groups: int = 0
    held: list[Letter] = field(default_factory=list)

    def full(self) -> bool:
        return len(self.held) >= self.limit

    def takes(self, letter: Letter) -> bool:
        return self.wants in ("", letter.user)


class Obvious:
    """Everything in lists, everything looked at every time."""

    def __init__(self, *, classic: bool, strict: bool, everybody: bool, exclusive_queue: bool) -> None:
        self.classic = classic
        self.strict = strict
        self.everybody = everybody
        self.exclusive_queue = exclusive_queue
        self.pending: list[Letter] = []
        self.readers: list[Reader] = []
        self.owner: Reader | None = None
        self.groups: dict[str, Reader] = {}
        self.stamp = 0
        self.redelivered = -(10**9)
        self.redelivered_first = -(10**9)

    def tick(self) -> list[tuple[int, str]]:
        """What the next dispatch hands out: consumer and body, in order."""
        handed: list[tuple[int, str]] = []
        while True:
            step = self._step()
            if step is None:
                return handed
            letter, reader = step
            self.pending.remove(letter)
            reader.held.append(letter)
            handed.append((reader.number, letter.body))

    def _step(self) -> tuple[Letter, Reader] | None:
        self.pending.sort(key=lambda letter: letter.place)
        for letter in self.pending:
            if self.owner is not None:
                if self.owner.full():
                    return None
                if self.owner.takes(letter):
                    return letter, self.owner
                continue
            # Who is full is out of the pass; a message nobody with room matches is passed over.
            able = [reader for reader in self._in_order() if not reader.full() and reader.takes(letter)]
            if not able:
                continue
            if self.exclusive_queue:
                self.owner = able[0]
                return letter, able[0]
            if not letter.group:
                self._served(able[0])
                return letter, able[0]
            owner = self.groups.get(letter.group)
            if owner is None or (self.classic and letter.sequence == 1):
                if owner is not None:
                    owner.groups -= 1
                    del self.groups[letter.group]
                if self.classic or letter.sequence != -1:
                    self.groups[letter.group] = able[0]
                    able[0].groups += 1
                self._served(able[0])
                return letter, able[0]
            if owner.full() and not self.classic and owner.takes(letter):
                return None
            if owner in able:
                if letter.sequence < 0 if self.classic else letter.sequence == -1:
                    del self.groups[letter.group]
                    owner.groups -= 1
                self._served(owner)
                return letter, owner
        return None

    def _in_order(self) -> list[Reader]:
        return sorted(self.readers, key=lambda r: (-r.priority, r.groups if self.classic else 0, r.turn))

    def _served(self, reader: Reader) -> None:
        if not self.strict:
            self.stamp += 1
            reader.turn = self.stamp

    def join(self, reader: Reader) -> None:
        self.stamp += 1
        reader.turn = self.stamp
        self.readers.append(reader)
        if reader.exclusive or self.everybody:
            owner = self.owner
            if owner is None or reader.priority >= ALWAYS_FIRST or reader.priority > owner.priority:
                self.owner = reader

    def leave(self, reader: Reader) -> None:
        self.readers.remove(reader)
        self.groups = {group: owner for group, owner in self.groups.items() if owner is not reader}
        if reader is self.owner or self.everybody:
            rest = [r for r in self.readers if r.exclusive or self.everybody]
            self.owner = max(rest, key=lambda r: r.priority, default=None)
        self.give_back(reader, list(reader.held))

    def give_back(self, reader: Reader, letters: list[Letter]) -> None:
        if self.classic:
            count = len(letters)
            if self.strict and not self.readers:
                self.redelivered_first -= count
                first = self.redelivered_first
            else:
                first = self.redelivered + 1
                self.redelivered += count
            for at, letter in enumerate(letters):
                letter.place = (letter.place[0], first + at)
        for letter in letters:
            reader.held.remove(letter)
            self.pending.append(letter)

    def room_again(self, reader: Reader) -> None:
        """Who was full stands last once it has room."""
        self._served(reader)


class Dispatching(RuleBasedStateMachine):
    """The engine and the reference side by side."""

    @initialize(
        classic=st.booleans(),
        strict=st.booleans(),
        everybody=st.sampled_from([False] * 4 + [True]),
        queue=st.booleans(),
    )
    def begin(self, classic: bool, strict: bool, everybody: bool, queue: bool) -> None:
        profile = DispatchProfile.CLASSIC if classic else DispatchProfile.ARTEMIS
        queue = queue and not classic
        self.field = Field(
            queue={"exclusive": queue},
            dispatch_profile=profile,
            strict_order_dispatch=strict,
            all_consumers_exclusive_by_default=everybody,
            max_delivery_attempts=-1,  # however many consumers come and go with a message
        )
        self.obvious = Obvious(classic=classic, strict=strict, everybody=everybody, exclusive_queue=queue)
        self.peers: dict[int, tuple[Reader, Peer]] = {}
        self.sent = 0
        self.log: list[tuple[int, str]] = []

    @rule(
        count=st.integers(1, 4),
        priority=st.sampled_from([4, 4, 4, 7, 1]),
        group=st.sampled_from(["", "", "a", "b", "c"]),
        sequence=st.sampled_from([0, 0, 0, 1, 2, -1, -2]),
        user=st.sampled_from(USERS),
        expires=st.sampled_from([False, False, True]),
    )
    def send(self, count: int, priority: int, group: str, sequence: int, user: str, expires: bool = False) -> None:
        for _ in range(count):
            self.sent += 1
            body = f"m{self.sent}"
            seq = sequence if group else 0
            self.obvious.pending.append(Letter(body, priority, group, seq, user, (-priority, self.sent), expires))
            life_ms = LIFE_MS if expires else 0
            self.field.put(
                body, priority=priority, group=group, sequence=seq, user=user, expires_in_ms=life_ms, run=False
            )

    @rule(
        limit=st.integers(1, 4),
        priority=st.sampled_from([0, 0, 0, 3, 127]),
        exclusive=st.sampled_from([False] * 5 + [True]),
        wants=st.sampled_from(["", "", "red", "blue"]),
    )
    def join(self, limit: int, priority: int, exclusive: bool, wants: str) -> None:
        assume(len(self.peers) < 5)
        self.add(limit, priority, exclusive, wants)

    def add(self, limit: int, priority: int, exclusive: bool, wants: str) -> None:
        selector = f"JMSXUserID = '{wants}'" if wants else ""
        peer = self.field.peer(limit, priority=priority, exclusive=exclusive, selector=selector)
        reader = Reader(peer.consumer.id, limit, priority, exclusive, wants)
        self._note(reader, peer)
        self.obvious.join(reader)

    def _note(self, reader: Reader, peer: Peer) -> None:
        self.peers[reader.number] = (reader, peer)
        deliver = peer.port.slots

        class Noting(list):  # type: ignore[type-arg]
            def append(noting, slot: object) -> None:
                super().append(slot)
                self.log.append((reader.number, slot.message.body.decode()))  # type: ignore[attr-defined]

        peer.port.slots = Noting(deliver)

    @precondition(lambda self: self.peers)
    @rule(choice=st.integers(0, 100), at=st.integers(0, 10), keep=st.booleans())
    def answer(self, choice: int, at: int, keep: bool) -> None:
        reader, peer = self._pick(choice)
        assume(reader.held)
        letter = reader.held[at % len(reader.held)]
        self._unpark(reader, peer)
        if keep:
            peer.ack(letter.body)
            reader.held.remove(letter)
        else:
            assume(self._deliveries(peer, letter) < 9)
            peer.reject(letter.body)
            self.obvious.give_back(reader, [letter])

    @staticmethod
    def _deliveries(peer: Peer, letter: Letter) -> int:
        return max(s.delivery_count for s in peer.port.slots if s.message.body.decode() == letter.body)

    def _unpark(self, reader: Reader, peer: Peer) -> None:
        if peer.consumer.full:
            self.obvious.room_again(reader)

    @precondition(lambda self: self.peers)
    @rule(choice=st.integers(0, 100))
    def leave(self, choice: int) -> None:
        self._leave(*self._pick(choice))

    def _leave(self, reader: Reader, peer: Peer) -> None:
        peer.close()
        self.obvious.leave(reader)
        del self.peers[reader.number]

    @precondition(lambda self: self.peers)
    @rule()
    def leave_all(self) -> None:
        for reader, peer in list(self.peers.values()):
            self._leave(reader, peer)

    @rule(wants=st.sampled_from(["", "red", "blue"]))
    def come_and_go(self, wants: str) -> None:
        """As those do that ask for one message with a selector of their own."""
        self.add(1, 0, False, wants)
        self.settle()
        self._leave(*self._pick(-1))

    @rule()
    def purge(self) -> None:
        self.field.broker.resources.purge_queue("q")
        self.obvious.pending.clear()

    @rule()
    def expire(self) -> None:
        obvious = self.obvious
        assume(not any(letter.expires for reader in obvious.readers for letter in reader.held))
        self.field.clock.now_ms += LIFE_MS
        self.field.broker.expiry_scan.look(self.field.broker.queues["q"])
        obvious.pending = [letter for letter in obvious.pending if not letter.expires]

    def _pick(self, choice: int) -> tuple[Reader, Peer]:
        return list(self.peers.values())[choice % len(self.peers)]

    @rule()
    def settle(self) -> None:
        expected = self.obvious.tick()
        self.log.clear()
        self.field.run()
        assert self.log == expected
        self._check_reasons()

    def _check_reasons(self) -> None:
        queue = self.field.broker.queues["q"]
        head = queue.pending.head()
        for slot in queue.pending.in_order():
            found = self.field.broker.inspector.standing(queue, slot)
            assert found is not None
            reason = found.rule
            assert reason not in (NOT_STARTED, QUEUE_SUSPENDED, COMMITTING, READY), reason
            assert reason != BEHIND or slot is not head
            assert (reason == NO_CONSUMER) == (not self.peers)

    @invariant()
    def the_same_is_pending(self) -> None:
        if hasattr(self, "obvious"):
            pending = sorted(self.obvious.pending, key=lambda letter: letter.place)
            assert self.field.waiting.split() == [letter.body for letter in pending]

    @invariant()
    def the_rules_go_with_the_last_consumer(self) -> None:
        if hasattr(self, "obvious") and not self.peers:
            pending = self.field.broker.queues["q"].pending
            assert pending.observers == []
            assert [slot.marks for slot in pending.in_order()] == [0] * pending.count

    @invariant()
    def the_same_is_held(self) -> None:
        for reader, peer in getattr(self, "peers", {}).values():
            held = [s.message.body.decode() for s in reversed(peer.consumer.held_newest_first())]
            assert held == [letter.body for letter in reader.held]
            assert peer.consumer.owned_groups == reader.groups or self.obvious.classic is False


TestDispatching = Dispatching.TestCase
TestDispatching.settings = settings(
    max_examples=tries(200),
    stateful_step_count=40,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
)


def test_what_the_full_owner_of_a_group_does_not_take_holds_up_no_other() -> None:
    machine = Dispatching()
    machine.begin(classic=False, strict=False, everybody=False, queue=False)
    machine.send(count=1, priority=4, group="c", sequence=0, user="blue")
    machine.add(1, 0, False, "")
    machine.add(2, 3, False, "blue")
    machine.send(count=1, priority=4, group="c", sequence=0, user="red")
    machine.send(count=2, priority=4, group="", sequence=0, user="blue")
    machine.settle()
    assert [body for _, body in machine.log] == ["m1", "m3", "m4"]
    assert machine.field.waiting == "m2"
