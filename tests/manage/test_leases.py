"""The lease calls over HTTP, each with what can go wrong."""

import asyncio

import pytest

from delosmq.engine.leases.lease import ROWS_PER_SLICE
from delosmq.engine.transactions.commit_steps import LINKED_PER_SLICE
from delosmq.model.declared.lease_life import LIVE_WINDOW_MS
from delosmq.model.message import MULTICAST
from delosmq.model.settings import BrokerSettings
from tests.manage.support import Api, bodies, problem, succeeded

LEASES = "/api/v1/leases"
NOTHING = {"rows": 0, "bytes": 0, "first_sequence": 0, "last_sequence": 0}


# -- open ---------------------------------------------------------------------------------------------------------


async def test_open_makes_the_group(api: Api):
    opened = await api.open("g")
    assert opened == {
        "group": "g",
        "queue": "q",
        "incarnation": opened["incarnation"],
        "epoch": 1,
        "acked": 0,
        "lease": 0,
        "version": 2,
        "features": opened["features"],
        "limits": {
            "max_rows": 1_000_000,
            "max_bytes": 1 << 30,
            "leased_rows": 2_000_000,
            "leased_bytes": 2 << 30,
        },
    }
    assert opened["incarnation"]
    assert {"limits", "touch", "expiry"} <= set(opened["features"])


async def test_open_with_the_incarnation_gives_a_new_epoch_at_once(api: Api):
    api.send("q", "a b")
    first = await api.open("g", run="one")
    await api.lease(0, 1, max_rows=1)
    await api.lease(1, 1)
    again = await api.open("g", run="two", incarnation=first["incarnation"])
    assert (again["epoch"], again["acked"], again["lease"]) == (2, 1, 2)


async def test_open_while_another_run_is_alive_is_busy(api: Api):
    await api.open("g", run="one")
    wanted = {"queue": "q", "run": "two"}
    assert problem(await api.post(f"{LEASES}/g/open", wanted)) == (409, "DMQ2403", "GROUP_BUSY")
    api.host.clock.now_ms += LIVE_WINDOW_MS
    assert succeeded(await api.post(f"{LEASES}/g/open", wanted))["epoch"] == 2


async def test_open_without_the_checkpoint_of_what_was_acknowledged_is_foreign(api: Api):
    api.send("q", "a")
    await api.open("g")
    await api.lease(0, 1)
    await api.post(f"{LEASES}/g/ack", {"lease": 1, "epoch": 1})
    response = await api.post(f"{LEASES}/g/open", {"queue": "q", "run": "run-1"})
    assert problem(response) == (409, "DMQ2402", "FOREIGN_INCARNATION")
    assert "group.id" in response.json()["detail"]


async def test_open_with_a_foreign_incarnation(api: Api):
    await api.open("g")
    wanted = {"queue": "q", "run": "r", "incarnation": "other"}
    assert problem(await api.post(f"{LEASES}/g/open", wanted)) == (409, "DMQ2404", "FOREIGN_INCARNATION")


async def test_open_with_the_checkpoint_of_a_group_that_is_gone(api: Api):
    wanted = {"queue": "q", "run": "r", "incarnation": "gone"}
    assert problem(await api.post(f"{LEASES}/g/open", wanted)) == (404, "DMQ2405", "LEASE_LOST")


async def test_open_on_a_queue_that_is_not_there(api: Api):
    assert problem(await api.post(f"{LEASES}/g/open", {"queue": "none", "run": "r"})) == (404, "DMQ5404", "NOT_FOUND")


async def test_open_on_a_topic_subscribes_under_the_name_of_the_group(api: Api):
    opened = succeeded(await api.post(f"{LEASES}/g/open", {"topic": "orders", "run": "r"}))
    assert opened["queue"] == "g"
    api.send("orders", "a")
    assert succeeded(await api.lease(0, 1))["rows"] == 1


async def test_open_on_a_topic_that_is_not_there_makes_it_as_a_subscription_does(api: Api):
    opened = succeeded(await api.post(f"{LEASES}/g/open", {"topic": "fresh", "run": "r"}))
    assert opened["queue"] == "g"
    assert api.broker.addresses["fresh"].routing_types == {MULTICAST}
    api.send("fresh", "a")
    assert succeeded(await api.lease(0, 1))["rows"] == 1


async def test_open_on_a_topic_that_may_not_be_made(api: Api):
    # Whoever may not create the address is refused, and so is everybody where its settings don't auto-create it.
    refused = await api.post(f"{LEASES}/g/open", {"topic": "fresh", "run": "r"}, user="reader")
    assert refused.status_code == 403
    assert "createAddress" in refused.json()["detail"]
    manual = await api.post(f"{LEASES}/g/open", {"topic": "manual.fresh", "run": "r"})
    assert problem(manual)[:2] == (404, "DMQ2114")
    assert "g" not in api.broker.queues
    assert not {"fresh", "manual.fresh"} & api.broker.addresses.keys()


async def test_a_group_named_like_a_queue_of_another_address_does_not_get_its_messages(api: Api):
    response = await api.post(f"{LEASES}/secret.q/open", {"topic": "orders", "run": "r"})
    assert problem(response) == (409, "DMQ5402", "FOREIGN_INCARNATION")


@pytest.mark.parametrize("incarnation", [None, "old"])
async def test_a_refused_open_on_a_topic_leaves_no_subscription_behind(api: Api, incarnation: str | None):
    if incarnation is None:
        await api.open("g")
    response = await api.post(f"{LEASES}/g/open", {"topic": "orders", "run": "r", "incarnation": incarnation})
    assert response.status_code in (404, 409)
    assert "g" not in api.broker.queues


@pytest.mark.parametrize("fields", [{}, {"queue": "q", "topic": "orders"}])
async def test_open_needs_either_a_queue_or_a_topic(api: Api, fields: dict[str, str]):
    assert problem(await api.post(f"{LEASES}/g/open", {"run": "r", **fields})) == (400, "DMQ5401", "INVALID")


async def test_a_group_has_a_name_of_bounded_length(api: Api):
    response = await api.post(f"{LEASES}/{'g' * 1025}/open", {"queue": "q", "run": "r"})
    assert problem(response) == (400, "DMQ5403", "INVALID")


SELECTOR = "JMSType = 'tea'"


def teas(api: Api) -> None:
    """Messages a to d; b and d are of type tea."""
    for body, head in (("a", b""), ("b", b"type:tea\n"), ("c", b""), ("d", b"type:tea\n")):
        api.send("q", body, head=head)


async def test_open_with_a_selector_leases_what_matches(api: Api):
    teas(api)
    opened = await api.open("g", selector=SELECTOR)
    assert {"selector", "start"} <= set(opened["features"])
    assert succeeded(await api.lease(0, 1))["rows"] == 2
    assert bodies(await api.get(f"{LEASES}/g/1/rows")) == "b d"
    for selector in ("", "JMSType = 'coffee'"):
        wanted = {"queue": "q", "run": "r", "incarnation": opened["incarnation"], "selector": selector}
        assert problem(await api.post(f"{LEASES}/g/open", wanted)) == (409, "DMQ2411", "OTHER_SELECTOR")


async def test_open_with_what_is_no_selector(api: Api):
    response = await api.post(f"{LEASES}/g/open", {"queue": "q", "run": "r", "selector": "colour ="})
    assert problem(response)[::2] == (400, "INVALID")
    assert api.broker.leases.groups == {}


async def test_several_groups_on_one_topic_read_all_of_it(api: Api):
    for group in ("one", "two"):
        succeeded(await api.post(f"{LEASES}/{group}/open", {"topic": "orders", "run": "r"}))
    wanted = {"topic": "orders", "run": "r", "selector": SELECTOR}
    assert succeeded(await api.post(f"{LEASES}/teas/open", wanted))["queue"] == "teas"
    api.send("orders", "a b")
    api.send("orders", "c", head=b"type:tea\n")
    for group, rows in (("one", "a b c"), ("two", "a b c"), ("teas", "c")):
        succeeded(await api.lease(0, 1, group=group))
        assert bodies(await api.get(f"{LEASES}/{group}/1/rows")) == rows


@pytest.mark.parametrize(
    ("start", "rows"), [("earliest", "a b c d"), ({"sequence": 0}, "a b c d"), ({"time_ms": 1}, "a b c d")]
)
async def test_open_starts_with_what_is_there(api: Api, start: object, rows: str):
    teas(api)
    await api.open("g", start=start)
    succeeded(await api.lease(0, 1))
    assert bodies(await api.get(f"{LEASES}/g/1/rows")) == rows


async def test_open_starts_where_it_is_told(api: Api):
    teas(api)
    newest = api.broker.queues["q"].newest_sequence
    await api.open("third", start={"sequence": newest - 1})
    await api.open("latest", start="latest")
    await api.open("later", start={"time_ms": api.host.clock.now_ms + 5})
    api.host.clock.now_ms += 5
    api.send("q", "e")
    for group, rows in (("later", "e"), ("latest", None), ("third", "c d")):
        lease = succeeded(await api.lease(0, 1, group=group))
        assert lease["rows"] == (0 if rows is None else len(rows.split()))
        if rows is not None:
            assert bodies(await api.get(f"{LEASES}/{group}/1/rows")) == rows


@pytest.mark.parametrize(
    "start", ["soon", {}, {"sequence": 1, "time_ms": 1}, {"sequence": -1}, {"offset": 1}, 5, {"time_ms": "1"}]
)
async def test_open_names_a_start_that_is_none(api: Api, start: object):
    response = await api.post(f"{LEASES}/g/open", {"queue": "q", "run": "r", "start": start})
    assert problem(response)[::2] == (400, "INVALID")
    assert "start" in response.json()["detail"]
    assert api.broker.leases.groups == {}


async def test_stat_knows_of_messages_that_a_commit_still_adds(api: Api):
    await api.open("g")
    transactions = api.broker.transactions
    transaction = transactions.begin("session")
    count = 3 * LINKED_PER_SLICE
    for _ in range(count):
        transactions.send(transaction, api.message("q", b"x"))
    transactions.commit(transaction)
    queue = api.broker.queues["q"]
    while not queue.barrier_sequence:
        api.broker.tick()
    until = succeeded(await api.get(f"{LEASES}/g/stat"))["newest_sequence"]
    assert queue.barrier_sequence
    assert succeeded(await api.lease(0, 1, until=until))["rows"] == count


# -- lease --------------------------------------------------------------------------------------------------------


async def test_lease_gives_the_next_one_and_again_the_same(api: Api):
    api.send("q", "aa b c")
    first = api.broker.queues["q"].newest_sequence - 2
    await api.open("g")
    made = succeeded(await api.lease(0, 1, max_rows=2))
    assert made == {"lease": 1, "rows": 2, "bytes": 3, "first_sequence": first, "last_sequence": first + 1}
    assert succeeded(await api.lease(0, 1)) == made
    assert succeeded(await api.lease(1, 1))["lease"] == 2


async def test_lease_answers_the_number_asked_with_when_there_is_nothing(api: Api):
    await api.open("g")
    assert succeeded(await api.lease(0, 1)) == {"lease": 0, **NOTHING}


async def test_lease_goes_up_to_until_and_does_not_wait_then(api: Api):
    api.send("q", "a")
    until = api.broker.queues["q"].newest_sequence
    api.send("q", "b")
    await api.open("g")
    assert succeeded(await api.lease(0, 1, until=until))["rows"] == 1
    assert succeeded(await api.lease(1, 1, until=until, wait_ms=30_000)) == {"lease": 1, **NOTHING}


async def test_lease_waits_for_a_message(api: Api):
    await api.open("g")
    asked = asyncio.create_task(api.lease(0, 1, wait_ms=30_000))
    await api.settle()
    assert not asked.done()
    api.send("q", "a")
    assert succeeded(await asked)["lease"] == 1


async def test_lease_waits_no_longer_than_asked(api: Api):
    await api.open("g")
    assert succeeded(await api.lease(0, 1, wait_ms=1)) == {"lease": 0, **NOTHING}
    assert api.broker.leases.find("g").waiters == []


async def test_lease_collects_a_large_one_across_ticks_without_being_asked_to_wait(api: Api):
    count = 2 * ROWS_PER_SLICE + 1
    api.send("q", " ".join("x" * count))
    await api.open("g")
    assert succeeded(await api.lease(0, 1, max_rows=count))["rows"] == count


async def test_a_waiting_lease_call_hears_that_it_is_fenced(api: Api):
    opened = await api.open("g")
    asked = asyncio.create_task(api.lease(0, 1, wait_ms=30_000))
    await api.settle()
    await api.open("g", run="two", incarnation=opened["incarnation"])
    assert problem(await asked) == (409, "DMQ2408", "FENCED")


async def test_a_waiting_lease_call_hears_that_its_group_was_released(api: Api):
    await api.open("g")
    asked = asyncio.create_task(api.lease(0, 1, wait_ms=30_000))
    await api.settle()
    await api.post(f"{LEASES}/g/release", {})
    assert problem(await asked) == (404, "DMQ2405", "LEASE_LOST")


async def test_a_stopping_server_ends_the_wait(api: Api):
    await api.open("g")
    asked = asyncio.create_task(api.lease(0, 1, wait_ms=30_000))
    await api.settle()
    api.app.drain.start()
    assert succeeded(await asked) == {"lease": 0, **NOTHING}
    assert succeeded(await api.lease(0, 1, wait_ms=30_000)) == {"lease": 0, **NOTHING}


async def test_lease_of_an_older_epoch_is_fenced(api: Api):
    opened = await api.open("g")
    await api.open("g", incarnation=opened["incarnation"])
    assert problem(await api.lease(0, 1)) == (409, "DMQ2408", "FENCED")


async def test_lease_after_one_that_was_never_made(api: Api):
    await api.open("g")
    assert problem(await api.lease(7, 1)) == (409, "DMQ2406", "FOREIGN_INCARNATION")


async def test_lease_after_one_older_than_what_is_acknowledged(api: Api):
    api.send("q", "a")
    await api.open("g")
    await api.lease(0, 1)
    await api.lease(1, 1)
    assert problem(await api.lease(0, 1)) == (404, "DMQ2407", "LEASE_LOST")


async def test_lease_of_a_group_that_is_not_there(api: Api):
    assert problem(await api.lease(0, 1, group="none")) == (404, "DMQ2405", "LEASE_LOST")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("after", -1),
        ("max_rows", 0),
        ("max_bytes", 0),
        ("wait_ms", 30_001),
        ("wait_ms", -1),
        ("epoch", "1"),
        ("until", -1),
        ("until", 1.5),
    ],
)
async def test_lease_names_the_field_that_is_wrong(api: Api, field: str, value: object):
    await api.open("g")
    wanted = {"after": 0, "max_rows": 1, "max_bytes": 1, "wait_ms": 0, "epoch": 1, field: value}
    response = await api.post(f"{LEASES}/g/lease", wanted)
    assert problem(response) == (400, "DMQ6407", "INVALID")
    assert [fault["field"] for fault in response.json()["faults"]] == [field]


# -- the rest -----------------------------------------------------------------------------------------------------


async def test_stat_says_where_a_group_stands(api: Api):
    api.send("q", "a b c d")
    opened = await api.open("g")
    await api.lease(0, 1, max_rows=1)
    await api.lease(1, 1, max_rows=2)
    api.host.clock.now_ms += 2500
    assert succeeded(await api.get(f"{LEASES}/g/stat")) == {
        "group": "g",
        "queue": "q",
        "incarnation": opened["incarnation"],
        "newest_sequence": api.broker.queues["q"].newest_sequence,
        "ready": 1,
        "leased": 2,
        "oldest_age_ms": 2500,
        "acked": 1,
        "lease": 2,
        "epoch": 1,
        "contact_age_ms": 2500,
        "expires_in_ms": BrokerSettings().lease_retention_ms - 2500,
    }


async def test_stat_counts_as_a_call_of_the_run_with_its_epoch_alone(api: Api):
    api.send("q", "a")
    epoch = (await api.open("g"))["epoch"]
    await api.lease(0, epoch)
    api.host.clock.now_ms += 40_000
    assert succeeded(await api.get(f"{LEASES}/g/stat?epoch={epoch}"))["contact_age_ms"] == 40_000
    api.host.clock.now_ms += 40_000
    for path in ("stat", f"stat?epoch={epoch - 1}", "describe"):
        succeeded(await api.get(f"{LEASES}/g/{path}"))
    listed = succeeded(await api.get(LEASES))["leases"]
    assert listed[0]["contact_age_ms"] == 40_000
    response = await api.post(f"{LEASES}/g/open", {"queue": "q", "run": "other"})
    assert problem(response) == (409, "DMQ2403", "GROUP_BUSY")
    assert "free in 20 s" in response.json()["detail"]


async def test_touch_is_a_sign_of_life_and_is_fenced(api: Api):
    opened = await api.open("g")
    api.host.clock.now_ms += 2500
    touched = succeeded(await api.post(f"{LEASES}/g/touch", {"epoch": 1}))
    assert (touched["contact_age_ms"], touched["lease"]) == (0, 0)
    await api.open("g", run="two", incarnation=opened["incarnation"])
    assert problem(await api.post(f"{LEASES}/g/touch", {"epoch": 1})) == (409, "DMQ2408", "FENCED")
    assert problem(await api.post(f"{LEASES}/none/touch", {"epoch": 1})) == (404, "DMQ2405", "LEASE_LOST")
    response = await api.post(f"{LEASES}/g/touch", {})
    assert problem(response) == (400, "DMQ6407", "INVALID")


async def test_release_waits_until_what_was_acknowledged_is_worked_off(api: Api):
    count = 3 * ROWS_PER_SLICE
    api.send("q", " ".join(str(i) for i in range(count + 1)))
    epoch = (await api.open("g"))["epoch"]
    await api.lease(0, epoch, max_rows=count, wait_ms=1000)
    api.broker.leases.acknowledge("g", 1, epoch)
    assert succeeded(await api.post(f"{LEASES}/g/release", {})) == {"released": 0}
    assert api.broker.queues["q"].message_count == 1


async def test_release_of_a_group_on_a_topic_ends_its_subscription(api: Api):
    succeeded(await api.post(f"{LEASES}/sub/open", {"topic": "orders", "run": "r"}))
    succeeded(await api.post(f"{LEASES}/sub/release", {}))
    assert "sub" not in api.broker.queues


async def test_stat_of_an_idle_group_and_of_none(api: Api):
    await api.open("g")
    assert succeeded(await api.get(f"{LEASES}/g/stat"))["oldest_age_ms"] == 0
    assert problem(await api.get(f"{LEASES}/none/stat")) == (404, "DMQ2405", "LEASE_LOST")


async def test_all_groups_are_listed(api: Api):
    await api.open("g2")
    await api.open("g1")
    found = succeeded(await api.get(LEASES))
    assert [group["group"] for group in found["leases"]] == ["g1", "g2"]
    assert succeeded(await api.get(LEASES, user="viewer")) == {"leases": []}


async def test_describe_lists_the_leases_above_from_up_to_to(api: Api):
    api.send("q", "a b")
    await api.open("g")
    made = succeeded(await api.lease(0, 1))
    assert succeeded(await api.get(f"{LEASES}/g/describe?from=0&to=1")) == {"leases": [made]}
    assert succeeded(await api.get(f"{LEASES}/g/describe?from=1&to=5")) == {"leases": []}
    assert succeeded(await api.get(f"{LEASES}/g/describe")) == {"leases": [made]}


@pytest.mark.parametrize("query", ["from=x", "to=-1", "form=1"])
async def test_describe_names_the_parameter_that_is_wrong(api: Api, query: str):
    await api.open("g")
    response = await api.get(f"{LEASES}/g/describe?{query}")
    assert problem(response) == (400, "DMQ6407", "INVALID")
    assert [fault["field"] for fault in response.json()["faults"]] == [query.partition("=")[0]]


async def test_ack_is_cumulative_idempotent_and_never_goes_back(api: Api):
    api.send("q", "a b c")
    await api.open("g")
    await api.lease(0, 1, max_rows=1)
    await api.lease(1, 1, max_rows=1)
    for lease in (2, 2, 1, 0):
        assert succeeded(await api.post(f"{LEASES}/g/ack", {"lease": lease, "epoch": 1})) == {"acked": 2}
    await api.settle()
    assert api.broker.queues["q"].message_count == 1


async def test_ack_of_an_older_epoch_and_of_a_lease_that_was_never_made(api: Api):
    opened = await api.open("g")
    assert problem(await api.post(f"{LEASES}/g/ack", {"lease": 3, "epoch": 1}))[1:] == (
        "DMQ2406",
        "FOREIGN_INCARNATION",
    )
    await api.open("g", incarnation=opened["incarnation"])
    assert problem(await api.post(f"{LEASES}/g/ack", {"lease": 0, "epoch": 1})) == (409, "DMQ2408", "FENCED")


async def test_showing_a_group_is_no_sign_of_life_of_its_reader(api: Api):
    api.send("q", "a b c")
    await api.open("g")
    made = succeeded(await api.lease(0, 1, max_rows=2))
    api.host.clock.now_ms += LIVE_WINDOW_MS
    for _ in range(2):
        shown = succeeded(await api.get(f"{LEASES}/g"))
        assert (shown["group"]["ready"], shown["group"]["leased"], shown["leases"]) == (1, 2, [made])
        assert shown["group"]["contact_age_ms"] == LIVE_WINDOW_MS
    assert problem(await api.get(f"{LEASES}/none")) == (404, "DMQ2405", "LEASE_LOST")


async def test_release_gives_everything_back_and_forgets_the_group(api: Api):
    api.send("q", "a b c")
    await api.open("g")
    await api.lease(0, 1, max_rows=2)
    assert succeeded(await api.post(f"{LEASES}/g/release", {})) == {"released": 2}
    queue = api.broker.queues["q"]
    assert [slot.message.body for slot in queue.pending.in_order()] == [b"a", b"b", b"c"]
    assert problem(await api.post(f"{LEASES}/g/release", {})) == (404, "DMQ2405", "LEASE_LOST")


async def test_a_client_that_leaves_while_it_waits_leaves_nothing_behind(api: Api):
    await api.open("g")
    gone = asyncio.Event()
    body = b'{"after":0,"max_rows":1,"max_bytes":1,"wait_ms":30000,"epoch":1}'
    sent: list[dict[str, object]] = []
    parts = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, object]:
        if parts:
            return parts.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    path = "/api/v1/leases/g/lease"
    headers = [(b"content-type", b"application/json"), (b"authorization", b"Basic YWRtaW46Y29ycmVjdCBob3JzZQ==")]
    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b""}
    serving = asyncio.create_task(api.app({**scope, "headers": headers}, receive, send))
    await api.settle()
    assert len(api.broker.leases.find("g").waiters) == 1
    gone.set()
    await serving
    assert sent[0]["status"] == 400  # it was not the time that ended the wait
    assert api.broker.leases.find("g").waiters == []
    api.send("q", "a")
    await api.settle()
    assert api.broker.queues["q"].pending.count == 1
