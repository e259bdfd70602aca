"""One history: brokers come, go, hang and babble, clients log in and leave, filters change, time passes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from delosmq.model.declared.java_regex import JavaRegex
from delosmq.model.declared.router import KeyType, RouterPolicySettings, TargetPoolSettings
from delosmq.model.ids import MonotonicNs
from delosmq.routers.decision import ConnectionRouter, Decision, Outcome
from delosmq.routers.key import KeyResolver
from delosmq.routers.key_cache import KeyCache, NoStore
from delosmq.routers.logins import RoutedLogins, RouterListener
from delosmq.routers.policy import POLICIES, MakePolicy, make_policy
from delosmq.routers.pool import TargetPool
from delosmq.routers.target import RouterTarget
from delosmq.routers.target_watch import TargetWatch
from delosmq.security.access import Login
from delosmq.sessions.login import ADMIT_ALL, WAIT, LoginAnswer, LoginRequest
from tests.simulation.routers.network import MS, Line, SimBroker, SimClock
from tests.simulation.routers.oracle import LEAST_WAIT_MS, Oracle, Sheet, check_readiness, require

HERE = "node-here"
CLIENT_IDS = ["", *(f"{kind}-{number}" for kind in ("FOO", "BAR", "x") for number in range(12))]
FILTERS = ["", "^.{3}", "^F", "[0-9]+$"]
LOCAL_FILTERS = ["", "", "FOO", "NULL|0", "^FOO.*", "1"]
PICKS: dict[str, MakePolicy] = {name: make for name, make in POLICIES.items() if "MODULO" not in name}
STEPS = 60


@dataclass
class Parts:
    """What a router is made of; a mutant is one that breaks a promise."""

    pool: type[TargetPool] = TargetPool
    watch: type[TargetWatch] = TargetWatch
    cache: type[KeyCache] = KeyCache
    router: type[ConnectionRouter] = ConnectionRouter
    logins: type[RoutedLogins] = RoutedLogins
    policies: dict[str, MakePolicy] = field(default_factory=dict)


@dataclass
class Tale:
    """What happened, so that a run that shows nothing is seen."""

    steps: int = 0
    logins: int = 0
    redirected: int = 0
    local: int = 0
    refused: int = 0
    waited: int = 0
    left: int = 0
    cached: int = 0
    lost: int = 0

    def add(self, other: "Tale") -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


class _Heard(RouterListener):
    """Keeps the last decision."""

    def __init__(self) -> None:
        self.last: Decision | None = None

    def decided(self, router: ConnectionRouter, request: LoginRequest, decision: Decision) -> None:
        self.last = decision

    def looped(self, router: ConnectionRouter, request: LoginRequest, decision: Decision) -> None:
        raise AssertionError("no client comes twice from one port")

    def circled(self, router: ConnectionRouter, request: LoginRequest, decision: Decision) -> None:
        raise AssertionError("no target sends back")


class World:
    """A router with its targets, and what the page says of it."""

    def __init__(self, seed: int, parts: Parts) -> None:
        self.random = Random(seed)
        self.parts = parts
        self.clock = SimClock()
        self.tale = Tale()
        self.waiting: dict[LoginRequest, int] = {}
        self.wakes: list[LoginRequest] = []
        self.heard = _Heard()
        self._numbers = 0
        self.brokers = [self._new_broker() for _ in range(self.random.randint(1, 5))]
        self.since: dict[SimBroker, int] = {}
        self.lines: dict[SimBroker, Line] = {}
        self.faults = self.random.choice([0.0, 0.0, 0.05, 0.3])
        self._make_router()
        self._alarm = 0
        self._nodes: list[str] = []
        self._choices: dict[str, str] = {}
        self.logins = parts.logins(
            ADMIT_ALL, {"r": self.router}, self.clock, listener=self.heard, wake_at=self._wake_at
        )
        if self.pool is not None:
            self._discover(self.brokers if self.random.random() < 0.7 else [])
            self._look_at_this_broker()

    def _new_broker(self) -> SimBroker:
        self._numbers += 1
        return SimBroker(self._numbers, f"node-{self.random.randrange(10**6)}", self.clock.now)

    def _make_router(self) -> None:
        random, parts = self.random, self.parts
        name = random.choice(["", "CONSISTENT_HASH_MODULO", *list(PICKS) * 3])
        self.sheet = Sheet(
            key_filter=random.choice(FILTERS),
            local_filter=random.choice(LOCAL_FILTERS),
            policy=name,
            modulo=2,
            cache_timeout_ms=random.choice([None, None, 0, 500, 20_000]),
            cache_most=random.choice([2, 8, 1_000]),
        )
        self.period_ms = random.choice([500, 1_000, 5_000])
        settings = TargetPoolSettings(
            check_period_ms=self.period_ms,
            quorum_size=random.choice([1, 1, 2, 3]),
            quorum_timeout_ms=random.choice([0, 100, 3_000, 10_000]),
            local_target_enabled=random.random() < 0.3,
        )
        self.pool = parts.pool(settings) if random.random() < 0.9 else None
        if self.pool is not None:
            self.pool.begin(HERE)
        properties = (("MODULO", "2"),) if "MODULO" in name else ()
        make = parts.policies.get(name)
        policy = None
        if name:
            policy = (
                make({}, random.randrange(100))
                if make
                else make_policy(RouterPolicySettings(name, properties), random.randrange(100), {})
            )
        timeout_ms = self.sheet.cache_timeout_ms
        self.cache = None if timeout_ms is None else parts.cache(timeout_ms, NoStore(), most=self.sheet.cache_most)
        self.router = parts.router(
            "r",
            KeyResolver(KeyType.CLIENT_ID, None),
            policy=policy,
            pool=self.pool,
            cache=self.cache,
            policy_name=name,
        )
        self.oracle = Oracle(self.sheet, None if self.pool is None else settings, HERE)
        self._set_filters()

    # -- time

    def _wake_at(self, due: MonotonicNs) -> None:
        """The last call counts."""
        self._alarm += 1
        alarm = self._alarm
        self.clock.call_at(due, lambda: self.logins.handle_timer(self.clock.now) if alarm == self._alarm else None)

    def _look_at_this_broker(self) -> None:
        assert self.pool is not None
        if self.pool.settings.local_target_enabled:
            self.pool.checked(self.pool.targets[0], HERE, self.random.random() < 0.9, self.random.randrange(5))
            self.clock.call_at(self.clock.now + self.period_ms * MS, self._look_at_this_broker)

    def pass_time(self, ms: int) -> None:
        end = self.clock.now + ms * MS
        while True:
            happened = self.clock.happen_until(end)
            self._compare()
            self.serve()
            self.check()
            if not happened:
                return

    # -- what happens

    def step(self) -> None:
        self.tale.steps += 1
        random = self.random
        acts = [self._log_in] * 6 + [self._leave, self._flip, self._flip, self._set_filters, self._change_targets]
        act = random.choice(acts)
        act()
        self._compare()
        self.serve()
        self.check()
        self.pass_time(random.choice([0, 0, 1, 50, 400, 3_000, 12_000]))

    def _log_in(self) -> None:
        self._numbers += 1
        request = LoginRequest(
            Login("alice", frozenset()),
            self.random.choice(CLIENT_IDS),
            f"10.9.{self._numbers >> 8}.{self._numbers & 255}:4711",
            "artemis",
            ask_again=lambda: self.wakes.append(request),
            router="r",
        )
        self.tale.logins += 1
        self._ask(request, self.clock.now)

    def _leave(self) -> None:
        if self.waiting:
            request = self.random.choice(list(self.waiting))
            del self.waiting[request]
            self.logins.withdraw(request)
            self.tale.left += 1

    def _flip(self) -> None:
        """Something becomes of a broker."""
        broker, random = self.random.choice(self.brokers), self.random
        match random.randrange(6):
            case 0:
                broker.up = not broker.up
                for line in list(broker.lines):
                    line.cut()
                if broker.up and random.random() < 0.3:
                    broker.node_id = f"node-{random.randrange(10**6)}"
            case 1:
                broker.paused = not broker.paused
            case 2:
                broker.babbles = not broker.babbles
            case 3:
                broker.active = not broker.active
            case 4:
                broker.connections = random.randrange(10)
            case _:
                for line in list(broker.lines):
                    line.cut()
        broker.changed(self.clock.now)

    def _set_filters(self) -> None:
        self.sheet.key_filter = self.random.choice(FILTERS)
        self.sheet.local_filter = self.random.choice(LOCAL_FILTERS)
        filters = [JavaRegex(one) if one else None for one in (self.sheet.key_filter, self.sheet.local_filter)]
        self.router.resolver.key_filter, self.router.local_target_filter = filters

    def _change_targets(self) -> None:
        if self.pool is None or self.random.random() < 0.5:
            return
        if self.random.random() < 0.2:
            self.brokers.append(self._new_broker())
        self._discover(self.random.sample(self.brokers, self.random.randint(0, len(self.brokers))))

    def _discover(self, brokers: Sequence[SimBroker]) -> None:
        assert self.pool is not None
        by_connector = {one.connector: one for one in self.brokers}
        added, removed = self.pool.replace([one.connector for one in brokers])
        for target in removed:
            assert target.connector is not None
            broker = by_connector[target.connector]
            self.lines.pop(broker).close()
            self.tale.lost += 1
        probe = "" if self.router.policy is None else self.router.policy.probe
        for target in added:
            assert target.connector is not None
            broker = by_connector[target.connector]
            watch = self.parts.watch(self.pool, target, probe, self.clock.now)
            self.since[broker] = self.clock.now
            self.lines[broker] = Line(self.clock, self.random, broker, watch, faults=self.faults)
        require(
            [one.connector for one in self.pool.targets if one.connector] == [one.connector for one in brokers],
            "the pool has other targets than were found",
        )

    # -- logins

    def serve(self) -> None:
        """Those that are to ask again do so."""
        while self.wakes:
            request = self.wakes.pop()
            require(request in self.waiting, "one is asked again that does not wait")
            self._ask(request, self.waiting[request])

    def ready(self) -> list[RouterTarget]:
        return [] if self.pool is None else list(self.pool.ready_targets())

    def _ask(self, request: LoginRequest, since: int) -> None:
        now, ready = self.clock.now, self.ready()
        # Where several keys share a broker, the cache is one: the page's order decides each time.
        expected = self.oracle.decide(request.client_id, ready, now)
        self.heard.last = None
        answer = self.logins.decide(request)
        if answer is WAIT:
            require(self.oracle.may_wait(expected, ready, now - since), f"{expected}, and yet it waits")
            self.tale.waited += request not in self.waiting
            self.waiting[request] = since
            return
        self.waiting.pop(request, None)
        require(not self.oracle.may_wait(expected, ready, now - since), f"{expected}, and yet it does not wait")
        self._check_answer(request, answer, expected, ready)

    def _check_answer(
        self, request: LoginRequest, answer: LoginAnswer, expected: str, ready: Sequence[RouterTarget]
    ) -> None:
        decision = self.heard.last
        assert decision is not None
        target = decision.target
        if target is not None:
            assert self.pool is not None
            require(target in self.pool.targets, "a connection is sent to a target that was removed")
            require(target.ready, "a connection is sent to a target that is not ready")
        if expected in ("local", "use-another", "unavailable"):
            require(decision.outcome.value == expected, f"{decision.outcome.value} instead of {expected}")
        else:
            assert target is not None
            own = target.connector is None
            require(decision.outcome is (Outcome.LOCAL if own else Outcome.REDIRECT), "the outcome is not the target's")
            if expected == "policy":
                self.oracle.check_choice(request.client_id, ready, target)
                self.oracle.remember(request.client_id, target.node_id, self.clock.now)
            else:
                require(expected == f"cached {target.node_id}", f"{target.node_id} instead of {expected}")
                self.tale.cached += 1
        self.tale.redirected += decision.outcome is Outcome.REDIRECT
        self.tale.local += decision.outcome is Outcome.LOCAL
        self.tale.refused += decision.outcome in (Outcome.UNAVAILABLE, Outcome.USE_ANOTHER)
        require((answer.host is not None) == (decision.outcome is Outcome.REDIRECT), "the client is told otherwise")

    # -- what holds always

    def check(self) -> None:
        now = self.clock.now
        require(self.logins.waiting_count == len(self.waiting), "it keeps logins that are gone, or lost some")
        for since in self.waiting.values():
            timeout_ms = 0 if self.pool is None else self.pool.settings.quorum_timeout_ms
            # At the very moment something else may come first.
            require(now <= since + max(timeout_ms, LEAST_WAIT_MS) * MS, "a login waits beyond its deadline")
        if self.cache is not None:
            require(len(self.cache) <= self.sheet.cache_most, "the cache is above its bound")
        if self.pool is None:
            return
        chooses = self.sheet.policy in PICKS and len(self.ready()) >= self.pool.settings.quorum_size
        require(not (chooses and self.waiting), "a login waits though the quorum is there")
        for broker in self.brokers:
            targets = [one for one in self.pool.targets if one.connector == broker.connector]
            if targets:
                check_readiness(broker, targets, self.period_ms, self.since[broker], now)

    def _compare(self) -> None:
        """Of a broker that is gone its keys move alone."""
        nodes = [one.node_id for one in self.ready()]
        if self.sheet.policy != "CONSISTENT_HASH" or nodes == self._nodes:
            return
        policy = self.router.policy
        assert policy is not None
        chosen = {key: policy.select(self.ready(), key) for key in CLIENT_IDS if nodes}
        choices = {key: one.node_id for key, one in chosen.items() if one is not None}
        if set(nodes) < set(self._nodes):
            for key, node_id in self._choices.items():
                require(node_id not in nodes or choices[key] == node_id, f"key {key} moved, though its broker is there")
        self._nodes, self._choices = nodes, choices


def run_history(seed: int, parts: Parts | None = None) -> Tale:
    """
    Raises:
        Broken: a promise of the page was not kept.
    """
    world = World(seed, parts or Parts())
    for _ in range(STEPS):
        world.step()
    return world.tale
