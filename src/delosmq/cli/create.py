"""``delosmq create`` and ``delosmq mask``."""

import secrets
import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

from rich.console import Console

from delosmq.cli.output import plain_console
from delosmq.config.findings import WRONG_INSTANCE_VALUE
from delosmq.config.instance import CreatedInstance, create_instance
from delosmq.model.errors import ConfigurationError
from delosmq.model.settings import TlsSettings, WebBind
from delosmq.security.passwords import SALT_BYTES, hash_password

NAME_WAIT_S: Final = 3.0
"""How long name servers have to answer for the host of a new instance."""


def create_command(
    directory: Path,
    *,
    user: str = "admin",
    password: str | None = None,
    host: str = "127.0.0.1",
    stomp_port: int = 61613,
    openwire_port: int = 61616,
    web: WebBind | None = None,
    file: IO[str] | None = None,
) -> None:
    """Makes an instance directory and says what was made, the password of its administrator once, and what to do next.

    Args:
        password: as read from standard input; None makes a random one. Never take it from the command line, where
            all users of the machine can read it.
        web: by default 127.0.0.1:8161.

    Raises:
        ConfigurationError: the directory can't be used or a value makes no sense; nothing is left behind.
    """
    out = plain_console(file=file)
    created = create_instance(
        directory,
        user=user,
        password=password,
        host=host,
        stomp_port=stomp_port,
        openwire_port=openwire_port,
        web=web,
    )
    servers = [
        f"  STOMP          {created.stomp_host}:{created.stomp_port}",
        f"  OpenWire       {created.stomp_host}:{created.openwire_port}",
    ]
    tell_of_instance(out, f"Created {created.paths.root}", created, servers=servers)
    out.print(f"\nNext: delosmq run {directory}")
    _warn_of_unknown_host(host, created.paths.broker_xml)


def web_bind(host: str, port: int, ssl_key: Path | None, ssl_trust: Path | None, *, use_client_auth: bool) -> WebBind:
    """Where the HTTP interface of a new instance is to listen; with a key it speaks TLS.

    Raises:
        ConfigurationError: the options contradict each other.
    """
    if ssl_key is None:
        if ssl_trust is not None or use_client_auth:
            raise ConfigurationError(
                WRONG_INSTANCE_VALUE,
                "--ssl-trust and --use-client-auth are about TLS: add --ssl-key, a PEM file with certificate and key",
            )
        return WebBind(host, port)
    if use_client_auth != (ssl_trust is not None):
        raise ConfigurationError(
            WRONG_INSTANCE_VALUE,
            "--ssl-trust names the certificates that --use-client-auth checks those of clients against: give both, or"
            " neither",
        )
    trust = "" if ssl_trust is None else str(ssl_trust.absolute())
    return WebBind(
        host,
        port,
        TlsSettings(key_store_path=str(ssl_key.absolute()), trust_store_path=trust, need_client_auth=use_client_auth),
    )


def tell_of_instance(
    out: Console, head: str, created: CreatedInstance, *, servers: Sequence[str] = (), messages: str = ""
) -> None:
    """Says what was made, the password of its administrator once.

    Args:
        servers: lines about acceptors; messages: what to say of those of the directory.
    """
    lines = [
        head,
        "",
        f"  configuration  {created.paths.etc}",
        f"  messages       {created.paths.data_directory}{messages}",
        *servers,
        f"  HTTP           {created.web.url}",
        f"  user           {created.user}",
    ]
    if created.password_is_random:
        lines.append(f"  password       {created.password}   (shown this once; keep it)")
    for line in lines:
        out.print(line)


def _warn_of_unknown_host(host: str, broker_xml: Path) -> None:
    """A name may be known only where the broker is to run, so that it is no mistake."""
    reasons: list[str] = []

    def look() -> None:
        try:
            socket.getaddrinfo(host, None, flags=socket.AI_PASSIVE)
        except OSError as failure:
            reasons.append(str(failure.strerror))

    # Name servers that do not answer are waited for by the half minute, and that can't be cut short.
    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    looking.join(NAME_WAIT_S)
    if looking.is_alive():
        reasons = [f"its name servers have not answered for {NAME_WAIT_S:g} s"]
    if reasons:
        plain_console(stderr=True).print(
            f"DMQ7019: this machine does not know the host '{host}' ({reasons[0]}): `delosmq run` can't listen on"
            f" it here; correct it in {broker_xml} unless the broker is to run elsewhere"
        )


def mask_command(password: str, *, file: IO[str] | None = None) -> None:
    """Prints the stored form of ``password``, for artemis-users.properties.

    Args:
        password: as read from standard input or a prompt that shows nothing.

    Raises:
        ConfigurationError: the password is empty.
    """
    if not password:
        raise ConfigurationError(WRONG_INSTANCE_VALUE, "the password is empty; give one on standard input")
    stored = hash_password(password, secrets.token_bytes(SALT_BYTES))
    plain_console(file=file).print(stored)
