"""Peers that read what they browse and acknowledge nothing keep no message that has left its queue, in any protocol."""

# BROKER-4, EXCL-3

import gc
from collections.abc import Callable

import pytest

from delosmq.engine.queues.credit import PrefetchCredit
from delosmq.engine.queues.loans import MOST_LENT
from delosmq.model.conversion import Conversions
from delosmq.model.message import ANYCAST, Message
from delosmq.sessions.openwire.server.consumers.subscription import OpenWireSubscription, Source, SubscriptionEvents
from delosmq.sessions.openwire.server.destinations import OpenWireTarget
from delosmq.wire.openwire.dispatch import DispatchEncoder
from tests.sessions.openwire.support import OpenWireBench, queue
from tests.sessions.support import StompBench

Started = tuple[StompBench | OpenWireBench, Callable[[], object]]

COUNT = 20
MESSAGES = 20
BODY = "x" * 100_000


def stomp() -> Started:
    bench = StompBench()
    producer = bench.connect()
    for _ in range(MESSAGES):
        producer.frame("SEND", "destination:/queue/a", body=BODY)

    def browse() -> object:
        client = bench.connect()
        client.frame(
            "SUBSCRIBE", "id:s", "destination:/queue/a", "browser:true", "ack:client", "consumer-window-size:-1"
        )
        assert len(client.take()) == MESSAGES + 1
        return client

    return bench, browse


def openwire() -> Started:
    bench = OpenWireBench()
    bench.connect().publish(queue("a"), " ".join([BODY] * MESSAGES))

    def browse() -> object:
        client = bench.connect()
        info = client.consumer_info(queue("a"), 32_766)
        info.browser = True
        reader = client.subscribe(info)
        assert len(reader.take()) == MESSAGES
        client.keep([])
        reader.got.clear()
        return reader

    return bench, browse


@pytest.mark.parametrize("start", [stomp, openwire])
def test_what_twenty_browsers_have_read_goes_with_a_purge(start: Callable[[], Started]) -> None:
    bench, browse = start()
    browsers = [browse() for _ in range(COUNT)]
    bench.broker.resources.purge_queue("a")
    bench.tick()
    assert bench.broker.used_bytes == 0
    gc.collect()
    kept = [found for found in gc.get_objects() if isinstance(found, Message) and len(found.body) >= len(BODY)]
    assert (len(browsers), len(kept)) == (COUNT, 0)


def test_of_several_sources_the_order_of_what_is_answered_is_forgotten() -> None:
    client = OpenWireBench().connect()
    info = client.consumer_info(queue("a,b"))
    subscription = OpenWireSubscription(info, PrefetchCredit(1), checked=True)
    subscription.shares()
    encoder = DispatchEncoder(client.form, client.subscribe(info).id, Conversions({}), "b")
    target = OpenWireTarget(queue("a"), "a", "a", ANYCAST)
    source = Source(subscription, target, client.session.outbox, encoder=encoder, events=SubscriptionEvents())
    for sequence in range(3 * MOST_LENT):
        subscription.dispatching(source, sequence)
    assert subscription.order is not None
    assert len(subscription.order) <= 2 * MOST_LENT
