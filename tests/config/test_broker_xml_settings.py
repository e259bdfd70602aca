"""broker.xml: what it says arrives in the settings."""

# BROKER-3

from pathlib import Path

import pytest

from delosmq.config.broker_xml import load_broker_xml
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.settings import AddressDefinition, AddressFullPolicy, QueueSettings
from delosmq.model.wildcard import AddressSettingsTable, SecurityTable
from tests.config.conftest import MEMORY_BYTES, Load

REPOSITORY = Path(__file__).resolve().parents[2]


def test_an_empty_core_takes_the_defaults(load: Load, tmp_path: Path) -> None:
    settings = load("").settings
    assert settings.name == "delosmq"
    assert settings.journal.directory == str(tmp_path / "data/journal")
    assert settings.journal.file_size_bytes == 64 * 1024**2
    assert settings.global_max_size_bytes == MEMORY_BYTES // 2
    assert (settings.connection_ttl_override_ms, settings.connection_ttl_check_interval_ms) == (-1, 2000)
    assert (settings.acceptors, settings.addresses, settings.queues) == ((), (), ())


def test_the_elements_of_core_are_read(load: Load) -> None:
    settings = load(
        "<name>east</name><journal-directory>/var/j</journal-directory><journal-file-size>10M</journal-file-size>"
        "<global-max-size>1GiB</global-max-size><connection-ttl-override>5000</connection-ttl-override>"
        "<connection-ttl-check-interval>100</connection-ttl-check-interval>"
    ).settings
    assert settings.name == "east"
    assert (settings.journal.directory, settings.journal.file_size_bytes) == ("/var/j", 10 * 1024**2)
    assert settings.global_max_size_bytes == 1024**3
    assert (settings.connection_ttl_override_ms, settings.connection_ttl_check_interval_ms) == (5000, 100)


def test_without_persistence_there_is_no_journal(load: Load) -> None:
    assert load("<persistence-enabled>false</persistence-enabled>").settings.journal.directory == ""


def test_a_relative_directory_is_relative_to_the_instance(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    path = tmp_path / "etc/broker.xml"
    path.write_text('<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core"/></configuration>')
    assert load_broker_xml(path).settings.journal.directory == str(tmp_path / "data/journal")
    directory = "<journal-directory>${data.dir}/j</journal-directory>"
    path.write_text(path.read_text().replace(':core"/>', f':core">{directory}</core>'))
    assert load_broker_xml(path).settings.journal.directory == str(tmp_path / "data/j")


@pytest.mark.parametrize(
    ("text", "size"),
    [("65536", 65536), ("64K", 65536), ("64 kb", 65536), ("64KiB", 65536), ("10M", 10485760), ("10MiB", 10485760)],
)
def test_sizes_have_the_suffixes_of_artemis(load: Load, text: str, size: int) -> None:
    assert load(f"<journal-file-size>{text}</journal-file-size>").settings.journal.file_size_bytes == size


def test_memory_can_be_a_percentage(load: Load) -> None:
    percentage = "<global-max-size-percent-of-jvm-max-memory>25</global-max-size-percent-of-jvm-max-memory>"
    assert load(percentage).settings.global_max_size_bytes == MEMORY_BYTES // 4


def test_an_acceptor_with_every_option(load: Load) -> None:
    url = (
        "tcp://localhost:61613?protocols=stomp;anycastPrefix=/queue/,jms.queue.;multicastPrefix=/topic/;"
        "connectionsAllowed=-1;handshake-timeout=3;heartBeatToConnectionTtlModifier=1.5;connectionTtl=1000;"
        "connectionTtlMin=5000;connectionTtlMax=10000;stompConsumerWindowSize=-1;stompMaxFramePayloadLength=1M"
    )
    (acceptor,) = load(f'<acceptors><acceptor name="a">{url}</acceptor></acceptors>').settings.acceptors
    assert (acceptor.name, acceptor.host, acceptor.port, acceptor.protocols) == ("a", "localhost", 61613, ("STOMP",))
    assert acceptor.anycast_prefixes == ("/queue/", "jms.queue.")
    assert acceptor.multicast_prefixes == ("/topic/",)
    assert (acceptor.connections_allowed, acceptor.handshake_timeout_s) == (-1, 3)
    ttl = (acceptor.connection_ttl_ms, acceptor.connection_ttl_min_ms, acceptor.connection_ttl_max_ms)
    assert ttl == (1000, 5000, 10000)
    assert acceptor.heart_beat_to_ttl_modifier == 1.5
    assert (acceptor.stomp_consumer_window_bytes, acceptor.max_frame_bytes) == (-1, 1024**2)


def test_acceptor_urls_take_ipv6_escapes_and_ampersands(load: Load) -> None:
    url = "tcp://[::1]:0?protocols=STOMP&amp;anycastPrefix=%2Fqueue%2F"
    (acceptor,) = load(f"<acceptors><acceptor>{url}</acceptor></acceptors>").settings.acceptors
    assert (acceptor.name, acceptor.host, acceptor.port) == ("::1:0", "::1", 0)
    assert acceptor.anycast_prefixes == ("/queue/",)


def test_passwords_of_a_url_are_not_kept(load: Load) -> None:
    url = "tcp://localhost:1?protocols=STOMP;keyStorePassword=hunter2"
    (acceptor,) = load(f"<acceptors><acceptor>{url}</acceptor></acceptors>").settings.acceptors
    assert "hunter2" not in repr(acceptor)


# RING-2
def test_addresses_and_queues(load: Load) -> None:
    settings = load(
        '<addresses><address name="orders"><multicast><queue name="orders.work" ring-size="3" max-consumers="2">'
        '<durable>false</durable></queue><queue name="orders.archive"/></multicast></address>'
        '<address name="both"><anycast/><multicast/></address></addresses>'
    ).settings
    assert settings.addresses == (
        AddressDefinition("orders", frozenset({MULTICAST})),
        AddressDefinition("both", frozenset({ANYCAST, MULTICAST})),
    )
    assert settings.queues == (
        QueueSettings(
            "orders.work", "orders", MULTICAST, durable=False, ring_size=3, max_consumers=2, auto_delete=False
        ),
        QueueSettings("orders.archive", "orders", MULTICAST, auto_delete=False),
    )


def test_less_specific_address_settings_fill_what_more_specific_ones_leave_unset(load: Load) -> None:
    settings = load(
        '<address-settings><address-setting match="orders.#"><max-delivery-attempts>3</max-delivery-attempts>'
        "<address-full-policy>drop</address-full-policy></address-setting>"
        '<address-setting match="#"><dead-letter-address>DLQ</dead-letter-address><max-size-bytes>10M</max-size-bytes>'
        "<max-delivery-attempts>0</max-delivery-attempts><default-ring-size>7</default-ring-size></address-setting>"
        '<address-setting match="orders.*.vip"><default-address-routing-type>ANYCAST</default-address-routing-type>'
        "<max-size-bytes>-1</max-size-bytes></address-setting></address-settings>"
    ).settings
    resolved = AddressSettingsTable(settings.address_settings)
    vip = resolved.resolve("orders.eu.vip")
    assert (vip.dead_letter_address, vip.max_delivery_attempts, vip.default_ring_size) == ("DLQ", 3, 7)
    assert (vip.max_size_bytes, vip.default_address_routing_type) == (-1, ANYCAST)
    assert vip.address_full_policy is AddressFullPolicy.DROP
    other = resolved.resolve("prices")
    assert (other.max_size_bytes, other.max_delivery_attempts) == (10 * 1024**2, -1)


def test_security_settings_with_the_old_names_of_permissions(load: Load) -> None:
    settings = load(
        '<security-settings><security-setting match="#"><permission type="send" roles="a, b"/>'
        '<permission type="createTempQueue" roles="a"/><permission type="send" roles="c"/>'
        '<permission type="consume" roles=""/></security-setting></security-settings>'
    ).settings
    roles = SecurityTable(settings.security_settings)
    assert roles.roles("x", "send") == {"a", "b", "c"}
    assert roles.roles("x", "createNonDurableQueue") == {"a"}
    assert roles.roles("x", "consume") == frozenset()


def test_placeholders_take_a_property_or_their_default(load: Load) -> None:
    settings = load("<name>${broker.name:none} ${region:east}</name>", **{"broker.name": "b"}).settings
    assert settings.name == "b east"


def test_what_a_placeholder_stands_for_is_never_markup(load: Load) -> None:
    assert load("<name>${n}</name>", n="<x/>&amp;").settings.name == "<x/>&amp;"


def test_the_example_loads_without_a_notice() -> None:
    loaded = load_broker_xml(REPOSITORY / "examples/broker.xml", properties={"DELOSMQ_STOMP_PORT": "0"})
    assert loaded.notices == []
    assert loaded.settings.acceptors[0].port == 0
    assert {queue.name: queue.ring_size for queue in loaded.settings.queues} == {
        "orders.work": None,
        "orders.archive": None,
        "prices.last": 3,
        "DLQ": None,
        "ExpiryQueue": None,
    }
    resolved = AddressSettingsTable(loaded.settings.address_settings)
    assert resolved.resolve("orders").max_delivery_attempts == 3
    assert resolved.resolve("prices").max_delivery_attempts == 10
