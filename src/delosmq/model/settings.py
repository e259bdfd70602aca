"""Settings as the engine and the server read them: frozen, complete, with units.

Names are those of Artemis's broker.xml with ``_`` for ``-``. The configuration layer fills them; nothing here reads
files.
"""

from dataclasses import dataclass, field
from typing import Final

from delosmq.model.declared.acceptor import AcceptorSettings as AcceptorSettings
from delosmq.model.declared.acceptor import TlsSettings as TlsSettings
from delosmq.model.declared.address import AddressSettings as AddressSettings
from delosmq.model.declared.database_store import DatabaseStoreSettings as DatabaseStoreSettings
from delosmq.model.declared.discovery import BroadcastGroupSettings as BroadcastGroupSettings
from delosmq.model.declared.discovery import DiscoveryGroupSettings as DiscoveryGroupSettings
from delosmq.model.declared.java_regex import JavaRegex
from delosmq.model.declared.queue import LAST_VALUE_NAME as LAST_VALUE_NAME
from delosmq.model.declared.queue import QueueSettings as QueueSettings
from delosmq.model.declared.router import ConnectionRouterSettings as ConnectionRouterSettings
from delosmq.model.values import MIB as MIB
from delosmq.model.values import PASS_ROUTING as PASS_ROUTING
from delosmq.model.values import STRIP_ROUTING as STRIP_ROUTING
from delosmq.model.values import UNLIMITED as UNLIMITED
from delosmq.model.values import AddressFullPolicy as AddressFullPolicy
from delosmq.model.values import DispatchPolicy as DispatchPolicy
from delosmq.model.values import DispatchProfile as DispatchProfile
from delosmq.model.values import MessageEviction as MessageEviction
from delosmq.model.values import RingEviction as RingEviction
from delosmq.model.values import (
    Setting,
    at_least,
    at_reload,
    at_restart,
    bytes_at_least,
    declared,
    parse_divert_routing_type,
    parse_limit_bytes,
    parse_text,
    parse_wildcard_letter,
    percentage_of_at_least,
    unlimited_or_at_least,
)

LEAST_SEGMENT_BYTES: Final = 64 * 1024
"""Below this, the records of one ordinary batch would not fit into a segment."""
MOST_SEGMENT_BYTES: Final = 2**32 - 1
"""Offsets in the footers of segments have 32 bits."""


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
    """One ``<divert>``; ``forwarding_addresses`` is where copies go."""

    name: str
    address: str
    forwarding_addresses: tuple[str, ...]
    exclusive: bool = at_restart(False, "true: what was diverted goes nowhere else")
    filter: str = ""
    routing_type: int = at_restart(
        STRIP_ROUTING,
        "of the copies: ANYCAST, MULTICAST, STRIP (whatever the target takes) or PASS",
        parse_divert_routing_type,
        shown="STRIP",
    )
    transformer: Transformer | None = None


@dataclass(frozen=True)
class WildcardSyntax:
    """``<wildcard-addresses>``: how names are cut into words, and which words stand for others. All letters differ.

    Attributes:
        enabled: matches of address-settings and security-settings have wildcards either way.
    """

    enabled: bool = at_restart(
        True,
        "a queue of the address `news.#` gets what is sent to `news.uk`",
        written="routing-enabled",
        older_name="enabled",
    )
    delimiter: str = at_restart(".", "what words are cut by", parse_wildcard_letter)
    any_words: str = at_restart("#", "the word that stands for any number of words", parse_wildcard_letter)
    single_word: str = at_restart("*", "the word that stands for one word", parse_wildcard_letter)


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
class JournalSettings:
    """Where and how durable messages are kept. Beside what each setting declares:

    Attributes:
        directory: "" keeps everything in memory (``persistence-enabled`` false).
        spare_files: segments kept preallocated beside the open one; one of them is the reserve that lets consumers go
            on when the disk is full.
    """

    directory: str = ""
    file_size_bytes: int = at_restart(
        64 * MIB,
        "size of one journal segment, at least 64K and below 4G (Artemis: 10M); very many queues make them larger",
        bytes_at_least(LEAST_SEGMENT_BYTES, most=MOST_SEGMENT_BYTES),
        written="journal-file-size",
    )
    spare_files: int = 2
    compact_min_files: int = at_restart(
        10, "with fewer segments nothing is compacted; 0 for never", at_least(0), written="journal-compact-min-files"
    )
    compact_percentage: int = at_restart(
        30,
        "a segment is compacted when less of it than this is alive",
        percentage_of_at_least(0),
        unit="%",
        written="journal-compact-percentage",
    )


@dataclass(frozen=True)
class PrimaryPolicy:
    """``<shared-store><primary>``: of a pair of brokers on one store the one that should be active."""

    failover_on_shutdown: bool = at_restart(
        False, "true: the backup takes over after a clean stop too; false: a clean stop pauses the pair"
    )
    wait_for_activation: bool = at_restart(
        True, "either way this broker waits in the background, with HTTP up, while another one is active"
    )


@dataclass(frozen=True)
class BackupPolicy:
    """``<shared-store><backup>``: the one that takes over."""

    failover_on_shutdown: bool = at_restart(
        False, "true: after a clean stop of this broker, while active, another backup takes over"
    )
    allow_failback: bool = at_restart(True, "makes way for the primary when that returns")
    restart_backup: bool = at_restart(True, "waits again after that; false: ends")


def _parse_regex(text: str) -> str:
    JavaRegex(text)
    return text


@dataclass(frozen=True)
class BrokerSettings:
    """A whole broker. Beside what each setting declares:

    Attributes:
        database: keeps durable messages instead of the journal.
        global_max_size_bytes: -1 for no bound, but in broker.xml.
        ha_policy: None for a broker that shares its store with no other.
        left_out: names of the configuration that are not obeyed, as its operator wished.
    """

    name: str = at_restart("delosmq", "name of the broker in logs, metrics and the `server` header", parse_text)
    journal: JournalSettings = field(default_factory=JournalSettings)
    database: DatabaseStoreSettings | None = None
    global_max_size_bytes: int = at_reload(
        UNLIMITED, "memory of all messages together; -1 leaves it to the percentage below", parse_limit_bytes
    )
    connection_ttl_override_ms: int = at_restart(
        UNLIMITED, "replaces the TTL of every connection; -1 leaves each its own", unlimited_or_at_least(1)
    )
    connection_ttl_check_interval_ms: int = at_restart(
        2_000, "how often silent connections are looked for", at_least(1)
    )
    message_expiry_scan_period_ms: int = at_restart(
        30_000, "how often expired messages are looked for; -1 for never", unlimited_or_at_least(1, "never")
    )
    address_queue_scan_period_ms: int = at_restart(
        30_000, "how often what goes by itself is looked for; -1 for never", unlimited_or_at_least(1, "never")
    )
    transaction_timeout_ms: int = at_restart(
        300_000, "a branch of a distributed transaction that is not prepared by then is rolled back", at_least(1)
    )
    transaction_timeout_scan_period_ms: int = at_restart(
        1_000, "how often such transactions are looked for", at_least(1)
    )
    max_destinations: int = at_restart(
        100_000,
        "DelosMQ only: with so many addresses and queues clients make no more; -1 for any number",
        unlimited_or_at_least(1, "any number"),
    )
    max_destinations_per_user: int = at_restart(
        25_000,
        "DelosMQ only: addresses and queues that clients of one user may have made; -1 for any number",
        unlimited_or_at_least(1, "any number"),
    )
    max_destinations_size_per_user: int = at_restart(
        8 * MIB,
        "DelosMQ only: what those may take in the journal's state, mostly names and filters, an eighth of it for"
        " filters; -1 for any size",
        parse_limit_bytes,
        unit="bytes",
    )
    max_branches_per_user: int = at_restart(
        2_500,
        "DelosMQ only: branches of distributed transactions that clients of one user may have: open, prepared, or"
        " ended by an operator and not forgotten; -1 for any number, up to 10,000 in all",
        unlimited_or_at_least(1, "any number"),
    )
    staged_retention_ms: int = at_restart(
        7 * 24 * 3_600_000,
        "DelosMQ only: rows that a sink staged and never published are discarded after so long",
        at_least(1),
    )
    published_retention_ms: int = at_restart(
        30 * 24 * 3_600_000,
        "DelosMQ only: for how long the last published batch of an application that publishes nothing more is kept",
        at_least(1),
    )
    lease_retention_ms: int = at_restart(
        7 * 24 * 3_600_000,
        "DelosMQ only: a lease group that its reader does not call for so long is released; longer than a query is ever"
        " away",
        at_least(1),
    )
    lease_max_rows: int = at_restart(
        1_000_000, "DelosMQ only: messages in one lease, whatever its reader asks for", at_least(1)
    )
    lease_max_bytes: int = at_restart(
        1024 * MIB,
        "DelosMQ only: size of one lease, likewise; a lease has one message at least",
        bytes_at_least(1),
        unit="bytes",
    )
    leased_max_rows: int = at_restart(
        2_000_000,
        "DelosMQ only: messages that one lease group holds, with what it acknowledged and is worked off",
        at_least(1),
    )
    leased_max_bytes: int = at_restart(
        2048 * MIB, "DelosMQ only: size of what one lease group holds, likewise", bytes_at_least(1), unit="bytes"
    )
    delosmq_events: int = at_restart(
        0,
        "DelosMQ only: records what becomes of messages on the address `delosmq.events`, so many records in a second at"
        " most; 0 for none",
        at_least(0),
    )
    cluster_user: str = at_restart(
        "ACTIVEMQ.CLUSTER.ADMIN.USER", "with whom brokers log in to each other where nothing else is said", parse_text
    )
    cluster_password: str = at_restart("", "of that user", str, repr=False)
    persist_id_cache: bool = at_restart(True, "duplicate ids survive a restart")
    management_address: str = at_restart(
        "activemq.management", "what is sent there the broker carries out itself", parse_text
    )
    management_message_rbac: bool = at_restart(
        False, "true: a management message needs `view` or `edit` on `mops.<resource>.<method>`, too"
    )
    management_rbac_prefix: str = at_restart("mops", "how the names of such permissions begin", parse_text)
    view_permission_method_match_pattern: str = at_restart(
        "^(get|is|count|list|browse|query).*$",
        "methods for which `view` is enough; a regular expression",
        _parse_regex,
    )
    temporary_queue_namespace: str = at_restart(
        "", "with `temp` here, permissions to make temporary queues and topics are those of match `temp.#`", parse_text
    )
    wildcards: WildcardSyntax = field(default_factory=WildcardSyntax)
    diverts: tuple[DivertSettings, ...] = ()
    connection_routers: tuple[ConnectionRouterSettings, ...] = ()
    broadcast_groups: tuple[BroadcastGroupSettings, ...] = ()
    discovery_groups: tuple[DiscoveryGroupSettings, ...] = ()
    acceptors: tuple[AcceptorSettings, ...] = ()
    addresses: tuple[AddressDefinition, ...] = ()
    queues: tuple[QueueSettings, ...] = ()
    address_settings: tuple[AddressMatch, ...] = ()
    security_settings: tuple[SecurityMatch, ...] = ()
    ha_policy: PrimaryPolicy | BackupPolicy | None = None
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class WebBind:
    """Where the HTTP interface listens; port 0 takes a free one.

    Attributes:
        tls: None for http, else https.
    """

    host: str = "127.0.0.1"
    port: int = 8161
    tls: TlsSettings | None = None

    @property
    def url(self) -> str:
        """``http://host:port``, or ``https://``."""
        scheme = "http" if self.tls is None else "https"
        return f"{scheme}://[{self.host}]:{self.port}" if ":" in self.host else f"{scheme}://{self.host}:{self.port}"


JOURNAL_SETTINGS: Final[dict[str, Setting]] = declared(JournalSettings)
CORE_SETTINGS: Final[dict[str, Setting]] = declared(BrokerSettings)
DIVERT_SETTINGS: Final[dict[str, Setting]] = declared(DivertSettings)
WILDCARD_SETTINGS: Final[dict[str, Setting]] = declared(WildcardSyntax)
PRIMARY_SETTINGS: Final[dict[str, Setting]] = declared(PrimaryPolicy)
BACKUP_SETTINGS: Final[dict[str, Setting]] = declared(BackupPolicy)
"""What is declared, by the name of the field."""
