"""Records conversations of the real client with the real ActiveMQ Classic, frame by frame.

`python -m interop.openwire.record` writes one file per conversation of the program `recording`. A file has a header of
comments, then one line per frame: ``> `` from the client, ``< `` from the broker, and the frame in hexadecimal digits
with its length in front. Within one direction the order is that of the wire; between the two it is that of arrival.
"""

from __future__ import annotations

import argparse
import contextlib
import socket
import struct
import sys
import threading
from pathlib import Path
from typing import Final

from interop.brokers import Broker, Classic
from interop.java import CACHE, Client, Missing, client
from interop.programs import run

GOLDEN: Final = Path(__file__).resolve().parents[2] / "tests" / "wire" / "openwire" / "golden"
_PROGRAM: Final = "recording"
_CONVERSATIONS: Final = (
    "connect", "auto", "transacted", "connect-tight", "auto-tight", "transacted-tight", "client", "dups-ok",
    "individual", "optimised", "rollback", "poison", "pull", "browse", "durable", "temporary", "topic", "xa", "errors",
)  # fmt: skip
_LENGTH: Final = struct.Struct(">I")
# Ids and greetings say where they were made; what is recorded should not.
_ANONYMOUS: Final = ("-Dactivemq.idgenerator.hostname=recorder", "-Dos.version=0", "-Djava.vm.version=0")


class Tap:
    """A proxy in front of a broker that notes the frames of one connection after the other."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._connections: list[list[str]] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def take(self) -> list[list[str]]:
        """The lines of each connection since the last call."""
        with self._lock:
            taken, self._connections = self._connections, []
        return taken

    def close(self) -> None:
        """Accepts no more."""
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._target))
            lines: list[str] = []
            with self._lock:
                self._connections.append(lines)
            for mark, source, sink in ((">", near, far), ("<", far, near)):
                source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._copy, args=(mark, source, sink, lines), daemon=True).start()

    def _copy(self, mark: str, source: socket.socket, sink: socket.socket, lines: list[str]) -> None:
        stream = source.makefile("rb")
        try:
            while length := stream.read(_LENGTH.size):
                frame = length + stream.read(_LENGTH.unpack(length)[0])
                with self._lock:
                    lines.append(f"{mark} {frame.hex()}")
                sink.sendall(frame)
        except OSError:
            pass  # one end is gone, and the other is told below
        with contextlib.suppress(OSError):  # it may be gone as well
            sink.shutdown(socket.SHUT_WR)


class _Tapped(Broker):
    """The broker as the programs see it: behind the tap."""

    name = "tap"

    def __init__(self, tap: Tap) -> None:
        self.port = tap.port

    def prepare(self) -> None:
        """Nothing: the broker behind the tap is prepared."""

    def command(self) -> list[str]:
        raise NotImplementedError


def _header(conversation: str, used: Client, classic: Classic) -> list[str]:
    return [
        f"# OpenWire, conversation '{conversation}'",
        f"# Client: ActiveMQ {used.version}; broker: ActiveMQ Classic {classic.version}",
        f"# To repeat: python -m interop.openwire.record {conversation}",
        "# > from the client, < from the broker; each line is one frame with its length.",
    ]


def record(conversations: list[str], directory: Path) -> None:
    """Write a file for each conversation."""
    used = client(options=_ANONYMOUS)
    place = CACHE / "run" / "recorder"
    directory.mkdir(parents=True, exist_ok=True)
    with Classic(place, options=_ANONYMOUS) as classic:
        assert isinstance(classic, Classic)
        tap = Tap(classic.port)
        for conversation in conversations:
            run(used, _Tapped(tap), _PROGRAM, only=f"{conversation}.", errors=place / "program.err")
            lines = _header(conversation, used, classic)
            for number, frames in enumerate(tap.take(), 1):
                lines += [f"# connection {number}", *frames]
            (directory / f"{conversation}.txt").write_text("\n".join(lines) + "\n")
            sys.stderr.write(f"{conversation}: {len(lines)} lines\n")
        tap.close()


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m interop.openwire.record", description=__doc__)
    parser.add_argument("conversations", nargs="*", choices=[*_CONVERSATIONS, []], help="all without one")
    parser.add_argument("--directory", type=Path, default=GOLDEN)
    wanted = parser.parse_args()
    try:
        record(wanted.conversations or list(_CONVERSATIONS), wanted.directory)
    except Missing as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
