"""Each step of docs/coming-from-activemq.md is carried out as it stands there.

The page's commands run, on the page's configuration. Then what the page's Java program said to such a broker is said
again, so that no Java is needed; it was recorded by `python -m interop.openwire.record coming-from-activemq`.
`make interop` compiles and runs the program itself.
"""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import stomp

from delosmq.config.broker_xml import load_broker_xml
from delosmq.wire.openwire.codec import encode_command
from delosmq.wire.openwire.commands import (
    ConnectionInfo,
    ConsumerInfo,
    ExceptionResponse,
    MessageAck,
    MessageCommand,
    MessageDispatch,
    Response,
)
from delosmq.wire.openwire.decoder import OpenWireDecoder, OpenWireLimits
from delosmq.wire.openwire.negotiation import WireFormatInfo, agree
from delosmq.wire.openwire.structures import Command, MessageId, Structure
from interop.page import Converted, block
from tests.sessions.openwire.recordings import Recording

TIMEOUT_S = 20.0


@pytest.fixture
def converted(tmp_path: Path) -> Iterator[Converted]:
    with Converted(tmp_path / "steps") as broker:
        assert isinstance(broker, Converted)
        yield broker


class Wire:
    """The program's connection; what it said comes from the recording."""

    def __init__(self, port: int, recording: Recording) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        self._decoder = OpenWireDecoder(OpenWireLimits())
        self.received: list[Structure] = []
        self._socket.sendall(recording.greeting)
        theirs = self._next()
        assert isinstance(theirs, WireFormatInfo)
        self._form = agree(recording.hello, theirs).form
        self._decoder.agreed(self._form)

    def close(self) -> None:
        self._socket.close()

    def say(self, command: Command) -> None:
        """Sends it, and waits for its answer if it wants one."""
        self._socket.sendall(encode_command(command, self._form))
        while command.response_required and not self._is_answered(command.command_id):
            self.received.append(self._next())

    def dispatch(self) -> MessageDispatch:
        """The message that the program gets."""
        while True:
            for one in self.received:
                if isinstance(one, MessageDispatch) and one.message is not None and one.message.data_structure is None:
                    return one
            self.received.append(self._next())

    def _is_answered(self, command_id: int) -> bool:
        return any(isinstance(one, Response) and one.correlation_id == command_id for one in self.received)

    def _next(self) -> Structure:
        frame = self._decoder.next_frame()
        while frame is None:
            chunk = self._socket.recv(65_536)
            assert chunk, "the broker closes the connection"
            frame = self._decoder.next_frame(chunk)
        return frame


def test_the_page_s_configuration_is_converted_whole_and_serves_its_program(converted: Converted) -> None:
    assert converted.said == ""
    recording = Recording("page/coming-from-activemq")
    wire = Wire(converted.port, recording)
    got = b""
    for command in recording.commands():
        if isinstance(command, MessageAck):
            message = wire.dispatch().message
            assert message is not None
            got = message.content or b""
            command.first_message_id = command.last_message_id = message.message_id
        wire.say(command)
    wire.close()
    assert got[4:].decode() == "one pot"
    assert [one for one in wire.received if isinstance(one, ExceptionResponse)] == []


def test_the_page_s_stomp_client_and_policy(converted: Converted) -> None:
    name, _, password = block("properties").strip().partition(" = ")
    client = stomp.Connection12([("127.0.0.1", converted.stomp_port)])
    client.connect(name, password, wait=True)
    client.disconnect()
    settings = load_broker_xml(converted.directory / "broker" / "etc" / "broker.xml").settings
    assert [(one.match, one.fields["strict_order_dispatch"]) for one in settings.address_settings[1:]] == [
        ("orders.#", True)
    ]


def test_what_is_recorded_is_the_page_s_program() -> None:
    """Whoever changes the program records it again."""
    program = block("java")
    commands = Recording("page/coming-from-activemq").commands()
    (login,) = [one for one in commands if isinstance(one, ConnectionInfo)]
    (sent,) = [one for one in commands if isinstance(one, MessageCommand)]
    (consumer,) = [
        one for one in commands if isinstance(one, ConsumerInfo) and one.consumer_id and one.consumer_id.session_id > 0
    ]
    assert f'ActiveMQConnectionFactory("{login.user_name}", "{login.password}", ' in program
    assert f"{login.user_name} = {login.password}\n" == block("properties")
    assert isinstance(sent.message_id, MessageId)
    assert f'createTextMessage("{(sent.content or b"")[4:].decode()}")' in program
    for destination in (sent.destination, consumer.destination):
        assert destination is not None
        assert f'createQueue("{destination.name}")' in program
