"""Sessions that outlive their connection: what is kept, what is sent again, and when all of it ends."""

import gc
from dataclasses import replace

import pytest

from delosmq.model.errors import PeerError
from delosmq.model.message import ANYCAST
from delosmq.model.settings import AddressFullPolicy, QueueSettings
from delosmq.sessions.core.server.connection import CoreConnection
from delosmq.sessions.core.server.consumers.consumer import CoreConsumer
from delosmq.sessions.core.server.session import CoreSession
from delosmq.sessions.machine import SessionMachine
from delosmq.wire.core.connection_packets import (
    NullResponse,
    PacketsConfirmed,
    Ping,
    ReattachSession,
    ReattachSessionResponse,
)
from delosmq.wire.core.message_packets import SessionSendContinuation, SessionSendLarge
from delosmq.wire.core.session_packets import SessionCommit, SessionStop
from tests.sessions.core.support import ACCEPTOR, Client, CoreBench, Session
from tests.sessions.core.test_messages import send_large

ORDERS = (QueueSettings("orders", "orders", ANYCAST),)
WINDOW = 100_000


def ready(**options: object) -> Session:
    """A session with a window, on a queue "orders"."""
    return CoreBench(queues=ORDERS).session(window_size=WINDOW, **options)


def asked(client: Client, name: str, last: int) -> ReattachSessionResponse:
    """The answer to a REATTACH."""
    packet = ReattachSession()
    packet.name = name
    packet.last_confirmed_command_id = last
    client.tell(packet, 1)
    (answer,) = client.take(1)
    assert isinstance(answer, ReattachSessionResponse)
    return answer


def back(session: Session, last: int, client: Client | None = None) -> int:
    """The client of a session comes back by another connection; gives what the broker has handled.

    Args:
        last: the number of the last packet that came from the broker.
    """
    client = client or session.bench.connect()
    answer = asked(client, session.request.name, last)
    assert answer.reattached
    session.client = client
    return answer.last_confirmed_command_id


def refused(session: Session, client: Client, last: int = -1) -> bool:
    answer = asked(client, session.request.name, last)
    assert answer.reattached or answer.last_confirmed_command_id == -1
    return not answer.reattached


# -- what goes on ----------------------------------------------------------------------------------------------------


def test_what_is_in_delivery_stays_there_and_is_acknowledged_later() -> None:
    session = ready()
    reader = session.consumer("orders")
    session.start()
    session.send("orders", "a b")
    assert reader.bodies() == "a b"
    session.client.leave()
    assert session.bench.queue("orders").delivering.count == 2
    assert back(session, 3) == 4  # consumer, credits, start, two sends: 0 to 4; two deliveries and two answers came
    assert session.take() == []
    reader.done(1)
    assert session.bench.queue("orders").message_count == 0


def test_deliveries_and_answers_that_did_not_arrive_come_again() -> None:
    session = ready()
    reader = session.consumer("orders")
    session.start()
    session.client.reads = False
    session.tell(session.send_packet("orders", "a"))
    session.tell(session.send_packet("orders", "b"))
    session.client.leave()
    back(session, -1)
    assert reader.bodies() == "a b"
    assert [type(one) for one in session.take()] == [NullResponse, NullResponse]
    session.client.leave()
    back(session, 1)
    assert len(session.take()) == 2
    session.client.leave()
    back(session, 3)
    assert session.take() == []


def test_what_its_client_confirms_is_not_kept() -> None:
    session = ready()
    session.send("orders", "a b")
    session.tell(PacketsConfirmed(1))
    session.send("orders", "c")
    session.client.leave()
    assert refused(session, session.bench.connect(), 0)  # that was promised not to be asked for


def test_a_packet_that_was_handled_is_not_handled_again() -> None:
    session = ready()
    sent = session.send_packet("orders", "a", answer=False)
    session.tell(sent)
    session.client.leave()
    assert back(session, -1) == 0
    session.tell(session.send_packet("orders", "b", answer=False))
    assert session.bench.queue("orders").message_count == 2


def test_a_send_that_waits_for_room_is_replayed_and_left_out() -> None:
    bench = CoreBench(
        queues=ORDERS,
        address_settings={"orders": {"max_size_bytes": 300, "address_full_policy": AddressFullPolicy.BLOCK}},
    )
    session = bench.session(window_size=WINDOW)
    packets = [session.send_packet("orders", "x" * 300, answer=False), session.send_packet("orders", "b")]
    for packet in packets:
        session.tell(packet)
    assert bench.queue("orders").message_count == 1
    session.client.leave()
    reader = bench.session().consumer("orders")
    reader.session.start()
    assert back(session, -1) == -1  # nothing was confirmed yet
    for packet in packets:
        session.tell(packet)
    (first,) = reader.take()
    reader.got = [first]
    reader.done(0)
    (answer,) = session.take()
    assert isinstance(answer, NullResponse)
    assert reader.bodies() == "b"
    reader.done(1)
    session.ok(session.send_packet("orders", "c"))
    assert reader.bodies() == "c"


def test_the_answer_waits_for_the_disk() -> None:
    bench = CoreBench(queues=ORDERS, hold=True)
    session = bench.session(window_size=WINDOW)
    session.tell(session.send_packet("orders", "a"))
    session.client.leave()
    client = bench.connect()
    packet = ReattachSession()
    packet.name = session.request.name
    packet.last_confirmed_command_id = -1
    client.tell(packet, 1)
    assert client.take() == []
    bench.sync()
    bench.tick()
    confirmed, reattached = sorted(client.take(), key=lambda one: -one.channel)
    assert isinstance(confirmed, NullResponse)
    assert isinstance(reattached, ReattachSessionResponse)
    assert reattached.last_confirmed_command_id == 0


def test_a_transaction_goes_on() -> None:
    session = ready(auto_commit_sends=False, auto_commit_acks=False)
    session.bench.session().send("orders", "a")
    reader = session.consumer("orders")
    session.start()
    assert reader.bodies() == "a"
    session.tell(reader.ack(0))
    session.tell(session.send_packet("orders", "b", answer=False))
    session.client.leave()
    assert back(session, 0) == 4
    session.commit()
    assert reader.bodies() == "b"
    reader.done(1)
    session.commit()
    assert session.bench.queue("orders").message_count == 0


def test_an_answer_of_a_commit_is_not_lost() -> None:
    session = ready(auto_commit_sends=False)
    session.tell(session.send_packet("orders", "a", answer=False))
    session.client.reads = False
    session.tell(SessionCommit())
    session.client.leave()
    assert back(session, -1) == 1
    (answer,) = session.take()
    assert isinstance(answer, NullResponse)


def test_temporary_queues_move_along() -> None:
    session = ready()
    session.ok(session.queue("answers", temporary=True, durable=False))
    session.client.leave()
    back(session, 0)
    reader = session.consumer("answers")  # of its own connection, as before
    session.start()
    session.send("answers", "a")
    assert reader.bodies() == "a"
    session.client.leave()
    session.bench.pass_time(70_000)
    assert "answers" not in session.bench.broker.queues


def test_others_get_the_messages_while_its_client_is_away() -> None:
    session = ready()
    reader = session.consumer("orders")
    session.start()
    session.client.leave()
    other = session.bench.session()
    other_reader = other.consumer("orders")
    other.start()
    other.send("orders", "a b c")
    assert other_reader.bodies() == "a b c"
    other.close()
    back(session, -1)
    assert reader.bodies() == "a b c"


def test_a_large_message_goes_on_where_it_was_cut() -> None:
    session = ready(min_large_message_size=2_000)
    send_large(session, b"x" * 10_000)
    session.take()
    reader = session.consumer("orders", credits=3_000)
    session.start()
    first = session.take()
    assert len(first) == 3  # its headers and two parts
    session.client.leave()
    back(session, 2)  # the answer to its sender is 0
    (again,) = session.take()
    assert type(again) is type(first[2])
    reader.flow(1 << 20)
    assert len(session.take()) == 3


def test_half_a_large_message_is_sent_on() -> None:
    session = ready()
    headers = session.message("orders", "")
    headers.body = b""
    session.tell(SessionSendLarge(headers))
    part = SessionSendContinuation()
    part.body = b"x" * 20_000
    part.continues = True
    session.tell(part)
    session.client.leave()
    assert back(session, -1) == 1
    assert session.client.machine.buffered_bytes() == 20_000
    part.continues = False
    part.message_body_size = 40_000
    part.requires_response = True
    session.ok(part)
    assert session.client.machine.buffered_bytes() == 0
    assert session.bench.queue("orders").message_count == 1


def test_a_consumer_of_a_closed_queue_is_told_later() -> None:
    session = ready()
    session.consumer("orders")
    session.client.leave()
    session.bench.broker.resources.delete_queue("orders")
    back(session, -1)
    assert len(session.take()) == 1


def test_a_connection_that_is_not_noticed_dead_is_over() -> None:
    session = ready()
    reader = session.consumer("orders")
    session.start()
    session.client.reads = False
    session.tell(session.send_packet("orders", "a", answer=False))
    old = session.client
    back(session, -1)
    assert old.host.finished
    assert reader.bodies() == "a"
    old.leave()
    reader.done(0)


def test_a_window_of_zero_is_enough_while_the_old_connection_is_not_noticed_dead() -> None:
    session = CoreBench(queues=ORDERS).session(window_size=0)
    assert back(session, -1) == -1
    session.client.leave()
    assert refused(session, session.bench.connect())


def test_a_clean_end_of_the_socket_is_no_end_of_the_session() -> None:
    session = ready()
    reader = session.consumer("orders")
    session.start()
    session.send("orders", "a")
    assert reader.bodies() == "a"
    session.client.machine.handle_eof()
    session.client.leave()
    back(session, 1)
    reader.done(0)


# -- the end ---------------------------------------------------------------------------------------------------------


def test_all_is_given_back_when_nobody_comes() -> None:  # TTL-3
    session = ready(auto_commit_sends=False, auto_commit_acks=False)
    bench = session.bench
    session.client.ask(Ping(5_000), 0)
    bench.session().send("orders", "a b")
    reader = session.consumer("orders")
    session.start()
    assert reader.bodies() == "a b"
    session.ok(session.queue("answers", temporary=True, durable=False))
    session.tell(session.send_packet("orders", "c", answer=False))
    session.client.leave()
    bench.pass_time(4_000)
    assert bench.queue("orders").delivering.count == 2
    assert bench.broker.transactions.open
    bench.pass_time(6_000)
    assert bench.queue("orders").delivering.count == 0
    assert not bench.broker.transactions.open
    assert "answers" not in bench.broker.queues
    assert refused(session, bench.connect())
    other = bench.session()
    reader = other.consumer("orders")
    other.start()
    assert reader.bodies() == "ax2 bx2"
    (report,) = session.client.host.reports
    assert report.code == "DMQ5654"
    assert session.request.name not in str(report)


def test_a_ttl_of_minus_one_ends_after_the_default() -> None:
    session = ready()
    session.client.ask(Ping(-1), 0)
    session.consumer("orders")
    session.client.leave()
    session.bench.pass_time(50_000)
    assert session.bench.queue("orders").holders
    session.bench.pass_time(20_000)
    assert not session.bench.queue("orders").holders


def test_a_session_without_a_window_ends_with_its_connection() -> None:
    bench = CoreBench(queues=ORDERS)
    client = bench.connect()
    plain, kept = client.open(), client.open(window_size=WINDOW)
    plain.consumer("orders")
    client.leave()
    assert not bench.queue("orders").holders
    other = bench.connect()
    assert refused(plain, other)
    back(kept, -1, other)


def test_a_session_without_a_window_is_ended_when_its_client_wants_it_back() -> None:
    session = CoreBench(queues=ORDERS).session()
    session.consumer("orders")
    assert refused(session, session.bench.connect())
    assert not session.bench.queue("orders").holders


@pytest.mark.parametrize("how", ["malformed", "silent", "stopped"])
def test_what_ends_a_connection_ends_its_sessions(how: str) -> None:
    session = ready()
    session.consumer("orders")
    client = session.client
    if how == "malformed":
        client.feed_raw(b"\0\0\0\x09\x63" + bytes(8))
    elif how == "silent":
        session.bench.pass_time(70_000)
    else:
        client.machine.fail(PeerError("DMQ6008", "the broker is stopping"))
    client.leave()
    assert not session.bench.queue("orders").holders
    assert refused(session, session.bench.connect())


def test_a_session_that_was_closed_is_unknown() -> None:
    session = ready()
    session.close()
    assert refused(session, session.bench.connect())


@pytest.mark.parametrize("end", ["ttl", "reattached"])
def test_nothing_of_it_waits_for_the_garbage_collector(end: str) -> None:
    bench = CoreBench(queues=ORDERS)
    kinds = (SessionMachine, CoreConnection, CoreSession, CoreConsumer)
    gc.disable()
    try:
        session = bench.session(window_size=WINDOW)
        session.consumer("orders")
        session.start()
        session.send("orders", "a")
        session.client.leave()
        if end == "reattached":
            back(session, 0)
            session.close()
            session.client.leave()
        else:
            bench.pass_time(70_000)
        del session
        bench.pass_time(3_000)
        assert [type(one).__name__ for one in gc.get_objects() if type(one) in kinds] == []
    finally:
        gc.enable()


# -- who may ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", ["acceptor", "certificate"])
def test_only_the_same_way_in_leads_back(other: str) -> None:
    session = ready()
    bench = session.bench
    session.client.leave()
    if other == "acceptor":
        acceptor, bench.acceptor = bench.acceptor, replace(ACCEPTOR, name="another")
        thief = bench.connect()
        bench.acceptor = acceptor
    else:
        thief = bench.connect()
        thief.machine.peer.certificate = "CN=thief"
    assert refused(session, thief)
    back(session, -1)
    session.stop()


def test_the_answer_to_wrong_names_becomes_slow() -> None:
    bench = CoreBench()
    client = bench.connect()
    client.ask(Ping(60_000), 0)
    for number in range(100):
        assert not asked(client, f"guess-{number}", -1).reattached
    assert client.host.reports == []
    packet = ReattachSession()
    packet.name = "one more"
    client.tell(packet, 1)
    client.tell(packet, 1)
    assert client.take(1) == []
    assert not client.machine.reading
    (report,) = client.host.reports
    assert report.code == "DMQ5655"
    bench.pass_time(60)
    assert len(client.take(1)) == 1
    bench.pass_time(60)
    assert len(client.take(1)) == 1
    assert client.machine.reading


# -- bounds ----------------------------------------------------------------------------------------------------------


def test_what_is_kept_for_a_client_that_confirms_nothing_is_bounded() -> None:
    session = ready()
    room = session.bench.protocol.names.room
    body = "x" * 100_000
    reader = session.consumer("orders", credits=-1)
    session.start()
    for _ in range(100):
        session.tell(session.send_packet("orders", body))
        reader.take()
        session.tell(reader.ack(-1))
    session.take()
    assert 10_000_000 < room.used_bytes <= 16 << 20
    session.client.leave()
    assert refused(session, session.bench.connect())
    assert room.used_bytes == 0


def test_sessions_that_wait_are_bounded() -> None:
    bench = CoreBench(queues=ORDERS)
    bench.protocol.names.most_detached = 2
    sessions = [bench.session(window_size=WINDOW) for _ in range(3)]
    for session in sessions:
        session.client.leave()
    (report,) = sessions[0].client.host.reports
    assert report.code == "DMQ5656"
    assert refused(sessions[0], bench.connect())
    back(sessions[1], -1)
    back(sessions[2], -1)


def test_a_channel_that_is_taken_is_none_to_come_back_to() -> None:
    session = ready()
    session.client.leave()
    client = session.bench.connect()
    client.open(session_channel_id=session.channel)
    assert refused(session, client)


def test_the_client_is_served_on_the_new_connection_as_one_that_is_logged_in() -> None:
    session = ready()
    session.client.leave()
    client = session.bench.connect()
    back(session, -1, client)
    assert client.machine.established
    assert client.machine.peer.user == "anna"
    session.ok(session.send_packet("orders", "x" * 50_000))
    session.ok(SessionStop())
