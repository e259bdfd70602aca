"""Our client's machine in the place of the Java client: it hears what the recorded broker said, and says the same."""

from collections.abc import Callable
from dataclasses import replace

from delosmq.model.ids import MonotonicNs, WallMs
from delosmq.sessions.client_errors import ClientError
from delosmq.sessions.openwire.client.acknowledgement import Delivery
from delosmq.sessions.openwire.client.connection import OpenWireClient
from delosmq.sessions.openwire.client.consumer import OpenWireConsumer
from delosmq.sessions.openwire.client.handshake import ClientIdentity
from delosmq.sessions.openwire.client.options import (
    AckMode,
    ClientOptions,
    DestinationOptions,
    PrefetchPolicy,
    RedeliveryPolicy,
    WireFormatOptions,
)
from delosmq.sessions.openwire.client.ports import ClientEvents, PendingRequest
from delosmq.sessions.openwire.client.session import ConsumerWish, OpenWireClientSession
from delosmq.wire.openwire.codec import encode_command
from delosmq.wire.openwire.commands import TEXT_MESSAGE, ConnectionControl, ConnectionInfo, MessageAck, MessageCommand
from delosmq.wire.openwire.decoder import OpenWireDecoder, OpenWireLimits
from delosmq.wire.openwire.negotiation import WireFormatInfo, encode_wire_format_info
from delosmq.wire.openwire.structures import Destination, Structure, Throwable
from delosmq.wire.openwire.wire_format import WireFormat
from tests.engine.support import CountingRandom, ManualClock
from tests.sessions.openwire.recordings import Recording

OPTIONS = DestinationOptions()
PREFETCH_4 = PrefetchPolicy(4, 4, 4, 4, 4)
AT_ONCE = RedeliveryPolicy(initial_redelivery_delay_ms=0)
AT_ONCE_AND_AGAIN = RedeliveryPolicy(initial_redelivery_delay_ms=0, redelivery_delay_ms=0)


class Told(ClientEvents):
    """What the machine told."""

    def __init__(self) -> None:
        self.is_open = False
        self.answers: list[PendingRequest] = []
        self.waiters: list[object] = []
        self.troubles: list[ClientError] = []
        self.ends: list[ClientError | None] = []
        self.interruptions: list[ClientError] = []
        self.advice: list[ConnectionControl] = []
        self.branches: list[tuple[str, bool]] = []

    def opened(self) -> None:
        self.is_open = True

    def answered(self, request: PendingRequest) -> None:
        self.answers.append(request)

    def changed(self, waiter: object) -> None:
        self.waiters.append(waiter)

    def troubled(self, error: ClientError) -> None:
        self.troubles.append(error)

    def connection_control(self, control: ConnectionControl) -> None:
        self.advice.append(control)

    def branch_ended(self, key: str, *, committed: bool) -> None:
        self.branches.append((key, committed))

    def interrupted(self, error: ClientError) -> None:
        self.interruptions.append(error)

    def ended(self, error: ClientError | None) -> None:
        self.ends.append(error)


class Times(ManualClock):
    """Both clocks, one apart from the other."""

    def __init__(self) -> None:
        super().__init__()
        self.passed_ms = 1

    def wall_ms(self) -> WallMs:
        return WallMs(self.now_ms)

    def monotonic_ns(self) -> MonotonicNs:
        return MonotonicNs(self.passed_ms * 1_000_000)

    def advance(self, ms: int) -> None:
        self.passed_ms += ms
        self.now_ms += ms


class Player:
    """Plays an application to our machine, against the broker's side of a recording.

    Args:
        hands_over: the application is another thread, to which messages are handed over in batches.

    Attributes:
        sent: the frames of our machine so far, without the WireFormatInfo.
    """

    def __init__(self, name: str, options: ClientOptions, *, hands_over: bool = False) -> None:
        self.hands_over = hands_over
        self.recording = Recording(name)
        login = next(one for one in self.recording.commands() if isinstance(one, ConnectionInfo))
        assert login.connection_id is not None
        identity = ClientIdentity(
            login.connection_id.value, "", login.user_name or "", login.password or "", "classic:61616"
        )
        self.clock = Times()
        self.told = Told()
        options = replace(options, wire_format=WireFormatOptions(stack_trace_enabled=self.recording.form.stack_traces))
        self.machine = OpenWireClient(self.told, options, identity, self.clock, CountingRandom())
        self.sent: list[bytes] = []
        self._theirs = [step.raw for step in self.recording.steps if not step.by_client]
        self._times = [one.timestamp for one in self.recording.commands() if isinstance(one, MessageCommand)]
        assert isinstance(decoded(self.machine.take_output(), None), WireFormatInfo)
        hello = WireFormatInfo(12)
        hello.stack_trace_enabled = self.recording.form.stack_traces
        self.machine.receive(encode_wire_format_info(hello))
        self.until(lambda: self.told.is_open)
        self.machine.start()

    # --- the broker

    def until(self, done: Callable[[], bool]) -> None:
        """Lets the broker say what it said, until ``done``."""
        self._take()
        while not done():
            assert self._theirs, f"the broker has nothing more to say; we said {len(self.sent)} frames"
            self.machine.receive(self._theirs.pop(0))
            self._take()

    def _take(self) -> None:
        output = self.machine.take_output()
        while output:
            size = 4 + int.from_bytes(output[:4], "big")
            self.sent.append(output[:size])
            output = output[size:]

    def answered(self, request: PendingRequest | None) -> None:
        if request is not None:
            self.until(lambda: request.done)
            assert request.error is None, request.error
        self._take()

    # --- the application

    def session(self, mode: AckMode = AckMode.AUTO) -> OpenWireClientSession:
        return self.machine.create_session(mode)

    def send(
        self, session: OpenWireClientSession, destination: Destination, first: int, last: int, life: int = 0
    ) -> None:
        """A producer of its own for each message, as the recorder has it."""
        for number in range(first, last + 1):
            message = MessageCommand(TEXT_MESSAGE)
            body = f"m{number}".encode()
            message.content = len(body).to_bytes(4, "big") + body
            self.send_one(session, destination, message, life)

    def send_one(
        self, session: OpenWireClientSession, destination: Destination, message: MessageCommand, life: int = 0
    ) -> None:
        producer, request = session.add_producer(destination)
        self.answered(request)
        self.clock.now_ms = self._times.pop(0)
        self.answered(producer.send(message, destination, time_to_live_ms=life))

    def consumer(
        self,
        session: OpenWireClientSession,
        destination: Destination,
        *,
        selector: str = "",
        durable: str = "",
        no_local: bool = False,
        browser: bool = False,
        options: DestinationOptions = OPTIONS,
    ) -> OpenWireConsumer:
        wish = ConsumerWish(
            destination, options, selector=selector, subscription_name=durable, no_local=no_local, browser=browser
        )
        consumer, request = session.add_consumer(wish)
        self.answered(request)
        return consumer

    def next(self, consumer: OpenWireConsumer, *, hands_over: bool = False) -> Delivery:
        """The next message, when it is there."""
        found: list[Delivery] = []

        def look() -> bool:
            if not hands_over:
                consumer.take_back()
            if consumer.handed_over and not consumer.is_expired(first_of(consumer)):
                found.append(take(consumer))
                return True
            consumer.take_back()
            delivery = consumer.reserve()
            if delivery is not None and hands_over:
                consumer.hand_over(delivery)
                delivery = take(consumer)
            if delivery is not None:
                found.append(delivery)
            return delivery is not None

        self.until(look)
        return found[0]

    def receive(self, consumer: OpenWireConsumer, count: int = 1) -> Delivery:
        """Some messages; the last one."""
        for _ in range(count):
            delivery = self.next(consumer, hands_over=self.hands_over)
            consumer.consumed(delivery)
        self._take()
        return delivery

    def listen(self, consumer: OpenWireConsumer, *, fails: bool = False) -> None:
        """What a listener does with one message."""
        delivery = self.next(consumer)
        consumer.before(delivery)
        if fails:
            consumer.failed(delivery)
        else:
            consumer.after(delivery)
        self._take()

    def pull(self, consumer: OpenWireConsumer, timeout_ms: int) -> Delivery | None:
        """What the broker gives, or that it has nothing."""
        assert consumer.pull(timeout_ms)
        ends = consumer.ends
        self.until(lambda: consumer.waiting_count > 0 or consumer.ends > ends)
        return self.receive(consumer) if consumer.waiting_count else None

    def ready(self, consumer: OpenWireConsumer, count: int) -> None:
        """So many have come."""
        self.until(lambda: consumer.waiting_count + len(consumer.handed_over) == count)

    def close(self) -> None:
        self.answered(self.machine.close())
        assert self.told.ends == [None]

    # --- what was said

    def compare(self) -> None:
        """Frame by frame, to the byte, but for the words of a cause."""
        form = self.recording.form
        theirs = [without_cause(step.raw, form) for step in self.recording.steps if step.by_client]
        ours = [without_cause(frame, form) for frame in self.sent]
        assert shown(ours, form) == shown(theirs, form)
        assert ours == theirs


def first_of(consumer: OpenWireConsumer) -> Delivery:
    """Of what is handed over."""
    return next(iter(consumer.handed_over))


def take(consumer: OpenWireConsumer) -> Delivery:
    """As the other thread."""
    delivery = first_of(consumer)
    assert consumer.handed_over.pop(delivery)
    return delivery


def decoded(frame: bytes, form: WireFormat | None) -> Structure:
    decoder = OpenWireDecoder(OpenWireLimits())
    if form is not None:
        decoder.agreed(form)
    found = decoder.next_frame(frame)
    assert found is not None
    return found


def without_cause(frame: bytes, form: WireFormat) -> bytes:
    one = decoded(frame, form)
    if isinstance(one, MessageAck) and one.poison_cause is not None:
        one.poison_cause = Throwable(one.poison_cause.class_name, "")
        return encode_command(one, form)
    return frame


def shown(frames: list[bytes], form: WireFormat) -> list[str]:
    """Frames for people."""
    rows: list[str] = []
    for frame in frames:
        one = decoded(frame, form)
        words = [type(one).__name__]
        for field in form.layout[one.code]:
            value = getattr(one, field.name)
            value = value.class_name if isinstance(value, Throwable) else value
            key = getattr(value, "key", None) or getattr(value, "qualified_name", None)
            if value not in (None, 0, "", False):
                words.append(f"{field.name}={key() if key else value}")
        rows.append(" ".join(words))
    return rows
