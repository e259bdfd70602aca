"""``<acceptor>`` and the options of its URL."""

from typing import Final

from delosmq.config.broker_xml.catalog.table import Table, in_effect, not_yet_all, refused, table

ACCEPTORS: Final[Table] = table([in_effect("acceptor", "`tcp://host:port?option=value;option=value`")])
ACCEPTOR: Final[Table] = table([in_effect("@name", "its name in logs and metrics", "host:port")])

SERVED_PROTOCOLS: Final = ("STOMP", "OPENWIRE")
LATER_PROTOCOLS: Final = ("AMQP", "CORE", "HORNETQ", "MQTT")

_PEM_ONLY: Final = "stores are PEM files, read by OpenSSL: they have no alias, no provider and no password of their own"

ACCEPTOR_OPTIONS: Final[Table] = table(
    [
        in_effect("protocols", "which protocols it speaks, separated by commas", "all there are"),
        in_effect("anycastPrefix", "destinations that start so are anycast; it is taken off; several with commas"),
        in_effect("multicastPrefix", "the same for multicast"),
        in_effect("connectionsAllowed", "more are refused; -1 for any number (the default of Artemis)", "1000"),
        in_effect("handshake-timeout", "time to log in", "10", "s"),
        in_effect("heartBeatToConnectionTtlModifier", "heart-beat of a STOMP client x this = its TTL", "2.0"),
        in_effect("connectionTtl", "TTL of a STOMP client without heart-beats; -1 for none", "60000", "ms"),
        in_effect("connectionTtlMin", "least TTL a STOMP client gets", "1000", "ms"),
        in_effect("connectionTtlMax", "most TTL a STOMP client gets; 0 for no bound", "0", "ms"),
        in_effect("stompConsumerWindowSize", "bytes in delivery to a subscription; -1 for no limit", "10240", "bytes"),
        in_effect("stompMaxFramePayloadLength", "largest body of a STOMP frame, on plain TCP too", "10M", "bytes"),
        in_effect("openwireMaxFrameSize", "largest OpenWire frame (an option of our own)", "100M", "bytes"),
        in_effect("maxInactivityDuration", "an OpenWire peer silent for so long is gone; 0 for never", "30000", "ms"),
        in_effect("maxInactivityDurationInitalDelay", "the time before that counts", "10000", "ms"),
        in_effect(
            "soWriteTimeout",
            "a peer whose system takes nothing for so long while something waits for it is cut off; 0 for never (an "
            "option of Classic, there 0 by default)",
            "600000",
            "ms",
        ),
        in_effect(
            "writeBufferHighWaterMark",
            "with so much waiting to be written to a peer, its consumers get no more (Artemis: 128K)",
            "256K",
            "bytes",
        ),
        in_effect("supportAdvisory", "OpenWire clients are told of connections, destinations, ...", "true"),
        in_effect(
            "virtualTopicConsumerWildcards",
            "queues that get what is sent to a topic: `filter;words before its name`, with `%3B` for `;`, several with "
            "commas; STOMP has them only when it is given",
            "OpenWire: Consumer.*.VirtualTopic.>;2",
        ),
        in_effect("autoStart", "false leaves the acceptor closed", "true"),
        in_effect("sslEnabled", "true: nothing but TLS, 1.2 or newer; false: no TLS", "false"),
        in_effect("keyStorePath", "certificate, its chain and key; relative to the directory of broker.xml"),
        in_effect("keyStoreType", "PEM: one file with all; PEMCFG: lines `source.name=file` (Artemis: JKS)", "PEM"),
        in_effect("keyStorePassword", "of an encrypted key"),
        in_effect("needClientAuth", "clients must have a certificate that the trust store vouches for", "false"),
        in_effect("wantClientAuth", "clients are asked for one, and may have none", "false"),
        in_effect("trustStorePath", "certificates of authorities or clients; relative as keyStorePath"),
        in_effect("trustStoreType", "PEM or PEMCA, which are the same here", "PEM"),
        in_effect("enabledProtocols", "TLSv1.2, TLSv1.3 or both with a comma", "both"),
        in_effect("enabledCipherSuites", "by IANA's or OpenSSL's names, separated by commas", "those of OpenSSL"),
        in_effect("sslAutoReload", "new connections get what is in the files by then", "false"),
        in_effect(
            "webSocketMaxFramePayloadLength", "largest payload of one WebSocket frame, both ways", "64K", "bytes"
        ),
        in_effect("webSocketEncoderType", "frames sent: binary, or text where the bytes are text", "binary"),
    ],
    [
        refused("crlPath", "certificates that were revoked would be accepted"),
        refused("sniHost", "clients that ask for other names would be served"),
        refused("verifyHost", "names in certificates of clients are not compared with their addresses", "false"),
        refused("trustAll", "every certificate would let its client in", "false"),
        refused("trustManagerFactoryPlugin", "Java classes can't run here, and what they forbid would be allowed"),
        refused("proxyProtocolEnabled", "the address of the client would be that of the proxy", "false"),
        refused("router", "connections would not be routed or refused"),
        refused("securityDomain", "there is one set of users and roles"),
    ],
    [
        *not_yet_all(
            "keyStoreProvider keyStoreAlias trustStoreProvider trustStorePassword sslProvider sslContext "
            "useDefaultSslContext forceSSLParameters",
            _PEM_ONLY,
        ),
        *not_yet_all(
            "activemq.passwordcodec activemq.usemaskedpassword passwordCodec maskPassword",
            "a masked password is refused: anybody can undo it",
        ),
        *not_yet_all(
            "tcpNoDelay tcpSendBufferSize tcpReceiveBufferSize writeBufferLowWaterMark "
            "backlog useNio useEpoll useKQueue useInvm nioRemotingThreads remotingThreads useNioGlobalWorkerPool "
            "useGlobalWorkerPool batchDelay directDeliver quietPeriod shutdownTimeout",
            "sockets are asyncio's",
        ),
        *not_yet_all(
            "httpEnabled httpResponseTime httpServerScanPeriod httpUpgradeEnabled httpUpgradeEndpoint",
            "HTTP carries WebSockets only",
        ),
        *not_yet_all("webSocketCompressionSupported", "WebSocket frames are not compressed"),
        *not_yet_all(
            "stompConsumerCredits stompEnableMessageId stomp-enable-message-id stompMinLargeMessageSize "
            "stomp-min-large-message-size disableStompServerHeader"
        ),
        *not_yet_all(
            "amqpCredits amqpLowCredits amqpDuplicateDetection amqpMinLargeMessageSize amqpIdleTimeout "
            "amqpDrainOnTransientDeliveryErrors amqpLinkQuiesceTimeout amqpTreatRejectAsUnmodifiedDeliveryFailed "
            "amqpUseModifiedForTransientDeliveryErrors initialRemoteMaxFrameSize maxFrameSize saslMechanisms "
            "saslLoginConfigScope pubSubPrefix ackManagerFlushTimeout mirrorMaxPendingAcks",
            "there is no AMQP yet",
        ),
        *not_yet_all(
            "allowLinkStealing closeMqttConnectionOnPublishAuthorizationFailure defaultMqttSessionExpiryInterval "
            "defaultMaximumInFlightPublishMessages maximumPacketSize receiveMaximum serverKeepAlive "
            "topicAliasMaximum",
            "there is no MQTT yet",
        ),
        *not_yet_all(
            "suppressInternalManagementObjects openWireDestinationCacheSize openwireMaxPacketChunkSize "
            "openwireUseDuplicateDetectionOnFailover rebalanceClusterClients updateClusterClients "
            "updateClusterClientsOnRemove useKeepAlive virtualTopicConsumerLruCacheMax "
            "actorThresholdBytes",
            "OpenWire does without them, and there is no CORE yet",
        ),
        *not_yet_all("clusterConnection", "there are no clusters yet"),
    ],
)
"""Options of an acceptor's URL."""
