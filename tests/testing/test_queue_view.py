"""Queues as tests see them."""

import asyncio
import threading
from typing import Any

import pytest

from delosmq.model.errors import MisuseError, NotFoundError
from delosmq.testing import BrokerFixture, QueueCounts
from tests.testing.support import StompPeer


def test_it_shows_messages_counts_and_consumers() -> None:
    with BrokerFixture() as broker, StompPeer(broker) as peer:
        queue = broker.queue("tea")
        assert (queue.exists, queue.counts, queue.texts) == (False, QueueCounts(), [])
        for text in ("one pot", "two pots"):
            peer.put("tea", text, "kind:green", "priority:7")
        assert queue.exists
        assert queue.texts == ["one pot", "two pots"]
        first = queue.messages[0]
        assert (first.priority, first.properties["kind"], first.standing) == (7, "green", "waiting")
        peer.subscribe("tea", "client-individual")
        message = peer.frame()
        queue.wait_for(delivering=2)
        (consumer,) = queue.consumers
        assert (consumer.kind, consumer.held) == ("consumer", 2)
        peer.answer("ACK", message)
        assert queue.counts == QueueCounts(messages=1, delivering=1, consumers=1, added=2, acknowledged=1)
        assert broker.queue_names == ["DLQ", "tea"]


def test_a_failed_assertion_says_what_is_there_and_why() -> None:
    with BrokerFixture() as broker, StompPeer(broker) as peer:
        peer.put("tea", "one pot")
        with pytest.raises(AssertionError) as failed:
            broker.queue("tea").assert_has(messages=0, consumers=1)
    assert str(failed.value).splitlines() == [
        "queue 'tea' does not have messages=0, consumers=1; it has messages=1, consumers=0, added=1",
        "advice: queue 'tea' has no consumer; start one, or look for why it is gone",
        "1 message: no consumer",
        "message 3: waiting (no consumer), 0 deliveries, 'one pot'",
    ]


def test_a_failed_assertion_about_a_queue_that_is_not_there_names_the_nearest() -> None:
    with BrokerFixture() as broker, StompPeer(broker) as peer:
        peer.put("orders", "one pot")
        with pytest.raises(AssertionError) as failed:
            broker.queue("order").assert_has(messages=1)
        with pytest.raises(NotFoundError, match="DMQ7203: there is no queue 'order'; did you mean 'orders'"):
            _ = broker.queue("order").messages
    assert str(failed.value).splitlines() == [
        "queue 'order' does not have messages=1; it has messages=0",
        "there is no queue 'order'; did you mean 'orders'?",
        "queues: 'DLQ', 'orders'",
    ]


def test_a_long_queue_is_shown_by_its_first_messages() -> None:
    with BrokerFixture() as broker, StompPeer(broker) as peer:
        for number in range(12):
            peer.put("tea", f"pot {number}")
        told = broker.queue("tea").explain().splitlines()
    assert [line.partition("'")[2] for line in told if line.startswith("message ")] == [f"pot {i}'" for i in range(10)]
    assert told[-1] == "and 2 more messages"


def test_a_wait_ends_with_the_change_that_it_waits_for() -> None:
    with BrokerFixture() as broker, StompPeer(broker) as peer:
        waiting = threading.Thread(target=lambda: broker.queue("tea").wait_for(messages=3, timeout_s=20))
        waiting.start()
        for _ in range(3):
            peer.put("tea", "one pot")
        waiting.join()
        broker.queue("tea").assert_has(messages=3)
        assert broker.watchers == []


def test_a_queue_is_looked_at_once_after_each_tick() -> None:
    with BrokerFixture() as broker:

        async def looks_of_one_tick() -> int:
            ticker = broker.composed.ticker
            while ticker.scheduled:  # noqa: ASYNC110 - each turn of this loop is a tick
                await asyncio.sleep(0)
            looks: list[None] = []
            broker.watchers.append(lambda: looks.append(None))
            ticker.schedule()
            await asyncio.sleep(0)
            broker.watchers.clear()
            return len(looks)

        assert broker.call(looks_of_one_tick()) == 1


def test_a_wait_in_vain_says_what_is_there() -> None:
    with BrokerFixture() as broker:
        with pytest.raises(
            AssertionError, match=r"^queue 'DLQ' did not have messages=1 within 0.01 s; it has messages=0"
        ):
            broker.queue("DLQ").wait_for(messages=1, timeout_s=0.01)


async def test_a_coroutine_waits_while_its_loop_goes_on() -> None:
    async with BrokerFixture() as broker:
        wait = asyncio.create_task(broker.queue("tea").wait_for_async(messages=1))
        await asyncio.sleep(0)
        with StompPeer(broker) as peer:
            peer.put("tea", "one pot")
        await wait
        with pytest.raises(AssertionError, match="did not have messages=7"):
            await broker.queue("tea").wait_for_async(messages=7, timeout_s=0.01)


async def test_a_wait_that_is_cancelled_leaves_nothing() -> None:
    async with BrokerFixture() as broker:
        wait = asyncio.create_task(broker.queue("tea").wait_for_async(messages=1))
        while not broker.watchers:  # noqa: ASYNC110 - the broker is in another thread
            await asyncio.sleep(0)
        wait.cancel()
        with pytest.raises(asyncio.CancelledError):
            await wait
        await broker.call_async(_one_turn())
        assert broker.watchers == []


async def _one_turn() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def test_a_wait_ends_with_the_broker() -> None:
    broker = BrokerFixture().start()
    wait = asyncio.create_task(broker.queue("tea").wait_for_async(messages=1))
    while not broker.watchers:  # noqa: ASYNC110 - the broker is in another thread
        await asyncio.sleep(0)
    broker.stop()
    with pytest.raises(MisuseError, match="DMQ6023: the broker was stopped while it was asked"):
        await wait


def test_what_is_asked_of_a_broker_that_does_not_run_is_refused() -> None:
    queue = BrokerFixture().queue("tea")
    with pytest.raises(MisuseError, match="DMQ6023: the broker is not running"):
        queue.wait_for(messages=1)
    with pytest.raises(MisuseError, match="DMQ6023"):
        _ = queue.counts


def test_an_assertion_that_says_nothing_is_refused() -> None:
    with (
        BrokerFixture() as broker,
        pytest.raises(MisuseError, match=r"DMQ7202: .* name one or more of messages, deliv"),
    ):
        broker.queue("tea").assert_has()


def test_a_count_that_no_queue_has_is_refused() -> None:
    misspelt: Any = {"mesages": 1}
    with BrokerFixture() as broker:
        with pytest.raises(TypeError, match="'mesages'"):
            broker.queue("tea").assert_has(**misspelt)
        with pytest.raises(TypeError, match="'mesages'"):
            broker.queue("tea").wait_for(**misspelt)


def test_a_count_of_another_type_is_not_passed_over() -> None:
    text: Any = {"messages": "0", "added": 0}
    with BrokerFixture() as broker, pytest.raises(AssertionError, match="does not have messages=0, added=0"):
        broker.queue("tea").assert_has(**text)


def test_a_count_that_is_mistyped_is_answered_with_what_was_meant() -> None:
    wrong: Any = {"mesages": 2}
    with BrokerFixture(ports=False) as broker:
        for ask in (broker.queue("tea").assert_has, broker.queue("tea").wait_for):
            with pytest.raises(TypeError, match=r"'mesages'; did you mean 'messages'\?"):
                ask(**wrong)


async def test_a_wait_that_blocks_a_loop_in_vain_names_the_one_that_does_not() -> None:
    with BrokerFixture(ports=False) as broker:
        with pytest.raises(AssertionError, match=r"await \.\.\.wait_for_async\("):
            broker.queue("tea").wait_for(messages=1, timeout_s=0)
        with pytest.raises(AssertionError) as caught:
            await broker.queue("tea").wait_for_async(messages=1, timeout_s=0)
        assert "wait_for_async" not in str(caught.value)


def test_queues_of_advisories_are_not_among_those_there_are() -> None:
    with BrokerFixture(ports=False) as broker, broker.connect() as client:
        client.send("tea", "one pot")
        with pytest.raises(AssertionError) as caught:
            broker.queue("coffee").assert_has(messages=1)
        assert "'tea'" in str(caught.value)
        assert "Advisory" not in str(caught.value)


def test_a_broker_that_was_stopped_or_has_crashed_says_that_it_can_be_started() -> None:
    with BrokerFixture(ports=False) as broker:
        broker.crash()
        for ask in (broker.crash, lambda: broker.queue("tea").counts):
            with pytest.raises(MisuseError, match=r"DMQ6023: the broker is not running; call its start\(\)"):
                ask()
        broker.start()
        broker.stop()
        with pytest.raises(MisuseError, match=r"call its start\(\)"):
            broker.cut_connections()
