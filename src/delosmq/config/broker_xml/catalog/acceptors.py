"""``<acceptor>`` and the options of its URL."""

from typing import Final

from delosmq.config.broker_xml.catalog.table import Table, in_effect, in_effect_of, not_yet_all, refused, table
from delosmq.model.settings import AcceptorSettings, TlsSettings

ACCEPTORS: Final[Table] = table([in_effect("acceptor", "`tcp://host:port?option=value;option=value`")])
ACCEPTOR: Final[Table] = table([in_effect("@name", "its name in logs and metrics", "host:port")])

_PEM_ONLY: Final = "stores are PEM files, read by OpenSSL: they have no alias, no provider and no password of their own"

ACCEPTOR_OPTIONS: Final[Table] = table(
    [
        in_effect("protocols", "which protocols it speaks, separated by commas", "all there are"),
    ],
    in_effect_of(AcceptorSettings),
    [
        in_effect("autoStart", "false leaves the acceptor closed", "true"),
        in_effect("sslEnabled", "true: nothing but TLS, 1.2 or newer; false: no TLS", "false"),
    ],
    in_effect_of(TlsSettings),
    [
        refused("crlPath", "certificates that were revoked would be accepted"),
        refused("sniHost", "clients that ask for other names would be served"),
        refused("verifyHost", "names in certificates of clients are not compared with their addresses", "false"),
        refused("trustAll", "every certificate would let its client in", "false"),
        refused("trustManagerFactoryPlugin", "Java classes can't run here, and what they forbid would be allowed"),
        refused("proxyProtocolEnabled", "the address of the client would be that of the proxy", "false"),
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
            "a masked password is refused: it is easily unmasked",
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
            "defaultMaximumInFlightPublishMessages maximumPacketSize receiveMaximum serverKeepAlive topicAliasMaximum",
            "there is no MQTT yet",
        ),
        *not_yet_all(
            "suppressInternalManagementObjects openWireDestinationCacheSize openwireMaxPacketChunkSize "
            "openwireUseDuplicateDetectionOnFailover rebalanceClusterClients updateClusterClients "
            "updateClusterClientsOnRemove useKeepAlive virtualTopicConsumerLruCacheMax actorThresholdBytes",
            "OpenWire and CORE do without them",
        ),
        *not_yet_all("clusterConnection", "there are no clusters yet"),
    ],
)
"""Options of an acceptor's URL."""
