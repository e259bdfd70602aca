"""Discovery: which brokers announce themselves to a group, and our own announcements.

Datagrams are not authenticated, and who is found may be told our passwords. So a broker on another machine counts only
within the networks that the configuration allows.

Source: Artemis, DiscoveryGroup and BroadcastGroupImpl. There a node that falls silent is missed only when the next
datagram comes, and a changed connector is told only with a new node; here a timer looks, and a change is a change.
"""

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import Final

from delosmq.cluster.datagram import AnnouncedConnector, Announcement, decode_announcement, encode_announcement
from delosmq.model.errors import PeerError, peer_error
from delosmq.model.ids import MonotonicNs
from delosmq.model.phrases import one_line

MOST_NODES: Final = 1_024
NO_TIMER: Final = MonotonicNs(0)
_LONGEST_NODE_ID: Final = 128
_LONGEST_NAME: Final = 255
"""Of a connector and of a host, which DNS bounds."""
_LARGEST_PORT: Final = 65_535
_SHOWN: Final = 100
_LOCALHOST: Final = "localhost"

Network = IPv4Network | IPv6Network


@peer_error("DMQ6602")
def connector_unusable(node_id: str, detail: str) -> str:
    return f"broker '{one_line(node_id, _SHOWN)}' announces no connector that can be used: {detail}"


@peer_error("DMQ6603")
def host_not_allowed(node_id: str, host: str) -> str:
    return (
        f"broker '{one_line(node_id, _SHOWN)}' announces the host '{one_line(host, _SHOWN)}', which is in no network of"
        " discovery-allowed; add its network there, or leave it out"
    )


@peer_error("DMQ6604")
def too_many_nodes(limit: int) -> str:
    return f"{limit} brokers are announced already, and no more are kept; only brokers should send to this group"


@peer_error("DMQ6605")
def two_starts(node_id: str) -> str:
    return (
        f"broker '{one_line(node_id, _SHOWN)}' announces itself from two starts: it has just been restarted, or two"
        " brokers have one node id, of which one must get another journal"
    )


@dataclass(frozen=True)
class DiscoveredNode:
    """A broker that announces itself, at its last connector."""

    node_id: str
    connector: str
    host: str
    port: int
    tls: bool


@dataclass(frozen=True)
class NodeFound:
    """A broker is there; or announces another connector than before."""

    node: DiscoveredNode
    is_new: bool


@dataclass(frozen=True)
class NodeLost:
    """A broker has not been heard for the refresh timeout."""

    node: DiscoveredNode


@dataclass(frozen=True)
class DatagramRefused:
    """A datagram counts for nothing; or only warns."""

    source: str
    reason: PeerError


Effect = NodeFound | NodeLost | DatagramRefused


class _Entry:
    def __init__(self, node: DiscoveredNode, start_id: str, expires_at: int) -> None:
        self.node = node
        self.start_id = start_id
        self.expires_at = expires_at
        self.warned_until: int = 0


class Discovery:
    """What one discovery group has found.

    Args:
        own_node_id: what comes from there is our own.
        allowed: networks beside loopback.
    """

    def __init__(self, own_node_id: str, *, refresh_timeout_ns: int, allowed: tuple[Network, ...] = ()) -> None:
        self._own_node_id = own_node_id
        self._refresh_timeout_ns = refresh_timeout_ns
        self._allowed = allowed
        # In the order in which they expire, as each datagram puts its node last.
        self._entries: dict[str, _Entry] = {}

    @property
    def nodes(self) -> list[DiscoveredNode]:
        """By node id, so that all who ask see one order."""
        return [self._entries[node_id].node for node_id in sorted(self._entries)]

    def receive(self, datagram: bytes, source: str, now: MonotonicNs) -> list[Effect]:
        """A datagram from ``source``, an address for the log."""
        effects = self.handle_timer(now)
        try:
            announcement = decode_announcement(datagram)
            if announcement.node_id != self._own_node_id:
                self._take(announcement, source, now, effects)
        except PeerError as reason:
            effects.append(DatagramRefused(source, reason))
        return effects

    def next_timer(self) -> MonotonicNs:
        """When `handle_timer` has something to do; `NO_TIMER` for never."""
        for entry in self._entries.values():
            return MonotonicNs(entry.expires_at)
        return NO_TIMER

    def handle_timer(self, now: MonotonicNs) -> list[Effect]:
        """Misses those that were not heard for the refresh timeout."""
        lost: list[Effect] = []
        while self._entries:
            node_id, entry = next(iter(self._entries.items()))
            if entry.expires_at > now:
                break
            del self._entries[node_id]
            lost.append(NodeLost(entry.node))
        return lost

    def _take(self, announcement: Announcement, source: str, now: MonotonicNs, effects: list[Effect]) -> None:
        node = _node_of(announcement)
        if node is None:
            return
        if not self._is_allowed(node.host):
            raise host_not_allowed(node.node_id, node.host)
        entry = self._entries.pop(node.node_id, None)
        if entry is None:
            if len(self._entries) >= MOST_NODES:
                raise too_many_nodes(MOST_NODES)
            entry = _Entry(node, announcement.start_id, 0)
            effects.append(NodeFound(node, is_new=True))
        elif entry.node != node:
            entry.node = node
            effects.append(NodeFound(node, is_new=False))
        entry.expires_at = now + self._refresh_timeout_ns
        self._entries[node.node_id] = entry
        if entry.start_id != announcement.start_id:
            entry.start_id = announcement.start_id
            if entry.warned_until <= now:
                entry.warned_until = now + self._refresh_timeout_ns
                effects.append(DatagramRefused(source, two_starts(node.node_id)))

    def _is_allowed(self, host: str) -> bool:
        if host == _LOCALHOST:
            return True
        try:
            address = ip_address(host)
        except ValueError:
            return False  # a name stands for what its server says
        mapped = getattr(address, "ipv4_mapped", None) or address
        return mapped.is_loopback or any(mapped in network for network in self._allowed)


def _node_of(announcement: Announcement) -> DiscoveredNode | None:
    """The broker at its last connector; None when it announces none.

    Raises:
        PeerError: that makes no sense.
    """
    node_id = announcement.node_id
    if len(node_id) > _LONGEST_NODE_ID or len(announcement.start_id) > _LONGEST_NODE_ID:
        raise connector_unusable(node_id, f"its ids are longer than {_LONGEST_NODE_ID} characters")
    if not node_id.isprintable():
        raise connector_unusable(node_id, "its node id can not be printed")
    if not announcement.connectors:
        return None
    connector = announcement.connectors[-1]
    host = connector.text("host")
    port = _port_of(connector)
    if not host or len(host) > _LONGEST_NAME or len(connector.name) > _LONGEST_NAME:
        raise connector_unusable(node_id, "its host is missing, or its host or name is too long")
    if not host.isprintable() or not connector.name.isprintable():
        raise connector_unusable(node_id, "its host or name can not be printed")
    if port == 0:
        raise connector_unusable(node_id, "its port is missing or no port")
    return DiscoveredNode(node_id, connector.name, host, port, connector.text("sslEnabled") == "true")


def _port_of(connector: AnnouncedConnector) -> int:
    """0 for none."""
    text = connector.text("port")
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(_LARGEST_PORT))):
        return 0
    port = int(text)
    return port if port <= _LARGEST_PORT else 0


class Broadcast:
    """What one broadcast group announces, and when.

    Args:
        period_ns: between two announcements.
    """

    def __init__(self, announcement: Announcement, period_ns: int, now: MonotonicNs) -> None:
        self.datagram = encode_announcement(announcement)
        self._period_ns = period_ns
        self._due: int = now

    def next_timer(self) -> MonotonicNs:
        return MonotonicNs(self._due)

    def handle_timer(self, now: MonotonicNs) -> bool:
        """Whether the datagram is to be sent now; what was missed is not made up for."""
        if now < self._due:
            return False
        self._due = now + self._period_ns
        return True
