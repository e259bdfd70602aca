"""Answers that only HTTP has: the envelopes of lists and single figures."""

from dataclasses import dataclass

from delosmq.manage.control.addresses import AddressInfo
from delosmq.manage.control.host import Reason
from delosmq.manage.control.queue_info import QueueInfo
from delosmq.manage.control.routers import RouterStatus
from delosmq.manage.control.transactions import HeuristicStatus, TransactionStatus
from delosmq.sessions.lease.answers import GroupStat, LeaseExtent
from delosmq.sessions.staging.session import ApplicationInfo, PartInfo


@dataclass(frozen=True)
class QueueList:
    """A page of the queues a login may view, by name.

    Attributes:
        next: ask for what is after it, "" when that was all.
        notice: says so when the login may not view everything.
    """

    queues: list[QueueInfo]
    next: str = ""
    notice: str = ""


@dataclass(frozen=True)
class AddressList:
    """A page of the addresses a login may view, by name. ``next``, ``notice``: as in `QueueList`."""

    addresses: list[AddressInfo]
    next: str = ""
    notice: str = ""


@dataclass(frozen=True)
class RouterList:
    """All connection routers, in the order of broker.xml."""

    routers: list[RouterStatus]


@dataclass(frozen=True)
class TransactionList:
    """A page of transactions, by id. ``next``: ask for what is after it, 0 when that was all."""

    transactions: list[TransactionStatus]
    next: int = 0


@dataclass(frozen=True)
class HeuristicList:
    """A page of what operators did to branches, by xid. ``next``: ask for what is after it, "" when that was all."""

    heuristics: list[HeuristicStatus]
    next: str = ""


@dataclass(frozen=True)
class Purged:
    """How many messages a purge has removed; while not ``done`` it goes on by itself."""

    removed: int
    done: bool


@dataclass(frozen=True)
class DeletedQueue:
    """A queue that is gone, and how many messages went with it."""

    deleted: str
    messages: int


@dataclass(frozen=True)
class DeletedAddress:
    """An address that is gone, and how many queues went with it."""

    deleted: str
    queues: int


@dataclass(frozen=True)
class Cleared:
    """How many duplicate ids an address has forgotten."""

    cleared: int


@dataclass(frozen=True)
class BranchEnd:
    """What an operator did to a branch. ``done``: false while a large commit still goes on by itself."""

    xid: str
    outcome: str
    done: bool


@dataclass(frozen=True)
class GroupList:
    """The lease groups a login may read, by name."""

    leases: list[GroupStat]


@dataclass(frozen=True)
class LeaseList:
    """Leases in order."""

    leases: list[LeaseExtent]


@dataclass(frozen=True)
class Acked:
    """The newest acknowledged lease."""

    acked: int


@dataclass(frozen=True)
class Released:
    """How many messages went back."""

    released: int


@dataclass(frozen=True)
class PartStaged:
    """A part is durable.

    Attributes:
        rows: how many messages it has; duplicates: left out, as their duplicate id was known; dropped: by a full
            address whose policy says so.
        published: its batch was published before, and nothing was staged.
    """

    part: str
    rows: int
    duplicates: int
    dropped: int
    published: bool


@dataclass(frozen=True)
class BatchPublished:
    """A batch is published; ``already``: it was before, which is success; ``last``: the last one that is."""

    batch: int
    already: bool
    last: int


@dataclass(frozen=True)
class DiscardedParts:
    """How many parts were discarded."""

    discarded: int


@dataclass(frozen=True)
class StagedParts:
    """Parts by name. ``next``: ask for what is after it, "" when that was all."""

    parts: list[PartInfo]
    next: str


@dataclass(frozen=True)
class StagedApplications:
    """Applications by name, likewise."""

    applications: list[ApplicationInfo]
    next: str


@dataclass(frozen=True)
class ForgottenApplication:
    """``forgotten``: it had published before."""

    application: str
    forgotten: bool


@dataclass(frozen=True)
class FirstPage:
    """Where to go on from ``/``."""

    broker: str
    api: str
    openapi: str
    health: str
    metrics: str
    documentation: str


@dataclass(frozen=True)
class Health:
    """``status`` is UP or DOWN; if DOWN, why; if UP, what the broker runs without, as its operator wished. ``role`` is
    primary, backup or primary-only, as its ha-policy says; a backup that is UP has taken over."""

    status: str
    detail: str
    reasons: list[Reason]
    role: str
