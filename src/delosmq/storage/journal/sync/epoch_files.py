"""The journal's files as a broker of one epoch sees and changes them, where several brokers share the directory.

Each epoch has a manifest and files of its own. A broker reads what earlier epochs left, changes none of it, and learns
with each sync whether its epoch is the newest still. What a broker writes that was superseded is thus neither read nor
confirmed. Why that is enough: docs/decisions/0066-shared-directory.md.
"""

import re
from collections.abc import Sequence
from typing import Final

from delosmq.storage.activation import Fence
from delosmq.storage.journal.files import Files
from delosmq.storage.journal.manifest import MANIFEST_NAME, NEW_NAME

_OF_AN_EPOCH: Final = re.compile(rf"{MANIFEST_NAME}-(\d{{6,}})")


def manifest_of(epoch: int) -> str:
    """The name of the manifest that brokers of an epoch write; 0 is a directory that was never shared."""
    return f"{MANIFEST_NAME}-{epoch:06d}" if epoch else MANIFEST_NAME


class EpochFiles(Files):
    """Passes everything on, under the names that the epoch has.

    Args:
        files: the directory.
        epoch: at least 1.
    """

    def __init__(self, files: Files, epoch: int, fence: Fence) -> None:
        self._files = files
        self._epoch = epoch
        self._fence = fence
        self._own = manifest_of(epoch)
        self._own_new = f"{self._own}.new"
        self._renamed = False

    def path(self, name: str) -> str:
        return self._files.path(self._name(name))

    def names(self) -> list[str]:
        found = self._files.names()
        named = [name for name in found if name != MANIFEST_NAME and not _OF_AN_EPOCH.fullmatch(name)]
        return named if len(named) == len(found) else [*named, MANIFEST_NAME]

    def open(self, name: str, *, create: bool = False) -> int:
        try:
            return self._files.open(self._name(name, create=create), create=create)
        except FileNotFoundError:
            # A successor removes what it does not need.
            self._fence.check()
            raise

    def close(self, handle: int) -> None:
        self._files.close(handle)

    def pread(self, handle: int, size_bytes: int, offset: int) -> bytes:
        return self._files.pread(handle, size_bytes, offset)

    def pwritev(self, handle: int, parts: Sequence[bytes], offset: int) -> int:
        return self._files.pwritev(handle, parts, offset)

    def size(self, handle: int) -> int:
        return self._files.size(handle)

    def truncate(self, handle: int, size_bytes: int) -> None:
        self._files.truncate(handle, size_bytes)

    def fill(self, handle: int, start: int, size_bytes: int) -> None:
        self._files.fill(handle, start, size_bytes)

    def fdatasync(self, handle: int) -> None:
        self._files.fdatasync(handle)
        # Behind the sync: a successor begins its epoch before it reads, so it reads what was synced before that.
        self._fence.check()

    def sync_all(self, names: Sequence[str]) -> None:
        self._files.sync_all([self._name(name) for name in names])
        self._fence.check()

    def sync_directory(self) -> None:
        self._files.sync_directory()
        if self._renamed:
            self._renamed = False
            self._remove_older()

    def rename(self, name: str, new_name: str) -> None:
        self._fence.check()
        self._files.rename(self._name(name), self._own if new_name == MANIFEST_NAME else new_name)
        self._renamed = new_name == MANIFEST_NAME

    def remove(self, name: str) -> None:
        self._fence.check()
        self._files.remove(self._name(name))

    def _name(self, name: str, *, create: bool = False) -> str:
        if name == NEW_NAME:
            return self._own_new
        if name != MANIFEST_NAME or create:
            return name
        found = self._files.names()
        return self._own if self._own in found else max(_manifests(found), default=(0, self._own))[1]

    def _remove_older(self) -> None:
        """The manifests of earlier epochs, all of which stands in this one's."""
        self._fence.check()
        for epoch, name in _manifests(self._files.names()):
            if epoch < self._epoch:
                self._files.remove(name)


def _manifests(names: Sequence[str]) -> list[tuple[int, str]]:
    """Epoch and name of each."""
    found = [(int(match.group(1)), name) for name in names if (match := _OF_AN_EPOCH.fullmatch(name))]
    return [*found, (0, MANIFEST_NAME)] if MANIFEST_NAME in names else found
