"""Connectors, destinations, composite destinations and plugins of an activemq.xml."""

from pathlib import Path

import pytest

from delosmq.migration.activemq_xml import RemarkKind
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.protocol_names import SERVED_PROTOCOLS
from delosmq.model.settings import AddressDefinition, DivertSettings
from delosmq.model.virtual_topics import CLASSIC
from tests.migration.activemq_xml import Converted, broker, convert_text, policies


def connectors(tmp_path: Path, inner: str) -> Converted:
    return convert_text(broker(f"<transportConnectors>\n{inner}</transportConnectors>"), tmp_path)


@pytest.mark.parametrize("scheme", ["stomp", "stomp+nio", "ws"])
def test_a_stomp_connector_is_an_acceptor(tmp_path: Path, scheme: str) -> None:
    uri = (
        f"{scheme}://0.0.0.0:61613?maximumConnections=9&amp;wireFormat.maxFrameSize=2048&amp;connectAttemptTimeout=1500"
    )
    made = connectors(tmp_path, f'<transportConnector name="in" uri="{uri}"/>')
    (acceptor,) = made.settings.acceptors
    assert (acceptor.name, acceptor.host, acceptor.port, acceptor.protocols) == ("in", "0.0.0.0", 61613, ("STOMP",))
    assert (acceptor.connections_allowed, acceptor.max_frame_bytes, acceptor.handshake_timeout_s) == (9, 2048, 2)
    assert (acceptor.anycast_prefixes, acceptor.multicast_prefixes) == (("/queue/",), ("/topic/",))


def test_addresses_and_names_of_connectors(tmp_path: Path) -> None:
    inner = "".join(f'<transportConnector name="s" uri="stomp://{host}:1"/>' for host in ("[::1]", "localhost"))
    made = connectors(tmp_path, f'{inner}<transportConnector uri="stomp://127.0.0.1:2" autoStart="true"/>')
    found = [(acceptor.name, acceptor.host) for acceptor in made.settings.acceptors]
    assert found == [("s", "::1"), ("s-2", "localhost"), ("stomp", "127.0.0.1")]
    assert made.left_out == []


@pytest.mark.parametrize(
    "scheme, protocol", [("tcp", "OPENWIRE"), ("nio", "OPENWIRE"), ("mqtt", "MQTT"), ("amqp", "AMQP")]
)
def test_a_connector_whose_protocol_is_still_to_come_is_a_comment(tmp_path: Path, scheme: str, protocol: str) -> None:
    made = connectors(
        tmp_path, f'<transportConnector name="later" uri="{scheme}://h:5?trace=true&amp;x=1" autoStart="true"/>'
    )
    if protocol in SERVED_PROTOCOLS:
        assert [acceptor.protocols for acceptor in made.settings.acceptors] == [(protocol,)]
        return
    assert made.settings.acceptors == ()
    ((line, sentence),) = made.said(RemarkKind.NOT_YET)
    assert line == 3
    assert f"({scheme} on h:5) is left out with its autoStart, trace, x: {protocol} is not in effect yet" in sentence
    assert f'<acceptor name="later">tcp://h:5?protocols={protocol}' in made.conversion.broker_xml


@pytest.mark.parametrize("scheme", ["stomp+ssl", "wss", "stomp+nio+ssl"])
def test_a_connector_with_tls_needs_a_pem_file_first(tmp_path: Path, scheme: str) -> None:
    body = f'<transportConnectors><transportConnector name="s" uri="{scheme}://h:5"/></transportConnectors>'
    stores = '<sslContext><sslContext keyStore="broker.ks" keyStorePassword="hidden"/></sslContext>'
    made = convert_text(broker(body + stores), tmp_path)
    assert made.settings.acceptors == ()
    assert ["PEM" in sentence for sentence in made.left_out] == [True, True]
    assert "sslEnabled=true;keyStorePath=broker.pem" in made.conversion.broker_xml
    assert "hidden" not in made.conversion.broker_xml


@pytest.mark.parametrize(
    "connector, part",
    [
        ('uri="http://h:1"', "TCP, TLS and WebSockets only"),
        ('uri="stomp+udp://h:1"', "TCP, TLS and WebSockets only"),
        ('uri="stomp://h"', "has no host and port"),
        ('uri="stomp://h:x"', "has no host and port"),
        ('name="n"', 'without uri="..."'),
        ('uri="stomp://h:1?transport.defaultHeartBeat=5000,0"', "is the heart-beat of clients that name none"),
        ('uri="stomp://h:1?rocket=1"', "unknown option 'rocket'"),
        ('uri="stomp://h:1?maximumConnections=few"', "must be a whole number"),
        ('uri="stomp://h:1" discoveryUri="multicast://default"', "announces the broker"),
        ('uri="stomp://h:1" allowLinkStealing="true"', "lets a client take over a client id"),
        ('uri="stomp://h:1" sparkle="1"', "unknown attribute 'sparkle'"),
    ],
)
def test_what_a_connector_cannot_be_is_left_out(tmp_path: Path, connector: str, part: str) -> None:
    assert [part in sentence for sentence in connectors(tmp_path, f"<transportConnector {connector}/>").left_out] == [
        True
    ]


def test_a_closed_connector_is_left_out_with_its_options(tmp_path: Path) -> None:
    uri = "wss://h:5?transport.needClientAuth=true&amp;transport.defaultHeartBeat=5000,0"
    (sentence,) = connectors(tmp_path, f'<transportConnector uri="{uri}"/>').left_out
    assert "is left out with its transport.needClientAuth, transport.defaultHeartBeat: " in sentence


def test_a_value_of_an_option_stays_one(tmp_path: Path) -> None:
    made = connectors(tmp_path, '<transportConnector uri="stomp://h:1?enabledProtocols=TLSv1.3%3BautoStart%3Dfalse"/>')
    assert len(made.settings.acceptors) == 1
    assert made.settings.acceptors[0].options["enabledProtocols"] == "TLSv1.3;autoStart=false"


def test_destinations_are_addresses(tmp_path: Path) -> None:
    body = (
        "<destinations><queue physicalName='a'/><topic physicalName='b'/><topic physicalName='a'/>"
        "<queue physicalName='c,d'/></destinations>"
    )
    made = convert_text(broker(body), tmp_path)
    found = {address.name: address.routing_types for address in made.settings.addresses}
    del found["ActiveMQ.DLQ"]
    both = frozenset({ANYCAST, MULTICAST})
    assert found == {
        "a": both,
        "b": frozenset({MULTICAST}),
        "c": frozenset({ANYCAST}),
        "d": frozenset({ANYCAST}),
    }
    assert [queue.name for queue in made.settings.queues] == ["ActiveMQ.DLQ", "a", "c", "d"]
    assert made.left_out == []


@pytest.mark.parametrize(
    "inner, part",
    [
        ("<queue/>", "without physicalName"),
        ("<queue physicalName='a.>'/>", "a name without wildcards"),
        ("<queue physicalName='a?consumer.prefetchSize=1'/>", "for consumers"),
        ("<tempQueue physicalName='a'/>", "belongs to a connection"),
    ],
)
def test_destinations_that_cannot_be_are_left_out(tmp_path: Path, inner: str, part: str) -> None:
    made = convert_text(broker(f"<destinations>{inner}</destinations>"), tmp_path)
    assert [part in sentence for sentence in made.left_out] == [True]


def virtual(inner: str) -> str:
    return (
        "<destinationInterceptors><virtualDestinationInterceptor><virtualDestinations>\n"
        f"{inner}</virtualDestinations></virtualDestinationInterceptor></destinationInterceptors>"
    )


def test_a_composite_queue_is_a_divert_for_each_kind_and_selector(tmp_path: Path) -> None:
    ends = (
        "<queue physicalName='a'/><queue physicalName='b'/><topic physicalName='t'/>"
        "<filteredDestination selector=\"colour = 'red'\" queue='r'/>"
    )
    made = convert_text(
        broker(virtual(f"<compositeQueue name='all'><forwardTo>{ends}</forwardTo></compositeQueue>")), tmp_path
    )
    assert made.settings.diverts == (
        DivertSettings("queue.all.1", "all", ("a", "b"), exclusive=True, routing_type=ANYCAST),
        DivertSettings("queue.all.2", "all", ("t",), exclusive=True, routing_type=MULTICAST),
        DivertSettings("queue.all.3", "all", ("r",), exclusive=True, routing_type=ANYCAST, filter="colour = 'red'"),
    )
    assert AddressDefinition("t", frozenset({MULTICAST})) in made.settings.addresses
    assert AddressDefinition("all", frozenset({ANYCAST})) in made.settings.addresses
    assert [queue.name for queue in made.settings.queues] == ["ActiveMQ.DLQ", "a", "b", "r"]
    assert made.conversion.remarks == ()


@pytest.mark.parametrize(
    "attributes, exclusive, keeps",
    [
        ("forwardOnly='true'", True, False),
        ("forwardOnly='false'", False, True),
        ("sendWhenNotMatched='true'", True, True),
        ("sendWhenNotMatched='true' forwardOnly='false'", True, True),
    ],
)
def test_who_keeps_what_a_composite_queue_forwards(
    tmp_path: Path, attributes: str, exclusive: bool, keeps: bool
) -> None:
    ends = "<forwardTo><filteredDestination selector='a = 1' queue='x'/></forwardTo>"
    made = convert_text(broker(virtual(f"<compositeQueue name='all' {attributes}>{ends}</compositeQueue>")), tmp_path)
    assert [divert.exclusive for divert in made.settings.diverts] == [exclusive]
    assert ("all" in [queue.name for queue in made.settings.queues]) is keeps
    # Classic drops what no selector takes.
    assert len(made.said(RemarkKind.DIFFERENT)) == (attributes == "forwardOnly='true'")


@pytest.mark.parametrize(
    "inner, part",
    [
        ("<compositeQueue name='a'><forwardTo/></compositeQueue>", "no destination to forward to"),
        (
            "<compositeTopic name='a'><forwardTo><topic physicalName='a'/></forwardTo></compositeTopic>",
            "forwards to itself",
        ),
        (
            "<compositeQueue name='a'><forwardTo><queue physicalName='b'/>"
            "<filteredDestination selector='= 1' queue='c'/>"
            "</forwardTo></compositeQueue>",
            "a selector",
        ),
        ("<virtualTopic name='>' prefix='C.*.'/>", "subscribe to 'TOPIC::QUEUE' instead"),
        ("<virtualThing/>", "no virtual destination"),
    ],
)
def test_virtual_destinations_that_cannot_be_are_left_out(tmp_path: Path, inner: str, part: str) -> None:
    made = convert_text(broker(virtual(inner)), tmp_path)
    assert [part in sentence for sentence in made.left_out] == [True]


@pytest.mark.parametrize(
    "attributes, needless",
    [
        ("name='VirtualTopic.>' prefix='Consumer.*.'", "OPENWIRE" in SERVED_PROTOCOLS),
        ("name='VirtualTopic.>' local='true'", "OPENWIRE" in SERVED_PROTOCOLS),
        ("name='VirtualTopic.>' selectorAware='true'", False),
        ("name='VirtualTopic.>' postfix='.x'", False),
        ("prefix='Consumer.*.'", False),
    ],
)
def test_the_usual_virtual_topics_are_there_with_openwire(tmp_path: Path, attributes: str, needless: bool) -> None:
    made = convert_text(broker(virtual(f"<virtualTopic {attributes}/>")), tmp_path)
    (remark,) = made.conversion.remarks
    assert remark.kind is (RemarkKind.NEEDLESS if needless else RemarkKind.NOT_YET)


def test_stomp_clients_find_virtual_topics_as_in_classic(tmp_path: Path) -> None:
    body = "<transportConnectors><transportConnector name='s' uri='stomp://h:1'/></transportConnectors>"
    made = convert_text(broker(body), tmp_path)
    (acceptor,) = made.settings.acceptors
    assert acceptor.virtual_topics == CLASSIC
    assert "virtualTopicConsumerWildcards=Consumer.*.VirtualTopic.%3E%3B2" in made.conversion.broker_xml


def test_advisories_and_frames_of_openwire(tmp_path: Path) -> None:
    uri = "tcp://h:1?wireFormat.maxFrameSize=10485760&amp;wireFormat.maxInactivityDuration=5000"
    body = f"<transportConnectors><transportConnector uri='{uri}'/></transportConnectors>"
    (acceptor,) = convert_text(broker(body, "advisorySupport='false'"), tmp_path).settings.acceptors
    assert not acceptor.support_advisory
    assert (acceptor.open_wire_max_frame_bytes, acceptor.max_inactivity_duration_ms) == (10 * 1024**2, 5000)
    assert acceptor.anycast_prefixes == ()
    (usual,) = convert_text(broker(body), tmp_path).settings.acceptors
    assert usual.support_advisory


def plugins(tmp_path: Path, inner: str, more: str = "") -> Converted:
    return convert_text(broker(f"<plugins>\n{inner}</plugins>{more}"), tmp_path)


def test_redelivery_of_the_broker(tmp_path: Path) -> None:
    made = plugins(
        tmp_path,
        "<redeliveryPlugin><redeliveryPolicyMap><redeliveryPolicyMap><redeliveryPolicyEntries>"
        "<redeliveryPolicy queue='a' maximumRedeliveries='4' redeliveryDelay='100' initialRedeliveryDelay='100'/>"
        "</redeliveryPolicyEntries><defaultEntry><redeliveryPolicy useExponentialBackOff='true' backOffMultiplier='2'"
        " maximumRedeliveryDelay='9000' useCollisionAvoidance='true' maximumRedeliveries='-1'/></defaultEntry>"
        "</redeliveryPolicyMap></redeliveryPolicyMap></redeliveryPlugin>",
    )
    exact, other = made.resolve("a"), made.resolve("b")
    assert (exact.max_delivery_attempts, exact.redelivery_delay, exact.redelivery_delay_multiplier) == (5, 100, 1.0)
    assert exact.redelivery_collision_avoidance_factor == 0.0
    assert (other.max_delivery_attempts, other.redelivery_delay, other.redelivery_delay_multiplier) == (-1, 1000, 2.0)
    assert (other.max_redelivery_delay, other.redelivery_collision_avoidance_factor) == (9000, 0.15)


@pytest.mark.parametrize(
    "attributes, field, value",
    [
        ("zeroExpirationOverride='5000'", "expiry_delay", 5000),
        ("zeroExpirationOverride='9000' ttlCeiling='7000'", "max_expiry_delay", 7000),
        ("zeroExpirationOverride='5000' ttlCeiling='7000'", "expiry_delay", 5000),
        ("ttlCeiling='7000'", "max_expiry_delay", -1),
    ],
)
def test_time_stamps(tmp_path: Path, attributes: str, field: str, value: int) -> None:
    made = plugins(tmp_path, f"<timeStampingBrokerPlugin {attributes} futureOnly='true'/>")
    assert getattr(made.resolve("q"), field) == value
    # A bound that would end what never ends, or that has no effect, is not written.
    first, *others = made.left_out
    assert "to each message is left out ('futureOnly' would bound it)" in first
    assert len(others) == ("7000" in attributes and "9000" not in attributes)


def test_a_connector_whose_port_is_taken_is_a_comment(tmp_path: Path) -> None:
    inner = "<transportConnector name='a' uri='tcp://0.0.0.0:1'/><transportConnector name='b' uri='stomp://h:1'/>"
    made = connectors(tmp_path, inner)
    assert [acceptor.name for acceptor in made.settings.acceptors] == ["a"]
    assert [said for said in made.said(RemarkKind.WRONG) if "acceptor 'a' has its port; give it another one" in said[1]]
    assert "acceptor 'a' has its port:" in made.conversion.broker_xml


def test_a_connector_without_a_port_is_shown_as_written(tmp_path: Path) -> None:
    made = connectors(tmp_path, "<transportConnector name='e' uri='vm://x'/>")
    assert "the connector 'e' (vm://x) is not needed" in made.said(RemarkKind.NEEDLESS)[0][1]


def test_no_attribute_of_a_plugin_disappears(tmp_path: Path) -> None:
    made = plugins(
        tmp_path,
        "<timeStampingBrokerPlugin processNetworkMessages='true'/>"
        "<discardingDLQBrokerPlugin dropTemporaryQueues='false' dropTemporaryTopics='true' reportInterval='5'/>",
    )
    assert ["'dropTemporaryQueues' is left out" in sentence for sentence in made.left_out] == [False, True]
    needless = " ".join(sentence for _, sentence in made.said(RemarkKind.NEEDLESS))
    assert "'processNetworkMessages'" in needless
    assert "'reportInterval'" in needless


def test_nothing_is_said_of_queues_for_dead_letters_that_are_discarded(tmp_path: Path) -> None:
    strategy = "<deadLetterStrategy><individualDeadLetterStrategy queuePrefix='DLQ.'/></deadLetterStrategy>"
    entry = policies(f"<policyEntry queue='a'>{strategy}</policyEntry>")
    for attributes, said in (("", False), ("dropAll='false'", True), ("dropOnly='b'", True)):
        made = plugins(tmp_path, f"<discardingDLQBrokerPlugin {attributes}/>", entry)
        assert any("dead letters" in sentence for _, sentence in made.said(RemarkKind.DIFFERENT)) is said


@pytest.mark.parametrize(
    "attributes, delay, part",
    [
        ("initialRedeliveryDelay='5000'", 1000, "waits 1000 ms, as all others do, not 5000 ms"),
        ("initialRedeliveryDelay='0' useExponentialBackOff='true'", 1000, "waits 1000 ms, the base of those"),
        ("initialRedeliveryDelay='5000' useExponentialBackOff='true'", 5000, ""),
    ],
)
def test_the_first_redelivery_may_differ(tmp_path: Path, attributes: str, delay: int, part: str) -> None:
    policy = f"<defaultEntry><redeliveryPolicy {attributes}/></defaultEntry>"
    inner = f"<redeliveryPolicyMap><redeliveryPolicyMap>{policy}</redeliveryPolicyMap></redeliveryPolicyMap>"
    made = plugins(tmp_path, f"<redeliveryPlugin>{inner}</redeliveryPlugin>")
    assert made.resolve("a").redelivery_delay == delay
    said = " ".join(sentence for _, sentence in made.said(RemarkKind.DIFFERENT) if "redelivery" in sentence)
    assert part in said if part else said == ""


def test_dead_letters_that_are_discarded(tmp_path: Path) -> None:
    entry = "<policyEntry queue='a'><deadLetterStrategy><sharedDeadLetterStrategy/></deadLetterStrategy></policyEntry>"
    made = plugins(tmp_path, "<discardingDLQBrokerPlugin/>", policies(entry))
    assert {made.resolve(name).dead_letter_address for name in ("a", "b")} == {""}
    assert {made.resolve(name).expiry_address for name in ("a", "b")} == {""}
    some = plugins(tmp_path, "<discardingDLQBrokerPlugin dropOnly='a.*'/>")
    assert some.resolve("a").dead_letter_address == "ActiveMQ.DLQ"
    assert ["'dropOnly'" in sentence for sentence in some.left_out] == [True]


@pytest.mark.parametrize(
    "name",
    [
        "statisticsBrokerPlugin",
        "jaasAuthenticationPlugin",
        "jaasDualAuthenticationPlugin",
        "destinationPathSeparatorPlugin",
        "forcePersistencyModeBrokerPlugin",
    ],
)
def test_plugins_without_an_equal_are_left_out(tmp_path: Path, name: str) -> None:
    made = plugins(tmp_path, f"<{name} configuration='activemq'/>")
    assert [f"<{name}> is left out" in sentence for sentence in made.left_out] == [True]


def test_other_brokers_are_left_out_one_by_one(tmp_path: Path) -> None:
    body = (
        "<networkConnectors>\n<networkConnector name='n' uri='static:(tcp://h:1)' duplex='true'/>"
        "<networkConnector uri='multicast://default'><excludedDestinations/></networkConnector></networkConnectors>"
        "<jmsBridgeConnectors><jmsQueueConnector/></jmsBridgeConnectors><proxyConnectors><proxyConnector/>"
        "</proxyConnectors>"
    )
    made = convert_text(broker(body), tmp_path)
    assert len(made.left_out) == 4
    assert [line for line, _ in made.said(RemarkKind.IMPOSSIBLE)] == [3, 3, 3, 3]


@pytest.mark.parametrize(
    "store, persistent, left_out, different",
    [
        ("<kahaDB directory='d' journalMaxFileLength='32mb'/>", True, 0, 0),
        ("<kahaDB enableJournalDiskSyncs='false'/>", True, 0, 1),
        ("<kahaDB journalDiskSyncStrategy='PERIODIC'/>", True, 0, 1),
        ("<mKahaDB><filteredPersistenceAdapters/></mKahaDB>", True, 0, 0),
        ("<memoryPersistenceAdapter/>", False, 0, 0),
        ("<jdbcPersistenceAdapter dataSource='#ds'/>", True, 1, 0),
    ],
)
def test_stores(tmp_path: Path, store: str, persistent: bool, left_out: int, different: int) -> None:
    made = convert_text(broker(f"<persistenceAdapter>{store}</persistenceAdapter>"), tmp_path)
    assert bool(made.settings.journal.directory) is persistent
    assert (len(made.left_out), len(made.said(RemarkKind.DIFFERENT))) == (left_out, different)


@pytest.mark.parametrize(("fails", "happens"), [("true", "sends fail"), ("false", "producers wait")])
def test_the_remarks_on_memory_say_what_the_setting_does(tmp_path: Path, fails: str, happens: str) -> None:
    made = convert_text(
        broker(
            f'<systemUsage><systemUsage sendFailIfNoSpace="{fails}">'
            '<memoryUsage><memoryUsage limit="64 mb"/></memoryUsage>'
            '<storeUsage><storeUsage limit="1 gb"/></storeUsage></systemUsage></systemUsage>'
        ),
        tmp_path,
    )
    assert any(sentence.startswith(f"{happens} when all messages") for _, sentence in made.said(RemarkKind.DIFFERENT))
    assert any(f"when the disk is full, {happens} and" in sentence for _, sentence in made.said(RemarkKind.NOT_YET))


def test_a_network_connector_without_a_name_is_named_by_its_kind(tmp_path: Path) -> None:
    made = convert_text(broker("<networkConnectors><networkConnector uri='static:(x)'/></networkConnectors>"), tmp_path)
    assert made.left_out[0].startswith("<networkConnector> is left out")


@pytest.mark.parametrize(
    ("usage", "entry", "wait"),
    [
        ("", "", -1),
        ("700", "", 700),
        ("0", "", -1),
        ("700", 'sendFailIfNoSpaceAfterTimeout="300"', 300),
        ("", 'sendFailIfNoSpaceAfterTimeout="300"', 300),
    ],
)
def test_how_long_a_send_waits_for_room(tmp_path: Path, usage: str, entry: str, wait: int) -> None:
    made = convert_text(
        broker(
            f'<systemUsage><systemUsage sendFailIfNoSpaceAfterTimeout="{usage}"/></systemUsage><destinationPolicy>'
            f'<policyMap><policyEntries><policyEntry queue="a" {entry}/><policyEntry queue=">"/></policyEntries>'
            "</policyMap></destinationPolicy>"
        ),
        tmp_path,
    )
    assert made.left_out == []
    assert made.resolve("a").block_timeout == wait
    assert made.resolve("b").block_timeout == int(usage or "-1") or (usage == "0" and wait == -1)


def test_a_wrong_wait_for_room_is_listed(tmp_path: Path) -> None:
    usage = '<systemUsage><systemUsage sendFailIfNoSpaceAfterTimeout="long"/></systemUsage>'
    ((_, sentence),) = convert_text(broker(usage), tmp_path).said(RemarkKind.WRONG)
    assert "'sendFailIfNoSpaceAfterTimeout' of <systemUsage> is 'long'" in sentence


# -- plugins that log --------------------------------------------------------------------------------------------------


def plugin(tmp_path: Path, inner: str) -> Converted:
    return convert_text(broker(f"<plugins>\n{inner}</plugins>"), tmp_path)


@pytest.mark.parametrize(
    ("attributes", "logged"),
    [
        ("", "connections, sessions"),
        ('logConnectionEvents="false" logProducerEvents="true"', "sessions, producers and each message that is sent"),
        (
            'logAll="true" logSessionEvents="false" perDestinationLogger="true"',
            "connections, sessions, consumers and acknowledgements, producers and each message that is sent,"
            " transactions, what the broker does to queues and messages",
        ),
    ],
)
def test_what_a_logging_plugin_logged_is_said(tmp_path: Path, attributes: str, logged: str) -> None:
    made = plugin(tmp_path, f"<loggingBrokerPlugin {attributes}/>")
    ((_, sentence),) = made.said(RemarkKind.IMPOSSIBLE)
    assert sentence.startswith(f"<loggingBrokerPlugin> is left out: it logs {logged}; here")
    assert "<divert>" in sentence
    assert made.said(RemarkKind.NEEDLESS) == []


def test_a_logging_plugin_that_logs_nothing_is_not_needed(tmp_path: Path) -> None:
    made = plugin(tmp_path, '<loggingBrokerPlugin logConnectionEvents="false" logSessionEvents="false"/>')
    assert [sentence for _, sentence in made.said(RemarkKind.NEEDLESS)] == [
        "<loggingBrokerPlugin> is not needed: all that it could log is switched off"
    ]


@pytest.mark.parametrize(
    "name",
    [
        "runtimeConfigurationPlugin",
        "traceBrokerPathPlugin",
        "udpTraceBrokerPlugin",
        "multicastTraceBrokerPlugin",
        "connectionDotFilePlugin",
        "destinationDotFilePlugin",
        "virtualSelectorCacheBrokerPlugin",
    ],
)
def test_a_plugin_whose_work_is_lost_is_left_out_and_not_needless(tmp_path: Path, name: str) -> None:
    made = plugin(tmp_path, f"<{name}/>")
    assert made.said(RemarkKind.NEEDLESS) == []
    ((_, sentence),) = made.said(RemarkKind.IMPOSSIBLE)
    assert sentence.startswith(f"<{name}> is left out: it ")


def test_the_write_timeout_of_a_connector_is_that_of_its_acceptor(tmp_path: Path) -> None:
    made = connectors(tmp_path, '<transportConnector name="in" uri="stomp://h:5?soWriteTimeout=500"/>')
    assert [acceptor.so_write_timeout_ms for acceptor in made.settings.acceptors] == [500]
    assert made.left_out == []


@pytest.mark.parametrize(
    ("option", "about"), [("trace=true", "logs each command"), ("defaultHeartBeat=5,5", "is the heart-beat")]
)
def test_an_option_of_a_connector_whose_work_is_lost_is_left_out(tmp_path: Path, option: str, about: str) -> None:
    made = connectors(tmp_path, f'<transportConnector name="in" uri="stomp://h:5?{option}"/>')
    ((_, sentence),) = made.said(RemarkKind.IMPOSSIBLE)
    assert about in sentence
