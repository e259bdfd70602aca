"""Answers that only HTTP has: the envelopes of lists and single figures."""

from dataclasses import dataclass

from delosmq.manage.control.addresses import AddressInfo
from delosmq.manage.control.host import Reason
from delosmq.manage.control.queues import QueueInfo
from delosmq.sessions.lease.answers import GroupStat, LeaseExtent


@dataclass(frozen=True)
class QueueList:
    """The queues a login may view, by name."""

    queues: list[QueueInfo]


@dataclass(frozen=True)
class AddressList:
    """The addresses a login may view, by name."""

    addresses: list[AddressInfo]


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
class Health:
    """``status`` is UP or DOWN; if DOWN, why."""

    status: str
    detail: str
    reasons: list[Reason]
