"""The settings of a queue. Those that its address may have a default of are declared here, each once: broker.xml, the
journal, the HTTP interface, the command line and the tables of the manual take them from the declarations.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from mypy_extensions import mypyc_attr

from delosmq.model.declared.address import AddressSettings
from delosmq.model.message import ANYCAST
from delosmq.model.phrases import counted
from delosmq.model.values import SETTING, UNLIMITED, Setting, at_least, declared, parse_boolean, unlimited_or_at_least

LAST_VALUE_NAME: Final = "_AMQ_LVQ_NAME"
"""The property of a last-value queue that names none. Source: Artemis manual, "Last-Value Queues"."""


def _inherited(setting: Setting) -> Any:
    return field(default=None, metadata={SETTING: setting})


def _switch(default: str, about: str, *, in_file: bool | None = None) -> Any:
    return _inherited(Setting(parse_boolean, about, kind=bool, defaults=(default,), in_file=in_file))


def _count(default: str, about: str, *, unit: str = "") -> Any:
    return _inherited(Setting(at_least(0), about, unit, kind=int, defaults=(default,)))


def _limit(default: str, about: str, *, unlimited: str = "no limit", unit: str = "") -> Any:
    parse = unlimited_or_at_least(0, unlimited)
    return _inherited(Setting(parse, about, unit, kind=int, defaults=(default,), least=UNLIMITED))


@dataclass(frozen=True)
class QueueSettings:
    """One ``<queue>``: what is stored with it. None takes the default of its address.

    Attributes:
        filter: a selector every message must pass to enter the queue; "" lets all in.
        last_value_key: "" is no last-value queue.
        auto_created: made by a send or a subscription; auto_delete: goes again when it is not used.
        paused: delivers nothing until it is resumed; enabled: takes part in routing.
        user: who made it.
    """

    name: str
    address: str
    routing_type: int = ANYCAST
    durable: bool = True
    ring_size: int | None = _limit("default_ring_size", "pending messages kept, the oldest goes first; -1 for all")
    max_consumers: int | None = _limit("default_max_consumers", "more are refused; -1 for any number")
    auto_created: bool = False
    filter: str = ""
    exclusive: bool | None = _switch("default_exclusive_queue", "one consumer gets everything, the others stand by")
    purge_on_no_consumers: bool | None = _switch(
        "default_purge_on_no_consumers", "emptied when its last consumer leaves, and gets nothing without one"
    )
    last_value_key: str | None = _inherited(
        Setting(
            lambda text: text or None,
            "property that holds the key, `_AMQ_LVQ_NAME` when none is named; makes it a last-value queue",
            defaults=("default_last_value_key", "default_last_value_queue"),
            fixed=True,
        )
    )
    non_destructive: bool | None = _switch("default_non_destructive", "consuming leaves messages where they are")
    group_rebalance: bool | None = _switch("default_group_rebalance", "a new consumer has all groups assigned anew")
    group_rebalance_pause_dispatch: bool | None = _switch(
        "default_group_rebalance_pause_dispatch", "a rebalance waits until nothing is in delivery"
    )
    group_buckets: int | None = _limit(
        "default_group_buckets",
        "groups with the same hash share an owner; -1 keeps them apart, 0 switches groups off",
        unlimited="no buckets",
    )
    group_first_key: str | None = _inherited(
        Setting(str, "property set on the first message of a group to its owner", defaults=("default_group_first_key",))
    )
    consumers_before_dispatch: int | None = _count(
        "default_consumers_before_dispatch", "dispatch starts with that many"
    )
    delay_before_dispatch: int | None = _limit(
        "default_delay_before_dispatch",
        "or that long after the first; -1 waits for the number alone",
        unlimited="none",
        unit="ms",
    )
    # What broker.xml names is meant to stay, whatever the address-settings say of other queues (as in Artemis).
    auto_delete: bool | None = _switch(
        "auto_delete_queues", "DelosMQ only: it is deleted when it is unused, and made again at a start", in_file=False
    )
    auto_delete_delay: int | None = _count("auto_delete_queues_delay", "DelosMQ only: how long unused", unit="ms")
    auto_delete_message_count: int | None = _limit(
        "auto_delete_queues_message_count", "DelosMQ only: with more messages it stays; -1 for any number"
    )
    enabled: bool = True
    paused: bool = False
    user: str = ""


QUEUE_SETTINGS: Final[dict[str, Setting]] = declared(QueueSettings)
"""What is declared, by the name of the field."""
CONTRADICTORY: Final = (
    "non_destructive",
    "purge_on_no_consumers",
    "max_consumers",
    "consumers_before_dispatch",
    "delay_before_dispatch",
)
"""The settings that `contradiction` compares."""


@mypyc_attr(allow_interpreted_subclasses=True)
@dataclass(frozen=True)
class ResolvedSettings:
    """Every declared setting of a queue as it is in force, in the order in which management shows them."""

    ring_size: int
    max_consumers: int
    exclusive: bool
    last_value: bool
    last_value_key: str
    non_destructive: bool
    purge_on_no_consumers: bool
    group_rebalance: bool
    group_rebalance_pause_dispatch: bool
    group_buckets: int
    group_first_key: str
    consumers_before_dispatch: int
    delay_before_dispatch: int
    auto_delete: bool
    auto_delete_delay: int
    auto_delete_message_count: int


def resolve(own: QueueSettings, address: AddressSettings) -> ResolvedSettings:
    """What the settings of a queue come to: its own values, and the defaults of its address where it has none
    (RING-3)."""
    found: dict[str, Any] = {}
    for name, setting in QUEUE_SETTINGS.items():
        value = getattr(own, name)
        found[name] = getattr(address, setting.defaults[0]) if value is None else value
    if own.last_value_key is None and not found["last_value_key"] and address.default_last_value_queue:
        found["last_value_key"] = LAST_VALUE_NAME
    if own.auto_delete is None and not own.auto_created:
        found["auto_delete"] = address.auto_delete_created_queues
    return ResolvedSettings(last_value=found["last_value_key"] != "", **found)


def contradiction(settings: ResolvedSettings) -> str:
    """What a queue with these settings would do against its own sense, and the remedy, without naming the queue; ""
    when nothing contradicts."""
    if settings.non_destructive and settings.purge_on_no_consumers:
        return (
            "keeps what was consumed (non-destructive) and is emptied without consumers (purge-on-no-consumers); set"
            " one of the two to false"
        )
    waits_for, most = settings.consumers_before_dispatch, settings.max_consumers
    if UNLIMITED < most < waits_for and settings.delay_before_dispatch == UNLIMITED:
        return (
            f"waits for {counted(waits_for, 'consumer')} (consumers-before-dispatch) and lets in {most}"
            " (max-consumers), so nothing would ever be dispatched; lower the one, raise the other, or set"
            " delay-before-dispatch"
        )
    return ""
