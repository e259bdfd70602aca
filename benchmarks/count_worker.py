"""Runs below valgrind: fixed work, with a mark before and behind each part that counts; prints the parts' names.

`benchmarks.count` starts it with the compiled form. The mark is a call of getsid(2), before which callgrind writes down
what it has counted since the mark before: nothing else in the process makes this call.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys

from benchmarks.engine_worker import BATCH, Engine, Taker
from benchmarks.fixed_work import TURN, Conversation, OpenWireConversation, StillClock, StompConversation, recording
from delosmq.cli.run import GC_THRESHOLDS
from delosmq.engine import broker as engine_module
from delosmq.model.message import MULTICAST
from delosmq.model.reserved_names import EVENTS_ADDRESS
from delosmq.model.settings import QueueSettings

WARM = 512
COUNTED = 1_024
"""Messages of each kind; both are multiples of a turn."""


class Parts:
    """What lay between the marks."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def mark(self, name: str = "") -> None:
        """Ends the part ``name``; "" is what does not count."""
        os.getsid(0)
        self.names.append(name)


def count_engine(parts: Parts, durable: bool) -> None:
    """Messages are sent, dispatched and acknowledged one by one, in turns of 256; their records are dropped."""
    kind = "durable" if durable else "non-durable"
    engine = Engine(clock=StillClock())
    engine.attach()
    broker, taken, name = engine.broker, Taker.taken, engine.names[0]
    for number in range((WARM + COUNTED) // BATCH):
        counts = number >= WARM // BATCH
        messages = [engine.message(name, durable) for _ in range(BATCH)]
        parts.mark()
        for message in messages:
            broker.producers.send(message)
        parts.mark(f"engine, {kind}: send" if counts else "")
        while len(taken) < BATCH and broker.tick():
            pass
        parts.mark(f"engine, {kind}: dispatch" if counts else "")
        pairs = [(engine.consumers[id(slot.in_list)], slot.sequence) for slot in taken]
        if len(pairs) != BATCH:
            raise RuntimeError(f"{len(pairs)} messages of {BATCH} were handed out")
        taken.clear()
        parts.mark()
        for consumer, sequence in pairs:
            broker.consumers.acknowledge(consumer, sequence)
        parts.mark(f"engine, {kind}: acknowledge" if counts else "")


def count_sessions(parts: Parts, conversation: Conversation, durable: bool, name: str) -> None:
    """Frames of a message, of what confirms it, of its delivery and its acknowledgement, in turns of 16."""
    said = conversation.hold(WARM + COUNTED, durable)
    counted = 2 * COUNTED // TURN  # reads at the end: messages, and their acknowledgements
    bench = conversation.new_bench()
    written: list[tuple[int, bytes]] = []
    keep = written.append

    def note(to: int, piece: bytes) -> None:
        keep((to, piece))

    for number, chunk in said[:-counted]:
        bench.turn(number, chunk, note)
    written.clear()
    parts.mark()
    for number, chunk in said[-counted:]:
        bench.turn(number, chunk, note)
    parts.mark(f"{name}, {'durable' if durable else 'non-durable'}: send, deliver, acknowledge")


def main() -> int:
    """Do all the work once."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.count_worker", description=__doc__)
    parser.parse_args()
    # As the server has it.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    parts = Parts()
    for durable in (True, False):
        count_engine(parts, durable)
        count_sessions(parts, StompConversation(), durable, "STOMP")
        count_sessions(parts, OpenWireConversation(), durable, "OpenWire")
    ring = QueueSettings("told", EVENTS_ADDRESS, MULTICAST, durable=False, ring_size=10)
    count_sessions(parts, StompConversation(recording(ring)), True, "STOMP with event records")
    count_sessions(parts, OpenWireConversation(recording(ring)), True, "OpenWire with event records")
    found = {"compiled": not engine_module.__file__.endswith(".py"), "counted": COUNTED, "parts": parts.names}
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
