"""Clients of one feature each, for one life of the broker, that note all that they do and see.

The body of each message begins with its number.
"""

from collections.abc import Callable
from random import Random
from typing import Final

from tests.chaos.events_seen import (
    ABANDONED,
    ANSWERED,
    CONFIRMED,
    DELIVERED,
    REFUSAL_CONFIRMED,
    REFUSED,
    SENT,
    SETTLED,
    Record,
)
from tests.chaos.promises import BATCH
from tests.chaos.stomp_peer import Arrival, StompPyPeer, now_ms

WINDOW: Final = 20
LOST_NOTES: Final = 5
"""How many messages a producer sends again though it was told that they had arrived, beside the oldest."""
LONGEST_DELAY_MS: Final = 2_500
"""Longer than a restart, so that some are still waiting after it."""
GROUPS: Final = 7
SMALLEST_BATCH: Final = 500
LARGEST_BATCH: Final = 1_200
"""Above 1,000 a commit is worked off in several slices."""
POISON: Final = 4
"""Every fourth message of `retry` is refused whenever it comes."""
PREFETCH: Final = "activemq.prefetchSize"
WIDE: Final = {PREFETCH: "10000"}
Headers = Callable[[int, Random], dict[str, str]]


class Load:
    """What producers send to one destination.

    Attributes:
        name: under which it is noted.
        queues: those that must not fall behind.
        remembered: of how many ids, the newest, a duplicate is refused; 0 for messages without one. What has no receipt
            when the broker dies is sent again, and some of what has.
    """

    def __init__(
        self,
        name: str,
        destination: str,
        queues: tuple[str, ...],
        *,
        headers: Headers | None = None,
        remembered: int = 0,
    ) -> None:
        self.name = name
        self.destination = destination
        self.queues = queues
        self.remembered = remembered
        self._headers = headers

    def headers(self, number: int, random: Random) -> dict[str, str]:
        return {} if self._headers is None else self._headers(number, random)


# -- headers of the loads --------------------------------------------------------------------------------------------


def in_a_group(number: int, random: Random) -> dict[str, str]:
    return {"JMSXGroupID": f"g{random.randrange(GROUPS)}"}


def with_an_id(number: int, random: Random) -> dict[str, str]:
    return {"_AMQ_DUPL_ID": f"id{number}"}


def later(number: int, random: Random) -> dict[str, str]:
    delay_ms = random.randrange(1, LONGEST_DELAY_MS)
    if number % 2:
        return {"AMQ_SCHEDULED_DELAY": str(delay_ms)}
    return {"AMQ_SCHEDULED_TIME": str(now_ms() + delay_ms)}


def much_later(number: int, random: Random) -> dict[str, str]:
    return {"AMQ_SCHEDULED_DELAY": "3600000"}


def due_ms(headers: dict[str, str]) -> int:
    """The earliest time at which a message that is sent now may come; 0 for at once."""
    delay = headers.get("AMQ_SCHEDULED_DELAY")
    return int(headers.get("AMQ_SCHEDULED_TIME", "0")) if delay is None else now_ms() + int(delay)


# -- producing -------------------------------------------------------------------------------------------------------


def produce(record: Record, port: int, load: Load, random: Random) -> None:
    """Sends until the broker dies; in its last life, once all earlier ones are answered, one message more."""
    with StompPyPeer(port) as peer:
        again = resent(record, load, random)
        outstanding = 0
        while True:
            record.wait_for_consumers(load.name, load.queues)
            while outstanding < WINDOW:
                if again:
                    number = again.pop(0)
                elif record.last:
                    break
                else:
                    number = record.new_number(load.name)
                send(record, peer, load, number, random)
                outstanding += 1
            if outstanding == 0:
                return
            confirm(record, peer, load)
            outstanding -= 1


def resent(record: Record, load: Load, random: Random) -> list[int]:
    """What a producer sends again before anything new: all that it doesn't know the fate of; then, as if it had lost
    its notes, some of what arrived.

    The latter have fewer ids behind them than the address remembers, since what is older would be rightly taken for
    new. The oldest of them is always one.
    """
    if not load.remembered:
        return []
    newest = record.newest(load.name)
    known = sorted(number for number in record.confirmed[load.name] if number > newest - load.remembered)
    return sorted(record.unconfirmed[load.name]) + known[:1] + random.sample(known[1:], min(len(known[1:]), LOST_NOTES))


def send(record: Record, peer: StompPyPeer, load: Load, number: int, random: Random) -> None:
    headers = load.headers(number, random)
    record.note(SENT, load.name, number, at_ms=due_ms(headers))
    peer.send(load.destination, f"{number} {'x' * (number * 37 % 500)}", {**headers, "receipt": str(number)})


def confirm(record: Record, peer: StompPyPeer, load: Load) -> None:
    arrival = peer.next()
    assert arrival.command == "RECEIPT", arrival.command
    record.note(CONFIRMED, load.name, int(arrival.headers["receipt-id"]))


def fence(record: Record, port: int, load: Load, random: Random) -> int:
    """The last message of a load, behind all others: its number."""
    number = record.new_number(load.name)
    # No poison, and due after all that waits.
    number += 1 if load.name == "retry" and number % POISON == 0 else 0
    with StompPyPeer(port) as peer:
        headers = load.headers(number, random)
        if "AMQ_SCHEDULED_DELAY" in headers or "AMQ_SCHEDULED_TIME" in headers:
            headers = {"AMQ_SCHEDULED_DELAY": str(LONGEST_DELAY_MS)}
        record.note(SENT, load.name, number, at_ms=due_ms(headers))
        peer.send(load.destination, f"{number}", {**headers, "receipt": str(number)})
        confirm(record, peer, load)
    return number


def produce_batches(record: Record, port: int, load: Load, random: Random) -> None:
    """Each batch in one transaction; some are aborted. The last life gets one batch."""
    with StompPyPeer(port) as peer:
        while True:
            record.wait_for_consumers(load.name, load.queues)
            batch = record.new_number(load.name)
            size = random.randrange(SMALLEST_BATCH, LARGEST_BATCH)
            aborted = not record.last and random.random() < 0.2
            name = str(batch)
            peer.begin(name)
            record.note(ABANDONED if aborted else SENT, load.name, batch)
            for k in range(size):
                peer.send(load.destination, f"{batch * BATCH + k} {size}", {"transaction": name})
            if aborted:
                peer.abort(name)
                peer.skip_to_receipt(name)
                continue
            peer.commit(name)
            peer.skip_to_receipt(name)
            record.note(CONFIRMED, load.name, batch)
            if record.last:
                return


# -- consuming -------------------------------------------------------------------------------------------------------


class Reader:
    """A subscription to one queue."""

    def __init__(self, record: Record, peer: StompPyPeer, queue: str, client: str) -> None:
        self._record = record
        self._peer = peer
        self._queue = queue
        self._client = client
        self._asked: dict[str, tuple[str, list[int]]] = {}
        self._receipts = 0

    def next(self) -> Arrival:
        """The next message; receipts before it are noted."""
        while True:
            arrival = self._peer.next()
            if arrival.command == "RECEIPT":
                self._settled(arrival.headers["receipt-id"])
                continue
            headers = arrival.headers
            words = arrival.body.split(maxsplit=1)
            self._record.note(
                DELIVERED,
                self._queue,
                int(words[0]),
                client=self._client,
                message_id=headers["message-id"],
                group=headers.get("JMSXGroupID", ""),
                size=int(words[1]) if len(words) > 1 and words[1].isdigit() else 0,
                at_ms=arrival.at_ms,
            )
            return arrival

    def _settled(self, receipt: str) -> None:
        what, numbers = self._asked.pop(receipt)
        for number in numbers:
            self._record.note(what, self._queue, number)

    def accept(self, arrival: Arrival, numbers: list[int], transaction: str | None = None) -> None:
        """ACK; in a transaction it counts with its COMMIT, whose receipt is named like it."""
        for number in numbers:
            self._record.note(ANSWERED, self._queue, number)
        if transaction is None:
            self._peer.ack(arrival.headers["ack"], receipt=self._receipt(SETTLED, numbers))
        else:
            self.promise(arrival, numbers, transaction)

    def promise(self, arrival: Arrival, numbers: list[int], transaction: str) -> None:
        """ACK in a transaction, of what nobody waits for."""
        self._asked.setdefault(transaction, (SETTLED, []))[1].extend(numbers)
        self._peer.ack(arrival.headers["ack"], transaction=transaction)

    def give_up(self, transaction: str) -> None:
        """A transaction is aborted: nothing in it was answered."""
        self._asked[transaction] = (SETTLED, [])

    def refuse(self, arrival: Arrival) -> None:
        number = number_of(arrival)
        self._record.note(REFUSED, self._queue, number)
        self._peer.nack(arrival.headers["ack"], self._receipt(REFUSAL_CONFIRMED, [number]))

    def _receipt(self, what: str, numbers: list[int]) -> str:
        # Not by the delivery: a message that was refused comes again under the same id, perhaps before the receipt.
        self._receipts += 1
        receipt = f"r{self._receipts}"
        self._asked[receipt] = (what, numbers)
        return receipt


def number_of(arrival: Arrival) -> int:
    return int(arrival.body.split(maxsplit=1)[0])


def consume(
    record: Record,
    port: int,
    queue: str,
    random: Random,
    *,
    destination: str = "",
    client: str = "c",
    individual: bool = True,
    client_id: str = "",
    headers: dict[str, str] | None = None,
) -> None:
    """Acknowledges what comes, one by one or several at once, and leaves out some until the last life."""
    with StompPyPeer(port, client_id) as peer:
        reader = Reader(record, peer, queue, client)
        ack = "client-individual" if individual else "client"
        peer.subscribe(destination or f"/queue/{queue}", ack, {PREFETCH: "40", **(headers or {})})
        unanswered: list[int] = []
        while True:
            arrival = reader.next()
            unanswered.append(number_of(arrival))
            if random.random() < (0.01 if individual else 0.5) and not record.last:
                unanswered = [] if individual else unanswered
                continue
            reader.accept(arrival, unanswered)
            unanswered = []


def refuse_poison(record: Record, port: int, random: Random) -> None:
    with StompPyPeer(port) as peer:
        reader = Reader(record, peer, "retry", "c")
        peer.subscribe("/queue/retry", "client-individual", {PREFETCH: "40"})
        while True:
            arrival = reader.next()
            number = number_of(arrival)
            if number % POISON == 0:
                # It takes no part in how far the consumer is behind.
                record.note(ANSWERED, "retry", number)
                reader.refuse(arrival)
            else:
                reader.accept(arrival, [number])


def transact(record: Record, port: int, random: Random, client: str) -> None:
    """Moves messages from one queue to two others, some at a time; some transactions are aborted."""
    with StompPyPeer(port) as peer:
        reader = Reader(record, peer, "tx.in", client)
        peer.subscribe("/queue/tx.in", "client-individual", {PREFETCH: "20"})
        count = 0
        left = 0
        name = ""
        aborted = False
        while True:
            arrival = reader.next()
            number = number_of(arrival)
            if left == 0:
                count += 1
                name = f"{client}{count}"
                aborted = not record.last and random.random() < 0.1
                left = 1 if record.last else random.randrange(1, 5)
                peer.begin(name)
            for queue in ("tx.out", "tx.copy"):
                peer.send(f"/queue/{queue}", f"{number}", {"transaction": name})
            if aborted:
                peer.ack(arrival.headers["ack"], transaction=name)
            else:
                reader.accept(arrival, [number], name)
            left -= 1
            if left == 0 and aborted:
                reader.give_up(name)
                peer.abort(name)
            elif left == 0:
                peer.commit(name)


def move_batches(record: Record, port: int) -> None:
    """Acknowledges each batch as a whole, with a message that says so, in one transaction."""
    with StompPyPeer(port) as peer:
        reader = Reader(record, peer, "bulk.in", "mover")
        peer.subscribe("/queue/bulk.in", "client", WIDE)
        held: list[int] = []
        while True:
            arrival = reader.next()
            held.append(number_of(arrival))
            size = int(arrival.body.split()[1])
            batch, k = divmod(held[-1], BATCH)
            if k != size - 1:
                continue
            name = f"m{batch}"
            peer.begin(name)
            peer.send("/queue/bulk.out", str(batch), {"transaction": name})
            record.note(ANSWERED, "bulk.batches", batch)
            reader.promise(arrival, held, name)
            peer.commit(name)
            held = []
