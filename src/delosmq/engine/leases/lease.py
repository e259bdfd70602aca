"""What leases are made of: the lease itself, the group that reads, calls that wait, and what is refused."""

from abc import ABC, abstractmethod
from typing import Final

from mypy_extensions import mypyc_attr

from delosmq.engine.base.slots import Slot
from delosmq.engine.dispatch.lease_search import TAKES_ALL, LeaseWish
from delosmq.engine.leases.rows import LeaseParts, LeaseSlots
from delosmq.engine.queues.in_delivery import Holder
from delosmq.engine.queues.queue import Queue
from delosmq.model.errors import BrokerError
from delosmq.model.settings import BrokerSettings

MESSAGES: Final = 0
NEXT_TICK: Final = 1
ROOM: Final = 2
RESUMED: Final = 3
LINKED: Final = 4
"""What a lease under way waits for (`LeaseGroup.waits_for`): a change in its queue; to look on, as its slice is over;
room in the store, for a message that has to be stored with the lease, or has expired and is to be copied; the end of
what suspends its queue; messages that a large commit still adds, up to the last one wanted."""

ROWS_PER_SLICE: Final = 500
"""Of what is done with the rows of a lease."""

GROUP_BUSY: Final = "GROUP_BUSY"
FOREIGN_INCARNATION: Final = "FOREIGN_INCARNATION"
FENCED: Final = "FENCED"
LEASE_LOST: Final = "LEASE_LOST"
OTHER_SELECTOR: Final = "OTHER_SELECTOR"

RELEASED: Final = "released"
EXPIRED: Final = "expired"
DELETED: Final = "queue deleted"
"""Why a group ended."""


class LeaseError(BrokerError):
    """A lease call that can't be served.

    Attributes:
        condition: one of the constants above, stable for clients.
    """

    def __init__(self, code: str, condition: str, message: str) -> None:
        super().__init__(code, message)
        self.condition = condition


@mypyc_attr(allow_interpreted_subclasses=True)
class LeaseWaiter(ABC):
    """A call that waits for messages to lease."""

    @abstractmethod
    def on_messages(self) -> None:
        """The queue has messages for the group, or a slice of the lease under way is done: request again."""


class Lease:
    """One lease, of at least one message. Its rows never change."""

    def __init__(self, number: int, rows: LeaseSlots) -> None:
        self.number = number
        self.rows = rows
        self.slots: list[Slot] = rows.slots
        self._parts: LeaseParts | None = None

    def parts(self, of: int) -> LeaseParts:
        """Its rows in so many parts. Kept with the lease, for the number of parts that was asked for last: a reader
        asks for all of one number, each part by itself."""
        parts = self._parts
        if parts is None or parts.of != of:
            parts = self._parts = LeaseParts(self.slots, of)
        return parts

    @property
    def first_sequence(self) -> int:
        return self.slots[0].sequence

    @property
    def last_sequence(self) -> int:
        return self.slots[-1].sequence


class LeaseStart:
    """With which message a new group begins: the first there is, or as it says.

    Attributes:
        sequence: with this sequence; time_ms: accepted then or later; 0 for any.
        latest: the next one that comes.
    """

    def __init__(self, sequence: int = 0, time_ms: int = 0, *, latest: bool = False) -> None:
        self.sequence = sequence
        self.time_ms = time_ms
        self.latest = latest


EARLIEST: Final = LeaseStart()


class LeaseBounds:
    """What leases and their groups may have at most; of one message always.

    Attributes:
        max_rows, max_bytes: in one lease.
        leased_rows, leased_bytes: of one group, with what it acknowledged and is not worked off yet.
    """

    def __init__(self, settings: BrokerSettings) -> None:
        self.max_rows: int = settings.lease_max_rows
        self.max_bytes: int = settings.lease_max_bytes
        self.leased_rows: int = settings.leased_max_rows
        self.leased_bytes: int = settings.leased_max_bytes


class LeaseGroup(Holder):
    """A reader's place in a queue.

    Attributes:
        acked: leases up to this number are acknowledged; newest: number of the newest lease made.
        draft: rows taken for the lease under way.
        settling: acknowledged leases that still have references to end.
        contact_ms: wall clock of the last call by its run, for diagnostics; contact_ns: monotonic, 0 before the first
            one since the start.
        warned: told that its retention ends soon, since then.
        made_by: the user of the client that opened it first, "" for none; what a state block says of it counts to that
            user.
        state_bytes: that, without its leases.
        wish: what its leases take. selector: of its reader; the filter of the queue that it owns sees to that.
        owns_queue: its queue is the subscription to a topic that was made for it, and ends with it.
        waits_for: what the lease under way waits for, one of the constants above.
    """

    def __init__(self, name: str, queue: Queue, incarnation: str, wish: LeaseWish = TAKES_ALL) -> None:
        super().__init__()
        self.wish = wish
        self.selector: str = wish.selector
        self.name = name
        self.queue = queue
        self.incarnation = incarnation
        self.epoch: int = 0
        self.run: str = ""
        self.made_by: str = ""
        self.state_bytes: int = 0
        self.acked: int = 0
        self.newest: int = 0
        self.contact_ms: int = 0
        self.contact_ns: int = 0
        self.warned: bool = False
        self.leases: dict[int, Lease] = {}
        self.settling: dict[int, Lease] = {}
        self.draft: LeaseSlots = LeaseSlots()
        self.owns_queue: bool = False
        self.waits_for: int = MESSAGES
        self.waiters: list[LeaseWaiter] = []

    def called(self) -> str:
        return f"lease {self.name}"

    def user_name(self) -> str:
        return self.made_by

    @property
    def collecting(self) -> bool:
        """Whether the lease under way comes whatever happens: its reader asks again, however long that takes."""
        return len(self.draft.slots) > 0 or self.waits_for != MESSAGES

    @property
    def building(self) -> list[Slot]:
        """Slots taken for the lease under way."""
        return self.draft.slots

    @property
    def leased_count(self) -> int:
        """Messages in leases that are not acknowledged, the one under way included."""
        count = len(self.draft.slots)
        for lease in self.leases.values():
            count += len(lease.slots)
        return count

    @property
    def settling_bytes(self) -> int:
        """Size of the leases that are acknowledged and not worked off."""
        size = 0
        for lease in self.settling.values():
            size += lease.rows.size_bytes
        return size

    def check_selector(self, selector: str) -> None:
        """Whether its reader may go on with this selector.

        Raises:
            LeaseError: it is another one than that of the group.
        """
        if selector != self.selector:
            had = f'the selector "{self.selector}"' if self.selector else "no selector"
            raise LeaseError(
                "DMQ2411",
                OTHER_SELECTOR,
                f"group '{self.name}' was made with {had}, and keeps it: open it with the same one, or use another"
                " group.id",
            )

    def wish_as_json(self) -> dict[str, object]:
        """What it takes, in its record and in the state block; nothing where it takes all."""
        wish = self.wish
        if not self.selector and wish.takes_all:
            return {}
        return {"selector": self.selector, "wish": [wish.selector, wish.from_sequence, wish.from_ms]}

    def adopt(self, lease: Lease) -> None:
        """Makes a lease part of its group: live and in replay."""
        self.leases[lease.number] = lease
        self.newest = lease.number

    def acknowledge(self, number: int) -> None:
        """Marks leases up to ``number`` acknowledged, live and in replay."""
        for k in range(self.acked + 1, number + 1):
            lease = self.leases.pop(k, None)
            if lease is not None:
                self.settling[k] = lease
        self.acked = number
        self.newest = max(self.newest, number)
