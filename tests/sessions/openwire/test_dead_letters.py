"""What becomes of a poisonous message: where it lies, and what it tells of itself."""

# ACK-4

import pytest

from delosmq.model.settings import DispatchProfile
from delosmq.wire.openwire.commands import EXPIRED_ACK, POISON_ACK, MessageDispatch
from delosmq.wire.openwire.properties import decode_properties
from delosmq.wire.openwire.structures import Throwable
from tests.sessions.openwire.support import Client, OpenWireBench, Reader, queue, text_of, topic

A = queue("a")
DLQ = queue("ActiveMQ.DLQ")


def start(**settings: object) -> tuple[OpenWireBench, Client]:
    classic: dict[str, object] = {"dispatch_profile": DispatchProfile.CLASSIC, "dead_letter_address": "ActiveMQ.DLQ"}
    bench = OpenWireBench(address_settings={"#": {**classic, **settings}})
    client = bench.connect()
    # As sending to it would make it.
    client.consume(DLQ).close()
    return bench, client


def poison(reader: Reader, last: int = 0, cause: Throwable | None = None) -> None:
    reader.client.ok(reader.ack(POISON_ACK, last, first=0, count=last + 1, cause=cause))


def dead_letters(client: Client) -> list[MessageDispatch]:
    return client.consume(DLQ).take()


def property_of(dispatch: MessageDispatch, name: str) -> object:
    assert dispatch.message is not None
    found = decode_properties(dispatch.message.marshalled_properties).get(name)
    return None if found is None else found.value


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("exceeded redelivery policy limit", "java.lang.Throwable: exceeded redelivery policy limit"),
        (None, "java.lang.Throwable"),
    ],
)
def test_a_dead_letter_tells_where_it_was_and_why_it_is_one(message: str | None, told: str) -> None:
    _, client = start()
    client.publish(A, "bad")
    reader = client.consume(A)
    reader.take()
    poison(reader, cause=Throwable("java.lang.Throwable", message))
    (dead,) = dead_letters(client)
    assert text_of(dead) == "bad"
    assert dead.message is not None
    assert dead.message.destination is not None
    assert dead.message.original_destination is not None
    assert dead.message.destination.qualified_name() == "queue://ActiveMQ.DLQ"
    assert dead.message.original_destination.qualified_name() == "queue://a"
    assert property_of(dead, "dlqDeliveryFailureCause") == told
    assert (dead.redelivery_counter, dead.message.persistent) == (0, True)


def test_a_dead_letter_does_not_expire() -> None:
    bench, client = start()
    command = client.text(A, "bad")
    command.expiration = bench.clock.wall_ms() + 10_000
    client.ok(command)
    reader = client.consume(A)
    reader.take()
    poison(reader)
    bench.pass_time(20_000)
    (dead,) = dead_letters(client)
    assert dead.message is not None
    assert dead.message.expiration == 0
    assert property_of(dead, "originalExpiration") == command.expiration


def test_a_dead_letter_of_a_message_that_was_not_persistent_is() -> None:
    _, client = start()
    client.ok(client.text(A, "bad", persistent=False))
    reader = client.consume(A)
    (dispatch,) = reader.take()
    assert dispatch.message is not None
    assert not dispatch.message.persistent
    poison(reader)
    (dead,) = dead_letters(client)
    assert dead.message is not None
    assert dead.message.persistent


@pytest.mark.parametrize("persistent", [True, False])
def test_there_may_be_no_dead_letter_of_what_was_not_persistent(persistent: bool) -> None:
    _, client = start(dead_letter_non_durable=False)
    client.ok(client.text(A, "bad", persistent=persistent))
    reader = client.consume(A)
    reader.take()
    poison(reader)
    assert len(dead_letters(client)) == persistent


def test_dead_letters_lie_in_their_order() -> None:
    _, client = start()
    client.publish(A, "0 1 2")
    reader = client.consume(A)
    reader.take()
    poison(reader, last=2)
    assert [text_of(dead) for dead in dead_letters(client)] == ["0", "1", "2"]


def test_a_durable_subscription_s_dead_letter_names_its_topic() -> None:
    bench, _ = start()
    client = bench.connect(client_id="me")
    reader = client.durable("s", topic("t"))
    client.publish(topic("t"), "bad")
    reader.take()
    poison(reader)
    (dead,) = dead_letters(client)
    assert dead.message is not None
    assert dead.message.original_destination is not None
    assert dead.message.original_destination.qualified_name() == "topic://t"


def test_a_message_that_its_client_finds_expired_goes_where_the_expired_go() -> None:
    bench, client = start(expiry_address="ActiveMQ.DLQ")
    client.publish(A, "late")
    reader = client.consume(A)
    reader.take()
    client.ok(reader.ack(EXPIRED_ACK, 0, first=0))
    assert [text_of(dead) for dead in dead_letters(client)] == ["late"]
    assert bench.queue("a").counters.expired == 1


def test_a_dead_letter_may_be_consumed_like_any_other() -> None:
    bench, client = start()
    client.publish(A, "bad")
    reader = client.consume(A)
    reader.take()
    poison(reader)
    grave = client.consume(DLQ)
    grave.take()
    grave.done(0)
    assert bench.queue("ActiveMQ.DLQ").message_count == 0


def test_a_long_cause_is_cut_and_half_characters_are_replaced() -> None:
    _, client = start()
    client.publish(queue("a"), "x")
    reader = client.consume(queue("a"))
    reader.take()
    poison(reader, cause=Throwable("E", "\ud800" + "x" * 20_000))
    (dead,) = dead_letters(client)
    cause = property_of(dead, "dlqDeliveryFailureCause")
    assert isinstance(cause, str)
    assert cause.startswith("E: ?xx")
    assert len(cause) == 1_000
