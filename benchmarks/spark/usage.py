"""Whose processor time it was: Spark's Java process, its Python processes, the driver's program."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from benchmarks.machine import TICKS_PER_S, process_tree

_JAVA: Final = "java"


@dataclass(frozen=True)
class ProcessTime:
    """Of one process: by itself, and by children of it that ended and were waited for."""

    pid: int
    name: str
    own_s: float
    children_s: float


def parse_stat(text: str) -> ProcessTime:
    """A line of ``/proc/PID/stat``; the name is in parentheses and may hold any character."""
    head, _, rest = text.rpartition(")")
    pid, _, name = head.partition(" (")
    # Behind the name, from the state on: utime, stime, cutime, cstime.
    user, system, children_user, children_system = (int(field) / TICKS_PER_S for field in rest.split()[11:15])
    return ProcessTime(int(pid), name, user + system, children_user + children_system)


def processes(root: int) -> list[ProcessTime]:
    """The process and all its descendants."""
    found = []
    for pid in process_tree(root):
        with contextlib.suppress(OSError):
            found.append(parse_stat(Path(f"/proc/{pid}/stat").read_text()))
    return found


@dataclass(frozen=True)
class Usage:
    """Processor time in seconds."""

    jvm_s: float
    python_s: float
    driver_s: float

    def since(self, before: Usage) -> Usage:
        return Usage(self.jvm_s - before.jvm_s, self.python_s - before.python_s, self.driver_s - before.driver_s)


def split(found: Iterable[ProcessTime], driver: int) -> Usage:
    """All of Spark's Python processes descend from its Java process, which waits for those that end."""
    jvm_s = python_s = driver_s = 0.0
    for process in found:
        if process.pid == driver:
            driver_s += process.own_s + process.children_s
        elif process.name == _JAVA:
            jvm_s += process.own_s
            python_s += process.children_s
        else:
            python_s += process.own_s + process.children_s
    return Usage(jvm_s, python_s, driver_s)


@dataclass(frozen=True)
class Pace:
    """Of a query: seconds until its first batch was committed, and rows per second of all later ones, None without."""

    first_batch_s: float
    steady_per_s: float | None


def pace(progress: Iterable[Mapping[str, Any]], began_s: float) -> Pace:
    """
    Args:
        progress: what Spark tells of each batch.
        began_s: since the epoch, when the query was started.
    """
    ends = []
    for batch in progress:
        if batch["numInputRows"]:
            start = datetime.fromisoformat(batch["timestamp"]).timestamp()
            ends.append((start + batch["durationMs"]["triggerExecution"] / 1_000, batch["numInputRows"]))
    if not ends:
        raise ValueError("the query had no rows")
    first, last = ends[0][0], ends[-1][0]
    later = sum(rows for _, rows in ends[1:])
    return Pace(first - began_s, later / (last - first) if later else None)
