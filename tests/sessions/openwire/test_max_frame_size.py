"""A peer that announces how large its frames may be is sent no larger ones."""

import pytest

from delosmq.wire.openwire.commands import KeepAliveInfo, MessageDispatch
from delosmq.wire.openwire.negotiation import WireFormatInfo
from tests.sessions.openwire.stomp_peer import StompPeer
from tests.sessions.openwire.support import Client, OpenWireBench, queue

A = queue("a")


def narrow(bench: OpenWireBench, *, tight: bool = False) -> Client:
    """A peer that takes 1,000 bytes."""
    info = WireFormatInfo(12 if not tight else 9)
    info.max_frame_bytes = 1_000
    client = bench.negotiate(info)
    client.log_in("ID:narrow")
    client.take()
    return client


@pytest.mark.parametrize("other_version", [False, True])
def test_a_larger_message_ends_the_connection_and_stays(other_version: bool) -> None:
    bench = OpenWireBench()
    client, sender = narrow(bench, tight=other_version), bench.connect()
    sender.publish(A, "small")
    sender.ok(sender.text(A, "x" * 2_000))
    reader = client.consume(A)
    received = client.take()
    assert [one.message is not None for one in received if isinstance(one, MessageDispatch)] == [True]
    assert any(isinstance(one, KeepAliveInfo) for one in received)
    (reason,) = client.host.reasons
    assert reason is not None
    assert "DMQ5299" in str(reason)
    assert "of 'a'" in str(reason)
    assert "1000" in str(reason)
    client.drop()
    assert sender.consume(A).bodies().startswith("smallr1 " + "x" * 2_000)
    assert reader.got == []


def test_so_does_one_that_grows_on_its_way() -> None:
    bench = OpenWireBench()
    client, stomp = narrow(bench), StompPeer(bench)
    stomp.frame("SEND", "destination:/queue/a", body=b"x" * 2_000)
    client.consume(A)
    assert client.host.finished
    assert "DMQ5299" in str(client.host.reasons[0])
    assert len(bench.connect().consume(A).take()) == 1


def test_what_just_fits_is_sent() -> None:
    bench = OpenWireBench()
    client, sender = narrow(bench), bench.connect()
    size = 0
    reader = client.consume(A)
    for length in range(500, 1_000):
        sender.ok(sender.text(A, "x" * length, persistent=False))
        if client.host.finished:
            break
        size = length
    assert 700 < size < 999
    assert len(reader.take()) == size - 499
