"""Journals that break one promise each: the simulation must catch every one of them, or it proves nothing."""

from collections.abc import Sequence
from typing import Any

from delosmq.engine.log.log import Batch
from delosmq.engine.log.ports import StateSource, StoreEvents
from delosmq.model.ids import Position
from delosmq.storage.journal.manifest import EDIT_REST, EDIT_START, Edit, Manifest, ManifestWriter
from delosmq.storage.journal.manifest_changes import ManifestChanges
from delosmq.storage.journal.recovery.recovery import Recovery
from delosmq.storage.journal.recovery.scan import Scan
from delosmq.storage.journal.segments import Ledger, Segment
from delosmq.storage.journal.spares import Spares, file_name
from delosmq.storage.journal.store import JournalParts, JournalStore
from tests.simulation.disk import SimDisk
from tests.simulation.syncer import StepSyncer


class OpensTheGateEarly(JournalStore):
    """Reports what is written as synced."""

    appended = told = 0

    def attach(self, events: StoreEvents, state: StateSource) -> None:
        self.listener = events
        super().attach(events, state)

    def append(self, batch: Batch) -> None:
        super().append(batch)
        self.appended = batch.position

    def flush(self) -> None:
        super().flush()
        if self.appended > self.told:
            self.told = self.appended
            self.listener.on_synced(Position(self.told))


class FreesAtOnce(ManifestChanges):
    """Gives freed files back before the manifest without them is on the disk."""

    def free(self, segments: list[Segment]) -> None:
        super().free(segments)
        self._spares.reuse([segment.name for segment in self.take_freed()])


class RecyclesEarly(JournalStore):
    """Reuses freed files before the list without them is on the disk."""

    def __init__(self, *positional: Any, **named: Any) -> None:
        super().__init__(*positional, parts=JournalParts(changes=FreesAtOnce), **named)


class LeavesTheStateBlockUnsynced(JournalStore):
    """Syncs the sealed segment but not the one whose state block frees files."""

    def __init__(self, disk: SimDisk, *positional: Any, syncer: StepSyncer, **named: Any) -> None:
        sync = syncer.sync

        def forgetful(ticket: int, handles: Sequence[int], position: int = 0, edit: Edit | None = None) -> None:
            if edit is not None and len(handles) > 1 and frees(edit):
                newest = disk.files[file_name(opened_file(edit))]
                handles = [handle for handle in handles if disk.handles[handle] is not newest]
            sync(ticket, handles, position, edit)

        syncer.sync = forgetful  # type: ignore[method-assign]
        super().__init__(disk, *positional, syncer=syncer, **named)


def frees(edit: Edit) -> bool:
    """Whether an edit of the manifest frees segments."""
    return bool(EDIT_REST.unpack_from(edit.content, EDIT_START.size)[7])


def opened_file(edit: Edit) -> int:
    """The number of the file that an edit calls the open one."""
    file: int = EDIT_REST.unpack_from(edit.content, EDIT_START.size)[4]
    return file


class _ForgetfulLedger(Ledger):
    def pinned(self, segment: Segment) -> bool:
        return False


class ForgetsRemovals(JournalStore):
    """Frees segments whose removals are still needed."""

    def __init__(self, *positional: Any, **named: Any) -> None:
        super().__init__(*positional, parts=JournalParts(ledger=_ForgetfulLedger), **named)


class _FollowsAnything(Recovery):
    """Takes any segment that was begun for the next one, whichever its state block says was before it."""

    def _successor(self, tail: Scan) -> Scan | None:
        begun = [number for number, scan in self._later.items() if scan.begun]
        return self._later.pop(min(begun)) if begun else None


def no_seed(number: int) -> int:
    return 0


class TrustsStaleBytes(JournalStore):
    """Neither seed, mark nor what a state block says tells the former life of a recycled file apart."""

    def __init__(self, *positional: Any, **named: Any) -> None:
        named["entropy"] = bytes
        super().__init__(*positional, parts=JournalParts(recovery=_FollowsAnything, seed_of=no_seed), **named)


class FollowsUnconfirmedSegments(JournalStore):
    """Goes on to segments that a crash has left behind, though what lies between is torn."""

    def __init__(self, *positional: Any, **named: Any) -> None:
        super().__init__(*positional, parts=JournalParts(recovery=_FollowsAnything), **named)


class _MissesNothing(Recovery):
    def _find_opened(self, manifest: Manifest) -> Scan | None:
        return super()._find_opened(manifest) if manifest.opened in self.headers else None


class MissesNoFile(JournalStore):
    """Starts with the segments before the newest one when that is gone."""

    def __init__(self, *positional: Any, **named: Any) -> None:
        super().__init__(*positional, parts=JournalParts(recovery=_MissesNothing), **named)


class TellsTheManifestEarly(JournalStore):
    """Writes what a sync is to make true before that sync."""

    def __init__(self, disk: SimDisk, *positional: Any, syncer: StepSyncer, **named: Any) -> None:
        sync = syncer.sync

        def early(ticket: int, handles: Sequence[int], position: int = 0, edit: Edit | None = None) -> None:
            if edit is not None:
                writer = ManifestWriter(disk)
                writer.append(edit)
                writer.close()
            sync(ticket, handles, position, edit)

        syncer.sync = early  # type: ignore[method-assign]
        super().__init__(disk, *positional, syncer=syncer, **named)


class _SettlesNothing(Recovery):
    def settle(self) -> None:
        pass


class TrustsThePageCache(JournalStore):
    """Builds on what a crashed process wrote without syncing it."""

    def __init__(self, *positional: Any, **named: Any) -> None:
        super().__init__(*positional, parts=JournalParts(recovery=_SettlesNothing), **named)


class _AnySize(Spares):
    def drop_small(self) -> bool:
        return bool(self.ready)


class TakesSmallFiles(JournalStore):
    """Begins segments in whatever file is ready, however large the state is."""

    def __init__(self, *positional: Any, **named: Any) -> None:
        super().__init__(*positional, parts=JournalParts(spares=_AnySize), **named)


class _SettlesSegments(Recovery):
    """And neither the manifest nor the names of files."""

    def settle(self) -> None:
        for scan in self.scans.values():
            handle = self.files.open(scan.name)
            self.files.fdatasync(handle)
            self.files.close(handle)


class TrustsTheManifestInThePageCache(JournalStore):
    """Uses files again on the word of a manifest, or by names, that a crashed process did not sync."""

    def __init__(self, *positional: Any, **named: Any) -> None:
        super().__init__(*positional, parts=JournalParts(recovery=_SettlesSegments), **named)


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
