"""What clients and operators at the engine's interface do: one step each, told in words; "" for nothing."""

from collections.abc import Callable
from random import Random
from typing import Any

from delosmq.engine.lifecycle.purge import Purge
from delosmq.engine.lifecycle.subscriptions import SubscriptionOptions
from delosmq.engine.log.batch_limits import largest_batch_bytes
from delosmq.engine.queues.consumer import ConsumerOptions, consumers_of
from delosmq.engine.routing.parts import record_room_bytes
from delosmq.engine.routing.send_result import BLOCKED, DUPLICATE, ROUTED
from delosmq.engine.transactions.transaction import ACTIVE, TransactionError
from delosmq.engine.transactions.xa import XaError
from delosmq.model.errors import TMSUCCESS, LimitError, MisuseError
from delosmq.model.settings import JournalSettings
from delosmq.selectors.selector import parse_selector
from tests.simulation.broker_world import GROUP
from tests.simulation.whole.catalogue import CROWDED, DEAD, EXPIRED, PLACES, SINKS
from tests.simulation.whole.life import Done, Life, Listener, Turn, Work
from tests.simulation.whole.oracle import Outcome, original
from tests.simulation.whole.recount import find_all
from tests.simulation.whole.times import DAYS_400_MS

ATTEMPTS = 3
"""`max-delivery-attempts` of all queues but the sinks."""
TOLD = 5
"""Of many messages, so many are told one by one."""
SUBSCRIPTIONS = ("sub-a", "sub-b", "sub-c", "sub-d")
OWNED = ("chief", "chiefs")
STAND_BY = 4
IDS = 6
NOT_HELD = "what a client has and did not answer is no longer in delivery to it"
LARGE_FROM = 0.9
"""Of the largest bodies of a history, those above this share are made nearly as large as the journal takes."""
LARGE_LESS = 128
NO_PLACE = "DMQ3027"
OUTCOMES = {ROUTED: "", BLOCKED: ", refused for want of space", DUPLICATE: ", refused as a duplicate"}


def _fields(life: Life, rng: Random, address: str, large_bytes: int) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "durable": rng.random() < 0.85,
        "priority": rng.choice([4, 4, 4, 9, 0]),
        "size_bytes": rng.choice([10, 10, 300, rng.randrange(large_bytes)]),
    }
    scheduled = next(place.scheduled for place in life.catalogue.places if place.address == address)
    if scheduled and rng.random() < 0.12:
        fields["due_at_ms"] = life.clock.wall_ms() + rng.choice([1, 400, 5_000])
    if rng.random() < 0.1:
        fields["expires_at_ms"] = life.clock.wall_ms() + rng.choice([1, 1_000, 20_000])
    if address == "teams":
        fields["group_id"] = rng.choice(["", "x", "y", "z"])
        fields["group_sequence"] = rng.choice([0, 0, 0, -1]) if fields["group_id"] else 0
        fields["priority"] = 4
    if rng.random() < 0.15:
        fields["duplicate_id"] = b"id%d" % rng.randrange(IDS)
        fields["durable"] = True
    return fields


def _words(number: int, message: Any) -> str:
    words = [f"message {number} to {message.address}", "durable" if message.durable else "not durable"]
    words.append(f"priority {message.priority}")
    words.append(f"{len(message.body)} bytes")
    for name in ("due_at_ms", "expires_at_ms", "group_id", "group_sequence", "duplicate_id"):
        value = getattr(message, name)
        if value:
            words.append(f"{name} {value}")
    return ", ".join(words)


def _address(life: Life, rng: Random) -> str:
    return life.catalogue.favourite if rng.random() < 0.5 else rng.choice(life.catalogue.addresses)


def _has_copies(life: Life, address: str) -> bool:
    """Whether the journal would have to take a message of this address more than once at a time."""
    return any(place.address == address and place.diverts for place in life.catalogue.places)


def largest_message_bytes(journal: JournalSettings) -> int:
    return largest_batch_bytes(journal.file_size_bytes) - record_room_bytes(journal)


def send(life: Life, rng: Random) -> str:
    address = _address(life, rng)
    fields = _fields(life, rng, address, life.catalogue.large_bytes)
    if fields["size_bytes"] > life.catalogue.large_bytes * LARGE_FROM and not _has_copies(life, address):
        # Most of a segment, now and then.
        fields["size_bytes"] = (
            largest_message_bytes(life.real.settings.journal) - LARGE_LESS - fields["size_bytes"] % LARGE_LESS
        )
    number, message, queues = life.make(address, rng, **fields)
    try:
        outcome = life.put(number, message, queues)
    except LimitError as error:
        if error.code != NO_PLACE:
            raise
        life.knowledge.refused.add(number)
        return f"send {_words(number, message)}, refused for want of disk"
    return f"send {_words(number, message)}{OUTCOMES.get(outcome, ', reaching no queue')}"


# -- consumers ---------------------------------------------------------------------------------------------------


def subscribe(life: Life, rng: Random) -> str:
    names = [name for name in life.names() if not name.startswith("sub-")]
    if len(life.listeners) >= 6:
        return ""
    favourites = [queue.name for queue in PLACES[life.catalogue.favourite].queues if queue.name in names]
    name = rng.choice(favourites if favourites and rng.random() < 0.5 else names)
    options = ConsumerOptions()
    kind = ""
    if rng.random() < 0.12 and name not in ("orders.archive", "teams"):
        options, kind = ConsumerOptions(browser=True), " to browse"
    elif rng.random() < 0.2 and name in ("red", "late", "board", "feed"):
        options, kind = ConsumerOptions(selector=parse_selector("color = 'red' OR key = 'b'")), " with a selector"
    elif rng.random() < 0.2 and name in ("ranks", "late", "solo"):
        options, kind = ConsumerOptions(priority=rng.choice([1, 5])), " with a priority"
    elif name in OWNED:
        options, kind = _exclusive(rng)
    if name == "orders.archive" and GROUP in life.broker.leases.groups:
        return ""
    by_bytes = rng.random() < 0.2
    credit = rng.choice([500, 5_000]) if by_bytes else rng.choice([20, 20, 3] if life.catalogue.slice else [1, 3, 20])
    life.listen(name, credit, options=options, by_bytes=by_bytes)
    return f"subscribe to {name}{kind} with a credit of {credit}{' bytes' if by_bytes else ''}"


def _exclusive(rng: Random) -> tuple[ConsumerOptions, str]:
    priority, exclusive = rng.choice([0, 0, 1, 5, 127]), rng.random() < 0.7
    return (
        ConsumerOptions(priority=priority, exclusive=exclusive),
        f" with priority {priority}{', exclusively' if exclusive else ''}",
    )


def succeed(life: Life, rng: Random) -> str:
    """The owner of a queue goes when some stand by; else there is one more of these."""
    able = [name for name in OWNED if name in life.broker.queues]
    if not able:
        return ""
    name = rng.choice(able)
    here = [listener for listener in life.listeners if listener.queue == name]
    if len(here) < STAND_BY:
        options, kind = _exclusive(rng)
        life.listen(name, 3, options=options)
        return f"subscribe to {name}{kind} with a credit of 3"
    owner = life.knowledge.owners.owner(name)
    first = next((listener for listener in here if listener.consumer is owner), here[0])
    life.part(first)
    return f"the {'owner' if owner is not None else 'first consumer'} of {name} goes"


def subscribe_durably(life: Life, rng: Random) -> str:
    name = rng.choice(SUBSCRIPTIONS)
    queue = life.broker.queues.get(name)
    if "news" not in life.broker.addresses or (queue is not None and queue.message_count != queue.pending.count):
        return ""
    shared = rng.random() < 0.5
    # What it has had before would come again.
    asks = not life.knowledge.knows(name)
    if asks:
        life.knowledge.late[name] = life.broker.log.position
    options = SubscriptionOptions(name=name, durable=True, shared=shared, retroactive=asks, user="sam")
    try:
        life.listen(name, 5, subscription=options)
    except MisuseError:
        life.readers = [r for r in life.readers if r.consumer is not None]
        return f"{name} refuses another consumer"
    return f"subscribe durably to news as {name}{', asking for what was kept' if asks else ''}"


def unsubscribe(life: Life, rng: Random) -> str:
    name = rng.choice(SUBSCRIPTIONS)
    queue = life.broker.queues.get(name)
    if queue is None or queue.holders or queue.delivering.count or queue.pending_commits:
        return ""
    excuse_all(life, name)
    life.broker.resources.unsubscribe(name)
    return f"end the subscription {name}"


def leave(life: Life, rng: Random) -> str:
    if not life.listeners:
        return ""
    listener = rng.choice(life.listeners)
    life.part(listener)
    return f"a consumer of {listener.queue} goes"


def _able(life: Life, rng: Random) -> tuple[Listener, int] | None:
    able = [listener for listener in life.listeners if listener.seen]
    if not able:
        return None
    listener = rng.choice(able)
    return listener, rng.randrange(len(listener.seen))


def acknowledge(life: Life, rng: Random) -> str:
    chosen = _able(life, rng)
    if chosen is None:
        return ""
    listener, index = chosen
    slot = listener.seen[index]
    if rng.random() < 0.4:
        return _acknowledge_far(life, listener, index)
    slots = [] if listener.borrows else [slot]
    del listener.seen[index]
    assert life.broker.consumers.acknowledge(listener.subscribed, slot.sequence), NOT_HELD
    life.answered(listener.queue, slots)
    return f"acknowledge message at {slot.sequence} of {listener.queue}"


def acknowledge_far(life: Life, rng: Random) -> str:
    chosen = _able_to_do_much(life, rng)
    return "" if chosen is None else _acknowledge_far(life, *chosen)


def _able_to_do_much(life: Life, rng: Random) -> tuple[Listener, int] | None:
    most = max(life.listeners, key=lambda listener: len(listener.seen), default=None)
    if most is None or not most.seen:
        return None
    return most, max(0, len(most.seen) - rng.choice([1, 1, 2]))


def _acknowledge_far(life: Life, listener: Listener, index: int) -> str:
    consumer = listener.subscribed
    if consumer.under_way is not None:
        return ""  # its client waits
    last = listener.seen[index]
    slots = listener.through(last.sequence)
    listener.seen = listener.seen[index + 1 :]
    assert life.broker.consumers.acknowledge_through(consumer, last.sequence), NOT_HELD
    taking = listener.subscribed.under_way
    if taking is None:
        life.answered(listener.queue, slots)
        return f"acknowledge all through {last.sequence} of {listener.queue}"
    knowledge = life.knowledge
    references = {original(listener.queue, slot) for slot in slots}
    outcome = Outcome(set(), {original(listener.queue, slot) for slot in slots if slot.recorded})
    knowledge.ack_issued.update(references)
    knowledge.commits.append(outcome)

    def ended(done: bool) -> None:
        if done:
            life.confirm(lambda: knowledge.ack_confirmed.update(references))
        else:
            assert knowledge.was_full, "an acknowledgement fails without a reason"
            knowledge.commits.remove(outcome)

    life.opaque += 1
    taking.waiter = Done(life, ended)
    return f"acknowledge all through {last.sequence} of {listener.queue}, in slices"


def reject(life: Life, rng: Random) -> str:
    chosen = _able(life, rng)
    if chosen is None:
        return ""
    listener, index = chosen
    if listener.borrows:
        return ""
    slot = listener.seen.pop(index)
    listener.rejected.add(slot.sequence)
    poison = rng.random() < 0.1
    assert life.broker.consumers.reject(listener.subscribed, slot.sequence, poison=poison), NOT_HELD
    return f"return {slot.sequence} to {listener.queue}{' as poison' if poison else ''}"


# -- transactions ------------------------------------------------------------------------------------------------


def begin(life: Life, rng: Random) -> str:
    if len(life.work) >= 3:
        return ""
    if rng.random() < 0.5:
        life.work.append(Work(life.broker.transactions.begin("client"), None))
        return "begin a transaction"
    xid = b"xid%d" % life.number()
    life.work.append(Work(life.broker.branches.start(xid, user=rng.choice(("", "sam", "eve"))), xid))
    return f"begin the branch {xid.decode()}"


def _open_work(life: Life, rng: Random) -> Work | None:
    able = [work for work in life.work if work.is_free]
    return rng.choice(able) if able else None


def send_in_transaction(life: Life, rng: Random, most: int = 3) -> str:
    work = _open_work(life, rng)
    if work is None:
        return ""
    words = []
    for _ in range(rng.randint(1, most)):
        address = _address(life, rng)
        number, message, queues = life.make(address, rng, **_fields(life, rng, address, 3_000))
        life.knowledge.units[number] = -work.transaction.id
        outcome = life.broker.transactions.send(work.transaction, message)
        words.append(_words(number, message) + OUTCOMES.get(outcome, ""))
        if outcome == ROUTED and not work.spoiled:
            work.sends.append((number, queues, message))
        else:
            life.knowledge.refused.add(number)
            work.spoiled = work.spoiled or outcome == DUPLICATE
    more = f"; {len(words) - TOLD} more" if len(words) > TOLD else ""
    return f"in transaction {work.transaction.id} send " + "; ".join(words[:TOLD]) + more


def send_many_in_transaction(life: Life, rng: Random) -> str:
    return send_in_transaction(life, rng, 250) if rng.random() < 0.2 else ""


def acknowledge_in_transaction(life: Life, rng: Random) -> str:
    work = _open_work(life, rng)
    chosen = _able(life, rng)
    if work is None or chosen is None:
        return ""
    listener, index = chosen
    if listener.borrows or listener.browses:
        return ""
    slot = listener.seen.pop(index)
    assert life.broker.consumers.acknowledge(listener.subscribed, slot.sequence, transaction=work.transaction), NOT_HELD
    work.acks.append((listener, slot))
    return f"in transaction {work.transaction.id} acknowledge {slot.sequence} of {listener.queue}"


def acknowledge_far_in_transaction(life: Life, rng: Random) -> str:
    work = _open_work(life, rng)
    chosen = _able_to_do_much(life, rng)
    if work is None or chosen is None:
        return ""
    listener, index = chosen
    consumer = listener.subscribed
    if listener.borrows or listener.browses or consumer.under_way is not None:
        return ""
    last = listener.seen[index]
    slots = listener.through(last.sequence)
    listener.seen = listener.seen[index + 1 :]
    assert life.broker.consumers.acknowledge_through(consumer, last.sequence, transaction=work.transaction), NOT_HELD
    work.acks += [(listener, slot) for slot in slots]
    return f"in transaction {work.transaction.id} acknowledge all through {last.sequence} of {listener.queue}"


def send_in_turn(life: Life, rng: Random) -> str:
    """A client that waits when there is no room, as others may, each for what another holds."""
    work = _open_work(life, rng)
    if work is None or work.spoiled:
        return ""
    address = rng.choice(CROWDED)
    number, message, queues = life.make(address, rng, durable=rng.random() < 0.8, size_bytes=10)
    life.knowledge.units[number] = -work.transaction.id
    words = life.put_in_turn(Turn(life, work, number, message, queues))
    return f"in transaction {work.transaction.id} send {_words(number, message)}{words}"


def _finish(life: Life, ask: Callable[[Done], bool], ended: Callable[[bool], None]) -> None:
    """Commits or prepares; ``ended`` runs when that is done, or has failed, at once or in a later turn."""
    life.opaque += 1
    try:
        done = ask(Done(life, ended))
    except (TransactionError, XaError):
        life.opaque -= 1
        ended(False)
        return
    if done:
        life.opaque -= 1
        ended(True)


def commit(life: Life, rng: Random) -> str:
    able = [work for work in life.work if work.is_free]
    if not able:
        return ""
    work = rng.choice(able)
    life.work.remove(work)
    broker = life.broker
    outcome = life.ending(work)
    sent, answered = outcome.sent, outcome.acknowledged
    keys = [(life.knowledge.ids[n], n) for n, _, _ in work.sends if n in life.knowledge.ids]

    def learn() -> None:
        life.knowledge.confirmed.update(sent)
        life.knowledge.ack_confirmed.update(answered)
        for key, number in keys:
            life.knowledge.ids_told.setdefault(key, life.knowledge.unit_of(number))

    def ended(done: bool) -> None:
        if not done:
            assert work.spoiled or keys or life.knowledge.was_full, "a commit fails without a reason"
            life.knowledge.commits.remove(outcome)
            life.take_back(work)
            return
        for key, number in keys:
            life.check_new(number, key)
        life.confirm(learn)

    xid = work.xid
    if xid is not None:
        broker.branches.end(xid, TMSUCCESS)
        _finish(life, lambda done: bool(broker.branches.commit(xid, True, done)), ended)
    else:
        _finish(life, lambda done: bool(broker.transactions.commit(work.transaction, done)), ended)
    return f"commit transaction {work.transaction.id}"


def rollback(life: Life, rng: Random) -> str:
    able = [work for work in life.work if work.xid is None or work.transaction.state == ACTIVE]
    if not able:
        return ""
    work = rng.choice(able)
    life.work.remove(work)
    life.take_back(work)
    if work.xid is None:
        life.broker.transactions.rollback(work.transaction)
    else:
        life.broker.branches.end(work.xid)
        life.broker.branches.rollback(work.xid)
    for listener, slot in work.acks:
        gone = original(listener.queue, slot) in life.knowledge.excused or slot.delivery_count >= ATTEMPTS
        assert slot.in_list is not None or gone, f"{slot.sequence} is not back in {listener.queue}"
    return f"roll transaction {work.transaction.id} back"


def prepare(life: Life, rng: Random) -> str:
    able = [work for work in life.work if work.xid is not None and work.is_free]
    if not able:
        return ""
    work = rng.choice(able)
    life.work.remove(work)
    xid = work.xid
    assert xid is not None
    answered = {original(listener.queue, slot) for listener, slot in work.acks}
    life.knowledge.ack_issued.update(answered)
    life.knowledge.branches[xid] = (work.sends, answered)

    def ended(done: bool) -> None:
        if done:
            # Its ids count with its commit, which can't be refused any more: as in Artemis others may take them.
            for number, _, _ in work.sends:
                life.knowledge.ids.pop(number, None)
            life.confirm(lambda: life.knowledge.prepared_told.add(xid))
            return
        spent = any(number in life.knowledge.ids for number, _, _ in work.sends)
        assert work.spoiled or spent or life.knowledge.was_full, "no reason not to prepare"
        life.take_back(work)

    life.broker.branches.end(xid)
    _finish(life, lambda done: bool(life.broker.branches.prepare(xid, done)), ended)
    return f"prepare {xid.decode()}"


def _rolled_back(life: Life, xid: bytes, *, by_operator: bool) -> None:
    life.knowledge.refused.update(number for number, _, _ in life.knowledge.branches[xid][0])
    if not by_operator:
        life.knowledge.decided_told.add(xid)


def decide(life: Life, rng: Random) -> str:
    """A coordinator, or an operator, decides on a branch in doubt."""
    branches = [b for b in life.broker.branches.prepared() if b.xid not in life.broker.branches.heuristics]
    if not branches or life.opaque:
        return ""
    branch = rng.choice(branches)
    xid = branch.xid
    assert xid is not None
    knowledge = life.knowledge
    knowledge.decided.add(xid)
    sends, answered = knowledge.branches[xid]
    by_operator = rng.random() < 0.15
    if rng.random() < 0.4:
        for promised in branch.acks:
            for listener in life.listeners:
                if listener.consumer is promised.consumer:
                    listener.rejected.add(promised.slot.sequence)  # it may be on its way back for some turns
        # Until that is stored a crash brings the branch back, and it may be committed all the same.
        life.confirm_after(
            lambda: life.broker.branches.heuristic_rollback(xid) if by_operator else life.broker.branches.rollback(xid),
            lambda: _rolled_back(life, xid, by_operator=by_operator),
        )
        return f"roll back {xid.decode()}{' by hand' if by_operator else ''}"
    sent = {(n, queue) for n, queues, m in sends if m.durable for queue in queues if queue in life.broker.queues}

    def learn() -> None:
        knowledge.confirmed.update(sent)
        knowledge.ack_confirmed.update(answered)
        if not by_operator:
            knowledge.decided_told.add(xid)

    ask = (
        life.broker.branches.heuristic_commit
        if by_operator
        else lambda x, done: life.broker.branches.commit(x, False, done)
    )

    def ended(done: bool) -> None:
        assert done, "a prepared branch can't be committed"
        life.confirm(learn)

    _finish(life, lambda done: bool(ask(xid, done)), ended)
    return f"commit {xid.decode()}{' by hand' if by_operator else ''}"


# -- leases ------------------------------------------------------------------------------------------------------


def lease(life: Life, rng: Random) -> str:
    queue = life.broker.queues.get("orders.archive")
    if queue is None or consumers_of(queue):
        return ""
    rows = rng.choice([1, 3, 10])
    try:
        life.lease(rows)
    except LimitError as error:
        if error.code != NO_PLACE:
            raise
        return "a lease is refused for want of disk"
    return f"lease {rows} messages of orders.archive"


# -- operators ---------------------------------------------------------------------------------------------------


def resize(life: Life, rng: Random) -> str:
    name = rng.choice([name for name in life.broker.queues if name in ("jobs", "prices", "ranks", "feed", "late")])
    size = rng.choice([-1, 1, 3, 10])
    if size > 0:
        queue = life.broker.queues[name]
        life.bounds[name] = max(size, queue.pending.count)
    life.broker.resources.update_queue(name, ring_size=size)
    return f"give {name} a ring of {size}"


def pause(life: Life, rng: Random) -> str:
    name = rng.choice(life.names())
    paused = life.broker.queues[name].paused
    life.broker.resources.update_queue(name, paused=not paused)
    return f"{'resume' if paused else 'pause'} {name}"


def purge(life: Life, rng: Random) -> str:
    name = rng.choice(life.names())
    excuse_all(life, name)
    queue = life.broker.queues[name]
    newest = queue.newest_sequence
    work: Purge = life.broker.resources.purge_queue(name)
    if work.done:
        left = [s for s in [*queue.pending.in_order(), *queue.scheduled.in_order()] if s.sequence <= newest]
        assert not left, f"a purge of {name} has left {len(left)} messages"
    return f"purge {name}"


def excuse_all(life: Life, name: str) -> None:
    """What a queue holds may go, by no fault."""
    knowledge = life.knowledge
    numbers = set(knowledge.bodies)
    knowledge.excused.update((number, name) for number in numbers)
    if name in (DEAD, EXPIRED):
        # Copies count for where they came from.
        life.knowledge.excuse(name, life.broker.queues[name].pending.in_order())


def delete(life: Life, rng: Random) -> str:
    able = [q.name for q in life.catalogue.configured if q.name in life.broker.queues and q.name != "jobs"]
    if not able or rng.random() < 0.5:
        return ""
    name = rng.choice(able)
    if name == "orders.archive":
        return ""  # its leases would be lost with it
    excuse_all(life, name)
    life.broker.resources.delete_queue(name)
    life.bounds.pop(name, None)
    return f"delete {name}"


def delete_sink(life: Life, rng: Random) -> str:
    """Where dead letters or expired messages go."""
    name = rng.choice(SINKS)
    queue = life.broker.queues.get(name)
    if queue is None:
        return ""
    # What transactions acknowledge there too.
    life.knowledge.excuse(name, [slot for place, slot, _ in find_all(life.real, life.holders) if place is queue])
    life.broker.resources.delete_queue(name)
    return f"delete {name}"


def create(life: Life, rng: Random) -> str:
    able = [*life.catalogue.configured, *life.catalogue.sinks]
    gone = [queue for queue in able if queue.name not in life.broker.queues]
    if not gone:
        return ""
    queue = rng.choice(gone)
    life.broker.resources.create_queue(queue)
    return f"create {queue.name} again"


def pass_time(life: Life, rng: Random) -> str:
    ms = rng.choice([1, 400, 1_100, 6_000, 70_000])
    life.clock.now_ms += ms
    return f"{ms} ms pass"


def set_clock(life: Life, rng: Random) -> str:
    """Somebody sets the wall clock of the machine; the monotonic one goes on."""
    life.times.note(life.real.queues)
    life.knowledge.drivers.clock_set = True  # from now on orphans may seem old
    by_ms = rng.choice([0, DAYS_400_MS, -DAYS_400_MS, 60_000, -60_000])
    life.set_clock.set(by_ms)
    return f"the wall clock is set to {by_ms} ms from the other"


def fill_disk(life: Life, rng: Random) -> str:
    if life.disk.free_bytes is None:
        life.disk.free_bytes = rng.choice([0, 1]) * 64 * 1024
        return "the disk becomes full"
    life.disk.free_bytes = None
    return "the disk has room again"
