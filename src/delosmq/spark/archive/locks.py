"""Locks in an archive's directory on this machine: one archive at a time, and no batch while files are exchanged."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from delosmq.spark.errors import ArchiveError

_ARCHIVE: Final = "_archive.lock"
_COMPACTION: Final = "_compact.lock"
_FILES: Final = "_files.lock"


@contextmanager
def alone(path: Path | None) -> Iterator[None]:
    """Keep a second archive out of the directory: it would sweep away what this one writes. None: no place to lock.

    Raises:
        ArchiveError: another one is at work.
    """
    if path is None:
        yield
        return
    with _locked(path / _ARCHIVE, fcntl.LOCK_EX | fcntl.LOCK_NB) as got:
        if not got:
            raise ArchiveError(
                "DMQ8054", f"another archive is running into {path}: stop it, or archive to another directory"
            )
        yield


@contextmanager
def compacting(path: Path) -> Iterator[None]:
    """Keep a second compaction out.

    Raises:
        ArchiveError: another one is at work.
    """
    with _locked(path / _COMPACTION, fcntl.LOCK_EX | fcntl.LOCK_NB) as got:
        if not got:
            raise ArchiveError("DMQ8246", f"{path} is being compacted already: wait for the end of that")
        yield


@contextmanager
def placing(path: Path | None) -> Iterator[None]:
    """While a batch's files are put in place; several writers may at once. None: no place to lock."""
    if path is None:
        yield
        return
    with _locked(path / _FILES, fcntl.LOCK_SH):
        yield


@contextmanager
def exchanging(path: Path) -> Iterator[None]:
    """While a compaction puts one directory in place of another; waits for batches that are being written."""
    with _locked(path / _FILES, fcntl.LOCK_EX):
        yield


@contextmanager
def _locked(path: Path, how: int) -> Iterator[bool]:
    with open(path, "a") as lock:
        try:
            fcntl.flock(lock, how)
        except BlockingIOError:
            yield False
            return
        yield True
