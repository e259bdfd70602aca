"""The connections of this process: what happens to one of them, or at its broker, that others are to hear of."""

import asyncio
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Final, Protocol
from weakref import WeakSet

from delosmq.sessions.client_errors import IllegalStateError

_PATIENCE_S: Final = 5.0
_ALL_ADDRESSES: Final = ("0.0.0.0", "::")


Place = tuple[str, int]
"""Of a broker: the address and port that it listens on, or its name in this process and 0."""


class OpenLink(Protocol):
    """One connection, in a loop of its own.

    Attributes:
        place: of the broker that it was connected to last.
        broker_id: what that calls itself; "" while it has not.
    """

    loop: asyncio.AbstractEventLoop
    place: Place

    @property
    def broker_id(self) -> str: ...

    def check_loop(self) -> None: ...

    def is_open(self) -> bool: ...

    def soon(self, function: Callable[[], object]) -> None: ...

    def turn_clock(self, ahead_ns: int) -> None: ...

    def end_branch(self, key: str, *, committed: bool) -> None: ...


_links: Final[WeakSet[OpenLink]] = WeakSet()
_lock: Final = threading.Lock()
_ahead_ns: Final[dict[Place, int]] = {}


def enter(link: OpenLink) -> None:
    """Makes one known, for as long as it is there."""
    with _lock:
        _links.add(link)


def tell_of_branch(origin: OpenLink, key: str, *, committed: bool) -> None:
    """A branch of a distributed transaction was ended by one connection; others to the same broker may have worked in
    it. Source: TransactionContext of the Java client, whose ended branches belong to the process."""
    for link in _open_links():
        if link is not origin and link.broker_id == origin.broker_id != "":
            link.soon(partial(link.end_branch, key, committed=committed))


def place_of(host: str, port: int) -> Place:
    """Of a broker that listens on a port, as its clients see it; on all addresses of the machine the host is ""."""
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    address = str(min(found, key=lambda info: info[0] != socket.AF_INET)[4][0])
    return "" if address in _ALL_ADDRESSES else address, port


def ahead_ns(place: Place) -> int:
    """By which the clocks of connections to a broker are ahead of the machine's."""
    return _ahead_ns.get(place) or _ahead_ns.get(("", place[1]), 0)


def turn_clocks(place: Place, ahead_ns: int) -> None:
    """Has the connections to a broker, those there are and those to come, be so far ahead of the machine's clocks, as a
    broker under test is; 0 ends that for those to come. What becomes due by it happens before anything that the caller
    asks of them next."""
    if not ahead_ns:
        _ahead_ns.pop(place, None)
        return
    _ahead_ns[place] = ahead_ns
    for link in _open_links():
        if link.place != place and (place[0] or link.place[1] != place[1]):
            continue
        try:
            link.check_loop()
        except IllegalStateError:
            if link.loop.is_running():
                turned: Future[None] = Future()
                link.soon(partial(_turn, link, ahead_ns, turned))
                with suppress(TimeoutError):
                    turned.result(_PATIENCE_S)  # its thread may wait for this one
        else:
            link.turn_clock(ahead_ns)


def _open_links() -> list[OpenLink]:
    with _lock:
        return [link for link in _links if link.is_open()]


def _turn(link: OpenLink, ahead_ns: int, turned: "Future[None]") -> None:
    link.turn_clock(ahead_ns)
    turned.set_result(None)
