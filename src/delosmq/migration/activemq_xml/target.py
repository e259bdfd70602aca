"""The broker that a conversion puts together, before it is written."""

from dataclasses import dataclass, field

from delosmq.migration.activemq_xml.names import KINDS, ROUTING

Settings = dict[str, dict[str, str]]
"""Match -> address-setting -> value."""


@dataclass
class Acceptor:
    """One acceptor; with a ``reason`` it is written as a comment. ``place`` is its host and port."""

    name: str
    url: str
    reason: str = ""
    place: tuple[str, int] = ("", 0)


@dataclass
class ConvertedDivert:
    """One divert.

    Attributes:
        line: of activemq.xml, where it comes from.
    """

    name: str
    address: str
    targets: list[str]
    routing: str
    exclusive: bool
    filter: str = ""
    line: int = 0


@dataclass
class ConvertedAddress:
    """One address: routing types, and whether its anycast queue is declared."""

    routings: list[str] = field(default_factory=list)
    has_queue: bool = False


@dataclass(frozen=True)
class DeadLetterQueues:
    """Dead letters that have a queue for each origin: its name is the origin between ``prefix`` and ``suffix``."""

    address: str
    prefix: str
    suffix: str

    def has(self, name: str) -> bool:
        """Whether a queue of that name may be one of them."""
        if name in (self.address, self.prefix + self.suffix):
            return False
        return name.startswith(self.prefix) and name.endswith(self.suffix)


@dataclass
class Target:
    """What will be written.

    Attributes:
        core: children of ``<core>`` that hold a value.
        has_advisories: false refuses advisories to OpenWire clients.
        policies: address-settings that come from policies, by the kind of destination they are for.
        overlays: those that come from plugins; they are for both kinds and win.
        permissions: match -> permission -> roles.
        dead_letter_queues: those of individual strategies.
        discards_dead_letters: nothing that fails or expires is kept.
        fails_when_full: sends fail where they would wait.
        block_timeout: and where they do wait, those to addresses of which no policy says more fail after so many ms; ""
            for never.
        users: user -> password in plain text; roles: role -> users.
    """

    core: dict[str, str] = field(default_factory=dict)
    acceptors: list[Acceptor] = field(default_factory=list)
    has_advisories: bool = True
    policies: dict[str, Settings] = field(default_factory=lambda: {kind: {} for kind in KINDS})
    overlays: Settings = field(default_factory=dict)
    dead_letter_queues: list[DeadLetterQueues] = field(default_factory=list)
    discards_dead_letters: bool = False
    fails_when_full: bool = False
    block_timeout: str = ""
    settings: Settings = field(default_factory=dict)
    permissions: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    users: dict[str, str] = field(default_factory=dict)
    roles: dict[str, list[str]] = field(default_factory=dict)
    addresses: dict[str, ConvertedAddress] = field(default_factory=dict)
    diverts: list[ConvertedDivert] = field(default_factory=list)

    def declare(self, name: str, kind: str, *, queue: bool = True) -> None:
        """Sees to it that an address of that name takes ``kind``; a queue has one of its name, unless not wanted."""
        address = self.addresses.setdefault(name, ConvertedAddress())
        routing = ROUTING[kind]
        if routing not in address.routings:
            address.routings.append(routing)
        address.has_queue = address.has_queue or (queue and routing == "anycast")
