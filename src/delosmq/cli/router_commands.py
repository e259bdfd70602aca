"""``delosmq router``."""

from typing import Annotated, Any, Final

import typer

from delosmq.cli.http_client import HttpClient, in_path
from delosmq.cli.options import AsJson, of_broker
from delosmq.cli.output import plain_console, print_json, print_table

router_app = typer.Typer(no_args_is_help=True, help="Connection routers of a running broker.")

ROUTER_COLUMNS: Final = (
    ("name", "NAME"),
    ("key_type", "KEY"),
    ("policy", "POLICY"),
    ("ready_targets", "READY"),
    ("quorum_size", "QUORUM"),
    ("cached_keys", "CACHED"),
    ("local", "LOCAL"),
    ("redirected", "REDIRECTED"),
    ("use_another", "SENT-AWAY"),
    ("unavailable", "UNAVAILABLE"),
)
TARGET_COLUMNS: Final = (
    ("router", "ROUTER"),
    ("name", "TARGET"),
    ("host", "HOST"),
    ("port", "PORT"),
    ("ready", "READY"),
    ("connection_count", "CONNECTIONS"),
    ("node_id", "NODE-ID"),
    ("trouble", "TROUBLE"),
)
_ROUTERS: Final = "/api/v1/routers"

Name = Annotated[str, typer.Argument(help="Name of the router.")]
Key = Annotated[str, typer.Argument(help="A key as key-filter makes it; NULL for a connection that has none.")]

Value = Annotated[
    str, typer.Argument(help="What the key is taken from, as key-type says: a client id, an address; '' for none.")
]


@router_app.callback()
def router() -> None:
    """Connection routers of a running broker."""


@router_app.command("stat")
@of_broker
def stat_routers(as_json: AsJson = False, *, client: HttpClient) -> None:
    """Show each router, what it has decided since the start, and its targets."""
    routers = client.get(_ROUTERS)["routers"]
    if as_json:
        print_json(routers)
        return
    if not routers:
        plain_console(stderr=True).print("the broker has no connection routers; they stand in its broker.xml")
        return
    print_table(routers, ROUTER_COLUMNS)
    targets = [{"router": one["name"], **target} for one in routers for target in one["targets"]]
    if targets:
        print_table(targets, TARGET_COLUMNS)


@router_app.command("target")
@of_broker
def target_of_key(name: Name, key: Key, as_json: AsJson = False, *, client: HttpClient) -> None:
    """Decide on a key as on a connection with it: a policy's turn goes on, and a cache remembers it."""
    found = client.call("POST", f"{_ROUTERS}/{in_path(name)}/target", {"key": key})
    if as_json:
        print_json([found])
    else:
        plain_console().print(_place(found))


@router_app.command("test")
@of_broker
def explain_value(name: Name, value: Value, as_json: AsJson = False, *, client: HttpClient) -> None:
    """Say step by step what would be decided on a connection, and why. Changes nothing."""
    found = client.call("POST", f"{_ROUTERS}/{in_path(name)}/test", {"value": value})
    if as_json:
        print_json([found])
        return
    console = plain_console()
    for step, text in _steps(found):
        console.print(f"{step:<20} {text}")


def _steps(found: dict[str, Any]) -> list[tuple[str, str]]:
    key_filter, local_filter = found["key_filter"], found["local_target_filter"]
    cached = "no target"
    if found["cached_node_id"]:
        cached = f"{found['cached_node_id']}, {'ready' if found['cached_ready'] else 'not ready'}"
    ready = [f"{one['name']} {one['node_id']}" for one in found["ready"]]
    return [
        ("value", f"{found['key_type']} {found['value'] or 'none'}"),
        ("key-filter", key_filter or "none"),
        ("key", found["key"]),
        ("policy", found["policy"] or "none"),
        ("transformed", found["transformed"]),
        (
            "local-target-filter",
            f"{local_filter} {'takes it' if found['taken_here'] else 'does not take it'}" if local_filter else "none",
        ),
        ("cache", cached),
        ("ready targets", f"{len(ready)} of {found['quorum_size']} wanted{': ' if ready else ''}{', '.join(ready)}"),
        ("choice", found["choice"] or "none"),
        ("outcome", _place(found)),
        ("because", found["because"]),
    ]


def _place(found: dict[str, Any]) -> str:
    return f"{found['outcome']} {found['host']}:{found['port']}" if found["host"] else str(found["outcome"])
