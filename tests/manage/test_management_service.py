"""Management messages on a real engine, asked by STOMP: what each resource answers, permissions, slices, the gate."""

import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from delosmq.manage.control.broker import BrokerControl
from delosmq.manage.control.host import Host, Reason
from delosmq.manage.messages.declarations import ResourceKind, operation
from delosmq.manage.messages.management_service import ManagementService
from delosmq.manage.messages.resources import controls_of, resource_kinds
from delosmq.model.message import MULTICAST
from delosmq.model.settings import QueueSettings, SecurityMatch
from delosmq.security.access import PERMISSIONS, Login
from tests.sessions.support import Client, StompBench

ANSWERS = QueueSettings("answers", "answers")
ORDERS = QueueSettings("orders", "orders", ring_size=5000)
NEWS = QueueSettings("news.a", "news", MULTICAST)


class Quiet(Host):
    def changed(self) -> None:
        """The bench ticks by itself."""

    def troubles(self) -> list[Reason]:
        return []

    def node_id(self) -> str:
        return "the-node"

    def connection_count(self) -> int:
        return 3


class Asking:
    """A client that asks, and the broker that answers."""

    def __init__(
        self, *, user: str = "anna", hold: bool = False, security: tuple[SecurityMatch, ...] = (), **settings: Any
    ) -> None:
        rights = security or (SecurityMatch("#", {name: frozenset({"all"}) for name in PERMISSIONS}),)
        self.bench = StompBench(queues=(ANSWERS, ORDERS, NEWS), hold=hold, security=rights)
        services = self.bench.services
        broker = self.bench.broker
        broker.settings = replace(broker.settings, **settings)
        host = Quiet()
        self.service = ManagementService(
            broker,
            host,
            self.bench.gate,
            access=services.access,
            conversions=services.conversions,
            logger=logging.getLogger("delosmq.tests"),
        )
        status = BrokerControl(broker, host, clock=self.bench.clock, version="9.9")
        controls = controls_of(broker, status, services.access, services.conversions)
        self.service.kinds += resource_kinds(broker, controls)
        services.management = self.service
        self.client: Client = self.bench.connect(user=user)
        self.client.frame("SUBSCRIBE", "id:s", "destination:/queue/answers")

    def send(self, resource: str, *headers: str, body: str = "") -> None:
        self.client.frame(
            "SEND",
            "destination:activemq.management",
            "reply-to:/queue/answers",
            f"_AMQ_ResourceName:{resource}",
            *headers,
            body=body,
        )

    def answer(self) -> tuple[bool, Any]:
        (frame,) = [frame for frame in self.client.take() if frame.command == "MESSAGE"]
        result = json.loads(frame.body)[0] if frame.body else None
        return frame.headers["_AMQ_OperationSucceeded"] == "true", result

    def attribute(self, resource: str, name: str) -> Any:
        self.send(resource, f"_AMQ_Attribute:{name}")
        succeeded, result = self.answer()
        assert succeeded, result
        return result

    def tried(self, resource: str, name: str, *arguments: object) -> tuple[bool, Any]:
        self.send(resource, f"_AMQ_OperationName:{name}", body=json.dumps(arguments))
        self.bench.tick()
        return self.answer()

    def call(self, resource: str, name: str, *arguments: object) -> Any:
        succeeded, result = self.tried(resource, name, *arguments)
        assert succeeded, result
        return result

    def refused(self, resource: str, name: str, *arguments: object) -> str:
        succeeded, sentence = self.tried(resource, name, *arguments)
        assert not succeeded
        return str(sentence)

    def fill(self, count: int) -> None:
        for number in range(count):
            self.client.feed(f"SEND\ndestination:/queue/orders\n\n{number}\0")
        self.bench.tick()
        self.client.take()


@pytest.fixture
def asking() -> Asking:
    return Asking()


def test_every_attribute_can_be_read(asking: Asking) -> None:
    names = {"broker": "broker", "address.": "address.news", "queue.": "queue.orders"}
    for kind in asking.service.kinds:
        for name in kind.attributes if kind.prefix in names else ():
            asking.attribute(names[kind.prefix], name)


def test_the_broker_as_a_whole(asking: Asking) -> None:
    assert asking.attribute("broker", "NodeID") == "the-node"
    assert asking.attribute("broker", "ConnectionCount") == 3
    assert asking.attribute("broker", "Active") is True
    assert asking.attribute("broker", "QueueNames") == ["answers", "news.a", "orders"]
    assert asking.call("broker", "getQueueNames", "MULTICAST") == ["news.a"]
    assert asking.call("broker", "listAddresses", ",") == "answers,news,orders"


def test_a_queue(asking: Asking) -> None:
    asking.fill(3)
    assert asking.attribute("queue.orders", "MessageCount") == 3
    assert asking.attribute("queue.orders", "RingSize") == 5000
    assert asking.attribute("queue.orders", "Filter") is None
    assert asking.attribute("queue.news.a", "Address") == "news"
    assert asking.call("queue.orders", "pause") is None
    assert asking.attribute("queue.orders", "Paused") is True
    assert asking.call("queue.orders", "resume") is None
    assert asking.call("queue.orders", "isPaused") is False
    assert asking.call("queue.orders", "disable") is None
    assert asking.attribute("queue.orders", "Enabled") is False
    assert asking.call("queue.orders", "countMessages") == 3


def test_an_address(asking: Asking) -> None:
    asking.fill(2)
    assert asking.attribute("address.orders", "MessageCount") == 2
    assert asking.attribute("address.news", "RoutingTypes") == ["MULTICAST"]
    assert asking.attribute("address.news", "QueueNames") == ["news.a"]
    assert asking.call("address.orders", "purge") == 2
    assert asking.call("address.orders", "clearDuplicateIdCache") is True


def test_a_purge_of_many_goes_on_in_slices(asking: Asking) -> None:
    asking.fill(3000)
    asking.client.feed(
        "SEND\ndestination:activemq.management\nreply-to:/queue/answers\n_AMQ_ResourceName:queue.orders\n"
        "_AMQ_OperationName:removeAllMessages\n\n\0"
    )
    assert asking.bench.queue("orders").message_count > 0
    asking.bench.tick()
    assert asking.answer() == (True, 3000)
    assert asking.bench.queue("orders").message_count == 0


def test_queues_are_made_changed_and_deleted(asking: Asking) -> None:
    wanted = {
        "name": "made",
        "routing-type": "ANYCAST",
        "max-consumers": 2,
        "filter-string": "a = 1",
        "durable": "true",
    }
    assert "name=made" in asking.call("broker", "createQueue", json.dumps(wanted))
    assert asking.attribute("queue.made", "MaxConsumers") == 2
    assert asking.attribute("queue.made", "Filter") == "a = 1"
    assert "DMQ6204" in asking.refused("broker", "createQueue", json.dumps(wanted))
    assert "name=made" in asking.call("broker", "createQueue", json.dumps(wanted), True)
    asking.call("broker", "updateQueue", json.dumps({"name": "made", "max-consumers": 7}))
    assert asking.attribute("queue.made", "MaxConsumers") == 7
    assert asking.call("broker", "destroyQueue", "made", True, True) is None
    assert "made" not in asking.bench.broker.addresses


@pytest.mark.parametrize(
    "arguments, kind, durable",
    [
        (("there", "q"), "MULTICAST", True),
        (("there", "q", "ANYCAST"), "ANYCAST", True),
        (("there", "q", False), "MULTICAST", False),
        (("there", "q", False, "ANYCAST"), "ANYCAST", False),
    ],
)
def test_queues_are_made_by_single_arguments(
    asking: Asking, arguments: tuple[object, ...], kind: str, durable: bool
) -> None:
    assert asking.call("broker", "createQueue", *arguments) is None
    assert asking.attribute("queue.q", "Address") == "there"
    assert asking.attribute("queue.q", "RoutingType") == kind
    assert asking.attribute("queue.q", "Durable") is durable


def test_addresses_are_made_and_deleted(asking: Asking) -> None:
    assert "name=made" in asking.call("broker", "createAddress", "made", "ANYCAST,MULTICAST")
    assert asking.attribute("address.made", "RoutingTypes") == ["ANYCAST", "MULTICAST"]
    assert "DMQ6335" in asking.refused("broker", "createAddress", "made", "ANYCAST")
    assert asking.call("broker", "deleteAddress", "made") is None
    assert "DMQ6141" in asking.refused("broker", "deleteAddress", "orders")
    assert asking.call("broker", "deleteAddress", "orders", True) is None
    assert "orders" not in asking.bench.broker.queues


def test_pages_of_queues(asking: Asking) -> None:
    for number in range(120):
        asking.bench.broker.resources.create_queue(QueueSettings(f"p{number:03}", f"p{number:03}"))
    page = json.loads(asking.call("broker", "listQueues", json.dumps({"field": "name", "value": "p"}), 2, 100))
    assert page["count"] == 120
    assert [row["name"] for row in page["data"]] == [f"p{number:03}" for number in range(100, 120)]
    assert {type(value) for row in page["data"] for value in row.values()} == {str}
    one = json.loads(asking.call("broker", "listAddresses", '{"operation":"EQUALS","value":"news"}', 1, 10))
    assert one == {
        "data": [
            {
                "name": "news",
                "routingTypes": '["MULTICAST"]',
                "queueCount": "1",
                "addressSize": "0",
                "autoCreated": "false",
            }
        ],
        "count": 1,
    }


@pytest.mark.parametrize(
    "name, arguments, code",
    [
        ("createQueue", ["nonsense"], "DMQ6331"),
        ("createQueue", ["[" * 100_000], "DMQ6331"),
        ("createQueue", ["[]"], "DMQ6331"),
        ("createQueue", ['{"name":5}'], "DMQ6331"),
        ("createQueue", ['{"name":"q","max-consumers":"many"}'], "DMQ6331"),
        ("createQueue", ['{"name":"q","max-consumers":{"a":1}}'], "DMQ6331"),
        ("createQueue", ['{"name":"q","colour":"red"}'], "DMQ6331"),
        ("createQueue", ['{"name":"q","routing-type":"BOTH"}'], "DMQ6331"),
        ("createQueue", ['{"name":"q","filter-string":"("}'], "DMQ"),
        ("createQueue", [5], "DMQ6324"),
        ("createQueue", ["a", "b", "BOTH"], "DMQ6336"),
        ("updateQueue", ['{"name":"orders","address":"x"}'], "DMQ6331"),
        ("updateQueue", ['{"name":"nowhere"}'], "DMQ6201"),
        ("createAddress", ["made", "BOTH"], "DMQ6336"),
        ("getQueueNames", [""], "DMQ6336"),
        ("listQueues", ["", 0, 10], "DMQ6333"),
        ("listQueues", ["", 1, 100_000], "DMQ6333"),
        ("listQueues", ["", 1, 2**40], "DMQ6324"),
        ("listQueues", ["{", 1, 10], "DMQ6334"),
        ("listQueues", ["5", 1, 10], "DMQ6334"),
        ("listQueues", ['{"field":"user","value":"x"}', 1, 10], "DMQ6334"),
        ("listQueues", ['{"sortField":"messageCount"}', 1, 10], "DMQ6334"),
        ("listQueues", ['{"operation":"LIKE"}', 1, 10], "DMQ6334"),
        ("destroyQueue", ["nowhere"], "DMQ6201"),
    ],
)
def test_what_the_broker_can_not_do_is_said(asking: Asking, name: str, arguments: list[object], code: str) -> None:
    assert asking.refused("broker", name, *arguments).startswith(code)
    assert asking.attribute("broker", "Active") is True


@pytest.mark.parametrize("resource", ["queue.nowhere", "queue.", "address.nowhere", "acceptor.nowhere"])
def test_what_is_not_there_is_said(asking: Asking, resource: str) -> None:
    asking.send(resource, "_AMQ_Attribute:Name" if resource.startswith(("queue", "acc")) else "_AMQ_Attribute:Address")
    succeeded, sentence = asking.answer()
    assert not succeeded
    assert "nowhere" in sentence or "''" in sentence


def test_the_answer_waits_for_the_sync_of_what_was_done() -> None:
    asking = Asking(hold=True)
    asking.bench.sync()
    asking.client.take()
    asking.send("broker", "_AMQ_OperationName:createQueue", "receipt:r", body='["made","made","ANYCAST"]')
    assert "made" in asking.bench.broker.queues
    assert asking.client.take() == []
    asking.bench.sync()
    asking.bench.tick()
    assert sorted(frame.command for frame in asking.client.take()) == ["MESSAGE", "RECEIPT"]


def rights(**denied: str) -> tuple[SecurityMatch, ...]:
    """All permissions everywhere but for one on one address."""
    whole = {name: frozenset({"all"}) for name in PERMISSIONS}
    return (
        SecurityMatch("#", whole),
        *(
            SecurityMatch(address, {name: roles for name, roles in whole.items() if name != permission})
            for permission, address in denied.items()
        ),
    )


def test_view_and_edit_are_asked_for_on_the_address_of_the_resource() -> None:
    blind = Asking(security=rights(view="orders"))
    assert "DMQ1001" in blind.refused("queue.orders", "getMessageCount")
    assert blind.attribute("broker", "QueueNames") == ["answers", "news.a"]
    bound = Asking(security=rights(edit="orders"))
    assert bound.call("queue.orders", "getMessageCount") == 0
    for name in ("pause", "removeAllMessages", "disable"):
        assert "DMQ1001" in bound.refused("queue.orders", name)
    assert "DMQ1001" in bound.refused("broker", "destroyQueue", "orders")
    assert "orders" in bound.bench.broker.queues


def test_each_method_may_need_a_permission_of_its_own() -> None:
    whole = {name: frozenset({"all"}) for name in PERMISSIONS}
    nothing: dict[str, frozenset[str]] = dict.fromkeys(PERMISSIONS, frozenset())
    security = (
        SecurityMatch("#", whole),
        SecurityMatch("mops.#", nothing),
        SecurityMatch("mops.broker.#", {**nothing, "view": frozenset({"all"})}),
        SecurityMatch("mops.queue.orders.pause", {**nothing, "edit": frozenset({"all"})}),
        SecurityMatch("mops.queue.orders.resume", {**nothing, "view": frozenset({"all"})}),
    )
    asking = Asking(security=security, management_message_rbac=True)
    assert asking.attribute("broker", "NodeID") == "the-node"
    assert asking.call("broker", "isActive") is True
    assert "'mops.broker.createQueue'" in asking.refused("broker", "createQueue", "made", "made")
    assert asking.call("queue.orders", "pause") is None
    assert "'edit' on 'mops.queue.orders.resume'" in asking.refused("queue.orders", "resume")
    assert "'view' on 'mops.queue.orders.getMessageCount'" in asking.refused("queue.orders", "getMessageCount")
    asking.send("queue.orders", "_AMQ_Attribute:messageCount")
    assert "'mops.queue.orders.getMessageCount'" in asking.answer()[1]


def test_prefix_and_pattern_of_such_permissions_can_be_chosen() -> None:
    security = (SecurityMatch("#", {name: frozenset({"all"}) for name in PERMISSIONS if name != "edit"}),)
    asking = Asking(
        security=security,
        management_message_rbac=True,
        management_rbac_prefix="own",
        view_permission_method_match_pattern="is.*",
    )
    assert asking.call("broker", "isActive") is True
    assert "'edit' on 'own.broker.getNodeID'" in asking.refused("broker", "getNodeID")


def test_a_name_longer_than_any_is_no_resource(asking: Asking) -> None:
    assert "DMQ6320" in asking.refused("queue." + "x" * 3_000, "pause")


def test_no_answer_goes_where_its_user_may_not_send() -> None:
    asking = Asking(security=rights(send="orders"))
    asking.client.frame(
        "SEND",
        "destination:activemq.management",
        "reply-to:/queue/orders",
        "_AMQ_ResourceName:broker",
        "_AMQ_OperationName:createQueue",
        body='["made","made"]',
    )
    assert "'send'" in asking.client.error().headers["message"]
    assert "made" not in asking.bench.broker.queues


def test_changes_are_audited_and_looks_are_not(asking: Asking, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "delosmq.tests.audit"):
        asking.call("queue.orders", "countMessages")
        asking.call("queue.orders", "pause")
    assert [record.getMessage() for record in caplog.records] == [
        "DMQ6186: user 'anna' by a management message: pause 'queue.orders'"
    ]


class Failing:
    @operation("fail")
    def fail(self, login: Login) -> None:
        raise ZeroDivisionError("oops")

    @operation("failLater")
    def fail_later(self, login: Login) -> Iterator[int]:
        yield 0
        raise ZeroDivisionError("oops")

    @operation("much")
    def much(self, login: Login) -> str:
        return "x" * 2_000_000


@pytest.mark.parametrize("name, code", [("fail", "DMQ6328"), ("failLater", "DMQ6328"), ("much", "DMQ6327")])
def test_a_fault_of_the_broker_ends_one_answer_and_nothing_else(asking: Asking, name: str, code: str) -> None:
    asking.service.kinds.append(ResourceKind("failing", Failing, lambda login, name: Failing()))
    assert asking.refused("failing", name).startswith(code)
    assert asking.attribute("broker", "Active") is True
