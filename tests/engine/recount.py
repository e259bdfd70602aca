"""What must hold after everything: counters and memory equal a recount, and a restart finds what is durable."""

from delosmq.engine.addresses.address import Address
from delosmq.engine.base.slots import Slot, SlotList
from delosmq.engine.broker import EngineBroker
from delosmq.engine.queues.queue import Queue
from delosmq.model.message import Account, Message
from tests.engine.support import Bench


def listed(slots: SlotList) -> list[Slot]:
    found: list[Slot] = []
    slot = slots.head
    while slot is not None:
        assert slot.in_list is slots
        found.append(slot)
        slot = slot.next
    assert len(found) == slots.count
    return found


def held_of(broker: EngineBroker, queue: Queue) -> list[Slot]:
    """What is in delivery, also to consumers that have gone and whose transactions have not."""
    lists = [consumer.in_delivery for consumer in queue.holders]
    for transaction in broker.transactions.open.values():
        for promised in transaction.acks:
            held = promised.consumer.in_delivery
            if promised.queue is queue and not any(known is held for known in lists):
                lists.append(held)
    return [slot for slots in lists for slot in listed(slots)]


def is_at_a_limit(address: Address) -> bool:
    """What the settings of an address say of its account."""
    settings, account = address.settings, address.account
    return (
        account.used_bytes >= settings.max_size_bytes >= 0 or account.used_messages >= settings.max_size_messages >= 0
    )


def recount(broker: EngineBroker) -> None:
    """Compares each counter with what is there. Call it at rest."""
    references: dict[int, int] = {}
    recorded: dict[int, int] = {}
    messages: dict[int, Message] = {}
    for queue in broker.queues.values():
        pending = queue.pending.in_order()
        scheduled = queue.scheduled.in_order()
        held = held_of(broker, queue)
        slots = pending + scheduled + held
        assert len({slot.sequence for slot in slots}) == len(slots), queue.name
        assert (queue.suspensions, queue.purging, queue.barrier_sequence) == (0, 0, 0), queue.name
        assert (queue.pending.count, queue.scheduled.count) == (len(pending), len(scheduled)), queue.name
        assert queue.delivering.count == len(held), queue.name
        assert queue.delivering.bytes == size(held)
        assert queue.delivering.durable_count == len(durable(held))
        assert queue.delivering.durable_bytes == size(durable(held))
        assert queue.scheduled.bytes == size(scheduled)
        assert queue.scheduled.durable_count == len(durable(scheduled))
        assert queue.scheduled.durable_bytes == size(durable(scheduled))
        assert queue.total.bytes == size(slots)
        assert queue.total.durable_count == len(durable(slots))
        assert queue.total.durable_bytes == size(durable(slots))
        assert queue.expiring_count == sum(slot.message.expires_at_ms != 0 for slot in slots)
        for slot in pending:
            assert slot.transaction == 0
        for slot in slots:
            key = id(slot.message)
            messages[key] = slot.message
            references[key] = references.get(key, 0) + 1
            recorded[key] = recorded.get(key, 0) + slot.recorded
    for slot in orphans(broker):
        key = id(slot.message)
        messages[key] = slot.message
        references[key] = references.get(key, 0) + 1
        recorded[key] = recorded.get(key, 0) + slot.recorded
    for key, message in messages.items():
        assert message.references == references[key], message.body
        assert message.recorded_references == recorded[key], message.body
        assert (message.home is not None) == (recorded[key] > 0), message.body
    for transaction in broker.transactions.open.values():
        for sent in [*(item.message for item in transaction.sends), *(item.message for item in transaction.planned)]:
            if sent.account is not None:
                messages[id(sent)] = sent
    charged: dict[int, tuple[Account, int, int]] = {}
    for message in messages.values():
        account = message.account
        assert account is not None, message.body
        known = charged.get(id(account), (account, 0, 0))
        charged[id(account)] = (account, known[1] + message.charge_bytes, known[2] + 1)
    for account, used_bytes, used_messages in charged.values():
        assert (account.used_bytes, account.used_messages) == (used_bytes, used_messages)
    for address in broker.addresses.values():
        assert address.account.full == is_at_a_limit(address), address.name
        if id(address.account) not in charged:
            assert (address.account.used_bytes, address.account.used_messages) == (0, 0), address.name
    assert broker.used_bytes == sum(used for _, used, _ in charged.values())
    claims = {queue.name: 0 for queue in broker.queues.values()}
    for transaction in broker.transactions.open.values():
        for item in transaction.planned:
            for queue in item.queues:
                claims[queue.name] = claims.get(queue.name, 0) + 1
    for queue in broker.queues.values():
        assert queue.pending_commits == claims[queue.name], queue.name


def orphans(broker: EngineBroker) -> list[Slot]:
    """What open transactions acknowledge in queues that are gone."""
    found: list[Slot] = []
    for transaction in broker.transactions.open.values():
        found += [promised.slot for promised in transaction.acks if promised.queue.deleted]
    return found


def size(slots: list[Slot]) -> int:
    return sum(slot.message.encoded_size_bytes for slot in slots)


def durable(slots: list[Slot]) -> list[Slot]:
    return [slot for slot in slots if slot.recorded]


def kept(broker: EngineBroker) -> dict[str, list[tuple[int, str, bool]]]:
    """Per durable queue what a restart must find: sequence, body, and whether a prepared branch acknowledges it."""
    prepared = {transaction.id for transaction in broker.branches.prepared()}
    found: dict[str, list[tuple[int, str, bool]]] = {}
    for queue in broker.queues.values():
        if queue.settings.durable:
            slots = queue.pending.in_order() + queue.scheduled.in_order() + held_of(broker, queue)
            found[queue.name] = sorted(
                (slot.sequence, slot.message.body.decode()[:12], slot.transaction in prepared)
                for slot in slots
                if slot.recorded
            )
    return found


def check(bench: Bench) -> None:
    """All of it, and once more after a restart."""
    bench.run()
    recount(bench.broker)
    again = bench.restart()
    again.run()
    recount(again.broker)
    assert kept(again.broker) == kept(bench.broker)
