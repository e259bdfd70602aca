"""Bodies that were left out of their rows, with the option largeBodies=reference."""

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from delosmq.spark.errors import OptionError
from delosmq.spark.lease_client import LeaseClient
from delosmq.spark.options import parse_options


class LargeBodies:
    """Fetches bodies by the values of the column ``body_reference``. Use it in a with statement, one for each task.

    A reference is good until its batch is acknowledged: within foreachBatch, for example. Runs on: driver or executors.
    """

    def __init__(self, options: Mapping[str, str], broker: int = 0) -> None:
        """
        Args:
            options: those of the query.
            broker: which of those that the option servers separates by semicolons, counted from 0.

        Raises:
            OptionError: an option is wrong, or there is no such broker.
        """
        brokers = parse_options(options).brokers
        if not 0 <= broker < len(brokers):
            raise OptionError("DMQ8069", f"there is no broker {broker}: servers names {len(brokers)}, counted from 0")
        self._client = LeaseClient(brokers[broker])

    def fetch(self, reference: str) -> bytes:
        """The body of the row that has this reference.

        Raises:
            LeaseLostError: its batch is acknowledged.
        """
        return self._client.body(reference)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()
