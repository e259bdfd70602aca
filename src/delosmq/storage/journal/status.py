"""Whether a journal runs: it fails once, and after that nothing is written, synced or confirmed."""

from delosmq.engine.log.ports import StoreEvents
from delosmq.model.errors import StorageError, SupersededError
from delosmq.storage.activation import SUPERSEDED_ERRNO
from delosmq.storage.journal.files import Files


class JournalStatus:
    """The state of one journal, for all of its parts.

    Attributes:
        open: batches are taken: it is recovered, has not failed and is not closed.
        failure: the first one; None while there is none.
        events: who hears of it; None till the journal is attached.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self.open = False
        self.failure: StorageError | None = None
        self.events: StoreEvents | None = None

    def fail(self, error: OSError | StorageError, name: str) -> None:
        """Ends the journal; its open segment lies in the file ``name``."""
        if self.failure is not None:
            return
        if isinstance(error, StorageError):
            self.failure = error
        elif error.errno == SUPERSEDED_ERRNO:
            self.failure = SupersededError(
                "DMQ3053",
                f"{self._files.path(name)}: another broker is active on the shared directory since; this one stops, "
                "and what it did not confirm does not count: start it again, and it waits for its turn",
            )
        else:
            self.failure = StorageError(
                "DMQ3019",
                f"{self._files.path(name)}: writing or syncing failed ({error}); nothing more is confirmed, "
                "the broker must be restarted once the disk works",
            )
        self.open = False
        if self.events is not None:
            self.events.on_failure(self.failure)

    def refusal(self) -> StorageError:
        """Why nothing can be done with this journal."""
        return self.failure or StorageError("DMQ3024", "the journal is not open")
