"""The settings of an address, each declared once: its name, type, default, parser, and what the manual says of it.

The reader of broker.xml, the checks of settings that a program made, the reload and the tables of the manual are made
from these declarations.
"""

from dataclasses import dataclass
from typing import Final

from delosmq.model.message import MULTICAST
from delosmq.model.values import (
    MOST_CREDIT,
    UNLIMITED,
    AddressFullPolicy,
    DispatchPolicy,
    DispatchProfile,
    MessageEviction,
    RingEviction,
    Setting,
    at_least,
    at_reload,
    at_restart,
    declared,
    parse_attempts,
    parse_boolean,
    parse_bytes,
    parse_limit_bytes,
    parse_multiplier,
    parse_multiplier_or_none,
    parse_routing_type,
    parse_share,
    unlimited_or_at_least,
)

_COUNT: Final = at_least(0)
_MILLISECONDS: Final = at_least(0)
_DELAY_OR_NONE: Final = unlimited_or_at_least(0, "none")
_LIMIT: Final = unlimited_or_at_least(0)
_LIMIT_OR_NEVER: Final = unlimited_or_at_least(1, "never")
_PREFETCH: Final = unlimited_or_at_least(0, "what the consumer asks for", most=MOST_CREDIT)


@dataclass(frozen=True)
class AddressSettings:
    """The resolved ``address-setting`` of one address. Beside what each setting declares:

    Attributes:
        default_last_value_key: a key alone makes a last-value queue; one without a key has `LAST_VALUE_NAME`.
        default_group_buckets: groups with the same hash share an owner; -1 keeps them apart, 0 switches groups off.
        default_consumers_before_dispatch, default_delay_before_dispatch: dispatch starts when that many consumers are
            there, or that long after the first one came; a delay of -1 waits for the number alone.
        auto_delete_queues_delay, auto_delete_queues_message_count: both have to be fulfilled.
        persist_delivery_count_before_delivery: Artemis has it for the whole broker.
        subscription_recovery_count, subscription_recovery_duration, subscription_recovery_size: kept is what all of
            them allow; 0 says nothing.
        always_retroactive: None gives all subscribers ``retroactive_message_count`` and the rest to those that ask.
    """

    dead_letter_address: str = at_reload(
        "", "where messages go when their attempts are used up; without one they are dropped", str, explained=True
    )
    auto_create_dead_letter_resources: bool = at_reload(False, "a queue on it for each address that messages come from")
    dead_letter_queue_prefix: str = at_reload("DLQ.", "starts the name of such a queue", str)
    dead_letter_queue_suffix: str = at_reload("", "ends the name of such a queue", str)
    send_to_dla_on_no_route: bool = at_reload(False, "so do messages that no queue takes")
    dead_letter_non_durable: bool = at_reload(True, "so do messages that are not durable; false drops them (Classic)")
    dead_letter_duplicates: bool | None = at_reload(
        None,
        "DelosMQ only: false keeps one dead letter of a message, in however many queues it fails or expires",
        parse_boolean,
        shown="true; false with dispatch-profile classic",
    )
    dead_letter_expiry_delay: int = at_reload(
        UNLIMITED,
        "DelosMQ only: life of what goes to the dead-letter or the expiry address; -1 for ever",
        unlimited_or_at_least(1, "for ever"),
        unit="ms",
        explained=True,
    )
    max_delivery_attempts: int = at_reload(10, "-1 or 0 for endless", parse_attempts, explained=True)
    redelivery_delay: int = at_reload(0, "how long a returned message waits", _MILLISECONDS, unit="ms", explained=True)
    redelivery_delay_multiplier: float = at_reload(
        1.0, "the delay grows by this factor with each attempt", parse_multiplier, explained=True
    )
    redelivery_collision_avoidance_factor: float = at_reload(
        0.0, "share of the delay, 0 to 1, that chance adds or takes", parse_share
    )
    max_redelivery_delay: int = at_reload(
        UNLIMITED,
        "most that the delay grows to; -1 for ten times redelivery-delay",
        unlimited_or_at_least(0, "ten times redelivery-delay"),
        unit="ms",
        explained=True,
    )
    expiry_address: str = at_reload(
        "", "where messages go that expired; without one they are dropped", str, explained=True
    )
    auto_create_expiry_resources: bool = at_reload(False, "a queue on it for each address that messages come from")
    expiry_queue_prefix: str = at_reload("EXP.", "starts the name of such a queue", str)
    expiry_queue_suffix: str = at_reload("", "ends the name of such a queue", str)
    expiry_delay: int = at_reload(
        UNLIMITED,
        "life of messages without an expiry; -1 leaves it to the next two",
        _DELAY_OR_NONE,
        unit="ms",
        explained=True,
    )
    min_expiry_delay: int = at_reload(
        UNLIMITED,
        "where expiry-delay is -1: least life of a message, and that of one without an expiry; -1 for no bound",
        _DELAY_OR_NONE,
        unit="ms",
    )
    max_expiry_delay: int = at_reload(
        UNLIMITED,
        "where expiry-delay is -1: most life of a message, and that of one without an expiry; -1 for no bound",
        _DELAY_OR_NONE,
        unit="ms",
    )
    no_expiry: bool = at_reload(False, "messages never expire, whatever they say")
    max_size_bytes: int = at_reload(
        UNLIMITED, "memory of the address; -1 for no limit", parse_limit_bytes, unit="bytes", explained=True
    )
    max_size_messages: int = at_reload(
        UNLIMITED, "messages of the address in memory; -1 for no limit", unlimited_or_at_least(1), explained=True
    )
    address_full_policy: AddressFullPolicy = at_reload(
        AddressFullPolicy.PAGE, "PAGE (acts as BLOCK until paging exists), BLOCK, FAIL or DROP", explained=True
    )
    block_timeout: int = at_reload(
        UNLIMITED,
        "DelosMQ only: a send that waited so long for room fails; -1 waits for ever",
        unlimited_or_at_least(1, "for ever"),
        unit="ms",
        explained=True,
    )
    max_addresses: int = at_restart(
        UNLIMITED,
        "DelosMQ only: no more addresses of this match are made; temporary ones and wildcards don't count",
        _LIMIT,
    )
    id_cache_size: int = at_restart(
        20000, "duplicate ids remembered for the address; 0 for none", _COUNT, shown="id-cache-size of core"
    )
    retroactive_message_count: int = at_restart(0, "a new queue starts with that many of the last messages", _COUNT)
    auto_create_queues: bool = at_reload(True, "a send or subscription makes the queue it needs")
    auto_create_addresses: bool = at_reload(True, "a send or subscription makes the address it needs")
    auto_delete_queues: bool = at_reload(True, "a queue made automatically is deleted when it is unused")
    auto_delete_created_queues: bool = at_reload(False, "queues that a client or an operator made are deleted as well")
    auto_delete_queues_delay: int = at_reload(0, "how long it must be unused first", _MILLISECONDS, unit="ms")
    auto_delete_queues_message_count: int = at_reload(
        0, "a queue with more messages is kept; -1 deletes it with any number", _LIMIT
    )
    auto_delete_queues_skip_usage_check: bool = at_reload(False, "it is deleted even if it was never used")
    auto_delete_addresses: bool = at_reload(True, "an address made automatically is deleted after its last queue")
    auto_delete_addresses_delay: int = at_reload(0, "how long it must be without queues", _MILLISECONDS, unit="ms")
    auto_delete_addresses_skip_usage_check: bool = at_reload(False, "it is deleted even if it never had a queue")
    default_address_routing_type: int = at_reload(
        MULTICAST, "of an address made automatically: ANYCAST or MULTICAST", parse_routing_type
    )
    default_queue_routing_type: int = at_reload(
        MULTICAST, "of a queue made automatically, where the protocol says none", parse_routing_type
    )
    default_ring_size: int = at_reload(UNLIMITED, "for queues without a ring-size; -1 for all", _LIMIT)
    default_max_consumers: int = at_reload(UNLIMITED, "for queues without max-consumers; -1 for any number", _LIMIT)
    default_consumer_window_size: int = at_reload(
        1_048_576,
        "CORE: bytes ahead for a consumer whose client names no consumerWindowSize; 0 for one at a time, -1 for all",
        unlimited_or_at_least(0, "all", most=MOST_CREDIT),
    )
    default_exclusive_queue: bool = at_restart(False, "for queues without exclusive")
    default_purge_on_no_consumers: bool = at_reload(False, "for queues without purge-on-no-consumers")
    default_last_value_queue: bool = at_restart(False, "for queues without last-value", older_name="last-value-queue")
    default_last_value_key: str = at_restart("", "for queues without last-value-key; makes them last-value queues", str)
    default_non_destructive: bool = at_restart(False, "for queues without non-destructive")
    default_group_rebalance: bool = at_restart(False, "for queues without group-rebalance")
    default_group_rebalance_pause_dispatch: bool = at_restart(
        False, "for queues without group-rebalance-pause-dispatch"
    )
    default_group_buckets: int = at_restart(
        UNLIMITED, "for queues without group-buckets", unlimited_or_at_least(0, "no buckets")
    )
    default_group_first_key: str = at_restart("", "for queues without group-first-key", str)
    default_consumers_before_dispatch: int = at_restart(0, "for queues without consumers-before-dispatch", _COUNT)
    default_delay_before_dispatch: int = at_restart(
        UNLIMITED, "for queues without delay-before-dispatch", _DELAY_OR_NONE, unit="ms"
    )
    enable_metrics: bool = at_reload(True, "the queues of the address are in the metrics")
    ring_eviction: RingEviction = at_restart(
        RingEviction.HEAD, "DelosMQ only: what a full ring pushes out, head or lowest-priority", explained=True
    )
    dispatch_profile: DispatchProfile = at_restart(
        DispatchProfile.ARTEMIS, "DelosMQ only: the habits of queues, artemis or classic", explained=True
    )
    strict_order_dispatch: bool = at_restart(
        False, "DelosMQ only: the first consumer that isn't full gets the next", explained=True
    )
    use_consumer_priority: bool = at_restart(
        True, "DelosMQ only: false delivers without regard to priority", explained=True
    )
    all_consumers_exclusive_by_default: bool = at_restart(
        False, "DelosMQ only: each consumer counts as exclusive", explained=True
    )
    time_before_dispatch_starts: int = at_restart(
        0, "DelosMQ only: wait after the first consumer of a queue", _MILLISECONDS, unit="ms"
    )
    prioritized_messages: bool = at_restart(
        True, "DelosMQ only: false keeps the order of arrival, whatever the priorities"
    )
    group_cache_size: int | None = at_restart(
        None,
        "DelosMQ only: message groups of a queue that keep their consumer, the last used; -1 for all",
        unlimited_or_at_least(1, "all groups"),
        shown="100000; 1024 with dispatch-profile classic",
    )
    persist_delivery_count_before_delivery: bool = at_restart(
        False,
        "DelosMQ only here: a delivery is recorded before the message leaves, so that it counts even after a crash",
        explained=True,
    )
    allow_temp_destination_stealing: bool = at_restart(
        False, "DelosMQ only: every connection may consume from temporary destinations, and not their own alone"
    )
    dispatch_policy: DispatchPolicy = at_restart(
        DispatchPolicy.SIMPLE, "DelosMQ only: priority serves the topic consumers of one first"
    )
    subscription_recovery_count: int = at_restart(
        0, "DelosMQ only: that many of the last messages are kept for consumer.retroactive; 0 for any number", _COUNT
    )
    subscription_recovery_duration: int = at_restart(
        0, "DelosMQ only: so are those that are younger; 0 for any age", _MILLISECONDS, unit="ms"
    )
    subscription_recovery_size: int = at_restart(
        0, "DelosMQ only: so are the last of that many bytes; 0 for any", parse_bytes, unit="bytes"
    )
    subscription_recovery_retained: bool = at_restart(
        False, "DelosMQ only: so is the last one sent with ActiveMQ.Retain"
    )
    always_retroactive: bool | None = at_restart(
        None,
        "DelosMQ only: true gives what is kept to all, false only to consumer.retroactive",
        parse_boolean,
        shown="true; false for subscription-recovery-*",
    )
    slow_consumer_max_duration: int = at_restart(
        UNLIMITED,
        "DelosMQ only: an OpenWire consumer is closed that has no room for so long while messages wait; -1 for never",
        _LIMIT_OR_NEVER,
        unit="ms",
    )
    slow_consumer_max_count: int = at_restart(
        UNLIMITED, "DelosMQ only: or that often; -1 for any number", _LIMIT_OR_NEVER
    )
    slow_consumer_max_time_since_last_ack: int = at_restart(
        UNLIMITED, "DelosMQ only: or that acknowledges nothing for so long; -1 for never", _LIMIT_OR_NEVER, unit="ms"
    )
    slow_consumer_ignore_idle: bool = at_restart(True, "DelosMQ only: unless it has nothing to acknowledge")
    slow_consumer_abort_connection: bool = at_restart(False, "DelosMQ only: its connection is closed with it")
    slow_consumer_check_period: int = at_restart(
        5, "how often is looked which consumers are slow", at_least(1), unit="s"
    )
    queue_prefetch: int = at_reload(
        UNLIMITED,
        "DelosMQ only: prefetch of OpenWire queue consumers that ask for 1000, their client's default; -1 leaves it",
        _PREFETCH,
    )
    queue_browser_prefetch: int = at_reload(
        UNLIMITED, "DelosMQ only: the same for browsers that ask for 500", _PREFETCH
    )
    topic_prefetch: int = at_reload(
        UNLIMITED, "DelosMQ only: the same for topic consumers, not durable, that ask for 32767", _PREFETCH
    )
    durable_topic_prefetch: int = at_reload(
        UNLIMITED, "DelosMQ only: the same for durable subscribers that ask for 100 or 1000", _PREFETCH
    )
    use_prefetch_extension: bool = at_reload(
        True, "DelosMQ only: false gives OpenWire consumers no more than their prefetch before they acknowledge"
    )
    max_browse_page_size: int = at_reload(
        UNLIMITED, "DelosMQ only: most messages that a browser sees; -1 for all", unlimited_or_at_least(1, "all")
    )
    pending_message_limit: int = at_restart(
        UNLIMITED,
        "DelosMQ only: most messages that wait for an OpenWire topic consumer, not durable, beyond its prefetch; -1"
        " for no limit",
        _LIMIT,
    )
    pending_message_limit_multiplier: float = at_restart(
        -1.0,
        "DelosMQ only: the same as a multiple of the prefetch; with both the lower one counts",
        parse_multiplier_or_none,
    )
    message_eviction: MessageEviction = at_restart(
        MessageEviction.OLDEST,
        "DelosMQ only: which of them go when there are more, oldest, lowest-priority or unique-property",
    )
    message_eviction_key: str = at_restart(
        "", "DelosMQ only: the property of which unique-property keeps the newest message", str
    )
    advisory_for_consumed: bool = at_restart(False, "DelosMQ only: advisory for each message that is acknowledged")
    advisory_for_delivery: bool = at_restart(
        False, "DelosMQ only: advisory for each message that is sent to the address"
    )
    advisory_for_discarding_messages: bool = at_restart(
        False, "DelosMQ only: advisory for each message that a ring or a full address drops"
    )
    advisory_for_fast_producers: bool = at_restart(
        False, "DelosMQ only: advisory for a producer that meets a full address"
    )
    advisory_for_slow_consumers: bool = at_restart(
        False, "DelosMQ only: advisory for a consumer that is full while messages wait"
    )
    advisory_when_full: bool = at_restart(False, "DelosMQ only: advisory for each send that meets a full address")
    advisory_if_no_consumers: bool = at_restart(
        False, "DelosMQ only: advisory for each non-persistent message without a consumer"
    )
    include_body_for_advisory: bool = at_restart(False, "DelosMQ only: the message in an advisory keeps its body")


SETTINGS: Final[dict[str, Setting]] = declared(AddressSettings)
"""What is declared, by the name of the field."""
FIELDS: Final[dict[str, str]] = {
    **{setting.written: name for name, setting in SETTINGS.items()},
    **{setting.older_name: name for name, setting in SETTINGS.items() if setting.older_name},
}
"""The fields, by the names that broker.xml has for them."""
LIVE_SETTINGS: Final = frozenset(name for name, setting in SETTINGS.items() if setting.live)
"""Fields that an address takes over while it lives."""
