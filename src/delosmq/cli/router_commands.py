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
def explain_key(name: Name, key: Key, as_json: AsJson = False, *, client: HttpClient) -> None:
    """Say what would be decided on a key, and why. Changes nothing."""
    found = client.call("POST", f"{_ROUTERS}/{in_path(name)}/test", {"key": key})
    if as_json:
        print_json([found])
        return
    console = plain_console()
    console.print(f"key            {found['key']}")
    console.print(f"transformed    {found['transformed']}")
    console.print(f"ready targets  {found['ready_targets']}")
    console.print(f"outcome        {_place(found)}")
    console.print(f"because        {found['because']}")


def _place(found: dict[str, Any]) -> str:
    return f"{found['outcome']} {found['host']}:{found['port']}" if found["host"] else str(found["outcome"])
