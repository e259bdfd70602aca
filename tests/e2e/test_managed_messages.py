"""Messages, prepared transactions and settings of addresses by management messages, over STOMP and OpenWire."""

# BROKER-5

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from delosmq.client import ClientConnection, TextMessage, Xid
from delosmq.manage.messages.branches import xid_as_base64
from delosmq.model.settings import AddressMatch, SecurityMatch
from delosmq.security.access import PERMISSIONS
from tests.e2e.conftest import SETTINGS, journal_in
from tests.e2e.support import ADMIN, GUEST, Client, RunningBroker
from tests.e2e.test_management_messages import BOTH, EVERYBODY, MANAGEMENT, SECURITY, ask, connected
from tests.patience import PATIENCE_S

READERS = SecurityMatch("readable.#", {**dict.fromkeys(PERMISSIONS, EVERYBODY), "send": frozenset({"amq"})})
MANAGERS = SecurityMatch(MANAGEMENT, dict.fromkeys(PERMISSIONS, EVERYBODY))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    directory = tmp_path_factory.mktemp("journal")
    settings = replace(
        SETTINGS,
        acceptors=(BOTH,),
        security_settings=(*SECURITY, READERS, MANAGERS),
        address_settings=(AddressMatch("slow.#", {"max_size_bytes": 4_096, "dead_letter_address": "DLQ"}),),
    )
    with RunningBroker(settings, lambda: journal_in(directory)) as running:
        yield running


@pytest.fixture
def stomp(broker: RunningBroker) -> Iterator[Client]:
    with Client(broker.port, "1.2") as client:
        client.subscribe("/temp-queue/answers")
        yield client
        assert not client.inbox.errors


@pytest.fixture
def jms(broker: RunningBroker) -> Iterator[ClientConnection]:
    with connected(broker, ADMIN) as connection:
        yield connection


def call(client: Client, resource: str, operation: str, *arguments: Any) -> Any:
    """By STOMP; what the operation gives."""
    headers, result = ask(client, resource, body=json.dumps(arguments), _AMQ_OperationName=operation)
    assert headers["_AMQ_OperationSucceeded"] == "true", result
    return result


def refusal(client: Client, resource: str, operation: str, *arguments: Any) -> str:
    headers, result = ask(client, resource, body=json.dumps(arguments), _AMQ_OperationName=operation)
    assert headers["_AMQ_OperationSucceeded"] == "false", result
    return str(result)


def call_by_jms(connection: ClientConnection, resource: str, operation: str, *arguments: Any) -> Any:
    question = {"_AMQ_ResourceName": resource, "_AMQ_OperationName": operation}
    reply = connection.request(MANAGEMENT, json.dumps(arguments), properties=question, timeout_s=PATIENCE_S)
    assert isinstance(reply, TextMessage)
    assert reply.properties["_AMQ_OperationSucceeded"] is True, reply.text
    return json.loads(reply.text)[0]


def test_a_message_is_sent_to_a_queue_and_looked_at(stomp: Client, jms: ClientConnection) -> None:
    call(stomp, "broker", "createQueue", "shop", "shop", "ANYCAST")
    first = call(stomp, "queue.shop", "sendMessage", {"colour": "red"}, 3, "tea", True, None, None)
    second = call_by_jms(
        jms, "queue.shop", "sendMessage", None, 4, base64.b64encode(b"\0\1").decode(), False, None, None
    )
    (listed,) = json.loads(call(stomp, "queue.shop", "listMessagesAsJSON", "colour = 'red'"))
    assert listed["messageID"] == int(first)
    assert (listed["address"], listed["colour"], listed["durable"], listed["priority"]) == ("shop", "red", True, 4)
    assert json.loads(call_by_jms(jms, "queue.shop", "getFirstMessageAsJSON")) == [listed]
    both = call_by_jms(jms, "queue.shop", "browse")
    assert [(one["messageID"], one["type"], one["text"]) for one in both] == [
        (int(first), 3, "tea"),
        (int(second), 4, "\0\1"),
    ]
    assert call(stomp, "queue.shop", "browse", 2, 1) == both[1:]
    assert call(stomp, "queue.shop", "browse", 2, 1, None) == both[1:]
    assert call(stomp, "queue.shop", "browse", 1, 1, "colour IS NULL") == both[1:]
    assert call(stomp, "queue.shop", "browse", "colour = 'red'") == both[:1]
    with jms.create_session() as session, session.create_consumer("shop") as consumer:
        message = consumer.receive(PATIENCE_S)
        assert isinstance(message, TextMessage)
        assert (message.text, message.properties["colour"]) == ("tea", "red")


@pytest.mark.parametrize(
    ("operation", "arguments", "code"),
    [
        ("browse", (0, 1), "DMQ6340"),
        ("browse", (1, 201), "DMQ6340"),
        ("browse", (101, 100), "DMQ6340"),
        ("browse", ("colour = ",), "DMQ"),
        ("listMessagesAsJSON", (5,), "DMQ6324"),
        ("sendMessage", ({"a": 1}, 3, "x", True, None, None), "DMQ6324"),
        ("sendMessage", (None, 3, "x", True, "another", "secret"), "DMQ6337"),
        ("sendMessage", (None, 4, "no Base64!", True, None, None), "DMQ6338"),
    ],
)
def test_what_can_not_be_done_with_messages_is_said(
    stomp: Client, operation: str, arguments: tuple[Any, ...], code: str
) -> None:
    call(stomp, "broker", "createQueue", json.dumps({"name": "odd", "routing-type": "ANYCAST"}), True)
    assert refusal(stomp, "queue.odd", operation, *arguments).startswith(code)


def test_looking_needs_browse_or_consume_and_sending_send(broker: RunningBroker, stomp: Client) -> None:
    for name in ("readable.news", "shut"):
        call(stomp, "broker", "createQueue", name, name, "ANYCAST")
    with Client(broker.port, "1.2", user=GUEST) as guest:
        guest.subscribe("/queue/public.answers")
        reply_to = "/queue/public.answers"

        def outcome(queue: str, operation: str, arguments: list[Any]) -> tuple[str, Any]:
            body = json.dumps(arguments)
            headers, result = ask(guest, f"queue.{queue}", body=body, reply_to=reply_to, _AMQ_OperationName=operation)
            return headers["_AMQ_OperationSucceeded"], result

        message = [None, 3, "x", True, None, None]
        assert outcome("readable.news", "browse", []) == ("true", [])
        succeeded, told = outcome("readable.news", "sendMessage", message)
        assert (succeeded, "'send'" in told) == ("false", True)
        assert outcome("shut", "browse", [])[0] == "false"
        assert outcome("shut", "sendMessage", message)[0] == "false"


def test_prepared_transactions_are_listed_and_ended(broker: RunningBroker, stomp: Client) -> None:
    call(stomp, "broker", "createQueue", "branches", "branches", "ANYCAST")
    xids = [Xid(4660, b"global-7", b"branch-1"), Xid(7, b"global-8", b"branch-2")]
    with connected(broker, ADMIN) as connection:
        for xid in xids:
            with connection.create_xa_session() as session:
                session.xa_resource.start(xid)
                session.create_producer("branches").send("in a branch")
                session.xa_resource.end(xid)
                session.xa_resource.prepare(xid)
        first = "YnJhbmNoLTFnbG9iYWwtN0YSAAA="  # as Artemis's XidImpl.toBase64String writes it
        lines = call(stomp, "broker", "listPreparedTransactions")
        assert len(lines) == 2
        assert f"base64: {first} " in lines[0]
        second = lines[1].split("base64: ")[1].split(" ")[0]
        assert call(stomp, "broker", "commitPreparedTransaction", first) is True
        assert call(stomp, "broker", "commitPreparedTransaction", first) is False
        assert call_by_jms(connection, "broker", "rollbackPreparedTransaction", second) is True
        assert call_by_jms(connection, "broker", "rollbackPreparedTransaction", "unknown") is False
        assert call(stomp, "broker", "listPreparedTransactions") == []
        assert call(stomp, "broker", "listHeuristicCommittedTransactions") == [first]
        assert call_by_jms(connection, "broker", "listHeuristicRolledBackTransactions") == [second]
        assert call(stomp, "queue.branches", "countMessages") == 1


def test_an_xid_is_written_as_artemis_writes_it() -> None:
    # The vector is what XidImpl.toBase64String of Artemis 2.44 gives for a negative format and odd bytes.
    packed = (-255).to_bytes(4, "big", signed=True) + b"\0\3\0\3" + b"\xfe\x3e\x3f" + b"\xfb\xff\x01"
    assert xid_as_base64(packed.hex()) == "-_8B_j4_AP___w=="


def test_the_settings_of_an_address_have_artemis_names(stomp: Client, jms: ClientConnection) -> None:
    settings = json.loads(call(stomp, "broker", "getAddressSettingsAsJSON", "slow.orders"))
    assert (settings["maxSizeBytes"], settings["deadLetterAddress"]) == (4_096, "DLQ")
    assert settings["addressFullMessagePolicy"] in ("PAGE", "BLOCK")
    assert (settings["redeliveryMultiplier"], settings["defaultQueueRoutingType"]) == (1.0, "MULTICAST")
    assert json.loads(call_by_jms(jms, "broker", "getAddressSettingsAsJSON", "slow.orders")) == settings
