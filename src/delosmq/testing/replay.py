"""Recordings played to a broker: what the clients sent is sent again, in the order in which all of it was said."""

import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from delosmq.model.errors import MisuseError
from delosmq.model.protocol_names import OPENWIRE, STOMP
from delosmq.testing.dialogue import KEEP_ALIVE, CutFrame, OpenWireDialogue, StompDialogue
from delosmq.testing.frame_lines import line_of
from delosmq.testing.frame_recorder import RecordedFrame, recorded_frames
from delosmq.wire.first_bytes import MINE
from delosmq.wire.openwire.codec import encode_command
from delosmq.wire.openwire.commands import ConnectionInfo, MessageAck, MessageDispatch, RemoveInfo, Response
from delosmq.wire.openwire.negotiation import detect
from delosmq.wire.openwire.structures import Command, MessageId
from delosmq.wire.stomp.decoder import StompFrame
from delosmq.wire.stomp.encoder import encode_frame

WAIT_S: Final = 10.0
_READ_BYTES: Final = 64 * 1024
_GREETING: Final = "WireFormatInfo"
_BY_THEMSELVES: Final = frozenset({_GREETING, KEEP_ALIVE, "ConnectionControl", "BrokerInfo"})
"""Sent for reasons of the broker's own, or earlier by one broker than by another: not waited for."""


@dataclass(frozen=True)
class PlayedLogin:
    """How clients of a replay log in, and where."""

    host: str
    ports: Callable[[str], int]
    user: str
    password: str = field(repr=False)


def translate(command: Command, user: str, password: str, find: Callable[[int], MessageId | None]) -> bool:
    """Puts another broker's sequences, user and password into a recorded command of OpenWire; False when it has none.

    Args:
        find: gives the id by which the broker has delivered what has this broker sequence in the recording.
    """
    if type(command) is ConnectionInfo:
        command.user_name = user
        command.password = password
        return True
    if type(command) is MessageAck:
        command.first_message_id = _found(command.first_message_id, find)
        command.last_message_id = _found(command.last_message_id, find)
        return True
    if type(command) is RemoveInfo and command.last_delivered_sequence_id > 0:
        found = find(command.last_delivered_sequence_id)
        if found is not None:
            command.last_delivered_sequence_id = found.broker_sequence_id
        return True
    return False


def _found(recorded: MessageId | None, find: Callable[[int], MessageId | None]) -> MessageId | None:
    ours = None if recorded is None else find(recorded.broker_sequence_id)
    if ours is None:
        return recorded
    return MessageId(ours.producer_id, ours.producer_sequence_id, ours.broker_sequence_id)


class PlayedClient:
    """One connection of a recording, made anew."""

    def __init__(self, login: PlayedLogin, first: bytes) -> None:
        self._login = login
        protocol = OPENWIRE if detect(first) == MINE else STOMP
        self._recorded = OpenWireDialogue() if protocol == OPENWIRE else StompDialogue()
        self._live = OpenWireDialogue() if protocol == OPENWIRE else StompDialogue()
        self._socket = socket.create_connection((login.host, login.ports(protocol)), timeout=WAIT_S)
        self._unread: list[CutFrame] = []
        self._texts: dict[str, str] = {}
        self._sequences: dict[int, MessageId] = {}

    def close(self) -> None:
        self._socket.close()

    def play(self, step: RecordedFrame) -> None:
        """Sends what the client sent, or waits for what it got."""
        for cut in self._recorded.cut(step.raw, by_client=step.by_client):
            if step.by_client:
                sent = self._translated(cut)
                self._live.cut(sent, by_client=True)
                self._socket.sendall(sent)
            elif cut.kind and cut.kind not in _BY_THEMSELVES:
                self._pair(cut, self._next_like(cut))

    def _next_like(self, cut: CutFrame) -> CutFrame:
        """The next frame of the same kind that is an answer to the same, or for the same consumer.

        Raises:
            AssertionError: there is none.
        """
        wanted = (cut.kind, _addressee(cut))
        at = 0
        while True:
            for index in range(at, len(self._unread)):
                if (self._unread[index].kind, _addressee(self._unread[index])) == wanted:
                    return self._unread.pop(index)
            at = len(self._unread)
            if not self._read():
                came = "; ".join(line_of(one.kind, one.frame) for one in self._unread if one.kind) or "nothing"
                raise AssertionError(f"the broker does not send {line_of(cut.kind, cut.frame)}; it sent {came}")

    def _read(self) -> bool:
        try:
            chunk = self._socket.recv(_READ_BYTES)
        except OSError:
            return False
        self._unread += self._live.cut(chunk, by_client=False)
        return chunk != b""

    def _pair(self, recorded: CutFrame, live: CutFrame) -> None:
        """Notes under which ids the broker has delivered now what was delivered then."""
        then, now = recorded.frame, live.frame
        if type(then) is StompFrame and type(now) is StompFrame:
            for name in ("ack", "message-id", "reply-to"):
                if name in then.headers and name in now.headers:
                    self._texts[then.headers[name]] = now.headers[name]
        elif type(then) is MessageDispatch and type(now) is MessageDispatch and then.message and now.message:
            then_id, now_id = then.message.message_id, now.message.message_id
            if then_id is not None and now_id is not None:
                self._sequences[then_id.broker_sequence_id] = now_id

    def _translated(self, cut: CutFrame) -> bytes:
        frame, live, recorded = cut.frame, self._live, self._recorded
        if type(live) is StompDialogue and type(frame) is StompFrame:
            changed = self._headers_now(frame)
            if changed == frame.headers:
                return cut.raw
            pairs = [(name, text) for name, text in changed.items() if name != "content-length"]
            length = "content-length" in changed
            return encode_frame(frame.command, pairs, frame.body, live.version, length)
        if type(live) is not OpenWireDialogue or type(recorded) is not OpenWireDialogue:
            return cut.raw
        if not isinstance(frame, Command):
            return cut.raw  # the greeting
        while (form := live.form) is None:  # the broker's greeting is to come
            if not self._read():
                return cut.raw
        login = self._login
        changes = translate(frame, login.user, login.password, self._sequences.get)
        return encode_command(frame, form) if changes or recorded.is_encoded_otherwise(live) else cut.raw

    def _headers_now(self, frame: StompFrame) -> dict[str, str]:
        headers = dict(frame.headers)
        if frame.command in {"CONNECT", "STOMP"}:
            headers |= {"login": self._login.user, "passcode": self._login.password}
        for name in {"ACK": ("id", "message-id"), "NACK": ("id", "message-id"), "SEND": ("destination",)}.get(
            frame.command, ()
        ):
            if name in headers:
                headers[name] = self._texts.get(headers[name], headers[name])
        return headers


def _addressee(cut: CutFrame) -> str:
    """Which request a frame of the broker answers, or which consumer it is for."""
    frame = cut.frame
    if type(frame) is StompFrame:
        return frame.headers.get("receipt-id") or frame.headers.get("subscription", "")
    if type(frame) is MessageDispatch:
        return "" if frame.consumer_id is None else frame.consumer_id.key()
    return str(frame.correlation_id) if isinstance(frame, Response) else ""


def replay(path: Path, login: PlayedLogin) -> None:
    """Plays a recording to a broker, and waits for each answer and delivery that is in it.

    Raises:
        AssertionError: one of them does not come.
        MisuseError: the file is no recording.
    """
    __tracebackhide__ = True
    clients: dict[int, PlayedClient] = {}
    try:
        steps = list(recorded_frames(path))
    except ValueError as error:
        raise MisuseError(
            "DMQ7210", f"{path} is no recording: {error}; make one with BrokerFixture.recording"
        ) from error
    try:
        for step in steps:
            client = clients.get(step.connection)
            if not step.raw:
                if client is not None:
                    clients.pop(step.connection).close()
                continue
            if client is None:
                client = clients[step.connection] = PlayedClient(login, step.raw)
            try:
                client.play(step)
            except AssertionError as error:
                raise AssertionError(f"{path}:{step.line}: {error}") from None
    finally:
        for left in clients.values():
            left.close()
