"""What an address keeps for subscribers that ask for it: a number, an age, a size, the one that was marked."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from delosmq.engine.base.slots import Slot
from delosmq.engine.lifecycle.retroactive import MESSAGES_PER_SLICE
from delosmq.engine.lifecycle.subscriptions import SubscriptionOptions
from delosmq.engine.log.records import BINDING, decode_json, encode_json
from delosmq.engine.queues.consumer import ConsumerOptions
from delosmq.engine.queues.credit import OpenCredit, PrefetchCredit
from delosmq.engine.queues.eviction_strategy import EvictionChoice
from delosmq.engine.queues.pending_limit import PendingLimit
from delosmq.model.conversion import Conversions
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.settings import AddressMatch, BrokerSettings, DispatchPolicy, QueueSettings
from delosmq.wire.stomp.conversion import StompConversion
from tests.engine.routing_support import RoutingBench, recount
from tests.engine.support import Bench, Collector, RecordingStore, stood_on
from tests.engine.test_leases import StateStore

HISTORY = "$delosmq.history.news"
RETAINED = "$delosmq.retained.news"


def keeping(**fields: object) -> RoutingBench:
    names = {name if name.startswith("always") else f"subscription_recovery_{name}": fields[name] for name in fields}
    return RoutingBench(addresses={"news": names})


def publish(bench: Bench, bodies: str) -> None:
    for body in bodies.split():
        bench.broker.producers.send(bench.message("news", body), routing=MULTICAST)


def listen(bench: Bench, *, asks: bool = True, filter: str = "", address: str = "news") -> Collector:
    port = Collector()
    options = SubscriptionOptions(retroactive=asks, filter=filter)
    bench.broker.consumers.subscribe(address, port, OpenCredit(), routing=MULTICAST, subscription=options)
    bench.run()
    return port


def heard(bench: Bench, *, asks: bool = True, filter: str = "", address: str = "news") -> str:
    return listen(bench, asks=asks, filter=filter, address=address).bodies


def pass_time(bench: Bench, ms: int) -> None:
    """Lets time go by, with every timer at its moment."""
    until = bench.clock.now_ms + ms
    while 0 < bench.broker.next_timer_at <= until * 1_000_000:
        bench.clock.now_ms = max(bench.clock.now_ms, -(-bench.broker.next_timer_at // 1_000_000))
        bench.run()
    bench.clock.now_ms = until
    bench.run()


def check_goes_with_its_settings(bench: RoutingBench) -> None:
    """Nothing is left once no setting wants it."""
    bench.settings = BrokerSettings()
    none = bench.restart()
    assert dict(none.broker.queues) == {}
    none.run()
    recount(none)


# -- who gets it -----------------------------------------------------------------------------------------------------


def test_only_those_that_ask_get_what_is_kept():
    bench = keeping(count=2)
    publish(bench, "A B C")
    assert (heard(bench), heard(bench, asks=False)) == ("B C", "")


def test_everybody_gets_it_if_that_is_said():
    bench = keeping(count=2, always_retroactive=True)
    publish(bench, "A B C")
    assert heard(bench, asks=False) == "B C"
    bench.broker.resources.create_queue(QueueSettings("made", "news", MULTICAST))
    assert bench.pending("made") == "B C"


@pytest.mark.parametrize("closed", [{"enabled": False}, {"purge_on_no_consumers": True}])
def test_a_queue_that_no_send_may_enter_gets_nothing_of_what_is_kept(closed: dict[str, bool]):
    # As in Artemis, where both ask QueueImpl.route
    bench = keeping(count=2, retained=True, always_retroactive=True)
    publish(bench, "A B C")
    marked(bench, "R")
    bench.broker.resources.create_queue(QueueSettings("open", "news", MULTICAST))
    bench.broker.resources.create_queue(replace(QueueSettings("closed", "news", MULTICAST), **closed))
    publish(bench, "D")
    assert (bench.pending("open"), bench.pending("closed")) == ("C R R D", "")


def test_a_queue_that_is_disabled_while_it_is_filled_gets_no_more():
    bench = RoutingBench(addresses={"news": {"retroactive_message_count": 3 * MESSAGES_PER_SLICE}})
    for number in range(3 * MESSAGES_PER_SLICE):
        publish(bench, f"m{number}")
    queue = bench.broker.resources.create_queue(QueueSettings("made", "news", MULTICAST))
    bench.broker.tick()
    bench.broker.resources.update_queue("made", enabled=False)
    had = queue.pending.count
    bench.run()
    assert 0 < had == queue.pending.count < 3 * MESSAGES_PER_SLICE


def test_artemis_history_for_everybody_and_a_longer_one_for_those_that_ask():
    bench = RoutingBench(addresses={"news": {"retroactive_message_count": 1, "subscription_recovery_count": 3}})
    publish(bench, "A B C D")
    assert (heard(bench), heard(bench, asks=False)) == ("B C D", "D")


def test_a_shorter_one_for_those_that_ask_takes_nothing_from_it():
    bench = RoutingBench(addresses={"news": {"retroactive_message_count": 3, "subscription_recovery_count": 1}})
    publish(bench, "A B C D")
    assert (heard(bench), heard(bench, asks=False)) == ("B C D", "B C D")


def test_a_wildcard_that_asks_gets_what_is_kept_for_all_that_it_stands_for():
    bench = RoutingBench(
        addresses={"news.#": {"subscription_recovery_count": 2, "subscription_recovery_retained": True}}
    )
    for address, body in (("a", "A1"), ("b", "B1"), ("a", "A2"), ("a", "A3"), ("b", "B2")):
        bench.broker.producers.send(bench.message(f"news.{address}", body), routing=MULTICAST)
    marked(bench, "C1", "news.c")
    bench.broker.producers.send(bench.message("olds", "D1"), routing=MULTICAST)
    assert heard(bench, address="news.*") == "B1 A2 A3 B2 C1 C1"
    assert heard(bench, address="news.*", asks=False) == ""
    assert heard(bench, address="news.*.x") == ""
    # The wildcard keeps messages too by now; each is given once.
    bench.broker.producers.send(bench.message("news.a", "A4"), routing=MULTICAST)
    assert heard(bench, address="news.*") == "B1 A3 B2 C1 A4 C1"


# -- what is kept ----------------------------------------------------------------------------------------------------


def test_what_was_sent_last_is_kept_whatever_its_priority():
    bench = keeping(count=2)
    for body, priority in (("low", "1"), ("high", "9"), ("last", "1")):
        message = bench.with_properties("news", body, {})
        message.priority = int(priority)
        bench.broker.producers.send(message, routing=MULTICAST)
    assert bench.pending(HISTORY) == "high last"


def test_so_many_bytes_are_kept():
    bench = keeping(size=1_000)
    bench.put("news", "x" * 100, routing=MULTICAST)
    publish(bench, "A B")
    size = bench.broker.queues[HISTORY].total.bytes
    bench.put("news", "y" * (1_000 - size + 50), routing=MULTICAST)
    # One large message takes the place of as many as it needs.
    assert heard(bench).split()[:-1] == ["A", "B"]
    bench.put("news", "z" * 900, routing=MULTICAST)
    assert bench.broker.queues[HISTORY].total.bytes <= 1_000
    assert heard(bench)[0] == "z"
    bench.put("news", "w" * 2_000, routing=MULTICAST)
    assert heard(bench) == ""
    bench.run()


def test_all_that_is_said_counts():
    bench = keeping(count=2, size=1_000_000, duration=60_000)
    publish(bench, "A B C")
    assert heard(bench) == "B C"
    pass_time(bench, 62_000)
    assert heard(bench) == ""


def test_what_is_too_old_goes():
    bench = keeping(duration=10_000)
    publish(bench, "A B")
    pass_time(bench, 6_000)
    publish(bench, "C")
    assert heard(bench) == "A B C"
    pass_time(bench, 5_500)
    assert heard(bench) == "C"
    pass_time(bench, 6_000)
    assert bench.pending(HISTORY) == ""
    # Nobody looks at what is empty.
    before = bench.broker.next_timer_at
    assert before == 0 or before > (bench.clock.now_ms + 5_000) * 1_000_000
    publish(bench, "D")
    assert heard(bench) == "D"


def test_very_many_that_are_too_old_go_in_slices():
    bench = keeping(duration=10_000)
    for number in range(1_200):
        bench.broker.producers.send(bench.message("news", f"m{number}", durable=False), routing=MULTICAST)
    kept = bench.broker.queues[HISTORY].pending
    counts = set()
    until = bench.clock.now_ms + 13_000
    while bench.clock.now_ms < until:
        bench.clock.now_ms += 1
        bench.broker.tick()
        counts.add(kept.count)
    assert sorted(counts) == [0, 200, 700, 1_200]


def test_what_everybody_gets_does_not_age():
    bench = RoutingBench(addresses={"news": {"retroactive_message_count": 1, "subscription_recovery_duration": 5_000}})
    publish(bench, "A B C")
    pass_time(bench, 8_000)
    assert heard(bench, asks=False) == "C"


def test_there_is_a_bound_without_a_count():
    bench = keeping(duration=60_000)
    publish(bench, "A")
    assert bench.broker.queues[HISTORY].ring_size == 100_000
    bench.broker.queues[HISTORY].ring.resize(3)
    publish(bench, "B C D E")
    assert bench.pending(HISTORY) == "C D E"


def test_messages_of_queues_are_not_kept():
    bench = RoutingBench(
        BrokerSettings(
            queues=(QueueSettings("news", "news"),),
            address_settings=(AddressMatch("#", {"subscription_recovery_count": 5}),),
        )
    )
    bench.put("news", "A", routing=ANYCAST)
    assert HISTORY not in bench.broker.queues
    bench.listen("news")
    bench.put("news", "B", routing=ANYCAST)
    publish(bench, "C")
    assert bench.pending(HISTORY) == "C"


def test_what_is_kept_survives_a_restart_and_grows_old_from_there():
    bench = keeping(duration=10_000)
    publish(bench, "A B")
    again = bench.restart()
    pass_time(again, 5_000)
    publish(again, "C")
    assert heard(again) == "A B C"
    pass_time(again, 6_500)
    assert heard(again) == "C"
    check_goes_with_its_settings(again)


def test_what_is_kept_expires_without_a_trace():
    bench = RoutingBench(
        BrokerSettings(queues=(QueueSettings("late", "late"),)),
        addresses={"news": {"subscription_recovery_count": 5, "expiry_address": "late"}},
    )
    bench.broker.producers.send(bench.message("news", "A", expires_in_ms=100), routing=MULTICAST)
    pass_time(bench, 60_000)
    assert (bench.pending(HISTORY), bench.pending("late")) == ("", "")


# -- the retained one ------------------------------------------------------------------------------------------------


def marked(bench: RoutingBench, body: str, address: str = "news") -> None:
    bench.broker.producers.send(
        bench.with_properties(address, body, {"ActiveMQ.Retain": "TRUE", "a": "1"}), routing=MULTICAST
    )


def test_the_last_marked_message_is_for_those_that_ask():
    bench = keeping(retained=True)
    marked(bench, "A")
    publish(bench, "B")
    marked(bench, "C")
    publish(bench, "D")
    assert (heard(bench), heard(bench), heard(bench, asks=False)) == ("C", "C", "")


def test_it_says_that_it_was_retained():
    bench = keeping(retained=True)
    marked(bench, "A")
    (slot,) = listen(bench).slots
    properties = Conversions({"stomp": StompConversion()}).headers_to_hub(slot.message).properties
    assert (properties.get("ActiveMQ.Retained"), properties.get("ActiveMQ.Retain")) == ("true", None)
    assert properties.get("a") == "1"


def test_an_empty_one_ends_it():
    bench = keeping(retained=True)
    marked(bench, "A")
    marked(bench, "")
    assert listen(bench).slots == []
    marked(bench, "B")
    assert heard(bench) == "B"


def test_a_filter_holds_for_it():
    bench = keeping(retained=True)
    marked(bench, "A")
    assert (heard(bench, filter="a = '2'"), heard(bench, filter="a = '1'")) == ("", "A")


def test_it_comes_with_what_is_kept_beside_it():
    bench = keeping(retained=True, count=1)
    marked(bench, "A")
    publish(bench, "B")
    assert heard(bench) == "B A"


@pytest.mark.parametrize("bounds", [{"size": 1}, {"count": 1}, {"duration": 1_000}])
def test_the_bounds_of_what_is_kept_beside_it_are_not_its_own(bounds: dict[str, int]):
    bench = keeping(retained=True, **bounds)
    marked(bench, "R")
    publish(bench, "A B")
    pass_time(bench, 3_000)
    assert heard(bench).split()[-1:] == ["R"]


def test_it_survives_a_restart_for_as_long_as_it_is_wanted():
    bench = keeping(retained=True)
    marked(bench, "A")
    again = bench.restart()
    assert heard(again) == "A"
    check_goes_with_its_settings(again)


def test_a_durable_subscription_keeps_it_over_a_restart():
    bench = keeping(retained=True, count=2)
    marked(bench, "A")
    publish(bench, "B")
    options = SubscriptionOptions(name="me", durable=True, retroactive=True)
    port = Collector()
    port.room = False
    bench.broker.consumers.subscribe("news", port, OpenCredit(), routing=MULTICAST, subscription=options)
    again = bench.restart()
    # The marked one is among the last messages too, as it was sent.
    assert (bench.pending("me"), again.pending("me")) == ("A B A", "A B A")
    recount(again)


def test_an_expired_one_is_not_given():
    bench = RoutingBench(
        BrokerSettings(queues=(QueueSettings("late", "late"),)),
        addresses={"news": {"subscription_recovery_retained": True, "expiry_address": "late"}},
    )
    message = bench.with_properties("news", "A", {"ActiveMQ.Retain": "true"})
    message.expires_at_ms = bench.clock.now_ms + 10
    bench.broker.producers.send(message, routing=MULTICAST)
    bench.clock.now_ms += 20
    assert (heard(bench), bench.pending("late")) == ("", "")


# -- who is served first ---------------------------------------------------------------------------------------------


class Noting(Collector):
    def __init__(self, name: str, order: list[str]) -> None:
        super().__init__()
        self.name = name
        self.order = order

    def deliver(self, slot: Slot) -> None:
        self.order.append(self.name)


@pytest.mark.parametrize(
    ("policy", "order"), [(DispatchPolicy.SIMPLE, "a b c d e"), (DispatchPolicy.PRIORITY, "c b d a e")]
)
def test_subscribers_are_served_as_they_came_or_by_their_priority(policy: DispatchPolicy, order: str):
    bench = RoutingBench(addresses={"news": {"dispatch_policy": policy}})
    served: list[str] = []
    for name, priority in (("a", 0), ("b", 5), ("c", 9), ("d", 5), ("e", 0)):
        options = ConsumerOptions(priority=priority)
        bench.broker.consumers.subscribe("news", Noting(name, served), OpenCredit(), routing=MULTICAST, options=options)
    publish(bench, "A")
    bench.run()
    assert " ".join(served) == order


# -- nothing runs long -----------------------------------------------------------------------------------------------


def test_one_message_that_takes_the_place_of_many():  # RING-11
    bench = keeping(size=60_000)
    for number in range(1_000):
        bench.broker.producers.send(bench.message("news", f"m{number}"), routing=MULTICAST)
    history = bench.broker.queues[HISTORY]
    count = history.pending.count
    bench.broker.producers.send(bench.message("news", "x" * 59_000), routing=MULTICAST)
    assert history.pending.count == count + 1 - 3
    bench.broker.tick()
    assert history.pending.count > count / 2 - 100
    bench.run()
    assert history.total.bytes <= 60_000
    assert bench.pending(HISTORY).endswith("x")
    assert len(max([metas for _, metas, _ in bench.store.batches], key=len)) <= 100
    recount(bench)


def test_a_subscriber_gets_very_many_in_slices_and_its_limit_holds_in_slices():  # RING-11
    bench = keeping(count=3_000)
    for number in range(3_000):
        bench.broker.producers.send(bench.message("news", f"m{number}"), routing=MULTICAST)
    limit = PendingLimit(10, EvictionChoice())
    port = Collector()
    options = SubscriptionOptions(retroactive=True, pending_limit=limit)
    consumer = bench.broker.consumers.subscribe(
        "news", port, PrefetchCredit(5), routing=MULTICAST, subscription=options
    )
    queue = consumer.queue
    assert queue is not None
    assert 0 < queue.pending.count <= 500
    steps = {0}
    while bench.broker.tick():
        steps.add(queue.counters.replaced)
    assert max([later - before for before, later in pairwise(sorted(steps))]) <= 500
    assert port.bodies == "m0 m1 m2 m3 m4"
    assert bench.pending(queue.name) == " ".join(f"m{number}" for number in range(2_990, 3_000))


def test_what_is_sent_while_a_subscriber_is_filled_comes_once_and_last():
    bench = keeping(count=1_000)
    for number in range(1_000):
        bench.broker.producers.send(bench.message("news", f"m{number}"), routing=MULTICAST)
    port = Collector()
    options = SubscriptionOptions(retroactive=True)
    bench.broker.consumers.subscribe("news", port, OpenCredit(), routing=MULTICAST, subscription=options)
    publish(bench, "A B")
    bench.run()
    # A and B have pushed two out, which were given before.
    assert port.bodies.split() == [*(f"m{number}" for number in range(1_000)), "A", "B"]


def subscribe_durably(bench: Bench, address: str, *, filter: str = "", asks: bool = True) -> Collector:
    port = Collector()
    options = SubscriptionOptions(name="me", durable=True, retroactive=asks, filter=filter)
    bench.broker.consumers.subscribe(address, port, OpenCredit(), routing=MULTICAST, subscription=options)
    return port


def from_each_crash(bench: RoutingBench, position: int) -> set[str]:
    """What the subscription has in the end, wherever the broker crashed after ``position``."""
    found = set()
    for crash in range(position, bench.broker.log.position + 1):
        again = bench.restart(crash)
        again.run()
        recount(again)
        assert again.broker.bindings.history_fills.progress == {}
        assert again.broker.queues["me"].suspended == 0
        found.add(again.pending("me"))
        assert again.restart().pending("me") == again.pending("me")
    return found


@pytest.mark.parametrize("asks", [True, False])
@pytest.mark.parametrize("filter", ["", "kind = 'odd'"])
def test_a_durable_subscription_gets_all_although_the_broker_crashes_while_it_is_filled(asks: bool, filter: str):
    fields = {"subscription_recovery_count": 1_800, "retroactive_message_count": 1_400}
    bench = RoutingBench(addresses={"news": fields})
    for number in range(1_800):
        bench.put("news", f"m{number}", routing=MULTICAST, kind="odd" if number % 2 else "even")
    port = subscribe_durably(bench, "news", filter=filter, asks=asks)
    confirmed = bench.broker.log.position
    port.room = False
    bench.put("news", "last", routing=MULTICAST, kind="odd")
    bench.run()
    wanted = [f"m{number}" for number in range(0 if asks else 400, 1_800) if number % 2 or not filter]
    # Of what is kept the first has gone for the last by then; it was given before the crash.
    assert from_each_crash(bench, confirmed + 1) == {" ".join([*wanted, "last"])}
    assert from_each_crash(bench, confirmed) == {" ".join(wanted), " ".join([*wanted, "last"])}


def test_a_wildcard_subscription_gets_all_although_the_broker_crashes_while_it_is_filled():
    fields = {"subscription_recovery_count": 50, "subscription_recovery_retained": True}
    bench = RoutingBench(addresses={"news.#": fields})
    for number in range(1_000):
        bench.put(f"news.a{number % 40}", f"m{number}", routing=MULTICAST)
    for number in range(40):
        marked(bench, f"r{number}", f"news.a{number}")
    port = subscribe_durably(bench, "news.*")
    confirmed = bench.broker.log.position
    port.room = False
    bench.run()
    wanted = [f"m{number}" for number in range(1_000)] + [f"r{number}" for number in range(40)]
    for text in from_each_crash(bench, confirmed):
        # As they were sent, and then what is retained.
        assert text.split()[:1_040] == wanted
        assert sorted(text.split()[1_040:]) == sorted(wanted[1_000:])


def without_progress(store: RecordingStore) -> None:
    """As an older release has recorded it."""
    for _, metas, _ in store.batches:
        for index, meta in enumerate(metas):
            if meta[0] == BINDING and "fill" in (value := decode_json(meta)):
                metas[index] = encode_json(BINDING, {"fill": value["fill"], "first": value["first"]})


def test_a_restart_goes_on_with_what_an_older_release_began_to_fill():
    bench = RoutingBench(
        addresses={"news.#": {"subscription_recovery_count": 900, "subscription_recovery_retained": True}}
    )
    for number in range(1_200):
        bench.put(f"news.a{number % 2}", f"m{number}", routing=MULTICAST)
    for number in range(2):
        marked(bench, f"r{number}", f"news.a{number}")
    port = subscribe_durably(bench, "news.*")
    confirmed = bench.broker.log.position
    port.room = False
    bench.run()
    without_progress(bench.store)
    wanted = [f"m{number}" for number in range(1_200)] + ["r0", "r1"]
    assert from_each_crash(bench, confirmed) == {" ".join([*wanted, "r0", "r1"])}


@pytest.mark.parametrize("ticks", [0, 1])
def test_what_is_purged_while_a_subscription_is_filled_does_not_come_back(ticks: int):
    bench = RoutingBench(
        addresses={"news.#": {"subscription_recovery_count": 900, "subscription_recovery_retained": True}}
    )
    for number in range(700):
        bench.put(f"news.a{number % 3}", f"m{number}", routing=MULTICAST)
    for number in range(20):
        marked(bench, f"r{number}", f"news.a{19 - number}")
    begun = bench.broker.log.position + 1
    subscribe_durably(bench, "news.*").room = False
    for _ in range(ticks):
        bench.broker.tick()
    assert bench.broker.bindings.history_fills.progress
    bench.broker.resources.purge_queue("me")
    bench.run()
    wanted = Counter([f"m{number}" for number in range(700)] + [f"r{number}" for number in range(20)] * 2)
    seen: dict[int, str] = {}
    for crash in range(begun, bench.broker.log.position + 1):
        again = bench.restart(crash)
        if "me" not in again.broker.queues:
            continue  # an address that it brought about comes first
        there = {int(s.sequence): s.message.body.decode() for s in again.broker.queues["me"].pending.in_order()}
        seen.update(there)
        purged = Counter(seen[sequence] for sequence in seen.keys() - there.keys())
        again.run()
        assert Counter(again.pending("me").split()) == wanted - purged
        assert again.broker.bindings.history_fills.progress == {}
        assert again.restart().pending("me") == again.pending("me")
        recount(again)
    assert bench.pending("me") == bench.restart().pending("me")


def test_what_expires_while_a_subscription_is_filled_does_not_come_back():
    bench = RoutingBench(
        BrokerSettings(queues=(QueueSettings("late", "late"),)),
        addresses={"news": {"subscription_recovery_count": 700, "expiry_address": "late"}},
    )
    for number in range(700):
        expires_in_ms = 100 if number % 100 == 0 else 0
        message = bench.message("news", f"m{number}", expires_in_ms=expires_in_ms)
        bench.broker.producers.send(message, routing=MULTICAST)
    subscribe_durably(bench, "news").room = False
    confirmed = bench.broker.log.position
    bench.clock.now_ms += 60_000
    bench.run()
    assert from_each_crash(bench, confirmed) == {" ".join(f"m{number}" for number in range(700) if number % 100)}
    for crash in range(confirmed, bench.broker.log.position + 1):
        again = bench.restart(crash)
        pass_time(again, 60_000)
        late = again.pending("late").split()
        assert len(late) == len(set(late))


def test_the_state_says_how_far_a_subscription_is_filled():
    bench = keeping(count=1_000)
    publish(bench, " ".join(f"m{number}" for number in range(1_000)))
    subscribe_durably(bench, "news").room = False
    bench.broker.resources.purge_queue("me")
    state = bench.broker.state.state()
    store = StateStore(list(bench.store.batches), state, bench.broker.log.position)
    again = Bench(settings={"news": {"subscription_recovery_count": 1_000}}, store=store)
    again.run()
    assert again.pending("me") == " ".join(f"m{number}" for number in range(499, 1_000))


def test_a_subscription_that_ends_while_it_is_filled_is_not_filled_after_a_restart():
    bench = keeping(count=1_000)
    publish(bench, " ".join(f"m{number}" for number in range(1_000)))
    port = subscribe_durably(bench, "news")
    port.room = False
    assert bench.broker.bindings.history_fills.progress
    again = bench.restart()
    again.broker.resources.delete_queue("me")
    again.run()
    assert again.broker.bindings.history_fills.progress == again.restart().broker.bindings.history_fills.progress == {}
    recount(again)


def test_retained_messages_of_many_addresses_come_in_slices():
    bench = RoutingBench(addresses={"news.#": {"subscription_recovery_retained": True}})
    for number in range(200):
        marked(bench, f"m{number}", f"news.a{number}")
    port = Collector()
    options = SubscriptionOptions(retroactive=True)
    consumer = bench.broker.consumers.subscribe("news.*", port, OpenCredit(), routing=MULTICAST, subscription=options)
    assert consumer.queue is not None
    assert consumer.queue.pending.count < 50
    marked(bench, "newer", "news.a199")
    bench.run()
    bodies = port.bodies.split()
    assert len(bodies) == len(set(bodies)) == 200
    assert "newer" in bodies
    assert "m199" not in bodies


def test_a_queue_that_is_deleted_while_it_is_filled():
    bench = keeping(count=2_000, retained=True)
    marked(bench, "R")
    for number in range(2_000):
        bench.broker.producers.send(bench.message("news", f"m{number}"), routing=MULTICAST)
    consumer = bench.broker.consumers.subscribe(
        "news", Collector(), OpenCredit(), routing=MULTICAST, subscription=SubscriptionOptions(retroactive=True)
    )
    bench.broker.consumers.close(consumer)
    bench.run()
    assert stood_on(bench.broker.queues[HISTORY]) == ""
    recount(bench)
