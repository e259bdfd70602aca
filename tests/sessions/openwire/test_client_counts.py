"""Who decides that a message was delivered too often: the client in the profile classic, else the address."""

# ACK-4

from delosmq.migration.activemq_xml.catalog.policies import BASELINE
from delosmq.model.settings import DispatchProfile
from delosmq.wire.openwire.commands import BEGIN, POISON_ACK
from delosmq.wire.openwire.structures import XATransactionId
from tests.sessions.openwire.stomp_peer import StompPeer
from tests.sessions.openwire.support import OpenWireBench, queue

A = queue("a")
DLQ = queue("ActiveMQ.DLQ")
ALL_SEEN = -2


def start(profile: str = BASELINE["dispatch-profile"]) -> OpenWireBench:
    """As `delosmq convert` sets it up."""
    settings: dict[str, object] = {
        "dispatch_profile": DispatchProfile(profile),
        "dead_letter_address": BASELINE["dead-letter-address"],
        "max_delivery_attempts": int(BASELINE["max-delivery-attempts"]),
    }
    bench = OpenWireBench(address_settings={"#": settings})
    # As sending to it would make it.
    bench.connect().consume(DLQ).close()
    return bench


def lose(bench: OpenWireBench, times: int, prefetch: int = 1_000) -> None:
    """Processes that read and die."""
    for _ in range(times):
        client = bench.connect()
        client.consume(A, prefetch).take()
        client.drop()


def dead(bench: OpenWireBench) -> int:
    return bench.queue("ActiveMQ.DLQ").message_count


def test_lost_connections_make_no_dead_letters() -> None:
    bench = start()
    bench.connect().publish(A, "0 1 2")
    lose(bench, 10)
    assert dead(bench) == 0
    assert bench.connect().consume(A).bodies() == "0r10 1r10 2r10"


def test_nor_do_consumers_that_close() -> None:
    bench = start()
    client = bench.connect()
    client.publish(A, "0 1")
    for _ in range(10):
        reader = client.consume(A)
        reader.take()
        reader.close(ALL_SEEN)
    assert dead(bench) == 0
    assert client.consume(A).bodies() == "0r10 1r10"


def test_nor_does_what_a_transaction_acknowledged_whose_connection_is_lost() -> None:
    bench = start()
    bench.connect().publish(A, "0")
    for number in range(10):
        client = bench.connect()
        reader = client.consume(A)
        reader.take()
        branch = XATransactionId(1, b"g%d" % number, b"b")
        client.ok(client.transaction_info(branch, BEGIN))
        reader.done(0, transaction=branch)
        client.drop()
    assert dead(bench) == 0
    assert bench.connect().consume(A).bodies() == "0r10"


def test_what_the_client_gives_up_is_a_dead_letter_whatever_its_count() -> None:
    bench = start()
    client = bench.connect()
    client.publish(A, "0")
    reader = client.consume(A)
    reader.take()
    client.ok(reader.ack(POISON_ACK, 0, first=0))
    assert dead(bench) == 1


def test_stomp_consumers_of_the_same_queue_have_its_attempts() -> None:
    bench = start()
    bench.connect().publish(A, "0")
    for attempt in range(7):
        assert dead(bench) == 0, attempt
        peer = StompPeer(bench)
        peer.frame("SUBSCRIBE", "id:1", "destination:/queue/a", "ack:client-individual")
        (message,) = peer.take()
        peer.frame("NACK", f"id:{message.headers['ack']}")
        peer.drop()
    assert dead(bench) == 1


def test_elsewhere_the_attempts_of_the_address_count() -> None:
    bench = start("artemis")
    bench.connect().publish(A, "0")
    lose(bench, 6)
    assert dead(bench) == 0
    lose(bench, 1)
    assert dead(bench) == 1
