"""Routers as what decides on logins: answers, waiting for a quorum, circles."""

# ROUTE-3, ROUTE-6

from collections.abc import Callable, Sequence

import pytest

from delosmq.model.ids import MonotonicNs, WallMs
from delosmq.model.ports import Clock
from delosmq.routers.decision import ConnectionRouter, Decision, Outcome
from delosmq.routers.key_cache import NoStore
from delosmq.routers.logins import LEAST_WAIT_NS, RoutedLogins, RouterListener
from delosmq.routers.policy import FirstElement
from delosmq.routers.pool import TargetPool
from delosmq.routers.target import MOST_SUSPECTS, RouterTarget
from delosmq.routers.target_watch import MOST_HOPS, Ask, AskRoute, Open, TargetWatch
from delosmq.routers.waiting_logins import MOST_AT_ONCE, WaitingLogins
from delosmq.security.access import Login
from delosmq.sessions.login import ADMIT, ADMIT_ALL, WAIT, LoginAnswer, LoginPort, LoginRequest, RedirectError, refuse
from tests.memory import measured
from tests.routers.support import HERE, MS, at, policy, pool, router


class Hand(Clock):
    """A clock that tests turn."""

    def __init__(self) -> None:
        self.now = at(1_000)
        self.wall = 0

    def wall_ms(self) -> WallMs:
        return WallMs(self.wall)

    def monotonic_ns(self) -> MonotonicNs:
        return self.now


class Seen(RouterListener):
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.decisions: list[Decision] = []
        self.loops: list[Decision] = []
        self.circles: list[Decision] = []

    def decided(self, router: ConnectionRouter, request: LoginRequest, decision: Decision) -> None:
        self.decisions.append(decision)

    def looped(self, router: ConnectionRouter, request: LoginRequest, decision: Decision) -> None:
        self.loops.append(decision)

    def circled(self, router: ConnectionRouter, request: LoginRequest, decision: Decision) -> None:
        self.circles.append(decision)


class Gate:
    """Routed logins, with all that they need."""

    def __init__(self, one: ConnectionRouter, first: LoginPort = ADMIT_ALL) -> None:
        self.clock = Hand()
        self.seen = Seen()
        self.alarms: list[MonotonicNs] = []
        self.asked: list[str] = []
        self.port = RoutedLogins(first, {"r": one}, self.clock, listener=self.seen, wake_at=self.alarms.append)

    def request(self, client_id: str = "me", *, router: str = "r", peer: str = "10.0.0.9:4711") -> LoginRequest:
        return LoginRequest(
            Login("alice", frozenset()),
            client_id,
            peer,
            "artemis",
            ask_again=lambda: self.asked.append(client_id),
            router=router,
        )

    def pass_ms(self, ms: int) -> None:
        """Time passes, and an alarm rings if it is due."""
        self.clock.now = MonotonicNs(self.clock.now + ms * MS)
        if self.alarms and self.alarms[-1] <= self.clock.now:
            self.port.handle_timer(self.clock.now)


def code(answer: LoginAnswer) -> str:
    return answer.code or ""


def test_an_acceptor_without_a_router_takes_everybody() -> None:
    gate = Gate(router())
    assert gate.port.decide(gate.request(router="")) is ADMIT
    assert gate.seen.decisions == []


def test_a_key_of_this_broker_is_admitted_and_another_one_is_told_to_use_another() -> None:
    gate = Gate(router(local="^FOO.*"))
    assert gate.port.decide(gate.request("FOO_1")) is ADMIT
    answer = gate.port.decide(gate.request("BAR_1"))
    assert (code(answer), answer.elsewhere) == ("DMQ5510", True)
    assert "'BAR_1'" in answer.text
    assert [one.outcome for one in gate.seen.decisions] == [Outcome.LOCAL, Outcome.USE_ANOTHER]


def test_a_key_of_another_broker_is_redirected() -> None:
    gate = Gate(router(policy=policy("FIRST_ELEMENT"), pool=pool(1)))
    refusal = gate.port.decide(gate.request()).refusal()
    assert isinstance(refusal, RedirectError)
    assert (refusal.place, refusal.tls) == ("10.0.0.1:61616", False)


class Closed(LoginPort):
    """Lets nobody in."""

    def __init__(self) -> None:
        self.asked = 0

    def decide(self, request: LoginRequest) -> LoginAnswer:
        self.asked += 1
        return refuse("DMQ9998", "closed")


def test_who_is_refused_otherwise_is_not_routed() -> None:
    gate = Gate(router(local=".*"), Closed())
    assert code(gate.port.decide(gate.request())) == "DMQ9998"
    assert gate.seen.decisions == []


class Doorman(LoginPort):
    """Counts who comes."""

    def __init__(self) -> None:
        self.asked = 0

    def decide(self, request: LoginRequest) -> LoginAnswer:
        self.asked += 1
        return ADMIT


def test_who_waits_is_asked_of_the_first_port_once() -> None:
    doorman = Doorman()
    gate = Gate(router(policy=policy("FIRST_ELEMENT"), pool=pool(1, quorum_size=2)), doorman)
    request = gate.request()
    for _ in range(3):
        assert gate.port.decide(request) is WAIT
    assert doorman.asked == 1


def test_a_quorum_that_comes_wakes_all_that_wait_and_a_local_key_waited_for_none_of_them() -> None:
    targets = pool(2, quorum_size=2)
    one = router(policy=policy("ROUND_ROBIN"), pool=targets, local="HERE")
    gate = Gate(one)
    targets.failed(targets.targets[0], "gone")
    waiting = [gate.request(name) for name in "abc"]
    assert [gate.port.decide(request) for request in waiting] == [WAIT] * 3
    assert gate.port.decide(gate.request("HERE")) is ADMIT
    assert gate.asked == []
    targets.checked(targets.targets[0], "node-0", True)
    assert gate.asked == ["a", "b", "c"]
    ports = [gate.port.decide(request).host for request in waiting]
    assert ports == ["10.0.0.1", "10.0.0.2", "10.0.0.1"]


def test_without_a_quorum_the_wait_ends_after_its_time() -> None:
    gate = Gate(router(policy=policy("FIRST_ELEMENT"), pool=pool(1, quorum_size=2, quorum_timeout_ms=3_000)))
    request = gate.request()
    assert gate.port.decide(request) is WAIT
    gate.pass_ms(2_999)
    assert gate.asked == []
    gate.pass_ms(1)
    assert gate.asked == ["me"]
    assert code(gate.port.decide(request)) == "DMQ5511"


def test_a_refusal_for_now_takes_a_quarter_of_a_second_at_least() -> None:
    gate = Gate(router(policy=policy("FIRST_ELEMENT"), pool=pool(1, up=False, quorum_timeout_ms=0)))
    request = gate.request()
    assert gate.port.decide(request) is WAIT
    assert gate.alarms == [MonotonicNs(at(1_000) + LEAST_WAIT_NS)]
    gate.pass_ms(250)
    assert gate.asked == ["me"]
    assert code(gate.port.decide(request)) == "DMQ5511"


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_the_alarm_is_that_of_the_first_and_then_of_the_next(order: str) -> None:
    gate = Gate(router(policy=policy("FIRST_ELEMENT"), pool=pool(1, quorum_size=2, quorum_timeout_ms=1_000)))
    first, second = (gate.request(name) for name in order)
    gate.port.decide(first)
    gate.pass_ms(400)
    gate.port.decide(second)
    gate.pass_ms(600)
    assert gate.asked == [order[0]]
    gate.port.decide(first)
    gate.pass_ms(400)
    assert gate.asked == [*order]


def test_who_is_gone_is_asked_no_more() -> None:
    targets = pool(1, quorum_size=2)
    gate = Gate(router(policy=policy("FIRST_ELEMENT"), pool=targets))
    request = gate.request()
    gate.port.decide(request)
    gate.port.withdraw(request)
    targets.failed(targets.targets[0], "gone")
    gate.pass_ms(10_000)
    assert gate.asked == []


class Raises(FirstElement):
    """A policy of a package, with a fault."""

    def select(self, targets: Sequence[RouterTarget], key: str) -> RouterTarget | None:
        raise ZeroDivisionError(key)


def test_a_login_whose_router_raises_after_a_wait_is_forgotten() -> None:
    targets = pool(1, up=False)
    gate = Gate(router(policy=Raises({}, 0), pool=targets))
    request = gate.request()
    assert gate.port.decide(request) is WAIT
    targets.checked(targets.targets[0], "node-0", True)
    with pytest.raises(ZeroDivisionError):
        gate.port.decide(request)
    assert gate.port.waiting_count == 0
    gate.pass_ms(10_000)
    assert gate.asked == ["me"]


def test_a_change_without_a_quorum_wakes_none_and_of_many_that_wait_few_are_asked_at_once() -> None:
    targets = pool(3, quorum_size=3, up=False)
    gate = Gate(router(policy=policy("FIRST_ELEMENT"), pool=targets))
    many = [gate.request(f"{number}") for number in range(1_000)]
    for request in many:
        assert gate.port.decide(request) is WAIT
    for number in (0, 1):
        targets.checked(targets.targets[number], f"node-{number}", True)
    assert gate.asked == []
    targets.checked(targets.targets[2], "node-2", True)
    turns = [len(gate.asked)]
    while len(gate.asked) < len(many):
        assert gate.alarms[-1] == gate.clock.now
        gate.pass_ms(0)
        turns.append(len(gate.asked) - sum(turns))
    assert turns == [MOST_AT_ONCE] * 20
    assert sorted(gate.asked) == sorted(request.client_id for request in many)
    assert {gate.port.decide(request).host for request in many} == {"10.0.0.1"}
    assert gate.port.waiting_count == 0


def test_one_that_the_cache_has_a_target_for_is_woken_without_a_quorum() -> None:
    targets = pool(2, quorum_size=2)
    gate = Gate(router(policy=policy("FIRST_ELEMENT"), pool=targets, cache_timeout_ms=0))
    assert gate.port.decide(gate.request()).host == "10.0.0.1"
    for target in targets.targets:
        targets.failed(target, "gone")
    request = gate.request()
    assert gate.port.decide(request) is WAIT
    targets.checked(targets.targets[0], "node-0", True)
    assert gate.asked == ["me"]
    assert gate.port.decide(request).host == "10.0.0.1"


def test_of_many_whose_time_is_over_few_are_asked_at_once() -> None:
    gate = Gate(router(policy=policy("FIRST_ELEMENT"), pool=pool(1, up=False, quorum_timeout_ms=1_000)))
    many = [gate.request(f"{number}") for number in range(120)]
    for request in many:
        assert gate.port.decide(request) is WAIT
    gate.pass_ms(1_000)
    assert len(gate.asked) == MOST_AT_ONCE
    gate.port.withdraw(many[119])
    gate.pass_ms(0)
    gate.pass_ms(0)
    assert gate.asked == [request.client_id for request in many[:119]]


def test_waiting_and_waking_over_and_over_keeps_no_more_than_those_that_wait() -> None:
    alarms: list[MonotonicNs] = []
    waiting = WaitingLogins(alarms.append)
    request = Gate(router()).request()
    for turn in range(10_000):
        waiting.add(request, at(0), at(1_000 + turn))
        waiting.wake("r", at(turn))
    assert waiting.kept < 5_000
    assert len(waiting) == 1


class Slow(NoStore):
    """Safe a while after it was stored."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []
        self.safe = False

    def settled(self, then: Callable[[], None]) -> bool:
        if not self.safe:
            self.waiting.append(then)
        return self.safe

    def sync(self) -> None:
        self.safe = True
        for then in self.waiting:
            then()


def test_a_client_is_told_where_it_belongs_once_that_is_safe() -> None:
    store = Slow()
    gate = Gate(router(policy=policy("ROUND_ROBIN"), pool=pool(2), cache_timeout_ms=0, store=store))
    request, gone = gate.request("a"), gate.request("b")
    assert [gate.port.decide(request), gate.port.decide(gone)] == [WAIT, WAIT]
    assert (gate.asked, gate.seen.decisions) == ([], [])
    gate.port.withdraw(gone)
    store.sync()
    assert gate.asked == ["a"]
    assert gate.port.decide(request).host == "10.0.0.1"
    assert len(gate.seen.decisions) == 1
    # What the cache has is safe already.
    assert gate.port.decide(gate.request("a")).host == "10.0.0.1"


def test_a_second_client_with_a_key_that_is_not_safe_yet_is_not_told_before_it_is() -> None:  # ROUTE-5
    store = Slow()
    gate = Gate(router(policy=policy("ROUND_ROBIN"), pool=pool(2), cache_timeout_ms=0, store=store))
    both = [gate.request("a"), gate.request("a")]
    assert [gate.port.decide(request) for request in both] == [WAIT, WAIT]
    store.sync()
    assert gate.asked == ["a", "a"]
    assert [gate.port.decide(request).host for request in both] == ["10.0.0.1"] * 2


@pytest.mark.parametrize("jump_ms", [-(10**12), 10**12])
def test_a_jump_of_the_wall_clock_ends_no_wait_and_no_entry_of_a_cache(jump_ms: int) -> None:
    targets = pool(2, quorum_size=2, quorum_timeout_ms=1_000)
    gate = Gate(router(policy=policy("ROUND_ROBIN"), pool=targets, cache_timeout_ms=60_000))
    assert gate.port.decide(gate.request("kept")).host == "10.0.0.1"
    targets.failed(targets.targets[1], "gone")
    waits = gate.request("waits")
    assert gate.port.decide(waits) is WAIT
    gate.clock.wall += jump_ms
    gate.pass_ms(999)
    assert gate.asked == []
    assert gate.port.decide(gate.request("kept")).host == "10.0.0.1"
    gate.pass_ms(1)
    assert gate.asked == ["waits"]
    assert code(gate.port.decide(waits)) == "DMQ5511"


def test_after_a_jump_of_the_monotonic_clock_all_that_waited_are_answered_once_and_the_cache_is_empty() -> None:
    targets = pool(1, quorum_size=2, quorum_timeout_ms=1_000)
    gate = Gate(router(policy=policy("FIRST_ELEMENT"), pool=targets, cache_timeout_ms=60_000))
    waiting = [gate.request(f"{number}") for number in range(60)]
    assert {gate.port.decide(request) for request in waiting} == {WAIT}
    gate.pass_ms(10**9)
    gate.pass_ms(0)
    assert gate.asked == [request.client_id for request in waiting]
    assert {code(gate.port.decide(request)) for request in waiting} == {"DMQ5511"}
    gate.pass_ms(10**9)
    assert (gate.port.waiting_count, len(gate.asked)) == (0, 60)


STAYS: tuple[str, ...] = ()
BACK = (HERE,)


def check(gate: Gate, targets: TargetPool, answers: dict[str, list[tuple[str, ...]]]) -> list[str]:
    """One check of the first target, which says where it sends keys. Returns the keys that it was asked for."""
    asked: list[str] = []
    watch = TargetWatch(targets, targets.targets[0], "", gate.clock.now)
    action = watch.handle_timer(gate.clock.now)
    while action is not None:
        match action:
            case Open():
                action = watch.handle_opened(gate.clock.now)
            case Ask("NodeID"):
                action = watch.handle_answer("node-0", gate.clock.now)
            case AskRoute(key):
                asked.append(key)
                action = watch.handle_answer(answers[key].pop(0), gate.clock.now)
            case _:
                action = watch.handle_answer(True, gate.clock.now)
    return asked


@pytest.mark.parametrize("client_id", ["me", ""])
def test_a_client_that_goes_round_in_a_circle_is_told_and_stopped(client_id: str) -> None:
    targets = pool(1)
    one = router(policy=policy("FIRST_ELEMENT"), pool=targets)
    gate = Gate(one)
    key = client_id or "NULL"
    assert {gate.port.decide(gate.request(client_id)).host for _ in range(7)} == {"10.0.0.1"}
    assert (len(gate.seen.loops), gate.seen.circles) == (1, [])
    assert check(gate, targets, {key: [BACK] * 3}) == [key] * 3
    assert code(gate.port.decide(gate.request(client_id))) == "DMQ5512"
    assert (len(gate.seen.circles), one.loops) == (1, 1)
    assert gate.port.decide(gate.request("another")).host == "10.0.0.1"


@pytest.mark.parametrize(
    "answers",
    [
        [STAYS],
        [("node-7",)] * 3,
        [("node-7", "node-8", "node-7")] * 3,
        [BACK, STAYS],
        [BACK, BACK, STAYS],
        [BACK, BACK, ("node-7", HERE)],
        [("x" * 201, HERE)],
        [(*(f"node-{number}" for number in range(MOST_HOPS)), HERE)] * 3,
    ],
)
def test_a_healthy_client_that_comes_often_is_never_stopped(answers: list[tuple[str, ...]]) -> None:
    targets = pool(1)
    gate = Gate(router(policy=policy("FIRST_ELEMENT"), pool=targets))
    for _ in range(100):
        assert gate.port.decide(gate.request()).host == "10.0.0.1"
    assert check(gate, targets, {"me": list(answers)}) == ["me"] * len(answers)
    for _ in range(100):
        assert gate.port.decide(gate.request()).host == "10.0.0.1"
    assert gate.seen.circles == []


def test_a_circle_that_was_mended_is_seen_and_one_that_nobody_walks_is_forgotten() -> None:
    targets = pool(1)
    gate = Gate(router(policy=policy("FIRST_ELEMENT"), pool=targets))
    for _ in range(6):
        gate.port.decide(gate.request())
    check(gate, targets, {"me": [BACK] * 3})
    assert code(gate.port.decide(gate.request())) == "DMQ5512"
    check(gate, targets, {"me": [STAYS]})
    assert gate.port.decide(gate.request()).host == "10.0.0.1"
    gate.pass_ms(31_000)
    assert check(gate, targets, {}) == []


def test_a_target_is_asked_for_few_keys() -> None:
    targets = pool(1)
    gate = Gate(router(policy=policy("FIRST_ELEMENT"), pool=targets))
    for number in range(1_000):
        for _ in range(6):
            gate.port.decide(gate.request(f"{number}"))
    assert len(check(gate, targets, {f"{number}": [STAYS] for number in range(1_000)})) == MOST_SUSPECTS


class Ring:
    """Brokers each of which sends all keys to the next, and the last one to the first."""

    def __init__(self, size: int) -> None:
        self.gates: list[Gate] = []
        self.pools: list[TargetPool] = []
        for number in range(size):
            targets = pool(1)
            targets.begin(self.name(number, size))
            targets.checked(targets.targets[0], self.name(number + 1, size), True)
            self.pools.append(targets)
            self.gates.append(Gate(router(policy=policy("FIRST_ELEMENT"), pool=targets)))
        self.size = size

    @staticmethod
    def name(number: int, size: int) -> str:
        return f"broker-{number % size}"

    def check(self) -> None:
        """Each broker asks the next one."""
        for number, (gate, targets) in enumerate(zip(self.gates, self.pools, strict=True)):
            asked = self.pools[(number + 1) % self.size].targets[0]
            asked.asked_for("me", gate.clock.now)
            answer = (asked.node_id, *asked.onward.get("me", ()))
            check(gate, targets, {"me": [answer] * 3})
            targets.targets[0].node_id = self.name(number + 1, self.size)

    def walk(self, steps: int) -> list[str]:
        """What a client is told that goes wherever it is sent."""
        return [code(self.gates[number % self.size].port.decide(self.gates[0].request())) for number in range(steps)]


@pytest.mark.parametrize("size", [2, 3, 5])
def test_a_client_that_goes_round_by_several_brokers_is_stopped_and_stays_so_while_it_tries(size: int) -> None:
    ring = Ring(size)
    assert set(ring.walk(6 * size)) == {""}
    for _ in range(size):
        ring.check()
    assert code(ring.gates[0].port.decide(ring.gates[0].request())) == "DMQ5512"
    for _ in range(10):
        for gate in ring.gates:
            gate.pass_ms(20_000)
        ring.check()
        assert code(ring.gates[0].port.decide(ring.gates[0].request())) == "DMQ5512"
    for gate in ring.gates:
        gate.pass_ms(40_000)
    ring.check()
    assert code(ring.gates[0].port.decide(ring.gates[0].request())) == "", "nobody asked for it"


def test_what_is_kept_of_clients_that_may_go_in_a_circle_is_bounded() -> None:
    gate = Gate(router(policy=policy("FIRST_ELEMENT"), pool=pool(1)))
    with measured() as grown:
        for number in range(500):
            gate.port.decide(gate.request(f"{number}" + "x" * 60_000))
            gate.seen.decisions.clear()
        assert grown() < 3_000_000


def test_many_clients_of_one_host_are_no_circle() -> None:
    gate = Gate(router(policy=policy("FIRST_ELEMENT"), pool=pool(1)))
    for number in range(1_000):
        gate.port.decide(gate.request(f"client-{number}"))
    assert gate.seen.loops == []
