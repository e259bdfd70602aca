"""``/api/v1/queues``, addresses and the broker."""

# BROKER-5

import gc
import logging
from contextlib import nullcontext

import pytest

from delosmq.composition import Accounts, ComposedBroker
from delosmq.engine.log.ports import Replay
from delosmq.model.errors import StorageError
from delosmq.model.ids import Position
from delosmq.model.settings import BrokerSettings, QueueSettings
from delosmq.storage.memory import MemoryStore
from tests.manage.support import Api, bodies, problem, succeeded, table

QUEUES = "/api/v1/queues"


async def test_list_shows_all_queues_by_name(api: Api):
    found = succeeded(await api.get(QUEUES))
    assert [queue["name"] for queue in found["queues"]] == ["orders.archive", "q", "secret.q"]


async def test_list_leaves_out_what_the_user_may_not_view(api: Api):
    found = succeeded(await api.get(QUEUES, user="viewer"))
    assert [queue["name"] for queue in found["queues"]] == ["orders.archive", "q"]


async def test_a_queue_shows_its_settings_and_counts(api: Api):
    api.send("q", "a b c")
    epoch = (await api.open())["epoch"]
    await api.lease(0, epoch, max_rows=2)
    queue = succeeded(await api.get(f"{QUEUES}/q"))
    newest = api.broker.queues["q"].newest_sequence
    size = api.broker.queues["q"].total.bytes
    expected = {
        "id": api.broker.queues["q"].id,
        "name": "q",
        "address": "q",
        "routing_type": "ANYCAST",
        "durable": True,
        "temporary": False,
        "auto_created": False,
        "ring_size": -1,
        "max_consumers": -1,
        "message_count": 3,
        "delivering_count": 2,
        "held_count": 0,
        "scheduled_count": 0,
        "consumer_count": 1,
        "messages_added": 3,
        "messages_acknowledged": 0,
        "messages_replaced": 0,
        "messages_killed": 0,
        "messages_expired": 0,
        "newest_sequence": newest,
        "oldest_sequence": newest - 2,
        "paused": False,
        "enabled": True,
        "filter": "",
        "exclusive": False,
        "last_value": False,
        "last_value_key": "",
        "group_count": 0,
        "persistent_size": size,
        "durable_message_count": 3,
        "durable_persistent_size": size,
        "delivering_size": 2 * size // 3,
        "scheduled_size": 0,
        "acknowledge_attempts": 0,
    }
    assert {name: queue[name] for name in expected} == expected


async def test_the_oldest_sequence_is_found_below_higher_priorities(api: Api):
    api.send("q", "a")
    oldest = api.broker.queues["q"].newest_sequence
    api.send("q", "b", priority=9)
    api.send("q", "c", priority=2)
    assert succeeded(await api.get(f"{QUEUES}/q"))["oldest_sequence"] == oldest


async def test_an_empty_queue_has_no_oldest_sequence(api: Api):
    assert succeeded(await api.get(f"{QUEUES}/q"))["oldest_sequence"] == 0


async def test_a_queue_that_is_not_there(api: Api):
    assert problem(await api.get(f"{QUEUES}/nothing")) == (404, "DMQ6201", "NOT_FOUND")


# RING-2
async def test_create_answers_with_the_queue(api: Api):
    wanted = {"name": "prices.last", "address": "prices", "routing_type": "MULTICAST", "ring_size": 3}
    response = await api.post(QUEUES, wanted)
    assert response.status_code == 201
    made = succeeded(response)
    assert (made["name"], made["address"], made["routing_type"]) == ("prices.last", "prices", "MULTICAST")
    assert (made["ring_size"], made["durable"], made["max_consumers"]) == (3, True, -1)
    assert "prices.last" in api.broker.queues


async def test_a_name_may_hold_any_character(api: Api):
    succeeded(await api.post(QUEUES, {"name": "a/b c?ü%2F"}))
    made = succeeded(await api.get(f"{QUEUES}/a%2Fb%20c%3F%C3%BC%252F"))
    assert (made["name"], made["address"]) == ("a/b c?ü%2F", "a/b c?ü%2F")


async def test_a_path_that_is_not_utf8(api: Api):
    assert problem(await api.get(f"{QUEUES}/%ff")) == (400, "DMQ6401", "INVALID")


async def test_create_refuses_a_name_that_is_taken(api: Api):
    assert problem(await api.post(QUEUES, {"name": "q"})) == (409, "DMQ6204", "EXISTS")


async def test_ring_size_minus_five_is_refused_at_creation_and_at_update(api: Api):
    assert problem(await api.post(QUEUES, {"name": "r", "ring_size": -5})) == (400, "DMQ2101", "INVALID")
    response = await api.patch(f"{QUEUES}/q", {"ring_size": -5})
    assert problem(response) == (400, "DMQ2101", "INVALID")
    assert "ring-size -5 of queue 'q' makes no sense; use -1" in response.json()["detail"]
    assert "r" not in api.broker.queues
    assert api.broker.queues["q"].ring_size == -1


async def test_max_consumers_minus_two_is_refused(api: Api):
    assert problem(await api.post(QUEUES, {"name": "r", "max_consumers": -2})) == (400, "DMQ2626", "INVALID")
    assert problem(await api.patch(f"{QUEUES}/q", {"max_consumers": -2})) == (400, "DMQ2626", "INVALID")


async def test_update_changes_what_is_named_and_nothing_else(api: Api):
    assert succeeded(await api.patch(f"{QUEUES}/q", {"ring_size": 5, "max_consumers": 2}))["ring_size"] == 5
    changed = succeeded(await api.patch(f"{QUEUES}/q", {"max_consumers": 3}))
    assert (changed["ring_size"], changed["max_consumers"]) == (5, 3)
    back = succeeded(await api.patch(f"{QUEUES}/q", {"ring_size": None}))
    assert (back["ring_size"], back["max_consumers"]) == (-1, 3)


# RING-4
async def test_a_ring_set_by_update_holds_for_what_is_sent_next(api: Api):
    await api.patch(f"{QUEUES}/q", {"ring_size": 2})
    api.send("q", "a b c")
    queue = succeeded(await api.get(f"{QUEUES}/q"))
    assert (queue["message_count"], queue["messages_replaced"]) == (2, 1)


async def test_update_of_a_queue_that_is_not_there(api: Api):
    assert problem(await api.patch(f"{QUEUES}/nothing", {})) == (404, "DMQ6201", "NOT_FOUND")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": 5}, "name"),
        ({"name": "r", "ring_size": "7"}, "ring_size"),
        ({"name": "r", "ring_size": 7.5}, "ring_size"),
        ({"name": "r", "ring_size": True}, "ring_size"),
        ({"name": "r", "ring_size": 1 << 70}, "ring_size"),
        ({"name": "r", "routing_type": "BOTH"}, "routing_type"),
        ({"name": "r", "ringsize": 7}, "ringsize"),
    ],
)
async def test_a_wrong_field_is_named(api: Api, body: dict[str, object], field: str):
    response = await api.post(QUEUES, body)
    assert problem(response) == (400, "DMQ6407", "INVALID")
    assert [fault["field"] for fault in response.json()["faults"]] == [field]
    assert field in response.json()["detail"]


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ({}, "'name' is missing; give it a value"),
        ({"name": ""}, "'name' must not be empty"),
        ({"name": 5}, "'name' must be a text"),
        ({"name": "r" * 1025}, "'name' may have 1024 characters at most"),
        ({"name": "r", "ring_size": "7"}, "'ring_size' must be a whole number, or null"),
        ({"name": "r", "ring_size": 1 << 70}, "'ring_size' must be 9223372036854775807 or less"),
        ({"name": "r", "durable": "yes"}, "'durable' must be true or false"),
        ({"name": "r", "routing_type": "BOTH"}, "'routing_type' must be 'ANYCAST' or 'MULTICAST'"),
        ({"name": "r", "ringsize": 7}, "'ringsize' is unknown; did you mean 'ring_size'?"),
        ([], "the request's body must be a JSON object, such as {}"),
    ],
)
async def test_what_is_wrong_with_a_field_is_said_in_our_words(api: Api, body: object, detail: str):
    assert (await api.post(QUEUES, body)).json()["detail"] == detail


async def test_a_wrong_query_is_said_in_our_words(api: Api):
    for query, detail in (
        ("limit=0", "'limit' must be 1 or more"),
        ("limit=many", "'limit' must be a whole number"),
        ("limit=10001", "'limit' must be 10000 or less"),
    ):
        assert (await api.get(f"{QUEUES}?{query}")).json()["detail"] == detail
    for body, detail in (
        ({"name": "a", "routing_types": []}, "'routing_types' must have 1 entry or more"),
        ({"name": "a", "routing_types": "ANYCAST"}, "'routing_types' must be a list"),
    ):
        assert (await api.post("/api/v1/addresses", body)).json()["detail"] == detail


async def test_a_call_that_says_nothing_needs_no_body(api: Api):
    client = api.clients["admin"]
    assert succeeded(await client.post(f"{QUEUES}/q/pause"))["paused"] is True
    assert succeeded(await client.post(f"{QUEUES}/q/resume", headers={"Content-Type": "text/plain"}))["paused"] is False
    assert succeeded(await client.post(f"{QUEUES}/q/purge", json={}))["removed"] == 0
    said_json = await client.post(f"{QUEUES}/q/enable", headers={"Content-Type": "application/json"})
    assert succeeded(said_json)["enabled"] is True


async def test_a_browser_that_acts_for_another_site_is_refused_without_a_body_too(api: Api):
    client = api.clients["admin"]
    for response in (
        await client.post(f"{QUEUES}/q/pause", headers={"Origin": "https://elsewhere.example"}),
        await client.post(f"{QUEUES}/q/pause", headers={"Origin": "null"}),
        await client.post(f"{QUEUES}/q/pause", content=b"x=1", headers={"Content-Type": "text/plain"}),
        await client.post(QUEUES),
    ):
        assert problem(response) == (415, "DMQ6402", "NOT_JSON")
    assert not api.broker.queues["q"].paused


# EXCL-3
async def test_browsing_takes_nothing_and_goes_by_sequence(api: Api):
    api.send("q", "a b")
    api.send("q", "c", priority=9)
    epoch = (await api.open())["epoch"]
    await api.lease(0, epoch, max_rows=1)  # holds c
    first = api.broker.queues["q"].newest_sequence - 2
    assert bodies(await api.get(f"{QUEUES}/q/rows")) == "a b c"
    assert bodies(await api.get(f"{QUEUES}/q/rows?after={first}&until={first + 1}")) == "b"
    assert bodies(await api.get(f"{QUEUES}/q/rows?after={first - 1}&max_rows=2")) == "a b"
    assert api.broker.queues["q"].pending.count == 2


async def test_browsing_shows_what_matches_and_when_it_came(api: Api):
    for body, head in (("a", b""), ("b", b"type:tea\n"), ("c", b"type:tea\n")):
        api.send("q", body, head=head)
        api.host.clock.now_ms += 10
    now = api.host.clock.now_ms
    rows = f"{QUEUES}/q/rows"
    assert bodies(await api.get(f"{rows}?selector=JMSType%3D'tea'")) == "b c"
    assert bodies(await api.get(f"{rows}?selector=JMSType%3D'tea'&max_rows=1")) == "b"
    assert bodies(await api.get(f"{rows}?since_ms={now - 20}")) == "b c"
    assert bodies(await api.get(f"{rows}?since_ms={now - 20}&before_ms={now - 10}")) == "b"
    assert bodies(await api.get(f"{rows}?selector=JMSType%3D'tea'&since_ms={now - 10}")) == "c"
    refused = await api.get(f"{rows}?selector=colour%3D")
    assert problem(refused)[::2] == (400, "INVALID")


async def test_browsing_an_empty_queue_gives_an_empty_table(api: Api):
    found = table(await api.get(f"{QUEUES}/q/rows?columns=sequence"))
    assert (found.num_rows, found.column_names) == (0, ["sequence"])


async def test_addresses_are_listed_and_shown(api: Api):
    api.send("orders", "a b")
    found = succeeded(await api.get("/api/v1/addresses"))
    assert [address["name"] for address in found["addresses"]] == ["orders", "q", "secret.q"]
    one = succeeded(await api.get("/api/v1/addresses/orders", user="viewer"))
    assert (one["routing_types"], one["queues"], one["routed_messages"]) == (["MULTICAST"], ["orders.archive"], 2)
    assert one["used_messages"] == 2
    assert problem(await api.get("/api/v1/addresses/none")) == (404, "DMQ6203", "NOT_FOUND")


async def test_the_broker_shows_itself(api: Api):
    api.host.clock.now_ms += 1500
    found = succeeded(await api.get("/api/v1/broker"))
    assert (found["name"], found["version"], found["queues"]) == ("delosmq", "9.9", 3)
    assert found["journal_synced"] == found["journal_position"] > 0
    assert found["uptime_ms"] == 1500


async def test_a_ring_of_nothing_is_told_at_each_start(caplog: pytest.LogCaptureFixture):  # RING-1
    settings = BrokerSettings(queues=(QueueSettings("r0", "r0", ring_size=0), QueueSettings("r1", "r1", ring_size=1)))
    store = MemoryStore()
    composed = ComposedBroker(settings, Accounts({}, {}), store, http=None, logger=logging.getLogger("tests.start"))
    composed.recover()
    (told,) = [record.getMessage() for record in caplog.records if "DMQ6162" in record.getMessage()]
    assert told.startswith("DMQ6162: queue 'r0' has a ring-size of 0 and keeps nothing")


class WatchingStore(MemoryStore):
    """Notes whether garbage is collected while it is recovered."""

    def __init__(self, error: StorageError | None = None) -> None:
        super().__init__()
        self.collecting: list[bool] = []
        self._error = error

    def recover(self, replay: Replay) -> Position:
        self.collecting.append(gc.isenabled())
        if self._error is not None:
            raise self._error
        return super().recover(replay)


@pytest.mark.parametrize("error", [None, StorageError("DMQ3010", "damaged")], ids=["whole", "damaged"])
def test_garbage_is_not_collected_during_a_restart_but_after_it(error: StorageError | None):
    store = WatchingStore(error)
    logger = logging.getLogger("tests.start")
    composed = ComposedBroker(BrokerSettings(), Accounts({}, {}), store, http=None, logger=logger)
    gc.enable()
    with pytest.raises(StorageError) if error is not None else nullcontext():
        composed.recover()
    assert store.collecting == [False]
    assert gc.isenabled()
