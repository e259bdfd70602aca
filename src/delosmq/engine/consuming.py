"""Consumers: joining a queue, answering deliveries, leaving. Each call is one decision."""

from delosmq.engine.acks import NONE_UNSEEN, Acknowledgements
from delosmq.engine.consumer import Consumer, ConsumerPort
from delosmq.engine.core import Core
from delosmq.engine.credit import Credit
from delosmq.engine.dropping import Dropping
from delosmq.engine.queue import Queue
from delosmq.model.errors import LimitError, MisuseError, NotFoundError
from delosmq.model.ids import ConsumerId
from delosmq.model.message import ANY_ROUTING, MULTICAST
from delosmq.model.settings import UNLIMITED, QueueSettings


class Consuming:
    """The way out."""

    def __init__(self, core: Core, acks: Acknowledgements, dropping: Dropping) -> None:
        self._log = core.log
        self._bindings = core.bindings
        self._dispatcher = core.dispatcher
        self._random = core.random
        self._events = core.events
        self._acks = acks
        self._dropping = dropping
        self._next_consumer_id: int = 1

    def subscribe(
        self,
        address: str,
        port: ConsumerPort,
        credit: Credit,
        *,
        queue_name: str = "",
        routing: int = ANY_ROUTING,
    ) -> Consumer:
        """Attaches a consumer.

        Multicast makes a queue of its own that goes with the consumer; anycast reads the queue named like the address;
        ``queue_name`` reads exactly that queue.

        Raises:
            NotFoundError: there is no such address or queue, and it may not be created.
            LimitError: the queue has as many consumers as it may have.
        """
        queue = self._queue_for(address, queue_name, routing)
        if queue.max_consumers != UNLIMITED and len(queue.consumers) >= queue.max_consumers:
            self._log.close()
            raise LimitError(
                "DMQ2202", f"queue '{queue.name}' has its {queue.max_consumers} consumers already (max-consumers)"
            )
        consumer = Consumer(ConsumerId(self._next_consumer_id), port, credit)
        consumer.queue = queue
        self._next_consumer_id += 1
        queue.join(consumer)
        self._dispatcher.mark(queue)
        self._log.close()
        self._events.consumer_created(queue.name, consumer.id)
        return consumer

    def _queue_for(self, address: str, queue_name: str, routing: int) -> Queue:
        settings = self._bindings.settings_of(address)
        name = queue_name or address
        known = self._bindings.queues.get(name) if queue_name or routing != MULTICAST else None
        if known is not None:
            if queue_name and known.address.name != address:
                raise NotFoundError("DMQ2110", f"queue '{queue_name}' is not on address '{address}'; check the name")
            return known
        kind = self._bindings.resolve_routing(address, routing)
        target = self._bindings.addresses.get(address)
        if target is not None:
            self._bindings.check_routing(target, routing)
        elif not settings.auto_create_addresses:
            raise NotFoundError(
                "DMQ2111",
                f"there is no address '{address}' and its address-settings don't auto-create it; create it in"
                " broker.xml",
            )
        if kind == MULTICAST and not queue_name:
            own = f"{address}.{self._random.token(12)}"
            return self._bindings.create_queue(
                QueueSettings(own, address, MULTICAST, durable=False, auto_created=True), temporary=True
            )
        if not settings.auto_create_queues:
            raise NotFoundError(
                "DMQ2112",
                f"there is no queue '{name}' and its address-settings don't auto-create it; create it in broker.xml",
            )
        return self._bindings.create_queue(QueueSettings(name, address, kind, durable=True, auto_created=True))

    def credit_changed(self, consumer: Consumer) -> None:
        """The outbox of a consumer has room again: it takes part in dispatch."""
        queue = consumer.queue
        if queue is not None:
            if consumer.parked and not consumer.closed:
                queue.unpark(consumer)
            self._dispatcher.mark(queue)

    def acknowledge(self, consumer: Consumer, sequence: int) -> bool:
        """Ends one delivery. False when the consumer doesn't hold that message."""
        done = self._acks.acknowledge(self._queue_of(consumer), consumer, sequence)
        self._log.close()
        return done

    def acknowledge_through(self, consumer: Consumer, sequence: int) -> bool:
        """Ends all deliveries up to this one. False when the consumer doesn't hold that message."""
        done = self._acks.acknowledge_through(self._queue_of(consumer), consumer, sequence)
        self._log.close()
        return done

    def reject(self, consumer: Consumer, sequence: int) -> bool:
        """Returns one message after a failed delivery: redelivered, or dead-lettered when its attempts are used up."""
        done = self._acks.reject(self._queue_of(consumer), consumer, sequence)
        self._log.close()
        return done

    def reject_through(self, consumer: Consumer, sequence: int) -> bool:
        """`reject` for all messages up to this one."""
        done = self._acks.reject_through(self._queue_of(consumer), consumer, sequence)
        self._log.close()
        return done

    def close_consumer(self, consumer: Consumer, unseen: set[int] | frozenset[int] = NONE_UNSEEN) -> None:
        """Detaches a consumer; what it holds returns in order.

        Args:
            unseen: sequences that never reached the peer; their delivery does not count.
        """
        if consumer.closed:
            return
        queue = self._queue_of(consumer)
        self.leave(queue, consumer, unseen)
        if queue.temporary and not queue.consumers and not queue.deleted:
            self._dropping.drop(queue)

    def leave(self, queue: Queue, consumer: Consumer, unseen: set[int] | frozenset[int]) -> None:
        """Takes a consumer off its queue and returns what it holds, whatever becomes of the queue."""
        returning = consumer.held_newest_first()
        queue.leave(consumer)
        self._acks.give_back(queue, consumer, returning, unseen)
        self._log.close()
        self._events.consumer_closed(queue.name, consumer.id)

    @staticmethod
    def _queue_of(consumer: Consumer) -> Queue:
        queue = consumer.queue
        if queue is None:
            raise MisuseError("DMQ2113", f"consumer {consumer.id} was never subscribed")
        return queue
