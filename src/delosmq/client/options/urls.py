"""URLs of brokers: ``tcp://host:61616?jms.useAsyncSend=true&wireFormat.maxInactivityDuration=0``."""

import logging
import re
import ssl
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import urlsplit

from delosmq.client.errors import no_tls, wrong_option, wrong_url
from delosmq.client.options.arguments import demand_text
from delosmq.client.options.option_texts import filled, names, nearest, parameters, parsed
from delosmq.client.options.redelivery_policies import RedeliveryPolicies
from delosmq.sessions.client_errors import ClientOptionError
from delosmq.sessions.openwire.client.options import (
    ClientOptions,
    PrefetchPolicy,
    RedeliveryPolicy,
    WireFormatOptions,
)

_TLS: Final = "ssl"
DEFAULT_PORTS: Final = {"tcp": 61616, _TLS: 61617}
LOCAL: Final = "vm"
"""The scheme of brokers in this process."""

_LOG: Final = logging.getLogger("delosmq.client")
_JMS: Final = "jms."
_PREFETCH: Final = "jms.prefetchPolicy."
_REDELIVERY: Final = "jms.redeliveryPolicy."
_WIRE_FORMAT: Final = "wireFormat."
_TRANSPORT: Final = "transport."
_FAILOVER: Final = "failover:"
_OF_TLS: Final = ("trustStore", "keyStore", "keyStorePassword", "verifyHostName")
_ALL: Final = "jms.prefetchPolicy.all"
_USER: Final = "jms.userName"
_PASSWORD: Final = "jms.password"
_BEFORE_HOST: Final = re.compile("//.*@")
"""User and password, which no error shows."""


@dataclass(frozen=True)
class TransportOptions:
    """Of the socket.

    Attributes:
        connection_timeout_ms: within this the broker has let us in, or has said why not.
        trust_store: a PEM file with the authorities that are believed; "" for those of the system.
        key_store: a PEM file with a certificate and key of our own.
        verify_host_name: the broker's certificate names the host that was asked for.
    """

    connection_timeout_ms: int = 30_000
    tcp_no_delay: bool = True
    keep_alive: bool = False
    trust_store: str = ""
    key_store: str = ""
    key_store_password: str = field(default="", repr=False)
    verify_host_name: bool = True


@dataclass(frozen=True)
class BrokerAddress:
    """Where a broker is.

    Attributes:
        host: of one in this process, its name.
    """

    scheme: str
    host: str
    port: int
    transport: TransportOptions = field(default=TransportOptions(), compare=False)

    def __str__(self) -> str:
        if self.scheme == LOCAL:
            return f"{LOCAL}://{self.host}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


@dataclass(frozen=True)
class FailoverOptions:
    """How a connection is made again.

    Attributes:
        initial_reconnect_delay_ms: between the first two rounds through the list.
        use_exponential_back_off: each delay is the one before, times ``reconnect_delay_exponent``, up to
            ``max_reconnect_delay_ms``.
        max_reconnect_attempts: rounds; -1 for no end.
        startup_max_reconnect_attempts: of the first connection; -1 for the same number.
        warn_after_reconnect_attempts: after each so many rounds the log tells; 0 for never.
        randomize: the list is gone through in any order.
        timeout_ms: so long a caller waits for a connection before the broker is sent anything; -1 for ever.
        priority_backup: a broker with priority is used whenever it is there, even if there is a connection to another.
        priority_uris: of these; "" for the first one of the list.
        priority_addresses: the same.
        backup: connections to other brokers are kept, for when the one in use breaks.
        backup_pool_size: so many, as far as there are brokers.
        update_uris_supported: brokers may name others, which are tried as well.
        reconnect_supported: brokers may send us to another one.
    """

    initial_reconnect_delay_ms: int = 10
    max_reconnect_delay_ms: int = 30_000
    use_exponential_back_off: bool = True
    reconnect_delay_exponent: float = 2.0
    max_reconnect_attempts: int = -1
    startup_max_reconnect_attempts: int = -1
    warn_after_reconnect_attempts: int = 10
    randomize: bool = True
    timeout_ms: int = -1
    priority_backup: bool = False
    priority_uris: str = ""
    priority_addresses: tuple[BrokerAddress, ...] = ()
    backup: bool = False
    backup_pool_size: int = 1
    update_uris_supported: bool = True
    reconnect_supported: bool = True

    def delay_ms(self, rounds: int) -> int:
        """The pause after so many rounds that found no broker."""
        if not self.use_exponential_back_off:
            return self.initial_reconnect_delay_ms
        delay = float(self.initial_reconnect_delay_ms)
        for _ in range(rounds - 1):
            delay = min(delay * self.reconnect_delay_exponent, self.max_reconnect_delay_ms)
        return int(delay)


@dataclass(frozen=True)
class ConnectionPlan:
    """All that is said of a connection.

    Attributes:
        addresses: where a broker is; several with ``failover:``.
        failover: None when a lost connection is lost.
        ssl_context: goes before what the addresses say of TLS.
        redelivery_policies: the one that the URL says, and those that destinations have of their own.
    """

    addresses: tuple[BrokerAddress, ...]
    options: ClientOptions
    failover: FailoverOptions | None = None
    user: str = ""
    password: str = field(default="", repr=False)
    ssl_context: ssl.SSLContext | None = None
    redelivery_policies: RedeliveryPolicies = field(
        default_factory=lambda: RedeliveryPolicies({}, RedeliveryPolicy()), repr=False
    )

    def __str__(self) -> str:
        listed = ",".join(map(str, self.addresses))
        return listed if self.failover is None else f"failover:({listed})"


def plan_of(url: str) -> ConnectionPlan:
    """
    Raises:
        ClientOptionError: DMQ9050 to DMQ9052, DMQ9056.
    """
    demand_text("url", url, "a str such as tcp://localhost:61616")
    if url.startswith(_FAILOVER):
        return _failover_plan(url)
    address, texts = _address_of(url)
    return _plan(url.partition("?")[0], (address,), texts, None)


def addresses_named(text: str, plan: ConnectionPlan) -> tuple[BrokerAddress, ...]:
    """Brokers as a broker names them, separated by commas.

    Left out are those of a scheme that the plan does not have, as a client that wants TLS is not led elsewhere, and
    what is no address."""
    found: list[BrokerAddress] = []
    for one in text.split(","):
        try:
            address, _ = _address_of(one.strip().partition("?")[0])
        except ClientOptionError as error:
            _LOG.warning(f"DMQ9077: a broker names another one in a way that is not understood: {error.message}")
            continue
        like = next((listed for listed in plan.addresses if listed.scheme == address.scheme), None)
        if like is None:
            _LOG.warning(
                f"DMQ9078: a broker names {address}, which is not used, as {plan} has no {address.scheme}:// in it; add"
                " it there if it is right"
            )
            continue
        found.append(replace(address, transport=like.transport))
    return tuple(found)


def _failover_plan(url: str) -> ConnectionPlan:
    """``failover:(tcp://a:61616,tcp://b:61616?transport.keepAlive=true)?randomize=false&jms.useAsyncSend=true``."""
    inner = url.removeprefix(_FAILOVER).removeprefix("//")
    query = ""
    if inner.startswith("("):
        inner, closing, query = inner[1:].partition(")")
        if not closing or (query and not query.startswith("?")):
            raise wrong_url(_FAILOVER, "write failover:(tcp://a:61616,tcp://b:61616)?option=value.")
    listed = [one.strip() for one in inner.split(",") if one.strip()]
    if not listed:
        raise wrong_url(_FAILOVER, "it lists no broker; write failover:(tcp://a:61616,tcp://b:61616).")
    texts: dict[str, str] = {}
    addresses: list[BrokerAddress] = []
    for one in listed:
        address, of_one = _address_of(one)
        addresses.append(address)
        texts.update(of_one)
    texts.update(parameters("failover", query.removeprefix("?")))
    own = names(FailoverOptions(), "")
    failover = filled(FailoverOptions(), {name: texts.pop(name) for name in own if name in texts}, "", "failover")
    priority = [_address_of(one.strip())[0] for one in failover.priority_uris.split(",") if one.strip()]
    failover = replace(
        failover,
        priority_addresses=tuple(priority),
        priority_backup=failover.priority_backup or bool(priority),
    )
    return _plan(f"failover:({','.join(map(str, addresses))})", tuple(addresses), texts, failover)


def _plan(
    shown: str, addresses: tuple[BrokerAddress, ...], texts: dict[str, str], failover: FailoverOptions | None
) -> ConnectionPlan:
    """
    Args:
        texts: all options but those of the sockets, which belong to the addresses.
    """
    user, password = texts.pop(_USER, ""), texts.pop(_PASSWORD, "")
    _refuse_unknown(shown, texts, () if failover is None else names(failover, ""))
    transport = {name: text for name, text in texts.items() if _is_transport(name)}
    if not any(address.scheme == _TLS for address in addresses):
        _refuse_tls(shown, transport)
    others = {name: text for name, text in texts.items() if not _is_transport(name)}
    placed = {one: replace(one, transport=_transport(shown, one.transport, transport)) for one in addresses}
    if failover is not None:
        priority = tuple(placed.get(one, one) for one in failover.priority_addresses)
        failover = replace(failover, priority_addresses=priority)
    return ConnectionPlan(tuple(placed.values()), _options(shown, others), failover, user, password)


def _transport(shown: str, options: TransportOptions, texts: dict[str, str]) -> TransportOptions:
    named = {_TRANSPORT + name.removeprefix(_TRANSPORT): text for name, text in texts.items()}
    return filled(options, named, _TRANSPORT, shown)


def _address_of(url: str) -> tuple[BrokerAddress, dict[str, str]]:
    """Where a broker is, and the options behind it but for those of its socket."""
    shown = _BEFORE_HOST.sub("//", url.partition("?")[0])
    try:
        split = urlsplit(url)
        port = split.port
    except ValueError as error:
        raise wrong_url(shown, f"{error}; write tcp://host:port.") from None
    if split.scheme not in (*DEFAULT_PORTS, LOCAL):
        near = nearest(split.scheme, (*DEFAULT_PORTS, LOCAL))
        meant = f"did you mean {near}://?" if near else "write tcp://host:port, or ssl://host:port for TLS."
        raise wrong_url(shown, f"the scheme '{split.scheme}' is not known; {meant}")
    if split.scheme == LOCAL:
        if not split.netloc:
            raise wrong_url(shown, f"it names no broker; write {LOCAL}://NAME, as vm_url of the broker says.")
    elif not split.hostname:
        raise wrong_url(shown, f"it names no host; write {split.scheme}://host:{DEFAULT_PORTS[split.scheme]}.")
    elif port == 0:
        meant = f"{split.scheme}://{split.hostname}:{DEFAULT_PORTS[split.scheme]}"
        raise wrong_url(shown, f"port 0 is none to connect to; write {meant}.")
    if split.username is not None or split.password is not None:
        raise wrong_url(f"{split.scheme}://...", "it holds a user; say user= and password=, or jms.userName= in it.")
    if split.path not in ("", "/"):
        raise wrong_url(shown, f"leave out '{split.path}'.")
    if split.fragment:
        raise wrong_url(shown, "what follows a '#' is no part of it; write %23 for a '#' in a value.")
    texts = parameters(shown, split.query)
    _refuse_unknown(shown, texts, ())
    transport = {name: text for name, text in texts.items() if _is_transport(name)}
    if split.scheme != _TLS:
        _refuse_tls(shown, transport)
    if split.scheme == LOCAL:
        address = BrokerAddress(LOCAL, split.netloc, 0)
    else:
        address = BrokerAddress(split.scheme, split.hostname or "", port or DEFAULT_PORTS[split.scheme])
    placed = replace(address, transport=_transport(shown, address.transport, transport))
    return placed, {name: text for name, text in texts.items() if name not in transport}


def _options(shown: str, texts: dict[str, str]) -> ClientOptions:
    sorted_out: dict[str, dict[str, str]] = {prefix: {} for prefix in (_PREFETCH, _REDELIVERY, _WIRE_FORMAT, _JMS)}
    prefetch = PrefetchPolicy()
    for name, text in texts.items():
        if name == _ALL:
            number = parsed(shown, name, text, "queue_prefetch", int)
            assert isinstance(number, int)  # by its kind
            prefetch = PrefetchPolicy(number, number, number, number, number)
            continue
        sorted_out[next(prefix for prefix in sorted_out if name.startswith(prefix))][name] = text
    return replace(
        filled(ClientOptions(), sorted_out[_JMS], _JMS, shown),
        prefetch_policy=filled(prefetch, sorted_out[_PREFETCH], _PREFETCH, shown),
        redelivery_policy=filled(RedeliveryPolicy(), sorted_out[_REDELIVERY], _REDELIVERY, shown),
        wire_format=filled(WireFormatOptions(), sorted_out[_WIRE_FORMAT], _WIRE_FORMAT, shown),
    )


def _refuse_unknown(shown: str, texts: dict[str, str], more: Iterable[str]) -> None:
    """Looks among the names of all kinds, as a prefix may be mistyped as well."""
    known = {
        *more,
        *names(ClientOptions(), _JMS),
        *names(PrefetchPolicy(), _PREFETCH),
        *names(RedeliveryPolicy(), _REDELIVERY),
        *names(WireFormatOptions(), _WIRE_FORMAT),
        *names(TransportOptions(), _TRANSPORT),
        *(_ALL, _USER, _PASSWORD),
    }
    for name in texts:
        if name not in known and _TRANSPORT + name not in known:
            raise wrong_option(shown, name, nearest(name, known))


def _refuse_tls(shown: str, texts: Iterable[str]) -> None:
    """A program that names a certificate believes that there is TLS."""
    for name in texts:
        if name.removeprefix(_TRANSPORT) in _OF_TLS:
            raise no_tls(shown, name)


def _is_transport(name: str) -> bool:
    return name.startswith(_TRANSPORT) or "." not in name
