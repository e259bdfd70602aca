"""Prefetches that address-settings give, with and without an extension, and what a browser sees.

Source: PolicyEntry of ActiveMQ Classic.
"""

# ACK-2

import pytest

from delosmq.model.settings import DispatchProfile
from delosmq.wire.openwire.commands import (
    DELIVERED_ACK,
    INDIVIDUAL_ACK,
    ConsumerControl,
    ConsumerInfo,
    MessagePull,
    Response,
)
from delosmq.wire.openwire.structures import Destination
from tests.sessions.openwire.support import Client, OpenWireBench, Reader, queue, topic

A = queue("a")
T = topic("t")


def connected(**settings: object) -> Client:
    return OpenWireBench(address_settings={"#": settings}).connect("ID:one", client_id="one", manageable=True)


def consumer(client: Client, kind: str, prefetch: int) -> ConsumerInfo:
    info = client.consumer_info(A if kind in ("queue", "browser") else T, prefetch)
    info.browser = kind == "browser"
    info.subscription_name = "s" if kind == "durable" else None
    return info


def full_after(client: Client, info: ConsumerInfo) -> int:
    """How many of twelve messages it gets unanswered."""
    destination = info.destination
    assert destination is not None
    bodies = " ".join("abcdefghijkl")
    if info.browser:
        client.publish(destination, bodies)
    reader = client.subscribe(info)
    if not info.browser:
        client.publish(destination, bodies)
    return len(reader.take())


ASKED = [
    ("queue", "queue_prefetch", 1000, 999),
    ("browser", "queue_browser_prefetch", 500, 499),
    ("topic", "topic_prefetch", 32_767, 32_766),
    ("durable", "durable_topic_prefetch", 100, 99),
    ("durable", "durable_topic_prefetch", 1000, 1001),
]


@pytest.mark.parametrize(("kind", "setting", "default", "other"), ASKED)
def test_who_asks_for_the_default_gets_that_of_the_destination(
    kind: str, setting: str, default: int, other: int
) -> None:
    client = connected(**{setting: 3})
    assert full_after(client, consumer(client, kind, default)) == 3
    client = connected(**{setting: 3})
    assert full_after(client, consumer(client, kind, other)) == 12


@pytest.mark.parametrize(("kind", "setting", "default", "other"), ASKED)
def test_the_prefetch_of_others_means_nothing_to_it(kind: str, setting: str, default: int, other: int) -> None:
    rest = {name: 3 for _, name, _, _ in ASKED if name != setting}
    client = connected(**rest)
    assert full_after(client, consumer(client, kind, default)) == 12


def test_a_consumer_of_a_virtual_topic_is_one_of_a_queue() -> None:
    client = connected(queue_prefetch=2, topic_prefetch=5)
    reader = client.consume(queue("Consumer.a.VirtualTopic.t"))
    client.publish(topic("VirtualTopic.t"), "a b c")
    assert reader.bodies() == "a b"


def test_of_several_destinations_the_first_one_counts() -> None:
    bench = OpenWireBench(address_settings={"a": {"queue_prefetch": 2}, "b": {"queue_prefetch": 1}})
    client = bench.connect()
    reader = client.consume(Destination("a,b", A.code))
    client.publish(A, "1 2 3")
    assert reader.bodies() == "1 2"


# -- a prefetch of 0 ---------------------------------------------------------------------------------------------------


def subscribed(client: Client, info: ConsumerInfo) -> list[str]:
    """What comes when it subscribes, in order."""
    client.take()
    client.feed(info, answer=True)
    client.bench.tick()
    found: list[str] = []
    for one in client.take():
        if isinstance(one, ConsumerControl):
            assert one.consumer_id is not None
            assert info.consumer_id is not None
            assert (one.consumer_id.key(), one.close, one.prefetch) == (info.consumer_id.key(), False, 0)
            found.append("control")
        else:
            assert isinstance(one, Response), one
            found.append("response")
    return found


@pytest.mark.parametrize(("kind", "setting", "default", "other"), ASKED)
def test_who_must_pull_is_told_before_the_answer(kind: str, setting: str, default: int, other: int) -> None:
    client = connected(**{setting: 0})
    info = consumer(client, kind, default)
    assert subscribed(client, info) == ["control", "response"]
    assert info.destination is not None
    client.publish(info.destination, "a b")
    reader = Reader(client, info)
    assert reader.bodies() == ""
    pull = MessagePull()
    pull.consumer_id, pull.destination = info.consumer_id, info.destination
    client.ok(pull)
    assert reader.bodies() == "a"


def test_any_other_prefetch_is_not_told() -> None:
    client = connected(queue_prefetch=3)
    assert subscribed(client, consumer(client, "queue", 1000)) == ["response"]


def test_who_pulls_anyway_is_not_told() -> None:
    client = connected(queue_prefetch=0)
    assert subscribed(client, consumer(client, "queue", 0)) == ["response"]


def test_a_peer_that_cannot_be_told_is_not() -> None:
    client = OpenWireBench(address_settings={"#": {"queue_prefetch": 0}}).connect()
    assert subscribed(client, consumer(client, "queue", 1000)) == ["response"]


# -- another prefetch --------------------------------------------------------------------------------------------------


def wish(reader: Reader, prefetch: int) -> ConsumerControl:
    """What a client says after a failover, having come back with 0."""
    control = ConsumerControl()
    control.consumer_id, control.destination, control.prefetch = reader.id, reader.info.destination, prefetch
    return control


@pytest.mark.parametrize(("kind", "setting", "default", "other"), ASKED)
def test_who_asks_for_the_default_later_gets_that_of_the_destination(
    kind: str, setting: str, default: int, other: int
) -> None:
    client = connected(**{setting: 3, "max_browse_page_size": 100})
    info = consumer(client, kind, 0)
    assert info.destination is not None
    if info.browser:
        client.publish(info.destination, "a b c d e f")
    reader = client.subscribe(info)
    if not info.browser:
        client.publish(info.destination, "a b c d e f")
    client.ok(wish(reader, default))
    assert reader.bodies() == "a b c"
    client.ok(wish(reader, other))
    assert reader.bodies() == "d e f"


def test_of_several_the_first_one_counts_later_too() -> None:
    settings: dict[str, dict[str, object]] = {"a": {"queue_prefetch": 2}, "b": {"queue_prefetch": 4}}
    client = OpenWireBench(address_settings=settings).connect()
    reader = client.consume(queue("a,b"), 0)
    client.publish(A, "1 2 3")
    client.ok(wish(reader, 1000))
    assert reader.bodies() == "1 2"


def test_who_must_pull_from_now_on_is_told() -> None:
    client = connected(queue_prefetch=0)
    reader = client.consume(A, 5)
    client.publish(A, "a b c d e f g")
    assert reader.bodies() == "a b c d e"
    client.ok(wish(reader, 1000))
    (told,) = [one for one in client.take() if isinstance(one, ConsumerControl)]
    assert told.consumer_id is not None
    assert (told.consumer_id.key(), told.close, told.prefetch) == (reader.id.key(), False, 0)
    reader.done(0, 4)
    assert reader.bodies() == ""


# -- extension ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("extends", "more"), [(True, "c d"), (False, "")])
def test_what_is_reported_as_delivered_extends_or_not(extends: bool, more: str) -> None:
    client = connected(use_prefetch_extension=extends)
    reader = client.consume(A, 2)
    client.publish(A, "a b c d e")
    assert reader.bodies() == "a b"
    client.ok(reader.ack(DELIVERED_ACK, 1, first=0, count=2))
    assert reader.bodies() == more


@pytest.mark.parametrize(("extends", "more"), [(True, "c"), (False, "")])
def test_an_individual_acknowledgement_in_a_transaction_extends_or_not(extends: bool, more: str) -> None:
    client = connected(use_prefetch_extension=extends)
    reader = client.consume(A, 2)
    client.publish(A, "a b c")
    assert reader.bodies() == "a b"
    transaction = client.begin()
    client.ok(reader.ack(INDIVIDUAL_ACK, 0, transaction=transaction))
    assert reader.bodies() == more
    client.ok(client.transaction_info(transaction, 2))
    assert reader.bodies() == ("" if extends else "c")


def test_without_an_extension_a_pull_brings_its_message() -> None:
    client = connected(use_prefetch_extension=False)
    client.publish(A, "a b")
    reader = client.consume(A, 0)
    pull = MessagePull()
    pull.consumer_id, pull.destination = reader.id, A
    client.ok(pull)
    assert reader.bodies() == "a"


# -- browsers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "size", "seen"),
    [
        (DispatchProfile.CLASSIC, 3, 3),
        (DispatchProfile.ARTEMIS, 3, 3),
        (DispatchProfile.CLASSIC, -1, 405),
        (DispatchProfile.CLASSIC, None, 405),
        (DispatchProfile.ARTEMIS, None, 405),
    ],
)
def test_how_much_a_browser_sees(profile: DispatchProfile, size: int | None, seen: int) -> None:
    page = {} if size is None else {"max_browse_page_size": size}
    client = connected(dispatch_profile=profile, **page)
    for number in range(405):
        client.feed(client.text(A, str(number)))
    info = consumer(client, "browser", 1000)
    reader = client.subscribe(info)
    assert (len(reader.take()), reader.ended) == (seen, 1)
