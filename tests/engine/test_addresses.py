"""How a send finds its queues: filters, conditions, names; and emptying, deleting, looking back."""

import pytest

from delosmq.engine.addresses.filter import Conditions
from delosmq.engine.routing.send_result import NO_ROUTE, ROUTED
from delosmq.model.conversion import Conversion, Conversions, Encoded
from delosmq.model.errors import MisuseError, NotFoundError
from delosmq.model.message import ANY_ROUTING, ANYCAST, MULTICAST, HubMessage, Message
from delosmq.model.settings import BrokerSettings, QueueSettings
from delosmq.wire.stomp.conversion import StompConversion
from tests.engine.routing_support import RoutingBench, projection, recount
from tests.engine.support import anycast


class CountingConversion(Conversion):
    """Counts how often a message is decoded."""

    def __init__(self) -> None:
        self.decoded = 0
        self._stomp = StompConversion()

    def to_hub(self, message: Message) -> HubMessage:
        self.decoded += 1
        return self._stomp.to_hub(message)

    def from_hub(self, hub: HubMessage, address: str) -> Encoded:
        return self._stomp.from_hub(hub, address)

    def rewritten_head(
        self, message: Message, drop: tuple[str, ...], rename: dict[str, str], replaced: tuple[str, ...]
    ) -> bytes:
        return self._stomp.rewritten_head(message, drop, rename, replaced)


def red_and_blue(kind: int) -> RoutingBench:
    queues = (
        QueueSettings("red", "a", kind, filter="colour = 'red'"),
        QueueSettings("blue", "a", kind, filter="colour = 'blue'"),
        QueueSettings("all", "a", kind),
    )
    return RoutingBench(BrokerSettings(queues=queues))


def test_a_filter_lets_only_matching_messages_in():
    bench = red_and_blue(MULTICAST)
    bench.put("a", "A", colour="red")
    bench.put("a", "B", colour="blue")
    bench.put("a", "C")
    assert [bench.pending(name) for name in ("red", "blue", "all")] == ["A", "B", "A B C"]
    recount(bench)
    assert projection(bench.restart()) == projection(bench)


def test_anycast_takes_turns_among_queues_that_match():
    bench = red_and_blue(ANYCAST)
    for body in "ABCDEF":
        bench.put("a", body, colour="red")
    assert bench.pending("blue") == ""
    assert [len(bench.pending(name).split()) for name in ("red", "all")] == [3, 3]


def test_a_message_that_no_filter_lets_in_has_no_route():
    bench = RoutingBench(BrokerSettings(queues=(QueueSettings("q", "q", ANYCAST, filter="a = 'b'"),)))
    assert bench.put("q", "A") == NO_ROUTE
    assert (bench.broker.addresses["q"].unrouted_messages, bench.broker.used_bytes) == (1, 0)


def test_equal_filters_are_evaluated_once_for_a_message():
    conversion = CountingConversion()
    conditions = Conditions(Conversions({"stomp": conversion}))
    bench = RoutingBench()
    for number in range(50):
        bench.broker.resources.create_queue(QueueSettings(f"q{number}", "a", MULTICAST, filter="colour = 'red'"))
    address = bench.broker.addresses["a"]
    conditions.look_at(bench.with_properties("a", "A", {"colour": "red"}))
    assert len(address.route(ANY_ROUTING, conditions)) == 50
    assert (conversion.decoded, conditions.evaluations) == (1, 1)


def test_a_send_to_one_queue_by_name_respects_its_filter():
    bench = red_and_blue(MULTICAST)
    assert bench.put("a", "A", queue_name="red", colour="red") == ROUTED
    assert bench.put("a", "B", queue_name="red", colour="blue") == NO_ROUTE
    assert [bench.pending(name) for name in ("red", "all")] == ["A", ""]
    with pytest.raises(NotFoundError, match="address 'a' has no queue 'none'"):
        bench.put("a", "C", queue_name="none")


def test_a_disabled_anycast_queue_leaves_its_turn_to_the_next():
    bench = RoutingBench(BrokerSettings(queues=(QueueSettings("p", "a", ANYCAST), QueueSettings("q", "a", ANYCAST))))
    bench.broker.resources.update_queue("p", enabled=False)
    for body in "ABC":
        assert bench.put("a", body) == ROUTED
    assert (bench.pending("p"), bench.pending("q")) == ("", "A B C")


def test_a_queue_that_purges_takes_part_only_while_it_has_consumers():
    bench = RoutingBench(BrokerSettings(queues=(QueueSettings("q", "q", ANYCAST, purge_on_no_consumers=True),)))
    assert bench.put("q", "A") == NO_ROUTE
    consumer, port = bench.consume("q")
    port.room = False
    assert bench.put("q", "B") == ROUTED
    assert bench.pending("q") == "B"
    bench.broker.consumers.close(consumer)
    bench.run()
    queue = bench.broker.queues["q"]
    assert (queue.message_count, queue.counters.killed, bench.broker.used_bytes) == (0, 1, 0)
    assert bench.restart().pending("q") == ""


def test_messages_without_a_queue_may_be_kept_as_dead_letters():
    bench = RoutingBench(
        BrokerSettings(queues=(QueueSettings("q", "q", ANYCAST, filter="a = 'b'"), anycast("DLQ"))),
        addresses={"q": {"send_to_dla_on_no_route": True, "dead_letter_address": "DLQ"}},
    )
    bench.put("q", "A", _AMQ_ORIG_QUEUE="lie", _AMQ_ORIG_ADDRESS="lie")
    slot = bench.broker.queues["DLQ"].pending.head()
    assert slot is not None
    properties = StompConversion().to_hub(slot.message).properties
    assert (properties["_AMQ_ORIG_ADDRESS"], properties["_AMQ_ORIG_QUEUE"]) == ("q", "")
    recount(bench)


def test_a_queue_for_dead_letters_of_one_origin_sees_where_they_come_from():
    dead = QueueSettings("DLQ.q", "DLQ", MULTICAST, filter="_AMQ_ORIG_ADDRESS = 'q'")
    bench = RoutingBench(
        BrokerSettings(queues=(QueueSettings("q", "q", ANYCAST, filter="a = 'b'"), dead)),
        addresses={"q": {"send_to_dla_on_no_route": True, "dead_letter_address": "DLQ"}},
    )
    bench.put("q", "A")
    assert bench.pending("DLQ.q") == "A"


# -- purging ---------------------------------------------------------------------------------------------------------


def test_purging_ends_what_nobody_has_and_keeps_what_comes_later():
    bench = RoutingBench(BrokerSettings(queues=(anycast("q"),)))
    consumer, port = bench.consume("q")
    bench.send("q", "held")
    bench.run()
    port.room = False
    for number in range(1_200):
        bench.send("q", f"m{number}")
    later = bench.with_properties("q", "due", {})
    later.due_at_ms = bench.clock.wall_ms() + 1_000
    bench.broker.producers.send(later)
    work = bench.broker.resources.purge_queue("q")
    assert not work.done
    bench.send("q", "new")
    bench.run()
    queue = bench.broker.queues["q"]
    assert (work.done, work.removed, bench.pending("q")) == (True, 1_201, "new")
    assert (queue.counters.killed, queue.counters.acknowledged, queue.delivering.count) == (1_201, 0, 1)
    assert bench.restart().pending("q") == "held new"
    assert bench.broker.addresses["q"].account.used_messages == 2
    bench.broker.consumers.close(consumer)
    assert bench.pending("q") == "held new"


def test_while_a_queue_is_purged_nothing_of_it_is_handed_out():
    bench = RoutingBench(BrokerSettings(queues=(anycast("q"),)))
    for number in range(1_200):
        bench.send("q", f"m{number}")
    bench.broker.resources.purge_queue("q")
    second = bench.broker.resources.purge_queue("q")
    _, port = bench.consume("q")
    bench.send("q", "new")
    bench.run()
    assert (port.bodies, second.done) == ("new", True)


# -- deleting --------------------------------------------------------------------------------------------------------


def test_an_address_with_queues_goes_only_by_force():
    bench = RoutingBench(BrokerSettings(queues=(QueueSettings("q", "a", ANYCAST), QueueSettings("t", "a", MULTICAST))))
    bench.put("a", "A")
    _, port = bench.listen("a", queue_name="q")
    with pytest.raises(MisuseError, match="address 'a' has 2 queues; delete them first, or force"):
        bench.broker.resources.delete_address("a")
    bench.broker.resources.delete_address("a", force=True)
    bench.run()
    assert (dict(bench.broker.queues), dict(bench.broker.addresses), bench.broker.used_bytes) == ({}, {}, 0)
    assert port.closed is not None
    bench.settings = BrokerSettings()
    assert dict(bench.restart().broker.addresses) == {}
    with pytest.raises(NotFoundError, match="no address 'a'"):
        bench.broker.resources.delete_address("a")


# -- looking back ----------------------------------------------------------------------------------------------------


def retroactive(count: int, *queues: QueueSettings) -> RoutingBench:
    return RoutingBench(BrokerSettings(queues=queues), addresses={"news": {"retroactive_message_count": count}})


def test_a_new_subscription_starts_with_the_last_messages_of_its_address():
    bench = retroactive(2)
    for body in "ABC":
        bench.put("news", body, routing=MULTICAST)
    _, port = bench.listen("news")
    bench.put("news", "D", routing=MULTICAST)
    bench.run()
    assert port.bodies == "B C D"
    assert bench.broker.addresses["news"].account.used_messages == 3  # B is in delivery only
    assert "news" in bench.broker.addresses


def test_a_filter_holds_for_them_as_well():
    bench = retroactive(5)
    bench.put("news", "A", routing=MULTICAST, colour="red")
    bench.put("news", "B", routing=MULTICAST, colour="blue")
    _, port = bench.listen("news", filter="colour = 'blue'")
    bench.run()
    assert port.bodies == "B"


def test_what_was_copied_and_what_is_kept_survive_a_restart():
    bench = retroactive(2)
    for body in "ABC":
        bench.put("news", body, routing=MULTICAST)
    bench.listen("news", name="me", durable=True)
    again = bench.restart()
    assert again.pending("me") == "B C"
    assert projection(again) == projection(bench)
    recount(again)
    third = again.restart()
    third.send("news", "D", routing=MULTICAST)
    assert third.pending("me") == "B C D"
    third.broker.resources.create_queue(QueueSettings("you", "news", MULTICAST))
    assert third.pending("you") == "C D"


def test_the_kept_messages_are_hidden_from_clients_and_follow_the_setting():
    bench = retroactive(3)
    for body in "ABC":
        bench.put("news", body, routing=MULTICAST)
    with pytest.raises(NotFoundError, match="there is no queue"):
        bench.broker.resources.update_queue("$delosmq.history.news", ring_size=1)
    with pytest.raises((NotFoundError, MisuseError)):
        bench.listen("news", queue_name="$delosmq.history.news", routing=ANY_ROUTING)
    bench.settings = retroactive(1).settings
    fewer = bench.restart()
    fewer.broker.resources.create_queue(QueueSettings("me", "news", MULTICAST))
    assert fewer.pending("me") == "C"
    fewer.settings = BrokerSettings()
    none = fewer.restart()
    assert list(none.broker.queues) == ["me"]
    none.run()
    recount(none)


def test_many_kept_messages_come_in_slices_before_newer_ones():
    bench = retroactive(1_500)
    for number in range(1_500):
        bench.broker.producers.send(bench.message("news", f"m{number}", durable=False), routing=MULTICAST)
    _, port = bench.listen("news")
    bench.put("news", "new", routing=MULTICAST)
    assert bench.broker.tick()
    assert port.bodies == ""
    bench.run()
    bodies = port.bodies.split()
    assert bodies == [f"m{number}" for number in range(1_500)] + ["new"]


def test_a_send_is_refused_when_the_name_of_its_queue_is_taken_on_another_address():
    bench = RoutingBench(BrokerSettings(queues=(QueueSettings("all", "news", MULTICAST),)))
    with pytest.raises(MisuseError, match="queue 'all' is on another address"):
        bench.put("all", "lost", routing=ANYCAST)
    assert bench.pending("all") == ""


def test_a_name_with_the_mark_between_address_and_queue_is_refused():
    with pytest.raises(MisuseError, match="DMQ2645"):
        RoutingBench(BrokerSettings()).broker.resources.create_queue(QueueSettings("a::b", "a::b", ANYCAST))
