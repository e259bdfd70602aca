"""Wildcard addresses: a queue on ``news.#`` receives what is sent to any address that it stands for."""

from hypothesis import given
from hypothesis import strategies as st

from delosmq.engine.addresses.wildcard_tree import WildcardTree
from delosmq.engine.routing.send_result import NO_ROUTE, ROUTED
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.settings import AddressDefinition, BrokerSettings, QueueSettings, WildcardSyntax
from delosmq.model.wildcard import matches
from tests.engine.routing_support import RoutingBench, projection, recount

WORDS = st.lists(st.sampled_from(["a", "b", "c", "#", "*"]), min_size=1, max_size=5).map(".".join)
NAMES = st.lists(st.sampled_from(["a", "b", "c", ""]), min_size=1, max_size=5).map(".".join)


@given(patterns=st.lists(WORDS, max_size=6), name=NAMES)
def test_the_tree_finds_what_matching_one_by_one_finds(patterns: list[str], name: str):
    tree = WildcardTree(WildcardSyntax())
    wild = {pattern for pattern in patterns if tree.is_wild(pattern)}
    for pattern in wild:
        tree.add(pattern)
    assert tree.matching(name) == sorted(pattern for pattern in wild if matches(pattern, name))
    for pattern in wild:
        tree.remove(pattern)
    assert (tree.count, tree.matching(name)) == (0, [])


def test_a_subscription_with_wildcards_gets_what_is_sent_to_addresses_it_stands_for():
    bench = RoutingBench()
    _, all_news = bench.listen("news.#")
    _, one_word = bench.listen("news.*")
    for address in ("news.eu", "news.eu.sport", "weather", "news"):
        bench.put(address, address, routing=MULTICAST)
    bench.run()
    assert all_news.bodies == "news.eu news.eu.sport news"
    assert one_word.bodies == "news.eu"
    assert bench.broker.addresses["news.eu"].routed_messages == 1


def test_addresses_and_wildcards_may_come_in_any_order():
    bench = RoutingBench()
    bench.put("news.eu", "early", routing=MULTICAST)
    consumer, late = bench.listen("news.#")
    bench.put("news.eu", "known", routing=MULTICAST)
    bench.put("news.us", "new", routing=MULTICAST)
    bench.run()
    assert late.bodies == "known new"
    bench.broker.consumers.close(consumer)
    assert bench.put("news.eu", "nobody", routing=MULTICAST) == NO_ROUTE


def test_own_queues_and_those_of_wildcards_get_one_copy_each():
    bench = RoutingBench()
    _, own = bench.listen("news.eu")
    _, wild = bench.listen("news.#")
    bench.put("news.eu", "A", routing=MULTICAST)
    bench.run()
    assert (own.bodies, wild.bodies) == ("A", "A")
    assert own.slots[0].message is wild.slots[0].message


def test_an_anycast_queue_of_a_wildcard_address_gets_one_beside_the_own_queue():
    queues = (QueueSettings("orders.all", "orders.#", ANYCAST), QueueSettings("orders.eu", "orders.eu", ANYCAST))
    bench = RoutingBench(BrokerSettings(queues=queues))
    bench.put("orders.eu", "A", routing=ANYCAST)
    assert (bench.pending("orders.all"), bench.pending("orders.eu")) == ("A", "A")


def test_sending_to_a_wildcard_name_does_not_expand_it():
    bench = RoutingBench()
    _, plain = bench.listen("news.eu")
    _, wild = bench.listen("news.#")
    assert bench.put("news.#", "A", routing=MULTICAST) == ROUTED
    bench.run()
    assert (plain.bodies, wild.bodies) == ("", "A")


def test_without_wildcard_routing_such_names_stand_for_themselves():
    bench = RoutingBench(BrokerSettings(wildcards=WildcardSyntax(enabled=False)))
    _, port = bench.listen("news.#")
    bench.put("news.eu", "A", routing=MULTICAST)
    bench.put("news.#", "B", routing=MULTICAST)
    bench.run()
    assert port.bodies == "B"


def test_the_letters_of_wildcards_may_be_changed():
    bench = RoutingBench(BrokerSettings(wildcards=WildcardSyntax(delimiter="/", any_words=">", single_word="+")))
    _, port = bench.listen("news/+")
    _, everything = bench.listen("news/>")
    bench.put("news/eu", "A", routing=MULTICAST)
    bench.put("news/eu/sport", "B", routing=MULTICAST)
    bench.put("news.eu", "C", routing=MULTICAST)
    bench.run()
    assert (port.bodies, everything.bodies) == ("A", "A B")


def test_memory_is_charged_to_the_address_sent_to():
    bench = RoutingBench()
    bench.listen("news.#")
    bench.put("news.eu", "A", routing=MULTICAST)
    assert bench.broker.addresses["news.eu"].account.used_messages == 1
    assert bench.broker.addresses["news.#"].account.used_messages == 0
    recount(bench)


def test_memory_is_charged_there_on_the_long_way_and_after_a_restart_too():
    queues = (QueueSettings("red", "news.#", MULTICAST, filter="colour = 'red'"),)
    addresses = (AddressDefinition("news.eu", frozenset({MULTICAST})),)
    bench = RoutingBench(BrokerSettings(queues=queues, addresses=addresses))
    bench.put("news.eu", "A", routing=MULTICAST, colour="red")
    for each in (bench, bench.restart()):
        assert each.broker.addresses["news.eu"].account.used_messages == 1
        assert each.broker.addresses["news.#"].account.used_messages == 0
        recount(each)


def test_a_queue_may_join_and_leave_a_wildcard_address_at_any_time():
    bench = RoutingBench()
    bench.broker.resources.create_address("news.#", {MULTICAST})
    bench.broker.resources.create_address("news.eu", {MULTICAST})
    bench.put("news.eu", "A", routing=MULTICAST)
    bench.broker.resources.create_queue(QueueSettings("late", "news.#", MULTICAST))
    bench.put("news.eu", "B", routing=MULTICAST)
    assert bench.pending("late") == "B"
    bench.broker.resources.delete_queue("late")
    assert bench.put("news.eu", "C", routing=MULTICAST) == NO_ROUTE


def test_a_durable_queue_of_a_wildcard_address_survives_a_restart_with_what_it_got():
    queues = (QueueSettings("all", "news.#", MULTICAST),)
    bench = RoutingBench(BrokerSettings(queues=queues))
    bench.put("news.eu", "A", routing=MULTICAST)
    again = bench.restart()
    assert projection(again) == projection(bench)
    again.send("news.us", "B", routing=MULTICAST)
    assert again.pending("all") == "A B"
    recount(again)


def test_a_filter_on_a_wildcard_queue_holds_for_all_its_addresses():
    queues = (QueueSettings("red", "news.#", MULTICAST, filter="colour = 'red'"),)
    bench = RoutingBench(BrokerSettings(queues=queues))
    bench.put("news.eu", "A", routing=MULTICAST, colour="red")
    bench.put("news.eu", "B", routing=MULTICAST, colour="blue")
    assert bench.pending("red") == "A"
    bench.broker.resources.update_queue("red", filter="colour = 'blue'")
    bench.put("news.eu", "C", routing=MULTICAST, colour="blue")
    assert bench.pending("red") == "A C"
