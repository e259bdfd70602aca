"""``<destinationPolicy>``: what each policyEntry says becomes address-settings.

Classic takes one policyEntry for a destination, the closest; address-settings with several matches fill each other. So
a match says Classic's default wherever a wider one says something else (`restate`).
"""

from dataclasses import replace

from delosmq.config.broker_xml.catalog.address_settings import ADDRESS_SETTING
from delosmq.config.xml_document import XmlElement
from delosmq.migration.activemq_xml.catalog.policies import BASELINE, CHILDREN, DEFAULTS, POLICY
from delosmq.migration.activemq_xml.catalog.rows import RowReader, is_in_effect, size
from delosmq.migration.activemq_xml.conversion_report import RemarkKind
from delosmq.migration.activemq_xml.dead_letters import read_dead_letters
from delosmq.migration.activemq_xml.names import ALL, KINDS, is_wild, match_of, overlap, split_names
from delosmq.migration.activemq_xml.source import Section
from delosmq.migration.activemq_xml.strategies import read_strategies
from delosmq.migration.activemq_xml.target import Settings, Target
from delosmq.model import values

_BY_FUNCTION = [
    *("memoryLimit", "producerFlowControl", "sendFailIfNoSpace", "expireMessagesPeriod", "alwaysRetroactive"),
    *("gcInactiveDestinations", "inactiveTimeoutBeforeGC", "messageGroupMapFactoryType", "queue", "topic"),
]
_CHILD_NAMES = [
    *("dispatchPolicy", "deadLetterStrategy", "pendingMessageLimitStrategy", "messageEvictionStrategy"),
    *("slowConsumerStrategy", "subscriptionRecoveryPolicy", "messageGroupMapFactory", "pendingQueuePolicy"),
    *("pendingSubscriberPolicy", "pendingDurableSubscriberPolicy", "networkBridgeFilterFactory"),
    "messageInterceptorStrategy",
]

_UNSHARED = frozenset(
    row.to for row in (*POLICY.values(), *CHILDREN.values()) if row.queues_only or row.topics_only
) | {"always-retroactive"}
_BROWSE_PAGE = "max-browse-page-size"
_DEAD = ("dead-letter-address", "expiry-address")
# Of no use to topics.
_QUEUES_ALONE = _UNSHARED | {"default-group-buckets"}


class Policies:
    """Reads the entries and keeps what each kind of destination is to have."""

    def __init__(self, broker: Section, target: Target, purge_ms: int) -> None:
        """``purge_ms``: how often the broker looks for inactive destinations; 0 for never."""
        self._remarks = broker.remarks
        self._target = target
        self._purge_ms = purge_ms
        self._reader = RowReader(POLICY, ADDRESS_SETTING, "address-setting", broker.remarks)
        self._lines: dict[tuple[str, str], int] = {}

    def read(self, section: Section) -> None:
        policy_map = section.inner("policyMap")
        if policy_map is None:
            return
        for entries in policy_map.children("policyEntries"):
            for entry in entries.children("policyEntry"):
                self._read_entry(entry)
            entries.close(["policyEntry"])
        default = policy_map.child("defaultEntry")
        if default is not None:
            for entry in default.children("policyEntry"):
                fields = self._fields(entry, "the default policyEntry", is_all=True)
                for kind in KINDS:
                    self._target.policies[kind].setdefault(ALL, _with_page(kind, fields))
                    self._lines.setdefault((kind, ALL), entry.line)
            default.close(["policyEntry"])
        policy_map.close(["policyEntries", "defaultEntry"])

    def _read_entry(self, entry: Section) -> None:
        named = [(kind, entry.attribute(kind)) for kind in KINDS]
        wanted = [(kind, name) for kind, names in named for name in split_names(names)]
        for kind in ("tempQueue", "tempTopic"):
            if entry.element.attributes.get(kind):
                entry.attribute(kind)
                if entry.flag("allowTempDestinationStealing", False):
                    # Nothing but a temporary destination heeds it.
                    self._target.overlays.setdefault(ALL, {})["allow-temp-destination-stealing"] = "true"
                known = {"tempQueue", "tempTopic", "allowTempDestinationStealing"}
                # All that it says may be what is converted.
                if wanted or entry.element.children or not known.issuperset(entry.element.attributes):
                    entry.not_yet(
                        f"a policyEntry for {kind} is left out but for allowTempDestinationStealing: temporary "
                        "destinations have no settings of their own yet"
                    )
                if not wanted:
                    entry.ignore()
                    return
        if not wanted:
            entry.mistake('a policyEntry without queue="..." or topic="..." is left out')
            entry.ignore()
            return
        what = "policyEntry " + ", ".join(f"{kind}={name!r}" for kind, name in wanted)
        fields = self._fields(entry, what, is_all=any(name == ">" for _, name in wanted))
        for kind, name in wanted:
            self._put(entry, kind, name, fields)

    def _put(self, entry: Section, kind: str, name: str, fields: dict[str, str]) -> None:
        try:
            match = match_of(name)
        except ValueError as rule:
            entry.wrong(f"{kind!r} of <policyEntry>", name, str(rule))
            return
        known = self._target.policies[kind]
        if match in known:
            first = self._lines[kind, match]
            entry.impossible(f"a second policyEntry for {kind} {name!r} is left out; join it with line {first}")
            return
        known[match] = _with_page(kind, fields)
        self._lines[kind, match] = entry.line

    def _fields(self, entry: Section, what: str, *, is_all: bool) -> dict[str, str]:
        fields: dict[str, str] = {}
        vm_cursor = _has_vm_cursor(entry)
        retroactive = entry.flag("alwaysRetroactive", False)
        self._read_full_policy(entry, what, fields, vm_cursor=vm_cursor)
        self._read_gc(entry, what, fields)
        self._read_scan(entry, what, is_all=is_all)
        read_dead_letters(entry, what, fields, self._target)
        read_strategies(entry, what, fields, retroactive=retroactive)
        for name, text in entry.attributes().items():
            row = POLICY.get(name)
            if row is None:
                known = [*POLICY, *_BY_FUNCTION]
                Section(_only(entry, name, text), self._remarks).close(known)
                continue
            value = self._reader.read(row, text, entry.line, f"{name!r} of {what}")
            if value is not None:
                fields[row.to] = value
        entry.close(_CHILD_NAMES)
        return fields

    def _read_full_policy(self, entry: Section, what: str, fields: dict[str, str], *, vm_cursor: bool) -> None:
        text = entry.attribute("memoryLimit")
        flow_control = entry.flag("producerFlowControl", True)
        fail = entry.flag("sendFailIfNoSpace", False)
        if text:
            try:
                limit = size(text)
            except ValueError as rule:
                entry.wrong(f"'memoryLimit' of {what}", text, str(rule))
                text = ""
            else:
                text = "" if limit == "0" else limit
        pages = is_in_effect("page-size-bytes", ADDRESS_SETTING)
        if text and not vm_cursor and not pages:
            entry.not_yet(
                f"'memoryLimit' of {what} ({text}) is left out: it bounds what Classic keeps in memory of what it has "
                "on the disk, and nothing pages yet; max-size-bytes bounds all that an address holds"
            )
        elif text:
            fields["max-size-bytes"] = text
        if fail:
            fields["address-full-policy"] = "FAIL"
        elif flow_control and (vm_cursor or "max-size-bytes" not in fields):
            fields["address-full-policy"] = "BLOCK"
        else:
            fields["address-full-policy"] = "PAGE"
        if not flow_control and not pages and not fail and not self._target.fails_when_full:
            entry.different(
                f"producers to {what} wait when memory is full, where Classic spools to the disk: address-full-policy "
                "PAGE acts as BLOCK yet"
            )

    def _read_gc(self, entry: Section, what: str, fields: dict[str, str]) -> None:
        wanted = entry.flag("gcInactiveDestinations", False)
        after = entry.attribute("inactiveTimeoutBeforeGC") or entry.attribute("inactiveTimoutBeforeGC") or "60000"
        entry.attribute("inactiveTimoutBeforeGC")
        if not wanted:
            return
        if self._purge_ms <= 0:
            entry.needless(
                f"'gcInactiveDestinations' of {what} has no effect without schedulePeriodForDestinationPurge of "
                "<broker>, in Classic neither"
            )
            return
        try:
            delay = str(values.at_least(0)(after))
        except ValueError as rule:
            entry.wrong(f"'inactiveTimeoutBeforeGC' of {what}", after, str(rule))
            delay = "60000"
        for thing in ("queues", "addresses"):
            fields[f"auto-delete-{thing}"] = "true"
            fields[f"auto-delete-{thing}-delay"] = delay

    def _read_scan(self, entry: Section, what: str, *, is_all: bool) -> None:
        text = entry.attribute("expireMessagesPeriod")
        if not text:
            return
        try:
            period = values.at_least(0)(text)
        except ValueError as rule:
            entry.wrong(f"'expireMessagesPeriod' of {what}", text, str(rule))
            return
        known = self._target.core.get("message-expiry-scan-period")
        value = str(period or -1)
        if is_all and known in (None, value):
            self._target.core["message-expiry-scan-period"] = value
        elif value != (known or "30000"):
            entry.impossible(
                f"'expireMessagesPeriod' of {what} is left out: one period holds for all addresses, "
                "message-expiry-scan-period of <core>"
            )

    def finish(self) -> None:
        """Puts together what the policies of both kinds say, with Classic's habits under all of it."""
        by_kind = {kind: restate(settings) for kind, settings in self._target.policies.items()}
        queues, topics = by_kind[KINDS[0]], by_kind[KINDS[1]]
        merged = self._target.settings
        merged[ALL] = dict(BASELINE)
        if self._target.block_timeout:
            merged[ALL]["block-timeout"] = self._target.block_timeout
        for match in dict.fromkeys([*queues, *topics]):
            fields = dict(topics.get(match, {}))
            mine = queues.get(match, {})
            self._compare(match, mine, fields, mine_known=match in queues, other_known=match in topics)
            fields.update(mine)
            merged.setdefault(match, {}).update(fields)
        for match, overlay in self._target.overlays.items():
            merged.setdefault(match, {}).update(overlay)
        for settings in merged.values():
            if self._target.discards_dead_letters:
                settings.update({name: "" for name in _DEAD if name in settings})
            if self._target.fails_when_full and "address-full-policy" in settings:
                settings["address-full-policy"] = "FAIL"
            if self._target.block_timeout and settings.get("block-timeout") == DEFAULTS["block-timeout"]:
                settings["block-timeout"] = self._target.block_timeout
            for name in [name for name in settings if not is_in_effect(name, ADDRESS_SETTING)]:
                del settings[name]

    def _compare(
        self, match: str, queues: dict[str, str], topics: dict[str, str], *, mine_known: bool, other_known: bool
    ) -> None:
        shared = [name for name in (*queues, *topics) if name not in _QUEUES_ALONE]
        names = list(dict.fromkeys(name for name in shared if _value(queues, name) != _value(topics, name)))
        if not names:
            return
        if mine_known and other_known:
            self._compare_both(match, topics, names)
            return
        kind, other = (KINDS[0], KINDS[1]) if mine_known else (KINDS[1], KINDS[0])
        self._remarks.add(
            RemarkKind.DIFFERENT,
            self._lines[kind, match],
            f"the policyEntry for {kind}s holds for {other}s of match {match!r} as well, which are the same addresses "
            f"here: {', '.join(names)}",
        )

    def _compare_both(self, match: str, topics: dict[str, str], names: list[str]) -> None:
        """What queues say, or leave at the default, is what holds."""
        lost = [name for name in names if _value(topics, name) != DEFAULTS.get(name, "")]
        for name in lost:
            topics.pop(name, None)
        same = f"which are the same addresses here (match {match!r})"
        if lost:
            self._remarks.add(
                RemarkKind.IMPOSSIBLE,
                self._lines[KINDS[1], match],
                f"the policyEntry for topics has {', '.join(lost)} otherwise than that for queues, {same}: it is left "
                "out for topics; give topics names of their own",
            )
        gained = [name for name in names if name not in lost]
        if gained:
            self._remarks.add(
                RemarkKind.DIFFERENT,
                self._lines[KINDS[0], match],
                f"the policyEntry for queues has {', '.join(gained)} otherwise than that for topics, {same}: it "
                f"holds for both",
            )


def restate(settings: Settings) -> Settings:
    """``settings`` of which each match also says the default of what an overlapping one changes."""
    made: Settings = {}
    wild = [match for match in settings if is_wild(match)]
    for match, fields in settings.items():
        full = dict(fields)
        # Two names without wildcards never meet, and most are such.
        for other in settings if is_wild(match) else wild:
            if other == match or not overlap(other, match):
                continue
            for name, value in settings[other].items():
                default = DEFAULTS.get(name)
                if name not in fields and default is not None and value != default:
                    full[name] = default
        made[match] = full
    return made


def _with_page(kind: str, fields: dict[str, str]) -> dict[str, str]:
    """What a policyEntry says of one kind. Any of queues bounds what browsers see: without one they see everything.

    Source: Classic, QueueRegion.createSubscription and PolicyEntry.configure of a QueueBrowserSubscription.
    """
    return {_BROWSE_PAGE: DEFAULTS[_BROWSE_PAGE], **fields} if kind == KINDS[0] else dict(fields)


def _value(fields: dict[str, str], name: str) -> str:
    return fields.get(name, DEFAULTS.get(name, ""))


def _has_vm_cursor(entry: Section) -> bool:
    """Takes the cursors; whether one of them keeps what is pending in memory only."""
    found = False
    for policy in entry.children("pendingQueuePolicy", "pendingSubscriberPolicy", "pendingDurableSubscriberPolicy"):
        for cursor in policy.children():
            name = cursor.element.name
            if name in ("vmQueueCursor", "vmCursor", "vmDurableCursor"):
                found = True
            elif name not in (
                "storeCursor",
                "fileQueueCursor",
                "fileCursor",
                "storeDurableSubscriberCursor",
                "fileDurableSubscriberCursor",
            ):
                cursor.impossible(f"the cursor <{name}> is left out: it is no part of Classic")
                continue
            cursor.needless(f"<{name}> is not needed: messages are kept in memory and in the journal")
            cursor.ignore()
        policy.close()
    return found


def _only(entry: Section, name: str, text: str) -> XmlElement:
    return replace(entry.element, attributes={name: text}, children=(), text="")
