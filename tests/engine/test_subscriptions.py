"""Subscriptions on multicast addresses: durable, shared, with a filter, by queue name; temporary destinations."""

from dataclasses import replace

import pytest

from delosmq.engine.routing.send_result import ROUTED
from delosmq.model.errors import LimitError, MisuseError, NotFoundError
from delosmq.model.message import ANY_ROUTING, ANYCAST, MULTICAST
from delosmq.model.settings import AddressMatch, BrokerSettings, QueueSettings
from tests.engine.routing_support import RoutingBench, projection


def test_a_durable_subscription_keeps_what_comes_while_nobody_reads():
    bench = RoutingBench()
    consumer, port = bench.listen("news", name="me", durable=True)
    bench.put("news", "A", routing=MULTICAST)
    bench.take_all(consumer, port)
    bench.broker.consumers.close(consumer)
    bench.put("news", "B", routing=MULTICAST)
    again = bench.restart()
    assert projection(again) == projection(bench)
    assert again.pending("me") == "B"


def test_a_non_durable_subscription_ends_with_its_consumer():
    bench = RoutingBench()
    consumer, _ = bench.listen("news", filter="colour = 'red'")
    name = consumer.queue.name if consumer.queue is not None else ""
    assert bench.put("news", "A", routing=MULTICAST, colour="red") == ROUTED
    bench.put("news", "B", routing=MULTICAST, colour="blue")
    assert bench.broker.queues[name].message_count == 1
    bench.broker.consumers.close(consumer)
    assert name not in bench.broker.queues
    bench.run()
    assert bench.broker.used_bytes == 0


def test_a_durable_subscription_takes_one_consumer_at_a_time():
    bench = RoutingBench()
    consumer, _ = bench.listen("news", name="me", durable=True)
    with pytest.raises(MisuseError, match="subscription 'me' is in use and not shared"):
        bench.listen("news", name="me", durable=True)
    with pytest.raises(MisuseError, match="subscription 'me' is in use and not shared"):
        bench.listen("news", name="me", durable=True, shared=True)
    bench.broker.consumers.close(consumer)
    bench.listen("news", name="me", durable=True, shared=True)
    with pytest.raises(MisuseError, match="subscription 'me' is in use and not shared"):
        bench.listen("news", name="me", durable=True)


@pytest.mark.parametrize("durable", [True, False])
def test_consumers_of_a_shared_subscription_divide_its_messages(durable: bool):
    bench = RoutingBench()
    first, one = bench.listen("news", name="us", shared=True, durable=durable)
    second, two = bench.listen("news", name="us", shared=True, durable=durable)
    bench.listen("news")
    for body in "ABCD":
        bench.put("news", body, routing=MULTICAST)
    bench.run()
    assert sorted((one.bodies + " " + two.bodies).split()) == ["A", "B", "C", "D"]
    assert one.slots
    assert two.slots
    bench.broker.consumers.close(first)
    assert "us" in bench.broker.queues
    bench.broker.consumers.close(second)
    assert ("us" in bench.broker.queues) is durable


def test_another_filter_is_refused_while_the_subscription_is_in_use_and_replaces_it_afterwards():
    bench = RoutingBench()
    consumer, _ = bench.listen("news", name="us", shared=True, durable=True, filter="a = '1'")
    with pytest.raises(MisuseError, match="'us' is in use with address 'news' and filter 'a = '1''"):
        bench.listen("news", name="us", shared=True, durable=True, filter="a = '2'")
    bench.put("news", "old", routing=MULTICAST, a="1")
    bench.broker.consumers.close(consumer)
    bench.listen("news", name="us", shared=True, durable=True, filter="a = '2'")
    bench.put("news", "new", routing=MULTICAST, a="2")
    bench.run()
    assert bench.broker.queues["us"].message_count == 1
    assert bench.restart().broker.queues["us"].settings.filter == "a = '2'"


def test_durable_and_not_are_two_subscriptions():
    bench = RoutingBench()
    bench.listen("news", name="us", shared=True, durable=True)
    with pytest.raises(MisuseError, match="'us' is in use"):
        bench.listen("news", name="us", shared=True)


def test_the_same_name_on_another_address_is_another_subscription():
    bench = RoutingBench()
    consumer, _ = bench.listen("news", name="me", durable=True)
    with pytest.raises(MisuseError, match="in use with address 'news'"):
        bench.listen("weather", name="me", durable=True)
    bench.broker.consumers.close(consumer)
    bench.listen("weather", name="me", durable=True)
    assert bench.broker.queues["me"].address.name == "weather"


def test_a_subscription_ends_by_unsubscribing_when_nobody_uses_it():
    bench = RoutingBench(BrokerSettings(queues=(QueueSettings("q", "q", ANYCAST),)))
    consumer, _ = bench.listen("news", name="me", durable=True)
    with pytest.raises(MisuseError, match="subscription 'me' is in use; close its consumers first"):
        bench.broker.resources.unsubscribe("me")
    bench.broker.consumers.close(consumer)
    bench.broker.resources.unsubscribe("me")
    assert "me" not in bench.restart().broker.queues
    with pytest.raises(NotFoundError, match="no queue 'me'"):
        bench.broker.resources.unsubscribe("me")
    with pytest.raises(MisuseError, match="'q' is a queue and no subscription"):
        bench.broker.resources.unsubscribe("q")


def test_a_subscription_without_the_name_it_needs_is_refused():
    bench = RoutingBench()
    for kind in ("durable", "shared"):
        with pytest.raises(MisuseError, match=f"the {kind} subscription to 'news' has no name"):
            bench.listen("news", **{kind: True})


def test_the_name_of_an_anycast_queue_is_no_subscription():
    bench = RoutingBench(BrokerSettings(queues=(QueueSettings("q", "q", ANYCAST),)))
    with pytest.raises(MisuseError, match="'q' is a queue of address 'q' and no subscription"):
        bench.listen("news", name="q", durable=True)


def test_a_durable_subscription_needs_a_multicast_address():
    bench = RoutingBench(
        BrokerSettings(
            queues=(QueueSettings("q", "q", ANYCAST),),
            address_settings=(AddressMatch("#", {"auto_create_addresses": False}),),
        )
    )
    with pytest.raises(MisuseError, match="address 'q' takes ANYCAST, not MULTICAST"):
        bench.listen("q", name="me", durable=True, routing=ANY_ROUTING)


def test_a_filter_that_is_no_selector_is_refused():
    bench = RoutingBench()
    with pytest.raises(MisuseError, match="the filter of queue 'me' is no selector"):
        bench.listen("news", name="me", durable=True, filter="a ==")
    assert "me" not in bench.broker.queues


def test_a_queue_of_a_multicast_address_may_be_read_by_its_name():
    queues = (QueueSettings("one", "news", MULTICAST), QueueSettings("two", "news", MULTICAST))
    bench = RoutingBench(BrokerSettings(queues=queues))
    bench.put("news", "A", routing=MULTICAST)
    _, port = bench.listen("news", queue_name="one", routing=ANY_ROUTING)
    bench.run()
    assert (port.bodies, bench.pending("two")) == ("A", "A")


def test_an_address_does_not_stand_for_a_queue_of_its_name_on_another_address():
    bench = RoutingBench(BrokerSettings(queues=(QueueSettings("all", "news", MULTICAST),)))
    bench.put("news", "A", routing=MULTICAST)
    with pytest.raises(MisuseError, match=r"queue 'all' is on another address.*subscribe to 'ADDRESS::all'"):
        bench.listen("all", routing=ANYCAST)
    assert not bench.broker.queues["all"].holders
    assert "all" not in bench.broker.addresses


def test_without_a_routing_type_the_address_decides_and_no_queue_of_its_name_elsewhere():
    bench = RoutingBench(BrokerSettings(queues=(QueueSettings("all", "news", MULTICAST),)))
    needed = bench.broker.required_permissions.needs_creation("all", "", ANY_ROUTING, for_subscription=True)
    assert needed == [("createAddress", "all", ""), ("createNonDurableQueue", "all", "")]
    consumer, _ = bench.listen("all", routing=ANY_ROUTING)
    assert consumer.queue is not None
    assert consumer.queue.address.name == "all"


def test_a_queue_named_in_a_subscription_has_the_default_routing_type_of_queues():
    bench = RoutingBench(addresses={"#": {"default_queue_routing_type": ANYCAST}})
    bench.listen("news", queue_name="one", routing=ANY_ROUTING)
    assert bench.broker.queues["one"].settings.routing_type == ANYCAST


def test_max_consumers_holds_for_subscriptions_too():
    bench = RoutingBench(addresses={"#": {"default_max_consumers": 1}})
    bench.listen("news", name="us", shared=True)
    with pytest.raises(LimitError, match="queue 'us' has its 1 consumers already"):
        bench.listen("news", name="us", shared=True)


def test_what_a_subscription_creates_is_known_before():
    bench = RoutingBench()
    options = {"name": "me", "durable": True}
    assert creations(bench, "news", **options) == ["createAddress", "createDurableQueue"]
    consumer, _ = bench.listen("news", **options)
    assert creations(bench, "news", **options) == []
    assert creations(bench, "news", name="me", durable=True, filter="a = 1") == ["createDurableQueue"]
    assert creations(bench, "news", name="us", shared=True) == ["createNonDurableQueue"]
    assert creations(bench, "news") == ["createNonDurableQueue"]
    bench.broker.consumers.close(consumer)


@pytest.mark.parametrize("made", ["by broker.xml", "by an operator"])
def test_a_subscription_never_replaces_or_ends_what_an_operator_made(made: str):
    own = QueueSettings("me", "news", MULTICAST)
    bench = RoutingBench(BrokerSettings(queues=(own,) if made == "by broker.xml" else ()))
    if made == "by an operator":
        bench.broker.resources.create_queue(replace(own, user="anna"))
    bench.put("news", "A", routing=MULTICAST)
    for address, filter in (("news", "a = 1"), ("other", "")):
        with pytest.raises(MisuseError, match="DMQ2658: queue 'me' on address 'news' was made by an operator"):
            bench.listen(address, name="me", durable=True, filter=filter)
    for broker in (bench.broker, bench.restart().broker):
        with pytest.raises(MisuseError, match="DMQ2641"):
            broker.resources.unsubscribe("me")
    assert bench.pending("me") == "A"
    consumer, port = bench.listen("news", name="me", durable=True)
    bench.run()
    assert port.bodies == "A"
    bench.broker.consumers.close(consumer)


def creations(bench: RoutingBench, address: str, **options: object) -> list[str]:
    from delosmq.engine.lifecycle.subscriptions import SubscriptionOptions

    subscription = SubscriptionOptions(**options)  # type: ignore[arg-type]
    needed = bench.broker.required_permissions.needs_creation(
        address, "", MULTICAST, for_subscription=True, subscription=subscription
    )
    return [permission for permission, _, _ in needed]


# -- temporary destinations ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("routing", [ANYCAST, MULTICAST])
def test_only_its_owner_consumes_from_a_temporary_destination(routing: int):
    bench = RoutingBench()
    bench.broker.resources.create_temporary("tmp", routing, "me")
    with pytest.raises(MisuseError, match="'tmp' is temporary and belongs to another connection"):
        bench.listen("tmp", routing=routing, connection_id="you")
    with pytest.raises(MisuseError, match="'tmp' is temporary and belongs to another connection"):
        bench.listen("tmp", routing=routing)
    _, port = bench.listen("tmp", routing=routing, connection_id="me")
    assert bench.put("tmp", "A", routing=routing) == ROUTED
    bench.run()
    assert port.bodies == "A"


@pytest.mark.parametrize("routing", [ANYCAST, MULTICAST])
def test_others_consume_from_a_temporary_destination_where_the_settings_let_them(routing: int):
    bench = RoutingBench(addresses={"tmp": {"allow_temp_destination_stealing": True}})
    bench.broker.resources.create_temporary("tmp", routing, "me")
    _, port = bench.listen("tmp", routing=routing, connection_id="you")
    assert bench.put("tmp", "A", routing=routing) == ROUTED
    bench.run()
    assert port.bodies == "A"
    # It still ends with its owner.
    bench.broker.resources.delete_temporary("me")
    assert port.closed is not None


def test_temporary_destinations_end_with_their_connection():
    bench = RoutingBench()
    for name, owner in (("one", "me"), ("two", "me"), ("three", "you")):
        bench.broker.resources.create_temporary(name, ANYCAST, owner)
        bench.put(name, "A", routing=ANYCAST)
    _, port = bench.listen("one", routing=ANYCAST, connection_id="me")
    assert bench.broker.resources.delete_temporary("me") == 2
    bench.run()
    assert (sorted(bench.broker.queues), sorted(bench.broker.addresses)) == (["three"], ["three"])
    assert port.closed is not None
    assert bench.broker.resources.delete_temporary("me") == 0
    assert bench.broker.resources.delete_temporary("you", "other") == 0
    assert bench.broker.resources.delete_temporary("you", "three") == 1
    bench.run()
    assert bench.broker.used_bytes == 0


def test_temporary_destinations_leave_no_trace_in_the_store():
    bench = RoutingBench()
    bench.broker.resources.create_temporary("tmp", ANYCAST, "me")
    bench.put("tmp", "A", routing=ANYCAST)
    again = bench.restart()
    assert ("tmp" in again.broker.queues, "tmp" in again.broker.addresses) == (False, False)


def test_a_temporary_destination_needs_a_name_of_its_own():
    bench = RoutingBench(BrokerSettings(queues=(QueueSettings("q", "q", ANYCAST),)))
    with pytest.raises(MisuseError, match="'q' exists already"):
        bench.broker.resources.create_temporary("q", ANYCAST, "me")
