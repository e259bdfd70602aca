"""A stand-in for a broker that does next to nothing, to see how fast the generator itself is.

It answers CONNECT and every `receipt` header, and for each SEND passes a ready-made MESSAGE to the consumer whose
connection subscribed in the same order: it keeps nothing, checks nothing and parses nothing but two patterns.
"""

from __future__ import annotations

import selectors
import socket
import sys
import threading

from benchmarks.frames import BODY, BODY_SIZE_BYTES

_CONNECTED = b"CONNECTED\nversion:1.2\n\n\0"
_RECEIPT = b"RECEIPT\nreceipt-id:r0000\n\n\0"
_MESSAGE = b"MESSAGE\nsubscription:0\nmessage-id:1\nack:1\ndestination:/queue/bench.0\ncontent-length:%d\n\n%b\0" % (
    BODY_SIZE_BYTES,
    BODY,
)
_BATCH_LIMIT = 1_024
_MESSAGES = memoryview(_MESSAGE * _BATCH_LIMIT)
_RECEIPTS = memoryview(_RECEIPT * _BATCH_LIMIT)
_SEND, _RECEIPT_ASKED, _DESTINATION = b"SEND\n", b"\nreceipt:", b"\ndestination:"
_TAIL_SIZE_BYTES = len(_RECEIPT_ASKED) - 1


class _Connection:
    """One client: the bytes owed to it and the end of what it sent last, in case a pattern was cut in two."""

    def __init__(self, client: socket.socket) -> None:
        self.socket = client
        self.tail = b""
        self.destination = b""
        self.owed: list[memoryview] = []

    def write(self, piece: memoryview) -> None:
        """Send now what fits, the rest when the socket takes it again."""
        if not self.owed:
            piece = self._send(piece)
        if piece:
            self.owed.append(piece)

    def flush(self) -> None:
        """Send what is owed as far as it goes."""
        while self.owed:
            rest = self._send(self.owed[0])
            if rest:
                self.owed[0] = rest
                return
            del self.owed[0]

    def _send(self, piece: memoryview) -> memoryview:
        try:
            while piece:
                piece = piece[self.socket.send(piece) :]
        except BlockingIOError:
            pass
        return piece


class Sink:
    """Listens on a port of its own choosing until stopped."""

    def __init__(self, port: int = 0) -> None:
        self._listener = socket.create_server(("127.0.0.1", port))
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._subscribers: dict[bytes, _Connection] = {}
        self._waker, self._woken = socket.socketpair()
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._buffer = bytearray(512 * 1024)
        self._stopped = False

    def serve(self) -> None:
        """Serve until `stop` is called."""
        while not self._stopped:
            for key, mask in self._selector.select():
                if key.fileobj is self._listener:
                    self._accept()
                elif key.data is not None:
                    self._serve_client(key.data, mask)
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        self._selector.close()
        self._waker.close()

    def stop(self) -> None:
        """End `serve`; may be called from another thread."""
        self._waker.send(b"x")
        self._stopped = True  # not before: `serve` closes that socket once it sees this

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        client.setblocking(False)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._selector.register(client, selectors.EVENT_READ, _Connection(client))

    def _serve_client(self, client: _Connection, mask: int) -> None:
        if mask & selectors.EVENT_WRITE:
            client.flush()
            self._watch(client)
        if mask & selectors.EVENT_READ:
            try:
                size = client.socket.recv_into(self._buffer)
            except ConnectionResetError:
                size = 0
            if size == 0:
                self._selector.unregister(client.socket)
                client.socket.close()
                return
            self._answer(client, size)

    def _answer(self, client: _Connection, size: int) -> None:
        buffer = self._buffer
        seam = client.tail + bytes(buffer[: min(size, _TAIL_SIZE_BYTES)])
        if buffer.startswith(b"CONNECT\n"):
            client.write(memoryview(_CONNECTED))
        elif buffer.startswith(b"SUBSCRIBE\n"):
            self._subscribers[self._destination(size)] = client
        sends = buffer.count(_SEND, 0, size) + count_across(seam, len(client.tail), _SEND)
        receipts = buffer.count(_RECEIPT_ASKED, 0, size) + count_across(seam, len(client.tail), _RECEIPT_ASKED)
        if sends:
            if not client.destination:
                client.destination = self._destination(size)
            subscriber = self._subscribers.get(client.destination)
            if subscriber is not None:
                self._write(subscriber, _MESSAGES, len(_MESSAGE), sends)
        if receipts:
            self._write(client, _RECEIPTS, len(_RECEIPT), receipts)
        client.tail = (client.tail + bytes(buffer[max(0, size - _TAIL_SIZE_BYTES) : size]))[-_TAIL_SIZE_BYTES:]

    def _destination(self, size: int) -> bytes:
        start = self._buffer.find(_DESTINATION, 0, size) + len(_DESTINATION)
        return bytes(self._buffer[start : self._buffer.find(b"\n", start, size)])

    def _write(self, client: _Connection, frames: memoryview, frame_size: int, count: int) -> None:
        while count > 0:
            client.write(frames[: frame_size * min(count, _BATCH_LIMIT)])
            count -= _BATCH_LIMIT
        self._watch(client)

    def _watch(self, client: _Connection) -> None:
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if client.owed else 0)
        if self._selector.get_key(client.socket).events != events:
            self._selector.modify(client.socket, events, client)


def count_across(seam: bytes, boundary: int, pattern: bytes) -> int:
    """Occurrences that begin before the boundary and end behind it (none lies within the tail, which is shorter)."""
    start = max(0, boundary - len(pattern) + 1)
    return seam[start : boundary + len(pattern) - 1].count(pattern)


class SinkThread:
    """A sink in a thread of this process, as a context."""

    def __enter__(self) -> Sink:
        self._sink = Sink()
        self._thread = threading.Thread(target=self._sink.serve, name="sink", daemon=True)
        self._thread.start()
        return self._sink

    def __exit__(self, *_: object) -> None:
        self._sink.stop()
        self._thread.join()


if __name__ == "__main__":
    Sink(int(sys.argv[1])).serve()
