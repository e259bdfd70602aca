"""Consumers whose queue, topic or subscription an operator deletes by force: none of them is left without a word."""

from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.settings import QueueSettings
from delosmq.wire.openwire.commands import ConsumerControl, MessagePull
from delosmq.wire.openwire.structures import Structure
from tests.sessions.openwire.support import Client, OpenWireBench, queue, topic


def codes(client: Client) -> list[str]:
    """Of what the log says about a connection."""
    return [trouble.code for trouble in client.host.reports]


def closes(frames: list[Structure]) -> list[str]:
    """The consumers that a peer is told to close."""
    return [
        one.consumer_id.key()
        for one in frames
        if isinstance(one, ConsumerControl) and one.close and one.consumer_id is not None
    ]


def delete(bench: OpenWireBench, name: str) -> None:
    bench.broker.resources.delete_queue(name)
    bench.tick()


def test_a_consumer_reads_the_queue_again_that_a_send_makes_again() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(queue("orders"))
    client.publish(queue("orders"), "m1")
    assert reader.bodies() == "m1"
    reader.done(0)
    delete(bench, "orders")
    assert "orders" not in bench.broker.queues
    assert codes(client) == ["DMQ5286"]
    client.publish(queue("orders"), "m2 m3")
    assert reader.bodies() == "m2 m3"
    reader.done(1, 2)
    assert bench.queue("orders").message_count == 0
    reader.close()
    assert not bench.queue("orders").holders


def test_or_that_an_operator_does_before_anybody_looked() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(queue("orders"), 1)
    client.publish(queue("orders"), "m1")
    assert reader.bodies() == "m1"
    for _ in range(2):
        bench.broker.resources.delete_queue("orders")
        bench.broker.resources.create_queue(QueueSettings("orders", "orders", ANYCAST))
        bench.tick()
    assert len(bench.queue("orders").holders) == 1
    client.publish(queue("orders"), "m2")
    # What was in delivery takes no room any more.
    assert reader.bodies() == "m2"


def test_each_of_several_does_with_its_selector() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    info = client.consumer_info(queue("orders"))
    info.selector = "JMSPriority > 4"
    client.subscribe(info)
    client.consume(queue("orders"))
    delete(bench, "orders")
    bench.broker.resources.create_queue(QueueSettings("orders", "orders", ANYCAST))
    bench.tick()
    selectors = [consumer.options.selector for consumer in bench.queue("orders").holders]
    assert [selector is not None for selector in selectors] == [True, False]


def test_a_queue_that_a_wildcard_brought_is_read_once() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    client.consume(queue("a.b,a.>"))
    delete(bench, "a.b")
    client.publish(queue("a.b"), "m1")
    assert len(bench.queue("a.b").holders) == 1


def test_a_pull_is_answered_by_the_queue_that_is_there_again() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(queue("orders"), 0)
    pull = MessagePull()
    pull.consumer_id = reader.id
    pull.destination = queue("orders")
    client.ok(pull)
    delete(bench, "orders")
    client.publish(queue("orders"), "m1 m2")
    assert reader.bodies() == "m1"


def test_nothing_is_read_again_once_the_consumer_is_closed() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader, other = client.consume(queue("orders")), client.consume(queue("orders"))
    delete(bench, "orders")
    reader.close()
    client.publish(queue("orders"), "m1")
    assert (reader.bodies(), other.bodies()) == ("", "m1")


def test_a_consumer_of_a_topic_hears_it_at_once_again() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(topic("news"))
    bench.broker.resources.delete_address("news", force=True)
    bench.tick()
    assert codes(client) == ["DMQ5287"]
    client.publish(topic("news"), "m1")
    assert reader.bodies() == "m1"


def test_one_that_may_not_hear_it_again_is_closed() -> None:
    bench = OpenWireBench(address_settings={"news": {"auto_create_addresses": False}})
    client = bench.connect()
    bench.broker.resources.create_address("news", {MULTICAST})
    reader = client.consume(topic("news"))
    bench.broker.resources.delete_address("news", force=True)
    bench.tick()
    assert closes(client.take()) == [reader.id.key()]
    assert codes(client) == ["DMQ5288"]


def test_a_durable_subscription_that_is_deleted_stays_so_and_its_consumer_is_closed() -> None:
    bench = OpenWireBench()
    client = bench.connect(client_id="me")
    reader = client.durable("s", topic("news"))
    delete(bench, "me.s")
    assert closes(client.take()) == [reader.id.key()]
    assert codes(client) == ["DMQ5288"]
    assert "me.s" not in bench.broker.queues
    reader.close()
    client.durable("s", topic("news"))


def test_a_peer_that_does_not_close_it_has_no_such_consumer_a_second_later() -> None:
    bench = OpenWireBench()
    client = bench.connect(client_id="me")
    reader = client.durable("s", topic("news"))
    delete(bench, "me.s")
    bench.pass_time(1_100)
    answer = client.refused(client.remove_info(reader.id))
    assert "DMQ5258" in (answer.message or "")


def test_a_browser_of_a_deleted_queue_is_at_its_end() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    client.publish(queue("orders"), "m1 m2")
    info = client.consumer_info(queue("orders"), 1)
    info.browser = True
    browser = client.subscribe(info)
    assert (browser.bodies(), browser.ended) == ("m1", 0)
    delete(bench, "orders")
    browser.take()
    assert browser.ended == 1
    client.publish(queue("orders"), "m3")
    assert (browser.bodies(), browser.ended) == ("", 1)
