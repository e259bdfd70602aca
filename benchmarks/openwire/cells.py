"""What is measured over OpenWire: ways of acknowledging, each with and without persistence, over few and many."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.cells import Cell

BODY_SIZE_BYTES = 1_024
# Messages that one commit covers, at the producer and at the consumer.
BATCH = 100
# Of one pair between producer and consumer, unless there is a rate; two batches at least, or transacted ones wait for
# each other.
IN_FLIGHT = 1_000
IN_FLIGHT_PER_PAIR_AT_LEAST = 2 * BATCH

AUTO = "AUTO"
TRANSACTED = f"transacted by {BATCH}"
OPTIMIZED = "optimizeAcknowledge"


@dataclass(frozen=True)
class OpenWireCell(Cell):
    """A connection is one producer and one consumer, each with a connection of its own, and their queue."""

    mode: str = AUTO

    @property
    def in_flight_per_pair(self) -> int:
        """How many messages of a pair may be on their way."""
        return max(IN_FLIGHT // self.connections // 10 * 10, IN_FLIGHT_PER_PAIR_AT_LEAST)


def _cell(mode: str, connections: int, messages: int, *, persistent: bool, prefix: str = "") -> OpenWireCell:
    kind = "persistent" if persistent else "non-persistent"
    count = "1 connection" if connections == 1 else f"{connections} connections"
    # Without a transaction the client waits for the answer to each persistent message.
    outstanding = 1 if persistent else None
    return OpenWireCell(f"{prefix}{kind}, {mode}, {count}", persistent, outstanding, connections, messages, mode)


CELLS = (
    *(_cell(mode, count, 120_000, persistent=False) for mode in (AUTO, TRANSACTED, OPTIMIZED) for count in (1, 16)),
    _cell(AUTO, 1, 8_000, persistent=True),
    _cell(AUTO, 16, 16_000, persistent=True),
    _cell(TRANSACTED, 1, 40_000, persistent=True),
    _cell(TRANSACTED, 16, 48_000, persistent=True),
    _cell(OPTIMIZED, 1, 8_000, persistent=True),
    _cell(OPTIMIZED, 16, 16_000, persistent=True),
)

COLD_CELLS = (
    _cell(AUTO, 1, 20_000, persistent=False, prefix="cold, "),
    _cell(AUTO, 1, 4_000, persistent=True, prefix="cold, "),
)

WARM_UP = (
    _cell(AUTO, 1, 150_000, persistent=False, prefix="warm up, "),
    _cell(TRANSACTED, 16, 80_000, persistent=False, prefix="warm up, "),
    _cell(OPTIMIZED, 16, 80_000, persistent=False, prefix="warm up, "),
    _cell(AUTO, 16, 16_000, persistent=True, prefix="warm up, "),
    _cell(TRANSACTED, 16, 32_000, persistent=True, prefix="warm up, "),
)
