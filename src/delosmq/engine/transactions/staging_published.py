"""The last published batch of each application: what makes a batch appear once, however often it is published."""

from typing import Final

from delosmq.engine.addresses.binding_codec import published_state_bytes
from delosmq.engine.addresses.bindings import Bindings
from delosmq.engine.base.timers import NS_PER_MS
from delosmq.engine.log.log import Log
from delosmq.engine.log.records import STAGING_VERSION, TRANSACTION, encode_json
from delosmq.engine.transactions.staging_errors import FENCED, NOT_YOURS, StagingError
from delosmq.model.errors import LimitError
from delosmq.model.ports import Clock

MOST_APPLICATIONS: Final = 10_000
"""All of them must fit into the state block of the store."""
SURE_MS: Final = 24 * 3_600_000
"""A published batch is forgotten only by a broker that has run for so long without hearing of its application: a clock
that is set forward must not make a batch appear twice."""
FORMER_ATTEMPTS: Final = 8
"""Remembered for an application."""


class PublishedBatch:
    """The last batch that an application published.

    Attributes:
        at_ms: wall clock; heard_ns: monotonic, of the last call that named it, or of the start.
        attempt: that asked for it last, "" when none said its name or the broker has started since; former: those
            before it, with the last batch that each asked for.
    """

    def __init__(self, application: str, batch: int, at_ms: int, made_by: str) -> None:
        self.application = application
        self.batch = batch
        self.at_ms = at_ms
        self.made_by = made_by
        self.heard_ns: int = 0
        self.state_bytes: int = 0
        self.attempt: str = ""
        self.attempt_batch: int = 0
        self.former: dict[str, int] = {}

    def check_attempt(self, attempt: str, batch: int) -> None:
        """Whether an attempt may publish.

        Raises:
            StagingError: FENCED, another one has published since.
        """
        if batch > self.former.get(attempt, batch):
            raise StagingError(
                "DMQ2667",
                FENCED,
                f"batch {batch} of '{self.application}' is not published: another run of the same query has published"
                f" batch {self.batch} since this one last did. Two queries share a name, as they do when a checkpoint"
                " is copied: stop one of them, and give it a checkpoint of its own",
            )

    def note_attempt(self, attempt: str, batch: int) -> None:
        """It asked for that batch, and was told that it is published."""
        if not attempt or attempt in self.former:
            return
        if self.attempt not in ("", attempt):
            self.former[self.attempt] = self.attempt_batch
            if len(self.former) > FORMER_ATTEMPTS:
                del self.former[next(iter(self.former))]
        self.attempt = attempt
        self.attempt_batch = batch


class PublishedBatches:
    """All of them.

    Attributes:
        by_name: of the application.
    """

    def __init__(self, bindings: Bindings, log: Log, clock: Clock, retention_ms: int) -> None:
        self._bindings = bindings
        self._log = log
        self._clock = clock
        self._retention_ms = retention_ms
        self.by_name: dict[str, PublishedBatch] = {}

    def holds(self, application: str, batch: int) -> bool:
        """Whether that batch, or a later one, was published."""
        last = self.by_name.get(application)
        return last is not None and batch <= last.batch

    def check_owner(self, application: str, user: str) -> None:
        """An application is the user's who staged or published for it.

        Raises:
            StagingError: NOT_YOURS.
        """
        last = self.by_name.get(application)
        if last is not None and last.made_by != user:
            raise StagingError(
                "DMQ2698",
                NOT_YOURS,
                f"application '{application}' publishes as another user; log in as that user, or let an operator forget"
                f" it (`delosmq staged forget {application}`) once its batches are all published",
            )

    def check_another(self, application: str, what: str, user: str) -> None:
        """Whether there may be one more, unless it is known.

        Raises:
            LimitError: there are too many.
        """
        if application in self.by_name:
            return
        if len(self.by_name) >= MOST_APPLICATIONS:
            raise LimitError(
                "DMQ2697",
                f"{what} is not published: the broker knows {MOST_APPLICATIONS} applications that publish, as many"
                " as it keeps; forget some that are gone (`delosmq staged forget`)",
            )
        self._bindings.checks.check_staged(what, published_state_bytes(application, user), user)

    def note(self, application: str, batch: int, at_ms: int, made_by: str) -> PublishedBatch:
        """That batch is the last one of its application; called live and by replay."""
        last = self.by_name.get(application)
        if last is None:
            last = PublishedBatch(application, batch, at_ms, made_by)
            last.state_bytes = published_state_bytes(application, made_by)
            self.by_name[application] = last
            self._bindings.client_limits.change(made_by, 0, last.state_bytes)
        last.batch = max(batch, last.batch)
        last.at_ms = at_ms
        last.heard_ns = self._clock.monotonic_ns()
        return last

    def forget(self, application: str) -> bool:
        """Forgets which batch an application published last; called live and by replay. False when none is known."""
        last = self.by_name.pop(application, None)
        if last is None:
            return False
        self._bindings.client_limits.change(last.made_by, 0, -last.state_bytes)
        return True

    def record_forget(self, application: str) -> bool:
        """The same, for good."""
        if not self.forget(application):
            return False
        self._log.record(encode_json(TRANSACTION, {"op": "forget published", "app": application}, STAGING_VERSION))
        self._log.close()
        return True

    def forget_overdue(self, now_ns: int, wall_ms: int) -> None:
        """Forgets applications that have not been heard of for the retention."""
        for application, last in list(self.by_name.items()):
            sure = now_ns - last.heard_ns >= min(SURE_MS, self._retention_ms) * NS_PER_MS
            if sure and wall_ms - last.at_ms >= self._retention_ms:
                self.record_forget(application)
