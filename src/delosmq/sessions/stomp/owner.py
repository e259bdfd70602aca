"""What the parts of a STOMP session may tell it. None of these may call the engine: it may be the one who called."""

from abc import ABC, abstractmethod

from mypy_extensions import mypyc_attr

from delosmq.model.errors import BrokerError


@mypyc_attr(allow_interpreted_subclasses=True)
class SessionOwner(ABC):
    """The session, as its producer and its subscriptions see it."""

    @abstractmethod
    def send_failed(self, error: BrokerError, receipt: str) -> None:
        """A parked SEND was refused in the end."""

    @abstractmethod
    def parked_changed(self) -> None:
        """Fewer bytes are parked than before."""

    @abstractmethod
    def mark_messages(self, name: str, value: str) -> None:
        """Every message that is sent from now on carries this header."""

    @abstractmethod
    def commit_due(self) -> None:
        """A commit may begin, or one that went on in slices is over: let the producer go on, but not from here."""

    @abstractmethod
    def all_answered(self) -> None:
        """The frame marked as last has its reply."""

    @abstractmethod
    def subscription_ended(self, reason: BrokerError) -> None:
        """The broker closed a subscription."""
