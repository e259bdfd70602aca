"""Retroactive consumers: who gets the last messages of a topic that were sent before it came."""

from delosmq.model.properties import BOOLEAN_KIND, INT_KIND, TypedValue
from delosmq.model.settings import DispatchPolicy
from delosmq.wire.openwire.primitives import encode_map
from delosmq.wire.openwire.properties import decode_properties
from tests.sessions.openwire.support import Client, OpenWireBench, Reader, queue, topic

T = topic("t")
MARKED = encode_map({"ActiveMQ.Retain": TypedValue(BOOLEAN_KIND, True), "n": TypedValue(INT_KIND, 5)})


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


# -- Classic's subscription recovery -----------------------------------------------------------------------------------


def recovering(**fields: object) -> OpenWireBench:
    return OpenWireBench(address_settings={"t": {f"subscription_recovery_{name}": fields[name] for name in fields}})


def test_the_last_messages_are_for_consumers_that_ask() -> None:
    bench = recovering(count=2)
    client = bench.connect(client_id="me")
    client.publish(T, "m1 m2 m3")
    assert consume(client, retroactive=True).bodies() == "m2 m3"
    assert consume(client, retroactive=False).bodies() == ""
    assert consume(client, retroactive=True, name="durable").bodies() == "m2 m3"
    assert consume(client, retroactive=True, selector="JMSPriority > 5").bodies() == ""


def test_messages_of_a_time_are_for_consumers_that_ask() -> None:
    bench = recovering(duration=5_000)
    client = bench.connect()
    client.publish(T, "m1 m2")
    bench.pass_time(4_000)
    client.publish(T, "m3")
    assert consume(client, retroactive=True).bodies() == "m1 m2 m3"
    bench.pass_time(3_000)
    assert consume(client, retroactive=True).bodies() == "m3"


def test_a_size_bounds_what_they_get() -> None:
    bench = recovering(size=2_000)
    client = bench.connect()
    for letter in "abc":
        client.publish(T, letter * 600)
    got = consume(client, retroactive=True).bodies().split()
    assert [body[0] for body in got] == ["b", "c"]


def test_the_message_that_was_marked_is_for_consumers_that_ask() -> None:
    bench = recovering(retained=True)
    client = bench.connect()
    for body, marks in (("m1", True), ("m2", True), ("m3", False)):
        command = client.text(T, body)
        if marks:
            command.marshalled_properties = MARKED
        client.ok(command)
    reader = consume(client, retroactive=True)
    assert reader.bodies() == "m2"
    message = reader.got[0].message
    assert message is not None
    found = decode_properties(message.marshalled_properties)
    assert {name: found[name].value for name in found} == {"ActiveMQ.Retained": "true", "n": 5}
    assert consume(client, retroactive=False).bodies() == ""
    reader.done(0)
    client.publish(T, "m4")
    assert reader.bodies() == "m4"


def test_a_marked_message_without_a_body_ends_that() -> None:
    bench = recovering(retained=True)
    client = bench.connect()
    for content in (b"\0\0\0\1a", b""):
        command = client.text(T, "")
        command.marshalled_properties = MARKED
        command.content = content
        client.ok(command)
    assert consume(client, retroactive=True).take() == []


def test_without_the_policy_nothing_is_retained() -> None:
    client = OpenWireBench().connect()
    command = client.text(T, "m1")
    command.marshalled_properties = MARKED
    client.ok(command)
    assert consume(client, retroactive=True).bodies() == ""


def test_consumers_of_a_topic_can_be_served_by_priority() -> None:
    bench = OpenWireBench(address_settings={"t": {"dispatch_policy": DispatchPolicy.PRIORITY}})
    client = bench.connect()
    readers = []
    for priority in (0, 4, 9):
        info = client.consumer_info(T)
        info.priority = priority
        readers.append(client.subscribe(info))
    client.publish(T, "m1")
    order = [one.consumer_id.key() for one in client.dispatches() if one.consumer_id is not None]
    assert order == [readers[2].id.key(), readers[1].id.key(), readers[0].id.key()]
