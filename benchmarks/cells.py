"""What is measured: one cell per way of sending and number of connections."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

# A consumer may hold this many unacknowledged messages, at every broker; it acknowledges every tenth, cumulatively.
PREFETCH = 1_000
ACK_EVERY = 10
# Without receipts, so many messages at most are between generator and consumers, over all connections.
IN_FLIGHT = 1_000


@dataclass(frozen=True)
class Cell:
    """One way of sending: `connections` producers and as many consumers, each pair with a queue of its own."""

    name: str
    persistent: bool
    outstanding: int | None  # receipts awaited at most, per producer; None: no receipts
    connections: int
    messages: int

    def scaled(self, share: float) -> Self:
        """The same with fewer messages, but not too few to fill the connections."""
        messages = max(int(self.messages * share), 20 * self.connections)
        return replace(self, messages=messages)


CELLS = (
    Cell("non-persistent, 1 connection", False, None, 1, 200_000),
    Cell("non-persistent, 16 connections", False, None, 16, 200_000),
    Cell("persistent, 100 outstanding, 1 connection", True, 100, 1, 40_000),
    Cell("persistent, 100 outstanding, 16 connections", True, 100, 16, 40_000),
    Cell("persistent, 1 outstanding, 1 connection", True, 1, 1, 8_000),
    Cell("persistent, 1 outstanding, 16 connections", True, 1, 16, 24_000),
)
CELL_NAMES = tuple(cell.name for cell in CELLS)

# Run right after the start, before anything is warm.
COLD_CELLS = (
    Cell("cold, non-persistent, 1 connection", False, None, 1, 20_000),
    Cell("cold, persistent, 100 outstanding, 1 connection", True, 100, 1, 5_000),
)
# A virtual machine that compiles as it runs is given this before anything counts.
WARM_UP = (
    Cell("warm up, non-persistent", False, None, 1, 200_000),
    Cell("warm up, non-persistent, 16 connections", False, None, 16, 100_000),
    Cell("warm up, persistent", True, 100, 16, 20_000),
)


@dataclass(frozen=True)
class Job:
    """What the generator is told: where to connect, what to send. `rate_per_s` None: as fast as answers allow."""

    port: int
    login: str
    passcode: str
    host: str
    subscribe_headers: dict[str, str]
    persistent: bool
    outstanding: int | None
    connections: int
    messages: int
    core: int | None
    rate_per_s: float | None = None
    ack_every: int = ACK_EVERY
    in_flight: int = IN_FLIGHT
    stall_after_s: float = 60.0

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


@dataclass
class Latency:
    """Milliseconds from the moment a message was due to be sent, by nearest rank."""

    count: int
    p50_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float

    @classmethod
    def of(cls, seconds: list[float]) -> Latency:
        """Sorts the list in place."""
        seconds.sort()
        last = len(seconds) - 1

        def rank(share: float) -> float:
            return round(seconds[min(last, int(share * len(seconds)))] * 1000, 3)

        return cls(len(seconds), rank(0.5), rank(0.99), rank(0.999), round(seconds[last] * 1000, 3))


@dataclass
class Outcome:
    """What the generator saw. Counts are of messages."""

    sent: int
    confirmed: int
    received: int
    acks: int
    elapsed_s: float  # first send until the last acknowledgement was confirmed
    confirmed_after_s: float | None  # first send until the last receipt
    generator_cpu_s: float
    delivery: Latency | None = None
    receipt: Latency | None = None
    send_lag: Latency | None = None
    notes: list[str] = field(default_factory=list)

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Outcome:
        """The reverse of `dataclasses.asdict`."""
        for name in ("delivery", "receipt", "send_lag"):
            if fields.get(name) is not None:
                fields[name] = Latency(**fields[name])
        return cls(**fields)
