"""Consumers with a prefetch of 0, which pull; prefetches that change; browsers."""

# ACK-2

import pytest

from delosmq.wire.openwire.commands import DELIVERED_ACK, INDIVIDUAL_ACK, STANDARD_ACK, ConsumerControl, MessagePull
from tests.sessions.openwire.support import Client, OpenWireBench, Reader, code_of, queue, topic

A = queue("a")


def pull(reader: Reader, timeout: int = 0) -> None:
    command = MessagePull()
    command.consumer_id = reader.id
    command.destination = reader.info.destination
    command.timeout = timeout
    reader.client.ok(command)


def control(reader: Reader, prefetch: int) -> ConsumerControl:
    command = ConsumerControl()
    command.consumer_id = reader.id
    command.destination = reader.info.destination
    command.prefetch = prefetch
    return command


def start(bodies: str = "", prefetch: int = 0) -> tuple[OpenWireBench, Client, Reader]:
    bench = OpenWireBench()
    client = bench.connect()
    client.publish(A, bodies)
    return bench, client, client.consume(A, prefetch)


def got(reader: Reader) -> tuple[str, int]:
    """The bodies that came, and how many empty dispatches so far."""
    return reader.bodies(), reader.ended


# -- pulling -----------------------------------------------------------------------------------------------------------


def test_with_a_prefetch_of_0_nothing_comes_unasked() -> None:
    _, client, reader = start("0 1")
    assert got(reader) == ("", 0)
    client.publish(A, "2")
    assert got(reader) == ("", 0)


@pytest.mark.parametrize("timeout", [0, -1, 1_000])
def test_a_pull_brings_one_message(timeout: int) -> None:
    bench, _, reader = start("0 1")
    pull(reader, timeout)
    assert got(reader) == ("0", 0)
    bench.pass_time(5_000)
    assert got(reader) == ("", 0)


def test_acknowledgements_give_no_credit_to_one_who_pulls() -> None:
    _, client, reader = start("0 1 2 3")
    pull(reader)
    reader.take()
    client.ok(reader.ack(DELIVERED_ACK, 0, first=0))
    client.ok(reader.ack(STANDARD_ACK, 0, first=0))
    assert got(reader) == ("", 0)
    pull(reader)
    reader.take()
    transaction = client.begin()
    client.ok(reader.ack(INDIVIDUAL_ACK, 1, transaction=transaction))
    assert got(reader) == ("", 0)


def test_two_pulls_are_one() -> None:
    """A pull sets what is asked for, it does not add to it."""
    _, client, reader = start()
    pull(reader)
    pull(reader)
    client.publish(A, "0 1")
    assert got(reader) == ("0", 0)


def test_a_pull_without_timeout_waits_for_ever_and_is_never_answered_empty() -> None:
    bench, client, reader = start()
    pull(reader)
    bench.pass_time(20_000)
    assert got(reader) == ("", 0)
    client.publish(A, "late")
    assert got(reader) == ("late", 0)


def test_a_pull_that_will_not_wait_is_answered_empty_at_once() -> None:
    _, client, reader = start()
    pull(reader, -1)
    assert got(reader) == ("", 1)
    client.publish(A, "late")
    assert got(reader) == ("", 1)


def test_a_pull_is_answered_empty_when_its_time_is_over() -> None:
    bench, client, reader = start()
    pull(reader, 1_000)
    bench.pass_time(999)
    assert got(reader) == ("", 0)
    bench.pass_time(1)
    assert got(reader) == ("", 1)
    client.publish(A, "late")
    assert got(reader) == ("", 1)


def test_a_pull_that_waits_gets_what_comes_in_time() -> None:
    bench, client, reader = start()
    pull(reader, 1_000)
    bench.pass_time(500)
    client.publish(A, "here")
    assert got(reader) == ("here", 0)
    bench.pass_time(5_000)
    assert got(reader) == ("", 0)


def test_the_empty_dispatch_names_the_consumer_and_no_destination() -> None:
    _, client, reader = start()
    pull(reader, -1)
    (empty,) = client.dispatches()
    assert empty.consumer_id is not None
    assert empty.consumer_id.key() == reader.id.key()
    assert empty.message is None
    assert empty.destination is None


def test_topics_are_pulled_from_too() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(topic("t"), 0)
    pull(reader, -1)
    assert got(reader) == ("", 1)
    client.publish(topic("t"), "0 1")
    assert got(reader) == ("", 1)
    pull(reader)
    assert got(reader) == ("0", 1)


def test_a_composite_consumer_pulls_from_any_of_its_queues() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    reader = client.consume(queue("a,b"), 0)
    client.publish(queue("b"), "from-b other")
    pull(reader, -1)
    assert got(reader) == ("from-b", 0)
    reader.done(0)
    pull(reader, -1)
    pull(reader, -1)
    assert got(reader) == ("other", 1)


def test_a_pull_by_one_with_a_prefetch_means_nothing() -> None:
    _, _, reader = start("", 5)
    pull(reader, -1)
    assert got(reader) == ("", 0)


def test_a_pull_that_waits_ends_with_a_prefetch() -> None:
    bench, client, reader = start()
    pull(reader, 1_000)
    client.ok(control(reader, 10))
    bench.pass_time(2_000)
    assert got(reader) == ("", 0)


def test_a_pull_of_nobody_is_refused() -> None:
    bench, client, reader = start("0")
    reader.close()
    command = MessagePull()
    command.consumer_id = reader.id
    assert code_of(client.refused(command)) == "JMSException DMQ5259"
    assert bench.queue("a").message_count == 1


# -- a prefetch that changes -------------------------------------------------------------------------------------------


def test_a_larger_prefetch_is_filled_at_once() -> None:
    _, client, reader = start("0 1 2 3 4", 2)
    assert got(reader) == ("0 1", 0)
    client.ok(control(reader, 4))
    assert got(reader) == ("2 3", 0)


def test_a_smaller_prefetch_waits_for_acknowledgements() -> None:
    _, client, reader = start("0 1 2 3 4", 3)
    reader.take()
    client.ok(control(reader, 1))
    reader.done(0, 1)
    assert got(reader) == ("", 0)
    reader.done(2)
    assert got(reader) == ("3", 0)


def test_a_failover_restores_the_prefetch_from_0() -> None:
    _, client, reader = start("0 1 2", 0)
    assert got(reader) == ("", 0)
    client.tell(control(reader, 1000))
    assert got(reader) == ("0 1 2", 0)


def test_a_prefetch_below_0_is_refused() -> None:
    _, client, reader = start("0", 1)
    assert code_of(client.refused(control(reader, -1))) == "JMSException DMQ5255"
    assert code_of(client.refused(client.consumer_info(A, -1))) == "JMSException DMQ5255"


def test_a_control_may_close_its_consumer() -> None:
    bench, client, reader = start("0", 1)
    reader.take()
    command = control(reader, 1)
    command.close = True
    client.ok(command)
    assert bench.queue("a").holders == []
    assert bench.connect().consume(A).bodies() == "0"


def test_a_prefetch_is_bounded() -> None:
    _, _, reader = start("", 2_000_000_000)
    assert reader.info.prefetch_size == 2_000_000_000
    (consumer,) = reader.client.bench.queue("a").holders
    taken = 0
    while consumer.credit.has_room():
        consumer.credit.taken(1)
        taken += 1
    assert taken == 32_767


# -- browsers ----------------------------------------------------------------------------------------------------------


def browse(client: Client, prefetch: int = 500) -> Reader:
    info = client.consumer_info(A, prefetch)
    info.browser = True
    return client.subscribe(info)


def test_a_browser_sees_everything_and_then_an_end() -> None:  # EXCL-3
    bench, client, _ = start("0 1 2")
    browser = browse(client)
    assert got(browser) == ("0 1 2", 1)
    assert bench.queue("a").message_count == 3


def test_a_browser_of_an_empty_queue_gets_the_end_alone() -> None:
    _, client, _ = start()
    assert got(browse(client)) == ("", 1)


def test_a_browser_sees_what_others_have_in_delivery() -> None:
    _, client, reader = start("0 1 2", 2)
    reader.take()
    assert got(browse(client)) == ("0 1 2", 1)


def test_what_a_browser_acknowledges_stays() -> None:
    bench, client, _ = start("0 1 2 3 4")
    browser = browse(client, 2)
    assert got(browser) == ("0 1", 0)
    browser.done(0)
    assert got(browser) == ("2", 0)
    client.ok(browser.ack(DELIVERED_ACK, 1, first=1))
    assert got(browser) == ("3", 0)
    browser.done(1, 3)
    assert got(browser) == ("4", 1)
    assert bench.queue("a").message_count == 5


def test_closing_a_browser_counts_no_delivery() -> None:
    bench, client, _ = start("0 1")
    browser = browse(client)
    browser.take()
    browser.close(browser.sequence(1))
    assert bench.connect().consume(A).bodies() == "0 1"


def test_a_browser_picks_by_its_selector() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    client.publish(A, "0 1")
    urgent = client.text(A, "urgent")
    urgent.priority = 9
    client.ok(urgent)
    info = client.consumer_info(A)
    info.browser = True
    info.selector = "JMSPriority > 5"
    assert got(client.subscribe(info)) == ("urgent", 1)
