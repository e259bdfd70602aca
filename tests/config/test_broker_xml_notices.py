"""broker.xml: what is known but does not take effect is said once."""

# BROKER-3

import pytest

from delosmq.model.errors import ConfigurationError
from tests.config.conftest import Load

SETTING = '<address-settings><address-setting match="#">{}</address-setting></address-settings>'
BLOCK = SETTING.format("<address-full-policy>BLOCK</address-full-policy>")
OPEN = "tcp://127.0.0.1:0?protocols=STOMP"
SECURITY = '<security-settings><security-setting match="#">{}</security-setting></security-settings>'


def codes(notices: list[str]) -> set[str]:
    return {notice.split(":")[0] for notice in notices}


def acceptor(url: str) -> str:
    return f'<acceptors><acceptor name="a">{url}</acceptor></acceptors>'


def test_names_that_are_not_in_effect_yet_are_listed_once_in_one_notice(load: Load) -> None:
    notices = load(
        "<journal-type>NIO</journal-type><max-disk-usage>90</max-disk-usage>"
        + SETTING.format("<redistribution-delay>0</redistribution-delay>")
        + acceptor(OPEN + ";tcpNoDelay=true;useEpoll=true")
        + '<addresses><address name="q"><anycast><queue name="q"/></anycast></address></addresses>'
    ).notices
    (listed,) = [notice for notice in notices if notice.startswith("DMQ4101")]
    names = "journal-type, max-disk-usage, redistribution-delay, tcpNoDelay, useEpoll"
    assert set(listed.split("ignored: ")[1].split(", ")) == set(names.split(", "))


def test_the_value_of_what_is_ignored_is_not_shown(load: Load) -> None:
    assert "hunter2" not in " ".join(load("<cluster-password>hunter2</cluster-password>").notices)


@pytest.mark.parametrize(
    "core",
    [
        "<global-max-messages>-1</global-max-messages>",
        SETTING.format("<page-limit-bytes>-1</page-limit-bytes><slow-consumer-policy>NOTIFY</slow-consumer-policy>"),
    ],
)
def test_a_refused_name_that_asks_for_nothing_is_accepted_silently(load: Load, core: str) -> None:
    assert "DMQ4101" not in codes(load(core).notices)


def test_an_acceptor_of_protocols_to_come_is_named_and_stays_closed(load: Load) -> None:
    loaded = load(acceptor("tcp://127.0.0.1:5672?protocols=AMQP,MQTT"))
    assert loaded.settings.acceptors == ()
    (said,) = [notice for notice in loaded.notices if notice.startswith("DMQ4102")]
    assert said.endswith("/broker.xml:3: acceptor 'a' stays closed: AMQP, MQTT not in effect yet")


def test_an_acceptor_of_several_protocols_says_what_it_speaks(load: Load) -> None:
    loaded = load(acceptor("tcp://127.0.0.1:61616?protocols=MQTT,STOMP"))
    assert loaded.settings.acceptors[0].protocols == ("STOMP",)
    (said,) = [notice for notice in loaded.notices if notice.startswith("DMQ4103")]
    assert said.endswith("/broker.xml:3: acceptor 'a' speaks STOMP only: MQTT not in effect yet")


def test_an_acceptor_takes_an_idle_option_without_a_value_as_artemis_does(load: Load) -> None:
    # As in a broker.xml of Artemis's own tests: what it takes for a switch is none there either.
    loaded = load(acceptor("tcp://127.0.0.1:61616?protocols=STOMP;useKQueue;connectionsAllowed=7"))
    assert loaded.settings.acceptors[0].connections_allowed == 7


def test_a_login_is_required_all_the_same_and_the_start_says_so(load: Load) -> None:
    assert "DMQ4114" not in codes(load("<security-enabled>true</security-enabled>").notices)
    (said,) = [
        notice for notice in load("<security-enabled>false</security-enabled>").notices if notice.startswith("DMQ4114")
    ]
    assert "/broker.xml:3: security-enabled is false, and yet a login is always required" in said


@pytest.mark.parametrize("url", ["vm://0", OPEN + ";autoStart=false"])
def test_other_acceptors_that_stay_closed_are_named(load: Load, url: str) -> None:
    loaded = load(acceptor(url))
    assert loaded.settings.acceptors == ()
    assert {"DMQ4102", "DMQ4108"} <= codes(loaded.notices)


@pytest.mark.parametrize(
    ("host", "warns"), [("0.0.0.0", True), ("broker.example", True), ("127.0.0.2", False), ("[::1]", False)]
)
def test_listening_to_other_machines_in_the_clear_is_said(load: Load, host: str, warns: bool) -> None:
    assert ("DMQ4107" in codes(load(acceptor(f"tcp://{host}:0?protocols=STOMP")).notices)) is warns


def test_page_acts_as_block_and_says_so(load: Load) -> None:
    assert "DMQ4104" in codes(load("").notices)
    assert "DMQ4104" in codes(load(SETTING.format("<address-full-policy>PAGE</address-full-policy>")).notices)
    assert "DMQ4104" not in codes(load(BLOCK).notices)


# RING-10
def test_a_ring_on_an_address_that_pages_is_flagged(load: Load) -> None:
    ring = (
        '<addresses><address name="p"><anycast><queue name="last" ring-size="3"/><queue name="all"/></anycast>'
        "</address></addresses>"
    )
    (flagged,) = [notice for notice in load(ring).notices if notice.startswith("DMQ4106")]
    assert ": last;" in flagged
    assert "DMQ4106" not in codes(load(BLOCK + ring).notices)


def test_no_security_settings_and_no_acceptor_are_said(load: Load) -> None:
    assert {"DMQ4105", "DMQ4108"} <= codes(load("").notices)
    manage = '<permission type="manage" roles="amq"/>'
    assert "DMQ4116" in codes(load(SECURITY.format(manage)).notices)
    assert "DMQ4116" not in codes(load(SECURITY.format(manage + manage.replace("manage", "view"))).notices)
    allowed = SECURITY.format("")
    assert load(allowed + BLOCK + acceptor(OPEN)).notices == []


DEAD = SETTING.format("<dead-letter-address>DLQ</dead-letter-address><expiry-address>late</expiry-address>{}")
DEAD_QUEUE = '<addresses><address name="DLQ"><anycast><queue name="any"/></anycast></address></addresses>'


def about_missing_queues(notices: list[str]) -> list[str]:
    return [notice for notice in notices if notice.startswith("DMQ4109")]


def test_dead_letter_and_expiry_addresses_without_a_queue_are_said(load: Load) -> None:
    dead, late = about_missing_queues(load(DEAD.format("")).notices)
    assert (
        "dead-letter-address without a queue below <addresses>: DLQ; what goes there is held in its queue until" in dead
    )
    assert "expiry-address without a queue below <addresses>: late;" in late
    (late,) = about_missing_queues(load(DEAD.format("") + DEAD_QUEUE).notices)
    assert "late" in late


def test_automatic_resources_need_no_declared_queue(load: Load) -> None:
    automatic = (
        "<auto-create-dead-letter-resources>true</auto-create-dead-letter-resources>"
        "<auto-create-expiry-resources>true</auto-create-expiry-resources>"
    )
    assert about_missing_queues(load(DEAD.format(automatic)).notices) == []
    # The switch may stand in a less specific match than the address.
    split = (
        f'<address-settings><address-setting match="#">{automatic}</address-setting><address-setting match="a.#">'
        "<dead-letter-address>DLQ</dead-letter-address></address-setting></address-settings>"
    )
    assert about_missing_queues(load(split).notices) == []


@pytest.mark.parametrize(
    "core",
    [
        '<addresses><address name="a"><anycast>\n<queue name="q" exclusive="true" group-rebalance="true"/></anycast>'
        "</address></addresses>",
        '<address-settings>\n<address-setting match="#"><default-exclusive-queue>true</default-exclusive-queue>'
        "<default-group-rebalance>true</default-group-rebalance></address-setting></address-settings>",
    ],
)
def test_a_setting_that_another_makes_idle_is_said_with_its_line(load: Load, core: str) -> None:
    (said,) = [notice for notice in load(core).notices if notice.startswith("DMQ4110")]
    assert "broker.xml:4: " in said
    assert "group-rebalance has no effect; remove one of the two" in said


def test_an_expiry_delay_makes_its_bounds_idle(load: Load) -> None:
    bounds = "<max-expiry-delay>9</max-expiry-delay>"
    (said,) = [
        notice
        for notice in load(SETTING.format(f"{bounds}\n<expiry-delay>5</expiry-delay>")).notices
        if notice.startswith("DMQ4110")
    ]
    assert "broker.xml:4: address-setting '#' has an expiry-delay, beside which" in said
    assert "DMQ4110" not in codes(load(SETTING.format(bounds)).notices)


def test_a_last_value_ring_is_fine(load: Load) -> None:
    ring = '<addresses><address name="a"><anycast><queue name="q" ring-size="3" last-value="true"/></anycast>'
    assert codes(load(BLOCK + ring + "</address></addresses>").notices) <= {"DMQ4105", "DMQ4108"}


def test_a_divert_whose_ends_nobody_declared_is_said(load: Load) -> None:
    divert = (
        "<diverts><divert name='d'><address>inn</address><exclusive>true</exclusive>"
        "<forwarding-address>big,out</forwarding-address></divert></diverts>"
    )
    addresses = "<addresses><address name='out'><anycast><queue name='out'/></anycast></address></addresses>"
    (notice,) = [notice for notice in load(addresses + divert).notices if notice.startswith("DMQ4111")]
    assert "'d'" in notice
    assert "big, inn" in notice


@pytest.mark.parametrize(
    ("inner", "code"),
    [
        ("<message-eviction>unique-property</message-eviction>", "DMQ4156"),
        ("<message-eviction-key>symbol</message-eviction-key>", "DMQ4157"),
        ("<message-eviction>unique-property</message-eviction><message-eviction-key>k</message-eviction-key>", ""),
    ],
)
def test_an_eviction_by_property_and_its_property_belong_together(load: Load, inner: str, code: str) -> None:
    assert codes(load(SETTING.format(inner)).notices) & {"DMQ4156", "DMQ4157"} == ({code} if code else set())


@pytest.mark.parametrize(
    ("first", "second", "shared"),
    [
        ("127.0.0.1:61616", "127.0.0.1:61616", True),
        ("0.0.0.0:61616", "localhost:61616", True),
        ("[::1]:61616", "[::]:61616", True),
        ("127.0.0.1:61616", "[::]:61616", False),
        ("127.0.0.1:61616", "127.0.0.2:61616", False),
        ("127.0.0.1:0", "127.0.0.1:0", False),
    ],
)
def test_two_acceptors_cannot_share_a_port(load: Load, first: str, second: str, *, shared: bool) -> None:
    body = f"<acceptors><acceptor name='a'>tcp://{first}</acceptor><acceptor name='b'>tcp://{second}</acceptor></acceptors>"
    if not shared:
        assert len(load(body).settings.acceptors) == 2
        return
    with pytest.raises(ConfigurationError, match=r"DMQ4158.*acceptor 'b' has the port 61616 of acceptor 'a' in line"):
        load(body)


def test_rings_of_nothing_are_told(load: Load) -> None:  # RING-1
    notices = load(SETTING.format("<default-ring-size>0</default-ring-size>")).notices
    assert [notice for notice in notices if notice.startswith("DMQ4150: default-ring-size 0 for #: queues there keep")]
    assert "DMQ4150" not in codes(load(SETTING.format("<default-ring-size>1</default-ring-size>")).notices)
