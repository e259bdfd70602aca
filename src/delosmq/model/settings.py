"""Settings as the engine and the server read them: frozen, complete, with units.

Names are those of Artemis's broker.xml with ``_`` for ``-``. The configuration layer fills them; nothing here reads
files.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from delosmq.model.message import ANYCAST, MULTICAST

UNLIMITED: Final = -1
MIB: Final = 1024 * 1024


class AddressFullPolicy(Enum):
    """What happens to a send when its address (or the broker) is at its memory limit."""

    PAGE = "PAGE"
    BLOCK = "BLOCK"
    FAIL = "FAIL"
    DROP = "DROP"


@dataclass(frozen=True)
class AddressSettings:
    """The resolved ``address-setting`` of one address.

    Attributes:
        dead_letter_address: "" drops what exhausted its attempts.
        max_delivery_attempts: -1 for endless.
        max_size_bytes, max_size_messages: memory limit of the address, -1 for none.
        default_ring_size: pending messages a queue without a ``ring-size`` of its own keeps; -1 for all.
    """

    dead_letter_address: str = ""
    max_delivery_attempts: int = 10
    max_size_bytes: int = UNLIMITED
    max_size_messages: int = UNLIMITED
    address_full_policy: AddressFullPolicy = AddressFullPolicy.PAGE
    auto_create_addresses: bool = True
    auto_create_queues: bool = True
    default_address_routing_type: int = MULTICAST
    default_ring_size: int = UNLIMITED
    default_max_consumers: int = UNLIMITED


@dataclass(frozen=True)
class AddressMatch:
    """One ``<address-setting match="...">``: the fields it sets, by their name in `AddressSettings`."""

    match: str
    fields: dict[str, object]


@dataclass(frozen=True)
class QueueSettings:
    """One ``<queue>``: what is stored with it.

    Attributes:
        ring_size: None inherits ``default-ring-size`` of the address.
        max_consumers: None inherits ``default-max-consumers``.
    """

    name: str
    address: str
    routing_type: int = ANYCAST
    durable: bool = True
    ring_size: int | None = None
    max_consumers: int | None = None
    auto_created: bool = False


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
class AcceptorSettings:
    """One ``<acceptor>``: ``tcp://host:port?options``.

    Attributes:
        options: as written in the URL, undecided by the acceptor's own fields.
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
    outbox_limit_bytes: int = 4 * MIB
    parked_limit_bytes: int = 1 * MIB
    options: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class JournalSettings:
    """Where and how durable messages are kept.

    Attributes:
        directory: "" keeps everything in memory (``persistence-enabled`` false).
        file_size_bytes: size of one segment (``journal-file-size``).
        spare_files: segments kept preallocated beside the open one; one of them is the reserve that lets consumers go
            on when the disk is full.
    """

    directory: str = ""
    file_size_bytes: int = 64 * MIB
    spare_files: int = 2


@dataclass(frozen=True)
class BrokerSettings:
    """A whole broker.

    Attributes:
        global_max_size_bytes: memory of all messages together; -1 for no bound.
        connection_ttl_override_ms: -1 leaves each connection its own.
    """

    name: str = "delosmq"
    journal: JournalSettings = field(default_factory=JournalSettings)
    global_max_size_bytes: int = UNLIMITED
    connection_ttl_override_ms: int = UNLIMITED
    connection_ttl_check_interval_ms: int = 2_000
    acceptors: tuple[AcceptorSettings, ...] = ()
    addresses: tuple[AddressDefinition, ...] = ()
    queues: tuple[QueueSettings, ...] = ()
    address_settings: tuple[AddressMatch, ...] = ()
    security_settings: tuple[SecurityMatch, ...] = ()
