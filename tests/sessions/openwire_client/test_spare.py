"""A connection that is kept for later says nothing but what it has to, and is taken over as it is."""

# TTL-6

import pytest

from delosmq.sessions.client_errors import ConnectionLostError
from delosmq.sessions.openwire.client.connection import LOGGING_IN
from delosmq.sessions.openwire.client.options import AckMode, WireFormatOptions
from delosmq.sessions.openwire.client.spare import OpenWireSpare
from delosmq.wire.openwire.codec import encode_command
from delosmq.wire.openwire.commands import (
    BrokerInfo,
    ConnectionControl,
    ConnectionInfo,
    ConsumerInfo,
    KeepAliveInfo,
    SessionInfo,
)
from delosmq.wire.openwire.negotiation import WireFormatInfo, encode_wire_format_info
from delosmq.wire.openwire.structures import BrokerId
from tests.sessions.openwire_client.support import Times, decoded
from tests.sessions.openwire_client.test_machine import FORM, Wire
from tests.sessions.openwire_client.test_reconnecting import cut

HELLO = encode_wire_format_info(WireFormatInfo())


def spare(clock: Times) -> OpenWireSpare:
    made = OpenWireSpare(WireFormatOptions(), "tcp://b:1", clock)
    assert isinstance(decoded(made.take_output(), None), WireFormatInfo)
    assert made.next_timer() == 0
    return made


def test_it_does_not_log_in_and_answers_signs_of_life() -> None:
    clock = Times()
    made = spare(clock)
    made.receive(HELLO)
    assert made.theirs is not None
    assert made.take_output() == b""
    wanted = KeepAliveInfo()
    wanted.response_required = True
    made.receive(encode_command(wanted, FORM))
    assert isinstance(decoded(made.take_output(), FORM), KeepAliveInfo)
    made.receive(encode_command(KeepAliveInfo(), FORM))
    assert made.take_output() == b""


def test_it_shows_that_it_is_there_and_notices_that_its_broker_is_not() -> None:
    clock = Times()
    made = spare(clock)
    made.receive(HELLO)
    beats = 0
    while made.error is None:
        assert made.next_timer() > clock.monotonic_ns()
        clock.advance(10_001)
        made.handle_timer()
        beats += len(made.take_output()) > 0
    assert beats == 3
    assert isinstance(made.error, ConnectionLostError)
    assert made.error.code == "DMQ9010"


def test_what_is_no_frame_makes_it_useless() -> None:
    made = spare(Times())
    made.receive(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    assert made.error is not None
    assert made.error.code == "DMQ9013"


@pytest.mark.parametrize("known", [True, False])
def test_a_machine_goes_on_with_what_was_said(known: bool) -> None:
    wire = Wire(fault_tolerant=True)
    wire.consumer(AckMode.CLIENT)
    cut(wire)
    made = spare(wire.clock)
    info = BrokerInfo()
    info.broker_id = BrokerId("ID:spare")
    frame = encode_command(info, FORM)
    made.receive(HELLO + frame + frame[:3] if known else HELLO + frame[:3])
    wire.machine.resume(made)
    wire.renew()
    assert wire.machine.state == LOGGING_IN
    wire.machine.receive(frame[3:])
    said = wire.take()
    assert [type(one) for one in said] == [ConnectionControl, ConnectionInfo, SessionInfo, ConsumerInfo]
    assert wire.machine.broker_id == "ID:spare"
    for _ in range(2):
        wire.pass_ms(10_001)
    assert any(isinstance(one, KeepAliveInfo) for one in wire.take())
    wire.pass_ms(10_001)
    assert wire.told.interruptions[-1].code == "DMQ9010"
