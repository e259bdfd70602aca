"""``<deadLetterStrategy>``: where what fails or expires goes."""

from typing import Final

from delosmq.config.broker_xml.catalog.address_settings import ADDRESS_SETTING
from delosmq.migration.activemq_xml.catalog.policies import BASELINE, CHILDREN
from delosmq.migration.activemq_xml.catalog.rows import RowReader
from delosmq.migration.activemq_xml.names import QUEUE, name_of
from delosmq.migration.activemq_xml.source import Section
from delosmq.migration.activemq_xml.target import DeadLetterQueues, Target

SHARED: Final = BASELINE["dead-letter-address"]
_TUNING: Final = ("maxAuditDepth", "maxProducersToAudit")
_INDIVIDUAL_SUFFIX: Final = ".individual"


def read_dead_letters(entry: Section, what: str, fields: dict[str, str], target: Target) -> None:
    """Reads the strategy of a policyEntry into ``fields`` and declares the queue it needs."""
    wrapper = entry.child("deadLetterStrategy")
    if wrapper is None:
        return
    if target.discards_dead_letters:
        sentence = f"<deadLetterStrategy> of {what} is not needed: <discardingDLQBrokerPlugin> drops all dead letters"
        wrapper.needless(sentence)
        return
    strategy = wrapper.inner(
        "sharedDeadLetterStrategy", "individualDeadLetterStrategy", "discarding", "discardingDeadLetterStrategy"
    )
    if strategy is None:
        return
    expired = strategy.flag("processExpired", True)
    _read_shares(strategy, what, fields)
    name = strategy.element.name
    if name.startswith("discarding"):
        address = ""
    elif name.startswith("shared"):
        address = _shared_address(strategy)
        target.declare(address, QUEUE)
    else:
        address = _read_individual(strategy, what, fields, target, expired=expired)
    fields["dead-letter-address"] = address
    fields["expiry-address"] = address if expired else ""
    strategy.close(["processExpired", "processNonPersistent", "enableAudit", "expiration", "deadLetterQueue"])


def _read_shares(strategy: Section, what: str, fields: dict[str, str]) -> None:
    reader = RowReader(CHILDREN, ADDRESS_SETTING, "address-setting", strategy.remarks)
    for name, row_name in (
        ("processNonPersistent", "processNonPersistent"),
        ("enableAudit", "deadLetterEnableAudit"),
        ("expiration", "deadLetterExpiration"),
    ):
        text = strategy.attribute(name)
        if text:
            row = CHILDREN[row_name]
            value = reader.read(row, text, strategy.line, f"{name!r} of the deadLetterStrategy of {what}")
            if value is not None:
                fields[row.to] = value
    for name in _TUNING:
        if strategy.attribute(name):
            sentence = (
                f"{name!r} of <{strategy.element.name}> is not needed: as many ids are remembered as there is room"
            )
            strategy.needless(sentence)


def _shared_address(strategy: Section) -> str:
    text = strategy.attribute("deadLetterQueue")
    inner = strategy.child("deadLetterQueue")
    if inner is not None:
        for queue in inner.children("queue"):
            text = queue.attribute("physicalName") or queue.attribute("name")
            queue.close(["physicalName"])
        inner.close(["queue"])
    if not text:
        return SHARED
    if text.startswith("topic://"):
        strategy.impossible(f"dead letters go to the queue {SHARED!r}, not to {text!r}: a topic would not keep them")
        return SHARED
    try:
        return name_of(text.removeprefix("queue://"))
    except ValueError as rule:
        strategy.wrong("'deadLetterQueue'", text, str(rule))
        return SHARED


def _read_individual(strategy: Section, what: str, fields: dict[str, str], target: Target, *, expired: bool) -> str:
    kind = "Queue" if what.startswith(f"policyEntry {QUEUE}=") else "Topic"
    prefixes = {
        "Queue": strategy.written("queuePrefix", "ActiveMQ.DLQ.Queue."),
        "Topic": strategy.written("topicPrefix", "ActiveMQ.DLQ.Topic."),
    }
    suffixes = {"Queue": strategy.attribute("queueSuffix"), "Topic": strategy.attribute("topicSuffix")}
    for_queue = strategy.flag(f"useQueueFor{kind}Messages", True)
    strategy.flag(f"useQueueFor{'Topic' if kind == 'Queue' else 'Queue'}Messages", True)
    if not for_queue:
        strategy.impossible(f"the dead letters of {what} go to queues, not to topics, which would not keep them")
    if strategy.flag("destinationPerDurableSubscriber", False):
        strategy.impossible(
            f"the dead letters of {what} have one queue for each topic, not for each durable subscriber; the property "
            "_AMQ_ORIG_QUEUE names the subscription of each"
        )
    prefix, suffix = prefixes[kind], suffixes[kind]
    if not prefix and not suffix:
        strategy.mistake(
            f"the dead letters of {what} go to {SHARED!r}: without a prefix and a suffix they would go to where they "
            "come from, and Classic drops them"
        )
        return SHARED
    # Beside the shared queue, or under the name of one, each dead letter would be there twice.
    address = prefix.strip(".") or suffix.strip(".") or SHARED
    if address == SHARED or (address in target.addresses and target.addresses[address].has_queue):
        address += _INDIVIDUAL_SUFFIX
    try:
        name_of(address)
    except ValueError as rule:
        strategy.wrong(f"the prefix of {what}", prefix, str(rule))
        return SHARED
    for thing in ("dead-letter", "expiry") if expired else ("dead-letter",):
        fields[f"auto-create-{thing}-resources"] = "true"
        fields[f"{thing}-queue-prefix"] = prefix
        fields[f"{thing}-queue-suffix"] = suffix
    target.declare(address, QUEUE, queue=False)
    target.overlays.setdefault(address, {})["default-queue-routing-type"] = "ANYCAST"
    queues = DeadLetterQueues(address, prefix, suffix)
    target.dead_letter_queues.append(queues)
    declared = [name for name, known in target.addresses.items() if known.has_queue and queues.has(name)]
    such_as = f", as {', '.join(map(repr, declared))} {'is' if len(declared) == 1 else 'are'}" if declared else ""
    strategy.different(
        f"the dead letters of {what} are in queues of the same names as in Classic, on the address {address!r}: "
        f"consume them as '{address}::{prefix}NAME{suffix}'; a queue of such a name that is there before, on an "
        f"address of its own{such_as}, gets them instead: consume it by its name"
    )
    return address
