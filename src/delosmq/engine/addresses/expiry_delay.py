"""When a message expires: what its sender said, as its address changes it.

Source: Artemis PostOfficeImpl.applyExpiryDelay.
"""

from delosmq.model.message import Message
from delosmq.model.settings import UNLIMITED, AddressSettings


def changes_expiry(settings: AddressSettings) -> bool:
    """Whether `apply_expiry` may do anything at an address of these settings."""
    return (
        settings.no_expiry
        or settings.expiry_delay >= 0
        or settings.min_expiry_delay != UNLIMITED
        or settings.max_expiry_delay != UNLIMITED
    )


def apply_expiry(settings: AddressSettings, message: Message, now_ms: int) -> None:
    """Sets when a message expires, once, before it is routed.

    ``no-expiry`` wins over all; then ``expiry-delay``, which is for messages without an expiry and makes the bounds
    void; then the bounds, of which the maximum also gives an expiry to messages without one, or else the minimum.
    """
    expires_at_ms = message.expires_at_ms
    if settings.no_expiry:
        message.expires_at_ms = 0
    elif settings.expiry_delay >= 0:
        if expires_at_ms == 0:
            message.expires_at_ms = now_ms + settings.expiry_delay
    else:
        shortest = settings.min_expiry_delay
        longest = settings.max_expiry_delay
        if longest != UNLIMITED and (expires_at_ms == 0 or expires_at_ms > now_ms + longest):
            message.expires_at_ms = now_ms + longest
        elif shortest != UNLIMITED and expires_at_ms < now_ms + shortest:
            message.expires_at_ms = now_ms + shortest
