"""``<transportConnectors>``: acceptors, as comments where they can't be opened."""

from typing import Final
from urllib.parse import SplitResult, quote, unquote, urlsplit

from delosmq.config.broker_xml.acceptors import share_port
from delosmq.config.broker_xml.catalog.acceptors import ACCEPTOR_OPTIONS
from delosmq.migration.activemq_xml.catalog.broker import CONNECTOR, OPTIONS
from delosmq.migration.activemq_xml.catalog.rows import RowReader, is_in_effect
from delosmq.migration.activemq_xml.source import Section
from delosmq.migration.activemq_xml.target import Acceptor, Target
from delosmq.model.protocol_names import LATER_PROTOCOLS, SERVED_PROTOCOLS

_PROTOCOLS: Final[dict[str, tuple[str, ...]]] = {
    "tcp": ("OPENWIRE",),
    "nio": ("OPENWIRE",),
    "ssl": ("OPENWIRE",),
    "stomp": ("STOMP",),
    "mqtt": ("MQTT",),
    "amqp": ("AMQP",),
    "ws": ("STOMP", "MQTT"),
    "wss": ("STOMP", "MQTT"),
    "auto": ("OPENWIRE", "STOMP", "MQTT", "AMQP"),
}
_DECORATIONS: Final = frozenset({"nio", "ssl"})
_OPTION_PREFIXES: Final = ("wireFormat.", "transport.", "socket.")
# How Classic's STOMP clients write destinations.
_PREFIXES: Final = {"anycastPrefix": "/queue/", "multicastPrefix": "/topic/"}
# They find Classic's virtual topics, as OpenWire clients do without being told.
_VIRTUAL_TOPICS: Final = {"virtualTopicConsumerWildcards": "Consumer.*.VirtualTopic.>;2"}
_ADVISORIES: Final = "supportAdvisory"
# What has no meaning in a URL, and is easier to read unquoted.
_READABLE: Final = "/,:.+*@"


def read_connectors(section: Section, target: Target) -> None:
    for connector in section.children("transportConnector"):
        _Connector(connector, target).read()
    section.close(["transportConnector"])


class _Connector:
    def __init__(self, section: Section, target: Target) -> None:
        self._section = section
        self._target = target
        self._remarks = section.remarks
        self._line = section.line
        self._uri = section.attribute("uri")
        self.name = section.attribute("name")
        self._what = "a connector"
        # What the acceptor is to say, in order.
        self._options: dict[str, str] = {}

    def read(self) -> None:
        parts = self._split()
        if parts is None:
            self._section.ignore()
            return
        words = parts.scheme.split("+")
        place = f"on {parts.hostname}:{parts.port}" if parts.port is not None else f"://{parts.netloc}".rstrip("/")
        self._what = f"the connector {self.name!r} ({parts.scheme}{' ' if parts.port is not None else ''}{place})"
        if words[0] == "vm":
            self._section.needless(f"{self._what} is not needed: an embedded broker is delosmq.Broker")
            self._section.ignore()
            return
        if words[0] not in _PROTOCOLS or not _DECORATIONS.issuperset(words[1:]):
            self._section.impossible(f"{self._what} is left out: DelosMQ listens on TCP, TLS and WebSockets only")
            self._section.ignore()
            return
        protocols = _PROTOCOLS[words[0]]
        self._open(parts, protocols, has_tls="ssl" in words or words[0] == "wss")

    def _split(self) -> SplitResult | None:
        if not self._uri:
            self._section.mistake('a <transportConnector> without uri="..." is left out')
            return None
        try:
            parts = urlsplit(self._uri)
            port = parts.port
        except ValueError:
            port, parts = None, urlsplit("")
        self.name = self.name or parts.scheme
        if parts.scheme == "vm" or (parts.scheme and parts.hostname and port is not None):
            return parts
        shown = self._uri.partition("?")[0]
        self._section.mistake(f"the uri {shown!r} of connector {self.name!r} has no host and port; it is left out")
        return None

    def _open(self, parts: SplitResult, protocols: tuple[str, ...], *, has_tls: bool) -> None:
        served = [protocol for protocol in protocols if protocol in SERVED_PROTOCOLS]
        later = [protocol for protocol in protocols if protocol not in SERVED_PROTOCOLS]
        is_closed = has_tls or not served
        kept = self._read_options(parts.query, served, is_closed=is_closed)
        self._options["protocols"] = ",".join(served or [name for name in protocols if name in LATER_PROTOCOLS])
        if has_tls:
            self._options.update({"sslEnabled": "true", "keyStorePath": "broker.pem"})
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        if "OPENWIRE" in served and not self._target.has_advisories and is_in_effect(_ADVISORIES, ACCEPTOR_OPTIONS):
            self._options[_ADVISORIES] = "false"
        if "STOMP" in protocols:
            self._options.update(_PREFIXES)
            self._options.update(_VIRTUAL_TOPICS)
        pairs = ";".join(f"{name}={quote(value, safe=_READABLE)}" for name, value in self._options.items())
        reason = ""
        if not served:
            reason = f"{', '.join(later)} is not in effect yet"
            self._section.not_yet(f"{self._what} is left out{kept}: {reason}; it is a comment below <acceptors>")
        elif has_tls:
            reason = "its certificate has to be a PEM file"
            self._section.impossible(
                f"{self._what} is left out{kept}: its Java key store has to be turned into a PEM file first (keytool "
                "-importkeystore -deststoretype PKCS12, then openssl pkcs12 -nodes -out broker.pem); it is a comment "
                "below <acceptors>"
            )
        elif later:
            self._section.not_yet(f"{self._what} speaks {', '.join(served)} only: {', '.join(later)} not in effect yet")
        url = f"tcp://{host}:{parts.port}?{pairs}"
        place = (parts.hostname or "", parts.port or 0)
        acceptor = Acceptor(self._free_name(), url, reason, place)
        if not reason:
            self._check_port(acceptor)
        self._target.acceptors.append(acceptor)

    def _check_port(self, acceptor: Acceptor) -> None:
        for other in self._target.acceptors:
            if not other.reason and share_port(other.place, acceptor.place):
                acceptor.reason = f"acceptor {other.name!r} has its port"
                self._section.mistake(
                    f"{self._what} is left out: {acceptor.reason}; give it another one; it is a comment below "
                    "<acceptors>"
                )
                return

    def _free_name(self) -> str:
        taken = {acceptor.name for acceptor in self._target.acceptors}
        name, number = self.name, 2
        while name in taken:
            name, number = f"{self.name}-{number}", number + 1
        return name

    def _read_options(self, query: str, served: list[str], *, is_closed: bool) -> str:
        """Reads options and attributes; names those of a closed connector, which goes with all of them."""
        attributes = self._section.attributes()
        pairs = [pair.partition("=") for pair in query.replace(";", "&").split("&") if pair.strip()]
        written = [(unquote(name.strip()), unquote(value.strip())) for name, _, value in pairs]
        if is_closed:
            for child in self._section.children():
                child.ignore()
            names = [*attributes, *(name for name, _ in written)]
            return f" with its {', '.join(names)}" if names else ""
        reader = RowReader(OPTIONS, ACCEPTOR_OPTIONS, "option of an acceptor", self._remarks)
        for name, value in written:
            self._read_option(reader, name, value, served)
        reader = RowReader(CONNECTOR, ACCEPTOR_OPTIONS, "option of an acceptor", self._remarks)
        self._options |= reader.read_all(attributes, self._line, "transportConnector", self._what)
        self._section.close()
        return ""

    def _read_option(self, reader: RowReader, name: str, value: str, served: list[str]) -> None:
        plain = name
        for prefix in _OPTION_PREFIXES:
            plain = plain.removeprefix(prefix)
        what = f"option {name!r} of {self._what}"
        rows = [OPTIONS[key] for key in (f"{plain}@{protocol}" for protocol in served) if key in OPTIONS]
        if plain in OPTIONS:
            rows.append(OPTIONS[plain])
        if not rows:
            self._section.unknown(f"unknown {what}; it is left out")
        for row in rows:
            text = reader.read(row, value, self._line, what)
            if text is not None and is_in_effect(row.to, ACCEPTOR_OPTIONS):
                self._options[row.to] = text
