"""broker.xml: diverts and the letters of wildcards."""

# BROKER-3

import pytest

from delosmq.model.errors import ConfigurationError
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.settings import PASS_ROUTING, STRIP_ROUTING, DivertSettings, Transformer, WildcardSyntax
from delosmq.model.wildcard import AddressSettingsTable
from tests.config.conftest import Load

ADD_HEADERS = "org.apache.activemq.artemis.core.server.transformer.AddHeadersTransformer"


def divert(name: str = "d", address: str = "a", forward: str = "b", inner: str = "") -> str:
    return (
        f'\n<divert name="{name}"><address>{address}</address><forwarding-address>{forward}</forwarding-address>'
        f"{inner}</divert>"
    )


def diverts(*each: str) -> str:
    return f"<diverts>{''.join(each)}</diverts>"


def read(load: Load, inner: str) -> DivertSettings:
    (found,) = load(diverts(divert(inner=inner))).settings.diverts
    return found


def refusal(load: Load, core: str) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        load(core)
    return caught.value


def test_a_plain_divert(load: Load) -> None:
    assert read(load, "") == DivertSettings("d", "a", ("b",), False, "", STRIP_ROUTING, None)


def test_a_divert_with_everything(load: Load) -> None:
    settings = load(
        diverts(
            divert(
                forward="b, c ,d",
                inner="<exclusive>true</exclusive><filter string=\"vip = 'yes'\"/>"
                "<routing-type>multicast</routing-type>"
                '<transformer><drop name="x"/><rename from="old" to="new"/><add name="n" value=""/></transformer>',
            )
        )
    ).settings
    assert settings.diverts == (
        DivertSettings(
            "d",
            "a",
            ("b", "c", "d"),
            exclusive=True,
            filter="vip = 'yes'",
            routing_type=MULTICAST,
            transformer=Transformer({"n": ""}, ("x",), {"old": "new"}),
        ),
    )


@pytest.mark.parametrize(
    ("text", "routing_type"),
    [("ANYCAST", ANYCAST), ("MULTICAST", MULTICAST), ("strip", STRIP_ROUTING), ("PASS", PASS_ROUTING)],
)
def test_the_routing_type_of_copies(load: Load, text: str, routing_type: int) -> None:
    assert read(load, f"<routing-type>{text}</routing-type>").routing_type == routing_type


def test_the_transformer_of_artemis_that_adds_headers(load: Load) -> None:
    inner = (
        f'<transformer><class-name>{ADD_HEADERS}</class-name><property key="k" value="v"/>'
        '<property key="l" value="w"/></transformer>'
    )
    assert read(load, inner).transformer == Transformer({"k": "v", "l": "w"})


def test_the_routing_name_is_listed_as_without_effect(load: Load) -> None:
    notices = load(diverts(divert(inner="<routing-name>r</routing-name>"))).notices
    assert any(notice.startswith("DMQ4101") and "routing-name" in notice for notice in notices)


MISTAKES = [
    (divert(inner="<routing-type>QUEUE</routing-type>"), "DMQ4005", "ANYCAST, MULTICAST, STRIP or PASS"),
    (divert(inner="<exclusive>1</exclusive>"), "DMQ4005", "true or false"),
    (divert(inner="<filtre/>"), "DMQ4004", "did you mean 'filter'?"),
    (divert(forward=", ,"), "DMQ4005", "must be an address, or several with commas"),
    (divert(forward="b,b"), "DMQ4005", "one is there twice"),
    (divert(forward="b,,c"), "DMQ4005", "addresses with one comma between two; there is an empty one"),
    (divert(forward="b,"), "DMQ4005", "there is an empty one"),
    (divert(forward="big::nosuch,,c"), "DMQ4005", "there is an empty one"),
    (divert(forward="big::nosuch"), "DMQ4005", "must be an address without '::' and the queue after it, such as 'big'"),
    (divert(address="a::q"), "DMQ4005", "<address> is 'a::q' but must be an address without '::'"),
    (divert(forward="$delosmq.x"), "DMQ4005", "'$delosmq.' begins those of the broker itself"),
    (divert(inner="<filter>a = 1</filter>"), "DMQ4004", 'selector as text; write <filter string="a = 1"/>'),
    (divert(inner="<filter string='b = 2'>a &lt; 1</filter>"), "DMQ4004", 'write <filter string="a &lt; 1"/>'),
    (divert(address=""), "DMQ4005", "<address> is '' but must be given"),
    (divert(name=""), "DMQ4007", "<divert> lacks 'name'"),
    ('\n<divert name="d"><forwarding-address>b</forwarding-address></divert>', "DMQ4007", "lacks <address>"),
    ('\n<divert name="d"><address>b</address></divert>', "DMQ4007", "lacks <forwarding-address>; write"),
    (divert(forward="b,a"), "DMQ4012", "divert 'd' sends to its own address 'a'"),
    (divert(address="a.#", forward="a.b"), "DMQ4012", "name another <forwarding-address>"),
    (divert(inner="<transformer/>"), "DMQ4007", 'changes nothing; write <add name="" value=""/>'),
    (divert(inner="<transformer><property key='a' value='b'/></transformer>"), "DMQ4012", "belongs to a <class-name>"),
    (divert(inner="<transformer><add name='a'/></transformer>"), "DMQ4007", "<add> lacks 'value'"),
    (divert(inner="<transformer><add value='a'/></transformer>"), "DMQ4007", "<add> lacks 'name'"),
    (divert(inner="<transformer><drop/></transformer>"), "DMQ4007", "<drop> lacks 'name'"),
    (divert(inner="<transformer><rename from='a'/></transformer>"), "DMQ4007", "<rename> lacks 'to'"),
    (divert(inner="<transformer><set name='a'/></transformer>"), "DMQ4004", "unknown element <set> in <transformer>"),
    (
        divert(inner="<transformer><drop name='a'/><rename from='a' to='b'/></transformer>"),
        "DMQ4008",
        "property of <rename> in divert 'd' 'a' is already in line 4",
    ),
    (
        divert(inner="<transformer><rename from='a' to='b'/><add name='b' value=''/></transformer>"),
        "DMQ4008",
        "'b' is already in line 4",
    ),
    (
        divert(inner="<transformer><class-name>com.example.Mine</class-name></transformer>"),
        "DMQ4006",
        "the Java class 'com.example.Mine' of divert 'd' can't run here; write what it does as <transformer> with <add",
    ),
    (
        divert(inner="<transformer-class-name>com.example.Mine</transformer-class-name>"),
        "DMQ4006",
        "AddHeadersTransformer with <property>",
    ),
    (
        divert(inner=f"<transformer-class-name>{ADD_HEADERS}</transformer-class-name>"),
        "DMQ4007",
        "without headers; use <transformer> with <property>",
    ),
    (
        divert(inner=f"<transformer><class-name>{ADD_HEADERS}</class-name><drop name='a'/></transformer>"),
        "DMQ4012",
        "<drop> beside <class-name>",
    ),
    (divert(inner="<filter/>"), "DMQ4007", "<filter> lacks 'string'"),
]


@pytest.mark.parametrize(("text", "code", "sentence"), MISTAKES, ids=[mistake[2][:50] for mistake in MISTAKES])
def test_a_mistake_is_named_with_line_and_remedy(load: Load, text: str, code: str, sentence: str) -> None:
    refused = refusal(load, diverts(text))
    assert refused.code == code
    assert "broker.xml:4: " in refused.message
    assert sentence in refused.message


def test_two_diverts_of_one_name_are_a_mistake(load: Load) -> None:
    refused = refusal(load, diverts(divert(), divert(address="c")))
    assert refused.code == "DMQ4008"
    assert "broker.xml:5: divert 'd' is already in line 4" in refused.message


def test_a_circle_of_diverts_is_a_mistake_once(load: Load) -> None:
    circle = [divert("1", "a", "b"), divert("2", "b", "c"), divert("3", "c", "x,a"), divert("4", "x", "y")]
    refused = refusal(load, diverts(*circle))
    assert refused.code == "DMQ4012"
    assert "broker.xml:4: the diverts '1' and '3' send round in a circle" in refused.message


def test_a_filter_may_end_a_circle(load: Load) -> None:
    filtered = divert("2", "b", "a", "<filter string=\"done = 'no'\"/>")
    assert len(load(diverts(divert("1", "a", "b"), filtered)).settings.diverts) == 2


def test_the_letters_of_wildcards(load: Load) -> None:
    core = (
        "<wildcard-addresses><routing-enabled>false</routing-enabled><delimiter>/</delimiter><any-words>></any-words>"
        "<single-word>+</single-word></wildcard-addresses>"
        '<address-settings><address-setting match="a/+"><max-size-messages>5</max-size-messages></address-setting>'
        "</address-settings>"
    )
    settings = load(core).settings
    assert settings.wildcards == WildcardSyntax(False, "/", ">", "+")
    table = AddressSettingsTable(settings.address_settings, settings.wildcards)
    assert (table.resolve("a/b").max_size_messages, table.resolve("a.b").max_size_messages) == (5, -1)


@pytest.mark.parametrize(
    ("core", "enabled"),
    [
        ("", True),
        ("<wild-card-routing-enabled>false</wild-card-routing-enabled>", False),
        ("<wildcard-addresses><enabled>false</enabled></wildcard-addresses>", False),
        (
            "<wildcard-addresses><routing-enabled>true</routing-enabled><enabled>false</enabled></wildcard-addresses>",
            True,
        ),
        (
            "<wild-card-routing-enabled>true</wild-card-routing-enabled><wildcard-addresses><enabled>false</enabled>"
            "</wildcard-addresses>",
            False,
        ),
    ],
)
def test_wildcard_routing_can_be_switched_off(load: Load, core: str, enabled: bool) -> None:
    assert load(core).settings.wildcards == WildcardSyntax(enabled)


@pytest.mark.parametrize("letter", ["", "..", "a", "1", ",", ":", "\\", "_", "-"])
def test_a_letter_that_would_be_part_of_names_is_refused(load: Load, letter: str) -> None:
    refused = refusal(load, f"<wildcard-addresses>\n<delimiter>{letter}</delimiter></wildcard-addresses>")
    assert refused.code == "DMQ4005"
    assert f"broker.xml:4: <delimiter> is {letter!r} but must be one character that is no letter" in refused.message


def test_letters_of_wildcards_must_differ(load: Load) -> None:
    refused = refusal(load, "<wildcard-addresses><delimiter>#</delimiter></wildcard-addresses>")
    assert "broker.xml:3: the letters of <wildcard-addresses> must differ, but are delimiter #" in refused.message


def test_a_loop_is_seen_through_other_letters(load: Load) -> None:
    core = "<wildcard-addresses><delimiter>/</delimiter></wildcard-addresses>"
    assert "its own address" in refusal(load, core + diverts(divert(address="a/*", forward="a/b"))).message
