"""The other children of a policyEntry: strategies and policies, each a wrapper around one bean."""

from typing import Final

from delosmq.config import values
from delosmq.config.activemq_xml.policy_catalog import CHILDREN
from delosmq.config.activemq_xml.remarks import Kind
from delosmq.config.activemq_xml.rows import RowReader
from delosmq.config.activemq_xml.source import Section
from delosmq.config.broker_xml.setting_catalog import ADDRESS_SETTING

_SAME_FOR_ALL: Final = ("roundRobinDispatchPolicy", "simpleDispatchPolicy", "strictOrderDispatchPolicy")
_EVICTION: Final = {
    "oldestMessageEvictionStrategy": "oldest",
    "oldestMessageWithLowestPriorityEvictionStrategy": "lowest-priority",
    "uniquePropertyMessageEvictionStrategy": "unique-property",
}
_BUCKETS: Final = 1024
_HISTORY: Final = {"fixedCountSubscriptionRecoveryPolicy": "100", "lastImageSubscriptionRecoveryPolicy": "1"}


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
        """The one bean in the wrapper of that name."""
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
        self._remarks.add(
            Kind.UNKNOWN, bean.line, f"<{bean.element.name}> of {self._what} is left out: it is no bean of Classic"
        )
        bean.ignore()

    def _needless(self, bean: Section, why: str) -> None:
        self._remarks.add(Kind.NEEDLESS, bean.line, f"<{bean.element.name}> of {self._what} is not needed: {why}")
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
            self._remarks.add(
                Kind.IMPOSSIBLE,
                bean.line,
                f"<{name}> of {self._what} is left out: it gives messages of a topic to one client id; use a selector",
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
                self._remarks.add(
                    Kind.NEEDLESS, bean.line, f"{tuning!r} of <{name}> is not needed: expired messages go by themselves"
                )
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
        if is_ack:
            self._attribute(bean, "maxTimeSinceLastAck", "30000")
            bean.attribute("ignoreIdleConsumers")
        duration = bean.attribute("maxSlowDuration")
        count, abort = bean.attribute("maxSlowCount", "-1"), bean.attribute("abortConnection", "false")
        if not is_ack or duration:
            self._put(
                "abortSlowConsumerStrategy@maxSlowDuration",
                duration or "30000",
                bean.line,
                f"'maxSlowDuration' of <{name}>",
            )
        self._put("abortSlowConsumerStrategy@maxSlowCount", count, bean.line, f"'maxSlowCount' of <{name}>")
        self._put("abortSlowConsumerStrategy@abortConnection", abort, bean.line, f"'abortConnection' of <{name}>")
        for tuning in ("checkPeriod", "ignoreNetworkConsumers", "name"):
            bean.attribute(tuning)
        bean.close(["maxSlowDuration", "maxSlowCount", "abortConnection", "checkPeriod", "maxTimeSinceLastAck"])

    def recovery(self, *, retroactive: bool) -> None:
        bean = self._bean("subscriptionRecoveryPolicy")
        if bean is None:
            return
        name = bean.element.name
        if name in _HISTORY:
            count = bean.attribute("maximumSize", _HISTORY[name])
            if retroactive:
                self._history(bean, count)
            else:
                self._put("subscriptionRecoveryCount", count, bean.line, f"<{name}>")
        elif name == "timedSubscriptionRecoveryPolicy":
            self._attribute(bean, "recoverDuration", "60000")
        elif name == "fixedSizedSubscriptionRecoveryPolicy":
            self._attribute(bean, "maximumSize", "65536")
            bean.attribute("useSharedBuffer")
        elif name == "retainedMessageSubscriptionRecoveryPolicy":
            self._put(name, "true", bean.line, f"<{name}>")
            bean.ignore()
        elif name == "queryBasedSubscriptionRecoveryPolicy":
            self._remarks.add(
                Kind.IMPOSSIBLE,
                bean.line,
                f"<{name}> of {self._what} is left out: its query is a Java class; retroactive-message-count "
                f"gives late "
                "subscribers a number of messages",
            )
            bean.ignore()
        elif name == "noSubscriptionRecoveryPolicy":
            bean.ignore()
        else:
            self._unknown(bean)
        bean.close(["maximumSize", "recoverDuration", "useSharedBuffer"])

    def _history(self, bean: Section, count: str) -> None:
        try:
            self._fields["retroactive-message-count"] = str(values.at_least(0)(count))
        except ValueError as rule:
            bean.wrong(f"'maximumSize' of <{bean.element.name}>", count, str(rule))
            return
        self._remarks.add(
            Kind.DIFFERENT,
            bean.line,
            f"the last {count} messages of {self._what} go to each new queue of the address, that of a durable "
            "subscription too (retroactive-message-count)",
        )

    def groups(self) -> None:
        text = self._entry.attribute("messageGroupMapFactoryType")
        kind, _, option = text.partition("?")
        name, _, amount = option.partition("=")
        line = self._entry.line
        bean = self._bean("messageGroupMapFactory")
        if bean is not None:
            kind, line = bean.element.name, bean.line
            name = "bucketCount" if bean.element.attributes.get("bucketCount") else "cacheSize"
            amount = bean.attribute(name)
            bean.attribute("cacheSize")
            bean.close(["bucketCount", "cacheSize"])
        kind = kind.removesuffix("Factory").removesuffix("MessageGroupMap").lower()
        if kind in ("bucket", "messagegrouphashbucket"):
            try:
                self._fields["default-group-buckets"] = str(values.at_least(1)(amount or str(_BUCKETS)))
            except ValueError as rule:
                self._entry.wrong(f"'bucketCount' of {self._what}", amount, str(rule))
        elif kind == "simple":
            self._put("cacheSize", "-1", line, "the unbounded messageGroupMapFactoryType")
        elif kind == "cached":
            self._put("cacheSize", amount or "1024", line, "'cacheSize' of messageGroupMapFactoryType")
        elif kind:
            self._entry.wrong(f"'messageGroupMapFactoryType' of {self._what}", text or kind, "bucket, cached or simple")

    def rest(self) -> None:
        for section in self._entry.children("networkBridgeFilterFactory", "messageInterceptorStrategy"):
            self._remarks.add(
                Kind.IMPOSSIBLE,
                section.line,
                f"<{section.element.name}> of {self._what} is left out: "
                + (
                    "there are no networks of brokers"
                    if section.element.name == "networkBridgeFilterFactory"
                    else "it changes or refuses messages; expiry-delay and max-expiry-delay bound their life"
                ),
            )
            section.ignore()
