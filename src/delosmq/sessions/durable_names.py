"""The queues of durable subscriptions: named by client id and subscription, alike in all protocols.

Source: DestinationUtil.createQueueNameForSubscription of Artemis for the escapes (docs/decisions/0045).
"""

from typing import Final

_SEPARATOR: Final = "."
_ESCAPE: Final = "\\"


def durable_queue_name(client_id: str, subscription: str) -> str:
    """No two subscriptions have the same: a separator within one of the two names is escaped."""
    return f"{_escaped(client_id)}{_SEPARATOR}{_escaped(subscription)}"


def _escaped(name: str) -> str:
    return name.replace(_ESCAPE, _ESCAPE + _ESCAPE).replace(_SEPARATOR, _ESCAPE + _SEPARATOR)
