"""Finding a message by the id that its JMS client shows, and showing that id to those who browse."""

import pytest

from delosmq.manage.control.browse import finish
from delosmq.manage.control.explain import ExplainControl, MessageExplanation
from delosmq.manage.control.messages import MessageControl, ShownMessage
from delosmq.manage.control.queues import QueueControl
from delosmq.model.errors import MisuseError, NotFoundError
from delosmq.security.access import Login
from tests.sessions.openwire.stomp_peer import StompPeer
from tests.sessions.openwire.support import OpenWireBench, queue
from tests.sessions.support import USER

A = queue("a")
LOGIN = Login(USER, frozenset({"all"}))


def explain(bench: OpenWireBench, message_id: str, name: str = "") -> MessageExplanation:
    control = ExplainControl(
        bench.broker, QueueControl(bench.broker, bench.services.access), bench.services.conversions
    )
    return finish(control.message(LOGIN, message_id, name))


def browse(bench: OpenWireBench) -> list[ShownMessage]:
    control = MessageControl(
        bench.broker, QueueControl(bench.broker, bench.services.access), bench.services.conversions
    )
    return finish(control.look(LOGIN, "a", after=0, limit=10, letters=10)).messages


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("name", ["", "a"])
def test_a_message_is_found_by_the_id_its_sender_gave_it(name: str, held: bool) -> None:
    bench = OpenWireBench()
    client = bench.connect()
    wanted = None
    for body in "012":
        command = client.text(A, body)
        client.ok(command)
        wanted = command.message_id if body == "1" else wanted
    assert wanted is not None
    if held:
        client.consume(A).take()
    found = explain(bench, wanted.key(), name)
    assert [one.text for one in browse(bench) if one.message_id == found.message_id] == ["1"]
    assert [one.standing for one in found.standings] == ["in delivery" if held else "waiting"]


def test_a_message_of_stomp_is_found_by_the_id_that_jms_clients_see() -> None:
    bench = OpenWireBench()
    reader = bench.connect().consume(A)
    StompPeer(bench).frame("SEND", "destination:/queue/a", body=b"x")
    reader.take()
    found = explain(bench, reader.message_id(0).key())
    assert [one.standing for one in found.standings] == ["in delivery"]


def test_an_id_that_nobody_has_is_told_as_it_was_asked() -> None:
    bench = OpenWireBench()
    bench.connect().publish(A, "x")
    with pytest.raises(NotFoundError, match="ID:client-0:1:1:99 is gone"):
        explain(bench, "ID:client-0:1:1:99")
    with pytest.raises(MisuseError, match="JMSMessageID"):
        explain(bench, "ID:client-0:1:1:x")


def test_who_browses_sees_both_ids() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    command = client.text(A, "x")
    client.ok(command)
    StompPeer(bench).frame("SEND", "destination:/queue/a", body=b"y")
    assert command.message_id is not None
    shown = browse(bench)
    assert [(one.jms_message_id, one.text) for one in shown] == [(command.message_id.key(), "x"), ("", "y")]
    assert [one.message_id for one in shown] == [f"ID:{one.sequence}" for one in shown]
