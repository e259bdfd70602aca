"""The epoch lease: what a broker may believe of the row by which it holds its tables.

The row has an epoch, which each takeover raises, the last batch, and a lease. A commit changes the row only where it
has the holder's epoch and the batch before, so that of two brokers one writes whatever the other believes. The lease is
for what leaves without a commit: it ends here a margin before it ends in the database.

    HOLDING --commit lost--> IN_DOUBT --row read--> HOLDING | FENCED        HOLDING --no such row--> FENCED

Pure: time comes in. See docs/decisions/0006-store-port.md.
"""

from typing import Final

from delosmq.model.errors import InvariantError

HOLDING: Final = "holding"
IN_DOUBT: Final = "in doubt"
FENCED: Final = "fenced"

DONE: Final = "done"
AGAIN: Final = "again"

MARGIN_SHARE: Final = 10
"""The part of the lease by which it ends here earlier: clocks of two machines that run apart by so much are broken."""


class EpochLease:
    """One holder's view of the row.

    Args:
        epoch: of the takeover.
        last_batch: the row's, at the takeover.
        expiration_ns: how long a lease lasts from the moment at which the database writes it.
        asked_ns: when the takeover was asked for. The database answered later, so that its lease ends later.

    Attributes:
        state: HOLDING, IN_DOUBT, FENCED.
        last_batch: the newest that is known to be committed.
        valid_until_ns: nothing may leave from then on without another commit or renewal.
    """

    def __init__(self, epoch: int, last_batch: int, *, expiration_ns: int, asked_ns: int) -> None:
        self.state = HOLDING
        self.epoch = epoch
        self.last_batch = last_batch
        self.valid_until_ns = 0
        self._lasting_ns = expiration_ns - expiration_ns // MARGIN_SHARE
        self._sent = last_batch
        self._extend(asked_ns)

    def may_leave(self, now_ns: int) -> bool:
        """Whether an answer may leave that needs no commit: nobody else can hold the row yet."""
        return self.state != FENCED and now_ns < self.valid_until_ns

    def send(self, last_batch: int) -> None:
        """A commit of everything up to ``last_batch`` is about to be sent."""
        if self.state != HOLDING or last_batch <= self.last_batch:
            raise InvariantError("DMQ3060", f"a commit up to batch {last_batch} while {self.state}")
        self._sent = last_batch

    def committed(self, asked_ns: int) -> None:
        """The commit that was sent at ``asked_ns`` is in the database, and with it a new lease."""
        self.last_batch = self._sent
        self._extend(asked_ns)

    def renewed(self, asked_ns: int) -> None:
        """The row has a lease from ``asked_ns`` on, at least."""
        self._extend(asked_ns)

    def lose(self) -> None:
        """The answer to a commit did not come, or says that no row fits."""
        if self.state == HOLDING:
            self.state = IN_DOUBT

    def find(self, epoch: int, last_batch: int) -> str:
        """The row was read: DONE, the commit is in it; AGAIN, it is not and may be sent again; or FENCED."""
        if self.state == FENCED or epoch != self.epoch:
            self.state = FENCED
        elif last_batch == self._sent:
            self.state = HOLDING
            self.last_batch = last_batch
            return DONE
        elif last_batch == self.last_batch:
            self.state = HOLDING
            return AGAIN
        else:
            self.state = FENCED
        return FENCED

    def end(self) -> None:
        """The row is another's, or there is none."""
        self.state = FENCED

    def _extend(self, asked_ns: int) -> None:
        self.valid_until_ns = max(self.valid_until_ns, asked_ns + self._lasting_ns)
