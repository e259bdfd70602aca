"""Reload of the configuration: which changes a running broker takes over, and which wait for a restart.

Source: Artemis manual, "Configuration Reload", for what its users expect to be taken over.
"""

from dataclasses import dataclass, fields, replace
from typing import Final

from delosmq.model.declared.address import LIVE_SETTINGS
from delosmq.model.settings import CORE_SETTINGS, JOURNAL_SETTINGS, AddressMatch, BrokerSettings, JournalSettings

_TAKEN_OVER: Final = sorted(
    {"address_settings", "security_settings", "addresses", "queues", "left_out"}
    | {name for name, setting in CORE_SETTINGS.items() if setting.live}
)
_WRITTEN: Final = {
    **{name: setting.written for name, setting in CORE_SETTINGS.items()},
    "wildcards": "wildcard-addresses",
    "database": "store",
    "left_out": "names that --without leaves out",
}
"""Fields of `BrokerSettings` as broker.xml writes them, where that is not their name with ``-`` for ``_``."""


@dataclass(frozen=True)
class ReloadPlan:
    """What becomes of a reload.

    Attributes:
        settings: to be in force from now on.
        changed: what the broker takes over, as broker.xml names it.
        waiting: what changed and waits for a restart, likewise.
        removed: addresses and queues that broker.xml does not name any more; they stay.
    """

    settings: BrokerSettings
    changed: list[str]
    waiting: list[str]
    removed: list[str]


def plan_reload(present: BrokerSettings, wanted: BrokerSettings) -> ReloadPlan:
    """Compares what is in force with what the files say now."""
    matches, waiting = _merged(present.address_settings, wanted.address_settings)
    for field in fields(BrokerSettings):
        name = field.name
        if name == "journal":
            waiting += _changed_of_journal(present.journal, wanted.journal)
        elif name not in _TAKEN_OVER and getattr(present, name) != getattr(wanted, name):
            waiting.append(_WRITTEN.get(name, name.replace("_", "-")))
    taken_over = {name: getattr(wanted, name) for name in _TAKEN_OVER}
    settings = replace(present, **{**taken_over, "address_settings": matches})
    changed = [
        _WRITTEN.get(name, name.replace("_", "-"))
        for name in _TAKEN_OVER
        if getattr(present, name) != getattr(settings, name)
    ]
    kept_addresses = {one.name for one in wanted.addresses} | {one.address for one in wanted.queues}
    kept_queues = {one.name for one in wanted.queues}
    removed = [f"queue '{one.name}'" for one in present.queues if one.name not in kept_queues]
    removed += [f"address '{one.name}'" for one in present.addresses if one.name not in kept_addresses]
    return ReloadPlan(settings, changed, waiting, removed)


def _changed_of_journal(present: JournalSettings, wanted: JournalSettings) -> list[str]:
    """Settings of the journal that differ. In memory there is none, whatever else is said of it."""
    if bool(present.directory) != bool(wanted.directory):
        return ["persistence-enabled"]
    names = {"directory": "journal-directory", **{name: one.written for name, one in JOURNAL_SETTINGS.items()}}
    return [written for name, written in names.items() if getattr(present, name) != getattr(wanted, name)]


def _merged(
    present: tuple[AddressMatch, ...], wanted: tuple[AddressMatch, ...]
) -> tuple[tuple[AddressMatch, ...], list[str]]:
    """The wanted matches, but of fields that can't change those in force; and the names of these."""
    before, after = _by_match(present), _by_match(wanted)
    merged: dict[str, dict[str, object]] = {}
    waiting: list[str] = []
    for match in dict.fromkeys((*after, *before)):
        old, new = before.get(match, {}), after.get(match, {})
        fixed = {name: value for name, value in old.items() if name not in LIVE_SETTINGS}
        merged[match] = {**fixed, **{name: value for name, value in new.items() if name in LIVE_SETTINGS}}
        for name in sorted(name for name in old.keys() | new.keys() if name not in LIVE_SETTINGS):
            if old.get(name) != new.get(name):
                waiting.append(f"{name.replace('_', '-')} of address-setting '{match}'")
    return tuple(AddressMatch(match, said) for match, said in merged.items() if said or match in after), waiting


def _by_match(entries: tuple[AddressMatch, ...]) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = {}
    for entry in entries:
        found.setdefault(entry.match, {}).update(entry.fields)
    return found
