"""The catalogue of broker.xml: documented as it is, and true to the settings."""

from dataclasses import fields
from pathlib import Path

import pytest

from delosmq.config.broker_xml.catalog.acceptors import ACCEPTOR_OPTIONS
from delosmq.config.broker_xml.catalog.address_settings import ADDRESS_SETTING
from delosmq.config.broker_xml.catalog.addresses import QUEUE
from delosmq.config.broker_xml.catalog.core import CORE, WILDCARD_ADDRESSES
from delosmq.config.broker_xml.catalog.table import Policy
from delosmq.config.broker_xml.manual_tables import tables
from delosmq.model.declared.address import FIELDS, SETTINGS, AddressSettings
from delosmq.model.settings import AcceptorSettings, BrokerSettings, JournalSettings, WildcardSyntax
from delosmq.model.values import parse_bytes
from tests.config.conftest import Load

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
    ("name", "field"),
    [
        ("connection-ttl-override", "connection_ttl_override_ms"),
        ("connection-ttl-check-interval", "connection_ttl_check_interval_ms"),
        ("transaction-timeout", "transaction_timeout_ms"),
        ("transaction-timeout-scan-period", "transaction_timeout_scan_period_ms"),
        ("message-expiry-scan-period", "message_expiry_scan_period_ms"),
        ("address-queue-scan-period", "address_queue_scan_period_ms"),
    ],
)
def test_every_period_has_the_documented_default_and_unit(name: str, field: str) -> None:
    assert (CORE[name].default, CORE[name].unit) == (str(getattr(BrokerSettings(), field)), "ms")


def test_wildcards_and_compaction_have_the_documented_defaults() -> None:
    wildcards, journal = WildcardSyntax(), JournalSettings()
    letters = [WILDCARD_ADDRESSES[name].default for name in ("delimiter", "any-words", "single-word")]
    assert letters == [wildcards.delimiter, wildcards.any_words, wildcards.single_word]
    compaction = [CORE[f"journal-compact-{name}"].default for name in ("min-files", "percentage")]
    assert compaction == [str(journal.compact_min_files), str(journal.compact_percentage)]


@pytest.mark.parametrize(
    ("option", "field"),
    [
        ("connectionsAllowed", "connections_allowed"),
        ("handshake-timeout", "handshake_timeout_s"),
        ("heartBeatToConnectionTtlModifier", "heart_beat_to_ttl_modifier"),
        ("connectionTtl", "connection_ttl_ms"),
        ("connectionTtlMin", "connection_ttl_min_ms"),
        ("connectionTtlMax", "connection_ttl_max_ms"),
        ("stompConsumerWindowSize", "stomp_consumer_window_bytes"),
    ],
)
def test_every_acceptor_option_has_the_documented_default(option: str, field: str) -> None:
    standard = AcceptorSettings("a", "h", 1, ("STOMP",))
    assert ACCEPTOR_OPTIONS[option].default == str(getattr(standard, field))


def test_the_largest_frame_is_as_documented() -> None:
    documented = ACCEPTOR_OPTIONS["stompMaxFramePayloadLength"].default
    assert parse_bytes(documented) == AcceptorSettings("a", "h", 1, ("STOMP",)).max_frame_bytes


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
