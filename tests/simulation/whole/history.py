"""A history: steps that follow from a seed. Each has a salt of its own, so that leaving some out changes no other.

That is what makes a failing history short: steps are left out as long as it still fails, and what remains is told in
words and can be run again.
"""

from collections.abc import Callable, Collection
from contextlib import suppress
from random import Random
from typing import Any, NamedTuple

from delosmq.engine.queues.credit import MessageCredit
from delosmq.engine.transactions.xa import XaError
from delosmq.model.errors import BrokerError, LimitError, StorageError
from delosmq.model.reserved_names import EVENTS_ADDRESS
from delosmq.storage.journal.store import JournalStore
from tests.simulation.disk import SimDisk
from tests.simulation.process_kills import MOST_STEPS, STEPS_OF_A_START, killed_start
from tests.simulation.whole import acts, drain, leases, openwire, staging, stomp
from tests.simulation.whole.catalogue import CHOICE, COMPACTING, CROWDED, JOURNAL, Catalogue
from tests.simulation.whole.life import Credits, Front, Life
from tests.simulation.whole.oracle import Knowledge
from tests.simulation.whole.recount import find_all
from tests.simulation.whole.stomp import StompPeer
from tests.simulation.whole.times import SetClock

Act = Callable[[Life, Random], str]
CRASH = "crash"
BEAT = "beat"
ACTS: dict[str, tuple[int, Act]] = {
    "send": (160, acts.send),
    "subscribe": (60, acts.subscribe),
    "subscribe durably": (12, acts.subscribe_durably),
    "unsubscribe": (3, acts.unsubscribe),
    "leave": (24, acts.leave),
    "succeed": (40, acts.succeed),
    "acknowledge": (90, acts.acknowledge),
    "return": (50, acts.reject),
    "begin": (36, acts.begin),
    "transacted send": (50, acts.send_in_transaction),
    "transacted sends": (6, acts.send_many_in_transaction),
    "transacted acknowledgement": (60, acts.acknowledge_in_transaction),
    "commit": (24, acts.commit),
    "roll back": (20, acts.rollback),
    "prepare": (24, acts.prepare),
    "decide": (18, acts.decide),
    "lease": (24, acts.lease),
    "resize": (8, acts.resize),
    "pause": (8, acts.pause),
    "purge": (8, acts.purge),
    "delete": (6, acts.delete),
    "delete sink": (6, acts.delete_sink),
    "create": (8, acts.create),
    "time": (30, acts.pass_time),
    "full disk": (4, acts.fill_disk),
    "stomp connect": (16, stomp.connect),
    "stomp lose": (4, stomp.lose),
    "stomp send": (50, stomp.send),
    "stomp subscribe": (30, stomp.subscribe),
    "stomp unsubscribe": (6, stomp.unsubscribe),
    "stomp acknowledge": (50, stomp.acknowledge),
    "stomp return": (15, stomp.reject),
    "stomp begin": (20, stomp.begin),
    "stomp commit": (20, stomp.commit),
    "stomp abort": (8, stomp.abort),
    "openwire connect": (30, openwire.connect),
    "openwire lose": (4, openwire.lose),
    "openwire leave": (12, openwire.leave),
    "openwire send": (50, openwire.send),
    "openwire receive": (100, openwire.receive),
    "openwire make": (20, openwire.make),
    "openwire unsubscribe": (8, openwire.unsubscribe),
    BEAT: (330, lambda life, rng: beat(life, rng)),
}
FAR = "acknowledgement in slices"
FAR_IN_TRANSACTION = "transacted acknowledgement in slices"
IN_TURN = "transacted sends that wait"
SET = "setting of the clock"
STAGED: dict[str, Act] = {
    "stage": staging.stage,
    "publish": staging.publish,
    "discard": staging.discard,
    "come late": staging.come_late,
    "stage late": staging.stage_late,
}
"""Steps of histories with sinks."""
STAGING = (
    "stage",
    "stage",
    "stage",
    BEAT,
    BEAT,
    "publish",
    "publish",
    BEAT,
    "discard",
    "come late",
    "stage late",
    CRASH,
)
LEASED: dict[str, Act] = {
    "group open": leases.open_group,
    "group ask": leases.ask,
    "group read": leases.read,
    "group acknowledge": leases.acknowledge,
    "group release": leases.release,
    "group silence": leases.retain,
    "zombie": leases.zombie,
}
"""Steps of histories with readers of lease groups."""
READING: tuple[tuple[str, ...], ...] = (
    ("group open", BEAT, BEAT, "send", "group ask", BEAT, "group ask", BEAT),
    ("group open", BEAT, BEAT, "zombie", "group read"),
    *[("send", "send", BEAT, "group ask", BEAT, BEAT, "group ask", "group read", BEAT)] * 4,
    *[("group ask", CRASH), ("group acknowledge", BEAT), ("group release",), ("group silence",), ("zombie",)],
)
WAITING = ("send", "return", "stomp send", "stomp return")
SLICED: dict[str, Act] = {
    FAR: acts.acknowledge_far,
    FAR_IN_TRANSACTION: acts.acknowledge_far_in_transaction,
    IN_TURN: acts.send_in_turn,
}
"""Steps of some histories. In these what goes in slices when there is very much does so with a few messages."""
SCENES: tuple[tuple[str, ...], ...] = (
    ("subscribe", *["send"] * 6, *[BEAT] * 5, FAR, "?", "?"),
    ("subscribe", "begin", *["send"] * 6, *[BEAT] * 5, FAR_IN_TRANSACTION, "?", "?"),
    ("begin", "begin", *[IN_TURN] * 8, "?", BEAT, IN_TURN, "?", BEAT),
)
"""What leads to such a thing, and then anything."""
MEETING = (
    *(BEAT, BEAT, FAR, FAR_IN_TRANSACTION, "acknowledge", "return", "leave", "purge", "delete", "pause", "full disk"),
    *("roll back", "commit", "prepare", "decide", CRASH, CRASH),
)
ALL_ACTS = {**{kind: act for kind, (_, act) in ACTS.items()}, **SLICED, **STAGED, **LEASED, SET: acts.set_clock}
FULL = "DMQ2685"
"""What is said when something can't begin as the disk is full. Nothing has changed then, and the broker goes on. The
store refuses nothing: who looks before he stores is never refused."""
NO_LARGER_FILES = "DMQ2204"
"""What is said when the disk has no room for files that describe one queue or branch more."""


class Step(NamedTuple):
    """What happens, and the seed of how."""

    kind: str
    salt: int


class Canary:
    """A broker that breaks one promise, made of the real one; the real one without arguments.

    Attributes:
        kind: its store.
        early: its gate opens when bytes are written, not when they are synced.
        front: wraps the engine.
        credits: makes the credit of consumers; peer: its STOMP clients with their sockets; clock: its clocks.
        about, often: what its histories dwell on: addresses, and kinds of steps. Most seeds touch each thing a little.
        within: so many of them catch it.
    """

    def __init__(
        self,
        *,
        kind: type[JournalStore] = JournalStore,
        early: bool = False,
        front: Front | None = None,
        credits: Credits = MessageCredit,
        peer: type[StompPeer] = StompPeer,
        clock: type[SetClock] = SetClock,
        about: tuple[str, ...] = (),
        often: tuple[str, ...] = (),
        within: int = 20,
    ) -> None:
        self.about = about
        self.often = often
        self.within = within
        self.kind = kind
        self.early = early
        self.front = front
        self.credits = credits
        self.peer = peer
        self.clock = clock


HONEST = Canary()


class Broken(AssertionError):
    """A history failed.

    Attributes:
        told: its steps in words, up to the failure.
        indexes: which steps did anything.
    """

    def __init__(self, cause: BaseException, told: list[str], indexes: list[int]) -> None:
        super().__init__(f"{type(cause).__name__}: {cause}")
        self.told = told
        self.indexes = indexes


class Tale:
    """What a history went through, for the tests that ask whether enough happened."""

    def __init__(self) -> None:
        self.steps = 0
        self.lives = 0
        self.confirmed = 0
        self.acknowledged = 0
        self.delivered = 0
        self.duplicates = 0
        self.commits = 0
        self.prepared = 0
        self.batches = 0
        self.drained = 0
        self.staged = 0
        self.published = 0
        self.leased = 0
        self.fenced = 0
        self.told = 0
        self.run_again = 0
        self.late = 0

    def add(self, other: "Tale") -> None:
        """Sums up."""
        for name, count in vars(other).items():
            setattr(self, name, getattr(self, name) + count)


def steps_of(seed: int, often: tuple[str, ...] = ()) -> list[Step]:
    """The steps of a seed."""
    rng = Random(seed)
    # Each history has its own habits: some do a few things only, and often.
    weights = [weight * rng.choice([0.2, 1, 1, 3]) * (1 + 4 * (kind in often)) for kind, (weight, _) in ACTS.items()]
    count = rng.choice([60, 120, 120, 240])
    steps = [Step(kind, rng.getrandbits(32)) for kind in rng.choices(list(ACTS), weights, k=count)]
    for _ in range(rng.choice([1, 2, 3])):
        steps.insert(rng.randrange(5, len(steps)), Step(CRASH, rng.getrandbits(32)))
    if is_sliced(seed, often):
        rng = Random(f"slices of {seed}")
        scenes = [scene for scene in SCENES if not {*scene}.isdisjoint(often)] or SCENES
        for _ in range(rng.choice([2, 4, 8])):
            at = rng.randrange(5, len(steps))
            kinds = [rng.choice(MEETING) if kind == "?" else kind for kind in rng.choice(scenes)]
            steps[at:at] = [Step(kind, rng.getrandbits(32)) for kind in kinds]
    rng = Random(f"sinks of {seed}")
    if not STAGED.keys().isdisjoint(often) or rng.random() < 0.3:
        for _ in range(rng.choice([10, 30, 60])):
            at = rng.randrange(5, len(steps))
            kind = rng.choice(STAGING) if rng.random() < 0.97 else CRASH
            kinds = [kind] if kind != CRASH or rng.random() < 0.3 else ["publish", CRASH]
            steps[at:at] = [Step(one, rng.getrandbits(32)) for one in kinds]
    rng = Random(f"readers of {seed}")
    if not LEASED.keys().isdisjoint(often) or rng.random() < 0.3:
        for _ in range(rng.choice([5, 15, 30])):
            at = rng.randrange(5, len(steps))
            steps[at:at] = [Step(one, rng.getrandbits(32)) for one in rng.choice(READING)]
    rng = Random(f"clock of {seed}")
    if SET in often or rng.random() < 0.3:
        for _ in range(rng.choice([1, 2, 4])):
            # Behind what may make something wait.
            able = [at for at, step in enumerate(steps, 1) if step.kind in WAITING]
            at = rng.choice(able) if able else len(steps)
            steps[at:at] = [Step(kind, rng.getrandbits(32)) for kind in (SET, BEAT, "time", BEAT)]
    return steps


def is_sliced(seed: int, often: tuple[str, ...] = ()) -> bool:
    """Whether a few messages are many in the history of a seed."""
    return not SLICED.keys().isdisjoint(often) or Random(f"sliced {seed}").random() < 0.3


def catalogue_of(seed: int, about: tuple[str, ...] = (), *, sliced: bool = False) -> Catalogue:
    """The addresses of a seed."""
    rng = Random(~seed)
    chosen = [*about] or rng.sample(CHOICE, rng.choice([2, 3, 4]))
    if sliced:
        chosen += CROWDED
    recorded = Random(f"events of {seed}").random() < 0.3
    journal, large_bytes = rng.choice([JOURNAL, JOURNAL, COMPACTING]), rng.choice([300, 3_000, 3_000, 12_000])
    catalogue = Catalogue(chosen, journal, large_bytes, recorded=recorded)
    catalogue.slice = rng.choice([1, 1, 2]) if sliced else 0
    return catalogue


def beat(life: Life, rng: Random) -> str:
    """The loop turns; perhaps the disk gets on, and perhaps the broker hears of it."""
    words = []
    if rng.random() < 0.9:
        life.turn()
        words.append("a turn")
    if rng.random() < 0.6:
        life.syncer.step_sync()
        words.append("a sync")
    if rng.random() < 0.7:
        life.syncer.step_order()
    if rng.random() < 0.6:
        life.store.on_readable()
        life.write()
        words.append("its answer")
    return ", ".join(words)


class Run:
    """One history being run."""

    def __init__(self, seed: int, canary: Canary = HONEST) -> None:
        self.seed = seed
        self.canary = canary
        self.catalogue = catalogue_of(seed, canary.about, sliced=is_sliced(seed, canary.often))
        self.knowledge = Knowledge()
        self.knowledge.drivers = staging.Drivers()
        self.knowledge.readers = leases.readers_for(self.catalogue)
        self.clock = canary.clock()
        self.disk = SimDisk(Random(seed), Random(seed).choice([512, 4096]))
        self.expected: dict[int, Any] = {}
        self.tale = Tale()
        self.told: list[str] = []
        self.indexes: list[int] = []
        self.life: Life | None = None

    def run(self, kept: Collection[int] | None = None) -> Tale:
        """Goes through the steps, or those that are named.

        Raises:
            Broken: something is not as it must be.
        """
        try:
            self.start()
            for index, step in enumerate(steps_of(self.seed, self.canary.often)):
                if kept is None or index in kept:
                    self._step(index, step)
            self.crash(Random(self.seed))
            assert self.life is not None
            if self.seed % 2 == 0:
                self.told.append("everything is consumed")
                self.tale.drained += 1
                drain.drain(self.life)
        except (AssertionError, BrokerError, KeyError) as error:
            raise Broken(error, self.told, self.indexes) from error
        events = self.life.real.addresses.get(EVENTS_ADDRESS)
        self.tale.told = 0 if events is None else events.routed_messages
        knowledge = self.knowledge
        self.tale.confirmed = len(knowledge.confirmed)
        self.tale.acknowledged = len(knowledge.ack_confirmed)
        self.tale.delivered = knowledge.delivered
        self.tale.duplicates = knowledge.duplicates
        self.tale.prepared = len(knowledge.prepared_told)
        self.tale.staged = knowledge.drivers.staged
        self.tale.published = knowledge.drivers.published
        self.tale.run_again = knowledge.drivers.run_again
        self.tale.late = knowledge.drivers.late
        self.tale.leased = knowledge.readers.leased
        self.tale.fenced = knowledge.readers.fenced
        return self.tale

    def _step(self, index: int, step: Step) -> None:
        rng = Random(step.salt)
        self.told.append(f"({step.kind})")
        self.indexes.append(index)
        if step.kind == CRASH:
            words = self.crash(rng)
        else:
            assert self.life is not None
            try:
                words = ALL_ACTS[step.kind](self.life, rng)
            except (LimitError, XaError) as error:
                low = error.code == FULL and self.life.broker.storage_low
                # After a full disk files are tried again with the next beat.
                spares = self.life.store.spares
                many = error.code == NO_LARGER_FILES and (spares.crowded or spares.short)
                if step.kind == BEAT or not (low or many):
                    raise
                words = f"{step.kind} is refused ({error.code})"
        self.told.pop()
        if words:
            self.tale.steps += 1
            self.told.append(words)
        else:
            self.indexes.pop()

    def start(self) -> None:
        """A broker starts on what there is, and everything that must be true then is."""
        canary = self.canary
        self.tale.lives += 1
        life = Life(
            Random(self.tale.lives),
            self.disk,
            self.knowledge,
            self.catalogue,
            kind=canary.kind,
            expected=self.expected,
            early=canary.early,
            front=canary.front,
            credits=canary.credits,
            peer=canary.peer,
            clock=self.clock,
        )
        self.life = life
        self.knowledge.check_recovered(list(find_all(life.real, life.holders)), life.store.recovered)
        self.knowledge.check_queues(life.real.queues)
        self.knowledge.readers.check_recovered(life.real.leases.groups, life.clock.now_ms)
        self.knowledge.check_branches(life.real.branches.recover())

    def crash(self, rng: Random) -> str:
        """The process dies, and perhaps power goes; then the broker starts again."""
        life = self.life
        assert life is not None
        disk = self.disk
        disk.random = rng
        disk.free_bytes = None
        self.expected = life.store.snapshots
        self.tale.batches += len(self.expected)
        self.tale.commits += len(self.knowledge.commits)
        kind = rng.random()
        words = "kill -9" if kind < 0.2 else "power fails"
        if 0.2 <= kind < 0.3:
            words = "a sync fails, and " + words
            self._fail_a_sync(life, rng)
            disk.free_bytes = None
        elif rng.random() < 0.5:
            life.syncer.killed_after(rng.randrange(MOST_STEPS))
            words += " during a sync"
        for work in life.work:
            life.take_back(work)
        for peer in life.peers:
            peer.take_back()
        self.knowledge.drivers.broker_died(self.knowledge.refused)
        self.knowledge.readers.broker_died()
        disk.process_crash()
        if kind >= 0.2:
            self.disk = disk.power_cut()
        if rng.random() < 0.2:
            words += ", and again while the broker starts"
            killed_start(self.disk, self.catalogue.settings.journal, rng.randrange(STEPS_OF_A_START))
            self.disk = self.disk.power_cut()
        self.told.append(words)
        self.start()
        self.told.pop()
        return words

    def _fail_a_sync(self, life: Life, rng: Random) -> None:
        life.disk.failing_syncs = 1
        try:
            life.store.flush()
            life.syncer.step_sync()
            life.store.on_readable()
        except StorageError:
            pass
        life.disk.failing_syncs = 0
        life.broker.log.stop()
        # Clients go on for as long as they don't know. Whatever they are told now must be true.
        for kind in rng.choices(list(ACTS), k=rng.choice([0, 2, 8])):
            if kind != BEAT:
                with suppress(LimitError, XaError):
                    ALL_ACTS[kind](life, rng)
            life.broker.tick()
            life.write()


def run_history(seed: int, canary: Canary = HONEST, kept: Collection[int] | None = None) -> Tale:
    """Runs a seed, or the steps of it that are named."""
    return Run(seed, canary).run(kept)
