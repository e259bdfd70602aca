"""Rows of the table of acknowledgements that no recording shows; the others are in test_recorded.py.

| row | recordings |
|---|---|
| AUTO | auto, auto-listener, topic-auto, durable-auto |
| AUTO, optimised | optimised, optimised-range, optimised-time-out, optimised-timer |
| DUPS_OK | dups-ok, topic-dups-ok, durable-dups-ok |
| CLIENT | client, client-forms, client-prefetch-1, client-pull, topic-client, durable-client |
| INDIVIDUAL | individual, topic-individual, durable-individual |
| TRANSACTED | transacted, topic-transacted, durable-transacted, rollback, rollback-room, transacted-individual |
| in a branch | xa, xa-acknowledged |
| expired | expired, expired-transacted |
| POISON | poison, poison-range, poison-listener, poison-on-arrival |
| REDELIVERED | redelivered, recovered, non-blocking-redelivery |
| pull, browse | pull, pull-wait, browse, browse-pages |
| close | closed-consumer, closed-session, durable |
"""

# ACK-1, ACK-2

import pytest

from delosmq.sessions.openwire.client.options import AckMode, ClientOptions, PrefetchPolicy
from delosmq.wire.openwire.commands import (
    TEXT_MESSAGE,
    ConsumerInfo,
    MessageAck,
    MessageCommand,
    MessageDispatch,
    RemoveInfo,
)
from delosmq.wire.openwire.structures import Destination, MessageId, ProducerId
from tests.sessions.openwire_client.test_machine import Wire, consume


def with_prefetch(prefetch: int) -> ClientOptions:
    return ClientOptions(watch_topic_advisories=False, prefetch_policy=PrefetchPolicy(queue_prefetch=prefetch))


@pytest.mark.parametrize("mode", [AckMode.CLIENT, AckMode.INDIVIDUAL])
@pytest.mark.parametrize(
    "prefetch, said", [(2, ["1-1", "2-2", "3-3"]), (3, ["1-2"]), (4, ["1-2"]), (5, ["1-3"]), (6, ["1-3"]), (7, [])]
)
def test_half_a_prefetch_is_said_to_be_delivered(mode: AckMode, prefetch: int, said: list[str]) -> None:
    wire = Wire(with_prefetch(prefetch))
    _, consumer = wire.consumer(mode)
    wire.dispatch(consumer, 3)
    consume(consumer, 3)
    assert wire.acks() == [f"DELIVERED {each}" for each in said]


def test_what_is_too_old_on_arrival_is_the_last_delivered_one_as_in_java_though_one_before_it_waits() -> None:
    wire = Wire()
    session, consumer = wire.consumer()
    wire.dispatch(consumer, expires_ms=0)
    wire.dispatch(consumer, expires_ms=1)
    assert (consumer.waiting_count, consumer.last_delivered_sequence) == (1, 2)
    wire.take()
    session.close_consumer(consumer)
    assert [one.last_delivered_sequence_id for one in wire.take() if isinstance(one, RemoveInfo)] == [2]


def test_what_expires_on_the_way_is_told_on_arrival_unless_a_listener_waits_for_it() -> None:
    for listens in (False, True):
        wire = Wire(ClientOptions(watch_topic_advisories=False))
        _, consumer = wire.consumer()
        consumer.listens = listens
        wire.dispatch(consumer, expires_ms=1)
        assert wire.acks() == ([] if listens else ["EXPIRED 1-1"])
        assert consumer.reserve() is None
        assert wire.acks() == (["EXPIRED 1-1"] if listens else [])


def test_what_is_not_optimised_any_more_is_acknowledged_at_once() -> None:
    """A broker that is fault tolerant says so, before or after the consumer is made."""
    wire = Wire(ClientOptions(watch_topic_advisories=False, optimize_acknowledge=True))
    wire.machine.optimizes = False
    _, consumer = wire.consumer()
    wire.dispatch(consumer, 2)
    consume(consumer, 2)
    assert wire.acks() == ["STANDARD 1-1", "STANDARD 2-2"]


def test_advisories_are_acknowledged_from_the_751st_on() -> None:
    wire = Wire(ClientOptions())
    news = Destination("ActiveMQ.Advisory.TempQueue")
    watcher = wire.machine.temporaries.to_repeat()[-1]
    assert isinstance(watcher, ConsumerInfo)
    acks: list[MessageAck] = []
    for number in range(1, 752):
        dispatch = MessageDispatch()
        dispatch.consumer_id = watcher.consumer_id
        dispatch.destination = news
        dispatch.message = MessageCommand(TEXT_MESSAGE)
        dispatch.message.message_id = MessageId(ProducerId("p", 1, 1), number, number)
        wire.say(dispatch)
        acks += [one for one in wire.take() if isinstance(one, MessageAck)]
        assert bool(acks) == (number == 751)
    (ack,) = acks
    assert ack.first_message_id is None
    assert ack.last_message_id is not None
    assert (ack.ack_type, ack.message_count, ack.last_message_id.producer_sequence_id) == (2, 751, 751)
