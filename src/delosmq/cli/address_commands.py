"""``delosmq address``, ``delosmq transaction``, ``delosmq lease`` and ``delosmq staged``."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer

from delosmq.cli.http_client import HttpClient, in_path
from delosmq.cli.options import AsJson, Filter, Force, Limit, of_broker
from delosmq.cli.output import plain_console, print_json, print_table, tell_missing
from delosmq.model.declared.lease_life import LIVE_WINDOW_MS
from delosmq.model.errors import BrokerError
from delosmq.model.phrases import counted

staged_app = typer.Typer(
    no_args_is_help=True, help="What sinks, such as queries of Spark, have staged at a running broker."
)
address_app = typer.Typer(no_args_is_help=True, help="Addresses of a running broker.")
lease_app = typer.Typer(
    no_args_is_help=True, help="Lease groups of a running broker: readers such as queries of Spark."
)
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
PART_COLUMNS: Final = (
    ("application", "APPLICATION"),
    ("batch", "BATCH"),
    ("part", "PART"),
    ("user", "USER"),
    ("rows", "ROWS"),
    ("bytes", "BYTES"),
    ("addresses", "ADDRESSES"),
    ("age_s", "AGE-S"),
)
APPLICATION_COLUMNS: Final = (
    ("application", "APPLICATION"),
    ("published", "PUBLISHED"),
    ("user", "USER"),
    ("age_s", "AGE-S"),
)
GROUP_COLUMNS: Final = (
    ("group", "GROUP"),
    ("queue", "QUEUE"),
    ("ready", "READY"),
    ("leased", "LEASED"),
    ("oldest_age_s", "OLDEST-S"),
    ("acked", "ACKED"),
    ("lease", "LEASE"),
    ("epoch", "EPOCH"),
    ("contact_age_s", "CONTACT-S"),
    ("expires_in_s", "EXPIRES-S"),
)
LEASE_COLUMNS: Final = (
    ("lease", "LEASE"),
    ("rows", "ROWS"),
    ("bytes", "BYTES"),
    ("first_sequence", "FIRST"),
    ("last_sequence", "LAST"),
)
_ADDRESSES: Final = "/api/v1/addresses"
_LEASES: Final = "/api/v1/leases"
_STAGING: Final = "/api/v1/staging"
_MS_PER_S: Final = 1000
_TRANSACTIONS: Final = "/api/v1/transactions"

Name = Annotated[str, typer.Argument(help="Name of the address.")]
Application = Annotated[str, typer.Argument(help="Name of the application: the id of a query, or a transactionalId.")]
GroupName = Annotated[str, typer.Argument(help="Name of the group: the option group.id of its reader.")]
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


@lease_app.callback()
def lease() -> None:
    """Lease groups of a running broker."""


@lease_app.command("list")
@of_broker
def list_groups(as_json: AsJson = False, *, client: HttpClient) -> None:
    """Show each group: its queue, what it has leased, and when its reader was last heard of."""
    groups = client.get(_LEASES)["leases"]
    if as_json:
        print_json(groups)
    elif groups:
        _print_groups(groups)
    else:
        plain_console(stderr=True).print(f"there is no lease group that user '{client.user}' may consume from")


@lease_app.command("show")
@of_broker
def show_group(name: GroupName, as_json: AsJson = False, *, client: HttpClient) -> None:
    """Show a group with its leases that are not acknowledged."""
    found = client.get(f"{_LEASES}/{in_path(name)}")
    if as_json:
        print_json([found])
        return
    _print_groups([found["group"]])
    if found["leases"]:
        print_table(found["leases"], LEASE_COLUMNS)


@lease_app.command("release")
@of_broker
def release_group(
    name: GroupName,
    force: Annotated[bool, typer.Option("--force", help="Although its reader is at work.")] = False,
    *,
    client: HttpClient,
) -> None:
    """End a group: what it did not acknowledge goes back to the queue in order. Its checkpoint is of no use then."""
    path = f"{_LEASES}/{in_path(name)}"
    silent_ms = client.get(path)["group"]["contact_age_ms"]
    if silent_ms < LIVE_WINDOW_MS and not force:
        raise BrokerError(
            "DMQ7117",
            f"the reader of group '{name}' was heard of {silent_ms} ms ago; stop its query first, or say --force, and"
            " the query fails",
        )
    done = client.call("POST", f"{path}/release", {})
    plain_console().print(f"group '{name}' is released, and {counted(done['released'], 'message')} went back")


@staged_app.callback()
def staged() -> None:
    """What sinks have staged at a running broker."""


@staged_app.command("list")
@of_broker
def list_parts(limit: Limit = 1_000, as_json: AsJson = False, *, client: HttpClient) -> None:
    """Show the parts that are staged and not published: of this user, or of all users with manage."""
    page = client.get(f"{_STAGING}/parts", limit=limit)
    _print_page(_with_ages(page["parts"], as_json), PART_COLUMNS, as_json=as_json, more=page["next"])


@staged_app.command("published")
@of_broker
def list_applications(limit: Limit = 1_000, as_json: AsJson = False, *, client: HttpClient) -> None:
    """Show which batch each application published last."""
    page = client.get(f"{_STAGING}/applications", limit=limit)
    _print_page(_with_ages(page["applications"], as_json), APPLICATION_COLUMNS, as_json=as_json, more=page["next"])


def _with_ages(rows: list[dict[str, Any]], as_json: bool) -> list[dict[str, Any]]:
    return rows if as_json else [{**row, "age_s": max(0, row["age_ms"]) // 1000} for row in rows]


@staged_app.command("discard")
@of_broker
def discard_parts(application: Application, client: HttpClient) -> None:
    """Discard all parts of an application that are not published. A batch of it that is under way fails."""
    done = client.call("DELETE", f"{_STAGING}/{in_path(application, 'APPLICATION')}/parts")
    plain_console().print(f"{counted(done['discarded'], 'part')} of '{application}' discarded")


@staged_app.command("forget")
@of_broker
def forget_application(application: Application, client: HttpClient) -> None:
    """Forget which batch an application published last. Only when it never publishes again: it would be sent twice."""
    done = client.call("DELETE", f"{_STAGING}/{in_path(application, 'APPLICATION')}")
    if not done["forgotten"]:
        raise BrokerError("DMQ7118", f"no application '{application}' has published, or it is another user's")
    plain_console().print(f"application '{application}' is forgotten")


def _print_groups(groups: list[dict[str, Any]]) -> None:
    rows = [
        {
            **group,
            "oldest_age_s": group["oldest_age_ms"] // _MS_PER_S,
            "contact_age_s": group["contact_age_ms"] // _MS_PER_S,
            "expires_in_s": group["expires_in_ms"] // _MS_PER_S,
        }
        for group in groups
    ]
    print_table(rows, GROUP_COLUMNS)
