"""The port to management messages: what is sent to the management address the broker carries out itself.

Source: ServerSessionImpl.handleManagementMessage of Artemis. The permission asked for is ``manage``.
In a transaction it is carried out at once, too; the answer alone belongs to the transaction.
"""

from abc import ABC, abstractmethod

from mypy_extensions import mypyc_attr

from delosmq.engine.api import JobWaiter
from delosmq.model.message import ANY_ROUTING, Message
from delosmq.security.access import Login


class ManagementCall:
    """One management message, while it is carried out and after.

    Attributes:
        done: all of it has happened.
        reply: the answer, once it is done; None when none was asked for, or there is no such place.
        queue_name, routing: where the answer goes beside its address; see `EngineProducers.send`.
        waiter: told of the end of a call that is not done at once.
    """

    def __init__(self) -> None:
        self.done: bool = False
        self.reply: Message | None = None
        self.queue_name: str = ""
        self.routing: int = ANY_ROUTING
        self.waiter: JobWaiter | None = None

    def end(self, reply: Message | None) -> None:
        """All of it has happened; tells its waiter."""
        self.done = True
        self.reply = reply
        waiter, self.waiter = self.waiter, None
        if waiter is not None:
            waiter.on_ended(None)


@mypyc_attr(allow_interpreted_subclasses=True)
class ManagementPort(ABC):
    """Carries out management messages.

    Attributes:
        address: where they are sent; "" for a broker that takes none.
    """

    address: str = ""

    @abstractmethod
    def begin(self, request: Message, login: Login) -> ManagementCall:
        """Begins with one of a user who may send it; long work goes on in later ticks. What is wrong with it stands in
        its answer.

        Raises:
            PermissionDeniedError: the user may not send to where the answer is to go; nothing was done.
        """


class NoManagement(ManagementPort):
    """Of a broker that takes no management messages."""

    def begin(self, request: Message, login: Login) -> ManagementCall:
        call = ManagementCall()
        call.end(None)
        return call
