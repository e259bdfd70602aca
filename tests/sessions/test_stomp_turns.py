"""What the frames of one read may take before others have their turn."""

from delosmq.sessions.machine import BRIEF_AT_ONCE
from tests.sessions.support import Client, StompBench

SEND = "SEND\ndestination:/queue/q\n\nhello\0"


def in_a_slow_turn(client: Client, frames: str) -> None:
    """All in one read, while time flies."""
    clock = client.bench.clock
    clock.each_look_ms = 6
    client.session.receive(frames.encode(), client.bench.now)
    clock.each_look_ms = 0


def subscribe(number: int) -> str:
    return f"SUBSCRIBE\ndestination:/queue/s\nid:{number}\n\n\0"


def test_frames_that_take_long_leave_others_their_turn() -> None:
    bench = StompBench()
    client = bench.connect()
    in_a_slow_turn(client, subscribe(1) + subscribe(2) + subscribe(3))
    assert len(bench.queue("s").holders) == 1
    assert not client.is_read()
    client.session.handle_written(bench.now)
    assert len(bench.queue("s").holders) == 1, "what was written does not begin the next turn"
    client.session.handle_timer(bench.now)
    assert len(bench.queue("s").holders) == 3
    assert client.is_read()


def test_brief_frames_are_looked_at_now_and_then() -> None:
    bench = StompBench()
    client = bench.connect()
    in_a_slow_turn(client, SEND * (BRIEF_AT_ONCE + 3))
    assert bench.queue("q").message_count == BRIEF_AT_ONCE
    client.session.handle_timer(bench.now)
    assert bench.queue("q").message_count == BRIEF_AT_ONCE + 3


def test_what_a_peer_sent_before_it_left_counts() -> None:
    bench = StompBench()
    client = bench.connect()
    in_a_slow_turn(client, subscribe(1) + SEND)
    client.session.handle_eof()
    assert bench.queue("q").message_count == 1
