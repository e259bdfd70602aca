"""Other settings for a broker that runs, as after SIGHUP; and what the next start makes of it."""

from dataclasses import replace

import pytest

from delosmq.config.reload import plan_reload
from delosmq.engine.routing.send_result import BLOCKED, ROUTED
from delosmq.model.message import MULTICAST
from delosmq.model.settings import (
    AddressDefinition,
    AddressFullPolicy,
    AddressMatch,
    AddressSettings,
    BrokerSettings,
    DispatchPolicy,
    DispatchProfile,
    JournalSettings,
    QueueSettings,
)
from tests.engine.routing_support import RoutingBench, projection
from tests.engine.support import anycast


def with_settings(settings: BrokerSettings, match: str = "#", **said: object) -> BrokerSettings:
    return replace(settings, address_settings=(*settings.address_settings, AddressMatch(match, said)))


def reload(bench: RoutingBench, settings: BrokerSettings) -> list[str]:
    bench.settings = plan_reload(bench.settings, settings).settings
    return bench.broker.reload(bench.settings)


def test_address_settings_count_for_addresses_that_exist_and_for_new_ones() -> None:
    bench = RoutingBench(BrokerSettings(queues=(anycast("q"),)))
    assert reload(bench, with_settings(bench.settings, default_ring_size=2, max_delivery_attempts=3)) == []
    bench.put("q", "a")
    bench.put("q", "b")
    bench.put("q", "c")
    assert bench.pending("q") == "b c"
    assert bench.broker.addresses["q"].settings.max_delivery_attempts == 3
    bench.broker.resources.create_queue(anycast("new"))
    assert bench.broker.queues["new"].ring_size == 2
    assert reload(bench, BrokerSettings(queues=(anycast("q"),))) == []
    assert (bench.broker.queues["q"].ring_size, bench.broker.bindings.settings_of("q")) == (-1, AddressSettings())


def test_who_waits_for_room_goes_on_when_there_is_more() -> None:
    full = {"max_size_messages": 1, "address_full_policy": AddressFullPolicy.BLOCK}
    bench = RoutingBench(BrokerSettings(queues=(anycast("q"),)), addresses={"#": full})
    assert bench.put("q", "a") == ROUTED
    assert bench.put("q", "b") == BLOCKED
    reload(bench, replace(bench.settings, address_settings=(AddressMatch("#", {**full, "max_size_messages": 2}),)))
    assert bench.put("q", "b") == ROUTED


@pytest.mark.parametrize("limit", [{"max_size_messages": 1}, {"max_size_bytes": 1}])
def test_an_address_that_holds_more_than_a_new_limit_is_full_at_once(limit: dict[str, int]) -> None:
    bench = RoutingBench(BrokerSettings(queues=(anycast("q"),)))
    assert bench.put("q", "a") == ROUTED
    full = {**limit, "address_full_policy": AddressFullPolicy.BLOCK}
    reload(bench, replace(bench.settings, address_settings=(AddressMatch("#", full),)))
    assert bench.put("q", "b") == BLOCKED
    reload(bench, replace(bench.settings, address_settings=()))
    assert bench.put("q", "b") == ROUTED


def test_a_broker_that_holds_more_than_a_new_global_limit_is_full_at_once() -> None:
    blocks = (AddressMatch("#", {"address_full_policy": AddressFullPolicy.BLOCK}),)
    bench = RoutingBench(BrokerSettings(queues=(anycast("q"), anycast("r")), address_settings=blocks))
    assert bench.put("q", "a") == ROUTED
    reload(bench, replace(bench.settings, global_max_size_bytes=1))
    assert bench.put("r", "b") == BLOCKED
    reload(bench, replace(bench.settings, global_max_size_bytes=-1))
    assert bench.put("r", "b") == ROUTED


def test_the_order_in_which_queues_of_a_topic_are_served_stays() -> None:
    queues = tuple(QueueSettings(name, "t", MULTICAST) for name in ("one", "two", "three"))
    bench = RoutingBench(BrokerSettings(queues=queues), addresses={"t": {"dispatch_policy": DispatchPolicy.PRIORITY}})
    address = bench.broker.addresses["t"]
    address.multicast.reverse()
    before = list(address.multicast)
    reload(bench, with_settings(bench.settings, max_delivery_attempts=3))
    assert address.multicast == before


def test_new_addresses_and_queues_are_there_after_a_restart_too() -> None:
    bench = RoutingBench(BrokerSettings(queues=(anycast("q"),)))
    wanted = BrokerSettings(
        queues=(anycast("q"), replace(anycast("r"), ring_size=7)),
        addresses=(AddressDefinition("alone", frozenset({MULTICAST})),),
    )
    assert reload(bench, wanted) == []
    bench.put("r", "kept")
    assert bench.broker.queues["r"].ring_size == 7
    assert "alone" in bench.broker.addresses
    assert projection(bench.restart()) == projection(bench)


def test_what_an_operator_changed_stays_unless_the_file_changes_it() -> None:
    bench = RoutingBench(BrokerSettings(queues=(replace(anycast("q"), ring_size=5),)))
    bench.broker.resources.update_queue("q", ring_size=9)
    reload(bench, with_settings(bench.settings, max_delivery_attempts=3))
    assert bench.broker.queues["q"].ring_size == 9
    reload(bench, replace(bench.settings, queues=(replace(anycast("q"), ring_size=6),)))
    assert bench.broker.queues["q"].ring_size == 6


def test_what_is_refused_is_told_and_the_rest_happens() -> None:
    bench = RoutingBench(BrokerSettings(queues=(anycast("q"),)))
    (told,) = reload(bench, BrokerSettings(queues=(replace(anycast("q"), address="other"), anycast("r"))))
    assert told.startswith("queue 'q' stays as it is: DMQ2106")
    assert bench.broker.queues.keys() >= {"q", "r"}


def test_nothing_is_deleted() -> None:
    bench = RoutingBench(BrokerSettings(queues=(anycast("q"),)))
    plan = plan_reload(bench.settings, BrokerSettings())
    assert plan.removed == ["queue 'q'"]
    bench.broker.reload(plan.settings)
    assert "q" in bench.broker.queues


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"journal": JournalSettings(directory="elsewhere")}, "persistence-enabled"),
        ({"name": "other"}, "name"),
        ({"message_expiry_scan_period_ms": 5}, "message-expiry-scan-period"),
        ({"acceptors": ()}, ""),
        ({"address_settings": (AddressMatch("a", {"default_non_destructive": True}),)}, "of address-setting 'a'"),
    ],
)
def test_what_waits_for_a_restart_is_named_and_what_is_in_force_stays(change: dict[str, object], named: str) -> None:
    present = BrokerSettings()
    plan = plan_reload(present, replace(present, **change))  # type: ignore[arg-type]
    assert len(plan.waiting) == (1 if named else 0)
    assert not named or named in plan.waiting[0]
    assert replace(plan.settings, address_settings=()) == present


def test_of_one_match_some_settings_are_taken_over_and_others_wait() -> None:
    old = {"max_delivery_attempts": 1, "dispatch_profile": DispatchProfile.CLASSIC}
    new = {"max_delivery_attempts": 2, "dispatch_profile": DispatchProfile.ARTEMIS, "default_group_buckets": 3}
    present = BrokerSettings(address_settings=(AddressMatch("a", dict(old)), AddressMatch("gone", dict(old))))
    plan = plan_reload(present, BrokerSettings(address_settings=(AddressMatch("a", dict(new)),)))
    assert plan.settings.address_settings == (
        AddressMatch("a", {"dispatch_profile": DispatchProfile.CLASSIC, "max_delivery_attempts": 2}),
        AddressMatch("gone", {"dispatch_profile": DispatchProfile.CLASSIC}),
    )
    assert plan.waiting == [
        "default-group-buckets of address-setting 'a'",
        "dispatch-profile of address-setting 'a'",
        "dispatch-profile of address-setting 'gone'",
    ]


def test_a_queue_that_was_refused_is_tried_again_with_each_reload() -> None:
    bench = RoutingBench(BrokerSettings(queues=(anycast("q"),)))
    bench.broker.resources.create_queue(QueueSettings("orders", "elsewhere", user="op"))
    wanted = BrokerSettings(queues=(anycast("q"), anycast("orders")))
    for _ in range(2):
        (sentence,) = reload(bench, wanted)
        assert sentence.startswith("queue 'orders' stays as it is: DMQ2106")
    bench.broker.resources.delete_queue("orders")
    assert reload(bench, wanted) == []
    assert bench.broker.queues["orders"].address.name == "orders"


def test_a_change_of_a_queue_that_was_refused_is_tried_again() -> None:
    bench = RoutingBench(BrokerSettings(queues=(anycast("q"),)))
    wanted = BrokerSettings(queues=(replace(anycast("q"), address="other"),))
    (sentence,) = reload(bench, wanted)
    assert "DMQ2106" in sentence
    assert reload(bench, wanted) == [sentence]
    bench.broker.resources.delete_queue("q")
    assert reload(bench, wanted) == []
    assert bench.broker.queues["q"].address.name == "other"
