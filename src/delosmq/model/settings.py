"""Settings as the engine and the server read them: frozen, complete, with units.

Names are those of Artemis's broker.xml with ``_`` for ``-``. The configuration layer fills them; nothing here reads
files.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.virtual_topics import VirtualTopicRule

UNLIMITED: Final = -1
LAST_VALUE_NAME: Final = "_AMQ_LVQ_NAME"
"""The property by which a last-value queue without a key of its own tells its messages apart."""

STRIP_ROUTING: Final = 0
PASS_ROUTING: Final = 3
MIB: Final = 1024 * 1024


class AddressFullPolicy(Enum):
    """What happens to a send when its address (or the broker) is at its memory limit."""

    PAGE = "PAGE"
    BLOCK = "BLOCK"
    FAIL = "FAIL"
    DROP = "DROP"


class DispatchProfile(Enum):
    """Which broker's habits a queue has where Artemis and Classic differ (docs/differences.md)."""

    ARTEMIS = "artemis"
    CLASSIC = "classic"


class RingEviction(Enum):
    """Which message a full ring pushes out."""

    HEAD = "head"
    LOWEST_PRIORITY = "lowest-priority"


class MessageEviction(Enum):
    """Which of the messages that wait for a topic consumer goes when they are too many."""

    OLDEST = "oldest"
    LOWEST_PRIORITY = "lowest-priority"
    UNIQUE_PROPERTY = "unique-property"


class DispatchPolicy(Enum):
    """Which of the consumers of a topic is served first."""

    SIMPLE = "simple"
    PRIORITY = "priority"


@dataclass(frozen=True)
class AddressSettings:
    """The resolved ``address-setting`` of one address. Times in ms; -1 is "none" or "for ever" unless said.

    Attributes:
        dead_letter_address, expiry_address: "" drops what would go there.
        max_delivery_attempts: -1 for endless.
        redelivery_delay, redelivery_delay_multiplier, max_redelivery_delay, redelivery_collision_avoidance_factor:
            how long a returned message waits; a maximum of -1 means ten times the delay.
        expiry_delay: given to messages without an expiry; min_expiry_delay, max_expiry_delay bound those that have one.
        no_expiry: messages never expire here, whatever they say.
        auto_create_dead_letter_resources: a queue for each origin on the dead-letter address, named by prefix and
            suffix around the origin's address; auto_create_expiry_resources alike.
        max_size_bytes, max_size_messages: memory limit of the address, -1 for none.
        default_ring_size: pending messages a queue without a ``ring-size`` of its own keeps; -1 for all.
        ring_eviction: DelosMQ's own.
        auto_delete_queues_delay, auto_delete_queues_message_count: an unused automatic queue goes once it was unused
            that long and holds at most that many messages (-1: any number).
        retroactive_message_count: how many of the last messages a new queue of the address starts with.
        subscription_recovery_count, subscription_recovery_duration, subscription_recovery_size: DelosMQ's own, as in
            Classic's policyEntry: which of the last messages are kept for subscribers that ask: so many, of so many
            ms, of so many bytes; what all of them allow, and 0 says nothing.
        subscription_recovery_retained: likewise: the last message that its sender marked (``ActiveMQ.Retain``).
        always_retroactive: likewise: True gives everybody what is kept, False only subscribers that ask; None gives
            everybody ``retroactive_message_count`` and the rest to those that ask.
        default_last_value_queue, default_last_value_key: a key alone makes a last-value queue; without one the
            property is `LAST_VALUE_NAME`.
        default_group_buckets: groups with the same hash share an owner; -1 keeps them apart, 0 switches groups off.
        id_cache_size: duplicate ids remembered for the address; 0 for none.
        default_consumers_before_dispatch, default_delay_before_dispatch: dispatch starts when that many consumers are
            there, or that long after the first one came; a delay of -1 waits for the number alone.
        prioritized_messages: DelosMQ's own, as in Classic's policyEntry: False keeps the order of arrival.
        dead_letter_non_durable: DelosMQ's own: False drops what would be a dead letter, or expired, and is not durable.
        dead_letter_duplicates: DelosMQ's own: False keeps one dead letter of a message, in however many queues it fails
            or expires; None is False with Classic's habits only.
        dead_letter_expiry_delay: DelosMQ's own: life of what goes to the dead-letter or the expiry address.
        block_timeout: DelosMQ's own: a send that waited so long for space fails.
        max_addresses: DelosMQ's own: the most addresses of one match; those of connections and wildcards don't count.
        allow_temp_destination_stealing: DelosMQ's own: others may consume from a temporary destination, too.
        persist_delivery_count_before_delivery: a delivery is recorded before the message leaves, not when it comes
            back. Artemis has it for the whole broker.
        group_cache_size: DelosMQ's own: groups of a queue whose owner is remembered, -1 for all; None is 1,024 with
            Classic's habits and 100,000 with Artemis's.
        dispatch_profile, strict_order_dispatch, use_consumer_priority, all_consumers_exclusive_by_default: as in
            Classic's policyEntry, for the queues of the address.
        queue_prefetch .. durable_topic_prefetch: likewise: of OpenWire consumers that ask for their client's default;
            -1 gives what they ask for. use_prefetch_extension: False: reported deliveries give no more.
        max_browse_page_size: likewise: messages that a browser sees, -1 for all.
        pending_message_limit, pending_message_limit_multiplier: likewise: most messages that wait for an OpenWire
            consumer of a topic, not durable, beyond its prefetch; a number, or a multiple of the prefetch. -1 for any
            number; with both the lower one counts.
        message_eviction, message_eviction_key: likewise: which of them go; the property that tells them apart.
        dispatch_policy: likewise, for topics.
        slow_consumer_max_duration, slow_consumer_max_count: likewise: an OpenWire consumer is closed that had no room
            for so long while messages waited, or so often without a look in between that found room; -1 for never.
        slow_consumer_max_time_since_last_ack: likewise: and one that acknowledged nothing for so long;
            slow_consumer_ignore_idle: unless it has nothing to acknowledge.
        slow_consumer_check_period: how often is looked, in s; slow_consumer_abort_connection: its connection goes too.
        advisory_for_consumed .. include_body_for_advisory: likewise: which advisories OpenWire clients can hear.
    """

    dead_letter_address: str = ""
    expiry_address: str = ""
    max_delivery_attempts: int = 10
    redelivery_delay: int = 0
    redelivery_delay_multiplier: float = 1.0
    redelivery_collision_avoidance_factor: float = 0.0
    max_redelivery_delay: int = UNLIMITED
    expiry_delay: int = UNLIMITED
    min_expiry_delay: int = UNLIMITED
    max_expiry_delay: int = UNLIMITED
    no_expiry: bool = False
    auto_create_dead_letter_resources: bool = False
    dead_letter_queue_prefix: str = "DLQ."
    dead_letter_queue_suffix: str = ""
    auto_create_expiry_resources: bool = False
    expiry_queue_prefix: str = "EXP."
    expiry_queue_suffix: str = ""
    send_to_dla_on_no_route: bool = False
    dead_letter_non_durable: bool = True
    dead_letter_duplicates: bool | None = None
    dead_letter_expiry_delay: int = UNLIMITED
    prioritized_messages: bool = True
    max_size_bytes: int = UNLIMITED
    max_size_messages: int = UNLIMITED
    address_full_policy: AddressFullPolicy = AddressFullPolicy.PAGE
    block_timeout: int = UNLIMITED
    max_addresses: int = UNLIMITED
    persist_delivery_count_before_delivery: bool = False
    allow_temp_destination_stealing: bool = False
    group_cache_size: int | None = None
    auto_create_addresses: bool = True
    auto_create_queues: bool = True
    auto_delete_addresses: bool = True
    auto_delete_addresses_delay: int = 0
    auto_delete_addresses_skip_usage_check: bool = False
    auto_delete_queues: bool = True
    auto_delete_created_queues: bool = False
    auto_delete_queues_delay: int = 0
    auto_delete_queues_message_count: int = 0
    auto_delete_queues_skip_usage_check: bool = False
    default_address_routing_type: int = MULTICAST
    default_queue_routing_type: int = MULTICAST
    default_ring_size: int = UNLIMITED
    ring_eviction: RingEviction = RingEviction.HEAD
    default_max_consumers: int = UNLIMITED
    default_exclusive_queue: bool = False
    default_purge_on_no_consumers: bool = False
    default_last_value_queue: bool = False
    default_last_value_key: str = ""
    default_non_destructive: bool = False
    default_group_rebalance: bool = False
    default_group_rebalance_pause_dispatch: bool = False
    default_group_buckets: int = UNLIMITED
    default_group_first_key: str = ""
    default_consumers_before_dispatch: int = 0
    default_delay_before_dispatch: int = UNLIMITED
    retroactive_message_count: int = 0
    subscription_recovery_count: int = 0
    subscription_recovery_duration: int = 0
    subscription_recovery_size: int = 0
    subscription_recovery_retained: bool = False
    always_retroactive: bool | None = None
    id_cache_size: int = 20_000
    enable_metrics: bool = True
    dispatch_profile: DispatchProfile = DispatchProfile.ARTEMIS
    strict_order_dispatch: bool = False
    use_consumer_priority: bool = True
    all_consumers_exclusive_by_default: bool = False
    time_before_dispatch_starts: int = 0
    dispatch_policy: DispatchPolicy = DispatchPolicy.SIMPLE
    slow_consumer_max_duration: int = UNLIMITED
    slow_consumer_max_count: int = UNLIMITED
    slow_consumer_max_time_since_last_ack: int = UNLIMITED
    slow_consumer_ignore_idle: bool = True
    slow_consumer_abort_connection: bool = False
    slow_consumer_check_period: int = 5
    queue_prefetch: int = UNLIMITED
    queue_browser_prefetch: int = UNLIMITED
    topic_prefetch: int = UNLIMITED
    durable_topic_prefetch: int = UNLIMITED
    use_prefetch_extension: bool = True
    max_browse_page_size: int = UNLIMITED
    pending_message_limit: int = UNLIMITED
    pending_message_limit_multiplier: float = -1.0
    message_eviction: MessageEviction = MessageEviction.OLDEST
    message_eviction_key: str = ""
    advisory_for_consumed: bool = False
    advisory_for_delivery: bool = False
    advisory_for_discarding_messages: bool = False
    advisory_for_fast_producers: bool = False
    advisory_for_slow_consumers: bool = False
    advisory_when_full: bool = False
    advisory_if_no_consumers: bool = False
    include_body_for_advisory: bool = False


@dataclass(frozen=True)
class AddressMatch:
    """One ``<address-setting match="...">``: the fields it sets, by their name in `AddressSettings`."""

    match: str
    fields: dict[str, object]


@dataclass(frozen=True)
class QueueSettings:
    """One ``<queue>``: what is stored with it. None takes the default of its address.

    Attributes:
        ring_size: pending messages kept; -1 for all.
        max_consumers: -1 for any number.
        filter: a selector every message must pass to enter the queue; "" lets all in.
        exclusive: one consumer gets everything, the others stand by.
        last_value_key: property by which a newer message replaces an older one; "" is no last-value queue.
        auto_created: made by a send or a subscription; auto_delete: goes again when nobody uses it.
        paused: hands out nothing until it is resumed; enabled: takes part in routing.
        user: who made it.
    """

    name: str
    address: str
    routing_type: int = ANYCAST
    durable: bool = True
    ring_size: int | None = None
    max_consumers: int | None = None
    auto_created: bool = False
    filter: str = ""
    exclusive: bool | None = None
    purge_on_no_consumers: bool | None = None
    last_value_key: str | None = None
    non_destructive: bool | None = None
    group_rebalance: bool | None = None
    group_rebalance_pause_dispatch: bool | None = None
    group_buckets: int | None = None
    group_first_key: str | None = None
    consumers_before_dispatch: int | None = None
    delay_before_dispatch: int | None = None
    auto_delete: bool | None = None
    auto_delete_delay: int | None = None
    auto_delete_message_count: int | None = None
    enabled: bool = True
    paused: bool = False
    user: str = ""


@dataclass(frozen=True)
class Transformer:
    """What a divert changes in the properties of a copy.

    Attributes:
        add: set, replacing what was there; drop: removed; rename: old name -> new name. Applied in the order drop,
            rename, add.
    """

    add: dict[str, str] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    rename: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class DivertSettings:
    """One ``<divert>``.

    Attributes:
        forwarding_addresses: where copies go.
        exclusive: what was diverted goes nowhere else.
        routing_type: of the copies: ANYCAST, MULTICAST, STRIP_ROUTING (whatever the target takes) or PASS_ROUTING (as
            the original).
    """

    name: str
    address: str
    forwarding_addresses: tuple[str, ...]
    exclusive: bool = False
    filter: str = ""
    routing_type: int = STRIP_ROUTING
    transformer: Transformer | None = None


@dataclass(frozen=True)
class WildcardSyntax:
    """``<wildcard-addresses>``: how names are cut into words, and which words stand for others.

    Attributes:
        enabled: queues of an address with wildcards get what is sent to the addresses it stands for. Matches of
            address-settings and security-settings have wildcards either way.
        delimiter, any_words, single_word: one letter each, all different.
    """

    enabled: bool = True
    delimiter: str = "."
    any_words: str = "#"
    single_word: str = "*"


@dataclass(frozen=True)
class AddressDefinition:
    """One ``<address>`` and the routing types it takes."""

    name: str
    routing_types: frozenset[int]


@dataclass(frozen=True)
class SecurityMatch:
    """One ``<security-setting match="...">``: permission type (as in broker.xml) -> roles."""

    match: str
    permissions: dict[str, frozenset[str]]


@dataclass(frozen=True)
class TlsSettings:
    """How an acceptor speaks TLS.

    Attributes:
        key_store_path: the acceptor's own certificate, its chain and its key; a PEM file, or with the type PEMCFG a
            file that names them.
        trust_store_path: PEM file with the certificates that clients are checked against; "" when they are not asked.
        enabled_protocols, enabled_cipher_suites: empty for what is standard; suites by OpenSSL's or IANA's names.
        auto_reload: new connections get what is in the files by then.
    """

    key_store_path: str
    key_store_type: str = "PEM"
    key_store_password: str = field(default="", repr=False)
    trust_store_path: str = ""
    trust_store_type: str = "PEM"
    need_client_auth: bool = False
    want_client_auth: bool = False
    enabled_protocols: tuple[str, ...] = ()
    enabled_cipher_suites: tuple[str, ...] = ()
    auto_reload: bool = False


@dataclass(frozen=True)
class AcceptorSettings:
    """One ``<acceptor>``: ``tcp://host:port?options``.

    Attributes:
        options: as written in the URL, undecided by the acceptor's own fields.
        tls: None for plain sockets.
        web_socket_max_frame_bytes: payload of one WebSocket frame, either way; a message may have several.
        web_socket_text: messages to a WebSocket are text, not binary, where they can be.
        outbox_limit_bytes: messages that wait to be written; with more, a connection's consumers get none.
        reply_limit_bytes: replies that wait to be written; with more, a connection is not read.
        so_write_timeout_ms: a peer that takes nothing for so long while something waits is cut off; 0 for never.
        open_wire_max_frame_bytes: the largest OpenWire frame once a peer is logged in.
        max_inactivity_duration_ms: an OpenWire peer that is silent for so long is gone; 0 for never.
        max_inactivity_initial_delay_ms: this counts only after so long.
        support_advisory: OpenWire clients may subscribe to advisories.
        virtual_topics: which names of queues mean those of a topic; None is Classic's rule for OpenWire and no rule for
            others.
    """

    name: str
    host: str
    port: int
    protocols: tuple[str, ...]
    anycast_prefixes: tuple[str, ...] = ()
    multicast_prefixes: tuple[str, ...] = ()
    connections_allowed: int = 1000
    handshake_timeout_s: int = 10
    heart_beat_to_ttl_modifier: float = 2.0
    connection_ttl_ms: int = 60_000
    connection_ttl_min_ms: int = 1_000
    connection_ttl_max_ms: int = 0
    stomp_consumer_window_bytes: int = 10_240
    max_frame_bytes: int = 10 * MIB
    max_head_bytes: int = 64 * 1024
    max_headers: int = 1_000
    max_subscriptions: int = 1_000
    outbox_limit_bytes: int = 256 * 1024
    reply_limit_bytes: int = 1 * MIB
    so_write_timeout_ms: int = 600_000
    parked_limit_bytes: int = 1 * MIB
    tls: TlsSettings | None = None
    web_socket_max_frame_bytes: int = 64 * 1024
    web_socket_text: bool = False
    open_wire_max_frame_bytes: int = 100 * MIB
    max_inactivity_duration_ms: int = 30_000
    max_inactivity_initial_delay_ms: int = 10_000
    support_advisory: bool = True
    virtual_topics: tuple[VirtualTopicRule, ...] | None = None
    options: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class JournalSettings:
    """Where and how durable messages are kept.

    Attributes:
        directory: "" keeps everything in memory (``persistence-enabled`` false).
        file_size_bytes: size of one segment (``journal-file-size``).
        spare_files: segments kept preallocated beside the open one; one of them is the reserve that lets consumers go
            on when the disk is full.
        compact_min_files, compact_percentage: with at least so many segments of which less than so much in 100 is
            alive, what is alive in the emptiest is stored again elsewhere (``journal-compact-*``); 0 files: never.
    """

    directory: str = ""
    file_size_bytes: int = 64 * MIB
    spare_files: int = 2
    compact_min_files: int = 10
    compact_percentage: int = 30


@dataclass(frozen=True)
class BrokerSettings:
    """A whole broker.

    Attributes:
        global_max_size_bytes: memory of all messages together; -1 for no bound.
        connection_ttl_override_ms: -1 leaves each connection its own.
        message_expiry_scan_period_ms, address_queue_scan_period_ms: -1 for never.
        max_destinations: addresses and queues that clients may make together, those of operators counted; -1 for any
            number. max_destinations_per_user: of these, those that clients of one user may have made.
        max_destinations_size_per_user: bytes that what clients of one user made, names and filters, may take in the
            journal's state; -1 for any size.
        persist_id_cache: duplicate ids survive a restart.
        temporary_queue_namespace: permissions to make temporary destinations are looked for below this name; "" looks
            for them under the name of each.
        left_out: names of the configuration that are not obeyed, as its operator wished.
    """

    name: str = "delosmq"
    journal: JournalSettings = field(default_factory=JournalSettings)
    global_max_size_bytes: int = UNLIMITED
    connection_ttl_override_ms: int = UNLIMITED
    connection_ttl_check_interval_ms: int = 2_000
    message_expiry_scan_period_ms: int = 30_000
    address_queue_scan_period_ms: int = 30_000
    transaction_timeout_ms: int = 300_000
    transaction_timeout_scan_period_ms: int = 1_000
    max_destinations: int = 100_000
    max_destinations_per_user: int = 25_000
    max_destinations_size_per_user: int = 8 * 1024 * 1024
    persist_id_cache: bool = True
    temporary_queue_namespace: str = ""
    wildcards: WildcardSyntax = field(default_factory=WildcardSyntax)
    diverts: tuple[DivertSettings, ...] = ()
    acceptors: tuple[AcceptorSettings, ...] = ()
    addresses: tuple[AddressDefinition, ...] = ()
    queues: tuple[QueueSettings, ...] = ()
    address_settings: tuple[AddressMatch, ...] = ()
    security_settings: tuple[SecurityMatch, ...] = ()
    left_out: tuple[str, ...] = ()
