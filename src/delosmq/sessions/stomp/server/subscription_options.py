"""What a SUBSCRIBE asks for beside a destination and credit: which messages, in what manner, for how long.

Source: StompConnection of Artemis for durable subscriptions and no-local, ProtocolConverter of ActiveMQ Classic for
``activemq.`` headers and browsers.
"""

from typing import Final

from delosmq.engine.api import PLAIN, ConsumerOptions, SubscriptionOptions
from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.names import QUEUE_MARK
from delosmq.selectors.errors import SelectorError
from delosmq.selectors.selector import WHITESPACE, Selector, parse_selector
from delosmq.sessions.names import durable_queue_name
from delosmq.sessions.no_local import without_own
from delosmq.sessions.stomp.server.destinations import StompTarget
from delosmq.sessions.stomp.server.errors import (
    browser_not_durable,
    client_id_missing,
    durable_needs_topic,
    header_wrong,
    selector_wrong,
)
from delosmq.sessions.stomp.server.headers import SMALL, read_flag, read_number

DURABLE_NAMES: Final = (
    "durable-subscription-name",
    "durable-subscriber-name",
    "activemq.subscriptionName",
    "activemq.subcriptionName",
)
"""The last is how it was written in Classic's documentation."""

_COMMAND: Final = "SUBSCRIBE"
_LONGEST_NAME: Final = 1_024


class StompSubscriptionOptions:
    """What was read.

    Attributes:
        mark: what `CONNECTION_MARK` must say in messages of this connection from now on; "" for nothing.
    """

    def __init__(self, options: ConsumerOptions, subscription: SubscriptionOptions, mark: str) -> None:
        self.options = options
        self.subscription = subscription
        self.mark = mark


def read_subscription_options(
    headers: dict[str, str], target: StompTarget, client_id: str, connection_id: str
) -> StompSubscriptionOptions:
    """Reads the headers of a SUBSCRIBE to ``target``.

    Raises:
        PeerError: one of them is wrong, or can't be had together with another.
    """
    browser = read_flag(headers, "browser", _COMMAND)
    name = _read_durable(headers, target, client_id, browser)
    # A filter keeps out of a queue of one's own what would stay there for ever; from a queue of all one only picks.
    filters = bool(name) or (not target.queue_name and target.routing != ANYCAST)
    picks = not name and (bool(target.queue_name) or target.routing != MULTICAST)
    no_local = read_flag(headers, "no-local", _COMMAND) or read_flag(headers, "activemq.noLocal", _COMMAND)
    selector = _read_selector(headers)
    # A client-id is the same after the next CONNECT, as the filter of a durable subscription must be.
    mark = (client_id or connection_id) if no_local and filters else ""
    options = ConsumerOptions(
        priority=read_number(headers, "activemq.priority", _COMMAND, SMALL),
        exclusive=read_flag(headers, "activemq.exclusive", _COMMAND),
        selector=selector if picks else None,
        no_local=connection_id if no_local and picks else "",
        browser=browser,
    )
    subscription = SubscriptionOptions(
        name=name,
        durable=bool(name),
        filter=_filter(selector, mark) if filters else "",
        connection_id=connection_id,
    )
    return StompSubscriptionOptions(PLAIN if options.plain else options, subscription, mark)


def durable_name(headers: dict[str, str]) -> str | None:
    """Which header names a durable subscription, if one does."""
    for header in DURABLE_NAMES:
        if header in headers:
            return header
    return None


def queue_of(header: str, name: str, client_id: str, command: str) -> str:
    """The queue of a durable subscription.

    Raises:
        PeerError: the connection has no client-id, or the name can't be one of a queue.
    """
    queue = durable_queue_name(client_id, name)
    if not name or QUEUE_MARK in queue or len(queue) > _LONGEST_NAME:
        wanted = f"a name without '{QUEUE_MARK}', and with client-id at most {_LONGEST_NAME} characters long"
        raise header_wrong(header, command, name, wanted)
    if not client_id:
        raise client_id_missing(header, command)
    return queue


def _read_durable(headers: dict[str, str], target: StompTarget, client_id: str, browser: bool) -> str:
    header = durable_name(headers)
    if header is None:
        return ""
    if browser:
        raise browser_not_durable(header)
    if target.queue_name or target.routing == ANYCAST or target.temporary:
        raise durable_needs_topic(header, headers["destination"])
    return queue_of(header, headers[header], client_id, _COMMAND)


def _read_selector(headers: dict[str, str]) -> Selector | None:
    text = headers.get("selector", "")
    if not text.strip(WHITESPACE):
        return None
    try:
        return parse_selector(text)
    except SelectorError as error:
        raise selector_wrong(error) from error


def _filter(selector: Selector | None, mark: str) -> str:
    try:
        return without_own(selector, mark)
    except SelectorError as error:
        raise selector_wrong(error) from error
