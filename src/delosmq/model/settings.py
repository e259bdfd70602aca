"""Settings as the engine and the server read them: frozen, complete, with units.

Names are those of Artemis's broker.xml with ``_`` for ``-``. The configuration layer fills them; nothing here reads
files.
"""

from dataclasses import dataclass, field

from delosmq.model.declared.queue import LAST_VALUE_NAME, QueueSettings
from delosmq.model.values import (
    MIB,
    PASS_ROUTING,
    STRIP_ROUTING,
    UNLIMITED,
    AddressFullPolicy,
    DispatchPolicy,
    DispatchProfile,
    MessageEviction,
    RingEviction,
)
from delosmq.model.virtual_topics import VirtualTopicRule

__all__ = [
    "LAST_VALUE_NAME",
    "MIB",
    "PASS_ROUTING",
    "STRIP_ROUTING",
    "UNLIMITED",
    "AcceptorSettings",
    "AddressDefinition",
    "AddressFullPolicy",
    "AddressMatch",
    "BrokerSettings",
    "DispatchPolicy",
    "DispatchProfile",
    "DivertSettings",
    "JournalSettings",
    "MessageEviction",
    "QueueSettings",
    "RingEviction",
    "SecurityMatch",
    "TlsSettings",
    "Transformer",
    "WildcardSyntax",
]


@dataclass(frozen=True)
class AddressMatch:
    """One ``<address-setting match="...">``: the fields it sets, by their name in `AddressSettings`."""

    match: str
    fields: dict[str, object]


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
        max_branches_per_user: branches of distributed transactions that clients of one user may have begun, ended ones
            left out; -1 for any number, up to 10,000 in all.
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
    max_branches_per_user: int = 2_500
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
