"""The sentences of the client's surface; the classes are those of `delosmq.sessions.client_errors`."""

from delosmq.sessions.client_errors import (
    ClientOptionError,
    ConnectionLostError,
    IllegalStateError,
    MessageFormatError,
    TimedOutError,
    UnsupportedOperationError,
)


def wrong_option(where: str, name: str, nearest: str) -> ClientOptionError:
    meant = f"did you mean '{nearest}'?" if nearest else "see the manual's page on the client for those there are."
    return ClientOptionError("DMQ9050", f"{where}: there is no option '{name}'; {meant}")


def wrong_option_value(where: str, name: str, value: str, wanted: str) -> ClientOptionError:
    return ClientOptionError("DMQ9051", f"{where}: '{name}' is '{value}', but must be {wanted}.")


def no_tls(where: str, name: str) -> ClientOptionError:
    return ClientOptionError(
        "DMQ9085",
        f"{where}: '{name}' is about TLS, and there is none: write ssl:// for a port with TLS, or leave it out.",
    )


def wrong_url(url: str, remedy: str) -> ClientOptionError:
    return ClientOptionError("DMQ9052", f"'{url}' is no URL of a broker: {remedy}")


def no_destination() -> ClientOptionError:
    return ClientOptionError(
        "DMQ9053", "the producer was made without a destination: say destination= with each message."
    )


def other_destination(own: str) -> ClientOptionError:
    return ClientOptionError(
        "DMQ9054", f"the producer sends to {own} alone: make one without a destination for messages that name theirs."
    )


def wrong_destination(name: str, remedy: str) -> ClientOptionError:
    return ClientOptionError("DMQ9055", f"'{name}' is no destination: {remedy}")


def wrong_argument(name: str, value: object, wanted: str) -> ClientOptionError:
    return ClientOptionError("DMQ9056", f"{name} is {value!r:.100}, but must be {wanted}.")


def no_shared_subscriptions(topic: str, name: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        "DMQ9073",
        f"OpenWire has no shared subscriptions. Have all consume from 'topic://{topic}::{name}' (DelosMQ, Artemis), or"
        f" from the queue 'Consumer.{name}.VirtualTopic.{topic}' of the topic 'VirtualTopic.{topic}' (Classic too).",
    )


def has_listener() -> IllegalStateError:
    return IllegalStateError(
        "DMQ9057",
        "a consumer of this session has a listener, and a session delivers one message at a time: call receive() in"
        " another session, or take the listener away with set_listener(None).",
    )


def listener_set() -> IllegalStateError:
    return IllegalStateError(
        "DMQ9058", "the consumer has a listener already: take that away first with set_listener(None)."
    )


def foreign_loop() -> IllegalStateError:
    return IllegalStateError(
        "DMQ9059",
        "this belongs to another event loop: use it in the loop that connected, or the blocking client in threads.",
    )


def used_by_two(who: str) -> IllegalStateError:
    return IllegalStateError(
        "DMQ9081",
        f"another {who} is at work in this session, which is for one at a time: create a session for each {who}, or"
        " have one wait for the other.",
    )


def receives_already(destination: str) -> IllegalStateError:
    return IllegalStateError(
        "DMQ9083",
        f"this thread is amid receiving from the consumer of {destination}, and is interrupted by a signal handler that"
        " receives from it, too: have the handler set a flag and receive afterwards, or give it a consumer of its own.",
    )


def forked() -> IllegalStateError:
    return IllegalStateError(
        "DMQ9084",
        "the connection was made before this process was forked, and belongs to the parent: connect in the child.",
    )


def loop_over(loop: str) -> IllegalStateError:
    return IllegalStateError(
        "DMQ9082",
        "the loop that gave this message is over, and what it had not acknowledged has gone back: use the message"
        f" inside '{loop} message in connection.messages(...):', which acknowledges it before the next one. For single"
        " messages create a consumer and call receive().",
    )


def wrong_value(name: str, why: str) -> MessageFormatError:
    return MessageFormatError("DMQ9060", f"'{name}' can't be sent: {why}. Send it as text, or as a type that JMS has.")


def wrong_kind(kind: str, wanted: str, remedy: str) -> MessageFormatError:
    return MessageFormatError("DMQ9061", f"a {kind} has no {wanted}: {remedy}")


def unreadable(what: str, why: str) -> MessageFormatError:
    return MessageFormatError(
        "DMQ9062", f"the {what} of the message can't be read: {why.removesuffix('.')}. Look at what its sender sends."
    )


def unreachable(peer: str, why: str) -> ConnectionLostError:
    why = why or "it closed the connection without a word, as a port without TLS does when ssl:// is spoken to it"
    return ConnectionLostError(
        "DMQ9063", f"{peer} can't be reached: {why}. See whether the broker is up, and whether host and port are right."
    )


def no_local_broker(name: str, there: list[str]) -> ConnectionLostError:
    known = f"there are: {', '.join(there)}" if there else "there is none at all"
    return ConnectionLostError(
        "DMQ9072",
        f"no broker of this process is named '{name}'; {known}. Start it first, and connect to its vm_url.",
    )


def not_connected_in_time(peer: str, timeout_s: float) -> TimedOutError:
    return TimedOutError(
        "DMQ9064",
        f"{peer} did not answer as a broker within {timeout_s:g} s: see whether the port is that of an OpenWire"
        " acceptor and the scheme is right (ssl:// where the acceptor has TLS, else tcp://).",
    )


def still_not_connected(peer: str, wait_ms: int) -> TimedOutError:
    return TimedOutError(
        "DMQ9075",
        f"no broker of {peer} was there for {wait_ms} ms, so it was sent nothing of this: try again later, or"
        " wait for longer (timeout in the URL).",
    )


def left_for(peer: str, other: str, why: str) -> ConnectionLostError:
    return ConnectionLostError(
        "DMQ9079", f"the connection to {peer} is left for {other}: {why}. See that one's log if it is not wanted."
    )


def in_the_loop() -> IllegalStateError:
    return IllegalStateError(
        "DMQ9065",
        "the blocking client was called in its own event loop, which would wait for itself: call it in another thread.",
    )


def not_replied(destination: str, timeout_s: float) -> TimedOutError:
    return TimedOutError(
        "DMQ9070",
        f"no reply to a request to {destination} came within {timeout_s:g} s: see whether its service is up, or wait"
        " for longer.",
    )


def no_reply_to(message_id: str) -> IllegalStateError:
    return IllegalStateError(
        "DMQ9071", f"the message {message_id} does not say where to reply to: send it with request(), or set reply_to."
    )
