"""Destinations: the addresses and queues that are there, and how many there may be."""

from typing import Final

from delosmq.engine.addresses.address import Address
from delosmq.engine.addresses.address_limits import AddressLimits
from delosmq.engine.addresses.client_limits import ClientLimits
from delosmq.engine.addresses.wildcard_tree import WildcardTree
from delosmq.engine.queues.queue import Queue
from delosmq.model.reserved_names import is_the_brokers
from delosmq.model.settings import AddressSettings, BrokerSettings
from delosmq.model.wildcard import AddressSettingsTable

_FEW: Final = 16
"""So many queues that are gone are not worth looking for."""


class Destinations:
    """The addresses and queues of a broker, by name.

    Attributes:
        client_limits: how many addresses and queues clients may make, and how large; it counts all there are.
        limits: how many addresses there may be.
        records_events: what becomes of messages is told, for `delosmq.events`.
        deleted: queues that are gone, by their ids, while transactions may acknowledge messages of theirs and that is
            told (``advisory-for-consumed``).
    """

    def __init__(self, table: AddressSettingsTable, settings: BrokerSettings) -> None:
        self._table = table
        self.records_events: bool = settings.delosmq_events > 0
        self._management_address = settings.management_address
        self.client_limits: ClientLimits = ClientLimits(settings)
        self.limits: AddressLimits = AddressLimits(table.entries, settings.wildcards)
        self.wildcards: WildcardTree = WildcardTree(settings.wildcards)
        self.addresses: dict[str, Address] = {}
        self.queues: dict[str, Queue] = {}
        self.deleted: dict[int, Queue] = {}
        self._look_at: int = _FEW

    def settings_of(self, address: str) -> AddressSettings:
        """The address-settings in force for a name, whether or not the address exists."""
        return self._table.resolve(address)

    def is_recorded(self, address: str) -> bool:
        """Whether events tell what becomes of the messages of an address: not where the broker speaks of itself."""
        return self.records_events and not (is_the_brokers(address) or address == self._management_address)

    def keep_deleted(self, queue: Queue) -> None:
        """A queue is gone of which transactions acknowledge messages. Those of which none does any more are dropped now
        and then."""
        if len(self.deleted) >= self._look_at:
            self.deleted = {queue_id: gone for queue_id, gone in self.deleted.items() if gone.delivering.count}
            self._look_at = max(_FEW, 2 * len(self.deleted))
        self.deleted[queue.id] = queue
