"""Explaining messages and queues: every standing and rule, with what to do about it."""

from dataclasses import replace

import pytest

from delosmq.engine.base.slots import Slot
from delosmq.engine.dispatch.waiting_reason import CODES
from delosmq.engine.queues.consumer import Consumer, ConsumerOptions, ConsumerPort
from delosmq.engine.queues.credit import MessageCredit
from delosmq.manage.control import explain
from delosmq.manage.control.browse import finish
from delosmq.manage.control.diagnosis import advice, queue_notes
from delosmq.manage.control.explain import ExplainControl
from delosmq.manage.control.queues import QueueControl
from delosmq.model.conversion import Conversions
from delosmq.model.errors import BrokerError
from delosmq.model.message import MULTICAST
from delosmq.model.settings import AddressMatch, DivertSettings
from delosmq.security.access import Login
from delosmq.selectors.selector import parse_selector
from tests.engine.support import stood_on
from tests.manage.support import START_MS, Api, problem, succeeded

QUEUES = "/api/v1/queues"


class Port(ConsumerPort):
    """Takes everything; of connection c1, user sam."""

    def deliver(self, slot: Slot) -> None:
        pass

    def has_room(self) -> bool:
        return True

    def closed_by_broker(self, reason: BrokerError) -> None:
        pass

    def connection_name(self) -> str:
        return "c1"

    def user_name(self) -> str:
        return "sam"


def consume(api: Api, credit: int = 1, queue: str = "q", **options: object) -> Consumer:
    consumer = api.broker.consumers.subscribe(
        queue,
        Port(),
        MessageCredit(credit),
        queue_name=queue,
        options=ConsumerOptions(**options),  # type: ignore[arg-type]
    )
    tick(api)
    return consumer


def tick(api: Api) -> None:
    while api.broker.tick():
        pass


def newest(api: Api, queue: str = "q") -> int:
    return api.broker.queues[queue].newest_sequence


async def message(api: Api, sequence: int, query: str = "") -> dict[str, object]:
    """Where a message stands in its one queue."""
    found = succeeded(await api.get(f"/api/v1/messages/ID:{sequence}/explain{query}"))
    assert len(found["standings"]) == 1
    one: dict[str, object] = found["standings"][0]
    assert one["advice"]
    return one


async def queue(api: Api, query: str = "", name: str = "q") -> dict[str, object]:
    return succeeded(await api.get(f"{QUEUES}/{name}/explain{query}"))


# -- messages -----------------------------------------------------------------------------------------------------


async def test_a_message_nobody_consumes(api: Api):
    api.send("q", "a")
    found = succeeded(await api.get(f"/api/v1/messages/{newest(api)}/explain"))
    assert (found["message_id"], found["address"], found["sender"]) == (f"ID:{newest(api)}", "q", "producer")
    one = found["standings"][0]
    assert (one["standing"], one["rule"], one["queue"]) == ("waiting", "no consumer", "q")
    assert one["advice"] == "queue 'q' has no consumer; start one, or look for why it is gone"


async def test_a_message_in_delivery_says_to_whom_and_since_when(api: Api):
    consumer = consume(api)
    api.send("q", "a b")
    tick(api)
    held = await message(api, newest(api) - 1)
    assert (held["standing"], held["consumer"], held["connection"], held["user"], held["since_ms"]) == (
        "in delivery",
        consumer.id,
        "c1",
        "sam",
        START_MS,
    )
    assert f"consumer {consumer.id} of queue 'q' has it" in str(held["advice"])
    waits = await message(api, newest(api))
    assert (waits["standing"], waits["rule"]) == ("waiting", "consumers full")


async def test_a_scheduled_message_says_until_when(api: Api):
    api.send("q", "a b", due_at_ms=START_MS + 5_000)
    found = await message(api, newest(api) - 1)
    assert (found["standing"], found["due_at_ms"]) == ("scheduled", START_MS + 5_000)


async def test_a_leased_message_says_by_whom(api: Api):
    api.send("q", "a b c d")
    epoch = (await api.open("g"))["epoch"]
    await api.lease(0, epoch, max_rows=2)
    await api.lease(1, epoch, max_rows=1)
    found = await message(api, newest(api) - 1)
    assert (found["standing"], found["lease_group"], found["lease"]) == ("leased", "g", 2)
    waits = await message(api, newest(api))
    assert (waits["standing"], waits["rule"]) == ("waiting", "reader of leases has not asked")


@pytest.mark.parametrize("closes", [False, True])
async def test_a_message_acknowledged_in_a_prepared_branch(api: Api, closes: bool):  # ACK-5
    consumer = consume(api)
    api.send("q", "a")
    tick(api)
    branch = api.broker.branches.start(b"\x07", owner="client")
    api.broker.consumers.acknowledge(consumer, newest(api), branch)
    api.broker.branches.end(b"\x07")
    api.broker.branches.prepare(b"\x07")
    if closes:
        api.broker.consumers.close(consumer)
    found = await message(api, newest(api))
    assert (found["standing"], found["transaction"]) == ("acknowledged in a transaction", branch.id)
    assert (found["xid"], found["transaction_state"]) == ("07", "prepared")
    assert (await queue(api))["counts"] == {"acknowledged in a transaction": 1}


async def test_a_paused_queue_and_a_selector(api: Api):
    api.send("q", "a")
    consume(api, selector=parse_selector("colour = 'red'"))
    assert (await message(api, newest(api)))["rule"] == "no consumer takes it"
    api.broker.resources.update_queue("q", paused=True)
    found = await message(api, newest(api))
    assert found["rule"] == "paused"
    assert "delosmq queue resume q" in str(found["advice"])


async def test_a_full_exclusive_owner_is_named(api: Api):  # EXCL-2
    owner = consume(api, exclusive=True)
    consume(api, exclusive=True)
    api.send("q", "a b")
    tick(api)
    found = await message(api, newest(api))
    assert (found["rule"], found["consumer"]) == ("exclusive owner full", owner.id)
    assert f"consumer {owner.id} owns queue 'q'" in str(found["advice"])
    assert (await queue(api))["owner"] == owner.id


async def test_a_full_owner_of_a_group_is_named(api: Api):
    first = consume(api)
    consume(api, credit=10)
    api.send("q", "a b", group_id="g")
    tick(api)
    found = await message(api, newest(api))
    assert (found["rule"], found["consumer"]) == ("group owner full", first.id)
    shown = await queue(api)
    assert shown["groups"] == [{"group": "g", "consumer": first.id}]
    assert shown["group_count"] == 1


async def test_waiting_for_more_consumers(api: Api):
    api.broker.resources.update_queue("q", consumers_before_dispatch=2)
    api.send("q", "a")
    consume(api)
    assert (await message(api, newest(api)))["rule"] == "waiting for consumers"


async def test_a_message_in_several_queues_stands_in_each(api: Api):
    succeeded(await api.post(QUEUES, {"name": "orders.two", "address": "orders", "routing_type": "MULTICAST"}))
    api.send("orders", "a")
    sequence = newest(api, "orders.two")
    found = succeeded(await api.get(f"/api/v1/messages/{sequence}/explain"))
    assert [one["queue"] for one in found["standings"]] == ["orders.archive", "orders.two"]
    assert (await message(api, sequence, "?queue=orders.two"))["queue"] == "orders.two"


@pytest.mark.parametrize("form", ["{}", "ID:{}", "7-{}", "ID:7-{}"])
async def test_every_form_of_an_id_is_understood(api: Api, form: str):
    api.send("q", "a")
    found = succeeded(await api.get(f"/api/v1/messages/{form.format(newest(api))}/explain"))
    assert found["sequence"] == newest(api)


@pytest.mark.parametrize("wrong", ["x", "ID:", "-", "0", "1.5", "9" * 30, "%C2%B2"])
async def test_what_is_no_id(api: Api, wrong: str):
    assert problem(await api.get(f"/api/v1/messages/{wrong}/explain")) == (400, "DMQ6143", "INVALID")


async def test_a_message_that_is_nowhere(api: Api):
    api.send("q", "a")
    gone = await api.get(f"/api/v1/messages/{newest(api) + 1}/explain")
    assert problem(gone) == (404, "DMQ6144", "NOT_FOUND")
    detail = gone.json()["detail"]
    assert detail.startswith(
        f"message {newest(api) + 1} is gone: no queue that you may view has it. It was acknowledged"
    )
    only = await api.get(f"/api/v1/messages/{newest(api)}/explain?queue=orders.archive")
    assert "is gone: queue 'orders.archive' does not hold it" in only.json()["detail"]
    assert problem(await api.get("/api/v1/messages/1/explain?queue=none")) == (404, "DMQ6201", "NOT_FOUND")


async def test_messages_of_queues_one_may_not_view_are_nowhere(api: Api):
    api.send("secret.q", "a")
    path = f"/api/v1/messages/{newest(api, 'secret.q')}/explain"
    assert (await api.get(path)).status_code == 200
    assert problem(await api.get(path, user="viewer"))[0] == 404
    assert problem(await api.get(f"{path}?queue=secret.q", user="viewer"))[0] == 403


# -- queues -------------------------------------------------------------------------------------------------------


async def test_a_queue_counts_by_standing(api: Api):
    consume(api, credit=2, selector=parse_selector("JMSPriority > 4"))
    api.send("q", "a b c", priority=9)
    api.send("q", "d e f")
    api.send("q", "g", due_at_ms=START_MS + 1)
    tick(api)
    found = await queue(api)
    assert found["counts"] == {"in delivery": 2, "consumers full": 1, "no consumer takes it": 3, "scheduled": 1}
    assert (found["message_count"], found["not_looked_at"]) == (7, 0)
    head = found["head"]
    assert isinstance(head, dict)
    assert head["rule"] == "consumers full"
    assert found["advice"] == head["advice"]


async def test_a_queue_whose_messages_all_wait_alike(api: Api):
    api.send("q", "a b c")
    assert (await queue(api))["counts"] == {"no consumer": 3}


async def test_a_queue_shows_its_consumers(api: Api):
    api.send("q", "a b c")
    consumer = consume(api, credit=2, selector=parse_selector("JMSPriority > 0"), priority=5)
    consume(api, browser=True)
    await api.open("g")
    shown = (await queue(api))["consumers"]
    assert isinstance(shown, list)
    assert [(one["kind"], one["name"]) for one in shown] == [("consumer", ""), ("browser", ""), ("lease group", "g")]
    assert shown[0] == {
        "id": consumer.id,
        "kind": "consumer",
        "name": "",
        "connection": "c1",
        "user": "sam",
        "selector": "JMSPriority > 0",
        "priority": 5,
        "exclusive": False,
        "held": 2,
        "has_room": False,
        "owned_groups": 0,
    }


async def test_a_queue_tells_its_messages_in_pages(api: Api):
    api.send("q", "a", due_at_ms=START_MS + 1)
    api.send("q", "b c d")
    consume(api)
    first = await queue(api, "?limit=3")
    messages = first["messages"]
    assert isinstance(messages, list)
    assert [one["standing"] for one in messages] == ["scheduled", "in delivery", "waiting"]
    assert first["next"] == newest(api) - 1
    rest = await queue(api, f"?after={first['next']}&limit=3")
    assert isinstance(rest["messages"], list)
    assert ([one["sequence"] for one in rest["messages"]], rest["next"]) == ([newest(api)], 0)
    assert (await queue(api, "?limit=0"))["messages"] == []


async def test_a_queue_tells_where_its_settings_come_from(api: Api):
    succeeded(await api.post(QUEUES, {"name": "quiet.q", "ring_size": 3}))
    shown = (await queue(api, name="quiet.q"))["settings"]
    assert isinstance(shown, list)
    found = {one["name"]: (one["value"], one["source"], one["match"]) for one in shown}
    assert found["ring-size"] == (3, "queue", "")
    assert found["max-delivery-attempts"] == (5, "address-setting", "quiet.#")
    assert found["max-consumers"] == (2, "address-setting", "quiet.*")
    assert found["exclusive"] == (False, "default", "")
    assert found["dispatch-profile"] == ("artemis", "default", "")


async def test_a_queue_tells_what_keeps_messages_away(api: Api):
    succeeded(await api.patch(f"{QUEUES}/q", {"filter": "a = 1", "enabled": False}))
    found = await queue(api)
    assert "enable it with `delosmq queue enable q`" in str(found["advice"])
    notes = " / ".join(str(note) for note in found["notes"])  # type: ignore[attr-defined]
    assert "disabled" in notes
    assert "match its filter enter it: a = 1" in notes


async def test_a_queue_that_is_deleted_while_it_is_looked_at_is_told_of_as_it_was(api: Api):
    succeeded(await api.patch(f"{QUEUES}/q", {"filter": "a = 1"}))
    known = api.broker.queues["q"]
    api.broker.resources.delete_queue("q")
    tick(api)
    api.broker.resources.delete_address("q")
    assert "q" not in api.broker.addresses
    assert "match its filter enter it: a = 1" in str(queue_notes(api.broker, known))


async def test_a_full_ring_and_an_empty_queue(api: Api):  # RING-4
    assert "is empty; nothing is to be done" in str((await queue(api))["advice"])
    await api.patch(f"{QUEUES}/q", {"ring_size": 2})
    api.send("q", "a b")
    assert "its ring of 2 is full: the next message pushes one out" in str((await queue(api))["notes"])


async def test_a_ring_of_nothing_does_not_say_that_all_is_well(api: Api):
    await api.patch(f"{QUEUES}/q", {"ring_size": 0})
    found = await queue(api)
    assert str(found["advice"]).startswith(
        "queue 'q' is empty, as its ring-size of 0 pushes out each message that comes"
    )
    assert found["notes"] == ["its ring-size is 0: a message that comes is pushed out at once"]


@pytest.mark.parametrize(
    "api",
    [
        (
            DivertSettings("copies", "q", ("audit", "b")),
            DivertSettings("takes", "q", ("vip",), exclusive=True, filter="a = 1"),
        )
    ],
    indirect=True,
)
async def test_diverts_are_noted_whether_or_not_they_take_messages_away(api: Api):
    assert (await queue(api))["notes"] == [
        "divert 'copies' sends a copy of everything that is sent to its address to 'audit', 'b'",
        "divert 'takes' takes what matches a = 1 that is sent to its address to 'vip' instead",
    ]


def set_addresses(api: Api, *matches: AddressMatch) -> None:
    """Address-settings beside those that there are."""
    settings = api.broker.settings
    api.broker.reload(replace(settings, address_settings=(*settings.address_settings, *matches)))


async def test_a_dead_letter_address_without_a_queue_is_noted_with_what_is_held(api: Api):
    fields = {"max_delivery_attempts": 1, "dead_letter_address": "quiet.DLQ", "expiry_address": "quiet.gone"}
    set_addresses(api, AddressMatch("q", fields))
    await api.post(QUEUES, {"name": "quiet.DLQ"})
    assert (await queue(api))["notes"] == []  # the other one is made when it is needed
    set_addresses(api, *(AddressMatch(name, {"auto_create_queues": False}) for name in ("quiet.DLQ", "quiet.gone")))
    gone = "its expiry-address 'quiet.gone' has no queue that takes them: what should go there is held in this one;"
    assert (await queue(api))["notes"] == [f"{gone} create one with `delosmq queue create quiet.gone`"]
    api.broker.resources.delete_queue("quiet.DLQ")
    consumer = consume(api)
    api.send("q", "a")
    tick(api)
    api.broker.consumers.reject_through(consumer, newest(api))
    tick(api)
    found = await queue(api)
    assert "what should go there is held in this one (1 message so far)" in str(found["notes"])
    assert found["counts"] == {"held": 1}
    assert "no queue takes what queue 'q' gives up" in str(found["advice"])
    assert succeeded(await api.get(f"{QUEUES}/q"))["held_count"] == 1


# -- addresses ----------------------------------------------------------------------------------------------------


async def address(api: Api, name: str) -> dict[str, object]:
    return succeeded(await api.get(f"/api/v1/addresses/{name}/explain"))


@pytest.mark.parametrize("api", [(DivertSettings("d", "orders", ("audit",)),)], indirect=True)
async def test_an_address_tells_its_queues_diverts_and_what_reached_nobody(api: Api):
    await api.post(QUEUES, {"name": "all", "address": "#", "routing_type": "MULTICAST"})
    found = await address(api, "orders")
    assert found["advice"] == "what is sent to address 'orders' reaches its queues and diverts; nothing is to be done"
    assert [(one["name"], one["address"]) for one in found["queues"]] == [("orders.archive", "orders"), ("all", "#")]  # type: ignore[attr-defined]
    assert found["diverts"] == [
        {
            "name": "d",
            "exclusive": False,
            "filter": "",
            "forwarding_addresses": ["audit"],
            "copies": 0,
            "lost_copies": 0,
            "dead_ends": [],
        }
    ]
    assert found["notes"] == [
        "divert 'd' sends a copy of everything that is sent to its address to 'audit'",
        "the wildcard address '#' gets what is sent to it as well",
    ]


async def test_an_address_without_queues_says_that_messages_are_gone(api: Api):
    await api.post("/api/v1/addresses", {"name": "void", "routing_types": ["MULTICAST"]})
    api.broker.producers.send(api.message("void", b"m"), routing=MULTICAST)
    found = await address(api, "void")
    assert "has no queue, so what is sent to it is gone; subscribe to it, or create one" in str(found["advice"])
    assert (found["routed_messages"], found["unrouted_messages"]) == (0, 1)
    await api.post(QUEUES, {"name": "late", "address": "void", "routing_type": "MULTICAST"})
    assert str((await address(api, "void"))["advice"]).startswith("1 message reached no queue of address 'void': sent")


@pytest.mark.parametrize(
    "api",
    [(DivertSettings("takes", "orders", ("vip", "vip2"), exclusive=True, routing_type=MULTICAST),)],
    indirect=True,
)
async def test_a_divert_whose_target_is_gone_is_said_to_lead_nowhere(api: Api):
    for name in ("vip", "vip2"):
        await api.post(QUEUES, {"name": name, "routing_type": "MULTICAST"})
    api.broker.producers.send(api.message("orders", b"m"), routing=MULTICAST)
    (divert,) = (await address(api, "orders"))["diverts"]  # type: ignore[attr-defined]
    assert (divert["copies"], divert["lost_copies"], divert["dead_ends"]) == (2, 0, [])
    await api.clients["admin"].delete("/api/v1/addresses/vip?force=true")
    api.broker.producers.send(api.message("orders", b"m"), routing=MULTICAST)
    found = await address(api, "orders")
    (divert,) = found["diverts"]  # type: ignore[attr-defined]
    assert (divert["copies"], divert["lost_copies"], divert["dead_ends"]) == (3, 1, ["vip"])
    assert str(found["advice"]).startswith(
        "copies that divert 'takes' sends to 'vip' go nowhere, as no queue takes them (1 copy so far); create one with"
    )
    assert found["advice"] in found["notes"]  # type: ignore[operator]


@pytest.mark.parametrize("api", [(DivertSettings("d", "orders", ("vip::none",)),)], indirect=True)
async def test_a_divert_to_a_queue_that_does_not_exist_is_said_to_refuse(api: Api):
    assert str((await address(api, "orders"))["advice"]).startswith(
        "divert 'd' sends to 'vip::none', which does not exist, so a message that it takes is refused"
    )


async def test_explaining_an_address_needs_view(api: Api):
    assert problem(await api.get("/api/v1/addresses/q/explain", user="reader"))[0] == 403
    assert problem(await api.get("/api/v1/addresses/none/explain")) == (404, "DMQ6203", "NOT_FOUND")


@pytest.mark.parametrize("query", ["?limit=1001", "?limit=-1", "?after=x", "?aftr=1"])
async def test_a_page_that_makes_no_sense(api: Api, query: str):
    assert problem(await api.get(f"{QUEUES}/q/explain{query}"))[0] == 400


async def test_explaining_needs_view_and_a_queue(api: Api):
    assert problem(await api.get(f"{QUEUES}/q/explain", user="reader"))[0] == 403
    assert problem(await api.get(f"{QUEUES}/none/explain")) == (404, "DMQ6201", "NOT_FOUND")


# -- slices -------------------------------------------------------------------------------------------------------


def test_every_rule_has_an_advice():
    for code in CODES:
        if code != "not pending":
            assert ";" in advice(code, "q", consumer=1)


async def test_looking_is_cut_into_slices_and_leaves_no_cursor(api: Api):
    api.send("q", "m " * 5_000)
    consume(api, selector=parse_selector("colour = 'red'"))
    api.send("q", "m " * 3_000, due_at_ms=START_MS + 1)
    control = ExplainControl(api.broker, QueueControl(api.broker, api.access), Conversions({}))
    login = Login("admin", frozenset({"admin"}))
    queue = api.broker.queues["q"]
    before = stood_on(queue)
    last = control.message(login, str(newest(api)))
    assert sum(1 for _ in last) >= 2
    late = control.message(login, str(newest(api) - 3_000))
    assert sum(1 for _ in late) >= 7
    walk = control.queue(login, "q", after=0, limit=10)
    assert sum(1 for _ in walk) >= 5_000 // 125
    abandoned = control.queue(login, "q", after=0, limit=10)
    next(abandoned)
    abandoned.close()
    assert stood_on(queue) == before


async def test_what_is_asked_one_by_one_is_bounded_and_told(api: Api, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(explain, "COUNTED_AT_MOST", 3)
    consume(api, selector=parse_selector("colour = 'red'"))
    api.send("q", "a b c d e")
    found = await queue(api)
    assert (found["counts"], found["not_looked_at"]) == ({"no consumer takes it": 3}, 2)


async def test_what_moves_between_slices_is_found_where_it_went(api: Api):
    api.send("q", "m " * 4_000)
    wanted = newest(api) - 10
    control = ExplainControl(api.broker, QueueControl(api.broker, api.access), Conversions({}))
    login = Login("admin", frozenset({"admin"}))
    walk = control.message(login, str(wanted))
    next(walk)
    consume(api, credit=5_000)  # takes all there is
    assert finish(walk).standings[0].standing == "in delivery"


async def test_scheduled_ones_that_come_due_between_slices_are_passed_over_at_most(api: Api):
    for number in range(3):
        api.send("q", "m " * 1_000, due_at_ms=START_MS + 10 + number)
    control = ExplainControl(api.broker, QueueControl(api.broker, api.access), Conversions({}))
    login = Login("admin", frozenset({"admin"}))
    walk = control.queue(login, "q", after=0, limit=1_000)
    for _ in range(2):
        next(walk)
    api.host.clock.now_ms += 11  # two of three buckets are due
    tick(api)
    found = finish(walk)
    sequences = [one.sequence for one in found.messages]
    assert sequences == sorted(set(sequences))
    assert found.message_count == 3_000
