"""Sessions hand management messages to their port, and send its answers as sends of their own."""

import pytest

from delosmq.model.ids import WallMs
from delosmq.model.message import ANYCAST, TEXT_BODY, Message
from delosmq.model.settings import AddressFullPolicy, QueueSettings, SecurityMatch
from delosmq.security.access import PERMISSIONS, Login
from delosmq.sessions.management import ManagementCall, ManagementPort
from delosmq.wire.stomp.conversion import encode_lines
from delosmq.wire.stomp.versions import V12
from tests.sessions.openwire.support import OpenWireBench
from tests.sessions.openwire.support import queue as queue_named
from tests.sessions.support import USER, Client, StompBench

ADDRESS = "activemq.management"
ANSWERS = QueueSettings("answers", "answers")
ONE_MESSAGE = {"answers": {"max_size_messages": 1, "address_full_policy": AddressFullPolicy.BLOCK}}


class Port(ManagementPort):
    """Answers in ``answers`` with the body of the request, at once or when `finish` is called."""

    def __init__(self, *, at_once: bool = True) -> None:
        self.address = ADDRESS
        self.at_once = at_once
        self.calls: list[tuple[ManagementCall, Message]] = []
        self.users: list[str] = []

    def begin(self, request: Message, login: Login) -> ManagementCall:
        call = ManagementCall()
        self.calls.append((call, request))
        self.users.append(login.user)
        if self.at_once:
            self.finish()
        return call

    def finish(self) -> None:
        call, request = self.calls[-1]
        call.routing = ANYCAST
        head = encode_lines([("destination", "answers")], V12)
        reply = Message("answers", "stomp/12", head, request.body, body_kind=TEXT_BODY, timestamp_ms=WallMs(1))
        call.end(reply)


def bench_with(port: Port, **changes: object) -> StompBench:
    bench = StompBench(queues=(ANSWERS,), address_settings=ONE_MESSAGE, **changes)  # type: ignore[arg-type]
    bench.services.management = port
    return bench


def ask(client: Client, *headers: str, body: str = "question") -> None:
    client.frame("SEND", f"destination:/queue/{ADDRESS}", "receipt:asked", *headers, body=body)


def test_the_port_is_asked_and_its_answer_sent() -> None:
    port = Port()
    bench = bench_with(port)
    client = bench.connect()
    ask(client)
    assert client.receipts() == ["asked"]
    assert port.users == [USER]
    assert bench.queue("answers").message_count == 1
    assert ADDRESS not in bench.broker.addresses


def test_the_same_head_again_is_asked_again() -> None:
    port = Port(at_once=False)
    bench = bench_with(port)
    client = bench.connect()
    for _ in range(3):
        ask(client)
        port.finish()
        bench.tick()
        client.frame("SUBSCRIBE", "id:s", "destination:/queue/answers")
        client.frame("UNSUBSCRIBE", "id:s")
    assert len(port.calls) == 3


@pytest.mark.parametrize("destination", [ADDRESS, f"/topic/{ADDRESS}", f"/queue/{ADDRESS}"])
def test_the_address_counts_whatever_the_prefix(destination: str) -> None:
    port = Port()
    client = bench_with(port).connect()
    client.frame("SEND", f"destination:{destination}", "receipt:r")
    assert client.receipts() == ["r"]
    assert len(port.calls) == 1


def test_one_queue_of_the_address_is_no_management() -> None:
    port = Port()
    bench = StompBench(queues=(ANSWERS, QueueSettings("own", ADDRESS)))
    bench.services.management = port
    client = bench.connect()
    client.frame("SEND", f"destination:{ADDRESS}::own", "receipt:r")
    assert client.receipts() == ["r"]
    assert not port.calls
    assert bench.queue("own").message_count == 1


def test_send_is_not_manage() -> None:
    rights = {name: frozenset({"all"}) for name in PERMISSIONS if name != "manage"}
    port = Port()
    client = bench_with(port, security=(SecurityMatch("#", rights),)).connect()
    ask(client)
    assert "'manage'" in client.error().headers["message"]
    assert not port.calls


def test_the_receipt_waits_for_what_goes_on_and_nothing_is_read_meanwhile() -> None:
    port = Port(at_once=False)
    bench = bench_with(port)
    client = bench.connect()
    ask(client)
    client.feed("SEND\ndestination:/queue/later\nreceipt:later\n\n\0")
    bench.tick()
    assert client.receipts() == []
    assert "later" not in bench.broker.addresses
    other = bench.connect()
    other.frame("SEND", "destination:/queue/other", "receipt:other")
    assert other.receipts() == ["other"]
    port.finish()
    bench.tick()
    assert client.receipts() == ["asked", "later"]
    assert bench.queue("answers").message_count == 1


@pytest.mark.parametrize("at_once", [True, False])
def test_an_answer_waits_for_room(at_once: bool) -> None:
    port = Port(at_once=at_once)
    bench = bench_with(port)
    client = bench.connect()
    client.frame("SEND", "destination:/queue/answers", body="full")
    ask(client)
    if not at_once:
        port.finish()
        bench.tick()
    assert client.receipts() == []
    reader = bench.connect()
    reader.frame("SUBSCRIBE", "id:s", "destination:/queue/answers")
    bench.tick()
    assert reader.take_bodies() == "full question"
    assert client.receipts() == ["asked"]


def test_an_answer_that_waits_makes_no_address_again() -> None:
    port = Port()
    bench = bench_with(port)
    client = bench.connect()
    client.frame("SEND", "destination:/queue/answers", body="full")
    ask(client)
    bench.broker.resources.delete_address("answers", force=True)
    bench.tick()
    assert client.receipts() == ["asked"]
    assert "answers" not in bench.broker.addresses


@pytest.mark.parametrize("at_once", [True, False])
def test_the_answer_belongs_to_the_transaction(at_once: bool) -> None:
    port = Port(at_once=at_once)
    bench = bench_with(port)
    client = bench.connect()
    client.frame("BEGIN", "transaction:t")
    ask(client, "transaction:t")
    if not at_once:
        port.finish()
        bench.tick()
    assert client.receipts() == ["asked"]
    assert bench.queue("answers").message_count == 0
    client.frame("COMMIT", "transaction:t", "receipt:done")
    assert client.receipts() == ["done"]
    assert bench.queue("answers").message_count == 1


def test_a_commit_waits_for_an_answer_that_waits_for_room() -> None:
    port = Port(at_once=False)
    bench = bench_with(port)
    client = bench.connect()
    client.frame("SEND", "destination:/queue/answers", body="full")
    client.frame("BEGIN", "transaction:t")
    ask(client, "transaction:t")
    client.feed("COMMIT\ntransaction:t\nreceipt:done\n\n\0")
    port.finish()
    bench.tick()
    assert client.receipts() == []
    reader = bench.connect()
    reader.frame("SUBSCRIBE", "id:s", "destination:/queue/answers")
    bench.tick()
    assert reader.take_bodies() == "full question"
    assert client.receipts() == ["asked", "done"]


@pytest.mark.parametrize("transacted", [False, True])
def test_a_peer_that_is_gone_gets_no_answer(transacted: bool) -> None:
    port = Port(at_once=False)
    bench = bench_with(port)
    client = bench.connect()
    client.frame("BEGIN", "transaction:t")
    ask(client, *(["transaction:t"] if transacted else []))
    client.session.connection_lost()
    bench.clients.remove(client)
    port.finish()
    bench.tick()
    assert bench.queue("answers").message_count == 0
    assert not bench.broker.transactions.open


def test_one_part_of_a_composite_destination_may_be_management() -> None:
    port = Port()
    bench = OpenWireBench(queues=(ANSWERS,))
    bench.services.management = port
    client = bench.connect()
    client.publish(queue_named(f"{ADDRESS},work"), "question")
    assert len(port.calls) == 1
    assert bench.queue("answers").message_count == 1
    assert bench.queue("work").message_count == 1
