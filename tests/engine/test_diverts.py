"""Diverts: copies of what is sent to one address, made for others."""

import pytest

from delosmq.engine.routing.send_result import NO_ROUTE, ROUTED
from delosmq.model.errors import LimitError, MisuseError, NotFoundError
from delosmq.model.message import ANY_ROUTING, ANYCAST, MULTICAST
from delosmq.model.settings import (
    PASS_ROUTING,
    AddressFullPolicy,
    AddressMatch,
    BrokerSettings,
    DivertSettings,
    JournalSettings,
    QueueSettings,
    Transformer,
)
from tests.engine.routing_support import RoutingBench, projection, recount
from tests.engine.support import anycast


def bench_with(*diverts: DivertSettings, queues: tuple[QueueSettings, ...] = (), **settings: object) -> RoutingBench:
    return RoutingBench(BrokerSettings(diverts=diverts, queues=queues, **settings))  # type: ignore[arg-type]


def annotations(bench: RoutingBench, queue: str) -> dict[str, str]:
    slot = bench.broker.queues[queue].pending.head()
    assert slot is not None
    assert slot.message.annotations is not None
    return slot.message.annotations


def test_a_divert_copies_and_the_original_goes_its_way():
    bench = bench_with(DivertSettings("d", "a", ("b", "c")), queues=(anycast("a"), anycast("b"), anycast("c")))
    assert bench.put("a", "A") == ROUTED
    assert [bench.pending(name) for name in "abc"] == ["A", "A", "A"]
    original = bench.broker.queues["a"].pending.head()
    assert original is not None
    assert annotations(bench, "b") == {
        "_AMQ_ORIG_ADDRESS": "a",
        "_AMQ_ORIG_QUEUE": "d",
        "_AMQ_ORIG_MESSAGE_ID": str(original.message.message_id),
    }
    assert [bench.broker.addresses[name].account.used_messages for name in "abc"] == [1, 1, 1]
    recount(bench)


def test_an_exclusive_divert_keeps_the_original_from_its_queues():
    bench = bench_with(DivertSettings("d", "a", ("b",), exclusive=True), queues=(anycast("a"), anycast("b")))
    assert bench.put("a", "A") == ROUTED
    assert (bench.pending("a"), bench.pending("b")) == ("", "A")
    assert int(annotations(bench, "b")["_AMQ_ORIG_MESSAGE_ID"]) > 0
    assert bench.broker.addresses["a"].unrouted_messages == 0


def test_what_an_exclusive_divert_does_not_match_goes_on_as_if_it_were_not_there():
    diverts = (
        DivertSettings("red", "a", ("b",), exclusive=True, filter="colour = 'red'"),
        DivertSettings("copy", "a", ("c",)),
    )
    bench = bench_with(*diverts, queues=(anycast("a"), anycast("b"), anycast("c")))
    bench.put("a", "A", colour="red")
    bench.put("a", "B", colour="blue")
    assert (bench.pending("a"), bench.pending("b"), bench.pending("c")) == ("B", "A", "B")


def test_original_and_copies_are_one_decision():
    bench = bench_with(DivertSettings("d", "a", ("b", "c")), queues=(anycast("a"), anycast("b"), anycast("c")))
    before = len(bench.store.batches)
    bench.put("a", "A")
    assert len(bench.store.batches) == before + 1
    assert projection(bench.restart()) == projection(bench)


@pytest.mark.parametrize(
    ("kind", "sent", "reached"),
    [
        (ANYCAST, MULTICAST, ("", "A")),
        (MULTICAST, ANYCAST, ("A", "")),
        (0, MULTICAST, ("A", "A")),
        (PASS_ROUTING, ANYCAST, ("", "A")),
        (PASS_ROUTING, ANY_ROUTING, ("A", "A")),
    ],
)
def test_copies_have_the_routing_type_that_the_divert_says(kind: int, sent: int, reached: tuple[str, str]):
    queues = (
        QueueSettings("b.topic", "b", MULTICAST),
        QueueSettings("b.queue", "b", ANYCAST),
        anycast("a"),
        QueueSettings("a.topic", "a", MULTICAST),
    )
    bench = bench_with(DivertSettings("d", "a", ("b",), routing_type=kind), queues=queues)
    bench.put("a", "A", routing=sent)
    assert (bench.pending("b.topic"), bench.pending("b.queue")) == reached


def test_a_transformer_drops_renames_and_adds_properties():
    change = Transformer(add={"added": "new", "kept": "replaced"}, drop=("secret",), rename={"old": "young"})
    bench = bench_with(DivertSettings("d", "a", ("b",), transformer=change), queues=(anycast("a"), anycast("b")))
    bench.put("a", "A", secret="s", old="value", kept="was", other="o")
    again = bench.restart()
    for each in (bench, again):
        slot = each.broker.queues["b"].pending.head()
        assert slot is not None
        properties = each.conversions.to_hub(slot.message).properties
        chosen = {name: value for name, value in properties.items() if not name.startswith("_AMQ")}
        assert chosen == {"other": "o", "young": "value", "added": "new", "kept": "replaced"}
        assert slot.message.head.count(b"kept") == 0
        first = each.broker.queues["a"].pending.head()
        assert first is not None
        assert b"secret:s\n" in first.message.head


def test_a_transformer_works_on_the_stamps_too():
    change = Transformer(drop=("_AMQ_ORIG_QUEUE",), rename={"_AMQ_ORIG_MESSAGE_ID": "origin"})
    bench = bench_with(DivertSettings("d", "a", ("b",), transformer=change), queues=(anycast("a"), anycast("b")))
    bench.put("a", "A")
    original = bench.broker.queues["a"].pending.head()
    assert original is not None
    assert annotations(bench, "b") == {"_AMQ_ORIG_ADDRESS": "a", "origin": str(original.message.message_id)}


def test_diverts_follow_each_other():
    diverts = (DivertSettings("one", "a", ("b",)), DivertSettings("two", "b", ("c",), exclusive=True))
    bench = bench_with(*diverts, queues=(anycast("a"), anycast("b"), anycast("c")))
    bench.put("a", "A")
    assert (bench.pending("a"), bench.pending("b"), bench.pending("c")) == ("A", "", "A")
    assert annotations(bench, "c")["_AMQ_ORIG_ADDRESS"] == "b"


def test_a_circle_of_diverts_is_refused_and_nothing_is_added():
    diverts = (DivertSettings("there", "a", ("b",)), DivertSettings("back", "b", ("a",)))
    bench = bench_with(*diverts, queues=(anycast("a"), anycast("b")))
    with pytest.raises(MisuseError, match=r"circle of diverts \(there -> back -> there.*forwarding-address") as caught:
        bench.put("a", "A")
    assert caught.value.code == "DMQ2620"
    assert (bench.pending("a"), bench.pending("b"), bench.broker.used_bytes) == ("", "", 0)


def test_many_diverts_beside_each_other_are_no_circle():
    diverts = tuple(DivertSettings(f"d{number}", "a", ("b",)) for number in range(20))
    bench = bench_with(*diverts, queues=(anycast("a"), anycast("b")))
    bench.put("a", "A")
    assert bench.broker.queues["b"].message_count == 20


def test_copies_keep_what_the_broker_knows_of_the_original():
    bench = bench_with(DivertSettings("d", "a", ("b",)), queues=(anycast("a"), anycast("b")))
    message = bench.message("a", "A", priority=7, due_in_ms=1_000, expires_in_ms=5_000)
    message.group_id = "g"
    bench.broker.producers.send(message)
    assert (bench.scheduled("a"), bench.scheduled("b")) == ("A", "A")
    bench.later(1_000)
    slot = bench.broker.queues["b"].pending.head()
    assert slot is not None
    copy = slot.message
    assert (copy.priority, copy.group_id, copy.expires_at_ms) == (7, "g", message.expires_at_ms)
    assert (copy.address, copy.durable, copy.body) == ("b", True, b"A")


def test_a_divert_to_its_own_address_is_refused_at_the_start():
    with pytest.raises(MisuseError, match="divert 'd' forwards 'a' to itself"):
        bench_with(DivertSettings("d", "a", ("b", "a")))


def test_a_divert_whose_filter_is_no_selector_is_refused_at_the_start():
    with pytest.raises(MisuseError, match="the filter of divert 'd' is no selector"):
        bench_with(DivertSettings("d", "a", ("b",), filter="a =="))


def test_the_target_of_a_divert_is_created_where_it_may_be():
    bench = bench_with(DivertSettings("d", "a", ("b",), routing_type=ANYCAST), queues=(anycast("a"),))
    bench.put("a", "A")
    assert bench.pending("b") == "A"
    assert projection(bench.restart()) == projection(bench)


def test_a_target_that_may_not_be_created_refuses_the_send():
    bench = bench_with(
        DivertSettings("d", "a", ("b",)),
        queues=(anycast("a"),),
        address_settings=(AddressMatch("b", {"auto_create_addresses": False}),),
    )
    with pytest.raises(NotFoundError, match="no address 'b'"):
        bench.put("a", "A")
    assert bench.pending("a") == ""


def test_a_divert_may_forward_to_one_queue_of_an_address():
    queues = (anycast("a"), QueueSettings("one", "b", MULTICAST), QueueSettings("two", "b", MULTICAST))
    bench = bench_with(DivertSettings("d", "a", ("b::one",)), queues=queues)
    bench.put("a", "A")
    assert (bench.pending("one"), bench.pending("two")) == ("A", "")
    wrong = bench_with(DivertSettings("d", "a", ("b::none",)), queues=queues)
    with pytest.raises(NotFoundError, match=r"divert 'd' forwards to 'b::none'"):
        wrong.put("a", "A")


@pytest.mark.parametrize(
    ("policy", "reached"), [(AddressFullPolicy.DROP, ""), (AddressFullPolicy.BLOCK, "B"), (AddressFullPolicy.PAGE, "B")]
)
def test_a_full_target_drops_or_takes_the_copy(policy: AddressFullPolicy, reached: str):
    bench = bench_with(
        DivertSettings("d", "a", ("b",)),
        queues=(anycast("a"), anycast("b")),
        address_settings=(AddressMatch("b", {"max_size_messages": 0, "address_full_policy": policy}),),
    )
    assert bench.put("a", "B") == ROUTED
    assert (bench.pending("a"), bench.pending("b")) == ("B", reached)
    recount(bench)


def test_a_full_target_with_policy_fail_refuses_the_send_whole():
    bench = bench_with(
        DivertSettings("d", "a", ("b",)),
        queues=(anycast("a"), anycast("b")),
        address_settings=(AddressMatch("b", {"max_size_messages": 0, "address_full_policy": AddressFullPolicy.FAIL}),),
    )
    with pytest.raises(LimitError, match="'b' is full and refuses what divert 'd' forwards"):
        bench.put("a", "A")
    assert (bench.pending("a"), bench.broker.used_bytes) == ("", 0)


def test_copies_that_the_journal_does_not_take_at_once_are_refused():
    journal = JournalSettings(directory="x", file_size_bytes=64 * 1024)
    bench = bench_with(
        DivertSettings("d", "a", ("b", "c")), queues=(anycast("a"), anycast("b"), anycast("c")), journal=journal
    )
    with pytest.raises(LimitError, match=r"copies of its diverts have .* more than the journal takes at once"):
        bench.put("a", "x" * 12_000)
    assert bench.put("a", "x" * 5_000) == ROUTED


def test_too_many_copies_are_refused():
    many = tuple(f"t{number}" for number in range(1_100))
    bench = bench_with(DivertSettings("d", "a", many, routing_type=ANYCAST), queues=(anycast("a"),))
    with pytest.raises(LimitError, match="more than 1000 copies"):
        bench.broker.producers.send(bench.with_properties("a", "A", {}, durable=False))
    assert bench.broker.used_bytes == 0


def test_a_divert_on_a_wildcard_address_takes_from_all_it_stands_for():
    bench = bench_with(DivertSettings("d", "news.#", ("all",)), queues=(anycast("all"),))
    bench.broker.resources.create_address("news.#", {MULTICAST})
    bench.put("news.eu", "A", routing=MULTICAST)
    assert bench.pending("all") == "A"


def test_dead_letters_take_diverts_as_well_and_circles_end_there():
    diverts = (DivertSettings("d", "DLQ", ("archive",)), DivertSettings("back", "archive", ("DLQ",)))
    bench = bench_with(
        *diverts,
        queues=(anycast("a"), anycast("DLQ"), anycast("archive")),
        address_settings=(AddressMatch("a", {"dead_letter_address": "DLQ", "max_delivery_attempts": 1}),),
    )
    bench.put("a", "A")
    consumer, port = bench.consume("a")
    bench.run()
    assert bench.broker.consumers.reject(consumer, port.slots[0].sequence)
    assert bench.pending("DLQ").split()[0] == "A"
    assert bench.pending("archive").split()[0] == "A"
    assert bench.pending("a") == ""


def test_a_message_no_divert_and_no_queue_takes_has_no_route():
    bench = bench_with(DivertSettings("d", "a", ("b",), filter="x = 'y'"))
    bench.broker.resources.create_address("a", {MULTICAST})
    assert bench.put("a", "A", routing=MULTICAST) == NO_ROUTE
    assert bench.broker.addresses["a"].unrouted_messages == 1


def test_in_a_transaction_copies_come_with_the_commit():
    bench = bench_with(DivertSettings("d", "a", ("b",)), queues=(anycast("a"), anycast("b")))
    broker = bench.broker
    transaction = broker.transactions.begin("client")
    broker.transactions.send(transaction, bench.message("a", "A"))
    assert (bench.pending("a"), bench.pending("b")) == ("", "")
    broker.transactions.commit(transaction)
    bench.run()
    assert (bench.pending("a"), bench.pending("b")) == ("A", "A")
    recount(bench)
