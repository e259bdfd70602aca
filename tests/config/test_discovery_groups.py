"""broker.xml: broadcast groups and discovery groups."""

# CLUS-1

from ipaddress import ip_network

import pytest

from delosmq.model.errors import ConfigurationError
from delosmq.model.settings import BroadcastGroupSettings, DiscoveryGroupSettings
from tests.config.conftest import Load

CONNECTORS = (
    '<connectors><connector name="a">tcp://10.0.0.1:1</connector><connector name="b">tcp://10.0.0.1:2</connector>'
    '<connector name="any">tcp://0.0.0.0:3</connector></connectors>'
)
WHERE = "<group-address>231.7.7.7</group-address><group-port>9876</group-port>"
REFERENCE = "<connector-ref>a</connector-ref>"


def broadcast(inner: str, name: str = 'name="bg"') -> str:
    return f"{CONNECTORS}<broadcast-groups>\n<broadcast-group {name}>\n{inner}</broadcast-group></broadcast-groups>"


def discovery(inner: str, name: str = 'name="dg"') -> str:
    return f"<discovery-groups>\n<discovery-group {name}>\n{inner}</discovery-group></discovery-groups>"


def test_a_broadcast_group_as_artemis_writes_it(load: Load) -> None:
    inner = f"{WHERE}<broadcast-period>100</broadcast-period>{REFERENCE}<connector-ref>b</connector-ref>"
    local = "<local-bind-address>10.0.0.1</local-bind-address><local-bind-port>5432</local-bind-port>"
    (group,) = load(broadcast(inner + local)).settings.broadcast_groups
    assert [connector.port for connector in group.connectors] == [1, 2]
    assert group == BroadcastGroupSettings("bg", "231.7.7.7", 9876, group.connectors, "10.0.0.1", 5432, 100)


def test_a_discovery_group_as_artemis_writes_it(load: Load) -> None:
    inner = f"{WHERE}<local-bind-address>127.0.0.1</local-bind-address><refresh-timeout>500</refresh-timeout>"
    (group,) = load(discovery(f"{inner}<initial-wait-timeout>0</initial-wait-timeout>")).settings.discovery_groups
    assert group == DiscoveryGroupSettings("dg", "231.7.7.7", 9876, "127.0.0.1", 500)


def test_what_is_not_said_is_as_in_artemis(load: Load) -> None:
    loaded = load(broadcast(WHERE + REFERENCE) + discovery(WHERE)).settings
    assert (loaded.broadcast_groups[0].broadcast_period_ms, loaded.broadcast_groups[0].local_bind_port) == (2_000, -1)
    group = loaded.discovery_groups[0]
    assert (group.refresh_timeout_ms, group.discovery_allowed) == (10_000, ())


def test_networks_that_are_allowed(load: Load) -> None:
    inner = f"{WHERE}<discovery-allowed>10.1.0.0/16, fd00::/8</discovery-allowed>"
    (group,) = load(discovery(inner)).settings.discovery_groups
    assert group.discovery_allowed == (ip_network("10.1.0.0/16"), ip_network("fd00::/8"))


@pytest.mark.parametrize(
    ("core", "line", "code", "said"),
    [
        (broadcast(WHERE + REFERENCE, ""), 4, "DMQ4007", "lacks 'name'"),
        (discovery(WHERE, ""), 4, "DMQ4007", "lacks 'name'"),
        (
            discovery(f"{WHERE}<initial-wait-timeout>1</initial-wait-timeout>"),
            5,
            "DMQ4006",
            "waits for no announcement",
        ),
        (broadcast(REFERENCE + "<group-port>1</group-port>"), 4, "DMQ4007", "lacks <group-address>"),
        (discovery("<group-address>231.7.7.7</group-address>"), 4, "DMQ4007", "lacks <group-port>"),
        (broadcast(WHERE), 4, "DMQ4007", "<broadcast-group> announces nothing"),
        (broadcast(f"{WHERE}<connector-ref>c</connector-ref>"), 5, "DMQ4005", "there is no connector 'c'"),
        (broadcast(f"{WHERE}<connector-ref>any</connector-ref>"), 5, "DMQ4005", "to which nothing can connect"),
        (broadcast(WHERE + REFERENCE * 9), 5, "DMQ4005", "names 9 connectors, and 8 may be"),
        (broadcast(f"{WHERE}{REFERENCE}<broadcast-period>0</broadcast-period>"), 5, "DMQ4005", "at least 1"),
        (broadcast(f"{WHERE}{REFERENCE}<local-bind-port>65536</local-bind-port>"), 5, "DMQ4005", "65535"),
        (broadcast(f"{WHERE}{REFERENCE}<jgroups-file>x.xml</jgroups-file>"), 5, "DMQ4006", "there is no JGroups"),
        (discovery("<jgroups-channel>c</jgroups-channel>"), 5, "DMQ4006", "<group-address> and <group-port> for UDP"),
        (discovery(WHERE + "<group-port>1</group-port>"), 5, "DMQ4008", "<group-port> is already in line 5"),
        (discovery("<group-address>10.0.0.1</group-address><group-port>1</group-port>"), 5, "DMQ4005", "multicast"),
        (discovery("<group-address>ff02::1</group-address><group-port>1</group-port>"), 5, "DMQ4005", "of IPv4"),
        (discovery("<group-address>x</group-address><group-port>1</group-port>"), 5, "DMQ4005", "multicast"),
        (discovery("<group-address>231.7.7.7</group-address><group-port>0</group-port>"), 5, "DMQ4005", "at least 1"),
        (discovery(f"{WHERE}<local-bind-address>eth0</local-bind-address>"), 5, "DMQ4005", "IPv4 address of this"),
        (discovery(f"{WHERE}<refresh-timeout>0</refresh-timeout>"), 5, "DMQ4005", "at least 1"),
        (discovery(f"{WHERE}<discovery-allowed>10.1.2.3/8</discovery-allowed>"), 5, "DMQ4005", "networks such as"),
        (discovery(f"{WHERE}<refresh-time>1</refresh-time>"), 5, "DMQ4004", "did you mean 'refresh-timeout'?"),
    ],
)
def test_a_mistake_is_named_with_its_line(load: Load, core: str, line: int, code: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(core)
    assert caught.value.code == code
    assert f"broker.xml:{line}: " in caught.value.message
    assert said in caught.value.message


def test_a_name_twice_is_a_mistake(load: Load) -> None:
    group = f'<discovery-group name="dg">{WHERE}</discovery-group>\n'
    with pytest.raises(ConfigurationError, match="discovery-group 'dg' is already in line"):
        load(f"<discovery-groups>{group * 2}</discovery-groups>")
