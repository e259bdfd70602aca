"""The application properties of an OpenWire message by name, decoded when the first one is asked for."""

from delosmq.model.bodies import encode_map_body, encode_stream_body
from delosmq.model.properties import Properties, PropertyValue, TypedValue
from delosmq.wire.openwire.commands import MessageCommand
from delosmq.wire.openwire.primitives import decode_map


def decode_properties(marshalled: bytes | None) -> dict[str, TypedValue]:
    """The properties in the order they were sent; none for null and for nothing.

    Raises:
        PeerError: DMQ5204 to DMQ5220, when they are malformed.
    """
    return decode_map(marshalled) if marshalled else {}


class MessageProperties(Properties):
    """Of one message. Maps and lists, which JMS does not have here, show as their JSON text."""

    def __init__(self, message: MessageCommand) -> None:
        self._marshalled: bytes | None = message.marshalled_properties
        self._entries: dict[str, TypedValue] | None = None

    def value(self, name: str) -> PropertyValue | None:
        """The property, without its exact type.

        Raises:
            PeerError: as `decode_properties`.
        """
        typed = self.entries().get(name)
        return None if typed is None else plain_value(typed)

    def entries(self) -> dict[str, TypedValue]:
        """All of them with their types.

        Raises:
            PeerError: as `decode_properties`.
        """
        entries = self._entries
        if entries is None:
            entries = decode_properties(self._marshalled)
            self._entries = entries
        return entries


def plain_value(typed: TypedValue) -> PropertyValue | None:
    """A value as selectors see it."""
    value = typed.value
    if isinstance(value, dict):
        return encode_map_body(value).decode("ascii")
    if isinstance(value, list):
        return encode_stream_body(value).decode("ascii")
    return value
