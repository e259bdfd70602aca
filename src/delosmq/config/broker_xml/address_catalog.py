"""What stands below ``<addresses>``, ``<address-settings>`` and ``<security-settings>``."""

from typing import Final

from delosmq.config.broker_xml.catalog import Table, in_effect, not_yet, not_yet_all, refused, refused_all, table

ADDRESSES: Final[Table] = table([in_effect("address", "one address")])
ADDRESS: Final[Table] = table(
    [
        in_effect("@name", "its name"),
        in_effect("anycast", "it takes anycast; holds `<queue>`"),
        in_effect("multicast", "it takes multicast; holds `<queue>`"),
    ]
)
QUEUES: Final[Table] = table([in_effect("queue", "one queue")])

_NO_GROUPS: Final = "there are no message groups yet"

QUEUE: Final[Table] = table(
    [
        in_effect("@name", "its name, unique in the broker"),
        in_effect("@ring-size", "pending messages kept, the oldest goes first; -1 for all", "default-ring-size"),
        in_effect("@max-consumers", "more are refused; -1 for any number", "default-max-consumers"),
        in_effect("durable", "the queue and its durable messages survive a restart", "true"),
        refused("filter", "messages that it keeps out would get in"),
        refused("@exclusive", "several consumers would share the queue", "false"),
        refused("@last-value", "older values would be kept as well", "false"),
        refused("@last-value-key", "older values would be kept as well"),
        refused("@non-destructive", "what consumers acknowledge would be gone", "false"),
        refused("@purge-on-no-consumers", "messages would be kept without consumers", "false"),
        refused("@enabled", "messages would be routed to it all the same", "true"),
        *not_yet_all("@group-rebalance @group-rebalance-pause-dispatch @group-buckets @group-first-key", _NO_GROUPS),
        *not_yet_all("@consumers-before-dispatch @delay-before-dispatch", "dispatch starts with the first consumer"),
        not_yet("user", "queues have no owner"),
    ]
)
"""Attributes and children of ``<queue>``."""

_IN_EFFECT: Final = [
    in_effect("dead-letter-address", "where messages go whose attempts are used up; without one they are dropped"),
    in_effect("max-delivery-attempts", "-1 or 0 for endless", "10"),
    in_effect("max-size-bytes", "memory of the address; -1 for no limit", "-1", "bytes"),
    in_effect("max-size-messages", "messages of the address in memory; -1 for no limit", "-1"),
    in_effect("address-full-policy", "PAGE (acts as BLOCK until paging exists), BLOCK, FAIL or DROP", "PAGE"),
    in_effect("auto-create-queues", "a send or subscription makes the queue it needs", "true"),
    in_effect("auto-create-addresses", "a send or subscription makes the address it needs", "true"),
    in_effect("default-address-routing-type", "of an address made automatically: ANYCAST or MULTICAST", "MULTICAST"),
    in_effect("default-ring-size", "for queues without a ring-size; -1 for all", "-1"),
    in_effect("default-max-consumers", "for queues without max-consumers; -1 for any number", "-1"),
]

_NO_EXPIRY: Final = "messages don't expire yet"
_NO_PAGING: Final = "nothing pages yet"
_STAYS: Final = "what was made automatically stays"

ADDRESS_SETTING: Final[Table] = table(
    [in_effect("@match", "the addresses it is for: words between dots, `*` one word, `#` any number of words")],
    _IN_EFFECT,
    [
        refused("page-limit-bytes", "stored messages would not be limited; use max-size-bytes", "-1"),
        refused("page-limit-messages", "stored messages would not be limited; use max-size-messages", "-1"),
        refused("max-size-bytes-reject-threshold", "memory would not be limited; use max-size-bytes", "-1"),
        *refused_all("last-value-queue default-last-value-queue", "older values would be kept as well", "false"),
        refused("default-last-value-key", "older values would be kept as well", ""),
        refused("default-non-destructive", "what consumers acknowledge would be gone", "false"),
        refused("default-exclusive-queue", "several consumers would share the queue", "false"),
        refused("default-purge-on-no-consumers", "messages would be kept without consumers", "false"),
        refused("send-to-dla-on-no-route", "messages that no queue takes would be lost", "false"),
        refused(
            "auto-create-dead-letter-resources",
            "without a queue on the dead-letter-address messages would be lost; declare one below <addresses>",
            "false",
        ),
        *refused_all("expiry-delay max-expiry-delay", "messages would never expire", "-1"),
        refused("slow-consumer-policy", "slow consumers would not be closed", "NOTIFY"),
        refused("retroactive-message-count", "new queues would not get earlier messages", "0"),
    ],
    [
        *not_yet_all("dead-letter-queue-prefix dead-letter-queue-suffix", "dead letters keep no queue of their own"),
        *not_yet_all(
            "expiry-address auto-create-expiry-resources expiry-queue-prefix expiry-queue-suffix no-expiry "
            "min-expiry-delay",
            _NO_EXPIRY,
        ),
        *not_yet_all(
            "redelivery-delay redelivery-delay-multiplier redelivery-collision-avoidance-factor max-redelivery-delay",
            "redelivery is at once",
        ),
        *not_yet_all(
            "page-size-bytes page-max-cache-size max-read-page-messages max-read-page-bytes prefetch-page-messages "
            "prefetch-page-bytes page-full-policy",
            _NO_PAGING,
        ),
        not_yet("disk-full-policy", "producers wait"),
        not_yet("default-queue-routing-type", "an automatic queue has the routing type of its address"),
        not_yet("default-consumer-window-size", "STOMP's window is the acceptor's stompConsumerWindowSize"),
        *not_yet_all(
            "default-group-rebalance default-group-rebalance-pause-dispatch default-group-buckets "
            "default-group-first-key",
            _NO_GROUPS,
        ),
        *not_yet_all(
            "default-consumers-before-dispatch default-delay-before-dispatch",
            "dispatch starts with the first consumer",
        ),
        not_yet("redistribution-delay", "there are no clusters yet"),
        *not_yet_all("slow-consumer-threshold slow-consumer-threshold-measurement-unit slow-consumer-check-period"),
        *not_yet_all(
            "auto-delete-queues auto-delete-created-queues auto-delete-queues-delay auto-delete-queues-message-count "
            "auto-delete-queues-skip-usage-check auto-delete-addresses auto-delete-addresses-delay "
            "auto-delete-addresses-skip-usage-check",
            _STAYS,
        ),
        *not_yet_all(
            "auto-create-jms-queues auto-delete-jms-queues auto-create-jms-topics auto-delete-jms-topics",
            "use auto-create-queues and auto-create-addresses",
        ),
        *not_yet_all(
            "config-delete-queues config-delete-addresses config-delete-diverts",
            "what is no longer in broker.xml stays until it is deleted",
        ),
        *not_yet_all(
            "message-counter-history-day-limit management-browse-page-size management-message-attribute-size-limit"
        ),
        not_yet("enable-metrics", "every queue has metrics"),
        not_yet("enable-ingress-timestamp"),
        not_yet("id-cache-size", "duplicates are not detected yet"),
        not_yet("initial-queue-buffer-size", "queues grow as needed"),
    ],
)
"""Attributes and children of ``<address-setting>``."""

ADDRESS_SETTINGS: Final[Table] = table([in_effect("address-setting", "settings of the addresses it matches")])

SECURITY_SETTINGS: Final[Table] = table(
    [
        in_effect("security-setting", "permissions on the addresses it matches"),
        refused("security-setting-plugin", "its permissions would be missing; write them as <security-setting>"),
        refused("role-mapping", "roles would keep their own names; write the mapped role into <permission>"),
    ]
)
SECURITY_SETTING: Final[Table] = table(
    [
        in_effect("@match", "the addresses it is for; the most specific match decides alone"),
        in_effect("permission", "one permission"),
    ]
)
PERMISSION: Final[Table] = table(
    [in_effect("@type", "which permission"), in_effect("@roles", "who holds it, separated by commas")]
)
