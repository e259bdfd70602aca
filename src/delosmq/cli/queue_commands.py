"""``delosmq queue``."""

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from delosmq.cli.http_client import HttpClient, check_body, in_path
from delosmq.cli.options import AsJson, Filter, Force, Limit, Settings, of_broker, read_settings
from delosmq.cli.output import plain_console, print_json, print_table, shown_time, shown_value, tell_missing
from delosmq.cli.usage import WrongCallError
from delosmq.model.errors import BrokerError
from delosmq.model.phrases import counted
from delosmq.model.values import BODY_LIMIT_BYTES

queue_app = typer.Typer(no_args_is_help=True, help="Queues of a running broker.")

COLUMNS: Final = (
    ("name", "NAME"),
    ("address", "ADDRESS"),
    ("routing_type", "ROUTING"),
    ("consumer_count", "CONSUMERS"),
    ("message_count", "MESSAGES"),
    ("delivering_count", "DELIVERING"),
    ("scheduled_count", "SCHEDULED"),
    ("held_count", "HELD"),
    ("messages_added", "ADDED"),
    ("messages_acknowledged", "ACKED"),
    ("messages_expired", "EXPIRED"),
    ("messages_killed", "KILLED"),
    ("messages_replaced", "REPLACED"),
    ("persistent_size", "BYTES"),
    ("ring_size", "RING"),
    ("paused", "PAUSED"),
    ("enabled", "ENABLED"),
)
MESSAGE_COLUMNS: Final = (
    ("message_id", "ID"),
    ("standing", "STANDING"),
    ("size_bytes", "BYTES"),
    ("priority", "PRIORITY"),
    ("durable", "DURABLE"),
    ("expires", "EXPIRES"),
    ("delivery_count", "DELIVERIES"),
    ("sender", "SENDER"),
    ("said", "PROPERTIES"),
    ("shown", "BODY"),
)
_ROOT: Final = "/api/v1/queues"
_PAGE: Final = 1_000

Name = Annotated[str, typer.Argument(help="Name of the queue.")]


@queue_app.callback()
def queue() -> None:
    """Queues of a running broker."""


@queue_app.command()
@of_broker
def stat(name_filter: Filter = "", limit: Limit = 100_000, as_json: AsJson = False, *, client: HttpClient) -> None:
    """Show what each queue holds. The password comes from --password-file or DELOSMQ_PASSWORD."""
    queues: list[dict[str, Any]] = []
    following = ""
    while len(queues) < limit:
        page = client.get(_ROOT, after=following, limit=min(_PAGE, limit - len(queues)), filter=name_filter)
        queues += page["queues"]
        following = page["next"]
        if not following:
            break
    tell_missing("queue", page, client.user, name_filter, found=bool(queues))
    if as_json:
        print_json(queues)
    else:
        # The broker counts what is held among the scheduled messages, of which people think that they are due some day.
        # One of an earlier version does not say how many those are.
        for one in queues:
            one.setdefault("held_count", 0)
            one["scheduled_count"] -= one["held_count"]
        print_table(queues, COLUMNS)


@queue_app.command()
@of_broker
def create(
    name: Name,
    address: Annotated[str, typer.Option(help="Its address; the name unless told.")] = "",
    multicast: Annotated[bool, typer.Option("--multicast", help="Gets a copy of everything, as a topic's.")] = False,
    non_durable: Annotated[bool, typer.Option("--non-durable", help="Goes with the broker.")] = False,
    settings: Settings = None,
    *,
    client: HttpClient,
) -> None:
    """Create a queue, and its address if need be."""
    body = {"name": name, "durable": not non_durable, "routing_type": "MULTICAST" if multicast else "ANYCAST"}
    if address:
        body["address"] = address
    made = client.call("POST", _ROOT, body | read_settings(settings))
    plain_console().print(f"queue '{name}' is created on address '{made['address']}' ({made['routing_type']})")
    _show_notices(made)


@queue_app.command()
@of_broker
def update(name: Name, settings: Settings = None, *, client: HttpClient) -> None:
    """Change settings of a queue while it runs; NAME=default goes back to the default of its address."""
    changes = read_settings(settings)
    if not changes:
        raise WrongCallError("DMQ7102", "nothing is to be changed; name settings with --set, such as --set ring-size=5")
    made = client.call("PATCH", f"{_ROOT}/{in_path(name)}", changes)
    shown = ", ".join(f"{field.replace('_', '-')} {shown_value(made[field]) or 'none'}" for field in changes)
    plain_console().print(f"queue '{name}' now has {shown}")
    _show_notices(made)


def _show_notices(made: dict[str, Any]) -> None:
    for notice in made["notices"]:
        plain_console(stderr=True).print(f"note: {notice}")


@queue_app.command()
@of_broker
def delete(name: Name, force: Force = False, *, client: HttpClient) -> None:
    """Delete a queue and what it holds; with --force although it has consumers, or dead messages go there."""
    path = f"{_ROOT}/{in_path(name)}" + ("?force=true" if force else "")
    gone = client.call("DELETE", path)
    plain_console().print(f"queue '{name}' is deleted, and {counted(gone['messages'], 'message')} with it")


def _verb(client: HttpClient, name: str, verb: str) -> dict[str, object]:
    done: dict[str, object] = client.call("POST", f"{_ROOT}/{in_path(name)}/{verb}", {})
    return done


def _add_verb(verb: str, about: str, done: str) -> None:
    @queue_app.command(verb, help=about)
    @of_broker
    def command(name: Name, client: HttpClient) -> None:
        _verb(client, name, verb)
        plain_console().print(f"queue '{name}' {done}")


_add_verb("pause", "Deliver nothing until the queue is resumed, over restarts too.", "is paused")
_add_verb("resume", "Deliver again.", "delivers again")
_add_verb("disable", "Let no message enter until the queue is enabled, over restarts too.", "is disabled")
_add_verb("enable", "Let messages enter again.", "is enabled")


@queue_app.command()
@of_broker
def purge(name: Name, client: HttpClient) -> None:
    """Remove all messages that are not in delivery."""
    done = _verb(client, name, "purge")
    ending = "" if done["done"] else " so far; the rest follows by itself"
    removed = counted(int(str(done["removed"])), f"message of queue '{name}' is", f"messages of queue '{name}' are")
    plain_console().print(f"{removed} removed{ending}")


@queue_app.command()
@of_broker
def browse(
    name: Name,
    after: Annotated[int, typer.Option(min=0, help="Only messages with a higher sequence.")] = 0,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="At most so many.")] = 10,
    letters: Annotated[int, typer.Option("--text", min=0, max=10_000, help="So many letters of each body.")] = 60,
    as_json: Annotated[bool, typer.Option("--json", help="The broker's answer as it is.")] = False,
    *,
    client: HttpClient,
) -> None:
    """Show messages of a queue with their properties, and how their bodies begin. Takes nothing."""
    path = f"{_ROOT}/{in_path(name)}/messages?after={after}&limit={limit}&text={letters}"
    page = client.get(path)
    if as_json:
        plain_console().print(json.dumps(page, indent=1, ensure_ascii=False))
        return
    rows = [
        one | {"shown": _body(one), "said": _properties(one), "expires": shown_time(one["expires_at_ms"])}
        for one in page["messages"]
    ]
    print_table(rows, MESSAGE_COLUMNS)
    if page["next"]:
        plain_console(stderr=True).print(f"there are more: --after {page['next']}")


@queue_app.command("send")
@of_broker
def send_text(
    name: Name,
    text: Annotated[str | None, typer.Option(help="The body.")] = None,
    file: Annotated[Path | None, typer.Option(help="UTF-8 file that holds the body; - is standard input.")] = None,
    priority: Annotated[int, typer.Option(min=0, max=9, help="0 to 9.")] = 4,
    non_durable: Annotated[bool, typer.Option("--non-durable", help="Goes with the broker.")] = False,
    *,
    client: HttpClient,
) -> None:
    """Send one text to a queue that exists; at most 1 MiB as JSON."""
    body = {"text": _text_of(text, file), "priority": priority, "durable": not non_durable}
    sent = client.call("POST", f"{_ROOT}/{in_path(name)}/messages", body)
    if sent["replaced"]:
        plain_console().print(
            f"message {sent['message_id']} was accepted, and the ring of queue '{name}' pushed it out at once: it is"
            " gone"
        )
    elif sent["message_id"]:
        plain_console().print(f"message {sent['message_id']} is in queue '{name}'")
    else:
        plain_console().print(f"the message went elsewhere than to queue '{name}': to a divert, or to dead letters")


def _text_of(text: str | None, file: Path | None) -> str:
    if (text is None) == (file is None):
        raise WrongCallError("DMQ7109", "give the body either with --text or with --file")
    if file is None:
        return _checked(text or "")
    source = "standard input" if str(file) == "-" else str(file)
    try:
        # Bytes: what standard input reads as text may hold letters that stand for bytes which are none.
        with nullcontext(sys.stdin.buffer) if str(file) == "-" else file.open("rb") as opened:
            content = opened.read(BODY_LIMIT_BYTES + 1)
        check_body(content)
        return content.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise BrokerError("DMQ7110", f"can't read the body from {source}: {reason}; give it a text") from error


def _checked(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise WrongCallError("DMQ7111", "--text is not UTF-8; write it so") from None
    return text


def _body(message: dict[str, Any]) -> str:
    """One line: what is no text is only named, and what would move the cursor is written out."""
    if not message["text"] and message["body_bytes"]:
        return f"({message['body_kind']}, {counted(message['body_bytes'], 'byte')})"
    line = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in message["text"])
    return line + ("..." if message["cut"] else "")


def _properties(message: dict[str, Any]) -> str:
    return ", ".join(
        f"{name}={value}" if value.isprintable() else f"{name}={value!r}"
        for name, value in message["properties"].items()
    )
