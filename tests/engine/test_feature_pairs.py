"""Where features meet: two at a time that know nothing of one another, and the books are right afterwards."""

import pytest

from delosmq.engine.base.slots import PendingSlots, Slot
from delosmq.engine.dispatch.message_groups import REMEMBERED_OTHERWISE, MessageGroups
from delosmq.engine.log.batch_limits import largest_batch_bytes, ordinary_batch_bytes
from delosmq.engine.queues.consumer import Consumer, ConsumerOptions
from delosmq.engine.queues.credit import MessageCredit, OpenCredit
from delosmq.engine.queues.queue import Queue
from delosmq.engine.routing.parts import record_room_bytes
from delosmq.engine.transactions.commit_steps import SMALL_OPERATIONS
from delosmq.engine.transactions.transaction import Transaction
from delosmq.model.errors import MisuseError
from delosmq.model.ids import ConsumerId, Sequence, WallMs
from delosmq.model.message import ANYCAST, MULTICAST, Message
from delosmq.model.settings import BrokerSettings, DivertSettings, JournalSettings, QueueSettings, Transformer
from tests.engine.recount import check, recount
from tests.engine.routing_support import RoutingBench
from tests.engine.support import Bench, Collector, anycast
from tests.engine.test_transactions import Waiter
from tests.memory import living

MANY = 450


def words(count: int, start: int = 0) -> str:
    return " ".join(f"m{k}" for k in range(start, start + count))


def send_in(bench: Bench, transaction: Transaction, address: str, bodies: str, **fields: int) -> None:
    for body in bodies.split():
        bench.broker.transactions.send(transaction, bench.message(address, body, **fields))  # type: ignore[arg-type]


# -- settings that change under consumers ---------------------------------------------------------------------------


def test_a_queue_does_not_become_non_destructive_under_its_consumers() -> None:
    bench = Bench(queues=(anycast("q"),))
    consumer, port = bench.consume("q")
    bench.send("q", "a b")
    bench.run()
    with pytest.raises(MisuseError, match=r"DMQ2643.*'q'.*close"):
        bench.broker.resources.update_queue("q", non_destructive=True)
    assert bench.broker.consumers.acknowledge(consumer, port.slots[0].sequence)
    bench.broker.consumers.close(consumer)
    bench.broker.resources.update_queue("q", non_destructive=True)
    _, port = bench.consume("q")
    bench.run()
    assert (port.bodies, bench.pending("q")) == ("b", "b")
    check(bench)


def test_a_queue_that_is_exclusive_no_longer_serves_all_its_consumers() -> None:
    bench = Bench(queues=(QueueSettings("q", "q", ANYCAST, exclusive=True),))
    _, one = bench.consume("q")
    _, two = bench.consume("q")
    bench.send("q", "a b")
    bench.run()
    assert (one.bodies, two.bodies) == ("a b", "")
    bench.broker.resources.update_queue("q", exclusive=False)
    bench.send("q", "c d")
    bench.run()
    assert two.bodies != ""
    check(bench)


def test_a_queue_becomes_exclusive_under_its_consumers() -> None:
    bench = Bench(queues=(anycast("q"),))
    _, one = bench.consume("q")
    _, two = bench.consume("q")
    bench.send("q", "a b")
    bench.run()
    bench.broker.resources.update_queue("q", exclusive=True)
    bench.send("q", "c d e")
    bench.run()
    assert sorted((len(one.slots), len(two.slots))) == [1, 4]
    check(bench)


# -- borrowed messages ----------------------------------------------------------------------------------------------


def borrow() -> tuple[Bench, Consumer, Collector]:
    """A queue that keeps its messages ``a b``; its consumer has the first, and credit for no more."""
    bench = Bench(queues=(QueueSettings("q", "q", ANYCAST, non_destructive=True),))
    consumer, port = bench.consume("q", MessageCredit(1))
    bench.send("q", "a b")
    bench.run()
    return bench, consumer, port


def test_a_borrowed_message_acknowledged_in_a_transaction_makes_room_for_the_next() -> None:
    bench, consumer, port = borrow()
    transaction = bench.broker.transactions.begin("s")
    assert bench.broker.consumers.acknowledge(consumer, port.slots[0].sequence, transaction)
    bench.run()
    assert port.bodies == "a b"
    bench.broker.transactions.commit(transaction)
    check(bench)


def test_a_borrowed_message_that_its_reader_finds_expired_makes_room_for_the_next() -> None:
    bench, consumer, port = borrow()
    assert bench.broker.consumers.expire_delivered(consumer, port.slots[0].sequence)
    bench.run()
    assert port.bodies == "a b"
    check(bench)


# -- returns and transactions ---------------------------------------------------------------------------------------


def test_a_message_on_its_way_back_can_be_acknowledged_in_a_transaction() -> None:
    bench = Bench(queues=(anycast("q"),))
    consumer, port = bench.consume("q")
    bench.send("q", words(1_500))
    bench.run()
    port.room = False
    bench.broker.consumers.reject_through(consumer, port.slots[-1].sequence)
    transaction = bench.broker.transactions.begin("s")
    assert bench.broker.consumers.acknowledge(consumer, port.slots[0].sequence, transaction)
    bench.run()
    bench.broker.transactions.commit(transaction)
    bench.run()
    assert bench.counts("q")[0] == 1_499
    check(bench)


def test_a_closed_consumer_whose_messages_are_on_their_way_back() -> None:
    bench = Bench(queues=(anycast("q"),))
    consumer, port = bench.consume("q")
    bench.send("q", words(1_500))
    bench.run()
    bench.broker.consumers.close(consumer)
    transaction = bench.broker.transactions.begin("s")
    assert bench.broker.consumers.acknowledge(consumer, port.slots[0].sequence, transaction)
    assert bench.broker.consumers.acknowledge(consumer, port.slots[1].sequence)
    bench.run()
    bench.broker.transactions.rollback(transaction)
    bench.run()
    assert bench.pending("q").split()[:2] == ["m0", "m2"]
    check(bench)


def test_a_commit_of_what_was_on_its_way_back_when_it_was_acknowledged() -> None:
    bench = Bench(queues=(anycast("q"),))
    consumer, port = bench.consume("q")
    bench.send("q", words(1_500))
    bench.run()
    bench.broker.consumers.close(consumer)
    transaction = bench.broker.transactions.begin("s")
    assert bench.broker.consumers.acknowledge(consumer, port.slots[0].sequence, transaction)
    bench.run()
    bench.broker.transactions.commit(transaction)
    bench.run()
    assert bench.pending("q").split()[0] == "m1"
    check(bench)


def test_two_subscriptions_of_a_queue_in_one_transaction_roll_back_in_order() -> None:  # RING-7
    bench = Bench(queues=(anycast("q"),))
    one, first = bench.consume("q")
    two, second = bench.consume("q")
    bench.send("q", "a b c d")
    bench.run()
    transaction = bench.broker.transactions.begin("s")
    for consumer, port in ((one, first), (two, second)):
        for slot in port.slots:
            assert bench.broker.consumers.acknowledge(consumer, slot.sequence, transaction)
    bench.broker.resources.update_queue("q", paused=True)
    bench.broker.transactions.rollback(transaction)
    assert bench.pending("q") == "a b c d"
    check(bench)


def test_a_queue_is_deleted_under_a_transaction() -> None:
    for ending in ("commit", "rollback"):
        bench = Bench(queues=(anycast("q"), anycast("r")))
        consumer, port = bench.consume("q")
        bench.send("q", "a b c")
        bench.run()
        transaction = bench.broker.transactions.begin("s")
        bench.broker.consumers.acknowledge(consumer, port.slots[0].sequence, transaction)
        send_in(bench, transaction, "r", "x")
        bench.broker.resources.delete_queue("q")
        bench.run()
        if ending == "commit":
            bench.broker.transactions.commit(transaction)
        else:
            bench.broker.transactions.rollback(transaction)
        bench.run()
        assert bench.pending("r") == ("x" if ending == "commit" else "")
        recount(bench.broker)
        assert bench.broker.used_bytes == (
            0 if ending == "rollback" else bench.broker.addresses["r"].account.used_bytes
        )
        again = bench.restart()
        recount(again.broker)


def test_a_queue_is_deleted_under_a_large_commit() -> None:
    bench = Bench(queues=(QueueSettings("one", "t", MULTICAST), QueueSettings("two", "t", MULTICAST)))
    transaction = bench.broker.transactions.begin("s")
    send_in(bench, transaction, "t", words(MANY))
    waiter = Waiter()
    bench.broker.transactions.commit(transaction, waiter)
    for _ in range(6):
        bench.broker.tick()
    bench.broker.resources.delete_queue("one")
    bench.run()
    assert waiter.ended == [None]
    assert bench.broker.queues["two"].message_count == MANY
    bench.settings = BrokerSettings(queues=(QueueSettings("two", "t", MULTICAST),))
    check(bench)


def test_a_queue_is_deleted_under_a_prepared_branch_that_sends_to_it_and_acknowledges_in_it() -> None:
    for restart in (False, True):
        bench = Bench(queues=(anycast("q"), anycast("r")))
        consumer, port = bench.consume("q")
        bench.send("q", "a b c")
        bench.run()
        branch = bench.broker.branches.start(b"x")
        bench.broker.consumers.acknowledge(consumer, port.slots[0].sequence, branch)
        send_in(bench, branch, "q", "d")
        send_in(bench, branch, "r", "x")
        bench.broker.branches.end(b"x")
        assert bench.broker.branches.prepare(b"x")
        bench.broker.resources.delete_queue("q")
        bench.run()
        if restart:
            bench.settings = BrokerSettings(queues=(anycast("r"),))
            bench = bench.restart()
        assert bench.broker.branches.commit(b"x", False)
        bench.run()
        recount(bench.broker)
        assert bench.pending("r") == "x"
        assert bench.broker.used_bytes == bench.broker.addresses["r"].account.used_bytes
        again = bench.restart()
        recount(again.broker)


def test_a_large_commit_into_a_last_value_queue_does_not_replace_what_was_sent_after_it() -> None:
    bench = RoutingBench(BrokerSettings(queues=(QueueSettings("q", "q", ANYCAST, last_value_key="k"), anycast("r"))))
    transaction = bench.broker.transactions.begin("s")
    for k in range(MANY):
        message = bench.with_properties("q", f"old{k}", {"k": str(k)})
        bench.broker.transactions.send(transaction, message)
    waiter = Waiter()
    bench.broker.transactions.commit(transaction, waiter)
    while transaction.first_sequence == 0:
        bench.broker.tick()
    bench.put("q", "new", k=str(MANY - 1))
    bench.run()
    assert waiter.ended == [None]
    assert bench.pending("q").split()[-2:] == [f"old{MANY - 2}", "new"]
    check(bench)


def test_a_large_commit_into_a_ring() -> None:  # RING-1
    bench = Bench(queues=(anycast("q", ring_size=3),))
    transaction = bench.broker.transactions.begin("s")
    send_in(bench, transaction, "q", words(MANY))
    waiter = Waiter()
    bench.broker.transactions.commit(transaction, waiter)
    while transaction.first_sequence == 0:
        bench.broker.tick()
    bench.send("q", "new")
    bench.run()
    assert bench.pending("q").split()[-1] == "new"
    assert bench.counts("q")[0] == 3
    check(bench)


def test_a_transaction_sends_what_is_due_later_into_a_ring() -> None:  # RING-9
    bench = Bench(queues=(anycast("q", ring_size=2),))
    transaction = bench.broker.transactions.begin("s")
    send_in(bench, transaction, "q", "a b", due_in_ms=1_000)
    send_in(bench, transaction, "q", "c d e")
    bench.broker.transactions.commit(transaction)
    bench.run()
    assert (bench.pending("q"), bench.scheduled("q")) == ("d e", "a b")
    check(bench)
    bench.later(1_000)
    assert bench.pending("q") == "d e"
    check(bench)


def test_what_became_due_before_its_large_commit_waits_no_longer() -> None:
    bench = Bench(queues=(anycast("q"),))
    transaction = bench.broker.transactions.begin("s")
    send_in(bench, transaction, "q", words(MANY))
    send_in(bench, transaction, "q", "due", due_in_ms=10)
    bench.clock.now_ms += 20
    waiter = Waiter()
    bench.broker.transactions.commit(transaction, waiter)
    while not waiter.ended:
        bench.broker.tick()
    assert (bench.pending("q").split()[-1], bench.scheduled("q")) == ("due", "")
    check(bench)


def test_a_divert_s_copy_in_a_transaction_names_the_id_of_the_original() -> None:
    divert = DivertSettings("d", "q", ("copies",))
    bench = RoutingBench(BrokerSettings(queues=(anycast("q"), anycast("copies")), diverts=(divert,)))
    transaction = bench.broker.transactions.begin("s")
    send_in(bench, transaction, "q", "a")
    bench.broker.transactions.commit(transaction)
    original = bench.broker.queues["q"].pending.head()
    copy = bench.broker.queues["copies"].pending.head()
    assert original is not None
    assert copy is not None
    assert copy.message.annotations is not None
    assert copy.message.annotations["_AMQ_ORIG_MESSAGE_ID"] == str(original.message.message_id)
    check(bench)


@pytest.mark.parametrize("crashed", [False, True])
@pytest.mark.parametrize("prepared", [False, True])
def test_a_large_or_prepared_one_s_copies_name_them_too(prepared: bool, crashed: bool) -> None:
    twice = DivertSettings("d", "q", ("copies", "more"))
    again = DivertSettings("e", "copies", ("last",), transformer=Transformer(rename={"_AMQ_ORIG_MESSAGE_ID": "of"}))
    names = ("q", "copies", "more", "last")
    settings = BrokerSettings(queues=tuple(anycast(name) for name in names), diverts=(twice, again))
    bench = RoutingBench(settings)
    count = 3 if prepared else SMALL_OPERATIONS + 1
    transaction = bench.broker.branches.start(b"x") if prepared else bench.broker.transactions.begin("s")
    send_in(bench, transaction, "q", " ".join(str(k) for k in range(count)))
    if prepared:
        bench.broker.branches.end(b"x")
        assert bench.broker.branches.prepare(b"x")
        if crashed:
            bench = bench.restart()
        bench.broker.branches.commit(b"x", False)
    else:
        bench.broker.transactions.commit(transaction)
    bench.run()
    check_names(bench, count)
    if crashed:
        check_names(bench.restart(), count)
    check(bench)


def check_names(bench: Bench, count: int) -> None:
    names = ("q", "copies", "more", "last")
    ids = {name: [slot.message.message_id for slot in bench.broker.queues[name].pending.in_order()] for name in names}
    assert named_in(bench, "copies", "_AMQ_ORIG_MESSAGE_ID") == named_in(bench, "more", "_AMQ_ORIG_MESSAGE_ID")
    assert named_in(bench, "copies", "_AMQ_ORIG_MESSAGE_ID") == ids["q"]
    assert named_in(bench, "last", "of") == ids["copies"]
    assert len(ids["last"]) == count


def named_in(bench: Bench, queue: str, name: str) -> list[int]:
    annotations = [slot.message.annotations or {} for slot in bench.broker.queues[queue].pending.in_order()]
    return [int(each[name]) for each in annotations]


# -- purge ----------------------------------------------------------------------------------------------------------


def test_a_purge_takes_what_is_older_though_newer_ones_are_due_first() -> None:
    bench = Bench(queues=(anycast("q"),))
    bench.send("q", words(700))
    bench.send("q", words(20), due_in_ms=60_000)
    work = bench.broker.resources.purge_queue("q")
    assert work.removed < 720
    bench.send("q", "later", due_in_ms=70_000)
    bench.send("q", "soon", due_in_ms=1)
    bench.clock.now_ms += 1
    bench.run()
    assert work.done
    assert (bench.pending("q"), bench.scheduled("q")) == ("soon", "later")
    check(bench)


def test_a_purge_leaves_what_a_transaction_holds_and_it_comes_back() -> None:
    bench = Bench(queues=(anycast("q"),))
    consumer, port = bench.consume("q", MessageCredit(1))
    bench.send("q", "a b c")
    bench.run()
    branch = bench.broker.branches.start(b"x")
    bench.broker.consumers.acknowledge(consumer, port.slots[0].sequence, branch)
    bench.broker.branches.end(b"x")
    bench.broker.branches.prepare(b"x")
    bench.broker.consumers.close(consumer)
    bench.broker.resources.purge_queue("q")
    bench.run()
    assert bench.counts("q") == (1, 1, 0)
    check(bench)
    bench.broker.branches.rollback(b"x")
    bench.run()
    assert bench.pending("q") == "a"
    check(bench)


# -- groups, exclusive owners, delays -------------------------------------------------------------------------------


def test_a_rollback_under_an_exclusive_owner_with_a_delay_keeps_the_books() -> None:
    bench = Bench(queues=(anycast("q"),), settings={"#": {"redelivery_delay": 100, "max_delivery_attempts": 2}})
    port = Collector()
    owner = bench.broker.consumers.subscribe(
        "q", port, OpenCredit(), routing=ANYCAST, options=ConsumerOptions(exclusive=True, priority=5)
    )
    bench.send("q", "a b c")
    bench.run()
    transaction = bench.broker.transactions.begin("s")
    for slot in list(port.slots):
        bench.broker.consumers.acknowledge(owner, slot.sequence, transaction)
    bench.broker.transactions.rollback(transaction)
    bench.run()
    assert bench.counts("q") == (3, 0, 3)
    check(bench)
    bench.later(100)
    assert port.bodies == "a b c a b c"
    bench.broker.consumers.reject_through(owner, port.slots[-1].sequence)
    bench.run()
    assert bench.counts("q") == (0, 0, 0)
    check(bench)


# -- wildcards, subscriptions, deletion -----------------------------------------------------------------------------


def test_what_a_wildcard_queue_holds_counts_against_the_address_it_was_sent_to() -> None:
    bench = RoutingBench()
    consumer, _ = bench.listen("news.#")
    bench.send("news.eu", "a b", routing=MULTICAST)
    bench.run()
    check(bench)
    assert bench.broker.addresses["news.eu"].account.used_messages == 2
    bench.broker.consumers.close(consumer)
    bench.run()
    assert bench.broker.used_bytes == 0
    check(bench)


def test_duplicate_ids_go_with_their_address() -> None:
    bench = Bench(settings={"#": {"auto_delete_queues_delay": 0}})
    message = bench.message("t", "a")
    message.duplicate_id = b"one"
    bench.broker.resources.create_address("t", {MULTICAST})
    bench.broker.producers.send(message, routing=MULTICAST)
    assert bench.broker.duplicate_ids.count("t") == 1
    bench.broker.resources.delete_address("t")
    bench.run()
    assert bench.broker.duplicate_ids.count("t") == 0
    assert bench.restart().broker.duplicate_ids.count("t") == 0


# -- long work and memory -------------------------------------------------------------------------------------------


def test_many_consumers_that_go_at_once_give_back_in_slices_that_interleave() -> None:  # RING-6
    consumers, each = 20, 1_200
    bench = Bench(queues=(anycast("q", durable=False),))
    ports = [bench.consume("q") for _ in range(consumers)]
    bench.send("q", words(consumers * each), durable=False)
    bench.run()
    for consumer, _ in ports:
        bench.broker.consumers.close(consumer)
    ticks = 0
    while bench.broker.queues["q"].pending.count < consumers * each:
        before = bench.broker.queues["q"].pending.count
        bench.broker.tick()
        assert bench.broker.queues["q"].pending.count - before <= 4 * 500
        ticks += 1
    assert ticks > 2
    assert bench.pending("q") == words(consumers * each)
    check(bench)


def test_a_return_begins_where_its_consumer_returned_last_whoever_returned_meanwhile() -> None:
    pending = PendingSlots()
    slots: list[Slot] = []
    for sequence in range(1_000):
        message = Message("q", "stomp/12", b"", b"", timestamp_ms=WallMs(1))
        message.sequence = Sequence(sequence)
        slots.append(Slot(message, False))
    near: dict[int, Slot] = {}
    # Two consumers take turns, far from each other.
    steps = 0
    for at in range(499, -1, -1):
        for base in (0, 500):
            slot = slots[base + at]
            steps += pending.put_back(slot, near.get(base))
            near[base] = slot
    assert steps <= 1_000  # one each
    assert pending.in_order() == slots


def test_a_destination_that_is_gone_is_not_remembered_until_what_it_held_had_been_due() -> None:
    bench = Bench()
    before = len(living(Queue))
    for k in range(3_000):
        bench.broker.resources.create_temporary(f"reply{k}", ANYCAST, "c")
        bench.send(f"reply{k}", "x", due_in_ms=10**9 + k)
        bench.broker.resources.delete_temporary("c", f"reply{k}")
        bench.broker.tick()
    bench.run()
    assert len(living(Queue)) <= before + 2_048
    check(bench)


def test_a_sweep_of_due_times_loses_none() -> None:  # RING-9
    bench = Bench(queues=(anycast("q", durable=False),))
    for k in range(1_100):
        bench.send("q", f"m{k}", due_in_ms=5_000 - k, durable=False)
    bench.later(4_000)
    assert bench.counts("q") == (1_100, 0, 1_000)
    bench.later(1_000)
    assert bench.counts("q") == (1_100, 0, 0)
    check(bench)


def test_each_reader_of_a_large_queue_gets_on() -> None:  # EXCL-3
    bench = Bench(queues=(QueueSettings("q", "q", ANYCAST, non_destructive=True),))
    bench.send("q", words(1_000))
    ports = [bench.consume("q")[1] for _ in range(4)]
    for _ in range(3):
        bench.broker.tick()
    assert min(len(port.slots) for port in ports) > 0
    check(bench)


def test_what_left_a_last_value_queue_is_not_kept_for_its_key() -> None:
    bench = RoutingBench(BrokerSettings(queues=(QueueSettings("q", "q", ANYCAST, last_value_key="k"),)))
    consumer, port = bench.listen("q", routing=ANYCAST)
    for k in range(100):
        bench.put("q", f"m{k}", k=str(k))
    bench.take_all(consumer, port)
    values = bench.broker.queues["q"].last_values
    assert values is not None
    assert values.entry_count == 0
    check(bench)


def test_groups_are_forgotten_when_clients_make_up_too_many() -> None:  # EXCL-4
    groups = MessageGroups(PendingSlots(), -1, classic=False)
    owner = Consumer(ConsumerId(1), Collector(), OpenCredit())
    for k in range(REMEMBERED_OTHERWISE + 10):
        message = Message("q", "stomp/12", b"", b"", timestamp_ms=WallMs(1), group_id=str(k))
        forgotten = groups.assign(message, owner)
        if forgotten is not None:
            groups.release(forgotten)
    assert groups.count == REMEMBERED_OTHERWISE
    assert owner.owned_groups == REMEMBERED_OTHERWISE


# -- what a batch holds ---------------------------------------------------------------------------------------------


FILE_BYTES = 1 << 20


def journaled(*names: str, diverts: tuple[DivertSettings, ...] = (), **address: object) -> RoutingBench:
    settings = BrokerSettings(
        journal=JournalSettings("journal", file_size_bytes=FILE_BYTES),
        queues=tuple(anycast(name) for name in names),
        diverts=diverts,
    )
    return RoutingBench(settings, addresses={"#": address} if address else None)


def test_the_largest_message_after_smaller_ones_in_one_transaction() -> None:  # ACK-5
    bench = journaled("q")
    waiter = Waiter()
    transaction = bench.broker.transactions.begin("s")
    largest = largest_batch_bytes(FILE_BYTES) - record_room_bytes(bench.settings.journal)
    for size in (FILE_BYTES // 8 - 100, largest):
        send_in(bench, transaction, "q", "x" * size)
    assert not bench.broker.transactions.commit(transaction, waiter)
    bench.run()
    assert waiter.ended == [None]
    # A journal refuses larger batches.
    most = max(sum(map(len, metas + bodies)) for _, metas, bodies in bench.store.batches)
    assert most <= largest_batch_bytes(FILE_BYTES)
    check(bench)


def test_a_dead_letter_goes_where_its_batch_has_room_for_the_copies() -> None:  # ACK-4
    bench = journaled(
        "q", "DLQ", "c1", "c2", diverts=(DivertSettings("d", "DLQ", ("c1", "c2")),), dead_letter_address="DLQ"
    )
    largest = ordinary_batch_bytes(FILE_BYTES) - record_room_bytes(bench.settings.journal)
    bench.broker.producers.send(bench.message("q", "x" * (largest // 2 - 100)))
    consumer, port = bench.consume("q")
    bench.run()
    bench.broker.consumers.reject(consumer, port.slots[0].sequence, poison=True)
    assert [bench.broker.queues[name].message_count for name in ("q", "DLQ", "c1", "c2")] == [0, 1, 1, 0]
    check(bench)


def test_a_transaction_leaves_no_claim_on_the_queues_it_sent_to() -> None:
    bench = Bench(queues=(anycast("q"),))
    for count in (1, MANY):
        transaction = bench.broker.transactions.begin("s")
        send_in(bench, transaction, "q", words(count))
        bench.broker.transactions.commit(transaction, Waiter())
        bench.run()
        assert bench.broker.queues["q"].pending_commits == 0
    check(bench)
