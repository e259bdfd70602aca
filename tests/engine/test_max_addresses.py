"""``max-addresses``: as many addresses as a match may have, and no more."""

import pytest

from delosmq.engine.addresses.address_limits import AddressLimitError
from delosmq.engine.routing.send_result import NO_ROUTE, ROUTED
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.settings import BrokerSettings, QueueSettings
from tests.engine.routing_support import RoutingBench
from tests.engine.support import Bench

FULL = r"DMQ2651: address '{}' is not made: there are {} of match '{}', and its max-addresses is {}"


def limited(**limits: int) -> RoutingBench:
    """``a_`` stands for ``a.#``."""
    named: dict[str, dict[str, object]] = {}
    for name, limit in limits.items():
        named[name.replace("all", "#").replace("_", ".#")] = {"max_addresses": limit}
    return RoutingBench(addresses=named)


def refused(bench: Bench, name: str, count: int, match: str, limit: int) -> None:
    with pytest.raises(AddressLimitError, match=FULL.format(name, count, match, limit)):
        bench.send(name, "A", routing=ANYCAST)
    assert name not in bench.broker.addresses
    assert name not in bench.broker.queues


def test_a_send_makes_as_many_addresses_as_the_match_may_have():
    bench = limited(a_=2)
    assert [bench.put(f"a.{k}", "A", routing=ANYCAST) for k in range(2)] == [ROUTED, ROUTED]
    refused(bench, "a.2", 2, "a.#", 2)
    assert bench.put("a.1", "B", routing=ANYCAST) == ROUTED
    assert bench.put("b", "A", routing=ANYCAST) == ROUTED


def test_subscriptions_and_operators_make_no_more_either():
    bench = limited(a_=0)
    with pytest.raises(AddressLimitError):
        bench.listen("a.1", routing=MULTICAST)
    with pytest.raises(AddressLimitError):
        bench.broker.resources.create_address("a.1", {MULTICAST})
    with pytest.raises(AddressLimitError):
        bench.broker.resources.create_queue(QueueSettings("q", "a.1", ANYCAST))
    assert not bench.broker.addresses
    assert not bench.broker.queues


def test_what_is_deleted_leaves_its_place_to_another():
    bench = limited(a_=1)
    bench.put("a.1", "A", routing=ANYCAST)
    refused(bench, "a.2", 1, "a.#", 1)
    bench.broker.resources.delete_address("a.1", force=True)
    assert bench.put("a.2", "A", routing=ANYCAST) == ROUTED


def test_the_most_specific_match_decides_and_wider_ones_count():
    bench = limited(all=1, a_=-1)
    bench.put("a.1", "A", routing=ANYCAST)
    bench.put("a.2", "A", routing=ANYCAST)
    refused(bench, "b", 2, "#", 1)


def test_a_restart_counts_what_is_there():
    bench = limited(a_=1)
    bench.put("a.1", "A", routing=ANYCAST)
    again = bench.restart()
    refused(again, "a.2", 1, "a.#", 1)
    assert again.send("a.1", "B", routing=ANYCAST) == [ROUTED]


def test_what_the_configuration_names_is_made_and_counted():
    queues = (QueueSettings("x", "a.1", ANYCAST), QueueSettings("y", "a.2", ANYCAST))
    bench = RoutingBench(BrokerSettings(queues=queues), addresses={"a.#": {"max_addresses": 1}})
    assert set(bench.broker.addresses) == {"a.1", "a.2"}
    refused(bench, "a.3", 2, "a.#", 1)


def test_temporary_addresses_wildcards_and_advisories_do_not_count():
    bench = limited(all=1)
    bench.broker.resources.create_temporary("t", ANYCAST, "me")
    bench.listen("a.*", routing=MULTICAST)
    bench.listen("ActiveMQ.Advisory.TempQueue", routing=MULTICAST)
    assert bench.put("one", "A", routing=MULTICAST) == NO_ROUTE
    bench.broker.resources.delete_temporary("me")
    refused(bench, "two", 1, "#", 1)
    bench.broker.resources.create_temporary("t", ANYCAST, "me")
    bench.listen("b.*", routing=MULTICAST)
    bench.listen("ActiveMQ.Advisory.TempTopic", routing=MULTICAST)
    assert len(bench.broker.addresses) == 6
