"""What may stand in a ``<policyEntry>``, and which address-setting does the same.

A row names its address-setting even where DelosMQ lacks it: such a row is listed as left out, and converted as soon as
the address-setting is in effect. Source: activemq-broker, PolicyEntry and beans of region.policy.
"""

from typing import Final

from delosmq.migration.activemq_xml.catalog.rows import (
    Row,
    Rows,
    boolean,
    count,
    credit,
    factor,
    impossible,
    limit,
    needless_all,
    number,
    page,
    queues,
    rows,
    seconds,
    size,
    topics,
)

_OWN_STORE: Final = "it tunes a store, cursors and threads that DelosMQ does not have"

_DISPATCH: Final = [
    queues(
        "strictOrderDispatch",
        "gives everything to the first consumer that isn't full",
        "strict-order-dispatch",
        boolean,
        "false",
    ),
    queues("useConsumerPriority", "obeys the priorities of consumers", "use-consumer-priority", boolean, "true"),
    queues(
        "allConsumersExclusiveByDefault",
        "counts each consumer as exclusive",
        "all-consumers-exclusive-by-default",
        boolean,
        "false",
    ),
    queues("timeBeforeDispatchStarts", "waits after the first consumer", "time-before-dispatch-starts", number, "0"),
    queues(
        "consumersBeforeDispatchStarts",
        "waits for that many consumers",
        "default-consumers-before-dispatch",
        number,
        "0",
    ),
    Row(
        "prioritizedMessages", "decides whether priorities of messages count", "prioritized-messages", boolean, "false"
    ),
    queues(
        "maxBrowsePageSize", "is the most that a browser sees", "max-browse-page-size", page, "400", harmless=("400",)
    ),
    *needless_all("lazyDispatch optimizedDispatch", "dispatch is done in batches, in one loop"),
]

_PREFETCH: Final = [
    *[
        kind(
            name,
            f"is the prefetch of {consumers} that leave theirs at the default",
            to,
            credit,
            default,
            harmless=(default,),
            instead=f"set jms.prefetchPolicy.{name} in the URL of clients",
        )
        for kind, name, to, default, consumers in (
            (queues, "queuePrefetch", "queue-prefetch", "1000", "queue consumers"),
            (queues, "queueBrowserPrefetch", "queue-browser-prefetch", "500", "browsers"),
            (topics, "topicPrefetch", "topic-prefetch", "32767", "topic consumers"),
            (topics, "durableTopicPrefetch", "durable-topic-prefetch", "100", "durable subscribers"),
        )
    ],
    Row(
        "usePrefetchExtension",
        "lets consumers have more than their prefetch while they work",
        "use-prefetch-extension",
        boolean,
        "true",
        harmless=("true",),
    ),
]

_LIMITS: Final = [
    Row(
        "sendFailIfNoSpaceAfterTimeout",
        "fails a send that has waited so long for room",
        "block-timeout",
        page,
        "-1",
        harmless=("-1", "0"),
        instead="sendFailIfNoSpace fails it at once",
    ),
    *needless_all("blockedProducerWarningInterval", "`delosmq explain` and the metrics tell which address is full"),
    Row(
        "maxDestinations",
        "is the most destinations that match",
        "max-addresses",
        limit,
        "-1",
        harmless=("-1",),
        instead="take createAddress away from those who make them",
    ),
    queues(
        "persistJMSRedelivered",
        "writes down that a message was delivered, before it is",
        "persist-delivery-count-before-delivery",
        boolean,
        "false",
        harmless=("false",),
    ),
    *needless_all(
        "allowTempDestinationStealing",
        "in Classic it counts in a policyEntry for tempQueue or tempTopic, where it is converted",
    ),
    impossible("gcWithNetworkConsumers", "ignores consumers of networks of brokers", "there are no networks", "false"),
]

_ADVISORIES: Final = [
    Row(name, f"sends an advisory {when}", to, boolean, "false", harmless=("false",))
    for name, to, when in (
        ("sendAdvisoryIfNoConsumers", "advisory-if-no-consumers", "with each message that has no consumer"),
        ("advisoryForSlowConsumers", "advisory-for-slow-consumers", "about each slow consumer"),
        ("advisoryForFastProducers", "advisory-for-fast-producers", "about each producer that has to wait"),
        ("advisoryForDiscardingMessages", "advisory-for-discarding-messages", "about each discarded message"),
        ("advisoryForDelivery", "advisory-for-delivery", "about each delivery"),
        ("advisoryForConsumed", "advisory-for-consumed", "about each consumed message"),
        ("advisoryForDispatched", "advisory-for-dispatched", "about each message delivered"),
        ("advisoryWhenFull", "advisory-when-full", "when a limit is reached"),
        ("includeBodyForAdvisory", "include-body-for-advisory", "with the body of the message it is about"),
    )
]

_NEEDLESS: Final = [
    *needless_all(
        "maxPageSize maxExpirePageSize useCache minimumMessageSize cursorMemoryHighWaterMark storeUsageHighWaterMark "
        "reduceMemoryFootprint doOptimzeMessageStorage optimizeMessageStoreInFlightLimit enableAudit maxAuditDepth "
        "maxQueueAuditDepth maxProducersToAudit sendDuplicateFromStoreToDLQ",
        _OWN_STORE,
    ),
    *needless_all(
        "useTopicSubscriptionInflightStats advancedNetworkStatisticsEnabled advancedMessageStatisticsEnabled",
        "statistics are at /metrics",
    ),
]

POLICY: Final[Rows] = rows(_DISPATCH, _PREFETCH, _LIMITS, _ADVISORIES, _NEEDLESS)
"""Attributes that stand for themselves. Those that act together are read by `policies`."""

_SLOW: Final = "closes consumers that"
_CONNECTION: Final = "closes the connection of a slow consumer with it"
_SILENT: Final = f"{_SLOW} acknowledge nothing for so long"
_IDLE: Final = "spares those that have nothing to acknowledge"
_PERIOD: Final = "is how often it is looked which consumers are slow"
_RETAINED: Final = "the message that was marked as retained"

_SLOW_CONSUMERS: Final = [
    Row(f"abortSlow{name}", about, f"slow-consumer-{to}", read, default, harmless=harmless)
    for name, to, read, default, harmless, about in (
        ("ConsumerStrategy@maxSlowDuration", "max-duration", page, "-1", (), f"{_SLOW} have no room for so long"),
        ("ConsumerStrategy@maxSlowCount", "max-count", page, "-1", (), f"{_SLOW} have had no room so often"),
        ("ConsumerStrategy@abortConnection", "abort-connection", boolean, "false", ("false",), _CONNECTION),
        ("AckConsumerStrategy@maxTimeSinceLastAck", "max-time-since-last-ack", page, "-1", (), _SILENT),
        ("AckConsumerStrategy@ignoreIdleConsumers", "ignore-idle", boolean, "true", (), _IDLE),
        ("ConsumerStrategy@checkPeriod", "check-period", seconds, "", (), _PERIOD),
    )
]

_RECOVERY: Final = [
    topics(name, f"gives late subscribers that ask for it {what}", f"subscription-recovery-{to}", read, default)
    for name, to, read, default, what in (
        ("subscriptionRecoveryCount", "count", count, "0", "that many of the last messages"),
        ("timedSubscriptionRecoveryPolicy@recoverDuration", "duration", count, "0", "the messages of so many ms"),
        ("fixedSizedSubscriptionRecoveryPolicy@maximumSize", "size", size, "0", "so many bytes of the last messages"),
        ("retainedMessageSubscriptionRecoveryPolicy", "retained", boolean, "false", _RETAINED),
    )
]

CHILDREN: Final[Rows] = rows(
    [
        topics(
            "constantPendingMessageLimitStrategy@limit",
            "is the most that waits for a topic consumer that isn't durable, beyond its prefetch",
            "pending-message-limit",
            limit,
            "-1",
            harmless=("-1",),
            instead="set max-size-bytes for the topics; ring-size on a <queue> keeps the newest messages",
        ),
        topics(
            "prefetchRatePendingMessageLimitStrategy@multiplier",
            "bounds what waits for a topic consumer that isn't durable to a multiple of its prefetch",
            "pending-message-limit-multiplier",
            factor,
            "-1",
            instead="set max-size-bytes for the topics",
        ),
        topics(
            "messageEvictionStrategy",
            "chooses what a slow topic consumer loses",
            "message-eviction",
            str,
            "oldest",
            harmless=("oldest",),
        ),
        topics(
            "uniquePropertyMessageEvictionStrategy@propertyName",
            "names the property of which a slow topic consumer keeps the newest",
            "message-eviction-key",
            str,
        ),
        *_SLOW_CONSUMERS,
        *_RECOVERY,
        topics(
            "priorityDispatchPolicy",
            "serves topic consumers in the order of their priority",
            "dispatch-policy",
            str,
            "simple",
        ),
        queues(
            "cacheSize",
            "is the number of message groups that keep their consumer",
            "group-cache-size",
            page,
            "1024",
            harmless=("1024",),
        ),
        Row(
            "processNonPersistent",
            "decides whether non-persistent messages become dead letters",
            "dead-letter-non-durable",
            boolean,
            "false",
        ),
        Row(
            "deadLetterEnableAudit",
            "decides whether a message can become several dead letters",
            "dead-letter-duplicates",
            lambda text: "false" if boolean(text) == "true" else "true",
            "false",
            harmless=("true",),
        ),
        Row(
            "deadLetterExpiration",
            "is the life of a dead letter",
            "dead-letter-expiry-delay",
            page,
            "-1",
            harmless=("0", "-1"),
            instead="purge the dead-letter queue now and then",
        ),
    ]
)
"""Children, under names of their own where several of them act alike."""


BASELINE: Final[dict[str, str]] = {
    "dispatch-profile": "classic",
    "dead-letter-address": "ActiveMQ.DLQ",
    "expiry-address": "ActiveMQ.DLQ",
    # Of STOMP consumers, as many as Classic's Java client allows: clients of OpenWire count themselves in that profile.
    "max-delivery-attempts": "7",
    "address-full-policy": "BLOCK",
    "prioritized-messages": "false",
    "dead-letter-non-durable": "false",
    "dead-letter-duplicates": "false",
    "auto-create-queues": "true",
    "auto-create-addresses": "true",
    "auto-delete-queues": "false",
    "auto-delete-addresses": "false",
}
"""What Classic does unless a policy says otherwise: written for all addresses, as far as it is in effect."""

DEFAULTS: Final[dict[str, str]] = {
    **{row.to: row.default for row in (*POLICY.values(), *CHILDREN.values()) if row.to and row.default},
    **BASELINE,
    "max-size-bytes": "-1",
    "retroactive-message-count": "0",
    "always-retroactive": "false",
    "default-group-buckets": "-1",
    "auto-delete-queues-delay": "0",
    "auto-delete-addresses-delay": "0",
    "auto-create-dead-letter-resources": "false",
    "auto-create-expiry-resources": "false",
}
"""What an address-setting has to say where a policy leaves Classic's default alone and a wider match doesn't."""
