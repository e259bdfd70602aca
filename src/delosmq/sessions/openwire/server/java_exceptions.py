"""The exceptions that OpenWire clients know by name, and how an error becomes one.

Source: the classes which ActiveMQ's broker throws; clients build those they can find and else make a JMSException of
the text. The codes of DelosMQ stay in the text.
"""

from collections.abc import Callable
from typing import Final, ParamSpec

from delosmq.engine.api import AddressLimitError, TransactionError, xa
from delosmq.model.errors import (
    BrokerError,
    LimitError,
    NotFoundError,
    PeerError,
    PermissionDeniedError,
    Scope,
    error_of,
)
from delosmq.wire.openwire.structures import Throwable

P = ParamSpec("P")

SECURITY: Final = "java.lang.SecurityException"
INVALID_DESTINATION: Final = "javax.jms.InvalidDestinationException"
DESTINATION_GONE: Final = "org.apache.activemq.DestinationDoesNotExistException"
INVALID_CLIENT_ID: Final = "javax.jms.InvalidClientIDException"
INVALID_SELECTOR: Final = "javax.jms.InvalidSelectorException"
RESOURCES: Final = "javax.jms.ResourceAllocationException"
ROLLED_BACK: Final = "javax.jms.TransactionRolledBackException"
ILLEGAL_STATE: Final = "javax.jms.IllegalStateException"
JMS: Final = "javax.jms.JMSException"
XA: Final = "javax.transaction.xa.XAException"
IO: Final = "java.io.IOException"
INACTIVITY: Final = "org.apache.activemq.transport.InactivityIOException"
_LONGEST_TEXT: Final = 2_000
_TEXT_START: Final = 1_500
_TEXT_END: Final = 400


class OpenWireError(PeerError):
    """A command is refused with the exception ``class_name``; the connection goes on unless ``scope`` says more."""

    def __init__(self, code: str, class_name: str, message: str, scope: Scope = Scope.LINK) -> None:
        super().__init__(code, shortened(message), scope)
        self.class_name = class_name


def openwire_error(
    code: str, class_name: str = JMS, scope: Scope = Scope.LINK
) -> Callable[[Callable[P, str]], Callable[P, OpenWireError]]:
    """Declares an error that a client is told of as the exception ``class_name``."""

    def make(code: str, message: str) -> OpenWireError:
        return OpenWireError(code, class_name, message, scope)

    return error_of(code, make)


def shortened(text: str) -> str:
    """Without its middle when it is long, as names in it are the peer's; the code that clients look for may come last.

    No text of an exception may be longer than a field, in which one character takes up to 6 bytes.
    """
    if len(text) <= _LONGEST_TEXT:
        return text
    return f"{text[:_TEXT_START]} ... {text[-_TEXT_END:]}"


# The first that fits; `JMS` when none does.
_CLASS_NAMES: Final[list[tuple[type[BrokerError], str]]] = [
    (PermissionDeniedError, SECURITY),
    (NotFoundError, INVALID_DESTINATION),
    (TransactionError, ROLLED_BACK),
    (AddressLimitError, ILLEGAL_STATE),
    (LimitError, RESOURCES),
    (PeerError, IO),
]


def throwable_of(error: BrokerError) -> Throwable:
    """The exception that tells a peer of an error."""
    text = shortened(str(error))
    if isinstance(error, OpenWireError):
        return Throwable(error.class_name, text)
    if isinstance(error, xa.XaError):
        # The client reads the code from the end of the text.
        return Throwable(XA, f"{text} xaErrorCode:{error.xa_code}")
    for kind, class_name in _CLASS_NAMES:
        if isinstance(error, kind):
            return Throwable(class_name, text)
    return Throwable(JMS, text)
