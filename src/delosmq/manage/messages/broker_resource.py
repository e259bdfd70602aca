"""The resource ``broker``. Source: ActiveMQServerControl of Artemis."""

from delosmq.manage.control.broker import BrokerControl, BrokerStatus
from delosmq.manage.messages.declarations import attribute
from delosmq.model.settings import BrokerSettings
from delosmq.security.access import Login

BROKER_FIELDS = {
    "Name": "name",
    "Version": "version",
    "NodeID": "node_id",
    "Active": "active",
    "ConnectionCount": "connections",
    "QueueCount": "queues",
    "AddressCount": "addresses",
    "AddressMemoryUsage": "memory_used_bytes",
    "GlobalMaxSize": "memory_limit_bytes",
    "UptimeMillis": "uptime_ms",
}
"""Attribute -> field of `BrokerStatus`."""


class BrokerResource:
    """The broker as a whole; whoever may send a management message may look."""

    def __init__(self, control: BrokerControl, settings: BrokerSettings) -> None:
        self._control = control
        self._settings = settings

    def info(self, login: Login) -> BrokerStatus:
        return self._control.get()

    @attribute("Started")
    def started(self, login: Login) -> bool:
        return True

    @attribute("Backup")
    def backup(self, login: Login) -> bool:
        return False

    @attribute("Clustered")
    def clustered(self, login: Login) -> bool:
        return False

    @attribute("SecurityEnabled")
    def security_enabled(self, login: Login) -> bool:
        return True

    @attribute("PersistenceEnabled")
    def persistence_enabled(self, login: Login) -> bool:
        return bool(self._settings.journal.directory)

    @attribute("ManagementAddress")
    def management_address(self, login: Login) -> str:
        return self._settings.management_address

    @attribute("AddressMemoryUsagePercentage")
    def memory_used_percent(self, login: Login) -> int:
        status = self._control.get()
        limit = status.memory_limit_bytes
        return status.memory_used_bytes * 100 // limit if limit > 0 else 0

    @attribute("ConnectionTTLOverride")
    def connection_ttl_override(self, login: Login) -> int:
        return self._settings.connection_ttl_override_ms

    @attribute("TransactionTimeout")
    def transaction_timeout(self, login: Login) -> int:
        return self._settings.transaction_timeout_ms
