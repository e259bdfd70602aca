"""What one comparison measures, of whom, and what its report says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks import frames
from benchmarks.aims import OPENWIRE_AIMS, STOMP_AIMS, Aim
from benchmarks.brokers import OPENWIRE_DRIVERS, OURS, PEERS, STOMP_DRIVERS
from benchmarks.brokers.base import Driver
from benchmarks.cells import ACK_EVERY, CELLS, COLD_CELLS, IN_FLIGHT, PREFETCH, WARM_UP, Cell
from benchmarks.load import Load
from benchmarks.openwire import cells as openwire
from benchmarks.openwire.load import OpenWireLoad
from benchmarks.stomp_load import StompLoad


@dataclass(frozen=True)
class Comparison:
    """One protocol's comparison.

    Attributes:
        peers: whom ratios are to; the better one counts.
        columns: whom tables show even when they were not measured.
        warms_load: the load itself is warmed first, by a broker whose figures nobody sees.
        describe: what the report says about the conditions that the results file holds.
    """

    name: str
    drivers: Mapping[str, Callable[[], Driver]]
    default_brokers: Sequence[str]
    peers: Sequence[str]
    columns: Sequence[str]
    cells: Sequence[Cell]
    cold_cells: Sequence[Cell]
    warm_up: Sequence[Cell]
    load: Callable[[int | None], Load]
    warms_load: bool
    aims: Sequence[Aim]
    conditions: Mapping[str, Any]
    describe: Callable[[Mapping[str, Any]], str]


def _describe_stomp(conditions: Mapping[str, Any]) -> str:
    return (
        f"Messages of {conditions['body_size_bytes']:,} bytes. Each connection counted is one producer and one consumer"
        f" with a queue of their own; consumers hold at most {conditions['prefetch']:,} messages and acknowledge every"
        f" {conditions['ack_every']}th, cumulatively, at every broker alike; a cell ends when the last acknowledgement"
        f" is confirmed. Without receipts at most {conditions['in_flight_without_receipts']:,} messages are on their"
        " way."
    )


def _describe_openwire(conditions: Mapping[str, Any]) -> str:
    return (
        f"ActiveMQ's own Java client, unmodified and of the version below, in one warm virtual machine. Messages of"
        f" {conditions['body_size_bytes']:,} bytes. Each connection counted is one producer and one consumer, each with"
        " a connection of its own, with a queue of their own; the client's defaults hold but for nodelay. The client"
        " waits for the answer to each persistent message and to each commit; this answer is the receipt. A cell ends"
        " when every acknowledgement has arrived. At full speed at most"
        f" {conditions['in_flight']:,} messages are on their way, but {conditions['in_flight_per_pair_at_least']:,} for"
        f" each connection at least. At half load {conditions['batch']} transacted messages are due at once."
    )


STOMP = Comparison(
    name="stomp",
    drivers=STOMP_DRIVERS,
    default_brokers=(*OURS, *PEERS, "sink"),
    peers=PEERS,
    columns=(*OURS, *PEERS),
    cells=CELLS,
    cold_cells=COLD_CELLS,
    warm_up=WARM_UP,
    load=StompLoad,
    warms_load=False,
    aims=STOMP_AIMS,
    conditions={
        "body_size_bytes": frames.BODY_SIZE_BYTES,
        "prefetch": PREFETCH,
        "ack_every": ACK_EVERY,
        "in_flight_without_receipts": IN_FLIGHT,
    },
    describe=_describe_stomp,
)
OPENWIRE = Comparison(
    name="openwire",
    drivers=OPENWIRE_DRIVERS,
    default_brokers=("delosmq-compiled", "activemq"),
    peers=("activemq",),
    columns=("delosmq-compiled", "activemq"),
    cells=openwire.CELLS,
    cold_cells=openwire.COLD_CELLS,
    warm_up=openwire.WARM_UP,
    load=OpenWireLoad,
    warms_load=True,
    aims=OPENWIRE_AIMS,
    conditions={
        "body_size_bytes": openwire.BODY_SIZE_BYTES,
        "batch": openwire.BATCH,
        "in_flight": openwire.IN_FLIGHT,
        "in_flight_per_pair_at_least": openwire.IN_FLIGHT_PER_PAIR_AT_LEAST,
    },
    describe=_describe_openwire,
)
COMPARISONS = {comparison.name: comparison for comparison in (STOMP, OPENWIRE)}
