"""Notices about a broker.xml without mistakes: what its operator should know all the same."""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

from delosmq.model.settings import UNLIMITED, AddressFullPolicy, BrokerSettings, MessageEviction, QueueSettings
from delosmq.model.wildcard import AddressSettingsTable, with_any_words_apart
from delosmq.security.access import VIEW

_PASSWORD: Final = re.compile(r"<(?:cluster-)?password>([^<]*)<")
_OTHERS: Final = 0o077
"""Permissions of a file for all but its owner."""


class Notice(NamedTuple):
    """One sentence with its code."""

    code: str
    sentence: str


def warning_about_passwords(path: Path, settings: BrokerSettings) -> Notice | None:
    """The password for targets has to be sent, so it can't be kept as a hash, and who reads the file has it."""
    try:
        if not path.stat().st_mode & _OTHERS:
            return None
        written = _PASSWORD.findall(path.read_text("utf-8", "replace"))
    except OSError:
        return None
    for router in settings.connection_routers:
        password = "" if router.pool is None else escape(router.pool.password)
        if password and any(password in one for one in written):
            return Notice(
                "DMQ4164",
                f"others than its owner may read this file, and the password for the targets of connection-router "
                f"{router.name!r} stands in it; chmod 600 it, or write ${{NAME}} and set NAME in the environment",
            )
    return None


def warnings_about(settings: BrokerSettings) -> Iterator[Notice]:
    """In no order that matters."""
    if not settings.acceptors:
        yield Notice(
            "DMQ4108",
            "no acceptor is open, so no client can connect; add one with protocols=OPENWIRE for JMS, STOMP, or both",
        )
    yield from _artemis_journal(settings.journal.directory)
    if not settings.security_settings:
        every = settings.wildcards.any_words
        sentence = f'there are no security-settings, so no user may do anything; add one with match="{every}"'
        yield Notice("DMQ4105", sentence)
    granted = {name for entry in settings.security_settings for name, roles in entry.permissions.items() if roles}
    if granted and VIEW not in granted:
        sentence = (
            "no security-setting grants 'view', so `delosmq queue stat` and the HTTP interface show no queue;"
            " grant 'view' and 'edit' to the role of your administrators, where Artemis needs 'manage' only"
        )
        yield Notice("DMQ4116", sentence)
    table = AddressSettingsTable(settings.address_settings, settings.wildcards)
    if _pages_somewhere(settings):
        yield Notice(
            "DMQ4104",
            "address-full-policy PAGE acts as BLOCK, as paging is not in effect yet: "
            "producers wait when memory is full",
        )
    # RING-10
    rings = [queue.name for queue in settings.queues if _is_ring(queue, table) and _pages(queue.address, table)]
    if rings:
        yield Notice(
            "DMQ4106",
            f"ring queues on addresses with address-full-policy PAGE: {', '.join(rings)}; a ring doesn't "
            f"bound what is paged, so write BLOCK, FAIL or DROP for them",
        )
    empty = [entry.match for entry in settings.address_settings if entry.fields.get("default_ring_size") == 0]
    if empty:
        yield Notice(
            "DMQ4150",
            f"default-ring-size 0 for {', '.join(empty)}: queues there keep nothing, each message that comes "
            f"is pushed out at once; give a larger one, or -1 for none",
        )
    yield from _evictions(settings, table)
    yield from _without_queues(settings, table)
    yield from _diverted_nowhere(settings)
    yield from _waits_in_vain(settings)


def _waits_in_vain(settings: BrokerSettings) -> Iterator[Notice]:
    """Connections whose login is over before the quorum is that they wait for."""
    routers = {router.name: router for router in settings.connection_routers}
    for acceptor in settings.acceptors:
        router = routers.get(acceptor.router)
        if router is None or router.pool is None:
            continue
        wait_ms, most_ms = router.pool.quorum_timeout_ms, acceptor.handshake_timeout_s * 1_000
        if wait_ms >= most_ms:
            yield Notice(
                "DMQ4165",
                f"connection-router {router.name!r} has connections wait for {wait_ms} ms (quorum-timeout); acceptor "
                f"{acceptor.name!r} closes them after {most_ms} ms (handshake-timeout), so they are never told to "
                "try later; lower the one or raise the other",
            )


def _evictions(settings: BrokerSettings, table: AddressSettingsTable) -> Iterator[Notice]:
    """Matches with only one of message-eviction and message-eviction-key, which have no effect alone."""
    keyless, unused = [], []
    for entry in settings.address_settings:
        resolved = table.resolve(with_any_words_apart(entry.match, settings.wildcards))
        is_unique = resolved.message_eviction is MessageEviction.UNIQUE_PROPERTY
        if "message_eviction" in entry.fields and is_unique and not resolved.message_eviction_key:
            keyless.append(entry.match)
        if entry.fields.get("message_eviction_key") and not is_unique:
            unused.append(entry.match)
    if keyless:
        yield Notice(
            "DMQ4156",
            f"message-eviction unique-property without message-eviction-key for {', '.join(keyless)}: a slow "
            "consumer loses the oldest messages; name the property",
        )
    if unused:
        yield Notice(
            "DMQ4157",
            f"message-eviction-key without message-eviction unique-property for {', '.join(unused)} has no "
            "effect; add the one or remove the other",
        )


def _diverted_nowhere(settings: BrokerSettings) -> Iterator[Notice]:
    """Ends of diverts that nothing in the file declares: most of them are misspelt."""
    declared = {queue.address for queue in settings.queues} | {address.name for address in settings.addresses}
    for divert in settings.diverts:
        ends = [divert.address, *divert.forwarding_addresses]
        missing = sorted({end for end in ends if end not in declared})
        if missing:
            lost = "; being exclusive, it takes what it moves from all others" if divert.exclusive else ""
            yield Notice(
                "DMQ4111",
                f"divert '{divert.name}' names addresses that are not below <addresses>: "
                f"{', '.join(missing)}; what is moved to one without a queue is gone, so check the names{lost}",
            )


def _pages_somewhere(settings: BrokerSettings) -> bool:
    # Addresses that no match says anything about page by default.
    catch_all = [match for match in settings.address_settings if match.match == settings.wildcards.any_words]
    policies = [match.fields.get("address_full_policy") for match in settings.address_settings]
    return AddressFullPolicy.PAGE in policies or not any("address_full_policy" in match.fields for match in catch_all)


def _is_ring(queue: QueueSettings, table: AddressSettingsTable) -> bool:
    size = table.resolve(queue.address).default_ring_size if queue.ring_size is None else queue.ring_size
    return size != UNLIMITED


def _pages(address: str, table: AddressSettingsTable) -> bool:
    return table.resolve(address).address_full_policy is AddressFullPolicy.PAGE


def _without_queues(settings: BrokerSettings, table: AddressSettingsTable) -> Iterator[Notice]:
    """Dead-letter and expiry addresses that nothing in the file gives a queue."""
    declared = {queue.address for queue in settings.queues}
    dead: dict[str, None] = {}
    expired: dict[str, None] = {}
    for entry in settings.address_settings:
        # A match as a name: what it says, and what less specific ones fill in.
        resolved = table.resolve(with_any_words_apart(entry.match, settings.wildcards))
        if not resolved.auto_create_dead_letter_resources:
            dead[resolved.dead_letter_address] = None
        if not resolved.auto_create_expiry_resources:
            expired[resolved.expiry_address] = None
    for setting, resources, addresses in (
        ("dead-letter-address", "auto-create-dead-letter-resources", dead),
        ("expiry-address", "auto-create-expiry-resources", expired),
    ):
        missing = sorted(addresses.keys() - declared - {""})
        if missing:
            yield Notice(
                "DMQ4109",
                f"{setting} without a queue below <addresses>: {', '.join(missing)}; what goes there is "
                f"held in its queue until it has one, so declare a queue, or set {resources}",
            )


def _artemis_journal(directory: str) -> Iterator[Notice]:
    """Files of Artemis where the journal is to be."""
    names: list[str] = []
    if directory:
        # A directory that is not there yet holds nothing, and the start says of others why they can't be read.
        with contextlib.suppress(OSError):
            names = [
                name for name in os.listdir(directory) if name.startswith("activemq-data-") and name.endswith(".amq")
            ]
    if not names:
        return
    names.sort(key=lambda name: (len(name), name))
    listed = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]} ({len(names)} files)"
    yield Notice(
        "DMQ4113",
        f"{directory} holds the journal of an Artemis broker: {listed}; DelosMQ does not read it, so its messages "
        "stay in those files and no client sees them here; let consumers empty it with Artemis first and then "
        "move the files away, or name another journal-directory",
    )
