"""The options of the data source: named after those of Spark's Kafka source where it has one.

Spark hands over option names in any case and all values as text. Everything is checked before anything is read.
Passwords and files with secrets are read on the driver once and never appear in a repr.
"""

import difflib
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from delosmq.spark.errors import OptionError
from delosmq.spark.positions import (
    AT_EARLIEST,
    AT_LATEST,
    EARLIEST,
    LATEST,
    SEQUENCE,
    TIME,
    ReadPosition,
    parse_position,
)
from delosmq.spark.schema import BY_NAME, HEADERS_COLUMN, REFERENCE_COLUMN, column_names

DEFAULT_PORT = 8161
"""Artemis's port for HTTP."""

NAMES = (
    "servers",
    "subscribe",
    "group.id",
    "startingOffsets",
    "endingOffsets",
    "maxOffsetsPerTrigger",
    "maxBytesPerTrigger",
    "minPartitions",
    "partitionBy",
    "includeHeaders",
    "failOnDataLoss",
    "pollTimeoutMs",
    "retryTimeoutMs",
    "columns",
    "selector",
    "pushdown",
    "maxBodyBytes",
    "largeBodies",
    "user",
    "password",
    "passwordFile",
    "tls.caFile",
    "tls.certFile",
    "tls.keyFile",
    "tls.verifyHostname",
)
OF_KAFKA = {
    "kafka.bootstrap.servers": "servers names the brokers' HTTP addresses",
    "kafka.group.id": "group.id names the group",
    "groupidprefix": "group.id names the group",
    "subscribepattern": "subscribe takes queues by name, and topic:NAME",
    "assign": "subscribe takes queues by name, and topic:NAME",
    "minoffsetspertrigger": "maxOffsetsPerTrigger and pollTimeoutMs decide when a batch begins",
    "maxtriggerdelay": "pollTimeoutMs says how long an idle query waits",
    "asyncprogresstrackingenabled": "a batch would be acknowledged before Spark has noted it; leave it out",
    "startingtimestamp": 'startingOffsets takes {"time_ms": n}',
    "endingtimestamp": 'endingOffsets takes {"time_ms": n}',
    "startingoffsetsbytimestamp": 'startingOffsets takes {"time_ms": n}',
    "endingoffsetsbytimestamp": 'endingOffsets takes {"time_ms": n}',
}
"""Options of Spark's Kafka source that are none here, in lower case: what to use instead."""
CANONICAL = {name.lower(): name for name in NAMES}
FAIL, REFERENCE = "fail", "reference"
"""Values of largeBodies."""


@dataclass(frozen=True, slots=True)
class HttpEndpoint:
    """Where a broker's HTTP listener is."""

    host: str
    port: int
    secure: bool

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """How https servers are checked. The CA certificates travel as text; the two file names must exist everywhere."""

    ca_pem: str = ""
    cert_file: str = ""
    key_file: str = ""
    verify_hostname: bool = True


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """How to reach and log in to a broker. Pickled: to executors, password included, so it is not in the repr."""

    servers: tuple[HttpEndpoint, ...]
    user: str = ""
    password: str = field(default="", repr=False)
    tls: TlsOptions = field(default=TlsOptions(), repr=False)
    retry_timeout_s: float = 60.0


@dataclass(frozen=True, slots=True)
class SourceDestination:
    """What is subscribed to; for a topic the group becomes a durable subscription."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}"

    @property
    def text(self) -> str:
        """As the option subscribe has it: the name of a queue, ``topic:`` and the name of a topic."""
        plain = self.kind == "queue" and not self.name.startswith(("queue:", "topic:"))
        return self.name if plain else f"{self.kind}:{self.name}"


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """All options, checked. Each of ``destinations`` is read at each of ``brokers``."""

    brokers: tuple[ConnectionOptions, ...]
    destinations: tuple[SourceDestination, ...]
    group_id: str = ""
    starting: ReadPosition = AT_EARLIEST
    ending: ReadPosition = AT_LATEST
    max_rows: int = 50_000
    max_bytes: int = 64 * 1024 * 1024
    min_partitions: int = 0
    by_group: bool = False
    columns: tuple[str, ...] = ()
    include_headers: bool = False
    fail_on_data_loss: bool = True
    poll_timeout_ms: int = 500
    selector: str = ""
    pushdown: bool = False
    max_body_bytes: int = 0
    references: bool = False
    given: frozenset[str] = frozenset()

    @property
    def connection(self) -> ConnectionOptions:
        """For what speaks with one broker only.

        Raises:
            OptionError: there are several.
        """
        if len(self.brokers) > 1:
            raise OptionError(
                "DMQ8003",
                "servers names several brokers (;), and this takes one: separate the addresses of a pair by ,",
            )
        return self.brokers[0]

    @property
    def destination(self) -> SourceDestination:
        """For what reads one queue or topic only.

        Raises:
            OptionError: there are several.
        """
        if len(self.destinations) > 1:
            raise OptionError("DMQ8003", "subscribe names several queues, and this takes one")
        return self.destinations[0]


def parse_options(raw: Mapping[str, str]) -> SourceOptions:
    """The options Spark passed, checked one by one.

    Raises:
        OptionError: with the option's name and what it should be.
    """
    given = _canonical(raw)
    columns, include_headers = _columns(given)
    references = _word(given, "largeBodies", (FAIL, REFERENCE)) == REFERENCE
    max_body_bytes = _integer(given, "maxBodyBytes", default=0, low=1, high=1 << 40)
    if "largeBodies" in given and not max_body_bytes:
        raise OptionError("DMQ8002", "largeBodies needs maxBodyBytes: from which size on a body is large")
    return SourceOptions(
        brokers=_brokers(given),
        destinations=_destinations(given),
        group_id=given.get("group.id", ""),
        starting=parse_position("startingOffsets", given.get("startingOffsets", EARLIEST)),
        ending=parse_position("endingOffsets", given.get("endingOffsets", LATEST)),
        max_rows=_integer(given, "maxOffsetsPerTrigger", default=50_000, low=1, high=10_000_000),
        max_bytes=_integer(given, "maxBytesPerTrigger", default=64 * 1024 * 1024, low=1, high=1 << 40),
        min_partitions=_integer(given, "minPartitions", default=0, low=1, high=10_000),
        by_group=_word(given, "partitionBy", ("range", "group")) == "group",
        columns=(*columns, REFERENCE_COLUMN) if references else columns,
        include_headers=include_headers,
        fail_on_data_loss=_boolean(given, "failOnDataLoss", default=True),
        poll_timeout_ms=_integer(given, "pollTimeoutMs", default=500, low=0, high=30_000),
        selector=given.get("selector", "").strip(),
        pushdown=_boolean(given, "pushdown", default=False),
        max_body_bytes=max_body_bytes,
        references=references,
        given=frozenset(given),
    )


OF_STREAMS: Final = (
    "group.id",
    "maxOffsetsPerTrigger",
    "maxBytesPerTrigger",
    "pollTimeoutMs",
    "failOnDataLoss",
    "partitionBy",
    "maxBodyBytes",
    "largeBodies",
)
"""Options that would have no effect on a batch read."""


def check_streaming(options: SourceOptions) -> None:
    """Raises OptionError for what makes no sense in a streaming read."""
    if not options.group_id:
        raise OptionError(
            "DMQ8002",
            "a streaming read needs the option group.id: the name under which the broker keeps this query's leases; "
            "one group, one checkpoint",
        )
    if "endingOffsets" in options.given:
        raise OptionError("DMQ8004", "endingOffsets is for batch reads; a stream ends with its trigger (availableNow)")
    if options.pushdown:
        raise OptionError(
            "DMQ8004", "pushdown is for batch reads; of a stream the option selector filters at the broker"
        )
    _check_start(options)


def check_batch(options: SourceOptions) -> None:
    """Raises OptionError for what makes no sense in a batch read."""
    for destination in options.destinations:
        if destination.kind != "queue":
            raise OptionError(
                "DMQ8004",
                f"a batch read browses queues, and {destination} keeps no messages itself: name a queue bound to it",
            )
    for name in OF_STREAMS:
        if name in options.given:
            raise OptionError(
                "DMQ8004",
                f"{name} is for streams: a batch read browses queues, and takes nothing",
            )
    starting, ending = options.starting, options.ending
    if starting.kind == LATEST:
        raise OptionError("DMQ8003", "startingOffsets can't be latest here: a batch would read nothing")
    if ending.kind == EARLIEST:
        raise OptionError("DMQ8003", "endingOffsets can't be earliest: a batch would read nothing")
    if starting.kind == ending.kind and starting.kind in (SEQUENCE, TIME) and ending.value < starting.value:
        raise OptionError("DMQ8003", f"endingOffsets ({ending}) lies before startingOffsets ({starting})")
    _check_start(options)


def _check_start(options: SourceOptions) -> None:
    if len(options.brokers) > 1 and SEQUENCE in (options.starting.kind, options.ending.kind):
        raise OptionError("DMQ8003", "a sequence is of one broker, and servers names several: give a time instead")


def _canonical(raw: Mapping[str, str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for key in raw:
        name = CANONICAL.get(key.lower())
        if name is None:
            nearest = difflib.get_close_matches(key.lower(), CANONICAL, n=1, cutoff=0.5)
            of_kafka = OF_KAFKA.get(key.lower())
            if of_kafka is not None:
                raise OptionError(
                    "DMQ8001", f"the option {key!r} of Spark or its Kafka source is none here: {of_kafka}"
                )
            hint = f"did you mean {CANONICAL[nearest[0]]}?" if nearest else f"the options are {', '.join(NAMES)}"
            raise OptionError("DMQ8001", f"unknown option {key!r} of the data source delosmq; {hint}")
        given[name] = raw[key]
    return given


def _brokers(given: Mapping[str, str]) -> tuple[ConnectionOptions, ...]:
    named = given.get("servers", "")
    # First of all: none of a login may be quoted, in which a comma or slash looks like the end of a part.
    if "@" in named:
        raise OptionError("DMQ8003", "servers must not carry a login: use the options user and password")
    lists = [
        tuple(_server(text.strip()) for text in broker.split(",") if text.strip())
        for broker in named.split(";")
        if broker.strip(" ,")
    ]
    if not lists:
        raise OptionError(
            "DMQ8002",
            "the option servers is missing: HTTP addresses as in localhost:8161, those of one broker or pair separated "
            "by commas, several brokers by semicolons",
        )
    every = tuple(server for servers in lists for server in servers)
    if len(set(every)) != len(every):
        raise OptionError("DMQ8003", "the option servers names an address twice")
    tls, password = _tls(given, every), _password(given)
    retry_timeout_s = _integer(given, "retryTimeoutMs", default=60_000, low=0, high=86_400_000) / 1000
    return tuple(ConnectionOptions(servers, given.get("user", ""), password, tls, retry_timeout_s) for servers in lists)


def _server(text: str) -> HttpEndpoint:
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        port = parts.port
    except ValueError as wrong:
        raise OptionError("DMQ8003", f"a server in the option servers has a wrong port or address: {wrong}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/") or parts.query:
        raise OptionError("DMQ8003", f"{text!r} in the option servers is not host:port, http://host:port or https://…")
    return HttpEndpoint(parts.hostname, DEFAULT_PORT if port is None else port, parts.scheme == "https")


def _password(given: Mapping[str, str]) -> str:
    if "passwordFile" not in given:
        return given.get("password", "")
    if "password" in given:
        raise OptionError("DMQ8003", "give password or passwordFile, not both")
    return _read_text(given["passwordFile"], "passwordFile").rstrip("\r\n")


def _tls(given: Mapping[str, str], servers: tuple[HttpEndpoint, ...]) -> TlsOptions:
    named = [name for name in given if name.startswith("tls.")]
    if named and not any(server.secure for server in servers):
        raise OptionError("DMQ8003", f"{named[0]} has no effect on http servers: write https:// in the option servers")
    if "tls.keyFile" in given and "tls.certFile" not in given:
        raise OptionError("DMQ8002", "tls.keyFile needs tls.certFile")
    options = TlsOptions(
        ca_pem=_read_text(given["tls.caFile"], "tls.caFile") if "tls.caFile" in given else "",
        cert_file=given.get("tls.certFile", ""),
        key_file=given.get("tls.keyFile", ""),
        verify_hostname=_boolean(given, "tls.verifyHostname", default=True),
    )
    if named:
        tls_context(options)
    return options


def tls_context(options: TlsOptions) -> ssl.SSLContext:
    """The context for https servers; without a CA file the system's certificates count.

    Raises:
        OptionError: a certificate or key can't be read.
    """
    try:
        context = ssl.create_default_context(cadata=options.ca_pem or None)
        context.check_hostname = options.verify_hostname
        if options.cert_file:
            context.load_cert_chain(options.cert_file, options.key_file or None)
    except (OSError, ValueError) as wrong:
        where = f"tls.certFile {options.cert_file!r}" if options.cert_file else "tls.caFile"
        raise OptionError("DMQ8003", f"the certificates of {where} can't be read: {wrong}") from None
    return context


def _read_text(path: str, name: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as wrong:
        reason = wrong.strerror if isinstance(wrong, OSError) else "not text"
        raise OptionError("DMQ8003", f"the file of the option {name}, {path!r}, can't be read: {reason}") from None


def _destinations(given: Mapping[str, str]) -> tuple[SourceDestination, ...]:
    # A comma that belongs to a name is written with a backslash before it.
    texts = [text.replace("\\,", ",").strip() for text in re.split(r"(?<!\\),", given.get("subscribe", ""))]
    destinations = tuple(_destination(text) for text in texts if text)
    if not destinations:
        raise OptionError(
            "DMQ8002",
            "the option subscribe is missing: names of queues, and topic:NAME for multicast addresses, separated by "
            "commas",
        )
    if len(set(destinations)) != len(destinations):
        raise OptionError("DMQ8003", "the option subscribe names a queue or topic twice")
    return destinations


def _destination(text: str) -> SourceDestination:
    kind, colon, name = text.partition(":")
    if not colon or kind not in ("queue", "topic"):
        kind, name = "queue", text
    if not name:
        raise OptionError("DMQ8002", f"{text!r} in the option subscribe has no name behind the colon")
    return SourceDestination(kind, name)


def _columns(given: Mapping[str, str]) -> tuple[tuple[str, ...], bool]:
    include_headers = _boolean(given, "includeHeaders", default=False)
    asked = tuple(name.strip() for name in given.get("columns", "").split(",") if name.strip())
    if "columns" in given and not asked:
        raise OptionError("DMQ8003", "the option columns is empty: leave it out or name columns, separated by commas")
    for name in asked:
        if name not in BY_NAME:
            nearest = difflib.get_close_matches(name, BY_NAME, n=1)
            hint = f"did you mean {nearest[0]}?" if nearest else f"the columns are {', '.join(BY_NAME)}"
            raise OptionError("DMQ8003", f"unknown column {name!r} in the option columns; {hint}")
    if len(set(asked)) != len(asked):
        raise OptionError("DMQ8003", "the option columns names a column twice")
    if asked and include_headers and HEADERS_COLUMN not in asked:
        asked = (*asked, HEADERS_COLUMN)
    names = column_names(asked, include_headers)
    return names, HEADERS_COLUMN in names


def _integer(given: Mapping[str, str], name: str, *, default: int, low: int, high: int) -> int:
    if name not in given:
        return default
    try:
        value = int(given[name])
    except ValueError:
        value = low - 1
    if not low <= value <= high:
        raise OptionError("DMQ8003", f"{name} is {given[name]!r} but should be a whole number from {low} to {high}")
    return value


def _boolean(given: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = given.get(name, "true" if default else "false").strip().lower()
    if text not in ("true", "false"):
        raise OptionError("DMQ8003", f"{name} is {given[name]!r} but should be true or false")
    return text == "true"


def _word(given: Mapping[str, str], name: str, words: tuple[str, ...]) -> str:
    """One of `words`; the first is the default."""
    text = given.get(name, words[0]).strip().lower()
    if text not in words:
        raise OptionError("DMQ8003", f"{name} is {given[name]!r} but should be {' or '.join(words)}")
    return text
