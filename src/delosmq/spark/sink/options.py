"""The options of the sink, named after those of Spark's Kafka sink where it has one, and the columns that it takes.

Everything is checked on the driver before a row is written.
"""

import difflib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from delosmq.spark.errors import OptionError, SchemaMismatchError
from delosmq.spark.options import ConnectionOptions, parse_options
from delosmq.spark.staging_client import SendDefaults

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

CONNECTION = (
    "servers",
    "retryTimeoutMs",
    "user",
    "password",
    "passwordFile",
    "tls.caFile",
    "tls.certFile",
    "tls.keyFile",
    "tls.verifyHostname",
)
"""As of the source."""
NAMES = (*CONNECTION, "queue", "topic", "transactionalId", "batchId", "durable", "priority", "timeToLive")
OF_SPARK = frozenset({"checkpointlocation", "queryname"})
"""What Spark hands over with the options of a stream."""
CANONICAL = {name.lower(): name for name in NAMES}
LARGEST = (1 << 63) - 1
LONGEST_TIME_TO_LIVE_MS = 100 * 365 * 24 * 3_600_000

TEXT = ("string",)
TEXT_OR_BINARY = ("string", "binary")
INTEGER = ("tinyint", "smallint", "int", "bigint")
TIMESTAMP = ("timestamp", "timestamp_ntz")
COLUMNS: dict[str, tuple[str, ...]] = {
    "body": TEXT_OR_BINARY,
    "destination": TEXT,
    "message_id": TEXT,
    "properties": ("map<string,string>",),
    "group_id": TEXT,
    "correlation_id": TEXT,
    "reply_to": TEXT,
    "type": TEXT,
    "content_type": TEXT,
    "expiration": TIMESTAMP,
    "priority": INTEGER,
    "scheduled_at": TIMESTAMP,
    "duplicate_id": TEXT_OR_BINARY,
    "body_kind": TEXT,
}
"""Types of each column, as Spark writes them."""


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """All options, checked.

    Attributes:
        application, batch: of a batch write. forgets: nobody writes under that name again.
    """

    connection: ConnectionOptions
    defaults: SendDefaults
    application: str
    batch: int
    forgets: bool
    transactional: bool


def parse_sink_options(raw: Mapping[str, str]) -> SinkOptions:
    """The options that Spark passed, checked one by one.

    Raises:
        OptionError: with the option's name and what it should be.
    """
    given = _canonical(raw)
    connection = {name: given[name] for name in CONNECTION if name in given}
    if "queue" in given and "topic" in given:
        raise OptionError("DMQ8160", "give the option queue or topic, not both")
    if "batchId" in given and "transactionalId" not in given:
        raise OptionError("DMQ8160", "the option batchId numbers the writes of one transactionalId: give that too")
    address = given.get("queue", given.get("topic", "")).strip()
    if not address and ("queue" in given or "topic" in given):
        raise OptionError("DMQ8160", "the option queue, or topic, is empty: name an address")
    transactional = given.get("transactionalId", "")
    return SinkOptions(
        connection=parse_options({**connection, "subscribe": "any"}).connection,
        defaults=SendDefaults(
            address,
            routing_type="ANYCAST" if "queue" in given else "MULTICAST" if "topic" in given else "",
            durable=_boolean(given, "durable"),
            priority=_integer(given, "priority", default=4, high=9),
            time_to_live_ms=_integer(given, "timeToLive", default=0, high=LONGEST_TIME_TO_LIVE_MS),
        ),
        application=transactional or f"write-{uuid.uuid4()}",
        batch=_integer(given, "batchId", default=0, high=LARGEST),
        forgets=not transactional,
        transactional="transactionalId" in given,
    )


def check_streaming(options: SinkOptions) -> None:
    """Raises OptionError for what makes no sense in a stream."""
    if options.transactional:
        raise OptionError(
            "DMQ8161", "transactionalId is for batch writes: a stream is known by its checkpoint, leave the option out"
        )


def check_sink_schema(schema: "StructType", options: SinkOptions) -> None:
    """Raises SchemaMismatchError unless rows of this shape are messages with a destination."""
    names = [field.name for field in schema.fields]
    for field in schema.fields:
        kinds = COLUMNS.get(field.name)
        if kinds is None:
            nearest = difflib.get_close_matches(field.name, COLUMNS, n=1)
            hint = f"did you mean {nearest[0]}?" if nearest else f"the columns are {', '.join(COLUMNS)}."
            raise SchemaMismatchError(
                "DMQ8162", f"there is no column {field.name!r} in a message: {hint} Others go into the map properties"
            )
        if names.count(field.name) > 1:
            raise SchemaMismatchError("DMQ8162", f"the column {field.name!r} is there twice: leave one out")
        kind = field.dataType.simpleString()
        if kind not in kinds:
            raise SchemaMismatchError(
                "DMQ8163", f"the column {field.name!r} is {kind}; cast it to {' or '.join(kinds)}"
            )
    if "body" not in names:
        raise SchemaMismatchError(
            "DMQ8164", "the rows have no column 'body': name one so, as in selectExpr('to_json(struct(*)) AS body')"
        )
    if not options.defaults.address and "destination" not in names:
        raise SchemaMismatchError(
            "DMQ8165", "nothing says where rows go: set the option queue or topic, or fill a column 'destination'"
        )


def _canonical(raw: Mapping[str, str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for key in raw:
        if key.lower() in OF_SPARK:
            continue
        if key.lower() == "path":
            raise OptionError("DMQ8160", "the sink takes no path: write with save() and the option queue or topic")
        name = CANONICAL.get(key.lower())
        if key.lower() == "subscribe":
            raise OptionError("DMQ8166", "the option subscribe is for reading: queue or topic says where rows go")
        if name is None:
            nearest = difflib.get_close_matches(key.lower(), CANONICAL, n=1, cutoff=0.5)
            hint = f"did you mean {CANONICAL[nearest[0]]}?" if nearest else f"the options are {', '.join(NAMES)}"
            raise OptionError("DMQ8166", f"unknown option {key!r} of the sink delosmq; {hint}")
        given[name] = raw[key]
    return given


def _integer(given: Mapping[str, str], name: str, *, default: int, high: int) -> int:
    text = given.get(name, str(default))
    value = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else high + 1
    if value > high:
        raise OptionError("DMQ8167", f"{name} is {text!r} but should be a whole number from 0 to {high}")
    return value


def _boolean(given: Mapping[str, str], name: str) -> bool:
    text = given.get(name, "true").strip().lower()
    if text not in ("true", "false"):
        raise OptionError("DMQ8167", f"{name} is {given[name]!r} but should be true or false")
    return text == "true"
