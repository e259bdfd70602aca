"""The dispatch loop: delivers pending messages to consumers that are not full, in turn, in batches.

A queue without rules (no selector, priority, exclusive owner, group, browser) takes the short way here; others have a
`DispatchRules`.

Source: Artemis QueueImpl (round robin among consumers with credit); bounds per tick: docs/decisions/0012.
"""

from collections import deque
from typing import Final

from delosmq.engine.base.events import EngineEvents
from delosmq.engine.base.jobs import Jobs
from delosmq.engine.base.slots import Slot
from delosmq.engine.base.timers import Timers
from delosmq.engine.dispatch.lease_search import LeaseWish
from delosmq.engine.dispatch.ports import ENDED, ROOM_TO_COME, BeforeDelivery
from delosmq.engine.dispatch.rotation import DispatchBudget
from delosmq.engine.dispatch.rule_dispatch import RuleDispatch
from delosmq.engine.dispatch.rules import DispatchRules, is_owned, rules_of
from delosmq.engine.queues.consumer import Consumer
from delosmq.engine.queues.eviction import Evictions
from delosmq.engine.queues.queue import SUSPENSION, Queue
from delosmq.model.conversion import Conversions
from delosmq.model.ports import Clock
from delosmq.selectors.subject import Subject

MESSAGES_PER_QUEUE_AND_TICK: Final = 256
QUEUES_PER_TICK: Final = 64
WORK_PER_QUEUE_AND_TICK: Final = 512
"""Selectors evaluated and messages passed over, about 1 ms."""


class Dispatcher:
    """Delivers what is pending in the queues that may have something to deliver.

    Attributes:
        before: asked before a message leaves that may have expired, or must be recorded first.
        evictions: ends what is too much for a consumer that was found full.
        events: told of owners, and of deliveries.
    """

    def __init__(
        self,
        ready_queues: deque[Queue],
        clock: Clock,
        timers: Timers,
        conversions: Conversions,
        *,
        jobs: Jobs,
        events: EngineEvents,
    ) -> None:
        self._clock = clock
        self._timers = timers
        self._jobs = jobs
        self._ready = ready_queues
        self._budget: DispatchBudget = DispatchBudget(Subject(conversions))
        self._pulling: list[Consumer] = []
        self.before: BeforeDelivery | None = None
        self.evictions: Evictions | None = None
        self.events: EngineEvents = events

    def suspend(self, queue: Queue) -> None:
        """Nothing is delivered until `resume`: something is on its way back, and would come too late."""
        queue.suspended += SUSPENSION

    def resume(self, queue: Queue) -> None:
        """Ends one `suspend`."""
        queue.suspended -= SUSPENSION
        if queue.stalled:
            stalled, queue.stalled = queue.stalled, []
            for job in stalled:
                self._jobs.add(job)
        queue.ask_dispatch()

    def join(self, queue: Queue, consumer: Consumer) -> None:
        if not consumer.options.plain:
            queue.needs_rules = True
        if queue.needs_rules:
            rules = self._rules_for(queue)
            rules.join(consumer)
            queue.join(consumer)
            rules.start.consumer_came(self._clock.monotonic_ns(), self._timers)
        else:
            queue.join(consumer)
        queue.ask_dispatch()

    def leave(self, queue: Queue, consumer: Consumer) -> None:
        """A consumer leaves its queue; what it held comes back next."""
        queue.leave(consumer)
        rules = rules_of(queue)
        if rules is not None:
            rules.leave(consumer)

    def _rules_for(self, queue: Queue) -> DispatchRules:
        rules = rules_of(queue)
        if rules is None:
            rules = DispatchRules(queue)
            rules.events = self.events
            rules.adopt()
        return rules

    def run(self) -> bool:
        """One pass over what is ready now, bounded. True when something is left to do."""
        ready = self._ready
        if not ready:
            if self._pulling:
                self._answer_pulls()
            return False
        now_ms = self._clock.wall_ms()
        before = self.before
        for _ in range(min(len(ready), QUEUES_PER_TICK)):
            queue = ready.popleft()
            queue.ready = False
            if queue.suspended:
                continue
            if queue.needs_rules:
                more = self._dispatch_by_rules(queue, now_ms)
            else:
                gate = before if queue.expiring_count else None
                events = self.events if queue.traits.recorded else None
                more = dispatch(queue, MESSAGES_PER_QUEUE_AND_TICK, now_ms, gate, events)
            if queue.ring.counts_waiting and self.evictions is not None:
                self.evictions.cut(queue)
            if queue.lease_waits and queue.pending.count and not is_owned(queue):
                queue.lease_waits = False
            if more:
                queue.ask_dispatch()
        if self._pulling:
            self._answer_pulls()
        return len(ready) > 0

    def pulled(self, consumer: Consumer) -> None:
        """A consumer has asked for messages: it is told when its queue has none for it."""
        self._pulling.append(consumer)

    def _answer_pulls(self) -> None:
        waiting: list[Consumer] = []
        for consumer in self._pulling:
            queue = consumer.queue
            if consumer.closed or queue is None or not consumer.credit.is_asked():
                continue
            if queue.ready or queue.suspensions:
                waiting.append(consumer)
            else:
                consumer.port.pull_unanswered()
        self._pulling = waiting

    def _dispatch_by_rules(self, queue: Queue, now_ms: int) -> bool:
        budget = self._budget
        budget.begin(WORK_PER_QUEUE_AND_TICK)
        return RuleDispatch(self._rules_for(queue), budget, now_ms, self.before).run(MESSAGES_PER_QUEUE_AND_TICK)

    def budget_for_asking(self) -> DispatchBudget:
        """Means to evaluate selectors outside dispatch (`standing.why_waiting`)."""
        return self._budget

    def lease_budget(self) -> DispatchBudget:
        """Means to look for messages to lease in this tick."""
        self._budget.begin(WORK_PER_QUEUE_AND_TICK)
        return self._budget

    def next_for_lease(self, queue: Queue, wish: LeaseWish, until: int | None, budget: DispatchBudget) -> Slot | None:
        """The pending message that a lease takes next; None when there is none for it now, or the budget is out.

        A lease is a consumer of priority 0 that is not exclusive: it gets nothing while a consumer owns the queue, and
        no message of a group that a consumer owns; it never owns anything itself.

        Args:
            wish: what the lease takes.
            until: no message with a higher sequence.
        """
        if queue.suspended:
            return None
        rules = rules_of(queue)
        if rules is None:
            if wish.takes_all:
                pending = queue.pending
                return pending.head() if until is None else pending.head_upto(until)
            queue.needs_rules = True
            rules = self._rules_for(queue)
        return rules.next_for_lease(wish, until, budget)

    def end_search(self, queue: Queue, wish: LeaseWish) -> None:
        """No lease group of a queue takes this any more."""
        rules = rules_of(queue)
        if rules is not None:
            rules.end_search(wish)


def dispatch(queue: Queue, limit: int, now_ms: int, before: BeforeDelivery | None, events: EngineEvents | None) -> bool:
    """Delivers at most ``limit`` messages of a queue without rules. True when there may be more to do. ``events`` are
    told of each, if there are any.

    A consumer found full leaves the rotation. A message of a group gives the queue rules.
    """
    rotation = queue.rotation
    pending = queue.pending
    barrier = queue.barrier_sequence
    done = 0
    while rotation:
        slot = pending.head()
        if slot is None or (barrier and slot.sequence > barrier):
            return False
        if done >= limit:
            return True
        if before is not None:
            fate = before.take_expired(queue, slot, now_ms)
            if fate == ENDED:
                done += before.cost(queue)
                continue
            if fate == ROOM_TO_COME:
                before.put_off(queue)
                return False
        if slot.message.group_id and queue.in_force.group_buckets:
            queue.needs_rules = True
            return True
        consumer = rotation[0]
        assert isinstance(consumer, Consumer)  # no other holder is in rotation
        if not consumer.has_room():
            rotation.popleft().full = True
            continue
        if len(rotation) > 1:
            rotation.rotate(-1)
        queue.deliver(slot, consumer)
        slot.delivered_at_ms = now_ms
        consumer.port.deliver(slot)
        if events is not None:
            events.message_dispatched(queue.name, slot, consumer.called(), consumer.user_name())
        done += 1
    return False
