"""The open segment: what is appended is written and synced, and when it is full the journal rolls to the next one.

Format and crash arguments: docs/storage-format.md.
"""

import logging

from mypy_extensions import mypyc_attr

from delosmq.engine.log.log import NO_BODY, Batch, StateSource, StoreEvents
from delosmq.model.errors import MisuseError, StorageError
from delosmq.model.ids import NOTHING_DURABLE, Position
from delosmq.storage.journal import records
from delosmq.storage.journal.files import Files, write_all
from delosmq.storage.journal.footers import FooterWriter
from delosmq.storage.journal.manifest import Edit, Manifest, Sealed
from delosmq.storage.journal.records import BATCH, STATE, Frame, frame_batch
from delosmq.storage.journal.segments import CLOSED, Ledger, Segment
from delosmq.storage.journal.spares import STATE_SHARE, Spare, Spares, slot_of
from delosmq.storage.journal.syncer import Syncer
from delosmq.storage.port import ServedStore


@mypyc_attr(allow_interpreted_subclasses=True)
class RollingSegments(ServedStore):
    """Appends blocks to the open segment, writes and syncs them, and begins the next segment when told to."""

    def __init__(
        self, files: Files, syncer: Syncer, spares: Spares, *, size_bytes: int, logger: logging.Logger
    ) -> None:
        self._files = files
        self._syncer = syncer
        self._spares = spares
        self._size_bytes = size_bytes
        self._logger = logger
        self._events: StoreEvents | None = None
        self._state: StateSource | None = None
        self._ledger = Ledger()
        self._footers = FooterWriter(files)
        self._open = Segment("", 0, mark=0, seed=0, size_bytes=size_bytes, base=0)
        self._parts: list[bytes] = []
        self._written_end = 0
        self._last = Position(0)
        self._written = Position(0)
        self._asked = Position(0)
        self._synced = Position(0)
        self._ticket = 0
        self._under_way = False
        self._overdue = Position(0)  # to be synced though nobody waits
        self._dirty: dict[int, None] = {}
        self._manifest = Manifest(b"", 0)
        self._no_rewriting = False  # the disk had no room for a new manifest lately
        self._unlisted: list[Segment] = []  # sealed, and the manifest has not been told
        self._freed: list[Segment] = []
        self._freed_asked: list[Segment] = []
        self._finished_asked: list[Segment] = []
        self._reading: Segment | None = None
        self._state_bytes: bytes | None = None
        self._state_position = Position(0)
        self._previous = 0
        self._renew = False
        self._failure: StorageError | None = None

    def attach(self, events: StoreEvents, state: StateSource) -> None:
        self._events = events
        self._state = state

    # Writing and syncing

    def _write(self) -> None:
        """Hands everything appended to the operating system."""
        parts = self._parts
        if not parts or self._failure is not None:
            return
        segment = self._open
        try:
            write_all(self._files, segment.handle, parts, self._written_end)
        except OSError as error:
            self._fail(error)
            return
        self._parts = []
        self._written_end = segment.end
        self._written = self._last
        self._dirty[segment.handle] = None

    def _trickle(self) -> None:
        try:
            handle = self._footers.trickle(self._synced)
        except OSError as error:
            self._fail(error)
            return
        if handle != CLOSED:
            self._dirty[handle] = None

    def put_off(self) -> Position:
        return self._written if self._written > self._asked else NOTHING_DURABLE

    def catch_up(self, position: Position) -> None:
        if position > self._overdue:
            self._overdue = position
        if not self._under_way and self._is_wanted():
            self._ask()

    def _is_wanted(self) -> bool:
        """Whether a sync is due. What nobody waits for, such as an acknowledgement without an answer, comes along with
        the next one, or once somebody tells us to `catch_up`."""
        if self._freed:
            return True
        asked = self._asked
        if self._written <= asked:
            return False
        return self._overdue > asked or self._events is None or self._events.awaited() > asked

    def _ask(self) -> None:
        if self._failure is not None:
            return
        self._ticket += 1
        self._under_way = True
        if self._manifest.crowded and not self._no_rewriting:
            self._syncer.replace_manifest(self._ticket, self._manifest.rewritten(self._spares.mark()))
            return
        try:
            edit = self._edit_manifest()
        except StorageError as error:
            self._fail(error)
            return
        self._asked = self._written
        self._freed_asked = self._freed
        self._freed = []
        self._finished_asked = self._footers.take_finished()
        handles = list(self._dirty)
        self._dirty.clear()
        self._syncer.sync(self._ticket, handles, self._written, edit)

    def _edit_manifest(self, *, always: bool = False) -> Edit | None:
        """What the manifest is to say once everything written is synced; None for nothing new."""
        opened = self._open
        manifest = self._manifest
        if opened.number == manifest.opened and not self._freed and not always:
            return None
        new = [sealed(segment) for segment in self._unlisted]
        self._unlisted = []
        freed = [segment.number for segment in self._freed]
        first = Sealed(opened.number, slot_of(opened.name), 0, opened.base)
        return manifest.edit(first, self._written, sealed=new, freed=freed)

    def _fail(self, error: OSError | StorageError) -> None:
        if self._failure is not None:
            return
        if isinstance(error, StorageError):
            self._failure = error
        else:
            self._failure = StorageError(
                "DMQ3019",
                f"{self._files.path(self._open.name)}: writing or syncing failed ({error}); nothing more is confirmed, "
                "the broker must be restarted once the disk works",
            )
        if self._events is not None:
            self._events.on_failure(self._failure)

    def _reader(self, segment: Segment) -> int:
        """A handle for reading; of the segments no longer written one stays open, the last one read."""
        if segment.handle == CLOSED:
            if self._reading is not None and self._reading is not segment:
                self._close_handle(self._reading)
            segment.handle = self._files.open(segment.name)
            self._reading = segment
        return segment.handle

    def _close_handle(self, segment: Segment) -> None:
        if segment.handle != CLOSED:
            self._dirty.pop(segment.handle, None)
            self._files.close(segment.handle)
            segment.handle = CLOSED
        if self._reading is segment:
            self._reading = None

    # Rolling

    def _roll(self, *, repeat_state: bool = False) -> None:
        self._write()
        if self._failure is not None:
            return
        if not repeat_state:
            state = self._engine_state()
            self._spares.fit(records.STATE_BLOCK_SIZE + len(state))
            if not self._spares.drop_small():
                return  # until a file that is large enough is ready
            self._state_bytes = state
            self._state_position = self._last
        self._renew = repeat_state
        old = self._open
        spare = self._spares.take()
        old.sealed(len(old.rows), old.row_count)
        self._footers.add(old, spare.number)
        self._unlisted.append(old)
        self._let_go(self._ledger.free(None, self._state_position))
        try:
            self._open_segment(spare, self._state_bytes, old.number)
        except OSError as error:
            self._fail(error)
            return
        self._spares.order()

    def _fit_spares(self, state: bytes) -> None:
        """For the state as it is, and the former one, which may be repeated."""
        former = 0 if self._state_bytes is None else len(self._state_bytes)
        self._spares.fit(records.STATE_BLOCK_SIZE + max(former, len(state)))

    def _engine_state(self) -> bytes:
        if self._state is None:
            raise MisuseError("DMQ3028", "a journal rolls after attach only: attach who knows the state")
        return self._state.state()

    def _open_segment(self, spare: Spare, state: bytes | None, previous: int) -> None:
        """Begins a segment with its state block, which names the one before."""
        segment = Segment(
            spare.name,
            spare.number,
            mark=spare.mark,
            seed=self._seed_of(spare.number),
            size_bytes=spare.size_bytes,
            base=self._last,
        )
        segment.handle = self._files.open(spare.name)
        self._open = segment
        self._previous = previous
        self._written_end = segment.end
        self._ledger.add(segment)
        self._append_state(state)
        self._write()

    def _append_state(self, state: bytes | None) -> None:
        segment = self._open
        block = Batch()
        block.position = self._last
        block.metas = [records.encode_state_head(self._state_position, self._previous)]
        if state is not None:
            block.metas.append(state)
        block.bodies = [NO_BODY] * len(block.metas)
        frame = frame_batch(block, STATE, segment.end, synced=self._synced, mark=segment.mark, seed=segment.seed)
        begins = segment.end == records.DATA_START
        if segment.room < frame.length or (begins and frame.length > segment.size_bytes // STATE_SHARE):
            self._fail(
                StorageError(
                    "DMQ3022",
                    f"{self._files.path(segment.name)}: the broker's state takes {frame.length} bytes of a journal "
                    f"file of {segment.size_bytes} bytes, more than any has room for; delete queues or lease groups",
                )
            )
            return
        segment.end += frame.length
        segment.room -= frame.length
        self._parts += frame.parts

    def _let_go(self, freed: list[Segment]) -> None:
        if not freed:
            return
        self._freed += freed
        self._footers.forget(freed)
        gone = {segment.number for segment in freed}
        self._unlisted = [segment for segment in self._unlisted if segment.number not in gone]

    def _frame(self, batch: Batch, segment: Segment) -> Frame:
        if not batch.sole and batch.stored and batch.released:
            for _, home in batch.stored:
                home.segment = segment.number  # it may be released by the same batch
        return frame_batch(batch, BATCH, segment.end, synced=self._synced, mark=segment.mark, seed=segment.seed)

    @staticmethod
    def _seed_of(number: int) -> int:
        return records.seed_of(number)


def sealed(segment: Segment) -> Sealed:
    return Sealed(segment.number, slot_of(segment.name), segment.end, segment.position)
