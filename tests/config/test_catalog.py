"""The catalogue of broker.xml: documented as it is, and true to the settings."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from delosmq.config.broker_xml.catalog.acceptors import ACCEPTOR_OPTIONS
from delosmq.config.broker_xml.catalog.address_settings import ADDRESS_SETTING
from delosmq.config.broker_xml.catalog.addresses import DIVERT, QUEUE
from delosmq.config.broker_xml.catalog.core import CORE, WILDCARD_ADDRESSES
from delosmq.config.broker_xml.catalog.table import Policy, Table
from delosmq.config.broker_xml.manual_tables import tables
from delosmq.model.declared.acceptor import ACCEPTOR_SETTINGS
from delosmq.model.declared.address import FIELDS, SETTINGS
from delosmq.model.settings import (
    CORE_SETTINGS,
    JOURNAL_SETTINGS,
    AcceptorSettings,
    AddressSettings,
    BrokerSettings,
    DivertSettings,
    JournalSettings,
    TlsSettings,
    WildcardSyntax,
)
from delosmq.model.values import declared
from tests.config.conftest import Load

DESCRIBED: dict[str, tuple[str, object]] = {
    "enabled_protocols": ("both", ()),
    "enabled_cipher_suites": ("those of OpenSSL", ()),
    "virtual_topics": ("OpenWire: Consumer.*.VirtualTopic.>;2", None),
}
"""Defaults that the catalogue has in words."""
DOCUMENT = Path(__file__).resolve().parents[2] / "docs/configuration.md"


@pytest.mark.parametrize("policy", list(Policy))
def test_the_documentation_holds_the_tables_of_the_catalogue(policy: Policy) -> None:
    assert tables(policy) in DOCUMENT.read_text("utf-8"), "put what broker_xml.explain.tables returns into the document"


def test_no_name_is_refused_without_a_reason() -> None:
    refused = [item for table in (CORE, QUEUE, ADDRESS_SETTING, ACCEPTOR_OPTIONS) for item in table.values()]
    assert all(item.about for item in refused if item.policy is not Policy.NOT_YET)


def test_every_address_setting_is_declared_and_its_documented_default_is_the_one_in_force() -> None:
    assert list(SETTINGS) == [field.name for field in fields(AddressSettings)]
    standard = AddressSettings()
    for name, setting in SETTINGS.items():
        item = ADDRESS_SETTING[name.replace("_", "-")]
        assert (item.policy, item.about, item.unit) == (Policy.IN_EFFECT, setting.about, setting.unit)
        value = getattr(standard, name)
        if value is None:
            assert item.default.endswith((" with dispatch-profile classic", " for subscription-recovery-*")), name
            continue
        written = item.default
        if name == "id_cache_size":
            assert written == "id-cache-size of core"
            written = CORE["id-cache-size"].default
        assert setting.parse(written.removesuffix(".0")) == value, name


def test_an_older_name_of_a_setting_is_in_the_catalogue() -> None:
    assert FIELDS["last-value-queue"] == "default_last_value_queue"
    assert ADDRESS_SETTING["last-value-queue"].about == "older name of default-last-value-queue"


@pytest.mark.parametrize(
    ("standard", "table"),
    [
        (BrokerSettings(), CORE),
        (JournalSettings(), CORE),
        (AcceptorSettings("a", "h", 1, ("STOMP",)), ACCEPTOR_OPTIONS),
        (TlsSettings("p"), ACCEPTOR_OPTIONS),
        (DivertSettings("d", "a", ("b",)), DIVERT),
        (WildcardSyntax(), WILDCARD_ADDRESSES),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_declared_setting_is_in_the_catalogue_with_the_default_in_force(standard: Any, table: Table) -> None:
    known = declared(type(standard))
    assert known
    for field, setting in known.items():
        item, value = table[setting.written], getattr(standard, field)
        assert (item.policy, item.about, item.unit) == (Policy.IN_EFFECT, setting.about, setting.unit)
        if field in DESCRIBED:
            assert (item.default, value) == DESCRIBED[field]
        elif field != "key_store_path":
            assert (setting.parse(item.default) if item.default else type(value)()) == value, field


def test_a_unit_is_that_of_the_field() -> None:
    for known in (CORE_SETTINGS, JOURNAL_SETTINGS, ACCEPTOR_SETTINGS):
        for field, setting in known.items():
            for end, unit in (("_ms", "ms"), ("_s", "s"), ("_bytes", "bytes")):
                assert not field.endswith(end) or setting.unit == unit, field


def test_the_names_that_a_new_artemis_instance_writes_do_not_stop_the_start(load: Load) -> None:
    # Those of `artemis create` 2.44, with the values it writes.
    core = """
        <persistence-enabled>true</persistence-enabled><max-redelivery-records>1</max-redelivery-records>
        <journal-type>ASYNCIO</journal-type><paging-directory>data/paging</paging-directory>
        <bindings-directory>data/bindings</bindings-directory><journal-directory>data/journal</journal-directory>
        <large-messages-directory>data/large-messages</large-messages-directory>
        <journal-datasync>true</journal-datasync><journal-min-files>2</journal-min-files>
        <journal-pool-files>10</journal-pool-files><journal-device-block-size>4096</journal-device-block-size>
        <journal-file-size>10M</journal-file-size><journal-buffer-timeout>1</journal-buffer-timeout>
        <journal-max-io>4096</journal-max-io><disk-scan-period>5000</disk-scan-period>
        <max-disk-usage>90</max-disk-usage><critical-analyzer>true</critical-analyzer>
        <critical-analyzer-timeout>120000</critical-analyzer-timeout>
        <critical-analyzer-check-period>60000</critical-analyzer-check-period>
        <critical-analyzer-policy>HALT</critical-analyzer-policy><page-sync-timeout>1</page-sync-timeout>
        <purge-page-folders>true</purge-page-folders><global-max-messages>-1</global-max-messages>
        <address-settings><address-setting match="#"><dead-letter-address>DLQ</dead-letter-address>
        <expiry-address>ExpiryQueue</expiry-address><redelivery-delay>0</redelivery-delay>
        <message-counter-history-day-limit>10</message-counter-history-day-limit>
        <address-full-policy>PAGE</address-full-policy><auto-create-queues>true</auto-create-queues>
        <auto-create-addresses>true</auto-create-addresses><auto-delete-queues>false</auto-delete-queues>
        <auto-delete-addresses>false</auto-delete-addresses><page-size-bytes>10M</page-size-bytes>
        <max-size-bytes>-1</max-size-bytes><max-size-messages>-1</max-size-messages>
        <max-read-page-messages>-1</max-read-page-messages><max-read-page-bytes>20M</max-read-page-bytes>
        <page-limit-bytes>-1</page-limit-bytes><page-limit-messages>-1</page-limit-messages>
        </address-setting></address-settings>
        <acceptors><acceptor name="artemis">tcp://127.0.0.1:61616?tcpSendBufferSize=1048576;protocols=CORE,AMQP,STOMP,
        HORNETQ,MQTT,OPENWIRE;useEpoll=true;amqpCredits=1000;amqpLowCredits=300;amqpDuplicateDetection=true;
        amqpMinLargeMessageSize=102400;supportAdvisory=false;suppressInternalManagementObjects=false</acceptor></acceptors>
    """
    assert [acceptor.name for acceptor in load(core).settings.acceptors] == ["artemis"]
