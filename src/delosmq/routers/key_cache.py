"""The cache of a router: which broker a key was sent to last, so that it stays there.

Source: Artemis, LocalCache.
"""

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from delosmq.model.ids import MonotonicNs

MOST_ENTRIES: Final = 100_000
"""With more, the one that was not asked for longest goes."""
_MOST_EXPIRED_AT_ONCE: Final = 100
_NS_PER_MS: Final = 1_000_000


class CacheEntry(NamedTuple):
    """Where a key belongs, and when it was asked for last."""

    node_id: str
    asked_at: MonotonicNs


class KeyCacheStore(ABC):
    """Keeps the entries of a cache beyond the life of its broker."""

    @abstractmethod
    def stored(self, key: str, node_id: str) -> None:
        """``key`` belongs to ``node_id`` now."""

    @abstractmethod
    def removed(self, key: str) -> None:
        """The entry of ``key`` is gone."""

    def settled(self, then: Callable[[], None]) -> bool:
        """Whether all that was stored survives a crash; if not yet, ``then`` is called once it does."""
        return True


class NoStore(KeyCacheStore):
    """Of a cache that ends with its broker."""

    def stored(self, key: str, node_id: str) -> None:
        pass

    def removed(self, key: str) -> None:
        pass


class KeyCache:
    """Keys and the node ids of their brokers.

    Args:
        timeout_ms: an entry goes when it was not asked for so long; 0 for never.
        most: entries that it holds at most.
    """

    def __init__(self, timeout_ms: int, store: KeyCacheStore, *, most: int = MOST_ENTRIES) -> None:
        self._timeout_ns = timeout_ms * _NS_PER_MS
        self._store = store
        self._most = most
        # The one that was not asked for longest is first.
        self._entries: OrderedDict[str, CacheEntry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def restore(self, store: KeyCacheStore, entries: Iterable[tuple[str, str]], now: MonotonicNs) -> None:
        """Takes what a store had at the start, and is kept there from now on; the time of each begins again."""
        self._store = store
        for key, node_id in entries:
            self._entries[key] = CacheEntry(node_id, now)
        self._bound()

    def peek(self, key: str, now: MonotonicNs) -> str | None:
        """The node id of ``key``, without asking for it: its time goes on."""
        entry = self._entries.get(key)
        return None if entry is None or self._is_over(entry, now) else entry.node_id

    def get(self, key: str, now: MonotonicNs) -> str | None:
        """The node id of ``key``, whose time begins again; None when there is none."""
        self.expire(now)
        entry = self._entries.get(key)
        if entry is None or self._is_over(entry, now):
            return None
        self._entries[key] = CacheEntry(entry.node_id, now)
        self._entries.move_to_end(key)
        return entry.node_id

    def put(self, key: str, node_id: str, now: MonotonicNs) -> None:
        self.expire(now)
        known = self._entries.get(key)
        self._entries[key] = CacheEntry(node_id, now)
        self._entries.move_to_end(key)
        if known is None or known.node_id != node_id:
            self._store.stored(key, node_id)
        self._bound()

    def settled(self, then: Callable[[], None]) -> bool:
        """As `KeyCacheStore.settled`."""
        return self._store.settled(then)

    def expire(self, now: MonotonicNs) -> None:
        """Drops entries whose time is over, a bounded number at once."""
        for _ in range(min(_MOST_EXPIRED_AT_ONCE, len(self._entries))):
            key, entry = next(iter(self._entries.items()))
            if not self._is_over(entry, now):
                return
            del self._entries[key]
            self._store.removed(key)

    def _is_over(self, entry: CacheEntry, now: MonotonicNs) -> bool:
        return self._timeout_ns > 0 and now >= entry.asked_at + self._timeout_ns

    def _bound(self) -> None:
        while len(self._entries) > self._most:
            key, _ = self._entries.popitem(last=False)
            self._store.removed(key)
