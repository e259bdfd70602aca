"""Syncers: the port, and the thread that an embedded broker uses.

The loop never syncs, never fills a file. It hands over tickets and orders, and is woken through a descriptor.
"""

import contextlib
import errno
import os
import queue
import select
import socket
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from delosmq.storage.journal.files import Files, Order, prepare
from delosmq.storage.journal.manifest import Edit, ManifestWriter, NewManifest, set_aside


@dataclass(frozen=True, slots=True)
class Synced:
    """The answer to `Syncer.sync`; ``error`` is None when everything is on the disk."""

    ticket: int
    error: OSError | None


@dataclass(frozen=True, slots=True)
class Replaced:
    """The answer to `Syncer.replace_manifest`; ``error`` is None when the new one has taken its place on the disk.

    Attributes:
        unchanged: despite the error the manifest is the one it was, and edits go on in it.
    """

    ticket: int
    error: OSError | None
    unchanged: bool = False


@dataclass(frozen=True, slots=True)
class Prepared:
    """The answer to `Syncer.prepare`; with an ``error`` there is no such file now."""

    name: str
    error: OSError | None


@dataclass(frozen=True, slots=True)
class SyncerDied:
    """The syncer has ended."""

    error: OSError


Report = Synced | Replaced | Prepared | SyncerDied


class Syncer(ABC):
    """Syncs and prepares files in the background. All methods are called on the engine's thread."""

    @abstractmethod
    def fileno(self) -> int:
        """Readable when `collect` has something; -1 when only `wait` tells."""

    @abstractmethod
    def sync(self, ticket: int, handles: Sequence[int], position: int = 0, edit: Edit | None = None) -> None:
        """Asks for fdatasync of each handle, in this order. At most one request is outstanding.

        Covers at least what was written before the call. The handles stay open until the answer. When all is synced,
        ``edit`` goes into the manifest, synced as well, and ``position`` is noted there.
        """

    @abstractmethod
    def replace_manifest(self, ticket: int, replacement: NewManifest) -> None:
        """Asks for another manifest, in place of a request to sync."""

    @abstractmethod
    def prepare(self, order: Order) -> None:
        """Asks for a segment file; syncs do not wait for it."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Asks for the removal of a file; unanswered."""

    @abstractmethod
    def collect(self) -> list[Report]:
        """The answers that are there. Never blocks."""

    @abstractmethod
    def wait(self, timeout_s: float) -> list[Report]:
        """The answers, waiting for the first one at most ``timeout_s``."""

    @abstractmethod
    def close(self) -> None:
        """Ends the background once what runs has ended. May be repeated."""


def run_order(files: Files, order: Order) -> OSError | None:
    try:
        prepare(files, order)
    except OSError as error:
        return error
    return None


def run_sync(
    files: Files, handles: Sequence[int], manifest: ManifestWriter, position: int = 0, edit: Edit | None = None
) -> OSError | None:
    try:
        for handle in handles:
            files.fdatasync(handle)
        if edit is not None:
            manifest.append(edit)
        if position:
            manifest.note(position)
    except OSError as error:
        return error
    return None


def run_replacement(files: Files, manifest: ManifestWriter, ticket: int, replacement: NewManifest) -> Replaced:
    try:
        set_aside(files, replacement)
    except OSError as error:
        return Replaced(ticket, error, unchanged=True)
    try:
        manifest.replace()
    except OSError as error:
        return Replaced(ticket, error)
    return Replaced(ticket, None)


def wait_readable(descriptor: int, timeout_s: float) -> None:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    poll.poll(max(0.0, timeout_s) * 1000)


class SyncThread(Syncer):
    """Two threads: one syncs, one prepares."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._reports: deque[Report] = deque()
        self._manifest = ManifestWriter(files)
        self._syncs: queue.SimpleQueue[tuple[int, Sequence[int], int, Edit | NewManifest | None] | None]
        self._syncs = queue.SimpleQueue()
        self._orders: queue.SimpleQueue[Order | str | None] = queue.SimpleQueue()
        self._receiver, self._sender = socket.socketpair()
        self._receiver.setblocking(False)
        self._sender.setblocking(False)
        self._closed = False
        self._threads = [
            threading.Thread(target=self._run_syncs, name="delosmq-sync", daemon=True),
            threading.Thread(target=self._run_orders, name="delosmq-prepare", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def fileno(self) -> int:
        return self._receiver.fileno()

    def sync(self, ticket: int, handles: Sequence[int], position: int = 0, edit: Edit | None = None) -> None:
        self._syncs.put((ticket, handles, position, edit))

    def replace_manifest(self, ticket: int, replacement: NewManifest) -> None:
        self._syncs.put((ticket, (), 0, replacement))

    def prepare(self, order: Order) -> None:
        self._orders.put(order)

    def remove(self, name: str) -> None:
        self._orders.put(name)

    def collect(self) -> list[Report]:
        with contextlib.suppress(BlockingIOError):
            self._receiver.recv(4096)
        reports: list[Report] = []
        while self._reports:
            reports.append(self._reports.popleft())
        return reports

    def wait(self, timeout_s: float) -> list[Report]:
        wait_readable(self._receiver.fileno(), timeout_s)
        return self.collect()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._syncs.put(None)
        self._orders.put(None)
        for thread in self._threads:
            thread.join()
        self._manifest.close()
        self._receiver.close()
        self._sender.close()

    def _answer(self, report: Report) -> None:
        self._reports.append(report)
        # A full pipe has a byte for the loop to find.
        with contextlib.suppress(BlockingIOError):
            self._sender.send(b"\0")

    def _run_syncs(self) -> None:
        while (request := self._syncs.get()) is not None:
            ticket, handles, position, change = request
            if isinstance(change, NewManifest):
                self._answer(run_replacement(self._files, self._manifest, ticket, change))
            else:
                self._answer(Synced(ticket, run_sync(self._files, handles, self._manifest, position, change)))

    def _run_orders(self) -> None:
        while (order := self._orders.get()) is not None:
            if isinstance(order, str):
                with contextlib.suppress(OSError):
                    self._files.remove(order)
            else:
                self._answer(Prepared(order.name, run_order(self._files, order)))


def error_from(number: int) -> OSError | None:
    """The error that crossed a process boundary as its number; 0 is none, -1 one without a number."""
    if number == 0:
        return None
    return OSError(number, os.strerror(number)) if number > 0 else OSError(errno.EIO, "unnamed failure")
