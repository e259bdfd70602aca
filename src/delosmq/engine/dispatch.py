"""The dispatch loop: hands pending messages to consumers that are not full, in turn, in batches.

Source: Artemis QueueImpl (round robin among consumers with credit); bounds per tick: docs/decisions/0012.
"""

from collections import deque
from typing import Final

from delosmq.engine.queue import Queue

MESSAGES_PER_QUEUE_AND_TICK: Final = 256
QUEUES_PER_TICK: Final = 64


class Dispatcher:
    """Keeps the list of queues that may have something to hand out."""

    def __init__(self) -> None:
        self._ready: deque[Queue] = deque()

    def mark(self, queue: Queue) -> None:
        """Puts a queue on the ready list if it has both messages and consumers; cheap, for every change."""
        if not queue.ready and queue.rotation and queue.pending.count and not queue.deleted and not queue.returning:
            queue.ready = True
            self._ready.append(queue)

    def run(self) -> bool:
        """One pass over what is ready now, bounded. True when something is left to do."""
        for _ in range(min(len(self._ready), QUEUES_PER_TICK)):
            queue = self._ready.popleft()
            queue.ready = False
            if not queue.deleted and not queue.returning:
                dispatch(queue, MESSAGES_PER_QUEUE_AND_TICK)
                self.mark(queue)
        return len(self._ready) > 0


def dispatch(queue: Queue, limit: int) -> int:
    """Hands out at most ``limit`` messages of one queue; gives how many. A consumer found full leaves the rotation."""
    rotation = queue.rotation
    pending = queue.pending
    handed = 0
    while handed < limit and rotation:
        slot = pending.head()
        if slot is None:
            break
        turn = queue.turn
        if turn >= len(rotation):
            turn = 0
        consumer = rotation[turn]
        if not consumer.has_room():
            queue.park(turn)
            queue.turn = turn
            continue
        queue.turn = turn + 1
        queue.hand_out(slot, consumer)
        consumer.port.deliver(slot)
        handed += 1
    return handed
