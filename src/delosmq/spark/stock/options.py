"""The options of a source that speaks OpenWire: those of the source over leases that such a broker can keep.

What it can't is refused by name, so that no query promises more than it does.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from delosmq.spark.errors import OptionError
from delosmq.spark.options import CANONICAL, SourceDestination, SourceOptions, parse_options
from delosmq.spark.schema import COLUMNS, HEADERS_COLUMN

PORTS = {"tcp": 61616, "ssl": 61617}
"""Schemes of `servers` that mean OpenWire, and the ports that brokers have for them."""
MOST_ROWS = 10_000
MOST_BYTES = 16 * 1024 * 1024
"""Defaults of a batch, which passes through the driver: less than those of a lease."""
MOST_CONSUMERS = 64

_NO_PLACE = "the broker keeps messages and no positions: a query gets what is in the queue, and selector chooses"
_IN_ROWS = "the broker sends each message whole"
REFUSED = {
    "startingOffsets": _NO_PLACE,
    "endingOffsets": _NO_PLACE,
    "partitionBy": "each consumer has a partition of its own, and the broker keeps a message group with one consumer",
    "failOnDataLoss": "there is no lease that could be lost",
    "pushdown": "selector is what the broker filters by",
    "maxBodyBytes": _IN_ROWS,
    "largeBodies": _IN_ROWS,
}
"""Options of the source over leases that are none here: why."""
MISSING_COLUMNS = {
    "sequence": "OpenWire does not tell it",
    "content_type": "JMS has no such header",
}
"""Columns of the source over leases that are none here: why."""


@dataclass(frozen=True, slots=True)
class StockOptions:
    """All options, checked.

    Attributes:
        servers: URLs of one broker or pair, tried in turn.
        common: what is as of the source over leases; its addresses are not used.
    """

    servers: tuple[str, ...]
    common: SourceOptions

    @property
    def columns(self) -> tuple[str, ...]:
        return self.common.columns

    @property
    def consumers(self) -> int:
        """Of each queue; each has a partition."""
        return self.common.min_partitions or 1


def speaks_openwire(raw: Mapping[str, str]) -> bool:
    """Whether `servers` names a port for OpenWire rather than one for HTTP."""
    servers = next((raw[name] for name in raw if name.lower() == "servers"), "")
    return any(part.strip().lower().startswith(("tcp:", "ssl:", "failover:")) for part in _split(servers))


def parse_stock_options(raw: Mapping[str, str]) -> StockOptions:
    """The options Spark passed, checked one by one.

    Raises:
        OptionError: with the option's name and what it should be.
    """
    given = {CANONICAL.get(name.lower(), name): text for name, text in raw.items()}
    servers = _servers(given["servers"])
    for name, why in REFUSED.items():
        if name in given:
            raise OptionError(
                "DMQ8291", f"{name} is not for servers that are spoken to over OpenWire: {why}; leave it out"
            )
    _check_columns(given)
    if any(name.startswith("tls.") for name in given) and not any(server.startswith("ssl:") for server in servers):
        raise OptionError("DMQ8290", "options tls.* have no effect on tcp:// servers: write ssl:// in servers")
    # The rest is checked as that of the source over leases, which knows no other schemes than these.
    addresses = [server.replace("tcp:", "http:").replace("ssl:", "https:") for server in servers]
    defaults = {"maxOffsetsPerTrigger": str(MOST_ROWS), "maxBytesPerTrigger": str(MOST_BYTES)}
    common = parse_options({**defaults, **given, "servers": ",".join(addresses)})
    if common.min_partitions > MOST_CONSUMERS:
        raise OptionError("DMQ8290", f"minPartitions is the number of consumers here, {MOST_CONSUMERS} at most")
    return StockOptions(tuple(servers), common)


def check_stock_streaming(options: StockOptions) -> None:
    """Raises OptionError for what makes no sense in a streaming read."""
    common = options.common
    topics = [destination for destination in common.destinations if destination.kind == "topic"]
    if topics and not common.group_id:
        raise OptionError(
            "DMQ8292",
            "to read a topic, group.id is needed: the client id of the durable subscription, which keeps messages "
            "while the query is away",
        )
    if common.group_id and not topics:
        raise OptionError(
            "DMQ8291", "group.id is for topics: the broker keeps nothing about who reads a queue; leave it out"
        )
    if topics and options.consumers > 1:
        raise OptionError(
            "DMQ8292", f"minPartitions must be 1: a durable subscription, as of {topics[0]}, has one consumer"
        )


def check_stock_batch(options: StockOptions) -> None:
    """Raises OptionError for what makes no sense in a batch read."""
    for destination in options.common.destinations:
        if destination.kind != "queue":
            raise OptionError(
                "DMQ8292", f"a batch read browses queues, and {destination} keeps no messages: name a queue bound to it"
            )
    for name in ("minPartitions", "group.id"):
        if name in options.common.given:
            raise OptionError("DMQ8291", f"{name} is for streams: a batch read has one browser for each queue")


def name_at_broker(destination: SourceDestination) -> str:
    """Its name, with options for its consumers behind ``?``; one may write ``queue://`` and ``topic://`` as well."""
    return destination.name.removeprefix("//")


def _split(servers: str) -> list[str]:
    return servers.replace(";", ",").split(",")


def _servers(text: str) -> list[str]:
    # First of all: none of a login may be quoted, in which a comma or slash looks like the end of a part.
    if "@" in text:
        raise OptionError("DMQ8290", "servers must not carry a login: use the options user and password")
    if ";" in text:
        raise OptionError(
            "DMQ8290",
            "servers names several brokers (;), and a query over OpenWire reads one: start a query for each",
        )
    return [_server(part.strip()) for part in text.split(",") if part.strip()]


def _server(text: str) -> str:
    if text.lower().startswith("failover:"):
        raise OptionError(
            "DMQ8290",
            "failover: would hide from the query that messages went back: separate the addresses in servers by commas, "
            "and they are tried in turn",
        )
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as wrong:
        raise OptionError("DMQ8290", f"a server in the option servers has a wrong port or address: {wrong}") from None
    if parts.scheme not in PORTS or not parts.hostname or parts.path not in ("", "/") or parts.query:
        raise OptionError(
            "DMQ8290",
            f"{text!r} in the option servers is not tcp://host:port or ssl://host:port; those for OpenWire and for "
            "HTTP can't be mixed",
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{PORTS[parts.scheme] if port is None else port}"


def _check_columns(given: dict[str, str]) -> None:
    """Refuses what the protocol does not tell; without the option all others are asked for."""
    if "columns" not in given:
        kept = [column.name for column in COLUMNS if column.name not in MISSING_COLUMNS]
        given["columns"] = ",".join(name for name in kept if name != HEADERS_COLUMN)
        return
    for name in (part.strip() for part in given["columns"].split(",")):
        if name in MISSING_COLUMNS:
            raise OptionError("DMQ8291", f"the column {name} is not there over OpenWire: {MISSING_COLUMNS[name]}")
