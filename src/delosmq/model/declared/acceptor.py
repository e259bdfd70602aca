"""The settings of an acceptor, each declared once: its option in the URL, its parser, its default, and what the manual
says of it.
"""

from dataclasses import dataclass, field
from typing import Final

from delosmq.model.values import (
    MIB,
    Setting,
    at_least,
    at_restart,
    bytes_at_least,
    comma_separated,
    declared,
    parse_boolean,
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

    key_store_path: str = field(
        metadata=at_restart(
            parse_text,
            "certificate, its chain and key; relative to the directory of broker.xml",
            written="keyStorePath",
        )
    )
    key_store_type: str = field(
        default="PEM",
        metadata=at_restart(
            parse_text,
            "PEM: one file with all; PEMCFG: lines `source.name=file` (Artemis: JKS)",
            written="keyStoreType",
        ),
    )
    key_store_password: str = field(
        default="", repr=False, metadata=at_restart(str, "of an encrypted key", written="keyStorePassword")
    )
    need_client_auth: bool = field(
        default=False,
        metadata=at_restart(
            parse_boolean,
            "clients must have a certificate that the trust store vouches for",
            written="needClientAuth",
        ),
    )
    want_client_auth: bool = field(
        default=False,
        metadata=at_restart(parse_boolean, "clients are asked for one, and may have none", written="wantClientAuth"),
    )
    trust_store_path: str = field(
        default="",
        metadata=at_restart(
            parse_text, "certificates of authorities or clients; relative as keyStorePath", written="trustStorePath"
        ),
    )
    trust_store_type: str = field(
        default="PEM",
        metadata=at_restart(parse_text, "PEM or PEMCA, which are the same here", written="trustStoreType"),
    )
    enabled_protocols: tuple[str, ...] = field(
        default=(),
        metadata=at_restart(
            comma_separated, "TLSv1.2, TLSv1.3 or both with a comma", default="both", written="enabledProtocols"
        ),
    )
    enabled_cipher_suites: tuple[str, ...] = field(
        default=(),
        metadata=at_restart(
            comma_separated,
            "by IANA's or OpenSSL's names, separated by commas",
            default="those of OpenSSL",
            written="enabledCipherSuites",
        ),
    )
    auto_reload: bool = field(
        default=False,
        metadata=at_restart(parse_boolean, "new connections get what is in the files by then", written="sslAutoReload"),
    )


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
    anycast_prefixes: tuple[str, ...] = field(
        default=(),
        metadata=at_restart(
            comma_separated,
            "destinations that start so are anycast; it is taken off; several with commas",
            written="anycastPrefix",
        ),
    )
    multicast_prefixes: tuple[str, ...] = field(
        default=(), metadata=at_restart(comma_separated, "the same for multicast", written="multicastPrefix")
    )
    connections_allowed: int = field(
        default=1000,
        metadata=at_restart(
            unlimited_or_at_least(1),
            "more are refused; -1 for any number (the default of Artemis)",
            written="connectionsAllowed",
        ),
    )
    handshake_timeout_s: int = field(
        default=10, metadata=at_restart(at_least(1), "time to log in", unit="s", written="handshake-timeout")
    )
    heart_beat_to_ttl_modifier: float = field(
        default=2.0,
        metadata=at_restart(
            parse_modifier, "heart-beat of a STOMP client x this = its TTL", written="heartBeatToConnectionTtlModifier"
        ),
    )
    connection_ttl_ms: int = field(
        default=60_000,
        metadata=at_restart(
            unlimited_or_at_least(1),
            "TTL of a STOMP client without heart-beats; -1 for none",
            unit="ms",
            written="connectionTtl",
        ),
    )
    connection_ttl_min_ms: int = field(
        default=1_000,
        metadata=at_restart(at_least(1), "least TTL a STOMP client gets", unit="ms", written="connectionTtlMin"),
    )
    connection_ttl_max_ms: int = field(
        default=0,
        metadata=at_restart(
            at_least(0), "most TTL a STOMP client gets; 0 for no bound", unit="ms", written="connectionTtlMax"
        ),
    )
    stomp_consumer_window_bytes: int = field(
        default=10_240,
        metadata=at_restart(
            parse_limit_bytes,
            "bytes in delivery to a subscription; -1 for no limit",
            unit="bytes",
            default="10240",
            written="stompConsumerWindowSize",
        ),
    )
    max_frame_bytes: int = field(
        default=10 * MIB,
        metadata=at_restart(
            bytes_at_least(1),
            "largest body of a STOMP frame, on plain TCP too",
            unit="bytes",
            written="stompMaxFramePayloadLength",
        ),
    )
    max_head_bytes: int = 64 * 1024
    max_headers: int = 1_000
    max_subscriptions: int = 1_000
    open_wire_max_frame_bytes: int = field(
        default=100 * MIB,
        metadata=at_restart(
            bytes_at_least(1_024),
            "largest OpenWire frame (an option of our own)",
            unit="bytes",
            written="openwireMaxFrameSize",
        ),
    )
    max_inactivity_duration_ms: int = field(
        default=30_000,
        metadata=at_restart(
            at_least(0),
            "an OpenWire peer silent for so long is gone; 0 for never",
            unit="ms",
            written="maxInactivityDuration",
        ),
    )
    max_inactivity_initial_delay_ms: int = field(
        default=10_000,
        metadata=at_restart(
            at_least(0), "the time before that counts", unit="ms", written="maxInactivityDurationInitalDelay"
        ),
    )
    so_write_timeout_ms: int = field(
        default=600_000,
        metadata=at_restart(
            at_least(0),
            "a peer whose system takes nothing for so long while something waits for it is cut off; 0 for never (an "
            "option of Classic, there 0 by default)",
            unit="ms",
            written="soWriteTimeout",
        ),
    )
    outbox_limit_bytes: int = field(
        default=256 * 1024,
        metadata=at_restart(
            bytes_at_least(1),
            "with so much waiting to be written to a peer, its consumers get no more (Artemis: 128K)",
            unit="bytes",
            written="writeBufferHighWaterMark",
        ),
    )
    reply_limit_bytes: int = 1 * MIB
    parked_limit_bytes: int = 1 * MIB
    support_advisory: bool = field(
        default=True,
        metadata=at_restart(
            parse_boolean, "OpenWire clients are told of connections, destinations, ...", written="supportAdvisory"
        ),
    )
    virtual_topics: tuple[VirtualTopicRule, ...] | None = field(
        default=None,
        metadata=at_restart(
            parse_virtual_topics,
            "queues that get what is sent to a topic: `filter;words before its name`, with `%3B` for `;`, several with "
            "commas; STOMP has them only when it is given",
            default="OpenWire: Consumer.*.VirtualTopic.>;2",
            written="virtualTopicConsumerWildcards",
        ),
    )
    tls: TlsSettings | None = None
    web_socket_max_frame_bytes: int = field(
        default=64 * 1024,
        metadata=at_restart(
            bytes_at_least(LEAST_WEB_SOCKET_FRAME_BYTES),
            "largest payload of one WebSocket frame, both ways",
            unit="bytes",
            written="webSocketMaxFramePayloadLength",
        ),
    )
    web_socket_text: bool = field(
        default=False,
        metadata=at_restart(
            parse_encoder,
            "frames sent: binary, or text where the bytes are text",
            default="binary",
            written="webSocketEncoderType",
        ),
    )
    options: dict[str, str] = field(default_factory=dict)


ACCEPTOR_SETTINGS: Final[dict[str, Setting]] = declared(AcceptorSettings)
TLS_SETTINGS: Final[dict[str, Setting]] = declared(TlsSettings)
"""What is declared, by the name of the field."""
