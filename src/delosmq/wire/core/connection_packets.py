"""Packets of a connection: pings, topology, how sessions begin and are reattached, failures and confirmations."""

from collections.abc import Callable
from typing import Final

from delosmq.wire.core.packet import (
    CHECK_FOR_FAILOVER,
    CHECK_FOR_FAILOVER_REPLY,
    CLUSTER_TOPOLOGY,
    CLUSTER_TOPOLOGY_V2,
    CLUSTER_TOPOLOGY_V3,
    CLUSTER_TOPOLOGY_V4,
    CREATESESSION,
    CREATESESSION_RESP,
    CREATESESSION_V2,
    DISCONNECT,
    DISCONNECT_CONSUMER_KILL,
    DISCONNECT_V2,
    DISCONNECT_V3,
    EMPTY,
    EXCEPTION,
    NULL_RESPONSE,
    PACKETS_CONFIRMED,
    PING,
    REATTACH_SESSION,
    REATTACH_SESSION_RESP,
    SUBSCRIBE_TOPOLOGY,
    SUBSCRIBE_TOPOLOGY_V2,
    Packet,
    PacketFields,
)

# Why a server disconnects. Source: DisconnectReason.
REASON_REDIRECT: Final = 0
REASON_REDIRECT_ON_CRITICAL_ERROR: Final = 1
REASON_SCALE_DOWN: Final = 2
REASON_SCALE_DOWN_ON_CRITICAL_ERROR: Final = 3
REASON_SHUT_DOWN: Final = 4
REASON_SHUT_DOWN_ON_CRITICAL_ERROR: Final = 5


class Ping(Packet):
    """Says that the peer lives, and for how long it may be silent.

    Attributes:
        connection_ttl: in ms, -1 for ever.
    """

    def __init__(self, connection_ttl: int = 0, fields: PacketFields = EMPTY) -> None:
        self.code = PING
        self.connection_ttl = fields.int64("connection_ttl", connection_ttl)


class ExceptionPacket(Packet):
    """A request has failed, or the session.

    Attributes:
        error_code: one of `error_codes`.
        text: what happened, for people.
    """

    def __init__(self, error_code: int = 0, text: str | None = None, fields: PacketFields = EMPTY) -> None:
        self.code = EXCEPTION
        self.error_code = fields.int32("error_code", error_code)
        fields.string_or_null("text")
        self.text = text
        self.correlation_id = fields.correlation_id()


class NullResponse(Packet):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        self.code = NULL_RESPONSE
        self.correlation_id = fields.correlation_id()


class PacketsConfirmed(Packet):
    """What was sent up to a number needs not be sent again.

    Attributes:
        command_id: the number of the last packet that was handled.
    """

    def __init__(self, command_id: int = 0, fields: PacketFields = EMPTY) -> None:
        self.code = PACKETS_CONFIRMED
        self.command_id = fields.int32("command_id", command_id)


# --- sessions


class CreateSession(Packet):
    """Begins a session on a channel of its own; logs in each time.

    Attributes:
        window_size: of confirmations, in bytes; -1 for none.
    """

    def __init__(self, fields: PacketFields = EMPTY) -> None:
        self.code = CREATESESSION
        self.name = fields.string("name")
        self.session_channel_id = fields.int64("session_channel_id")
        self.version = fields.int32("version")
        self.username = fields.string_or_null("username")
        self.password = fields.string_or_null("password")
        self.min_large_message_size = fields.int32("min_large_message_size")
        self.xa = fields.flag("xa")
        self.auto_commit_sends = fields.flag("auto_commit_sends")
        self.auto_commit_acks = fields.flag("auto_commit_acks")
        self.window_size = fields.int32("window_size", -1)
        self.pre_acknowledge = fields.flag("pre_acknowledge")
        self.default_address = fields.string_or_null("default_address")


class CreateSessionV2(CreateSession):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        super().__init__(fields)
        self.code = CREATESESSION_V2
        self.client_id = fields.string_or_null("client_id")


class CreateSessionResponse(Packet):
    def __init__(self, server_version: int = 0, fields: PacketFields = EMPTY) -> None:
        self.code = CREATESESSION_RESP
        self.server_version = fields.int32("server_version", server_version)


class ReattachSession(Packet):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        self.code = REATTACH_SESSION
        self.name = fields.string("name")
        self.last_confirmed_command_id = fields.int32("last_confirmed_command_id")


class ReattachSessionResponse(Packet):
    def __init__(
        self, last_confirmed_command_id: int = 0, reattached: bool = False, fields: PacketFields = EMPTY
    ) -> None:
        self.code = REATTACH_SESSION_RESP
        self.last_confirmed_command_id = fields.int32("last_confirmed_command_id", last_confirmed_command_id)
        self.reattached = fields.flag("reattached", reattached)


class CheckFailover(Packet):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        self.code = CHECK_FOR_FAILOVER
        self.node_id = fields.string_or_null("node_id")


class CheckFailoverReply(Packet):
    def __init__(self, ok: bool = False, fields: PacketFields = EMPTY) -> None:
        self.code = CHECK_FOR_FAILOVER_REPLY
        self.ok = fields.flag("ok", ok)


# --- the end of a connection


class Disconnect(Packet):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        self.code = DISCONNECT
        self.node_id = fields.simple_string_or_null("node_id")


class DisconnectV2(Disconnect):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        super().__init__(fields)
        self.code = DISCONNECT_V2
        self.scale_down_node_id = fields.simple_string_or_null("scale_down_node_id")


class DisconnectV3(Disconnect):
    """Ends a connection, and says where to go.

    Attributes:
        reason: one of the constants above, -1 for none.
        target_connector: where to connect to instead.
    """

    def __init__(self, fields: PacketFields = EMPTY) -> None:
        super().__init__(fields)
        self.code = DISCONNECT_V3
        self.reason = fields.byte("reason")
        self.target_node_id = fields.simple_string_or_null("target_node_id")
        self.target_connector = fields.transport_or_null("target_connector")


class DisconnectConsumerKill(Packet):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        self.code = DISCONNECT_CONSUMER_KILL
        self.node_id = fields.simple_string_or_null("node_id")


# --- topology


class SubscribeTopology(Packet):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        self.code = SUBSCRIBE_TOPOLOGY
        self.cluster_connection = fields.flag("cluster_connection")


class SubscribeTopologyV2(SubscribeTopology):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        super().__init__(fields)
        self.code = SUBSCRIBE_TOPOLOGY_V2
        self.client_version = fields.int32("client_version")


class ClusterTopology(Packet):
    """Tells of one node.

    Attributes:
        exit: the node goes down; connectors are not sent then.
        last: all nodes that are known now were sent.
    """

    def __init__(self, fields: PacketFields = EMPTY) -> None:
        self.code = CLUSTER_TOPOLOGY
        self.exit = fields.flag("exit")
        self.node_id = fields.string("node_id")
        self._after_node_id(fields)
        self.primary = fields.transport_or_null("primary", unless="exit")
        self.backup = fields.transport_or_null("backup", unless="exit")
        self.last = fields.flag("last", unless="exit")

    def _after_node_id(self, fields: PacketFields) -> None:
        """Where later forms have a field more."""


class ClusterTopologyV2(ClusterTopology):
    """Tells of one node, and which news of it is the newest.

    Attributes:
        unique_event_id: of several that tell of a node the highest counts.
    """

    def __init__(self, fields: PacketFields = EMPTY) -> None:
        self.unique_event_id = 0
        super().__init__(fields)
        self.code = CLUSTER_TOPOLOGY_V2
        fields.end_for_older()
        self.backup_group_name = fields.string_or_null("backup_group_name")

    def _after_node_id(self, fields: PacketFields) -> None:
        fields.int64("unique_event_id")


class ClusterTopologyV3(ClusterTopologyV2):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        super().__init__(fields)
        self.code = CLUSTER_TOPOLOGY_V3
        self.scale_down_group_name = fields.string_or_null("scale_down_group_name")


class ClusterTopologyV4(ClusterTopologyV3):
    def __init__(self, fields: PacketFields = EMPTY) -> None:
        super().__init__(fields)
        self.code = CLUSTER_TOPOLOGY_V4
        self.server_version = fields.int32("server_version")


CONNECTION_PACKETS: Final[tuple[Callable[..., Packet], ...]] = (
    Ping,
    ExceptionPacket,
    NullResponse,
    PacketsConfirmed,
    CreateSession,
    CreateSessionV2,
    CreateSessionResponse,
    ReattachSession,
    ReattachSessionResponse,
    CheckFailover,
    CheckFailoverReply,
    Disconnect,
    DisconnectV2,
    DisconnectV3,
    DisconnectConsumerKill,
    SubscribeTopology,
    SubscribeTopologyV2,
    ClusterTopology,
    ClusterTopologyV2,
    ClusterTopologyV3,
    ClusterTopologyV4,
)
