"""Records as bytes: every section, and the version before."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delosmq.engine.base.slots import Slot
from delosmq.engine.log.log import QueueRecords
from delosmq.engine.log.records import (
    ACKNOWLEDGED,
    FORGOTTEN,
    KILLED,
    PROMISED,
    REMOVED,
    STORED,
    VERSION,
    DuplicateRecord,
    check_version,
    decode_numbers,
    decode_promised,
    decode_removed,
    decode_sent_place,
    encode_discarded,
    encode_duplicate,
    encode_forgotten,
    encode_promised,
    encode_removed,
    encode_sent,
    encode_stored,
    is_sent,
)
from delosmq.engine.recovery.stored_messages import StoredMessages, StoredRecord
from delosmq.model.errors import StorageError
from delosmq.model.ids import MessageId, Sequence, WallMs
from delosmq.model.message import Home, Message
from tests.engine.support import Bench, anycast

U64 = st.integers(0, 2**64 - 1)
NAMES = st.text(st.characters(codec="utf-8"), max_size=20)


def message(**fields: object) -> Message:
    made = Message("orders", "stomp/12", b"head", b"body", timestamp_ms=WallMs(7), durable=True, **fields)  # type: ignore[arg-type]
    made.sequence = Sequence(41)
    made.message_id = MessageId(42)
    return made


def decode_stored(meta: bytes) -> StoredRecord:
    home = Home()
    home.size_bytes = len(b"head" + b"body")
    return StoredMessages().decode(meta, home)


def test_a_message_without_new_fields_is_stored_as_ever() -> None:
    meta = encode_stored(message(user="ann", annotations={"a": "b"}), [3, 4])
    assert meta[:2] == bytes((STORED, VERSION))
    # Written by the first release; old readers must never need another one.
    assert meta.hex() == (
        "0101040229000000000000002a000000000000000700000000000000000000000000000004000000020006000803000a00000001"
        "030000000000000004000000000000006f726465727373746f6d702f3132616e6e7b2261223a202262227d"
    )
    record = decode_stored(meta)
    assert (record.message.sequence, record.message.message_id, record.queue_ids) == (41, 42, [3, 4])
    assert (record.message.user, record.message.annotations, len(record.message.head)) == ("ann", {"a": "b"}, 4)
    assert record.message.encoded_size_bytes == 8
    assert (record.message.due_at_ms, record.message.group_id, record.message.group_sequence) == (0, "", 0)


@given(
    due=U64,
    delay=U64,
    group=NAMES,
    group_sequence=st.integers(-(2**63), 2**63 - 1),
    user=NAMES,
    queue_ids=st.lists(U64, min_size=1, max_size=4),
    place=st.none() | st.tuples(U64, U64),
)
def test_every_section_comes_back(
    due: int,
    delay: int,
    group: str,
    group_sequence: int,
    user: str,
    queue_ids: list[int],
    place: tuple[int, int] | None,
) -> None:
    original = message(due_at_ms=due, group_id=group, group_sequence=group_sequence, user=user)
    original.delay_ms = delay
    if place is None:
        meta = encode_stored(original, queue_ids)
        assert not is_sent(meta)
    else:
        meta = encode_sent(original, queue_ids, *place)
        assert is_sent(meta)
        assert decode_sent_place(meta) == place
    check_version(meta)
    record = decode_stored(meta)
    read = record.message
    assert (read.due_at_ms, read.group_id, read.user, record.queue_ids) == (due, group, user, queue_ids)
    assert read.group_sequence == (group_sequence if group else 0)
    assert read.durable
    assert read.delay_ms == (delay if due else 0)


@given(st.integers(1, 2**63), U64, U64, NAMES, st.binary(max_size=100))
def test_a_duplicate_id_comes_back(number: int, evicted: int, transaction: int, address: str, value: bytes) -> None:
    record = DuplicateRecord(encode_duplicate(address, value, number, evicted, transaction))
    assert (record.number, record.evicted, record.transaction) == (number, evicted, transaction)
    assert (record.address, record.duplicate_id) == (address, value)


@given(U64, U64, st.lists(U64, max_size=10))
def test_numbers_come_back(transaction: int, queue_id: int, numbers: list[int]) -> None:
    slots = []
    for number in numbers:
        slots.append(Slot(message(), recorded=True))
        slots[-1].sequence = Sequence(number)
    meta = encode_promised(transaction, queue_id, slots)
    assert meta[0] == PROMISED
    assert decode_promised(meta) == (transaction, queue_id, numbers)
    assert decode_numbers(encode_discarded(transaction, numbers)) == (transaction, numbers)
    assert encode_forgotten(numbers)[0] == FORGOTTEN
    assert decode_numbers(encode_forgotten(numbers)) == (0, numbers)


def test_records_of_a_newer_release_are_refused() -> None:
    check_version(bytes((STORED, 3)))
    for newer, known in ((bytes((STORED, 4)), 3), (bytes((PROMISED, 2)), 1)):
        with pytest.raises(StorageError, match=rf"DMQ2301: .* reads that kind up to version {known};"):
            check_version(newer)


@given(
    address=NAMES,
    user=NAMES,
    protocol=NAMES,
    numbers=st.lists(U64, min_size=5, max_size=5),
    small=st.tuples(st.integers(0, 9), st.integers(1, 6), st.integers(0, 100)),
)
def test_the_short_way_gives_the_same_record(
    address: str, user: str, protocol: str, numbers: list[int], small: tuple[int, int, int]
) -> None:
    priority, body_kind, head_size = small
    sequence, message_id, timestamp_ms, expires_at_ms, queue_id = numbers
    original = Message(
        address,
        protocol,
        bytes(head_size),
        b"body",
        user=user,
        priority=priority,
        body_kind=body_kind,
        durable=True,
        timestamp_ms=WallMs(timestamp_ms),
        expires_at_ms=expires_at_ms,
    )
    original.sequence = Sequence(sequence)
    original.message_id = MessageId(message_id)
    assert QueueRecords(queue_id).stored(original) == encode_stored(original, [queue_id])


@pytest.mark.parametrize(
    "other",
    [{"address": "bills"}, {"user": "bob"}, {"protocol": "stomp/11"}, {"due_at_ms": 8}, {"group_id": "g"}],
)
def test_a_record_of_another_sender_ends_differently(other: dict[str, object]) -> None:
    fields: dict[str, object] = {"address": "orders", "user": "ann", "protocol": "stomp/12"}
    records = QueueRecords(3)
    for each in (fields, {**fields, **other}, fields):
        sent = Message(head=b"", body=b"", durable=True, timestamp_ms=WallMs(7), **each)  # type: ignore[arg-type]
        assert records.stored(sent) == encode_stored(sent, [3])


@given(queue_id=U64, sequence=U64)
def test_one_acknowledged_message_is_recorded_like_many(queue_id: int, sequence: int) -> None:
    original = message()
    original.sequence = Sequence(sequence)
    slot = Slot(original, True)
    for reason in (ACKNOWLEDGED, KILLED):
        meta = QueueRecords(queue_id).removed(slot, reason)
        assert meta == encode_removed(queue_id, reason, [slot])
        record = decode_removed(meta)
        assert (record.queue_id, record.reason, record.sequences) == (queue_id, reason, [sequence])


def test_messages_of_many_senders_in_one_queue_keep_what_is_theirs() -> None:
    bench = Bench(queues=(anycast("orders"), anycast("bills")))
    senders = [("orders", "stomp/12", "ann"), ("orders", "stomp/12", "bob"), ("orders", "stomp/11", "bob")] * 2
    for address, protocol, user in senders:
        bench.broker.producers.send(
            Message(address, protocol, b"", b"x", user=user, durable=True, timestamp_ms=WallMs(7))
        )
    bench.send("bills", "y")
    again = bench.restart()
    found = [slot.message for slot in again.broker.queues["orders"].pending.in_order()]
    assert [(kept.address, kept.protocol, kept.user) for kept in found] == senders
    assert again.pending("bills") == "y"


def test_a_removal_says_why() -> None:
    bench = Bench(queues=(anycast("orders"),))
    bench.send("orders", "a")
    consumer, port = bench.consume("orders")
    bench.run()
    bench.broker.consumers.acknowledge(consumer, port.slots[0].sequence)
    bench.broker.consumers.close(consumer)
    bench.send("orders", "b")
    bench.broker.resources.purge_queue("orders")
    bench.run()
    removed = [decode_removed(meta) for _, metas, _ in bench.store.batches for meta in metas if meta[0] == REMOVED]
    assert [record.reason for record in removed] == [ACKNOWLEDGED, KILLED]
