"""Looks into queues between two kills: what lies there, all of it and nothing else."""

from tests.chaos.events_seen import CONFIRMED, FOUND, LOOKED, SENT, SETTLED, TAKEN, Record
from tests.chaos.mixed_clients import WIDE, number_of
from tests.chaos.stomp_peer import Arrival, StompPyPeer


def empty(record: Record, port: int, queue: str, *, destination: str = "") -> None:
    """Takes all that a queue holds.

    A message that is sent now marks the end.
    """
    destination = destination or f"/queue/{queue}"
    with StompPyPeer(port) as peer:
        peer.subscribe(destination, "client", WIDE)
        peer.send(destination, "0", {})
        found = []
        while number_of(arrival := peer.next_message()) != 0:
            found.append(number_of(arrival))
            record.note(FOUND, queue, found[-1], message_id=arrival.headers["message-id"])
        peer.ack(arrival.headers["ack"], receipt="all")
        peer.skip_to_receipt("all")
        for number in found:
            record.note(SETTLED, queue, number)


class RingLook:
    """Looks at a ring, which is not consumed otherwise.

    Args:
        size: of the ring.
    """

    def __init__(self, record: Record, queue: str, size: int) -> None:
        self._record = record
        self._queue = queue
        self._size = size
        self._left = 0
        self._counted: set[int] = set()

    def look(self, port: int, *, take: bool) -> None:
        """Reads all that it holds, and takes it or gives it back."""
        record = self._record
        confirmed = record.confirmed[self._queue]
        # A mark would push out what is still pending: it may be sent only when as much has come as must be there.
        least = min(self._size, self._left + len(confirmed - self._counted))
        mark = record.new_number(self._queue)
        with StompPyPeer(port) as peer:
            peer.subscribe(f"/queue/{self._queue}", "client", WIDE)
            found: list[Arrival] = []
            while len(found) < least:
                found.append(peer.next_message(f"{self._queue} holds {len(found)} messages, not {least}"))
            peer.send(f"/queue/{self._queue}", str(mark), {"receipt": "mark"})
            while number_of(arrival := peer.next_message()) != mark:
                found.append(arrival)
            for each in found:
                record.note(FOUND, self._queue, number_of(each), message_id=each.headers["message-id"])
            record.note(LOOKED, self._queue, 0)
            record.note(SENT, self._queue, mark)
            record.note(CONFIRMED, self._queue, mark)
            if take:
                peer.ack(arrival.headers["ack"], receipt="all")
                peer.skip_to_receipt("all")
                for each in [*found, arrival]:
                    record.note(SETTLED, self._queue, number_of(each))
                record.note(TAKEN, self._queue, 0)
                self._left = 0
            else:
                peer.unsubscribe()
                self._left = min(self._size, len(found) + 1)
        self._counted = set(confirmed)
