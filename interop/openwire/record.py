"""Records conversations of the real client with the real ActiveMQ Classic, frame by frame.

`python -m interop.openwire.record` writes one file per conversation of the program `recording`. A file has a header of
comments, then one line per frame: ``> `` from the client, ``< `` from the broker, and the frame in hexadecimal digits
with its length in front. Within one direction the order is that of the wire; between the two it is that of arrival.
``# connection N`` says whose frames follow, ``# connection N is gone`` that the client has let go of it while others go
on.
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

from delosmq.testing.frame_recorder import GONE, line_of_connection, line_of_frame
from interop.brokers import Broker, BrokerFailed, Classic
from interop.java import CACHE, Client, Missing, client
from interop.page import EXPECTED, Converted, run_program
from interop.programs import run

GOLDEN: Final = Path(__file__).resolve().parents[2] / "tests" / "wire" / "openwire" / "golden"
_PROGRAM: Final = "recording"
_CONVERSATIONS: Final = (
    "connect", "auto", "transacted", "connect-tight", "auto-tight", "transacted-tight", "client", "dups-ok",
    "individual", "optimised", "rollback", "poison", "pull", "browse", "durable", "temporary", "topic", "xa", "errors",
    *(f"{kind}-{mode}" for kind in ("topic", "durable") for mode in (
        "auto", "client", "dups-ok", "individual", "transacted",
    )),
    "auto-listener", "optimised-range", "optimised-time-out", "optimised-timer", "client-forms", "client-prefetch-1",
    "client-pull", "transacted-individual", "non-blocking-redelivery", "redelivered", "rollback-room", "recovered",
    "poison-range", "poison-listener", "poison-on-arrival", "expired", "expired-transacted", "xa-acknowledged",
    "closed-consumer", "closed-session", "pull-wait", "browse-pages",
    "exclusive", "exclusive-takeover", "exclusive-127", "exclusive-in-delivery", "exclusive-selector",
    "exclusive-closed", "exclusive-lost", "all-exclusive", "groups", "two-consumers-first", "strict-order",
    "priorities-off", "priorities", "turns",
)  # fmt: skip
PAGE: Final = "coming-from-activemq"
_BROKEN: Final = ("fails with", "hangs")
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
        self._lines: list[str] = []
        self._connections = 0
        self._before = 0
        self._last = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def lines(self) -> list[str]:
        """Those so far."""
        with self._lock:
            return list(self._lines)

    def take(self) -> list[str]:
        """The lines since the last call; connections are counted from 1 again."""
        with self._lock:
            taken, self._lines = self._lines, []
            self._before = self._last = self._connections
        while taken and taken[-1].endswith(GONE):
            # It follows the end of each conversation, sooner or later.
            taken.pop()
        return taken

    def close(self) -> None:
        """Accepts no more."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # else the thread goes on waiting
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._target))
            with self._lock:
                self._connections += 1
                number = self._connections
            threading.Thread(target=self._serve, args=(number, near, far), daemon=True).start()

    def _serve(self, number: int, near: socket.socket, far: socket.socket) -> None:
        with near, far:
            for one in (near, far):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            back = threading.Thread(target=self._copy, args=("<", number, far, near), daemon=True)
            back.start()
            self._copy(">", number, near, far)
            back.join()

    def _note(self, number: int, line: str) -> None:
        with self._lock:
            if number <= self._before:
                return  # late words of a conversation that was taken
            if number != self._last and line:
                self._lines.append(line_of_connection(number - self._before))
                self._last = number
            self._lines.append(line or line_of_connection(number - self._before, gone=True))

    def _copy(self, mark: str, number: int, source: socket.socket, sink: socket.socket) -> None:
        stream = source.makefile("rb")
        try:
            while length := stream.read(_LENGTH.size):
                frame = length + stream.read(_LENGTH.unpack(length)[0])
                self._note(number, line_of_frame(frame, by_client=mark == ">"))
                sink.sendall(frame)
        except OSError:
            pass  # one end is gone, and the other is told below
        if mark == ">":
            self._note(number, "")
        with contextlib.suppress(OSError):  # it may be gone as well
            sink.shutdown(socket.SHUT_WR)


class _Tapped(Broker):
    """The broker as the programs see it: behind the tap."""

    name = "tap"

    def __init__(self, tap: Tap) -> None:
        self.port = tap.port

    @property
    def environment(self) -> dict[str, str]:
        return {}

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


def _record_page(used: Client, place: Path, directory: Path) -> None:
    """What the page's Java program says to the broker that the page's commands make."""
    with Converted(place) as broker:
        tap = Tap(broker.port)
        printed = run_program(used, tap.port, place)
        if printed != EXPECTED:
            raise BrokerFailed(f"the program of the page prints {printed!r}")
        frames = tap.take()
        tap.close()
    lines = [
        f"# OpenWire: the Java program of docs/coming-from-activemq.md, client: ActiveMQ {used.version}",
        f"# To repeat: python -m interop.openwire.record {PAGE}",
    ]
    (directory / "page").mkdir(exist_ok=True)
    (directory / "page" / f"{PAGE}.txt").write_text("\n".join([*lines, *frames]) + "\n")


def record(conversations: list[str], directory: Path) -> None:
    """Write a file for each conversation."""
    used = client(options=_ANONYMOUS)
    place = CACHE / "run" / "recorder"
    directory.mkdir(parents=True, exist_ok=True)
    if PAGE in conversations:
        conversations = [one for one in conversations if one != PAGE]
        _record_page(used, place, directory)
    if not conversations:
        return
    with Classic(place, options=_ANONYMOUS) as classic:
        assert isinstance(classic, Classic)
        tap = Tap(classic.port)
        for conversation in conversations:
            outcome = run(used, _Tapped(tap), _PROGRAM, only=f"{conversation}.", errors=place / "program.err")
            broken = [line for told in outcome.cases.values() for line in told if line.startswith(_BROKEN)]
            if outcome.ended or broken:
                raise BrokerFailed(f"{conversation}: {outcome.ended} {' '.join(broken)}")
            frames = tap.take()
            lines = [*_header(conversation, used, classic), *frames]
            place_of_one = directory / "several" if "# connection 2" in frames else directory
            place_of_one.mkdir(exist_ok=True)
            (place_of_one / f"{conversation}.txt").write_text("\n".join(lines) + "\n")
            sys.stderr.write(f"{conversation}: {len(lines)} lines\n")
        tap.close()


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m interop.openwire.record", description=__doc__)
    parser.add_argument("conversations", nargs="*", choices=[*_CONVERSATIONS, PAGE, []], help="all without one")
    parser.add_argument("--directory", type=Path, default=GOLDEN)
    wanted = parser.parse_args()
    try:
        record(wanted.conversations or [*_CONVERSATIONS, PAGE], wanted.directory)
    except (Missing, BrokerFailed) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
