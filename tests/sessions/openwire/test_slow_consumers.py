"""Consumers that are closed for being slow, as by AbortSlow(Ack)ConsumerStrategy of Classic."""

import pytest

from delosmq.wire.openwire.commands import ConnectionError, ConsumerControl
from delosmq.wire.openwire.structures import Destination
from tests.sessions.openwire.support import Client, OpenWireBench, Reader, code_of, queue, topic

Q = queue("a")
T = topic("a")
# With a prefetch of 2, one more than may wait for a consumer of a topic.
MESSAGES = "m1 m2 m3 m4 m5"


def bench_with(**fields: object) -> OpenWireBench:
    settings = {"slow_consumer_check_period": 1, **{f"slow_consumer_{name}": value for name, value in fields.items()}}
    return OpenWireBench(address_settings={"a": settings})


def consume(client: Client, prefetch: int, messages: str = MESSAGES, destination: Destination = Q) -> Reader:
    """A consumer, and what it got of some messages, unanswered: without room while others wait if they are more than
    its prefetch, twice as many for one of a topic."""
    reader = client.consume(destination, prefetch)
    client.publish(destination, messages)
    reader.take()
    return reader


def full(destination: Destination = Q, **fields: object) -> tuple[OpenWireBench, Reader]:
    """A consumer that has no room where that may make it slow."""
    bench = bench_with(**fields)
    return bench, consume(bench.connect(), 2, destination=destination)


def at_one(messages: str, **fields: object) -> tuple[OpenWireBench, Reader]:
    """One that takes a message at a time."""
    bench = bench_with(**fields)
    return bench, consume(bench.connect(), 1, messages)


def roomy(messages: str, **fields: object) -> tuple[OpenWireBench, Reader]:
    """One that is never full, where it has to acknowledge something every 3 s."""
    bench = bench_with(max_time_since_last_ack=3_000, **fields)
    return bench, consume(bench.connect(), 1_000, messages)


def closed(reader: Reader) -> bool:
    """Whether the peer was told to close that consumer, since the last look."""
    controls = [one for one in reader.client.take() if isinstance(one, ConsumerControl)]
    assert all(one.close and one.consumer_id is not None for one in controls)
    return reader.id.key() in [one.consumer_id.key() for one in controls if one.consumer_id is not None]


def go_on(reader: Reader, index: int) -> None:
    """It acknowledges a message, and gets the next."""
    reader.done(index)
    reader.take()


@pytest.mark.parametrize("destination", [Q, T])
def test_a_consumer_that_is_full_for_too_long_is_told_to_close(destination: Destination) -> None:
    bench, reader = full(destination, max_duration=3_000)
    bench.pass_time(2_900)
    assert not closed(reader)
    bench.pass_time(600)
    assert closed(reader)
    assert [report.code for report in reader.client.host.reports] == ["DMQ5289"]
    reader.close()  # as the Java client does


def test_one_that_does_not_close_is_gone_a_second_later() -> None:
    bench, reader = full(max_duration=1_000)
    client = reader.client
    told = bench.connect().consume(topic("ActiveMQ.Advisory.Consumer.Queue.a"))
    told.take()
    bench.pass_time(1_100)
    assert closed(reader)
    assert told.take() == []
    assert len(bench.queue("a").holders) == 1
    bench.pass_time(1_100)
    assert bench.queue("a").holders == []
    assert not client.host.finished
    assert len(told.take()) == 1
    exception = client.refused(client.remove_info(reader.id))
    assert "DMQ" in code_of(exception)
    # What it had was seen, so far as anybody knows.
    assert client.consume(Q).bodies() == "m1r1 m2r1 m3 m4 m5"


def test_room_in_between_is_time_won() -> None:
    bench, reader = full(max_duration=3_000)
    bench.pass_time(2_500)
    go_on(reader, 0)
    bench.pass_time(2_500)
    assert not closed(reader)
    bench.pass_time(1_500)
    assert closed(reader)


def test_full_is_not_slow_while_nothing_waits() -> None:
    bench = bench_with(max_duration=1_000)
    client = bench.connect()
    consume(client, 2, "m1 m2")
    consume(client, 2, "m1 m2 m3 m4", T)
    bench.pass_time(5_000)
    assert not any(isinstance(one, ConsumerControl) for one in client.take())


def test_one_that_is_full_too_often_between_looks_is_closed() -> None:
    bench, reader = at_one(MESSAGES, max_count=3)
    bench.pass_time(1_100)
    assert not closed(reader)  # once
    for index in range(2):
        go_on(reader, index)
    bench.pass_time(1_000)
    assert closed(reader)


def test_a_look_that_finds_room_forgets_how_often_there_was_none() -> None:
    bench, reader = at_one("m1 m2", max_count=2)
    go_on(reader, 0)
    reader.done(1)
    bench.pass_time(1_100)
    reader.client.publish(Q, "m3 m4")
    reader.take()
    bench.pass_time(1_000)
    assert not closed(reader)


def test_the_connection_goes_with_it_if_that_is_wanted() -> None:
    bench, reader = full(max_duration=1_000, abort_connection=True)
    other = bench.connect()
    bench.pass_time(1_100)
    client = reader.client
    assert client.host.finished
    assert client.host.reason is not None
    assert client.host.reason.code == "DMQ5290"
    # As by Classic, the peer hears no reason.
    assert not any(isinstance(one, ConnectionError | ConsumerControl) for one in client.take())
    assert bench.queue("a").holders == []
    assert other.consume(Q).bodies() == "m1r1 m2r1 m3 m4 m5"


def test_one_that_acknowledges_nothing_for_too_long_is_closed() -> None:
    bench, reader = roomy("m1 m2 m3")
    bench.pass_time(2_500)
    reader.done(0)
    bench.pass_time(2_900)
    assert not closed(reader)
    bench.pass_time(1_500)
    assert closed(reader)


def test_one_that_acknowledges_in_a_transaction_is_alive() -> None:
    bench, reader = roomy("m1 m2 m3")
    bench.pass_time(2_500)
    reader.done(0, transaction=reader.client.begin())
    bench.pass_time(2_500)
    assert not closed(reader)


@pytest.mark.parametrize("ignore_idle", [True, False])
def test_one_that_has_nothing_to_acknowledge_is_closed_only_if_that_is_wanted(ignore_idle: bool) -> None:
    bench, reader = roomy("", ignore_idle=ignore_idle)
    bench.pass_time(6_000)
    assert closed(reader) != ignore_idle


def test_a_consumer_of_two_destinations_has_the_limits_of_the_first_that_has_some() -> None:
    bench = bench_with(max_duration=1_000)
    client = bench.connect()
    reader = client.consume(queue("b,a"), 1)
    client.publish(Q, "m1 m2")
    reader.take()
    bench.pass_time(2_100)
    assert closed(reader)


def test_nobody_is_looked_at_where_nothing_is_said() -> None:
    bench = OpenWireBench(address_settings={"a": {"slow_consumer_abort_connection": True}})
    client = bench.connect()
    before = client.session.next_timer()
    consume(client, 2)
    assert client.session.next_timer() == before
    bench.pass_time(20_000)
    assert not client.host.finished


def test_a_consumer_that_left_is_no_longer_looked_at() -> None:
    bench, reader = full(max_duration=1_000, abort_connection=True)
    reader.close()
    bench.pass_time(5_000)
    assert not reader.client.host.finished


def test_advisories_have_listeners_that_may_be_slow() -> None:
    bench = OpenWireBench(address_settings={"#": {"slow_consumer_max_time_since_last_ack": 1_000}})
    client = bench.connect()
    listener = client.consume(topic("ActiveMQ.Advisory.Consumer.>"), 10)
    client.consume(Q)
    bench.pass_time(9_000)
    assert not closed(listener)
