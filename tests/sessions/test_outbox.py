"""The output gate: what waits, what does not, and in which order."""

from hypothesis import given
from hypothesis import strategies as st

from delosmq.engine.base.slots import Slot
from delosmq.model.errors import BrokerError
from delosmq.model.ids import Position, Sequence, WallMs
from delosmq.model.message import Account, Message
from delosmq.sessions.outbox import WRITE_BYTES, Gate, GateWaiter, Outbox, OutboxOwner, SyncAsker
from delosmq.sessions.stream import ENTRY_BYTES, DeliveryPort, FrameParts, Stream
from tests.memory import reached


class Owner(OutboxOwner):
    def __init__(self) -> None:
        self.wanted = 0

    def write_wanted(self) -> None:
        self.wanted += 1


class Waiter(GateWaiter):
    def __init__(self) -> None:
        self.opened = 0

    def on_open(self) -> None:
        self.opened += 1


class Port(DeliveryPort):
    """Notes what it encodes."""

    def __init__(self) -> None:
        self.encoded: list[tuple[int, int]] = []

    def encode(self, slot: Slot, delivery_count: int) -> FrameParts:
        self.encoded.append((slot.sequence, delivery_count))
        return b"<", slot.message.body, b">"

    def deliver(self, slot: Slot) -> None:
        raise AssertionError("not part of these tests")

    def has_room(self) -> bool:
        raise AssertionError("not part of these tests")

    def closed_by_broker(self, reason: BrokerError) -> None:
        raise AssertionError("not part of these tests")


def slot_of(sequence: int, body: bytes) -> Slot:
    message = Message("a", "stomp/12", b"", body, timestamp_ms=WallMs(0))
    message.sequence = Sequence(sequence)
    slot = Slot(message, recorded=False)
    slot.delivery_count = 1
    return slot


def outbox(gate: Gate | None = None, limit_bytes: int = 1_000) -> Outbox:
    return Outbox(Owner(), gate if gate is not None else Gate(), limit_bytes)


def written(box: Outbox) -> bytes:
    found = b""
    while chunk := box.take():
        found += chunk
        box.confirm_written()
    return found


def test_what_depends_on_nothing_leaves_at_once() -> None:
    box = outbox()
    box.put(Stream(), Position(0), b"a", 1)
    assert written(box) == b"a"
    assert box.total_bytes == 0


def test_a_delivery_waits_for_the_position_of_its_message() -> None:
    gate = Gate()
    box = outbox(gate)
    box.put(Stream(), Position(2), b"a", 1)
    assert written(box) == b""
    gate.on_synced(Position(1))
    assert written(box) == b""
    gate.on_synced(Position(2))
    assert written(box) == b"a"
    assert reached(gate, Outbox) == []


def test_order_is_kept_per_stream_and_not_between_streams() -> None:
    gate = Gate()
    box = outbox(gate)
    one, two = Stream(), Stream()
    box.put(one, Position(5), b"1", 1)
    box.put(one, Position(0), b"2", 2)
    box.put(two, Position(0), b"3", 3)
    box.reply(Position(4), b"r")
    assert written(box) == b"3"
    gate.on_synced(Position(4))
    assert written(box) == b"r"
    gate.on_synced(Position(5))
    assert written(box) == b"12"


def test_a_heart_beat_never_waits() -> None:
    box = outbox()
    box.reply(Position(9), b"receipt")
    box.beat()
    assert written(box) == b"\n"


def test_a_heart_beat_is_not_added_to_bytes_that_are_on_their_way() -> None:
    box = outbox()
    box.reply(Position(0), b"receipt")
    box.beat()
    box.take()
    box.beat()
    box.confirm_written()
    assert written(box) == b""


def test_the_owner_is_asked_once_until_everything_is_taken() -> None:
    owner = Owner()
    box = Outbox(owner, Gate(), 1_000)
    for _ in range(3):
        box.reply(Position(0), b"r")
    assert owner.wanted == 1
    assert written(box) == b"rrr"
    box.reply(Position(0), b"r")
    assert owner.wanted == 2


def test_held_ready_and_unwritten_bytes_all_take_room() -> None:
    gate = Gate()
    box = outbox(gate, limit_bytes=30 + 2 * ENTRY_BYTES)
    stream = Stream()
    box.put(stream, Position(0), b"x" * 10, 1)
    box.take()
    box.put(stream, Position(0), b"x" * 10, 2)
    assert box.has_room()
    box.put(stream, Position(1), b"x" * 10, 3)
    assert (box.in_flight_bytes, box.ready_bytes, box.unsynced_bytes) == (10, 10 + ENTRY_BYTES, 10 + ENTRY_BYTES)
    assert not box.has_room()


def test_room_returns_once_half_of_the_limit_is_free() -> None:
    box = outbox(limit_bytes=20)
    assert not box.room_returned()
    box.put(Stream(), Position(0), b"x" * 20, 1)
    assert not box.has_room()
    assert not box.room_returned()
    written(box)
    assert box.room_returned()
    assert not box.room_returned()


def test_closing_a_stream_drops_what_was_not_handed_over_and_says_which() -> None:
    gate = Gate()
    box = outbox(gate)
    stream, other = Stream(), Stream()
    box.put(stream, Position(0), b"1", 1)
    assert box.take() == b"1"
    box.put(stream, Position(0), b"2", 2)
    box.put(other, Position(0), b"o", 7)
    box.put(stream, Position(3), b"3", 3)
    assert box.close_stream(stream) == {2, 3}
    assert reached(gate, Outbox) == []
    box.confirm_written()
    assert written(box) == b"o"
    assert box.total_bytes == 0


def test_streams_that_report_say_what_was_written_last() -> None:
    box = outbox()
    loud, quiet = Stream(reports=True), Stream()
    for sequence in (4, 5):
        box.put(loud, Position(0), b"x", sequence)
        box.put(quiet, Position(0), b"x", sequence)
    box.take()
    assert box.take_written() == []
    box.confirm_written()
    assert box.take_written() == [loud]
    assert (loud.written, quiet.written) == (5, 5)
    assert box.take_written() == []


def test_one_write_is_bounded() -> None:
    box = outbox(limit_bytes=WRITE_BYTES * 4)
    for sequence in range(1, 9):
        box.put(Stream(), Position(0), b"x" * (WRITE_BYTES // 4), sequence)
    assert len(box.take()) == WRITE_BYTES
    box.confirm_written()
    assert len(box.take()) == WRITE_BYTES
    box.confirm_written()
    assert box.take() == b""


def test_a_closed_outbox_no_longer_waits_at_the_gate() -> None:
    gate = Gate()
    box = outbox(gate)
    box.reply(Position(1), b"r")
    box.close()
    assert reached(gate, Outbox) == []
    gate.on_synced(Position(1))
    assert written(box) == b""


def test_answers_elsewhere_wait_at_the_same_gate() -> None:
    gate = Gate(Position(3))
    waiter, late = Waiter(), Waiter()
    assert gate.wait(Position(3), waiter)
    assert not gate.wait(Position(4), waiter)
    assert not gate.wait(Position(5), late)
    gate.cancel(late)
    gate.on_synced(Position(5))
    assert (waiter.opened, late.opened) == (1, 0)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), max_size=40),
    st.lists(st.integers(1, 6), max_size=6),
)
def test_nothing_leaves_early_and_each_stream_keeps_its_order(entries: list[tuple[int, int]], syncs: list[int]) -> None:
    gate = Gate()
    box = outbox(gate, limit_bytes=10_000)
    streams = [Stream() for _ in range(4)]
    left: list[tuple[int, int]] = []

    def take() -> None:
        for index in written(box):
            stream, position = entries[index]
            assert position <= gate.synced
            left.append((stream, index))

    for index, (stream, position) in enumerate(entries):
        box.put(streams[stream], Position(position), bytes((index,)), index + 1)
    take()
    for position in syncs:
        gate.on_synced(Position(max(position, gate.synced)))
        take()
    gate.on_synced(Position(6))
    take()
    assert len(left) == len(entries)
    for stream in range(4):
        indexes = [index for owner, index in left if owner == stream]
        assert indexes == sorted(indexes)
    assert box.total_bytes == 0


def test_the_gate_knows_the_newest_position_that_anybody_waits_for() -> None:
    gate = Gate(Position(3))
    assert gate.awaited == 3
    box = outbox(gate)
    stream = Stream()
    box.put(stream, Position(3), b"a", 1)
    assert gate.awaited == 3, "that is synced"
    box.put(stream, Position(5), b"b", 2)
    assert gate.awaited == 5
    box.put(stream, Position(7), b"c", 3)
    assert gate.awaited == 7, "behind what waits already"
    box.reply(Position(6), b"d")
    assert gate.awaited == 7
    assert not gate.wait(Position(9), Waiter())
    assert gate.awaited == 9
    assert gate.wait(Position(2), Waiter())
    assert gate.awaited == 9


class Asker(SyncAsker):
    def __init__(self) -> None:
        self.asked = 0

    def schedule(self) -> None:
        self.asked += 1


def test_who_begins_to_wait_for_what_nobody_waited_for_has_a_sync_asked_for() -> None:
    gate = Gate(Position(3))
    asker = gate.asker = Asker()
    gate.wait(Position(3), Waiter())
    assert asker.asked == 0
    gate.wait(Position(4), Waiter())
    gate.wait(Position(4), Waiter())
    assert asker.asked == 1


# -- deliveries --------------------------------------------------------------------------------------------------------


def test_a_delivery_is_encoded_when_it_leaves_and_as_it_was_when_it_was_made() -> None:
    box, port, stream = outbox(), Port(), Stream()
    slot = slot_of(7, b"body")
    box.deliver(stream, slot, port)
    assert (port.encoded, box.ready_bytes) == ([], ENTRY_BYTES + 4)
    slot.delivery_count = 5
    assert written(box) == b"<body>"
    assert port.encoded == [(7, 1)]
    assert (stream.written, box.total_bytes) == (7, 0)


def test_what_is_dropped_before_it_left_is_never_encoded() -> None:
    gate = Gate()
    box, port, stream, other = outbox(gate), Port(), Stream(), Stream()
    waits = slot_of(2, b"2")
    waits.recorded = True
    waits.message.position = Position(9)
    box.deliver(stream, slot_of(1, b"1"), port)
    box.deliver(other, slot_of(3, b"3"), port)
    box.deliver(stream, waits, port)
    assert box.unsynced_bytes == ENTRY_BYTES + 1
    assert box.close_stream(stream) == {1, 2}
    assert written(box) == b"<3>"
    assert port.encoded == [(3, 1)]
    assert box.total_bytes == 0


def test_order_is_kept_between_deliveries_and_frames_of_a_stream() -> None:
    gate = Gate()
    box, port, stream = outbox(gate), Port(), Stream()
    waits = slot_of(2, b"2")
    waits.recorded = True
    waits.message.position = Position(9)
    box.deliver(stream, slot_of(1, b"1"), port)
    box.deliver(stream, waits, port)
    box.put(stream, Position(0), b"frame", 3)
    box.deliver(stream, slot_of(4, b"4"), port)
    assert written(box) == b"<1>"
    gate.on_synced(Position(9))
    assert written(box) == b"<2>frame<4>"
    assert stream.written == 4


def test_a_large_frame_leaves_in_pieces_with_nothing_between_them() -> None:
    box, port, stream = outbox(), Port(), Stream(reports=True)
    large = bytes(range(256)) * (WRITE_BYTES // 256 * 2) + b"rest"
    box.deliver(stream, slot_of(1, b"small"), port)
    box.deliver(stream, slot_of(2, large), port)
    found = b""
    within = []
    box.reply(Position(0), b"R")
    while chunk := box.take():
        assert len(chunk) <= WRITE_BYTES + 10
        found += chunk
        within.append(box.within_frame)
        box.beat()
        box.confirm_written()
        assert stream.written == (1 if box.within_frame else 2)
    assert found == b"<small><" + large + b">R"
    assert within == [True, True, True, False, False]


def test_closing_a_stream_lets_the_frame_that_has_begun_end() -> None:
    box, port, stream = outbox(), Port(), Stream()
    large = b"x" * (2 * WRITE_BYTES)
    box.deliver(stream, slot_of(1, large), port)
    box.deliver(stream, slot_of(2, b"2"), port)
    assert box.take() == b"<"
    box.confirm_written()
    assert box.close_stream(stream) == {2}
    box.reply(Position(0), b"R")
    assert written(box) == large + b">R"
    assert box.total_bytes == box.reply_bytes == 0


def test_large_replies_are_cut_too_and_count_until_their_end() -> None:
    box = outbox()
    large = b"r" * (WRITE_BYTES + 1)
    box.reply(Position(0), large)
    assert box.take() == large[:WRITE_BYTES]
    box.confirm_written()
    assert box.reply_bytes == ENTRY_BYTES + len(large)
    assert box.kept_bytes() == 1
    assert written(box) == b"r"
    assert box.reply_bytes == box.kept_bytes() == 0


def test_a_body_that_its_queue_has_is_not_kept_by_who_writes_it() -> None:
    box, port = outbox(), Port()
    slot = slot_of(1, b"x" * 10 * WRITE_BYTES)
    slot.message.account = Account()
    box.deliver(Stream(), slot, port)
    box.take()
    box.confirm_written()
    box.take()
    assert box.kept_bytes() == WRITE_BYTES
    slot.message.account = None
    assert box.kept_bytes() == 10 * WRITE_BYTES
    box.close()
    assert box.kept_bytes() == 0


def test_what_a_queue_has_is_not_kept_by_those_that_wait_to_write_it() -> None:
    gate = Gate()
    box = outbox(gate, limit_bytes=1_000_000)
    stream = Stream()
    slots = [slot_of(sequence, b"x" * 10_000) for sequence in (1, 2)]
    for slot in slots:
        slot.message.account = Account()
        box.deliver(stream, slot, Port())
    box.put(stream, Position(1), b"frame", 3)
    assert box.total_bytes > 20_000
    assert box.kept_bytes() == 3 * ENTRY_BYTES + len(b"frame")
    slots[0].message.account = None  # gone from its queue
    assert box.kept_bytes() == 3 * ENTRY_BYTES + len(b"frame") + slots[0].message.encoded_size_bytes
    gate.on_synced(Position(1))
    assert box.kept_bytes() == 3 * ENTRY_BYTES + len(b"frame") + slots[0].message.encoded_size_bytes
    assert len(box.take()) == box.kept_bytes() > 20_000


FRAME, DELIVERY, LARGE = "frame", "delivery", "large delivery"


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from((FRAME, DELIVERY, LARGE)), st.booleans()), max_size=30))
def test_a_stream_is_written_in_the_order_of_its_deliveries(entries: list[tuple[int, str, bool]]) -> None:
    box = outbox(limit_bytes=100_000_000)
    streams = [Stream(reports=True) for _ in range(3)]
    port = Port()
    given_to: dict[Stream, list[int]] = {stream: [] for stream in streams}
    for sequence, (number, kind, take) in enumerate(entries, 1):
        stream = streams[number]
        given_to[stream].append(sequence)
        if kind == FRAME:
            box.put(stream, Position(0), b"f", sequence)
        else:
            box.deliver(stream, slot_of(sequence, bytes(WRITE_BYTES + 1) if kind == LARGE else b"d"), port)
        if take:
            assert_in_order(box, given_to)
    while box.ready_bytes or box.within_frame:
        assert_in_order(box, given_to)
    assert [stream.written for stream in streams] == [max(given_to[stream], default=0) for stream in streams]


def assert_in_order(box: Outbox, given_to: dict[Stream, list[int]]) -> None:
    """Takes one write: what ends in it comes in the order in which each stream was given it."""
    box.take()
    for stream, sequences in given_to.items():
        ended = [sequence for ended_in, sequence in box._in_flight if ended_in is stream]
        assert ended == sorted(ended)
        assert not ended or ended[0] > stream.written
        assert not ended or ended[-1] in sequences
    box.confirm_written()


def test_a_frame_behind_a_delivery_ends_behind_it() -> None:
    box = outbox()
    stream = Stream(reports=True)
    box.deliver(stream, slot_of(5, b"plain"), Port())
    box.put(stream, Position(0), b"the first of its group", 6)
    assert written(box) == b"<plain>the first of its group"
    assert stream.written == 6


def test_streams_may_share_their_order_and_keep_their_ends_apart() -> None:
    gate = Gate()
    box = outbox(gate)
    answers = Stream(replies=True)
    one, two = Stream(behind=answers), Stream(behind=answers)
    box.put(one, Position(1), b"1", 11)
    box.put(answers, Position(0), b"a", 0)
    box.put(two, Position(0), b"2", 12)
    box.put(one, Position(2), b"3", 13)
    assert written(box) == b""
    gate.on_synced(Position(1))
    assert written(box) == b"1a2"
    assert (one.written, two.written) == (11, 12)
    gate.on_synced(Position(2))
    assert written(box) == b"3"


def test_one_of_several_streams_in_one_order_can_be_closed() -> None:
    gate = Gate()
    box = outbox(gate)
    answers = Stream(replies=True)
    one, two = Stream(behind=answers), Stream(behind=answers)
    box.put(one, Position(1), b"1", 11)
    box.put(two, Position(1), b"2", 12)
    box.put(answers, Position(1), b"a", 0)
    assert box.close_stream(one) == {11}
    assert two.unseen == set()
    assert box.unsynced_bytes == 2 * (ENTRY_BYTES + 1)
    gate.on_synced(Position(1))
    assert written(box) == b"2a"
    assert (box.total_bytes, box.reply_bytes) == (0, 0)


def test_answers_on_a_stream_count_as_replies_until_they_are_written_or_dropped() -> None:
    gate = Gate()
    box = outbox(gate)
    answers = Stream(replies=True)
    box.put(answers, Position(1), b"a", 0)
    assert box.reply_bytes == ENTRY_BYTES + 1
    gate.on_synced(Position(1))
    written(box)
    assert box.reply_bytes == 0
    box.put(answers, Position(2), b"b", 0)
    box.close_stream(answers)
    assert (box.reply_bytes, box.total_bytes) == (0, 0)
