"""Looking at the messages of a queue: what they say, where they stand, how their bodies begin; nothing is taken."""

import asyncio

import pytest

from delosmq.manage.control.messages import text_of
from delosmq.model.message import MULTICAST
from delosmq.model.settings import AddressFullPolicy, AddressSettings, DivertSettings
from tests.manage.support import START_MS, Api, eventually, problem, succeeded

MESSAGES = "/api/v1/queues/q/messages"


async def look(api: Api, query: str = "", *, user: str = "admin") -> list[dict[str, object]]:
    found: list[dict[str, object]] = succeeded(await api.get(f"{MESSAGES}{query}", user=user))["messages"]
    return found


async def test_a_message_is_shown_with_all_it_says(api: Api):
    api.send("q", "tea", head=b"colour:red\n", priority=7, expires_at_ms=START_MS + 9)
    (found,) = await look(api)
    assert found["message_id"] == f"ID:{found['sequence']}"
    assert (found["standing"], found["rule"], found["sender"]) == ("waiting", "no consumer", "producer")
    assert (found["priority"], found["durable"], found["delivery_count"]) == (7, True, 0)
    assert (found["timestamp_ms"], found["expires_at_ms"]) == (START_MS, START_MS + 9)
    assert found["properties"] == {"colour": "red"}
    assert (found["body_kind"], found["body_bytes"], found["text"], found["cut"]) == ("text", 3, "tea", False)
    assert api.broker.queues["q"].pending.count == 1


async def test_pages_go_by_sequence_and_show_what_is_scheduled_too(api: Api):
    api.send("q", "a b c")
    api.send("q", "late", due_at_ms=START_MS + 60_000)
    first = succeeded(await api.get(f"{MESSAGES}?limit=2"))
    assert [one["text"] for one in first["messages"]] == ["a", "b"]
    rest = succeeded(await api.get(f"{MESSAGES}?limit=2&after={first['next']}"))
    assert [(one["text"], one["standing"]) for one in rest["messages"]] == [("c", "waiting"), ("late", "scheduled")]
    assert rest["next"] == 0


async def test_long_bodies_are_cut_and_binary_ones_are_not_shown(api: Api):
    api.send("q", "x" * 50)
    api.broker.producers.send(api.message("q", b"\xff\xfe"))
    api.broker.producers.send(api.message("q", "tee \u2615".encode()))
    found = [(one["text"], one["cut"], one["body_bytes"]) for one in await look(api, "?text=5")]
    assert found == [("xxxxx", True, 50), ("", True, 2), ("tee \u2615", False, 7)]
    assert [one["text"] for one in await look(api, "?text=0")] == ["", "", ""]


async def test_bodies_are_shown_to_those_only_who_may_browse_or_consume(api: Api):
    api.send("q", "secret")
    assert problem(await api.get(MESSAGES, user="viewer"))[0] == 403
    for user in ("browser", "reader"):
        assert [one["text"] for one in await look(api, user=user)] == ["secret"]
    assert problem(await api.get("/api/v1/queues/none/messages")) == (404, "DMQ6201", "NOT_FOUND")


@pytest.mark.parametrize("query", ["?limit=0", "?limit=1001", "?text=-1", "?text=10001", "?after=x"])
async def test_a_page_of_messages_that_makes_no_sense(api: Api, query: str):
    assert problem(await api.get(f"{MESSAGES}{query}")) == (400, "DMQ6407", "INVALID")


async def test_a_message_that_can_not_be_read_does_not_hide_the_others(api: Api):
    odd = api.message("q", b"odd")
    odd.protocol = "unheard/1"
    api.broker.producers.send(odd)
    api.send("q", "even")
    assert [(one["text"], one["properties"]) for one in await look(api)] == [("odd", {}), ("even", {})]


@pytest.mark.parametrize(
    ("body", "letters", "shown"),
    [
        (b"abc", 2, "ab"),
        ("\u2615\u2615\u2615".encode(), 2, "\u2615\u2615"),
        ("\u00e4".encode() * 9, 3, "\u00e4" * 3),
        ("abc\u2615".encode()[:-1], 9, ""),  # ends within a letter
        (b"", 5, ""),
    ],
)
def test_the_beginning_of_a_body_is_cut_between_letters(body: bytes, letters: int, shown: str):
    assert text_of(body, letters) == shown


# -- sending ------------------------------------------------------------------------------------------------------


async def test_a_text_is_sent_to_one_queue_and_can_be_looked_at(api: Api):
    sent = succeeded(await api.post(MESSAGES, {"text": "tea \u2615", "priority": 7}))
    (found,) = await look(api)
    assert (sent["queue"], sent["message_id"]) == ("q", found["message_id"])
    assert (found["text"], found["body_kind"], found["priority"], found["durable"]) == ("tea \u2615", "text", 7, True)
    assert found["sender"] == "admin"


async def test_sending_needs_send_on_the_address_and_a_queue(api: Api):
    for user in ("viewer", "reader", "browser"):
        assert problem(await api.post(MESSAGES, {"text": "x"}, user=user))[0] == 403
    assert problem(await api.post("/api/v1/queues/none/messages", {"text": "x"})) == (404, "DMQ6201", "NOT_FOUND")
    assert api.broker.queues["q"].message_count == 0


async def test_a_queue_that_does_not_take_the_message_is_said(api: Api):
    await api.patch("/api/v1/queues/q", {"filter": "colour = 'red'"})
    assert problem(await api.post(MESSAGES, {"text": "x"})) == (400, "DMQ6148", "INVALID")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"enabled": False}, "it is disabled; enable it with `delosmq queue enable q`"),
        ({"filter": "colour = 'red'"}, "its filter lets in only what matches colour = 'red'; send"),
        ({"purge_on_no_consumers": True}, "it takes messages only while it has a consumer (purge-on-no-consumers)"),
    ],
)
async def test_the_very_cause_is_named(api: Api, change: dict[str, object], says: str):
    succeeded(await api.patch("/api/v1/queues/q", change))
    detail = str((await api.post(MESSAGES, {"text": "x"})).json()["detail"])
    assert detail.startswith(f"queue 'q' did not take the message: {says}")


@pytest.mark.parametrize(
    "api", [(DivertSettings("takes", "q", ("void",), exclusive=True, routing_type=MULTICAST),)], indirect=True
)
async def test_a_divert_that_took_it_is_named(api: Api):
    assert "divert 'takes' took it" in str((await api.post(MESSAGES, {"text": "x"})).json()["detail"])


async def test_what_a_ring_of_nothing_pushed_out_is_not_said_to_be_here(api: Api):  # RING-1
    assert succeeded(await api.post(MESSAGES, {"text": "x"}))["replaced"] is False
    await api.patch("/api/v1/queues/q", {"ring_size": 0})
    await api.post("/api/v1/queues/q/purge", {})
    sent = succeeded(await api.post(MESSAGES, {"text": "y"}))
    assert sent["replaced"] is True
    assert sent["message_id"]


async def test_a_full_address_is_said_and_not_waited_for(api: Api):
    api.broker.queues["q"].address.apply_settings(
        AddressSettings(max_size_messages=1, address_full_policy=AddressFullPolicy.BLOCK)
    )
    succeeded(await api.post(MESSAGES, {"text": "x"}))
    assert problem(await api.post(MESSAGES, {"text": "y"})) == (429, "DMQ6147", "LIMIT")
    assert api.broker.queues["q"].message_count == 1


async def test_what_goes_to_dead_letters_instead_is_not_said_to_be_here(api: Api):
    await api.post("/api/v1/queues", {"name": "DLQ"})
    await api.patch("/api/v1/queues/q", {"enabled": False})
    api.broker.queues["q"].address.apply_settings(
        AddressSettings(dead_letter_address="DLQ", send_to_dla_on_no_route=True)
    )
    assert succeeded(await api.post(MESSAGES, {"text": "x"}))["message_id"] == ""
    assert api.broker.queues["DLQ"].message_count == 1


@pytest.mark.parametrize("body", [{}, {"text": 5}, {"text": "x", "priority": 10}, {"text": "x", "body": "y"}])
async def test_a_send_that_makes_no_sense(api: Api, body: dict[str, object]):
    assert problem(await api.post(MESSAGES, body)) == (400, "DMQ6407", "INVALID")


async def test_the_answer_to_a_send_waits_for_the_disk(api: Api):
    api.host.store.held = True
    sending = asyncio.create_task(api.post(MESSAGES, {"text": "x"}))
    await eventually(lambda: api.broker.queues["q"].message_count == 1)
    await api.settle()
    assert not sending.done()
    api.host.store.held = False
    api.host.changed()
    assert (await sending).status_code == 201
