"""The other children of a policyEntry: strategies and policies, each a wrapper around one bean."""

from typing import Final
from urllib.parse import parse_qsl

from delosmq.config.broker_xml.catalog.address_settings import ADDRESS_SETTING
from delosmq.migration.activemq_xml.catalog.policies import CHILDREN
from delosmq.migration.activemq_xml.catalog.rows import RowReader
from delosmq.migration.activemq_xml.source import Section, is_bean, note_java
from delosmq.model import values

_SAME_FOR_ALL: Final = ("roundRobinDispatchPolicy", "simpleDispatchPolicy", "strictOrderDispatchPolicy")
_EVICTION: Final = {
    "oldestMessageEvictionStrategy": "oldest",
    "oldestMessageWithLowestPriorityEvictionStrategy": "lowest-priority",
    "uniquePropertyMessageEvictionStrategy": "unique-property",
}
_BUCKETS: Final = 1024
_HISTORY: Final = {"fixedCountSubscriptionRecoveryPolicy": "100", "lastImageSubscriptionRecoveryPolicy": "1"}
_KEEPS: Final = frozenset(f"subscription-recovery-{what}" for what in ("count", "duration", "size", "retained"))
_SLOW_MS: Final = "30000"


def read_strategies(entry: Section, what: str, fields: dict[str, str], *, retroactive: bool) -> None:
    """Reads them into ``fields``.

    Args:
        retroactive: each topic consumer gets what a subscriptionRecoveryPolicy keeps.
    """
    reader = _Strategies(entry, what, fields)
    reader.dispatch()
    reader.pending_limit()
    reader.eviction()
    reader.slow_consumers()
    reader.recovery(retroactive=retroactive)
    reader.groups()
    reader.rest()


class _Strategies:
    def __init__(self, entry: Section, what: str, fields: dict[str, str]) -> None:
        self._entry = entry
        self._what = what
        self._fields = fields
        self._remarks = entry.remarks
        self._reader = RowReader(CHILDREN, ADDRESS_SETTING, "address-setting", entry.remarks)

    def _bean(self, wrapper: str) -> Section | None:
        section = self._entry.child(wrapper)
        return None if section is None else section.inner()

    def _put(self, name: str, text: str, line: int, called: str) -> None:
        row = CHILDREN[name]
        value = self._reader.read(row, text, line, f"{called} of {self._what}")
        if value is not None:
            self._fields[row.to] = value

    def _attribute(self, bean: Section, attribute: str, default: str) -> None:
        """The attribute of a bean that has a row of its own."""
        name = f"{bean.element.name}@{attribute}"
        self._put(name, bean.attribute(attribute, default), bean.line, f"{attribute!r} of <{bean.element.name}>")

    def _unknown(self, bean: Section) -> None:
        if is_bean(bean.element):
            note_java(self._remarks, bean.element, self._what)
            bean.ignore()
            return
        bean.unknown(f"<{bean.element.name}> of {self._what} is left out: it is no bean of Classic")
        bean.ignore()

    def _needless(self, bean: Section, why: str) -> None:
        bean.needless(f"<{bean.element.name}> of {self._what} is not needed: {why}")
        bean.ignore()

    def dispatch(self) -> None:
        bean = self._bean("dispatchPolicy")
        if bean is None:
            return
        name = bean.element.name
        if name in _SAME_FOR_ALL:
            self._needless(bean, "each subscription of a topic has a queue of its own, in the order of the topic")
        elif name in ("priorityDispatchPolicy", "priorityNetworkDispatchPolicy"):
            self._put("priorityDispatchPolicy", "priority", bean.line, f"<{name}>")
        elif name == "clientIdFilterDispatchPolicy":
            bean.impossible(
                f"<{name}> of {self._what} is left out: it gives messages of a topic to one client id; use a selector"
            )
            bean.ignore()
        else:
            self._unknown(bean)
        bean.close()

    def pending_limit(self) -> None:
        bean = self._bean("pendingMessageLimitStrategy")
        if bean is None:
            return
        if bean.element.name == "constantPendingMessageLimitStrategy":
            self._attribute(bean, "limit", "-1")
        elif bean.element.name == "prefetchRatePendingMessageLimitStrategy":
            self._attribute(bean, "multiplier", "0.5")
        else:
            self._unknown(bean)
        bean.close(["limit", "multiplier"])

    def eviction(self) -> None:
        bean = self._bean("messageEvictionStrategy")
        if bean is None:
            return
        name = bean.element.name
        if name in _EVICTION:
            self._put("messageEvictionStrategy", _EVICTION[name], bean.line, f"<{name}>")
        else:
            self._unknown(bean)
        if name == "uniquePropertyMessageEvictionStrategy":
            self._attribute(bean, "propertyName", "")
        for tuning in ("evictExpiredMessagesHighWatermark", "expiryCheckEnabled"):
            if bean.attribute(tuning):
                bean.needless(f"{tuning!r} of <{name}> is not needed: expired messages go by themselves")
        bean.close(["propertyName", "evictExpiredMessagesHighWatermark", "expiryCheckEnabled"])

    def slow_consumers(self) -> None:
        bean = self._bean("slowConsumerStrategy")
        if bean is None:
            return
        name = bean.element.name
        if name not in ("abortSlowConsumerStrategy", "abortSlowAckConsumerStrategy"):
            self._unknown(bean)
            return
        is_ack = name == "abortSlowAckConsumerStrategy"
        period = bean.attribute("checkPeriod", _SLOW_MS)
        duration, count = bean.attribute("maxSlowDuration", _SLOW_MS), bean.attribute("maxSlowCount", "-1")
        told = len(self._fields)
        if is_ack:
            self._silent(bean, period, duration, count)
        else:
            self._put(f"{name}@maxSlowDuration", duration, bean.line, f"'maxSlowDuration' of <{name}>")
            self._put(f"{name}@maxSlowCount", count, bean.line, f"'maxSlowCount' of <{name}>")
        if len(self._fields) > told:
            abort = bean.attribute("abortConnection", "false")
            self._put("abortSlowConsumerStrategy@abortConnection", abort, bean.line, f"'abortConnection' of <{name}>")
            self._put("abortSlowConsumerStrategy@checkPeriod", period, bean.line, f"'checkPeriod' of <{name}>")
            looked = self._fields.get("slow-consumer-check-period", "")
            if looked and period.isdecimal() and int(looked) * 1000 != int(period):
                sentence = (
                    f"'checkPeriod' {period} of <{name}> of {self._what} is {looked} s: it is in whole seconds here"
                )
                bean.different(sentence)
        for needless in ("abortConnection", "ignoreIdleConsumers", "ignoreNetworkConsumers", "name"):
            bean.attribute(needless)
        bean.close(["maxSlowDuration", "maxSlowCount", "abortConnection", "checkPeriod", "maxTimeSinceLastAck"])

    def _silent(self, bean: Section, period: str, duration: str, count: str) -> None:
        """There a consumer is slow after ``maxTimeSinceLastAck``, and ends some looks later: here it is one time."""
        name = bean.element.name
        text = bean.attribute("maxTimeSinceLastAck", _SLOW_MS)
        try:
            silent, looks = values.parse_integer(text), values.parse_integer(count)
            slow, between = values.parse_integer(duration), values.parse_integer(period)
        except ValueError as rule:
            bean.wrong(f"a time or count of <{name}>", ", ".join((text, duration, count, period)), str(rule))
            return
        later = [slow - between] if slow > 0 else []
        if looks > 0:
            later.append((looks - 1) * between)
        if silent < 0 or not later:
            self._needless(bean, "without limits it closes no consumer")
            return
        total = str(max(1, silent + max(0, min(later))))
        self._put(f"{name}@maxTimeSinceLastAck", total, bean.line, f"'maxTimeSinceLastAck' of <{name}>")
        self._attribute(bean, "ignoreIdleConsumers", "true")

    def recovery(self, *, retroactive: bool) -> None:
        bean = self._bean("subscriptionRecoveryPolicy")
        if bean is None:
            return
        self._recover(bean)
        if retroactive and not _KEEPS.isdisjoint(self._fields):
            self._fields["always-retroactive"] = "true"
            bean.different(
                f"what <{bean.element.name}> of {self._what} keeps goes to each new queue of the address, that of a "
                "durable subscription too (always-retroactive)"
            )

    def _recover(self, bean: Section) -> None:
        name = bean.element.name
        if name in _HISTORY:
            count = bean.attribute("maximumSize", _HISTORY[name])
            self._put("subscriptionRecoveryCount", count, bean.line, f"<{name}>")
        elif name == "timedSubscriptionRecoveryPolicy":
            self._attribute(bean, "recoverDuration", "60000")
        elif name == "fixedSizedSubscriptionRecoveryPolicy":
            self._attribute(bean, "maximumSize", "65536")
            bean.attribute("useSharedBuffer")
        elif name == "retainedMessageSubscriptionRecoveryPolicy":
            self._put(name, "true", bean.line, f"<{name}>")
            wrapped = bean.child("wrapped")
            inner = None if wrapped is None else wrapped.inner()
            if inner is not None:
                self._recover(inner)
        elif name == "queryBasedSubscriptionRecoveryPolicy":
            bean.impossible(
                f"<{name}> of {self._what} is left out: its query is a Java class; subscription-recovery-count gives "
                "late subscribers a number of messages"
            )
            bean.ignore()
        elif name == "noSubscriptionRecoveryPolicy":
            bean.ignore()
        else:
            self._unknown(bean)
        bean.close(["maximumSize", "recoverDuration", "useSharedBuffer"])

    def groups(self) -> None:
        text = self._entry.attribute("messageGroupMapFactoryType")
        kind, _, query = text.partition("?")
        options = dict(parse_qsl(query))
        line = self._entry.line
        bean = self._bean("messageGroupMapFactory")
        if bean is not None:
            kind, line = bean.element.name, bean.line
            options = {name: bean.attribute(name) for name in ("bucketCount", "cacheSize")}
            bean.close(["bucketCount", "cacheSize"])
        kind = kind.removesuffix("Factory").removesuffix("MessageGroupMap").lower()
        if kind in ("bucket", "messagegrouphashbucket"):
            amount = options.get("bucketCount") or str(_BUCKETS)
            try:
                self._fields["default-group-buckets"] = str(values.at_least(1)(amount))
            except ValueError as rule:
                self._entry.wrong(f"'bucketCount' of {self._what}", amount, str(rule))
        elif kind == "simple":
            self._put("cacheSize", "-1", line, "the unbounded messageGroupMapFactoryType")
        elif kind == "cached":
            self._put(
                "cacheSize", options.get("cacheSize") or "1024", line, "'cacheSize' of messageGroupMapFactoryType"
            )
        elif kind:
            self._entry.wrong(f"'messageGroupMapFactoryType' of {self._what}", text or kind, "bucket, cached or simple")

    def rest(self) -> None:
        for section in self._entry.children("networkBridgeFilterFactory", "messageInterceptorStrategy"):
            section.impossible(
                f"<{section.element.name}> of {self._what} is left out: "
                + (
                    "there are no networks of brokers"
                    if section.element.name == "networkBridgeFilterFactory"
                    else "it changes or refuses messages; expiry-delay and max-expiry-delay bound their life"
                )
            )
            section.ignore()
