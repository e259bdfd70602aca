"""The errors of DelosMQ, told apart by who has to act on them.

Every error carries a stable code (DMQnnnn) and a sentence that names the thing and the remedy.
"""

from collections.abc import Callable
from enum import Enum
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
E = TypeVar("E", bound="BrokerError")

XA_OK: Final = 0
XA_RDONLY: Final = 3
XA_HEURRB: Final = 6
XA_HEURCOM: Final = 7
XA_RBROLLBACK: Final = 100
XA_RBINTEGRITY: Final = 103
XA_RBOTHER: Final = 104
XA_RBTIMEOUT: Final = 106
XAER_RMERR: Final = -3
XAER_NOTA: Final = -4
XAER_INVAL: Final = -5
XAER_PROTO: Final = -6
XAER_RMFAIL: Final = -7
XAER_DUPID: Final = -8
"""What a branch of a distributed transaction comes to, by the numbers of X/Open XA: an answer is not negative."""

TMNOFLAGS: Final = 0
TMJOIN: Final = 0x00200000
TMSUSPEND: Final = 0x02000000
TMSUCCESS: Final = 0x04000000
TMRESUME: Final = 0x08000000
TMFAIL: Final = 0x20000000
"""How a session begins or ends its work in a branch, by the flags of X/Open XA."""


class Scope(Enum):
    """How much is closed because of a peer's mistake."""

    LINK = "link"
    SESSION = "session"
    CONNECTION = "connection"


class BrokerError(Exception):
    """Base of all errors raised by DelosMQ.

    Attributes:
        code: stable id, ``DMQ`` and four digits.
        message: one sentence for people, without the code.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class MisuseError(BrokerError):
    """The caller inside this process asked for something that makes no sense; nothing has changed."""


class ConfigurationError(MisuseError):
    """A configuration file or setting is wrong; the message names file and line where there is one."""


class NotFoundError(MisuseError):
    """The named address, queue, group or lease does not exist."""


class PermissionDeniedError(BrokerError):
    """The user is known but may not do this; nothing has changed."""


class LimitError(BrokerError):
    """A configured limit is reached; nothing has changed. Trying again later may succeed."""


class DiskFullError(LimitError):
    """The disk is full: it has no room for this, and what is left of the journal is for acknowledgements; nothing has
    changed."""


class StorageError(BrokerError):
    """The store can't do its work: damaged, full or failing."""


class SupersededError(StorageError):
    """Another broker is active on the same store: this one stops, and nothing it has done since counts."""


class InvariantError(BrokerError):
    """DelosMQ broke a promise to itself. Never swallowed: the broker stops rather than guess."""


class PeerError(BrokerError):
    """What came over the wire is wrong; ``scope`` says how much is closed.

    Attributes:
        detail: optional longer explanation for the peer (the body of a STOMP ERROR frame).
        unread_bytes: of what is wrong, so many are still to come: a peer that is busy sending looks for no answer.
    """

    def __init__(self, code: str, message: str, scope: Scope = Scope.CONNECTION, detail: str = "") -> None:
        super().__init__(code, message)
        self.scope = scope
        self.detail = detail
        self.unread_bytes: int = 0


def error_of(code: str, make: Callable[[str, str], E]) -> Callable[[Callable[P, str]], Callable[P, E]]:
    """Declares an error: the function below says its sentence, and gives the error when it is called.

    Args:
        make: of the code and the text.
    """

    def with_sentence(sentence: Callable[P, str]) -> Callable[P, E]:
        def made(*args: P.args, **kwargs: P.kwargs) -> E:
            return make(code, sentence(*args, **kwargs))

        return made

    return with_sentence


def peer_error(code: str) -> Callable[[Callable[P, str]], Callable[P, PeerError]]:
    """Declares a `PeerError` that ends the connection."""
    return error_of(code, PeerError)
