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
    rows,
    seconds,
    size,
)

_OWN_STORE: Final = "it tunes a store, cursors and threads that DelosMQ does not have"

_DISPATCH: Final = [
    Row(
        "strictOrderDispatch",
        "gives everything to the first consumer that isn't full",
        to="strict-order-dispatch",
        default="false",
        queues_only=True,
    ),
    Row(
        "useConsumerPriority",
        "obeys the priorities of consumers",
        to="use-consumer-priority",
        default="true",
        queues_only=True,
    ),
    Row(
        "allConsumersExclusiveByDefault",
        "counts each consumer as exclusive",
        to="all-consumers-exclusive-by-default",
        default="false",
        queues_only=True,
    ),
    Row(
        "timeBeforeDispatchStarts",
        "waits after the first consumer",
        to="time-before-dispatch-starts",
        read=number,
        default="0",
        queues_only=True,
    ),
    Row(
        "consumersBeforeDispatchStarts",
        "waits for that many consumers",
        to="default-consumers-before-dispatch",
        read=number,
        default="0",
        queues_only=True,
    ),
    Row(
        "prioritizedMessages",
        "decides whether priorities of messages count",
        to="prioritized-messages",
        default="false",
    ),
    Row(
        "maxBrowsePageSize",
        "is the most that a browser sees",
        to="max-browse-page-size",
        read=page,
        default="400",
        harmless=("400",),
        queues_only=True,
    ),
    *needless_all("lazyDispatch optimizedDispatch", "dispatch is done in batches, in one loop"),
]

_PREFETCH: Final = [
    Row(
        "queuePrefetch",
        "is the prefetch of queue consumers that leave theirs at the default",
        to="queue-prefetch",
        read=credit,
        default="1000",
        harmless=("1000",),
        instead="set jms.prefetchPolicy.queuePrefetch in the URL of clients",
        queues_only=True,
    ),
    Row(
        "queueBrowserPrefetch",
        "is the prefetch of browsers that leave theirs at the default",
        to="queue-browser-prefetch",
        read=credit,
        default="500",
        harmless=("500",),
        instead="set jms.prefetchPolicy.queueBrowserPrefetch in the URL of clients",
        queues_only=True,
    ),
    Row(
        "topicPrefetch",
        "is the prefetch of topic consumers that leave theirs at the default",
        to="topic-prefetch",
        read=credit,
        default="32767",
        harmless=("32767",),
        instead="set jms.prefetchPolicy.topicPrefetch in the URL of clients",
        topics_only=True,
    ),
    Row(
        "durableTopicPrefetch",
        "is the prefetch of durable subscribers that leave theirs at the default",
        to="durable-topic-prefetch",
        read=credit,
        default="100",
        harmless=("100",),
        instead="set jms.prefetchPolicy.durableTopicPrefetch in the URL of clients",
        topics_only=True,
    ),
    Row(
        "usePrefetchExtension",
        "lets consumers have more than their prefetch while they work",
        to="use-prefetch-extension",
        default="true",
        harmless=("true",),
    ),
]

_LIMITS: Final = [
    Row(
        "sendFailIfNoSpaceAfterTimeout",
        "fails a send that has waited so long for room",
        to="block-timeout",
        read=page,
        default="-1",
        harmless=("-1", "0"),
        instead="sendFailIfNoSpace fails it at once",
    ),
    *needless_all("blockedProducerWarningInterval", "`delosmq explain` and the metrics tell which address is full"),
    Row(
        "maxDestinations",
        "is the most destinations that match",
        to="max-addresses",
        read=limit,
        default="-1",
        harmless=("-1",),
        instead="take createAddress away from those who make them",
    ),
    Row(
        "persistJMSRedelivered",
        "writes down that a message was delivered, before it is",
        to="persist-delivery-count-before-delivery",
        default="false",
        harmless=("false",),
        queues_only=True,
    ),
    Row(
        "allowTempDestinationStealing",
        needless="in Classic it counts in a policyEntry for tempQueue or tempTopic, where it is converted",
    ),
    impossible("gcWithNetworkConsumers", "ignores consumers of networks of brokers", "there are no networks", "false"),
]

_ADVISORIES: Final = [
    Row(name, f"sends an advisory {when}", to=to, default="false", harmless=("false",))
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

_LATE_SUBSCRIBERS: Final = "gives late subscribers that ask for it"
_SLOW: Final = "closes consumers that"

CHILDREN: Final[Rows] = rows(
    [
        Row(
            "constantPendingMessageLimitStrategy@limit",
            "is the most that waits for a topic consumer that isn't durable, beyond its prefetch",
            to="pending-message-limit",
            read=limit,
            default="-1",
            harmless=("-1",),
            instead="set max-size-bytes for the topics; ring-size on a <queue> keeps the newest messages",
            topics_only=True,
        ),
        Row(
            "prefetchRatePendingMessageLimitStrategy@multiplier",
            "bounds what waits for a topic consumer that isn't durable to a multiple of its prefetch",
            to="pending-message-limit-multiplier",
            read=factor,
            default="-1",
            instead="set max-size-bytes for the topics",
            topics_only=True,
        ),
        Row(
            "messageEvictionStrategy",
            "chooses what a slow topic consumer loses",
            to="message-eviction",
            read=str,
            default="oldest",
            harmless=("oldest",),
            topics_only=True,
        ),
        Row(
            "uniquePropertyMessageEvictionStrategy@propertyName",
            "names the property of which a slow topic consumer keeps the newest",
            to="message-eviction-key",
            read=str,
            topics_only=True,
        ),
        Row(
            "abortSlowConsumerStrategy@maxSlowDuration",
            f"{_SLOW} have no room for so long",
            to="slow-consumer-max-duration",
            read=page,
            default="-1",
        ),
        Row(
            "abortSlowConsumerStrategy@maxSlowCount",
            f"{_SLOW} have had no room so often",
            to="slow-consumer-max-count",
            read=page,
            default="-1",
        ),
        Row(
            "abortSlowConsumerStrategy@abortConnection",
            "closes the connection of a slow consumer with it",
            to="slow-consumer-abort-connection",
            default="false",
            harmless=("false",),
        ),
        Row(
            "abortSlowAckConsumerStrategy@maxTimeSinceLastAck",
            f"{_SLOW} acknowledge nothing for so long",
            to="slow-consumer-max-time-since-last-ack",
            read=page,
            default="-1",
        ),
        Row(
            "abortSlowAckConsumerStrategy@ignoreIdleConsumers",
            "spares those that have nothing to acknowledge",
            to="slow-consumer-ignore-idle",
            default="true",
        ),
        Row(
            "abortSlowConsumerStrategy@checkPeriod",
            "is how often it is looked which consumers are slow",
            to="slow-consumer-check-period",
            read=seconds,
        ),
        Row(
            "subscriptionRecoveryCount",
            f"{_LATE_SUBSCRIBERS} that many of the last messages",
            to="subscription-recovery-count",
            read=count,
            default="0",
            topics_only=True,
        ),
        Row(
            "timedSubscriptionRecoveryPolicy@recoverDuration",
            f"{_LATE_SUBSCRIBERS} the messages of so many ms",
            to="subscription-recovery-duration",
            read=count,
            default="0",
            topics_only=True,
        ),
        Row(
            "fixedSizedSubscriptionRecoveryPolicy@maximumSize",
            f"{_LATE_SUBSCRIBERS} so many bytes of the last messages",
            to="subscription-recovery-size",
            read=size,
            default="0",
            topics_only=True,
        ),
        Row(
            "retainedMessageSubscriptionRecoveryPolicy",
            f"{_LATE_SUBSCRIBERS} the message that was marked as retained",
            to="subscription-recovery-retained",
            default="false",
            topics_only=True,
        ),
        Row(
            "priorityDispatchPolicy",
            "serves topic consumers in the order of their priority",
            to="dispatch-policy",
            read=str,
            default="simple",
            topics_only=True,
        ),
        Row(
            "cacheSize",
            "is the number of message groups whose consumer is remembered",
            to="group-cache-size",
            read=page,
            default="1024",
            harmless=("1024",),
            queues_only=True,
        ),
        Row(
            "processNonPersistent",
            "decides whether non-persistent messages become dead letters",
            to="dead-letter-non-durable",
            default="false",
        ),
        Row(
            "deadLetterEnableAudit",
            "decides whether a message can become several dead letters",
            to="dead-letter-duplicates",
            read=lambda text: "false" if boolean(text) == "true" else "true",
            default="false",
            harmless=("true",),
        ),
        Row(
            "deadLetterExpiration",
            "is the life of a dead letter",
            to="dead-letter-expiry-delay",
            read=page,
            default="-1",
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
