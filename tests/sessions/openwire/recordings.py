"""Recorded conversations of the real client with the real Classic, and the client's side played to our sessions."""

from pathlib import Path

from delosmq.wire.openwire.codec import encode_command
from delosmq.wire.openwire.commands import (
    BrokerInfo,
    Command,
    ConnectionInfo,
    ConsumerId,
    DataArrayResponse,
    DestinationInfo,
    ExceptionResponse,
    IntegerResponse,
    MessageAck,
    MessageCommand,
    MessageDispatch,
    MessageId,
    MessagePull,
    ProducerAck,
    RemoveInfo,
    Response,
    Structure,
    XATransactionId,
)
from delosmq.wire.openwire.decoder import OpenWireDecoder, OpenWireLimits
from delosmq.wire.openwire.negotiation import WireFormatInfo, agree
from tests.sessions.openwire.support import Client, OpenWireBench
from tests.sessions.support import PASSWORD, USER

GOLDEN = Path(__file__).resolve().parents[2] / "wire" / "openwire" / "golden"
NAMES = sorted(path.stem for path in GOLDEN.glob("*.txt"))
Row = tuple[object, ...]


class Step:
    """One recorded frame.

    Attributes:
        raw: with its length, as it was on the wire.
    """

    def __init__(self, by_client: bool, raw: bytes, frame: Structure) -> None:
        self.by_client = by_client
        self.raw = raw
        self.frame = frame


class Recording:
    """One conversation; both WireFormatInfos are taken out of its steps."""

    def __init__(self, name: str) -> None:
        self.greeting = b""
        lines = (GOLDEN / f"{name}.txt").read_text().splitlines()
        raws = [(line[0] == ">", bytes.fromhex(line[2:])) for line in lines if not line.startswith("#")]
        decoders = {True: OpenWireDecoder(OpenWireLimits()), False: OpenWireDecoder(OpenWireLimits())}
        hellos: dict[bool, WireFormatInfo] = {}
        self.steps: list[Step] = []
        for by_client, raw in raws:
            decoder = decoders[by_client]
            decoder.feed(raw)
            frame = decoder.next_frame()
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
                self.steps.append(Step(by_client, raw, frame))
        self.hello = hellos[True]

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
        self.client.form = agree(recording.hello, theirs).form
        self.client._decoder.agreed(self.client.form)
        self.client.send(recording.greeting)
        self._take(0)
        self._in_recording: dict[int, tuple[str, int]] = {}
        self._counted: dict[str, int] = {}

    def run(self) -> None:
        """The whole conversation; what was open is closed by its own last commands."""
        for step in self.recording.steps:
            if step.by_client:
                self._play(step)
            else:
                self._note(step.frame)

    def _play(self, step: Step) -> None:
        command = step.frame
        assert isinstance(command, Command)
        changed = self._translate(command)
        verbatim = not changed and self.client.form.tight == self.recording.form.tight
        verbatim = verbatim and self.client.form.caching == self.recording.form.caching
        self.client.send(step.raw if verbatim else encode_command(command, self.client.form))
        if isinstance(command, MessagePull) and command.timeout > 0:
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

    def _translate(self, command: Command) -> bool:
        """Puts our broker's sequences, user and password in; says whether anything was changed."""
        if isinstance(command, ConnectionInfo):
            command.user_name = USER
            command.password = PASSWORD
            return True
        if isinstance(command, MessageAck):
            command.first_message_id = self._ours(command.first_message_id)
            command.last_message_id = self._ours(command.last_message_id)
            return True
        if isinstance(command, RemoveInfo) and command.last_delivered_sequence_id > 0:
            ours = self._dispatched(command.last_delivered_sequence_id)
            command.last_delivered_sequence_id = ours.broker_sequence_id
            return True
        return False

    def _ours(self, theirs: MessageId | None) -> MessageId | None:
        if theirs is None:
            return None
        ours = self._dispatched(theirs.broker_sequence_id)
        assert ours.broker_sequence_id > 0
        return MessageId(ours.producer_id, ours.producer_sequence_id, ours.broker_sequence_id)

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
