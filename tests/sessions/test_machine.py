"""The states of a session, as the table has them."""

import gc
import re
from pathlib import Path

import pytest

from delosmq.model.errors import InvariantError
from delosmq.sessions import machine
from delosmq.sessions.machine import CLOSED, CONNECTED, LEAVING, NEGOTIATED, NEW, TRANSITIONS, VERIFYING, SessionMachine
from delosmq.sessions.openwire.server.session import OpenWireSession
from delosmq.sessions.stomp.server.session import StompSession
from tests.sessions.openwire.support import OpenWireBench, queue, topic
from tests.sessions.support import Client as StompClient
from tests.sessions.support import StompBench

MANUAL = Path(__file__).parents[2] / "docs" / "architecture.md"
STATES = (NEW, NEGOTIATED, CONNECTED, VERIFYING, LEAVING, CLOSED)


def test_each_state_is_reached_and_ends() -> None:
    assert {state for state, _ in TRANSITIONS} == set(STATES)
    reached = {NEW}
    for _ in STATES:
        reached |= {after for (state, _), (_, after) in TRANSITIONS.items() if state in reached}
    assert reached == set(STATES)
    for state in STATES:
        for ending in (machine.END, machine.LOST):
            assert TRANSITIONS[state, ending][1] == CLOSED


def test_only_who_is_connected_logs_out_or_leaves() -> None:
    for ending in (machine.LOGOUT, machine.LEAVE):
        assert [state for state, input_ in TRANSITIONS if input_ == ending] == [CONNECTED]


@pytest.mark.sources
def test_the_manual_has_the_same_table() -> None:
    names = {
        getattr(machine, name): name for name in ("NEW", "NEGOTIATED", "CONNECTED", "VERIFYING", "LEAVING", "CLOSED")
    }
    told = {}
    for state, inputs in re.findall(r"^\| ([A-Z]+) \| [^|]+ \|([^|]*)\|$", MANUAL.read_text("utf-8"), re.M):
        for input_, after in re.findall(r"([A-Z]+): ([A-Z]+)", inputs):
            told[state, input_] = after
        told |= {(state, "END"): "CLOSED", (state, "LOST"): "CLOSED"}
    table = {(names[state], input_.upper()): names[after] for (state, input_), (_, after) in TRANSITIONS.items()}
    assert told == table


def test_what_the_table_does_not_have_is_a_mistake_of_ours() -> None:
    session = StompBench().connect().session
    with pytest.raises(InvariantError, match="DMQ5302"):
        session.agreed()


def test_a_session_ends_once() -> None:
    for client in (StompBench().connect(), OpenWireBench().connect()):
        client.session.end(None)
        client.session.end(None)
        client.session.handle_eof()
        client.session.connection_lost()
        assert client.host.reasons == [None]


def sessions() -> list[str]:
    """What there is of them."""
    return [
        type(one).__name__ for one in gc.get_objects() if type(one) in (SessionMachine, StompSession, OpenWireSession)
    ]


@pytest.mark.parametrize("bench", [StompBench, OpenWireBench])
@pytest.mark.parametrize("ends_first", [False, True])
def test_nothing_of_a_session_that_is_over_waits_for_the_garbage_collector(
    bench: type[StompBench | OpenWireBench], ends_first: bool
) -> None:
    made = bench()
    gc.disable()
    try:
        client = made.connect()
        if isinstance(client, StompClient):
            client.frame("SUBSCRIBE", "destination:/queue/q", "id:1", "ack:client")
            client.frame("BEGIN", "transaction:t")
            client.frame("SEND", "destination:/queue/q", body="one")
        else:
            client.consume(queue("q"))
            client.consume(topic("ActiveMQ.Advisory.>"))
            client.publish(queue("q"), "one")
        assert len(sessions()) == 2
        if ends_first:
            client.session.end(None)
        client.session.connection_lost()
        made.clients.clear()
        del client
        assert sessions() == []
    finally:
        gc.enable()
