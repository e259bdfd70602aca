"""What the caches of connection routers keep in the store of the broker."""

import logging
from collections.abc import Callable, Iterable

from delosmq.engine.api import EngineBroker
from delosmq.model.ids import NOTHING_DURABLE, MonotonicNs, Position
from delosmq.routers.decision import ConnectionRouter
from delosmq.routers.key_cache import KeyCacheStore
from delosmq.sessions.outbox import Gate, GateWaiter


def restore_caches(
    routers: Iterable[ConnectionRouter], broker: EngineBroker, gate: Gate, log: logging.Logger, now: MonotonicNs
) -> None:
    """Gives caches that are persisted what they had, and forgets those of routers that are no more."""
    persisted = [one for one in routers if one.persists_cache]
    broker.drop_kept_entries([one.name for one in persisted])
    for router in persisted:
        if router.cache is not None:
            store = StoredCache(router.name, broker, gate, log)
            router.cache.restore(store, store.load(), now)


class StoredCache(KeyCacheStore):
    """Keeps the entries of one cache in the broker's store."""

    def __init__(self, router: str, broker: EngineBroker, gate: Gate, log: logging.Logger) -> None:
        self._router = router
        self._entries = broker.kept_entries(router)
        self._gate = gate
        self._log = log
        self._is_full = False
        self._stored_at: Position = NOTHING_DURABLE

    def load(self) -> list[tuple[str, str]]:
        """What it had in the life before."""
        return self._entries.load()

    def stored(self, key: str, node_id: str) -> None:
        is_full = not self._entries.put(key, node_id)
        if not is_full:
            self._stored_at = self._entries.position
        if is_full and not self._is_full:
            self._log.warning(
                f"DMQ5520: connection-router '{self._router}' decides on without storing which broker a key has, as "
                "the store takes nothing more: these keys may get another broker after a restart; give it room"
            )
        self._is_full = is_full

    def removed(self, key: str) -> None:
        self._entries.remove(key)

    def settled(self, then: Callable[[], None]) -> bool:
        # Not the end of the store: what others do there keeps no client waiting.
        return self._gate.wait(self._stored_at, _Settled(then))


class _Settled(GateWaiter):
    def __init__(self, then: Callable[[], None]) -> None:
        self._then = then

    def on_open(self) -> None:
        self._then()
