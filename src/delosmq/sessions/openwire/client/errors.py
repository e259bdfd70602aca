"""The sentences of the client's machine, and the exceptions that the broker answers with, as errors of Python."""

import re
from typing import Final

from delosmq.model.errors import XAER_RMERR, XAER_RMFAIL
from delosmq.sessions.client_errors import (
    ClientError,
    ClientSecurityError,
    ConnectionLostError,
    IllegalStateError,
    InvalidClientIdError,
    InvalidDestinationError,
    InvalidSelectorError,
    RefusedError,
    ResourceAllocationError,
    TimedOutError,
    TransactionInDoubtError,
    TransactionRolledBackError,
    XaTransactionError,
)
from delosmq.wire.openwire.structures import Throwable

CLOSED: Final = "DMQ9001"


def closed(what: str) -> IllegalStateError:
    return IllegalStateError(CLOSED, f"the {what} is closed: make another one, or close this one later.")


def not_transacted(action: str) -> IllegalStateError:
    return IllegalStateError(
        "DMQ9002", f"{action} ends a transaction, and this session has none: create it with AckMode.TRANSACTED."
    )


def transacted(action: str) -> IllegalStateError:
    return IllegalStateError(
        "DMQ9003", f"{action} is not for transacted sessions: call commit() or rollback() of the session."
    )


def no_client_id(name: str) -> IllegalStateError:
    return IllegalStateError(
        "DMQ9004",
        f"the durable subscription '{name}' belongs to a client id, and this connection was given none: connect with"
        " client_id=, or with jms.clientID in the URL.",
    )


def listener_without_prefetch(destination: str) -> IllegalStateError:
    return IllegalStateError(
        "DMQ9005",
        f"a consumer of {destination} with prefetch 0 asks for each message, so it can have no listener: call"
        " receive(), or give it a prefetch of at least 1.",
    )


def deleted_destination(destination: str) -> InvalidDestinationError:
    return InvalidDestinationError(
        "DMQ9006",
        f"the temporary destination {destination} is gone: its connection was closed, or has deleted it. Leave out the"
        " message, or ask its receiver for another destination.",
    )


def foreign_temporary(destination: str) -> InvalidDestinationError:
    return InvalidDestinationError(
        "DMQ9007",
        f"{destination} belongs to another connection, which alone may consume from it: create one of this connection.",
    )


def temporary_in_use(destination: str) -> IllegalStateError:
    return IllegalStateError(
        "DMQ9018", f"the temporary destination {destination} has a consumer of this connection: close that first."
    )


def message_too_large(size: int, limit: int) -> ResourceAllocationError:
    return ResourceAllocationError(
        "DMQ9008",
        f"a message of {size} bytes is larger than the {limit} that the broker takes: send less, or raise"
        " openwireMaxFrameSize (Classic: wireFormat.maxFrameSize) there.",
    )


def lost(
    peer: str, why: str, remedy: str = "See the broker's log and connect again, or let failover:(...) do that."
) -> ConnectionLostError:
    return ConnectionLostError("DMQ9009", f"the connection to {peer} is gone: {_whole(why)} {remedy}")


def silent(peer: str, timeout_ms: int) -> ConnectionLostError:
    return ConnectionLostError(
        "DMQ9010",
        f"nothing came from {peer} for {timeout_ms} ms: see whether the broker and the network are up, or raise"
        " wireFormat.maxInactivityDuration on both sides.",
    )


def unanswered(what: str, timeout_ms: int) -> TimedOutError:
    return TimedOutError(
        "DMQ9011", f"the broker did not answer {what} within {timeout_ms} ms: ask again later, or wait for longer."
    )


def in_doubt() -> TransactionInDoubtError:
    return TransactionInDoubtError(
        "DMQ9012",
        "the connection broke after the commit was sent and before its answer came: look whether the messages are there"
        " before you send them again.",
    )


def no_broker(peer: str, why: str) -> ConnectionLostError:
    return ConnectionLostError(
        "DMQ9013", f"{peer} does not speak OpenWire: {_whole(why)} Check host, port and scheme of the URL."
    )


def closed_unanswered(what: str) -> IllegalStateError:
    return IllegalStateError(
        "DMQ9019",
        f"the {what} was closed before the broker had answered the message, which may be stored yet, as when its"
        " address is full: close after the last send, or look whether it is there before you send it again.",
    )


def closed_by_peer(peer: str, *, negotiating: bool) -> ConnectionLostError:
    if negotiating:
        return no_broker(peer, "it closes the connection without a word.")
    return lost(peer, "the broker has closed it.")


def rolled_back() -> TransactionRolledBackError:
    return TransactionRolledBackError(
        "DMQ9014",
        "the connection was made again after messages were received in the transaction, which the broker now delivers"
        " anew: it is rolled back. Do it once more.",
    )


def ends_with_branch(action: str) -> IllegalStateError:
    return IllegalStateError(
        "DMQ9015",
        f"{action} is not for sessions of distributed transactions: end the branch by the session's xa_resource.",
    )


def no_branch() -> IllegalStateError:
    return IllegalStateError(
        "DMQ9017",
        "the session works in no branch of a distributed transaction, in which it could receive: call start() of its"
        " xa_resource first.",
    )


def branch_misused(xid: str, why: str, remedy: str, error_code: int) -> XaTransactionError:
    return XaTransactionError("DMQ9016", f"branch {xid}: {why}: {remedy}.", error_code)


def branch_refused(error: ClientError) -> XaTransactionError:
    """What the broker says of a branch, or why it says nothing."""
    written = _XA_CODE.findall(error.message)
    error_code = XAER_RMFAIL if not written else int(written[-1]) if written[-1] else XAER_RMERR
    sentence = f"{_whole(error.message)} Call recover() for the branches that are prepared, and end them."
    return XaTransactionError("DMQ9028", sentence, error_code)


_XA_CODE: Final = re.compile(r"xaErrorCode:(-?[0-9]{1,9}|)")
_Kind = tuple[str, type[ClientError], str]
_SECURITY: Final[_Kind] = (
    "DMQ9020",
    ClientSecurityError,
    "See whether user= and password= of connect() are right, and have the user given the permission for this.",
)
_DESTINATION: Final[_Kind] = (
    "DMQ9021",
    InvalidDestinationError,
    "See whether there is one of this name at the broker, and whether the name is written as it has it.",
)
_CLASSES: Final[dict[str, _Kind]] = {
    "SecurityException": _SECURITY,
    "JMSSecurityException": _SECURITY,
    "InvalidDestinationException": _DESTINATION,
    "DestinationDoesNotExistException": _DESTINATION,
    "InvalidSelectorException": (
        "DMQ9022",
        InvalidSelectorError,
        "Write it as a condition of SQL on properties, such as: price > 10 AND colour = 'red'.",
    ),
    "InvalidClientIDException": (
        "DMQ9023",
        InvalidClientIdError,
        "Close the connection that has this id, or connect with another client_id=.",
    ),
    "ResourceAllocationException": (
        "DMQ9024",
        ResourceAllocationError,
        "Try again when there is room, or have the broker's limit raised.",
    ),
    "TransactionRolledBackException": (
        "DMQ9025",
        TransactionRolledBackError,
        "Do the whole transaction once more: nothing of it has happened.",
    ),
    "IllegalStateException": (
        "DMQ9026",
        IllegalStateError,
        "See the broker's log for what keeps it from this, and end that first.",
    ),
}
"""By the last part of the class's name, as brokers say javax.jms or jakarta.jms; what the program can do about it."""


def refused(what: str, thrown: Throwable | None) -> ClientError:
    """The broker's exception as an error; ``what`` is what was asked for."""
    java_class = "" if thrown is None else thrown.class_name or ""
    text = "" if thrown is None else thrown.message or ""
    sentence = _whole(f"the broker refused {what}: {text or java_class or 'it does not say why'}")
    found = _CLASSES.get(java_class.rpartition(".")[2])
    if found is None:
        return RefusedError("DMQ9027", f"{sentence} See the broker's log for more.", java_class)
    code, kind, remedy = found
    space = "\n" if "\n" in sentence else " "
    return kind(code, f"{sentence}{space}{remedy}")


def _whole(text: str) -> str:
    """As a sentence, behind which another one can stand; not what ends with a drawing of the place."""
    return text if text.endswith((".", "!", "?")) or "\n" in text else f"{text}."
