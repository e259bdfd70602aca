"""The children of ``<core>``."""

from typing import Final

from delosmq.config.broker_xml.catalog.table import (
    Table,
    in_effect,
    in_effect_of,
    not_yet,
    not_yet_all,
    refused,
    refused_all,
    table,
)
from delosmq.model.settings import BrokerSettings, JournalSettings, WildcardSyntax

_IN_EFFECT: Final = [
    *in_effect_of(BrokerSettings),
    in_effect(
        "global-max-size-percent-of-jvm-max-memory",
        "the same as a percentage of the memory of the machine or its control group; there is no JVM",
        "50",
        "%",
    ),
    in_effect("persistence-enabled", "false keeps all messages in memory only", "true"),
    in_effect("journal-directory", "where the journal lies; relative to the instance directory", "data/journal"),
    *in_effect_of(JournalSettings),
    in_effect("store", "holds `<database-store>` or `<file-store>`"),
    in_effect("id-cache-size", "duplicate ids remembered for each address; 0 for none", "20000"),
    in_effect("wild-card-routing-enabled", "older form of `<routing-enabled>` below", "true"),
    in_effect("wildcard-addresses", "holds the letters of wildcards"),
    in_effect(
        "connectors",
        "holds `<connector>`: where other brokers are, for pools of connection routers, and where this one is",
    ),
    in_effect("connection-routers", "holds `<connection-router>`: which connections stay here"),
    in_effect("acceptors", "holds `<acceptor>`: where to listen"),
    in_effect("addresses", "holds `<address>`: addresses and queues made at start"),
    in_effect("address-settings", "holds `<address-setting>`"),
    in_effect("diverts", "holds `<divert>`"),
    in_effect("broadcast-groups", "holds `<broadcast-group>`: announces this broker to others by UDP"),
    in_effect("discovery-groups", "holds `<discovery-group>`: finds brokers that announce themselves"),
    in_effect("ha-policy", "whether another broker shares the store, and which of the two this is"),
    in_effect("security-enabled", "a login is always required, and the start says so if this is false", "true"),
    in_effect("security-settings", "holds `<security-setting>`; without any, no user may do anything"),
]

_JOURNAL: Final = [
    not_yet("journal-type", "one journal, synced by fdatasync"),
    *not_yet_all(
        "journal-datasync journal-sync-transactional journal-sync-non-transactional large-message-sync",
        "what is confirmed is always synced first",
    ),
    *not_yet_all(
        "journal-min-files journal-pool-files",
        "segments are recycled as they become free",
    ),
    *not_yet_all(
        "journal-buffer-timeout journal-buffer-size journal-max-io journal-device-block-size journal-file-open-timeout",
        "syncs are grouped by what waits for them",
    ),
    *not_yet_all("create-journal-dir create-bindings-dir", "missing directories are made"),
    *not_yet_all(
        "bindings-directory node-manager-lock-directory", "queues are kept in the journal, and its lock lies beside it"
    ),
    *not_yet_all("paging-directory large-messages-directory", "nothing pages yet; bodies are kept in the journal"),
    *not_yet_all("purge-page-folders page-max-concurrent-io read-whole-page page-sync-timeout", "nothing pages yet"),
    *not_yet_all("log-journal-write-rate journal-lock-acquisition-timeout"),
    not_yet("max-redelivery-records", "counts are recorded when a message returns"),
    refused(
        "persist-delivery-count-before-delivery",
        "counts are recorded when a message returns; set it in the address-settings that are to do so",
        "false",
    ),
    refused("journal-retention-directory", "no history of messages would be kept"),
]

_MEMORY_AND_DISK: Final = [
    refused("global-max-messages", "the number of messages would not be limited; use global-max-size", "-1"),
    *not_yet_all(
        "max-disk-usage min-disk-free disk-scan-period",
        "the journal keeps a reserve: when the disk is full, producers wait and consumers go on",
    ),
    *not_yet_all("memory-warning-threshold memory-measure-interval server-dump-interval"),
    not_yet("critical-analyzer", "a failing sync stops the broker"),
    *not_yet_all(
        "critical-analyzer-timeout critical-analyzer-check-period critical-analyzer-policy",
        "a failing sync stops the broker",
    ),
]

_SECURITY: Final = [
    *not_yet_all(
        "security-invalidation-interval authentication-cache-size authorization-cache-size",
        "what was verified is forgotten when users, roles or permissions change",
    ),
    *refused_all(
        "remoting-incoming-interceptors remoting-outgoing-interceptors broker-plugins",
        "Java classes can't run here, and what they would forbid would be allowed",
    ),
    refused("literal-match-markers", "matches of security-settings would stand for other addresses"),
    *not_yet_all("populate-validated-user reject-empty-validated-user", "the broker knows the user of every message"),
    *not_yet_all("mask-password password-codec", "passwords are argon2id or Artemis's one-way ENC(...)"),
    refused("resource-limit-settings", "users would not be limited"),
]

_ELSEWHERE: Final = [
    *refused_all("bridges federations broker-connections", "messages would not get there; remove it"),
    refused("cluster-connections", "there would be no cluster; remove it"),
    refused("queues", "this deprecated form is not read; declare the queues below <addresses>"),
    not_yet(
        "grouping-handler",
        "there are no clusters yet",
        "type address timeout group-timeout reaper-period",
    ),
    not_yet("connector-services", "Java classes can't run here", "connector-service"),
    *not_yet_all(
        "network-check-list network-check-URL-list network-check-period network-check-timeout network-check-NIC "
        "network-check-ping-command network-check-ping6-command",
        "the lock of the shared store says which broker is active, and no vote",
    ),
    *not_yet_all(
        "mirror-ack-manager-queue-attempts mirror-ack-manager-page-attempts mirror-ack-manager-retry-delay "
        "mirror-ack-manager-warn-unacked mirror-page-transaction",
        "there are no mirrors yet",
    ),
]

_REST: Final = [
    not_yet("message-expiry-thread-priority", "one loop does all work"),
    *not_yet_all(
        "mqtt-session-scan-interval mqtt-session-state-persistence-timeout mqtt-subscription-persistence-enabled",
        "there is no MQTT yet",
    ),
    *not_yet_all("amqp-use-core-subscription-naming", "there is no AMQP yet"),
    *not_yet_all("management-notification-address suppress-session-notifications", "nothing sends notifications yet"),
    *not_yet_all("jmx-management-enabled jmx-domain jmx-use-broker-name", "management is by HTTP"),
    *not_yet_all("message-counter-enabled message-counter-sample-period message-counter-max-day-history"),
    not_yet("metrics-plugin", "metrics are at /metrics", "property"),
    not_yet(
        "metrics",
        "metrics are at /metrics",
        "jvm-memory jvm-threads jvm-gc netty-pool file-descriptors processor uptime logging security-caches "
        "executor-services plugin",
    ),
    *not_yet_all("scheduled-thread-pool-max-size thread-pool-max-size", "one loop and a small pool do all work"),
    *not_yet_all("graceful-shutdown-enabled graceful-shutdown-timeout", "a stop drains for a bounded time"),
    not_yet("configuration-file-refresh-period", "changes take effect at SIGHUP or at the next start"),
    *not_yet_all("uuid-namespace internal-naming-prefix system-property-prefix"),
    *not_yet_all("resolve-protocols async-connection-execution-enabled log-delegate-factory-class-name"),
]

CORE: Final[Table] = table(_IN_EFFECT, _JOURNAL, _MEMORY_AND_DISK, _SECURITY, _ELSEWHERE, _REST)
"""Below ``<core>``."""

WILDCARD_ADDRESSES: Final[Table] = table(in_effect_of(WildcardSyntax))
"""Below ``<wildcard-addresses>``."""
