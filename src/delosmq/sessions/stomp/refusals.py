"""The sentences with which a STOMP session refuses what its peer asks. None repeats a passcode."""

from delosmq.model.errors import PeerError, StorageError

_SHOWN_CHARACTERS = 64


def _shown(value: str) -> str:
    return repr(value if len(value) <= _SHOWN_CHARACTERS else value[:_SHOWN_CHARACTERS] + "...")


def not_connected(command: str) -> PeerError:
    return PeerError("DMQ5101", f"{command} came before CONNECT: send CONNECT and wait for CONNECTED first.")


def connected_already(command: str) -> PeerError:
    return PeerError("DMQ5102", f"{command} on a connection that is connected already: open another connection.")


def no_common_version(offered: str) -> PeerError:
    return PeerError(
        "DMQ5103", f"accept-version {_shown(offered)} has no version we speak: offer one of 1.0, 1.1, 1.2."
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


def login_refused() -> PeerError:
    return PeerError("DMQ5106", "login or passcode is wrong: check both headers of CONNECT.")


def unknown_command(command: str) -> PeerError:
    return PeerError(
        "DMQ5107",
        f"{command} is no command for a STOMP server: use CONNECT, SEND, SUBSCRIBE, UNSUBSCRIBE, ACK, NACK or"
        " DISCONNECT.",
    )


def header_missing(header: str, command: str) -> PeerError:
    return PeerError("DMQ5108", f"{command} has no header {header}, which it needs: add it.")


def header_not_supported(header: str, command: str) -> PeerError:
    return PeerError(
        "DMQ5109", f"the header {header} of {command} is not supported yet: leave it out, if you can do without."
    )


def command_not_supported(command: str) -> PeerError:
    return PeerError(
        "DMQ5110", f"{command} is not supported yet (transactions): send and acknowledge without a transaction."
    )


def temporary_not_supported(header: str, prefix: str) -> PeerError:
    return PeerError(
        "DMQ5111",
        f"the header {header} names a temporary destination ({prefix}), which is not supported yet:"
        " use a queue or topic with a name of its own.",
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
