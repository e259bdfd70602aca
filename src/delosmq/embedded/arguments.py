"""The arguments of `Broker`: checked, and made into settings."""

import inspect
import itertools
import logging
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import UnionType
from typing import Any, Final

from delosmq.config.findings import nearest
from delosmq.model.errors import ConfigurationError
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.settings import (
    MIB,
    AcceptorSettings,
    AddressDefinition,
    AddressMatch,
    BrokerSettings,
    JournalSettings,
    QueueSettings,
    SecurityMatch,
    TlsSettings,
)
from delosmq.security.access import PERMISSIONS

LOOPBACK: Final = "127.0.0.1"
ROLE: Final = "amq"
DEAD_LETTERS: Final = "DLQ"
# Three of them lie ready from the start: 64 MiB each, as under `delosmq run`, would be much for a test.
EMBEDDED_SEGMENT_BYTES: Final = 16 * MIB
LARGEST_PORT: Final = 65535
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]")
_numbers: Final = itertools.count(1)
_WRONG_ARGUMENT: Final = "DMQ6025"


def default_settings() -> BrokerSettings:
    """What an embedded broker does unless told otherwise: STOMP with ``/queue/`` and ``/topic/``, OpenWire, dead
    letters in ``DLQ``."""
    return BrokerSettings(
        acceptors=(
            AcceptorSettings(
                name="stomp",
                host=LOOPBACK,
                port=0,
                protocols=("STOMP",),
                anycast_prefixes=("/queue/",),
                multicast_prefixes=("/topic/",),
            ),
            AcceptorSettings(name="openwire", host=LOOPBACK, port=0, protocols=("OPENWIRE",)),
        ),
        addresses=(AddressDefinition(DEAD_LETTERS, frozenset({ANYCAST})),),
        queues=(QueueSettings(DEAD_LETTERS, DEAD_LETTERS),),
        address_settings=(
            AddressMatch(
                "#",
                {
                    "dead_letter_address": DEAD_LETTERS,
                    "default_address_routing_type": MULTICAST,
                },
            ),
        ),
        security_settings=(SecurityMatch("#", {name: frozenset({ROLE}) for name in PERMISSIONS}),),
        journal=JournalSettings(file_size_bytes=EMBEDDED_SEGMENT_BYTES),
    )


def refuse_unknown(unknown: dict[str, Any], constructor: Callable[..., None]) -> None:
    for name in unknown:
        known = [argument for argument in inspect.signature(constructor).parameters if argument != "self"]
        raise ConfigurationError(_WRONG_ARGUMENT, f"Broker has no argument {name!r}{nearest(name, known)}")


def check_arguments(arguments: dict[str, tuple[object, type | UnionType, str]]) -> None:
    """Refuses values that are empty or of a wrong type. The text says what a value must be."""
    for name, (value, kind, rule) in arguments.items():
        if not isinstance(value, kind) or value == "":
            raise ConfigurationError(_WRONG_ARGUMENT, f"{name} of Broker is {value!r}; it must be {rule}")


def refuse_instance(directory: Path | None) -> None:
    """What `delosmq run` keeps lies below data/, so that a broker right here would begin with nothing."""
    if directory is not None and (directory / "etc" / "broker.xml").exists():
        data = directory / "data"
        raise ConfigurationError(
            _WRONG_ARGUMENT,
            f"directory of Broker is {str(directory)!r}, an instance directory of `delosmq run`; for its messages name"
            f" directory={str(data)!r} and config={str(directory / 'etc' / 'broker.xml')!r}, or take a directory of its"
            " own",
        )


def chosen_settings(config: Path | str | None, settings: BrokerSettings | None) -> BrokerSettings:
    """The settings of a broker.xml, those of a program made complete, or the default ones."""
    if config is None and settings is None:
        return default_settings()
    if config is not None and settings is not None:
        raise ConfigurationError(_WRONG_ARGUMENT, "Broker has both config= and settings=; leave out one of them")
    if settings is not None:
        from delosmq.config.settings_check import check_settings

        check_settings(settings)
        return _completed(settings)
    from delosmq.config.broker_xml.loader import load_broker_xml

    loaded = load_broker_xml(Path(config or ""))
    for notice in loaded.notices:
        logging.getLogger("delosmq").warning(notice)
    return replace(
        loaded.settings,
        security_settings=loaded.settings.security_settings or default_settings().security_settings,
        # A broker on loopback and free ports is none of those that the file's network looks for.
        broadcast_groups=(),
        discovery_groups=(),
    )


def _completed(settings: BrokerSettings) -> BrokerSettings:
    """Settings with those of `default_settings` where they say nothing, so that naming one part loses no other."""
    standard = default_settings()
    addresses, queues = settings.addresses, settings.queues
    if not settings.address_settings and all(queue.name != DEAD_LETTERS for queue in queues):
        # The address-settings that are filled in name this queue.
        addresses = (*standard.addresses, *(one for one in addresses if one.name != DEAD_LETTERS))
        queues = (*standard.queues, *queues)
    return replace(
        settings,
        acceptors=settings.acceptors or standard.acceptors,
        addresses=addresses,
        queues=queues,
        address_settings=settings.address_settings or standard.address_settings,
        security_settings=settings.security_settings or standard.security_settings,
        journal=standard.journal if settings.journal == JournalSettings() else settings.journal,
    )


def with_port(settings: BrokerSettings, protocol: str, argument: str, port: int | None) -> BrokerSettings:
    """The settings with ``port`` for the first acceptor that speaks ``protocol``; None changes nothing."""
    if port is None:
        return settings
    _check_port(argument, port)
    acceptors = list(settings.acceptors)
    for number, acceptor in enumerate(acceptors):
        if protocol in acceptor.protocols:
            acceptors[number] = replace(acceptor, port=port)
            return replace(settings, acceptors=tuple(acceptors))
    raise ConfigurationError(_WRONG_ARGUMENT, f"{argument} is given, and no acceptor of the settings speaks {protocol}")


def _check_port(argument: str, port: object) -> None:
    if type(port) is not int or not 0 <= port <= LARGEST_PORT:
        raise ConfigurationError(
            _WRONG_ARGUMENT, f"{argument} of Broker is {port!r}; it must be a port from 0 to {LARGEST_PORT}"
        )


def check_no_ports(ports: dict[str, int | None]) -> None:
    """Refuses a port for a broker that is to have none."""
    for name, port in ports.items():
        if port:
            raise ConfigurationError(
                _WRONG_ARGUMENT, f"Broker has both ports=False and {name}={port}; leave out one of them"
            )


def local_name(name: str | None, broker: str) -> str:
    """The name that clients of this process connect to.

    Args:
        broker: the broker's name in its settings, which several may have.
    """
    if name is None:
        return f"{_NOT_IN_NAMES.sub('-', broker)}-{next(_numbers)}"
    if _NOT_IN_NAMES.search(name):
        raise ConfigurationError(
            _WRONG_ARGUMENT, f"name of Broker is {name!r}; it must be made of letters, digits, '.', '-' and '_'"
        )
    return name


def check_http_port(port: object, *, http: bool) -> None:
    """Refuses what is no port, and a port where there is to be no HTTP interface."""
    _check_port("http_port", port)
    if port and not http:
        raise ConfigurationError(
            _WRONG_ARGUMENT, f"Broker has both http=False and http_port={port}; leave out one of them"
        )


def check_http_tls(tls: TlsSettings | None, *, http: bool) -> None:
    """Refuses TLS for an HTTP interface that is not there."""
    if tls is not None and not http:
        raise ConfigurationError(
            _WRONG_ARGUMENT,
            "Broker has http_tls and no HTTP interface; leave out http_tls, or http=False and ports=False",
        )


def check_distinct(ports: dict[str, int]) -> None:
    """Refuses a port that is given to two."""
    named: dict[int, str] = {}
    for name, port in ports.items():
        if port and port in named:
            raise ConfigurationError(
                _WRONG_ARGUMENT, f"port {port} is given to {named[port]} and to {name}; give each a port of its own"
            )
        named[port] = name


def reachable(host: str) -> str:
    """Where a client on this machine finds what listens on ``host``."""
    return {"0.0.0.0": LOOPBACK, "::": "::1"}.get(host, host)


def tcp_url(host: str, port: int) -> str:
    """An address as clients of JMS and STOMP write it."""
    return f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"
