"""The first commands of a client: what it offers, and who it is."""

from dataclasses import dataclass

from delosmq.sessions.openwire.client.options import WireFormatOptions
from delosmq.wire.openwire.commands import ConnectionInfo
from delosmq.wire.openwire.negotiation import WireFormatInfo
from delosmq.wire.openwire.structures import ConnectionId


@dataclass(frozen=True)
class ClientIdentity:
    """Who connects, and where to.

    Attributes:
        connection_id: unique in the world.
        client_id: what the broker calls this client when the options name none.
        peer: the broker's address, for people.
        host: by which the broker was looked for; "" when several are.
        fault_tolerant: the connection is made again when it breaks.
    """

    connection_id: str
    client_id: str
    user: str
    password: str
    peer: str
    host: str = ""
    fault_tolerant: bool = False


def offer(wanted: WireFormatOptions, host: str) -> WireFormatInfo:
    """What the broker may agree on.

    Args:
        host: by which it was looked for; "" when several are.
    """
    info = WireFormatInfo(wanted.version)
    info.max_frame_bytes = wanted.max_frame_size_bytes
    info.max_inactivity_duration_ms = wanted.max_inactivity_duration_ms
    info.max_inactivity_initial_delay_ms = wanted.max_inactivity_duration_inital_delay_ms
    info.tight_encoding_enabled = wanted.tight_encoding_enabled
    info.cache_enabled = wanted.cache_enabled
    info.stack_trace_enabled = wanted.stack_trace_enabled
    info.tcp_no_delay_enabled = wanted.tcp_no_delay_enabled
    info.provider_name = "DelosMQ"
    info.host = host or None
    return info


def login(identity: ClientIdentity, client_id: str) -> ConnectionInfo:
    """Who connects, as the Java client says it."""
    info = ConnectionInfo()
    info.connection_id = ConnectionId(identity.connection_id)
    info.client_id = client_id
    info.user_name = identity.user or None
    info.password = identity.password or None
    info.manageable = True
    info.client_master = True
    return info
