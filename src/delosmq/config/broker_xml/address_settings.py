"""``<address-settings>``."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from delosmq.config import values
from delosmq.config.broker_xml.catalog.address_settings import ADDRESS_SETTING, ADDRESS_SETTINGS
from delosmq.config.broker_xml.combinations import Traits, check_traits
from delosmq.config.broker_xml.reader import Reader
from delosmq.config.broker_xml.wildcards import check_match
from delosmq.config.findings import CONTRADICTION, TWICE, WITHOUT_EFFECT_HERE
from delosmq.config.xml_document import XmlElement
from delosmq.model.settings import (
    UNLIMITED,
    AddressFullPolicy,
    AddressMatch,
    DispatchPolicy,
    DispatchProfile,
    MessageEviction,
    RingEviction,
    WildcardSyntax,
)

_COUNT: Final = values.at_least(0)
_MILLISECONDS: Final = values.at_least(0)
_DELAY_OR_NONE: Final = values.unlimited_or_at_least(0, "none")
_LIMIT: Final = values.unlimited_or_at_least(0)
_PREFETCH: Final = values.unlimited_or_at_least(0, "what the consumer asks for", most=values.MOST_CREDIT)

SETTING_PARSERS: Final[Mapping[str, Callable[[str], object]]] = {
    "dead-letter-address": str,
    "auto-create-dead-letter-resources": values.parse_boolean,
    "dead-letter-queue-prefix": str,
    "dead-letter-queue-suffix": str,
    "send-to-dla-on-no-route": values.parse_boolean,
    "dead-letter-non-durable": values.parse_boolean,
    "dead-letter-duplicates": values.parse_boolean,
    "dead-letter-expiry-delay": values.unlimited_or_at_least(1, "for ever"),
    "max-delivery-attempts": values.parse_attempts,
    "redelivery-delay": _MILLISECONDS,
    "redelivery-delay-multiplier": values.parse_multiplier,
    "redelivery-collision-avoidance-factor": values.parse_share,
    "max-redelivery-delay": values.unlimited_or_at_least(0, "ten times redelivery-delay"),
    "expiry-address": str,
    "auto-create-expiry-resources": values.parse_boolean,
    "expiry-queue-prefix": str,
    "expiry-queue-suffix": str,
    "expiry-delay": _DELAY_OR_NONE,
    "min-expiry-delay": _DELAY_OR_NONE,
    "max-expiry-delay": _DELAY_OR_NONE,
    "no-expiry": values.parse_boolean,
    "max-size-bytes": values.parse_limit_bytes,
    "max-size-messages": values.unlimited_or_at_least(1),
    "address-full-policy": values.one_of(AddressFullPolicy),
    "block-timeout": values.unlimited_or_at_least(1, "for ever"),
    "max-addresses": _LIMIT,
    "id-cache-size": _COUNT,
    "retroactive-message-count": _COUNT,
    "auto-create-queues": values.parse_boolean,
    "auto-create-addresses": values.parse_boolean,
    "auto-delete-queues": values.parse_boolean,
    "auto-delete-created-queues": values.parse_boolean,
    "auto-delete-queues-delay": _MILLISECONDS,
    "auto-delete-queues-message-count": _LIMIT,
    "auto-delete-queues-skip-usage-check": values.parse_boolean,
    "auto-delete-addresses": values.parse_boolean,
    "auto-delete-addresses-delay": _MILLISECONDS,
    "auto-delete-addresses-skip-usage-check": values.parse_boolean,
    "default-address-routing-type": values.parse_routing_type,
    "default-queue-routing-type": values.parse_routing_type,
    "default-ring-size": _LIMIT,
    "default-max-consumers": _LIMIT,
    "default-exclusive-queue": values.parse_boolean,
    "default-purge-on-no-consumers": values.parse_boolean,
    "default-last-value-queue": values.parse_boolean,
    "last-value-queue": values.parse_boolean,
    "default-last-value-key": str,
    "default-non-destructive": values.parse_boolean,
    "default-group-rebalance": values.parse_boolean,
    "default-group-rebalance-pause-dispatch": values.parse_boolean,
    "default-group-buckets": values.unlimited_or_at_least(0, "no buckets"),
    "default-group-first-key": str,
    "default-consumers-before-dispatch": _COUNT,
    "default-delay-before-dispatch": _DELAY_OR_NONE,
    "enable-metrics": values.parse_boolean,
    "ring-eviction": values.one_of(RingEviction),
    "dispatch-profile": values.one_of(DispatchProfile),
    "strict-order-dispatch": values.parse_boolean,
    "use-consumer-priority": values.parse_boolean,
    "all-consumers-exclusive-by-default": values.parse_boolean,
    "time-before-dispatch-starts": _MILLISECONDS,
    "queue-prefetch": _PREFETCH,
    "queue-browser-prefetch": _PREFETCH,
    "topic-prefetch": _PREFETCH,
    "durable-topic-prefetch": _PREFETCH,
    "use-prefetch-extension": values.parse_boolean,
    "max-browse-page-size": values.unlimited_or_at_least(1, "all"),
    "pending-message-limit": _LIMIT,
    "pending-message-limit-multiplier": values.parse_multiplier_or_none,
    "message-eviction": values.one_of(MessageEviction),
    "message-eviction-key": str,
    "group-cache-size": values.unlimited_or_at_least(1, "all groups"),
    "allow-temp-destination-stealing": values.parse_boolean,
    "persist-delivery-count-before-delivery": values.parse_boolean,
    "dispatch-policy": values.one_of(DispatchPolicy),
    "slow-consumer-max-duration": values.unlimited_or_at_least(1, "never"),
    "slow-consumer-max-count": values.unlimited_or_at_least(1, "never"),
    "slow-consumer-max-time-since-last-ack": values.unlimited_or_at_least(1, "never"),
    "slow-consumer-ignore-idle": values.parse_boolean,
    "slow-consumer-abort-connection": values.parse_boolean,
    "slow-consumer-check-period": values.at_least(1),
    "subscription-recovery-count": _COUNT,
    "subscription-recovery-duration": _MILLISECONDS,
    "subscription-recovery-size": values.parse_bytes,
    "subscription-recovery-retained": values.parse_boolean,
    "always-retroactive": values.parse_boolean,
    "prioritized-messages": values.parse_boolean,
    "advisory-for-consumed": values.parse_boolean,
    "advisory-for-delivery": values.parse_boolean,
    "advisory-for-discarding-messages": values.parse_boolean,
    "advisory-for-fast-producers": values.parse_boolean,
    "advisory-for-slow-consumers": values.parse_boolean,
    "advisory-when-full": values.parse_boolean,
    "advisory-if-no-consumers": values.parse_boolean,
    "include-body-for-advisory": values.parse_boolean,
}
"""Name -> what reads its value."""

# Older names, by the field they fill.
_OTHER_FIELDS: Final = {"last-value-queue": "default_last_value_queue"}


def field_of(name: str) -> str:
    """The field of AddressSettings that the child ``name`` of ``<address-setting>`` fills."""
    return _OTHER_FIELDS.get(name, name.replace("-", "_"))


def read_address_settings(reader: Reader, element: XmlElement, syntax: WildcardSyntax) -> list[AddressMatch]:
    """Every ``<address-setting>`` with the fields it sets."""
    matches: list[AddressMatch] = []
    lines: dict[str, int] = {}
    for child in reader.children(element, ADDRESS_SETTINGS):
        match = reader.required(child, "match")
        reader.note_twice("address-setting", match, child.line, lines)
        check_match(reader, child, match, syntax)
        matches.append(AddressMatch(match, _read_fields(reader, child, match)))
    return matches


def _read_fields(reader: Reader, element: XmlElement, match: str) -> dict[str, object]:
    fields: dict[str, Any] = {}
    lines: dict[str, int] = {}
    for name, setting in reader.once(reader.children(element, ADDRESS_SETTING)).items():
        field = field_of(name)
        if field in lines:
            sentence = f"<{name}> sets what line {lines[field]} sets under its other name; keep one of the two"
            reader.findings.add(TWICE, setting.line, sentence)
        lines[field] = setting.line
        value = reader.value(setting, SETTING_PARSERS[name], None)
        # A wrong value is a finding already, and nothing to compare with.
        if value is not None:
            fields[field] = value
    _check_expiry(reader, match, fields, lines)
    traits = Traits(
        non_destructive=fields.get("default_non_destructive"),
        purge_on_no_consumers=fields.get("default_purge_on_no_consumers"),
        exclusive=fields.get("default_exclusive_queue"),
        group_rebalance=fields.get("default_group_rebalance"),
        max_consumers=fields.get("default_max_consumers"),
        consumers_before_dispatch=fields.get("default_consumers_before_dispatch"),
        delay_before_dispatch=fields.get("default_delay_before_dispatch"),
    )
    check_traits(reader, element.line, f"a queue of address-setting {match!r}", traits)
    return fields


def _check_expiry(reader: Reader, match: str, fields: dict[str, Any], lines: dict[str, int]) -> None:
    least, most = fields.get("min_expiry_delay", UNLIMITED), fields.get("max_expiry_delay", UNLIMITED)
    if UNLIMITED < most < least:
        sentence = f"max-expiry-delay is {most} but min-expiry-delay is {least}; let the maximum be the larger one"
        reader.findings.add(CONTRADICTION, lines["max_expiry_delay"], sentence)
    if fields.get("expiry_delay", UNLIMITED) != UNLIMITED and max(least, most) != UNLIMITED:
        sentence = (
            f"address-setting {match!r} has an expiry-delay, beside which min-expiry-delay and max-expiry-delay "
            "have no effect; remove it or them"
        )
        reader.findings.notice(WITHOUT_EFFECT_HERE, lines["expiry_delay"], sentence)
