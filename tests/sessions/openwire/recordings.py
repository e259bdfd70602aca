"""Recorded conversations of the real client with the real Classic, and the client's side played to our sessions."""

from pathlib import Path

from delosmq.testing.frame_recorder import recorded_frames
from delosmq.testing.replay import translate
from delosmq.wire.openwire.codec import encode_command
from delosmq.wire.openwire.commands import (
    BrokerInfo,
    ConsumerInfo,
    DataArrayResponse,
    DestinationInfo,
    ExceptionResponse,
    IntegerResponse,
    MessageAck,
    MessageCommand,
    MessageDispatch,
    MessagePull,
    ProducerAck,
    Response,
    TransactionInfo,
)
from delosmq.wire.openwire.decoder import OpenWireDecoder, OpenWireLimits
from delosmq.wire.openwire.negotiation import WireFormatInfo, agree
from delosmq.wire.openwire.structures import Command, ConsumerId, MessageId, Structure, XATransactionId
from tests.sessions.openwire.support import Client, OpenWireBench
from tests.sessions.support import PASSWORD, USER

GOLDEN = Path(__file__).resolve().parents[2] / "wire" / "openwire" / "golden"
NAMES = sorted(path.stem for path in GOLDEN.glob("*.txt"))
SEVERAL = sorted(path.stem for path in (GOLDEN / "several").glob("*.txt"))
"""Conversations with more than one connection."""
Row = tuple[object, ...]


class Step:
    """One recorded frame.

    Attributes:
        raw: with its length, as it was on the wire.
        line: where it stands in the file.
    """

    def __init__(self, line: int, by_client: bool, raw: bytes, frame: Structure) -> None:
        self.line = line
        self.by_client = by_client
        self.raw = raw
        self.frame = frame


class Recording:
    """One connection of a conversation; both WireFormatInfos are taken out of its steps.

    Attributes:
        gone_at: the line where the client let go of it; 0 when nothing came after that.
    """

    def __init__(self, name: str, connection: int = 1) -> None:
        self.greeting = b""
        self.gone_at = 0
        decoders = {True: OpenWireDecoder(OpenWireLimits()), False: OpenWireDecoder(OpenWireLimits())}
        hellos: dict[bool, WireFormatInfo] = {}
        self.steps: list[Step] = []
        for number, by_client, raw in self._read(name, connection):
            decoder = decoders[by_client]
            frame = decoder.next_frame(raw)
            if isinstance(frame, WireFormatInfo):
                hellos[by_client] = frame
                if by_client:
                    self.greeting = raw
                if len(hellos) == 2:
                    self.form = agree(hellos[True], hellos[False]).form
                    for one in decoders.values():
                        # A form of its own: what is cached is cached for one direction.
                        one.agreed(agree(hellos[True], hellos[False]).form)
            else:
                assert frame is not None
                self.steps.append(Step(number, by_client, raw, frame))
        self.hello = hellos[True]

    def _read(self, name: str, connection: int) -> list[tuple[int, bool, bytes]]:
        found: list[tuple[int, bool, bytes]] = []
        for one in recorded_frames(GOLDEN / f"{name}.txt"):
            if one.connection == connection and one.raw:
                found.append((one.line, one.by_client, one.raw))
            elif one.connection == connection:
                self.gone_at = one.line
        return found

    def commands(self) -> list[Command]:
        """All that the client said after the negotiation."""
        return [step.frame for step in self.steps if step.by_client and isinstance(step.frame, Command)]

    def answers(self) -> list[Structure]:
        """All that Classic sent after the negotiation."""
        return [step.frame for step in self.steps if not step.by_client]


class Replay:
    """The client of a recording, connected to our broker.

    Attributes:
        received: what our session sent after the negotiation, each with the id of the client's command it followed.
    """

    def __init__(self, recording: Recording, bench: OpenWireBench) -> None:
        self.recording = recording
        self.bench = bench
        self.received: list[tuple[int, Structure]] = []
        self.client = Client(bench)
        bench.tick()
        (theirs,) = self.client.take()
        assert isinstance(theirs, WireFormatInfo)
        self.client.agreed(agree(recording.hello, theirs).form)
        self.client.send(recording.greeting)
        self._take(0)
        self._in_recording: dict[int, tuple[str, int]] = {}
        self._counted: dict[str, int] = {}

    def run(self) -> None:
        """The whole conversation; what was open is closed by its own last commands."""
        for step in self.recording.steps:
            self.take_step(step)

    def take_step(self, step: Step) -> None:
        """What the client did next, or what it was told."""
        if step.by_client:
            self._play(step)
        else:
            self.look(0)
            self._note(step.frame)

    def look(self, after: int) -> None:
        """Reads what others caused."""
        self._take(after)

    def _play(self, step: Step) -> None:
        command = step.frame
        assert isinstance(command, Command)
        changed = translate(command, USER, PASSWORD, self._dispatched)
        verbatim = not changed and self.client.form.tight == self.recording.form.tight
        verbatim = verbatim and self.client.form.caching == self.recording.form.caching
        self.client.send(step.raw if verbatim else encode_command(command, self.client.form))
        before = len(self.received)
        self._take(command.command_id)
        if isinstance(command, MessagePull) and command.timeout > 0 and len(self.received) == before:
            self.bench.pass_time(command.timeout)
            self._take(command.command_id)

    def _take(self, after: int) -> None:
        self.received += [(after, frame) for frame in self.client.take()]

    def _note(self, frame: Structure) -> None:
        """Remembers which dispatch of which consumer had which of Classic's sequences."""
        if isinstance(frame, MessageDispatch) and frame.message is not None:
            assert frame.consumer_id is not None
            assert frame.message.message_id is not None
            key = frame.consumer_id.key()
            self._in_recording[frame.message.message_id.broker_sequence_id] = (key, self._counted.get(key, 0))
            self._counted[key] = self._counted.get(key, 0) + 1

    def _dispatched(self, sequence: int) -> MessageId:
        """The id of our dispatch to the same consumer at the same place."""
        key, index = self._in_recording[sequence]
        dispatch = messages_to(key, [frame for _, frame in self.received])[index]
        assert dispatch.message is not None
        assert dispatch.message.message_id is not None
        return dispatch.message.message_id


def messages_to(consumer: str, frames: list[Structure]) -> list[MessageDispatch]:
    """The dispatches with a message to one consumer."""
    return [
        one
        for one in frames
        if isinstance(one, MessageDispatch)
        and one.message is not None
        and one.consumer_id is not None
        and one.consumer_id.key() == consumer
    ]


def answered(frames: list[Structure]) -> list[Row]:
    """The answers in their order: type, which command, and the exception's class or the value."""
    rows: list[Row] = []
    for one in frames:
        if isinstance(one, ExceptionResponse):
            assert one.exception is not None
            rows.append((one.code, one.correlation_id, one.exception.class_name))
        elif isinstance(one, IntegerResponse):
            rows.append((one.code, one.correlation_id, one.result))
        elif isinstance(one, DataArrayResponse):
            keys = [value.key() for value in one.values or () if isinstance(value, XATransactionId)]
            rows.append((one.code, one.correlation_id, *keys))
        elif isinstance(one, Response):
            rows.append((one.code, one.correlation_id))
    return rows


def dispatched(frames: list[Structure]) -> dict[str, list[Row]]:
    """For each consumer what it was sent, in order; ("end",) for an empty dispatch."""
    rows: dict[str, list[Row]] = {}
    for one in frames:
        if isinstance(one, MessageDispatch):
            assert one.consumer_id is not None
            destination = "" if one.destination is None else one.destination.qualified_name()
            message = one.message
            row = ("end", destination) if message is None else (destination, *_message(message), one.redelivery_counter)
            rows.setdefault(one.consumer_id.key(), []).append(row)
    return rows


def _message(message: MessageCommand) -> Row:
    assert message.destination is not None
    name = message.destination.qualified_name()
    notice = message.data_structure
    if notice is not None:
        # The broker made it, so its id and properties are the broker's own.
        told = (notice.operation_type,) if isinstance(notice, DestinationInfo) else ()
        return (name, message.code, notice.code, *told)
    assert message.message_id is not None
    transaction = message.transaction_id
    return (
        name,
        message.code,
        message.message_id.key(),
        message.content,
        message.marshalled_properties,
        message.persistent,
        message.priority,
        message.expiration,
        message.timestamp,
        None if message.reply_to is None else message.reply_to.qualified_name(),
        None if transaction is None else transaction.key(),
        message.redelivery_counter,
    )


def told(frames: list[Structure]) -> list[Row]:
    """What is neither an answer nor a dispatch, in order; broker's names and urls differ of course."""
    rows: list[Row] = []
    for one in frames:
        if isinstance(one, ProducerAck):
            rows.append((one.code, None if one.producer_id is None else one.producer_id.key(), one.size))
        elif isinstance(one, BrokerInfo):
            rows.append((one.code, one.fault_tolerant_configuration, one.master_broker, one.slave_broker))
        elif not isinstance(one, Response | MessageDispatch):
            rows.append((one.code,))
    return rows


def moments(received: list[tuple[int, Structure]]) -> dict[str, list[int]]:
    """For each consumer after which of the client's commands each dispatch came."""
    found: dict[str, list[int]] = {}
    for after, one in received:
        if isinstance(one, MessageDispatch):
            assert isinstance(one.consumer_id, ConsumerId)
            found.setdefault(one.consumer_id.key(), []).append(after)
    return found


def recorded_moments(recording: Recording) -> dict[str, list[int]]:
    """The same of Classic, whose own threads may have let it come later than its cause."""
    after = 0
    received: list[tuple[int, Structure]] = []
    for step in recording.steps:
        if step.by_client:
            assert isinstance(step.frame, Command)
            after = step.frame.command_id
        else:
            received.append((after, step.frame))
    return moments(received)


_ACKS = ("DELIVERED", "POISON", "STANDARD", "REDELIVERED", "INDIVIDUAL", "UNMATCHED", "EXPIRED")
_TRANSACTION_STEPS = ("begin", "prepare", "commit", "commit", "rollback", "", "", "")


def said(recording: Recording) -> list[str]:
    """How the client acknowledged, of a recording that was not played yet.

    Messages are named by their place among those dispatched to their consumer. ``STANDARD 1-2`` is a range of two,
    ``INDIVIDUAL 2`` has no first; ``T`` behind it stands for its transaction; ``b:`` in front is the second consumer of
    several. Between them stand the steps of transactions, and pulls with their timeouts.
    """
    places: dict[tuple[str, int], int] = {}
    counted: dict[str, int] = {}
    ids = [one.consumer_id for one in recording.commands() if isinstance(one, ConsumerInfo)]
    consumers = [one.key() for one in ids if one is not None and one.session_id > 0]
    found: list[str] = []
    for step in recording.steps:
        frame = step.frame
        if isinstance(frame, MessageDispatch) and frame.message is not None and frame.consumer_id is not None:
            key = frame.consumer_id.key()
            counted[key] = counted.get(key, 0) + 1
            assert frame.message.message_id is not None
            places[key, frame.message.message_id.broker_sequence_id] = counted[key]
        elif isinstance(frame, MessageAck):
            found.append(_acknowledged(frame, consumers, places))
        elif isinstance(frame, TransactionInfo) and _TRANSACTION_STEPS[frame.type]:
            found.append(_TRANSACTION_STEPS[frame.type])
        elif isinstance(frame, MessagePull):
            found.append(f"pull {frame.timeout}")
    return found


def _acknowledged(ack: MessageAck, consumers: list[str], places: dict[tuple[str, int], int]) -> str:
    assert ack.consumer_id is not None
    assert ack.last_message_id is not None
    key = ack.consumer_id.key()
    mark = "" if len(consumers) == 1 else "abcdefgh"[consumers.index(key)] + ":"
    last = places[key, ack.last_message_id.broker_sequence_id]
    if ack.first_message_id is None:
        assert ack.message_count == 1
        span = str(last)
    else:
        first = places[key, ack.first_message_id.broker_sequence_id]
        assert ack.message_count == last - first + 1
        span = f"{first}-{last}"
    transaction = "" if ack.transaction_id is None else " T"
    return f"{mark}{_ACKS[ack.ack_type]} {span}{transaction}"
