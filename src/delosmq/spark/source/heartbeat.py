"""A sign of life for groups while Spark works on a batch and asks the broker for nothing.

Without it the broker takes a reader that is silent for longer than a minute for gone: it gives its group to another
query with the same group.id, which would read its first batch a second time, and an operator may end it.
"""

import threading
from collections.abc import Callable

from delosmq.model.declared.lease_life import HEARTBEAT_MS
from delosmq.model.errors import BrokerError
from delosmq.spark.errors import FencedError, LeaseLostError
from delosmq.spark.lease_client import Group, LeaseClient

PAUSE_S = HEARTBEAT_MS / 1000


class Heartbeat:
    """Touches groups from a thread of its own. Ends with `stop`, at the latest with the process."""

    def __init__(self, client_of: Callable[[int], LeaseClient]) -> None:
        self._client_of = client_of
        self._groups: dict[tuple[int, str], Group] = {}
        self._clients: dict[int, LeaseClient] = {}
        self._changes = threading.Lock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, broker: int, group: Group) -> None:
        """Keep `group` of that broker in touch from now on, under the epoch that it was opened with."""
        with self._changes:
            self._groups[broker, group.name] = group
            if self._thread is None and not self._stopping.is_set():
                self._thread = threading.Thread(target=self._run, name="delosmq heartbeat", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Touch nothing any more."""
        self._stopping.set()

    def beat(self) -> None:
        """Touch each group once. A group that is lost, or has a newer reader, is left alone from then on."""
        with self._changes:
            watched = dict(self._groups)
        for (broker, name), group in watched.items():
            if self._stopping.is_set():
                return
            if broker not in self._clients:
                self._clients[broker] = self._client_of(broker)
            try:
                self._clients[broker].touch(group)
            except (FencedError, LeaseLostError):
                with self._changes:
                    if self._groups.get((broker, name)) is group:
                        del self._groups[broker, name]
            except BrokerError:
                continue  # the reader's own calls say what is wrong

    def _run(self) -> None:
        while not self._stopping.wait(PAUSE_S):
            self.beat()
        for client in self._clients.values():
            client.close()
