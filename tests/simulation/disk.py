"""A disk that forgets: what was not synced persists sector by sector, in any subset, at a power cut.

Between two syncs a sector that is written several times may end up as any of its versions, because the operating system
writes back when it likes. A sync covers what was written before it was asked for, nothing later.
"""

import errno
from collections.abc import Sequence
from random import Random

from delosmq.storage.journal.files import Files


class Killed(BaseException):
    """The process ends here, so nobody handles it. Power may be gone, too."""


class SimFile:
    """One file: what programs see, and what is on the platter."""

    def __init__(self) -> None:
        self.seen = bytearray()
        self.kept = bytearray()
        self.versions: dict[int, list[tuple[int, bytes]]] = {}
        self.lengths: list[tuple[int, int]] = []


class SimDisk(Files):
    """One directory.

    Attributes:
        free_bytes: left on the disk; None for endless.
        failing_syncs: the next so many syncs fail, and what they should have kept is lost, as on Linux.
        short_writes: writes take a part only.
        steps_left: after so many more changes and syncs the process is killed; None for never.
    """

    def __init__(self, random: Random, sector_bytes: int = 512) -> None:
        self.random = random
        self.sector_bytes = sector_bytes
        self.files: dict[str, SimFile] = {}
        self.kept_names: dict[str, SimFile] = {}
        self.handles: dict[int, SimFile] = {}
        self.next_handle = 100
        self.clock = 0
        self.free_bytes: int | None = None
        self.failing_syncs = 0
        self.failing_writes = 0
        self.short_writes = False
        self.steps_left: int | None = None
        self.syncs = 0

    # Files

    def path(self, name: str) -> str:
        return f"/sim/{name}"

    def names(self) -> list[str]:
        return list(self.files)

    def open(self, name: str, *, create: bool = False) -> int:
        if name not in self.files:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", name)
            self.files[name] = SimFile()
        self.next_handle += 1
        self.handles[self.next_handle] = self.files[name]
        return self.next_handle

    def close(self, handle: int) -> None:
        del self.handles[handle]

    def pread(self, handle: int, size_bytes: int, offset: int) -> bytes:
        return bytes(self.handles[handle].seen[offset : offset + size_bytes])

    def pwritev(self, handle: int, parts: Sequence[bytes], offset: int) -> int:
        self._step()
        content = b"".join(parts)
        if self.failing_writes:
            self.failing_writes -= 1
            raise OSError(errno.EIO, "simulated write failure")
        if self.short_writes and len(content) > 1:
            content = content[: self.random.randrange(1, len(content) + 1)]
        self._write(self.handles[handle], content, offset)
        return len(content)

    def size(self, handle: int) -> int:
        return len(self.handles[handle].seen)

    def truncate(self, handle: int, size_bytes: int) -> None:
        self._step()
        file = self.handles[handle]
        if self.free_bytes is not None:
            self.free_bytes += len(file.seen) - size_bytes
        del file.seen[size_bytes:]
        self._note_length(file)
        for sector in [s for s in file.versions if s * self.sector_bytes >= size_bytes]:
            del file.versions[sector]
        self._note(file, size_bytes // self.sector_bytes)

    def fill(self, handle: int, start: int, size_bytes: int) -> None:
        self._step()
        file = self.handles[handle]
        if self.free_bytes is not None:
            if self.free_bytes < size_bytes - start:
                raise OSError(errno.ENOSPC, "no space left on device")
            self.free_bytes -= size_bytes - start
        self._write(file, bytes(size_bytes - start), start)

    def fdatasync(self, handle: int) -> None:
        self.sync_file(self.handles[handle], self.clock)

    def sync_directory(self) -> None:
        self._step()
        self.kept_names = dict(self.files)

    def rename(self, name: str, new_name: str) -> None:
        self._step()
        if new_name in self.files:
            self._remove(new_name)
        self.files[new_name] = self.files.pop(name)

    def remove(self, name: str) -> None:
        self._step()
        self._remove(name)

    def _remove(self, name: str) -> None:
        file = self.files.pop(name)
        if self.free_bytes is not None:
            self.free_bytes += len(file.seen)

    # What happens to the disk

    def sync_file(self, file: SimFile, upto: int) -> None:
        """Keeps what was written by ``upto``."""
        self._step()
        failing = self.failing_syncs > 0
        self.failing_syncs -= failing
        self.syncs += 1
        for upto_length, length in [entry for entry in file.lengths if entry[0] <= upto]:
            if not failing:
                self._keep_length(file, length)
            file.lengths.remove((upto_length, length))
        for sector, versions in list(file.versions.items()):
            covered = [content for stamp, content in versions if stamp <= upto]
            if covered and not failing:
                self._keep(file, sector, covered[-1])
            left = [entry for entry in versions if entry[0] > upto]
            if left:
                file.versions[sector] = left
            else:
                del file.versions[sector]
        if failing:
            raise OSError(errno.EIO, "simulated sync failure")

    def power_cut(self) -> "SimDisk":
        """The disk as it is found when power comes back."""
        random = self.random
        found = SimDisk(random, self.sector_bytes)
        found.free_bytes, found.clock = self.free_bytes, self.clock
        # All, nothing, and everything between; a rare survivor or a rare loss finds other faults than half and half.
        share = random.choice([0.0, 0.05, 0.5, 0.95, 1.0, random.random()])
        names = {name: file for name, file in self.kept_names.items() if name in self.files or random.random() < 0.5}
        for name, file in self.files.items():
            if names.get(name) is not file and random.random() < 0.5:
                names[name] = file
        for name, file in names.items():
            if file.lengths and random.random() < share:
                self._keep_length(file, random.choice(file.lengths)[1])
            for sector, versions in file.versions.items():
                if random.random() < share:
                    self._keep(file, sector, random.choice(versions)[1])
            after = SimFile()
            after.kept = bytearray(file.kept)
            after.seen = bytearray(file.kept)
            found.files[name] = after
        found.kept_names = dict(found.files)
        return found

    def copy(self) -> "SimDisk":
        """Another disk with what programs see of this one, all of it kept."""
        other = SimDisk(self.random, self.sector_bytes)
        for name, file in self.files.items():
            other.files[name] = SimFile()
            other.files[name].seen, other.files[name].kept = bytearray(file.seen), bytearray(file.seen)
        other.kept_names = dict(other.files)
        return other

    def process_crash(self) -> None:
        """Only the process is gone: everything written is still in the page cache."""
        self.handles.clear()

    def _step(self) -> None:
        if self.steps_left is not None:
            if self.steps_left == 0:
                raise Killed
            self.steps_left -= 1

    def _write(self, file: SimFile, content: bytes, offset: int) -> None:
        if not content:
            return
        self.clock += 1
        end = offset + len(content)
        grown = end > len(file.seen)
        if grown:
            file.seen.extend(bytes(end - len(file.seen)))
        file.seen[offset:end] = content
        if grown:
            self._note_length(file)
        for sector in range(offset // self.sector_bytes, (end - 1) // self.sector_bytes + 1):
            self._note(file, sector)

    def _note(self, file: SimFile, sector: int) -> None:
        start = sector * self.sector_bytes
        content = bytes(file.seen[start : start + self.sector_bytes])
        if content:
            file.versions.setdefault(sector, []).append((self.clock, content))

    def _note_length(self, file: SimFile) -> None:
        self.clock += 1
        file.lengths.append((self.clock, len(file.seen)))

    def _keep(self, file: SimFile, sector: int, content: bytes) -> None:
        start = sector * self.sector_bytes
        if len(file.kept) < start + len(content):
            file.kept.extend(bytes(start + len(content) - len(file.kept)))
        file.kept[start : start + len(content)] = content

    @staticmethod
    def _keep_length(file: SimFile, length: int) -> None:
        if len(file.kept) > length:
            del file.kept[length:]
        else:
            file.kept.extend(bytes(length - len(file.kept)))
