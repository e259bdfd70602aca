"""Durable subscriptions: what they keep, whose they are, how they end."""

import pytest

from delosmq.model.message import MULTICAST
from delosmq.model.settings import QueueSettings
from delosmq.wire.openwire.commands import RemoveSubscriptionInfo
from tests.engine.support import RecordingStore
from tests.sessions.openwire.support import Client, OpenWireBench, code_of, queue, topic

T = topic("t")


def unsubscribe(client: Client, name: str = "s", client_id: str | None = "me") -> RemoveSubscriptionInfo:
    info = RemoveSubscriptionInfo()
    info.subscription_name = name
    info.client_id = client_id
    return info


def subscribed(bench: OpenWireBench) -> Client:
    """A client that has subscribed and closed its consumer."""
    client = bench.connect(client_id="me")
    client.durable("s", T).close()
    return client


def test_what_is_published_while_nobody_reads_is_kept() -> None:
    bench = OpenWireBench()
    client = subscribed(bench)
    client.publish(T, "0 1")
    assert client.durable("s", T).bodies() == "0 1"


def test_what_was_acknowledged_does_not_come_again() -> None:
    bench = OpenWireBench()
    client = bench.connect(client_id="me")
    reader = client.durable("s", T)
    client.publish(T, "0 1")
    reader.take()
    reader.done(0)
    reader.close()
    assert client.durable("s", T).bodies() == "1"


def test_it_outlives_its_connection_and_the_broker() -> None:
    store = RecordingStore()
    bench = OpenWireBench(store=store)
    subscribed(bench).drop()
    bench.connect().publish(T, "kept")
    again = OpenWireBench(store=RecordingStore(store.batches))
    assert again.connect(client_id="me").durable("s", T).bodies() == "kept"


def test_it_is_read_by_one_consumer_at_a_time() -> None:
    bench = OpenWireBench()
    client = bench.connect(client_id="me")
    reader = client.durable("s", T)
    info = client.consumer_info(T)
    info.subscription_name = "s"
    exception = client.refused(info)
    assert code_of(exception) == "JMSException DMQ5252"
    assert "client: me and subscriptionName: s" in (exception.message or "")
    client.publish(T, "x")
    assert reader.bodies() == "x"


def test_other_names_and_other_clients_have_their_own() -> None:
    bench = OpenWireBench()
    me, you = bench.connect(client_id="me"), bench.connect(client_id="you")
    readers = [me.durable("s", T), me.durable("z", T), you.durable("s", T)]
    me.publish(T, "x")
    assert [reader.bodies() for reader in readers] == ["x", "x", "x"]


def test_it_needs_a_client_id() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    info = client.consumer_info(T)
    info.subscription_name = "s"
    assert code_of(client.refused(info)) == "JMSException DMQ5251"


def test_it_ends_when_it_is_unsubscribed() -> None:
    bench = OpenWireBench()
    client = subscribed(bench)
    client.publish(T, "gone")
    client.ok(unsubscribe(client))
    assert client.durable("s", T).bodies() == ""


@pytest.mark.parametrize("client_id", [None, "me"])
def test_whose_it_is_need_not_be_said(client_id: str | None) -> None:
    client = subscribed(OpenWireBench())
    client.ok(unsubscribe(client, client_id=client_id))
    assert code_of(client.refused(unsubscribe(client))) == "InvalidDestinationException DMQ5253"


def test_it_is_not_unsubscribed_while_somebody_reads_it() -> None:
    bench = OpenWireBench()
    client = bench.connect(client_id="me")
    reader = client.durable("s", T)
    assert code_of(client.refused(unsubscribe(client))) == "JMSException DMQ5254"
    client.publish(T, "x")
    assert reader.bodies() == "x"


def test_a_queue_is_no_subscription() -> None:
    bench = OpenWireBench()
    client = bench.connect(client_id="me")
    client.publish(queue("me.s"), "x")
    assert code_of(client.refused(unsubscribe(client))) == "InvalidDestinationException DMQ5253"
    assert bench.queue("me.s").message_count == 1


def test_another_selector_makes_it_anew() -> None:
    bench = OpenWireBench()
    client = subscribed(bench)
    client.publish(T, "old")
    info = client.consumer_info(T)
    info.subscription_name = "s"
    info.selector = "JMSPriority > 5"
    reader = client.subscribe(info)
    client.publish(T, "low")
    urgent = client.text(T, "urgent")
    urgent.priority = 9
    client.ok(urgent)
    assert reader.bodies() == "urgent"


def test_another_topic_makes_it_anew() -> None:
    bench = OpenWireBench()
    client = subscribed(bench)
    client.publish(T, "old")
    reader = client.durable("s", topic("other"))
    client.publish(topic("other"), "new")
    assert reader.bodies() == "new"


def test_a_subscription_to_a_queue_has_no_name() -> None:
    """A name on a queue's consumer means nothing, as for Classic's broker."""
    bench = OpenWireBench()
    client = bench.connect()
    info = client.consumer_info(queue("a"))
    info.subscription_name = "s"
    reader = client.subscribe(info)
    client.publish(queue("a"), "x")
    assert reader.bodies() == "x"


def test_one_durable_subscription_is_of_one_topic() -> None:
    bench = OpenWireBench()
    client = bench.connect(client_id="c")
    info = client.consumer_info(topic("t1,t2"))
    info.subscription_name = "s"
    assert code_of(client.refused(info)) == "JMSException DMQ5283"
    assert bench.broker.queues == {}


def test_names_with_dots_do_not_meet() -> None:
    bench = OpenWireBench()
    clients = [bench.connect(client_id=client_id) for client_id in ("a", "a.b", "a\\.b")]
    for client, name in zip(clients, ("b.c", "c", "c"), strict=True):
        client.durable(name, topic("t")).close()
    assert sorted(bench.broker.queues) == ["a.b\\.c", "a\\.b.c", "a\\\\\\.b.c"]


def test_the_queue_of_a_virtual_topic_is_no_subscription() -> None:
    bench = OpenWireBench()
    client = bench.connect(client_id="app")
    rule = bench.connect()
    bench.broker.resources.create_queue(QueueSettings("app.s", "t", MULTICAST, auto_created=True))
    rule.publish(topic("t"), "x")
    info = client.consumer_info(topic("u"))
    info.subscription_name = "s"
    assert code_of(client.refused(info)) == "JMSException DMQ5284"
    assert bench.queue("app.s").message_count == 1
