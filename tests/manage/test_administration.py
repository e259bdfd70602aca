"""Changing, pausing, purging and deleting queues; creating and deleting addresses; pages."""

# BROKER-5

from dataclasses import replace

import pytest

from delosmq.model.settings import AddressMatch
from tests.manage.support import Api, problem, succeeded

QUEUES = "/api/v1/queues"
ADDRESSES = "/api/v1/addresses"


async def delete(api: Api, path: str, user: str = "admin"):  # type: ignore[no-untyped-def]
    return await api.clients[user].delete(path)


async def test_every_field_that_may_change_is_changed(api: Api):
    wanted = {
        "filter": "colour = 'red'",
        "enabled": False,
        "paused": True,
        "ring_size": 7,
        "max_consumers": 3,
        "exclusive": True,
        "purge_on_no_consumers": True,
        "non_destructive": False,
        "group_rebalance": True,
        "group_rebalance_pause_dispatch": True,
        "group_buckets": 16,
        "group_first_key": "first",
        "consumers_before_dispatch": 2,
        "delay_before_dispatch": 500,
        "auto_delete": True,
        "auto_delete_delay": 1000,
        "auto_delete_message_count": 5,
    }
    found = succeeded(await api.patch(f"{QUEUES}/q", wanted))
    assert {name: found[name] for name in wanted} == wanted
    back = succeeded(await api.patch(f"{QUEUES}/q", {"filter": None, "ring_size": None, "exclusive": None}))
    assert (back["filter"], back["ring_size"], back["exclusive"], back["max_consumers"]) == ("", -1, False, 3)


async def test_a_queue_is_created_with_all_its_settings_and_its_maker(api: Api):
    made = succeeded(
        await api.post(QUEUES, {"name": "lv", "last_value_key": "symbol", "filter": "a = 1", "group_buckets": 4})
    )
    assert (made["last_value"], made["last_value_key"], made["user"]) == (True, "symbol", "admin")
    assert (made["filter"], made["group_buckets"]) == ("a = 1", 4)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"ringsize": 7}, "did you mean 'ring_size'"),
        ({"max-consumer": 7}, "did you mean 'max_consumers'"),
        ({"durable": False}, "can't change while it exists"),
        ({"zzz": 1}, "there are filter, enabled"),
        ({"exclusive": "yes"}, "'exclusive' must be true or false, or null"),
        ({"filter": "a = "}, "filter"),
        ({"enabled": None}, "'enabled' must be true or false"),
        ({"group_buckets": -7}, "group-buckets"),
    ],
)
async def test_a_change_that_makes_no_sense_is_refused_by_name(api: Api, body: dict[str, object], says: str):
    response = await api.patch(f"{QUEUES}/q", body)
    assert problem(response)[0] == 400
    assert says in response.json()["detail"]


async def test_a_paused_queue_says_so_until_it_is_resumed(api: Api):
    assert succeeded(await api.post(f"{QUEUES}/q/pause", {}))["paused"] is True
    assert api.broker.queues["q"].paused
    assert succeeded(await api.post(f"{QUEUES}/q/pause", {}))["paused"] is True
    assert succeeded(await api.post(f"{QUEUES}/q/resume", {}))["paused"] is False


async def test_a_disabled_queue_takes_nothing_until_it_is_enabled(api: Api):
    assert succeeded(await api.post(f"{QUEUES}/q/disable", {}))["enabled"] is False
    api.send("q", "lost")
    assert api.broker.queues["q"].message_count == 0
    assert succeeded(await api.post(f"{QUEUES}/q/enable", {}))["enabled"] is True
    api.send("q", "kept")
    assert api.broker.queues["q"].message_count == 1


async def test_purge_removes_what_nobody_holds_over_many_slices(api: Api):
    api.send("q", "m " * 1_200)
    epoch = (await api.open())["epoch"]
    await api.lease(0, epoch, max_rows=2)
    assert succeeded(await api.post(f"{QUEUES}/q/purge", {})) == {"removed": 1_198, "done": True}
    queue = succeeded(await api.get(f"{QUEUES}/q"))
    assert (queue["message_count"], queue["delivering_count"], queue["messages_killed"]) == (2, 2, 1_198)


async def test_delete_takes_the_queue_and_says_what_went(api: Api):
    api.send("q", "a b")
    assert succeeded(await delete(api, f"{QUEUES}/q")) == {"deleted": "q", "messages": 2}
    assert problem(await api.get(f"{QUEUES}/q"))[0] == 404


async def test_a_queue_in_use_is_deleted_only_by_force(api: Api):
    await api.open()
    refused = await delete(api, f"{QUEUES}/q")
    assert problem(refused) == (409, "DMQ6140", "IN_USE")
    assert "queue 'q' has 1 consumer; close" in refused.json()["detail"]
    succeeded(await delete(api, f"{QUEUES}/q?force=true"))
    assert "q" not in api.broker.queues
    assert not api.broker.leases.groups


@pytest.mark.parametrize("setting", ["dead-letter-address", "expiry-address"])
async def test_where_dead_and_expired_messages_go_is_deleted_only_by_force(api: Api, setting: str):
    match = AddressMatch("orders.#", {setting.replace("-", "_"): "Gone"})
    api.broker.settings = replace(api.broker.settings, address_settings=(match,))
    for name in ("Gone", "Gone.too"):
        await api.post(QUEUES, {"name": name, "address": "Gone", "routing_type": "MULTICAST"})
    succeeded(await delete(api, f"{QUEUES}/Gone.too"))  # another one is left
    refused = await delete(api, f"{QUEUES}/Gone")
    assert problem(refused) == (409, "DMQ6161", "IN_USE")
    assert f"which is the {setting} of address-setting 'orders.#'" in refused.json()["detail"]
    assert "Gone" in api.broker.queues
    succeeded(await delete(api, f"{QUEUES}/Gone?force=true"))


async def test_what_the_broker_makes_again_is_deleted_without_force(api: Api):
    match = AddressMatch("#", {"dead_letter_address": "Gone", "auto_create_dead_letter_resources": True})
    api.broker.settings = replace(api.broker.settings, address_settings=(match,))
    await api.post(QUEUES, {"name": "Gone"})
    succeeded(await delete(api, f"{QUEUES}/Gone"))


async def test_a_ring_of_nothing_is_told_to_who_makes_it(api: Api):  # RING-1
    made = succeeded(await api.post(QUEUES, {"name": "r0", "ring_size": 0}))
    assert "queue 'r0' has a ring-size of 0 and keeps nothing" in str(made["notices"])
    assert succeeded(await api.patch(f"{QUEUES}/r0", {"ring_size": 1}))["notices"] == []
    assert len(succeeded(await api.patch(f"{QUEUES}/r0", {"ring_size": 0}))["notices"]) == 1


@pytest.mark.parametrize("verb", ["pause", "resume", "enable", "disable", "purge"])
async def test_verbs_on_a_queue_that_is_not_there(api: Api, verb: str):
    assert problem(await api.post(f"{QUEUES}/nothing/{verb}", {})) == (404, "DMQ6201", "NOT_FOUND")


@pytest.mark.parametrize("verb", ["pause", "resume", "enable", "disable", "purge"])
async def test_verbs_need_edit(api: Api, verb: str):
    assert problem(await api.post(f"{QUEUES}/q/{verb}", {}, user="viewer"))[0] == 403


async def test_deleting_needs_edit(api: Api):
    for path in (f"{QUEUES}/q", f"{ADDRESSES}/q?force=true", f"{ADDRESSES}/q/duplicate-ids"):
        assert problem(await delete(api, path, "viewer"))[0] == 403
    assert problem(await api.post(ADDRESSES, {"name": "a", "routing_types": ["ANYCAST"]}, user="viewer"))[0] == 403


async def test_a_queue_the_broker_keeps_for_itself_is_not_there(api: Api):
    internal = api.broker.queues["q"]
    internal.internal = True
    assert problem(await api.get(f"{QUEUES}/q"))[0] == 404
    assert problem(await delete(api, f"{QUEUES}/q"))[0] == 404
    assert "q" not in [queue["name"] for queue in succeeded(await api.get(QUEUES))["queues"]]


async def test_an_address_is_created_widened_and_deleted(api: Api):
    made = await api.post(ADDRESSES, {"name": "news", "routing_types": ["MULTICAST"]})
    assert made.status_code == 201
    assert succeeded(made)["routing_types"] == ["MULTICAST"]
    wider = succeeded(await api.post(ADDRESSES, {"name": "news", "routing_types": ["ANYCAST"]}))
    assert wider["routing_types"] == ["ANYCAST", "MULTICAST"]
    assert succeeded(await delete(api, f"{ADDRESSES}/news")) == {"deleted": "news", "queues": 0}
    assert problem(await delete(api, f"{ADDRESSES}/news")) == (404, "DMQ6203", "NOT_FOUND")


async def test_an_address_with_queues_is_deleted_only_by_force(api: Api):
    refused = await delete(api, f"{ADDRESSES}/orders")
    assert problem(refused) == (409, "DMQ6141", "IN_USE")
    assert "'orders.archive'" in refused.json()["detail"]
    assert succeeded(await delete(api, f"{ADDRESSES}/orders?force=true")) == {"deleted": "orders", "queues": 1}
    assert "orders.archive" not in api.broker.queues


@pytest.mark.parametrize("kinds", [[], ["BOTH"], "ANYCAST", None])
async def test_routing_types_of_an_address_are_checked(api: Api, kinds: object):
    assert problem(await api.post(ADDRESSES, {"name": "a", "routing_types": kinds}))[0] == 400


async def test_duplicate_ids_are_counted_and_cleared(api: Api):
    assert succeeded(await api.get(f"{ADDRESSES}/q"))["duplicate_ids"] == 0
    for word in (b"1", b"2", b"1"):
        api.send("q", "m", duplicate_id=word)
    assert succeeded(await api.get(f"{ADDRESSES}/q"))["duplicate_ids"] == 2
    assert succeeded(await delete(api, f"{ADDRESSES}/q/duplicate-ids")) == {"cleared": 2}
    api.send("q", "m", duplicate_id=b"1")
    assert api.broker.queues["q"].message_count == 3


async def test_lists_come_in_pages(api: Api):
    for number in range(5):
        succeeded(await api.post(QUEUES, {"name": f"p{number}"}))
    first = succeeded(await api.get(f"{QUEUES}?limit=2&filter=P"))
    assert ([queue["name"] for queue in first["queues"]], first["next"]) == (["p0", "p1"], "p1")
    rest = succeeded(await api.get(f"{QUEUES}?limit=3&filter=p&after=p1"))
    assert ([queue["name"] for queue in rest["queues"]], rest["next"]) == (["p2", "p3", "p4"], "")
    assert succeeded(await api.get(f"{ADDRESSES}?after=p3&limit=1"))["addresses"][0]["name"] == "p4"


@pytest.mark.parametrize("query", ["limit=0", "limit=10001", "limit=x", "page=2", "after=a&after=b"])
async def test_a_page_that_makes_no_sense(api: Api, query: str):
    assert problem(await api.get(f"{QUEUES}?{query}"))[0] == 400


async def test_metrics_leave_out_what_its_address_says(api: Api):
    succeeded(await api.post(QUEUES, {"name": "quiet.q"}))
    shown = (await api.get("/metrics")).text
    assert 'delosmq_queue_messages{address="q",queue="q"} 0.0' in shown
    assert 'delosmq_queue_messages{address="quiet.q"' not in shown
    assert 'delosmq_address_size_bytes{address="quiet.q"' not in shown
    assert 'delosmq_address_size_bytes{address="q"}' in shown


# -- transactions -------------------------------------------------------------------------------------------------


def prepared(api: Api, xid: bytes, sends: int = 1, user: str = "") -> None:
    """A branch that waits for its coordinator."""
    branch = api.broker.branches.start(xid, owner="client", user=user)
    for _ in range(sends):
        api.broker.transactions.send(branch, api.message("q", b"body"))
    api.broker.branches.end(xid)
    api.broker.branches.prepare(xid)
    while api.broker.tick():
        pass


async def test_transactions_are_listed_with_what_they_do(api: Api):  # ACK-5
    opened = api.broker.transactions.begin("client")
    api.broker.transactions.send(opened, api.message("q", b"body"))
    prepared(api, b"\x01\xff")
    found = succeeded(await api.get("/api/v1/transactions"))
    shown = [(one["xid"], one["state"], one["owner"], one["sends"]) for one in found["transactions"]]
    assert shown == [("", "active", "client", 1), ("01ff", "prepared", "client", 1)]
    only = succeeded(await api.get("/api/v1/transactions?prepared=true"))
    assert [one["xid"] for one in only["transactions"]] == ["01ff"]
    first = succeeded(await api.get("/api/v1/transactions?limit=1"))
    assert first["next"] == opened.id
    rest = succeeded(await api.get(f"/api/v1/transactions?after={opened.id}"))
    assert (rest["next"], len(rest["transactions"])) == (0, 1)


async def test_an_operator_ends_prepared_branches(api: Api):  # ACK-5
    prepared(api, b"\x01", sends=3)
    prepared(api, b"\x02")
    done = succeeded(await api.post("/api/v1/transactions/01/commit", {}))
    assert done == {"xid": "01", "outcome": "committed", "done": True}
    done = succeeded(await api.post("/api/v1/transactions/02/rollback", {}))
    assert done == {"xid": "02", "outcome": "rolled back", "done": True}
    assert api.broker.queues["q"].message_count == 3
    again = await api.post("/api/v1/transactions/02/commit", {})
    assert problem(again)[2] == "WRONG_STATE"


async def test_an_operator_forgets_what_operators_did(api: Api):  # ACK-5
    for xid, verb in ((b"\x01", "commit"), (b"\x02", "rollback"), (b"\x03", "commit")):
        prepared(api, xid, user="eve")
        succeeded(await api.post(f"/api/v1/transactions/{xid.hex()}/{verb}", {}))
    first = succeeded(await api.get("/api/v1/transactions/heuristics?limit=2"))
    assert first == {
        "heuristics": [
            {"xid": "01", "outcome": "committed", "user": "eve"},
            {"xid": "02", "outcome": "rolled back", "user": "eve"},
        ],
        "next": "02",
    }
    rest = succeeded(await api.get("/api/v1/transactions/heuristics?after=02"))
    assert ([one["xid"] for one in rest["heuristics"]], rest["next"]) == (["03"], "")
    done = succeeded(await api.post("/api/v1/transactions/01/forget", {}))
    assert done == {"xid": "01", "outcome": "forgotten", "done": True}
    assert problem(await api.post("/api/v1/transactions/01/forget", {}))[::2] == (404, "NOT_FOUND")
    assert api.broker.branches.recover() == [b"\x02", b"\x03"]


async def test_a_large_branch_is_committed_over_many_ticks(api: Api):  # ACK-5
    prepared(api, b"\x03", sends=3_000)
    assert succeeded(await api.post("/api/v1/transactions/03/commit", {}))["done"] is True
    assert api.broker.queues["q"].message_count == 3_000


async def test_branches_that_can_not_be_ended(api: Api):
    api.broker.branches.start(b"\x04")
    assert problem(await api.post("/api/v1/transactions/04/commit", {}))[::2] == (409, "WRONG_STATE")
    assert problem(await api.post("/api/v1/transactions/05/rollback", {}))[::2] == (404, "NOT_FOUND")
    assert problem(await api.post("/api/v1/transactions/xyz/commit", {})) == (400, "DMQ6142", "INVALID")


async def test_transactions_need_manage(api: Api):
    for name in ("", "/heuristics"):
        assert problem(await api.get(f"/api/v1/transactions{name}", user="viewer"))[0] == 403
    for verb in ("commit", "rollback", "forget"):
        assert problem(await api.post(f"/api/v1/transactions/01/{verb}", {}, user="viewer"))[0] == 403
