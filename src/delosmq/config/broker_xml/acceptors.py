"""``<acceptors>``: where to listen, for which protocols, with which options."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from delosmq.config.broker_xml.catalog.acceptors import (
    ACCEPTOR,
    ACCEPTOR_OPTIONS,
    ACCEPTORS,
)
from delosmq.config.broker_xml.catalog.table import Policy
from delosmq.config.broker_xml.reader import Reader
from delosmq.config.findings import TWICE, UNKNOWN_NAME, WRONG_VALUE, nearest
from delosmq.config.tls import IN_THE_CLEAR, STORES_WITHOUT_TLS, TlsNames, is_loopback, read_tls
from delosmq.config.xml_document import XmlElement
from delosmq.model import values
from delosmq.model.declared.acceptor import ACCEPTOR_SETTINGS, TLS_SETTINGS
from delosmq.model.protocol_names import LATER_PROTOCOLS, SERVED_PROTOCOLS
from delosmq.model.settings import AcceptorSettings

_STAYS_CLOSED: Final = "DMQ4102"
_FORM: Final = "write tcp://host:port?option=value;option=value"


_BY_OPTION: Final = {setting.written: (field, setting) for field, setting in ACCEPTOR_SETTINGS.items()}
_TLS_BY_OPTION: Final = {setting.written: (field, setting) for field, setting in TLS_SETTINGS.items()}


class _AcceptorUrl:
    """The parts of an acceptor's URL, before anything is decided."""

    def __init__(self, scheme: str, host: str, port: int, options: list[tuple[str, str]]) -> None:
        self.scheme = scheme
        self.host = host
        self.port = port
        self.options = options


def read_acceptors(
    reader: Reader, element: XmlElement, directory: Path, routers: Sequence[str]
) -> list[AcceptorSettings]:
    """The acceptors to open; about those that stay closed or speak less than they were asked to there are notices.

    Args:
        directory: what relative paths of key and trust stores are relative to.
        routers: the names of the connection routers there are.
    """
    opened: list[AcceptorSettings] = []
    lines: dict[str, int] = {}
    by_port: dict[int, list[AcceptorSettings]] = {}
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
        acceptor = _read_acceptor(reader, child.line, name, url, directory=directory)
        if acceptor is None:
            continue
        if acceptor.router and acceptor.router not in routers:
            remedy = nearest(acceptor.router, list(routers)) or "; write a <connection-router> of that name"
            sentence = f"acceptor {name!r} names the connection-router {acceptor.router!r}, which isn't there{remedy}"
            reader.findings.add(UNKNOWN_NAME, child.line, sentence)
        on_port = by_port.setdefault(acceptor.port, [])
        for other in on_port:
            if share_port((other.host, other.port), (acceptor.host, acceptor.port)):
                sentence = f"acceptor {name!r} has the port {acceptor.port} of acceptor {other.name!r} in line "
                reader.findings.add("DMQ4158", child.line, f"{sentence}{lines[other.name]}; give it another one")
        opened.append(acceptor)
        on_port.append(acceptor)
    return opened


def share_port(one: tuple[str, int], other: tuple[str, int]) -> bool:
    """Whether two hosts with a port each can't both be listened on."""
    hosts = {one[0], other[0]}
    if one[1] != other[1] or one[1] == 0:
        return False
    is_six = [":" in host for host in hosts]
    return len(hosts) == 1 or ("0.0.0.0" in hosts and not any(is_six)) or ("::" in hosts and all(is_six))


def _read_acceptor(
    reader: Reader, line: int, name: str, url: _AcceptorUrl, *, directory: Path
) -> AcceptorSettings | None:
    if url.scheme == "vm":
        sentence = f"acceptor {name!r} stays closed: in-process connections (vm://) are not in effect yet"
        reader.findings.notice(_STAYS_CLOSED, line, sentence)
        return None
    options: dict[str, str] = {}
    fields: dict[str, Any] = {}
    tls_fields: dict[str, Any] = {}
    for key, text in url.options:
        what = f"option {key!r} of acceptor {name!r}"
        if key in options:
            reader.findings.add(TWICE, line, f"{what} is there twice; keep one")
        options[key] = "" if "password" in key.lower() else text
        item = reader.known_name(line, what, key, ACCEPTOR_OPTIONS)
        if item is None or not reader.in_effect(line, what, text, item):
            continue
        for known, found in ((_BY_OPTION, fields), (_TLS_BY_OPTION, tls_fields)):
            if key in known:
                field, setting = known[key]
                found[field] = reader.parsed(line, what, text, setting.parse, default=None)
    protocols = _read_protocols(reader, line, name, options.get("protocols"))
    if not _read_flag(reader, line, name, options, option="autoStart", default="true"):
        reader.findings.notice(_STAYS_CLOSED, line, f"acceptor {name!r} stays closed: autoStart is false")
        return None
    if not protocols or None in fields.values() or None in tls_fields.values():
        return None
    if _read_flag(reader, line, name, options, option="sslEnabled", default="false"):
        names = TlsNames(f"acceptor {name!r}")
        fields["tls"] = read_tls(tls_fields, names, directory=directory, findings=reader.findings, line=line)
    elif tls_fields:
        sentence = f"acceptor {name!r} speaks no TLS, whatever its stores: add sslEnabled=true to its URL"
        reader.findings.notice(STORES_WITHOUT_TLS, line, sentence)
    if not is_loopback(url.host) and fields.get("tls") is None:
        sentence = (
            f"acceptor {name!r} listens on {url.host}, reachable from other machines without TLS: passwords and "
            f"messages travel in the clear; use 127.0.0.1 or a network you trust"
        )
        reader.findings.notice(IN_THE_CLEAR, line, sentence)
    return AcceptorSettings(name=name, host=url.host, port=url.port, protocols=protocols, options=options, **fields)


def _read_flag(reader: Reader, line: int, name: str, options: dict[str, str], *, option: str, default: str) -> bool:
    what = f"option {option!r} of acceptor {name!r}"
    return reader.parsed(line, what, options.get(option, default), values.parse_boolean, default=default == "true")


def _read_protocols(reader: Reader, line: int, name: str, text: str | None) -> tuple[str, ...]:
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
        sentence = f"acceptor {name!r} speaks {speaks} only: {later} not in effect yet"
        reader.findings.notice("DMQ4103", line, sentence)
    elif later:
        reader.findings.notice(_STAYS_CLOSED, line, f"acceptor {name!r} stays closed: {later} not in effect yet")
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
        # Artemis drops options without a value. Nothing is lost by it where the option does nothing here either.
        if equals:
            options.append((unquote(key.strip()), unquote(value.strip())))
        elif (item := ACCEPTOR_OPTIONS.get(pair.strip())) is not None and item.policy is Policy.NOT_YET:
            options.append((item.name, ""))
        elif pair.strip():
            raise ValueError(f"a URL with a value for each option; {_FORM}")
    return _AcceptorUrl("tcp", parts.hostname, port, options)
