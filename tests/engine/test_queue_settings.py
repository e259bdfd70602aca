"""The settings of a queue: own values, defaults of the address, changes, restarts."""

from dataclasses import replace

import pytest

from delosmq.engine.addresses.binding_codec import queue_from_json, settings_as_json
from delosmq.engine.routing.dropped import DroppedListener
from delosmq.model.errors import MisuseError
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.settings import BrokerSettings, QueueSettings
from tests.engine.routing_support import RoutingBench, projection
from tests.engine.support import anycast

EVERYTHING = QueueSettings(
    "q",
    "a",
    MULTICAST,
    ring_size=5,
    max_consumers=3,
    filter="colour = 'red'",
    exclusive=True,
    purge_on_no_consumers=False,
    last_value_key="key",
    non_destructive=False,
    group_rebalance=True,
    group_rebalance_pause_dispatch=True,
    group_buckets=7,
    group_first_key="first",
    consumers_before_dispatch=2,
    delay_before_dispatch=100,
    auto_delete=True,
    auto_delete_delay=50,
    auto_delete_message_count=4,
    enabled=False,
    paused=True,
    user="me",
)
DEFAULTS = {
    "default_ring_size": 9,
    "default_max_consumers": 8,
    "default_exclusive_queue": True,
    "default_purge_on_no_consumers": True,
    "default_last_value_key": "code",
    "default_non_destructive": True,
    "default_group_rebalance": True,
    "default_group_rebalance_pause_dispatch": True,
    "default_group_buckets": 6,
    "default_group_first_key": "head",
    "default_consumers_before_dispatch": 3,
    "default_delay_before_dispatch": 20,
    "auto_delete_created_queues": True,
    "auto_delete_queues_delay": 11,
    "auto_delete_queues_message_count": 12,
}


def in_force(bench: RoutingBench, name: str) -> dict[str, object]:
    queue = bench.broker.queues[name]
    return {
        "default_ring_size": queue.ring_size,
        "default_max_consumers": queue.in_force.max_consumers,
        "default_exclusive_queue": queue.in_force.exclusive,
        "default_purge_on_no_consumers": queue.in_force.purge_on_no_consumers,
        "default_last_value_key": queue.in_force.last_value_key,
        "default_non_destructive": queue.in_force.non_destructive,
        "default_group_rebalance": queue.in_force.group_rebalance,
        "default_group_rebalance_pause_dispatch": queue.in_force.group_rebalance_pause_dispatch,
        "default_group_buckets": queue.in_force.group_buckets,
        "default_group_first_key": queue.in_force.group_first_key,
        "default_consumers_before_dispatch": queue.in_force.consumers_before_dispatch,
        "default_delay_before_dispatch": queue.in_force.delay_before_dispatch,
        "auto_delete_created_queues": queue.in_force.auto_delete,
        "auto_delete_queues_delay": queue.in_force.auto_delete_delay,
        "auto_delete_queues_message_count": queue.in_force.auto_delete_message_count,
    }


def test_what_a_queue_leaves_open_comes_from_its_address():  # RING-3
    bench = RoutingBench(BrokerSettings(queues=(anycast("q"),)), addresses={"#": DEFAULTS})
    assert in_force(bench, "q") == DEFAULTS


def test_every_setting_is_stored():
    bench = RoutingBench(BrokerSettings(queues=(EVERYTHING,)))
    bench.settings = BrokerSettings()
    again = bench.restart()
    assert again.broker.queues["q"].settings == EVERYTHING
    assert in_force(again, "q") == in_force(bench, "q")
    assert again.broker.queues["q"].paused


def test_journals_of_older_releases_have_defaults_for_what_they_lack():
    old = {
        "id": 7,
        "name": "q",
        "address": "a",
        "routing_type": 1,
        "ring_size": None,
        "max_consumers": 2,
        "auto_created": False,
    }
    assert queue_from_json(old) == QueueSettings("q", "a", ANYCAST, max_consumers=2)
    assert settings_as_json(QueueSettings("q", "a", ANYCAST, max_consumers=2)) == {k: old[k] for k in old if k != "id"}


def test_running_queues_can_be_changed_and_stay_so():
    bench = RoutingBench(BrokerSettings(queues=(anycast("q"),)))
    changes: dict[str, object] = {
        "filter": "colour = 'red'",
        "max_consumers": 3,
        "purge_on_no_consumers": False,
        "exclusive": True,
        "non_destructive": True,
        "group_rebalance": True,
        "group_buckets": 2,
        "group_first_key": "first",
        "consumers_before_dispatch": 2,
        "delay_before_dispatch": 5,
        "ring_size": 4,
        "enabled": False,
        "user": "you",
    }
    bench.broker.resources.update_queue("q", **changes)
    bench.settings = BrokerSettings()
    again = bench.restart()
    assert again.broker.queues["q"].settings == replace(anycast("q"), **changes)  # type: ignore[arg-type]
    assert projection(again) == projection(bench)


@pytest.mark.parametrize(
    ("change", "value", "why"),
    [
        ("address", "other", "address of queue 'q' can't change while it exists"),
        ("durable", False, "durable of queue 'q' can't change"),
        ("auto_created", True, "auto-created of queue 'q' can't change"),
        ("last_value_key", "x", "last-value-key of queue 'q' can't change"),
        ("routing_type", MULTICAST, "'q' can't become MULTICAST: its address 'q' does not take"),
        ("routing_type", 9, "routing type 9; give it ANYCAST or MULTICAST"),
        ("max_consumers", 1, "'q' has 2 consumers, more than the max-consumers 1"),
        ("max_consumers", -2, "max-consumers -2 of queue 'q' makes no sense; use -1"),
        ("group_buckets", -2, "group-buckets -2 of queue 'q'"),
        ("consumers_before_dispatch", -1, "consumers-before-dispatch -1 of queue 'q'.* use 0 or more"),
        ("delay_before_dispatch", -2, "delay-before-dispatch -2 of queue 'q'"),
        ("auto_delete_delay", -1, "auto-delete-delay -1 of queue 'q'"),
        ("auto_delete_message_count", -2, "auto-delete-message-count -2 of queue 'q'"),
        ("filter", "a ==", "the filter of queue 'q' is no selector"),
        ("ring_size", -2, "ring-size -2 of queue 'q'"),
    ],
)
def test_changes_that_make_no_sense_are_refused_with_the_reason(change: str, value: object, why: str):
    bench = RoutingBench(BrokerSettings(queues=(anycast("q"),)))
    for _ in range(2):
        bench.consume("q")
    before = bench.broker.queues["q"].settings
    with pytest.raises(MisuseError, match=why):
        bench.broker.resources.update_queue("q", **{change: value})
    assert bench.broker.queues["q"].settings == before


def test_a_queue_changes_its_routing_type_when_the_address_takes_both():
    bench = RoutingBench(BrokerSettings(queues=(anycast("q"), QueueSettings("t", "q", MULTICAST))))
    bench.broker.resources.update_queue("q", routing_type=MULTICAST)
    bench.put("q", "A", routing=MULTICAST)
    assert (bench.pending("q"), bench.pending("t")) == ("A", "A")
    bench.settings = BrokerSettings()
    again = bench.restart()
    again.send("q", "B", routing=MULTICAST)
    assert again.pending("q") == "A B"


def test_broker_xml_changes_stored_queues_where_it_says_something():
    bench = RoutingBench(BrokerSettings(queues=(anycast("q"),)))
    bench.broker.resources.update_queue("q", max_consumers=5, group_buckets=3, filter="a = 1")
    bench.settings = BrokerSettings(queues=(replace(anycast("q"), group_buckets=4, exclusive=True, enabled=False),))
    settings = bench.restart().broker.queues["q"].settings
    assert (settings.max_consumers, settings.group_buckets, settings.exclusive) == (5, 4, True)
    assert (settings.filter, settings.enabled) == ("", False)


class Aside(DroppedListener):
    def __init__(self) -> None:
        self.told: list[tuple[str, str, str, str, int]] = []

    def messages_held(self, queue: str, setting: str, address: str) -> None:
        raise AssertionError(queue)

    def messages_refused(self, queue: str) -> None:
        raise AssertionError(queue)

    def queue_moved_aside(self, queue: str, address: str, declared_on: str, renamed: str, *, messages: int) -> None:
        self.told.append((queue, address, declared_on, renamed, messages))


@pytest.mark.parametrize("routing", [ANYCAST, MULTICAST])
def test_a_declared_queue_has_its_name_and_the_stored_one_keeps_its_messages_under_another(routing: int):
    bench = RoutingBench()
    bench.listen("bob.x", queue_name="orders.new", routing=routing)
    bench.put("bob.x", "A", queue_name="orders.new")
    bench.broker.resources.create_queue(QueueSettings("orders.new.aside", "else", ANYCAST))
    bench.settings = BrokerSettings(queues=(anycast("orders.new"),))
    listener = Aside()
    again = bench.restart(listener=listener)
    assert listener.told == [("orders.new", "bob.x", "orders.new", "orders.new.aside-2", 1)]
    again.send("orders.new", "B")
    assert (again.pending("orders.new"), again.pending("orders.new.aside-2")) == ("B", "A")
    third = again.restart(listener=listener)
    assert len(listener.told) == 1
    assert (third.pending("orders.new"), third.pending("orders.new.aside-2")) == ("B", "A")
    moved = third.broker.queues["orders.new.aside-2"]
    assert (moved.address.name, moved.settings.enabled) == ("bob.x", False)
    third.broker.resources.delete_queue("orders.new.aside-2")
    assert sorted(third.restart().broker.queues) == ["orders.new", "orders.new.aside"]


def test_a_stored_queue_that_an_operator_made_gives_its_name_to_no_declared_one():
    bench = RoutingBench()
    bench.broker.resources.create_queue(QueueSettings("q", "a", ANYCAST, user="anna"))
    bench.settings = BrokerSettings(queues=(anycast("q"),))
    with pytest.raises(MisuseError, match=r"DMQ2106: .*where user 'anna' created it"):
        bench.restart()


def test_pausing_and_resuming_survive_a_restart():
    bench = RoutingBench(BrokerSettings(queues=(anycast("q"),)))
    bench.broker.resources.update_queue("q", paused=True)
    bench.put("q", "A")
    again = bench.restart()
    _, port = again.consume("q")
    again.run()
    assert port.bodies == ""
    again.broker.resources.update_queue("q", paused=False)
    again.run()
    assert port.bodies == "A"
    assert not again.restart().broker.queues["q"].paused


def test_disabled_queues_get_nothing_until_they_are_enabled():
    bench = RoutingBench(
        BrokerSettings(queues=(QueueSettings("q", "a", MULTICAST), QueueSettings("r", "a", MULTICAST)))
    )
    bench.broker.resources.update_queue("q", enabled=False)
    bench.put("a", "A")
    again = bench.restart()
    again.send("a", "B")
    assert (again.pending("q"), again.pending("r")) == ("", "A B")
    again.broker.resources.update_queue("q", enabled=True)
    again.send("a", "C")
    assert again.pending("q") == "C"
    assert again.restart().broker.queues["q"].settings.enabled


def test_names_of_the_broker_itself_are_refused():
    bench = RoutingBench()
    with pytest.raises(MisuseError, match=r"'\$delosmq.x' is no name for a queue"):
        bench.broker.resources.create_queue(QueueSettings("$delosmq.x", "a", ANYCAST))
    with pytest.raises(MisuseError, match=r"'\$delosmq.x' is no name for an? address"):
        bench.broker.resources.create_address("$delosmq.x", {ANYCAST})
