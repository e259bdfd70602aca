"""What is told of each message only where the address-settings ask for it."""

import pytest

from delosmq.engine.base.events import EngineEvents
from delosmq.engine.base.slots import Slot
from delosmq.model.errors import LimitError
from delosmq.model.message import ANYCAST, MULTICAST, Message
from delosmq.model.settings import AddressFullPolicy, QueueSettings
from tests.engine.support import Bench

TOLD_OF_SENDS: list[dict[str, object]] = [{"advisory_for_delivery": True}, {"advisory_if_no_consumers": True}]


class Heard(EngineEvents):
    def __init__(self) -> None:
        self.told: list[str] = []

    def message_routed(self, message: Message, queues: list[str]) -> None:
        self.told.append(f"{message.body.decode()} in {' '.join(queues)}")

    def message_unrouted(self, message: Message) -> None:
        self.told.append(f"{message.body.decode()} nowhere")

    def message_acknowledged(self, queue: str, queue_id: int, slot: Slot, holder: str, user: str) -> None:
        self.told.append(f"{slot.message.body.decode()} done in {queue}")

    def address_full(self, message: Message) -> None:
        self.told.append(f"no room for {message.body.decode()}")


def bench_with(**fields: object) -> tuple[Bench, Heard]:
    heard = Heard()
    return Bench(settings={"#": fields}, events=heard), heard


@pytest.mark.parametrize("fields", TOLD_OF_SENDS)
def test_sends_are_told_of(fields: dict[str, object]) -> None:
    bench, heard = bench_with(**fields)
    bench.broker.resources.create_queue(QueueSettings("a", "t", MULTICAST))
    bench.broker.resources.create_queue(QueueSettings("b", "t", MULTICAST))
    bench.send("t", "m1", routing=MULTICAST)
    bench.send("q", "m2", routing=ANYCAST)
    bench.send("nobody", "m3", routing=MULTICAST)
    assert heard.told == ["m1 in a b", "m2 in q", "m3 nowhere"]


@pytest.mark.parametrize("count", [3, 2_500])
def test_sends_of_a_transaction_are_told_of_at_its_commit(count: int) -> None:
    bench, heard = bench_with(advisory_for_delivery=True)
    transaction = bench.broker.transactions.begin("me")
    for number in range(count):
        bench.broker.transactions.send(transaction, bench.message("q", str(number)), routing=ANYCAST)
    assert heard.told == []
    bench.broker.transactions.commit(transaction)
    bench.run()
    assert heard.told == [f"{number} in q" for number in range(count)]


def test_acknowledgements_are_told_of() -> None:
    bench, heard = bench_with(advisory_for_consumed=True)
    bench.send("q", "m1 m2 m3 m4", routing=ANYCAST)
    consumer, port = bench.consume("q")
    bench.run()
    broker = bench.broker
    broker.consumers.acknowledge(consumer, port.slots[1].sequence)
    transaction = broker.transactions.begin("me")
    broker.consumers.acknowledge(consumer, port.slots[0].sequence, transaction)
    assert heard.told == ["m2 done in q"]
    broker.transactions.commit(transaction)
    broker.consumers.acknowledge_through(consumer, port.slots[3].sequence)
    assert heard.told == ["m2 done in q", "m1 done in q", "m3 done in q", "m4 done in q"]


def test_many_acknowledgements_at_once_are_told_of() -> None:
    bench, heard = bench_with(advisory_for_consumed=True)
    bench.send("q", " ".join(str(number) for number in range(1_500)), routing=ANYCAST)
    consumer, port = bench.consume("q")
    bench.run()
    bench.broker.consumers.acknowledge_through(consumer, port.slots[-1].sequence)
    bench.run()
    assert heard.told == [f"{number} done in q" for number in range(1_500)]


def test_a_purge_is_no_acknowledgement() -> None:
    bench, heard = bench_with(advisory_for_consumed=True)
    bench.send("q", "m1", routing=ANYCAST)
    bench.broker.resources.purge_queue("q")
    bench.run()
    assert heard.told == []


def test_by_default_only_full_addresses_are_told_of() -> None:
    bench, heard = bench_with(max_size_messages=1, address_full_policy=AddressFullPolicy.FAIL)
    bench.send("q", "m1", routing=ANYCAST)
    with pytest.raises(LimitError):
        bench.send("q", "m2", routing=ANYCAST)
    consumer, port = bench.consume("q")
    bench.run()
    bench.broker.consumers.acknowledge(consumer, port.slots[0].sequence)
    bench.send("nobody", "m3", routing=MULTICAST)
    assert heard.told == ["no room for m2"]
