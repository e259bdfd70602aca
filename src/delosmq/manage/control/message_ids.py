"""The ids under which users know a message: of rows, of STOMP and of JMS."""

from typing import Final

from delosmq.model.errors import MisuseError
from delosmq.model.message import SEQUENCES_PER_PRODUCER

LARGEST_SEQUENCE: Final = (1 << 63) - 1
_PARTS_FOR_JMS: Final = 4
_DIGITS: Final = 10


def sequence_for_jms(text: str) -> int:
    """The sequence in the id that JMS clients see of a message of another protocol; 0 for other ids."""
    parts = text.split(":")
    if len(parts) < _PARTS_FOR_JMS or parts[-4:-2] != ["-1", "-1"]:
        return 0
    high, low = parts[-2:]
    if not all(number.isascii() and number.isdigit() and len(number) <= _DIGITS for number in (high, low)):
        return 0
    return int(high) * SEQUENCES_PER_PRODUCER + int(low)


def is_given_by_client(text: str) -> bool:
    """Whether it looks like an id that a JMS client gave its message: it ends in three numbers."""
    parts = text.split(":")
    return len(parts) >= _PARTS_FOR_JMS and all(part.isascii() and part.isdigit() for part in parts[-3:])


def read_message_id(text: str) -> int:
    """The sequence in an id as rows (``ID:5``), STOMP's ``message-id`` (``5``) or its ``ack`` header (``2-5``) show it.

    Raises:
        MisuseError: it is none of them.
    """
    number = text.removeprefix("ID:").rpartition("-")[2]
    if not (number.isascii() and number.isdigit() and 0 < int(number[:20]) <= LARGEST_SEQUENCE):
        raise MisuseError(
            "DMQ6143",
            f"'{text[:200]}' is no message id; use one as STOMP's message-id header or a browser of the queue shows it,"
            " such as ID:1234, or the JMSMessageID that a client shows",
        )
    return int(number[:20])
