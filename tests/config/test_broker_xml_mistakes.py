"""broker.xml: every kind of mistake is named with file, line and remedy, and many at once."""

# BROKER-3

import re
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delosmq.config.broker_xml import load_broker_xml
from delosmq.model.errors import ConfigurationError
from tests.config.conftest import HEAD, TAIL, Load

ADDRESS = '<addresses><address name="a"><anycast>{}</anycast></address></addresses>'
SETTING = '<address-settings><address-setting match="#">{}</address-setting></address-settings>'
SECURITY = "<security-settings>{}</security-settings>"
ACCEPTOR = '<acceptors><acceptor name="a">{}</acceptor></acceptors>'
STOMP = "tcp://localhost:61613?protocols=STOMP;"

MISTAKES = [
    # unknown names
    (
        "<jurnal-directory>x</jurnal-directory>",
        "DMQ4004",
        "<jurnal-directory> in <core>; did you mean 'journal-directory'?",
    ),
    ("<zzz/>", "DMQ4004", "unknown element <zzz> in <core>; remove it"),
    (ADDRESS.format('<queue name="q" ringsize="3"/>'), "DMQ4004", "'ringsize' of <queue>; did you mean 'ring-size'?"),
    (ADDRESS.format('<queue name="q"><durabel/></queue>'), "DMQ4004", "did you mean 'durable'?"),
    (
        SETTING.format("<max-delivery-atempts>1</max-delivery-atempts>"),
        "DMQ4004",
        "did you mean 'max-delivery-attempts'?",
    ),
    (ACCEPTOR.format(STOMP + "anycastprefix=/q/"), "DMQ4004", "did you mean 'anycastPrefix'?"),
    ('<x:name xmlns:x="urn:other">b</x:name>', "DMQ4004", 'write <core xmlns="urn:activemq:core">'),
    ('<name x:a="1" xmlns:x="urn:other">b</name>', "DMQ4004", "attribute 'a' of another namespace; remove it"),
    ("<name>b<b/></name>", "DMQ4004", "<b> in <name>, which holds text; remove it"),
    ("<name a='1'>b</name>", "DMQ4004", "unknown attribute 'a' of <name>; remove it"),
    ("<acceptors>tcp://localhost:1</acceptors>", "DMQ4004", "text in <acceptors>"),
    (
        '<addresses><address name="a"><queue name="q"/></address></addresses>',
        "DMQ4004",
        '<queue> directly in <address>: a queue is anycast or multicast: write <anycast><queue name="..."/></anycast>',
    ),
    ('<addresses><queue name="q"/></addresses>', "DMQ4004", "stands in its address: write <addresses><address name="),
    ('<queue name="q"/>', "DMQ4004", "<queue> directly in <core>: it stands in its address"),
    ('<address name="q"/>', "DMQ4004", "<address> directly in <core>: write <addresses>"),
    (ADDRESS.format('<queue name="q"><filter>a = 1</filter></queue>'), "DMQ4004", 'write <filter string="a = 1"/>'),
    ('<addresses><address name="a::b"><anycast/></address></addresses>', "DMQ4005", "'a::b' is no name for an address"),
    (ADDRESS.format('<queue name="a::b"/>'), "DMQ4005", "'a::b' is no name for a queue"),
    ("<connectors><conector/></connectors>", "DMQ4004", "did you mean 'connector'?"),
    ('<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="x.xml"/>', "DMQ4003", "put the included text here"),
    # wrong values
    ("<persistence-enabled>yes</persistence-enabled>", "DMQ4005", "<persistence-enabled> is 'yes' but must be true or"),
    ("<name/>", "DMQ4005", "must be given; it is empty"),
    ("<journal-file-size>10X</journal-file-size>", "DMQ4005", "must be a size in bytes such as"),
    ("<journal-file-size>1K</journal-file-size>", "DMQ4005", "at least 65536 bytes"),
    ("<journal-file-size>4G</journal-file-size>", "DMQ4005", "at least 65536 bytes and at most 4294967295"),
    ("<global-max-size>0</global-max-size>", "DMQ4005", "-1 (no limit) or a size"),
    ("<global-max-size>99999999999999999G</global-max-size>", "DMQ4005", "below 2^63"),
    ("<connection-ttl-override>0</connection-ttl-override>", "DMQ4005", "at least 1"),
    ("<connection-ttl-check-interval>1.5</connection-ttl-check-interval>", "DMQ4005", "whole number"),
    (ADDRESS.format('<queue name="q" ring-size="-2"/>'), "DMQ4005", "'ring-size' of <queue> is '-2' but must be -1"),
    (ADDRESS.format('<queue name="q" max-consumers="many"/>'), "DMQ4005", "whole number"),
    (SETTING.format("<address-full-policy>WAIT</address-full-policy>"), "DMQ4005", "PAGE, BLOCK, FAIL or DROP"),
    (
        SETTING.format("<default-address-routing-type>QUEUE</default-address-routing-type>"),
        "DMQ4005",
        "ANYCAST or MULTICAST",
    ),
    (SETTING.format("<max-delivery-attempts>-2</max-delivery-attempts>"), "DMQ4005", "-1 or 0 for endless"),
    (ACCEPTOR.format(STOMP + "handshake-timeout=0"), "DMQ4005", "'handshake-timeout' of acceptor 'a' is '0'"),
    (ACCEPTOR.format(STOMP + "heartBeatToConnectionTtlModifier=nan"), "DMQ4005", "a factor from 1"),
    (ACCEPTOR.format("tcp://localhost:61613?protocols=STOMPY"), "DMQ4005", "did you mean 'STOMP'?"),
    (ACCEPTOR.format("tcp://localhost:61613?protocols="), "DMQ4005", "name one or leave it out"),
    (ACCEPTOR.format("localhost:61613"), "DMQ4005", "write tcp://host:port"),
    (ACCEPTOR.format("tcp://localhost"), "DMQ4005", "write tcp://host:port"),
    (ACCEPTOR.format("tcp://localhost:70000"), "DMQ4005", "a port from 0 to 65535"),
    (ACCEPTOR.format("tcp://[a:b]:1"), "DMQ4005", "a URL with a host"),
    (ACCEPTOR.format("tcp://localhost:1?protocols"), "DMQ4005", "a value for each option"),
    (
        SECURITY.format('<security-setting match="#"><permission type="sent" roles="a"/></security-setting>'),
        "DMQ4005",
        "unknown permission 'sent'; did you mean 'send'?",
    ),
    # what is missing
    ("<addresses><address><anycast/></address></addresses>", "DMQ4007", "<address> lacks 'name'"),
    ('<addresses><address name="a"/></addresses>', "DMQ4007", "write <anycast/> or <multicast/>"),
    (ADDRESS.format("<queue/>"), "DMQ4007", "<queue> lacks 'name'"),
    ("<address-settings><address-setting/></address-settings>", "DMQ4007", "lacks 'match'"),
    (
        SECURITY.format('<security-setting match="#"><permission type="send"/></security-setting>'),
        "DMQ4007",
        "<permission> lacks 'roles'",
    ),
    ("<journal-file-size>${nowhere}</journal-file-size>", "DMQ4009", "${nowhere} stands for nothing"),
    # what is there twice
    ("<name>a</name><name>b</name>", "DMQ4008", "<name> is already in line 3; keep one"),
    (ADDRESS.format('<queue name="q"/><queue name="q"/>'), "DMQ4008", "queue 'q' is already in line 3"),
    # what is too large says so
    (
        SETTING.format("<slow-consumer-check-period>99999999999999999999</slow-consumer-check-period>"),
        "DMQ4005",
        "2^63",
    ),
    (SETTING.format("<max-browse-page-size>99999999999999999999</max-browse-page-size>"), "DMQ4005", "below 2^63"),
    (SETTING.format("<durable-topic-prefetch>2147483648</durable-topic-prefetch>"), "DMQ4005", "at most 2147483647"),
    (ACCEPTOR.format(STOMP + "protocols=STOMP"), "DMQ4008", "'protocols' of acceptor 'a' is there twice"),
    (
        SECURITY.format('<security-setting match="#"/><security-setting match="#"/>'),
        "DMQ4008",
        "security-setting '#' is already in line 3",
    ),
    # what restricts access, memory or durability and is not in effect yet
    ("<bridges/>", "DMQ4006", "<bridges> is not in effect yet"),
    ("<federations/>", "DMQ4006", "messages would not get there"),
    ("<resource-limit-settings/>", "DMQ4006", "users would not be limited; remove it"),
    ("<global-max-messages>5</global-max-messages>", "DMQ4006", "use global-max-size"),
    ("<broker-plugins/>", "DMQ4006", "Java classes can't run here"),
    (SECURITY.format('<role-mapping from="a" to="b"/>'), "DMQ4006", "<role-mapping> is not in effect yet"),
    (SETTING.format("<page-limit-bytes>10M</page-limit-bytes>"), "DMQ4006", "use max-size-bytes"),
    (SETTING.format("<slow-consumer-policy>KILL</slow-consumer-policy>"), "DMQ4006", "write NOTIFY"),
    # what makes no sense together
    (
        ADDRESS.format('<queue name="q" non-destructive="true" purge-on-no-consumers="true"/>'),
        "DMQ4012",
        "queue 'q' keeps what was consumed (non-destructive) and is emptied",
    ),
    (
        SETTING.format(
            "<default-non-destructive>true</default-non-destructive>"
            "<default-purge-on-no-consumers>true</default-purge-on-no-consumers>"
        ),
        "DMQ4012",
        "a queue of address-setting '#' keeps what was consumed",
    ),
    (
        SETTING.format("<default-non-destructive>true</default-non-destructive>")
        + ADDRESS.format('<queue name="q" purge-on-no-consumers="true"/>'),
        "DMQ4012",
        "set one of the two to false",
    ),
    (
        ADDRESS.format('<queue name="q" max-consumers="1" consumers-before-dispatch="2"/>'),
        "DMQ4012",
        "waits for 2 consumers (consumers-before-dispatch) and lets in 1 (max-consumers)",
    ),
    (
        ADDRESS.format('<queue name="q" last-value="false" last-value-key="k"/>'),
        "DMQ4012",
        "has a last-value-key, which makes it a last-value queue",
    ),
    (
        SETTING.format("<min-expiry-delay>9</min-expiry-delay><max-expiry-delay>8</max-expiry-delay>"),
        "DMQ4012",
        "max-expiry-delay is 8 but min-expiry-delay is 9; let the maximum be the larger one",
    ),
    (
        SETTING.format("<last-value-queue>true</last-value-queue>")[: -len("</address-setting></address-settings>")]
        + "<default-last-value-queue>true</default-last-value-queue></address-setting></address-settings>",
        "DMQ4008",
        "sets what line 3 sets under its other name; keep one",
    ),
    # matches
    (
        '<address-settings><address-setting match="orders#.a"/></address-settings>',
        "DMQ4005",
        "has a # within the word 'orders#'",
    ),
    (SECURITY.format('<security-setting match="orders.#a"/>'), "DMQ4005", "stands for whole words between '.' only"),
    (SECURITY.format('<security-setting match="a##"/>'), "DMQ4005", "has a # within the word 'a#'"),
    (SECURITY.format('<security-setting match="a\\*"/>'), "DMQ4005", "choose other letters"),
    (ACCEPTOR.format(STOMP + "crlPath=r"), "DMQ4006", "remove it"),
]


@pytest.mark.parametrize(("core", "code", "sentence"), MISTAKES, ids=[mistake[2][:50] for mistake in MISTAKES])
def test_a_mistake_is_named_with_file_line_and_remedy(load: Load, core: str, code: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(core)
    assert caught.value.code == code
    assert "/broker.xml:3: " in caught.value.message
    assert sentence in caught.value.message
    assert "\n" not in caught.value.message


def test_the_line_is_that_of_the_element(load: Load) -> None:
    with pytest.raises(ConfigurationError, match=r"broker\.xml:5: unknown element <nam>"):
        load("<name>b</name>\n<!-- a\ncomment --><nam/>")


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        (HEAD + "<name>b</nam>" + TAIL, 3, "tag mismatch"),
        (HEAD + "<name>b & c</name>" + TAIL, 3, "xmlParseEntityRef"),
        (HEAD + "<name>&unknown;</name>" + TAIL, 3, "unknown"),
        (HEAD, 3, ""),
        ("", 1, ""),
        (b"\xff\xfe\x00", 1, ""),
    ],
)
def test_what_is_not_well_formed_is_refused_with_its_line(
    load_whole: Load, content: str | bytes, line: int, reason: str
) -> None:
    with pytest.raises(ConfigurationError, match=rf"broker\.xml:{line}: not well-formed XML \(.*{reason}") as caught:
        load_whole(content)
    assert caught.value.code == "DMQ4002"
    assert "correct the markup" in caught.value.message


BOMB = (
    '<?xml version="1.0"?>\n<!DOCTYPE c [\n<!ENTITY a "ha">\n'
    + "".join(f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 10}">\n' for i in range(9))
    + "]>\n"
    + HEAD
    + "<name>&j;</name>"
    + TAIL
)


@pytest.mark.parametrize(
    "content",
    [
        BOMB,
        '<?xml version="1.0"?>\n<!DOCTYPE c [<!ENTITY f SYSTEM "file:///etc/passwd">]>\n'
        + HEAD
        + "<name>&f;</name>"
        + TAIL,
        '<?xml version="1.0"?>\n<!DOCTYPE c SYSTEM "http://127.0.0.1:9/evil.dtd">\n' + HEAD + TAIL,
    ],
    ids=["entity bomb", "file entity", "remote document type"],
)
def test_a_document_type_and_its_entities_are_refused_unread(load_whole: Load, content: str) -> None:
    with pytest.raises(
        ConfigurationError, match=r"broker\.xml:2: a document type .* are never read; remove it"
    ) as caught:
        load_whole(content)
    assert caught.value.code == "DMQ4003"
    assert "root:" not in str(caught.value)


def test_a_document_type_is_found_in_any_encoding(load_whole: Load) -> None:
    content = '<?xml version="1.0" encoding="UTF-16"?><!DOCTYPE c [<!ENTITY a "b">]>' + HEAD + "<name>&a;</name>" + TAIL
    with pytest.raises(ConfigurationError, match="a document type"):
        load_whole(content.encode("utf-16"))


def test_a_huge_file_is_refused_unread(load_whole: Load) -> None:
    with pytest.raises(ConfigurationError, match=r"DMQ4003: .* larger than"):
        load_whole(HEAD + " " * (10 * 1024**2) + TAIL)


def test_deep_nesting_is_refused(load_whole: Load) -> None:
    with pytest.raises(ConfigurationError, match="DMQ4002"):
        load_whole("<a>" * 100_000)


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"DMQ4001: .*/broker\.xml: can't be read: No such file"):
        load_broker_xml(tmp_path / "broker.xml")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("<broker/>", r":1: the root is <broker>; write <configuration xmlns="),
        ("<configuration/>", r":1: the root is <configuration>; write <configuration xmlns="),
        ('<configuration xmlns="urn:activemq"/>', r":1: <configuration> is empty; write <core"),
        ('<configuration xmlns="urn:activemq">\n<core/></configuration>', r":2: <core> in <configuration>"),
        (
            '<configuration xmlns="urn:activemq">\n<jms xmlns="urn:activemq:jms"/></configuration>',
            "declare its queues in",
        ),
    ],
)
def test_a_file_of_another_kind_is_refused(load_whole: Load, content: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        load_whole(content)


def test_all_mistakes_are_named_together_in_the_order_of_the_file(load: Load) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load('<addresses>\n<address name="a"/>\n</addresses>\n<nam/>\n<persistence-enabled>1</persistence-enabled>')
    assert caught.value.code == "DMQ4000"
    assert "has 3 mistakes" in caught.value.message
    assert re.findall(r"(DMQ\d+): \S*broker\.xml:(\d+)", caught.value.message) == [
        ("DMQ4007", "4"),
        ("DMQ4004", "6"),
        ("DMQ4005", "7"),
    ]


def test_at_most_twenty_mistakes_are_named(load: Load) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load("<zzz/>\n" * 25)
    assert caught.value.message.count("unknown element") == 20
    assert caught.value.message.endswith("and 5 more; `delosmq check` lists all")


def test_the_password_of_a_wrong_url_is_not_shown(load: Load) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(ACCEPTOR.format("http://localhost:1?keyStorePassword=hunter2"))
    assert "hunter2" not in str(caught.value)


@given(content=st.binary(max_size=60), around=st.booleans())
def test_whatever_the_file_holds_the_answer_is_settings_or_a_sentence(content: bytes, around: bool) -> None:
    with TemporaryDirectory() as directory:
        path = Path(directory, "broker.xml")
        path.write_bytes(HEAD.encode() + content + TAIL.encode() if around else content)
        with suppress(ConfigurationError):
            load_broker_xml(path, properties={}, memory_bytes=1)
