"""A STOMP connection that sends a small message each 5 ms and gets it back, until a line comes on its input.

Prints when each was due and how long it took, as JSON. One message is under way at a time; one that had to wait for the
answer to another counts from when it was due, so that a broker that stops can't hide how often it was asked.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from benchmarks.frames import connect_frame

EVERY_S: Final = 0.005
"""No less than what a ping may take: with one each millisecond, pings that took 1.1 ms each counted as half a second
after a while, as each one also waits for those before it."""
_DESTINATION: Final = "/queue/bench.ping"
_PATIENCE_S: Final = 60.0
_NICE: Final = -20
"""What else shares this core must not look like a wait at the broker; only root may."""


def pings(
    round_trip: Callable[[], None],
    over: Callable[[float], bool],
    clock: Callable[[], float] = time.monotonic,
) -> list[tuple[float, float]]:
    """When each was due and how long it took, in seconds.

    Args:
        over: waits so many seconds; whether it is time to end.
    """
    found = []
    ended = due = clock()
    while not over(max(0.0, due - clock())):
        if ended <= due:
            due = clock()  # what is late here is not the broker's
        round_trip()
        ended = clock()
        found.append((due, ended - due))
        due += EVERY_S
    return found


def main() -> int:
    port, user, password = sys.argv[1:]
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, _NICE)
    with socket.create_connection(("127.0.0.1", int(port)), timeout=_PATIENCE_S) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(connect_frame(user, password, "localhost"))
        connection.recv(65_536)
        frame = f"SEND\ndestination:{_DESTINATION}\n\nx\0".encode()

        def round_trip() -> None:
            connection.sendall(frame)
            answer = b""
            while b"MESSAGE\n" not in answer or not answer.rstrip(b"\n").endswith(b"\0"):
                piece = connection.recv(65_536)
                if not piece or b"ERROR\n" in piece:
                    raise RuntimeError(f"the broker answers {piece[:300]!r}")
                answer += piece

        connection.sendall(f"SUBSCRIBE\nid:0\ndestination:{_DESTINATION}\nack:auto\n\n\0".encode())
        round_trip()
        print("connected", flush=True)
        found = pings(round_trip, lambda wait_s: bool(select.select([sys.stdin], [], [], wait_s)[0]))
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
