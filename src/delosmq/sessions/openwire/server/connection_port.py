"""The port by which a parked command answers through its connection."""

from abc import ABC, abstractmethod

from mypy_extensions import mypyc_attr

from delosmq.model.errors import (
    XA_OK,
    BrokerError,
)
from delosmq.wire.openwire.commands import MessageCommand
from delosmq.wire.openwire.structures import Command, Structure


@mypyc_attr(allow_interpreted_subclasses=True)
class ConnectionPort(ABC):
    """The connection, as what waits for space sees it."""

    @abstractmethod
    def message_sent(self, command: MessageCommand) -> None:
        """A message is where it belongs: its sender is answered."""

    @abstractmethod
    def ended(self, command: Command, result: int = XA_OK) -> None:
        """A commit, prepare, acknowledgement or end of the connection may be answered; ``result`` is a prepare's."""

    @abstractmethod
    def refused(self, command: Structure, error: BrokerError) -> None:
        """A command that had to wait can't be carried out. Must not call the engine."""
