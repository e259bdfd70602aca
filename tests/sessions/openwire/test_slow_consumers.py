"""Consumers that are closed for being slow, as by AbortSlow(Ack)ConsumerStrategy of Classic."""

import pytest

from delosmq.wire.openwire.commands import ConnectionError, ConsumerControl, Destination
from tests.sessions.openwire.support import Client, OpenWireBench, Reader, code_of, queue, topic

Q = queue("a")
T = topic("a")


def bench_with(**fields: object) -> OpenWireBench:
    settings = {"slow_consumer_check_period": 1, **{f"slow_consumer_{name}": value for name, value in fields.items()}}
    return OpenWireBench(address_settings={"a": settings})


def closed(client: Client, reader: Reader) -> bool:
    """Whether the peer was told to close that consumer, since the last look."""
    controls = [one for one in client.take() if isinstance(one, ConsumerControl)]
    assert all(one.close and one.consumer_id is not None for one in controls)
    return reader.id.key() in [one.consumer_id.key() for one in controls if one.consumer_id is not None]


def full(client: Client, destination: Destination = Q, prefetch: int = 2) -> Reader:
    """A consumer without room while a message waits for it: three, for one of a topic."""
    reader = client.consume(destination, prefetch)
    client.publish(destination, "m1 m2 m3 m4 m5")
    return reader


@pytest.mark.parametrize("destination", [Q, T])
def test_a_consumer_that_is_full_for_too_long_is_told_to_close(destination: Destination) -> None:
    bench = bench_with(max_duration=3_000)
    client = bench.connect()
    reader = full(client, destination)
    reader.take()
    bench.pass_time(2_900)
    assert not closed(client, reader)
    bench.pass_time(600)
    assert closed(client, reader)
    assert [report.code for report in client.host.reports] == ["DMQ5289"]
    reader.close()  # as the Java client does


def test_one_that_does_not_close_is_gone_a_second_later() -> None:
    bench = bench_with(max_duration=1_000)
    client, watcher = bench.connect(), bench.connect()
    reader = full(client)
    reader.take()
    told = watcher.consume(topic("ActiveMQ.Advisory.Consumer.Queue.a"))
    told.take()
    bench.pass_time(1_100)
    assert closed(client, reader)
    assert told.take() == []
    assert len(bench.queue("a").consumers) == 1
    bench.pass_time(1_100)
    assert bench.queue("a").consumers == []
    assert not client.host.finished
    assert len(told.take()) == 1
    exception = client.refused(client.remove_info(reader.id))
    assert "DMQ" in code_of(exception)
    # What it had was seen, so far as anybody knows.
    assert client.consume(Q).bodies() == "m1r1 m2r1 m3 m4 m5"


def test_room_in_between_is_time_won() -> None:
    bench = bench_with(max_duration=3_000)
    client = bench.connect()
    reader = full(client)
    reader.take()
    bench.pass_time(2_500)
    reader.done(0)
    reader.take()
    bench.pass_time(2_500)
    assert not closed(client, reader)
    bench.pass_time(1_500)
    assert closed(client, reader)


def test_full_is_not_slow_while_nothing_waits() -> None:
    bench = bench_with(max_duration=1_000)
    client = bench.connect()
    client.consume(Q, 2)
    client.publish(Q, "m1 m2")
    client.consume(T, 2)
    client.publish(T, "m1 m2 m3 m4")
    bench.pass_time(5_000)
    assert not any(isinstance(one, ConsumerControl) for one in client.take())


def test_one_that_is_full_too_often_between_looks_is_closed() -> None:
    bench = bench_with(max_count=3)
    client = bench.connect()
    reader = client.consume(Q, 1)
    client.publish(Q, "m1 m2 m3 m4 m5")
    reader.take()
    bench.pass_time(1_100)
    assert not closed(client, reader)  # once
    for index in range(2):
        reader.done(index)
        reader.take()
    bench.pass_time(1_000)
    assert closed(client, reader)


def test_a_look_that_finds_room_forgets_how_often_there_was_none() -> None:
    bench = bench_with(max_count=2)
    client = bench.connect()
    reader = client.consume(Q, 1)
    client.publish(Q, "m1 m2")
    reader.take()
    reader.done(0)
    reader.take()
    reader.done(1)
    bench.pass_time(1_100)
    client.publish(Q, "m3 m4")
    reader.take()
    bench.pass_time(1_000)
    assert not closed(client, reader)


def test_the_connection_goes_with_it_if_that_is_wanted() -> None:
    bench = bench_with(max_duration=1_000, abort_connection=True)
    client, other = bench.connect(), bench.connect()
    reader = full(client)
    reader.take()
    bench.pass_time(1_100)
    assert client.host.finished
    assert client.host.reason is not None
    assert client.host.reason.code == "DMQ5290"
    # As by Classic, the peer hears no reason.
    assert not any(isinstance(one, ConnectionError | ConsumerControl) for one in client.take())
    assert bench.queue("a").consumers == []
    assert other.consume(Q).bodies() == "m1r1 m2r1 m3 m4 m5"


def test_one_that_acknowledges_nothing_for_too_long_is_closed() -> None:
    bench = bench_with(max_time_since_last_ack=3_000)
    client = bench.connect()
    reader = client.consume(Q, 1000)
    client.publish(Q, "m1 m2 m3")
    reader.take()
    bench.pass_time(2_500)
    reader.done(0)
    bench.pass_time(2_900)
    assert not closed(client, reader)
    bench.pass_time(1_500)
    assert closed(client, reader)


def test_one_that_acknowledges_in_a_transaction_is_alive() -> None:
    bench = bench_with(max_time_since_last_ack=3_000)
    client = bench.connect()
    reader = client.consume(Q, 1000)
    client.publish(Q, "m1 m2 m3")
    reader.take()
    bench.pass_time(2_500)
    reader.done(0, transaction=client.begin())
    bench.pass_time(2_500)
    assert not closed(client, reader)


@pytest.mark.parametrize("ignore_idle", [True, False])
def test_one_that_has_nothing_to_acknowledge_is_closed_only_if_that_is_wanted(ignore_idle: bool) -> None:
    bench = bench_with(max_time_since_last_ack=3_000, ignore_idle=ignore_idle)
    client = bench.connect()
    reader = client.consume(Q, 1000)
    bench.pass_time(6_000)
    assert closed(client, reader) != ignore_idle


def test_a_consumer_of_two_destinations_has_the_limits_of_the_first_that_has_some() -> None:
    bench = bench_with(max_duration=1_000)
    client = bench.connect()
    reader = client.consume(queue("b,a"), 1)
    client.publish(queue("a"), "m1 m2")
    reader.take()
    bench.pass_time(2_100)
    assert closed(client, reader)


def test_nobody_is_looked_at_where_nothing_is_said() -> None:
    bench = OpenWireBench(address_settings={"a": {"slow_consumer_abort_connection": True}})
    client = bench.connect()
    before = client.session.next_timer()
    full(client)
    assert client.session.next_timer() == before
    bench.pass_time(20_000)
    assert not client.host.finished


def test_a_consumer_that_left_is_no_longer_looked_at() -> None:
    bench = bench_with(max_duration=1_000, abort_connection=True)
    client = bench.connect()
    reader = full(client)
    reader.take()
    reader.close()
    bench.pass_time(5_000)
    assert not client.host.finished


def test_advisories_have_listeners_that_may_be_slow() -> None:
    bench = OpenWireBench(address_settings={"#": {"slow_consumer_max_time_since_last_ack": 1_000}})
    client = bench.connect()
    listener = client.consume(topic("ActiveMQ.Advisory.Consumer.>"), 10)
    client.consume(Q)
    bench.pass_time(9_000)
    assert not closed(client, listener)
