"""What a session sends waits for the disk exactly as long as it must, and back-pressure reaches the right peer."""

from dataclasses import replace

import pytest

from delosmq.model.settings import AddressFullPolicy, QueueSettings
from delosmq.sessions.machine import CLOSED
from tests.sessions.support import ACCEPTOR, PASSWORD, USER, Client, FillingStore, StompBench

ONE_MESSAGE = {"full.#": {"max_size_messages": 1, "address_full_policy": AddressFullPolicy.BLOCK}}


def receipts(client: Client) -> str:
    return " ".join(frame.headers["receipt-id"] for frame in client.take() if frame.command == "RECEIPT")


def test_receipt_and_delivery_of_a_durable_message_wait_for_its_sync() -> None:
    bench = StompBench(queues=(QueueSettings("a", "a"),), hold=True)
    bench.sync()
    client = bench.connect()
    client.frame("SUBSCRIBE", "id:s", "destination:/queue/a", "ack:client")
    client.frame("SEND", "destination:/queue/a", "persistent:true", "receipt:r", body="x")
    assert client.take() == []
    assert bench.queue("a").delivering.count == 1
    bench.sync(bench.broker.log.position - 1)
    assert client.take() == []
    bench.sync()
    bench.tick()
    assert [frame.command for frame in client.take()] == ["RECEIPT", "MESSAGE"]


def test_a_message_that_is_not_durable_waits_for_nothing() -> None:
    bench = StompBench(queues=(QueueSettings("a", "a"),), hold=True)
    client = bench.connect()
    bench.sync()
    client.frame("SUBSCRIBE", "id:s", "destination:/queue/a", "ack:client")
    # Somebody else's records are not this connection's business.
    bench.connect().frame("SEND", "destination:/queue/a", "persistent:true", "receipt:other", body="durable")
    client.frame("SEND", "destination:/queue/a", "receipt:mine", body="quick")
    assert receipts(client) == "mine"


def test_a_held_receipt_holds_up_no_delivery_and_no_heart_beat() -> None:
    bench = StompBench(queues=(QueueSettings("a", "a"), QueueSettings("b", "b")), hold=True)
    client = bench.connect(headers="heart-beat:0,1000\n")
    client.frame("SUBSCRIBE", "id:s", "destination:/queue/a")
    bench.sync()
    client.take()
    client.frame("SEND", "destination:/queue/b", "persistent:true", "receipt:held", body="x")
    bench.connect().frame("SEND", "destination:/queue/a", body="passes")
    assert client.take_bodies() == "passes"
    bench.pass_time(1_000)
    assert client.take_raw() == b"\n"
    bench.sync()
    bench.tick()
    assert receipts(client) == "held"


def test_the_receipt_of_an_acknowledgement_waits_for_its_record() -> None:
    bench = StompBench(queues=(QueueSettings("a", "a"),), hold=True)
    client = bench.connect()
    client.frame("SUBSCRIBE", "id:s", "destination:/queue/a", "ack:client")
    client.frame("SEND", "destination:/queue/a", "persistent:true", body="x")
    bench.sync()
    bench.tick()
    (message,) = client.take()
    client.frame("ACK", f"id:{message.headers['ack']}", "receipt:a")
    assert receipts(client) == ""
    bench.sync()
    bench.tick()
    assert receipts(client) == "a"


def test_an_error_leaves_after_the_receipts_before_it() -> None:
    bench = StompBench(queues=(QueueSettings("a", "a"),), hold=True)
    client = bench.connect()
    client.send("SEND\ndestination:/queue/a\npersistent:true\nreceipt:r\n\nx\0FLY\n\n\0")
    assert client.take() == []
    bench.sync()
    bench.tick()
    assert [frame.command for frame in client.take()] == ["RECEIPT", "ERROR"]


def test_a_returned_message_that_was_not_synced_yet_was_never_seen() -> None:
    bench = StompBench(queues=(QueueSettings("a", "a"),), hold=True)
    client = bench.connect()
    client.frame("SUBSCRIBE", "id:s", "destination:/queue/a", "ack:client")
    client.frame("SEND", "destination:/queue/a", "persistent:true", body="x")
    client.session.connection_lost()
    bench.clients.remove(client)
    other = bench.connect()
    other.frame("SUBSCRIBE", "id:s", "destination:/queue/a")
    bench.sync()
    bench.tick()
    (message,) = other.take()
    assert message.headers["redelivered"] == "false"


# -- back-pressure -----------------------------------------------------------------------------------------------------


# ACK-7
def test_sends_to_a_full_address_are_parked_in_order_while_other_frames_are_handled() -> None:
    bench = StompBench(address_settings=ONE_MESSAGE)
    client = bench.connect()
    for number in (1, 2, 3):
        client.frame("SEND", "destination:/queue/full", f"receipt:s{number}", body=str(number))
    assert receipts(client) == "s1"
    client.frame("SEND", "destination:/queue/other", "receipt:s4", body="4")
    assert receipts(client) == ""
    assert "other" not in bench.broker.queues
    client.frame("SUBSCRIBE", "id:s", "destination:/queue/full", "ack:client", "receipt:sub")
    (first,) = client.take()
    assert first.body == b"1"
    client.frame("ACK", f"id:{first.headers['ack']}")
    # The address takes one at a time, and each receipt waits for those before it.
    second = client.take()
    assert [frame.body or frame.headers["receipt-id"] for frame in second] == ["s2", b"2"]
    client.frame("ACK", f"id:{second[-1].headers['ack']}")
    third = client.take()
    assert [frame.headers["receipt-id"] for frame in third if not frame.body] == ["s3", "s4", "sub"]
    assert [frame.body for frame in third if frame.body] == [b"3"]
    assert bench.queue("other").message_count == 1


def test_past_a_limit_the_connection_is_not_read_and_goes_on_by_itself() -> None:
    bench = StompBench(address_settings=ONE_MESSAGE, acceptor=replace(ACCEPTOR, parked_limit_bytes=1_500))
    client = bench.connect()
    frames = "".join(f"SEND\ndestination:/queue/full\nreceipt:{n}\n\n{n}\0" for n in range(1, 10))
    client.send(frames)
    assert receipts(client) == "1"
    assert not client.is_read()
    consumer = bench.connect()
    consumer.frame("SUBSCRIBE", "id:s", "destination:/queue/full")
    assert consumer.take_bodies() == "1 2 3 4 5 6 7 8 9"
    assert receipts(client) == "2 3 4 5 6 7 8 9"
    assert client.is_read()


def test_replies_that_nobody_reads_stop_the_reading() -> None:
    bench = StompBench(acceptor=replace(ACCEPTOR, reply_limit_bytes=2_000))
    client = bench.connect()
    client.reads = False
    for number in range(100):
        client.feed(f"SEND\ndestination:/queue/a\nreceipt:{number}\n\nx\0")
    assert not client.is_read()
    assert client.session.outbox.reply_bytes < 2_400
    client.reads = True
    bench.tick()
    assert client.is_read()
    assert receipts(client).split() == [str(number) for number in range(100)]


def test_disconnect_is_answered_after_the_sends_before_it() -> None:
    bench = StompBench(address_settings=ONE_MESSAGE)
    client = bench.connect()
    for number in (1, 2):
        client.frame("SEND", "destination:/queue/full", f"receipt:{number}", body="x")
    client.frame("DISCONNECT", "receipt:bye")
    assert receipts(client) == "1"
    assert client.host.reasons == []
    bench.connect().frame("SUBSCRIBE", "id:s", "destination:/queue/full")
    assert receipts(client) == "2 bye"
    assert client.host.reasons == [None]


def test_what_is_parked_goes_with_its_connection() -> None:
    bench = StompBench(address_settings=ONE_MESSAGE)
    client = bench.connect()
    for number in (1, 2):
        client.frame("SEND", "destination:/queue/full", body=str(number))
    client.session.connection_lost()
    bench.clients.remove(client)
    consumer = bench.connect()
    consumer.frame("SUBSCRIBE", "id:s", "destination:/queue/full")
    assert consumer.take_bodies() == "1"


def test_a_parked_send_that_is_refused_in_the_end_gets_its_error() -> None:
    bench = StompBench(address_settings=ONE_MESSAGE, queues=(QueueSettings("full.q", "full"),))
    client = bench.connect()
    for number in (1, 2):
        client.frame("SEND", "destination:full::full.q", f"receipt:{number}", body="x")
    bench.broker.resources.delete_queue("full.q")
    bench.tick()
    error = client.error()
    assert error.headers["receipt-id"] == "2"
    assert "full.q" in error.headers["message"]


def test_nothing_is_done_or_answered_behind_a_parked_send_that_is_refused() -> None:
    bench = StompBench(address_settings=ONE_MESSAGE, queues=(QueueSettings("full.q", "full"),))
    client = bench.connect()
    client.frame("BEGIN", "transaction:t")
    for header in ("x:1", "transaction:t", "transaction:t"):
        client.frame("SEND", "destination:full::full.q", header, "receipt:r", body="x")
    assert receipts(client) == "r"
    client.frame("SEND", "destination:/queue/behind", "receipt:behind", body="x")
    bench.broker.resources.delete_queue("full.q")
    bench.broker.tick()
    client.feed("ABORT\ntransaction:t\nreceipt:abort\n\n\0SEND\ndestination:/queue/later\nreceipt:later\n\nx\0")
    bench.tick()
    (error,) = client.take()
    assert (error.command, error.headers["receipt-id"]) == ("ERROR", "r")
    assert not bench.broker.queues.keys() & {"behind", "later"}


def test_with_policy_fail_the_sender_is_told() -> None:
    bench = StompBench(address_settings={"a": {"max_size_messages": 1, "address_full_policy": AddressFullPolicy.FAIL}})
    client = bench.connect()
    client.frame("SEND", "destination:/queue/a", body="1")
    client.frame("SEND", "destination:/queue/a", "receipt:2", body="2")
    error = client.error()
    assert error.headers["receipt-id"] == "2"
    assert "full" in error.headers["message"]


def test_with_policy_drop_nobody_is() -> None:
    bench = StompBench(address_settings={"a": {"max_size_messages": 1, "address_full_policy": AddressFullPolicy.DROP}})
    client = bench.connect()
    client.frame("SEND", "destination:/queue/a", body="1")
    client.frame("SEND", "destination:/queue/a", "receipt:2", body="2")
    assert receipts(client) == "2"
    assert bench.queue("a").message_count == 1


def test_a_producer_that_waits_for_space_may_be_silent() -> None:
    bench = StompBench(address_settings=ONE_MESSAGE, acceptor=replace(ACCEPTOR, connection_ttl_ms=5_000))
    waiting, leaving, idle = bench.connect(), bench.connect(), bench.connect()
    for client in (waiting, leaving):
        for number in (1, 2):
            client.frame("SEND", "destination:/queue/full", f"receipt:{number}", body="x")
    leaving.frame("DISCONNECT", "receipt:bye")
    assert waiting.is_read()
    bench.pass_time(60_000)
    assert "DMQ5117" in str(idle.host.reason)
    assert (waiting.host.reasons, leaving.host.reasons) == ([], [])
    consumer = bench.connect()
    consumer.frame("SUBSCRIBE", "id:s", "destination:/queue/full", "ack:auto")
    assert receipts(waiting) == "1 2"
    assert receipts(leaving) == "1 2 bye"
    bench.pass_time(60_000)
    assert "DMQ5117" in str(waiting.host.reason)


def test_receipts_alone_count_against_the_limit() -> None:
    bench = StompBench(address_settings=ONE_MESSAGE, acceptor=replace(ACCEPTOR, parked_limit_bytes=10_000))
    client = bench.connect()
    client.frame("SUBSCRIBE", "id:s", "destination:/queue/other", "ack:client")
    for _ in range(2):
        client.frame("SEND", "destination:/queue/full", body="x")
    for number in range(40):
        client.frame("SUBSCRIBE", f"id:{number}", "destination:/queue/other", "receipt:1")
    assert not client.is_read()


# -- trouble with the store --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["auto", "client"])
@pytest.mark.parametrize("end", ["lost", "eof", "refused", "disconnected"])
def test_a_full_disk_does_not_keep_a_peer_from_leaving(mode: str, end: str) -> None:
    # What was delivered is acknowledged (auto) or returned and counted (client): either wants to be recorded.
    store = FillingStore()
    bench = StompBench(store=store)
    client = bench.connect()
    for key in ("a", "b"):
        client.frame("SUBSCRIBE", f"id:{key}", f"destination:/queue/{key}", f"ack:{mode}")
        client.feed(f"SEND\ndestination:/queue/{key}\npersistent:true\n\nx\0")
    bench.broker.tick()
    bench.sync()
    while client.session.outbox.take():
        client.session.outbox.confirm_written()
    store.full = True
    if end == "lost":
        client.session.connection_lost()
    elif end == "eof":
        client.session.handle_eof()
    elif end == "refused":
        client.feed("FLY\n\n\0")
    else:
        client.feed("DISCONNECT\nreceipt:bye\n\n\0")
    assert client.session.state == CLOSED
    assert {trouble.code for trouble in client.host.reports} == {"DMQ5120"}
    assert "DMQ3999" in str(client.host.reports[0])


def test_a_delivery_whose_acknowledgement_has_no_room_ends_its_connection() -> None:
    store = FillingStore()
    bench = StompBench(store=store)
    sender, client = bench.connect(), bench.connect()
    client.frame("SUBSCRIBE", "id:s", "destination:/queue/a", "ack:auto")
    client.reads = False
    sender.frame("SEND", "destination:/queue/a", "persistent:true", body="x")
    store.full = True
    client.reads = True
    bench.tick()
    assert "DMQ3999" in client.error().headers["message"]


# -- before the login --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("head", ["content-length:5000000\n\n", "\n" + "x" * 2_000])
def test_who_is_not_logged_in_sends_no_large_frame(head: str) -> None:
    client = Client(StompBench())
    client.send(f"SEND\ndestination:/queue/a\n{head}")
    assert "DMQ5011" in client.error().headers["message"]


def test_who_is_logged_in_sends_large_frames_in_the_same_chunk() -> None:
    bench = StompBench()
    client = Client(bench)
    client.send(
        f"CONNECT\naccept-version:1.2\nlogin:{USER}\npasscode:{PASSWORD}\n\n\0"
        f"SEND\ndestination:/queue/a\nreceipt:1\n\n{'x' * 200_000}\0"
    )
    assert receipts(client) == "1"


def test_the_head_before_the_login_is_bounded_whatever_the_acceptor_allows() -> None:
    client = Client(StompBench(), replace(ACCEPTOR, max_head_bytes=10_000_000))
    client.send("CONNECT\nx:" + "y" * 70_000)
    assert "65536" in client.error().headers["message"]
