"""The end of a history: everything is consumed, and what must come does."""

from tests.simulation.broker_world import Reference
from tests.simulation.whole.acts import excuse_all
from tests.simulation.whole.catalogue import TOLD
from tests.simulation.whole.leases import TOPIC_GROUP
from tests.simulation.whole.life import Life, Listener
from tests.simulation.whole.oracle import original

LATER_MS = 3_600_000
PLENTY = 1_000
NAP_MS = 5_000


def drain(life: Life) -> None:
    """Ends what is in doubt, lets all times come, and consumes: each message comes once, and none stays."""
    broker = life.broker
    for sink in life.catalogue.sinks:
        if sink.name not in broker.queues:
            broker.resources.create_queue(sink)
    for branch in list(broker.branches.prepared()):
        assert branch.xid is not None
        life.knowledge.decided.add(branch.xid)
        life.knowledge.refused.update(number for number, _, _ in life.knowledge.branches[branch.xid][0])
        broker.branches.rollback(branch.xid)
    for group in list(broker.leases.groups):
        if group == TOPIC_GROUP:
            excuse_all(life, group)  # its queue goes with it
        broker.lease_groups.release(group)
    life.times.note(broker.queues)
    life.set_clock.set(life.set_clock.latest_by_ms)  # or what is to come at a time of day may be far off
    life.clock.now_ms += LATER_MS
    for name in life.names():
        if broker.queues[name].paused:
            broker.resources.update_queue(name, paused=False)
    due = life.knowledge.confirmed - life.knowledge.ack_issued
    listeners = [life.listen(name, PLENTY) for name in life.names()]
    got: list[Reference] = []
    idle = 0
    for _ in range(100):
        life.rest_a_while()
        if _consume(life, listeners, got) or life.more:
            idle = 0
            continue
        # What waits for another file of the journal looks again in a moment.
        life.clock.now_ms += NAP_MS
        idle += 1
        if idle > 2:
            break
    # What is read without being taken may expire afterwards, and is read again at the expiry address.
    lent = {name for name, queue in broker.queues.items() if queue.in_force.non_destructive}
    taken = [reference for reference in got if reference[1] not in lent]
    twice = {reference for reference in taken if taken.count(reference) > 1} if len(taken) > len(set(taken)) else set()
    assert not twice, f"delivered twice although nothing was returned: {sorted(twice)[:5]}"
    lost = due - life.knowledge.excused - set(got)
    assert not lost, f"confirmed and never delivered: {sorted(lost)[:5]}"
    for name, queue in broker.queues.items():
        if name != TOLD and not (queue.in_force.non_destructive or queue.internal):
            assert queue.message_count == 0, f"{queue.message_count} messages of {name} reach no consumer"


def _consume(life: Life, listeners: list[Listener], got: list[Reference]) -> bool:
    some = False
    for listener in listeners:
        while listener.seen:
            some = True
            slot = listener.seen.pop(0)
            got.append(original(listener.queue, slot))
            assert life.broker.consumers.acknowledge(listener.subscribed, slot.sequence)
            if not listener.borrows:
                life.answered(listener.queue, [slot])
    return some
