"""What both sides say is cut into frames, however large they are."""

import tracemalloc

from delosmq.testing.dialogue import OpenWireDialogue

PIECE_BYTES = 64 << 10
FRAME_BYTES = 16 << 20


def test_a_piece_of_a_large_frame_costs_no_copy_of_what_came_before() -> None:
    dialogue = OpenWireDialogue()
    begin = FRAME_BYTES.to_bytes(4, "big") + b"\x01"
    dialogue.cut(begin + bytes(FRAME_BYTES - 5 * PIECE_BYTES), by_client=True)
    assert dialogue.cut(bytes(PIECE_BYTES), by_client=True) == []
    tracemalloc.start()
    try:
        for _ in range(3):
            dialogue.cut(bytes(PIECE_BYTES), by_client=True)
        assert tracemalloc.get_traced_memory()[1] < FRAME_BYTES / 2
    finally:
        tracemalloc.stop()
