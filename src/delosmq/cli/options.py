"""Options that the management commands share."""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from delosmq.cli.http_client import HttpClient
from delosmq.cli.usage import WrongCallError
from delosmq.model.declared.queue import QUEUE_SETTINGS

DEFAULT_URL: Final = "http://127.0.0.1:8161"

CaFile = Annotated[
    Path | None,
    typer.Option(envvar="DELOSMQ_CA_FILE", help="PEM of the authority of https://; else those that the system trusts."),
]
CertFile = Annotated[
    Path | None,
    typer.Option(envvar="DELOSMQ_CERT_FILE", help="PEM with a certificate and its key, where https:// asks for one."),
]

_CONNECTION: Final[dict[str, tuple[object, object]]] = {
    "url": (Annotated[str, typer.Option(envvar="DELOSMQ_URL", help="HTTP address of the broker.")], DEFAULT_URL),
    "ca_file": (CaFile, None),
    "cert_file": (CertFile, None),
    "user": (Annotated[str, typer.Option(envvar="DELOSMQ_USER", help="Login.")], "admin"),
    "password_file": (
        Annotated[Path | None, typer.Option(help="File that holds the password; else DELOSMQ_PASSWORD.")],
        None,
    ),
}
"""Options of each command on a running broker, with their defaults."""
Filter = Annotated[str, typer.Option("--filter", help="Only names that contain this text.")]
AsJson = Annotated[bool, typer.Option("--json", help="As one JSON list, with every field.")]
Limit = Annotated[int, typer.Option(min=1, help="At most so many.")]
Force = Annotated[bool, typer.Option("--force", help="Although it is in use.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A setting as in broker.xml, such as ring-size=5; repeatable."),
]


def of_broker(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the options that say which broker and who asks; it is called with ``client`` instead of them."""

    @wraps(command)
    def with_client(
        url: str, ca_file: Path | None, cert_file: Path | None, user: str, password_file: Path | None, **given: Any
    ) -> None:
        client = HttpClient(url, user, password_file, ca_file=ca_file, cert_file=cert_file)
        command(client=client, **given)

    own = [one for one in signature(command).parameters.values() if one.name != "client"]
    options = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in _CONNECTION.items()
    ]
    with_client.__signature__ = signature(command).replace(parameters=[*own, *options])  # type: ignore[attr-defined]
    with_client.__annotations__ = {one.name: one.annotation for one in (*own, *options)}
    return with_client


SWITCHES: Final = frozenset(
    {"enabled", "paused", "durable", *(name for name, setting in QUEUE_SETTINGS.items() if setting.kind is bool)}
)
NUMBERS: Final = frozenset(name for name, setting in QUEUE_SETTINGS.items() if setting.kind is int)
_DEFAULT: Final = "default"
_OWN_DEFAULTS: Final = {"enabled": True, "paused": False, "durable": True}
"""Of fields that have one of their own, and none of their address."""
_WORDS: Final = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


def read_settings(written: list[str] | None) -> dict[str, object]:
    """The fields that ``--set NAME=VALUE`` options stand for; ``default`` goes back to the default of the address.

    Raises:
        WrongCallError: one has no ``=``, is given twice, or its value is not of its kind.
    """
    found: dict[str, object] = {}
    for text in written or []:
        name, equals, value = text.partition("=")
        field = name.strip().replace("-", "_")
        if not field or not equals:
            raise WrongCallError("DMQ7100", f"--set {text} is not of the form NAME=VALUE, such as ring-size=5")
        if field in found:
            raise WrongCallError("DMQ7101", f"--set {name} is given twice; give each setting once")
        found[field] = _read_value(field, value)
    return found


def _read_value(field: str, value: str) -> object:
    word = value.strip().lower()
    if word == _DEFAULT:
        return _OWN_DEFAULTS.get(field)
    if field in SWITCHES:
        if word not in _WORDS:
            raise WrongCallError("DMQ7103", f"{_written(field, value)}: write yes or no, or default")
        return _WORDS[word]
    if field in NUMBERS:
        try:
            return int(word)
        except ValueError:
            raise WrongCallError(
                "DMQ7104", f"{_written(field, value)}: write a whole number such as 5, or default"
            ) from None
    return value  # a text, or what the broker says that it doesn't know


def _written(field: str, value: str) -> str:
    return f"--set {field.replace('_', '-')}={value}"
