"""What a broker holds, counted anew, against what it says of itself; and the durable part of it."""

from collections.abc import Iterator
from typing import NamedTuple

from delosmq.engine.addresses.binding_codec import (
    address_state_bytes,
    branch_state_bytes,
    group_state_bytes,
    part_state_bytes,
    published_state_bytes,
    queue_state_bytes,
)
from delosmq.engine.base.slots import Slot
from delosmq.engine.broker import EngineBroker
from delosmq.engine.queues.consumer import consumers_of
from delosmq.engine.queues.queue import Queue
from delosmq.engine.routing.held_messages import DEAD
from delosmq.engine.transactions.transaction import PREPARED
from delosmq.storage.journal.segments import Ledger
from tests.engine.recount import is_at_a_limit
from tests.simulation.broker_world import number_of
from tests.simulation.holders import Holders
from tests.simulation.whole.catalogue import LONGEST_DELAYS_MS
from tests.simulation.whole.times import SetClock

PENDING = "pending"
SCHEDULED = "scheduled"
HELD = "held"


class Found(NamedTuple):
    """A message somewhere in a queue."""

    queue: Queue
    slot: Slot
    state: str


class Row(NamedTuple):
    """A reference as the store knows it. ``deliveries`` is -1 while a prepared branch acknowledges it."""

    sequence: int
    number: int
    deliveries: int
    due_at_ms: int
    annotations: str
    delay_ms: int


class Durable(NamedTuple):
    """What a restart has to bring back."""

    queues: dict[str, list[Row]]
    settings: dict[str, str]
    leases: dict[str, object]
    ids: dict[str, list[bytes]]
    branches: dict[str, object]
    staged: dict[str, object]


def find_all(broker: EngineBroker, holders: Holders) -> Iterator[Found]:
    """Everything that is in a queue, each slot once."""
    for queue in broker.queues.values():
        for slot in queue.pending.in_order():
            yield Found(queue, slot, PENDING)
        for slot in queue.scheduled.in_order():
            yield Found(queue, slot, SCHEDULED)
    for queue, consumer in holders.of(broker):
        yield from _held(queue, consumer.in_delivery.head)


def _held(queue: Queue, head: Slot | None) -> Iterator[Found]:
    slot = head
    while slot is not None:
        yield Found(queue, slot, HELD)
        slot = slot.next


def check_counters(broker: EngineBroker, holders: Holders) -> None:
    """Counters of queues and accounts of addresses equal a recount. Only when nothing is under way in slices."""
    check_shares(broker)
    charged: dict[int, list[int]] = {}
    messages: set[int] = set()
    tallies = {name: [0] * 8 for name in broker.queues}
    for queue, slot, state in find_all(broker, holders):
        message = slot.message
        if id(message) not in messages:
            messages.add(id(message))
            charged.setdefault(id(message.account), []).append(message.charge_bytes)
        if queue.deleted:
            continue  # a transaction holds on to it, or it is about to go
        tally = tallies[queue.name]
        size, recorded = message.encoded_size_bytes, slot.recorded
        tally[0] += state == PENDING
        tally[1] += state == SCHEDULED
        tally[2] += state == HELD
        tally[3] += size
        tally[4] += size if state == HELD else 0
        tally[5] += recorded
        tally[6] += size if recorded else 0
        tally[7] += message.expires_at_ms > 0
    for name, tally in tallies.items():
        queue = broker.queues[name]
        said = [
            queue.pending.count,
            queue.scheduled.count,
            queue.delivering.count,
            queue.total.bytes,
            queue.delivering.bytes,
            queue.total.durable_count,
            queue.total.durable_bytes,
            queue.expiring_count,
        ]
        assert said == tally, f"queue {name} counts {said}, there are {tally}"
        assert queue.message_count == sum(tally[:3]), f"queue {name} counts {queue.message_count}, there are {tally}"
    for transaction in broker.transactions.open.values():
        for message in [*(s.message for s in transaction.sends), *(p.message for p in transaction.planned)]:
            if message.account is not None and id(message) not in messages:
                messages.add(id(message))
                charged.setdefault(id(message.account), []).append(message.charge_bytes)
    for address in broker.addresses.values():
        sizes = charged.pop(id(address.account), [])
        account = [address.account.used_messages, address.account.used_bytes]
        assert account == [len(sizes), sum(sizes)], f"address {address.name} counts {account} for {sizes}"
        charged.setdefault(0, []).extend(sizes)
        assert address.account.full == is_at_a_limit(address), f"address {address.name} is not as full as it says"
    known = broker.duplicate_ids.addresses.values()
    sizes = [sum(entry.memory_bytes for entry in ids.order) for ids in known]
    assert [ids.size_bytes for ids in known] == sizes, "caches of duplicate ids have another size than they say"
    assert broker.duplicate_ids.sizes.size_bytes == sum(sizes)
    total = sum(map(sum, charged.values()))
    assert broker.used_bytes == total, f"the broker counts {broker.used_bytes} bytes, there are {total}"


def check_shares(broker: EngineBroker) -> None:
    """How many addresses, queues and branches there are, and what they take of the state, in all and of each user,
    equal a recount; and the state takes no more than that."""
    shares: dict[str, list[int]] = {"": [0, 0, 0, 0]}
    for address in broker.addresses.values():
        size = 0 if address.auto_created else address_state_bytes(address.name, address.made_by)
        _add(shares, address.made_by, 1, size)
    for queue in broker.queues.values():
        size = queue_state_bytes(queue.settings, queue.made_by) if queue.settings.durable else 0
        _add(shares, queue.made_by, 0 if queue.internal else 1, size, len(queue.settings.filter))
        for consumer in consumers_of(queue):
            if consumer.options.selector is None:
                continue
            _add(shares, consumer.selector_user, 0, 0, consumer.options.selector_characters)
    for group in broker.leases.groups.values():
        _add(shares, group.made_by, 0, group_state_bytes(group.name, group.run, group.made_by, group.selector))
    makers = [(xid, branch.made_by) for xid, branch in broker.transactions.branches.items()]
    makers += [(xid, outcome.made_by) for xid, outcome in broker.branches.heuristics.items()]
    for xid, user in makers:
        _add(shares, user, 0, branch_state_bytes(xid, user), branches=1)
    for transaction in broker.staging.parts.values():
        part = transaction.part
        assert part is not None
        _add(shares, part.made_by, 0, part_state_bytes(part.application, part.names, part.made_by))
    for last in broker.staging.published.by_name.values():
        _add(shares, last.made_by, 0, published_state_bytes(last.application, last.made_by))
    limits = broker.client_limits
    said = {
        user: [share.count, share.state_bytes, share.filter_characters, share.branches]
        for user, share in limits._shares.items()
    }
    total = shares.pop("")[:2]
    assert said == shares, f"the users' shares are said to be {said}, they are {shares}"
    assert [limits.count, limits.state_bytes] == total, f"{limits.count}, {limits.state_bytes} instead of {total}"
    assert all(any(share) for share in said.values())


def _add(
    shares: dict[str, list[int]],
    user: str,
    count: int,
    size_bytes: int,
    filter_characters: int = 0,
    branches: int = 0,
) -> None:
    for name in {user, ""}:
        share = shares.setdefault(name, [0, 0, 0, 0])
        share[0] += count
        share[1] += size_bytes
        share[2] += filter_characters
        share[3] += branches


def check_places(broker: EngineBroker, holders: Holders, ledger: Ledger) -> None:
    """The store keeps as many places as there are messages and duplicate ids. Only when nothing is under way."""
    messages = {id(f.slot.message): f.slot.message.home for f in find_all(broker, holders) if f.slot.recorded}
    homes = list(messages.values())
    for known in broker.duplicate_ids.addresses.values():
        homes += [entry.home for entry in known.order]
    for transaction in broker.transactions.open.values():
        homes += [p.message.home for p in transaction.planned if id(p.message) not in messages]
        homes += [note.home for note in transaction.duplicate_ids]
    referred = sum(home is not None and home.segment > 0 for home in homes)
    kept = sum(segment.live for segment in ledger.all())
    assert kept == referred, f"the store keeps {kept} places, {referred} of them are referred to"


def durable_state(broker: EngineBroker, holders: Holders) -> Durable:
    """What the store must be able to bring back now."""
    queues: dict[str, list[Row]] = {name: [] for name, queue in broker.queues.items() if queue.settings.durable}
    leased = {id(s) for group in broker.leases.groups.values() for lease in group.leases.values() for s in lease.slots}
    prepared = {key for key, transaction in broker.transactions.open.items() if transaction.state == PREPARED}
    for queue, slot, state in find_all(broker, holders):
        message = slot.message
        if (
            not slot.recorded
            or queue.deleted
            or queue.name not in queues
            or not (message.durable or id(slot) in leased)
        ):
            continue
        count = slot.delivery_count - (state == HELD and not queue.traits.record_before_delivery)
        if slot.transaction in prepared:
            count = -1
        said = str(message.annotations)
        row = Row(int(slot.sequence), number_of(message.body), count, slot.due_at_ms, said, message.delay_ms)
        queues[queue.name].append(row)
    for rows in queues.values():
        rows.sort()
    return Durable(
        queues,
        _settings(broker),
        {
            group.name: (
                group.incarnation,
                group.made_by,
                group.epoch,
                group.acked,
                group.newest,
                group.wish_as_json(),
                {k: [slot.sequence for slot in lease.slots] for k, lease in group.leases.items()},
            )
            for group in broker.leases.groups.values()
        }
        | {"ended": broker.leases.ended_epoch},
        _ids(broker),
        _branches(broker),
        _staged(broker),
    )


def _settings(broker: EngineBroker) -> dict[str, str]:
    found = {
        f"queue {name}": f"{queue.settings!r}, made by '{queue.made_by}'"
        for name, queue in broker.queues.items()
        if queue.settings.durable
    }
    for name, address in broker.addresses.items():
        if not address.auto_created:
            found[f"address {name}"] = f"{sorted(address.routing_types)}, made by '{address.made_by}'"
    return found


def _ids(broker: EngineBroker) -> dict[str, list[bytes]]:
    known = broker.duplicate_ids.addresses
    ids = {name: sorted(i.duplicate_id for i in entry.order if i.home is not None) for name, entry in known.items()}
    return {name: found for name, found in ids.items() if found}


def _branches(broker: EngineBroker) -> dict[str, object]:
    found: dict[str, object] = {
        xid.hex(): (outcome.committed, outcome.made_by) for xid, outcome in broker.branches.heuristics.items()
    }
    for branch in broker.branches.prepared():
        assert branch.xid is not None
        found.setdefault(
            branch.xid.hex(),
            (
                branch.made_by,
                sorted(number_of(planned.message.body) for planned in branch.planned if planned.message.durable),
                sorted(int(i.slot.sequence) for i in branch.acks if i.slot.recorded and not i.queue.deleted),
            ),
        )
    return found


def _staged(broker: EngineBroker) -> dict[str, object]:
    found: dict[str, object] = {
        f"published {name}": (last.batch, last.made_by) for name, last in broker.staging.published.by_name.items()
    }
    for uuid, transaction in broker.staging.parts.items():
        part = transaction.part
        if transaction.state == PREPARED and part is not None:
            numbers = [number_of(planned.message.body) for planned in transaction.planned if planned.message.durable]
            found[uuid] = (part.application, part.batch, part.rows, part.made_by, part.names, sorted(numbers))
    return found


def check_same(replayed: Durable, live: Durable, *, where: str, clock: SetClock, lagging: bool) -> None:
    """Replay gives the live state. A time that has come is no longer a difference; ``lagging`` forgives counts and
    delays, which are not recorded while the disk is full (docs/decisions/0027)."""
    for name in replayed.queues.keys() | live.queues.keys():
        got = {row.sequence: row for row in replayed.queues.get(name, [])}
        expected = {row.sequence: row for row in live.queues.get(name, [])}
        lost = sorted(row.number for key, row in expected.items() if key not in got)
        new = sorted(row.number for key, row in got.items() if key not in expected)
        assert not lost, f"{where}: {name} lacks messages {lost[:5]}"
        assert not new, f"{where}: {name} has messages {new[:5]} that are gone"
        for key, row in expected.items():
            found = got[key]
            assert (found.number, found.annotations) == (row.number, row.annotations), f"{where}: {name} {row}"
            assert lagging or found.deliveries == row.deliveries, (
                f"{where}: {name} counts {found.deliveries}, not {row}"
            )
            due, live_due = (_due(one, name, row, clock) for one in (found.due_at_ms, row.due_at_ms))
            cut_short = due > live_due and clock.cut_short(row.due_at_ms, _longest_ms(name, row))
            assert lagging or due == live_due or cut_short, f"{where}: {name} has {row} due at {found.due_at_ms}"
    assert replayed.settings == live.settings, f"{where}: {_difference(replayed.settings, live.settings)}"
    assert replayed.leases == live.leases, f"{where}: leases {replayed.leases} instead of {live.leases}"
    assert replayed.ids == live.ids, f"{where}: duplicate ids {_difference(replayed.ids, live.ids)}"
    assert replayed.branches == live.branches, f"{where}: branches {replayed.branches} instead of {live.branches}"
    assert replayed.staged == live.staged, f"{where}: staged {_difference(replayed.staged, live.staged)}"


def _longest_ms(name: str, row: Row) -> int:
    """How long the delay of a message is at most; 0 for none."""
    return LONGEST_DELAYS_MS.get(name, 0) if row.deliveries > 0 else row.delay_ms


def _due(due_at_ms: int, name: str, row: Row, clock: SetClock) -> int:
    longest_ms = _longest_ms(name, row)
    if longest_ms and due_at_ms < DEAD:
        # After a restart what is left of a delay is never longer than a delay.
        due_at_ms = min(due_at_ms, clock.true_wall_ms() + longest_ms)
    return 0 if due_at_ms <= clock.latest_wall_ms() else due_at_ms


def _difference(got: object, expected: object) -> str:
    assert isinstance(got, dict)
    assert isinstance(expected, dict)
    names = [name for name in got.keys() | expected.keys() if got.get(name) != expected.get(name)]
    return ", ".join(f"{name}: {got.get(name)} instead of {expected.get(name)}" for name in sorted(names)[:3])
