"""Group commit: at most one sync is under way, and the next one covers everything that came meanwhile.

Why: docs/decisions/0004-group-commit.md; what waits for no sync: 0046.
"""

from delosmq.model.errors import StorageError
from delosmq.model.ids import NOTHING_DURABLE, Position
from delosmq.storage.journal.footers import FooterWriter
from delosmq.storage.journal.manifest_changes import ManifestChanges
from delosmq.storage.journal.open_segment import OpenSegment
from delosmq.storage.journal.segments import Segment
from delosmq.storage.journal.spares import NO_SPACE, Spares
from delosmq.storage.journal.sync.syncer import Replaced, Synced, Syncer


class GroupCommit:
    """Asks for syncs and takes in their answers.

    Attributes:
        under_way: an answer is outstanding.
    """

    def __init__(
        self, syncer: Syncer, opened: OpenSegment, spares: Spares, footers: FooterWriter, changes: ManifestChanges
    ) -> None:
        self._syncer = syncer
        self._opened = opened
        self._spares = spares
        self._footers = footers
        self._changes = changes
        self._ticket = 0
        self._asked = Position(0)
        self._overdue = Position(0)  # to be synced though no client waits
        # What the sync under way makes true.
        self._freed: list[Segment] = []
        self._finished: list[Segment] = []
        self.under_way = False

    def begin(self) -> None:
        """Everything written so far is on the disk."""
        self._asked = self._opened.written

    def put_off(self) -> Position:
        written = self._opened.written
        return written if written > self._asked else NOTHING_DURABLE

    def insist(self, position: Position) -> None:
        """Everything up to ``position`` is to be synced, even if no client waits for it."""
        if position > self._overdue:
            self._overdue = position

    def ask_if_wanted(self) -> None:
        """Asks for a sync when a client waits for one, or `insist` was called. The rest, such as an acknowledgement
        without an answer, comes along."""
        if not self.under_way and self._is_wanted():
            self._ask()

    def ask_for_written(self) -> None:
        """The position of everything written."""
        if not self.under_way and self._opened.written > self._asked:
            self._ask()

    def _is_wanted(self) -> bool:
        if self._changes.freed:
            return True
        asked = self._asked
        if self._opened.written <= asked:
            return False
        events = self._opened.status.events
        return self._overdue > asked or events is None or events.awaited() > asked

    def _ask(self) -> None:
        if self._opened.status.failure is not None:
            return
        self._ticket += 1
        self.under_way = True
        replacement = self._changes.replacement()
        if replacement is not None:
            self._syncer.replace_manifest(self._ticket, replacement)
            return
        try:
            edit = self._changes.edit()
        except StorageError as error:
            self._opened.fail(error)
            return
        self._asked = self._opened.written
        self._freed = self._changes.take_freed()
        self._finished = self._footers.take_finished()
        self._syncer.sync(self._ticket, self._opened.handles.take_unsynced(), self._asked, edit)

    def on_synced(self, report: Synced) -> bool:
        """Takes in an answer; whether more is on the disk now."""
        if report.error is not None:
            self._opened.fail(report.error)
            return False
        self.under_way = False
        advanced = self._asked > self._opened.synced
        self._opened.synced = self._asked
        for segment in self._finished:
            self._opened.handles.close(segment)
        self._finished = []
        freed = self._freed
        self._freed = []
        if freed:
            # The list without them is on the disk: no recovery will ever ask for these again.
            for segment in freed:
                self._opened.handles.close(segment)
            self._spares.reuse([segment.name for segment in freed])
        return advanced

    def on_replaced(self, report: Replaced) -> None:
        """Takes in whether there is another manifest; what waited for that is asked for."""
        self.under_way = False
        error = report.error
        if error is None:
            self._changes.on_rewritten()
        elif report.unchanged and error.errno in NO_SPACE:
            self._changes.put_off_rewriting()
        else:
            self._opened.fail(error)
            return
        self._ask()

    def close(self) -> None:
        """Nothing more is asked for."""
        for segment in [*self._changes.take_freed(), *self._freed]:
            self._opened.handles.close(segment)
