"""The activation file of a shared directory: who is active, since which epoch, and how the last one ended.

Layout and crash arguments: docs/storage-format.md, "The activation file".
"""

import contextlib
import json
import os
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from crc32c import crc32c

from delosmq.model.errors import StorageError
from delosmq.storage.activation import SUPERSEDED_ERRNO, Fence, PairState

ACTIVATION_FILE: Final = "activation"
MAGIC: Final = b"DELOSMQA"
VERSION: Final = 1
SECTOR: Final = 4096
STATE_AT: Final = 2 * SECTOR
# magic, version, 0, epoch, length of what follows | content | crc of all before
HEAD: Final = struct.Struct("<8sIIQI")
CRC: Final = struct.Struct("<I")
_MOST_HOLDER: Final = 200


@dataclass(frozen=True)
class ActivationRecord:
    """One activation, as its broker wrote it down.

    Attributes:
        name: for people: role, machine and process.
        makes_way: it is a backup that stops for a primary.
        configuration: part of the configuration -> digest of what it says, to tell the other broker's apart.
    """

    name: str
    makes_way: bool = False
    configuration: dict[str, str] = field(default_factory=dict)


NOBODY: Final = ActivationRecord("")


class EpochFence(Fence):
    """Compares with what stood in the file when an epoch began: that is nearly always the same, byte by byte.

    Args:
        epoch: begun, the newest when this is made.
    """

    def __init__(self, file: "ActivationFile", epoch: int) -> None:
        self._file = file
        self._epoch = epoch
        self._known = b""

    def check(self) -> None:
        begun = self._file.content()[:STATE_AT]
        if begun == self._known:
            return
        epoch = self._file.epoch()
        if epoch != self._epoch:
            raise OSError(SUPERSEDED_ERRNO, f"another broker is active since, with epoch {epoch}", str(self._file.path))
        self._known = begun


class ActivationFile:
    """Reads and writes one. Only the broker that has the directory's lock begins an epoch.

    Args:
        directory: exists.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory / ACTIVATION_FILE

    def epoch(self) -> int:
        """The newest one; 0 when there was none.

        Raises:
            OSError: it can't be read.
            StorageError: of a version unknown here.
        """
        return self.newest()[0]

    def newest(self) -> tuple[int, ActivationRecord]:
        """The newest epoch and who began it. Raises as `epoch` does."""
        content = self.content()
        newest = max(self._decode(content, 0), self._decode(content, SECTOR), key=lambda one: one[0])
        epoch, said = newest
        if not epoch:
            return 0, NOBODY
        digests = {str(part): str(digest) for part, digest in said.get("configuration", {}).items()}
        return epoch, ActivationRecord(str(said.get("name", "")), bool(said.get("makes_way")), digests)

    def state(self, epoch: int) -> PairState:
        """What was said last in ``epoch``, the newest; what a broker of an older one says does not count."""
        if not epoch:
            return PairState.NOT_STARTED
        of, said = self._decode(self.content(), STATE_AT)
        with contextlib.suppress(ValueError):
            if of == epoch:
                return PairState(said.get("state"))
        return PairState.ACTIVE

    def begin(self, epoch: int, holder: ActivationRecord) -> None:
        """Begins an epoch. The one before stays readable until this one is on the disk whole.

        Raises:
            OSError: it is not known whether this is on the disk.
        """
        said = {
            "name": holder.name[:_MOST_HOLDER],
            "makes_way": holder.makes_way,
            "configuration": holder.configuration,
        }
        self._write(SECTOR * (epoch % 2), epoch, said)

    def say(self, epoch: int, state: PairState) -> None:
        """Notes in which state the store is. Raises OSError."""
        self._write(STATE_AT, epoch, {"state": state.value})

    def content(self) -> bytes:
        """All of it as it is now; nothing when there is none. Raises OSError."""
        # Opened anew each time: a network file system then asks its server.
        try:
            file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return b""
        try:
            return os.pread(file, STATE_AT + SECTOR, 0)
        finally:
            os.close(file)

    def _write(self, at: int, epoch: int, said: dict[str, Any]) -> None:
        encoded = json.dumps(said, sort_keys=True).encode()
        front = HEAD.pack(MAGIC, VERSION, 0, epoch, len(encoded)) + encoded
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            made = os.fstat(file).st_size == 0
            os.pwrite(file, (front + CRC.pack(crc32c(front))).ljust(SECTOR, b"\0"), at)
            os.fsync(file)
        finally:
            os.close(file)
        if made:
            _sync_directory(self.path.parent)

    def _decode(self, content: bytes, at: int) -> tuple[int, dict[str, Any]]:
        """The epoch and what it says; 0 when there is nothing that is whole."""
        if len(content) < at + HEAD.size:
            return 0, {}
        magic, version, _, epoch, length = HEAD.unpack_from(content, at)
        end = at + HEAD.size + length
        if magic != MAGIC or length > SECTOR - HEAD.size - CRC.size or len(content) < end + CRC.size:
            return 0, {}
        if CRC.unpack_from(content, end)[0] != crc32c(content[at:end]):
            return 0, {}
        if version != VERSION:
            raise StorageError(
                "DMQ3051", f"{self.path}: version {version} is unknown here; start the version of DelosMQ that wrote it"
            )
        said = json.loads(content[at + HEAD.size : end])
        return epoch, said if isinstance(said, dict) else {}


def _sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
