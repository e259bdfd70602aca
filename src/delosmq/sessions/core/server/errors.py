"""The errors of CORE sessions: sentences for the peer and the log, and the codes by which Java clients know them.

None of them has the name of a session in it: who knows that may take the session over.
"""

from collections.abc import Callable
from typing import Final, ParamSpec

from delosmq.engine.api import TransactionError, xa
from delosmq.model.errors import (
    XAER_PROTO,
    BrokerError,
    LimitError,
    NotFoundError,
    PeerError,
    PermissionDeniedError,
    Scope,
    error_of,
    peer_error,
)
from delosmq.selectors.errors import SelectorError
from delosmq.wire.core.error_codes import CoreErrorCode

P = ParamSpec("P")

_LONGEST_TEXT: Final = 2_000
_SHOWN: Final = 200
"""Characters of a name that a peer made up."""


class CoreError(PeerError):
    """A packet is refused, with a code that clients know; its session goes on."""

    def __init__(self, code: str, error_code: CoreErrorCode, message: str) -> None:
        super().__init__(code, message, Scope.LINK)
        self.error_code = error_code


class CoreXaError(xa.XaError):
    """A call of a transaction manager that makes no sense."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, XAER_PROTO, message)


def core_error(code: str, error_code: CoreErrorCode) -> Callable[[Callable[P, str]], Callable[P, CoreError]]:
    """Declares an error of which a client hears by ``error_code``."""

    def make(code: str, message: str) -> CoreError:
        return CoreError(code, error_code, message)

    return error_of(code, make)


def error_code_of(error: BrokerError, *, for_limits: CoreErrorCode = CoreErrorCode.ADDRESS_FULL) -> CoreErrorCode:
    """The code by which a client hears of an error.

    Args:
        for_limits: of what was asked for, when that is too much.
    """
    if isinstance(error, CoreError):
        return error.error_code
    if isinstance(error, PermissionDeniedError):
        return CoreErrorCode.SECURITY_EXCEPTION
    if isinstance(error, SelectorError) or error.code == "DMQ2623":
        return CoreErrorCode.INVALID_FILTER_EXPRESSION
    if isinstance(error, TransactionError):
        return CoreErrorCode.DUPLICATE_ID_REJECTED if error.code == "DMQ2660" else CoreErrorCode.TRANSACTION_ROLLED_BACK
    if isinstance(error, NotFoundError):
        missing_address = error.code in ("DMQ2107", "DMQ2111", "DMQ2630")
        return CoreErrorCode.ADDRESS_DOES_NOT_EXIST if missing_address else CoreErrorCode.QUEUE_DOES_NOT_EXIST
    if error.code == "DMQ2102":
        return CoreErrorCode.QUEUE_EXISTS
    if error.code == "DMQ2203":
        return CoreErrorCode.LARGE_MESSAGE_ERROR_BODY
    if isinstance(error, LimitError):
        return CoreErrorCode.MAX_CONSUMER_LIMIT_EXCEEDED if error.code == "DMQ2202" else for_limits
    return CoreErrorCode.INTERNAL_ERROR


def text_of(error: BrokerError) -> str:
    """What people read of it."""
    return str(error)[:_LONGEST_TEXT]


def shown(name: str) -> str:
    """A name that a peer chose, as a sentence has it."""
    return name if len(name) <= _SHOWN else f"{name[:_SHOWN]}..."


# -- connection ------------------------------------------------------------------------------------------------------


@peer_error("DMQ5620")
def silent(peer: str, ttl_ms: int) -> str:
    return (
        f"nothing was heard of {peer} for {ttl_ms} ms, its connectionTTL; its connection is closed and what it held"
        " goes back: let the client ping more often, or raise connectionTTL."
    )


@core_error("DMQ5621", CoreErrorCode.INCOMPATIBLE_CLIENT_SERVER_VERSIONS)
def version_too_old(version: int, oldest: int) -> str:
    return f"the client speaks version {version} of CORE, and {oldest} is the oldest: use Artemis 2.0 or later."


@core_error("DMQ5622", CoreErrorCode.SECURITY_EXCEPTION)
def login_refused(user: str) -> str:
    return f"user '{shown(user)}' does not exist or has another password; check both."


@core_error("DMQ5623", CoreErrorCode.SESSION_CREATION_REJECTED)
def too_many_sessions(limit: int) -> str:
    return f"the connection has {limit} sessions, as many as it may: close some, or use another connection."


@core_error("DMQ5624", CoreErrorCode.ILLEGAL_STATE)
def channel_taken(channel: int) -> str:
    return f"channel {channel} is no channel for a new session: choose one from 10 on that has none."


@error_of("DMQ5625", BrokerError)
def replaced(peer: str) -> str:
    return f"a session of {peer} was opened again from elsewhere under its name, so this one is closed."


@error_of("DMQ5626", BrokerError)
def unexpected(code: int) -> str:
    return f"a packet of type {code} came where no client sends one, and was left out."


@error_of("DMQ5627", BrokerError)
def not_given_back(peer: str, error: BrokerError) -> str:
    return f"{peer} left, and what it had open could not be given back in full: {error}"


@error_of("DMQ5628", BrokerError)
def unanswered(peer: str, code: int, error: BrokerError) -> str:
    return f"a packet of type {code} of {peer}, which waits for no answer, was not carried out: {error}"


@core_error("DMQ5629", CoreErrorCode.ROUTING_EXCEPTION)
def not_here(why: str) -> str:
    return f"this broker does not serve this connection: {why}"


@core_error("DMQ5630", CoreErrorCode.DUPLICATE_METADATA)
def metadata_taken(key: str, value: str) -> str:
    return f"another session has the metadata {shown(key)}={shown(value)} already: close that one, or choose another."


@core_error("DMQ5631", CoreErrorCode.ILLEGAL_STATE)
def too_many(what: str, limit: int) -> str:
    return f"there are {limit} {what} already, as many as may be: close some."


@core_error("DMQ5633", CoreErrorCode.SESSION_CREATION_REJECTED)
def name_taken() -> str:
    return "another user has a session of that name: choose a random one."


@core_error("DMQ5638", CoreErrorCode.ILLEGAL_STATE)
def too_long(what: str, limit: int) -> str:
    return f"{what} has more than {limit} characters: use a shorter one."


# -- sessions that wait for their client ------------------------------------------------------------------------------


@error_of("DMQ5654", BrokerError)
def not_come_back(peer: str, count: int, ttl_ms: int) -> str:
    return (
        f"the connection of {peer} was lost, and its client has not come back to {count} sessions within {ttl_ms} ms,"
        " its connectionTTL; they are closed and what they held goes back."
    )


@error_of("DMQ5655", BrokerError)
def wrong_names(peer: str, count: int) -> str:
    return (
        f"{peer} has asked for {count} sessions that are none, or not its own; it is answered slowly from now on: find"
        " out which client it is, if no broker was restarted."
    )


@error_of("DMQ5656", BrokerError)
def too_many_detached(count: int, most: int, most_bytes: int) -> str:
    return (
        f"{count} sessions of a lost connection are closed before their client has come back: more than {most} sessions"
        f" or {most_bytes} bytes wait for clients. Look for what breaks connections, or set a lower connectionTTL."
    )


@error_of("DMQ5657", BrokerError)
def can_not_resume(peer: str, why: str) -> str:
    return f"a session can't go on by the connection of {peer} and is closed: {why}; its client opens another one."


# -- messages --------------------------------------------------------------------------------------------------------


@core_error("DMQ5634", CoreErrorCode.ILLEGAL_STATE)
def no_address() -> str:
    return "a message has no address, and its session no default one: set either."


@core_error("DMQ5635", CoreErrorCode.ILLEGAL_STATE)
def part_without_start() -> str:
    return "a part of a large message came without its beginning: send its headers first."


@core_error("DMQ5636", CoreErrorCode.LARGE_MESSAGE_ERROR_BODY)
def large_message_too_large(limit: int) -> str:
    return (
        f"a large message has more than {limit} bytes, which the journal takes, or its connection has more than four"
        " times as much under way: send less at once, or set a larger journal-file-size."
    )


@core_error("DMQ5637", CoreErrorCode.ADDRESS_DOES_NOT_EXIST)
def no_such_address(address: str) -> str:
    return f"there is no address '{shown(address)}' and its address-settings don't auto-create it: create it first."


# -- consumers -------------------------------------------------------------------------------------------------------


@core_error("DMQ5640", CoreErrorCode.QUEUE_DOES_NOT_EXIST)
def no_such_queue(name: str) -> str:
    return f"there is no queue '{shown(name)}': create it first; `delosmq queue stat` lists those that exist."


@core_error("DMQ5641", CoreErrorCode.ILLEGAL_STATE)
def consumer_taken(consumer_id: int) -> str:
    return f"the session has a consumer {consumer_id} already: choose another id, or close that one."


@core_error("DMQ5642", CoreErrorCode.ILLEGAL_STATE)
def not_delivered(message_id: int, consumer_id: int) -> str:
    return (
        f"message {message_id} is not in delivery to consumer {consumer_id}, so it can't be acknowledged: acknowledge"
        " what was delivered, once."
    )


# -- addresses and queues --------------------------------------------------------------------------------------------


@core_error("DMQ5645", CoreErrorCode.QUEUE_EXISTS)
def queue_exists(name: str) -> str:
    return f"there is a queue '{shown(name)}' already: use it, or choose another name."


@core_error("DMQ5646", CoreErrorCode.INVALID_TRANSIENT_QUEUE_USE)
def other_shared_queue(name: str, address: str, filter_text: str) -> str:
    return (
        f"the shared queue '{shown(name)}' is there with address '{shown(address)}' and filter"
        f" '{shown(filter_text)}': use the same, or another name."
    )


@core_error("DMQ5647", CoreErrorCode.ILLEGAL_STATE)
def queue_in_use(name: str) -> str:
    return f"the queue '{shown(name)}' has consumers, so it can't be deleted: close them first."


@core_error("DMQ5648", CoreErrorCode.INTERNAL_ERROR)
def wrong_routing(address: str, routing: str) -> str:
    return (
        f"the address '{shown(address)}' does not take {routing}, and its address-settings create nothing: use its"
        " routing type, or create it with both."
    )


# -- branches --------------------------------------------------------------------------------------------------------


@error_of("DMQ5650", CoreXaError)
def not_in_branch() -> str:
    return "the session works in no branch that it could suspend: start one first."


@error_of("DMQ5651", CoreXaError)
def xid_wrong(longest: int) -> str:
    return f"a part of an XID has {longest} bytes, and XA allows 64: let the coordinator choose a shorter one."


@error_of("DMQ5652", CoreXaError)
def branch_failed() -> str:
    return "its client has lost what it did in this branch: roll it back."


@error_of("DMQ5653", CoreXaError)
def in_another_branch() -> str:
    return "the session works in a branch already: end or suspend that one before another is resumed."
