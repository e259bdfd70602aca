"""The clock of a broker under test: what is due comes at once, in the order of its due times."""

import asyncio
import time
from datetime import timedelta

import pytest

from delosmq.model.errors import MisuseError
from delosmq.model.ids import MonotonicNs
from delosmq.model.settings import AddressMatch, BrokerSettings
from delosmq.testing import BrokerFixture, TurnableClock
from delosmq.testing.turnable_clock import TimeKeeper
from tests.testing.support import StompPeer

NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000


class NoBroker(TimeKeeper):
    """Has nothing to do between appointments."""

    def __init__(self) -> None:
        self.heard = 0

    def turn(self, ns: int, *, silent_clients: bool) -> None:
        raise AssertionError("not asked for")

    async def settle(self) -> None:
        await asyncio.sleep(0)

    def hear_clients(self) -> None:
        self.heard += 1


async def test_appointments_come_in_their_order_and_see_their_own_time() -> None:
    clock = TurnableClock(NoBroker())
    clock.freeze()
    loop = asyncio.get_running_loop()
    start = clock.monotonic_ns()
    seen: list[tuple[str, int]] = []

    def note(name: str) -> None:
        seen.append((name, (clock.monotonic_ns() - start) // NS_PER_S))

    def again() -> None:
        note("first")
        clock.call_at(loop, MonotonicNs(start + 25 * NS_PER_S), lambda: note("made on the way"))

    clock.call_at(loop, MonotonicNs(start + 30 * NS_PER_S), lambda: note("third"))
    clock.call_at(loop, MonotonicNs(start + 10 * NS_PER_S), again)
    clock.call_at(loop, MonotonicNs(start + 20 * NS_PER_S), lambda: note("cancelled")).cancel()
    clock.call_at(loop, MonotonicNs(start + 61 * NS_PER_S), lambda: note("too late"))
    await clock.pass_time(60 * NS_PER_S, silent_clients=False)
    assert seen == [("first", 10), ("made on the way", 25), ("third", 30)]
    assert clock.monotonic_ns() == start + 60 * NS_PER_S


def test_both_clocks_stay_as_far_apart_as_they_are_however_often_they_stop() -> None:
    clock = TurnableClock(NoBroker())
    apart = set()
    for _ in range(2_000):
        clock.freeze()
        apart.add(clock.wall_ms() - clock.monotonic_ns() // NS_PER_MS)
        clock.jump(NS_PER_MS // 7)
        clock.unfreeze()
    assert len(apart) == 1


def test_a_delay_is_over_when_a_frozen_clock_is_turned_by_it() -> None:
    with BrokerFixture() as broker, StompPeer(broker) as peer:
        for number in range(1, 11):
            broker.clock.freeze()
            peer.put("tea", "one pot", "AMQ_SCHEDULED_DELAY:300000")
            broker.queue("tea").wait_for(messages=number, scheduled=1)
            broker.clock.advance(minutes=5)
            broker.queue("tea").assert_has(messages=number, scheduled=0)
            broker.clock.unfreeze()


async def test_clients_are_heard_of_unless_they_are_silent() -> None:
    keeper = NoBroker()
    clock = TurnableClock(keeper)
    clock.freeze()
    loop = asyncio.get_running_loop()
    for silent in (False, True):
        clock.call_at(loop, MonotonicNs(clock.monotonic_ns() + 1), lambda: None)
        await clock.pass_time(NS_PER_S, silent_clients=silent)
    assert keeper.heard == 1


async def test_a_clock_that_runs_calls_by_itself_and_a_frozen_one_does_not() -> None:
    clock = TurnableClock(NoBroker())
    loop = asyncio.get_running_loop()
    called = asyncio.Event()
    clock.freeze()
    clock.call_at(loop, MonotonicNs(clock.monotonic_ns()), called.set)
    for _ in range(10):
        await asyncio.sleep(0)
    assert not called.is_set()
    clock.unfreeze()
    await called.wait()


def test_it_shows_the_real_time_until_it_is_turned() -> None:
    before = time.time_ns() // 1_000_000
    with BrokerFixture() as broker:
        assert broker.clock.wall_ms() >= before
        broker.clock.freeze()
        now = broker.clock.now
        broker.clock.advance(minutes=5, milliseconds=1)
        assert broker.clock.now - now == timedelta(minutes=5, milliseconds=1)
        assert broker.composed.broker.clock.wall_ms() == broker.clock.wall_ms()


def test_it_does_not_go_back() -> None:
    with BrokerFixture() as broker, pytest.raises(MisuseError, match=r"DMQ7201: .* can't go back by 0:05:00"):
        broker.clock.advance(minutes=-5)


def test_a_message_expires_at_its_time_and_not_before() -> None:
    with BrokerFixture() as broker, StompPeer(broker) as peer:
        broker.clock.freeze()
        peer.put("tea", "cold", f"expires:{broker.clock.wall_ms() + 300_000}")
        broker.clock.advance(minutes=4, seconds=59, milliseconds=999)
        broker.queue("tea").assert_has(messages=1, expired=0)
        broker.clock.advance(milliseconds=1)
        broker.queue("tea").assert_has(messages=0, expired=1)


def test_messages_come_in_the_order_in_which_they_are_due() -> None:
    with BrokerFixture() as broker, StompPeer(broker) as peer:
        for minutes in (30, 10, 20):
            peer.put("tea", f"{minutes}", f"AMQ_SCHEDULED_DELAY:{minutes * 60_000}")
        peer.subscribe("tea")
        broker.queue("tea").wait_for(consumers=1, scheduled=3)
        broker.clock.advance(hours=1)
        assert [peer.text() for _ in range(3)] == ["10", "20", "30"]


def test_a_redelivery_comes_after_its_delay() -> None:
    delayed = BrokerSettings(address_settings=(AddressMatch("#", {"redelivery_delay": 300_000}),))
    with BrokerFixture(settings=delayed) as broker, StompPeer(broker) as peer:
        peer.put("tea", "one pot")
        peer.subscribe("tea", "client-individual")
        peer.answer("NACK", peer.frame())
        broker.queue("tea").assert_has(messages=1, scheduled=1)
        broker.clock.advance(minutes=5)
        assert peer.text() == "one pot"


def test_what_is_due_soon_comes_by_itself() -> None:
    with BrokerFixture() as broker, StompPeer(broker) as peer:
        peer.put("tea", "one pot", "AMQ_SCHEDULED_DELAY:20")
        broker.queue("tea").wait_for(messages=1, scheduled=0)


def test_a_silent_client_is_cut_off_and_another_stays() -> None:
    with BrokerFixture() as broker, StompPeer(broker) as peer:
        broker.clock.advance(hours=1)
        peer.put("tea", "still here")
        broker.clock.advance(hours=1, silent_clients=True)
        assert peer.frame().command == "ERROR"
        assert peer.is_closed()


def test_time_passes_while_the_broker_is_down() -> None:
    with BrokerFixture() as broker:
        broker.clock.freeze()
        before = broker.clock.now
        broker.stop()
        broker.clock.advance(days=2)
        broker.start()
        assert broker.clock.now - before == timedelta(days=2)


async def test_it_turns_inside_a_running_loop() -> None:
    async with BrokerFixture() as broker:
        with StompPeer(broker) as peer:
            peer.put("tea", "one pot", "AMQ_SCHEDULED_DELAY:300000")
            broker.clock.advance(minutes=5)
            await broker.queue("tea").wait_for_async(messages=1, scheduled=0)


def test_a_day_passes_in_few_steps_though_messages_are_to_come_and_to_expire() -> None:
    with BrokerFixture() as broker:
        with StompPeer(broker) as peer:
            peer.put("tea", "late", "AMQ_SCHEDULED_DELAY:604800000")
            peer.put("tea", "cold", f"expires:{broker.clock.wall_ms() + 604_800_000}")
        broker.queue("tea").wait_for(scheduled=1, messages=2)
        ticks: list[None] = []
        broker.watchers.append(lambda: ticks.append(None))
        broker.clock.advance(days=1)
        assert len(ticks) < 10_000  # with a look each second more than 86,400
        broker.clock.advance(days=6)
        broker.queue("tea").assert_has(messages=1, scheduled=0, expired=1)
