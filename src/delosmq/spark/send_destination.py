"""Whether messages can be sent to a place: what is sent to an address without a queue is lost."""

from typing import Any, Final

from delosmq.spark.errors import PipelineError, QueueMissingError
from delosmq.spark.transport import Transport, segment

QUEUE_MARK: Final = "::"


def find_destination(transport: Transport, address: str, queue: str, which: str, remedy: str) -> str:
    """The destination by which an address, or one queue of it, gets messages.

    Args:
        queue: "" for all queues of the address.
        which, remedy: the begin and the end of the sentence when there is none.

    Raises:
        PipelineError: there is none.
        BrokerError: the user may not look.
    """
    if queue:
        answer = _ask(transport, f"/api/v1/queues/{segment(queue)}")
        if answer is None or answer.get("address") != address:
            raise PipelineError(
                "DMQ8239", f"{which} queue '{queue}' of address '{address}', and there is none: {remedy}"
            )
        return address if queue == address else f"{address}{QUEUE_MARK}{queue}"
    answer = _ask(transport, f"/api/v1/addresses/{segment(address)}")
    if answer is None or not answer.get("queues"):
        what = "there is none" if answer is None else "it has no queue"
        raise PipelineError("DMQ8239", f"{which} address '{address}', and {what}: {remedy}")
    return address


def check_named(transport: Transport, to: str) -> None:
    """Whether what ``--to`` names gets messages.

    Raises:
        PipelineError: it does not.
        BrokerError: the user may not look.
    """
    address, mark, queue = to.partition(QUEUE_MARK)
    if not address or (mark and not queue):
        raise PipelineError("DMQ8239", f"--to is '{to}': write an address, or address::queue")
    find_destination(transport, address, queue, "--to names", "create it with delosmq queue create, or name another")


def _ask(transport: Transport, path: str) -> dict[str, Any] | None:
    try:
        return transport.call("GET", path)
    except QueueMissingError:
        return None
