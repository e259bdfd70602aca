"""The resources ``queue.<name>``. Source: QueueControl of Artemis."""

from collections.abc import Generator
from typing import Final

from delosmq.engine.api import NS_PER_MS, EngineBroker, Purge
from delosmq.manage.control.queue_info import QueueInfo
from delosmq.manage.control.queues import QueueControl
from delosmq.manage.messages.declarations import Long, operation
from delosmq.security.access import Login

QUEUE_FIELDS: Final = {
    "AcknowledgeAttempts": "acknowledge_attempts",
    "Address": "address",
    "AutoDelete": "auto_delete",
    "ConsumerCount": "consumer_count",
    "ConsumersBeforeDispatch": "consumers_before_dispatch",
    "DeadLetterAddress": "dead_letter_address",
    "DelayBeforeDispatch": "delay_before_dispatch",
    "DeliveringCount": "delivering_count",
    "DeliveringSize": "delivering_size",
    "Durable": "durable",
    "DurableDeliveringCount": "durable_delivering_count",
    "DurableDeliveringSize": "durable_delivering_size",
    "DurableMessageCount": "durable_message_count",
    "DurablePersistentSize": "durable_persistent_size",
    "DurableScheduledCount": "durable_scheduled_count",
    "DurableScheduledSize": "durable_scheduled_size",
    "Enabled": "enabled",
    "Exclusive": "exclusive",
    "ExpiryAddress": "expiry_address",
    "Filter": "filter",
    "GroupBuckets": "group_buckets",
    "GroupCount": "group_count",
    "GroupFirstKey": "group_first_key",
    "GroupRebalance": "group_rebalance",
    "GroupRebalancePauseDispatch": "group_rebalance_pause_dispatch",
    "ID": "id",
    "LastValue": "last_value",
    "LastValueKey": "last_value_key",
    "MaxConsumers": "max_consumers",
    "MessageCount": "message_count",
    "MessagesAcknowledged": "messages_acknowledged",
    "MessagesAdded": "messages_added",
    "MessagesExpired": "messages_expired",
    "MessagesKilled": "messages_killed",
    "Name": "name",
    "Paused": "paused",
    "PersistedPause": "paused",
    "PersistentSize": "persistent_size",
    "PurgeOnNoConsumers": "purge_on_no_consumers",
    "RingSize": "ring_size",
    "RoutingType": "routing_type",
    "ScheduledCount": "scheduled_count",
    "ScheduledSize": "scheduled_size",
    "Temporary": "temporary",
    "User": "user",
}
"""Attribute -> field of `QueueInfo`."""

PURGE_WAIT_NS: Final = 5_000 * NS_PER_MS
"""A purge that takes longer goes on without its caller, as over HTTP."""


def finish_purge(broker: EngineBroker, work: Purge) -> Generator[int, None, int]:
    """Waits for the end of a purge; gives how many messages it has removed."""
    until = broker.clock.monotonic_ns() + PURGE_WAIT_NS
    before = -1
    while not work.done and broker.clock.monotonic_ns() < until:
        # Without progress it waits for what consumers give back.
        stands = work.removed == before
        before = work.removed
        yield NS_PER_MS if stands else 0
    return work.removed


class QueueResource:
    def __init__(self, broker: EngineBroker, control: QueueControl, name: str) -> None:
        self._broker = broker
        self._control = control
        self._name = name

    def info(self, login: Login) -> QueueInfo:
        return self._control.get(login, self._name)

    @operation("pause")
    def pause(self, login: Login) -> None:
        self._control.pause(login, self._name, paused=True)

    @operation("pause")
    def pause_for_good(self, login: Login, persist: bool) -> None:
        self._control.pause(login, self._name, paused=True)

    @operation("resume")
    def resume(self, login: Login) -> None:
        self._control.pause(login, self._name, paused=False)

    @operation("enable")
    def enable(self, login: Login) -> None:
        self._control.enable(login, self._name, enabled=True)

    @operation("disable")
    def disable(self, login: Login) -> None:
        self._control.enable(login, self._name, enabled=False)

    @operation("countMessages")
    def count_messages(self, login: Login) -> Long:
        return Long(self.info(login).message_count)

    @operation("removeAllMessages")
    def remove_all_messages(self, login: Login) -> Generator[int, None, int]:
        return finish_purge(self._broker, self._control.purge(login, self._name))
