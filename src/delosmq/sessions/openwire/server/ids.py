"""Names and ids as peers choose them: which of them are taken.

Java's strings may hold surrogates without a partner, which no other protocol and no record of the broker can carry.
"""

from typing import Final

from delosmq.sessions.openwire.server import errors as failures
from delosmq.wire.openwire.text import is_well_formed

LONGEST_ID: Final = 1_024
"""Characters, or bytes of an id that is no text. Of the ids that clients make themselves, none comes near."""
_LARGEST_COMMAND_ID: Final = (1 << 31) - 1


def following(command_id: int) -> int:
    """The id of our next command. They begin anew where 32 bits with a sign end."""
    return command_id + 1 & _LARGEST_COMMAND_ID


def check_id(what: str, value: str) -> None:
    """Refuses a name or id that can't be kept.

    Raises:
        Refusal: DMQ5275.
    """
    if len(value) > LONGEST_ID:
        raise failures.id_wrong(what, value, f"it has {len(value)} characters, and {LONGEST_ID} may be")
    if not is_well_formed(value):
        raise failures.id_wrong(what, value, "it holds a surrogate without its partner")


def check_bytes(what: str, value: bytes) -> None:
    """The same for an id that is no text.

    Raises:
        Refusal: DMQ5275.
    """
    if len(value) > LONGEST_ID:
        raise failures.id_wrong(what, "", f"it has {len(value)} bytes, and {LONGEST_ID} may be")
