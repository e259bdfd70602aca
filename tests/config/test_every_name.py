"""broker.xml: each name that is in effect fills its field, and a wrong value is named with line and remedy."""

# BROKER-3

from dataclasses import fields
from typing import Any

import pytest

from delosmq.config.broker_xml.catalog.address_settings import ADDRESS_SETTING
from delosmq.config.broker_xml.catalog.addresses import QUEUE
from delosmq.config.broker_xml.catalog.table import Policy
from delosmq.model.declared.address import FIELDS
from delosmq.model.errors import ConfigurationError
from delosmq.model.message import ANYCAST
from delosmq.model.settings import (
    LAST_VALUE_NAME,
    AddressFullPolicy,
    AddressSettings,
    BrokerSettings,
    DispatchPolicy,
    DispatchProfile,
    MessageEviction,
    QueueSettings,
    RingEviction,
)
from delosmq.model.wildcard import AddressSettingsTable
from delosmq.selectors.errors import SelectorError
from tests.config.conftest import Load

BOOLEAN = (("maybe", "", "1"), "must be true or false")
COUNT = (("-1", "1.5", "x", "", "9223372036854775808"), "must be a whole number of at least 0")
LIMIT = (("-2", "x", ""), "must be -1 (no limit) or a whole number of at least 0")
DELAY = (("-2", "1s"), "must be -1 (none) or a whole number of at least 0")
PREFETCH = (("-2", "x", ""), "must be -1 (what the consumer asks for) or a whole number of at least 0")
ROUTING = (("QUEUE", ""), "must be ANYCAST or MULTICAST")
ANYTHING: tuple[tuple[str, ...], str] = ((), "")

Wrong = tuple[tuple[str, ...], str]

# name, value, what it becomes, wrong values and their remedy
SETTINGS: list[tuple[str, str, object, Wrong]] = [
    ("dead-letter-address", "DLQ", "DLQ", ANYTHING),
    ("auto-create-dead-letter-resources", "true", True, BOOLEAN),
    ("dead-letter-queue-prefix", "dead.", "dead.", ANYTHING),
    ("dead-letter-queue-suffix", ".dead", ".dead", ANYTHING),
    ("send-to-dla-on-no-route", "true", True, BOOLEAN),
    ("dead-letter-non-durable", "false", False, BOOLEAN),
    ("dead-letter-duplicates", "false", False, BOOLEAN),
    ("dead-letter-expiry-delay", "6000", 6000, (("0", "-2"), "must be -1 (for ever) or a whole number of at least 1")),
    ("max-delivery-attempts", "3", 3, (("-2", "x", "5.5"), "-1 or 0 for endless, or a whole number of at least 1")),
    ("max-delivery-attempts", "0", -1, ANYTHING),
    ("redelivery-delay", "500", 500, COUNT),
    ("redelivery-delay-multiplier", "1.5", 1.5, (("-1", "nan", "inf", "x"), "a factor from 0 to 1000")),
    ("redelivery-collision-avoidance-factor", "0.15", 0.15, (("-0.1", "1.1", "nan"), "a share from 0 to 1")),
    ("max-redelivery-delay", "60000", 60000, (("-2", "x"), "-1 (ten times redelivery-delay)")),
    ("expiry-address", "late", "late", ANYTHING),
    ("auto-create-expiry-resources", "TRUE", True, BOOLEAN),
    ("expiry-queue-prefix", "late.", "late.", ANYTHING),
    ("expiry-queue-suffix", ".late", ".late", ANYTHING),
    ("expiry-delay", "0", 0, DELAY),
    ("min-expiry-delay", "10", 10, DELAY),
    ("max-expiry-delay", "20", 20, DELAY),
    ("no-expiry", "true", True, BOOLEAN),
    ("max-size-bytes", "10M", 10 * 1024**2, (("0", "-2", "1T"), "size")),
    ("max-size-messages", "9", 9, (("0", "-2"), "at least 1")),
    ("block-timeout", "500", 500, (("0", "-2"), "must be -1 (for ever) or a whole number of at least 1")),
    ("max-addresses", "0", 0, LIMIT),
    ("address-full-policy", "block", AddressFullPolicy.BLOCK, (("WAIT", ""), "PAGE, BLOCK, FAIL or DROP")),
    ("id-cache-size", "0", 0, COUNT),
    ("retroactive-message-count", "3", 3, COUNT),
    ("auto-create-queues", "false", False, BOOLEAN),
    ("auto-create-addresses", "false", False, BOOLEAN),
    ("auto-delete-queues", "false", False, BOOLEAN),
    ("auto-delete-created-queues", "true", True, BOOLEAN),
    ("auto-delete-queues-delay", "5", 5, COUNT),
    ("auto-delete-queues-message-count", "-1", -1, LIMIT),
    ("auto-delete-queues-skip-usage-check", "true", True, BOOLEAN),
    ("auto-delete-addresses", "false", False, BOOLEAN),
    ("auto-delete-addresses-delay", "5", 5, COUNT),
    ("auto-delete-addresses-skip-usage-check", "true", True, BOOLEAN),
    ("default-address-routing-type", "anycast", ANYCAST, ROUTING),
    ("default-queue-routing-type", "ANYCAST", ANYCAST, ROUTING),
    ("default-ring-size", "0", 0, LIMIT),
    ("default-max-consumers", "1", 1, LIMIT),
    ("default-consumer-window-size", "0", 0, (("-2", "2147483648", "x"), "-1 (all) or a whole number of at least 0")),
    ("default-exclusive-queue", "true", True, BOOLEAN),
    ("default-purge-on-no-consumers", "true", True, BOOLEAN),
    ("default-last-value-queue", "true", True, BOOLEAN),
    ("last-value-queue", "true", True, BOOLEAN),
    ("default-last-value-key", "price", "price", ANYTHING),
    ("default-non-destructive", "true", True, BOOLEAN),
    ("default-group-rebalance", "true", True, BOOLEAN),
    ("default-group-rebalance-pause-dispatch", "true", True, BOOLEAN),
    ("default-group-buckets", "0", 0, (("-2", "x"), "-1 (no buckets) or a whole number of at least 0")),
    ("default-group-first-key", "first", "first", ANYTHING),
    ("default-consumers-before-dispatch", "2", 2, COUNT),
    ("default-delay-before-dispatch", "0", 0, DELAY),
    ("enable-metrics", "false", False, BOOLEAN),
    ("ring-eviction", "Lowest-Priority", RingEviction.LOWEST_PRIORITY, (("tail", ""), "head or lowest-priority")),
    ("dispatch-profile", "classic", DispatchProfile.CLASSIC, (("activemq",), "artemis or classic")),
    ("strict-order-dispatch", "true", True, BOOLEAN),
    ("use-consumer-priority", "false", False, BOOLEAN),
    ("all-consumers-exclusive-by-default", "true", True, BOOLEAN),
    ("time-before-dispatch-starts", "100", 100, COUNT),
    ("queue-prefetch", "10", 10, PREFETCH),
    ("queue-browser-prefetch", "0", 0, PREFETCH),
    ("topic-prefetch", "-1", -1, PREFETCH),
    ("durable-topic-prefetch", "10", 10, PREFETCH),
    ("use-prefetch-extension", "false", False, BOOLEAN),
    ("max-browse-page-size", "10", 10, (("0", "-2", "x"), "-1 (all) or a whole number of at least 1")),
    ("pending-message-limit", "0", 0, LIMIT),
    ("pending-message-limit-multiplier", "1.5", 1.5, (("-2", "nan", "x"), "-1 (none) or a factor from 0 to 1000")),
    ("pending-message-limit-multiplier", "-1", -1.0, ANYTHING),
    ("message-eviction", "Unique-Property", MessageEviction.UNIQUE_PROPERTY, (("newest", ""), "or unique-property")),
    ("message-eviction-key", "symbol", "symbol", ANYTHING),
    ("group-cache-size", "9", 9, (("0", "-2"), "must be -1 (all groups) or a whole number of at least 1")),
    ("allow-temp-destination-stealing", "true", True, BOOLEAN),
    ("persist-delivery-count-before-delivery", "true", True, BOOLEAN),
    ("dispatch-policy", "Priority", DispatchPolicy.PRIORITY, (("round-robin", ""), "simple or priority")),
    ("slow-consumer-max-duration", "30000", 30_000, (("0", "-2"), "-1 (never) or a whole number of at least 1")),
    ("slow-consumer-max-count", "5", 5, (("0", "-2"), "-1 (never) or a whole number of at least 1")),
    ("slow-consumer-max-time-since-last-ack", "9", 9, (("0", "1s"), "-1 (never) or a whole number of at least 1")),
    ("slow-consumer-ignore-idle", "false", False, BOOLEAN),
    ("slow-consumer-abort-connection", "true", True, BOOLEAN),
    ("slow-consumer-check-period", "1", 1, (("0", "-1"), "at least 1")),
    ("subscription-recovery-count", "3", 3, COUNT),
    ("subscription-recovery-duration", "60000", 60_000, COUNT),
    ("subscription-recovery-size", "64K", 65_536, (("-1", "x"), "a size in bytes")),
    ("subscription-recovery-retained", "true", True, BOOLEAN),
    ("always-retroactive", "false", False, BOOLEAN),
    ("prioritized-messages", "false", False, BOOLEAN),
    ("advisory-for-consumed", "true", True, BOOLEAN),
    ("advisory-for-delivery", "true", True, BOOLEAN),
    ("advisory-for-discarding-messages", "true", True, BOOLEAN),
    ("advisory-for-fast-producers", "true", True, BOOLEAN),
    ("advisory-for-slow-consumers", "true", True, BOOLEAN),
    ("advisory-when-full", "true", True, BOOLEAN),
    ("advisory-if-no-consumers", "true", True, BOOLEAN),
    ("include-body-for-advisory", "true", True, BOOLEAN),
]

ATTRIBUTES: list[tuple[str, str, str, object, Wrong]] = [
    ("ring-size", "0", "ring_size", 0, LIMIT),
    ("max-consumers", "-1", "max_consumers", -1, LIMIT),
    ("exclusive", "true", "exclusive", True, BOOLEAN),
    ("purge-on-no-consumers", "true", "purge_on_no_consumers", True, BOOLEAN),
    ("last-value", "true", "last_value_key", LAST_VALUE_NAME, BOOLEAN),
    ("last-value", "false", "last_value_key", "", ANYTHING),
    ("last-value-key", "price", "last_value_key", "price", ANYTHING),
    ("last-value-key", "", "last_value_key", None, ANYTHING),
    ("non-destructive", "true", "non_destructive", True, BOOLEAN),
    ("group-rebalance", "false", "group_rebalance", False, BOOLEAN),
    ("group-rebalance-pause-dispatch", "true", "group_rebalance_pause_dispatch", True, BOOLEAN),
    ("group-buckets", "4", "group_buckets", 4, (("-2",), "-1 (no buckets) or a whole number of at least 0")),
    ("group-first-key", "first", "group_first_key", "first", ANYTHING),
    ("consumers-before-dispatch", "2", "consumers_before_dispatch", 2, COUNT),
    ("delay-before-dispatch", "-1", "delay_before_dispatch", -1, DELAY),
    ("enabled", "false", "enabled", False, BOOLEAN),
    ("auto-delete", "true", "auto_delete", True, BOOLEAN),
    ("auto-delete-delay", "5", "auto_delete_delay", 5, COUNT),
    ("auto-delete-message-count", "-1", "auto_delete_message_count", -1, LIMIT),
]

CHILDREN: list[tuple[str, str, object]] = [
    ("<durable>false</durable>", "durable", False),
    ("<user>ann</user>", "user", "ann"),
    ("<filter string=\"a = 'b'\"/>", "filter", "a = 'b'"),
    ('<filter string=" "/>', "filter", ""),
]

CORE: list[tuple[str, str, str, object, Wrong]] = [
    ("transaction-timeout", "5", "transaction_timeout_ms", 5, (("0", "-1"), "at least 1")),
    ("transaction-timeout-scan-period", "5", "transaction_timeout_scan_period_ms", 5, (("0",), "at least 1")),
    ("staged-retention", "5", "staged_retention_ms", 5, (("0",), "at least 1")),
    ("published-retention", "5", "published_retention_ms", 5, (("0",), "at least 1")),
    ("lease-retention", "5", "lease_retention_ms", 5, (("0",), "at least 1")),
    ("lease-max-rows", "5", "lease_max_rows", 5, (("0",), "at least 1")),
    ("lease-max-bytes", "5K", "lease_max_bytes", 5 * 1024, (("0",), "at least 1")),
    ("leased-max-rows", "5", "leased_max_rows", 5, (("0",), "at least 1")),
    ("leased-max-bytes", "5K", "leased_max_bytes", 5 * 1024, (("0",), "at least 1")),
    ("message-expiry-scan-period", "-1", "message_expiry_scan_period_ms", -1, (("0", "-2"), "-1 (never)")),
    ("address-queue-scan-period", "5", "address_queue_scan_period_ms", 5, (("0", "-2"), "-1 (never)")),
    ("persist-id-cache", "false", "persist_id_cache", False, BOOLEAN),
    ("temporary-queue-namespace", "temp", "temporary_queue_namespace", "temp", (("",), "given")),
]


def setting(name: str, value: str) -> str:
    return (
        f'<address-settings><address-setting match="#">\n<{name}>{value}</{name}></address-setting></address-settings>'
    )


def queue(attributes: str, children: str = "") -> str:
    return (
        f'<addresses><address name="a"><anycast>\n<queue name="q" {attributes}>{children}</queue></anycast></address>'
        "</addresses>"
    )


def read_queue(load: Load, attributes: str, children: str = "") -> QueueSettings:
    (read,) = load(queue(attributes, children)).settings.queues
    return read


def refusal(load: Load, core: str) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        load(core)
    return caught.value


@pytest.mark.parametrize(
    ("name", "value", "expected", "wrong"), SETTINGS, ids=[f"{row[0]}={row[1]}" for row in SETTINGS]
)
def test_an_address_setting(load: Load, name: str, value: str, expected: object, wrong: Wrong) -> None:
    settings = load(setting(name, value)).settings
    assert settings.address_settings[0].fields == {FIELDS[name]: expected}
    assert getattr(AddressSettingsTable(settings.address_settings).resolve("any"), FIELDS[name]) == expected
    for text in wrong[0]:
        refused = refusal(load, setting(name, text))
        assert refused.code == "DMQ4005"
        assert f"broker.xml:4: <{name}> is {text!r} but must be" in refused.message
        assert wrong[1] in refused.message


@pytest.mark.parametrize(
    ("name", "value", "field", "expected", "wrong"), ATTRIBUTES, ids=[f"{row[0]}={row[1]}" for row in ATTRIBUTES]
)
def test_an_attribute_of_a_queue(load: Load, name: str, value: str, field: str, expected: object, wrong: Wrong) -> None:
    assert getattr(read_queue(load, f'{name}="{value}"'), field) == expected
    for text in wrong[0]:
        refused = refusal(load, queue(f'{name}="{text}"'))
        assert refused.code == "DMQ4005"
        assert f"broker.xml:4: {name!r} of <queue> is {text!r} but must be" in refused.message
        assert wrong[1] in refused.message


@pytest.mark.parametrize(("child", "field", "expected"), CHILDREN)
def test_a_child_of_a_queue(load: Load, child: str, field: str, expected: object) -> None:
    assert getattr(read_queue(load, "", child), field) == expected


@pytest.mark.parametrize(("name", "value", "field", "expected", "wrong"), CORE, ids=[row[0] for row in CORE])
def test_a_child_of_core(load: Load, name: str, value: str, field: str, expected: object, wrong: Wrong) -> None:
    assert getattr(load(f"<{name}>{value}</{name}>").settings, field) == expected
    for text in wrong[0]:
        refused = refusal(load, f"<{name}>{text}</{name}>")
        assert refused.code == "DMQ4005"
        assert f"broker.xml:3: <{name}> is {text!r} but must be" in refused.message
        assert wrong[1] in refused.message


def test_the_tables_hold_every_name_that_is_in_effect() -> None:
    effective = {name for name, item in ADDRESS_SETTING.items() if item.policy is Policy.IN_EFFECT} - {"@match"}
    assert {row[0] for row in SETTINGS} == effective == set(FIELDS)
    attributes = {f"@{row[0]}" for row in ATTRIBUTES} | {"@name", "filter", "durable", "user"}
    assert attributes == {name for name, item in QUEUE.items() if item.policy is Policy.IN_EFFECT}


def test_every_field_of_the_address_settings_can_be_set() -> None:
    assert {FIELDS[row[0]] for row in SETTINGS} == {field.name for field in fields(AddressSettings)}


def test_every_field_of_a_queue_can_be_set() -> None:
    # The first three come from where the queue stands; the last two are what happens to it.
    elsewhere = {"name", "address", "routing_type", "auto_created", "paused"}
    reached = {row[2] for row in ATTRIBUTES} | {row[1] for row in CHILDREN} | elsewhere
    assert reached == {field.name for field in fields(QueueSettings)}


def test_a_queue_takes_what_it_does_not_say_from_its_address(load: Load) -> None:
    read: Any = read_queue(load, "")
    own = {"name", "address", "routing_type", "durable", "auto_created", "filter", "auto_delete", "enabled", "paused"}
    assert {field.name for field in fields(QueueSettings) if getattr(read, field.name) is not None} == own | {"user"}
    # What broker.xml names stays.
    assert read.auto_delete is False


def test_last_value_without_a_key_takes_the_key_of_its_address(load: Load) -> None:
    core = setting("default-last-value-key", "price") + queue('last-value="true"')
    assert load(core).settings.queues[0].last_value_key == "price"
    core = setting("default-last-value-key", "price") + queue('last-value="false"')
    assert load(core).settings.queues[0].last_value_key == ""


def test_the_id_cache_size_of_core_is_the_default_of_every_address(load: Load) -> None:
    core = (
        "<id-cache-size>7</id-cache-size><address-settings><address-setting match='a.#'>"
        "<id-cache-size>9</id-cache-size></address-setting>"
        "<address-setting match='#'><max-size-messages>5</max-size-messages></address-setting></address-settings>"
    )
    table = AddressSettingsTable(load(core).settings.address_settings)
    assert (table.resolve("a.b").id_cache_size, table.resolve("b").id_cache_size) == (9, 7)
    assert table.resolve("a.b").max_size_messages == 5
    everywhere = "<id-cache-size>7</id-cache-size>" + setting("id-cache-size", "8")
    assert AddressSettingsTable(load(everywhere).settings.address_settings).resolve("b").id_cache_size == 8
    assert "at least 0" in refusal(load, "<id-cache-size>-1</id-cache-size>").message


def test_compaction(load: Load) -> None:
    core = (
        "<journal-compact-min-files>0</journal-compact-min-files>"
        "<journal-compact-percentage>50</journal-compact-percentage>"
    )
    journal = load(core).settings.journal
    assert (journal.compact_min_files, journal.compact_percentage) == (0, 50)
    assert "0 to 100" in refusal(load, "<journal-compact-percentage>101</journal-compact-percentage>").message


def test_every_default_of_the_broker_holds_without_a_word(load: Load) -> None:
    settings, standard = load("").settings, BrokerSettings()
    for name in (row[2] for row in CORE):
        assert getattr(settings, name) == getattr(standard, name)
    assert settings.wildcards == standard.wildcards
    assert settings.diverts == ()


def test_a_filter_that_is_no_selector_is_named_with_its_line_and_letter(load: Load) -> None:
    def check(text: str) -> None:
        raise SelectorError("DMQ2500", "an operator is missing", text, text.index("b"))

    with pytest.raises(ConfigurationError) as caught:
        load(queue("", '\n<filter string=" a b"/>'), check_selector=check)
    assert caught.value.code == "DMQ4011"
    assert "broker.xml:5: 'string' of <filter> is no selector: an operator is missing" in caught.value.message
    assert "(letter 3, between 'a ' and 'b'); correct it or remove <filter>" in caught.value.message
    assert "\n" not in caught.value.message


def test_a_filter_is_checked_by_the_selectors_of_the_broker(load: Load) -> None:
    refused = refusal(load, queue("", '<filter string="a = = b"/>'))
    assert refused.code == "DMQ4011"
    assert "letter 5, between 'a = ' and '= b'" in refused.message


def test_a_filter_needs_its_attribute(load: Load) -> None:
    assert "<filter> lacks 'string'" in refusal(load, queue("", "<filter/>")).message
