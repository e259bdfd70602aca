"""The first commands of a connection: what this side offers, who it is, and who the peer is."""

from delosmq.model.settings import AcceptorSettings
from delosmq.sessions.openwire.server import errors
from delosmq.sessions.openwire.server.ids import check_id
from delosmq.sessions.openwire.server.registry import Registry
from delosmq.wire.openwire.commands import BrokerInfo, ConnectionInfo
from delosmq.wire.openwire.negotiation import WireFormatInfo
from delosmq.wire.openwire.wire_format import NEWEST_VERSION


def offer(acceptor: AcceptorSettings, server_name: str) -> WireFormatInfo:
    """What connections of ``acceptor`` may agree on."""
    info = WireFormatInfo(NEWEST_VERSION)
    info.max_frame_bytes = acceptor.open_wire_max_frame_bytes
    info.provider_name = "DelosMQ"
    info.provider_version = server_name.rpartition("/")[2]
    info.max_inactivity_duration_ms = acceptor.max_inactivity_duration_ms
    info.max_inactivity_initial_delay_ms = acceptor.max_inactivity_initial_delay_ms
    return info


def introduction(registry: Registry) -> BrokerInfo:
    info = BrokerInfo()
    info.broker_id = registry.broker_id
    info.broker_name = registry.broker_name
    info.broker_url = ""
    return info


def take_password(info: ConnectionInfo) -> str:
    """Checks who the peer says it is, and takes its password out of that.

    Raises:
        OpenWireError: an id is wrong or missing.
    """
    if info.connection_id is None or not info.connection_id.value:
        raise errors.field_missing("connectionId", "a ConnectionInfo")
    check_id("connection id", info.connection_id.value)
    if info.client_id is None:
        raise errors.no_client_id()
    check_id("client id", info.client_id)
    password = info.password or ""
    info.password = None
    return password
