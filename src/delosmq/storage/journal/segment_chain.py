"""The chain of segments: each begins with a state block, which names the one before; what nothing needs is freed.

Format and crash arguments: docs/storage-format.md, "Rolling".
"""

from collections.abc import Callable

from mypy_extensions import mypyc_attr

from delosmq.engine.log.ports import StateSource
from delosmq.model.errors import MisuseError
from delosmq.model.ids import Position
from delosmq.storage.journal.footers import FooterWriter
from delosmq.storage.journal.manifest_changes import ManifestChanges
from delosmq.storage.journal.open_segment import OpenSegment
from delosmq.storage.journal.records import STATE_BLOCK_SIZE
from delosmq.storage.journal.recovery.recovery import Recovery
from delosmq.storage.journal.segments import CLOSED, Segment
from delosmq.storage.journal.spares import Spare, Spares


@mypyc_attr(allow_interpreted_subclasses=True)
class SegmentChain:
    """Rolls to the next segment, and frees those that count no more.

    Attributes:
        state_is_old: the open segment began with the state of the one before; `renew_state` gives it its own.
    """

    def __init__(
        self,
        opened: OpenSegment,
        spares: Spares,
        footers: FooterWriter,
        changes: ManifestChanges,
        seed_of: Callable[[int], int],
    ) -> None:
        self._opened = opened
        self._spares = spares
        self._footers = footers
        self._changes = changes
        self._seed_of = seed_of
        self._source: StateSource | None = None
        self._state: bytes | None = None
        self._state_position = Position(0)
        self._previous = 0
        # The newest segment of the life before, while its footer is still to be written.
        self._old_tail: Segment | None = None
        self.state_is_old = False

    def attach(self, source: StateSource) -> None:
        self._source = source

    # Start

    def begin(self, recovery: Recovery, old_tail: Segment | None) -> None:
        """Begins the first segment of this life, behind those that are in the ledger.

        Raises:
            StorageError: no file can be made for it.
            OSError: it can't be opened.
        """
        spares = self._spares
        needed = {segment.name for segment in self._opened.ledger.all()}
        unused = [name for name in recovery.names if name not in needed]
        if recovery.tail is not None:
            # The engine isn't ready to give its state: the old block goes on to count, and with it what came after.
            self._state = recovery.tail.state
            self._state_position = Position(recovery.tail.state_position)
            if self._state is not None:
                spares.size_for(STATE_BLOCK_SIZE + len(self._state))
        self._old_tail = old_tail
        self.state_is_old = True
        self._begin_segment(spares.make_now(unused), 0 if recovery.tail is None else recovery.tail.header.number)

    def renew_state(self, least_room: int) -> None:
        """Writes the engine's own state, which takes over, and frees what it covers. If that would leave less than
        ``least_room``, it waits for the next roll."""
        self.state_is_old = False
        state = self._engine_state()
        self._fit_spares(state)
        opened = self._opened
        if opened.segment.room - STATE_BLOCK_SIZE - len(state) < least_room or not self._spares.suits():
            return
        self._state_position = opened.last
        self._state = state
        freed = self._opened.ledger.free(opened.segment, opened.last)
        opened.append_state(state, self._state_position, self._previous)
        self._free(freed)
        old = self._old_tail
        self._old_tail = None
        if old is not None and old not in freed:
            self._opened.handles.open(old)
            self._footers.finish_short(old, opened.segment.number, opened.last)
            self._opened.handles.close(old)

    # Running

    def roll(self, *, repeat_state: bool = False) -> None:
        """Goes on in the oldest file that is ready: without ``repeat_state`` only if one holds the engine's state."""
        opened = self._opened
        opened.write()
        if opened.status.failure is not None:
            return
        if not repeat_state:
            state = self._engine_state()
            self._spares.fit(STATE_BLOCK_SIZE + len(state))
            if not self._spares.drop_small():
                return  # until a file that is large enough is ready
            self._state = state
            self._state_position = opened.last
        self.state_is_old = repeat_state
        old = opened.segment
        spare = self._spares.take()
        old.sealed(len(old.rows), old.row_count)
        self._footers.add(old, spare.number)
        self._changes.seal(old)
        self._free(self._opened.ledger.free(None, self._state_position))
        try:
            self._begin_segment(spare, old.number)
        except OSError as error:
            opened.fail(error)
            return
        self._spares.order()

    def free(self) -> None:
        """Frees without a roll what nothing needs: the manifest says so, the state block there is still holds."""
        if self._opened.ledger.changed:
            self._free(self._opened.ledger.free(self._opened.segment, self._state_position))

    def drop_lost_state(self, configured_bytes: int) -> None:
        """While the disk is full: smaller files suffice once queues were deleted."""
        spares = self._spares
        if (spares.short or spares.crowded) and spares.size_bytes > configured_bytes:
            self._fit_spares(self._engine_state())

    def write_footers(self, *, all_of_them: bool = False) -> None:
        """Writes the next slice of the footers of sealed segments, or all that is left."""
        try:
            while self._footers.waiting:
                handle = self._footers.trickle(self._opened.synced)
                if handle != CLOSED:
                    self._opened.handles.written(handle)
                if not all_of_them:
                    return
        except OSError as error:
            self._opened.fail(error)

    def _begin_segment(self, spare: Spare, previous: int) -> None:
        opened = self._opened
        opened.begin(
            Segment(
                spare.name,
                spare.number,
                mark=spare.mark,
                seed=self._seed_of(spare.number),
                size_bytes=spare.size_bytes,
                base=opened.last,
            )
        )
        self._previous = previous
        opened.append_state(self._state, self._state_position, previous)
        opened.write()

    def _free(self, freed: list[Segment]) -> None:
        if freed:
            self._changes.free(freed)
            self._footers.remove(freed)

    def _fit_spares(self, state: bytes) -> None:
        """For the state as it is, and the former one, which may be repeated."""
        former = 0 if self._state is None else len(self._state)
        self._spares.fit(STATE_BLOCK_SIZE + max(former, len(state)))

    def _engine_state(self) -> bytes:
        if self._source is None:
            raise MisuseError("DMQ3028", "a journal rolls after attach only: attach the source of the state")
        return self._source.state()
