"""What no recording shows of the client's machine: silence, answers that don't come, wishes of the broker, delays."""

# ACK-2, ACK-4, ACK-7, TTL-6

from dataclasses import replace

import pytest

from delosmq.sessions.client_errors import (
    ConnectionLostError,
    RefusedError,
    TimedOutError,
    TransactionInDoubtError,
    TransactionRolledBackError,
)
from delosmq.sessions.openwire.client.connection import OpenWireClient
from delosmq.sessions.openwire.client.consumer import OpenWireConsumer
from delosmq.sessions.openwire.client.handshake import ClientIdentity
from delosmq.sessions.openwire.client.options import (
    AckMode,
    ClientOptions,
    PrefetchPolicy,
    RedeliveryPolicy,
    WireFormatOptions,
)
from delosmq.sessions.openwire.client.session import ConsumerWish, OpenWireClientSession
from delosmq.wire.openwire.codec import encode_command
from delosmq.wire.openwire.commands import (
    TEXT_MESSAGE,
    BrokerInfo,
    ConnectionControl,
    ConnectionError,
    ConnectionInfo,
    ConsumerControl,
    ExceptionResponse,
    KeepAliveInfo,
    MessageAck,
    MessageCommand,
    MessageDispatch,
    MessagePull,
    ProducerAck,
    RemoveInfo,
    Response,
    ShutdownInfo,
    TransactionInfo,
)
from delosmq.wire.openwire.decoder import OpenWireDecoder, OpenWireLimits
from delosmq.wire.openwire.negotiation import WireFormatInfo, encode_wire_format_info
from delosmq.wire.openwire.structures import Command, Destination, MessageId, ProducerId, Structure, Throwable
from delosmq.wire.openwire.wire_format import WireFormat
from tests.engine.support import CountingRandom
from tests.sessions.openwire_client.support import OPTIONS, Times, Told

QUEUE = Destination("q")
FORM = WireFormat(12)
ACKS = ("DELIVERED", "POISON", "STANDARD", "REDELIVERED", "INDIVIDUAL", "UNMATCHED", "EXPIRED")


class Wire:
    """A machine whose broker is the test."""

    def __init__(
        self,
        options: ClientOptions | None = None,
        *,
        answers: bool = True,
        agrees: bool = True,
        fault_tolerant: bool = False,
    ) -> None:
        self.clock = Times()
        self.told = Told()
        identity = ClientIdentity("ID:c:1", "ID:c:0", "u", "p", "tcp://b:1", fault_tolerant=fault_tolerant)
        self.machine = OpenWireClient(
            self.told, options or ClientOptions(watch_topic_advisories=False), identity, self.clock, CountingRandom()
        )
        self.machine.take_output()
        self.answers = True
        self._dispatched = 0
        self.renew()
        if not agrees:
            return
        self.machine.receive(encode_wire_format_info(WireFormatInfo()))
        self.answers = answers
        self.take()
        if answers:
            assert self.told.is_open
            self.machine.start()

    def renew(self) -> None:
        """The next frame is that of a new connection."""
        self._decoder = OpenWireDecoder(OpenWireLimits())
        self._decoder.agreed(FORM)

    def take(self) -> list[Structure]:
        """What the machine said; answered if it wants an answer."""
        found: list[Structure] = []
        while output := self.machine.take_output():
            frame = self._decoder.next_frame(output)
            while frame is not None:
                found.append(frame)
                if isinstance(frame, Command) and frame.response_required and self.answers:
                    self.say(Response(frame.command_id))
                frame = self._decoder.next_frame()
        return found

    def say(self, command: Command) -> None:
        self.machine.receive(encode_command(command, FORM))

    def refuse(self, frames: list[Structure], class_name: str) -> None:
        """Answers the last of these."""
        frame = frames[-1]
        assert isinstance(frame, Command)
        self.say(ExceptionResponse(frame.command_id, Throwable(class_name, "because")))

    def pass_ms(self, ms: int) -> None:
        self.clock.advance(ms)
        self.machine.handle_timer()

    def consumer(self, mode: AckMode = AckMode.AUTO) -> tuple[OpenWireClientSession, OpenWireConsumer]:
        session = self.machine.create_session(mode)
        consumer, _ = session.add_consumer(ConsumerWish(QUEUE, OPTIONS))
        self.take()
        return session, consumer

    def dispatch(
        self, consumer: OpenWireConsumer, count: int = 1, *, redelivered: int = 0, expires_ms: int = 0, number: int = 0
    ) -> None:
        for _ in range(count):
            self._dispatched += 1
            sequence = number or self._dispatched
            message = MessageCommand(TEXT_MESSAGE)
            message.message_id = MessageId(ProducerId("p", 1, 1), sequence, sequence)
            message.expiration = expires_ms
            dispatch = MessageDispatch()
            dispatch.consumer_id = consumer.info.consumer_id
            dispatch.destination = QUEUE
            dispatch.message = message
            dispatch.redelivery_counter = redelivered
            self.say(dispatch)

    def acks(self) -> list[str]:
        """What was acknowledged since the last look."""
        found = []
        for one in self.take():
            if isinstance(one, MessageAck):
                assert one.last_message_id is not None
                first = "" if one.first_message_id is None else one.first_message_id.producer_sequence_id
                found.append(f"{ACKS[one.ack_type]} {first}-{one.last_message_id.producer_sequence_id}")
        return found


def consume(consumer: OpenWireConsumer, count: int = 1) -> None:
    for _ in range(count):
        delivery = consumer.reserve()
        assert delivery is not None
        consumer.consumed(delivery)


# --- the connection


def test_a_broker_that_is_silent_for_too_long_is_gone() -> None:
    wire = Wire()
    for _ in range(5):
        wire.pass_ms(10_001)
    assert isinstance(wire.told.ends[0], ConnectionLostError)
    assert str(wire.told.ends[0]).startswith("DMQ9010: nothing came from tcp://b:1 for 30000 ms")
    assert wire.machine.next_timer() == 0


def test_a_sign_of_life_is_enough_and_we_give_ours_when_we_say_nothing() -> None:
    wire = Wire()
    for _ in range(20):
        wire.pass_ms(10_001)
        assert [type(one) for one in wire.take()] == [KeepAliveInfo] or wire.clock.passed_ms < 11_000
        wire.say(KeepAliveInfo())
    assert wire.told.ends == []
    session = wire.machine.create_session(AckMode.AUTO)
    wire.take()
    wire.pass_ms(10_001)
    assert session.closed is False
    assert wire.take() == []


def test_without_an_inactivity_time_silence_means_nothing() -> None:
    wire = Wire(
        ClientOptions(watch_topic_advisories=False, wire_format=WireFormatOptions(max_inactivity_duration_ms=0))
    )
    assert wire.machine.next_timer() == 0


def test_a_question_for_a_sign_of_life_is_answered() -> None:
    wire = Wire()
    question = KeepAliveInfo()
    question.response_required = True
    wire.say(question)
    assert [type(one) for one in wire.take()] == [KeepAliveInfo]


def test_a_refused_login_ends_the_connection() -> None:
    wire = Wire(answers=False)
    wire.machine.take_output()
    login = ConnectionInfo()
    login.command_id = 1
    wire.refuse([login], "java.lang.SecurityException")
    assert [str(error) for error in wire.told.ends] == [
        "DMQ9020: the broker refused the login: because. See whether user= and password= of connect() are right, and"
        " have the user given the permission for this."
    ]


def test_bytes_that_are_no_frame_end_the_connection() -> None:
    wire = Wire()
    wire.machine.receive(b"\0\0\0\2\xff\xff")
    assert str(wire.told.ends[0]).startswith("DMQ9009: the connection to tcp://b:1 is gone: it sent what can't be read")


def test_what_the_broker_says_of_a_silent_command_is_told() -> None:
    wire = Wire()
    wire.say(ConnectionError(Throwable("javax.jms.JMSException", "no")))
    assert [type(error) for error in wire.told.troubles] == [RefusedError]
    assert wire.told.ends == []


def test_an_unanswered_end_is_not_waited_for_longer_than_the_close_timeout() -> None:
    wire = Wire()
    wire.answers = False
    request = wire.machine.close()
    assert [type(one) for one in wire.take()] == [RemoveInfo]
    wire.pass_ms(15_000)
    assert request.done
    assert wire.told.ends == [None]
    assert [type(one) for one in wire.take()] == [ShutdownInfo]


def test_the_end_of_the_connection_is_the_end_of_all_that_waits() -> None:
    wire = Wire()
    session, consumer = wire.consumer()
    consumer.waiter = "somebody"
    wire.answers = False
    request = wire.machine.unsubscribe("s")
    wire.machine.lose()
    assert isinstance(request.error, ConnectionLostError)
    assert (session.closed, consumer.closed) == (True, True)
    assert "somebody" in wire.told.waiters
    late = wire.machine.request(ShutdownInfo(), "too late")
    assert late.done
    assert late.error is not None


# --- answers


def test_an_unanswered_message_is_given_up_after_the_send_timeout() -> None:
    wire = Wire(ClientOptions(watch_topic_advisories=False, send_timeout_ms=50))
    producer, _ = wire.machine.create_session(AckMode.AUTO).add_producer(QUEUE)
    wire.take()
    wire.answers = False
    request = producer.send(MessageCommand(TEXT_MESSAGE), QUEUE, persistent=False)
    assert request is not None
    wire.pass_ms(50)
    assert isinstance(request.error, TimedOutError)


@pytest.mark.parametrize(
    "options, persistent, waits",
    [
        (ClientOptions(), True, True),
        (ClientOptions(), False, False),
        (ClientOptions(use_async_send=True), True, False),
        (ClientOptions(always_sync_send=True), False, True),
        (ClientOptions(send_timeout_ms=1, use_async_send=True), False, True),
    ],
)
def test_which_messages_are_confirmed(options: ClientOptions, persistent: bool, waits: bool) -> None:  # ACK-7
    wire = Wire(replace(options, watch_topic_advisories=False))
    producer, _ = wire.machine.create_session(AckMode.AUTO).add_producer(QUEUE)
    request = producer.send(MessageCommand(TEXT_MESSAGE), QUEUE, persistent=persistent)
    assert (request is not None) == waits


def test_a_full_producer_window_has_no_room_until_the_broker_says_so() -> None:
    wire = Wire(ClientOptions(watch_topic_advisories=False, producer_window_size_bytes=1500))
    producer, _ = wire.machine.create_session(AckMode.AUTO).add_producer(QUEUE)
    producer.waiter = "me"
    for _ in range(2):
        assert producer.has_room()
        producer.send(MessageCommand(TEXT_MESSAGE), QUEUE, persistent=False)
    assert not producer.has_room()
    wire.say(ProducerAck(producer.producer_id, 1024))
    assert producer.has_room()
    assert "me" in wire.told.waiters


@pytest.mark.parametrize("end", ["producer", "session", "connection", "loss"])
def test_who_waits_for_a_producer_window_hears_of_the_end(end: str) -> None:  # ACK-7
    wire = Wire(ClientOptions(watch_topic_advisories=False, producer_window_size_bytes=1))
    session = wire.machine.create_session(AckMode.AUTO)
    producer, _ = session.add_producer(QUEUE)
    producer.waiter = "me"
    producer.send(MessageCommand(TEXT_MESSAGE), QUEUE, persistent=False)
    wire.take()
    assert not producer.has_room()
    if end == "producer":
        session.close_producer(producer)
    elif end == "session":
        wire.machine.close_session(session)
    elif end == "connection":
        wire.machine.close()
    else:
        wire.machine.lose()
    assert producer.closed
    assert "me" in wire.told.waiters


def test_a_commit_that_was_on_its_way_is_in_doubt() -> None:
    wire = Wire()
    session, consumer = wire.consumer(AckMode.TRANSACTED)
    wire.dispatch(consumer)
    consume(consumer)
    wire.answers = False
    request = session.commit()
    wire.machine.lose()
    assert isinstance(request.error, TransactionInDoubtError)


def test_a_commit_that_is_refused_delivers_again() -> None:
    policy = RedeliveryPolicy(initial_redelivery_delay_ms=0)
    wire = Wire(ClientOptions(watch_topic_advisories=False, redelivery_policy=policy))
    session, consumer = wire.consumer(AckMode.TRANSACTED)
    wire.dispatch(consumer)
    consume(consumer)
    wire.answers = False
    request = session.commit()
    said = wire.take()
    assert isinstance(said[-1], TransactionInfo)
    wire.refuse(said, "javax.jms.TransactionRolledBackException")
    assert isinstance(request.error, TransactionRolledBackError)
    delivery = consumer.reserve()
    assert delivery is not None
    assert delivery.message.redelivery_counter == 1


@pytest.mark.parametrize("offered", [False, True])
def test_tight_encoding_and_caching_are_used_when_the_url_and_the_broker_have_them(*, offered: bool) -> None:
    wish = WireFormatOptions(tight_encoding_enabled=True, cache_enabled=True)
    wire = Wire(ClientOptions(watch_topic_advisories=False, wire_format=wish), answers=False, agrees=False)
    theirs = WireFormatInfo()
    theirs.tight_encoding_enabled = theirs.cache_enabled = offered
    wire.machine.receive(encode_wire_format_info(theirs))
    decoder = OpenWireDecoder(OpenWireLimits())
    decoder.agreed(WireFormat(12, tight=offered, caching=offered))
    login = decoder.next_frame(wire.machine.take_output())
    assert isinstance(login, ConnectionInfo)
    assert login.user_name == "u"


# --- acknowledgement


def fault_tolerant(said_by: type[BrokerInfo] | type[ConnectionControl]) -> Command:
    if said_by is BrokerInfo:
        info = BrokerInfo()
        info.fault_tolerant_configuration = True
        return info
    control = ConnectionControl()
    control.fault_tolerant = True
    return control


@pytest.mark.parametrize("said_by", [BrokerInfo, ConnectionControl])
def test_what_was_put_off_is_sent_when_the_broker_is_fault_tolerant(
    said_by: type[BrokerInfo] | type[ConnectionControl],
) -> None:
    wire = Wire(ClientOptions(watch_topic_advisories=False, optimize_acknowledge=True))
    _, consumer = wire.consumer()
    wire.dispatch(consumer, 3)
    consume(consumer, 2)
    assert wire.acks() == []
    wire.say(said_by())  # one that does not say it changes nothing
    assert wire.acks() == []
    wire.say(fault_tolerant(said_by))
    assert wire.acks() == ["STANDARD 1-2"]
    consume(consumer)
    assert wire.acks() == ["STANDARD 3-3"]
    _, other = wire.consumer()
    assert not other.info.optimized_acknowledge


def test_when_a_listener_fails_only_its_message_is_delivered_again() -> None:
    policy = RedeliveryPolicy(initial_redelivery_delay_ms=0)
    options = ClientOptions(watch_topic_advisories=False, optimize_acknowledge=True, redelivery_policy=policy)
    wire = Wire(options)
    _, consumer = wire.consumer()
    consumer.listens = True
    wire.dispatch(consumer, 5)
    for index in range(4):
        delivery = consumer.reserve()
        assert delivery is not None
        consumer.before(delivery)
        if index == 3:
            consumer.failed(delivery)
        else:
            consumer.after(delivery)
    assert wire.acks() == ["STANDARD 1-3"]
    again = consumer.reserve()
    assert again is not None
    assert again.message_id.producer_sequence_id == 4


@pytest.mark.parametrize("mode", [AckMode.CLIENT, AckMode.TRANSACTED])
def test_where_the_application_acknowledges_a_failing_listener_changes_nothing(mode: AckMode) -> None:
    wire = Wire()
    _, consumer = wire.consumer(mode)
    consumer.listens = True
    wire.dispatch(consumer, 2)
    for number in (1, 2):
        delivery = consumer.reserve()
        assert delivery is not None
        assert delivery.message_id.producer_sequence_id == number
        consumer.before(delivery)
        consumer.failed(delivery)
    assert [one for one in wire.acks() if not one.startswith("DELIVERED")] == []


def test_acknowledgements_may_wait_for_the_broker() -> None:
    wire = Wire(ClientOptions(watch_topic_advisories=False, send_acks_async=False))
    session, consumer = wire.consumer(AckMode.CLIENT)
    wire.dispatch(consumer)
    consume(consumer)
    wire.take()
    wire.answers = False
    (request,) = session.acknowledge()
    wire.refuse(wire.take(), "javax.jms.JMSException")
    assert isinstance(request.error, RefusedError)


def test_the_broker_may_change_the_prefetch() -> None:
    wire = Wire(ClientOptions(watch_topic_advisories=False, prefetch_policy=PrefetchPolicy(queue_prefetch=0)))
    _, consumer = wire.consumer()
    assert [consumer.pulls, consumer.pull(0), consumer.pull(0)] == [True, True, False]
    control = ConsumerControl()
    control.consumer_id = consumer.info.consumer_id
    control.prefetch = 5
    wire.say(control)
    assert [consumer.pulls, consumer.pull(0)] == [False, False]


def test_the_broker_may_close_a_consumer() -> None:
    wire = Wire()
    _, consumer = wire.consumer()
    control = ConsumerControl()
    control.consumer_id = consumer.info.consumer_id
    control.close = True
    wire.say(control)
    assert consumer.closed
    assert [type(one) for one in wire.take()] == [RemoveInfo]


OPTIMIZES = ClientOptions(
    watch_topic_advisories=False,
    optimize_acknowledge=True,
    optimized_ack_scheduled_ack_interval_ms=50,
    redelivery_policy=RedeliveryPolicy(initial_redelivery_delay_ms=0),
)


def test_a_timer_acknowledges_nothing_that_a_listener_is_at_work_on() -> None:  # ACK-2
    wire = Wire(OPTIMIZES)
    _, consumer = wire.consumer()
    wire.dispatch(consumer, 2)
    consume(consumer)
    delivery = consumer.reserve()
    assert delivery is not None
    consumer.before(delivery)
    wire.pass_ms(50)
    assert wire.acks() == ["STANDARD 1-1"]
    consumer.failed(delivery)
    assert consumer.waiting_count == 1
    consume(consumer)
    wire.pass_ms(50)
    assert wire.acks() == ["STANDARD 2-2"]


def test_another_prefetch_acknowledges_nothing_that_a_listener_is_at_work_on() -> None:
    wire = Wire()
    _, consumer = wire.consumer()
    wire.dispatch(consumer)
    delivery = consumer.reserve()
    assert delivery is not None
    consumer.before(delivery)
    consumer.set_prefetch(5)
    assert wire.acks() == []
    consumer.after(delivery)
    assert wire.acks() == ["STANDARD 1-1"]


@pytest.mark.parametrize(("done", "said"), [(False, []), (True, ["STANDARD 1-1"])])
def test_a_closed_session_acknowledges_what_its_listener_is_through_with(done: bool, said: list[str]) -> None:  # ACK-1
    wire = Wire()
    session, consumer = wire.consumer()
    wire.dispatch(consumer)
    delivery = consumer.reserve()
    assert delivery is not None
    consumer.before(delivery)
    if done:
        session.note_listener_done()
    wire.machine.close_session(session)
    assert wire.acks() == said


@pytest.mark.parametrize(("fails", "said"), [(False, ["STANDARD 1-1"]), (True, [])])
def test_a_consumer_ends_when_its_listener_is_done(fails: bool, said: list[str]) -> None:  # ACK-1
    wire = Wire(OPTIMIZES)
    _, consumer = wire.consumer()
    wire.dispatch(consumer, 2)
    delivery = consumer.reserve()
    assert delivery is not None
    consumer.before(delivery)
    consumer.close()
    assert wire.take() == []
    assert consumer.reserve() is None
    if fails:
        consumer.failed(delivery)
    else:
        consumer.after(delivery)
    assert consumer.closed
    found = wire.take()
    assert [type(one) for one in found] == [*[MessageAck for _ in said], RemoveInfo]


def test_one_pull_is_asked_for_one_message() -> None:
    wire = Wire(ClientOptions(watch_topic_advisories=False, prefetch_policy=PrefetchPolicy(queue_prefetch=0)))
    _, consumer = wire.consumer()
    consumer.pull(7)
    (pull,) = wire.take()
    assert isinstance(pull, MessagePull)
    assert pull.timeout == 7
    # It comes too old: the next one can be asked for.
    wire.dispatch(consumer, expires_ms=1)
    assert wire.acks() == ["EXPIRED 1-1"]
    assert consumer.pull(7)


def test_nothing_is_delivered_while_the_connection_is_stopped() -> None:
    wire = Wire()
    _, consumer = wire.consumer()
    wire.machine.stop()
    wire.dispatch(consumer)
    assert consumer.reserve() is None
    wire.machine.start()
    assert consumer.reserve() is not None


def test_what_was_reserved_in_vain_comes_first_again() -> None:
    wire = Wire()
    _, consumer = wire.consumer()
    wire.dispatch(consumer, 2)
    delivery = consumer.reserve()
    assert delivery is not None
    consumer.put_back(delivery)
    assert consumer.reserve() is delivery
    assert consumer.last_delivered_sequence == -1


def test_several_are_reserved_before_the_first_is_told_and_what_was_given_up_comes_again_in_order() -> None:
    wire = Wire()
    _, consumer = wire.consumer()
    assert consumer.reserve() is None
    wire.dispatch(consumer, 4)
    wire.take()
    reserved = [consumer.reserve() for _ in range(3)]
    first, *others = reserved
    assert first is not None
    consumer.consumed(first)
    assert [type(one) for one in wire.take()] == [MessageAck]
    for delivery in reversed(others):
        assert delivery is not None
        consumer.put_back(delivery)
    assert [consumer.reserve() for _ in range(2)] == others
    wire.machine.stop()
    assert consumer.reserve() is None


def test_a_consumer_closed_in_a_transaction_ends_with_it() -> None:
    wire = Wire()
    session, consumer = wire.consumer(AckMode.TRANSACTED)
    wire.dispatch(consumer)
    consume(consumer)
    wire.take()
    session.close_consumer(consumer)
    assert wire.take() == []
    assert consumer.reserve() is None
    session.commit()
    said = [type(one) for one in wire.take()]
    assert said == [MessageAck, TransactionInfo, RemoveInfo]
    assert consumer.closed


# --- redelivery


def redelivered_after(policy: RedeliveryPolicy, times: int) -> list[int]:
    """How long a message waits that a listener refuses again and again."""
    wire = Wire(ClientOptions(watch_topic_advisories=False, redelivery_policy=policy))
    _, consumer = wire.consumer()
    wire.dispatch(consumer)
    waited = []
    for _ in range(times):
        delivery = consumer.reserve()
        assert delivery is not None
        consumer.before(delivery)
        consumer.failed(delivery)
        started = wire.clock.passed_ms
        while (delivery := consumer.reserve()) is None:
            wire.say(KeepAliveInfo())
            due_ms = -(-wire.machine.next_timer() // 1_000_000)
            wire.pass_ms(due_ms - wire.clock.passed_ms)
            assert wire.told.ends == []
        consumer.put_back(delivery)
        waited.append(wire.clock.passed_ms - started)
    return waited


@pytest.mark.parametrize(
    "policy, waited",
    [
        (RedeliveryPolicy(), [1000, 1000, 1000]),
        (RedeliveryPolicy(initial_redelivery_delay_ms=5, redelivery_delay_ms=70), [5, 70, 70]),
        (RedeliveryPolicy(use_exponential_back_off=True), [1000, 5000, 25_000]),
        (
            RedeliveryPolicy(use_exponential_back_off=True, back_off_multiplier=2.0, maximum_redelivery_delay_ms=1500),
            [1000, 1500, 1500],
        ),
        (RedeliveryPolicy(use_exponential_back_off=True, initial_redelivery_delay_ms=0), [0, 1000, 5000]),
    ],
)
def test_how_long_a_message_waits(policy: RedeliveryPolicy, waited: list[int]) -> None:
    assert redelivered_after(policy, 3) == waited


def test_delays_are_spread_from_the_second_on() -> None:
    first, *others = redelivered_after(RedeliveryPolicy(use_collision_avoidance=True), 4)
    assert first == 1000
    assert all(850 <= delay <= 1150 for delay in others)
    assert len({*others}) > 1


def test_a_message_waits_in_front_of_the_others_unless_redelivery_is_non_blocking() -> None:
    for non_blocking in (False, True):
        wire = Wire(ClientOptions(watch_topic_advisories=False, non_blocking_redelivery=non_blocking))
        session, consumer = wire.consumer()
        wire.dispatch(consumer, 3)
        delivery = consumer.reserve()
        assert delivery is not None
        consumer.before(delivery)
        consumer.failed(delivery)
        assert (consumer.reserve() is not None) == non_blocking
        wire.pass_ms(1000)
        following = consumer.reserve()
        assert following is not None
        assert following.message_id.producer_sequence_id == (3 if non_blocking else 1)
        assert not session.closed


def test_after_the_last_redelivery_it_is_poison() -> None:
    policy = RedeliveryPolicy(initial_redelivery_delay_ms=0, redelivery_delay_ms=0, maximum_redeliveries=2)
    wire = Wire(ClientOptions(watch_topic_advisories=False, redelivery_policy=policy))
    _, consumer = wire.consumer()
    wire.dispatch(consumer)
    for _ in range(3):
        delivery = consumer.reserve()
        assert delivery is not None
        consumer.before(delivery)
        consumer.failed(delivery)
    assert wire.acks() == ["REDELIVERED 1-1", "POISON 1-1"]
    assert consumer.reserve() is None


def test_without_a_maximum_it_never_is() -> None:
    assert RedeliveryPolicy(maximum_redeliveries=-1).allows(1_000_000)
    assert not RedeliveryPolicy(maximum_redeliveries=3).allows(4)
