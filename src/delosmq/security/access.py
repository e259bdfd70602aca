"""Access control of one broker: logins that were verified, and what each role may do."""

import hashlib
import hmac
from dataclasses import dataclass
from typing import Final

from delosmq.model.errors import PermissionDeniedError
from delosmq.model.names import QUEUE_MARK
from delosmq.model.reserved_names import is_the_brokers
from delosmq.model.settings import SecurityMatch, WildcardSyntax
from delosmq.model.wildcard import DEFAULT_SYNTAX, SecurityTable
from delosmq.security.certificates import CertificateUsers

SEND: Final = "send"
CONSUME: Final = "consume"
BROWSE: Final = "browse"
CREATE_ADDRESS: Final = "createAddress"
DELETE_ADDRESS: Final = "deleteAddress"
CREATE_DURABLE_QUEUE: Final = "createDurableQueue"
DELETE_DURABLE_QUEUE: Final = "deleteDurableQueue"
CREATE_NON_DURABLE_QUEUE: Final = "createNonDurableQueue"
DELETE_NON_DURABLE_QUEUE: Final = "deleteNonDurableQueue"
MANAGE: Final = "manage"
VIEW: Final = "view"
EDIT: Final = "edit"

PERMISSIONS: Final = (
    SEND,
    CONSUME,
    BROWSE,
    CREATE_ADDRESS,
    DELETE_ADDRESS,
    CREATE_DURABLE_QUEUE,
    DELETE_DURABLE_QUEUE,
    CREATE_NON_DURABLE_QUEUE,
    DELETE_NON_DURABLE_QUEUE,
    MANAGE,
    VIEW,
    EDIT,
)
"""Every permission type, as written in broker.xml."""

# Entries of each cache before it starts afresh; as Artemis's authentication- and authorization-cache-size.
_CACHE_LIMIT: Final = 1_000


@dataclass(frozen=True)
class Login:
    """A user with a verified password, or certificate.

    Attributes:
        certificate: the distinguished name that named the user; "" for a password.
    """

    user: str
    roles: frozenset[str]
    certificate: str = ""


@dataclass(frozen=True)
class LoginAttempt:
    """A login under way.

    Attributes:
        login: set when this user and password were verified before: nothing is left to do.
        stored: what to verify the password against with `passwords.verify_login`; "" for an unknown user.
        cache_key: stands for user, password and stored form.
        vouched: whether ``login`` is set without any password having been verified.
        certificate: the distinguished name of the peer's certificate, which decides instead of a password; "" for none.
    """

    user: str
    login: Login | None
    stored: str
    cache_key: bytes
    vouched: bool = False
    certificate: str = ""


class AccessControl:
    """Users, roles and permissions of one broker.

    Args:
        users: user -> stored form of the password.
        roles: user -> roles.
        cache_key: 32 random bytes of this run, so that what the cache holds is worthless elsewhere.
        certificates: None when certificates name no users.

    Attributes:
        reloads: how often `reload` was called: what was decided before has to be decided again.
    """

    def __init__(
        self,
        users: dict[str, str],
        roles: dict[str, frozenset[str]],
        security_settings: tuple[SecurityMatch, ...],
        *,
        cache_key: bytes,
        wildcards: WildcardSyntax = DEFAULT_SYNTAX,
        certificates: CertificateUsers | None = None,
    ) -> None:
        self.reloads: int = 0
        self._cache_key = cache_key
        self._wildcards = wildcards
        self._users: dict[str, str] = users
        self._roles: dict[str, frozenset[str]] = roles
        self._certificates: CertificateUsers | None = certificates
        self._table = SecurityTable(security_settings, self._wildcards)
        self._verified: dict[bytes, Login] = {}
        self._trusted: dict[bytes, Login] = {}
        self._roles_by_address: dict[str, dict[str, frozenset[str]]] = {}

    def reload(
        self,
        users: dict[str, str],
        roles: dict[str, frozenset[str]],
        security_settings: tuple[SecurityMatch, ...],
        certificates: CertificateUsers | None = None,
    ) -> None:
        """Replaces everything and forgets every verified login."""
        self.reloads += 1
        self._certificates = certificates
        self._users = users
        self._roles = roles
        self._table = SecurityTable(security_settings, self._wildcards)
        self._verified.clear()
        self._trusted.clear()
        self._roles_by_address.clear()

    def trust(self, user: str, password: str) -> None:
        """Takes a login as verified until `reload`: this process knows the password, so there is nothing to prove."""
        self._trusted[self._key(user, password, self._users.get(user, ""))] = Login(
            user, self._roles.get(user, frozenset())
        )

    def renewed(self, login: Login) -> Login:
        """A login with the roles that its user has by now; none for a user who is gone."""
        if login.certificate:
            found = self._login_by(login.certificate)
            return found if found is not None and found.user == login.user else Login(login.user, frozenset())
        return Login(login.user, self._roles.get(login.user, frozenset()) if login.user in self._users else frozenset())

    def attempt_by(self, certificate: str) -> LoginAttempt | None:
        """A login by the distinguished name of a certificate that was verified; None when certificates name no users,
        or there is none, so that a password is needed. Without ``login`` it names no user, and that is the end."""
        if self._certificates is None or not certificate:
            return None
        login = self._login_by(certificate)
        return LoginAttempt("" if login is None else login.user, login, "", b"", certificate=certificate)

    def _login_by(self, certificate: str) -> Login | None:
        known = self._certificates
        user = "" if known is None else known.user_of(certificate)
        return None if known is None or not user else Login(user, known.roles.get(user, frozenset()), certificate)

    def attempt(self, user: str, password: str) -> LoginAttempt:
        """Starts a login. When ``login`` is not set, verify the password in a worker and call `finish`."""
        stored = self._users.get(user, "")
        key = self._key(user, password, stored)
        login = self._verified.get(key)
        if login is not None:
            return LoginAttempt(user, login, stored, key)
        login = self._trusted.get(key)
        return LoginAttempt(user, login, stored, key, vouched=login is not None)

    def finish(self, attempt: LoginAttempt, verified: bool) -> Login | None:
        """The login, or None when the password is wrong or the user was changed meanwhile."""
        login = self.still_right(attempt) if verified else None
        if login is None:
            return None
        if len(self._verified) >= _CACHE_LIMIT:
            self._verified.clear()
        self._verified[attempt.cache_key] = login
        return login

    def still_right(self, attempt: LoginAttempt) -> Login | None:
        """The login of an attempt that was right, with the roles of now. None when its user was changed or removed
        meanwhile, or when it was vouched for and all was reloaded since."""
        if attempt.certificate:
            login = self._login_by(attempt.certificate)
            return login if login is not None and login.user == attempt.user else None
        if attempt.vouched:
            return self._trusted.get(attempt.cache_key)
        if not attempt.stored or self._users.get(attempt.user, "") != attempt.stored:
            return None
        return Login(attempt.user, self._roles.get(attempt.user, frozenset()))

    def check(self, roles: frozenset[str], address: str, permission: str) -> bool:
        return not self._roles_for(address, permission).isdisjoint(roles)

    def extent(self, login: Login, permission: str) -> str:
        """Whether ``login`` holds ``permission`` on all addresses, on some or on none: `EVERYWHERE`, `SOMEWHERE` or
        `NOWHERE` of `delosmq.model.wildcard`."""
        return self._table.extent(login.roles, permission)

    def require(self, login: Login, address: str, permission: str) -> None:
        """Raises PermissionDeniedError unless ``login`` holds ``permission`` on ``address``."""
        if not self.check(login.roles, address, permission):
            if _is_the_brokers(address, permission):
                raise PermissionDeniedError(
                    "DMQ1002",
                    f"only the broker sends to {address!r}: clients may not; name another destination",
                )
            raise _denied(login, permission, repr(address), "")

    def refusal_for(self, login: Login, queue: str, permission: str) -> PermissionDeniedError:
        """Why a queue may not be used, without its address, of which the user may not know."""
        return _denied(login, permission, f"the address of queue {queue!r}", "")

    def require_queue(self, login: Login, address: str, queue: str, permission: str) -> None:
        """The same for a queue that is made on ``address``. No other address can have a queue of its name then, so the
        permission is asked for that name as well, if it is not the address's: of a match ``address::queue``, or else as
        if the name were an address.
        """
        self.require(login, address, permission)
        if queue == address:
            return
        roles = self._table.roles_of_queue(address, queue, permission)
        if roles is None:
            roles = self._roles_for(queue, permission)
        if roles.isdisjoint(login.roles):
            whole = f"{address}{QUEUE_MARK}{queue}"
            raise _denied(login, permission, f"{queue!r}, the name of the queue", f", for that name or for {whole!r}")

    def _roles_for(self, address: str, permission: str) -> frozenset[str]:
        by_permission = self._roles_by_address.get(address)
        if by_permission is None:
            if len(self._roles_by_address) >= _CACHE_LIMIT:
                self._roles_by_address.clear()
            by_permission = {}
            self._roles_by_address[address] = by_permission
        found = by_permission.get(permission)
        if found is None:
            theirs = not _is_the_brokers(address, permission)
            found = self._table.roles(address, permission) if theirs else frozenset()
            by_permission[permission] = found
        return found

    def _key(self, user: str, password: str, stored: str) -> bytes:
        mac = hmac.new(self._cache_key, None, hashlib.sha256)
        for part in (user, password, stored):
            encoded = part.encode("utf-8", "surrogatepass")
            mac.update(len(encoded).to_bytes(8, "big"))
            mac.update(encoded)
        return mac.digest()


def _is_the_brokers(address: str, permission: str) -> bool:
    return permission == SEND and is_the_brokers(address)


def _denied(login: Login, permission: str, what: str, where: str) -> PermissionDeniedError:
    return PermissionDeniedError(
        "DMQ1001",
        f"user {login.user!r} lacks the permission {permission!r} on {what}; "
        f"grant it to one of the user's roles in security-settings{where}",
    )
