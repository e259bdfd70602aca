"""Instance directories: etc/ has the configuration, data/ the journal."""

import os
import re
import secrets
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from string import ascii_letters, digits
from typing import Final

from delosmq.config.bootstrap import CERTIFICATE_USERS, NAMES_THAT_STOP, load_bootstrap_xml
from delosmq.config.broker_xml import load_broker_xml, names_that_stop
from delosmq.config.findings import (
    NO_INSTANCE,
    NO_USERS,
    ROLES_OF_STRANGERS,
    ROLES_WITHOUT_USER,
    WRONG_INSTANCE_VALUE,
    FindingKind,
    nearest,
)
from delosmq.config.instance_files import ROLES_COMMENT, USERS_COMMENT, bootstrap_xml, broker_xml
from delosmq.config.placeholders import known_properties
from delosmq.config.properties import (
    Entry,
    load_certificate_users,
    load_roles,
    load_users,
    replace_file,
    write_properties,
)
from delosmq.model.errors import ConfigurationError
from delosmq.model.settings import BrokerSettings, WebBind
from delosmq.model.values import comma_separated
from delosmq.security.certificates import CertificateUsers
from delosmq.security.passwords import SALT_BYTES, hash_password
from delosmq.storage.lock import DirectoryLock

# 24 of these 62 letters: 142 bits, out of reach of guessing, and nothing a shell or a URL would stumble over.
_PASSWORD_LETTERS: Final = ascii_letters + digits
_PASSWORD_LENGTH: Final = 24
# Labels as in RFC 1123, and with underscores, which networks of containers have.
_LABEL: Final = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST_NAME: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\.?")
_LONGEST_HOST_NAME: Final = 253
# What a resolver takes for an address, never for a name.
_ONLY_NUMBERS: Final = re.compile(r"[0-9.]+")
_LARGEST_PORT: Final = 65_535
_LEAST_LIKENESS: Final = 0.7
"""Of a name after ``--without`` and one that stops a start: what is less alike misleads."""


@dataclass(frozen=True)
class InstancePaths:
    """Where an instance keeps what."""

    root: Path

    @property
    def etc(self) -> Path:
        return self.root / "etc"

    @property
    def broker_xml(self) -> Path:
        """Acceptors, addresses, settings, permissions."""
        return self.etc / "broker.xml"

    @property
    def bootstrap_xml(self) -> Path:
        """Where the HTTP interface listens."""
        return self.etc / "bootstrap.xml"

    @property
    def users(self) -> Path:
        """Users and the stored forms of their passwords."""
        return self.etc / "artemis-users.properties"

    @property
    def roles(self) -> Path:
        return self.etc / "artemis-roles.properties"

    @property
    def certificate_users(self) -> Path:
        """Users and the distinguished names of their certificates; need not be there."""
        return self.etc / CERTIFICATE_USERS

    @property
    def certificate_roles(self) -> Path:
        """Roles of these users."""
        return self.etc / "cert-roles.properties"

    @property
    def data_directory(self) -> Path:
        """Everything the broker writes, and its lock."""
        return self.root / "data"


@dataclass(frozen=True)
class CreatedInstance:
    """A new instance.

    Attributes:
        password: in plain text, to be shown once and kept nowhere.
        password_is_random: whether it was made just now, and never shown.
    """

    paths: InstancePaths
    user: str
    password: str
    password_is_random: bool
    stomp_host: str
    stomp_port: int
    openwire_port: int
    web: WebBind


@dataclass(frozen=True)
class Instance:
    """What an instance directory says.

    Attributes:
        users: user -> stored form of the password.
        roles: user -> roles.
        web: None when there is no HTTP interface.
        notices: sentences with their codes, to be logged once at start.
        certificates: users that certificates name; None when they name none.
    """

    paths: InstancePaths
    settings: BrokerSettings
    users: dict[str, str]
    roles: dict[str, frozenset[str]]
    web: WebBind | None
    notices: list[str]
    certificates: CertificateUsers | None = None

    def lock(self) -> DirectoryLock:
        """Takes data/ for this process; raises ConfigurationError that names who has it."""
        return DirectoryLock(self.paths.data_directory)


def create_instance(
    directory: Path,
    *,
    user: str = "admin",
    password: str | None = None,
    role: str = "amq",
    name: str = "delosmq",
    host: str = "127.0.0.1",
    stomp_port: int = 61613,
    openwire_port: int = 61616,
    web: WebBind | None = None,
) -> CreatedInstance:
    """Makes an instance directory with one administrator.

    Args:
        password: None makes a random one.
        web: by default 127.0.0.1:8161.

    Raises:
        ConfigurationError: the directory exists and is not empty, can't be written, or a value makes no sense; it
            is left as it was.
    """
    web = WebBind() if web is None else web
    _check_names(user, role, name)
    _check_endpoints(host, stomp_port, openwire_port, web)
    if password == "":
        raise ConfigurationError(
            WRONG_INSTANCE_VALUE, "an empty password keeps no client out; give one, or none to have one made"
        )
    plain = _random_password() if password is None else password
    paths = InstancePaths(directory.absolute())
    existed = _claim(paths.root)
    try:
        paths.etc.mkdir(mode=0o700)
        paths.data_directory.mkdir(mode=0o700)
        replace_file(paths.broker_xml, broker_xml(name, role, host, stomp_port, openwire_port=openwire_port).encode())
        replace_file(paths.bootstrap_xml, bootstrap_xml(web).encode())
        stored = hash_password(plain, secrets.token_bytes(SALT_BYTES))
        write_properties(paths.users, [Entry(user, stored)], USERS_COMMENT)
        write_properties(paths.roles, [Entry(role, user)], ROLES_COMMENT)
        load_instance(paths.root, properties={})
    except BaseException as failure:
        clear_instance(paths, existed)
        if isinstance(failure, OSError):
            message = f"{directory} can't be written: {failure.strerror}; choose another directory or make room"
            raise ConfigurationError("DMQ4033", message) from failure
        raise
    return CreatedInstance(paths, user, plain, password is None, host, stomp_port, openwire_port, web)


def load_instance(
    directory: Path, *, properties: Mapping[str, str] | None = None, without: frozenset[str] = frozenset()
) -> Instance:
    """Reads the instance directory at ``directory``; changes nothing.

    Args:
        properties: what ``${name}`` stands for in its files, beside ``artemis.instance``; by default the environment.
        without: names that are left out although they should stop the start, as `read_without` gives them.

    Raises:
        ConfigurationError: it is no instance directory, or one of its files has mistakes.
    """
    paths = InstancePaths(directory.absolute())
    require_instance(paths, directory)
    known = known_properties(paths.root, os.environ if properties is None else properties)
    loaded = load_broker_xml(paths.broker_xml, instance=paths.root, properties=known, without=without)
    settings, notices = loaded.settings, list(loaded.notices)
    web: WebBind | None = WebBind()
    if paths.bootstrap_xml.exists():
        bootstrap = load_bootstrap_xml(paths.bootstrap_xml, known, without=without)
        web = bootstrap.web
        notices += bootstrap.notices
        more = bootstrap.findings.names(FindingKind.LEFT_OUT)
        settings = replace(settings, left_out=(*settings.left_out, *more))
    users, roles = load_users(paths.users), load_roles(paths.roles)
    certificates = load_certificate_users(paths.certificate_users, paths.certificate_roles)
    found = account_notices(paths, settings, users, roles, certificates)
    notices += [f"{code}: {file}: {sentence}" for file, code, sentence in found]
    return Instance(paths, settings, users, roles, web, notices, certificates)


def require_instance(paths: InstancePaths, directory: Path) -> None:
    """Raises ConfigurationError where there is no instance at ``directory``, as its user wrote it."""
    if paths.broker_xml.exists():
        return
    around = next((above for above in paths.root.parents if os.path.isfile(InstancePaths(above).broker_xml)), None)
    if not directory.exists():
        wrong = f"there is no directory {directory}"
        remedy = f"correct its name, or make one with `delosmq create {directory}`"
    elif not directory.is_dir():
        wrong, remedy = f"{directory} is a file and no instance directory", "correct its name"
    else:
        wrong = f"{directory} is no instance directory: it lacks etc/broker.xml"
        remedy = "put that file there, or make an instance in a new or empty directory with `delosmq create`"
    if around is not None:
        remedy = f"did you mean '{around if directory.is_absolute() else os.path.relpath(around)}'?"
    raise ConfigurationError(NO_INSTANCE, f"{wrong}; {remedy}")


def read_without(written: Iterable[str]) -> frozenset[str]:
    """The names that ``--without NAME,NAME`` options hold.

    Raises:
        ConfigurationError: one is no name that stops a start.
    """
    known = [*names_that_stop(), *NAMES_THAT_STOP]
    names = frozenset(name for text in written for name in comma_separated(text))
    for name in sorted(names):
        if name not in known:
            like = "" if " " in name else nearest(name, known, likeness=_LEAST_LIKENESS)
            remedy = like or "; `delosmq check` lists those in your files, and several are separated by commas"
            raise ConfigurationError(WRONG_INSTANCE_VALUE, f"--without {name}: no such name stops a start{remedy}")
    return names


def account_notices(
    paths: InstancePaths,
    settings: BrokerSettings,
    users: dict[str, str],
    roles: dict[str, frozenset[str]],
    certificates: CertificateUsers | None,
) -> list[tuple[Path, str, str]]:
    """What the files of an instance say together: file, code and sentence."""
    notices: list[tuple[Path, str, str]] = []
    if not users and certificates is None:
        notices.append((paths.users, NO_USERS, "no users, so no client can log in; add one with `delosmq mask`"))
    if strangers := sorted(roles.keys() - users.keys()):
        notices.append((paths.roles, ROLES_OF_STRANGERS, _of_no_use(paths.users, strangers)))
    held = set().union(*roles.values())
    if certificates is not None:
        held = held.union(*certificates.roles.values())
        if strangers := sorted(certificates.roles.keys() - certificates.users()):
            sentence = _of_no_use(paths.certificate_users, strangers)
            notices.append((paths.certificate_roles, ROLES_OF_STRANGERS, sentence))
    return notices + (_role_notices(paths, settings, held) if users or certificates is not None else [])


def _of_no_use(users: Path, strangers: list[str]) -> str:
    return f"not in {users.name}, hence of no use: {', '.join(strangers)}"


def _role_notices(paths: InstancePaths, settings: BrokerSettings, held: set[str]) -> list[tuple[Path, str, str]]:
    """Roles that permissions name and no user has: most of them are misspelt."""
    idle: dict[str, list[str]] = {}
    for entry in settings.security_settings:
        for role in sorted(set().union(*entry.permissions.values()) - held):
            idle.setdefault(role, []).append(entry.match)
    if not idle:
        return []
    named = ", ".join(f"{role!r} (match {', '.join(map(repr, matches))})" for role, matches in sorted(idle.items()))
    sentence = (
        f"permissions are given to roles that no user has: {named}; check how they are spelt, or give them to users in "
        f"{paths.roles.name}"
    )
    return [(paths.broker_xml, ROLES_WITHOUT_USER, sentence)]


def _random_password() -> str:
    return "".join(secrets.choice(_PASSWORD_LETTERS) for _ in range(_PASSWORD_LENGTH))


def _check_names(user: str, role: str, name: str) -> None:
    if ":" in user:  # Source: RFC 7617, section 2
        message = f"the user {user!r} can't be used: over HTTP a name with a colon can't log in; leave the colon out"
        raise ConfigurationError(WRONG_INSTANCE_VALUE, message)
    for what, value in (("user", user), ("role", role), ("name", name)):
        if not value.strip() or value != value.strip() or "," in value or not value.isprintable() or "${" in value:
            message = f"the {what} {value!r} can't be used; give letters, digits and the like, without commas"
            raise ConfigurationError(WRONG_INSTANCE_VALUE, message)


def _check_endpoints(host: str, stomp_port: int, openwire_port: int, web: WebBind) -> None:
    for what in (host, web.host):
        is_name = (
            len(what) <= _LONGEST_HOST_NAME
            and _HOST_NAME.fullmatch(what)
            and (not _ONLY_NUMBERS.fullmatch(what) or _is_ipv4(what))
        )
        if not is_name and not _is_ipv6(what):
            sentence = f"the host {what!r} is neither a host name nor an address; give one such as 127.0.0.1"
            raise ConfigurationError(WRONG_INSTANCE_VALUE, sentence)
    named: dict[int, str] = {}
    for port, what in ((stomp_port, "STOMP"), (openwire_port, "OpenWire"), (web.port, "HTTP")):
        if not 0 <= port <= _LARGEST_PORT:
            raise ConfigurationError(
                WRONG_INSTANCE_VALUE, f"the port {port} is none; give one from 0 to {_LARGEST_PORT}"
            )
        if port in named:
            sentence = f"the port {port} is named for {named[port]} and for {what}; give each a port of its own"
            raise ConfigurationError(WRONG_INSTANCE_VALUE, sentence)
        if port:
            named[port] = what


def _is_ipv4(host: str) -> bool:
    try:
        IPv4Address(host)
    except ValueError:
        return False
    return True


def _is_ipv6(host: str) -> bool:
    try:
        # A zone (fe80::1%eth0) has no place in a URL.
        return not IPv6Address(host).scope_id
    except ValueError:
        return False


def _claim(root: Path) -> bool:
    """Makes the directory ``root``; True when it was there already, and empty."""
    try:
        existed = root.exists()
        root.mkdir(mode=0o755, parents=True, exist_ok=True)
        is_empty = not any(root.iterdir())
    except OSError as failure:
        message = f"{root} can't be made: {failure.strerror}; choose another directory"
        raise ConfigurationError("DMQ4033", message) from failure
    if not is_empty:
        raise ConfigurationError("DMQ4035", f"{root} exists and is not empty; choose a new or an empty directory")
    return existed


def clear_instance(paths: InstancePaths, existed: bool) -> None:
    """Takes away what was made of an instance that could not be made whole."""
    for directory in (paths.etc, paths.data_directory):
        shutil.rmtree(directory, ignore_errors=True)
    if not existed:
        shutil.rmtree(paths.root, ignore_errors=True)
