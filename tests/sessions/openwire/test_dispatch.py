"""Which consumer gets a message: exclusive ones, priorities, round robin, selectors, noLocal, groups."""

import pytest

from delosmq.model.settings import QueueSettings
from delosmq.wire.openwire.commands import STANDARD_ACK
from tests.sessions.openwire.support import Client, OpenWireBench, Reader, queue, topic

A = queue("a")


def exclusive(client: Client, priority: int = 0, prefetch: int = 1000) -> Reader:
    info = client.consumer_info(A, prefetch)
    info.exclusive = True
    info.priority = priority
    return client.subscribe(info)


def with_priority(client: Client, priority: int, prefetch: int) -> Reader:
    info = client.consumer_info(A, prefetch)
    info.priority = priority
    return client.subscribe(info)


# -- exclusive consumers -----------------------------------------------------------------------------------------------


def test_one_exclusive_consumer_gets_everything_in_order() -> None:  # EXCL-1
    bench = OpenWireBench()
    client = bench.connect()
    shared = client.consume(A)
    owner, standby = exclusive(client), exclusive(client)
    client.publish(A, "0 1 2 3")
    assert (owner.bodies(), standby.bodies(), shared.bodies()) == ("0 1 2 3", "", "")


def test_the_next_exclusive_consumer_takes_over_in_order() -> None:  # EXCL-1
    bench = OpenWireBench()
    client = bench.connect()
    owner, standby = exclusive(client, prefetch=5), exclusive(client)
    client.publish(A, "0 1 2 3 4 5 6")
    assert owner.bodies() == "0 1 2 3 4"
    owner.close(owner.sequence(1))
    assert standby.bodies() == "0r1 1r1 2 3 4 5 6"


def test_after_the_owner_s_connection_is_lost_all_in_flight_comes_first_and_redelivered() -> None:  # EXCL-1
    bench = OpenWireBench()
    lost, client = bench.connect(), bench.connect()
    owner, standby = exclusive(lost, prefetch=5), exclusive(client)
    client.publish(A, "0 1 2 3 4 5 6")
    owner.take()
    lost.drop()
    assert standby.bodies() == "0r1 1r1 2r1 3r1 4r1 5 6"


def test_when_no_exclusive_one_is_left_the_others_share() -> None:  # EXCL-1
    bench = OpenWireBench()
    client = bench.connect()
    shared = [client.consume(A), client.consume(A)]
    owner = exclusive(client)
    owner.close()
    client.publish(A, "0 1")
    assert sorted(reader.bodies() for reader in shared) == ["0", "1"]


@pytest.mark.parametrize(("newcomer", "takes_over"), [(0, False), (1, True), (127, True)])
def test_a_newcomer_takes_over_by_strictly_higher_priority(newcomer: int, takes_over: bool) -> None:  # EXCL-2
    bench = OpenWireBench()
    client = bench.connect()
    owner = exclusive(client, prefetch=5)
    client.publish(A, "0 1 2 3 4 5 6")
    assert owner.bodies() == "0 1 2 3 4"
    later = exclusive(client, newcomer)
    # What is in delivery stays with the old owner.
    assert later.bodies() == ("5 6" if takes_over else "")
    client.ok(owner.ack(STANDARD_ACK, 4, first=0, count=5))
    assert owner.bodies() == ("" if takes_over else "5 6")


def test_priority_127_takes_over_from_its_like() -> None:  # EXCL-2
    bench = OpenWireBench()
    client = bench.connect()
    first, second = exclusive(client, 127), exclusive(client, 127)
    client.publish(A, "x")
    assert (first.bodies(), second.bodies()) == ("", "x")


def test_a_browser_is_never_the_owner() -> None:  # EXCL-3
    bench = OpenWireBench()
    client = bench.connect()
    client.publish(A, "0 1")
    info = client.consumer_info(A)
    info.exclusive = info.browser = True
    browser = client.subscribe(info)
    reader = client.consume(A)
    assert browser.bodies() == "0 1"
    assert reader.bodies() == "0 1"


def test_an_exclusive_queue() -> None:  # EXCL-4
    bench = OpenWireBench(queues=(QueueSettings("a", "a", exclusive=True),))
    client = bench.connect()
    first, second = client.consume(A), client.consume(A)
    client.publish(A, "0 1 2")
    assert (first.bodies(), second.bodies()) == ("0 1 2", "")


# -- sharing -----------------------------------------------------------------------------------------------------------


def test_messages_go_round_one_by_one() -> None:  # EXCL-3
    bench = OpenWireBench()
    client = bench.connect()
    readers = [client.consume(A) for _ in range(3)]
    client.publish(A, "0 1 2 3 4 5")
    assert [reader.bodies() for reader in readers] == ["0 3", "1 4", "2 5"]


def test_one_that_is_full_is_passed_over() -> None:  # EXCL-3
    bench = OpenWireBench()
    client = bench.connect()
    small, large = client.consume(A, 1), client.consume(A)
    client.publish(A, "0 1 2 3")
    assert (small.bodies(), large.bodies()) == ("0", "1 2 3")


def test_a_higher_priority_is_filled_first_and_the_rest_spills() -> None:  # EXCL-3
    bench = OpenWireBench()
    client = bench.connect()
    low, high = with_priority(client, 0, 10), with_priority(client, 5, 2)
    client.publish(A, "0 1 2 3")
    assert (low.bodies(), high.bodies()) == ("2 3", "0 1")


def test_a_message_group_stays_with_its_consumer() -> None:  # EXCL-4
    bench = OpenWireBench()
    client = bench.connect()
    readers = [client.consume(A), client.consume(A)]
    for number in range(4):
        command = client.text(A, str(number))
        command.group_id, command.group_sequence = "g", number + 1
        client.ok(command)
    assert sorted(reader.bodies() for reader in readers) == ["", "0 1 2 3"]
    firsts = [one.message.group_first_for_consumer for reader in readers for one in reader.got if one.message]
    assert firsts == [True, False, False, False]


def test_dispatch_waits_for_as_many_consumers_as_it_should() -> None:  # EXCL-4
    bench = OpenWireBench(queues=(QueueSettings("a", "a", consumers_before_dispatch=2),))
    client = bench.connect()
    client.publish(A, "0 1")
    first = client.consume(A)
    assert first.bodies() == ""
    second = client.consume(A)
    assert sorted((first.bodies(), second.bodies())) == ["0", "1"]


# -- selectors ---------------------------------------------------------------------------------------------------------


def selecting(client: Client, selector: str, name: str = "queue") -> Reader:
    info = client.consumer_info(A if name == "queue" else topic("a"))
    info.selector = selector
    return client.subscribe(info)


@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_a_selector_looks_at_headers(kind: str) -> None:
    bench = OpenWireBench()
    client = bench.connect()
    destination = A if kind == "queue" else topic("a")
    reader = selecting(client, "JMSType = 'wanted' AND JMSPriority = 7 AND JMSCorrelationID = 'c'", kind)
    for wanted in (True, False):
        command = client.text(destination, str(wanted))
        command.type = "wanted" if wanted else "other"
        command.priority = 7
        command.correlation_id = "c"
        client.ok(command)
    assert reader.bodies() == "True"


def test_what_an_owner_s_selector_leaves_waits() -> None:  # EXCL-1
    bench = OpenWireBench()
    client = bench.connect()
    info = client.consumer_info(A)
    info.exclusive = True
    info.selector = "JMSPriority > 5"
    owner = client.subscribe(info)
    other = client.consume(A)
    client.publish(A, "waits")
    assert (owner.bodies(), other.bodies()) == ("", "")
    owner.close()
    assert other.bodies() == "waits"


# -- noLocal -----------------------------------------------------------------------------------------------------------


def deaf(client: Client, name: str = "t") -> Reader:
    info = client.consumer_info(topic(name))
    info.no_local = True
    return client.subscribe(info)


def test_no_local_keeps_out_what_the_same_connection_sends() -> None:
    bench = OpenWireBench()
    client, other = bench.connect(), bench.connect()
    client.publish(topic("t"), "before")
    reader = deaf(client)
    client.publish(topic("t"), "own")
    other.publish(topic("t"), "other")
    assert reader.bodies() == "other"


def test_no_local_on_a_durable_subscription_counts_while_it_is_away() -> None:
    bench = OpenWireBench()
    client, other = bench.connect(client_id="me"), bench.connect()
    info = client.consumer_info(topic("t"))
    info.no_local = True
    info.subscription_name = "s"
    client.subscribe(info).close()
    client.publish(topic("t"), "own")
    other.publish(topic("t"), "other")
    info.consumer_id = client.consumer_info(topic("t")).consumer_id
    assert client.subscribe(info).bodies() == "other"


@pytest.mark.parametrize(
    "selector",
    [
        "JMSPriority > 5 OR JMSPriority < 2",
        "convert_string_expressions:JMSPriority > 5 OR JMSPriority < 2",
    ],
)
def test_no_local_together_with_a_selector(selector: str) -> None:
    bench = OpenWireBench()
    client, other = bench.connect(), bench.connect()
    info = client.consumer_info(topic("t"))
    info.no_local = True
    info.selector = selector
    reader = client.subscribe(info)
    for sender, priority in ((client, 9), (other, 9), (other, 4), (other, 1)):
        command = sender.text(topic("t"), f"{priority}")
        command.priority = priority
        sender.ok(command)
    assert reader.bodies() == "9 1"
