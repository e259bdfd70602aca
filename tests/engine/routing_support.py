"""A bench for routing: settings of the whole broker, and messages with properties."""

from dataclasses import replace

from delosmq.engine.base.events import EngineEvents
from delosmq.engine.broker import EngineBroker
from delosmq.engine.lifecycle.subscriptions import SubscriptionOptions
from delosmq.engine.queues.consumer import Consumer
from delosmq.engine.queues.credit import OpenCredit
from delosmq.engine.queues.queue import Queue
from delosmq.model.conversion import Conversions
from delosmq.model.message import ANY_ROUTING, MULTICAST, Message
from delosmq.model.settings import AddressMatch, BrokerSettings
from delosmq.wire.stomp.conversion import StompConversion, encode_lines
from delosmq.wire.stomp.versions import V12
from tests.engine.support import Bench, Collector, CountingRandom, ManualClock, RecordingStore


class RoutingBench(Bench):
    def __init__(
        self, settings: BrokerSettings | None = None, *, addresses: dict[str, dict[str, object]] | None = None
    ) -> None:
        self.clock = ManualClock()
        self.store = RecordingStore()
        self.settings = settings if settings is not None else BrokerSettings()
        if addresses:
            matches = tuple(AddressMatch(match, fields) for match, fields in addresses.items())
            self.settings = replace(self.settings, address_settings=matches)
        self.conversions = Conversions({"stomp": StompConversion()})
        self.broker = EngineBroker(
            self.settings,
            self.store,
            clock=self.clock,
            random=CountingRandom(),
            events=EngineEvents(),
            conversions=self.conversions,
        )
        self.broker.start()

    def with_properties(self, address: str, body: str, properties: dict[str, str], *, durable: bool = True) -> Message:
        head = encode_lines([("destination", address), *properties.items()], V12)
        return Message(address, "stomp/12", head, body.encode(), durable=durable, timestamp_ms=self.clock.wall_ms())

    def put(
        self, address: str, body: str, *, routing: int = ANY_ROUTING, queue_name: str = "", **properties: str
    ) -> int:
        message = self.with_properties(address, body, properties)
        return self.broker.producers.send(message, routing=routing, queue_name=queue_name)

    def listen(
        self, address: str, *, routing: int = MULTICAST, queue_name: str = "", **options: object
    ) -> tuple[Consumer, Collector]:
        port = Collector()
        subscription = SubscriptionOptions(**options) if options else None  # type: ignore[arg-type]
        consumer = self.broker.consumers.subscribe(
            address, port, OpenCredit(), routing=routing, queue_name=queue_name, subscription=subscription
        )
        return consumer, port

    def take_all(self, consumer: Consumer, port: Collector) -> None:
        """Dispatches and acknowledges everything."""
        self.run()
        if port.slots:
            self.broker.consumers.acknowledge_through(consumer, port.slots[-1].sequence)


def projection(bench: Bench) -> dict[str, object]:
    """What must be the same after a restart: durable queues, their settings, and what the store holds in them."""
    found: dict[str, object] = {}
    for queue in bench.broker.queues.values():
        if queue.settings.durable:
            slots = queue.pending.in_order()
            found[queue.name] = (
                queue.settings,
                [(slot.sequence, slot.message.body, slot.message.annotations) for slot in slots if slot.recorded],
            )
    return found


def recount(bench: Bench) -> None:
    """Memory is what the messages that are there cost, each once."""
    messages = {id(slot.message): slot.message for queue in all_queues(bench) for slot in queue.pending.in_order()}
    assert bench.broker.used_bytes == sum(message.charge_bytes for message in messages.values())
    for address in bench.broker.addresses.values():
        mine = [message for message in messages.values() if message.account is address.account]
        assert address.account.used_messages == len(mine)


def all_queues(bench: Bench) -> list[Queue]:
    return list(bench.broker.queues.values())
