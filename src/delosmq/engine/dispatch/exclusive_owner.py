"""Exclusive consumers: one owner gets everything, the others stand by.

Source: activemq-broker Queue.addSubscription and removeSubscription; Artemis QueueImpl.handleMessageGroup (exclusive
queues).
"""

from typing import Final

from delosmq.engine.queues.consumer import Consumer

ALWAYS_FIRST: Final = 127
"""With this priority a newcomer becomes the owner, whatever that of the owner is."""


class ExclusiveOwner:
    """The owner of a queue.

    Attributes:
        owner: gets everything; None lets all consumers share.
    """

    def __init__(self) -> None:
        self.owner: Consumer | None = None

    def joined(self, consumer: Consumer, *, all_exclusive: bool) -> None:
        """A consumer came, no browser: the owner, if it asks for that and outranks the present one (EXCL-2).

        Args:
            all_exclusive: all consumers count as exclusive.
        """
        options = consumer.options
        if not (options.exclusive or all_exclusive):
            return
        owner = self.owner
        if owner is None or options.priority >= ALWAYS_FIRST or options.priority > owner.options.priority:
            self.owner = consumer

    def left(self, consumer: Consumer, rest: list[Consumer], *, all_exclusive: bool) -> None:
        """A consumer went. Another one is elected when it was the owner, or when all are exclusive.

        Args:
            rest: the consumers that remain, in the order of their arrival.
        """
        if consumer is not self.owner and not all_exclusive:
            return
        elected: Consumer | None = None
        for candidate in rest:
            options = candidate.options
            # Leases are consumers without an option: they never own, however many are exclusive.
            if options.browser or candidate.closed or not (options.exclusive or all_exclusive):
                continue
            if elected is None or options.priority > elected.options.priority:
                elected = candidate
        self.owner = elected

    def own(self, consumer: Consumer) -> None:
        """The first message of an exclusive queue went to a consumer: it keeps the queue until it leaves."""
        self.owner = consumer
