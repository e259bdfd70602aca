"""What stands below ``<address-settings>``."""

from typing import Final

from delosmq.config.broker_xml.catalog.table import Item, Table, in_effect, not_yet, not_yet_all, refused, table

_DEAD_AND_LATE: Final = [
    in_effect("dead-letter-address", "where messages go whose attempts are used up; without one they are dropped"),
    in_effect("auto-create-dead-letter-resources", "a queue on it for each address that messages come from", "false"),
    in_effect("dead-letter-queue-prefix", "starts the name of such a queue", "DLQ."),
    in_effect("dead-letter-queue-suffix", "ends the name of such a queue"),
    in_effect("send-to-dla-on-no-route", "so do messages that no queue takes", "false"),
    in_effect("dead-letter-non-durable", "so do messages that are not durable; false drops them (Classic)", "true"),
    in_effect(
        "dead-letter-duplicates",
        "DelosMQ only: false keeps one dead letter of a message, in however many queues it fails or expires",
        "true; false with dispatch-profile classic",
    ),
    in_effect(
        "dead-letter-expiry-delay",
        "DelosMQ only: life of what goes to the dead-letter or the expiry address; -1 for ever",
        "-1",
        "ms",
    ),
    in_effect("max-delivery-attempts", "-1 or 0 for endless", "10"),
    in_effect("redelivery-delay", "how long a returned message waits", "0", "ms"),
    in_effect("redelivery-delay-multiplier", "the delay grows by this factor with each attempt", "1.0"),
    in_effect("redelivery-collision-avoidance-factor", "share of the delay, 0 to 1, that chance adds or takes", "0.0"),
    in_effect("max-redelivery-delay", "most that the delay grows to; -1 for ten times redelivery-delay", "-1", "ms"),
    in_effect("expiry-address", "where messages go that expired; without one they are dropped"),
    in_effect("auto-create-expiry-resources", "a queue on it for each address that messages come from", "false"),
    in_effect("expiry-queue-prefix", "starts the name of such a queue", "EXP."),
    in_effect("expiry-queue-suffix", "ends the name of such a queue"),
    in_effect("expiry-delay", "life of messages without an expiry; -1 leaves it to the next two", "-1", "ms"),
    in_effect(
        "min-expiry-delay",
        "where expiry-delay is -1: least life of a message, and that of one without an expiry; -1 for no bound",
        "-1",
        "ms",
    ),
    in_effect(
        "max-expiry-delay",
        "where expiry-delay is -1: most life of a message, and that of one without an expiry; -1 for no bound",
        "-1",
        "ms",
    ),
    in_effect("no-expiry", "messages never expire, whatever they say", "false"),
]

_LIMITS: Final = [
    in_effect("max-size-bytes", "memory of the address; -1 for no limit", "-1", "bytes"),
    in_effect("max-size-messages", "messages of the address in memory; -1 for no limit", "-1"),
    in_effect("address-full-policy", "PAGE (acts as BLOCK until paging exists), BLOCK, FAIL or DROP", "PAGE"),
    in_effect(
        "block-timeout", "DelosMQ only: a send that waited so long for room fails; -1 waits for ever", "-1", "ms"
    ),
    in_effect(
        "max-addresses",
        "DelosMQ only: no more addresses of this match are made; temporary ones and wildcards don't count",
        "-1",
    ),
    in_effect("id-cache-size", "duplicate ids remembered for the address; 0 for none", "id-cache-size of core"),
    in_effect("retroactive-message-count", "a new queue starts with that many of the last messages", "0"),
]

_MADE_AUTOMATICALLY: Final = [
    in_effect("auto-create-queues", "a send or subscription makes the queue it needs", "true"),
    in_effect("auto-create-addresses", "a send or subscription makes the address it needs", "true"),
    in_effect("auto-delete-queues", "a queue made automatically is deleted when it is unused", "true"),
    in_effect("auto-delete-created-queues", "queues that a client or an operator made are deleted as well", "false"),
    in_effect("auto-delete-queues-delay", "how long it must be unused first", "0", "ms"),
    in_effect(
        "auto-delete-queues-message-count", "a queue with more messages is kept; -1 deletes it with any number", "0"
    ),
    in_effect("auto-delete-queues-skip-usage-check", "it is deleted even if it was never used", "false"),
    in_effect("auto-delete-addresses", "an address made automatically is deleted after its last queue", "true"),
    in_effect("auto-delete-addresses-delay", "how long it must be without queues", "0", "ms"),
    in_effect("auto-delete-addresses-skip-usage-check", "it is deleted even if it never had a queue", "false"),
    in_effect("default-address-routing-type", "of an address made automatically: ANYCAST or MULTICAST", "MULTICAST"),
    in_effect("default-queue-routing-type", "of a queue made automatically, where the protocol says none", "MULTICAST"),
]

_QUEUE_DEFAULTS: Final = [
    in_effect("default-ring-size", "for queues without a ring-size; -1 for all", "-1"),
    in_effect("default-max-consumers", "for queues without max-consumers; -1 for any number", "-1"),
    in_effect("default-exclusive-queue", "for queues without exclusive", "false"),
    in_effect("default-purge-on-no-consumers", "for queues without purge-on-no-consumers", "false"),
    in_effect("default-last-value-queue", "for queues without last-value", "false"),
    in_effect("last-value-queue", "older name of default-last-value-queue", "false"),
    in_effect("default-last-value-key", "for queues without last-value-key; makes them last-value queues"),
    in_effect("default-non-destructive", "for queues without non-destructive", "false"),
    in_effect("default-group-rebalance", "for queues without group-rebalance", "false"),
    in_effect("default-group-rebalance-pause-dispatch", "for queues without group-rebalance-pause-dispatch", "false"),
    in_effect("default-group-buckets", "for queues without group-buckets", "-1"),
    in_effect("default-group-first-key", "for queues without group-first-key"),
    in_effect("default-consumers-before-dispatch", "for queues without consumers-before-dispatch", "0"),
    in_effect("default-delay-before-dispatch", "for queues without delay-before-dispatch", "-1", "ms"),
    in_effect("enable-metrics", "the queues of the address are in the metrics", "true"),
]

_OWN: Final = [
    in_effect("ring-eviction", "DelosMQ only: what a full ring pushes out, head or lowest-priority", "head"),
    in_effect("dispatch-profile", "DelosMQ only: whose habits queues have, artemis or classic", "artemis"),
    in_effect("strict-order-dispatch", "DelosMQ only: the first consumer that isn't full gets the next", "false"),
    in_effect("use-consumer-priority", "DelosMQ only: false hands out without regard to priority", "true"),
    in_effect("all-consumers-exclusive-by-default", "DelosMQ only: each consumer counts as exclusive", "false"),
    in_effect("time-before-dispatch-starts", "DelosMQ only: wait after the first consumer of a queue", "0", "ms"),
    in_effect(
        "prioritized-messages", "DelosMQ only: false keeps the order of arrival, whatever the priorities", "true"
    ),
    in_effect(
        "group-cache-size",
        "DelosMQ only: message groups of a queue whose consumer is remembered; -1 for all",
        "100000; 1024 with dispatch-profile classic",
    ),
    in_effect(
        "persist-delivery-count-before-delivery",
        "DelosMQ only here: a delivery is recorded before the message leaves, so that it counts even after a crash",
        "false",
    ),
    in_effect(
        "allow-temp-destination-stealing",
        "DelosMQ only: every connection may consume from temporary destinations, and not their own alone",
        "false",
    ),
    in_effect("dispatch-policy", "DelosMQ only: priority serves the topic consumers of one first", "simple"),
]

_RECOVERY: Final = [
    in_effect(
        "subscription-recovery-count",
        "DelosMQ only: that many of the last messages are kept for consumer.retroactive; 0 for any number",
        "0",
    ),
    in_effect(
        "subscription-recovery-duration", "DelosMQ only: so are those that are younger; 0 for any age", "0", "ms"
    ),
    in_effect(
        "subscription-recovery-size", "DelosMQ only: so are the last of that many bytes; 0 for any", "0", "bytes"
    ),
    in_effect("subscription-recovery-retained", "DelosMQ only: so is the last one sent with ActiveMQ.Retain", "false"),
    in_effect(
        "always-retroactive",
        "DelosMQ only: true gives what is kept to everybody, false only to consumer.retroactive",
        "true; false for subscription-recovery-*",
    ),
]

_SLOW_CONSUMERS: Final = [
    in_effect(
        "slow-consumer-max-duration",
        "DelosMQ only: an OpenWire consumer is closed that has no room for so long while messages wait; -1 for never",
        "-1",
        "ms",
    ),
    in_effect("slow-consumer-max-count", "DelosMQ only: or that often; -1 for any number", "-1"),
    in_effect(
        "slow-consumer-max-time-since-last-ack",
        "DelosMQ only: or that acknowledges nothing for so long; -1 for never",
        "-1",
        "ms",
    ),
    in_effect("slow-consumer-ignore-idle", "DelosMQ only: unless it has nothing to acknowledge", "true"),
    in_effect("slow-consumer-abort-connection", "DelosMQ only: its connection is closed with it", "false"),
    in_effect("slow-consumer-check-period", "how often is looked which consumers are slow", "5", "s"),
]

_CONSUMERS: Final = [
    in_effect(
        "queue-prefetch",
        "DelosMQ only: prefetch of OpenWire queue consumers that ask for 1000, their client's default; -1 leaves it",
        "-1",
    ),
    in_effect("queue-browser-prefetch", "DelosMQ only: the same for browsers that ask for 500", "-1"),
    in_effect("topic-prefetch", "DelosMQ only: the same for topic consumers, not durable, that ask for 32767", "-1"),
    in_effect(
        "durable-topic-prefetch", "DelosMQ only: the same for durable subscribers that ask for 100 or 1000", "-1"
    ),
    in_effect(
        "use-prefetch-extension",
        "DelosMQ only: false gives OpenWire consumers no more than their prefetch before they acknowledge",
        "true",
    ),
    in_effect(
        "max-browse-page-size",
        "DelosMQ only: most messages that a browser sees; -1 for all",
        "-1",
    ),
    in_effect(
        "pending-message-limit",
        "DelosMQ only: most messages that wait for an OpenWire topic consumer, not durable, beyond its prefetch; -1 "
        "for no limit",
        "-1",
    ),
    in_effect(
        "pending-message-limit-multiplier",
        "DelosMQ only: the same as a multiple of the prefetch; with both the lower one counts",
        "-1.0",
    ),
    in_effect(
        "message-eviction",
        "DelosMQ only: which of them go when there are more, oldest, lowest-priority or unique-property",
        "oldest",
    ),
    in_effect("message-eviction-key", "DelosMQ only: the property of which unique-property keeps the newest message"),
]

_ADVISORIES: Final = [
    in_effect("advisory-for-consumed", "DelosMQ only: advisory for each message that is acknowledged", "false"),
    in_effect("advisory-for-delivery", "DelosMQ only: advisory for each message that is sent to the address", "false"),
    in_effect(
        "advisory-for-discarding-messages",
        "DelosMQ only: advisory for each message that a ring or a full address drops",
        "false",
    ),
    in_effect(
        "advisory-for-fast-producers", "DelosMQ only: advisory for a producer that meets a full address", "false"
    ),
    in_effect(
        "advisory-for-slow-consumers", "DelosMQ only: advisory for a consumer that is full while messages wait", "false"
    ),
    in_effect("advisory-when-full", "DelosMQ only: advisory for each send that meets a full address", "false"),
    in_effect(
        "advisory-if-no-consumers",
        "DelosMQ only: advisory for each non-persistent message without a consumer",
        "false",
    ),
    in_effect("include-body-for-advisory", "DelosMQ only: the message in an advisory keeps its body", "false"),
]

_REFUSED: Final = [
    refused("page-limit-bytes", "stored messages would not be limited; use max-size-bytes", "-1"),
    refused("page-limit-messages", "stored messages would not be limited; use max-size-messages", "-1"),
    refused("max-size-bytes-reject-threshold", "memory would not be limited; use max-size-bytes", "-1"),
    refused("slow-consumer-policy", "slow consumers would not be closed", "NOTIFY"),
]

_NOT_YET: Final[list[Item]] = [
    *not_yet_all(
        "page-size-bytes page-max-cache-size max-read-page-messages max-read-page-bytes prefetch-page-messages "
        "prefetch-page-bytes page-full-policy",
        "nothing pages yet",
    ),
    not_yet("disk-full-policy", "producers wait"),
    not_yet("default-consumer-window-size", "STOMP's window is the acceptor's stompConsumerWindowSize"),
    not_yet("redistribution-delay", "there are no clusters yet"),
    *not_yet_all("slow-consumer-threshold slow-consumer-threshold-measurement-unit"),
    *not_yet_all(
        "auto-create-jms-queues auto-delete-jms-queues auto-create-jms-topics auto-delete-jms-topics",
        "as in Artemis, nothing asks for these any more: use auto-create-queues and its like",
    ),
    *not_yet_all(
        "config-delete-queues config-delete-addresses config-delete-diverts",
        "queues and addresses that are no longer in broker.xml stay until they are deleted; diverts go",
    ),
    *not_yet_all(
        "message-counter-history-day-limit management-browse-page-size management-message-attribute-size-limit"
    ),
    not_yet("enable-ingress-timestamp"),
    not_yet("initial-queue-buffer-size", "queues grow as needed"),
]

ADDRESS_SETTINGS: Final[Table] = table([in_effect("address-setting", "settings of the addresses it matches")])

ADDRESS_SETTING: Final[Table] = table(
    [in_effect("@match", "the addresses it is for: words between dots, `*` one word, `#` any number of words")],
    _DEAD_AND_LATE,
    _LIMITS,
    _MADE_AUTOMATICALLY,
    _QUEUE_DEFAULTS,
    _OWN,
    _RECOVERY,
    _SLOW_CONSUMERS,
    _CONSUMERS,
    _ADVISORIES,
    _REFUSED,
    _NOT_YET,
)
"""Attributes and children of ``<address-setting>``."""
