"""``<acceptor>`` and the options of its URL."""

from typing import Final

from delosmq.config.broker_xml.catalog import Table, in_effect, not_yet_all, refused, refused_all, table

ACCEPTORS: Final[Table] = table([in_effect("acceptor", "`tcp://host:port?option=value;option=value`")])
ACCEPTOR: Final[Table] = table([in_effect("@name", "its name in logs and metrics", "host:port")])

SERVED_PROTOCOLS: Final = ("STOMP",)
LATER_PROTOCOLS: Final = ("AMQP", "CORE", "HORNETQ", "MQTT", "OPENWIRE")

_NO_TLS: Final = "there is no TLS yet"
_NO_WEB_SOCKETS: Final = "there are no WebSockets yet"

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
        in_effect("autoStart", "false leaves the acceptor closed", "true"),
    ],
    [
        refused("sslEnabled", "there is no TLS yet and the connection would be in the clear", "false"),
        *refused_all("needClientAuth wantClientAuth", _NO_TLS, "false"),
        refused("proxyProtocolEnabled", "the address of the client would be that of the proxy", "false"),
        refused("router", "connections would not be routed or refused"),
        refused("securityDomain", "there is one set of users and roles"),
    ],
    [
        *not_yet_all(
            "sslAutoReload keyStoreProvider keyStoreType keyStorePath keyStorePassword keyStoreAlias "
            "trustStoreProvider trustStoreType trustStorePath trustStorePassword crlPath enabledCipherSuites "
            "enabledProtocols verifyHost sniHost sslProvider trustManagerFactoryPlugin sslContext "
            "useDefaultSslContext trustAll forceSSLParameters activemq.passwordcodec activemq.usemaskedpassword "
            "passwordCodec maskPassword",
            _NO_TLS,
        ),
        *not_yet_all(
            "tcpNoDelay tcpSendBufferSize tcpReceiveBufferSize writeBufferLowWaterMark writeBufferHighWaterMark "
            "backlog useNio useEpoll useKQueue useInvm nioRemotingThreads remotingThreads useNioGlobalWorkerPool "
            "useGlobalWorkerPool batchDelay directDeliver quietPeriod shutdownTimeout",
            "sockets are asyncio's",
        ),
        *not_yet_all(
            "webSocketMaxFramePayloadLength webSocketEncoderType webSocketCompressionSupported httpEnabled "
            "httpResponseTime httpServerScanPeriod httpUpgradeEnabled httpUpgradeEndpoint",
            _NO_WEB_SOCKETS,
        ),
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
            "supportAdvisory suppressInternalManagementObjects maxInactivityDuration maxInactivityDurationInitalDelay "
            "openWireDestinationCacheSize openwireMaxPacketChunkSize openwireUseDuplicateDetectionOnFailover "
            "rebalanceClusterClients updateClusterClients updateClusterClientsOnRemove useKeepAlive "
            "virtualTopicConsumerLruCacheMax virtualTopicConsumerWildcards actorThresholdBytes",
            "there is no OpenWire and no CORE yet",
        ),
        *not_yet_all("clusterConnection", "there are no clusters yet"),
    ],
)
"""Options of an acceptor's URL."""
