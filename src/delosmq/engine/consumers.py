"""Consumers: joining a queue, answering deliveries, leaving. Each call is one decision."""

from delosmq.engine.delivery.acknowledgements import NONE_UNSEEN, Acknowledgements
from delosmq.engine.dispatch.browse_cursor import settle_loans
from delosmq.engine.lifecycle.deletion import Deletion
from delosmq.engine.lifecycle.subscriptions import NO_OPTIONS, SubscriptionOptions, SubscriptionQueues
from delosmq.engine.queues.consumer import PLAIN, Consumer, ConsumerOptions, ConsumerPort
from delosmq.engine.queues.credit import Credit
from delosmq.engine.queues.queue import Queue
from delosmq.engine.routing.parts import EngineParts
from delosmq.engine.transactions.transaction import Transaction
from delosmq.engine.transactions.transactions import EngineTransactions
from delosmq.model.errors import BrokerError, LimitError, MisuseError
from delosmq.model.ids import ConsumerId
from delosmq.model.message import ANY_ROUTING
from delosmq.model.settings import UNLIMITED


class EngineConsumers:
    """The way out."""

    def __init__(
        self, parts: EngineParts, acks: Acknowledgements, deletion: Deletion, transactions: EngineTransactions
    ) -> None:
        self._log = parts.log
        self._bindings = parts.bindings
        self._client_limits = parts.bindings.client_limits
        self._dispatcher = parts.dispatcher
        self._jobs = parts.jobs
        self._clock = parts.clock
        self._events = parts.events
        self._acks = acks
        self._deletion = deletion
        self._transactions = transactions
        self._subscription_queues = SubscriptionQueues(parts, deletion)
        self._next_consumer_id: int = 1

    def subscribe(
        self,
        address: str,
        port: ConsumerPort,
        credit: Credit,
        *,
        queue_name: str = "",
        routing: int = ANY_ROUTING,
        options: ConsumerOptions = PLAIN,
        subscription: SubscriptionOptions | None = None,
    ) -> Consumer:
        """Attaches a consumer.

        Multicast makes a queue of its own that goes with the consumer; anycast reads the queue named like the address;
        ``queue_name`` reads exactly that queue, ``subscription`` one that outlives its consumer or is shared.

        Raises:
            NotFoundError: there is no such address or queue, and it may not be created.
            MisuseError: the queue is another connection's, or a subscription that is in use.
            LimitError: the queue has as many consumers as it may have, or the selectors of this user's clients are as
                long together as they may be.
        """
        wanted = subscription if subscription is not None else NO_OPTIONS
        characters = options.selector_characters
        self._client_limits.check_filter(wanted.user, f"a consumer of '{queue_name or address}'", characters)
        try:
            queue = self._subscription_queues.queue_for(address, queue_name, routing, wanted)
        except BrokerError:
            self._log.close()
            raise
        if queue.in_force.max_consumers != UNLIMITED and len(queue.holders) >= queue.in_force.max_consumers:
            self._log.close()
            raise LimitError(
                "DMQ2202",
                f"queue '{queue.name}' has its {queue.in_force.max_consumers} consumers already (max-consumers)",
            )
        self._log.close()  # before it joins: if this failed, it could not be closed
        consumer = Consumer(ConsumerId(self._next_consumer_id), port, credit, options)
        consumer.queue = queue
        consumer.selector_user = wanted.user
        self._client_limits.change_filters(wanted.user, characters)
        self._next_consumer_id += 1
        if queue.ring.counts_waiting and subscription is not None and subscription.pending_limit is not None:
            subscription.pending_limit.consumer = consumer
        self._dispatcher.join(queue, consumer)
        if options.priority and queue.temporary:
            self._bindings.consumer_ranked(queue)
        self._events.consumer_created(queue.name, consumer.id)
        return consumer

    def credit_changed(self, consumer: Consumer) -> None:
        """The outbox of a consumer has room again: it takes part in dispatch."""
        queue = consumer.queue
        if queue is not None:
            if consumer.full and not consumer.closed:
                queue.rejoin(consumer)
            queue.ask_dispatch()

    def extend(self, consumer: Consumer, sequence: int, count: int) -> None:
        """The peer has taken ``count`` messages up to this one and will acknowledge them later: its credit grows by
        as many (a DELIVERED acknowledgement).

        Raises:
            MisuseError: the consumer doesn't hold that message; nothing has changed.
        """
        if not consumer.holds(sequence):
            raise MisuseError(
                "DMQ2600",
                f"message {sequence} is not in delivery to consumer {consumer.id}, so it can't be reported as"
                " delivered; report what was dispatched and not acknowledged yet",
            )
        consumer.credit.extended(count)
        self.credit_changed(consumer)

    def pull(self, consumer: Consumer, count: int) -> None:
        """The peer asks for up to ``count`` messages; only credit that is pulled heeds it.
        `ConsumerPort.pull_unanswered` follows when there are none now; the pull goes on until another one, of 0."""
        consumer.credit.pulled(count)
        self.credit_changed(consumer)
        if count > 0:
            self._dispatcher.pulled(consumer)

    def acknowledge(self, consumer: Consumer, sequence: int, transaction: Transaction | None = None) -> bool:
        """Ends one delivery. False when the consumer doesn't hold that message. In a transaction: see
        `EngineTransactions.acknowledge`."""
        if transaction is not None:
            return self._transactions.acknowledge(transaction, consumer, sequence)
        if consumer.loans is not None:
            return self._answer_lent(consumer, sequence)
        done = self._acks.acknowledge(self._queue_of(consumer), consumer, sequence)
        self._log.close()
        return done

    def acknowledge_through(self, consumer: Consumer, sequence: int, transaction: Transaction | None = None) -> bool:
        """Ends all deliveries up to this one, or none, should the broker fail. False when the consumer doesn't hold
        that message. Very many take several ticks: ``consumer.under_way`` is a `BulkAck` then and tells when it is
        over. In a transaction: see `EngineTransactions.acknowledge_through`."""
        if transaction is not None:
            return self._transactions.acknowledge_through(transaction, consumer, sequence)
        if consumer.loans is not None:
            return self._answer_lent_through(consumer, sequence)
        if consumer.reaches_far(sequence, self._transactions.at_once):
            return self._transactions.acknowledge_far(consumer, sequence)
        done = self._acks.acknowledge_through(self._queue_of(consumer), consumer, sequence)
        self._log.close()
        return done

    def reject(
        self,
        consumer: Consumer,
        sequence: int,
        *,
        poison: bool = False,
        count_delivery: bool = True,
        cause: str = "",
    ) -> bool:
        """Returns one message after a failed delivery: redelivered, perhaps later, or dead-lettered when its attempts
        are used up. False when the consumer doesn't hold it.

        Args:
            poison: a dead letter at once; ``cause``: why, in its dlqDeliveryFailureCause.
            count_delivery: False when the message was not looked at: it counts as never delivered.
        """
        if consumer.loans is not None:
            return self._answer_lent(consumer, sequence)
        done = self._acks.reject(
            self._queue_of(consumer), consumer, sequence, poison=poison, count_delivery=count_delivery, cause=cause
        )
        self._log.close()
        return done

    def reject_through(
        self, consumer: Consumer, sequence: int, *, poison: bool = False, count_delivery: bool = True
    ) -> bool:
        """`reject` for all messages up to this one."""
        if consumer.loans is not None:
            return self._answer_lent_through(consumer, sequence)
        done = self._acks.reject_through(
            self._queue_of(consumer), consumer, sequence, poison=poison, count_delivery=count_delivery
        )
        self._log.close()
        return done

    def expire_delivered(self, consumer: Consumer, sequence: int) -> bool:
        """Ends one delivery because the client found the message expired; what becomes of it is the same as when the
        broker does. False when the consumer doesn't hold it."""
        if consumer.loans is not None:
            return self._answer_lent(consumer, sequence)
        done = self._acks.expire(self._queue_of(consumer), consumer, sequence)
        self._log.close()
        return done

    def _answer_lent(self, consumer: Consumer, sequence: int) -> bool:
        # Whatever the answer to a borrowed message is, the queue keeps it.
        loans = consumer.loans
        done = loans is not None and loans.answer(sequence)
        self.credit_changed(consumer)
        return done

    def _answer_lent_through(self, consumer: Consumer, sequence: int) -> bool:
        loans = consumer.loans
        done = loans is not None and loans.answer_through(sequence)
        if loans is not None:
            settle_loans(loans, self._queue_of(consumer), self._jobs)
        self.credit_changed(consumer)
        return done

    def close(self, consumer: Consumer, unseen: set[int] | frozenset[int] = NONE_UNSEEN) -> None:
        """Detaches a consumer; what it holds returns in order.

        Args:
            unseen: sequences that never reached the peer; their delivery does not count.
        """
        if consumer.closed:
            return
        queue = self._queue_of(consumer)
        self.leave(queue, consumer, unseen)
        if not queue.holders and not queue.deleted:
            self._deletion.last_left(queue)

    def leave(self, queue: Queue, consumer: Consumer, unseen: set[int] | frozenset[int]) -> None:
        """Takes a consumer off its queue and returns what it holds, whatever becomes of the queue."""
        self._client_limits.change_filters(consumer.selector_user, -consumer.options.selector_characters)
        sequences = consumer.all_held()
        self._dispatcher.leave(queue, consumer)
        if consumer.loans is not None:
            settle_loans(consumer.loans, queue, self._jobs)
        if not queue.holders:
            queue.usage.unused_since = self._clock.monotonic_ns()
            queue.usage.swept = False
        self._acks.give_back_far(queue, consumer, sequences, unseen)
        self._log.close()
        self._events.consumer_closed(queue.name, consumer.id)

    @staticmethod
    def _queue_of(consumer: Consumer) -> Queue:
        queue = consumer.queue
        if queue is None:
            raise MisuseError("DMQ2113", f"consumer {consumer.id} was never subscribed")
        return queue
