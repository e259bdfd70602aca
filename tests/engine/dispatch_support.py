"""Short words for tests of dispatch: groups, selectors, priorities, what each consumer got."""

from delosmq.engine.base.slots import Slot
from delosmq.engine.queues.consumer import Consumer, ConsumerOptions
from delosmq.engine.queues.credit import Credit, MessageCredit, OpenCredit
from delosmq.model.ids import WallMs
from delosmq.model.message import ANYCAST, Message
from delosmq.model.settings import DispatchProfile, QueueSettings
from delosmq.selectors.selector import Selector, parse_selector
from tests.engine.support import Bench, Collector

CLASSIC = DispatchProfile.CLASSIC


class Port(Collector):
    """A consumer that also notes which messages were the first of their group, and the end of a browse."""

    def __init__(self) -> None:
        super().__init__()
        self.consumer: Consumer | None = None
        self.firsts: list[str] = []
        self.ends = 0

    def deliver(self, slot: Slot) -> None:
        super().deliver(slot)
        if self.consumer is not None and self.consumer.first_of_group:
            self.firsts.append(slot.message.body.decode())

    def browse_ended(self) -> None:
        self.ends += 1


class Peer:
    """A consumer with its port. ``credit`` 0 is unbounded."""

    def __init__(self, field: "Field", options: ConsumerOptions, credit: Credit) -> None:
        self.port = Port()
        self.broker = field.broker
        self.consumer = field.broker.consumers.subscribe("q", self.port, credit, routing=ANYCAST, options=options)
        self.port.consumer = self.consumer

    @property
    def got(self) -> str:
        return self.port.bodies

    def ack(self, body: str) -> None:
        assert self.broker.consumers.acknowledge(self.consumer, self._sequence(body))

    def reject(self, body: str) -> None:
        assert self.broker.consumers.reject(self.consumer, self._sequence(body))

    def _sequence(self, body: str) -> int:
        return next(s.sequence for s in reversed(self.port.slots) if s.message.body.decode() == body)

    def close(self) -> None:
        self.broker.consumers.close(self.consumer)


class Field(Bench):
    """One queue ``q`` whose address has the settings given."""

    def __init__(self, *, queue: dict[str, object] | None = None, **settings: object) -> None:
        made = QueueSettings("q", "q", ANYCAST, **(queue or {}))  # type: ignore[arg-type]
        super().__init__(queues=(made,), settings={"q": settings} if settings else None)

    def peer(
        self,
        credit: int | Credit = 0,
        *,
        priority: int = 0,
        exclusive: bool = False,
        selector: str | Selector = "",
        no_local: str = "",
        browser: bool = False,
    ) -> Peer:
        strategy: Credit = OpenCredit() if credit == 0 else MessageCredit(credit) if isinstance(credit, int) else credit
        options = ConsumerOptions(
            priority=priority,
            exclusive=exclusive,
            selector=parse_selector(selector) if isinstance(selector, str) and selector else selector or None,
            no_local=no_local,
            browser=browser,
        )
        return Peer(self, options, strategy)

    def put(
        self,
        bodies: str,
        *,
        priority: int = 4,
        group: str = "",
        sequence: int = 0,
        user: str = "",
        connection: str = "",
        durable: bool = True,
        expires_in_ms: int = 0,
        run: bool = True,
    ) -> None:
        """Sends each word; ``user`` is what selectors see as JMSXUserID."""
        for body in bodies.split():
            message = Message(
                "q",
                "stomp/12",
                b"",
                body.encode(),
                durable=durable,
                priority=priority,
                timestamp_ms=WallMs(self.clock.now_ms),
                expires_at_ms=WallMs(self.clock.now_ms + expires_in_ms if expires_in_ms else 0),
                user=user,
                group_id=group,
                group_sequence=sequence,
                connection_id=connection,
            )
            self.broker.producers.send(message)
        if run:
            self.run()

    def later(self, milliseconds: int) -> None:
        """Time passes."""
        self.clock.now_ms += milliseconds
        self.run()

    @property
    def waiting(self) -> str:
        return self.pending("q")
