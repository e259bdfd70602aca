"""Bodies that were left out of their rows, with the option largeBodies=reference."""

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from delosmq.spark.errors import OptionError
from delosmq.spark.options import parse_options
from delosmq.spark.schema import split_reference
from delosmq.spark.source.reader import OptionsReader


class LargeBodies:
    """Fetches bodies by the values of the column ``body_reference``. Use it in a with statement, one for each task.

    A reference is good until its batch is acknowledged: within foreachBatch, for example. It names its broker, where
    the option servers names several. Runs on: driver or executors.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        """
        Args:
            options: those of the query.

        Raises:
            OptionError: an option is wrong.
        """
        self._reader = OptionsReader(parse_options(options))

    def fetch(self, reference: str) -> bytes:
        """The body of the row that has this reference.

        Raises:
            LeaseLostError: its batch is acknowledged.
            OptionError: the options name another broker, or it is no reference.
        """
        return self._reader.client_of(self._broker(reference)).body(reference)

    def _broker(self, reference: str) -> int:
        addresses, _, _ = split_reference(reference)
        for number, broker in enumerate(self._reader.options.brokers):
            if not addresses.isdisjoint(map(str, broker.servers)):
                return number
        raise OptionError(
            "DMQ8069",
            f"the body {reference} is at a broker that the option servers does not name: give the options of the query"
            " that read its row",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reader.close()
