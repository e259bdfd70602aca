"""Settings of Classic's policyEntry, as an OpenWire client notices them."""

import pytest

from delosmq.model.settings import DispatchProfile
from delosmq.wire.openwire.commands import ADD_DESTINATION, POISON_ACK, DestinationInfo
from delosmq.wire.openwire.properties import decode_properties
from delosmq.wire.openwire.structures import TEMP_QUEUE, TEMP_TOPIC, ConnectionId, Destination
from tests.sessions.openwire.support import JMS, OpenWireBench, code_of, queue, text_of, throwable, topic

CLASSIC: dict[str, object] = {
    "dispatch_profile": DispatchProfile.CLASSIC,
    "dead_letter_address": "DLQ",
    "expiry_address": "DLQ",
}


def test_no_more_addresses_are_made_than_a_match_may_have() -> None:
    bench = OpenWireBench(address_settings={"a.#": {"max_addresses": 1}})
    client = bench.connect()
    client.publish(queue("a.1"), "m")
    for command in (client.text(queue("a.2"), "m"), client.text(topic("a.3"), "m")):
        assert code_of(throwable(client.call(command))) == "IllegalStateException DMQ2651"
    wanted = client.consumer_info(topic("a.4"))
    assert code_of(throwable(client.call(wanted))) == "IllegalStateException DMQ2651"
    client.publish(queue("b"), "m")
    assert client.consume(queue("a.1")).bodies() == "m"


def test_a_dead_letter_says_when_its_life_ends() -> None:
    bench = OpenWireBench(address_settings={"#": {**CLASSIC, "dead_letter_expiry_delay": 60_000}})
    client = bench.connect()
    client.consume(queue("DLQ")).close()
    client.ok(client.text(queue("a"), "bad", persistent=False))
    reader = client.consume(queue("a"))
    reader.take()
    client.ok(reader.ack(POISON_ACK, 0, first=0, count=1))
    died_at_ms = bench.clock.wall_ms()
    reader = client.consume(queue("DLQ"))
    (dead,) = reader.take()
    assert dead.message is not None
    assert (text_of(dead), dead.message.expiration) == ("bad", died_at_ms + 60_000)
    found = decode_properties(dead.message.marshalled_properties)
    assert found["originalDeliveryMode"].value == "NON_PERSISTENT"
    assert "originalExpiration" not in found
    reader.close()
    bench.pass_time(100_000)
    assert bench.broker.used_bytes == 0


@pytest.mark.parametrize("code", [TEMP_QUEUE, TEMP_TOPIC])
@pytest.mark.parametrize("open_to_all", [False, True])
def test_others_consume_from_a_temporary_destination_only_where_they_may(open_to_all: bool, code: int) -> None:
    bench = OpenWireBench(address_settings={"#": {"allow_temp_destination_stealing": open_to_all}})
    owner, other = bench.connect(), bench.connect()
    info = DestinationInfo()
    info.connection_id = ConnectionId(owner.name)
    info.destination = Destination(f"{owner.name}:1", code)
    info.operation_type = ADD_DESTINATION
    owner.ok(info)
    if not open_to_all:
        refused = throwable(other.call(other.consumer_info(info.destination)))
        assert (refused.class_name, (refused.message or "")[:7]) == (JMS, "DMQ2635")
        return
    reader = other.consume(info.destination)
    owner.publish(info.destination, "m")
    assert reader.bodies() == "m"
