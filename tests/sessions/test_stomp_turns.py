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


def test_what_comes_while_a_session_does_not_read_waits_behind_the_frames_that_it_left() -> None:
    bench = StompBench()
    client = bench.connect()
    in_a_slow_turn(client, subscribe(1) + subscribe(2))
    later = subscribe(3) + subscribe(4)
    for byte in later[:-5]:
        client.feed(byte)
    assert client.session.buffered_bytes() == len(subscribe(2) + later[:-5])
    assert len(bench.queue("s").holders) == 1
    client.session.handle_timer(bench.now)
    assert len(bench.queue("s").holders) == 3
    client.feed(later[-5:])
    assert len(bench.queue("s").holders) == 4
    assert client.session.buffered_bytes() == 0


def test_what_a_session_that_is_over_did_not_read_is_freed() -> None:
    bench = StompBench()
    client = bench.connect()
    in_a_slow_turn(client, subscribe(1) + subscribe(2))
    client.feed(subscribe(3))
    client.session.drop_input()
    assert client.session.buffered_bytes() == 0


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
