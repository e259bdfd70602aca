"""The sentences with which a STOMP session refuses what its peer asks. None repeats a passcode."""

from delosmq.model.errors import BrokerError, MisuseError, PeerError, StorageError, error_of, peer_error
from delosmq.selectors.errors import SelectorError
from delosmq.sessions.login import RedirectError
from delosmq.wire.stomp.encoder import encode_frame

_SUPPORTED = "1.0,1.1,1.2"
_NO_COMMON_VERSION = "DMQ5103"
_SHOWN_CHARACTERS = 64
# What is wrong ends so, here and in what the engine says.
_REMEDY_FOLLOWS = (": ", "; ")
_LISTED = 5


def _shown(value: str) -> str:
    return repr(value if len(value) <= _SHOWN_CHARACTERS else value[:_SHOWN_CHARACTERS] + "...")


def error_frame(error: BrokerError, receipt: str, version: int) -> bytes:
    """The ERROR that tells a peer why: in its header what is wrong, in its body what to do as well.

    Args:
        receipt: what the refused frame asked for, "" for nothing.
    """
    text = str(error)
    pairs = [("message", _what_is_wrong(text)), ("content-type", "text/plain")]
    if receipt:
        pairs.insert(0, ("receipt-id", receipt))
    if isinstance(error, PeerError) and error.code == _NO_COMMON_VERSION:
        pairs.insert(0, ("version", _SUPPORTED))
    if isinstance(error, RedirectError):
        pairs.append(("redirect-to", error.place))
    detail = error.detail if isinstance(error, PeerError) else ""
    body = f"{text}\n{detail}\n" if detail else f"{text}\n"
    return encode_frame("ERROR", pairs, body.encode(), version)


def _what_is_wrong(text: str) -> str:
    """A refusal without what to do about it, which its body says."""
    code = text.find(": ") + 2
    ends = [end for end in (text.find(mark, code) for mark in _REMEDY_FOLLOWS) if end > 0]
    return text[: min(ends, default=len(text))].replace("\n", " ")


@peer_error("DMQ5101")
def not_connected(command: str) -> str:
    return f"{command} came before CONNECT: send CONNECT and wait for CONNECTED first."


@peer_error("DMQ5102")
def connected_already(command: str) -> str:
    return f"{command} on a connection that is connected already: open another connection."


@peer_error(_NO_COMMON_VERSION)
def no_common_version(offered: str) -> str:
    return f"accept-version {_shown(offered)} has no version we speak: offer one of 1.0, 1.1, 1.2."


@peer_error("DMQ5104")
def bad_heart_beat() -> str:
    return (
        "the header heart-beat of CONNECT is not two non-negative integers: write it as <ms the client can send>,"
        "<ms it wants to receive>, such as 10000,10000."
    )


@peer_error("DMQ5105")
def login_required(header: str) -> str:
    return f"CONNECT has no header {header}: this broker serves known users only; send login and passcode."


@peer_error("DMQ5106")
def login_refused(user: str) -> str:
    return f"login {_shown(user)} or its passcode is wrong: check both headers of CONNECT."


@peer_error("DMQ5107")
def unknown_command(command: str) -> str:
    return (
        f"{command} is no command for a STOMP server: use CONNECT, SEND, SUBSCRIBE, UNSUBSCRIBE, ACK, NACK, BEGIN,"
        " COMMIT, ABORT or DISCONNECT."
    )


@peer_error("DMQ5108")
def header_missing(header: str, command: str) -> str:
    return f"{command} has no header {header}, which it needs: add it."


@peer_error("DMQ5109")
def header_not_supported(header: str, command: str) -> str:
    return (
        f"the header {header} of {command} asks for repeated delivery, which this broker does not do: send once with"
        " AMQ_SCHEDULED_DELAY or AMQ_SCHEDULED_TIME, and again when it is time."
    )


@peer_error("DMQ5112")
def header_wrong(header: str, command: str, value: str, wanted: str) -> str:
    return f"the header {header} of {command} is {_shown(value)}: it must be {wanted}."


@peer_error("DMQ5113")
def subscription_taken(header: str, value: str) -> str:
    return (
        f"the header {header} of SUBSCRIBE is {_shown(value)}, and a subscription of this connection has it already:"
        " choose another id, or send UNSUBSCRIBE first."
    )


@peer_error("DMQ5114")
def too_many_subscriptions(limit: int) -> str:
    return (
        f"this connection has {limit} subscriptions, as many as it may: unsubscribe some, or open another connection."
    )


@peer_error("DMQ5115")
def unknown_subscription(header: str, value: str, command: str) -> str:
    return (
        f"the header {header} of {command} is {_shown(value)}, and no subscription of this connection has it:"
        f" use the id of a SUBSCRIBE."
    )


@peer_error("DMQ5116")
def unknown_delivery(header: str, value: str, command: str) -> str:
    return (
        f"the header {header} of {command} is {_shown(value)}, and no message is waiting for an answer under it:"
        " acknowledge each message once, on the connection that got it, and only if its subscription's ack is client"
        " or client-individual."
    )


@peer_error("DMQ5117")
def silent(peer: str, ttl_ms: int) -> str:
    return (
        f"nothing came from {peer} within its TTL of {ttl_ms} ms: agree on heart-beats in CONNECT, or raise"
        " connectionTtl of the acceptor."
    )


@error_of("DMQ5120", StorageError)
def not_given_back(peer: str, destination: str, error: StorageError) -> str:
    return (
        f"what the subscription of {peer} to {_shown(destination)} had answered or held could not be recorded:"
        f" {error}; it is delivered again at the latest after a restart. Make room for the journal."
    )


@peer_error("DMQ5121")
def transaction_taken(name: str) -> str:
    return (
        f"the header transaction of BEGIN is {_shown(name)}, and a transaction of this connection has that name"
        " already: choose another name, or send COMMIT or ABORT first."
    )


@peer_error("DMQ5122")
def unknown_transaction(name: str, command: str) -> str:
    return (
        f"the header transaction of {command} is {_shown(name)}, and no open transaction of this connection has that"
        " name: send BEGIN first, and nothing after COMMIT or ABORT."
    )


@peer_error("DMQ5123")
def too_many_transactions(limit: int) -> str:
    return f"this connection has {limit} transactions open, as many as it may: send COMMIT or ABORT for one of them."


@peer_error("DMQ5124")
def _selector_wrong(code: str, sentence: str) -> str:
    return f"the header selector of SUBSCRIBE can't be read ({code}): {sentence}."


def selector_wrong(error: SelectorError) -> PeerError:
    made = _selector_wrong(error.code, error.sentence)
    made.detail = error.picture
    return made


@peer_error("DMQ5125")
def client_id_missing(header: str, command: str) -> str:
    return (
        f"the header {header} of {command} names a durable subscription, which belongs to a client-id, and CONNECT had"
        " none: connect with the header client-id."
    )


@peer_error("DMQ5126")
def durable_needs_topic(header: str, destination: str) -> str:
    return (
        f"the header {header} of SUBSCRIBE asks for a durable subscription to {_shown(destination)}, which is a queue"
        " and keeps its messages anyway: leave the header out, or subscribe to a multicast address."
    )


@peer_error("DMQ5127")
def browser_not_durable(header: str) -> str:
    return (
        f"SUBSCRIBE has browser:true and {header}, and a durable subscription is there to be consumed: to look into"
        " one, browse address::client-id.name without that header."
    )


@peer_error("DMQ5128")
def temporary_foreign(destination: str) -> str:
    return (
        f"the header destination of SUBSCRIBE is {_shown(destination)}, the name under which others send to a temporary"
        " destination: only the connection that made it consumes from it, by its own name /temp-queue/NAME or"
        " /temp-topic/NAME."
    )


@peer_error("DMQ5129")
def temporary_wrong(destination: str, longest: int) -> str:
    return (
        f"{_shown(destination)} is no name of a temporary destination: add 1 to {longest} characters without '::' after"
        " the prefix."
    )


@peer_error("DMQ5130")
def too_many_temporaries(limit: int) -> str:
    return (
        f"this connection has {limit} temporary destinations, as many as it may: use them again, or open another"
        " connection."
    )


@error_of("DMQ5133", MisuseError)
def headers_without_effect(found: dict[str, str]) -> str:
    """For the log: the SUBSCRIBE is served.

    Args:
        found: each with the header it may stand for, or "".
    """
    listed = [
        f"{_shown(name)} (did you mean {meant}?)" if meant else _shown(name)
        for name, meant in list(found.items())[:_LISTED]
    ]
    return (
        f"SUBSCRIBE has headers that have no effect here: {', '.join(listed)}. Leave them out or correct them; this is"
        " said once for each connection."
    )


@error_of("DMQ5131", StorageError)
def not_rolled_back(peer: str, error: BrokerError) -> str:
    return (
        f"a transaction of {peer} was rolled back but what it had answered could not be recorded: {error}; a restart"
        " returns it. Make room for the journal."
    )
