"""What the settings of a queue come to: its own values, and the defaults of its address where it has none (RING-3)."""

from typing import Final

from delosmq.model.address_settings import AddressSettings
from delosmq.model.settings import QueueSettings

LAST_VALUE_KEY: Final = "_AMQ_LVQ_NAME"
"""The property of a last-value queue that names none. Source: Artemis manual, "Last-Value Queues"."""


class ResolvedSettings:
    """Every setting of a queue as it is in force."""

    def __init__(self, own: QueueSettings, address: AddressSettings) -> None:
        self.ring_size: int = _number(own.ring_size, address.default_ring_size)
        self.max_consumers: int = _number(own.max_consumers, address.default_max_consumers)
        self.exclusive: bool = _choice(own.exclusive, address.default_exclusive_queue)
        self.purge_on_no_consumers: bool = _choice(own.purge_on_no_consumers, address.default_purge_on_no_consumers)
        self.last_value_key: str = _text(own.last_value_key, _default_last_value_key(address))
        self.non_destructive: bool = _choice(own.non_destructive, address.default_non_destructive)
        self.group_rebalance: bool = _choice(own.group_rebalance, address.default_group_rebalance)
        self.group_rebalance_pause_dispatch: bool = _choice(
            own.group_rebalance_pause_dispatch, address.default_group_rebalance_pause_dispatch
        )
        self.group_buckets: int = _number(own.group_buckets, address.default_group_buckets)
        self.group_first_key: str = _text(own.group_first_key, address.default_group_first_key)
        self.consumers_before_dispatch: int = _number(
            own.consumers_before_dispatch, address.default_consumers_before_dispatch
        )
        self.delay_before_dispatch: int = _number(own.delay_before_dispatch, address.default_delay_before_dispatch)
        automatic = address.auto_delete_queues if own.auto_created else address.auto_delete_created_queues
        self.auto_delete: bool = _choice(own.auto_delete, automatic)
        self.auto_delete_delay: int = _number(own.auto_delete_delay, address.auto_delete_queues_delay)
        self.auto_delete_message_count: int = _number(
            own.auto_delete_message_count, address.auto_delete_queues_message_count
        )


def _default_last_value_key(address: AddressSettings) -> str:
    if address.default_last_value_key:
        return address.default_last_value_key
    return LAST_VALUE_KEY if address.default_last_value_queue else ""


def _number(own: int | None, default: int) -> int:
    return default if own is None else own


def _choice(own: bool | None, default: bool) -> bool:
    return default if own is None else own


def _text(own: str | None, default: str) -> str:
    return default if own is None else own
