"""How many dead letters a message becomes, and how long one lives."""

# ACK-4

import pytest

from delosmq.engine.queues.consumer import ConsumerOptions
from delosmq.engine.queues.credit import OpenCredit
from delosmq.engine.routing.copies import IDS_REMEMBERED
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.settings import DispatchProfile, QueueSettings
from tests.engine.support import Bench, Collector

CLASSIC = DispatchProfile.CLASSIC


def start(**fields: object) -> Bench:
    """An address with two subscriptions, whose messages die at the first attempt."""
    named = {"dead_letter_address": "DLQ", "expiry_address": "EXP", "max_delivery_attempts": 1}
    queues = (
        QueueSettings("a", "news", MULTICAST),
        QueueSettings("b", "news", MULTICAST),
        QueueSettings("DLQ", "DLQ", ANYCAST),
        QueueSettings("EXP", "EXP", ANYCAST),
    )
    return Bench(queues=queues, settings={"#": {**named, **fields}})


def fail(bench: Bench, name: str) -> None:
    port = Collector()
    address = bench.broker.queues[name].address.name
    consumer = bench.broker.consumers.subscribe(address, port, OpenCredit(), queue_name=name if address != name else "")
    bench.run()
    bench.broker.consumers.reject_through(consumer, port.slots[-1].sequence, poison=True)
    bench.broker.consumers.close(consumer)
    bench.run()


ONCE_OR_TWICE: list[tuple[dict[str, object], str]] = [
    ({}, "A A"),
    ({"dead_letter_duplicates": True}, "A A"),
    ({"dead_letter_duplicates": False}, "A"),
    ({"dispatch_profile": CLASSIC}, "A"),
    ({"dispatch_profile": CLASSIC, "dead_letter_duplicates": True}, "A A"),
]


@pytest.mark.parametrize(("fields", "kept"), ONCE_OR_TWICE)
def test_a_message_that_fails_in_two_subscriptions(fields: dict[str, object], kept: str):
    bench = start(**fields)
    bench.send("news", "A")
    fail(bench, "a")
    fail(bench, "b")
    assert bench.pending("DLQ") == kept


@pytest.mark.parametrize(("fields", "kept"), ONCE_OR_TWICE)
def test_a_message_that_expires_in_two_subscriptions(fields: dict[str, object], kept: str):
    bench = start(**fields)
    bench.send("news", "A", expires_in_ms=10)
    bench.later(40_000)
    assert bench.pending("EXP") == kept


def test_a_dead_letter_reaches_the_connection_that_sent_its_message():
    bench = start()
    message = bench.message("news", "A")
    message.connection_id = "me"
    bench.broker.producers.send(message, routing=MULTICAST)
    fail(bench, "a")
    port = Collector()
    options = ConsumerOptions(no_local="me")
    bench.broker.consumers.subscribe("DLQ", port, OpenCredit(), routing=ANYCAST, options=options)
    bench.run()
    assert port.bodies == "A"


def test_what_failed_in_one_subscription_does_not_expire_in_another():
    bench = start(dead_letter_duplicates=False)
    bench.send("news", "A", expires_in_ms=10)
    fail(bench, "a")
    bench.later(40_000)
    assert (bench.pending("DLQ"), bench.pending("EXP")) == ("A", "")


def test_an_attempt_that_kept_nothing_does_not_count():
    bench = start(dead_letter_duplicates=False, auto_create_queues=False)
    bench.broker.resources.delete_queue("DLQ")
    bench.send("news", "A")
    fail(bench, "a")
    bench.broker.resources.create_queue(QueueSettings("DLQ", "DLQ", ANYCAST))
    fail(bench, "b")
    assert bench.pending("DLQ") == "A"


def test_an_expiry_that_kept_nothing_does_not_count():
    bench = start(dead_letter_duplicates=False, auto_create_queues=False)
    bench.broker.resources.delete_queue("EXP")
    bench.send("news", "A", expires_in_ms=10)
    bench.broker.resources.update_queue("b", paused=True)
    bench.clock.now_ms += 20
    bench.broker.consumers.subscribe("news", Collector(), OpenCredit(), queue_name="a")
    bench.run()
    bench.broker.resources.create_queue(QueueSettings("EXP", "EXP", ANYCAST))
    bench.later(40_000)
    assert bench.pending("EXP") == "A"


def test_the_ids_of_dead_letters_are_a_bounded_number():
    bench = start(dead_letter_duplicates=False)
    bench.send("news", " ".join(["first"] + ["x"] * IDS_REMEMBERED), durable=False, expires_in_ms=10)
    bench.later(40_000)
    # When the second subscription was looked at, each had just been forgotten.
    assert len(bench.pending("EXP").split()) == 2 * (IDS_REMEMBERED + 1)


def test_a_dead_letter_lives_for_a_while_and_then_ends():
    bench = start(dead_letter_expiry_delay=1_000)
    bench.send("news", "A")
    fail(bench, "a")
    slot = bench.broker.queues["DLQ"].pending.head()
    assert slot is not None
    assert slot.message.expires_at_ms == bench.clock.wall_ms() + 1_000
    again = bench.restart()
    again.later(40_000)
    assert (again.pending("DLQ"), again.pending("EXP")) == ("", "A")
    again.later(40_000)
    # It is where it would go.
    assert again.counts("EXP") == (0, 0, 0)
    kept = again.broker.queues["b"].pending.head()
    assert kept is not None
    assert again.broker.used_bytes == kept.message.charge_bytes


def test_without_a_delay_a_dead_letter_lives_for_ever():
    bench = start()
    bench.send("news", "A", expires_in_ms=20_000)
    fail(bench, "a")
    bench.later(80_000)
    assert bench.pending("DLQ") == "A"


@pytest.mark.parametrize("profile", list(DispatchProfile))
def test_dead_letters_and_expired_ones_may_share_an_address(profile: DispatchProfile):
    bench = start(dead_letter_expiry_delay=1_000, expiry_address="DLQ", dispatch_profile=profile)
    bench.send("news", "A")
    fail(bench, "a")
    assert bench.pending("DLQ") == "A"
    bench.later(40_000)
    assert bench.counts("DLQ") == (0, 0, 0)


def test_with_a_life_of_its_own_a_dead_letter_does_not_say_when_it_expired():
    for delay, told in ((-1, True), (1_000, False)):
        bench = start(dead_letter_expiry_delay=delay, dispatch_profile=CLASSIC)
        bench.send("news", "A")
        fail(bench, "a")
        slot = bench.broker.queues["DLQ"].pending.head()
        assert slot is not None
        assert ("originalExpiration" in (slot.message.annotations or {})) == told


@pytest.mark.parametrize(("durable", "told"), [(True, None), (False, "NON_PERSISTENT")])
def test_classic_says_that_a_dead_letter_was_not_persistent(durable: bool, told: str | None):
    bench = start(dispatch_profile=CLASSIC)
    bench.send("news", "A", durable=durable)
    fail(bench, "a")
    slot = bench.broker.queues["DLQ"].pending.head()
    assert slot is not None
    assert slot.message.durable
    assert (slot.message.annotations or {}).get("originalDeliveryMode") == told
