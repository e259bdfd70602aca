"""What becomes of messages in delivery when their consumer goes, and who counts a redelivery."""

# ACK-4, EXCL-1

import pytest

from delosmq.wire.openwire.commands import STANDARD_ACK, ShutdownInfo
from delosmq.wire.openwire.negotiation import WireFormatInfo
from delosmq.wire.openwire.structures import ConnectionId, SessionId, Structure
from tests.sessions.openwire.support import Client, OpenWireBench, Reader, code_of, queue, topic

A = queue("a")
T = topic("t")
NONE_SEEN = -1
ALL_SEEN = -2


def start(prefetch: int = 5) -> tuple[OpenWireBench, Client, Reader]:
    bench = OpenWireBench()
    client = bench.connect()
    client.publish(A, "0 1 2 3 4")
    reader = client.consume(A, prefetch)
    reader.take()
    return bench, client, reader


def next_one(bench: OpenWireBench) -> str:
    """What the next consumer gets."""
    return bench.connect().consume(A).bodies()


# -- a consumer that closes --------------------------------------------------------------------------------------------


def test_messages_up_to_the_last_that_was_seen_count_a_redelivery() -> None:
    bench, _, reader = start()
    reader.close(reader.sequence(1))
    assert next_one(bench) == "0r1 1r1 2 3 4"


def test_nobody_counts_one_when_nothing_was_seen() -> None:
    bench, _, reader = start()
    reader.close(NONE_SEEN)
    assert next_one(bench) == "0 1 2 3 4"


def test_nobody_counts_one_when_the_last_that_was_seen_is_gone() -> None:
    bench, _, reader = start()
    reader.done(1)
    reader.close(reader.sequence(1))
    assert next_one(bench) == "0 2 3 4"


def test_nobody_counts_one_when_the_last_that_was_seen_is_another_s() -> None:
    bench, _, reader = start()
    reader.close(reader.sequence(4) + 7)
    assert next_one(bench) == "0 1 2 3 4"


def test_all_in_flight_count_one_when_the_client_says_so() -> None:
    bench, _, reader = start()
    reader.close(ALL_SEEN)
    assert next_one(bench) == "0r1 1r1 2r1 3r1 4r1"


def test_what_was_never_dispatched_counts_none() -> None:
    bench, _, reader = start(prefetch=2)
    reader.close(ALL_SEEN)
    assert next_one(bench) == "0r1 1r1 2 3 4"


def test_what_never_left_the_broker_counts_none() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    client.publish(A, "0 1")
    reader = client.subscribe(client.consumer_info(A, 1))
    reader.take()
    client.reads = False
    client.tell(reader.ack(STANDARD_ACK, 0, first=0))
    client.tell(client.remove_info(reader.id, ALL_SEEN))
    assert next_one(bench) == "1"


def test_of_a_version_that_does_not_say_what_was_seen_all_may_have_been() -> None:
    bench = OpenWireBench()
    client = bench.negotiate(WireFormatInfo(1))
    client.log_in("ID:old")
    client.publish(A, "0 1")
    reader = client.consume(A)
    reader.take()
    reader.close()
    assert next_one(bench) == "0r1 1r1"


def test_counts_grow_with_each_consumer() -> None:
    bench, _, reader = start()
    reader.close(reader.sequence(1))
    client = bench.connect()
    reader = client.consume(A)
    assert reader.bodies() == "0r1 1r1 2 3 4"
    reader.close(reader.sequence(0))
    assert next_one(bench) == "0r2 1r1 2 3 4"


def test_closing_twice_is_refused() -> None:
    _, client, reader = start()
    reader.close()
    assert code_of(client.refused(client.remove_info(reader.id))) == "JMSException DMQ5258"


# -- sessions and connections ------------------------------------------------------------------------------------------


def of_session(client: Client) -> Structure:
    return SessionId(client.name, 1)


def of_connection(client: Client) -> Structure:
    return ConnectionId(client.name)


@pytest.mark.parametrize("what", [of_session, of_connection])
def test_a_parent_s_end_is_that_of_all_its_consumers(what: object) -> None:
    bench, client, reader = start(2)
    other = client.consume(queue("b"))
    client.publish(queue("b"), "x")
    other.take()
    assert callable(what)
    client.ok(client.remove_info(what(client), reader.sequence(0)))
    assert bench.queue("a").holders == []
    assert bench.queue("b").holders == []
    assert next_one(bench) == "0r1 1 2 3 4"


def test_a_session_s_end_leaves_other_sessions() -> None:
    bench, client, _ = start(2)
    other = client.subscribe(client.consumer_info(A, 1, session=2))
    other.take()
    client.ok(client.remove_info(SessionId(client.name, 1), NONE_SEEN))
    (left,) = bench.queue("a").holders
    assert left.held_count == 1


def test_after_the_end_of_its_connection_a_client_only_shuts_down() -> None:
    _, client, _ = start()
    client.ok(client.remove_info(ConnectionId(client.name)))
    assert not client.host.finished
    client.tell(ShutdownInfo())
    assert client.host.reason is None


def test_an_end_without_an_object_is_refused() -> None:
    _, client, _ = start()
    assert "DMQ5234" in str(client.refused(client.remove_info(None)).message)


# -- a connection that is lost -----------------------------------------------------------------------------------------


def test_all_in_flight_on_a_lost_connection_count_one() -> None:
    bench, client, _ = start(3)
    client.drop()
    assert next_one(bench) == "0r1 1r1 2r1 3 4"


@pytest.mark.parametrize("how", ["eof", "shutdown"])
def test_a_connection_that_ends_without_a_word_of_its_own_is_lost(how: str) -> None:
    bench, client, _ = start(3)
    if how == "eof":
        client.session.handle_eof()
        bench.tick()
    else:
        client.tell(ShutdownInfo())
    assert client.host.finished
    assert next_one(bench) == "0r1 1r1 2r1 3 4"


def test_what_a_lost_connection_never_read_counts_none() -> None:
    bench, client, _ = start()
    client.reads = False
    reader = client.consumer_info(queue("b"))
    client.tell(reader)
    bench.connect().publish(queue("b"), "x y")
    client.drop()
    assert bench.connect().consume(queue("b")).bodies() == "x y"


def test_what_open_transactions_acknowledged_returns_with_a_lost_connection() -> None:  # ACK-5
    bench, client, reader = start()
    transaction = client.begin()
    reader.done(0, 1, transaction)
    client.drop()
    assert next_one(bench) == "0r1 1r1 2r1 3r1 4r1"


def test_a_lost_connection_leaves_nothing_to_be_written() -> None:
    bench = OpenWireBench(hold=True)
    client = bench.connect()
    client.reads = False
    client.feed(client.text(A, "x"), answer=True)
    client.feed(client.session_info(), answer=True)
    bench.tick()
    assert client.session.outbox.total_bytes > 0
    client.drop()
    assert client.session.outbox.total_bytes == 0
    bench.sync()
    assert client.session.outbox.take() == b""


# -- durable subscriptions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seen", "then"),
    [("none", "0 1 2"), ("1", "0r1 1r1 2"), ("0", "0r1 1r1 2r1"), ("all", "0r1 1r1 2r1"), ("gone", "1r1 2")],
)
def test_a_durable_subscription_counts_up_to_a_sequence(seen: str, then: str) -> None:
    bench = OpenWireBench()
    client = bench.connect(client_id="me")
    reader = client.durable("s", T)
    client.publish(T, "0 1 2")
    reader.take()
    last = {"none": NONE_SEEN, "1": reader.sequence(1), "0": 0, "all": ALL_SEEN, "gone": reader.sequence(1)}[seen]
    if seen == "gone":
        reader.done(0)
    reader.close(last)
    assert client.durable("s", T).bodies() == then


def test_a_durable_subscription_counts_what_lies_before_a_sequence_that_is_gone() -> None:
    bench = OpenWireBench()
    client = bench.connect(client_id="me")
    reader = client.durable("s", T)
    client.publish(T, "0 1 2")
    reader.take()
    reader.done(1)
    reader.close(reader.sequence(1))
    assert client.durable("s", T).bodies() == "0r1 2"


# -- sequences ---------------------------------------------------------------------------------------------------------


def test_sequences_grow_over_all_destinations() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    readers = [client.consume(queue(name)) for name in "abc"]
    for name in "cab":
        client.publish(queue(name), "x")
    for reader in readers:
        reader.take()
    a, b, c = (reader.sequence(0) for reader in readers)
    assert 0 < c < a < b
