"""Properties that a copy of a message carries, saying where it comes from. Source: Artemis Message."""

from typing import Final

from delosmq.model.message import Message

ORIGINAL_ADDRESS: Final = "_AMQ_ORIG_ADDRESS"
ORIGINAL_QUEUE: Final = "_AMQ_ORIG_QUEUE"
ORIGINAL_MESSAGE_ID: Final = "_AMQ_ORIG_MESSAGE_ID"


class OriginalPlace:
    """Of what a divert copied in a transaction: its place there, and the copy's property that will tell its id."""

    def __init__(self, place: int, property_name: str) -> None:
        self.place = place
        self.property_name = property_name

    def stamp(self, copy: Message, first: int) -> None:
        """The transaction is committed, ``first`` is the id of its first message."""
        if copy.annotations is not None:
            copy.annotations[self.property_name] = str(first + self.place)
