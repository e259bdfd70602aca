"""The sentences with which a STOMP session refuses what its peer asks. None repeats a passcode."""

from delosmq.model.errors import BrokerError, PeerError, StorageError
from delosmq.selectors.errors import SelectorError
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
    detail = error.detail if isinstance(error, PeerError) else ""
    body = f"{text}\n{detail}\n" if detail else f"{text}\n"
    return encode_frame("ERROR", pairs, body.encode(), version)


def _what_is_wrong(text: str) -> str:
    """A refusal without what to do about it, which its body says."""
    code = text.find(": ") + 2
    ends = [end for end in (text.find(mark, code) for mark in _REMEDY_FOLLOWS) if end > 0]
    return text[: min(ends, default=len(text))].replace("\n", " ")


def not_connected(command: str) -> PeerError:
    return PeerError("DMQ5101", f"{command} came before CONNECT: send CONNECT and wait for CONNECTED first.")


def connected_already(command: str) -> PeerError:
    return PeerError("DMQ5102", f"{command} on a connection that is connected already: open another connection.")


def no_common_version(offered: str) -> PeerError:
    return PeerError(
        _NO_COMMON_VERSION, f"accept-version {_shown(offered)} has no version we speak: offer one of 1.0, 1.1, 1.2."
    )


def bad_heart_beat() -> PeerError:
    return PeerError(
        "DMQ5104",
        "the header heart-beat of CONNECT is not two non-negative integers: write it as <ms the client can send>,"
        "<ms it wants to receive>, such as 10000,10000.",
    )


def login_required(header: str) -> PeerError:
    return PeerError(
        "DMQ5105", f"CONNECT has no header {header}: this broker serves known users only; send login and passcode."
    )


def login_refused(user: str) -> PeerError:
    return PeerError("DMQ5106", f"login {_shown(user)} or its passcode is wrong: check both headers of CONNECT.")


def unknown_command(command: str) -> PeerError:
    return PeerError(
        "DMQ5107",
        f"{command} is no command for a STOMP server: use CONNECT, SEND, SUBSCRIBE, UNSUBSCRIBE, ACK, NACK, BEGIN,"
        " COMMIT, ABORT or DISCONNECT.",
    )


def header_missing(header: str, command: str) -> PeerError:
    return PeerError("DMQ5108", f"{command} has no header {header}, which it needs: add it.")


def header_not_supported(header: str, command: str) -> PeerError:
    return PeerError(
        "DMQ5109",
        f"the header {header} of {command} asks for repeated delivery, which this broker does not do: send once with"
        " AMQ_SCHEDULED_DELAY or AMQ_SCHEDULED_TIME, and again when it is time.",
    )


def header_wrong(header: str, command: str, value: str, wanted: str) -> PeerError:
    return PeerError("DMQ5112", f"the header {header} of {command} is {_shown(value)}: it must be {wanted}.")


def subscription_taken(header: str, value: str) -> PeerError:
    return PeerError(
        "DMQ5113",
        f"the header {header} of SUBSCRIBE is {_shown(value)}, and a subscription of this connection has it already:"
        " choose another id, or send UNSUBSCRIBE first.",
    )


def too_many_subscriptions(limit: int) -> PeerError:
    return PeerError(
        "DMQ5114",
        f"this connection has {limit} subscriptions, as many as it may: unsubscribe some, or open another connection.",
    )


def unknown_subscription(header: str, value: str, command: str) -> PeerError:
    return PeerError(
        "DMQ5115",
        f"the header {header} of {command} is {_shown(value)}, and no subscription of this connection has it:"
        f" use the id of a SUBSCRIBE.",
    )


def unknown_delivery(header: str, value: str, command: str) -> PeerError:
    return PeerError(
        "DMQ5116",
        f"the header {header} of {command} is {_shown(value)}, and no message is waiting for an answer under it:"
        " acknowledge each message once, on the connection that got it, and only if its subscription's ack is client"
        " or client-individual.",
    )


def silent(peer: str, ttl_ms: int) -> PeerError:
    return PeerError(
        "DMQ5117",
        f"nothing came from {peer} within its TTL of {ttl_ms} ms: agree on heart-beats in CONNECT, or raise"
        " connectionTtl of the acceptor.",
    )


def stopping() -> PeerError:
    return PeerError("DMQ5118", "the broker is stopping: connect again later.")


def not_given_back(peer: str, destination: str, error: StorageError) -> StorageError:
    return StorageError(
        "DMQ5120",
        f"what the subscription of {peer} to {_shown(destination)} had answered or held could not be recorded:"
        f" {error}; it is delivered again at the latest after a restart. Make room for the journal.",
    )


def transaction_taken(name: str) -> PeerError:
    return PeerError(
        "DMQ5121",
        f"the header transaction of BEGIN is {_shown(name)}, and a transaction of this connection has that name"
        " already: choose another name, or send COMMIT or ABORT first.",
    )


def unknown_transaction(name: str, command: str) -> PeerError:
    return PeerError(
        "DMQ5122",
        f"the header transaction of {command} is {_shown(name)}, and no open transaction of this connection has that"
        " name: send BEGIN first, and nothing after COMMIT or ABORT.",
    )


def too_many_transactions(limit: int) -> PeerError:
    return PeerError(
        "DMQ5123",
        f"this connection has {limit} transactions open, as many as it may: send COMMIT or ABORT for one of them.",
    )


def selector_wrong(error: SelectorError) -> PeerError:
    return PeerError(
        "DMQ5124",
        f"the header selector of SUBSCRIBE can't be read ({error.code}): {error.sentence}.",
        detail=error.picture,
    )


def client_id_missing(header: str, command: str) -> PeerError:
    return PeerError(
        "DMQ5125",
        f"the header {header} of {command} names a durable subscription, which belongs to a client-id, and CONNECT had"
        " none: connect with the header client-id.",
    )


def durable_needs_topic(header: str, destination: str) -> PeerError:
    return PeerError(
        "DMQ5126",
        f"the header {header} of SUBSCRIBE asks for a durable subscription to {_shown(destination)}, which is a queue"
        " and keeps its messages anyway: leave the header out, or subscribe to a multicast address.",
    )


def browser_not_durable(header: str) -> PeerError:
    return PeerError(
        "DMQ5127",
        f"SUBSCRIBE has browser:true and {header}, and a durable subscription is there to be consumed: to look into"
        " one, browse address::client-id.name without that header.",
    )


def temporary_foreign(destination: str) -> PeerError:
    return PeerError(
        "DMQ5128",
        f"the header destination of SUBSCRIBE is {_shown(destination)}, the name under which others send to a temporary"
        " destination: only the connection that made it consumes from it, by its own name /temp-queue/NAME or"
        " /temp-topic/NAME.",
    )


def temporary_wrong(destination: str, longest: int) -> PeerError:
    return PeerError(
        "DMQ5129",
        f"{_shown(destination)} is no name of a temporary destination: add 1 to {longest} characters without '::' after"
        " the prefix.",
    )


def too_many_temporaries(limit: int) -> PeerError:
    return PeerError(
        "DMQ5130",
        f"this connection has {limit} temporary destinations, as many as it may: use them again, or open another"
        " connection.",
    )


def headers_without_effect(found: dict[str, str]) -> PeerError:
    """For the log: the SUBSCRIBE is served.

    Args:
        found: each with the header it may stand for, or "".
    """
    listed = [
        f"{_shown(name)} (did you mean {meant}?)" if meant else _shown(name)
        for name, meant in list(found.items())[:_LISTED]
    ]
    return PeerError(
        "DMQ5133",
        f"SUBSCRIBE has headers that have no effect here: {', '.join(listed)}. Leave them out or correct them; this is"
        " said once for each connection.",
    )


def not_rolled_back(peer: str, error: BrokerError) -> StorageError:
    return StorageError(
        "DMQ5131",
        f"a transaction of {peer} was rolled back but what it had answered could not be recorded: {error}; a restart"
        " returns it. Make room for the journal.",
    )
