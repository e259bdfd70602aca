"""activemq.xml to broker.xml: the file as a whole, what surrounds the broker, and what is unknown."""

import io
from dataclasses import replace
from pathlib import Path

import pytest

from delosmq.cli.convert import LEFT_OUT, convert_command, read_definitions
from delosmq.cli.usage import WrongCallError
from delosmq.config.broker_xml.catalog.address_settings import ADDRESS_SETTING
from delosmq.config.broker_xml.catalog.core import CORE
from delosmq.config.instance import load_instance
from delosmq.migration.activemq_xml import RemarkKind, check_conversion, convert_activemq_xml, write_instance
from delosmq.migration.activemq_xml.catalog.policies import BASELINE
from delosmq.model.errors import ConfigurationError
from delosmq.model.message import ANYCAST
from delosmq.model.settings import AddressFullPolicy, DispatchProfile
from delosmq.security.access import PERMISSIONS
from delosmq.security.passwords import verify_password
from tests.migration.activemq_xml import broker, convert_text, policies

# In the shape of the file that Classic's distribution comes with.
USUAL = """<?xml version="1.0" encoding="UTF-8"?>
<beans xmlns="http://www.springframework.org/schema/beans"
       xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
       xsi:schemaLocation="http://www.springframework.org/schema/beans http://www.springframework.org/schema/beans.xsd">
   <!-- comments and what they hold are not read: <transportConnector/> -->
   <bean class="org.springframework.beans.factory.config.PropertyPlaceholderConfigurer">
      <property name="locations"><value>file:${activemq.conf}/credentials.properties</value></property>
   </bean>
   <broker xmlns="http://activemq.apache.org/schema/core" brokerName="depot" dataDirectory="${activemq.data}">
      <destinationPolicy>
         <policyMap>
            <policyEntries>
               <policyEntry topic=">">
                  <pendingMessageLimitStrategy>
                     <constantPendingMessageLimitStrategy limit="1000"/>
                  </pendingMessageLimitStrategy>
               </policyEntry>
            </policyEntries>
         </policyMap>
      </destinationPolicy>
      <managementContext><managementContext createConnector="false"/></managementContext>
      <persistenceAdapter><kahaDB directory="${activemq.data}/kahadb"/></persistenceAdapter>
      <systemUsage>
         <systemUsage>
            <memoryUsage><memoryUsage percentOfJvmHeap="70"/></memoryUsage>
            <storeUsage><storeUsage limit="100 gb"/></storeUsage>
            <tempUsage><tempUsage limit="50 gb"/></tempUsage>
         </systemUsage>
      </systemUsage>
      <transportConnectors>
         <transportConnector name="mqtt" uri="mqtt://0.0.0.0:1883?maximumConnections=1000"/>
         <transportConnector name="stomp" uri="stomp://127.0.0.1:0?maximumConnections=9&amp;wireFormat.maxFrameSize=2097152"/>
      </transportConnectors>
      <shutdownHooks>
         <bean xmlns="http://www.springframework.org/schema/beans" class="org.apache.activemq.hooks.SpringContextHook"/>
      </shutdownHooks>
   </broker>
   <import resource="jetty.xml"/>
</beans>
"""


def test_the_usual_file_becomes_a_broker_with_classics_habits(tmp_path: Path) -> None:
    made = convert_text(USUAL, tmp_path)
    assert made.settings.name == "depot"
    assert made.settings.journal.directory != ""
    assert made.settings.global_max_size_bytes == 8 * 1024**3 * 70 // 100
    settings = made.resolve("any.name")
    assert settings.dispatch_profile is DispatchProfile.CLASSIC
    assert (settings.dead_letter_address, settings.expiry_address) == ("ActiveMQ.DLQ", "ActiveMQ.DLQ")
    assert settings.max_delivery_attempts == 7
    assert settings.address_full_policy is AddressFullPolicy.BLOCK
    assert not settings.auto_delete_queues
    assert [(queue.name, queue.routing_type) for queue in made.settings.queues] == [("ActiveMQ.DLQ", ANYCAST)]


def test_of_the_usual_file_everything_else_is_listed_by_line(tmp_path: Path) -> None:
    made = convert_text(USUAL, tmp_path)
    lines = USUAL.splitlines()
    not_yet = made.said(RemarkKind.NOT_YET)
    assert len(not_yet) == 2
    for (line, sentence), part in zip(not_yet, ("storeUsage limit", "mqtt://"), strict=True):
        assert part in lines[line - 1]
        assert "left out" in sentence
    assert [line for line, _ in made.said(RemarkKind.DIFFERENT)] == [9, 25]
    needless = " ".join(sentence for _, sentence in made.said(RemarkKind.NEEDLESS))
    for name in (
        "PropertyPlaceholderConfigurer",
        "'dataDirectory'",
        "<managementContext>",
        "<kahaDB>",
        "<tempUsage>",
        "<shutdownHooks>",
        "<import>",
    ):
        assert name in needless
    assert not made.conversion.is_complete
    assert {remark.kind for remark in made.conversion.remarks} == {
        RemarkKind.NOT_YET,
        RemarkKind.DIFFERENT,
        RemarkKind.NEEDLESS,
    }


def test_what_is_needless_for_one_reason_is_one_line(tmp_path: Path) -> None:
    text = policies('<policyEntry queue="a" useCache="false" maxPageSize="5" lazyDispatch="true"/>')
    needless = [said for said in convert_text(broker(text), tmp_path).said(RemarkKind.NEEDLESS) if said[0] == 3]
    assert len(needless) == 2
    assert needless[0][1].startswith("'useCache', 'maxPageSize' of policyEntry queue='a' are not needed: it tunes")


def test_the_list_is_at_the_top_of_the_file_and_may_hold_anything(tmp_path: Path) -> None:
    made = convert_text(broker("", "zebra='1'"), tmp_path)
    assert "unknown attribute 'zebra' of <broker>" in made.conversion.broker_xml.partition("-->")[0]
    nasty = convert_text(broker(policies('<policyEntry queue="a -- b --> c #x" memoryLimit="1"/>')), tmp_path)
    # A command has to be readable in it.
    open_one = convert_text(broker("", "brokerName='${x}'"), tmp_path)
    assert "option define or option properties" in open_one.conversion.broker_xml.partition("-->")[0]
    assert "a - - b - -> c #x" in nasty.conversion.broker_xml.partition("-->")[0]


def test_a_broker_alone_without_anything_is_converted_whole(tmp_path: Path) -> None:
    made = convert_text(broker("", "brokerName='b' persistent='false'"), tmp_path)
    assert made.conversion.is_complete
    assert made.left_out == []
    assert made.settings.journal.directory == ""
    assert "all of it" in made.conversion.broker_xml


@pytest.mark.parametrize(
    "body, line, part",
    [
        ("<destinationPolicies/>", 2, "unknown element <destinationPolicies> in <broker>"),
        ("<systemUsage><systemUsage><diskUsage/></systemUsage></systemUsage>", 2, "unknown element <diskUsage>"),
        ("<systemUsage><systemUsage sendFail='1'/></systemUsage>", 2, "unknown attribute 'sendFail' of <systemUsage>"),
        ("\n<persistenceAdapter><leveldb/></persistenceAdapter>", 3, "<leveldb> is left out: it is no store"),
        ("<plugins><yourPlugin/></plugins>", 2, "<yourPlugin> is left out"),
        ("<plugins>\n<bean class='com.example.Plugin'/></plugins>", 3, "Java classes can't run here"),
        ("<destinations><queue physicalName='q' durable='1'/></destinations>", 2, "unknown attribute 'durable'"),
        ("<destinations>words</destinations>", 2, "text in <destinations>"),
        (
            policies("<policyEntri/>"),
            3,
            "unknown element <policyEntri> in <policyEntries>; did you mean 'policyEntry'?",
        ),
        (
            policies("<policyEntry queue='q' memoryLimt='1'/>"),
            3,
            "unknown attribute 'memoryLimt' of <policyEntry>; did",
        ),
        (policies("<policyEntry queue='q'><deadLetters/></policyEntry>"), 3, "unknown element <deadLetters>"),
        ("<destinationInterceptors><virtual/></destinationInterceptors>", 2, "unknown element <virtual>"),
        ("<transportConnectors><connector/></transportConnectors>", 2, "unknown element <connector>"),
    ],
)
def test_what_is_unknown_is_listed_with_its_line(tmp_path: Path, body: str, line: int, part: str) -> None:
    unknown = [remark for remark in convert_text(broker(body), tmp_path).conversion.remarks if remark.left_out]
    assert any(remark.line == line and part in remark.sentence for remark in unknown), unknown


@pytest.mark.parametrize(
    "attributes, part",
    [
        ("deleteAllMessagesOnStartup='true'", "it empties the store at each start"),
        ("useMirroredQueues='true'", "it copies all messages of queues to topics"),
        ("populateJMSXUserID='true'", "it stamps each message with its sender, and no element of <core> does so yet"),
        ("offlineDurableSubscriberTimeout='86400000'", "it removes durable subscribers that stay away"),
        ("brokerName='${name}'", "has a placeholder that stands for nothing here"),
        ("persistent='perhaps'", "'persistent' of <broker> is 'perhaps' but must be true or false"),
        ("schedulePeriodForDestinationPurge='soon'", "must be a whole number of at least 0"),
    ],
)
def test_attributes_that_ask_for_more_than_there_is_are_left_out(tmp_path: Path, attributes: str, part: str) -> None:
    made = convert_text(broker("", attributes), tmp_path)
    assert [part in sentence for sentence in made.left_out] == [True]


def test_attributes_that_ask_for_nothing_more_are_not_listed(tmp_path: Path) -> None:
    quiet = (
        "deleteAllMessagesOnStartup='false' useMirroredQueues='FALSE' populateJMSXUserID='false' "
        "advisorySupport='true' "
        "schedulerSupport='false' rejectDurableConsumers='false' maxUncommittedCount='0'"
    )
    assert convert_text(broker("", quiet), tmp_path).conversion.remarks == ()


def test_placeholders_take_what_they_are_given_and_defaults(tmp_path: Path) -> None:
    made = convert_text(broker("", "brokerName='${a}-${b:two}'"), tmp_path, a="one")
    assert made.settings.name == "one-two"


def test_periods_of_the_broker(tmp_path: Path) -> None:
    body = policies('<policyEntry queue=">" expireMessagesPeriod="0"/>')
    made = convert_text(broker(body, "schedulePeriodForDestinationPurge='1234'"), tmp_path)
    assert made.settings.address_queue_scan_period_ms == 1234
    assert made.settings.message_expiry_scan_period_ms == -1


def usage(inner: str, attributes: str = "") -> str:
    return f"<systemUsage><systemUsage {attributes}>{inner}</systemUsage></systemUsage>"


@pytest.mark.parametrize(
    "limit, size", [("64 mb", 64 * 1024**2), ("1gb", 1024**3), ("2048", 2048), ("3000", 3000), ("20 Mb", 20 * 1024**2)]
)
def test_memory_is_bounded_as_it_was(tmp_path: Path, limit: str, size: int) -> None:
    body = usage(f'<memoryUsage><memoryUsage limit="{limit}"/></memoryUsage>')
    made = convert_text(broker(body), tmp_path)
    assert made.settings.global_max_size_bytes == size
    assert made.left_out == []


@pytest.mark.parametrize("limit", ["0", "-1", "much", "1 tb"])
def test_a_wrong_amount_of_memory_is_left_out(tmp_path: Path, limit: str) -> None:
    made = convert_text(broker(usage(f'<memoryUsage><memoryUsage limit="{limit}"/></memoryUsage>')), tmp_path)
    assert ["<memoryUsage>" in sentence for sentence in made.left_out] == [True]


def test_send_fail_if_no_space_holds_for_every_address(tmp_path: Path) -> None:
    body = usage("", "sendFailIfNoSpace='true'") + policies('<policyEntry queue="a.>"/>')
    made = convert_text(broker(body), tmp_path)
    assert {made.resolve(name).address_full_policy for name in ("a.b", "c")} == {AddressFullPolicy.FAIL}


@pytest.mark.parametrize(
    "text, code, part",
    [
        ("<broker", "DMQ4002", "not well-formed"),
        ("<beans><bean/></beans>", "DMQ4140", "<beans> without one"),
        ("<beans><broker/><broker/></beans>", "DMQ4140", "2 of them"),
        ('<broker xmlns="urn:other"/>', "DMQ4140", "no activemq.xml"),
        ('<!DOCTYPE x SYSTEM "file:///etc/passwd"><broker/>', "DMQ4003", "document type"),
        (
            '<!DOCTYPE b [<!ENTITY a "aaaaaaaaaa"><!ENTITY c "&a;&a;&a;&a;&a;&a;&a;&a;">]><broker brokerName="&c;"/>',
            "DMQ4003",
            "document type",
        ),
        (
            '<broker xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="file:///etc/passwd"/></broker>',
            "DMQ4003",
            "XInclude",
        ),
    ],
)
def test_bad_xml_is_refused(tmp_path: Path, text: str, code: str, part: str) -> None:
    with pytest.raises(ConfigurationError, match=part) as refused:
        convert_text(text, tmp_path)
    assert refused.value.code == code


def test_entities_hidden_by_an_encoding_are_refused(tmp_path: Path) -> None:
    bomb = '<?xml version="1.0" encoding="UTF-16"?><!DOCTYPE b [<!ENTITY a "boom">]><broker brokerName="&a;"/>'
    with pytest.raises(ConfigurationError, match="DMQ4003"):
        convert_text(bomb.encode("utf-16"), tmp_path)


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="DMQ4001"):
        convert_activemq_xml(tmp_path / "none.xml", properties={})


def test_an_instance_has_an_administrator_and_loads(tmp_path: Path) -> None:
    source = tmp_path / "activemq.xml"
    source.write_text(USUAL, encoding="utf-8")
    written = write_instance(convert_activemq_xml(source, properties={}), tmp_path / "new", password="secret")
    instance = load_instance(tmp_path / "new", properties={})
    assert verify_password(instance.users["admin"], "secret")
    assert instance.roles == {"admin": frozenset({"amq"})}
    (match,) = instance.settings.security_settings
    assert (match.match, match.permissions) == ("#", {name: frozenset({"amq"}) for name in PERMISSIONS})
    assert written.user == "admin"
    assert "secret" not in instance.paths.users.read_text("ascii")


def test_a_directory_in_use_is_left_alone(tmp_path: Path) -> None:
    source = tmp_path / "activemq.xml"
    source.write_text(USUAL, encoding="utf-8")
    with pytest.raises(ConfigurationError, match="DMQ4035"):
        write_instance(convert_activemq_xml(source, properties={}), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["activemq.xml"]


def test_a_circle_of_composite_destinations_is_broken_and_said_with_its_line(tmp_path: Path) -> None:
    body = "<destinationInterceptors><virtualDestinationInterceptor><virtualDestinations>"
    for name, to in (("a", "b"), ("b", "c"), ("c", "a"), ("d.>", "d.e")):
        body += f"\n<compositeQueue name='{name}'><forwardTo><queue physicalName='{to}'/></forwardTo></compositeQueue>"
    body += "</virtualDestinations></virtualDestinationInterceptor></destinationInterceptors>"
    made = convert_text(broker(body), tmp_path)
    assert [(one.address, one.forwarding_addresses) for one in made.settings.diverts] == [("a", ("b",)), ("b", ("c",))]
    assert [line for line, _ in made.said(RemarkKind.IMPOSSIBLE)] == [5, 6]
    assert "with line 3 and line 4" in made.left_out[0]


def test_what_contradicts_itself_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    source = tmp_path / "activemq.xml"
    source.write_text(broker(""), encoding="utf-8")
    made = convert_activemq_xml(source, properties={})
    twice = "<name>a</name><name>b</name>"
    conversion = replace(made, broker_xml=made.broker_xml.replace("<name>localhost</name>", twice))
    with pytest.raises(ConfigurationError, match=r"DMQ4141: .*<name>"):
        check_conversion(conversion)
    with pytest.raises(ConfigurationError, match="DMQ4141"):
        write_instance(conversion, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def run(tmp_path: Path, text: str, directory: Path | None = None) -> tuple[int, str, str]:
    source = tmp_path / "activemq.xml"
    source.write_text(text, encoding="utf-8")
    out, listing = io.StringIO(), io.StringIO()
    code = convert_command(source, directory, properties={}, file=out, listing=listing)
    return code, out.getvalue(), listing.getvalue()


def test_the_command_lists_what_it_can_where_the_rest_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "activemq.xml"
    # Of the bounds of an option only broker.xml knows.
    connector = "<transportConnector uri='tcp://h:1?maximumConnections=-5'/>"
    body = f"<transportConnectors>{connector}</transportConnectors>"
    source.write_text(broker(body, "zebra='1'"), encoding="utf-8")
    listing = io.StringIO()
    with pytest.raises(ConfigurationError, match=r"DMQ4141: .*'connectionsAllowed'"):
        convert_command(source, None, properties={}, file=io.StringIO(), listing=listing)
    assert "unknown attribute 'zebra'" in listing.getvalue()


def test_the_command_prints_the_file_and_lists_the_rest(tmp_path: Path) -> None:
    code, printed, listed = run(tmp_path, USUAL)
    assert code == LEFT_OUT == 3
    assert printed == convert_activemq_xml(tmp_path / "activemq.xml", properties={}).broker_xml
    assert f"DMQ4130: {tmp_path}/activemq.xml:26: " in listed
    assert "2 things were left out" in listed
    assert [path.name for path in tmp_path.iterdir()] == ["activemq.xml"]


def test_the_command_makes_an_instance_and_shows_the_password_once(tmp_path: Path) -> None:
    code, printed, listed = run(tmp_path, broker(""), tmp_path / "new")
    assert (code, listed) == (0, "")
    password = next(line for line in printed.splitlines() if "password" in line).split()[1]
    assert verify_password(load_instance(tmp_path / "new", properties={}).users["admin"], password)


def test_definitions_are_names_with_values_and_win_over_a_file(tmp_path: Path) -> None:
    file = tmp_path / "credentials.properties"
    file.write_text("# old\nactivemq.password=one\na=file\n", encoding="ascii")
    assert read_definitions(["a=b=c", "d="], file) == {"activemq.password": "one", "a": "b=c", "d": ""}
    with pytest.raises(WrongCallError, match="DMQ4142: --define secret is not"):
        read_definitions(["secret"], None)


def test_what_a_file_holds_reaches_no_terminal(tmp_path: Path) -> None:
    made = convert_text(broker("<destinations/>", "allowTempAutoCreationOnSend='&#10;&#9;true'"), tmp_path)
    assert all(remark.sentence.isprintable() for remark in made.conversion.remarks)
    assert len(made.left_out) == 1


def test_what_is_written_for_all_addresses_is_known() -> None:
    # A name that is misspelt here would never come into effect.
    assert {name for name in BASELINE if name not in ADDRESS_SETTING} == set()
    assert "message-expiry-scan-period" in CORE


def test_a_broker_xml_of_artemis_needs_no_conversion(tmp_path: Path) -> None:
    path = tmp_path / "broker.xml"
    path.write_text('<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core"/></configuration>')
    with pytest.raises(ConfigurationError, match=f"DMQ4144.*needs no conversion.*delosmq check {path}"):
        convert_activemq_xml(path)
