"""What CORE clients send and get: answers, credits, order, acknowledgements, large messages."""

import tracemalloc

import pytest

from delosmq.model.message import ANY_ROUTING, ANYCAST
from delosmq.model.settings import AddressFullPolicy, QueueSettings, SecurityMatch
from delosmq.security.access import PERMISSIONS
from delosmq.sessions.core.server.reattach.replay_cache import as_int
from delosmq.wire.core.connection_packets import ExceptionPacket, NullResponse, PacketsConfirmed
from delosmq.wire.core.message_packets import (
    SessionReceiveContinuation,
    SessionReceiveLargeMessage,
    SessionReceiveMessage,
    SessionSendContinuation,
    SessionSendLarge,
)
from delosmq.wire.core.queue_packets import QueueQueryResponseV3
from delosmq.wire.core.session_packets import (
    ConsumerClose,
    ConsumerFlowCredit,
    CreateConsumer,
    CreateProducer,
    IndividualAcknowledge,
    MessageExpired,
    ProducerCredits,
    ProducerFailCredits,
    RemoveProducer,
    RequestProducerCredits,
    SessionClose,
    SessionCommit,
    SessionStart,
    SessionStop,
)
from tests.sessions.core.support import CoreBench, Session, code_of, is_marker, text_of
from tests.sessions.support import FillingStore

ORDERS = (QueueSettings("orders", "orders", ANYCAST),)


def ready(**options: object) -> Session:
    """A session beside a queue."""
    session = CoreBench(queues=ORDERS).session(**options)
    return session


# -- sending ---------------------------------------------------------------------------------------------------------


def test_a_message_is_confirmed_once_it_is_synced() -> None:
    bench = CoreBench(queues=ORDERS, hold=True)
    session = bench.session()
    packet = session.send_packet("orders", "a")
    session.tell(packet)
    assert session.take() == []
    bench.sync()
    bench.tick()
    (answer,) = session.take()
    assert isinstance(answer, NullResponse)
    assert answer.correlation_id == packet.correlation_id


def test_a_message_that_wants_no_answer_gets_none() -> None:
    session = ready()
    session.tell(session.send_packet("orders", "a", answer=False))
    assert session.take() == []
    assert session.bench.queue("orders").message_count == 1


def test_a_routing_type_makes_what_is_missing_and_none_makes_nothing() -> None:
    bench = CoreBench()
    session = bench.session()
    session.send("new", "a", ANY_ROUTING)
    assert "new" not in bench.broker.addresses
    session.send("new", "b")
    assert bench.queue("new").message_count == 1
    closed = CoreBench(address_settings={"#": {"auto_create_addresses": False}}).session()
    assert closed.refused(closed.send_packet("new", "a")).startswith("ADDRESS_DOES_NOT_EXIST")


def test_producers_come_and_go_without_an_answer() -> None:
    session = ready()
    made = CreateProducer()
    made.address = "orders"
    session.tell(made)
    session.tell(RemoveProducer())
    assert (session.take(), session.client.host.reports) == ([], [])


def test_a_message_without_an_address_goes_to_the_first_of_the_session() -> None:
    session = ready()
    packet = session.send_packet("orders", "a")
    packet.message.address = None
    packet.message.encode_head(packet.message.properties)
    assert session.refused(packet) == "ILLEGAL_STATE DMQ5634"
    session.send("orders", "b")
    session.ok(packet)
    assert session.bench.queue("orders").message_count == 2


def test_a_message_to_a_queue_by_its_full_name() -> None:
    session = CoreBench().session()
    session.subscribe("one", "news")
    session.subscribe("two", "news")
    session.publish("news::two", "a")
    assert session.bench.queue("one").message_count == 0
    assert session.bench.queue("two").message_count == 1


def test_a_user_who_may_not_send_is_told() -> None:
    security = (SecurityMatch("#", {one: frozenset({"all"}) for one in PERMISSIONS if one != "send"}),)
    session = CoreBench(queues=ORDERS, security=security).session()
    packet = session.send_packet("orders", "a")
    (answer,) = (session.client.ask(packet, session.channel),)
    assert isinstance(answer, ExceptionPacket)
    assert answer.correlation_id == packet.correlation_id
    assert code_of(answer).startswith("SECURITY_EXCEPTION")


def test_what_fails_without_an_answer_is_logged() -> None:
    session = ready()
    packet = session.send_packet("orders", "a", answer=False, _AMQ_GROUP_ID="x" * 2_000)
    session.tell(packet)
    assert session.take() == []
    (report,) = session.client.host.reports
    assert report.code == "DMQ5628"


@pytest.mark.parametrize("name", ["_AMQ_GROUP_ID", "_AMQ_DUPL_ID"])
def test_an_id_that_is_too_long_is_refused(name: str) -> None:
    session = ready()
    refusal = session.refused(session.send_packet("orders", "a", **{name: "x" * 2_000}))
    assert refusal.endswith("DMQ5613")


def test_a_duplicate_is_dropped() -> None:
    session = ready()
    session.ok(session.send_packet("orders", "a", _AMQ_DUPL_ID="1"))
    session.ok(session.send_packet("orders", "a", _AMQ_DUPL_ID="1"))
    assert session.bench.queue("orders").message_count == 1


# -- credits of producers --------------------------------------------------------------------------------------------


def full(policy: AddressFullPolicy) -> tuple[CoreBench, Session]:
    settings = {"orders": {"max_size_bytes": 2_000, "address_full_policy": policy}}
    bench = CoreBench(queues=ORDERS, address_settings=settings)
    session = bench.session()
    session.ask(RequestProducerCredits(65_536, "orders"), ProducerCredits)
    session.send("orders", "a" * 1_000)
    return bench, session


def test_credits_are_granted_as_asked_for() -> None:
    answer = ready().ask(RequestProducerCredits(65_536, "orders"), ProducerCredits)
    assert (answer.credits, answer.address) == (65_536, "orders")


def test_a_full_address_that_blocks_holds_credits_back_and_takes_what_has_them() -> None:
    _bench, session = full(AddressFullPolicy.BLOCK)
    session.tell(RequestProducerCredits(5_000, "orders"))
    assert session.take() == []
    session.send("orders", "b")  # it has credits of before
    reader = session.consumer("orders")
    session.start()
    assert len(reader.take()) == 2
    session.tell(reader.ack(1))
    (answer,) = session.take()
    assert isinstance(answer, ProducerCredits)
    assert answer.credits == 5_000


@pytest.mark.parametrize(("asked", "granted"), [((2**31 - 1, 2**31 - 1), 2**31 - 1), ((5_000, -6_000), 5_000)])
def test_credits_that_wait_add_up_to_what_an_answer_can_say(asked: tuple[int, int], granted: int) -> None:
    _bench, session = full(AddressFullPolicy.BLOCK)
    for count in asked:
        session.tell(RequestProducerCredits(count, "orders"))
    reader = session.consumer("orders")
    session.start()
    reader.take()
    session.tell(reader.ack(0))
    (answer,) = session.take()
    assert isinstance(answer, ProducerCredits)
    assert answer.credits == granted


def test_a_session_that_waits_for_room_under_too_many_names_is_told() -> None:
    _bench, session = full(AddressFullPolicy.BLOCK)
    for number in range(1_000):
        session.feed(RequestProducerCredits(1, f"orders::{number}"))
    assert session.refused(RequestProducerCredits(1, "orders::more")) == "ILLEGAL_STATE DMQ5631"
    session.tell(RequestProducerCredits(1, "orders::1"))  # it waits already
    assert session.take() == []


def test_credits_of_many_addresses_add_up_to_no_more_than_a_session_may_have() -> None:
    _bench, session = full(AddressFullPolicy.BLOCK)
    for number in range(4):
        session.ask(RequestProducerCredits(4 * 1024 * 1024, f"other{number}"), ProducerCredits)
    session.tell(session.send_packet("orders", "b"))  # what it asked for first counts no more
    assert session.take() == []


def test_a_full_address_that_fails_says_so() -> None:
    _, session = full(AddressFullPolicy.FAIL)
    answer = session.ask(RequestProducerCredits(5_000, "orders"), ProducerFailCredits)
    assert answer.credits == 5_000
    assert session.refused(session.send_packet("orders", "b")) == "ADDRESS_FULL DMQ2201"


def test_a_message_without_credits_waits_and_acknowledgements_pass_it() -> None:
    bench, _ = full(AddressFullPolicy.BLOCK)
    session = bench.session()
    session.tell(session.send_packet("orders", "late"))
    assert session.take() == []
    reader = session.consumer("orders")
    session.start()
    reader.take()
    session.tell(reader.ack(0))
    received = session.take()
    assert [type(one) for one in received] == [NullResponse, SessionReceiveMessage]


def test_a_session_that_closes_waits_for_what_it_sent() -> None:
    bench, _ = full(AddressFullPolicy.BLOCK)
    session = bench.session()
    session.tell(session.send_packet("orders", "late", answer=False))
    session.tell(SessionStop())
    session.take()
    session.tell(SessionClose())
    assert session.take() == []
    other = bench.session()
    reader = other.consumer("orders")
    other.start()
    reader.take()
    other.tell(reader.ack(0))
    (answer,) = session.take()
    assert isinstance(answer, NullResponse)
    assert reader.bodies() == "late"


def test_a_lost_connection_asks_for_no_credits_any_more() -> None:
    bench, session = full(AddressFullPolicy.BLOCK)
    session.tell(RequestProducerCredits(5_000, "orders"))
    session.client.leave()
    assert not bench.broker.addresses["orders"].waiters


# -- credits of consumers --------------------------------------------------------------------------------------------


def test_nothing_comes_without_start_or_without_credits() -> None:
    session = ready()
    session.send("orders", "a b c")
    reader = session.consumer("orders", credits=0)
    session.start()
    assert reader.bodies() == ""
    reader.flow(1)
    assert reader.bodies() == "a"
    session.stop()
    reader.flow(1_000)
    assert reader.bodies() == ""
    session.start()
    assert reader.bodies() == "b c"


def test_credits_count_whole_frames_and_go_below_zero() -> None:
    session = ready()
    session.send("orders", "a b c")
    reader = session.consumer("orders", credits=1)
    session.start()
    (packet,) = reader.take()
    reader.flow(packet.size_bytes - 1)
    assert reader.bodies() == ""  # exactly 0
    reader.flow(1)
    assert reader.bodies() == "b"
    reader.flow(-1)
    assert reader.bodies() == "c"


def test_zero_takes_back_what_is_left() -> None:
    session = ready()
    reader = session.consumer("orders", credits=1_000)
    reader.flow(0)
    session.start()
    session.send("orders", "a")
    assert reader.bodies() == ""


def test_acknowledgements_give_no_credits_back() -> None:
    session = ready()
    session.send("orders", "a b")
    reader = session.consumer("orders", credits=1)
    session.start()
    reader.bodies()
    reader.done(0)
    assert reader.bodies() == ""


def test_no_delivery_follows_the_answer_to_stop() -> None:
    session = ready()
    reader = session.consumer("orders")
    session.start()
    session.client.reads = False
    session.feed(session.send_packet("orders", "a", answer=False))
    session.bench.tick()
    session.feed(SessionStop())
    session.feed(session.send_packet("orders", "b", answer=False))
    session.client.reads = True
    session.bench.tick()
    received = session.take()
    assert [type(one) for one in received] == [SessionReceiveMessage, NullResponse]
    session.start()
    assert reader.bodies() == "b"


def test_deliveries_and_answers_keep_one_order_while_the_disk_is_busy() -> None:
    bench = CoreBench(queues=ORDERS, hold=True)
    session = bench.session()
    session.consumer("orders")
    session.tell(SessionStart())
    session.tell(session.send_packet("orders", "a", answer=False))
    session.tell(SessionStop())
    assert session.take() == []
    bench.sync()
    bench.tick()
    assert [type(one) for one in session.take()] == [SessionReceiveMessage, NullResponse]


def test_a_marker_follows_all_that_there_was() -> None:
    session = ready()
    reader = session.consumer("orders")
    session.start()
    for body in ["a", "b", "c"]:
        session.feed(session.send_packet("orders", body, answer=False))
    reader.force(7)
    packets = reader.take()
    assert [is_marker(one) for one in packets] == [False, False, False, True]
    reader.force(8)
    assert reader.bodies() == "|"


def test_a_marker_needs_neither_credits_nor_start() -> None:
    session = ready()
    session.send("orders", "a")
    reader = session.consumer("orders", credits=0)
    reader.force(1)
    assert reader.bodies() == "|"
    session.start()
    reader.force(2)
    assert reader.bodies() == "|"
    reader.session.feed(ConsumerFlowCredit(reader.id, 1))
    reader.force(3)
    assert reader.bodies() == "a |"


def test_a_browser_sees_all_without_start_and_takes_nothing() -> None:
    session = ready()
    session.send("orders", "a b")
    reader = session.consumer("orders", browse_only=True)
    assert reader.bodies() == "ax0 bx0"
    session.tell(reader.ack(1))
    reader.force(1)
    assert reader.bodies() == "|"
    session.tell(ConsumerClose(reader.id))
    session.take()
    assert session.bench.queue("orders").message_count == 2


def test_what_a_queue_lends_is_a_first_delivery() -> None:
    board = QueueSettings("board", "board", ANYCAST, non_destructive=True)
    session = CoreBench(queues=(board,)).session()
    session.send("board", "a")
    session.start()
    assert session.consumer("board").bodies() == "a"
    assert session.consumer("board").bodies() == "a"


@pytest.mark.parametrize(
    "text",
    ["colour = 'red'", "AMQDurable = 'NON_DURABLE'", "AMQPriority = 9", "AMQAddress = 'orders' AND colour = 'red'"],
)
def test_a_filter_picks(text: str) -> None:
    session = ready()
    session.send("orders", "a")
    packet = session.send_packet("orders", "b", colour="red")
    message = packet.message
    message.durable = False
    message.priority = 9
    message.encode_head(message.properties)
    session.ok(packet)
    reader = session.consumer("orders", filter_string=text)
    session.start()
    assert reader.bodies() == "b"


def test_a_consumer_is_told_about_its_queue() -> None:
    session = ready()
    packet = CreateConsumer()
    packet.queue_name = "orders"
    packet.requires_response = True
    assert session.ask(packet, QueueQueryResponseV3).exists
    assert session.refused(packet) == "ILLEGAL_STATE DMQ5641"
    packet.id = 1
    packet.queue_name = "nothing"
    assert session.refused(packet) == "QUEUE_DOES_NOT_EXIST DMQ5640"
    packet.queue_name = "orders"
    packet.filter_string = "a ="
    assert session.refused(packet).startswith("INVALID_FILTER_EXPRESSION")


def test_more_consumers_than_a_queue_takes() -> None:
    session = CoreBench(queues=(QueueSettings("orders", "orders", ANYCAST, max_consumers=1),)).session()
    session.consumer("orders")
    packet = CreateConsumer()
    packet.id = 9
    packet.queue_name = "orders"
    packet.requires_response = True
    assert session.refused(packet) == "MAX_CONSUMER_LIMIT_EXCEEDED DMQ2202"


def test_higher_priorities_come_first() -> None:
    session = ready()
    low = session.consumer("orders", priority=1)
    high = session.consumer("orders", priority=9)
    session.start()
    session.send("orders", "a b")
    assert (high.bodies(), low.bodies()) == ("a b", "")


# -- acknowledging ---------------------------------------------------------------------------------------------------


def test_an_acknowledgement_takes_all_up_to_its_message() -> None:
    session = ready()
    session.send("orders", "a b c")
    reader = session.consumer("orders")
    session.start()
    assert reader.bodies() == "a b c"
    reader.done(1)
    assert session.bench.queue("orders").message_count == 1
    session.ok(IndividualAcknowledge(reader.id, reader.got[2].message.message_id, True))
    assert session.bench.queue("orders").message_count == 0


def test_what_is_not_in_delivery_can_t_be_acknowledged() -> None:
    session = ready()
    session.send("orders", "a b")
    reader = session.consumer("orders")
    session.start()
    reader.bodies()
    reader.done(0)
    assert session.refused(IndividualAcknowledge(reader.id, reader.got[0].message.message_id, True)).startswith(
        "ILLEGAL_STATE DMQ5642"
    )
    assert session.refused(IndividualAcknowledge(99, 1, True)) == "ILLEGAL_STATE DMQ5642"


def test_a_wrong_cumulative_acknowledgement_returns_all() -> None:
    session = ready()
    session.send("orders", "a b")
    reader = session.consumer("orders")
    session.start()
    reader.bodies()
    packet = reader.ack(0, answer=True)
    packet.message_id = 12_345_678
    session.tell(packet)
    received = session.take()
    assert code_of(received[0]) == "ILLEGAL_STATE DMQ5642"
    assert [one.delivery_count for one in received[1:] if isinstance(one, SessionReceiveMessage)] == [2, 2]


def test_a_closed_consumer_gives_counts_back_and_a_lost_one_does_not() -> None:
    bench = CoreBench(queues=ORDERS)
    session = bench.session()
    session.send("orders", "a")
    reader = session.consumer("orders")
    session.start()
    assert reader.bodies() == "a"
    session.ok(ConsumerClose(reader.id))
    again = session.consumer("orders")
    assert again.bodies() == "a"
    session.client.leave()
    other = bench.session()
    last = other.consumer("orders")
    other.start()
    assert last.bodies() == "ax2"


def test_closing_an_unknown_consumer_is_no_error() -> None:
    ready().ok(ConsumerClose(77))


def test_pre_acknowledged_messages_are_gone_once_sent() -> None:
    session = ready(pre_acknowledge=True)
    session.send("orders", "a b")
    reader = session.consumer("orders")
    session.start()
    assert reader.bodies() == "a b"
    assert session.bench.queue("orders").message_count == 0


def test_a_message_that_its_client_finds_expired() -> None:
    settings = {"orders": {"expiry_address": "old"}}
    session = CoreBench(queues=(*ORDERS, QueueSettings("old", "old", ANYCAST)), address_settings=settings).session()
    session.send("orders", "a")
    reader = session.consumer("orders")
    session.start()
    reader.bodies()
    session.tell(MessageExpired(reader.id, reader.got[0].message.message_id))
    assert session.bench.queue("old").message_count == 1
    session.tell(MessageExpired(reader.id, 999))
    assert session.take() == []


# -- large messages --------------------------------------------------------------------------------------------------


def send_large(session: Session, body: bytes, part_bytes: int = 40_000) -> None:
    headers = session.message("orders", "")
    headers.body = b""
    session.feed(SessionSendLarge(headers))
    for at in range(0, len(body), part_bytes):
        packet = SessionSendContinuation()
        packet.body = body[at : at + part_bytes]
        packet.continues = at + part_bytes < len(body)
        packet.requires_response = not packet.continues
        packet.message_body_size = len(body)
        session.feed(packet)
    session.bench.tick()


def test_a_large_message_comes_as_it_went_in_parts_that_need_credit() -> None:
    body = bytes(range(256)) * 1_000
    session = ready()
    send_large(session, body)
    (answer,) = session.take()
    assert isinstance(answer, NullResponse)
    reader = session.consumer("orders", credits=1)
    session.start()
    (head,) = session.take()
    assert isinstance(head, SessionReceiveLargeMessage)
    assert (head.body_size, head.delivery_count) == (len(body), 1)
    reader.flow(head.size_bytes)
    received = session.take()
    assert len(received) == 1  # credit for one part
    reader.flow(1 << 20)
    received += session.take()
    parts = [one for one in received if isinstance(one, SessionReceiveContinuation)]
    assert [one.continues for one in parts] == [True, True, False]
    assert b"".join(one.body for one in parts) == body
    session.ok(IndividualAcknowledge(reader.id, head.message.message_id, True))
    assert session.bench.queue("orders").message_count == 0


def test_others_wait_until_a_large_message_is_through() -> None:
    session = ready()
    send_large(session, bytes(300_000))
    session.take()
    session.send("orders", "b")
    reader = session.consumer("orders", credits=1)
    session.start()
    session.take()
    reader.flow(150_000)
    assert all(isinstance(one, SessionReceiveContinuation) for one in session.take())
    reader.flow(1_000_000)
    kinds = [type(one) for one in session.take()]
    assert kinds[-1] is SessionReceiveMessage
    assert set(kinds[:-1]) == {SessionReceiveContinuation}


def test_a_part_without_its_beginning_is_refused() -> None:
    session = ready()
    packet = SessionSendContinuation()
    packet.requires_response = True
    packet.correlation_id = 5
    assert session.refused(packet) == "ILLEGAL_STATE DMQ5635"


def test_a_large_message_that_is_too_large_is_refused_by_name() -> None:
    bench = CoreBench(queues=ORDERS)
    bench.broker.producers.largest_message_bytes = 100_000
    session = bench.session()
    send_large(session, bytes(200_000))
    (answer,) = session.take()
    assert code_of(answer) == "LARGE_MESSAGE_ERROR_BODY DMQ5636"
    assert session.client.machine.session.held_bytes() == 0
    send_large(session, b"x")
    assert isinstance(session.take()[0], NullResponse)


def test_a_large_message_that_never_ends_goes_with_its_connection() -> None:
    session = ready()
    headers = session.message("orders", "")
    session.feed(SessionSendLarge(headers))
    packet = SessionSendContinuation()
    packet.body = bytes(50_000)
    packet.continues = True
    session.tell(packet)
    assert session.client.machine.buffered_bytes() == 50_000
    session.close()
    assert session.client.machine.buffered_bytes() == 0


def test_parts_of_a_large_message_take_no_more_memory_than_they_have_bytes() -> None:
    session = ready()
    session.feed(SessionSendLarge(session.message("orders", "")))
    packet = SessionSendContinuation()
    packet.body = b"x"
    packet.continues = True
    tracemalloc.start()
    for _ in range(10_000):
        session.feed(packet)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert session.client.machine.buffered_bytes() == 10_000
    assert taken < 50_000


# -- transactions ----------------------------------------------------------------------------------------------------


def transacted(**options: object) -> Session:
    return CoreBench(queues=ORDERS).session(auto_commit_sends=False, auto_commit_acks=False)


def test_a_commit_makes_messages_and_acknowledgements_happen() -> None:
    session = transacted()
    session.send("orders", "a b")
    reader = session.consumer("orders")
    session.start()
    assert reader.bodies() == ""
    session.commit()
    assert reader.bodies() == "a b"
    session.tell(reader.ack(1))
    assert session.bench.queue("orders").message_count == 2
    session.commit()
    assert session.bench.queue("orders").message_count == 0
    session.commit()  # nothing was done


def test_a_rollback_returns_all_and_counts_what_was_acknowledged() -> None:
    session = transacted()
    session.send("orders", "a b c")
    session.commit()
    reader = session.consumer("orders")
    session.start()
    assert reader.bodies() == "a b c"
    session.stop()
    session.tell(reader.ack(0))
    session.send("orders", "d")
    session.roll_back()
    session.start()
    assert reader.bodies() == "ax2 b c"


def test_a_recover_counts_the_first_that_was_not_acknowledged() -> None:
    session = transacted()
    session.send("orders", "a b")
    session.commit()
    reader = session.consumer("orders")
    session.start()
    assert reader.bodies() == "a b"
    session.stop()
    session.roll_back(first_counts=True)
    session.start()
    assert reader.bodies() == "ax2 b"


def test_a_failure_dooms_the_transaction_and_another_follows() -> None:
    session = transacted()
    session.send("orders", "a")
    session.tell(session.send_packet("orders", "b", answer=False, _AMQ_GROUP_ID="x" * 2_000))
    assert session.refused(SessionCommit()).endswith("DMQ5613")
    assert session.bench.queue("orders").message_count == 0
    session.send("orders", "c")
    session.commit()
    assert session.bench.queue("orders").message_count == 1


def test_a_duplicate_in_a_transaction_fails_its_commit() -> None:
    session = transacted()
    session.ok(session.send_packet("orders", "a", _AMQ_DUPL_ID="1"))
    session.commit()
    session.ok(session.send_packet("orders", "a", _AMQ_DUPL_ID="1"))
    assert session.refused(SessionCommit()).startswith("DUPLICATE_ID_REJECTED")


def test_a_wrong_acknowledgement_dooms_its_transaction() -> None:
    session = transacted()
    reader = session.consumer("orders")
    session.tell(IndividualAcknowledge(reader.id, 99))
    assert session.refused(SessionCommit()) == "ILLEGAL_STATE DMQ5642"
    session.commit()


@pytest.mark.parametrize("lost", [True, False])
def test_a_session_that_ends_rolls_back(lost: bool) -> None:
    session = transacted()
    session.send("orders", "a")
    if lost:
        session.client.leave()
    else:
        session.close()
    assert session.bench.queue("orders").message_count == 0
    assert not session.bench.broker.transactions.open


@pytest.mark.parametrize("end", ["closed", "lost"])
def test_a_full_disk_does_not_keep_a_session_from_closing(end: str) -> None:
    store = FillingStore()
    session = CoreBench(queues=ORDERS, store=store).session(auto_commit_acks=False)
    session.send("orders", "a b")
    reader = session.consumer("orders")
    session.start()
    assert reader.bodies() == "a b"
    session.tell(reader.ack(0))
    store.full = True
    if end == "closed":
        session.feed(SessionClose())
    else:
        session.client.machine.connection_lost()
    assert not session.bench.broker.transactions.open
    assert {trouble.code for trouble in session.client.host.reports} == {"DMQ5627"}
    assert session.bench.queue("orders").consumer_count == 0


# -- confirmations ---------------------------------------------------------------------------------------------------


def test_packets_are_confirmed_once_they_fill_the_window() -> None:
    session = ready(window_size=300)
    session.tell(session.send_packet("orders", "a", answer=False))
    assert session.take() == []
    session.tell(session.send_packet("orders", "b", answer=False))
    session.tell(session.send_packet("orders", "c", answer=False))
    (packet,) = session.take()
    assert isinstance(packet, PacketsConfirmed)
    assert packet.command_id in (1, 2)


@pytest.mark.parametrize(("number", "told"), [(-1, -1), (2**31 - 1, 2**31 - 1), (2**31, -(2**31)), (2**32, 0)])
def test_numbers_of_packets_begin_anew_below_zero_as_in_java(number: int, told: int) -> None:
    assert as_int(number) == told


def test_a_window_of_zero_confirms_each_packet_after_its_answer_and_once_it_is_synced() -> None:
    bench = CoreBench(queues=ORDERS, hold=True)
    session = bench.session(window_size=0)
    session.tell(session.send_packet("orders", "a"))
    assert session.take() == []
    bench.sync()
    bench.tick()
    answer, confirmed = session.take()
    assert isinstance(answer, NullResponse)
    assert isinstance(confirmed, PacketsConfirmed)
    assert confirmed.command_id == 0


def test_what_waits_is_confirmed_at_a_check_of_the_ttl() -> None:
    session = ready(window_size=100_000)
    session.tell(session.send_packet("orders", "a", answer=False))
    session.bench.pass_time(2_100)
    (packet,) = session.take()
    assert isinstance(packet, PacketsConfirmed)
    session.bench.pass_time(2_100)
    assert session.take() == []


def test_messages_of_a_topic_reach_every_subscription() -> None:
    session = CoreBench().session()
    session.subscribe("one", "news")
    session.subscribe("two", "news")
    one, two = session.consumer("one"), session.consumer("two")
    session.start()
    session.publish("news", "a")
    assert (one.bodies(), two.bodies()) == ("a", "a")
    session.client.leave()
    assert session.bench.queue("one").message_count == 1


def test_the_body_and_its_properties_travel_as_they_are() -> None:
    session = ready()
    session.ok(session.send_packet("orders", "über", colour="rot"))
    reader = session.consumer("orders")
    session.start()
    (packet,) = reader.take()
    assert text_of(packet) == "über"
    assert packet.message.address == "orders"
