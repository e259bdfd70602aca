"""The machines of discovery: who is there, who is gone, and what is refused, by a clock in the test's hand."""

from ipaddress import ip_network

import pytest

from delosmq.cluster.datagram import FACTORY, AnnouncedConnector, Announcement, ParameterValue, encode_announcement
from delosmq.cluster.discovery import (
    MOST_NODES,
    NO_TIMER,
    Broadcast,
    DatagramRefused,
    DiscoveredNode,
    Discovery,
    Effect,
    NodeFound,
    NodeLost,
)
from delosmq.model.ids import MonotonicNs

SECOND = 1_000_000_000
SOURCE = "10.0.0.9"
START = MonotonicNs(1_000 * SECOND)


def at(seconds: float) -> MonotonicNs:
    return MonotonicNs(START + int(seconds * SECOND))


def datagram(node: str = "b", *, start: str = "s1", host: str = "127.0.0.1", port: ParameterValue = "5") -> bytes:
    return encode_announcement(Announcement(node, start, (connector(host=host, port=port),)))


def connector(name: str = "netty", **parameters: ParameterValue) -> AnnouncedConnector:
    return AnnouncedConnector(name, FACTORY, tuple(parameters.items()))


def group(**options: object) -> Discovery:
    return Discovery("me", refresh_timeout_ns=10 * SECOND, **options)  # type: ignore[arg-type]


def node(node_id: str = "b", host: str = "127.0.0.1", port: int = 5, *, tls: bool = False) -> DiscoveredNode:
    return DiscoveredNode(node_id, "netty", host, port, tls)


def codes(effects: list[Effect]) -> list[str]:
    return [effect.reason.code for effect in effects if isinstance(effect, DatagramRefused)]


def test_a_broker_that_announces_itself_is_found_once() -> None:  # CLUS-1
    found = group()
    assert found.receive(datagram(), SOURCE, at(0)) == [NodeFound(node(), is_new=True)]
    assert found.receive(datagram(), SOURCE, at(1)) == []
    assert found.nodes == [node()]


def test_our_own_announcements_count_for_nothing() -> None:
    found = group()
    assert found.receive(datagram("me"), SOURCE, at(0)) == []
    assert found.nodes == []


def test_the_last_connector_counts() -> None:
    found = group()
    both = (connector("first", host="127.0.0.1", port=1), connector("last", host="127.0.0.2", port=2, sslEnabled=True))
    found.receive(encode_announcement(Announcement("b", "s", both)), SOURCE, at(0))
    assert found.nodes == [DiscoveredNode("b", "last", "127.0.0.2", 2, True)]


def test_a_changed_connector_is_told() -> None:
    found = group()
    found.receive(datagram(), SOURCE, at(0))
    assert found.receive(datagram(port="6"), SOURCE, at(1)) == [NodeFound(node(port=6), is_new=False)]
    assert found.nodes == [node(port=6)]


def test_who_is_silent_is_missed_by_the_timer() -> None:  # CLUS-1
    found = group()
    assert found.next_timer() == NO_TIMER
    found.receive(datagram("a"), SOURCE, at(0))
    found.receive(datagram("b"), SOURCE, at(3))
    found.receive(datagram("a"), SOURCE, at(5))
    assert found.next_timer() == at(13)
    assert found.handle_timer(at(12.9)) == []
    assert found.handle_timer(at(13)) == [NodeLost(node("b"))]
    assert found.next_timer() == at(15)
    assert found.receive(datagram("b"), SOURCE, at(20)) == [NodeLost(node("a")), NodeFound(node("b"), is_new=True)]


def test_two_starts_of_one_node_are_told_once_in_a_refresh_timeout() -> None:
    found = group()
    found.receive(datagram(start="s1"), SOURCE, at(0))
    assert codes(found.receive(datagram(start="s2"), SOURCE, at(1))) == ["DMQ6605"]
    for number in range(2, 10):
        assert codes(found.receive(datagram(start=f"s{number % 2}"), SOURCE, at(number))) == []
    assert codes(found.receive(datagram(start="s9"), SOURCE, at(12))) == ["DMQ6605"]
    assert found.nodes == [node()]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "localhost"])
def test_this_machine_is_always_allowed(host: str) -> None:
    found = group()
    found.receive(datagram(host=host), SOURCE, at(0))
    assert found.nodes == [node(host=host)]


@pytest.mark.parametrize("host", ["10.0.0.1", "evil.example", "0.0.0.0", "::", "10.1.2.300", "localhost.evil.example"])
def test_another_machine_is_refused_unless_its_network_is_allowed(host: str) -> None:
    found = group(allowed=(ip_network("10.1.0.0/16"),))
    assert codes(found.receive(datagram(host=host), SOURCE, at(0))) == ["DMQ6603"]
    assert found.nodes == []


@pytest.mark.parametrize("host", ["10.1.2.3", "fd00::7", "::ffff:10.1.2.3"])
def test_a_network_can_be_allowed(host: str) -> None:
    found = group(allowed=(ip_network("10.1.0.0/16"), ip_network("fd00::/8")))
    found.receive(datagram(host=host), SOURCE, at(0))
    assert found.nodes == [node(host=host)]


def test_a_broker_that_moves_where_it_may_not_be_stays_where_it_was() -> None:
    found = group()
    found.receive(datagram(), SOURCE, at(0))
    assert codes(found.receive(datagram(host="10.0.0.1"), SOURCE, at(1))) == ["DMQ6603"]
    assert found.nodes == [node()]
    assert found.next_timer() == at(10)


@pytest.mark.parametrize("port", ["", "0", "65536", "-1", "5x", "٣", 0, -1, 1 << 40, True, "9" * 4_000])
def test_a_port_is_a_port(port: ParameterValue) -> None:
    found = group()
    assert codes(found.receive(datagram(port=port), SOURCE, at(0))) == ["DMQ6602"]
    assert found.nodes == []


@pytest.mark.parametrize("host", ["", "h" * 300, "127.0.0.1\n"])
def test_a_host_is_a_host(host: str) -> None:
    assert codes(group().receive(datagram(host=host), SOURCE, at(0))) == ["DMQ6602"]


def test_ids_are_short_as_they_are_kept() -> None:
    assert codes(group().receive(datagram("n" * 129), SOURCE, at(0))) == ["DMQ6602"]
    assert codes(group().receive(datagram(start="n" * 129), SOURCE, at(0))) == ["DMQ6602"]


@pytest.mark.parametrize("name", ["b\nDMQ1001: forged", "\x1b[2J"])
def test_names_that_logs_show_can_be_shown(name: str) -> None:
    named = encode_announcement(Announcement("b", "s", (connector(name, host="127.0.0.1", port="5"),)))
    assert codes(group().receive(named, SOURCE, at(0))) == ["DMQ6602"]
    assert codes(group().receive(datagram(name), SOURCE, at(0))) == ["DMQ6602"]


def test_a_broker_without_connectors_is_not_there() -> None:
    found = group()
    assert found.receive(encode_announcement(Announcement("b", "s", ())), SOURCE, at(0)) == []
    assert found.nodes == []


def test_no_more_nodes_are_kept_than_may_be() -> None:
    found = group()
    for number in range(MOST_NODES):
        found.receive(datagram(f"n{number}"), SOURCE, at(0))
    assert codes(found.receive(datagram("one more"), SOURCE, at(1))) == ["DMQ6604"]
    assert found.receive(datagram("n7", port="9"), SOURCE, at(1)) == [NodeFound(node("n7", port=9), is_new=False)]
    assert len(found.nodes) == MOST_NODES
    found.handle_timer(at(10))
    assert found.receive(datagram("one more"), SOURCE, at(10)) == [NodeFound(node("one more"), is_new=True)]


def test_sentences_hold_no_more_of_a_datagram_than_is_readable() -> None:
    (refused,) = group().receive(datagram("n\n" * 60, host="h" * 250), SOURCE, at(0))
    assert isinstance(refused, DatagramRefused)
    assert "\n" not in str(refused.reason)
    assert len(str(refused.reason)) < 600


def test_announcements_come_at_once_and_then_each_period() -> None:
    broadcast = Broadcast(Announcement("me", "s1", (connector(host="127.0.0.1", port=5),)), 2 * SECOND, at(0))
    assert broadcast.handle_timer(at(0))
    assert not broadcast.handle_timer(at(1.9))
    assert broadcast.next_timer() == at(2)
    assert broadcast.handle_timer(at(9))  # what was missed is not made up for
    assert broadcast.next_timer() == at(11)
    other = Discovery("other", refresh_timeout_ns=SECOND)
    other.receive(broadcast.datagram, SOURCE, at(9))
    assert other.nodes == [node("me")]
