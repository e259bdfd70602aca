"""What stands below ``<address-settings>``."""

from typing import Final

from delosmq.config.broker_xml.catalog.table import (
    Item,
    Table,
    in_effect,
    in_effect_of,
    not_yet,
    not_yet_all,
    refused,
    table,
)
from delosmq.model.settings import AddressSettings

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
    in_effect_of(AddressSettings),
    _REFUSED,
    _NOT_YET,
)
"""Attributes and children of ``<address-setting>``."""
