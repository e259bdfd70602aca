"""The redelivery delay: how long a returned message waits for its next delivery; and the record of its deliveries.

Source: Artemis QueueImpl.calculateRedeliveryDelay.
"""

from typing import Final

from delosmq.engine.base.slots import Slot
from delosmq.engine.log.log import Log
from delosmq.engine.log.records import encode_counted, encode_scheduled
from delosmq.engine.queues.queue import Queue
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


def record_counts(log: Log, queue: Queue, slots: list[Slot], *, scheduled: bool = False) -> None:
    """Records the delivery counts of those slots that the store holds, with their due times when they are
    ``scheduled``; otherwise it learns of them when the messages come back.

    Source: Artemis's persist-delivery-count-before-delivery; RegionBroker.preProcessDispatch of ActiveMQ Classic.
    """
    # Not on a full disk: each disconnect would take from the room that acknowledgements need, and a count that a
    # crash forgets is one the crash of a moment before would have forgotten too. A delay likewise.
    kept = [slot for slot in slots if slot.message.home is not None]
    if not kept or log.storage_full:
        return
    log.record(encode_scheduled(queue.id, kept) if scheduled else encode_counted(queue.id, kept))
    batch = log.batch()
    for slot in kept:
        home = slot.message.home
        if home is not None:
            batch.targets.append(home)
