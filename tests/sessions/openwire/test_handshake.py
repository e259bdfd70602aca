"""From the first frame to the last: negotiation, login, silence, farewell."""

import pytest

from delosmq.model.errors import PeerError
from delosmq.wire.openwire.codec import encode_command
from delosmq.wire.openwire.commands import (
    BrokerInfo,
    ConnectionControl,
    ConnectionError,
    ConnectionInfo,
    FlushCommand,
    KeepAliveInfo,
    MessageDispatch,
    Response,
    ShutdownInfo,
)
from delosmq.wire.openwire.negotiation import WireFormatInfo, encode_wire_format_info
from delosmq.wire.openwire.structures import Command, ConnectionId, Structure
from tests.sessions.openwire.support import (
    SECURITY,
    Client,
    OpenWireBench,
    code_of,
    queue,
    throwable,
)
from tests.sessions.support import PASSWORD, USER

A = queue("a")


def hello(version: int = 12, timeout_ms: int = 30_000, initial_delay_ms: int = 10_000) -> WireFormatInfo:
    info = WireFormatInfo(version)
    info.max_inactivity_duration_ms = timeout_ms
    info.max_inactivity_initial_delay_ms = initial_delay_ms
    return info


# -- negotiation -------------------------------------------------------------------------------------------------------


def test_the_broker_says_what_it_can_before_it_is_asked_and_nothing_else() -> None:
    bench = OpenWireBench()
    client = Client(bench)
    bench.tick()
    bench.pass_time(9_000)
    (info,) = client.take()
    assert isinstance(info, WireFormatInfo)
    assert info.version == 12
    wishes = (info.tight_encoding_enabled, info.cache_enabled, info.stack_trace_enabled, info.size_prefix_disabled)
    assert not any(wishes)
    assert info.max_inactivity_duration_ms == 30_000
    assert info.max_inactivity_initial_delay_ms == 10_000
    assert info.max_frame_bytes == 100 * 1024 * 1024
    assert (info.provider_name, info.provider_version) == ("DelosMQ", "test")
    assert not client.session.established


def test_after_the_client_s_the_broker_introduces_itself() -> None:
    bench = OpenWireBench()
    client = Client(bench)
    client.negotiate(hello())
    (broker,) = client.take()
    assert isinstance(broker, BrokerInfo)
    assert broker.broker_id is not None
    assert broker.broker_id.value.startswith("ID:")
    assert not broker.fault_tolerant_configuration
    assert broker.peer_broker_infos is None


@pytest.mark.parametrize("version", [1, 9, 10, 11, 12, 13])
def test_a_client_of_any_version_sends_and_receives(version: int) -> None:
    bench = OpenWireBench()
    client = bench.negotiate(hello(version))
    assert client.form.version == min(version, 12)
    client.log_in("ID:c")
    reader = client.consume(A)
    client.publish(A, "x")
    newest = bench.connect()
    newest.publish(A, "y")
    assert reader.bodies() == "x y"


def test_a_client_that_insists_on_tight_encoding_is_told_loose() -> None:
    bench = OpenWireBench()
    info = hello()
    info.tight_encoding_enabled = info.cache_enabled = info.stack_trace_enabled = True
    client = bench.negotiate(info)
    assert client.form.plain
    client.log_in("ID:c")
    client.publish(A, "x")


def test_a_command_before_the_wire_format_ends_the_connection_without_a_word() -> None:
    bench = OpenWireBench()
    client = Client(bench)
    bench.tick()
    client.take()
    client.send(encode_command(KeepAliveInfo(), client.form))
    assert client.take() == []
    assert client.host.finished


def test_a_second_wire_format_ends_the_connection() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    client.send(encode_wire_format_info(hello()))
    assert code_of(client.error()) == "IOException DMQ5231"
    assert client.host.finished


def test_a_version_that_does_not_exist_ends_the_connection() -> None:
    bench = OpenWireBench()
    client = Client(bench)
    client.send(encode_wire_format_info(hello(0)))
    assert client.host.finished
    assert isinstance(client.host.reason, PeerError)


def test_frames_may_come_in_any_pieces() -> None:
    bench = OpenWireBench()
    client = bench.negotiate()
    client.name = "ID:c"
    info = ConnectionInfo()
    info.connection_id = ConnectionId("ID:c")
    info.client_id = "c"
    info.user_name, info.password = USER, PASSWORD
    info.command_id, info.response_required = 7, True
    for byte in encode_command(info, client.form):
        client.send(bytes((byte,)))
    (answer,) = client.take()
    assert isinstance(answer, Response)
    assert answer.correlation_id == 7


def test_what_the_broker_sends_is_numbered() -> None:
    bench = OpenWireBench()
    client = Client(bench)
    client.negotiate(hello())
    client.log_in("ID:c", manageable=True)
    client.feed(client.session_info(), answer=True)
    client.feed(client.text(A, "x"), answer=True)
    bench.tick()
    numbers = [one.command_id for one in client.take() if isinstance(one, Command)]
    # The answer to the login, which `log_in` took, is the third.
    assert numbers == [1, 2, 4, 5]


# -- logging in --------------------------------------------------------------------------------------------------------


def test_a_login_is_answered() -> None:
    bench = OpenWireBench()
    client = bench.negotiate()
    assert type(client.log_in("ID:c")) is Response
    assert client.take() == []
    assert client.session.established


def test_a_manageable_connection_is_told_how_it_is_controlled() -> None:
    bench = OpenWireBench()
    client = bench.negotiate()
    client.log_in("ID:c", manageable=True)
    (control,) = client.take()
    assert isinstance(control, ConnectionControl)
    assert not any((control.fault_tolerant, control.close, control.rebalance_connection))


def test_nothing_is_read_while_a_password_is_verified() -> None:
    bench = OpenWireBench()
    client = bench.negotiate()
    assert client.ask(login(client, "other")) == []
    client.tell(client.session_info())
    assert not client.session.reading
    ((attempt, password),) = client.host.attempts
    assert (attempt.user, password) == (USER, "other")
    client.session.resume(True, bench.now)
    bench.tick()
    (answer,) = client.take()
    assert type(answer) is Response
    assert client.session.reading


def login(client: Client, password: str) -> ConnectionInfo:
    client.name = "ID:c"
    info = ConnectionInfo()
    info.connection_id = ConnectionId("ID:c")
    info.client_id = "c"
    info.user_name, info.password = USER, password
    return info


def test_a_refused_login_is_told_and_ends_the_connection() -> None:
    bench = OpenWireBench()
    client = bench.negotiate()
    command_id = client.feed(login(client, "wrong"), answer=True)
    client.session.resume(False, bench.now)
    bench.tick()
    (answer,) = client.answers(command_id)
    exception = throwable(answer)
    assert exception.class_name == SECURITY
    assert exception.message == "DMQ5236: User name [anna] or password is invalid."
    assert client.host.finished
    assert not client.session.established


def test_before_the_login_nothing_else_is_done() -> None:
    bench = OpenWireBench()
    client = bench.negotiate()
    client.name = "ID:c"
    assert code_of(client.refused(client.session_info())) == "IllegalStateException DMQ5232"
    assert code_of(client.refused(client.text(A, "x"))) == "IllegalStateException DMQ5232"
    assert bench.broker.queues == {}
    client.log_in("ID:c")


def test_large_frames_wait_for_the_login() -> None:
    bench = OpenWireBench()
    client = bench.negotiate()
    client.name = "ID:c"
    client.tell(client.text(A, "x" * 70_000))
    assert code_of(client.error()) == "IOException DMQ5202"
    client = bench.connect()
    client.publish(A, "x" * 70_000)


def test_a_connection_has_an_id() -> None:
    bench = OpenWireBench()
    client = bench.negotiate()
    assert code_of(client.refused(ConnectionInfo())) == "JMSException DMQ5234"


def test_a_connection_has_a_client_id() -> None:
    bench = OpenWireBench()
    client = bench.negotiate()
    info = login(client, PASSWORD)
    info.client_id = None
    assert code_of(throwable(client.call(info))) == "InvalidClientIDException DMQ5226"
    assert client.host.finished


def test_a_second_login_ends_the_connection() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    assert not client.host.finished
    assert "DMQ5229" in str(throwable(client.log_in("ID:other")).message)
    assert client.host.finished


def test_a_newcomer_that_is_refused_leaves_the_old_connection_alone() -> None:
    bench = OpenWireBench()
    first = bench.connect(client_id="me")
    second = bench.connect(client_id="you")
    third = bench.negotiate()
    assert code_of(throwable(third.log_in(second.name, client_id="me"))) == "InvalidClientIDException DMQ5235"
    assert not first.host.finished
    assert not second.host.finished


def test_a_client_id_is_one_connection_s() -> None:
    bench = OpenWireBench()
    first = bench.connect(client_id="me")
    second = bench.negotiate()
    exception = throwable(second.log_in("ID:2", client_id="me"))
    assert code_of(exception) == "InvalidClientIDException DMQ5235"
    assert "already connected from 10.0.0.1:5000" in (exception.message or "")
    assert second.host.finished
    first.publish(A, "x")
    first.ok(first.remove_info(ConnectionId(first.name)))
    bench.connect(client_id="me")


def test_a_lost_connection_s_client_id_is_free() -> None:
    bench = OpenWireBench()
    bench.connect(client_id="me").drop()
    bench.connect(client_id="me")


def test_the_same_connection_id_again_replaces_the_stale_connection() -> None:
    bench = OpenWireBench()
    stale = bench.connect("ID:same", client_id="me")
    stale.publish(A, "0 1")
    assert stale.consume(A, 1).bodies() == "0"
    fresh = bench.connect("ID:same", client_id="me")
    assert stale.host.finished
    assert code_of(stale.error()) == "JMSException DMQ5238"
    assert fresh.consume(A).bodies() == "0r1 1"
    stale.drop()
    # Its end has not taken the newer one's names.
    assert throwable(bench.negotiate().log_in("ID:3", client_id="me")).class_name != SECURITY
    assert not fresh.host.finished


def test_what_is_there_already_may_be_added_again() -> None:
    """As a failover does when its connection was not lost for the broker."""
    bench = OpenWireBench()
    client = bench.connect()
    info = client.consumer_info(A)
    reader = client.subscribe(info)
    client.ok(info)
    producer = client.producer_info(A)
    client.ok(producer)
    client.ok(producer)
    client.ok(client.session_info())
    client.ok(client.session_info())
    client.publish(A, "once")
    assert reader.bodies() == "once"
    assert len(bench.queue("a").holders) == 1


# -- silence -----------------------------------------------------------------------------------------------------------


def beats(client: Client) -> int:
    return sum(isinstance(one, KeepAliveInfo) for one in client.take())


def test_a_keep_alive_is_answered_when_the_client_asks() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    client.tell(KeepAliveInfo())
    assert client.take() == []
    command = KeepAliveInfo()
    client.feed(command, answer=True)
    bench.tick()
    (answer,) = client.take()
    assert isinstance(answer, KeepAliveInfo)
    assert not answer.response_required


def test_the_broker_beats_each_third_of_the_timeout() -> None:
    bench = OpenWireBench()
    client = bench.negotiate(hello(timeout_ms=3_000))
    client.log_in("ID:c")
    client.take()
    bench.pass_time(999)
    assert beats(client) == 0
    bench.pass_time(1)
    assert beats(client) == 1
    bench.pass_time(2_000)
    assert beats(client) == 2


@pytest.mark.parametrize(("ours", "theirs", "then"), [(30_000, 3_000, 3_000), (30_000, 60_000, 30_000)])
def test_the_smaller_timeout_counts(ours: int, theirs: int, then: int) -> None:  # TTL-1
    bench = OpenWireBench()
    assert bench.acceptor.max_inactivity_duration_ms == ours
    client = bench.negotiate(hello(timeout_ms=theirs, initial_delay_ms=0))
    client.log_in("ID:c")
    client.take()
    bench.pass_time(then - 1)
    gone = client.host.finished
    assert not gone
    # Looked at each third of it.
    bench.pass_time(then // 3 + 1)
    assert client.host.finished
    assert code_of(client.error()) == "InactivityIOException DMQ5237"


def test_whatever_arrives_proves_that_the_client_is_there() -> None:  # TTL-1
    bench = OpenWireBench()
    client = bench.negotiate(hello(timeout_ms=3_000, initial_delay_ms=0))
    client.log_in("ID:c")
    chunk = encode_command(KeepAliveInfo(), client.form)
    for at in range(len(chunk)):
        bench.pass_time(2_000)
        client.send(chunk[at : at + 1])
    assert not client.host.finished


def test_the_timeout_begins_to_count_after_the_initial_delay() -> None:
    bench = OpenWireBench()
    client = bench.negotiate(hello(timeout_ms=3_000, initial_delay_ms=5_000))
    bench.pass_time(7_999)
    assert not client.host.finished
    bench.pass_time(1)
    assert client.host.finished


def test_no_timeout_at_all() -> None:
    bench = OpenWireBench()
    client = bench.negotiate(hello(timeout_ms=0, initial_delay_ms=0))
    client.log_in("ID:c")
    client.take()
    bench.pass_time(3_600_000)
    assert client.take() == []
    assert not client.host.finished


def test_a_silent_client_s_messages_go_to_others() -> None:  # TTL-1
    bench = OpenWireBench()
    client = bench.negotiate(hello(timeout_ms=3_000, initial_delay_ms=0))
    client.log_in("ID:c")
    client.publish(A, "x")
    assert client.consume(A).bodies() == "x"
    bench.pass_time(10_000)
    assert bench.connect().consume(A).bodies() == "xr1"


# -- farewell ----------------------------------------------------------------------------------------------------------


def test_after_shutdown_nothing_is_heard_or_said() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    client.tell(ShutdownInfo())
    assert client.host.reason is None
    client.tell(client.text(A, "x"))
    assert client.take() == []
    assert bench.broker.queues == {}


def test_control_and_flush_are_answered() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    client.ok(ConnectionControl())
    client.ok(FlushCommand())


def test_a_broker_that_fails_a_connection_says_why() -> None:
    bench = OpenWireBench()
    client = bench.connect()
    client.session.fail(PeerError("DMQ0000", "because"))
    bench.tick()
    received: list[Structure] = client.take()
    (error,) = received
    assert isinstance(error, ConnectionError)
    assert error.connection_id is not None
    assert error.connection_id.value == client.name
    assert not any(isinstance(one, MessageDispatch) for one in received)
    assert client.host.finished
