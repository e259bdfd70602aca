"""Targets of a connection router are killed and paused while clients log in: processes on loopback."""

# ROUTE-3, ROUTE-4

import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from delosmq.testing import BrokerProcess
from tests.e2e.support import ADMIN, HOST, RunningBroker
from tests.e2e.test_router_pools import LEAST, ROUND, ready, routed
from tests.patience import PATIENCE_S

TARGETS = 3
CLIENTS = 4
ROUNDS = 10


def where(port: int, client_id: str) -> str:
    """Where the router at ``port`` sends a STOMP client; what it says else."""
    login = f"login:{ADMIN.name}\npasscode:{ADMIN.password}\nclient-id:{client_id}"
    with socket.create_connection((HOST, port), PATIENCE_S) as peer:
        peer.sendall(f"CONNECT\naccept-version:1.2\nhost:h\n{login}\n\n\0".encode())
        answer = b""
        while chunk := peer.recv(65_536):
            answer += chunk
    headers = dict(line.split(":", 1) for line in answer.decode().split("\n\n")[0].splitlines() if ":" in line)
    return headers.get("redirect-to", answer.decode()).replace("\\c", ":")


class Load:
    """Clients that log in again and again, until the block ends.

    Attributes:
        sent_to: where they were sent, in order; appended to by all threads.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._ends = threading.Event()
        self._changed = threading.Condition()
        self.sent_to: list[str] = []
        self._threads = [threading.Thread(target=self._run, args=(number,), daemon=True) for number in range(CLIENTS)]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join(PATIENCE_S)

    def _run(self, number: int) -> None:
        login = 0
        while not self._ends.is_set():
            login += 1
            place = where(self._port, f"client-{number}-{login}")
            with self._changed:
                self.sent_to.append(place)
                self._changed.notify_all()

    def next(self, count: int) -> list[str]:
        """Where so many were sent who asked after this was called."""
        with self._changed:
            # Each client may have asked already.
            first = len(self.sent_to) + CLIENTS
            assert self._changed.wait_for(lambda: len(self.sent_to) >= first + count, PATIENCE_S)
            return self.sent_to[first : first + count]

    def reach(self, places: set[str]) -> None:
        """Waits until clients are sent to each of these: LEAST_CONNECTIONS may leave one out between two checks."""
        with self._changed:
            first = len(self.sent_to)
            assert self._changed.wait_for(lambda: places <= set(self.sent_to[first:]), PATIENCE_S), places


@contextmanager
def processes(directory: Path) -> Iterator[list[BrokerProcess]]:
    with ExitStack() as stack:
        made = [
            stack.enter_context(BrokerProcess(directory / str(number), password=ADMIN.password))
            for number in range(TARGETS)
        ]
        for one in made:
            one.launch()
        for one in made:
            one.await_ready()
        yield made


def place_of(target: BrokerProcess) -> str:
    return f"{HOST}:{target.stomp_port}"


def is_spread(router: RunningBroker, policy: str) -> None:
    """Waits until clients that come one after the other are spread: on a busy machine a check may still be late."""
    end = time.monotonic() + PATIENCE_S
    while True:
        counts = Counter(where(router.port, "") for _ in range(TARGETS * ROUNDS))
        # LEAST_CONNECTIONS begins anew with each check.
        if len(counts) == TARGETS and (policy == LEAST or set(counts.values()) == {ROUNDS}):
            return
        assert time.monotonic() < end, counts


@pytest.mark.parametrize(
    ("harm", "policy"), [("kill", ROUND), ("kill", LEAST), ("pause", ROUND)], ids=["kill", "kill, least", "pause"]
)
def test_a_target_that_dies_under_load_gets_no_client_and_later_its_share_again(
    tmp_path: Path, harm: str, policy: str
) -> None:
    with processes(tmp_path) as targets, routed(tmp_path, [one.stomp_port for one in targets], policy) as router:
        ready(router, TARGETS)
        places = {place_of(one) for one in targets}
        with Load(router.port) as load:
            load.reach(places)
            victim = targets[0]
            if harm == "kill":
                victim.kill()
            else:
                victim.pause()
            ready(router, TARGETS - 1)
            assert place_of(victim) not in load.next(20 * TARGETS)
            if harm == "kill":
                victim.start()
            else:
                victim.resume()
            ready(router, TARGETS)
            load.reach(places)
        assert set(load.sent_to) == places  # none was refused meanwhile
        is_spread(router, policy)


def test_when_all_are_gone_clients_wait_for_the_first_that_returns(tmp_path: Path) -> None:
    pool = "<quorum-timeout>60000</quorum-timeout>"
    with processes(tmp_path) as targets, routed(tmp_path, [one.stomp_port for one in targets], ROUND, pool) as router:
        ready(router, TARGETS)
        for one in targets:
            one.kill()
        ready(router, 0)
        with Load(router.port) as load:
            targets[1].start()
            assert set(load.next(10)) == {place_of(targets[1])}
        assert set(load.sent_to) == {place_of(targets[1])}
