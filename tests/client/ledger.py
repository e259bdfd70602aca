"""What clients were promised and what they saw, while their connections broke."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from delosmq.client import AckMode

SHOWN = 5


@dataclass(frozen=True, slots=True)
class Arrival:
    """A message that an application has received.

    Attributes:
        client: the connection it came by.
        over: breaks that were over when it was asked for.
        noticed: ends of connections that clients had noticed when it was asked for.
    """

    client: int
    over: int
    noticed: int


@dataclass
class Ledger:
    """
    Attributes:
        listens: applications have listeners: a message at which one was at work when a connection broke comes again.
        breaks, over: that have begun, and after which all clients are connected again.
        noticed, again: how often a connection has ended, and was made again.
        ways: by which it was made again.
        sent: numbers that were given to `send`.
        under_way: those that may still come for the first time.
        confirmed: those of which the client said that they are safe.
        undone: those of which it said that they are not sent.
        in_doubt: batches whose commit may have happened.
        arrivals: by number, in order.
        solid: numbers whose acknowledgement returned without a break since they were asked for, and by which client.
        copied: what transactions have sent on, as it was found in the end.
        dead: what was found among the dead letters.
        left: what was still in the queue.
    """

    mode: AckMode
    listens: bool = False
    breaks: int = 0
    over: int = 0
    noticed: int = 0
    again: int = 0
    ways: set[int] = field(default_factory=set)
    sent: set[int] = field(default_factory=set)
    under_way: set[int] = field(default_factory=set)
    confirmed: set[int] = field(default_factory=set)
    undone: set[int] = field(default_factory=set)
    in_doubt: list[list[int]] = field(default_factory=list)
    arrivals: dict[int, list[Arrival]] = field(default_factory=lambda: defaultdict(list))
    solid: set[tuple[int, int]] = field(default_factory=set)
    copied: list[int] = field(default_factory=list)
    dead: list[int] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    after_acknowledgement: list[int] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def sends(self, number: int) -> None:
        self.sent.add(number)
        self.under_way.add(number)

    def takes_back(self, batch: list[int]) -> None:
        """A transaction that was rolled back."""
        self.undone.update(batch)
        self.under_way.difference_update(batch)

    def doubts(self, batch: list[int]) -> None:
        """A transaction whose end nobody knows."""
        self.in_doubt.append(batch)
        self.under_way.difference_update(batch)

    def arrived(self, number: int, arrival: Arrival) -> None:
        for earlier in self.arrivals[number]:
            if self.mode == AckMode.TRANSACTED:
                break  # a rollback, ours or the connection's, has all come again
            if earlier.over == self.breaks:
                self.wrong.append(f"{number} came twice without a break in between")
            elif (number, earlier.client) in self.solid and earlier.client == arrival.client:
                self.wrong.append(f"{number} came to a connection that had acknowledged it")
        if self.mode != AckMode.TRANSACTED and any(
            (number, earlier.client) in self.solid for earlier in self.arrivals[number]
        ):
            self.after_acknowledgement.append(number)
        self.arrivals[number].append(arrival)
        self.under_way.discard(number)

    def acknowledged(self, number: int, client: int) -> None:
        last = [arrival for arrival in self.arrivals[number] if arrival.client == client][-1]
        if last.noticed == self.noticed:
            self.solid.add((number, client))

    @property
    def received(self) -> int:
        """How often messages came."""
        return sum(map(len, self.arrivals.values()))

    def missing(self) -> set[int]:
        """What was promised and has not come."""
        return self.confirmed - set(self.arrivals)

    def broken_promises(self) -> list[str]:
        """Sentences about what is wrong, once all has come that will."""
        wrong = self.wrong[:SHOWN]
        transacted = self.mode == AckMode.TRANSACTED
        outcome = set(self.copied) if transacted else set(self.arrivals)
        wrong += named("confirmed, and lost", self.confirmed - outcome)
        wrong += named("never sent, and came", set(self.arrivals) - self.sent)
        wrong += named("rolled back, and came", set(self.arrivals) & self.undone)
        wrong += named("among the dead letters before an application saw them", set(self.dead) - set(self.arrivals))
        wrong += named("still in the queue", set(self.left))
        copies = Counter(self.copied)
        wrong += named("sent on twice by transactions", {number for number, count in copies.items() if count > 1})
        for batch in self.in_doubt:
            if 0 < len(outcome.intersection(batch)) < len(batch):
                wrong.append(f"a transaction happened in part: {batch}")
        if self.mode in (AckMode.AUTO, AckMode.DUPS_OK) and not self.listens:
            wrong += named("twice to one connection", {number for number in self.arrivals if self._repeated(number)})
        return wrong

    def _repeated(self, number: int) -> bool:
        clients = [arrival.client for arrival in self.arrivals[number]]
        return len(set(clients)) < len(clients)

    def summary(self) -> str:
        doubles = sum(len(arrivals) - 1 for arrivals in self.arrivals.values())
        return (
            f"{self.breaks} breaks, {len(self.sent)} sent, {len(self.confirmed)} confirmed, "
            f"{len(self.arrivals)} received, {doubles} doubles ({len(self.after_acknowledgement)} of what another "
            f"connection had acknowledged), {len(self.dead)} kept from the application as dead letters"
        )


def named(what: str, numbers: set[int]) -> list[str]:
    return [f"{len(numbers)} {what}: {sorted(numbers)[:SHOWN]}"] if numbers else []
