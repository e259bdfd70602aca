"""Files of the journal: the port and what the operating system makes of it.

A handle is an opaque integer. Names are relative to the journal's directory.
"""

import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from delosmq.storage.journal.records import FILE_HEADER_SIZE

ZEROS = bytes(1024 * 1024)
SYNCS_AT_ONCE = 8
FILE_MODE = 0o600
"""Messages may be confidential: only the broker's user reads them."""


@dataclass(frozen=True, slots=True)
class Order:
    """A segment file to make ready.

    Attributes:
        header: the encoded file header, which names the segment the file will hold.
    """

    name: str
    header: bytes
    size_bytes: int


class Files(ABC):
    """One flat directory of files. Every method may raise OSError."""

    @abstractmethod
    def path(self, name: str) -> str:
        """The name for error messages."""

    @abstractmethod
    def names(self) -> list[str]:
        """All names in the directory, in any order."""

    @abstractmethod
    def open(self, name: str, *, create: bool = False) -> int:
        """A handle for reading and writing."""

    @abstractmethod
    def close(self, handle: int) -> None:
        """Closes a handle; what was written stays written, not synced."""

    @abstractmethod
    def pread(self, handle: int, size_bytes: int, offset: int) -> bytes:
        """All bytes there are, at most ``size_bytes``."""

    @abstractmethod
    def pwritev(self, handle: int, parts: Sequence[bytes], offset: int) -> int:
        """How many bytes were written, which may be less than all."""

    @abstractmethod
    def size(self, handle: int) -> int:
        """The length of the file in bytes."""

    @abstractmethod
    def truncate(self, handle: int, size_bytes: int) -> None:
        """Cuts the file."""

    @abstractmethod
    def fill(self, handle: int, start: int, size_bytes: int) -> None:
        """Makes the file ``size_bytes`` long; from ``start`` on it is zeros that have their place on the disk."""

    @abstractmethod
    def fdatasync(self, handle: int) -> None:
        """Returns when the file's content and length survive a power cut."""

    @abstractmethod
    def sync_directory(self) -> None:
        """Returns when names made, changed and removed survive a power cut."""

    def sync_all(self, names: Sequence[str]) -> None:
        """`fdatasync` of these files and `sync_directory`, in any order."""
        for name in names:
            self._sync_one(name)
        self.sync_directory()

    def _sync_one(self, name: str) -> None:
        handle = self.open(name)
        try:
            self.fdatasync(handle)
        finally:
            self.close(handle)

    @abstractmethod
    def rename(self, name: str, new_name: str) -> None:
        """Gives a file another name, replacing what bore it."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Removes a file."""


class OsFiles(Files):
    """A directory of the operating system."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._most_parts = min(1024, os.sysconf("SC_IOV_MAX")) if "SC_IOV_MAX" in os.sysconf_names else 16

    def path(self, name: str) -> str:
        return str(self._directory / name)

    def names(self) -> list[str]:
        return os.listdir(self._directory)

    def open(self, name: str, *, create: bool = False) -> int:
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | (os.O_CREAT if create else 0)
        return os.open(self._directory / name, flags, FILE_MODE)

    def close(self, handle: int) -> None:
        os.close(handle)

    def pread(self, handle: int, size_bytes: int, offset: int) -> bytes:
        content = os.pread(handle, size_bytes, offset)
        if len(content) == size_bytes or not content:
            return content
        pieces = [content]
        got = len(content)
        while got < size_bytes and (content := os.pread(handle, size_bytes - got, offset + got)):
            pieces.append(content)
            got += len(content)
        return b"".join(pieces)

    def pwritev(self, handle: int, parts: Sequence[bytes], offset: int) -> int:
        if len(parts) > self._most_parts:
            parts = parts[: self._most_parts]
        return os.pwritev(handle, parts, offset)

    def size(self, handle: int) -> int:
        return os.fstat(handle).st_size

    def truncate(self, handle: int, size_bytes: int) -> None:
        os.ftruncate(handle, size_bytes)

    def fill(self, handle: int, start: int, size_bytes: int) -> None:
        # Reserving first makes a full disk known before anything of it is taken from others.
        os.posix_fallocate(handle, start, size_bytes - start)
        # Written zeros, not reserved extents: a sync then has no metadata to write (0.6-0.7 x the time).
        at = start
        while at < size_bytes:
            at += os.pwrite(handle, ZEROS[: min(len(ZEROS), size_bytes - at)], at)

    def fdatasync(self, handle: int) -> None:
        os.fdatasync(handle)

    def sync_directory(self) -> None:
        handle = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def sync_all(self, names: Sequence[str]) -> None:
        # Those that wait for the disk together wait once.
        with ThreadPoolExecutor(SYNCS_AT_ONCE) as pool:
            under_way = [pool.submit(self.sync_directory), *(pool.submit(self._sync_one, name) for name in names)]
        for one in under_way:
            one.result()

    def rename(self, name: str, new_name: str) -> None:
        os.rename(self._directory / name, self._directory / new_name)

    def remove(self, name: str) -> None:
        os.unlink(self._directory / name)


def write_all(files: Files, handle: int, parts: list[bytes], offset: int) -> None:
    """Writes all parts, however short the single writes turn out.

    Raises:
        OSError: a write failed or made no progress; any part of it may have been written.
    """
    left = sum(map(len, parts))
    written = files.pwritev(handle, parts, offset)
    while written < left:
        if written <= 0:
            raise OSError("a write made no progress")
        left -= written
        offset += written
        first = 0
        while written >= len(parts[first]):
            written -= len(parts[first])
            first += 1
        parts = [parts[first][written:], *parts[first + 1 :]]
        written = files.pwritev(handle, parts, offset)


def prepare(files: Files, order: Order) -> None:
    """Makes a segment file ready: full size, on the disk, and its header durable before anything else is in it.

    A file that exists is recycled: its stale content stays, which the new segment's checksums and mark tell apart.
    A file that can't be completed is removed again.
    """
    # Listing the directory would take longer with each file that is in it.
    try:
        handle, known = files.open(order.name), True
    except FileNotFoundError:
        handle, known = files.open(order.name, create=True), False
    try:
        size = files.size(handle)
        if size > order.size_bytes:
            files.truncate(handle, order.size_bytes)
        elif size < order.size_bytes:
            files.fill(handle, size, order.size_bytes)
            files.fdatasync(handle)
        write_all(files, handle, [order.header], 0)
        files.fdatasync(handle)
        if not known:
            files.sync_directory()
    except OSError:
        with contextlib.suppress(OSError):
            files.remove(order.name)
        raise
    finally:
        files.close(handle)


def read_header(files: Files, name: str) -> bytes:
    """The first bytes of a file, enough for its header."""
    handle = files.open(name)
    try:
        return files.pread(handle, FILE_HEADER_SIZE + 4, 0)
    finally:
        files.close(handle)
