"""The output gate: what waits, what does not, and in which order."""

from hypothesis import given
from hypothesis import strategies as st

from delosmq.model.ids import Position
from delosmq.sessions.outbox import WRITE_BYTES, Gate, GateWaiter, Outbox, OutboxOwner, Stream, SyncAsker


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
    assert not gate._holding
    assert not gate._waiters


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
    box = outbox(gate, limit_bytes=30)
    stream = Stream()
    box.put(stream, Position(0), b"x" * 10, 1)
    box.take()
    box.put(stream, Position(0), b"x" * 10, 2)
    assert box.has_room()
    box.put(stream, Position(1), b"x" * 10, 3)
    assert (box.in_flight_bytes, box.ready_bytes, box.held_bytes) == (10, 10, 10)
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
    assert not gate._holding
    assert not gate._waiters
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
    assert not gate._holding
    assert not gate._waiters
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
