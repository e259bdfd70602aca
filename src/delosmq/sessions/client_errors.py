"""What a client of a broker raises, one class for each thing that a program can do about it.

Source: the exceptions of JMS 1.1, chapter 7, of which each class has the name without "JMS" and with "Error".
"""

from delosmq.model.errors import BrokerError


class ClientError(BrokerError):
    """Base of all that `delosmq.client` raises; the sentence names the remedy."""


class ClientOptionError(ClientError):
    """A URL, an option or an argument can't be meant so; nothing has happened."""


class IllegalStateError(ClientError):
    """The connection, session, producer or consumer is closed, or has a mode in which this makes no sense."""


class MessageFormatError(ClientError):
    """A property or body has a value that JMS has no type for, or a message is read as what it is not."""


class InvalidDestinationError(ClientError):
    """The broker does not know the destination or the durable subscription."""


class InvalidSelectorError(ClientError):
    """The broker can't read the selector."""


class InvalidClientIdError(ClientError):
    """Another connection has the client id."""


class ClientSecurityError(ClientError):
    """The user or the password is wrong, or the user may not do this."""


class ResourceAllocationError(ClientError):
    """A limit of the broker is reached; the same may succeed later."""


class TransactionRolledBackError(ClientError):
    """The commit did not happen: nothing of the transaction counts, and its messages are delivered again."""


class TransactionInDoubtError(ClientError):
    """The connection broke while the commit was on its way: it happened as a whole, or not at all."""


class XaTransactionError(ClientError):
    """A branch of a distributed transaction can't be started, ended, prepared, committed or rolled back.

    Attributes:
        error_code: of X/Open XA: negative for XAER_..., 100 to 107 when it is or will be rolled back, 5 to 8 when an
            operator has decided.
    """

    def __init__(self, code: str, message: str, error_code: int) -> None:
        super().__init__(code, message)
        self.error_code = error_code


class UnsupportedOperationError(ClientError):
    """The protocol has no such thing; the sentence names what has the same effect."""


class RefusedError(ClientError):
    """The broker refused a command for a reason that has no class of its own here.

    Attributes:
        java_class: the exception's class, as the broker named it.
    """

    def __init__(self, code: str, message: str, java_class: str = "") -> None:
        super().__init__(code, message)
        self.java_class = java_class


class ConnectionLostError(ClientError):
    """The broker can't be reached, is none, was silent for too long, or is gone. What was not confirmed may have
    happened; what was not acknowledged is delivered again, to this client or another one."""


class TimedOutError(ClientError):
    """No answer came in time; what was asked for may still happen."""
