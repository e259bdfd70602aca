"""Where dead letters go: looked up before one is taken, as what is sent to an address without a queue is lost."""

from collections.abc import Mapping

from delosmq.spark.dead_letters.letters import ORIGINAL_ADDRESS, ORIGINAL_QUEUE
from delosmq.spark.send_destination import check_named, find_destination
from delosmq.spark.transport import Transport


class LetterDestinations:
    """Finds the destination of each letter: that queue which it was in, as others of its topic had it already.

    Args:
        to: the address, or ``address::queue``, for all; "" for where each came from.

    Raises:
        BrokerError: `to` takes no messages.
    """

    def __init__(self, transport: Transport, to: str) -> None:
        self._transport = transport
        self._to = to
        self._found: dict[tuple[str, str], str] = {}
        if to:
            check_named(transport, to)

    def of(self, properties: Mapping[str, str | None], message_id: str) -> str:
        """Raises PipelineError when there is no such place any more."""
        if self._to:
            return self._to
        origin = (properties.get(ORIGINAL_ADDRESS) or "", properties.get(ORIGINAL_QUEUE) or "")
        found = self._found.get(origin)
        if found is None:
            which = f"message {message_id} came from"
            found = self._found[origin] = find_destination(
                self._transport,
                *origin,
                which,
                "create it, send all elsewhere with --to, or leave these out with a selector",
            )
        return found
