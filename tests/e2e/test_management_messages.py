"""Management messages from stomp.py and the OpenWire client, as stock Artemis answers them."""

import json
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import delosmq
from delosmq.client import ClientError, MapMessage, TextMessage
from delosmq.model.message import ANYCAST
from delosmq.model.settings import AcceptorSettings, QueueSettings, SecurityMatch
from delosmq.security.access import PERMISSIONS
from tests.e2e.conftest import SETTINGS, journal_in
from tests.e2e.support import ADMIN, GUEST, HOST, Client, RunningBroker, User
from tests.patience import PATIENCE_S

MANAGEMENT = "activemq.management"
BOTH = AcceptorSettings("both", HOST, 0, ("STOMP", "OPENWIRE"), ("/queue/",), ("/topic/",))
EVERYBODY = frozenset({"amq", "guests"})
SECURITY = (
    SecurityMatch("#", {name: frozenset({"amq"}) for name in PERMISSIONS}),
    SecurityMatch("public.#", dict.fromkeys(PERMISSIONS, EVERYBODY)),
)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    directory = tmp_path_factory.mktemp("journal")
    settings = replace(
        SETTINGS,
        acceptors=(BOTH,),
        queues=(QueueSettings("DLQ", "DLQ", ANYCAST), QueueSettings("public.answers", "public.answers", ANYCAST)),
        security_settings=SECURITY,
    )
    with RunningBroker(settings, lambda: journal_in(directory)) as running:
        yield running


def ask(
    client: Client, resource: str = "", *, body: str | bytes = "", reply_to: str = "/temp-queue/answers", **headers: str
) -> tuple[dict[str, str], Any]:
    """Sends a management message by STOMP; gives the headers and the result of its answer."""
    count = len(client.inbox.messages)
    named = {"_AMQ_ResourceName": resource} if resource else {}
    receipt = client.receipt()
    client.connection.send(MANAGEMENT, body, headers={**named, **headers, "reply-to": reply_to, "receipt": receipt})
    client.confirmed(receipt)
    client.inbox.wait(lambda inbox: len(inbox.messages) > count)
    frame = client.inbox.messages[count]
    return frame.headers, json.loads(frame.body)[0] if frame.body else None


def attribute(client: Client, name: str, resource: str = "broker") -> Any:
    headers, result = ask(client, resource, _AMQ_Attribute=name)
    assert headers["_AMQ_OperationSucceeded"] == "true", result
    return result


@pytest.fixture
def stomp(broker: RunningBroker) -> Iterator[Client]:
    with Client(broker.port, "1.2") as client:
        client.subscribe("/temp-queue/answers")
        yield client
        assert not client.inbox.errors


@pytest.fixture
def jms(broker: RunningBroker) -> Iterator[delosmq.client.ClientConnection]:
    with connected(broker, ADMIN) as connection:
        yield connection


def connected(broker: RunningBroker, user: User) -> delosmq.client.ClientConnection:
    return delosmq.connect(f"tcp://{HOST}:{broker.port}", user=user.name, password=user.password)


def test_stomp_asks_for_what_a_probe_of_routers_needs(stomp: Client) -> None:
    node_id = attribute(stomp, "NodeID")
    assert str(uuid.UUID(node_id)) == node_id
    assert attribute(stomp, "Active") is True
    assert attribute(stomp, "ConnectionCount") >= 1
    assert attribute(stomp, "nodeID") == node_id


def test_an_attribute_is_an_operation_too(stomp: Client) -> None:
    headers, result = ask(stomp, "broker", body="[]", _AMQ_OperationName="getNodeID")
    assert (headers["_AMQ_OperationSucceeded"], result) == ("true", attribute(stomp, "NodeID"))


def test_the_answer_names_its_question(stomp: Client) -> None:
    headers, _ = ask(stomp, "broker", _AMQ_Attribute="Active", **{"correlation-id": "c7"})
    assert headers["correlation-id"] == "c7"
    assert "content-length" not in headers  # a text


def test_openwire_asks_the_same(jms: delosmq.client.ClientConnection, stomp: Client) -> None:
    question = {"_AMQ_ResourceName": "broker", "_AMQ_Attribute": "NodeID"}
    reply = jms.request(MANAGEMENT, None, properties=question, timeout_s=PATIENCE_S)
    assert isinstance(reply, TextMessage)
    assert json.loads(reply.text) == [attribute(stomp, "NodeID")]
    assert reply.properties["_AMQ_OperationSucceeded"] is True


def test_openwire_is_told_what_is_wrong(jms: delosmq.client.ClientConnection) -> None:
    question = {"_AMQ_ResourceName": "queue.nowhere", "_AMQ_OperationName": "fly"}
    reply = jms.request(MANAGEMENT, "[]", properties=question, timeout_s=PATIENCE_S)
    assert isinstance(reply, TextMessage)
    assert reply.properties["_AMQ_OperationSucceeded"] is False
    assert "DMQ6" in json.loads(reply.text)[0]


@pytest.mark.parametrize(
    "resource, headers, body, code",
    [
        ("", {"_AMQ_Attribute": "Active"}, "", "DMQ6321"),
        ("brokr", {"_AMQ_Attribute": "Active"}, "", "DMQ6320"),
        ("broker", {"_AMQ_Attribute": "Colour"}, "", "DMQ6322"),
        ("broker", {"_AMQ_Attribute": ""}, "", "DMQ6322"),
        ("broker", {"_AMQ_Attribute": "__class__"}, "", "DMQ6322"),
        ("broker", {"_AMQ_OperationName": "__init__"}, "[]", "DMQ6323"),
        ("broker", {"_AMQ_OperationName": "getNodeID"}, "[1]", "DMQ6324"),
        ("broker", {"_AMQ_OperationName": "getNodeID"}, "{}", "DMQ6325"),
        ("broker", {"_AMQ_OperationName": "getNodeID"}, "[NaN]", "DMQ6325"),
        ("broker", {"_AMQ_OperationName": "getNodeID"}, "[1", "DMQ6325"),
        ("broker", {"_AMQ_OperationName": "getNodeID"}, "[" * 50_000, "DMQ6325"),
        ("broker", {"_AMQ_OperationName": "getNodeID"}, "[" + "9" * 50_000 + "]", "DMQ6325"),
        ("broker", {"_AMQ_OperationName": "getNodeID"}, b"\xff\xfe[]", "DMQ6325"),
        ("broker", {"_AMQ_OperationName": "getNodeID"}, "[" + " " * 9_000_000 + "]", "DMQ6326"),
    ],
)
def test_what_is_wrong_is_said_in_the_answer(
    stomp: Client, resource: str, headers: dict[str, str], body: str | bytes, code: str
) -> None:
    answer, sentence = ask(stomp, resource, body=body, **headers)
    assert answer["_AMQ_OperationSucceeded"] == "false"
    assert sentence.startswith(f"{code}: ")
    assert attribute(stomp, "Active") is True


def test_a_map_is_no_list_of_arguments(jms: delosmq.client.ClientConnection) -> None:
    question = {"_AMQ_ResourceName": "broker", "_AMQ_OperationName": "getNodeID"}
    reply = jms.request(MANAGEMENT, MapMessage({"a": 1}, properties=question), timeout_s=PATIENCE_S)
    assert isinstance(reply, TextMessage)
    assert json.loads(reply.text)[0].startswith("DMQ6325: ")


def test_a_message_that_asks_nothing_is_answered_without_a_result(stomp: Client) -> None:
    headers, result = ask(stomp)
    assert result is None
    assert "_AMQ_OperationSucceeded" not in headers


def test_nothing_lies_in_a_queue(stomp: Client, broker: RunningBroker) -> None:
    attribute(stomp, "Active")
    stomp.send(MANAGEMENT, "[]", persistent=True)
    assert broker.get(f"/api/v1/addresses/{MANAGEMENT}")[0] == 404


def test_a_user_without_manage_is_refused(broker: RunningBroker) -> None:
    with Client(broker.port, "1.2", user=GUEST) as guest:
        guest.subscribe("/queue/public.answers")
        headers = {"_AMQ_ResourceName": "broker", "_AMQ_Attribute": "NodeID", "reply-to": "/queue/public.answers"}
        guest.connection.send(MANAGEMENT, "", headers=headers)
        assert "'manage'" in guest.error().headers["message"]
        assert not guest.inbox.messages


def test_a_jms_user_without_manage_is_refused(broker: RunningBroker) -> None:
    question = {"_AMQ_ResourceName": "broker", "_AMQ_Attribute": "NodeID"}
    with connected(broker, GUEST) as guest, pytest.raises(ClientError, match="'manage'"):
        guest.send(MANAGEMENT, TextMessage("", properties=question))


def test_an_answer_makes_no_queue(stomp: Client, broker: RunningBroker) -> None:
    receipt = stomp.receipt()
    headers = {"_AMQ_ResourceName": "broker", "_AMQ_Attribute": "Active", "reply-to": "/queue/unmade"}
    stomp.connection.send(MANAGEMENT, "", headers={**headers, "receipt": receipt})
    stomp.confirmed(receipt)
    assert broker.get("/api/v1/queues/unmade")[0] == 404


def test_the_answer_of_a_transaction_comes_with_its_commit(stomp: Client) -> None:
    asked = {"_AMQ_ResourceName": "broker", "_AMQ_Attribute": "Active", "reply-to": "/temp-queue/answers"}
    stomp.connection.begin("t1")
    stomp.connection.send(MANAGEMENT, "", headers={**asked, "transaction": "t1", "correlation-id": "inside"})
    headers, _ = ask(stomp, "broker", _AMQ_Attribute="Active", **{"correlation-id": "outside"})
    assert headers["correlation-id"] == "outside"
    stomp.connection.commit("t1")
    stomp.inbox.wait(lambda inbox: len(inbox.messages) == 2)
    assert stomp.inbox.messages[1].headers["correlation-id"] == "inside"


def test_a_rolled_back_transaction_has_no_answer(stomp: Client) -> None:
    asked = {"_AMQ_ResourceName": "broker", "_AMQ_Attribute": "Active", "reply-to": "/temp-queue/answers"}
    stomp.connection.begin("t1")
    stomp.connection.send(MANAGEMENT, "", headers={**asked, "transaction": "t1"})
    stomp.connection.abort("t1")
    headers, _ = ask(stomp, "broker", _AMQ_Attribute="Active", **{"correlation-id": "after"})
    assert headers["correlation-id"] == "after"


def test_the_node_id_survives_a_restart(tmp_path: Path) -> None:
    found: list[str] = []
    for _ in range(2):
        with delosmq.Broker(tmp_path, http=False) as broker:
            with delosmq.connect(broker.openwire_url, user=broker.user, password=broker.password) as connection:
                question = {"_AMQ_ResourceName": "broker", "_AMQ_Attribute": "NodeID"}
                reply = connection.request(MANAGEMENT, None, properties=question, timeout_s=PATIENCE_S)
                assert isinstance(reply, TextMessage)
                found.append(reply.text)
    assert found[0] == found[1]
