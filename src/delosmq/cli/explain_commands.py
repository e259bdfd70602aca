"""``delosmq explain``."""

import json
from typing import Annotated, Any, Final

import typer

from delosmq.cli.http_client import HttpClient, in_path
from delosmq.cli.options import of_broker
from delosmq.cli.output import plain_console, print_table, shown_time
from delosmq.model.phrases import counted

explain_app = typer.Typer(no_args_is_help=True, help="Where messages stand, and what to do about it.")

CONSUMER_COLUMNS: Final = (
    ("id", "CONSUMER"),
    ("kind", "KIND"),
    ("name", "GROUP"),
    ("connection", "CONNECTION"),
    ("user", "USER"),
    ("held", "HOLDS"),
    ("has_room", "ROOM"),
    ("priority", "PRIORITY"),
    ("exclusive", "EXCLUSIVE"),
    ("owned_groups", "GROUPS"),
    ("selector", "SELECTOR"),
)
MESSAGE_COLUMNS: Final = (
    ("sequence", "MESSAGE"),
    ("standing", "STANDING"),
    ("detail", "DETAIL"),
    ("delivery_count", "DELIVERIES"),
)
REACHED_COLUMNS: Final = (
    ("name", "QUEUE"),
    ("address", "ADDRESS"),
    ("routing_type", "ROUTING"),
    ("enabled", "ENABLED"),
    ("consumer_count", "CONSUMERS"),
    ("message_count", "MESSAGES"),
    ("filter", "FILTER"),
)
DIVERT_COLUMNS: Final = (
    ("name", "DIVERT"),
    ("forwarding_addresses", "TO"),
    ("exclusive", "EXCLUSIVE"),
    ("copies", "COPIES"),
    ("lost_copies", "LOST"),
    ("filter", "FILTER"),
)
SETTING_COLUMNS: Final = (("name", "SETTING"), ("value", "VALUE"), ("from", "FROM"))

AsJson = Annotated[bool, typer.Option("--json", help="The broker's answer as it is.")]


@explain_app.callback()
def explain() -> None:
    """Where messages stand, and what to do about it."""


@explain_app.command("queue")
@of_broker
def explain_queue(
    name: Annotated[str, typer.Argument(help="Name of the queue.")],
    after: Annotated[int, typer.Option(min=0, help="List messages with a higher sequence.")] = 0,
    limit: Annotated[int, typer.Option(min=0, max=1_000, help="List at most so many messages.")] = 10,
    as_json: AsJson = False,
    *,
    client: HttpClient,
) -> None:
    """What a queue does with what it holds, and why."""
    path = f"/api/v1/queues/{in_path(name)}/explain?after={after}&limit={limit}"
    found = client.get(path)
    out = plain_console()
    if as_json:
        out.print(json.dumps(found, indent=1, ensure_ascii=False))
        return
    out.print(f"queue '{found['queue']}' on address '{found['address']}': {counted(found['message_count'], 'message')}")
    out.print(f"advice: {found['advice']}")
    for note in found["notes"]:
        out.print(f"note: {note}")
    for standing, count in found["counts"].items():
        out.print(f"{count:>9} {standing}")
    if found["not_looked_at"]:
        out.print(f"{found['not_looked_at']:>9} pending, not looked at one by one")
    if found["owner"]:
        out.print(f"owner: consumer {found['owner']}, exclusively")
    for group in found["groups"]:
        out.print(f"message group '{group['group']}': consumer {group['consumer']}")
    if found["consumers"]:
        out.print()
        print_table(found["consumers"], CONSUMER_COLUMNS)
    if found["messages"]:
        out.print()
        print_table([one | {"detail": _detail(one)} for one in found["messages"]], MESSAGE_COLUMNS)
        if found["next"]:
            out.print(f"more with --after {found['next']}")
    out.print()
    print_table([one | {"from": _source(one)} for one in found["settings"]], SETTING_COLUMNS)


@explain_app.command("address")
@of_broker
def explain_address(
    name: Annotated[str, typer.Argument(help="Name of the address.")],
    as_json: AsJson = False,
    *,
    client: HttpClient,
) -> None:
    """Where messages sent to an address go: its queues, its diverts, and how many reached none."""
    found = client.get(f"/api/v1/addresses/{in_path(name)}/explain")
    out = plain_console()
    if as_json:
        out.print(json.dumps(found, indent=1, ensure_ascii=False))
        return
    out.print(f"address '{found['address']}' takes {', '.join(found['routing_types'])}")
    out.print(f"advice: {found['advice']}")
    for note in found["notes"]:
        out.print(f"note: {note}")
    out.print(f"{found['routed_messages']:>9} routed since the start")
    out.print(f"{found['unrouted_messages']:>9} reached no queue")
    if found["diverts"]:
        out.print()
        print_table(found["diverts"], DIVERT_COLUMNS)
    if found["queues"]:
        out.print()
        print_table(found["queues"], REACHED_COLUMNS)
    if len(found["queues"]) < found["queue_count"]:
        out.print(f"of {found['queue_count']} queues")


@explain_app.command("message")
@of_broker
def explain_message(
    message_id: Annotated[str, typer.Argument(metavar="ID", help="As STOMP's message-id or a browser shows it.")],
    queue: Annotated[str, typer.Option(help="Look in this queue only.")] = "",
    as_json: AsJson = False,
    *,
    client: HttpClient,
) -> None:
    """Where a message stands in each queue that has it, and why."""
    found = client.get(f"/api/v1/messages/{in_path(message_id, 'ID')}/explain", queue=queue)
    out = plain_console()
    if as_json:
        out.print(json.dumps(found, indent=1, ensure_ascii=False))
        return
    durable = "durable" if found["durable"] else "not durable"
    sender = f" by '{found['sender']}'" if found["sender"] else ""
    sent = f"sent to '{found['address']}'{sender} at {shown_time(found['timestamp_ms'])}"
    kind = f"{durable}, priority {found['priority']}, {found['size_bytes']} bytes"
    out.print(f"message {found['sequence']}, {sent}: {kind}")
    for one in found["standings"]:
        detail = _detail(one)
        out.print(f"queue '{one['queue']}': {one['standing']}{f', {detail}' if detail else ''}")
        out.print(f"  advice: {one['advice']}")


def _detail(one: dict[str, Any]) -> str:
    """What a standing says beside its name."""
    parts: list[str] = []
    if one["rule"]:
        parts.append(str(one["rule"]))
    if one["lease_group"]:
        parts.append(f"group '{one['lease_group']}', lease {one['lease'] or 'under way'}")
    if one["consumer"]:
        client = " ".join(text for text in (one["connection"], one["user"]) if text)
        parts.append(f"consumer {one['consumer']}{f' ({client})' if client else ''}")
    if one["transaction"]:
        branch = f" (xid {one['xid']})" if one["xid"] else ""
        parts.append(f"transaction {one['transaction']}{branch}, {one['transaction_state']}")
    if one["since_ms"]:
        parts.append(f"since {shown_time(one['since_ms'])}")
    if one["due_at_ms"]:
        parts.append(f"until {shown_time(one['due_at_ms'])}")
    return ", ".join(parts)


def _source(setting: dict[str, Any]) -> str:
    return f"{setting['source']} {setting['match']}" if setting["match"] else str(setting["source"])
