"""Ends of a delivery: acknowledge, reject, give back. Each public call is one decision and closes one batch."""

from array import array
from collections.abc import Iterator
from typing import Final

from delosmq.engine.base.jobs import NEXT_TICK, PhasedJob
from delosmq.engine.base.slots import Slot
from delosmq.engine.delivery.expiry import Expiry
from delosmq.engine.delivery.redelivery import record_counts, redelivery_delay_ms
from delosmq.engine.dispatch.dispatcher import Dispatcher
from delosmq.engine.log.batch_limits import NO_ROOM, WAITS
from delosmq.engine.log.records import ACKNOWLEDGED, PURGED
from delosmq.engine.queues.in_delivery import Holder
from delosmq.engine.queues.queue import Queue
from delosmq.engine.routing.dead_letters import ATTEMPTS_USED_UP, CALLED_POISON, DeadLetters
from delosmq.engine.routing.parts import EngineParts

NONE_UNSEEN: frozenset[int] = frozenset()
SLICE_COST: Final = 1_000
"""Returns in one slice, about 2 ms in pure Python."""
BURIAL_COST: Final = 40
"""Of a dead letter, in returns: 40 us and 1 us."""

STEPS_PER_RETURN: Final = 20
"""Walked to its place while others return too, at 50 ns each."""

COUNT_BYTES: Final = 24
"""Of what is recorded of one return, and of all of them beside that."""
RECORD_BYTES: Final = 256


AT_ONCE: Final = 0
DELAYED: Final = 1
POISON: Final = 2
"""How messages return: a consumer that goes leaves them ready at once, a failed delivery makes them wait as the
settings say, poison is a dead letter whatever its count."""


class Written:
    """Slots about which a record is due: pending ones with a higher delivery count, and those that wait."""

    def __init__(self) -> None:
        self.counted: list[Slot] = []
        self.delayed: list[Slot] = []


class Acknowledgements:
    """Acknowledges, rejects and gives back what holders have in delivery."""

    def __init__(self, parts: EngineParts, dead_letters: DeadLetters, expiry: Expiry) -> None:
        self._log = parts.log
        self._removals = parts.removals
        self._evictions = parts.evictions
        self._last_value_rule = parts.last_value_rule
        self._schedule = parts.schedule
        self.dispatcher: Dispatcher = parts.dispatcher
        self._jobs = parts.jobs
        self._clock = parts.clock
        self._random = parts.random
        self._events = parts.events
        self._dead_letters = dead_letters
        self._expiry = expiry

    # -- acknowledging -------------------------------------------------------------------------------------------

    def acknowledge(self, queue: Queue, consumer: Holder, sequence: int) -> bool:
        """Ends the delivery of one message. False when the consumer does not hold it; nothing has changed then."""
        slot = consumer.held(sequence)
        if slot is None:
            return False
        queue.settle(slot, consumer)
        queue.counters.acknowledged += 1
        self._removals.remove_one(queue, slot, ACKNOWLEDGED)
        if queue.traits.tells_acknowledged:
            self._tell(queue, consumer, [slot])
        queue.ask_dispatch()
        return True

    def acknowledge_through(self, queue: Queue, consumer: Holder, sequence: int) -> bool:
        """Ends the delivery of all messages up to this one, in order of delivery; False as in `acknowledge`. They must
        not be too many for one batch; see `EngineTransactions.acknowledge_far`."""
        slots = consumer.held_through(sequence)
        if not slots:
            return False
        for slot in slots:
            queue.settle(slot, consumer)
        queue.counters.acknowledged += len(slots)
        self._removals.remove(queue, slots, ACKNOWLEDGED)
        if queue.traits.tells_acknowledged:
            self._tell(queue, consumer, slots)
        queue.ask_dispatch()
        return True

    def _tell(self, queue: Queue, consumer: Holder, slots: list[Slot]) -> None:
        for slot in slots:
            self._events.message_acknowledged(queue.name, queue.id, slot, consumer.called(), consumer.user_name())

    def expire(self, queue: Queue, consumer: Holder, sequence: int) -> bool:
        """Ends the delivery of a message that its consumer found expired; False as in `acknowledge`. Without room for
        the copy that an expiry address gets the message stays with the consumer, until there is some or it returns."""
        if consumer.held(sequence) is None:
            return False
        PhasedJob(self._jobs, self._expire(queue, consumer, sequence)).step()
        return True

    def _expire(self, queue: Queue, consumer: Holder, sequence: int) -> Iterator[int]:
        while not self._expire_held(queue, consumer, sequence):
            yield self._log.nap_ns

    def _expire_held(self, queue: Queue, consumer: Holder, sequence: int) -> bool:
        """Does that, as a decision of its own. False when there is no room for the copy: nothing has changed then."""
        slot = consumer.held(sequence)
        if slot is None:
            return True  # it has returned meanwhile
        if not self._expiry.has_room(queue, slot):
            return False
        queue.settle(slot, consumer)
        self._expiry.expire(queue, slot)
        self._log.close()
        queue.ask_dispatch()
        return True

    # -- give back -----------------------------------------------------------------------------------------------

    def reject(
        self,
        queue: Queue,
        consumer: Holder,
        sequence: int,
        *,
        poison: bool = False,
        count_delivery: bool = True,
        cause: str = "",
    ) -> bool:
        """Returns one message after a failed delivery; False as in `acknowledge`.

        Args:
            poison: it goes to the dead-letter address whatever its count; ``cause``: why, for people.
            count_delivery: False when it was not looked at: this delivery does not count.
        """
        slot = consumer.held(sequence)
        if slot is None:
            return False
        self._reject(queue, consumer, [slot], poison=poison, count_delivery=count_delivery, cause=cause)
        return True

    def reject_through(
        self, queue: Queue, consumer: Holder, sequence: int, *, poison: bool = False, count_delivery: bool = True
    ) -> bool:
        """Returns all messages up to this one, as `reject` does."""
        if consumer.reaches_far(sequence, SLICE_COST):
            self.give_back_far(
                queue,
                consumer,
                consumer.all_through(sequence),
                NONE_UNSEEN,
                how=POISON if poison else DELAYED,
                count_deliveries=count_delivery,
            )
            return True
        slots = consumer.held_through(sequence)
        if not slots:
            return False
        slots.reverse()
        self._reject(queue, consumer, slots, poison=poison, count_delivery=count_delivery)
        return True

    def _reject(
        self,
        queue: Queue,
        consumer: Holder,
        newest_first: list[Slot],
        *,
        poison: bool,
        count_delivery: bool,
        cause: str = "",
    ) -> None:
        how = POISON if poison else DELAYED
        self.give_back(queue, consumer, newest_first, how=how, count_deliveries=count_delivery, poison_cause=cause)

    def give_back(
        self,
        queue: Queue,
        consumer: Holder,
        newest_first: list[Slot],
        *,
        how: int = AT_ONCE,
        count_deliveries: bool = True,
        poison_cause: str = "",
    ) -> None:
        """`give_back_far` for slots, newest first."""
        self.give_back_far(
            queue,
            consumer,
            array("q", [slot.sequence for slot in reversed(newest_first)]),
            NONE_UNSEEN,
            how=how,
            count_deliveries=count_deliveries,
            poison_cause=poison_cause,
        )

    def give_back_far(
        self,
        queue: Queue,
        consumer: Holder,
        sequences: "array[int]",
        unseen: set[int] | frozenset[int],
        *,
        how: int = AT_ONCE,
        count_deliveries: bool = True,
        poison_cause: str = "",
    ) -> None:
        """Returns what a consumer holds to its place, newest first, so that a ring drops the oldest of it (RING-6).

        Many of them, or many dead letters, take several ticks, which follow those of a cumulative acknowledgement that
        is under way. What is not back yet is still in delivery; the queue delivers nothing meanwhile.

        Args:
            sequences: in order of delivery; what open transactions acknowledge is passed over.
            unseen: sequences that never left the broker: their delivery does not count.
            how: AT_ONCE, DELAYED or POISON.
            count_deliveries: False when no delivery counts.
            poison_cause: what the client says of POISON.
        """
        work = _Return(self, queue, consumer, sequences=sequences, unseen=unseen, how=how)
        work.count_deliveries = count_deliveries
        work.poison_cause = poison_cause
        under_way = consumer.under_way
        if under_way is None and work.work():
            return
        self.dispatcher.suspend(queue)
        work.held_queue = True
        consumer.giving_back.append(sequences)
        job = PhasedJob(self._jobs, self._go_on(work))
        if under_way is not None:
            under_way.follow_ups.append(job)
        elif work.waits:
            self._jobs.add_later(self._log.nap_ns, job)
        else:
            self._jobs.add(job)

    def _go_on(self, work: "_Return") -> Iterator[int]:
        while not work.work():
            yield self._log.nap_ns if work.waits else NEXT_TICK

    def death_of(self, queue: Queue, consumer: Holder, slot: Slot, how: int) -> str:
        """Why a slot becomes a dead letter when its delivery to ``consumer`` failed; "" when it doesn't."""
        if how == POISON:
            cause = "" if self._dead_letters.at_home(queue) else CALLED_POISON
        else:
            cause = ATTEMPTS_USED_UP if self._dead_letters.exhausted(queue, consumer, slot) else ""
        return "" if cause and self._dead_letters.room_for(queue, slot) == NO_ROOM else cause

    def burial_waits(self, queue: Queue, slot: Slot) -> bool:
        """Whether a dead letter should wait until the store has another file ready."""
        return self._dead_letters.room_for(queue, slot) == WAITS

    def counts_wait(self, count: int) -> bool:
        """The same for what is recorded of so many returns."""
        return self._log.waits(RECORD_BYTES + COUNT_BYTES * min(count, SLICE_COST))

    def bury(self, queue: Queue, consumer: Holder, slot: Slot, cause: str) -> None:
        """Makes a slot that ``consumer`` holds a dead letter, as a decision of its own: a batch with all copies might
        not fit into a segment. Nothing may be recorded yet of the decision under way."""
        queue.settle(slot, consumer)
        self._dead_letters.bury(queue, slot, cause)
        self._log.close()

    def put_back(self, queue: Queue, slot: Slot, how: int, written: Written, near: Slot | None) -> int:
        """Makes a slot that is in no list pending again, at once or when its delay is over; the ring may refuse it.
        Gives the steps walked to its place, from ``near``."""
        steps = 0
        if not queue.ring.admits_return(queue.pending):
            self._evictions.replaced(queue, slot)
            return steps
        delay_ms = 0
        if how != AT_ONCE and queue.address.settings.redelivery_delay > 0:
            delay_ms = redelivery_delay_ms(queue.address.settings, slot.delivery_count, self._random)
        if delay_ms > 0:
            self._schedule.add(queue, slot, self._clock.wall_ms() + delay_ms, delayed=True)
            self._schedule.arm()
            self._events.message_scheduled(queue.name, slot)
            if slot.recorded:
                written.delayed.append(slot)
        else:
            steps = queue.pending.put_back(slot, near)
            if queue.last_values is not None and not self._last_value_rule.returned(queue, slot):
                return steps
        self._events.message_redelivered(queue.name, slot)
        return steps

    def write(self, queue: Queue, written: Written) -> None:
        """Records what returned slots came to, in the decision under way."""
        record_counts(self._log, queue, written.counted)
        record_counts(self._log, queue, written.delayed, scheduled=True)
        written.counted = []
        written.delayed = []

    def purge(self, queue: Queue, slots: list[Slot]) -> None:
        """Ends slots in no list of a queue that was deleted before they were back."""
        self._removals.remove(queue, slots, PURGED)
        self._log.close()

    def close(self) -> None:
        """Ends the decision under way."""
        self._log.close()


class _Return:
    """Returns what a consumer held, newest first."""

    def __init__(
        self,
        acks: Acknowledgements,
        queue: Queue,
        consumer: Holder,
        *,
        sequences: "array[int]",
        unseen: set[int] | frozenset[int],
        how: int,
    ) -> None:
        self._acks = acks
        self._queue = queue
        self._consumer = consumer
        # Taken from the end, so that they are freed one by one.
        self._sequences = sequences
        self._unseen = unseen
        self._how = how
        self._at = 0
        self._place: int = queue.place_of_returns(consumer, len(sequences))
        # The last one returned.
        self._near: Slot | None = None
        self.held_queue: bool = False
        self.count_deliveries: bool = True
        self.poison_cause: str = ""
        self.waits: bool = False

    def work(self) -> bool:
        """A slice, or less when ``waits`` says so afterwards. True when all is done."""
        acks = self._acks
        queue = self._queue
        sequences = self._sequences
        written = Written()
        purged: list[Slot] = []
        room = SLICE_COST
        self.waits = False
        counts_wait = acks.counts_wait(len(sequences))
        while sequences and room > 0:
            slot = self._consumer.held(sequences.pop())
            self._at += 1
            room -= 1
            if slot is None:
                continue  # acknowledged since, perhaps in a transaction that will say what becomes of it
            unseen = not self.count_deliveries or slot.sequence in self._unseen
            gone = queue.deleted and self.held_queue
            cause = "" if unseen or gone else acks.death_of(queue, self._consumer, slot, self._how)
            if acks.burial_waits(queue, slot) if cause else counts_wait and slot.recorded and not gone:
                self._at -= 1
                sequences.append(slot.sequence)
                self.waits = True
                break
            if cause:
                if cause is CALLED_POISON and self.poison_cause:
                    cause = self.poison_cause
                # What is recorded so far must be all that has changed so far.
                acks.write(queue, written)
                acks.close()
                acks.bury(queue, self._consumer, slot, cause)
                room -= BURIAL_COST
                counts_wait = acks.counts_wait(len(sequences))
                continue
            queue.settle(slot, self._consumer)
            if self._place:
                slot.order = self._place - self._at + 1
            if gone:
                purged.append(slot)
                continue
            if unseen:
                slot.delivery_count -= 1
            room -= acks.put_back(queue, slot, self._how, written, self._near) // STEPS_PER_RETURN
            self._near = slot
            if slot.recorded and (not unseen or queue.traits.record_before_delivery) and queue.pending.holds(slot):
                written.counted.append(slot)
            room -= 1
        if purged:
            acks.purge(queue, purged)
        acks.write(queue, written)
        if sequences:
            acks.close()
            return False
        if self.held_queue:
            self._consumer.giving_back.remove(sequences)
            acks.close()
            acks.dispatcher.resume(queue)
        else:
            queue.ask_dispatch()
        return True
