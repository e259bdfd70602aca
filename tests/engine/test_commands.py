"""Each command of a part of the broker is one decision: its batch is with the store when the command returns."""

from collections.abc import Callable

import pytest

from delosmq.model.message import ANYCAST, MULTICAST
from delosmq.model.settings import QueueSettings
from tests.engine.support import Bench, anycast

XID = b"branch"
Command = Callable[[Bench], object]


def sequence(bench: Bench) -> int:
    """Of the first message that the consumer of ``q`` holds."""
    return bench.broker.queues["q"].holders[0].all_held()[0]


def transacted(bench: Bench, *, by_branch: bool = False) -> None:
    broker = bench.broker
    (consumer,) = broker.queues["q"].holders
    transaction = broker.branches.start(XID) if by_branch else broker.transactions.begin("c")
    broker.transactions.send(transaction, bench.message("q", "in a transaction"))
    broker.consumers.acknowledge(consumer, sequence(bench), transaction)


def committed(bench: Bench) -> None:
    transacted(bench)
    (transaction,) = bench.broker.transactions.open.values()
    bench.broker.transactions.commit(transaction)


def rolled_back(bench: Bench) -> None:
    transacted(bench)
    (transaction,) = bench.broker.transactions.open.values()
    bench.broker.transactions.rollback(transaction)


def prepared(bench: Bench) -> None:
    transacted(bench, by_branch=True)
    bench.broker.branches.end(XID)
    bench.broker.branches.prepare(XID)


def ended(bench: Bench, *, commit: bool) -> None:
    prepared(bench)
    if commit:
        bench.broker.branches.commit(XID, False)
    else:
        bench.broker.branches.rollback(XID)


def leased(bench: Bench, *, release: bool = False) -> None:
    bench.broker.lease_groups.open("g", queue="other", topic="", run="r", incarnation=None)
    if release:
        bench.broker.lease_groups.release("g")


COMMANDS: dict[str, Command] = {
    "send": lambda b: b.broker.producers.send(b.message("q", "x")),
    "send to an address that is created": lambda b: b.broker.producers.send(b.message("new", "x"), "", ANYCAST),
    "send that no queue takes": lambda b: b.broker.producers.send(b.message("topic", "x"), "", MULTICAST),
    "acknowledge": lambda b: b.broker.consumers.acknowledge(b.broker.queues["q"].holders[0], sequence(b)),
    "acknowledge through": lambda b: b.broker.consumers.acknowledge_through(
        b.broker.queues["q"].holders[0], sequence(b)
    ),
    "reject": lambda b: b.broker.consumers.reject(b.broker.queues["q"].holders[0], sequence(b)),
    "reject poison": lambda b: b.broker.consumers.reject(b.broker.queues["q"].holders[0], sequence(b), poison=True),
    "reject through": lambda b: b.broker.consumers.reject_through(b.broker.queues["q"].holders[0], sequence(b)),
    "close a consumer": lambda b: b.broker.consumers.close(b.broker.queues["q"].holders[0]),
    "begin": lambda b: b.broker.transactions.begin("c"),
    "commit": committed,
    "roll back": rolled_back,
    "prepare": prepared,
    "commit a branch": lambda b: ended(b, commit=True),
    "roll back a branch": lambda b: ended(b, commit=False),
    "create an address": lambda b: b.broker.resources.create_address("a", {MULTICAST}),
    "create a queue": lambda b: b.broker.resources.create_queue(QueueSettings("n", "n", ANYCAST, durable=True)),
    "pause a queue": lambda b: b.broker.resources.update_queue("q", paused=True),
    "disable a queue": lambda b: b.broker.resources.update_queue("q", enabled=False),
    "purge a queue": lambda b: b.broker.resources.purge_queue("q"),
    "delete a queue": lambda b: b.broker.resources.delete_queue("q"),
    "delete an address": lambda b: b.broker.resources.delete_address("q", force=True),
    "create a temporary destination": lambda b: b.broker.resources.create_temporary("t", ANYCAST, "c"),
    "open a lease group": leased,
    "release a lease group": lambda b: leased(b, release=True),
    "clear duplicate ids": lambda b: b.broker.duplicate_ids.clear("q"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_leaves_no_batch_open(name: str):
    bench = Bench(
        queues=(anycast("q"), anycast("other")),
        settings={"#": {"dead_letter_address": "DLQ"}},
    )
    bench.send("q", "A B C")
    bench.send("other", "D")
    bench.consume("q")
    bench.run()
    COMMANDS[name](bench)
    batches = len(bench.store.batches)
    bench.broker.log.close()
    assert len(bench.store.batches) == batches, "records of the command were still to be handed to the store"
