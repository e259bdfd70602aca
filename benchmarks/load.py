"""The port that load of every protocol is driven through."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from benchmarks.brokers.base import RunningBroker
from benchmarks.cells import Cell, Outcome


class GeneratorError(Exception):
    """The broker closed a connection, stopped answering or sent an error."""


class Load(ABC):
    """Sends and receives; `open`, then `go`, for each load. As a context it ends what it started."""

    @abstractmethod
    def await_first_confirmation(self, broker: RunningBroker) -> float:
        """Seconds from the start of the process until a persistent message was confirmed; the message stays.

        Raises:
            BrokerUnavailable: the broker ended, or did not open its port.
        """

    @abstractmethod
    def open(self, broker: RunningBroker, cell: Cell, rate_per_s: float | None) -> None:
        """Connect and subscribe for the messages of the cell; `rate_per_s` None: as fast as answers allow.

        Raises:
            GeneratorError: that does not work.
        """

    @abstractmethod
    def go(self) -> Outcome:
        """Send, receive and acknowledge everything.

        Raises:
            GeneratorError: not everything could be.
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return
