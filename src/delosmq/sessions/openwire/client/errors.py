"""The sentences of the client's machine, and the exceptions that the broker answers with, as errors of Python."""

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
        "DMQ9006", f"the temporary destination {destination} is gone: its connection was closed, or has deleted it."
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


def lost(peer: str, why: str) -> ConnectionLostError:
    return ConnectionLostError("DMQ9009", f"the connection to {peer} is gone: {why}")


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
        "DMQ9013", f"{peer} does not speak OpenWire: {why} Check host, port and scheme of the URL."
    )


def closed_by_peer(peer: str, *, negotiating: bool) -> ConnectionLostError:
    if negotiating:
        return no_broker(peer, "it closes the connection without a word.")
    return lost(peer, "the broker has closed it: see the broker's log.")


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


def branch_misused(xid: str, why: str, error_code: int) -> XaTransactionError:
    return XaTransactionError("DMQ9016", f"branch {xid}: {why}.", error_code)


def branch_refused(error: ClientError) -> XaTransactionError:
    """What the broker says of a branch, or why it says nothing."""
    _, mark, written = error.message.rpartition(_XA_MARK)
    try:
        return XaTransactionError("DMQ9028", error.message, int(written) if mark else XAER_RMFAIL)
    except ValueError:
        return XaTransactionError("DMQ9028", error.message, XAER_RMERR)


_XA_MARK: Final = "xaErrorCode:"
_SECURITY: Final = "DMQ9020"
_CLASSES: Final[dict[str, tuple[str, type[ClientError]]]] = {
    "SecurityException": (_SECURITY, ClientSecurityError),
    "JMSSecurityException": (_SECURITY, ClientSecurityError),
    "InvalidDestinationException": ("DMQ9021", InvalidDestinationError),
    "DestinationDoesNotExistException": ("DMQ9021", InvalidDestinationError),
    "InvalidSelectorException": ("DMQ9022", InvalidSelectorError),
    "InvalidClientIDException": ("DMQ9023", InvalidClientIdError),
    "ResourceAllocationException": ("DMQ9024", ResourceAllocationError),
    "TransactionRolledBackException": ("DMQ9025", TransactionRolledBackError),
    "IllegalStateException": ("DMQ9026", IllegalStateError),
}
"""By the last part of the class's name: brokers say javax.jms or jakarta.jms."""


def refused(what: str, thrown: Throwable | None) -> ClientError:
    """The broker's exception as an error; ``what`` is what was asked for."""
    java_class = "" if thrown is None else thrown.class_name or ""
    text = "" if thrown is None else thrown.message or ""
    sentence = f"the broker refused {what}: {text or java_class or 'it does not say why'}"
    found = _CLASSES.get(java_class.rpartition(".")[2])
    if found is None:
        return RefusedError("DMQ9027", sentence, java_class)
    code, kind = found
    return kind(code, sentence)
