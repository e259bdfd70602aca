"""Dead letters: who becomes one, where they go, what they carry (ACK-4)."""

from dataclasses import replace

import pytest

from delosmq.engine.base.events import EngineEvents
from delosmq.engine.base.slots import Slot
from delosmq.engine.queues.credit import OpenCredit
from delosmq.engine.routing.dropped import EXPIRY_ADDRESS, QUEUES_REMEMBERED, DroppedListener, DroppedMessages
from delosmq.engine.routing.held_messages import DEAD, EXPIRED, held_count, is_held
from delosmq.engine.routing.send_result import NO_ROUTE, ROUTED
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.settings import DispatchProfile, QueueSettings
from tests.engine.support import Bench, Collector, anycast


class Killed(EngineEvents):
    def __init__(self) -> None:
        self.seen: list[tuple[str, str, str]] = []

    def message_dead_lettered(self, queue: str, slot: Slot, dead_letter_address: str) -> None:
        self.seen.append((queue, slot.message.body.decode(), dead_letter_address))


def bench_with(events: EngineEvents | None = None, queues: tuple[QueueSettings, ...] = (), **fields: object) -> Bench:
    settings: dict[str, object] = {"dead_letter_address": "DLQ", "max_delivery_attempts": 1, **fields}
    queues = queues or (anycast("q"), anycast("DLQ"))
    return Bench(queues=queues, settings={"#": settings}, events=events)


def fail(bench: Bench, queue: str, *, poison: bool = False) -> None:
    consumer, port = bench.consume(queue)
    bench.run()
    bench.broker.consumers.reject_through(consumer, port.slots[-1].sequence, poison=poison)
    bench.broker.consumers.close(consumer)
    bench.run()


def stamps(bench: Bench, queue: str) -> dict[str, str]:
    slot = bench.broker.queues[queue].pending.head()
    assert slot is not None
    assert slot.message.annotations is not None
    return slot.message.annotations


def test_a_dead_letter_says_where_it_comes_from_and_never_expires():
    events = Killed()
    bench = bench_with(events)
    bench.send("q", "A", expires_in_ms=60_000)
    original = bench.broker.queues["q"].pending.head()
    assert original is not None
    fail(bench, "q")
    assert stamps(bench, "DLQ") == {
        "_AMQ_ORIG_ADDRESS": "q",
        "_AMQ_ORIG_QUEUE": "q",
        "_AMQ_ORIG_MESSAGE_ID": str(original.message.message_id),
        "_AMQ_ORIG_ROUTING_TYPE": "1",
    }
    again = bench.restart()
    copy = again.broker.queues["DLQ"].pending.head()
    assert copy is not None
    assert (copy.message.body, copy.message.expires_at_ms, copy.message.address) == (b"A", 0, "DLQ")
    assert (again.counts("q"), events.seen) == ((0, 0, 0), [("q", "A", "DLQ")])


def test_poison_is_a_dead_letter_at_once():
    bench = bench_with(max_delivery_attempts=-1)
    bench.send("q", "A B")
    fail(bench, "q", poison=True)
    assert (bench.pending("q"), bench.broker.queues["q"].counters.killed) == ("", 2)
    assert sorted(bench.pending("DLQ").split()) == ["A", "B"]


def test_poison_in_the_dead_letter_address_stays_there():
    bench = bench_with()
    bench.send("DLQ", "A")
    fail(bench, "DLQ", poison=True)
    assert (bench.pending("DLQ"), bench.broker.queues["DLQ"].counters.killed) == ("A", 0)


def test_a_dead_letter_that_dies_again_says_where_it_died_last():
    bench = Bench(
        queues=(anycast("q"), anycast("DLQ"), anycast("last")),
        settings={
            "q": {"dead_letter_address": "DLQ", "max_delivery_attempts": 1},
            "DLQ": {"dead_letter_address": "last", "max_delivery_attempts": 1},
        },
    )
    bench.send("q", "A")
    fail(bench, "q")
    fail(bench, "DLQ")
    assert stamps(bench, "last")["_AMQ_ORIG_ADDRESS"] == "DLQ"


def test_without_an_address_for_it_a_dead_letter_is_dropped():
    events = Killed()
    bench = bench_with(events, dead_letter_address="")
    bench.send("q", "A")
    fail(bench, "q")
    assert events.seen == [("q", "A", "")]
    assert (bench.broker.used_bytes, bench.restart().counts("q")) == (0, (0, 0, 0))


def die(bench: Bench, *, expired: bool) -> None:
    """What is pending in ``q`` goes where it should."""
    if expired:
        bench.later(40_000)
    else:
        fail(bench, "q")


WAYS_TO_DIE = [False, True]


@pytest.mark.parametrize("expired", WAYS_TO_DIE)
@pytest.mark.parametrize("profile", list(DispatchProfile))
@pytest.mark.parametrize("with_address", [False, True])
def test_a_queue_that_was_deleted_is_made_again(expired: bool, profile: DispatchProfile, with_address: bool):
    classic = profile is DispatchProfile.CLASSIC
    # Classic asks nothing about it.
    bench = bench_with(
        expiry_address="DLQ",
        dispatch_profile=profile,
        auto_create_queues=not classic,
        auto_create_addresses=not classic,
    )
    for body in "AB":
        if with_address:
            bench.broker.resources.delete_address("DLQ", force=True)
        else:
            bench.broker.resources.delete_queue("DLQ")
        bench.send("q", body, expires_in_ms=10 if expired else 0)
        die(bench, expired=expired)
        assert (bench.pending("DLQ"), bench.counts("q")) == (body, (0, 0, 0))
    assert bench.restart().pending("DLQ") == "B"


@pytest.mark.parametrize("expired", WAYS_TO_DIE)
def test_what_no_queue_takes_is_held_and_moves_once_one_does(expired: bool):
    bench = bench_with(queues=(anycast("q"),), expiry_address="DLQ", auto_create_queues=False)
    bench.broker.dropped.listener = told = Told()
    bench.send("q", "A B", expires_in_ms=10 if expired else 0)
    used = bench.broker.used_bytes
    die(bench, expired=expired)
    assert told.seen == [("q", "expiry-address" if expired else "dead-letter-address", "DLQ")]
    for again in (bench, bench.restart(), bench.restart().restart()):
        queue = again.broker.queues["q"]
        _, port = again.consume("q")
        again.later(100_000)
        assert (again.scheduled("q"), again.counts("q"), port.bodies) == ("A B", (2, 0, 2), "")
        assert again.broker.used_bytes == used
        assert (held_count(queue), queue.counters.killed, queue.counters.expired) == (2, 0, 0)
    bench = bench.restart()
    bench.broker.resources.create_queue(anycast("DLQ"))
    bench.later(5_000)
    assert (bench.pending("DLQ"), bench.counts("q")) == ("A B", (0, 0, 0))
    assert held_count(bench.broker.queues["q"]) == 0
    again = bench.restart()
    assert (again.pending("DLQ"), again.counts("q"), again.broker.used_bytes) == ("A B", (0, 0, 0), used)


@pytest.mark.parametrize("due_at_ms", [DEAD, EXPIRED, (1 << 63) - 1])
def test_what_a_client_schedules_so_late_is_not_held(due_at_ms: int):
    bench = bench_with(expiry_address="DLQ")
    bench.send("q", "A", due_in_ms=due_at_ms - bench.clock.wall_ms())
    for again in (bench, bench.restart(), bench.restart().restart()):
        again.later(20_000)
        assert (again.scheduled("q"), again.pending("DLQ")) == ("A", "")
        queue = again.broker.queues["q"]
        assert held_count(queue) == 0
        assert not any(is_held(slot) for slot in queue.scheduled.in_order())


def test_many_that_are_held_move_in_slices_those_alone_that_a_queue_takes():
    bench = bench_with(auto_create_queues=False)
    bench.broker.resources.update_queue("DLQ", filter="_AMQ_ORIG_QUEUE = 'other'")
    bench.send("q", " ".join(["A"] * 300))
    fail(bench, "q")
    bench.later(5_000)
    assert held_count(bench.broker.queues["q"]) == 300
    bench.broker.resources.update_queue("DLQ", filter="_AMQ_ORIG_QUEUE = 'q'")
    bench.later(5_000)
    assert (bench.broker.queues["DLQ"].message_count, bench.counts("q")) == (300, (0, 0, 0))


@pytest.mark.parametrize("end", ["purge_queue", "delete_queue"])
def test_what_is_held_ends_with_its_queue(end: str):
    bench = bench_with(queues=(anycast("q"),), auto_create_queues=False)
    bench.send("q", "A B")
    fail(bench, "q")
    assert held_count(bench.broker.queues["q"]) == 2
    getattr(bench.broker.resources, end)("q")
    bench.later(10_000)
    assert bench.broker.used_bytes == 0
    bench.later(10_000)


def test_poison_that_is_held_is_not_handed_out_again():
    bench = bench_with(queues=(anycast("q"),), auto_create_queues=False, max_delivery_attempts=10)
    bench.send("q", "A")
    fail(bench, "q", poison=True)
    _, port = bench.consume("q")
    bench.later(60_000)
    assert (port.bodies, bench.counts("q")) == ("", (1, 0, 1))
    bench.broker.resources.create_queue(anycast("DLQ"))
    bench.later(5_000)
    assert bench.pending("DLQ") == "A"


def test_a_queue_for_each_origin_is_created_where_settings_say_so():
    bench = bench_with(
        queues=(anycast("q"), anycast("r")),
        auto_create_dead_letter_resources=True,
        dead_letter_queue_prefix="dead.",
        dead_letter_queue_suffix=".kept",
    )
    bench.send("q", "A")
    bench.send("r", "B")
    fail(bench, "q")
    fail(bench, "r")
    queue = bench.broker.queues["dead.q.kept"]
    assert (queue.address.name, queue.settings.filter, queue.settings.auto_created) == (
        "DLQ",
        "_AMQ_ORIG_ADDRESS = 'q'",
        True,
    )
    assert (bench.pending("dead.q.kept"), bench.pending("dead.r.kept")) == ("A", "B")
    bench.send("q", "C")
    fail(bench, "q")
    assert bench.pending("dead.q.kept") == "A C"
    assert bench.restart().pending("dead.q.kept") == "A C"


def individual(queues: tuple[QueueSettings, ...]) -> Bench:
    # As `delosmq convert` writes an individualDeadLetterStrategy.
    return bench_with(
        queues=queues,
        expiry_address="DLQ",
        auto_create_dead_letter_resources=True,
        dead_letter_queue_prefix="DLQ.",
        auto_create_expiry_resources=True,
        expiry_queue_prefix="DLQ.",
    )


def test_a_queue_of_the_wanted_name_on_another_address_takes_the_dead_letter():
    bench = individual((anycast("q"), anycast("DLQ.q")))
    bench.send("q", "A")
    fail(bench, "q")
    assert (bench.pending("DLQ.q"), bench.pending("q")) == ("A", "")
    assert stamps(bench, "DLQ.q")["_AMQ_ORIG_ADDRESS"] == "q"
    again = bench.restart()
    copy = again.broker.queues["DLQ.q"].pending.head()
    assert copy is not None
    assert (copy.message.body, copy.message.address) == (b"A", "DLQ.q")


def test_a_queue_of_the_wanted_name_on_another_address_takes_what_expires():
    bench = individual((anycast("q"), anycast("DLQ.q")))
    bench.send("q", "A", expires_in_ms=10)
    bench.clock.now_ms += 11
    bench.consume("q")
    bench.run()
    assert (bench.pending("DLQ.q"), bench.pending("q")) == ("A", "")


@pytest.mark.parametrize("expires_in_ms", [0, 10])
def test_nothing_leaves_for_a_queue_of_the_wanted_name_on_a_foreign_address(expires_in_ms: int):
    bench = individual((anycast("q"), QueueSettings("DLQ.q", "bob.x", ANYCAST), anycast("DLQ")))
    bench.send("q", "A", expires_in_ms=expires_in_ms)
    if expires_in_ms:
        bench.clock.now_ms += 11
        bench.consume("q")
        bench.run()
    else:
        fail(bench, "q")
    assert (bench.pending("DLQ.q"), bench.pending("DLQ"), bench.pending("q")) == ("", "A", "")


@pytest.mark.parametrize(
    ("closed", "kept"),
    [
        ({}, ("A", "")),
        ({"enabled": False}, ("", "A")),
        ({"purge_on_no_consumers": True}, ("", "A")),
        ({"durable": False}, ("", "A")),
    ],
)
def test_a_queue_of_the_wanted_name_that_no_message_may_enter_takes_no_dead_letter(
    closed: dict[str, bool], kept: tuple[str, str]
):
    bench = individual((anycast("q"), replace(anycast("DLQ.q"), **closed), anycast("DLQ")))
    bench.send("q", "A")
    fail(bench, "q")
    assert (bench.pending("DLQ.q"), bench.pending("DLQ")) == kept


def test_a_queue_whose_dead_letters_would_have_its_own_name_does_not_get_them_back():
    bench = bench_with(auto_create_dead_letter_resources=True, dead_letter_queue_prefix="")
    bench.send("q", "A")
    fail(bench, "q")
    assert (bench.pending("DLQ"), bench.pending("q")) == ("A", "")


def test_no_resources_are_created_for_the_dead_letter_address_itself():
    bench = bench_with(queues=(anycast("DLQ"),), auto_create_dead_letter_resources=True)
    bench.send("DLQ", "A")
    fail(bench, "DLQ")
    assert sorted(bench.broker.queues) == ["DLQ"]


def test_copy_and_original_are_one_batch():
    bench = bench_with()
    bench.send("q", "A")
    before = len(bench.store.batches)
    fail(bench, "q")
    assert [len(metas) for _, metas, _ in bench.store.batches[before:]] == [2]


def test_many_dead_letters_take_several_ticks():
    bench = bench_with()
    bench.send("q", " ".join(["m"] * 200))
    consumer, port = bench.consume("q")
    bench.run()
    bench.broker.consumers.reject_through(consumer, port.slots[-1].sequence)
    assert 0 < bench.broker.queues["q"].counters.killed < 100
    assert bench.broker.queues["q"].delivering.count > 100
    bench.run()
    assert bench.broker.queues["DLQ"].message_count == 200
    assert bench.counts("q") == (0, 0, 0)


def test_on_a_full_disk_nobody_becomes_a_dead_letter():
    bench = bench_with()
    bench.send("q", "A")
    bench.broker.set_storage_full(True)
    consumer, port = bench.consume("q")
    bench.run()
    bench.broker.consumers.reject(consumer, port.slots[0].sequence)
    assert (bench.pending("q"), bench.pending("DLQ")) == ("A", "")


def test_classic_says_of_each_dead_letter_when_it_would_have_expired():
    bench = bench_with(dispatch_profile=DispatchProfile.CLASSIC)
    bench.send("q", "A")
    fail(bench, "q")
    assert stamps(bench, "DLQ")["originalExpiration"] == "0"


def test_classic_drops_a_dead_letter_that_fails_again():
    bench = bench_with(dispatch_profile=DispatchProfile.CLASSIC)
    bench.send("q", "A")
    fail(bench, "q", poison=True)
    assert bench.pending("DLQ") == "A"
    fail(bench, "DLQ", poison=True)
    assert bench.counts("DLQ") == (0, 0, 0)
    assert bench.broker.queues["DLQ"].counters.killed == 1


@pytest.mark.parametrize("durable", [True, False])
def test_messages_that_are_not_durable_may_become_no_dead_letters(durable: bool):
    bench = bench_with(dead_letter_non_durable=False)
    bench.send("q", "A", durable=durable)
    fail(bench, "q")
    assert bench.pending("DLQ") == ("A" if durable else "")
    assert bench.counts("q") == (0, 0, 0)


def test_classic_keeps_a_safe_copy_with_the_reason_once_for_each_message():
    queues = (
        QueueSettings("a", "news", MULTICAST),
        QueueSettings("b", "news", MULTICAST),
        anycast("DLQ"),
    )
    bench = bench_with(queues=queues, dispatch_profile=DispatchProfile.CLASSIC)
    bench.send("news", "A", durable=False, expires_in_ms=60_000)
    expires_at_ms = bench.clock.wall_ms() + 60_000
    for name in ("a", "b"):
        port = Collector()
        consumer = bench.broker.consumers.subscribe("news", port, OpenCredit(), queue_name=name)
        bench.run()
        bench.broker.consumers.reject(consumer, port.slots[0].sequence)
    assert bench.pending("DLQ") == "A"
    found = stamps(bench, "DLQ")
    assert (found["originalExpiration"], found["dlqDeliveryFailureCause"]) == (
        str(expires_at_ms),
        "max-delivery-attempts reached",
    )
    assert bench.restart().pending("DLQ") == "A"
    assert (bench.counts("a"), bench.counts("b")) == ((0, 0, 0), (0, 0, 0))


def test_what_nobody_takes_is_kept_where_settings_say_so():
    bench = Bench(
        queues=(anycast("DLQ"),),
        settings={"#": {"dead_letter_address": "DLQ"}, "kept": {"send_to_dla_on_no_route": True}},
    )
    assert bench.send("lost", "A", routing=MULTICAST) == [NO_ROUTE]
    assert bench.send("kept", "B", routing=MULTICAST, expires_in_ms=1_000) == [ROUTED]
    assert bench.pending("DLQ") == "B"
    found = stamps(bench, "DLQ")
    assert found["_AMQ_ORIG_ADDRESS"] == "kept"
    assert found["_AMQ_ORIG_QUEUE"] == ""
    slot = bench.broker.queues["DLQ"].pending.head()
    assert slot is not None
    assert slot.message.expires_at_ms == 0
    assert bench.restart().pending("DLQ") == "B"


def test_an_unrouted_message_nobody_takes_in_the_end_is_left_as_it_was():
    settings = {"dead_letter_address": "DLQ", "send_to_dla_on_no_route": True, "auto_create_queues": False}
    bench = Bench(settings={"#": settings})
    message = bench.message("kept", "A", expires_in_ms=1_000)
    assert bench.broker.producers.send(message, routing=MULTICAST) == NO_ROUTE
    assert (message.address, message.annotations) == ("kept", None)
    assert message.expires_at_ms == bench.clock.wall_ms() + 1_000


class Told(DroppedListener):
    def __init__(self) -> None:
        self.seen: list[tuple[str, str, str]] = []

    def messages_held(self, queue: str, setting: str, address: str) -> None:
        self.seen.append((queue, setting, address))

    def messages_refused(self, queue: str) -> None:
        raise AssertionError(queue)

    def queue_moved_aside(self, queue: str, address: str, declared_on: str, renamed: str, *, messages: int) -> None:
        raise AssertionError(queue)


def test_dead_letters_that_nobody_takes_any_more_are_told_once_of_each_queue():
    bench = bench_with(queues=(anycast("q"), anycast("p"), anycast("DLQ")), auto_create_queues=False)
    told = Told()
    bench.broker.dropped.listener = told
    bench.send("q", "A")
    fail(bench, "q")
    assert told.seen == []
    bench.broker.resources.delete_queue("DLQ")
    for queue in ("q", "q", "p"):
        bench.send(queue, "B")
        fail(bench, queue)
    assert told.seen == [("q", "dead-letter-address", "DLQ"), ("p", "dead-letter-address", "DLQ")]


def test_dead_letters_that_nobody_wants_are_no_loss_to_tell_of():
    bench = bench_with(dead_letter_address="")
    bench.broker.dropped.listener = told = Told()
    bench.send("q", "A")
    fail(bench, "q")
    assert told.seen == []


def test_expired_messages_that_nobody_takes_are_told():
    bench = bench_with(expiry_address="Gone", auto_create_queues=False)
    bench.broker.dropped.listener = told = Told()
    bench.send("q", "A", expires_in_ms=1)
    bench.later(5)
    bench.consume("q")
    bench.run()
    assert told.seen == [("q", "expiry-address", "Gone")]


class Refused(DroppedListener):
    def __init__(self) -> None:
        self.seen: list[str] = []

    def messages_held(self, queue: str, setting: str, address: str) -> None:
        raise AssertionError(queue)

    def messages_refused(self, queue: str) -> None:
        self.seen.append(queue)

    def queue_moved_aside(self, queue: str, address: str, declared_on: str, renamed: str, *, messages: int) -> None:
        raise AssertionError(queue)


def test_what_goes_to_a_disabled_queue_alone_is_told_once_until_it_is_enabled():
    bench = bench_with(queues=(anycast("q"), anycast("p")))
    bench.broker.dropped.listener = told = Refused()
    bench.broker.resources.update_queue("q", enabled=False)
    for body in "AB":
        assert bench.broker.producers.send(bench.message("q", body)) == NO_ROUTE
    bench.send("p", "C")
    assert told.seen == ["q"]
    bench.broker.resources.update_queue("q", enabled=True)
    bench.send("q", "D")
    bench.broker.resources.update_queue("q", enabled=False)
    assert bench.broker.producers.send(bench.message("q", "E"), queue_name="q") == NO_ROUTE
    assert told.seen == ["q", "q"]
    assert bench.pending("q") == "D"


def test_nothing_is_told_where_another_queue_takes_it_or_the_dead_letter_address_does():
    bench = bench_with(queues=(anycast("q"), QueueSettings("other", "q", ANYCAST), anycast("DLQ")))
    bench.broker.dropped.listener = told = Refused()
    bench.broker.resources.update_queue("q", enabled=False)
    bench.send("q", "A")
    assert bench.pending("other") == "A"
    assert bench.broker.producers.send(bench.message("topic", "B"), routing=MULTICAST) == NO_ROUTE
    assert told.seen == []


def test_the_disabled_queues_that_losses_remember_are_bounded():
    losses = DroppedMessages()
    losses.listener = told = Refused()
    for number in range(QUEUES_REMEMBERED + 1):
        losses.tell_refused(f"q{number}")
    losses.tell_refused("q0")
    assert told.seen[-1] == "q0"
    assert len(told.seen) == QUEUES_REMEMBERED + 2


def test_what_losses_remember_is_bounded():
    losses = DroppedMessages()
    losses.listener = told = Told()
    for number in range(QUEUES_REMEMBERED + 1):
        losses.tell_held(f"q{number}", EXPIRY_ADDRESS, "x")
    losses.tell_held(f"q{QUEUES_REMEMBERED}", EXPIRY_ADDRESS, "x")
    losses.tell_held("q0", EXPIRY_ADDRESS, "x")
    assert len(told.seen) == QUEUES_REMEMBERED + 2
