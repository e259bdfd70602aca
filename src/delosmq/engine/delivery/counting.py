"""``persist-delivery-count-before-delivery``: that a message was handed out is recorded before it leaves, so that it
counts as redelivered even after a crash. Otherwise deliveries are recorded when a message comes back.

Source: Artemis's setting of that name; RegionBroker.preProcessDispatch of ActiveMQ Classic (persistJMSRedelivered).
"""

from delosmq.engine.base.slots import Slot
from delosmq.engine.delivery.acknowledge import Acknowledgements
from delosmq.engine.dispatch.delivery_record import DeliveryRecord
from delosmq.engine.log.log import Log
from delosmq.engine.queues.queue import Queue


class CountBefore(DeliveryRecord):
    """Records each delivery as a decision of its own."""

    def __init__(self, acks: Acknowledgements, log: Log) -> None:
        self._acks = acks
        self._log = log

    def delivering(self, queue: Queue, slot: Slot) -> None:
        # On a full disk nothing is recorded: consumers go on then, as they make room.
        self._acks.record_counts(queue, [slot])
        # What leaves waits at the gate until this is synced.
        slot.message.position = self._log.close()
