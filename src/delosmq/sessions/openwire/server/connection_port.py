"""What the parts of an OpenWire session, and other connections, may tell it."""

from abc import abstractmethod
from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from delosmq.model.errors import BrokerError
from delosmq.sessions.openwire.server.transactions import XA_OK
from delosmq.sessions.parking import ParkingOwner
from delosmq.wire.openwire.commands import MessageCommand
from delosmq.wire.openwire.structures import Command, Structure

if TYPE_CHECKING:
    from delosmq.sessions.openwire.server.session import OpenWireSession


@mypyc_attr(allow_interpreted_subclasses=True)
class ConnectionPort(ParkingOwner):
    """The session."""

    @abstractmethod
    def message_sent(self, command: MessageCommand) -> None:
        """A message is where it belongs: its sender is answered."""

    @abstractmethod
    def ended(self, command: Command, result: int = XA_OK) -> None:
        """A commit, prepare, acknowledgement or end of the connection may be answered; ``result`` is a prepare's."""

    @abstractmethod
    def refused(self, command: Structure, error: BrokerError) -> None:
        """A command that had to wait can't be carried out. Must not call the engine."""

    @abstractmethod
    def peer_name(self) -> str:
        """Address and port, for people; "" when it is gone."""

    @abstractmethod
    def replace(self, reason: BrokerError) -> None:
        """The peer has come back by another connection: this one ends at once, and gives back everything."""


class OpenWireSessionPort(ConnectionPort):
    """Hands on to it, until that is over."""

    def __init__(self, session: "OpenWireSession") -> None:
        self.session: OpenWireSession | None = session

    def parked_changed(self) -> None:
        if self.session is not None:
            self.session.parked_changed()

    def go_on_soon(self) -> None:
        if self.session is not None:
            self.session.wake_soon()

    def message_sent(self, command: MessageCommand) -> None:
        if self.session is not None:
            self.session.message_sent(command)

    def ended(self, command: Command, result: int = XA_OK) -> None:
        if self.session is not None:
            self.session.ended(command, result)

    def refused(self, command: Structure, error: BrokerError) -> None:
        if self.session is not None:
            self.session.refused(command, error)

    def peer_name(self) -> str:
        return "" if self.session is None else self.session.peer_name

    def replace(self, reason: BrokerError) -> None:
        if self.session is not None:
            self.session.fail(reason)
