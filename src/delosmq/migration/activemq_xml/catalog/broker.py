"""What may stand in ``<broker>`` and in the URI of a ``<transportConnector>``, and what of broker.xml does the same.

Source: activemq-broker, BrokerService and TransportConnector; activemq-client, the transports.
"""

from typing import Final

from delosmq.migration.activemq_xml.catalog.rows import (
    Row,
    Rows,
    impossible,
    impossible_all,
    needless_all,
    number,
    rows,
    size,
)
from delosmq.model import values

_OUTSIDE: Final = "whatever runs the broker decides it"
_HTTP: Final = "management is by HTTP"
_OWN_LOOP: Final = "one loop does all work"
_OWN_FILES: Final = "everything lies in the instance directory"

BROKER: Final[Rows] = rows(
    [
        Row("brokerName", "is the name of the broker", "name", str),
        Row("persistent", "keeps messages on the disk", "persistence-enabled"),
        Row(
            "populateJMSXUserID", "stamps each message with its sender", "populate-validated-user", harmless=("false",)
        ),
        Row(
            "useAuthenticatedPrincipalForJMSXUserID",
            "stamps each message with its sender",
            "populate-validated-user",
            harmless=("false",),
        ),
    ],
    needless_all(
        "useJmx enableStatistics populateUserNameInMBeans mbeanInvocationTimeout advancedStatisticsEnabled "
        "brokerObjectName adminView",
        _HTTP,
    ),
    needless_all(
        "dataDirectory dataDirectoryFile schedulerDirectory schedulerDirectoryFile tmpDataDirectory", _OWN_FILES
    ),
    needless_all(
        "useShutdownHook useLoggingForShutdownErrors systemExitOnShutdown systemExitOnShutdownExitCode forceStart "
        "startAsync restartAllowed networkConnectorStartAsync start stopGracefully id",
        _OUTSIDE,
    ),
    needless_all(
        "persistenceThreadPriority taskRunnerPriority dedicatedTaskRunner virtualThreadTaskRunner "
        "monitorConnectionSplits cacheTempDestinations timeBeforePurgeTempDestinations adjustUsageLimits "
        "splitSystemUsageForProducersConsumers producerSystemUsagePortion consumerSystemUsagePortion "
        "schedulePeriodForDiskUsageCheck diskUsageCheckRegrowThreshold maxPurgedDestinationsPerSweep "
        "storeOpenWireVersion offlineDurableSubscriberTaskSchedule",
        _OWN_LOOP,
    ),
    needless_all("keepDurableSubsActive", "a durable subscription is a queue"),
    needless_all("enableMessageExpirationOnActiveDurableSubs", "expired messages of all queues go by themselves"),
    needless_all(
        "maxInflatedDataSize", "compressed bodies are relayed as they are, and inflated to 10 MiB at most for others"
    ),
    needless_all("useLocalHostBrokerName brokerId vmConnectorURI defaultSocketURIString", "nothing asks for it"),
    needless_all("maxSchedulerRepeatAllowed", "a scheduled message is sent once"),
    needless_all("rollbackOnlyOnAsyncException", "after a failed send its transaction can only be rolled back"),
    [
        impossible(
            "deleteAllMessagesOnStartup",
            "empties the store at each start",
            "remove the data directory of the instance instead",
            "false",
        ),
        impossible("anonymousProducerAdvisorySupport", "sends an advisory about anonymous producers", "", "false"),
        impossible("useVirtualTopics", "decides whether names that begin with VirtualTopic mean something", "", "true"),
        *impossible_all(
            "useVirtualDestSubs useVirtualDestSubsOnCreation",
            "lets networks of brokers see virtual destinations",
            "there are no networks",
            "false",
        ),
        impossible(
            "useMirroredQueues",
            "copies all messages of queues to topics",
            "write a <divert> for each queue that needs it",
            "false",
        ),
        *needless_all("useTempMirroredQueues", "there are no mirrored queues"),
        impossible(
            "offlineDurableSubscriberTimeout",
            "removes durable subscribers that stay away",
            "delete their queues with `delosmq queue delete`",
            "-1",
        ),
        impossible(
            "allowTempAutoCreationOnSend", "lets a send make another client's temporary destination", "", "false"
        ),
        impossible(
            "rejectDurableConsumers", "refuses durable subscribers", "take createDurableQueue away from roles", "false"
        ),
        impossible(
            "maxUncommittedCount", "bounds the size of a transaction", "each transaction has a fixed bound", "0"
        ),
        *impossible_all(
            "shutdownOnMasterFailure shutdownOnSlaveFailure waitForSlave waitForSlaveTimeout passiveSlave",
            "belongs to a pair of master and slave",
            "there are no backups",
            "false",
        ),
        *impossible_all(
            "transportConnectorURIs networkConnectorURIs",
            "names connectors",
            "write them as <transportConnector> and convert again",
        ),
    ],
)
"""Attributes of ``<broker>``, but for those that `converter` reads itself."""

ELEMENTS: Final[Rows] = rows(
    needless_all("managementContext adminConnectionContext", _HTTP),
    needless_all("shutdownHooks", "there is no Spring context to stop"),
    needless_all("ioExceptionHandler", "a failing disk stops the broker; health tells before"),
    needless_all("jobSchedulerStore tempDataStore persistenceFactory", _OWN_FILES),
    needless_all("taskRunnerFactory persistenceTaskRunnerFactory brokerContext", _OWN_LOOP),
    needless_all("producerSystemUsage consumerSystemUsage", "systemUsage holds for both"),
    [
        impossible("proxyConnectors", "relays connections to other brokers", "use a TCP proxy"),
        impossible(
            "messageAuthorizationPolicy",
            "asks a Java class about each message",
            "give permissions to addresses, or filter messages with selectors of queues",
        ),
        impossible("services", "runs Java classes", "run them in an application of their own"),
        impossible("brokerService", "is no part of activemq.xml", ""),
    ],
)
"""Children of ``<broker>`` that are listed as a whole."""

CONNECTOR: Final[Rows] = rows(
    [
        Row("allowLinkStealing", "lets a client take over a client id", "allowLinkStealing", harmless=("false",)),
        *[
            Row(name, "sends clients to other brokers", name, harmless=("false",))
            for name in ("rebalanceClusterClients", "updateClusterClients", "updateClusterClientsOnRemove")
        ],
        *impossible_all(
            "maximumProducersAllowedPerConnection maximumConsumersAllowedPerConnection",
            "bounds what one connection may open",
            "each connection has fixed bounds",
            "2147483647",
        ),
        impossible("discoveryUri", "announces the broker to a network", "name the host and port in clients"),
        impossible("updateClusterFilter", "chooses brokers that clients are sent to", "there are no clusters"),
        Row("autoStart", "opens the connector with the broker", "autoStart"),
    ],
    [impossible("warnOnRemoteClose", "logs clients that leave without closing their connection", "", "false")],
    needless_all("disableAsyncDispatch enableStatusMonitor", _OWN_LOOP),
    needless_all("auditNetworkProducers", "there are no networks"),
    needless_all("displayStackTrace", "there are no stack traces of Java"),
)
"""Attributes of ``<transportConnector>``."""


def seconds(text: str) -> str:
    """Milliseconds, as seconds, at least one."""
    return str(max(1, -(-values.at_least(0)(text) // 1000)))


_FRAME: Final = "bounds the size of a frame"

OPTIONS: Final[Rows] = rows(
    [
        Row("maximumConnections", "bounds the number of connections", "connectionsAllowed", number),
        Row("connectAttemptTimeout", "is the time to log in", "handshake-timeout", seconds),
        Row("maxFrameSize@STOMP", _FRAME, "stompMaxFramePayloadLength", size),
        Row("maxDataLength@STOMP", "bounds the body of a frame", "stompMaxFramePayloadLength", size),
        Row("maxFrameSize@AMQP", _FRAME, "maxFrameSize", size),
        Row("maxFrameSize@MQTT", _FRAME, "maximumPacketSize", size),
        Row("maxFrameSize@OPENWIRE", _FRAME, "openwireMaxFrameSize", size),
        Row(
            "maxInactivityDuration@OPENWIRE",
            "closes silent connections",
            "maxInactivityDuration",
            number,
            harmless=("30000",),
        ),
        Row(
            "maxInactivityDurationInitalDelay@OPENWIRE",
            "waits before it looks for silent connections",
            "maxInactivityDurationInitalDelay",
            number,
            harmless=("10000",),
        ),
        Row("soWriteTimeout", "cuts off peers that do not read", "soWriteTimeout", number),
        Row(
            "hbGracePeriodMultiplier@STOMP",
            "stretches the heart-beat of clients to their TTL",
            "heartBeatToConnectionTtlModifier",
            str,
        ),
        impossible(
            "defaultHeartBeat@STOMP",
            "is the heart-beat of clients that name none",
            "connectionTtl of the acceptor closes silent ones",
            "0,0",
        ),
        Row("producerCredit@AMQP", "is the credit of senders", "amqpCredits", number, harmless=("1000",)),
        Row("idleTimeout@AMQP", "closes silent connections", "amqpIdleTimeout", number, harmless=("30000",)),
        impossible("trace", "logs each command of a connection", "", "false"),
        impossible("transformer@AMQP", "chooses how messages are translated", "it is done when needed", "jms"),
        impossible("subscriptionStrategy@MQTT", "chooses how subscriptions are kept", ""),
        *[
            Row(name, f"asks for {what}", name, str)
            for name, what in (
                ("needClientAuth", "a certificate of the client"),
                ("wantClientAuth", "a certificate of the client, or none"),
                ("enabledProtocols", "versions of TLS"),
                ("enabledCipherSuites", "suites of TLS"),
            )
        ],
    ],
    needless_all("startLogging dynamicManagement jmxPort logWriterName", "it is about trace"),
    needless_all(
        "socketBufferSize soTimeout soLinger tcpNoDelay closeAsync backlog daemon threadName stackSize "
        "useQueueForAccept ioBufferSize keepAlive trafficClass useKeepAlive useInactivityMonitor "
        "minmumWireFormatVersion cacheEnabled cacheSize tightEncodingEnabled "
        "sizePrefixDisabled stackTraceEnabled tcpNoDelayEnabled maxFrameSizeEnabled version connectionTimeout "
        "initialReceiveBufferSize selectionKeyCorePoolSize",
        "sockets are asyncio's, and what is on the wire is settled with each client",
    ),
)
"""Options of a connector's URI without ``wireFormat.``, ``transport.`` and ``socket.``; ``@`` names the protocol."""
