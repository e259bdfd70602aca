"""Changes of the manifest: which segments were sealed, which are free, which is open, and what is synced."""

from mypy_extensions import mypyc_attr

from delosmq.model.errors import StorageError
from delosmq.storage.journal.files import Files
from delosmq.storage.journal.manifest import (
    MANIFEST_NAME,
    Edit,
    Manifest,
    ManifestWriter,
    NewManifest,
    Sealed,
    put_in_place,
    set_aside,
)
from delosmq.storage.journal.open_segment import OpenSegment
from delosmq.storage.journal.recovery.recovery import Recovery
from delosmq.storage.journal.segments import Segment
from delosmq.storage.journal.spares import NO_SPACE, Spares, slot_of


@mypyc_attr(allow_interpreted_subclasses=True)
class ManifestChanges:
    """Collects them till the next sync."""

    def __init__(self, files: Files, spares: Spares, opened: OpenSegment) -> None:
        self._files = files
        self._spares = spares
        self._opened = opened
        self._manifest = Manifest(b"", 0)
        self._sealed: list[Segment] = []
        self._freed: list[Segment] = []
        self._no_rewriting = False  # the disk had no room for a new manifest lately

    def begin(self, recovery: Recovery, segments: list[Segment], node_id: bytes, *, anew: bool = False) -> None:
        """Sees to it that there is a manifest before there is any file that needs it, with room for what comes next.

        Args:
            anew: in any case another one than that which was read.

        Raises:
            StorageError: it can't be made.
        """
        manifest = recovery.manifest or Manifest(node_id, 0)
        self._manifest = manifest
        if recovery.lossy:
            tail = recovery.tail
            number = 0 if tail is None else tail.header.number
            opened = None if tail is None else Sealed(number, slot_of(tail.name), 0, tail.base)
            manifest.correct([_sealed(segment) for segment in segments if segment.number != number], opened)
        known = manifest.sealed
        self._sealed = [segment for segment in segments if segment.number not in known]
        needed = anew or recovery.manifest is None or recovery.lossy or manifest.has_no_room_for(len(self._sealed))
        if not needed and not manifest.crowded:
            return
        unchanged = True
        try:
            set_aside(self._files, manifest.rewritten(self._spares.mark(), len(self._sealed)))
            unchanged = False
            put_in_place(self._files)
        except OSError as error:
            if unchanged and not needed and error.errno in NO_SPACE:
                return
            raise StorageError(
                "DMQ3034",
                f"{self._files.path(MANIFEST_NAME)}: can't be made ({error.strerror or error}); free some space on "
                "this disk, or let the broker's user write there",
            ) from error
        manifest.on_rewritten()

    def seal(self, segment: Segment) -> None:
        """It gets no more batches."""
        self._sealed.append(segment)

    def free(self, segments: list[Segment]) -> None:
        """Nothing needs them any more, once the manifest says so."""
        self._freed += segments
        gone = {segment.number for segment in segments}
        self._sealed = [segment for segment in self._sealed if segment.number not in gone]

    @property
    def freed(self) -> list[Segment]:
        """Those of which the manifest has not been told yet."""
        return self._freed

    def take_freed(self) -> list[Segment]:
        """The files to use again once the edit asked for is on the disk."""
        freed = self._freed
        self._freed = []
        return freed

    def edit(self) -> Edit | None:
        """What the manifest is to say once everything written is synced; None for nothing new.

        Raises:
            StorageError: the manifest is full.
        """
        if self._opened.segment.number == self._manifest.opened and not self._freed:
            return None
        return self._edit()

    def write_now(self) -> None:
        """Writes down, synced, what is open and sealed now and that everything up to the last batch is synced.

        Raises:
            OSError: it can't be written.
        """
        edit = self._edit() if self._manifest.synced != self._opened.written else self.edit()
        if edit is not None:
            writer = ManifestWriter(self._files)
            try:
                writer.append(edit)
            finally:
                writer.close()

    def _edit(self) -> Edit:
        new = [_sealed(segment) for segment in self._sealed]
        self._sealed = []
        freed = [segment.number for segment in self._freed]
        segment = self._opened.segment
        first = Sealed(segment.number, slot_of(segment.name), 0, segment.base)
        return self._manifest.edit(first, self._opened.written, sealed=new, freed=freed)

    # Another manifest

    def replacement(self) -> NewManifest | None:
        """The manifest that should take the place of the one there is; None while that has room."""
        if self._no_rewriting or not self._manifest.crowded:
            return None
        return self._manifest.rewritten(self._spares.mark())

    def on_rewritten(self) -> None:
        self._manifest.on_rewritten()

    def put_off_rewriting(self) -> None:
        """The disk has no room for another one; till `retry` the one there is takes what there is to say."""
        self._no_rewriting = True

    def retry(self) -> None:
        self._no_rewriting = False


def _sealed(segment: Segment) -> Sealed:
    return Sealed(segment.number, slot_of(segment.name), segment.end, segment.position)
