"""Messages of the Python client as rows, with the columns and the texts that the source over leases has."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from delosmq import client
from delosmq.model.bodies import encode_map_body, encode_stream_body
from delosmq.model.ids import LAST_MS
from delosmq.model.properties import property_text
from delosmq.spark.errors import AnswerError
from delosmq.spark.schema import arrow_schema

if TYPE_CHECKING:
    import pyarrow as pa

    from delosmq.client import JmsMessage

PROTOCOL = "OPENWIRE"
HEAD_BYTES = 200
"""What a row takes besides its body, roughly."""
_US_PER_MS = 1000


class StockRows:
    """Collects the rows of one queue.

    Args:
        columns: of `delosmq.spark.schema`.
        queue: what the column of that name says.

    Attributes:
        count, size_bytes: of what is collected.
    """

    def __init__(self, columns: tuple[str, ...], queue: str) -> None:
        self._columns = columns
        self._queue = queue
        self._values: list[list[object]] = []
        self.count = self.size_bytes = 0
        self._clear()

    def add(self, message: "JmsMessage") -> int:
        """Appends a message; gives its size in bytes.

        Raises:
            AnswerError: its body can't be read.
        """
        try:
            body, kind = _body(message)
        except client.MessageFormatError as wrong:
            raise AnswerError(
                "DMQ8294",
                f"message {message.message_id} of {self._queue} can't become a row, and is still in its queue: "
                f"{wrong.message} Take it out with another client, or leave it there with selector",
            ) from None
        for name, values in zip(self._columns, self._values, strict=True):
            values.append(self._value(name, message, body, kind))
        self.count += 1
        size_bytes = HEAD_BYTES + len(body)
        self.size_bytes += size_bytes
        return size_bytes

    def take(self) -> "pa.RecordBatch":
        """What is collected, which is forgotten here."""
        import pyarrow as pa

        schema = arrow_schema(self._columns)
        arrays = [_array(values, field.type) for values, field in zip(self._values, schema, strict=True)]
        self._clear()
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _clear(self) -> None:
        self._values = [[] for _ in self._columns]
        self.count = self.size_bytes = 0

    def _value(self, name: str, message: "JmsMessage", body: bytes, kind: str) -> object:
        match name:
            case "body":
                return body
            case "body_kind":
                return kind
            case "message_id":
                return message.message_id
            case "address":
                return self._queue if message.destination is None else message.destination.name
            case "queue":
                return self._queue
            case "durable":
                return message.persistent
            case "timestamp":
                return min(message.timestamp_ms, LAST_MS) * _US_PER_MS
            case "expiration":
                return min(message.expiration_ms, LAST_MS) * _US_PER_MS or None
            case "reply_to":
                return None if message.reply_to is None else str(message.reply_to)
            case "user":
                return message.user_id or None
            case "protocol":
                return PROTOCOL
            case "properties":
                return _texts(message.properties)
        # The others have the names that they have in JMS.
        return getattr(message, name)


def _body(message: "JmsMessage") -> tuple[bytes, str]:
    """The bytes of a body, and its kind."""
    from delosmq.client.values import typed

    match message:
        case client.TextMessage():
            return message.text.encode("utf-8", "surrogatepass"), "text"
        case client.ObjectMessage():
            return message.body, "object"
        case client.BytesMessage():
            return message.body, "bytes"
        case client.MapMessage():
            return encode_map_body({name: typed(name, value) for name, value in message.body.items()}), "map"
        case client.StreamMessage():
            return encode_stream_body([typed("", value) for value in message.body]), "stream"
    return b"", "empty"


def _texts(properties: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    from delosmq.client.values import typed

    texts: list[tuple[str, str | None]] = []
    for name, value in properties.items():
        found = typed(name, value)
        plain = found.value
        if plain is None or isinstance(plain, str | bool | int | float | bytes):
            texts.append((name, None if plain is None else property_text(plain, found.kind)))
    return texts


def _array(values: list[object], kind: "pa.DataType") -> "pa.Array":
    import pyarrow as pa

    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        # Java's strings may hold halves of characters, which no UTF-8 has.
        return pa.array([_clean(value) for value in values], kind)


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [(_clean(name), _clean(text)) for name, text in value]
    return value
