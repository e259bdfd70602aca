"""The manifest: the file that says which segments count, and up to where everything was synced.

Layout and rules: docs/storage-format.md, "The manifest".
"""

import contextlib
import struct
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from crc32c import crc32c

from delosmq.model.errors import StorageError
from delosmq.storage.journal.files import Files, write_all

MANIFEST_NAME: Final = "manifest"
NEW_NAME: Final = "manifest.new"
UNKNOWN_FORMAT: Final = "DMQ3006"
FOREIGN_NODE: Final = "DMQ3008"
DAMAGED_MANIFEST: Final = "DMQ3030"
MAGIC: Final = b"DELOSMQM"
VERSION: Final = 1

# magic, version, 0, node id, mark; then crc
HEADER: Final = struct.Struct("<8sII16sQ")
U32: Final = struct.Struct("<I")
HEADER_SIZE: Final = HEADER.size + U32.size
SYNCED_AT: Final = 4096
"""The synced position has a sector of its own, as it is written over and over."""
# position, number of the segment that was open; then crc
SYNCED: Final = struct.Struct("<QQ")
EDITS_AT: Final = 8192
# mark, crc | length, sequence, synced, open segment, its file, its base, sealed, freed
EDIT_START: Final = struct.Struct("<QI")
EDIT_REST: Final = struct.Struct("<IQQQQQII")
EDIT_SIZE: Final = EDIT_START.size + EDIT_REST.size
# number, file, end, position
SEALED: Final = struct.Struct("<QQQQ")
FREED: Final = struct.Struct("<Q")
SLACK_BYTES: Final = 64 * 1024
"""For about 600 rolls; a manifest with less room than half of it, or of what it lists, is written anew."""


@dataclass(frozen=True, slots=True)
class Sealed:
    """A segment that counts and gets no more batches.

    Attributes:
        file: number in the name of its file.
        end: behind its last block; what lies behind that does not exist.
        position: of its last batch.
    """

    number: int
    file: int
    end: int
    position: int


@dataclass(frozen=True, slots=True)
class Edit:
    """Bytes that a sync adds to the manifest once everything else of it is on the disk."""

    offset: int
    content: bytes


@dataclass(frozen=True, slots=True)
class NewManifest:
    """A manifest that takes the place of the one that is there."""

    content: bytes
    size_bytes: int


class Manifest:
    """What the manifest says.

    Attributes:
        sealed: the segments that count, oldest first.
        opened: number of the newest segment with its beginning on the disk; 0 when there has not been one.
        file: number of its file.
        base: the last position before it.
        synced: everything up to there was synced when this was written.
    """

    def __init__(self, node_id: bytes, mark: int) -> None:
        self._node_id = node_id
        self._mark = mark
        self._sequence = 0
        self._end = EDITS_AT
        self._size = EDITS_AT
        self._replacement: NewManifest | None = None
        self.sealed: dict[int, Sealed] = {}
        self.opened = 0
        self.file = 0
        self.base = 0
        self.synced = 0

    @property
    def crowded(self) -> bool:
        """Whether it should be written anew."""
        return self._size - self._end < max(SLACK_BYTES, SEALED.size * len(self.sealed)) // 2

    def correct(self, sealed: Iterable[Sealed], opened: Sealed | None) -> None:
        """Says what is left after a loss, of the one that was open too. To be followed by a replacement."""
        self.sealed = {one.number: one for one in sealed}
        if opened is not None:
            self.opened, self.file, self.base = opened.number, opened.file, opened.position

    def has_no_room_for(self, count: int) -> bool:
        """Whether an edit that adds so many segments does not fit."""
        return self._size - self._end < EDIT_SIZE + SEALED.size * count

    def edit(self, opened: Sealed, synced: int, *, sealed: Iterable[Sealed] = (), freed: Iterable[int] = ()) -> Edit:
        """What to write when segments were opened, sealed and freed. ``opened`` needs no end; its position is its base.

        Raises:
            StorageError: the manifest is full.
        """
        new = list(sealed)
        gone = [number for number in freed if self.sealed.pop(number, None) is not None]
        for one in new:
            self.sealed[one.number] = one
        self.opened, self.file, self.base, self.synced = opened.number, opened.file, opened.position, synced
        self._sequence += 1
        content = self._encode(new, gone, self._sequence, self._mark)
        if self._end + len(content) > self._size:
            raise StorageError(
                "DMQ3029",
                f"the journal's {MANIFEST_NAME} is full, and the disk has no room for another; free some space",
            )
        edit = Edit(self._end, content)
        self._end += len(content)
        return edit

    def _encode(self, sealed: list[Sealed], freed: list[int], sequence: int, mark: int) -> bytes:
        length = EDIT_SIZE + SEALED.size * len(sealed) + FREED.size * len(freed)
        rest = EDIT_REST.pack(length, sequence, self.synced, self.opened, self.file, self.base, len(sealed), len(freed))
        rest += b"".join([SEALED.pack(one.number, one.file, one.end, one.position) for one in sealed])
        rest += b"".join([FREED.pack(number) for number in freed])
        return EDIT_START.pack(mark, crc32c(rest)) + rest

    def rewritten(self, mark: int, room_for: int = 0) -> NewManifest:
        """The same without its past, with room for ``room_for`` more segments. Takes effect with `on_rewritten`."""
        self._replacement = _fresh(self, mark, room_for)
        return self._replacement

    def on_rewritten(self) -> None:
        """The new one has taken the place of the old."""
        assert self._replacement is not None
        content, self._size = self._replacement.content, self._replacement.size_bytes
        self._sequence += 1
        self._mark = _mark_of(content)
        self._end = len(content)


def _fresh(manifest: Manifest, mark: int, room_for: int) -> NewManifest:
    front = HEADER.pack(MAGIC, VERSION, 0, manifest._node_id, mark)
    edit = manifest._encode(list(manifest.sealed.values()), [], manifest._sequence + 1, mark)
    content = (front + U32.pack(crc32c(front))).ljust(EDITS_AT, b"\0") + edit
    room = 2 * SEALED.size * (len(manifest.sealed) + room_for)
    return NewManifest(content, len(content) + room + 2 * SLACK_BYTES)


def _mark_of(content: bytes) -> int:
    mark: int = HEADER.unpack_from(content)[4]
    return mark


def set_aside(files: Files, replacement: NewManifest) -> None:
    """Writes a manifest under another name, for `put_in_place`. Raises OSError, with nothing changed."""
    handle = files.open(NEW_NAME, create=True)
    try:
        files.truncate(handle, 0)
        files.fill(handle, 0, replacement.size_bytes)
        write_all(files, handle, [replacement.content], 0)
        files.fdatasync(handle)
    except OSError:
        with contextlib.suppress(OSError):
            files.remove(NEW_NAME)
        raise
    finally:
        files.close(handle)


def put_in_place(files: Files) -> None:
    """Lets the manifest that was set aside take its name.

    Raises:
        OSError: either of the two may bear the name now, and the other one after a power cut.
    """
    files.rename(NEW_NAME, MANIFEST_NAME)
    files.sync_directory()


class ManifestWriter:
    """The hand of who syncs on the manifest."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._handle = -1
        self._mark = 0

    def append(self, edit: Edit) -> None:
        """Returns when ``edit`` is on the disk. Raises OSError."""
        handle = self._open()
        write_all(self._files, handle, [edit.content], edit.offset)
        self._files.fdatasync(handle)

    def note(self, position: int) -> None:
        """Writes down that everything up to ``position`` was synced. It is synced itself now and then only: after a
        power cut an older position may stand there, which is as true."""
        front = SYNCED.pack(position, 0)
        with contextlib.suppress(OSError):  # it only helps to tell damage
            handle = self._open()
            self._files.pwritev(handle, [front + U32.pack(crc32c(front, self._mark & 0xFFFFFFFF))], SYNCED_AT)

    def replace(self) -> None:
        """Puts the manifest that was set aside in the place of this one. Raises OSError, as `put_in_place` does."""
        try:
            put_in_place(self._files)
        finally:
            self.close()  # this file may be the one that has no name any more

    def close(self) -> None:
        if self._handle != -1:
            self._files.close(self._handle)
            self._handle = -1

    def _open(self) -> int:
        if self._handle == -1:
            self._handle = self._files.open(MANIFEST_NAME)
            self._mark = _mark_of(self._files.pread(self._handle, HEADER_SIZE, 0))
        return self._handle


def load(files: Files, node_id: bytes) -> Manifest | None:
    """The manifest as it stands; None when there is none.

    Raises:
        StorageError: it is damaged, another node's, or of a version unknown here.
    """
    if MANIFEST_NAME not in files.names():
        return None
    handle = files.open(MANIFEST_NAME)
    try:
        size = files.size(handle)
        content = files.pread(handle, size, 0)
    finally:
        files.close(handle)
    path = files.path(MANIFEST_NAME)
    manifest = _decode_header(content, node_id, path)
    manifest._size = size
    at = EDITS_AT
    while (length := _take_edit(manifest, content, at)) > 0:
        at += length
    if at == EDITS_AT or _goes_on_behind(manifest, content, at):
        raise StorageError(
            DAMAGED_MANIFEST, f"{path}: offset {at}: damaged; which segments count is not known: {RESTORE}"
        )
    manifest._end = at
    position, _ = SYNCED.unpack_from(content, SYNCED_AT)
    checksum = U32.unpack_from(content, SYNCED_AT + SYNCED.size)[0]
    if checksum == crc32c(content[SYNCED_AT : SYNCED_AT + SYNCED.size], manifest._mark & 0xFFFFFFFF):
        manifest.synced = max(manifest.synced, position)
    return manifest


RESTORE: Final = (
    "restore the journal directory from a backup, or start once with --accept-loss (embedded: accept_loss=True) to go"
    " on with what is left"
)


def _decode_header(content: bytes, node_id: bytes, path: str) -> Manifest:
    front = content[: HEADER.size]
    if len(content) < EDITS_AT or U32.unpack_from(content, HEADER.size)[0] != crc32c(front):
        raise StorageError(DAMAGED_MANIFEST, f"{path}: offset 0: damaged; which segments count is not known: {RESTORE}")
    magic, version, _, found_id, mark = HEADER.unpack(front)
    if magic != MAGIC or version != VERSION:
        raise StorageError(
            UNKNOWN_FORMAT, f"{path}: journal format {version} is unknown here; start the version that wrote it"
        )
    if found_id != node_id:
        raise foreign(path, found_id, node_id)
    return Manifest(node_id, mark)


def foreign(path: str, found_id: bytes, node_id: bytes) -> StorageError:
    """What to raise of a file at ``path`` that is another node's."""
    return StorageError(
        FOREIGN_NODE,
        f"{path}: belongs to node {found_id.hex()}, this is node {node_id.hex()}; if the file is another broker's, "
        "give each broker a journal directory of its own, else restore the file node-id, or write "
        f"{uuid.UUID(bytes=found_id)} into it",
    )


def node_id_in(files: Files) -> bytes | None:
    """The node id in the manifest; None when there is no manifest, or its header is damaged."""
    if MANIFEST_NAME not in files.names():
        return None
    handle = files.open(MANIFEST_NAME)
    try:
        content = files.pread(handle, HEADER_SIZE, 0)
    finally:
        files.close(handle)
    front = content[: HEADER.size]
    if len(content) < HEADER_SIZE or U32.unpack_from(content, HEADER.size)[0] != crc32c(front):
        return None
    magic, _, _, node_id, _ = HEADER.unpack(front)
    return bytes(node_id) if magic == MAGIC else None


def _whole_edit(mark: int, content: bytes, at: int) -> int:
    """The length of the edit at ``at``; 0 when none begins there that is whole."""
    if at + EDIT_SIZE > len(content):
        return 0
    found_mark, checksum = EDIT_START.unpack_from(content, at)
    length: int = U32.unpack_from(content, at + EDIT_START.size)[0]
    if found_mark != mark or length < EDIT_SIZE or at + length > len(content):
        return 0
    return length if crc32c(content[at + EDIT_START.size : at + length]) == checksum else 0


def _take_edit(manifest: Manifest, content: bytes, at: int) -> int:
    length = _whole_edit(manifest._mark, content, at)
    if length == 0:
        return 0
    _, sequence, synced, opened, file, base, sealed, freed = EDIT_REST.unpack_from(content, at + EDIT_START.size)
    if manifest._sequence and sequence != manifest._sequence + 1:
        return 0
    manifest._sequence = sequence
    manifest.synced = max(manifest.synced, synced)
    manifest.opened, manifest.file, manifest.base = opened, file, base
    at += EDIT_SIZE
    for one in SEALED.iter_unpack(content[at : at + SEALED.size * sealed]):
        manifest.sealed[one[0]] = Sealed(*one)
    at += SEALED.size * sealed
    for (number,) in FREED.iter_unpack(content[at : at + FREED.size * freed]):
        manifest.sealed.pop(number, None)
    return length


def _goes_on_behind(manifest: Manifest, content: bytes, at: int) -> bool:
    """Whether a later edit lies behind what can't be read: then that had been on the disk, and is no torn end."""
    mark = manifest._mark.to_bytes(8, "little")
    at = content.find(mark, at)
    while at >= 0:
        if _whole_edit(manifest._mark, content, at):
            sequence = EDIT_REST.unpack_from(content, at + EDIT_START.size)[1]
            if sequence > manifest._sequence:
                return True
        at = content.find(mark, at + 1)
    return False
