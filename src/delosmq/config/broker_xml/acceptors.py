"""``<acceptors>``: where to listen, for which protocols, with which options."""

from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from delosmq.config import values
from delosmq.config.broker_xml.acceptor_catalog import (
    ACCEPTOR,
    ACCEPTOR_OPTIONS,
    ACCEPTORS,
    LATER_PROTOCOLS,
    SERVED_PROTOCOLS,
)
from delosmq.config.broker_xml.reader import Reader
from delosmq.config.findings import TWICE, WRONG_VALUE, nearest
from delosmq.config.xml_document import XmlElement
from delosmq.model.settings import AcceptorSettings

_FORM: Final = "write tcp://host:port?option=value;option=value"


@dataclass(frozen=True)
class _Option:
    """Which field of AcceptorSettings an option fills, and how it is read."""

    field: str
    parse: Callable[[str], object]


_FIELDS: Final[dict[str, _Option]] = {
    "anycastPrefix": _Option("anycast_prefixes", values.comma_separated),
    "multicastPrefix": _Option("multicast_prefixes", values.comma_separated),
    "connectionsAllowed": _Option("connections_allowed", values.unlimited_or_at_least(1)),
    "handshake-timeout": _Option("handshake_timeout_s", values.at_least(1)),
    "heartBeatToConnectionTtlModifier": _Option("heart_beat_to_ttl_modifier", values.parse_modifier),
    "connectionTtl": _Option("connection_ttl_ms", values.unlimited_or_at_least(1)),
    "connectionTtlMin": _Option("connection_ttl_min_ms", values.at_least(1)),
    "connectionTtlMax": _Option("connection_ttl_max_ms", values.at_least(0)),
    "stompConsumerWindowSize": _Option("stomp_consumer_window_bytes", values.parse_limit_bytes),
    "stompMaxFramePayloadLength": _Option("max_frame_bytes", values.bytes_at_least(1)),
}


class _AcceptorUrl:
    """The parts of an acceptor's URL, before anything is decided."""

    def __init__(self, scheme: str, host: str, port: int, options: list[tuple[str, str]]) -> None:
        self.scheme = scheme
        self.host = host
        self.port = port
        self.options = options


def read_acceptors(reader: Reader, element: XmlElement) -> tuple[list[AcceptorSettings], list[str]]:
    """The acceptors to open, and the notices about those that stay closed or speak less than they were asked to."""
    opened: list[AcceptorSettings] = []
    notices: list[str] = []
    lines: dict[str, int] = {}
    for child in reader.children(element, ACCEPTORS):
        reader.leaf(child, ACCEPTOR)
        url = reader.parsed(child.line, "the URL of <acceptor>", child.text, _split_url, default=None)
        if url is None:
            continue
        name = child.attributes.get("name", "").strip() or f"{url.host}:{url.port}"
        if name in lines:
            sentence = f"acceptor {name!r} is already in line {lines[name]}; give one of them another name"
            reader.findings.add(TWICE, child.line, sentence)
        lines[name] = child.line
        acceptor = _read_acceptor(reader, child.line, name, url, notices=notices)
        if acceptor is not None:
            opened.append(acceptor)
    return opened, notices


def _read_acceptor(
    reader: Reader, line: int, name: str, url: _AcceptorUrl, *, notices: list[str]
) -> AcceptorSettings | None:
    if url.scheme == "vm":
        notices.append(f"DMQ4102: acceptor {name!r} stays closed: in-process connections (vm://) are not in effect yet")
        return None
    options: dict[str, str] = {}
    fields: dict[str, Any] = {}
    for key, text in url.options:
        what = f"option {key!r} of acceptor {name!r}"
        if key in options:
            reader.findings.add(TWICE, line, f"{what} is there twice; keep one")
        options[key] = "" if "password" in key.lower() else text
        item = reader.known_name(line, what, key, ACCEPTOR_OPTIONS)
        if item is None or not reader.in_effect(line, what, text, item):
            continue
        option = _FIELDS.get(key)
        if option is not None:
            fields[option.field] = reader.parsed(line, what, text, option.parse, default=None)
    protocols = _read_protocols(reader, line, name, options.get("protocols"), notices=notices)
    starts = reader.parsed(
        line,
        f"option 'autoStart' of acceptor {name!r}",
        options.get("autoStart", "true"),
        values.parse_boolean,
        default=True,
    )
    if not starts:
        notices.append(f"DMQ4102: acceptor {name!r} stays closed: autoStart is false")
        return None
    if not protocols or None in fields.values():
        return None
    if not _is_loopback(url.host):
        notices.append(
            f"DMQ4107: acceptor {name!r} listens on {url.host}, reachable from other machines without TLS: passwords "
            f"and messages travel in the clear; use 127.0.0.1 or a network you trust"
        )
    return AcceptorSettings(name=name, host=url.host, port=url.port, protocols=protocols, options=options, **fields)


def _read_protocols(reader: Reader, line: int, name: str, text: str | None, *, notices: list[str]) -> tuple[str, ...]:
    if text is None:
        return SERVED_PROTOCOLS
    asked = [protocol.upper() for protocol in values.comma_separated(text)]
    known = [*SERVED_PROTOCOLS, *LATER_PROTOCOLS]
    for protocol in asked:
        if protocol not in known:
            remedy = nearest(protocol, known) or f"; there are {', '.join(known)}"
            reader.findings.add(WRONG_VALUE, line, f"unknown protocol {protocol!r} of acceptor {name!r}{remedy}")
    if not asked:
        reader.findings.add(
            WRONG_VALUE, line, f"acceptor {name!r} has protocols= without any; name one or leave it out"
        )
    served = tuple(protocol for protocol in SERVED_PROTOCOLS if protocol in asked)
    later = ", ".join(protocol for protocol in asked if protocol in LATER_PROTOCOLS)
    if later and served:
        speaks = ", ".join(served)
        notices.append(f"DMQ4103: acceptor {name!r} speaks {speaks} only: {later} not in effect yet")
    elif later:
        notices.append(f"DMQ4102: acceptor {name!r} stays closed: {later} not in effect yet")
    return served


def _split_url(text: str) -> _AcceptorUrl:
    rule = f"a URL; {_FORM}"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError(f"a URL with a host and a port from 0 to 65535; {_FORM}") from None
    if parts.scheme == "vm":
        return _AcceptorUrl("vm", parts.netloc, 0, [])
    if parts.scheme != "tcp" or parts.fragment or parts.path not in ("", "/") or "@" in parts.netloc:
        raise ValueError(rule)
    if not parts.hostname or port is None:
        raise ValueError(rule)
    options: list[tuple[str, str]] = []
    for pair in parts.query.replace("&", ";").split(";"):
        key, equals, value = pair.partition("=")
        if equals:
            options.append((unquote(key.strip()), unquote(value.strip())))
        elif pair.strip():
            raise ValueError(f"a URL whose options have values; {_FORM}")
    return _AcceptorUrl("tcp", parts.hostname, port, options)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
