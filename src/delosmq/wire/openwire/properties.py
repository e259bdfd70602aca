"""The application properties of an OpenWire message, and the forged ones.

What a sender says of a message that is not its to say is taken off before the message is stored. Source: UserIDBroker
and BrokerSupport of ActiveMQ Classic set these fields, and leave a client's where they set none.
"""

from typing import Final

from delosmq.model.bodies import encode_map_body, encode_stream_body
from delosmq.model.properties import PropertyValue, TypedValue
from delosmq.model.reserved_names import RESERVED, reads_as
from delosmq.wire.openwire.commands import MessageCommand
from delosmq.wire.openwire.heads import measure
from delosmq.wire.openwire.primitives import decode_map, encode_map


def decode_properties(marshalled: bytes | None) -> dict[str, TypedValue]:
    """The properties in the order they were sent; none for null and for nothing.

    Raises:
        PeerError: DMQ5204 to DMQ5220, when they are malformed.
    """
    return decode_map(marshalled) if marshalled else {}


def plain_value(typed: TypedValue) -> PropertyValue | None:
    """A value as selectors see it."""
    value = typed.value
    if isinstance(value, dict):
        return encode_map_body(value).decode("ascii")
    if isinstance(value, list):
        return encode_stream_body(value).decode("ascii")
    return value


# One of these is in each reserved name, whatever stands around it.
SIGNS: Final = (b"MQ", b"JMS", b"Deliver", b"originalE")
# One of these in a name that is spelt with two or three bytes for a letter, which Java reads as well.
_SPELT_LONG: Final = (b"\xc0", b"\xc1", b"\xe0")


def drop_claims(command: MessageCommand, version: int) -> None:
    """Takes the claims off a message that came in ``version``.

    Its user, its path through brokers, where and in which transaction it was first sent, how often it was delivered,
    and reserved properties.

    Raises:
        PeerError: DMQ5204 to DMQ5220, when properties that may hold reserved names can't be read; Java's clients might.
    """
    properties = command.marshalled_properties
    claims = properties is not None and _drop_properties(command, properties)
    if (
        command.user_id is not None
        or command.original_destination is not None
        or command.original_transaction_id is not None
        or command.broker_path is not None
        or command.cluster is not None
        or command.redelivery_counter != 0
        or command.received_by_df_bridge
    ):
        command.user_id = None
        command.original_destination = None
        command.original_transaction_id = None
        command.broker_path = None
        command.cluster = None
        command.redelivery_counter = 0
        command.received_by_df_bridge = False
        claims = True
    if claims:
        measure(command, version)


def _drop_properties(command: MessageCommand, properties: bytes) -> bool:
    """Whether there were reserved ones."""
    if not _may_be_reserved(properties):
        return False
    entries = decode_map(properties)
    kept = {name: value for name, value in entries.items() if not reads_as(name, RESERVED)}
    if len(kept) == len(entries):
        return False
    command.marshalled_properties = encode_map(kept) if kept else None
    return True


def _may_be_reserved(properties: bytes) -> bool:
    for sign in SIGNS:
        if sign in properties:
            return True
    return not properties.isascii() and any(byte in properties for byte in _SPELT_LONG)
