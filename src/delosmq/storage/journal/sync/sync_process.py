"""The sync process: a small fork that shares the journal's descriptors and runs nothing but fdatasync and fills.

A thread would wait for the interpreter lock after each sync; a process answers at once (DESIGN: 615 syncs/s against
289 beside a busy loop). It is forked before the loop starts and ends with its parent: its end of the socket reads EOF.

A message either way is one frame: kind, length, payload. Descriptors travel with the first byte of a sync request. The
child keeps those that came last: nearly every sync is of one file, the same as before, and then only says so.
"""

import contextlib
import errno
import os
import signal
import socket
import struct
import sys
import threading
from collections.abc import Sequence
from queue import SimpleQueue
from typing import Final, NoReturn

from delosmq.storage.journal.files import Files, Order
from delosmq.storage.journal.manifest import Edit, ManifestWriter, NewManifest
from delosmq.storage.journal.sync.syncer import (
    Prepared,
    Replaced,
    Report,
    Synced,
    Syncer,
    SyncerDied,
    error_from,
    run_order,
    run_replacement,
    run_sync,
    wait_readable,
)

FRAME: Final = struct.Struct("<BI")
SYNC: Final = 1
PREPARE: Final = 2
REMOVE: Final = 3
SYNC_AGAIN: Final = 4
"""Of the descriptors that came last."""
REPLACE: Final = 5
# ticket, descriptors, position to note, where the edit of the manifest goes; then the edit
SYNC_REQUEST: Final = struct.Struct("<QIQQ")
# kind, length, ticket, position to note
SYNC_AGAIN_FRAME: Final = struct.Struct("<BIQQ")
AGAIN: Final = struct.Struct("<QQ")
# ticket, size of the manifest; then its content
REPLACE_REQUEST: Final = struct.Struct("<QQ")
# ticket, errno, whether the manifest is unchanged
REPLACE_ANSWER: Final = struct.Struct("<Qi?")
# ticket, errno
SYNC_ANSWER: Final = struct.Struct("<Qi")
SYNC_ANSWER_FRAME: Final = struct.Struct("<BIQi")
# size, length of the name; then name and header
PREPARE_REQUEST: Final = struct.Struct("<QI")
ERRNO: Final = struct.Struct("<i")
MOST_DESCRIPTORS: Final = 64
"""In one request; SCM_RIGHTS takes 253. More dirty files at once go in several frames of the same ticket."""
READ_SIZE: Final = 65_536
INT: Final = struct.Struct("i")
ROOM_FOR_DESCRIPTORS: Final = socket.CMSG_LEN(MOST_DESCRIPTORS * INT.size)


class SyncProcess(Syncer):
    """Runs the child and talks to it.

    Args:
        kept: descriptors that the child holds until it ends, those of the directory's lock.
    """

    def __init__(self, files: Files, kept: Sequence[int] = ()) -> None:
        self._socket, child_end = socket.socketpair()
        self._frames = Frames()
        self._dead: OSError | None = None
        # The file that the child has for its last sync, and nothing when that were several. Not the number, which may
        # mean another file by now; the inode can't while the child keeps it open.
        self._kept: tuple[int, int, int] | None = None
        sys.stdout.flush()
        sys.stderr.flush()
        # The lock's own descriptors are closed by every fork.
        copies = [os.dup(descriptor) for descriptor in kept]
        self._pid = os.fork()
        if self._pid == 0:
            self._socket.close()
            _live_as_child(files, child_end, copies)
        child_end.close()
        for descriptor in copies:
            os.close(descriptor)

    def fileno(self) -> int:
        return self._socket.fileno()

    def sync(self, ticket: int, handles: Sequence[int], position: int = 0, edit: Edit | None = None) -> None:
        kept = _identity(handles)
        if kept is not None and kept == self._kept and edit is None:
            self._write(SYNC_AGAIN_FRAME.pack(SYNC_AGAIN, AGAIN.size, ticket, position))
            return
        self._kept = kept
        # Without handles too there is one frame, as there is one answer.
        for start in range(0, max(1, len(handles)), MOST_DESCRIPTORS):
            some = handles[start : start + MOST_DESCRIPTORS]
            if start + MOST_DESCRIPTORS < len(handles):
                self._send(SYNC, SYNC_REQUEST.pack(0, len(some), 0, 0), some)
            else:
                offset, content = (0, b"") if edit is None else (edit.offset, edit.content)
                self._send(SYNC, SYNC_REQUEST.pack(ticket, len(some), position, offset) + content, some)

    def replace_manifest(self, ticket: int, replacement: NewManifest) -> None:
        self._send(REPLACE, REPLACE_REQUEST.pack(ticket, replacement.size_bytes) + replacement.content)

    def prepare(self, order: Order) -> None:
        name = order.name.encode()
        self._send(PREPARE, PREPARE_REQUEST.pack(order.size_bytes, len(name)) + name + order.header)

    def remove(self, name: str) -> None:
        self._send(REMOVE, name.encode())

    def collect(self) -> list[Report]:
        reports: list[Report] = []
        while self._dead is None:
            try:
                chunk = self._socket.recv(READ_SIZE, socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
            except OSError as error:
                self._dead = error
                break
            if not chunk:
                self._dead = OSError(errno.EPIPE, "the sync process has ended")
                break
            if not reports and not self._frames.begun and len(chunk) == SYNC_ANSWER_FRAME.size and chunk[0] == SYNC:
                _, _, ticket, number = SYNC_ANSWER_FRAME.unpack(chunk)
                return [Synced(ticket, error_from(number))]
            reports += [_decode_answer(kind, payload) for kind, payload in self._frames.add(chunk)]
            if len(chunk) < READ_SIZE:
                break
        return [*reports, SyncerDied(self._dead)] if self._dead is not None else reports

    def wait(self, timeout_s: float) -> list[Report]:
        wait_readable(self._socket.fileno(), timeout_s)
        return self.collect()

    def close(self) -> None:
        if self._pid == 0:
            return
        self._socket.close()
        os.waitpid(self._pid, 0)
        self._pid = 0

    def _send(self, kind: int, payload: bytes, handles: Sequence[int] = ()) -> None:
        content = FRAME.pack(kind, len(payload)) + payload
        if not handles:
            self._write(content)
            return
        try:
            sent = socket.send_fds(self._socket, [content], handles)
            if sent < len(content):
                self._socket.sendall(content[sent:])
        except OSError as error:
            # Told through `collect`, like every other end of the child: its socket is readable now.
            self._dead = self._dead or error

    def _write(self, content: bytes) -> None:
        try:
            self._socket.sendall(content)
        except OSError as error:
            self._dead = self._dead or error


def _identity(handles: Sequence[int]) -> tuple[int, int, int] | None:
    if len(handles) != 1:
        return None
    try:
        status = os.fstat(handles[0])
    except OSError:
        return None  # sending it will tell
    return handles[0], status.st_dev, status.st_ino


class Frames:
    """Cuts what comes through the socket into frames. What a large frame consists of is not copied with each piece."""

    def __init__(self) -> None:
        self._content = bytearray()

    @property
    def begun(self) -> bool:
        """Whether a part of a frame has come."""
        return len(self._content) > 0

    def add(self, chunk: bytes) -> list[tuple[int, bytes]]:
        """Takes in what came; gives the frames that are whole, each as its kind and its payload."""
        content = self._content
        content += chunk
        frames: list[tuple[int, bytes]] = []
        at = 0
        while at + FRAME.size <= len(content):
            kind, size = FRAME.unpack_from(content, at)
            end = at + FRAME.size + size
            if end > len(content):
                break
            frames.append((kind, bytes(content[at + FRAME.size : end])))
            at = end
        if at:
            del content[:at]
        return frames


def _decode_answer(kind: int, payload: bytes) -> Report:
    if kind == SYNC:
        ticket, number = SYNC_ANSWER.unpack(payload)
        return Synced(ticket, error_from(number))
    if kind == REPLACE:
        ticket, number, unchanged = REPLACE_ANSWER.unpack(payload)
        return Replaced(ticket, error_from(number), unchanged)
    return Prepared(payload[ERRNO.size :].decode(), error_from(ERRNO.unpack_from(payload)[0]))


def _live_as_child(files: Files, parent: socket.socket, kept: list[int]) -> NoReturn:
    """Serves until the parent is gone, then leaves without running anything the parent had planned for its own end."""
    status = 1
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        signal.set_wakeup_fd(-1)
        start = 3
        for keep in sorted([parent.fileno(), *kept]):
            os.closerange(start, keep)
            start = keep + 1
        os.closerange(start, max(start, min(os.sysconf("SC_OPEN_MAX"), READ_SIZE)))
        _Child(files, parent).serve()
        status = 0
    finally:
        os._exit(status)


class _Child:
    def __init__(self, files: Files, parent: socket.socket) -> None:
        self._files = files
        self._parent = parent
        self._sending = threading.Lock()
        self._orders: SimpleQueue[Order | str] = SimpleQueue()
        self._failed: OSError | None = None
        self._descriptors: list[int] = []
        self._kept: list[int] = []
        self._manifest = ManifestWriter(files)

    def serve(self) -> None:
        threading.Thread(target=self._run_orders, daemon=True).start()
        incoming = Frames()
        again = SYNC_AGAIN_FRAME.size
        while True:
            chunk, ancillary, _, _ = self._parent.recvmsg(READ_SIZE, ROOM_FOR_DESCRIPTORS)
            if not chunk:
                return
            if not ancillary and not incoming.begun and len(chunk) == again and chunk[0] == SYNC_AGAIN:
                _, _, ticket, position = SYNC_AGAIN_FRAME.unpack(chunk)
                self._sync_again(ticket, position)
                continue
            for _, _, content in ancillary:
                self._descriptors += struct.unpack(f"{len(content) // INT.size}i", content)
            for kind, payload in incoming.add(chunk):
                self._handle(kind, payload)

    def _handle(self, kind: int, payload: bytes) -> None:
        if kind == SYNC:
            ticket, count, position, offset = SYNC_REQUEST.unpack_from(payload)
            edit = Edit(offset, payload[SYNC_REQUEST.size :]) if offset else None
            self._sync(ticket, self._descriptors[:count], position, edit)
            del self._descriptors[:count]
        elif kind == SYNC_AGAIN:
            self._sync_again(*AGAIN.unpack(payload))
        elif kind == REPLACE:
            ticket, size = REPLACE_REQUEST.unpack_from(payload)
            replacement = NewManifest(payload[REPLACE_REQUEST.size :], size)
            done = run_replacement(self._files, self._manifest, ticket, replacement)
            self._answer(REPLACE, REPLACE_ANSWER.pack(ticket, _number_of(done.error), done.unchanged))
        elif kind == PREPARE:
            size, name_size = PREPARE_REQUEST.unpack_from(payload)
            end = PREPARE_REQUEST.size + name_size
            self._orders.put(Order(payload[PREPARE_REQUEST.size : end].decode(), payload[end:], size))
        else:
            self._orders.put(payload.decode())

    def _sync(self, ticket: int, descriptors: list[int], position: int, edit: Edit | None) -> None:
        if self._failed:  # an earlier frame of this ticket
            position, edit = 0, None
        error = run_sync(self._files, descriptors, self._manifest, position, edit)
        # One ticket may come in several frames: a failure of any of them is the ticket's.
        self._failed = self._failed or error
        for descriptor in self._kept:
            os.close(descriptor)
        self._kept = descriptors
        if ticket:
            self._answer(SYNC, SYNC_ANSWER.pack(ticket, _number_of(self._failed)))

    def _sync_again(self, ticket: int, position: int) -> None:
        self._failed = self._failed or run_sync(self._files, self._kept, self._manifest, position)
        self._answer(SYNC, SYNC_ANSWER.pack(ticket, _number_of(self._failed)))

    def _run_orders(self) -> None:
        while True:
            order = self._orders.get()
            if isinstance(order, str):
                with contextlib.suppress(OSError):
                    self._files.remove(order)
            else:
                error = run_order(self._files, order)
                self._answer(PREPARE, ERRNO.pack(_number_of(error)) + order.name.encode())

    def _answer(self, kind: int, payload: bytes) -> None:
        try:
            with self._sending:
                self._parent.sendall(FRAME.pack(kind, len(payload)) + payload)
        except OSError:
            return  # the parent is gone, which the next read finds


def _number_of(error: OSError | None) -> int:
    if error is None:
        return 0
    return error.errno or -1
