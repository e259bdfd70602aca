"""The text of a converted broker.xml."""

import re
from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from delosmq.migration.activemq_xml.target import ConvertedAddress, ConvertedDivert, Target

_HEAD: Final = '<?xml version="1.0" encoding="UTF-8"?>'
_STEP: Final = "   "
# Of a command, as sentences have them.
_OPTION: Final = re.compile(r"(?<=[ `])--(?=[a-z])")


def render_broker_xml(target: Target, source: str, remarks: Sequence[str]) -> str:
    """The whole file.

    Args:
        source: the name of the file that was converted.
        remarks: what its reader should know, one line each; put at the top.
    """
    lines = [_HEAD, *_comment(source, remarks), '<configuration xmlns="urn:activemq">']
    lines.append(f'{_STEP}<core xmlns="urn:activemq:core">')
    body = [f"<{name}>{_text(value)}</{name}>" for name, value in target.core.items()]
    for part in (_acceptors, _security, _settings, _addresses, _diverts):
        body += ["", *part(target)]
    lines += [f"{_STEP * 2}{line}" if line else "" for line in body]
    return "\n".join([*lines, f"{_STEP}</core>", "</configuration>", ""])


def _text(text: str) -> str:
    # What the source wrote is final: broker.xml must not read a placeholder into it.
    return escape(text)


def _in_comment(text: str) -> str:
    # "--" ends a comment; what isn't printable has no place in XML.
    shown = "".join(letter if letter.isprintable() else "?" for letter in text)
    shown = _OPTION.sub("option ", shown)
    while "--" in shown:
        shown = shown.replace("--", "- -")
    return shown


def _comment(source: str, remarks: Sequence[str]) -> list[str]:
    if not remarks:
        return [f"<!-- Converted from {_in_comment(source)}, all of it. -->"]
    listed = [f"     {_in_comment(remark)}" for remark in remarks]
    return [f"<!-- Converted from {_in_comment(source)}, but for the following:", *listed, "-->"]


def _wrapped(name: str, inner: list[str]) -> list[str]:
    return [f"<{name}>", *(f"{_STEP}{line}" for line in inner), f"</{name}>"] if inner else []


def _acceptors(target: Target) -> list[str]:
    inner: list[str] = []
    for acceptor in target.acceptors:
        line = f"<acceptor name={quoteattr(acceptor.name)}>{escape(acceptor.url)}</acceptor>"
        if acceptor.reason:
            inner += [f"<!-- {_in_comment(acceptor.reason)}:", f"{_in_comment(line)} -->"]
        else:
            inner.append(line)
    return _wrapped("acceptors", inner)


def _security(target: Target) -> list[str]:
    inner: list[str] = []
    for match, permissions in target.permissions.items():
        inner.append(f"<security-setting match={quoteattr(match)}>")
        for permission, roles in permissions.items():
            inner.append(f"{_STEP}<permission type={quoteattr(permission)} roles={quoteattr(','.join(roles))}/>")
        inner.append("</security-setting>")
    return _wrapped("security-settings", inner)


def _settings(target: Target) -> list[str]:
    inner: list[str] = []
    for match, settings in target.settings.items():
        if settings:
            inner.append(f"<address-setting match={quoteattr(match)}>")
            inner += [f"{_STEP}<{name}>{_text(value)}</{name}>" for name, value in settings.items()]
            inner.append("</address-setting>")
    return _wrapped("address-settings", inner)


def _addresses(target: Target) -> list[str]:
    inner: list[str] = []
    for name, address in target.addresses.items():
        inner.append(f"<address name={quoteattr(name)}>")
        inner += [f"{_STEP}{line}" for line in _routings(name, address)]
        inner.append("</address>")
    return _wrapped("addresses", inner)


def _routings(name: str, address: ConvertedAddress) -> list[str]:
    lines: list[str] = []
    for routing in address.routings:
        if routing == "anycast" and address.has_queue:
            lines.append(f"<anycast><queue name={quoteattr(name)}/></anycast>")
        else:
            lines.append(f"<{routing}/>")
    return lines


def _diverts(target: Target) -> list[str]:
    inner: list[str] = []
    for divert in target.diverts:
        inner += _divert(divert)
    return _wrapped("diverts", inner)


def _divert(divert: ConvertedDivert) -> list[str]:
    lines = [
        f"<address>{_text(divert.address)}</address>",
        f"<forwarding-address>{_text(', '.join(divert.targets))}</forwarding-address>",
        f"<exclusive>{'true' if divert.exclusive else 'false'}</exclusive>",
        f"<routing-type>{divert.routing}</routing-type>",
    ]
    if divert.filter:
        lines.append(f"<filter string={quoteattr(divert.filter)}/>")
    return [f"<divert name={quoteattr(divert.name)}>", *(f"{_STEP}{line}" for line in lines), "</divert>"]
