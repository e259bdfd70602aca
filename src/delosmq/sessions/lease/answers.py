"""What lease calls answer: plain values, named as the HTTP API names them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class GroupLimits:
    """What the broker puts into one lease at most, whatever is asked for, and what one group holds at most."""

    max_rows: int
    max_bytes: int
    leased_rows: int
    leased_bytes: int


@dataclass(frozen=True)
class OpenedGroup:
    """A group in the hands of a run.

    Attributes:
        acked: newest acknowledged lease, 0 for none.
        lease: newest lease made, 0 for none.
        version: of these calls; features: what they have beside those of the first version.
    """

    group: str
    queue: str
    incarnation: str
    epoch: int
    acked: int
    lease: int
    version: int
    features: list[str]
    limits: GroupLimits


@dataclass(frozen=True)
class LeaseExtent:
    """One lease: its number, how large it is, the sequences of its first and last row. All but the number are 0 in the
    answer "nothing new"."""

    lease: int
    rows: int
    bytes: int
    first_sequence: int
    last_sequence: int


@dataclass(frozen=True)
class GroupStat:
    """Where a group stands.

    Attributes:
        newest_sequence: of the last message its queue was given, or is being given as it is committed.
        ready: messages that wait in the queue; leased: messages in leases that are not acknowledged.
        oldest_age_ms: age of the oldest of both, 0 when there are none.
        contact_age_ms: since its run was last heard of.
        expires_in_ms: when the group ends unless its run calls.
    """

    group: str
    queue: str
    incarnation: str
    newest_sequence: int
    ready: int
    leased: int
    oldest_age_ms: int
    acked: int
    lease: int
    epoch: int
    contact_age_ms: int
    expires_in_ms: int


@dataclass(frozen=True)
class GroupDetail:
    """A group, and its leases that are not acknowledged, in order."""

    group: GroupStat
    leases: list[LeaseExtent]
