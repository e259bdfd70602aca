"""Names of addresses and queues: what they may be, in broker.xml and at run time alike."""

from typing import Final

from delosmq.model.errors import MisuseError

NAME_LIMIT_BYTES: Final = 1024
QUEUE_MARK: Final = "::"
"""Between an address and a queue of it."""
INTERNAL_PREFIX: Final = "$delosmq."
"""Begins the names of queues that the broker makes for itself."""


def check_name(kind: str, name: str) -> None:
    """Refuses what is no name for an address or queue."""
    what = "an address" if kind == "address" else f"a {kind}"
    if not name or len(name.encode()) > NAME_LIMIT_BYTES or "\n" in name or "\0" in name:
        raise MisuseError(
            "DMQ2105", f"'{name[:80]}' is no name for {what}: 1 to {NAME_LIMIT_BYTES} bytes without line breaks"
        )
    if QUEUE_MARK in name:
        raise MisuseError(
            "DMQ2645",
            f"'{name}' is no name for {what}: '{QUEUE_MARK}' stands between an address and its queue; leave it out",
        )
    if name.startswith(INTERNAL_PREFIX):
        raise MisuseError(
            "DMQ2624", f"'{name}' is no name for {what}: '{INTERNAL_PREFIX}' begins those of the broker itself"
        )
