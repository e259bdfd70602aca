"""How long a returned message waits before it is delivered again.

Source: Artemis QueueImpl.calculateRedeliveryDelay.
"""

from typing import Final

from delosmq.model.ports import Random
from delosmq.model.settings import UNLIMITED, AddressSettings

DEFAULT_MAXIMUM_FACTOR: Final = 10
"""The longest delay, in delays, where ``max-redelivery-delay`` is not set."""


def longest_delay_ms(settings: AddressSettings) -> int:
    """The bound of all delays."""
    longest = settings.max_redelivery_delay
    return settings.redelivery_delay * DEFAULT_MAXIMUM_FACTOR if longest == UNLIMITED else longest


def redelivery_delay_ms(settings: AddressSettings, delivery_count: int, random: Random) -> int:
    """The delay after a delivery, the ``delivery_count``-th, failed; 0 for none."""
    delay = settings.redelivery_delay
    if delay <= 0:
        return 0
    longest = longest_delay_ms(settings)
    try:
        wanted = delay * settings.redelivery_delay_multiplier ** max(delivery_count - 1, 0)
    except OverflowError:
        wanted = float(longest)
    factor = settings.redelivery_collision_avoidance_factor
    if factor > 0:
        # Either way, up to the factor: two numbers in one.
        wanted += wanted * factor * (2.0 * random.fraction() - 1.0)
    return int(min(wanted, float(longest)))
