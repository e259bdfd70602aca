"""``delosmq address`` and ``delosmq transaction``."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer

from delosmq.cli.http_client import HttpClient, in_path
from delosmq.cli.options import AsJson, Filter, Force, Limit, of_broker
from delosmq.cli.output import plain_console, print_json, print_table, tell_missing
from delosmq.model.phrases import counted

address_app = typer.Typer(no_args_is_help=True, help="Addresses of a running broker.")
transaction_app = typer.Typer(no_args_is_help=True, help="Transactions of a running broker.")

ADDRESS_COLUMNS: Final = (
    ("name", "NAME"),
    ("routing_types", "ROUTING"),
    ("queues", "QUEUES"),
    ("diverts", "DIVERTS"),
    ("used_messages", "MESSAGES"),
    ("used_bytes", "BYTES"),
    ("address_limit_percent", "FULL%"),
    ("blocked_senders", "BLOCKED"),
    ("routed_messages", "ROUTED"),
    ("unrouted_messages", "UNROUTED"),
    ("duplicate_ids", "DUPLICATE-IDS"),
)
TRANSACTION_COLUMNS: Final = (
    ("id", "ID"),
    ("xid", "XID"),
    ("state", "STATE"),
    ("owner", "OWNER"),
    ("user", "USER"),
    ("began_ms", "BEGAN"),
    ("prepared_ms", "PREPARED"),
    ("sends", "SENDS"),
    ("acknowledgements", "ACKS"),
    ("size_bytes", "BYTES"),
)
HEURISTIC_COLUMNS: Final = (("xid", "XID"), ("outcome", "OUTCOME"), ("user", "USER"))
_ADDRESSES: Final = "/api/v1/addresses"
_TRANSACTIONS: Final = "/api/v1/transactions"

Name = Annotated[str, typer.Argument(help="Name of the address.")]
Xid = Annotated[str, typer.Argument(help="The xid, as `delosmq transaction list` shows it.")]


@address_app.callback()
def address() -> None:
    """Addresses of a running broker."""


@address_app.command("stat")
@of_broker
def stat_addresses(
    name_filter: Filter = "",
    limit: Limit = 1_000,
    as_json: AsJson = False,
    *,
    client: HttpClient,
) -> None:
    """Show what each address holds against its limits."""
    page = client.get(_ADDRESSES, limit=limit, filter=name_filter)
    tell_missing("address", page, client.user, name_filter, found=bool(page["addresses"]))
    if as_json:
        print_json(page["addresses"])
    else:
        print_table(page["addresses"], ADDRESS_COLUMNS)
    if page["next"]:
        plain_console(stderr=True).print(f"there are more, after '{page['next']}'; raise --limit, or use --filter")


@address_app.command("create")
@of_broker
def create_address(
    name: Name,
    anycast: Annotated[bool, typer.Option("--anycast", help="One of its queues gets each message.")] = False,
    multicast: Annotated[bool, typer.Option("--multicast", help="All of its queues get each message.")] = False,
    *,
    client: HttpClient,
) -> None:
    """Create an address, or give it more routing types; MULTICAST unless told."""
    kinds = (["ANYCAST"] if anycast else []) + (["MULTICAST"] if multicast or not anycast else [])
    body = {"name": name, "routing_types": kinds}
    made = client.call("POST", _ADDRESSES, body)
    plain_console().print(f"address '{name}' takes {', '.join(made['routing_types'])}")


@address_app.command("delete")
@of_broker
def delete_address(name: Name, force: Force = False, *, client: HttpClient) -> None:
    """Delete an address; with --force its queues and all they hold as well."""
    path = f"{_ADDRESSES}/{in_path(name)}" + ("?force=true" if force else "")
    gone = client.call("DELETE", path)
    plain_console().print(f"address '{name}' is deleted, and {counted(gone['queues'], 'queue')} with it")


@address_app.command("clear-duplicate-ids")
@of_broker
def clear_duplicate_ids(name: Name, client: HttpClient) -> None:
    """Forget which duplicate ids were sent to an address."""
    done = client.call("DELETE", f"{_ADDRESSES}/{in_path(name)}/duplicate-ids")
    ids = counted(done["cleared"], f"duplicate id of address '{name}' is", f"duplicate ids of address '{name}' are")
    plain_console().print(f"{ids} forgotten")


@transaction_app.callback()
def transaction() -> None:
    """Transactions of a running broker."""


def _print_page(rows: list[dict[str, Any]], columns: Sequence[tuple[str, str]], *, as_json: bool, more: object) -> None:
    if as_json:
        print_json(rows)
    else:
        print_table(rows, columns)
    if more:
        plain_console(stderr=True).print("there are more; raise --limit")


@transaction_app.command("list")
@of_broker
def list_transactions(
    prepared: Annotated[
        bool, typer.Option("--prepared", help="Only branches that wait for their coordinator.")
    ] = False,
    limit: Limit = 1_000,
    as_json: AsJson = False,
    *,
    client: HttpClient,
) -> None:
    """Show the open and prepared transactions."""
    query = "true" if prepared else ""
    page = client.get(_TRANSACTIONS, limit=limit, prepared=query)
    _print_page(page["transactions"], TRANSACTION_COLUMNS, as_json=as_json, more=page["next"])


@transaction_app.command("commit")
@of_broker
def commit(xid: Xid, client: HttpClient) -> None:
    """Commit a prepared branch in place of its coordinator."""
    done = client.call("POST", f"{_TRANSACTIONS}/{in_path(xid, 'XID')}/commit", {})
    ending = "" if done["done"] else "; the rest of its messages follow by themselves"
    plain_console().print(f"branch {xid} is committed{ending}")


@transaction_app.command("rollback")
@of_broker
def rollback(xid: Xid, client: HttpClient) -> None:
    """Roll a prepared branch back in place of its coordinator."""
    client.call("POST", f"{_TRANSACTIONS}/{in_path(xid, 'XID')}/rollback", {})
    plain_console().print(f"branch {xid} is rolled back")


@transaction_app.command("heuristics")
@of_broker
def list_heuristics(limit: Limit = 1_000, as_json: AsJson = False, *, client: HttpClient) -> None:
    """Show the branches that operators ended, until their coordinators forget them."""
    page = client.get(f"{_TRANSACTIONS}/heuristics", limit=limit)
    _print_page(page["heuristics"], HEURISTIC_COLUMNS, as_json=as_json, more=page["next"])


@transaction_app.command("forget")
@of_broker
def forget(xid: Xid, client: HttpClient) -> None:
    """Forget a branch that an operator ended, in place of its coordinator."""
    client.call("POST", f"{_TRANSACTIONS}/{in_path(xid, 'XID')}/forget", {})
    plain_console().print(f"branch {xid} is forgotten")
