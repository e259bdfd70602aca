"""The four routers of Artemis's manual, what the three programs of its examples show, and a pair that takes over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from delosmq.testing import BrokerProcess
from interop.routers.clients import NotShown, Refused, RoutedConnection
from interop.routers.site import ADMIN, GUEST, OTHERS, Site, messages_in

_MESSAGES: Final = 10
_BEFORE: Final = 4
"""And as many after a kill. Each is delivered whenever one is received, and would be a dead letter after ten times."""
_PREFIX: Final = "<key-type>CLIENT_ID</key-type><key-filter>^.{3}</key-filter>"
_LOGIN: Final = f"<username>{GUEST.user}</username><password>{GUEST.password}</password>"


@dataclass(frozen=True, slots=True)
class RouterProgram:
    """One that raises NotShown when something is not as it says.

    Attributes:
        requirements: what it shows.
    """

    name: str
    requirements: tuple[str, ...]
    run: Callable[[Site], None]


def check(is_so: bool, sentence: str) -> None:
    """Raises NotShown with the sentence."""
    if not is_so:
        raise NotShown(sentence)


def _router(inner: str) -> str:
    return f'<connection-router name="r">{inner}</connection-router>'


def _exchange(connection: RoutedConnection, queue: str) -> None:
    connection.send(queue, "a pot of tea")
    check(connection.receive(queue) == "a pot of tea", f"another message comes from {queue}")


def _ports(*brokers: BrokerProcess) -> dict[str, int]:
    return {f"connector{number}": one.openwire_port for number, one in enumerate(brokers, 1)}


def local_partition(site: Site) -> None:
    """This broker serves the clients whose ids begin with FOO, and no other."""
    broker = site.broker("one")
    site.route(broker, _router(f"{_PREFIX}<local-target-filter>^FOO.*</local-target-filter>"))
    broker.start()
    with site.client.connect([broker.openwire_port], ADMIN, "FOO_1") as connection:
        check(connection.port == broker.openwire_port, "FOO_1 is served elsewhere")
        _exchange(connection, "partition")
    try:
        site.client.ask(broker.openwire_port, ADMIN, "BAR_1").close()
    except Refused:
        return
    raise NotShown("BAR_1 is served here")


def simple_router(site: Site) -> None:
    """Everybody goes to the first of three that is ready."""
    router, *targets = (site.broker(name) for name in ("router", "one", "two", "three"))
    site.route(router, _router('<policy name="FIRST_ELEMENT"/><pool>{targets}</pool>'), _ports(*targets))
    site.start(*targets, router)

    def expect(target: BrokerProcess, ready: int) -> None:
        site.wait_ready(router, ready)
        with site.client.connect([router.openwire_port], ADMIN, "any") as connection:
            check(connection.port == target.openwire_port, f"served at {connection.port}, not at {target.directory}")
            _exchange(connection, "simple")

    expect(targets[0], ready=3)
    targets[0].kill()
    expect(targets[1], ready=2)
    targets[1].stop()
    expect(targets[2], ready=1)
    targets[0].start()
    expect(targets[0], ready=2)


def consistent_hash(site: Site) -> None:
    """The administrator stays, other users have each a broker; without it they have another one till it is back."""
    brokers = [site.broker(name) for name in ("local", "one", "two")]
    local, *targets = brokers
    # The policy stands there twice in the manual as well.
    policy = '<policy name="CONSISTENT_HASH"/>'
    pool = "<pool><local-target-enabled>true</local-target-enabled>" + _LOGIN + "{found}</pool>"
    partition = "<key-type>USER_NAME</key-type><local-target-filter>admin</local-target-filter>"
    site.route(local, _router(partition + policy + pool + policy))
    for broker in targets:
        site.announce(broker)
    site.start(*targets, local)
    by_port = {broker.openwire_port: broker for broker in brokers}

    def places() -> dict[str, int]:
        found = {}
        for login in (GUEST, *OTHERS):
            with site.client.connect([local.openwire_port], login, "") as connection:
                found[login.user] = connection.port
                _exchange(connection, f"of.{login.user}")
        return found

    site.wait_ready(local, 3)
    with site.client.connect([local.openwire_port], ADMIN, "") as connection:
        check(connection.port == local.openwire_port, "the administrator is served elsewhere")
    first = places()
    check(places() == first, "a user has been sent to two brokers")
    check(set(first.values()) <= set(by_port), f"served at {first}, which are no targets")
    gone = next((by_port[port] for port in first.values() if port != local.openwire_port), targets[0])
    gone.kill()
    site.wait_ready(local, 2)
    without = places()
    check(gone.openwire_port not in without.values(), "a user is sent to a broker that is gone")
    moved = {user for user, port in without.items() if port != first[user]}
    check(
        moved == {user for user, port in first.items() if port == gone.openwire_port},
        f"{first} becomes {without} without {gone.openwire_port}: others have moved than those of that broker",
    )
    gone.start()
    site.wait_ready(local, 3)
    check(places() == first, "not all are back where they were")


def evenly_balance(site: Site) -> None:
    """Each client goes to the broker that has the fewest."""
    router, *targets = (site.broker(name) for name in ("router", "one", "two"))
    site.route(router, _router(f'{_PREFIX}<policy name="LEAST_CONNECTIONS"/><pool>{_LOGIN}{{found}}</pool>'))
    for broker in targets:
        site.announce(broker)
    site.start(*targets, router)
    site.wait_ready(router, 2)
    with ExitStack() as stack:
        connections = [
            stack.enter_context(site.client.connect([router.openwire_port], ADMIN, f"{number:03}_client"))
            for number in range(_MESSAGES)
        ]
        spread = Counter(connection.port for connection in connections)
        check(set(spread) == {one.openwire_port for one in targets}, f"served at {dict(spread)}")
        # What a check counts may still miss the client that is on its way.
        check(max(spread.values()) - min(spread.values()) <= 2, f"not even: {dict(spread)}")


def symmetric_simple(site: Site) -> None:
    """Two partitions; clients know both brokers, and what they send stays with those who begin alike."""
    brokers = {name: site.broker(name) for name in ("FOO", "BAR")}
    for name, broker in brokers.items():
        site.route(broker, _router(f"{_PREFIX}<local-target-filter>^{name}.*</local-target-filter>"))
    site.start(*brokers.values())
    ports = [broker.openwire_port for broker in brokers.values()]
    _send(site, {"BAR": ports, "FOO": ports})
    for name, broker in brokers.items():
        for queue in brokers:
            expected = _MESSAGES if queue == name else 0
            found = messages_in(broker, f"exampleQueue{queue}")
            check(found == expected, f"the broker of {name} has {found} messages in exampleQueue{queue}")
    _receive(site, {"FOO": ports, "BAR": ports})


def _send(site: Site, entries: dict[str, list[int]]) -> dict[str, int]:
    """Where the producer of each prefix is served, and how it enters."""
    served = {}
    for prefix, ports in entries.items():
        with site.client.connect(ports, ADMIN, f"{prefix}_PRODUCER") as connection:
            served[prefix] = connection.port
            for number in range(_MESSAGES):
                connection.send(f"exampleQueue{prefix}", f"{prefix} {number}")
    return served


def _receive(site: Site, entries: dict[str, list[int]]) -> dict[str, int]:
    """The same of the consumers. Raises NotShown when one does not get what its producer has sent."""
    served = {}
    for prefix, ports in entries.items():
        with site.client.connect(ports, ADMIN, f"{prefix}_CONSUMER") as connection:
            served[prefix] = connection.port
            found = [connection.receive(f"exampleQueue{prefix}") for _ in range(_MESSAGES)]
            check(found == [f"{prefix} {number}" for number in range(_MESSAGES)], f"{prefix} has received {found}")
    return served


def symmetric_redirect(site: Site) -> None:
    """Two brokers with one policy by key: producers enter by the first, consumers by the second, and both meet."""
    brokers = [site.broker(name) for name in ("server0", "server1")]
    both = "<quorum-size>2</quorum-size><local-target-enabled>true</local-target-enabled>"
    for broker in brokers:
        site.route(broker, _router(f'{_PREFIX}<policy name="CONSISTENT_HASH"/><pool>{_LOGIN}{both}{{found}}</pool>'))
        site.announce(broker)
    site.start(*brokers)
    for broker in brokers:
        site.wait_ready(broker, 2)
    first, second = ([broker.openwire_port] for broker in brokers)
    sent = _send(site, {"FOO": first, "BAR": first})
    check(_receive(site, {"BAR": second, "FOO": second}) == sent, "the two brokers choose differently")


def evenly_redirect(site: Site) -> None:
    """A third broker spreads producers, and its cache sends the consumers after them."""
    router, *targets = (site.broker(name) for name in ("server0", "server1", "server2"))
    element = _router(f'{_PREFIX}<cache/><policy name="LEAST_CONNECTIONS"/><pool>{_LOGIN}{{targets}}</pool>')
    site.route(router, element, _ports(*targets))
    site.start(*targets, router)
    site.wait_ready(router, 2)
    entry = [router.openwire_port]
    with ExitStack() as stack:
        # Both are there at a time, as in the example: so the second one goes to the other broker.
        held = [stack.enter_context(site.client.connect(entry, ADMIN, f"{name}_PRODUCER")) for name in ("FOO", "BAR")]
        check({one.port for one in held} == {one.openwire_port for one in targets}, "both are at one broker")
    sent = _send(site, {"FOO": entry, "BAR": entry})
    check(_receive(site, {"BAR": entry, "FOO": entry}) == sent, "a consumer was sent elsewhere than its producer")


def pair_takeover(site: Site) -> None:
    """The active broker of a pair is killed: a client goes on at the other one, with all that was confirmed."""
    pair = site.pair()
    pair.start()
    ports = [pair.primary.openwire_port, pair.backup.openwire_port]
    sent = [f"{when} the kill {number}" for when in ("before", "after") for number in range(_BEFORE)]
    with ExitStack() as stack:
        connection = stack.enter_context(site.client.connect(ports, ADMIN, "me"))
        check(connection.port == ports[0], f"served at {connection.port}, not by the primary at {ports[0]}")
        for text in sent[:_BEFORE]:
            connection.send("orders", text)
        pair.primary.kill()
        if not site.client.reconnects:
            connection = stack.enter_context(site.client.connect(ports, ADMIN, "me"))
        for text in sent[_BEFORE:]:
            connection.send("orders", text)
        check(connection.port == ports[1], f"served at {connection.port}, not by the backup at {ports[1]}")
        found = [connection.receive("orders") for _ in sent]
        check(found == sent, f"received {found}")


PROGRAMS: Final = {
    one.name: one
    for one in (
        RouterProgram("local-partition", ("ROUTE-1", "ROUTE-2", "ROUTE-6", "ROUTE-9"), local_partition),
        RouterProgram("simple-router", ("ROUTE-1", "ROUTE-3", "ROUTE-4", "ROUTE-7", "ROUTE-9"), simple_router),
        RouterProgram(
            "consistent-hash-router", ("ROUTE-1", "ROUTE-3", "ROUTE-4", "ROUTE-7", "ROUTE-9", "CLUS-1"), consistent_hash
        ),
        RouterProgram("evenly-balance", ("ROUTE-3", "ROUTE-4", "ROUTE-7", "ROUTE-9", "CLUS-1"), evenly_balance),
        RouterProgram("symmetric-simple", ("ROUTE-2", "ROUTE-6", "ROUTE-9"), symmetric_simple),
        RouterProgram("symmetric-redirect", ("ROUTE-3", "ROUTE-4", "ROUTE-7", "ROUTE-9", "CLUS-1"), symmetric_redirect),
        RouterProgram("evenly-redirect", ("ROUTE-4", "ROUTE-5", "ROUTE-7", "ROUTE-9"), evenly_redirect),
        RouterProgram("pair-takeover", ("HA-1",), pair_takeover),
    )
}
