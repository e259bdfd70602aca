"""What the broker writes on a dead letter: where it was, and why it is dead. See "Dead letters" in docs/queues.md."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from delosmq.spark.lease_client import LeaseClient
from delosmq.spark.lease_requests import BrowseFilter

if TYPE_CHECKING:
    import pyarrow as pa

ORIGINAL_ADDRESS: Final = "_AMQ_ORIG_ADDRESS"
ORIGINAL_QUEUE: Final = "_AMQ_ORIG_QUEUE"
ACTUAL_EXPIRY: Final = "_AMQ_ACTUAL_EXPIRY"
CAUSE: Final = "dlqDeliveryFailureCause"
MARKS: Final = frozenset(
    {
        ORIGINAL_ADDRESS,
        ORIGINAL_QUEUE,
        ACTUAL_EXPIRY,
        CAUSE,
        "_AMQ_ORIG_MESSAGE_ID",
        "_AMQ_ORIG_ROUTING_TYPE",
        "originalDeliveryMode",
        "originalExpiration",
    }
)
"""What a message has since it is dead, or has expired, and loses when it goes back."""
EXPIRED: Final = "expired"
NOT_ROUTED: Final = "no queue took it"
FAILED: Final = "failed by its consumers (no cause written)"


def cause_of(properties: Mapping[str, str | None]) -> str:
    """Why a message is dead, as far as it says so: the broker writes a cause for clients of ActiveMQ Classic only."""
    written = properties.get(CAUSE)
    if written:
        return written
    if ACTUAL_EXPIRY in properties:
        return EXPIRED
    if properties.get(ORIGINAL_ADDRESS) and not properties.get(ORIGINAL_QUEUE):
        return NOT_ROUTED
    return FAILED


def printable(text: str) -> str:
    """`text` on one line of a terminal, whatever is in it."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def browse_queue(
    client: LeaseClient, queue: str, columns: tuple[str, ...], selector: str = ""
) -> "Iterator[pa.RecordBatch]":
    """What a queue holds now, in order; takes nothing."""
    held = client.queue(queue)
    if held.message_count:
        wanted = BrowseFilter(selector=selector)
        yield from client.browse(queue, held.oldest_sequence - 1, held.newest_sequence, columns, wanted=wanted)
