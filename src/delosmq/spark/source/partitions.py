"""What tasks read: ranges of leases for streams, ranges of sequences for batches."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from pyspark.sql.datasource import InputPartition

from delosmq.spark.lease_client import LeaseSummary
from delosmq.spark.lease_requests import UNFILTERED, BrowseFilter

ROWS_PER_PARTITION = 25_000
"""Without minPartitions: two tasks for a full default lease, one for what trickles in."""


@dataclass(frozen=True)
class LeaseRange(InputPartition):
    """Rows ``lo`` (inclusive) to ``hi`` (exclusive) of one lease. Pickled: to executors.

    Attributes:
        part, of: of these rows only those of message groups that belong to this part; ``of`` 1 for all rows.
        broker: index among `SourceOptions.brokers`.
        incarnation: the life of the group in which the lease was made; another has other leases of that number.
    """

    group: str
    lease: int
    lo: int
    hi: int
    part: int = 0
    of: int = 1
    broker: int = 0
    incarnation: str = ""


@dataclass(frozen=True)
class SequenceRange(InputPartition):
    """Messages of a queue with ``after`` < sequence <= ``until`` that pass ``wanted``. Pickled: to executors."""

    after: int
    until: int
    queue: str = ""
    broker: int = 0
    wanted: BrowseFilter = UNFILTERED


@dataclass(frozen=True, slots=True)
class LeaseOfGroup:
    """A lease and whose it is."""

    broker: int
    group: str
    lease: LeaseSummary
    incarnation: str = ""


def split_leases(leases: Sequence[LeaseOfGroup], min_partitions: int, *, by_group: bool = False) -> list[LeaseRange]:
    """Ranges of nearly equal size that together cover all rows of `leases` once, in order.

    Args:
        by_group: parts of message groups instead, each in one partition.
    """
    total = sum(held.lease.rows for held in leases)
    wanted = min_partitions or -(-total // ROWS_PER_PARTITION)
    ranges = []
    for held in leases:
        rows = held.lease.rows
        parts = min(rows, max(1, -(-wanted * rows // max(1, total))))
        for part in range(parts):
            lo, hi = (0, rows) if by_group else (rows * part // parts, rows * (part + 1) // parts)
            of_groups = (part, parts) if by_group else (0, 1)
            place = LeaseRange(held.group, held.lease.number, lo, hi, *of_groups, held.broker, held.incarnation)
            ranges.append(place)
    return ranges


def split_sequences(after: int, until: int, wanted: int) -> list[tuple[int, int]]:
    """`wanted` ranges, or as many as there are sequences, that cover `after` < sequence <= `until` once, in order."""
    width = until - after
    if width <= 0:
        return []
    parts = min(wanted, width)
    bounds = [after + width * part // parts for part in range(parts + 1)]
    return list(pairwise(bounds))
