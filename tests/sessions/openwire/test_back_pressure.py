"""Full addresses, peers that do not read, acknowledgements that take their time."""

# ACK-7

from dataclasses import replace

import pytest

from delosmq.model.message import MULTICAST
from delosmq.model.settings import AcceptorSettings, AddressFullPolicy, QueueSettings
from delosmq.wire.openwire.commands import (
    BEGIN,
    COMMIT_ONE_PHASE,
    COMMIT_TWO_PHASE,
    END,
    PREPARE,
    ROLLBACK,
    STANDARD_ACK,
    ConnectionControl,
    ConnectionError,
    IntegerResponse,
    KeepAliveInfo,
    ProducerAck,
    Response,
)
from delosmq.wire.openwire.structures import Destination, XATransactionId
from tests.sessions.openwire.support import ACCEPTOR, Client, OpenWireBench, code_of, queue, throwable, topic

A = queue("a")
FULL = queue("full")


def bench_with(policy: AddressFullPolicy, acceptor: AcceptorSettings = ACCEPTOR) -> OpenWireBench:
    settings: dict[str, dict[str, object]] = {"full": {"max_size_messages": 1, "address_full_policy": policy}}
    return OpenWireBench(address_settings=settings, acceptor=acceptor)


def blocked(acceptor: AcceptorSettings = ACCEPTOR) -> tuple[OpenWireBench, Client]:
    """A client of a broker whose queue "full" is full."""
    bench = bench_with(AddressFullPolicy.BLOCK, acceptor)
    client = bench.connect()
    client.publish(FULL, "first")
    return bench, client


# -- full addresses ----------------------------------------------------------------------------------------------------


def test_a_send_waits_for_space_and_is_answered_later() -> None:
    bench, client = blocked()
    command_id = client.feed(client.text(FULL, "second"), answer=True)
    bench.tick()
    assert client.answers(command_id) == []
    reader = bench.connect().consume(FULL)
    assert reader.bodies() == "first"
    reader.done(0)
    (answer,) = client.answers(command_id)
    assert type(answer) is Response
    assert reader.bodies() == "second"


def test_the_connection_s_own_acknowledgement_makes_the_space() -> None:
    _, client = blocked()
    reader = client.consume(FULL)
    assert reader.bodies() == "first"
    client.tell(client.text(FULL, "second"))
    client.tell(client.text(FULL, "third"))
    assert reader.bodies() == ""
    reader.done(0)
    assert reader.bodies() == "second"
    reader.done(1)
    assert reader.bodies() == "third"


def test_later_sends_wait_behind_in_order() -> None:
    bench, client = blocked()
    client.tell(client.text(FULL, "second"))
    client.tell(client.text(A, "behind"))
    assert "a" not in bench.broker.queues
    reader = bench.connect().consume(FULL)
    reader.take()
    reader.done(0)
    assert bench.queue("a").message_count == 1


def test_other_connections_do_not_wait() -> None:
    bench, client = blocked()
    client.tell(client.text(FULL, "second"))
    bench.connect().publish(A, "fine")


def test_a_producer_s_window_stays_taken_while_its_message_waits() -> None:
    bench, client = blocked()
    producer = client.producer_info(FULL, window=5_000)
    client.ok(producer)
    command = client.text(FULL, "second")
    command.producer_id = producer.producer_id
    client.tell(command)
    assert client.take() == []
    reader = bench.connect().consume(FULL)
    reader.take()
    reader.done(0)
    (acknowledgement,) = client.take()
    assert isinstance(acknowledgement, ProducerAck)


def test_too_much_that_waits_stops_reading_until_there_is_space() -> None:
    bench, client = blocked(replace(ACCEPTOR, parked_limit_bytes=2_000))
    while client.is_read():
        client.feed(client.text(FULL, "more"))
    client.feed(client.text(A, "unread"))
    bench.tick()
    assert "a" not in bench.broker.queues
    reader = bench.connect().consume(FULL)
    while reader.take():
        reader.client.ok(reader.ack(STANDARD_ACK, len(reader.got) - 1, count=1))
    assert client.is_read()
    assert bench.queue("a").message_count == 1


def test_one_whose_message_waits_is_not_called_silent() -> None:
    bench, client = blocked()
    client.tell(client.text(FULL, "second"))
    bench.pass_time(120_000)
    assert not client.host.finished


def test_a_composite_send_is_answered_when_its_last_part_is_through() -> None:
    bench, client = blocked()
    command_id = client.feed(client.text(queue("full,a"), "both"), answer=True)
    bench.tick()
    assert client.answers(command_id) == []
    reader = bench.connect().consume(FULL)
    reader.take()
    reader.done(0)
    assert len(client.answers(command_id)) == 1
    assert reader.bodies() == "both"
    assert bench.queue("a").message_count == 1


def test_a_full_address_may_refuse() -> None:
    bench = bench_with(AddressFullPolicy.FAIL)
    client = bench.connect()
    client.publish(FULL, "first")
    assert (client.refused(client.text(FULL, "second")).class_name or "").endswith("ResourceAllocationException")
    client.tell(client.text(FULL, "third"))
    (error,) = client.take()
    assert isinstance(error, ConnectionError)
    client.publish(A, "fine")


def test_a_full_address_may_drop() -> None:
    bench = bench_with(AddressFullPolicy.DROP)
    client = bench.connect()
    client.publish(FULL, "first second")
    assert bench.queue("full").message_count == 1


def test_what_waits_goes_with_its_connection() -> None:
    bench, client = blocked()
    client.tell(client.text(FULL, "second"))
    client.drop()
    reader = bench.connect().consume(FULL)
    reader.take()
    reader.done(0)
    assert reader.bodies() == ""


def filled_by_hand() -> tuple[OpenWireBench, Client]:
    """A client of a broker whose queue "full" is full, and comes again by hand alone."""
    settings: dict[str, object] = {"auto_create_addresses": False, "max_size_messages": 1}
    settings["address_full_policy"] = AddressFullPolicy.BLOCK
    bench = OpenWireBench(address_settings={"full": settings}, queues=(QueueSettings("full", "full"),))
    client = bench.connect()
    client.publish(FULL, "first")
    return bench, client


@pytest.mark.parametrize("destination", [FULL, queue("full,a"), queue("a,full")], ids=["one", "first", "last"])
@pytest.mark.parametrize("answer", [True, False])
def test_what_can_not_be_sent_any_more_when_there_is_space_is_told(destination: Destination, answer: bool) -> None:
    bench, client = filled_by_hand()
    command_id = client.feed(client.text(destination, "second"), answer=answer)
    bench.broker.resources.delete_address("full", force=True)
    bench.broker.resources.create_address("full", {MULTICAST})
    bench.tick()
    if answer:
        (refusal,) = client.answers(command_id)
        assert code_of(throwable(refusal)) == "JMSException DMQ2104"
    else:
        assert code_of(client.error()) == "JMSException DMQ2104"
    client.publish(A, "fine")


@pytest.mark.parametrize("destination", [FULL, queue("full,a")], ids=["one", "first"])
def test_a_commit_that_waits_for_what_then_can_not_be_sent_fails(destination: Destination) -> None:
    bench, client = filled_by_hand()
    transaction = client.begin()
    client.publish(queue("b"), "fine", transaction)
    client.tell(client.text(destination, "second", transaction))
    command_id = client.feed(client.transaction_info(transaction, COMMIT_ONE_PHASE), answer=True)
    bench.broker.resources.delete_address("full", force=True)
    bench.broker.resources.create_address("full", {MULTICAST})
    bench.tick()
    (refusal,) = client.answers(command_id)
    assert code_of(throwable(refusal)) == "TransactionRolledBackException DMQ5273"
    assert bench.queue("b").message_count == 0


@pytest.mark.parametrize("ended", [False, True])
def test_a_branch_is_prepared_when_what_waits_is_through(ended: bool) -> None:
    bench, client = blocked()
    xid = XATransactionId(1, b"g", b"b")
    client.tell(client.transaction_info(xid, BEGIN))
    client.tell(client.text(FULL, "second", xid))
    waiting = [END, PREPARE] if ended else [PREPARE]
    command_ids = [client.feed(client.transaction_info(xid, kind), answer=True) for kind in waiting]
    bench.tick()
    assert client.take() == []
    reader = bench.connect().consume(FULL)
    reader.take()
    reader.done(0)
    answers = client.take()
    assert [one.correlation_id for one in answers if isinstance(one, Response)] == command_ids
    prepared = answers[-1]
    assert isinstance(prepared, IntegerResponse)
    assert prepared.result == 0
    client.ok(client.transaction_info(xid, COMMIT_TWO_PHASE))
    assert reader.bodies() == "second"


def test_a_branch_is_rolled_back_with_what_waits() -> None:
    bench, client = blocked()
    xid = XATransactionId(1, b"g", b"b")
    client.tell(client.transaction_info(xid, BEGIN))
    client.tell(client.text(FULL, "second", xid))
    client.ok(client.transaction_info(xid, ROLLBACK))
    reader = bench.connect().consume(FULL)
    reader.take()
    reader.done(0)
    assert reader.bodies() == ""
    assert bench.broker.transactions.open == {}


# -- peers that do not read --------------------------------------------------------------------------------------------


def test_a_peer_that_does_not_read_gets_no_more_than_its_outbox_holds() -> None:
    bench = OpenWireBench(acceptor=replace(ACCEPTOR, outbox_limit_bytes=2_000))
    client, sender = bench.connect(), bench.connect()
    reader = client.consume(A)
    client.reads = False
    sender.publish(A, " ".join(str(number) for number in range(50)))
    (consumer,) = bench.queue("a").holders
    assert 0 < consumer.held_count < 50
    client.reads = True
    bench.tick()
    assert len(reader.take()) == 50


def test_a_topic_s_slow_reader_does_not_stop_the_others() -> None:
    bench = OpenWireBench(acceptor=replace(ACCEPTOR, outbox_limit_bytes=2_000))
    slow, fast, sender = bench.connect(), bench.connect(), bench.connect()
    slow_reader, fast_reader = slow.consume(topic("t")), fast.consume(topic("t"))
    slow.reads = False
    sender.publish(topic("t"), " ".join(str(number) for number in range(50)))
    assert len(fast_reader.take()) == 50
    slow.reads = True
    bench.tick()
    assert len(slow_reader.take()) == 50


def test_answers_that_nobody_reads_stop_reading() -> None:
    bench = OpenWireBench(acceptor=replace(ACCEPTOR, reply_limit_bytes=2_000))
    client = bench.connect()
    client.reads = False
    for _ in range(1_000):
        client.feed(ConnectionControl(), answer=True)
        if not client.is_read():
            break
    assert not client.is_read()
    client.reads = True
    bench.tick()
    assert client.is_read()


def test_heart_beats_are_answered_before_the_disk_and_never_pile_up() -> None:
    bench = OpenWireBench(hold=True)
    client = bench.connect()
    sent = client.feed(client.text(queue("a"), "m1"), answer=True)
    client.feed(KeepAliveInfo(), answer=True)
    bench.tick()
    assert [one.code for one in client.take()] == [KeepAliveInfo().code]
    client.reads = False
    for _ in range(100):
        client.feed(KeepAliveInfo(), answer=True)
    client.reads = True
    bench.tick()
    assert [one.code for one in client.take()] == [KeepAliveInfo().code]
    bench.sync()
    bench.tick()
    assert len(client.answers(sent)) == 1


# -- very many ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transacted", [False, True])
def test_an_acknowledgement_of_very_many(transacted: bool) -> None:
    bench = OpenWireBench()
    client = bench.connect()
    count = 2_500
    for number in range(count):
        client.feed(client.text(A, str(number)))
    bench.tick()
    reader = client.consume(A, 32_000)
    assert len(reader.take()) == count
    transaction = client.begin() if transacted else None
    reader.done(0, count - 1, transaction)
    if transaction is not None:
        assert bench.queue("a").message_count == count
        client.ok(client.transaction_info(transaction, 2))
    assert bench.queue("a").message_count == 0
    assert code_of(client.refused(reader.ack(STANDARD_ACK, 0, first=0))) == "JMSException DMQ5260"


def test_preparing_waits_for_an_acknowledgement_of_very_many() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    for number in range(2_500):
        client.feed(client.text(A, str(number)))
    bench.tick()
    reader = client.consume(A, 32_000)
    reader.take()
    xid = XATransactionId(1, b"g", b"b")
    client.feed(client.transaction_info(xid, BEGIN))
    client.feed(reader.ack(STANDARD_ACK, 2_499, first=0, count=2_500, transaction=xid))
    command_id = client.feed(client.transaction_info(xid, PREPARE), answer=True)
    bench.tick()
    (answer,) = client.answers(command_id)
    assert isinstance(answer, IntegerResponse)
    assert answer.result == 0
    client.ok(client.transaction_info(xid, COMMIT_TWO_PHASE))
    assert bench.queue("a").message_count == 0
