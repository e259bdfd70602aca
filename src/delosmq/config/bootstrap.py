"""etc/bootstrap.xml: where the HTTP interface listens."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from delosmq.config.findings import (
    MISSING,
    UNKNOWN_NAME,
    WRONG_VALUE,
    Findings,
    nearest,
)
from delosmq.config.xml_document import XmlElement, read_xml
from delosmq.model.settings import WebBind

NAMES_THAT_STOP: Final = ("security-manager", "clientAuth", "binding", "web")
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
        binds: list[tuple[int, str]] = []
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
        for line, _ in binds[1:]:
            self._findings.refuse("binding", line, "a second <binding> is not in effect yet; keep one")
        return self._parse_bind(*binds[0]) if binds else None

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

    def _read_web(self, web: XmlElement) -> list[tuple[int, str]]:
        self._check_attributes(web, _WEB_ATTRIBUTES, ("bind",))
        binds = [(web.line, web.attributes["bind"])] if "bind" in web.attributes else []
        for child in web.children:
            if child.name == "binding":
                self._check_attributes(child, _BINDING_ATTRIBUTES, ("name", "uri"))
                self._check_children(child, _BINDING_CHILDREN)
                binds.append((child.line, child.attributes.get("uri", "")))
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
        for name, value in element.attributes.items():
            what = f"attribute {name!r} of <{element.name}>"
            if name not in known:
                self._unknown(element.line, what, name, known)
            elif name == "clientAuth" and value.strip().lower() != "false":
                self._findings.refuse(name, element.line, f"{what} is not in effect yet: there is no TLS; write false")
            elif name not in obeyed:
                self._ignore(name, element.line)

    def _ignore(self, name: str, line: int) -> None:
        self._findings.ignore(name, line, f"{name!r} is ignored")

    def _unknown(self, line: int, what: str, name: str, known: tuple[str, ...]) -> None:
        self._findings.add(UNKNOWN_NAME, line, f"unknown {what}{nearest(name, list(known)) or '; remove it'}")

    def _parse_bind(self, line: int, text: str) -> WebBind | None:
        try:
            parts = urlsplit(text.strip())
            port = parts.port
        except ValueError:
            port = None
        else:
            if parts.scheme == "https":
                sentence = "https is not in effect yet; write http://127.0.0.1:8161 and put a TLS proxy in front"
                self._findings.refuse("web", line, sentence)
                return None
            if parts.scheme == "http" and parts.hostname and port is not None and not parts.query:
                return WebBind(parts.hostname, port)
        sentence = f"the web bind is {text!r} but must be a URL such as http://127.0.0.1:8161"
        self._findings.add(WRONG_VALUE, line, sentence)
        return None
