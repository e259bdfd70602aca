"""The prefetch of a consumer, and the limit for what waits beyond it, as address-settings say.

Source: PolicyEntry.configurePrefetch and its configure methods, and ActiveMQPrefetchPolicy, of ActiveMQ Classic.
"""

from typing import Final

from delosmq.engine.api import EngineBroker, PendingLimit, choice_for
from delosmq.model.conversion import Conversions
from delosmq.model.message import ANYCAST
from delosmq.model.settings import UNLIMITED, AddressSettings
from delosmq.sessions.openwire.server.destinations import OpenWireTarget
from delosmq.wire.openwire.commands import ConsumerInfo

# What the Java client asks for unless it is told otherwise.
QUEUE_DEFAULT: Final = 1_000
BROWSER_DEFAULT: Final = 500
TOPIC_DEFAULT: Final = 32_767
DURABLE_DEFAULTS: Final = (100, 1_000)
"""The latter when messages are acknowledged automatically."""


def settle_prefetch(info: ConsumerInfo, targets: list[OpenWireTarget], broker: EngineBroker, *, durable: bool) -> bool:
    """Gives a consumer that left its prefetch at the client's default the one of its destination; of several, the
    first one's. True when the client has to be told, as it must pull now."""
    asked = info.prefetch_size
    target = targets[0]
    settings = broker.bindings.settings_of(target.address)
    wanted = UNLIMITED
    if info.browser:
        wanted = settings.queue_browser_prefetch if asked == BROWSER_DEFAULT else UNLIMITED
    elif target.routing == ANYCAST or target.queue_name:
        wanted = settings.queue_prefetch if asked == QUEUE_DEFAULT else UNLIMITED
    elif durable:
        wanted = settings.durable_topic_prefetch if asked in DURABLE_DEFAULTS else UNLIMITED
    elif asked == TOPIC_DEFAULT:
        wanted = settings.topic_prefetch
    if wanted == UNLIMITED:
        return False
    info.prefetch_size = wanted
    return wanted == 0


def pending_limit_of(info: ConsumerInfo, settings: AddressSettings, conversions: Conversions) -> PendingLimit | None:
    """The limit of a consumer of a topic, not durable; it may ask for less where there is one."""
    size = settings.pending_message_limit
    multiplier = settings.pending_message_limit_multiplier
    if multiplier >= 0:
        share = int(info.prefetch_size * multiplier)
        size = share if size == UNLIMITED else min(size, share)
    if size == UNLIMITED:
        return None
    if 0 < info.maximum_pending_message_limit < size:
        size = info.maximum_pending_message_limit
    return PendingLimit(size, choice_for(settings.message_eviction, settings.message_eviction_key, conversions))
