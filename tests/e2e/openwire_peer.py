"""An OpenWire peer of our own codec, over any socket."""

import socket
from typing import Self

from delosmq.wire.openwire.codec import encode_command
from delosmq.wire.openwire.commands import (
    ADD_DESTINATION,
    TEXT_MESSAGE,
    ConnectionInfo,
    ConsumerInfo,
    DestinationInfo,
    ExceptionResponse,
    MessageCommand,
    MessageDispatch,
    ProducerInfo,
    Response,
    SessionInfo,
)
from delosmq.wire.openwire.decoder import OpenWireDecoder, OpenWireLimits
from delosmq.wire.openwire.negotiation import WireFormatInfo, agree, encode_wire_format_info
from delosmq.wire.openwire.structures import (
    TEMP_QUEUE,
    Command,
    ConnectionId,
    ConsumerId,
    Destination,
    MessageId,
    ProducerId,
    SessionId,
    Structure,
)

NAME = "ID:peer-1-2-3:1"


class OpenWirePeer:
    """As much of a JMS client as questions and answers need.

    Args:
        connection: to the broker, plain or with TLS; closed at the end.
    """

    def __init__(self, connection: socket.socket, user: str, password: str) -> None:
        self._socket = connection
        self._decoder = OpenWireDecoder(OpenWireLimits())
        self._received: list[Structure] = []
        self._commands = 0
        info = WireFormatInfo()
        self._socket.sendall(encode_wire_format_info(info))
        theirs = self._next()
        assert isinstance(theirs, WireFormatInfo)
        self._form = agree(info, theirs).form
        self._decoder.agreed(self._form)
        login = ConnectionInfo()
        login.connection_id = ConnectionId(NAME)
        login.client_id = NAME
        login.user_name, login.password = user, password
        session = SessionInfo()
        session.session_id = SessionId(NAME, 1)
        producer = ProducerInfo()
        producer.producer_id = ProducerId(NAME, 1, 1)
        for command in (login, session, producer):
            self.call(command)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _next(self) -> Structure:
        frame = self._decoder.next_frame()
        while frame is None:
            chunk = self._socket.recv(65_536)
            assert chunk, "the broker closed the connection"
            frame = self._decoder.next_frame(chunk)
        return frame

    def call(self, command: Command) -> None:
        self._commands += 1
        command.command_id, command.response_required = self._commands, True
        self._socket.sendall(encode_command(command, self._form))
        while not isinstance(answer := self._next(), Response):
            self._received.append(answer)
        assert not isinstance(answer, ExceptionResponse), answer.exception and answer.exception.message

    def tell(self, *commands: Command) -> None:
        """Sends all at once, and waits for nothing."""
        chunk = b""
        for command in commands:
            self._commands += 1
            command.command_id = self._commands
            chunk += encode_command(command, self._form)
        self._socket.sendall(chunk)

    def consume(self, destination: Destination) -> None:
        info = ConsumerInfo()
        info.consumer_id = ConsumerId(NAME, 1, 1)
        info.destination, info.prefetch_size = destination, 10
        self.call(info)

    def make_temporary(self) -> Destination:
        info = DestinationInfo()
        info.connection_id, info.operation_type = ConnectionId(NAME), ADD_DESTINATION
        info.destination = Destination(f"{NAME}:1", TEMP_QUEUE)
        self.call(info)
        return info.destination

    def send(self, destination: Destination, text: bytes, reply_to: Destination | None = None) -> None:
        command = MessageCommand(TEXT_MESSAGE)
        command.producer_id = ProducerId(NAME, 1, 1)
        command.message_id = MessageId(command.producer_id, self._commands)
        command.destination, command.reply_to = destination, reply_to
        command.content = len(text).to_bytes(4, "big") + text
        self.call(command)

    def receive(self) -> MessageCommand:
        while True:
            frame = self._received.pop(0) if self._received else self._next()
            if isinstance(frame, MessageDispatch) and frame.message is not None:
                return frame.message

    def close(self) -> None:
        self._socket.close()
