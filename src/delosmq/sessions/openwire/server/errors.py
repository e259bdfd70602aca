"""The errors of OpenWire sessions: sentences for the peer and the log."""

from typing import Final

from delosmq.model.errors import (
    XA_RBROLLBACK,
    XAER_INVAL,
    BrokerError,
    Scope,
)
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
    openwire_error,
)

# -- connection ------------------------------------------------------------------------------------------------------


@openwire_error("DMQ5230", IO, Scope.CONNECTION)
def not_negotiated(code: int) -> str:
    return f"a command of type {code} came before the WireFormatInfo: send that first."


@openwire_error("DMQ5231", IO, Scope.CONNECTION)
def negotiated_already() -> str:
    return "a second WireFormatInfo came: one begins a connection."


@openwire_error("DMQ5229", ILLEGAL_STATE, Scope.CONNECTION)
def connected_already() -> str:
    return "a second ConnectionInfo came: one opens the connection."


@openwire_error("DMQ5232", ILLEGAL_STATE)
def not_connected(code: int) -> str:
    return f"a command of type {code} came before the ConnectionInfo: send that first."


@openwire_error("DMQ5233")
def unexpected(code: int) -> str:
    return f"a command of type {code} is nothing that a client sends: leave it out."


@openwire_error("DMQ5234")
def field_missing(what: str, command: str) -> str:
    return f"{command} has no {what}: set it."


@openwire_error("DMQ5226", INVALID_CLIENT_ID, Scope.CONNECTION)
def no_client_id() -> str:
    return "No clientID specified for connection request: set one, which need mean nothing."


@openwire_error("DMQ5235", INVALID_CLIENT_ID, Scope.CONNECTION)
def client_id_taken(client_id: str, peer: str) -> str:
    return (
        f"Broker: the client id '{client_id}' is already connected from {peer}; close that connection, or choose"
        " another id."
    )


_SHOWN_USER: Final = 100
"""Characters of a name that a peer made up."""


@openwire_error("DMQ5236", SECURITY, Scope.CONNECTION)
def login_refused(user: str) -> str:
    # In the words of Classic, which clients look for.
    return f"User name [{user[:_SHOWN_USER]}] or password is invalid."


@openwire_error("DMQ5237", INACTIVITY, Scope.CONNECTION)
def silent(peer: str, timeout_ms: int) -> str:
    return f"nothing was heard of {peer} for {timeout_ms} ms (maxInactivityDuration); its connection is closed."


@openwire_error("DMQ5275")
def id_wrong(what: str, value: str, why: str) -> str:
    return f"the {what} '{value[:100]}' can't be used: {why}; choose another."


@openwire_error("DMQ5276")
def foreign(what: str, key: str, connection_id: str) -> str:
    return (
        f"the {what} {key} is none of connection {connection_id}: its id begins with that of another connection; use"
        " ids of this one."
    )


@openwire_error("DMQ5278", SECURITY, Scope.CONNECTION)
def connection_id_taken(connection_id: str, peer: str) -> str:
    return (
        f"connection {connection_id} is open already from {peer} for another user, who alone may open it again; choose"
        " another connection id."
    )


@openwire_error("DMQ5299", IO, Scope.CONNECTION)
def beyond_max_frame_size(message: str, limit: int, peer: str) -> str:
    return (
        f"{message} is larger than the maxFrameSize of {limit} agreed on with {peer}; its connection is closed: raise"
        " wireFormat.maxFrameSize in its URL, or openwireMaxFrameSize of the acceptor where that is the smaller one."
    )


@openwire_error("DMQ5238", JMS, Scope.CONNECTION)
def replaced(connection_id: str) -> str:
    return f"connection {connection_id} was opened again from elsewhere, so this one is closed."


@openwire_error("DMQ5239")
def not_given_back(peer: str, error: BrokerError) -> str:
    return f"{peer} left, and what it had open could not be given back in full: {error}"


# -- destinations ----------------------------------------------------------------------------------------------------


@openwire_error("DMQ5240", INVALID_DESTINATION)
def name_wrong(name: str, why: str) -> str:
    return f"the destination '{name}' can't be used: {why}."


@openwire_error("DMQ5241", DESTINATION_GONE)
def temporary_gone(name: str) -> str:
    return f"the temporary destination '{name}' does not exist: its connection has deleted it, or is gone."


@openwire_error("DMQ5242", INVALID_DESTINATION)
def temporary_foreign(name: str) -> str:
    return f"'{name}' is a temporary destination of another connection, which alone may use it so."


@openwire_error("DMQ5295", INVALID_DESTINATION)
def temporary_name_wrong(name: str, connection_id: str) -> str:
    return (
        f"'{name}' can't be a temporary destination of connection {connection_id}: choose a name that begins with"
        f" '{connection_id}:' and is no other address."
    )


@openwire_error("DMQ5293")
def destination_of_another(named: str, connection_id: str) -> str:
    return f"a DestinationInfo of connection {connection_id} has the connectionId '{named[:100]}': use its own."


@openwire_error("DMQ5243")
def destination_in_use(name: str) -> str:
    return f"Destination still has an active subscription: {name}; close its consumers first."


@openwire_error("DMQ5281")
def durable_subscribers(name: str) -> str:
    return (
        f"Destination still has an active subscription: {name} has durable subscriptions, or queues of a virtual topic;"
        " unsubscribe those, or delete their queues, first."
    )


@openwire_error("DMQ5244", RESOURCES)
def too_many(what: str, limit: int) -> str:
    return f"the connection has {limit} {what} already, as many as it may have: close some."


@openwire_error("DMQ5291", RESOURCES)
def too_many_destinations(there: int, more: int, limit: int) -> str:
    return (
        f"the consumers of the connection have {there} destinations and would have {more} more, but {limit} may be,"
        " each of a composite one counted, and one by which a client hears of temporary destinations: close some, or"
        " use another connection, as no setting changes this."
    )


@openwire_error("DMQ5292", RESOURCES)
def too_many_queues(peer: str, limit: int) -> str:
    return (
        f"the consumers of {peer} read {limit} queues by wildcards, as many as a connection may, so they don't get any"
        " others: use wildcards that stand for fewer, or more connections."
    )


# -- consumers -------------------------------------------------------------------------------------------------------


@openwire_error("DMQ5250", INVALID_SELECTOR)
def selector_wrong(text: str) -> str:
    return text


@openwire_error("DMQ5251")
def client_id_missing(name: str) -> str:
    return f"the durable subscription '{name}' needs a client id: set one before the connection is used."


@openwire_error("DMQ5256")
def durable_temporary(name: str) -> str:
    return (
        f"Cannot create a durable subscription for a temporary topic: '{name}' ends with its connection; use a topic."
    )


@openwire_error("DMQ5252")
def subscription_in_use(client_id: str, name: str) -> str:
    return f"Durable consumer is in use for client: {client_id} and subscriptionName: {name}; close it first."


@openwire_error("DMQ5284")
def subscription_name_taken(name: str, queue: str) -> str:
    return (
        f"the durable subscription '{name}' would be the queue '{queue}', which is no subscription: choose another"
        " name."
    )


@openwire_error("DMQ5253", INVALID_DESTINATION)
def subscription_unknown(name: str) -> str:
    return f"No durable subscription exists for clientID and subscriptionName: {name}; nothing is to be removed."


@openwire_error("DMQ5254")
def subscription_active(name: str) -> str:
    return f"Durable consumer is in use: {name}; close its consumer before unsubscribing."


@openwire_error("DMQ5283")
def durable_composite(name: str) -> str:
    return (
        f"the durable subscription '{name}' names several topics, and each would need one of its own: make one for"
        " each, or use a wildcard."
    )


@openwire_error("DMQ5282", SECURITY)
def queues_left_out(name: str, count: int, cause: BrokerError) -> str:
    return f"a consumer of '{name}' is not given {count} queues that its user may not read, the last because: {cause}"


@openwire_error("DMQ5286", DESTINATION_GONE)
def queue_lost(consumer: str, queue: str) -> str:
    return (
        f"queue '{queue}' was deleted under the consumer {consumer}, which gets nothing until there is a queue of that"
        " name again: it reads that then; close it to end it for good."
    )


@openwire_error("DMQ5287", DESTINATION_GONE)
def subscription_renewed(consumer: str) -> str:
    return (
        f"the subscription of the consumer {consumer} was deleted: it has a new one, without the messages of the old"
        " one; close the consumer to end it for good."
    )


@openwire_error("DMQ5288", DESTINATION_GONE)
def subscription_deleted(consumer: str, why: str) -> str:
    return f"what the consumer {consumer} read was deleted and is not made again, so the consumer is closed: {why}."


@openwire_error("DMQ5255")
def prefetch_wrong(prefetch: int) -> str:
    return f"a prefetch of {prefetch} makes no sense: 0 or more."


@openwire_error("DMQ5257")
def session_unknown(what: str, key: str) -> str:
    return f"session {key} was not opened on this connection, so it can't have a {what}: open it first."


@openwire_error("DMQ5258")
def nothing_to_remove(what: str, key: str) -> str:
    return f"this connection has no {what} {key} to remove: it was closed already, or never opened."


@openwire_error("DMQ5296", IO)
def not_removable() -> str:
    return "a RemoveInfo names what is no connection, session, producer or consumer: name one."


@openwire_error("DMQ5259")
def pull_unknown(key: str) -> str:
    return f"consumer {key} is to pull, but this connection has none of that id: open it first."


@openwire_error("DMQ5274")
def repetition_refused(name: str) -> str:
    return (
        f"the property {name} asks for repeated delivery, which this broker does not do: send once with"
        " AMQ_SCHEDULED_DELAY, and again when it is time."
    )


# -- acknowledgements ------------------------------------------------------------------------------------------------


@openwire_error("DMQ5260")
def never_dispatched(what: str, key: str) -> str:
    return (
        f"Unmatched acknowledge: could not find message {key} ({what}) among those dispatched to the consumer and not"
        " acknowledged yet; acknowledge what was dispatched."
    )


@openwire_error("DMQ5294")
def sequence_missing(key: str) -> str:
    return (
        f"message {key} is acknowledged without the brokerSequenceId that it came with, and was not found among those"
        " that could be read so soon: give back its MessageId as it came."
    )


@openwire_error("DMQ5261")
def count_wrong(count: int, found: int) -> str:
    return f"Unmatched acknowledge: the range counts {count} messages, but {found} were dispatched in it; count those."


@openwire_error("DMQ5262")
def poison_in_transaction() -> str:
    return "Poison ack cannot be transacted; send it outside, after the transaction was rolled back."


@openwire_error("DMQ5263")
def unknown_ack_type(ack_type: int) -> str:
    return f"Invalid acknowledgment: {ack_type} is no type of one; 0 to 6 are."


# -- transactions ----------------------------------------------------------------------------------------------------


@openwire_error("DMQ5270")
def unknown_transaction(key: str) -> str:
    return f"Transaction '{key}' has not been started; begin it first."


@openwire_error("DMQ5271")
def unknown_transaction_command(kind: int) -> str:
    return f"{kind} is no type of a TransactionInfo; 0 to 7 are."


@openwire_error("DMQ5272", XA)
def not_a_branch(key: str) -> str:
    return f"transaction '{key}' is local, so it can't do that; commit or roll it back. xaErrorCode:-6"


@openwire_error("DMQ5273", ROLLED_BACK)
def rollback_only(key: str, cause: str) -> str:
    return _rolled_back(key, cause)


@openwire_error("DMQ5273", XA)
def rollback_only_branch(key: str, cause: str) -> str:
    return f"{_rolled_back(key, cause)} xaErrorCode:{XA_RBROLLBACK}"


def _rolled_back(key: str, cause: str) -> str:
    return f"Transaction {key} was rolled back, as something sent in it without waiting for an answer failed: {cause}"


@openwire_error("DMQ5225", XA)
def sends_lost(key: str, count: int) -> str:
    return (
        f"a connection that joined branch {key} was lost while {count} messages it had sent there waited for space:"
        f" roll the branch back. xaErrorCode:{XA_RBROLLBACK}"
    )


@openwire_error("DMQ5277", XA)
def branch_id_wrong(length: int, limit: int) -> str:
    return (
        f"a part of the branch's XID has {length} bytes, but XA allows {limit}: let the coordinator choose a shorter"
        f" one. xaErrorCode:{XAER_INVAL}"
    )


# -- advisories ------------------------------------------------------------------------------------------------------


@openwire_error("DMQ5280")
def advisories_lost(limit: int) -> str:
    return (
        f"{limit} advisories wait to be sent, so what happens meanwhile is not told; switch off advisory-for-* where"
        " no client needs them."
    )


# -- slow consumers --------------------------------------------------------------------------------------------------


@openwire_error("DMQ5289")
def consumer_slow(key: str, destination: str, why: str) -> str:
    return f"Consumer {key} of '{destination}' is closed: it {why}. {_QUICKER}"


@openwire_error("DMQ5290")
def connection_slow(peer: str, key: str, destination: str, why: str) -> str:
    return f"The connection of {peer} is closed: its consumer {key} of '{destination}' {why}. {_QUICKER}"


_QUICKER: Final = "Give it less to do for each message, a smaller prefetch or more consumers beside it; or more time."
