"""What a peer may do wrong: it is told so, and nobody else notices."""

# BROKER-4

from random import Random

import pytest

from tests.e2e.support import ADMIN, GUEST, Client, RawPeer, RunningBroker, User

CONNECT = f"CONNECT\naccept-version:1.2\nhost:x\nlogin:{ADMIN.name}\npasscode:{ADMIN.password}\n\n\0"
SEND = "SEND\ndestination:/queue/bad\n"

pytestmark = pytest.mark.usefixtures("witness")


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param("SEND\nno colon here\n\n\0", id="header without a colon"),
        pytest.param("SEND\ndestination:/queue/a\\q\n\nx\0", id="unknown escape"),
        pytest.param(SEND + "content-length:-1\n\nx\0", id="negative content-length"),
        pytest.param(SEND + "content-length:many\n\nx\0", id="content-length is no number"),
        pytest.param(SEND + "content-length:2\n\nxyz\0", id="no NUL where content-length says"),
        pytest.param(b"SEND\ndestination:/queue/\xff\xfe\n\nx\0", id="header is not UTF-8"),
        pytest.param("SEND\n\nx\0", id="no destination"),
        pytest.param("FETCH\n\n\0", id="unknown command"),
        pytest.param(CONNECT, id="connected already"),
        pytest.param("ACK\nid:1-99999\n\n\0", id="unknown acknowledgement"),
        pytest.param("NACK\nid:nonsense\n\n\0", id="acknowledgement that is no id"),
        pytest.param("ACK\n\n\0", id="acknowledgement without id"),
        pytest.param("SUBSCRIBE\nid:1\n\n\0", id="subscription without destination"),
        pytest.param("SUBSCRIBE\ndestination:/queue/bad\n\n\0", id="subscription without id"),
        pytest.param("SUBSCRIBE\nid:1\ndestination:/queue/bad\nack:sometimes\n\n\0", id="unknown ack mode"),
        pytest.param("UNSUBSCRIBE\nid:77\n\n\0", id="unknown subscription"),
        pytest.param(SEND + "priority:11\n\nx\0", id="priority out of range"),
        pytest.param("BEGIN\n\n\0", id="transaction without a name"),
        pytest.param("COMMIT\ntransaction:t\n\n\0", id="commit of nothing"),
        pytest.param(SEND + "x:" + "y" * 9_000 + "\n\n\0", id="header too long"),
        pytest.param(SEND + "".join(f"h{n}:v\n" for n in range(200)) + "\n\0", id="too many headers"),
        pytest.param(SEND + "content-length:200001\n\n", id="body too large, announced"),
        pytest.param(SEND + "\n" + "x" * 210_000 + "\0", id="body too large, not announced"),
        pytest.param("\0" * 10, id="empty frames"),
        pytest.param(b"\x80\x81garbage" * 100 + b"\n\n\0", id="garbage"),
    ],
)
def test_a_wrong_frame_costs_its_sender_the_connection_and_is_explained(
    broker: RunningBroker, sent: str | bytes
) -> None:
    with RawPeer(broker.port) as peer:
        peer.connect()
        peer.send(sent)
        answer = peer.until_closed()
    assert b"ERROR\n" in answer
    assert b"message:DMQ5" in answer


@pytest.mark.parametrize("seed", range(3))
def test_bytes_that_are_no_stomp_at_all_are_hung_up_on(broker: RunningBroker, seed: int) -> None:
    noise = [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"AMQP\x00\x01\x00\x00", Random(7).randbytes(4096)][seed]
    with RawPeer(broker.port) as peer:
        peer.send(noise)
        peer.until_closed()


@pytest.mark.parametrize("command", ["SEND", "SUBSCRIBE", "ACK", "DISCONNECT"])
def test_connect_comes_first(broker: RunningBroker, command: str) -> None:
    with RawPeer(broker.port) as peer:
        peer.send(f"{command}\ndestination:/queue/bad\nid:1\n\n\0")
        assert b"ERROR\n" in peer.until_closed()


def test_a_version_nobody_speaks_is_refused_with_those_we_do(broker: RunningBroker) -> None:
    with RawPeer(broker.port) as peer:
        peer.send(CONNECT.replace("1.2", "3.0"))
        answer = peer.until_closed()
    assert b"version:1.0,1.1,1.2" in answer


@pytest.mark.parametrize(
    "user", [User("admin", "wrong", frozenset()), User("nobody", "wrong", frozenset())], ids=["password", "user"]
)
def test_a_wrong_login_is_refused_without_saying_what_is_wrong(broker: RunningBroker, user: User) -> None:
    with Client(broker.port, "1.2", user=user, wait=False) as client:
        error = client.error()
    assert "or its passcode is wrong" in error.headers["message"]
    assert "secret" not in str(error)


def test_a_login_is_required(broker: RunningBroker) -> None:
    with RawPeer(broker.port) as peer:
        peer.send("CONNECT\naccept-version:1.2\nhost:x\n\n\0")
        assert b"login" in peer.until_closed()


@pytest.mark.parametrize(
    ("frame", "missing"),
    [
        ("SEND\ndestination:/queue/private\n\nx\0", "send"),
        ("SUBSCRIBE\nid:1\ndestination:/queue/private\n\n\0", "consume"),
        ("SEND\ndestination:/queue/readable\n\nx\0", "send"),
        ("SUBSCRIBE\nid:1\ndestination:/queue/readable\n\n\0", "createAddress"),
        ("SUBSCRIBE\nid:1\ndestination:news::news.a\n\n\0", "consume"),
    ],
)
def test_what_a_user_may_not_do_is_refused_by_name(broker: RunningBroker, frame: str, missing: str) -> None:
    with RawPeer(broker.port) as peer:
        peer.connect(user=GUEST)
        peer.send(frame)
        answer = peer.until_closed().decode()
    assert "guest" in answer
    assert missing in answer


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_what_a_user_may_do_works(broker: RunningBroker, version: str) -> None:
    with Client(broker.port, version, user=GUEST) as client:
        client.subscribe("/queue/public.board")
        client.send("/queue/public.board", "hello")
        assert client.bodies(1) == ["hello"]


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("selector", "price !! 3"),
        ("durable-subscription-name", "mine"),  # without a client-id
        ("durable-subscriber-name", "mine"),
        ("activemq.subscriptionName", "mine"),
        ("no-local", "perhaps"),
        ("activemq.priority", "high"),
        ("activemq.exclusive", "perhaps"),
        ("browser", "perhaps"),
    ],
)
def test_a_subscription_whose_header_makes_no_sense_is_refused_by_its_name(
    broker: RunningBroker, version: str, header: str, value: str
) -> None:
    with Client(broker.port, version) as client:
        client.connection.subscribe("/topic/bad", "s", headers={header: value})
        message = client.error().headers["message"]
    assert header in message or (header == "selector" and "character" in message)


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("transaction", "never-begun"),
        ("expires", "tomorrow"),
        ("AMQ_SCHEDULED_DELAY", "soon"),
        ("AMQ_SCHEDULED_TIME", "-1"),
        ("AMQ_SCHEDULED_PERIOD", "1000"),
        ("AMQ_SCHEDULED_REPEAT", "2"),
        ("AMQ_SCHEDULED_CRON", "* * * * *"),
        ("JMSXGroupSeq", "first"),
        ("_AMQ_DUPL_ID", "x" * 2_000),
    ],
)
def test_a_send_whose_header_makes_no_sense_is_refused_by_its_name(
    broker: RunningBroker, version: str, header: str, value: str
) -> None:
    with Client(broker.port, version) as client:
        client.connection.send("/queue/bad", "x", headers={header: value})
        assert header in client.error().headers["message"]


def test_too_many_subscriptions_are_refused(broker: RunningBroker) -> None:
    with Client(broker.port, "1.2") as client:
        for number in range(20):
            client.subscribe("/queue/bad", key=f"s{number}")
        client.connection.subscribe("/queue/bad", "one too many")
        assert "20 subscriptions" in client.error().headers["message"]


# TTL-1
def test_a_client_that_promised_to_beat_and_does_not_is_told_so(broker: RunningBroker) -> None:
    with RawPeer(broker.port) as peer:
        peer.connect("heart-beat:50,0")
        assert b"TTL" in peer.until_closed()


# ACK-7
def test_a_peer_that_reads_nothing_holds_up_no_other(broker: RunningBroker, name: str) -> None:
    with RawPeer(broker.port) as deaf, Client(broker.port, "1.2") as client:
        deaf.connect()
        deaf.send(f"SUBSCRIBE\nid:1\nack:auto\ndestination:/topic/{name}\nreceipt:on\n\n\0")
        deaf.until(b"receipt-id:on")
        client.subscribe(f"/topic/{name}", **{"activemq.prefetchSize": "1000"})
        for _ in range(200):
            client.send(f"/topic/{name}", "x" * 100_000, persistent=False)
        assert len(client.bodies(200)) == 200


def test_a_frame_cut_off_in_the_middle_leaves_nothing_behind(broker: RunningBroker, name: str) -> None:
    with RawPeer(broker.port) as peer:
        peer.connect()
        peer.send(f"SEND\ndestination:/queue/{name}\ncontent-length:100\n\nhalf of it")
    with Client(broker.port, "1.2") as client:
        client.subscribe(f"/queue/{name}")
        client.nothing_more_comes(f"/queue/{name}", 0)
