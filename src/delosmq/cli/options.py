"""Options that the management commands share."""

from pathlib import Path
from typing import Annotated, Final

import typer

from delosmq.model.errors import BrokerError

DEFAULT_URL: Final = "http://127.0.0.1:8161"

Url = Annotated[str, typer.Option(help="HTTP address of the broker.")]
User = Annotated[str, typer.Option(envvar="DELOSMQ_USER", help="Login.")]
PasswordFile = Annotated[Path | None, typer.Option(help="File that holds the password; else DELOSMQ_PASSWORD.")]
Filter = Annotated[str, typer.Option("--filter", help="Only names that contain this text.")]
Limit = Annotated[int, typer.Option(min=1, help="At most so many.")]
Force = Annotated[bool, typer.Option("--force", help="Although it is in use.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A setting as in broker.xml, such as ring-size=5; repeatable."),
]

TEXT_SETTINGS: Final = frozenset({"filter", "group_first_key", "last_value_key", "address", "routing_type"})
_WORDS: Final[dict[str, bool | None]] = {"true": True, "false": False, "default": None}


def read_settings(written: list[str] | None) -> dict[str, object]:
    """The fields that ``--set NAME=VALUE`` options stand for; ``default`` goes back to the default of the address.

    Raises:
        BrokerError: one has no ``=``, or is given twice.
    """
    found: dict[str, object] = {}
    for text in written or []:
        name, equals, value = text.partition("=")
        field = name.strip().replace("-", "_")
        if not field or not equals:
            raise BrokerError("DMQ7100", f"--set {text} is not of the form NAME=VALUE, such as ring-size=5")
        if field in found:
            raise BrokerError("DMQ7101", f"--set {name} is given twice; give each setting once")
        found[field] = _read_value(field, value)
    return found


def _read_value(field: str, value: str) -> object:
    if value in _WORDS and (field not in TEXT_SETTINGS or value == "default"):
        return _WORDS[value]
    if field in TEXT_SETTINGS:
        return value
    try:
        return int(value)
    except ValueError:
        return value  # the broker names the field and says what it takes
