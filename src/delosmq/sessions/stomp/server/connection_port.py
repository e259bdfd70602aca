"""What the parts of a STOMP session may tell it. None of these may call the engine: it may be the one who called."""

from abc import abstractmethod

from mypy_extensions import mypyc_attr

from delosmq.model.errors import BrokerError
from delosmq.sessions.parking import ParkingOwner


@mypyc_attr(allow_interpreted_subclasses=True)
class StompSessionPort(ParkingOwner):
    """The session, as its producer and its subscriptions see it."""

    @abstractmethod
    def send_failed(self, error: BrokerError, receipt: str) -> None:
        """A parked SEND was refused in the end."""

    @abstractmethod
    def mark_messages(self, name: str, value: str) -> None:
        """Every message that is sent from now on carries this header."""

    @abstractmethod
    def all_answered(self) -> None:
        """The frame marked as last has its reply."""

    @abstractmethod
    def subscription_ended(self, reason: BrokerError) -> None:
        """The broker closed a subscription."""
