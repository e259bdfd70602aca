"""Users and permissions: simpleAuthenticationPlugin and authorizationPlugin.

Classic adds up the roles of all entries that match a destination; of security-settings, the most specific match decides
alone. So a match is given the roles of all entries that cover it.
"""

from typing import Final

from delosmq.migration.activemq_xml.conversion_report import RemarkKind
from delosmq.migration.activemq_xml.names import (
    ALL,
    KINDS,
    QUEUE,
    TOPIC,
    covers,
    is_wild,
    match_of,
    overlap,
    split_names,
)
from delosmq.migration.activemq_xml.source import Section, is_open
from delosmq.migration.activemq_xml.target import Target
from delosmq.model import values
from delosmq.model.names import QUEUE_MARK
from delosmq.security import access

_RIGHTS: Final = ("read", "write", "admin")
_CREATION: Final = (
    access.CREATE_ADDRESS,
    access.DELETE_ADDRESS,
    access.CREATE_DURABLE_QUEUE,
    access.DELETE_DURABLE_QUEUE,
    access.CREATE_NON_DURABLE_QUEUE,
    access.DELETE_NON_DURABLE_QUEUE,
)
_PERMISSIONS: Final[dict[str, tuple[str, ...]]] = {
    "read": (access.CONSUME, access.BROWSE),
    "write": (access.SEND,),
    "admin": _CREATION,
}
# A subscription is a queue of its own here.
_SUBSCRIBING: Final = _CREATION[2:]
_EVERYBODY: Final = "*"
_MAKING_TEMPORARY: Final = (access.CREATE_ADDRESS, access.CREATE_NON_DURABLE_QUEUE)
_TEMPORARY: Final = "temporary"
# What is asked of STOMP clients beside: their temporary destinations are such addresses.
_STOMP_TEMPORARY: Final = ("temp-queue.#", "temp-topic.#")
# Never queues.
_ADVISORIES: Final = "ActiveMQ.Advisory."

Entry = dict[str, frozenset[str]]
"""Right -> roles."""


class ConvertedAccounts:
    """Collects users, roles and permissions, and puts them together once all plugins are read.

    Args:
        administrator, role: of the user that the new instance has in any case.
    """

    def __init__(self, target: Target, administrator: str, role: str) -> None:
        self._target = target
        self._administrator = administrator
        self._role = role
        self._entries: dict[str, dict[str, Entry]] = {kind: {} for kind in KINDS}
        self._lines: dict[str, int] = {}
        self._wild: list[str] = []
        self._default: Entry = {}
        # None: all users may do everything with temporary destinations.
        self._temporary: Entry | None = None
        self._has_authorization = False
        self.has_authentication = False

    def read_simple_authentication(self, plugin: Section) -> None:
        self.has_authentication = True
        if plugin.flag("anonymousAccessAllowed", False):
            sentence = "'anonymousAccessAllowed' is left out: a login is always required; give each client a user"
            plugin.impossible(sentence)
        for name in ("anonymousUser", "anonymousGroup"):
            plugin.attribute(name)
        for users in plugin.children("users"):
            for user in users.children("authenticationUser"):
                self._read_user(user)
            users.close(["authenticationUser"])
        for name in ("userPasswords", "userGroups"):
            for wrapper in plugin.children(name):
                wrapper.impossible(f"<{name}> is left out: write its users as <authenticationUser> and convert again")
                wrapper.ignore()
        plugin.close(["users", "anonymousAccessAllowed", "anonymousUser", "anonymousGroup"])

    def _read_user(self, section: Section) -> None:
        name = section.attribute("username")
        password = section.raw("password")
        groups = values.comma_separated(section.attribute("groups"))
        section.close(["username", "password", "groups"])
        if not name or not is_usable(name) or not all(is_usable(group) for group in groups):
            sentence = f"the user {name!r} is left out: its name or a group can't be used; give letters and digits"
            section.mistake(sentence)
            return
        if not password or is_open(password):
            section.mistake(
                f"the user {name!r} is left out: its password is not there; give it in a file with --properties FILE, "
                "or add the user with `delosmq mask`"
            )
            return
        if name in self._target.users:
            section.mistake(f"the user {name!r} is there twice; the first one counts")
            return
        self._target.users[name] = password
        for group in groups:
            self._target.roles.setdefault(group, []).append(name)

    def read_authorization(self, plugin: Section) -> None:
        self._has_authorization = True
        wrapper = plugin.inner("map")
        authorization = None if wrapper is None else wrapper.inner("authorizationMap")
        if authorization is None:
            sentence = (
                "the map of <authorizationPlugin> is left out: only <authorizationMap> can be converted, so no user "
            )
            plugin.impossible(f"{sentence}but the administrator may do anything")
            self._temporary = {right: frozenset() for right in _RIGHTS}
            return
        for entries in authorization.children("authorizationEntries"):
            for entry in entries.children("authorizationEntry"):
                self._read_entry(entry)
            entries.close(["authorizationEntry"])
        for default in authorization.children("defaultEntry"):
            for entry in default.children("authorizationEntry"):
                self._default = self._rights(entry)
                entry.close(_RIGHTS)
            default.close(["authorizationEntry"])
        for wrapper in authorization.children("tempDestinationAuthorizationEntry"):
            # Its content stands in an element of the same name, or directly in it.
            for temporary in wrapper.children("tempDestinationAuthorizationEntry") or [wrapper]:
                self._temporary = self._rights(temporary)
                if self._temporary["read"] or self._temporary["write"]:
                    temporary.different(
                        "'read' and 'write' of <tempDestinationAuthorizationEntry> are asked of STOMP clients only: of "
                        "temporary destinations of others, only their maker consumes, and all who know the name sends"
                    )
                temporary.close(_RIGHTS)
            wrapper.close(["tempDestinationAuthorizationEntry"])
        authorization.attribute("groupClass")
        authorization.close(["authorizationEntries", "defaultEntry", "tempDestinationAuthorizationEntry"])

    def _rights(self, entry: Section) -> Entry:
        entry.attribute("groupClass")
        rights: Entry = {}
        for right in _RIGHTS:
            roles = values.comma_separated(entry.attribute(right))
            usable = frozenset(role for role in roles if is_usable(role))
            for role in sorted(set(roles) - usable):
                entry.wrong(f"{right!r} of <authorizationEntry>", role, "a role of letters and digits")
            rights[right] = usable
        return rights

    def _read_entry(self, entry: Section) -> None:
        named = [(kind, name) for kind in KINDS for name in split_names(entry.attribute(kind))]
        rights = self._rights(entry)
        entry.close([*KINDS, *_RIGHTS])
        if not named:
            entry.mistake('an <authorizationEntry> without queue="..." or topic="..." is left out')
        for kind, name in named:
            try:
                match = match_of(name)
            except ValueError as rule:
                entry.wrong(f"{kind!r} of <authorizationEntry>", name, str(rule))
                continue
            known = self._entries[kind].setdefault(match, {})
            self._lines[match] = entry.line
            for right, roles in rights.items():
                known[right] = known.get(right, frozenset()) | roles

    def finish(self, section: Section) -> None:
        """Gives the target its administrator and its permissions.

        Args:
            section: the broker.
        """
        target = self._target
        target.roles.setdefault(self._role, []).append(self._administrator)
        permissions = target.permissions
        if not self._has_authorization:
            if target.users:
                # All who could log in could do anything.
                everyone = self._role_of_everybody()
                permissions[ALL] = {
                    name: [everyone] for name in (*_PERMISSIONS["read"], *_PERMISSIONS["write"], *_CREATION)
                }
        else:
            self._add_up(section)
        permissions.setdefault(ALL, {})
        for match, granted in permissions.items():
            for permission in access.PERMISSIONS if QUEUE_MARK not in match else tuple(granted):
                roles = granted.setdefault(permission, [])
                roles[:] = [self._role, *(role for role in roles if role != self._role)]

    def _role_of_everybody(self) -> str:
        name = "everybody"
        while name in self._target.roles:
            name += "-"
        self._target.roles[name] = list(self._target.users)
        return name

    def _add_up(self, section: Section) -> None:
        matches = dict.fromkeys(match for entries in self._entries.values() for match in entries)
        self._wild = [match for match in matches if is_wild(match)]
        administrators = [
            role for entries in self._entries.values() for role in entries.get(ALL, {}).get("admin", frozenset())
        ]
        everybody = ""
        if any(_EVERYBODY in roles for roles in self._all_roles()):
            everybody = self._role_of_everybody()
        for match in matches:
            by_kind = {kind: self._rights_of(kind, match) for kind in KINDS}
            permissions: dict[str, list[str]] = {}
            for kind, rights in by_kind.items():
                for right, roles in rights.items():
                    named = sorted(everybody if role == _EVERYBODY else role for role in roles)
                    given = _PERMISSIONS[right]
                    if right == "read" and kind == TOPIC:
                        given += _SUBSCRIBING
                    for permission in given:
                        known = permissions.setdefault(permission, [])
                        known += [role for role in named if role not in known]
            # A user that could make and delete everything could look at it too: Classic's console asked for no more.
            for permission in (access.VIEW, access.EDIT) if administrators else ():
                named = sorted(everybody if role == _EVERYBODY else role for role in administrators)
                permissions[permission] = list(dict.fromkeys(named))
            self._target.permissions[match] = permissions
            subscribers = permissions.get(access.CREATE_DURABLE_QUEUE)
            if subscribers and match in self._entries[TOPIC]:
                # Classic asks nothing about the names of subscriptions.
                names = f"{match}{QUEUE_MARK}{ALL}"
                self._target.permissions[names] = {access.CREATE_DURABLE_QUEUE: list(subscribers)}
            self._compare(section, match, by_kind)
            self._note_overlaps(section, match)
            self._note_dead_letters(section, match)
        self._permit_temporary(section, everybody)

    def _permit_temporary(self, section: Section, everybody: str) -> None:
        """Who may make temporary destinations: a match of their own, as their names have no word in common."""
        words = {match.partition(".")[0] for match in self._target.permissions}
        namespace = _TEMPORARY
        while namespace in words:
            namespace += "-"
        self._target.core["temporary-queue-namespace"] = namespace
        match = f"{namespace}.{ALL}"
        rights: dict[str, list[str]] = {}
        if self._temporary is None:
            everybody = everybody or self._role_of_everybody()
            rights = {right: [everybody] for right in _RIGHTS}
            section.different(
                f"all users may make temporary destinations, as in Classic: the role {everybody!r}, which match "
                f"{match!r} of security-settings names, has all users of the file; give it to users that you add"
            )
        else:
            if not everybody and any(_EVERYBODY in roles for roles in self._temporary.values()):
                everybody = self._role_of_everybody()
            for right, roles in self._temporary.items():
                rights[right] = sorted({everybody if role == _EVERYBODY else role for role in roles})
        permissions = self._target.permissions
        permissions[match] = {permission: list(rights["admin"]) for permission in _MAKING_TEMPORARY}
        if any("STOMP" in acceptor.url for acceptor in self._target.acceptors):
            for match in _STOMP_TEMPORARY:
                using = permissions.setdefault(match, {})
                for right in ("read", "write"):
                    for permission in _PERMISSIONS[right]:
                        using[permission] = list(dict.fromkeys([*using.get(permission, ()), *rights[right]]))

    def _note_dead_letters(self, section: Section, match: str) -> None:
        """Permissions for queues of dead letters, which are asked of their address."""
        head = match.partition(ALL)[0].partition("*")[0]
        for queues in self._target.dead_letter_queues:
            address = queues.address
            named = queues.has(match) if head == match else head.startswith(queues.prefix) and head != queues.prefix
            # Without a prefix any match may be meant, and most are not.
            if not named or (not queues.prefix and head != match) or covers(match, address):
                continue
            section.remarks.add(
                RemarkKind.IMPOSSIBLE,
                self._lines[match],
                f"the permissions of match {match!r} do not hold for dead letters: rights to all their queues are "
                f"asked of their address, {address!r}; write a <security-setting match={address!r}> for roles that "
                "are to have them",
            )

    def _all_roles(self) -> list[frozenset[str]]:
        entries = [rights for kind in self._entries.values() for rights in kind.values()]
        return [roles for rights in (*entries, self._default) for roles in rights.values()]

    def _rights_of(self, kind: str, match: str) -> Entry:
        total = dict(self._default)
        entries = self._entries[kind]
        for other in (*self._wild, match):
            if other in entries and covers(other, match):
                for right, roles in entries[other].items():
                    total[right] = total.get(right, frozenset()) | roles
        return total

    def _compare(self, section: Section, match: str, by_kind: dict[str, Entry]) -> None:
        if match.startswith(_ADVISORIES):
            return
        queues, topics = by_kind[QUEUE], by_kind[TOPIC]
        differing = [right for right in _RIGHTS if queues.get(right, frozenset()) != topics.get(right, frozenset())]
        if not differing:
            return
        same = f"queues and topics of match {match!r} are the same addresses here"
        rights = ", ".join(differing)
        if all(match in entries for entries in self._entries.values()):
            section.remarks.add(
                RemarkKind.IMPOSSIBLE,
                self._lines[match],
                f"{same}, so who may {rights} the one may the other: that the entries differ is left out; give topics "
                "names of their own",
            )
        else:
            sentence = (
                f"{same}, so who may {rights} the one may the other; give topics names of their own if it matters"
            )
            section.remarks.add(RemarkKind.DIFFERENT, self._lines[match], sentence)

    def _note_overlaps(self, section: Section, match: str) -> None:
        if not is_wild(match):
            return
        crossing = [
            other
            for other in self._wild
            if other > match and overlap(other, match) and not covers(other, match) and not covers(match, other)
        ]
        if crossing:
            section.remarks.add(
                RemarkKind.IMPOSSIBLE,
                self._lines[match],
                f"names of both {match!r} and {', '.join(map(repr, crossing))} have the permissions of the more "
                "specific match only, where Classic adds them up; add a match for them",
            )


def is_usable(name: str) -> bool:
    """Whether it can be a user or a role."""
    return name == name.strip() and "," not in name and name.isprintable() and "${" not in name
