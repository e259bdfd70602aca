"""etc/bootstrap.xml: where the HTTP interface listens."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from delosmq.config.findings import (
    MISSING,
    UNKNOWN_NAME,
    WRONG_VALUE,
    Findings,
    nearest,
)
from delosmq.config.tls import (
    BROKEN_VERSIONS,
    HTTP_TLS,
    IN_THE_CLEAR,
    STORES_WITHOUT_TLS,
    VERSIONS,
    is_loopback,
    read_tls,
)
from delosmq.config.xml_document import XmlElement, read_xml
from delosmq.model.declared.acceptor import TLS_SETTINGS
from delosmq.model.settings import TlsSettings, WebBind
from delosmq.model.values import comma_separated

NAMES_THAT_STOP: Final = (
    "security-manager",
    "clientAuth",
    "binding",
    "excludedCipherSuites",
    "sniHostCheck",
    "sniRequired",
)
"""What stops a start, as ``--without`` takes it."""
CERTIFICATE_USERS: Final = "cert-users.properties"
BOOTSTRAP_NAMESPACE: Final = "http://activemq.apache.org/schema"


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_BROKER_CHILDREN: Final = ("jaas-security", "security-manager", "server", "web")
_WEB_CHILDREN: Final = ("binding", "app", "request-log")
_BINDING_CHILDREN: Final = ("app",)
_WEB_ATTRIBUTES: Final = _words(
    "bind path rootRedirectLocation customizer webContentEnabled maxThreads minThreads idleThreadTimeout scanPeriod "
    "maxRequestHeaderSize maxResponseHeaderSize clientAuth passwordCodec keyStorePath keyStorePassword trustStorePath "
    "trustStorePassword includedTLSProtocols excludedTLSProtocols includedCipherSuites excludedCipherSuites"
)
_BINDING_ATTRIBUTES: Final = _words(
    "name uri clientAuth passwordCodec keyStorePath keyStoreType keyStorePassword trustStorePath trustStoreType "
    "trustStorePassword includedTLSProtocols excludedTLSProtocols includedCipherSuites excludedCipherSuites "
    "sniHostCheck sniRequired sslAutoReload http2"
)
_TLS_FIELDS: Final = {
    **{setting.written: field for field, setting in TLS_SETTINGS.items() if setting.written in _BINDING_ATTRIBUTES},
    HTTP_TLS.need_client_auth: "need_client_auth",
    HTTP_TLS.enabled_protocols: "enabled_protocols",
    HTTP_TLS.enabled_cipher_suites: "enabled_cipher_suites",
}
"""Attribute -> the field of `TlsSettings` that it sets."""
_EXCLUDED_VERSIONS: Final = "excludedTLSProtocols"
_REFUSED: Final = {
    "excludedCipherSuites": f"has no effect yet, and what it excludes could be spoken: name the others with "
    f"{HTTP_TLS.enabled_cipher_suites}",
    "sniHostCheck": "has no effect yet, and requests for other names would be served: write false",
    "sniRequired": "has no effect yet, and clients that name no server would be served: write false",
}
"""Why an attribute of https is refused, unless it is false."""
_TLS_ATTRIBUTES: Final = (*_TLS_FIELDS, _EXCLUDED_VERSIONS, *_REFUSED)


@dataclass(frozen=True)
class LoadedBootstrap:
    """What a bootstrap.xml says.

    Attributes:
        web: None when there is no HTTP interface.
    """

    web: WebBind | None
    findings: Findings

    @property
    def notices(self) -> list[str]:
        """Sentences with their codes, to be logged once at start."""
        return self.findings.notices()


def load_bootstrap_xml(
    path: Path, properties: Mapping[str, str], *, without: frozenset[str] = frozenset()
) -> LoadedBootstrap:
    """Reads the bootstrap.xml at ``path``.

    Args:
        without: names that are left out although they should stop the start.

    Raises:
        FlawedFileError: with file, line and remedy of each mistake.
    """
    root, findings = read_xml(path, properties, without=without)
    web = _BootstrapReader(findings, path.parent).read(root)
    findings.raise_if_any()
    return LoadedBootstrap(web, findings)


class _BootstrapReader:
    def __init__(self, findings: Findings, directory: Path) -> None:
        self._findings = findings
        self._directory = directory

    def read(self, root: XmlElement) -> WebBind | None:
        if root.name != "broker" or root.namespace != BOOTSTRAP_NAMESPACE:
            sentence = f'the root is <{root.name}>; write <broker xmlns="{BOOTSTRAP_NAMESPACE}">'
            self._findings.add(UNKNOWN_NAME, root.line, sentence)
            return None
        binds: list[_Binding] = []
        for child in root.children:
            if child.name == "web":
                binds += self._read_web(child)
            elif child.name == "security-manager":
                sentence = (
                    "<security-manager> is not in effect yet; users and roles are in artemis-users.properties and "
                )
                self._findings.refuse(child.name, child.line, f"{sentence}artemis-roles.properties: remove it")
            elif child.name == "server":
                self._check_server(child)
            elif child.name == "jaas-security":
                self._check_certificates(child)
            else:
                self._unknown(child.line, f"element <{child.name}> in <broker>", child.name, _BROKER_CHILDREN)
        for other in binds[1:]:
            self._findings.refuse("binding", other.line, "a second <binding> is not in effect yet; keep one")
        return self._parse_bind(binds[0]) if binds else None

    def _check_certificates(self, security: XmlElement) -> None:
        """With a certificate-domain Artemis has certificates name users; the files are those of its manual here."""
        if "certificate-domain" in security.attributes and not (self._directory / CERTIFICATE_USERS).exists():
            sentence = (
                f"'certificate-domain' has certificates name users, and there is no {CERTIFICATE_USERS} beside this "
                "file; write it, with cert-roles.properties, or remove the attribute"
            )
            self._findings.add(MISSING, security.line, sentence)

    def _check_server(self, server: XmlElement) -> None:
        for name in server.attributes:
            if name != "configuration":
                self._unknown(server.line, f"attribute {name!r} of <server>", name, ("configuration",))
        if not server.attributes.get("configuration", "broker.xml").endswith("broker.xml"):
            sentence = "'configuration' of <server> names another file, but etc/broker.xml is what is read; remove it"
            self._findings.add(WRONG_VALUE, server.line, sentence)

    def _read_web(self, web: XmlElement) -> "list[_Binding]":
        binds = [_Binding(web, web.attributes["bind"])] if "bind" in web.attributes else []
        self._check_attributes(web, _WEB_ATTRIBUTES, ("bind", *_TLS_ATTRIBUTES) if binds else ("bind",))
        for child in web.children:
            if child.name == "binding":
                self._check_attributes(child, _BINDING_ATTRIBUTES, ("name", "uri", *_TLS_ATTRIBUTES))
                self._check_children(child, _BINDING_CHILDREN)
                binds.append(_Binding(child, child.attributes.get("uri", "")))
            elif child.name in _WEB_CHILDREN:
                self._ignore(child.name, child.line)
            else:
                self._unknown(child.line, f"element <{child.name}> in <web>", child.name, _WEB_CHILDREN)
        if not binds:
            self._findings.add(MISSING, web.line, '<web> binds nothing; write <binding uri="http://127.0.0.1:8161"/>')
        return binds

    def _check_children(self, element: XmlElement, known: tuple[str, ...]) -> None:
        for child in element.children:
            if child.name in known:
                self._ignore(child.name, child.line)
            else:
                self._unknown(child.line, f"element <{child.name}> in <{element.name}>", child.name, known)

    def _check_attributes(self, element: XmlElement, known: tuple[str, ...], obeyed: tuple[str, ...]) -> None:
        for name in element.attributes:
            what = f"attribute {name!r} of <{element.name}>"
            if name not in known:
                self._unknown(element.line, what, name, known)
            elif name not in obeyed:
                self._ignore(name, element.line)

    def _ignore(self, name: str, line: int) -> None:
        self._findings.ignore(name, line, f"{name!r} is ignored")

    def _unknown(self, line: int, what: str, name: str, known: tuple[str, ...]) -> None:
        self._findings.add(UNKNOWN_NAME, line, f"unknown {what}{nearest(name, list(known)) or '; remove it'}")

    def _parse_bind(self, bind: "_Binding") -> WebBind | None:
        try:
            parts = urlsplit(bind.uri.strip())
            port = parts.port
        except ValueError:
            port = None
        else:
            if parts.scheme in ("http", "https") and parts.hostname and port is not None and not parts.query:
                if parts.scheme == "http":
                    self._check_plain(bind.element)
                    self._check_reach(bind.line, parts.hostname)
                    return WebBind(parts.hostname, port)
                tls = self._read_tls(bind.element)
                return None if tls is None else WebBind(parts.hostname, port, tls)
        sentence = f"the web bind is {bind.uri!r} but must be a URL such as http://127.0.0.1:8161"
        self._findings.add(WRONG_VALUE, bind.line, sentence)
        return None

    def _check_plain(self, element: XmlElement) -> None:
        """What asks for certificates of clients must not be dropped with TLS; the rest is said to do nothing."""
        for name in _TLS_ATTRIBUTES:
            if name not in element.attributes or self._is_false(element, name):
                continue
            if name == HTTP_TLS.need_client_auth:
                sentence = (
                    f"attribute {name!r} of <{element.name}> asks for TLS: write https:// in its URL, or write false"
                )
                self._findings.refuse(name, element.line, sentence)
                continue
            sentence = f"{HTTP_TLS.owner} speaks no TLS, whatever its attribute {name!r}: write https:// in its URL"
            self._findings.notice(STORES_WITHOUT_TLS, element.line, sentence)
            return

    def _check_reach(self, line: int, host: str) -> None:
        if not is_loopback(host):
            sentence = (
                f"{HTTP_TLS.owner} listens on {host}, reachable from other machines without TLS: passwords and "
                "messages travel in the clear; write https:// in its URL, or use 127.0.0.1 or a network you trust"
            )
            self._findings.notice(IN_THE_CLEAR, line, sentence)

    def _read_tls(self, element: XmlElement) -> TlsSettings | None:
        fields: dict[str, Any] = {}
        wrong = False
        for name, text in element.attributes.items():
            what = f"attribute {name!r} of <{element.name}>"
            if name in _REFUSED and not self._is_false(element, name):
                self._findings.refuse(name, element.line, f"{what} {_REFUSED[name]}")
            elif name in _TLS_FIELDS:
                field = _TLS_FIELDS[name]
                try:
                    fields[field] = TLS_SETTINGS[field].parse(text)
                except ValueError as rule:
                    self._findings.add(WRONG_VALUE, element.line, f"{what} is {text!r} but must be {rule}")
                    wrong = True
        if _EXCLUDED_VERSIONS in element.attributes:
            wrong = not self._exclude_versions(element, fields) or wrong
        if wrong:
            return None
        return read_tls(fields, HTTP_TLS, directory=self._directory, findings=self._findings, line=element.line)

    def _exclude_versions(self, element: XmlElement, fields: dict[str, Any]) -> bool:
        excluded = comma_separated(element.attributes[_EXCLUDED_VERSIONS])
        left = [name for name in fields.get("enabled_protocols") or VERSIONS if name not in excluded]
        unknown = [name for name in excluded if name not in VERSIONS and name not in BROKEN_VERSIONS]
        for name in unknown:
            what = f"TLS version {name!r} in {_EXCLUDED_VERSIONS}"
            self._unknown(element.line, what, name, (*VERSIONS, *BROKEN_VERSIONS))
        if not left:
            sentence = f"{_EXCLUDED_VERSIONS} leaves no version of {' and '.join(VERSIONS)}; leave one out of it"
            self._findings.add(WRONG_VALUE, element.line, sentence)
        fields["enabled_protocols"] = tuple(left)
        return bool(left) and not unknown

    @staticmethod
    def _is_false(element: XmlElement, name: str) -> bool:
        return element.attributes[name].strip().lower() == "false"


class _Binding:
    """An address of the HTTP interface, before anything is decided."""

    def __init__(self, element: XmlElement, uri: str) -> None:
        self.element = element
        self.line = element.line
        self.uri = uri
