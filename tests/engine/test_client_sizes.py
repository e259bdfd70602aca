"""What clients of one user have made takes no more of the journal's state than its share, nor what operators need."""

import json
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delosmq.engine.addresses.binding_codec import address_state_bytes
from delosmq.engine.base.events import EngineEvents
from delosmq.engine.broker import EngineBroker
from delosmq.engine.lifecycle.subscriptions import SubscriptionOptions
from delosmq.engine.log.records import BINDING, check_version, decode_json, encode_json
from delosmq.engine.queues.consumer import Consumer, ConsumerOptions
from delosmq.engine.queues.credit import OpenCredit
from delosmq.model.conversion import Conversions
from delosmq.model.errors import BrokerError, LimitError
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.settings import AddressDefinition, AddressMatch, BrokerSettings, QueueSettings
from delosmq.selectors.selector import parse_selector
from delosmq.wire.stomp.conversion import StompConversion
from tests.chance import tries
from tests.engine.routing_support import RoutingBench
from tests.engine.support import Bench, Collector, CountingRandom, RecordingStore
from tests.simulation.whole.recount import check_shares

SHARE = 20_000
LONG_FILTER = "color = '" + "x" * 500 + "'"


def long(number: int) -> str:
    return f"x{number}." + "n" * 1_000


def bounded(share: int = SHARE, **more: object) -> RoutingBench:
    return RoutingBench(BrokerSettings(max_destinations_size_per_user=share, **more))  # type: ignore[arg-type]


def send(bench: RoutingBench, name: str, user: str) -> None:
    message = bench.message(name, "A")
    message.user = user
    bench.broker.producers.send(message, routing=ANYCAST)


def make(bench: RoutingBench, way: str, number: int, user: str) -> None:
    """What stays in the journal."""
    name = long(number)
    if way == "send":
        send(bench, name, user)
    elif way == "consume":
        bench.listen(name, routing=ANYCAST, user=user)
    elif way == "filter":
        bench.listen("news", name=f"{user}.{name}", durable=True, filter=LONG_FILTER, user=user)
    elif way == "lease":
        bench.broker.lease_groups.open(name[:1_000], queue="", topic="news", run="r", incarnation=None, user=user)
    elif way == "group":
        bench.broker.lease_groups.open(name, queue="groups", topic="", run="r", incarnation=None, user=user)
    elif way == "queue":
        bench.broker.resources.create_queue(QueueSettings(name, "jobs", ANYCAST), user)
    else:
        bench.broker.resources.create_address(name, {MULTICAST}, user)


def make_many(bench: RoutingBench, way: str, user: str, first: int = 0) -> None:
    for number in range(first, first + 100):
        make(bench, way, number, user)


def sizes(bench: Bench, user: str = "eve") -> tuple[int, int]:
    """How many addresses and queues count to a user, and what they take."""
    limits = bench.broker.client_limits
    return limits.made_by(user), limits.state_bytes_of(user)


def broker_on(bench: RoutingBench) -> EngineBroker:
    broker = EngineBroker(
        bench.settings,
        bench.store,
        clock=bench.clock,
        random=CountingRandom(),
        events=EngineEvents(),
        conversions=Conversions({"stomp": StompConversion()}),
    )
    broker.start()
    return broker


def restarted(bench: RoutingBench) -> RoutingBench:
    """A new engine on what the store holds; the settings may be others."""
    again = RoutingBench.__new__(RoutingBench)
    again.clock = bench.clock
    again.store = RecordingStore(list(bench.store.batches))
    again.settings = bench.settings
    again.broker = broker_on(again)
    check_shares(again.broker)
    return again


@pytest.mark.parametrize("way", ["send", "consume", "filter", "lease", "group", "queue", "address"])
def test_a_user_with_long_names_and_filters_is_refused_and_others_go_on(way: str):
    bench = bounded()
    bench.broker.resources.create_queue(QueueSettings("groups", "groups", ANYCAST))
    refusal = r"DMQ2686: .* is not made: .*'eve'.* max-destinations-size-per-user is 20000; delete"
    for round in range(2):
        with pytest.raises(LimitError, match=refusal):
            make_many(bench, way, "eve", 100 * round)
        assert SHARE - 5_000 < sizes(bench)[1] <= SHARE
        make(bench, way, 500 + round, "bob")
        bench.broker.resources.create_queue(QueueSettings(f"more{round}", "more", ANYCAST))
        # What is there is used on, and what takes nothing of the journal is made.
        if way in ("send", "consume"):
            make(bench, way, 0, "eve")
        bench.listen("anything", user="eve")
        check_shares(bench.broker)
        before = [sizes(bench, user)[1] for user in ("eve", "bob")]
        bench = restarted(bench)
        assert [sizes(bench, user)[1] for user in ("eve", "bob")] == before


@pytest.mark.parametrize("durable", [True, False])
def test_filters_count_whether_they_are_recorded_or_not(durable: bool):
    bench = bounded(100_000)

    def subscribe(number: int, user: str) -> None:
        filter = f"n = {number} OR {LONG_FILTER}"
        bench.listen("news", name=f"{user}.{number}", durable=durable, shared=True, filter=filter, user=user)

    refusal = r"DMQ2688: queue 'eve\.\d+' is not made: the filters .*'eve'.* 12500 are allowed, an eighth of"
    for number in range(24):
        subscribe(number, "eve")
    with pytest.raises(LimitError, match=refusal):
        subscribe(24, "eve")
    assert 12_000 < bench.broker.client_limits.filter_characters_of("eve") <= 12_500
    subscribe(0, "bob")
    bench.listen("news", user="eve")
    check_shares(bench.broker)
    if durable:
        bench = restarted(bench)
        with pytest.raises(LimitError, match="DMQ2688"):
            bench.listen("news", name="more", shared=True, filter=LONG_FILTER, user="eve")
    for name in [name for name in bench.broker.queues if name.startswith("eve.")]:
        bench.broker.resources.delete_queue(name)
    assert bench.broker.client_limits.filter_characters_of("eve") == 0
    bench.listen("news", name="again", shared=True, filter=LONG_FILTER, user="eve")
    check_shares(bench.broker)


def test_one_of_the_longest_filters_is_always_allowed():
    bench = bounded()
    bench.listen("news", filter="a = '" + "x" * 8_000 + "'", user="eve")
    with pytest.raises(LimitError, match="DMQ2688"):
        bench.listen("news", filter=LONG_FILTER, user="eve")


def test_filters_are_parsed_before_anything_is_sent():
    bench = bounded(-1)
    bench.listen("news", name="eve.1", durable=True, filter=LONG_FILTER, user="eve")
    for _ in range(2):
        parsed = bench.broker.queues["eve.1"].filter
        assert parsed is not None
        assert parsed.text == LONG_FILTER
        bench.broker.producers.send(bench.message("news", "x"), routing=MULTICAST)
        assert bench.broker.queues["eve.1"].filter is parsed
        bench = restarted(bench)


def test_what_is_counted_is_what_the_state_takes():
    bench = bounded()
    empty = len(bench.broker.state.state())
    for number in range(8):
        make(bench, "filter", number, "eve")
    grown = len(bench.broker.state.state()) - empty
    assert grown <= sizes(bench)[1] < grown * 1.1


def test_the_counts_are_the_same_after_a_restart():
    bench = bounded(-1)
    for way in ("send", "filter", "lease", "address"):
        for number in range(3):
            make(bench, way, 10 * len(way) + number, "eve" if number else "bob")
    before = {user: sizes(bench, user) for user in ("eve", "bob")}
    assert before["eve"][0] == 10
    again = restarted(bench)
    assert {user: sizes(again, user) for user in ("eve", "bob")} == before


def test_a_store_that_never_heard_of_makers_starts_and_counts_to_no_user():
    bench = bounded(-1)
    for way in ("send", "filter", "address"):
        make(bench, way, len(way), "eve")
    forgotten = 0
    for _, metas, _ in bench.store.batches:
        for index, meta in enumerate(metas):
            if check_version(meta) == BINDING:
                value = decode_json(meta)
                for of in value.values():
                    forgotten += isinstance(of, dict) and of.pop("made_by", None) is not None
                metas[index] = encode_json(BINDING, value)
    assert forgotten == 3
    again = restarted(bench)
    assert again.broker.queues.keys() == bench.broker.queues.keys()
    assert sizes(again) == (0, 0)
    make(again, "filter", 90, "eve")
    again.broker.resources.delete_queue(long(4))
    check_shares(again.broker)
    state = json.loads(again.broker.state.state())
    assert [queue.get("made_by") for queue in state["queues"]] == [None, "eve"]


# -- one subscription for another --------------------------------------------------------------------------------


def test_a_subscription_that_would_be_too_large_leaves_the_old_one_as_it_is():
    bench = bounded(6_000)
    bench.broker.consumers.close(bench.listen("news", name="s", durable=True, filter="color = 'red'", user="eve")[0])
    longest = LONG_FILTER + " or size = 0" * 120
    for name in ("eve.1", "eve.2"):
        bench.listen("news", name=name, durable=True, filter=longest, user="eve")
    bench.put("news", "A", color="red")
    with pytest.raises(LimitError, match="DMQ2686"):
        bench.listen("news", name="s", durable=True, filter=longest, user="eve")
    assert (bench.broker.queues["s"].settings.filter, bench.pending("s")) == ("color = 'red'", "A")
    # What it is replaced by counts less than both together.
    bench.broker.resources.delete_queue("eve.1")
    for filter in (longest, longest + " or size = 1", "size = 2"):
        bench.broker.consumers.close(bench.listen("news", name="s", durable=True, filter=filter, user="eve")[0])
    check_shares(bench.broker)


def test_nor_does_the_bound_of_their_number_end_it():
    bench = bounded(max_destinations_per_user=1)
    bench.broker.consumers.close(bench.listen("news", name="s", durable=True, user="bob")[0])
    bench.listen("other", user="eve")
    with pytest.raises(LimitError, match="DMQ2654"):
        bench.listen("other", name="s", durable=True, user="eve")
    assert bench.broker.queues["s"].made_by == "bob"


def test_nor_does_the_bound_of_addresses_end_it():
    bench = bounded(address_settings=(AddressMatch("other", {"max_addresses": 0}),))
    bench.broker.consumers.close(bench.listen("news", name="s", durable=True, user="bob")[0])
    with pytest.raises(LimitError, match="DMQ2651"):
        bench.listen("other", name="s", durable=True, user="bob")
    assert bench.broker.queues["s"].address.name == "news"


def test_nor_does_a_selector_that_makes_no_sense():
    bench = bounded()
    bench.broker.consumers.close(bench.listen("news", name="s", durable=True, user="bob")[0])
    with pytest.raises(BrokerError):
        bench.listen("news", name="s", durable=True, filter="color = = 1", user="bob")
    assert "s" in bench.broker.queues


# -- operators -----------------------------------------------------------------------------------------------------


class CrowdedStore(RecordingStore):
    """Its disk has no room for a larger state."""

    def takes_state(self, size_bytes: int, reserve_bytes: int = 0) -> bool:
        return size_bytes + reserve_bytes <= 40_000


def test_operators_make_queues_after_clients_were_refused():
    bench = bounded(-1)
    bench.store = CrowdedStore()
    bench.broker = broker_on(bench)
    for user in ("eve", "bob"):
        with pytest.raises(LimitError, match=r"DMQ2204: .*delete some, or free some space"):
            make_many(bench, "filter", user)
    limits = bench.broker.client_limits
    assert 27_000 < limits.state_bytes <= 30_000
    for number in range(5):
        bench.broker.resources.create_queue(QueueSettings(f"op{number}", f"op{number}", ANYCAST))
    declared = QueueSettings("declared", "declared", ANYCAST)
    assert bench.broker.reload(replace(bench.settings, queues=(declared,))) == []
    assert "declared" in bench.broker.queues
    with pytest.raises(LimitError, match="DMQ2204"):
        make_many(bench, "queue", "")
    assert 38_000 < limits.state_bytes <= 40_000


def declared(bench: RoutingBench, *names: str) -> BrokerSettings:
    return replace(
        bench.settings,
        addresses=tuple(AddressDefinition(name, frozenset({ANYCAST})) for name in names[:1]),
        queues=tuple(QueueSettings(name, name, ANYCAST) for name in names),
    )


@pytest.mark.parametrize("reload", [True, False])
def test_what_broker_xml_names_no_longer_counts_to_its_maker(reload: bool):
    bench = bounded()
    for name in ("a", "b", "c"):
        send(bench, name, "eve")
    assert sizes(bench)[0] == 6
    wanted = declared(bench, "a", "b")
    if reload:
        assert bench.broker.reload(wanted) == []
    else:
        bench.settings = wanted
        bench = restarted(bench)
    one = sizes(bench)
    assert one[0] == 2
    check_shares(bench.broker)
    bench.settings = replace(wanted, addresses=(), queues=())
    again = restarted(bench)
    assert sizes(again) == one
    again.broker.resources.delete_queue("c")
    assert sizes(again) == (0, 0)


def test_an_address_that_an_operator_names_no_longer_counts_to_its_maker():
    bench = bounded(address_settings=(AddressMatch("#", {"retroactive_message_count": 5}),))
    bench.broker.resources.create_address("a", {MULTICAST}, "eve")
    assert sizes(bench)[1] > 300
    bench.broker.resources.create_address("a", {MULTICAST, ANYCAST})
    assert sizes(bench) == (0, 0)
    assert sizes(restarted(bench)) == (0, 0)


def test_an_address_counts_to_the_user_who_has_it_recorded():
    bench = bounded()
    bench.listen("a", user="bob")
    bench.broker.resources.create_address("a", {MULTICAST}, "eve")
    bench.broker.resources.create_address("a", {ANYCAST}, "bob")
    assert (sizes(bench)[0], sizes(bench, "bob")[1]) == (1, 0)
    assert sizes(restarted(bench)) == sizes(bench)


# -- what the broker makes for them --------------------------------------------------------------------------------


def listen_to_many(bench: RoutingBench) -> None:
    for number in range(100):
        bench.broker.consumers.close(bench.listen(long(number), user="eve")[0])


def test_what_an_address_keeps_counts_to_its_maker():
    kept = AddressMatch("#", {"retroactive_message_count": 5, "subscription_recovery_retained": True})
    bench = bounded(address_settings=(kept,))
    with pytest.raises(LimitError, match="DMQ2686"):
        listen_to_many(bench)
    assert SHARE - 5_000 < sizes(bench)[1] <= SHARE
    assert sizes(restarted(bench))[1] == sizes(bench)[1]
    for _ in range(4):
        bench.later(30_000)
    assert sizes(bench) == (0, 0)


def test_selectors_of_consumers_of_a_queue_count_to_their_user_while_they_are_there():
    bench = bounded(100_000)
    bench.broker.resources.create_queue(QueueSettings("q", "q", ANYCAST))
    bench.broker.resources.create_queue(QueueSettings("r", "r", ANYCAST))

    def consume(number: int, user: str, name: str = "q") -> Consumer:
        selector = parse_selector(f"n = {number} OR {LONG_FILTER}")
        return bench.broker.consumers.subscribe(
            name,
            Collector(),
            OpenCredit(),
            routing=ANYCAST,
            options=ConsumerOptions(selector=selector),
            subscription=SubscriptionOptions(user=user),
        )

    consumers = [consume(number, "eve") for number in range(23)]
    consumers.append(consume(23, "eve", "r"))
    check_shares(bench.broker)
    assert 12_000 < bench.broker.client_limits.filter_characters_of("eve") <= 12_500
    with pytest.raises(LimitError, match="DMQ2688: a consumer of 'q' is not made"):
        consume(24, "eve")
    with pytest.raises(LimitError, match="DMQ2688"):
        bench.listen("news", user="eve", filter=LONG_FILTER)
    consume(24, "bob")
    bench.broker.consumers.close(consumers[0])
    consumers.append(consume(25, "eve"))
    bench.broker.resources.delete_queue("r")
    check_shares(bench.broker)
    for consumer in consumers:
        bench.broker.consumers.close(consumer)
    assert bench.broker.client_limits.filter_characters_of("eve") == 0


@pytest.mark.parametrize("way", ["subscribe", "send", "transaction", "group"])
def test_what_an_address_keeps_once_another_user_makes_a_topic_of_it_counts_to_that_user(way: str):
    kept = AddressMatch("#", {"retroactive_message_count": 5, "subscription_recovery_retained": True})
    bench = bounded(address_settings=(kept,))
    producers, transactions = bench.broker.producers, bench.broker.transactions

    def widen(name: str) -> None:
        bench.broker.resources.create_address(name, {ANYCAST}, "bob")
        message = bench.message(name, "m")
        message.user = "eve"
        if way == "subscribe":
            bench.broker.consumers.close(bench.listen(name, user="eve")[0])
        elif way == "send":
            producers.send(message, routing=MULTICAST)
        elif way == "transaction":
            transactions.send(transactions.begin("eve's connection"), message, routing=MULTICAST)
        else:
            bench.broker.lease_groups.open(name, queue="", topic=name, run="run", incarnation=None, user="eve")

    widen("plain")
    bobs = address_state_bytes("plain", "bob")
    for side in (bench, restarted(bench)):
        assert sizes(side, "bob") == (1, bobs)
        assert sizes(side)[1] > 2 * bobs

    def widen_many() -> None:
        for number in range(100):
            widen(long(number))

    with pytest.raises(LimitError, match="DMQ2686"):
        widen_many()
    check_shares(bench.broker)
    assert SHARE - 5_000 < sizes(bench)[1] <= SHARE


@pytest.mark.parametrize("end", ["expired", "dead"])
def test_queues_of_dead_letters_count_to_the_maker_of_the_address_they_come_from(end: str):
    fields: dict[str, object] = {
        "max_delivery_attempts": 1,
        "dead_letter_address": "end",
        "expiry_address": "end",
        "auto_create_dead_letter_resources": True,
        "auto_create_expiry_resources": True,
        "auto_delete_queues": False,
    }
    bench = bounded(address_settings=(AddressMatch("#", fields),))
    moved = 0
    for number in range(40):
        message = bench.message(long(number), "A", expires_in_ms=10 if end == "expired" else 0)
        message.user = "eve"
        try:
            bench.broker.producers.send(message, routing=ANYCAST)
        except LimitError:
            break
        if end == "expired":
            bench.later(60_000)
        else:
            consumer, port = bench.listen(long(number), routing=ANYCAST, user="eve")
            bench.run()
            bench.broker.consumers.reject(consumer, port.slots[0].sequence)
            bench.broker.consumers.close(consumer)
            bench.run()
        moved += 1
    made = [queue for queue in bench.broker.queues.values() if queue.address.name == "end" and queue.settings.filter]
    assert moved > len(made) > 2
    assert {queue.made_by for queue in made} == {"eve"}
    assert sizes(bench)[1] <= SHARE
    # Nothing is lost for want of a queue of its own.
    assert sum(queue.message_count for queue in bench.broker.queues.values()) == moved
    assert sizes(restarted(bench))[1] == sizes(bench)[1]


# -- any sequence --------------------------------------------------------------------------------------------------

USERS = ("eve", "bob", "")
ACTS = st.tuples(
    st.sampled_from(
        ("send", "consume", "filter", "lease", "group", "queue", "address", "drop", "drop", "declare", "rename")
    ),
    st.integers(0, 4),
    st.sampled_from(USERS),
)


@given(st.lists(ACTS, max_size=25), st.booleans())
@settings(max_examples=tries(60))
def test_after_anything_the_shares_equal_a_recount_and_in_the_end_they_are_gone(
    acts: list[tuple[str, int, str]], keeps: bool
):
    fields: dict[str, object] = {"retroactive_message_count": 2} if keeps else {}
    bench = bounded(30_000, address_settings=(AddressMatch("#", fields),))
    bench.broker.resources.create_queue(QueueSettings("groups", "groups", ANYCAST))
    for act, number, user in acts:
        with suppress(BrokerError):
            do(bench, act, number, user)
        bench.run()
        check_shares(bench.broker)
    live = {user: sizes(bench, user)[1] for user in USERS}
    bench = restarted(bench)
    assert {user: sizes(bench, user)[1] for user in USERS} == live
    for group in list(bench.broker.leases.groups):
        bench.broker.lease_groups.release(group)
    for queue in list(bench.broker.queues.values()):
        if not queue.internal and not queue.deleted:
            bench.broker.resources.delete_queue(queue.name)
    for name in list(bench.broker.addresses):
        bench.broker.resources.delete_address(name)
    limits = bench.broker.client_limits
    assert (limits.count, limits.state_bytes) == (0, 0)
    assert [sizes(bench, user) for user in USERS] == [(0, 0)] * len(USERS)


def do(bench: RoutingBench, act: str, number: int, user: str) -> None:
    if act == "drop":
        names = list(bench.broker.queues)
        if names:
            bench.broker.resources.delete_queue(names[number % len(names)])
    elif act == "declare":
        bench.broker.reload(declared(bench, long(number)))
    elif act == "rename":
        bench.listen("news", name=f"{user}.{number}", durable=True, filter=f"size > {number}", user=user)
    else:
        make(bench, act, number, user)


def test_queues_for_messages_of_an_address_that_is_gone_count_to_the_sender():
    expiry = {"expiry_address": "EXPIRY", "auto_create_expiry_resources": True}
    bench = bounded(60_000, address_settings=(AddressMatch("#", expiry),))
    bench.listen("#", name="alice.all", durable=True, user="alice")
    for number in range(3):
        message = bench.message(f"m{number}", "A")
        message.user = "mallory"
        message.durable = True
        message.expires_at_ms = bench.clock.now_ms + 1_000
        bench.broker.producers.send(message, routing=MULTICAST)
    before = sizes(bench, "alice")
    bench.clock.now_ms += 60_000
    # The addresses are not recorded, and gone with the restart; what alice's queue holds of them expires.
    bench = restarted(bench)
    assert "m0" not in bench.broker.addresses
    bench.run()
    made = [name for name in bench.broker.queues if name.startswith("EXP.")]
    assert len(made) == 3
    assert {bench.broker.queues[name].made_by for name in made} == {"mallory"}
    assert sizes(bench, "alice") <= before
    check_shares(bench.broker)


def test_a_lease_group_takes_no_more_when_it_is_opened_again_with_a_longer_run():
    bench = bounded()
    bench.broker.resources.create_queue(QueueSettings("groups", "jobs", ANYCAST))
    group = bench.broker.lease_groups.open("g", queue="groups", topic="", run="r", incarnation=None, user="eve")
    before = sizes(bench)
    bench.broker.lease_groups.open(
        "g", queue="groups", topic="", run="\U0001f600" * 200, incarnation=group.incarnation, user="mallory"
    )
    assert sizes(bench) == before
    assert sizes(bench, "mallory") == (0, 0)
    check_shares(bench.broker)
