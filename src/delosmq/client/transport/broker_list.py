"""The brokers of a ``failover:`` URL, those that a broker has named since, and which of them is tried next.

Source: FailoverTransport of the Java client (getConnectList, updateURIs, isPriority).
"""

from collections.abc import Callable

from delosmq.client.options.urls import BrokerAddress, FailoverOptions


class BrokerList:
    """
    Args:
        listed: by the URL, in its order.
        shuffle: puts a list into any order.

    Attributes:
        connected: the one that there is a connection to, or was one last; None before the first.
    """

    def __init__(
        self,
        listed: tuple[BrokerAddress, ...],
        options: FailoverOptions,
        shuffle: Callable[[list[BrokerAddress]], None],
    ) -> None:
        self.connected: BrokerAddress | None = None
        self._listed = listed
        self._options = options
        self._shuffle = shuffle
        self._named: tuple[BrokerAddress, ...] = ()
        self._failed: BrokerAddress | None = None
        self._preferred: BrokerAddress | None = None

    def in_order(self) -> list[BrokerAddress]:
        """All, in the order in which they are tried: the one that was preferred, then those with priority; last the one
        whose connection broke."""
        found = list(dict.fromkeys((*self._named, *self._listed)))
        if self._options.randomize:
            self._shuffle(found)
        found.sort(key=lambda one: one not in self.priority)
        if self._failed in found:
            found.remove(self._failed)
            found.append(self._failed)
        if self._preferred is not None:
            found = [self._preferred, *(one for one in found if one != self._preferred)]
        return found

    @property
    def priority(self) -> tuple[BrokerAddress, ...]:
        """Those that are to be used whenever they are there; none without ``priorityBackup``."""
        if not self._options.priority_backup:
            return ()
        return self._options.priority_addresses or self._listed[:1]

    def others(self) -> list[BrokerAddress]:
        """All but the one that there is a connection to."""
        return [one for one in self.in_order() if one != self.connected]

    @property
    def has_preference(self) -> bool:
        """The next connection is to be to a certain one."""
        return self._preferred is not None

    def prefer(self, address: BrokerAddress) -> None:
        """Has this one tried first, until there is a connection again."""
        self._preferred = address

    def note_connected(self, address: BrokerAddress) -> None:
        self.connected = address
        self._failed = self._preferred = None

    def note_failed(self) -> None:
        """The connection broke."""
        self._failed = self.connected

    def name(self, addresses: tuple[BrokerAddress, ...]) -> bool:
        """Takes what a broker names in the place of what was named before; whether it is anything else."""
        changed = set(addresses) != set(self._named)
        self._named = addresses
        return changed
