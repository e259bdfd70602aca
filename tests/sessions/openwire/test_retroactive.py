"""Retroactive consumers: who gets the last messages of a topic that were sent before it came."""

from tests.sessions.openwire.support import Client, OpenWireBench, Reader, queue, topic

T = topic("t")


def bench_with(**fields: object) -> OpenWireBench:
    return OpenWireBench(address_settings={"t": {"retroactive_message_count": 2, **fields}})


def consume(client: Client, *, retroactive: bool, name: str = "", selector: str = "") -> Reader:
    info = client.consumer_info(T)
    info.retroactive = retroactive
    info.subscription_name = name or None
    info.selector = selector or None
    return client.subscribe(info)


def test_only_those_that_ask_get_them() -> None:
    bench = bench_with(always_retroactive=False)
    client = bench.connect()
    client.publish(T, "m1 m2 m3")
    asking, other = consume(client, retroactive=True), consume(client, retroactive=False)
    assert (asking.bodies(), other.bodies()) == ("m2 m3", "")
    client.publish(T, "m4")
    assert (asking.bodies(), other.bodies()) == ("m4", "m4")


def test_by_default_all_get_them() -> None:
    bench = bench_with()
    client = bench.connect()
    client.publish(T, "m1 m2 m3")
    assert consume(client, retroactive=False).bodies() == "m2 m3"


def test_a_durable_subscription_gets_them_when_it_is_made() -> None:
    bench = bench_with(always_retroactive=False)
    client = bench.connect(client_id="me")
    client.publish(T, "m1 m2 m3")
    reader = consume(client, retroactive=True, name="mine")
    assert reader.bodies() == "m2 m3"
    reader.done(0, 1)
    reader.close()
    assert consume(client, retroactive=True, name="mine").bodies() == ""
    assert consume(client, retroactive=False, name="other").bodies() == ""


def test_a_selector_holds_for_them() -> None:
    bench = bench_with(always_retroactive=False)
    client = bench.connect()
    for body, priority in (("low", 4), ("high", 6)):
        command = client.text(T, body)
        command.priority = priority
        client.ok(command)
    assert consume(client, retroactive=True, selector="JMSPriority > 5").bodies() == "high"


def test_of_queues_it_says_nothing() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    info = client.consumer_info(queue("q"))
    info.retroactive = True
    reader = client.subscribe(info)
    client.publish(queue("q"), "m1")
    assert reader.bodies() == "m1"
