"""Copies of messages, and the properties by which they say where they come from. Source: Artemis Message."""

from typing import Final

from delosmq.model.message import Message

ORIGINAL_ADDRESS: Final = "_AMQ_ORIG_ADDRESS"
ORIGINAL_QUEUE: Final = "_AMQ_ORIG_QUEUE"
ORIGINAL_MESSAGE_ID: Final = "_AMQ_ORIG_MESSAGE_ID"


def annotations_of(message: Message) -> dict[str, str]:
    """The annotations of a message, for a copy to change."""
    return dict(message.annotations) if message.annotations is not None else {}


def copy_for(message: Message, address: str, head: bytes, annotations: dict[str, str]) -> Message:
    """A copy of a message for another address, due at once and without its duplicate id; not delivered yet."""
    return Message(
        address,
        message.protocol,
        head,
        message.body,
        body_kind=message.body_kind,
        priority=message.priority,
        durable=message.durable,
        timestamp_ms=message.timestamp_ms,
        expires_at_ms=message.expires_at_ms,
        user=message.user,
        annotations=annotations,
        group_id=message.group_id,
        group_sequence=message.group_sequence,
        connection_id=message.connection_id,
    )


class OriginalPlace:
    """Of what a divert copied in a transaction: its place there, and the copy's property that will tell its id."""

    def __init__(self, place: int, property_name: str) -> None:
        self.place = place
        self.property_name = property_name

    def stamp(self, copy: Message, first: int) -> None:
        """The transaction is committed, ``first`` is the id of its first message."""
        if copy.annotations is not None:
            copy.annotations[self.property_name] = str(first + self.place)
