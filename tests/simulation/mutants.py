"""Journals that break one promise each: the simulation must catch every one of them, or it proves nothing."""

from delosmq.engine.log.log import Replay
from delosmq.model.ids import Position
from delosmq.storage.journal.manifest import Edit, Manifest, ManifestWriter
from delosmq.storage.journal.reading import Reading, Scan
from delosmq.storage.journal.recovery import Recovery
from delosmq.storage.journal.segments import Ledger, Segment
from delosmq.storage.journal.spares import Spares
from delosmq.storage.journal.store import JournalStore


class OpensTheGateEarly(JournalStore):
    """Reports what is written as synced."""

    def _ask(self) -> None:
        super()._ask()
        if self._written > self._synced:
            self._synced = self._written
            assert self._events is not None
            self._events.on_synced(self._written)


class RecyclesEarly(JournalStore):
    """Reuses freed files before the list without them is on the disk."""

    def _let_go(self, freed: list[Segment]) -> None:
        super()._let_go(freed)
        freed, self._freed = self._freed, []
        self._recycle(freed)


class LeavesTheStateBlockUnsynced(JournalStore):
    """Syncs the sealed segment but not the one whose state block frees files."""

    def _ask(self) -> None:
        if self._freed and len(self._dirty) > 1:
            del self._dirty[self._open.handle]
        super()._ask()


class _ForgetfulLedger(Ledger):
    def pinned(self, segment: Segment) -> bool:
        return False


class ForgetsRemovals(JournalStore):
    """Frees segments whose removals are still needed."""

    def _build(self, recovery: Recovery) -> None:
        self._ledger = _ForgetfulLedger()
        super()._build(recovery)


class _FollowsAnything(Recovery):
    """Takes any segment that was begun for the next one, whichever its state block says was before it."""

    def _successor(self, tail: Scan) -> Scan | None:
        begun = [number for number, scan in self._later.items() if scan.begun]
        return self._later.pop(min(begun)) if begun else None


class TrustsStaleBytes(JournalStore):
    """Neither seed, mark nor what a state block says tells the former life of a recycled file apart."""

    def __init__(self, *positional: object, **named: object) -> None:
        named["entropy"] = bytes
        super().__init__(*positional, **named)  # type: ignore[arg-type]

    @staticmethod
    def _seed_of(number: int) -> int:
        return 0

    def _recovery(self) -> Recovery:
        return _FollowsAnything(self._files, self._node_id, self._seed_of, self._logger)


class FollowsUnconfirmedSegments(JournalStore):
    """Goes on to segments that a crash has left behind, though what lies between is torn."""

    def _recovery(self) -> Recovery:
        return _FollowsAnything(self._files, self._node_id, self._seed_of, self._logger)


class _MissesNothing(Recovery):
    def _find_opened(self, manifest: Manifest) -> Scan | None:
        return super()._find_opened(manifest) if manifest.opened in self.headers else None


class MissesNoFile(JournalStore):
    """Starts with the segments before the newest one when that is gone."""

    def _recovery(self) -> Recovery:
        return _MissesNothing(self._files, self._node_id, self._seed_of, self._logger)


class TellsTheManifestEarly(JournalStore):
    """Writes what a sync is to make true before that sync."""

    def _edit_manifest(self, *, always: bool = False) -> Edit | None:
        edit = super()._edit_manifest(always=always)
        if edit is not None:
            writer = ManifestWriter(self._files)
            writer.append(edit)
            writer.close()
        return edit


class TrustsThePageCache(JournalStore):
    """Builds on what a crashed process wrote without syncing it."""

    def _settle(self, recovery: Recovery) -> None:
        pass


class _AnySize(Spares):
    def drop_small(self) -> bool:
        return bool(self.ready)


class TakesSmallFiles(JournalStore):
    """Begins segments in whatever file is ready, however large the state is."""

    def recover(self, replay: Replay) -> Position:
        self._spares.__class__ = _AnySize
        return super().recover(replay)


class TrustsTheManifestInThePageCache(JournalStore):
    """Uses files again on the word of a manifest, or by names, that a crashed process did not sync."""

    def _settle(self, recovery: Recovery) -> None:
        for name in Reading._unsettled(recovery):
            recovery.files._sync_one(name)


MUTANTS = [
    OpensTheGateEarly,
    RecyclesEarly,
    LeavesTheStateBlockUnsynced,
    ForgetsRemovals,
    TrustsStaleBytes,
    FollowsUnconfirmedSegments,
    TellsTheManifestEarly,
    MissesNoFile,
    TrustsThePageCache,
]
