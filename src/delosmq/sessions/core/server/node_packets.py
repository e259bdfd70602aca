"""What a broker tells CORE clients of itself: that it is one node, and that it stops or another one serves them.

Source: ClusterTopologyChangeMessage and DisconnectMessage in their versions, CoreProtocolManager of Artemis.
"""

from typing import Final

from delosmq.model.properties import BOOLEAN_KIND, INT_KIND, STRING_KIND, TypedValue
from delosmq.sessions.login import RedirectError
from delosmq.wire.core.connection_packets import (
    REASON_REDIRECT,
    REASON_SHUT_DOWN,
    ClusterTopology,
    ClusterTopologyV2,
    ClusterTopologyV3,
    ClusterTopologyV4,
    Disconnect,
    DisconnectV2,
    DisconnectV3,
)
from delosmq.wire.core.packet import NEWEST_VERSION, Packet, TransportConfiguration

_V2_SINCE: Final = 122
_V3_SINCE: Final = 125
_V4_SINCE: Final = 131
_FACTORY: Final = "org.apache.activemq.artemis.core.remoting.impl.netty.NettyConnectorFactory"


def topology(version: int, node_id: str, event_id: int) -> Packet:
    """The one node there is. Its client puts the connector there by which it came."""
    packet = ClusterTopology()
    if version >= _V4_SINCE:
        fourth = ClusterTopologyV4()
        fourth.server_version = NEWEST_VERSION
        packet = fourth
    elif version >= _V3_SINCE:
        packet = ClusterTopologyV3()
    elif version >= _V2_SINCE:
        packet = ClusterTopologyV2()
    if isinstance(packet, ClusterTopologyV2):
        packet.unique_event_id = event_id
    packet.node_id = node_id
    packet.last = True
    return packet


def stopping(version: int, node_id: str) -> Packet:
    """The broker stops: a client that may reconnects, to here or elsewhere."""
    packet = Disconnect()
    if version >= _V4_SINCE:
        third = DisconnectV3()
        third.reason = REASON_SHUT_DOWN
        packet = third
    elif version >= _V3_SINCE:
        packet = DisconnectV2()
    packet.node_id = node_id
    return packet


def redirecting(version: int, node_id: str, target: RedirectError) -> Packet | None:
    """Another broker serves the client; None for one that can't be told which."""
    if version < _V4_SINCE:
        return None
    packet = DisconnectV3()
    packet.reason = REASON_REDIRECT
    packet.node_id = node_id
    packet.target_connector = TransportConfiguration(
        "redirect",
        _FACTORY,
        {
            "host": TypedValue(STRING_KIND, target.host),
            "port": TypedValue(INT_KIND, target.port),
            "sslEnabled": TypedValue(BOOLEAN_KIND, target.tls),
        },
    )
    return packet
