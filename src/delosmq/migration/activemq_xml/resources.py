"""``<systemUsage>`` and ``<persistenceAdapter>``: memory and disk."""

from typing import Final

from delosmq.config.broker_xml.catalog.core import CORE
from delosmq.migration.activemq_xml.catalog.policies import DEFAULTS
from delosmq.migration.activemq_xml.catalog.rows import is_in_effect, page, size
from delosmq.migration.activemq_xml.source import Section
from delosmq.migration.activemq_xml.target import Target
from delosmq.model import values

_JOURNALS: Final = (
    "kahaDB",
    "mKahaDB",
    "levelDB",
    "replicatedLevelDB",
    "journalPersistenceAdapter",
    "amqPersistenceAdapter",
)
_SYNCS: Final = {"enableJournalDiskSyncs": "true", "journalDiskSyncStrategy": "always"}


def read_usage(section: Section, target: Target) -> None:
    usage = section.inner("systemUsage")
    if usage is None:
        return
    if usage.flag("sendFailIfNoSpace", False):
        target.fails_when_full = True
    after = usage.attribute("sendFailIfNoSpaceAfterTimeout")
    if after:
        try:
            wait = page(after)
        except ValueError as rule:
            usage.wrong("'sendFailIfNoSpaceAfterTimeout' of <systemUsage>", after, str(rule))
        else:
            target.block_timeout = "" if wait == DEFAULTS["block-timeout"] else wait
    for name in ("name", "checkLimitsLogLevel"):
        usage.attribute(name)
    for kind in ("memoryUsage", "storeUsage", "tempUsage", "jobSchedulerUsage"):
        for wrapper in usage.children(kind):
            inner = wrapper.inner(kind)
            if inner is not None:
                _read_one(inner, kind, target)
    usage.close(["memoryUsage", "storeUsage", "tempUsage", "jobSchedulerUsage", "sendFailIfNoSpace"])


def _read_one(usage: Section, kind: str, target: Target) -> None:
    for name in ("name", "percentUsageMinDelta", "usagePortion", "pollingTime", "store", "total"):
        usage.attribute(name)
    if kind == "memoryUsage":
        _read_memory(usage, target)
    elif kind == "storeUsage":
        _read_store(usage, target)
    else:
        why = (
            "nothing is spooled to a temporary store" if kind == "tempUsage" else "what is scheduled is in the journal"
        )
        usage.needless(f"<{kind}> is not needed: {why}")
        usage.ignore()
    usage.close(["limit", "percentOfJvmHeap", "percentLimit", "name"])


def _read_memory(usage: Section, target: Target) -> None:
    limit, percent = usage.attribute("limit"), usage.attribute("percentOfJvmHeap")
    name, text = ("global-max-size", limit) if limit else ("global-max-size-percent-of-jvm-max-memory", percent)
    if not text:
        return
    try:
        target.core[name] = size(text) if limit else str(values.percentage_of_at_least(1)(text))
    except ValueError as rule:
        usage.wrong("the limit of <memoryUsage>", text, str(rule))
        return
    if limit:
        if target.core[name] == "0":
            usage.wrong("the limit of <memoryUsage>", text, "at least 1 byte")
            del target.core[name]
            return
        if not is_in_effect("paging-directory", CORE):
            usage.different(
                f"{_when_full(target)} when all messages together come to {text}, those on the disk too: nothing "
                "pages yet"
            )
    else:
        usage.different(f"{text} % is of the memory of the machine or its control group, as there is no heap of a JVM")


def _when_full(target: Target) -> str:
    return "sends fail" if target.fails_when_full else "producers wait"


def _read_store(usage: Section, target: Target) -> None:
    limit, percent = usage.attribute("limit"), usage.attribute("percentLimit")
    if percent and is_in_effect("max-disk-usage", CORE):
        try:
            target.core["max-disk-usage"] = str(values.percentage_of_at_least(1)(percent))
        except ValueError as rule:
            usage.wrong("'percentLimit' of <storeUsage>", percent, str(rule))
    elif limit or percent:
        usage.not_yet(
            f"the limit {limit or percent + ' %'} of <storeUsage> is left out: no setting bounds what the journal "
            f"takes; when the disk is full, {_when_full(target)} and consumers go on"
        )


def read_persistence(section: Section, target: Target) -> None:
    adapter = section.inner()
    if adapter is None:
        return
    name = adapter.element.name
    if name in _JOURNALS:
        for attribute, usual in _SYNCS.items():
            if adapter.attribute(attribute, usual).lower() != usual:
                adapter.different(f"what is confirmed is on the disk first, whatever {attribute!r} says")
        listed = ", ".join(adapter.attributes())
        adapter.needless(
            f"<{name}> is not needed: messages are in the journal of the instance" + (f" ({listed})" if listed else "")
        )
    elif name == "memoryPersistenceAdapter":
        target.core["persistence-enabled"] = "false"
    elif name == "jdbcPersistenceAdapter":
        adapter.impossible(
            "<jdbcPersistenceAdapter> is left out: it keeps messages in a database, which a second broker may take "
            "over; they are in the journal of the instance"
        )
    else:
        adapter.unknown(f"<{name}> is left out: it is no store of Classic")
    adapter.ignore()
