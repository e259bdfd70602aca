"""What goes wrong, in words for the peer and the log."""

from typing import Final

from delosmq.engine.api import xa
from delosmq.model.errors import BrokerError, Scope
from delosmq.sessions.openwire.server.java_exceptions import (
    DESTINATION_GONE,
    ILLEGAL_STATE,
    INACTIVITY,
    INVALID_CLIENT_ID,
    INVALID_DESTINATION,
    INVALID_SELECTOR,
    IO,
    JMS,
    RESOURCES,
    ROLLED_BACK,
    SECURITY,
    XA,
    OpenWireError,
)

# -- connection ------------------------------------------------------------------------------------------------------


def not_negotiated(code: int) -> OpenWireError:
    return OpenWireError(
        "DMQ5230", IO, f"a command of type {code} came before the WireFormatInfo: send that first.", Scope.CONNECTION
    )


def negotiated_already() -> OpenWireError:
    return OpenWireError("DMQ5231", IO, "a second WireFormatInfo came: one begins a connection.", Scope.CONNECTION)


def connected_already() -> OpenWireError:
    return OpenWireError(
        "DMQ5229", ILLEGAL_STATE, "a second ConnectionInfo came: one opens the connection.", Scope.CONNECTION
    )


def not_connected(code: int) -> OpenWireError:
    return OpenWireError(
        "DMQ5232", ILLEGAL_STATE, f"a command of type {code} came before the ConnectionInfo: send that first."
    )


def unexpected(code: int) -> OpenWireError:
    return OpenWireError("DMQ5233", JMS, f"a command of type {code} is nothing that a client sends: leave it out.")


def field_missing(what: str, command: str) -> OpenWireError:
    return OpenWireError("DMQ5234", JMS, f"{command} has no {what}: set it.")


def no_client_id() -> OpenWireError:
    return OpenWireError(
        "DMQ5226",
        INVALID_CLIENT_ID,
        "No clientID specified for connection request: set one, which need mean nothing.",
        Scope.CONNECTION,
    )


def client_id_taken(client_id: str, peer: str) -> OpenWireError:
    return OpenWireError(
        "DMQ5235",
        INVALID_CLIENT_ID,
        f"Broker: the client id '{client_id}' is already connected from {peer}; close that connection, or choose"
        " another id.",
        Scope.CONNECTION,
    )


_SHOWN_USER: Final = 100
"""Characters of a name that a peer made up."""


def login_refused(user: str) -> OpenWireError:
    # In the words of Classic, which clients look for.
    return OpenWireError(
        "DMQ5236", SECURITY, f"User name [{user[:_SHOWN_USER]}] or password is invalid.", Scope.CONNECTION
    )


def silent(peer: str, timeout_ms: int) -> OpenWireError:
    return OpenWireError(
        "DMQ5237",
        INACTIVITY,
        f"nothing was heard of {peer} for {timeout_ms} ms (maxInactivityDuration); its connection is closed.",
        Scope.CONNECTION,
    )


def id_wrong(what: str, value: str, why: str) -> OpenWireError:
    return OpenWireError("DMQ5275", JMS, f"the {what} '{value[:100]}' can't be used: {why}; choose another.")


def foreign(what: str, key: str, connection_id: str) -> OpenWireError:
    return OpenWireError(
        "DMQ5276",
        JMS,
        f"the {what} {key} is none of connection {connection_id}: its id begins with that of another connection; use"
        " ids of this one.",
    )


def connection_id_taken(connection_id: str, peer: str) -> OpenWireError:
    return OpenWireError(
        "DMQ5278",
        SECURITY,
        f"connection {connection_id} is open already from {peer} for another user, who alone may open it again; choose"
        " another connection id.",
        Scope.CONNECTION,
    )


def beyond_max_frame_size(message: str, limit: int, peer: str) -> OpenWireError:
    return OpenWireError(
        "DMQ5299",
        IO,
        f"{message} is larger than the maxFrameSize of {limit} agreed on with {peer}, whose connection is closed; raise"
        " wireFormat.maxFrameSize in its URL, or openwireMaxFrameSize of the acceptor where that is the smaller one.",
        Scope.CONNECTION,
    )


def replaced(connection_id: str) -> OpenWireError:
    return OpenWireError(
        "DMQ5238",
        JMS,
        f"connection {connection_id} was opened again from elsewhere, so this one is closed.",
        Scope.CONNECTION,
    )


def not_given_back(peer: str, error: BrokerError) -> OpenWireError:
    return OpenWireError("DMQ5239", JMS, f"{peer} left, and what it had open could not be given back in full: {error}")


# -- destinations ----------------------------------------------------------------------------------------------------


def name_wrong(name: str, why: str) -> OpenWireError:
    return OpenWireError("DMQ5240", INVALID_DESTINATION, f"the destination '{name}' can't be used: {why}.")


def temporary_gone(name: str) -> OpenWireError:
    return OpenWireError(
        "DMQ5241",
        DESTINATION_GONE,
        f"the temporary destination '{name}' does not exist: its connection has deleted it, or is gone.",
    )


def temporary_foreign(name: str) -> OpenWireError:
    return OpenWireError(
        "DMQ5242",
        INVALID_DESTINATION,
        f"'{name}' is a temporary destination of another connection, which alone may use it so.",
    )


def temporary_name_wrong(name: str, connection_id: str) -> OpenWireError:
    return OpenWireError(
        "DMQ5295",
        INVALID_DESTINATION,
        f"'{name}' can't be a temporary destination of connection {connection_id}: choose a name that begins with"
        f" '{connection_id}:' and is no other address.",
    )


def destination_of_another(named: str, connection_id: str) -> OpenWireError:
    return OpenWireError(
        "DMQ5293",
        JMS,
        f"a DestinationInfo of connection {connection_id} has the connectionId '{named[:100]}': use its own.",
    )


def destination_in_use(name: str) -> OpenWireError:
    return OpenWireError(
        "DMQ5243",
        JMS,
        f"Destination still has an active subscription: {name}; close its consumers first.",
    )


def durable_subscribers(name: str) -> OpenWireError:
    return OpenWireError(
        "DMQ5281",
        JMS,
        f"Destination still has an active subscription: {name} has durable subscriptions, or queues of a virtual topic;"
        " unsubscribe those, or delete their queues, first.",
    )


def too_many(what: str, limit: int) -> OpenWireError:
    return OpenWireError(
        "DMQ5244", RESOURCES, f"the connection has {limit} {what} already, as many as it may have: close some."
    )


def too_many_destinations(there: int, more: int, limit: int) -> OpenWireError:
    return OpenWireError(
        "DMQ5291",
        RESOURCES,
        f"the consumers of the connection have {there} destinations and would have {more} more, but {limit} may be,"
        " each of a composite one counted: close some.",
    )


def too_many_queues(peer: str, limit: int) -> OpenWireError:
    return OpenWireError(
        "DMQ5292",
        RESOURCES,
        f"the consumers of {peer} read {limit} queues by wildcards, as many as a connection may, so they don't get any"
        " others: use wildcards that stand for fewer, or more connections.",
    )


# -- consumers -------------------------------------------------------------------------------------------------------


def selector_wrong(text: str) -> OpenWireError:
    return OpenWireError("DMQ5250", INVALID_SELECTOR, text)


def client_id_missing(name: str) -> OpenWireError:
    return OpenWireError(
        "DMQ5251", JMS, f"the durable subscription '{name}' needs a client id: set one before the connection is used."
    )


def durable_temporary(name: str) -> OpenWireError:
    return OpenWireError(
        "DMQ5256",
        JMS,
        f"Cannot create a durable subscription for a temporary topic: '{name}' ends with its connection; use a topic.",
    )


def subscription_in_use(client_id: str, name: str) -> OpenWireError:
    return OpenWireError(
        "DMQ5252",
        JMS,
        f"Durable consumer is in use for client: {client_id} and subscriptionName: {name}; close it first.",
    )


def subscription_name_taken(name: str, queue: str) -> OpenWireError:
    return OpenWireError(
        "DMQ5284",
        JMS,
        f"the durable subscription '{name}' would be the queue '{queue}', which is no subscription: choose another"
        " name.",
    )


def subscription_unknown(name: str) -> OpenWireError:
    return OpenWireError(
        "DMQ5253",
        INVALID_DESTINATION,
        f"No durable subscription exists for clientID and subscriptionName: {name}; nothing is to be removed.",
    )


def subscription_active(name: str) -> OpenWireError:
    return OpenWireError(
        "DMQ5254", JMS, f"Durable consumer is in use: {name}; close its consumer before unsubscribing."
    )


def durable_composite(name: str) -> OpenWireError:
    return OpenWireError(
        "DMQ5283",
        JMS,
        f"the durable subscription '{name}' names several topics, and each would need one of its own: make one for"
        " each, or use a wildcard.",
    )


def queues_left_out(name: str, count: int, cause: BrokerError) -> OpenWireError:
    return OpenWireError(
        "DMQ5282",
        SECURITY,
        f"a consumer of '{name}' is not given {count} queues that its user may not read, the last because: {cause}",
    )


def queue_lost(consumer: str, queue: str) -> OpenWireError:
    return OpenWireError(
        "DMQ5286",
        DESTINATION_GONE,
        f"queue '{queue}' was deleted under the consumer {consumer}, which gets nothing until there is a queue of that"
        " name again: it reads that then; close it to end it for good.",
    )


def subscription_renewed(consumer: str) -> OpenWireError:
    return OpenWireError(
        "DMQ5287",
        DESTINATION_GONE,
        f"the subscription of the consumer {consumer} was deleted: it has a new one, without the messages of the old"
        " one; close the consumer to end it for good.",
    )


def subscription_deleted(consumer: str, why: str) -> OpenWireError:
    return OpenWireError(
        "DMQ5288",
        DESTINATION_GONE,
        f"what the consumer {consumer} read was deleted and is not made again, so the consumer is closed: {why}.",
    )


def prefetch_wrong(prefetch: int) -> OpenWireError:
    return OpenWireError("DMQ5255", JMS, f"a prefetch of {prefetch} makes no sense: 0 or more.")


def session_unknown(what: str, key: str) -> OpenWireError:
    return OpenWireError(
        "DMQ5257", JMS, f"session {key} was not opened on this connection, so it can't have a {what}: open it first."
    )


def nothing_to_remove(what: str, key: str) -> OpenWireError:
    return OpenWireError(
        "DMQ5258", JMS, f"this connection has no {what} {key} to remove: it was closed already, or never opened."
    )


def not_removable() -> OpenWireError:
    return OpenWireError(
        "DMQ5296", IO, "a RemoveInfo names what is no connection, session, producer or consumer: name one."
    )


def pull_unknown(key: str) -> OpenWireError:
    return OpenWireError(
        "DMQ5259", JMS, f"consumer {key} is to pull, but this connection has none of that id: open it first."
    )


def repetition_refused(name: str) -> OpenWireError:
    return OpenWireError(
        "DMQ5274",
        JMS,
        f"the property {name} asks for repeated delivery, which this broker does not do: send once with"
        " AMQ_SCHEDULED_DELAY, and again when it is time.",
    )


# -- acknowledgements ------------------------------------------------------------------------------------------------


def never_dispatched(what: str, key: str) -> OpenWireError:
    return OpenWireError(
        "DMQ5260",
        JMS,
        f"Unmatched acknowledge: could not find message {key} ({what}) among those dispatched to the consumer and not"
        " acknowledged yet; acknowledge what was dispatched.",
    )


def sequence_missing(key: str) -> OpenWireError:
    return OpenWireError(
        "DMQ5294",
        JMS,
        f"message {key} is acknowledged without the brokerSequenceId that it came with, and was not found among those"
        " that could be read so soon: give back its MessageId as it came.",
    )


def count_wrong(count: int, found: int) -> OpenWireError:
    return OpenWireError(
        "DMQ5261",
        JMS,
        f"Unmatched acknowledge: the range counts {count} messages, but {found} were dispatched in it; count those.",
    )


def poison_in_transaction() -> OpenWireError:
    return OpenWireError(
        "DMQ5262", JMS, "Poison ack cannot be transacted; send it outside, after the transaction was rolled back."
    )


def unknown_ack_type(ack_type: int) -> OpenWireError:
    return OpenWireError("DMQ5263", JMS, f"Invalid acknowledgment: {ack_type} is no type of one; 0 to 6 are.")


# -- transactions ----------------------------------------------------------------------------------------------------


def unknown_transaction(key: str) -> OpenWireError:
    return OpenWireError("DMQ5270", JMS, f"Transaction '{key}' has not been started; begin it first.")


def unknown_transaction_command(kind: int) -> OpenWireError:
    return OpenWireError("DMQ5271", JMS, f"{kind} is no type of a TransactionInfo; 0 to 7 are.")


def not_a_branch(key: str) -> OpenWireError:
    return OpenWireError(
        "DMQ5272", XA, f"transaction '{key}' is local, so it can't do that; commit or roll it back. xaErrorCode:-6"
    )


def doomed(key: str, cause: str) -> OpenWireError:
    return OpenWireError("DMQ5273", ROLLED_BACK, _rolled_back(key, cause))


def doomed_branch(key: str, cause: str) -> OpenWireError:
    return OpenWireError("DMQ5273", XA, f"{_rolled_back(key, cause)} xaErrorCode:{xa.XA_RBROLLBACK}")


def _rolled_back(key: str, cause: str) -> str:
    return f"Transaction {key} was rolled back, as something sent in it without waiting for an answer failed: {cause}"


def sends_lost(key: str, count: int) -> OpenWireError:
    return OpenWireError(
        "DMQ5225",
        XA,
        f"a connection that joined branch {key} was lost while {count} messages it had sent there waited for space:"
        f" roll the branch back. xaErrorCode:{xa.XA_RBROLLBACK}",
    )


def branch_id_wrong(length: int, limit: int) -> OpenWireError:
    return OpenWireError(
        "DMQ5277",
        XA,
        f"a part of the branch's XID has {length} bytes, but XA allows {limit}: let the coordinator choose a shorter"
        f" one. xaErrorCode:{xa.XAER_INVAL}",
    )


# -- advisories ------------------------------------------------------------------------------------------------------


def advisories_lost(limit: int) -> OpenWireError:
    return OpenWireError(
        "DMQ5280",
        JMS,
        f"{limit} advisories wait to be sent, so what happens meanwhile is not told; switch off advisory-for-* where"
        " nobody needs them.",
    )


# -- slow consumers --------------------------------------------------------------------------------------------------


def consumer_slow(key: str, destination: str, why: str) -> OpenWireError:
    return OpenWireError(
        "DMQ5289",
        JMS,
        f"Consumer {key} of '{destination}' is closed: it {why}. {_QUICKER}",
    )


def connection_slow(peer: str, key: str, destination: str, why: str) -> OpenWireError:
    return OpenWireError(
        "DMQ5290",
        JMS,
        f"The connection of {peer} is closed: its consumer {key} of '{destination}' {why}. {_QUICKER}",
    )


_QUICKER: Final = "Give it less to do for each message, a smaller prefetch or more consumers beside it; or more time."
