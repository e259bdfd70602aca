"""The settings of an acceptor, each declared once: its option in the URL, its parser, its default, and what the manual
says of it.
"""

from dataclasses import MISSING, dataclass, field
from typing import Final

from delosmq.model.values import (
    MIB,
    Setting,
    at_least,
    at_restart,
    bytes_at_least,
    comma_separated,
    declared,
    parse_limit_bytes,
    parse_modifier,
    parse_text,
    unlimited_or_at_least,
)
from delosmq.model.virtual_topics import VirtualTopicRule, parse_virtual_topics

LEAST_WEB_SOCKET_FRAME_BYTES: Final = 126
"""Less could not be told apart from a control frame."""


def parse_encoder(text: str) -> bool:
    """Whether text is sent: binary or text."""
    if text.lower() not in ("binary", "text"):
        raise ValueError("binary or text")
    return text.lower() == "text"


@dataclass(frozen=True)
class TlsSettings:
    """How an acceptor speaks TLS. Suites are named as OpenSSL or IANA names them."""

    key_store_path: str = at_restart(
        MISSING,
        "certificate, its chain and key; relative to the directory of broker.xml",
        parse_text,
        written="keyStorePath",
    )
    key_store_type: str = at_restart(
        "PEM",
        "PEM: one file with all; PEMCFG: lines `source.name=file` (Artemis: JKS)",
        parse_text,
        written="keyStoreType",
    )
    key_store_password: str = at_restart("", "of an encrypted key", str, written="keyStorePassword", repr=False)
    need_client_auth: bool = at_restart(
        False, "clients must have a certificate that the trust store vouches for", written="needClientAuth"
    )
    want_client_auth: bool = at_restart(False, "clients are asked for one, and may have none", written="wantClientAuth")
    trust_store_path: str = at_restart(
        "", "certificates of authorities or clients; relative as keyStorePath", parse_text, written="trustStorePath"
    )
    trust_store_type: str = at_restart(
        "PEM", "PEM or PEMCA, which are the same here", parse_text, written="trustStoreType"
    )
    enabled_protocols: tuple[str, ...] = at_restart(
        (), "TLSv1.2, TLSv1.3 or both with a comma", comma_separated, shown="both", written="enabledProtocols"
    )
    enabled_cipher_suites: tuple[str, ...] = at_restart(
        (),
        "by IANA's or OpenSSL's names, separated by commas",
        comma_separated,
        shown="those of OpenSSL",
        written="enabledCipherSuites",
    )
    auto_reload: bool = at_restart(False, "new connections get what is in the files by then", written="sslAutoReload")


@dataclass(frozen=True)
class AcceptorSettings:
    """One ``<acceptor>``: ``tcp://host:port?options``. Beside what each setting declares:

    Attributes:
        options: as written in the URL, undecided by the acceptor's own fields.
        tls: None for plain sockets.
        reply_limit_bytes: replies that wait to be written; with more, a connection is not read.
        virtual_topics: which names of queues mean those of a topic; None is Classic's rule for OpenWire and no rule for
            others.
    """

    name: str
    host: str
    port: int
    protocols: tuple[str, ...]
    anycast_prefixes: tuple[str, ...] = at_restart(
        (),
        "destinations that start so are anycast; it is taken off; several with commas",
        comma_separated,
        written="anycastPrefix",
    )
    multicast_prefixes: tuple[str, ...] = at_restart(
        (), "the same for multicast", comma_separated, written="multicastPrefix"
    )
    connections_allowed: int = at_restart(
        1000,
        "more are refused; -1 for any number (the default of Artemis)",
        unlimited_or_at_least(1),
        written="connectionsAllowed",
    )
    handshake_timeout_s: int = at_restart(10, "time to log in", at_least(1), written="handshake-timeout")
    heart_beat_to_ttl_modifier: float = at_restart(
        2.0, "heart-beat of a STOMP client x this = its TTL", parse_modifier, written="heartBeatToConnectionTtlModifier"
    )
    connection_ttl_ms: int = at_restart(
        60_000,
        "TTL of a STOMP client without heart-beats; -1 for none",
        unlimited_or_at_least(1),
        written="connectionTtl",
    )
    connection_ttl_min_ms: int = at_restart(
        1_000, "least TTL a STOMP client gets", at_least(1), written="connectionTtlMin"
    )
    connection_ttl_max_ms: int = at_restart(
        0, "most TTL a STOMP client gets; 0 for no bound", at_least(0), written="connectionTtlMax"
    )
    stomp_consumer_window_bytes: int = at_restart(
        10_240,
        "bytes in delivery to a subscription; -1 for no limit",
        parse_limit_bytes,
        shown="10240",
        written="stompConsumerWindowSize",
    )
    max_frame_bytes: int = at_restart(
        10 * MIB,
        "largest body of a STOMP frame, on plain TCP too",
        bytes_at_least(1),
        written="stompMaxFramePayloadLength",
    )
    max_head_bytes: int = 64 * 1024
    max_headers: int = 1_000
    max_subscriptions: int = 1_000
    open_wire_max_frame_bytes: int = at_restart(
        100 * MIB,
        "largest OpenWire frame (an option of our own)",
        bytes_at_least(1_024),
        written="openwireMaxFrameSize",
    )
    max_inactivity_duration_ms: int = at_restart(
        30_000, "an OpenWire peer silent for so long is gone; 0 for never", at_least(0), written="maxInactivityDuration"
    )
    max_inactivity_initial_delay_ms: int = at_restart(
        10_000, "the time before that counts", at_least(0), written="maxInactivityDurationInitalDelay"
    )
    so_write_timeout_ms: int = at_restart(
        600_000,
        "a peer that takes nothing for so long while something waits for it is cut off; 0 for never (an "
        "option of Classic, there 0 by default)",
        at_least(0),
        written="soWriteTimeout",
    )
    outbox_limit_bytes: int = at_restart(
        256 * 1024,
        "with so much waiting to be written to a peer, its consumers get no more (Artemis: 128K)",
        bytes_at_least(1),
        written="writeBufferHighWaterMark",
    )
    reply_limit_bytes: int = 1 * MIB
    parked_limit_bytes: int = 1 * MIB
    support_advisory: bool = at_restart(
        True, "OpenWire clients are told of connections, destinations, ...", written="supportAdvisory"
    )
    virtual_topics: tuple[VirtualTopicRule, ...] | None = at_restart(
        None,
        "queues that get what is sent to a topic: `filter;words before its name`, with `%3B` for `;`, several with "
        "commas; STOMP has them only when it is given",
        parse_virtual_topics,
        shown="OpenWire: Consumer.*.VirtualTopic.>;2",
        written="virtualTopicConsumerWildcards",
    )
    tls: TlsSettings | None = None
    web_socket_max_frame_bytes: int = at_restart(
        64 * 1024,
        "largest payload of one WebSocket frame, both ways",
        bytes_at_least(LEAST_WEB_SOCKET_FRAME_BYTES),
        written="webSocketMaxFramePayloadLength",
    )
    web_socket_text: bool = at_restart(
        False,
        "frames sent: binary, or text where the bytes are text",
        parse_encoder,
        shown="binary",
        written="webSocketEncoderType",
    )
    router: str = at_restart("", "the connection router that decides which of its connections stay here", parse_text)
    options: dict[str, str] = field(default_factory=dict)


ACCEPTOR_SETTINGS: Final[dict[str, Setting]] = declared(AcceptorSettings)
TLS_SETTINGS: Final[dict[str, Setting]] = declared(TlsSettings)
"""What is declared, by the name of the field."""
