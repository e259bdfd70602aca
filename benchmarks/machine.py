"""What the operating system knows: processor time and memory of a tree of processes, flushes of a disk, the machine."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from delosmq.testing.processes.free_port import free_port as free_port

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_SIZE_BYTES = os.sysconf("SC_PAGE_SIZE")
_SECTOR_SIZE_BYTES = 512


@contextlib.contextmanager
def pinned(core: int | None) -> Iterator[None]:
    """What is started inside runs on that core only."""
    before = os.sched_getaffinity(0)
    if core is not None:
        os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def cores() -> tuple[int | None, int | None]:
    """A core for the broker and another for the generator; none of both when there is but one."""
    allowed = sorted(os.sched_getaffinity(0))
    return (allowed[0], allowed[1]) if len(allowed) > 1 else (None, None)


def process_tree(root: int) -> list[int]:
    """The process and all its descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def cpu_s(roots: list[int]) -> float:
    """User and system time so far of all processes below the roots, those that ended and were waited for included."""
    ticks = 0
    for root in roots:
        for pid in process_tree(root):
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                ticks += sum(int(field) for field in fields[11:15])
    return ticks / TICKS_PER_S


def memory_mib(roots: list[int]) -> float:
    """Resident memory of all processes below the roots, pages that several share counted once (PSS)."""
    total_kib = 0
    for root in roots:
        for pid in process_tree(root):
            with contextlib.suppress(OSError):
                total_kib += _resident_kib(pid)
    return round(total_kib / 1024, 1)


def _resident_kib(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    except PermissionError:
        pass
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_SIZE_BYTES // 1024


@dataclass(frozen=True)
class DiskCount:
    """What a block device has done since the machine started; others on the machine count too."""

    flushes: int
    written_bytes: int

    def since(self, before: DiskCount) -> DiskCount:
        """The difference."""
        return DiskCount(self.flushes - before.flushes, self.written_bytes - before.written_bytes)


def disk_count(directory: Path) -> DiskCount | None:
    """Counts of the device that holds the directory, or None where they can't be read."""
    device = directory.stat().st_dev
    node = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    try:
        node = node.resolve(strict=True)
        if (node / "partition").exists():  # flushes are counted for the whole disk
            node = node.parent
        fields = (node / "stat").read_text().split()
        return DiskCount(int(fields[15]), int(fields[6]) * _SECTOR_SIZE_BYTES)
    except (OSError, IndexError):
        return None


def describe(directory: Path) -> dict[str, str | int | float]:
    """Machine and date, for the results file."""
    processor = platform.processor() or "unknown"
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        processor = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), processor)
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * _PAGE_SIZE_BYTES
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "processor": processor,
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory_bytes / 2**30, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "filesystem": _filesystem(directory),
        "load_before": os.getloadavg()[0],
    }


def _filesystem(directory: Path) -> str:
    best, kind = "", "unknown"
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, mount, found, *_ = line.split()
        if directory.resolve().is_relative_to(mount) and len(mount) >= len(best):
            best, kind = mount, found
    return kind
