"""policyEntry to address-setting."""

from pathlib import Path

import pytest

from delosmq.config.activemq_xml import Kind
from delosmq.config.activemq_xml.names import covers, match_of, overlap
from delosmq.config.activemq_xml.policies import restate
from delosmq.config.activemq_xml.policy_catalog import CHILDREN, POLICY
from delosmq.config.activemq_xml.remarks import Remarks
from delosmq.config.activemq_xml.rows import Row, RowReader, is_in_effect
from delosmq.config.broker_xml.catalog import in_effect, table
from delosmq.config.broker_xml.setting_catalog import ADDRESS_SETTING
from delosmq.model.message import ANYCAST
from delosmq.model.settings import AddressFullPolicy
from tests.config.activemq_xml import Converted, broker, convert_text, policies


def convert(tmp_path: Path, entries: str, attributes: str = "") -> Converted:
    return convert_text(broker(policies(entries), attributes), tmp_path)


@pytest.mark.parametrize(
    "attribute, field, value",
    [
        ('strictOrderDispatch="true"', "strict_order_dispatch", True),
        ('useConsumerPriority="false"', "use_consumer_priority", False),
        ('allConsumersExclusiveByDefault="true"', "all_consumers_exclusive_by_default", True),
        ('timeBeforeDispatchStarts="250"', "time_before_dispatch_starts", 250),
        ('consumersBeforeDispatchStarts="2"', "default_consumers_before_dispatch", 2),
        ('messageGroupMapFactoryType="bucket"', "default_group_buckets", 1024),
        ('messageGroupMapFactoryType="bucket?bucketCount=16"', "default_group_buckets", 16),
        ('messageGroupMapFactoryType="cached"', "default_group_buckets", -1),
        ('sendFailIfNoSpace="true"', "address_full_policy", AddressFullPolicy.FAIL),
        ('producerFlowControl="false"', "address_full_policy", AddressFullPolicy.PAGE),
        ('producerFlowControl="true"', "address_full_policy", AddressFullPolicy.BLOCK),
    ],
)
def test_an_attribute_becomes_a_setting(tmp_path: Path, attribute: str, field: str, value: object) -> None:
    made = convert(tmp_path, f'<policyEntry queue="orders.>" {attribute}/>')
    assert made.left_out == []
    assert getattr(made.resolve("orders.new"), field) == value
    assert getattr(made.resolve("orders"), field) == value


@pytest.mark.parametrize(
    "inner, field, value",
    [
        ("<messageGroupMapFactory><messageGroupHashBucketFactory bucketCount='8'/></messageGroupMapFactory>", "", 8),
        ("<messageGroupMapFactory><messageGroupHashBucketFactory/></messageGroupMapFactory>", "", 1024),
        ("<messageGroupMapFactory><cachedMessageGroupMapFactory cacheSize='1024'/></messageGroupMapFactory>", "", -1),
        ("<deadLetterStrategy><discarding/></deadLetterStrategy>", "dead_letter_address", ""),
        ("<deadLetterStrategy><discarding/></deadLetterStrategy>", "expiry_address", ""),
        (
            "<deadLetterStrategy><sharedDeadLetterStrategy deadLetterQueue='queue://dead'/></deadLetterStrategy>",
            "expiry_address",
            "dead",
        ),
        (
            "<deadLetterStrategy><sharedDeadLetterStrategy processExpired='false'><deadLetterQueue>"
            "<queue physicalName='dead'/></deadLetterQueue></sharedDeadLetterStrategy></deadLetterStrategy>",
            "dead_letter_address",
            "dead",
        ),
        (
            "<deadLetterStrategy><sharedDeadLetterStrategy processExpired='false'/></deadLetterStrategy>",
            "expiry_address",
            "",
        ),
        ("<dispatchPolicy><strictOrderDispatchPolicy/></dispatchPolicy>", "strict_order_dispatch", False),
        ("<pendingQueuePolicy><vmQueueCursor/></pendingQueuePolicy>", "max_size_bytes", -1),
    ],
)
def test_a_child_becomes_a_setting(tmp_path: Path, inner: str, field: str, value: object) -> None:
    made = convert(tmp_path, f'<policyEntry queue="orders">{inner}</policyEntry>')
    assert made.left_out == []
    assert getattr(made.resolve("orders"), field or "default_group_buckets") == value


def test_the_queue_of_dead_letters_is_declared(tmp_path: Path) -> None:
    strategy = "<deadLetterStrategy><sharedDeadLetterStrategy deadLetterQueue='dead'/></deadLetterStrategy>"
    made = convert(tmp_path, f'<policyEntry queue="orders">{strategy}</policyEntry>')
    assert {queue.name for queue in made.settings.queues} == {"ActiveMQ.DLQ", "dead"}


def test_individual_dead_letters_have_a_queue_for_each_origin(tmp_path: Path) -> None:
    strategy = "<deadLetterStrategy><individualDeadLetterStrategy queuePrefix='DLQ.'/></deadLetterStrategy>"
    made = convert(tmp_path, f'<policyEntry queue=">">{strategy}</policyEntry><policyEntry queue="plain"/>')
    found = made.resolve("orders")
    assert (found.dead_letter_address, found.expiry_address) == ("DLQ", "DLQ")
    assert found.auto_create_dead_letter_resources
    assert found.auto_create_expiry_resources
    assert (found.dead_letter_queue_prefix, found.expiry_queue_prefix) == ("DLQ.", "DLQ.")
    assert made.resolve("DLQ").default_queue_routing_type == ANYCAST
    # Beside a shared queue each dead letter would be there twice.
    assert {queue.name for queue in made.settings.queues} == {"ActiveMQ.DLQ"}
    plain = made.resolve("plain")
    assert (plain.dead_letter_address, plain.auto_create_dead_letter_resources) == ("ActiveMQ.DLQ", False)
    assert "'DLQ::DLQ.NAME'" in made.said(Kind.DIFFERENT)[0][1]


@pytest.mark.parametrize(
    "inner, part",
    [
        ("<deadLetterStrategy><sharedDeadLetterStrategy deadLetterQueue='topic://d'/></deadLetterStrategy>", "a topic"),
        (
            "<deadLetterStrategy><individualDeadLetterStrategy useQueueForQueueMessages='false'/></deadLetterStrategy>",
            "not to topics",
        ),
        (
            "<deadLetterStrategy><individualDeadLetterStrategy destinationPerDurableSubscriber='true'/>"
            "</deadLetterStrategy>",
            "not for each durable subscriber",
        ),
        (
            "<deadLetterStrategy><sharedDeadLetterStrategy expiration='5'/></deadLetterStrategy>",
            "life of a dead letter",
        ),
        ("<deadLetterStrategy><shared/></deadLetterStrategy>", "unknown element <shared>"),
        (
            "<pendingMessageLimitStrategy><constantPendingMessageLimitStrategy limit='9'/>"
            "</pendingMessageLimitStrategy>",
            "the most that waits for a topic consumer",
        ),
        (
            "<pendingMessageLimitStrategy><prefetchRatePendingMessageLimitStrategy/></pendingMessageLimitStrategy>",
            "'multiplier' of <prefetchRatePendingMessageLimitStrategy>",
        ),
        (
            "<messageEvictionStrategy><oldestMessageWithLowestPriorityEvictionStrategy/></messageEvictionStrategy>",
            "chooses what a slow topic consumer loses",
        ),
        (
            "<slowConsumerStrategy><abortSlowConsumerStrategy/></slowConsumerStrategy>",
            "closes consumers that have no room",
        ),
        (
            "<slowConsumerStrategy><abortSlowAckConsumerStrategy maxTimeSinceLastAck='5'/></slowConsumerStrategy>",
            "(5) is left out: it closes consumers that acknowledge nothing",
        ),
        (
            "<subscriptionRecoveryPolicy><timedSubscriptionRecoveryPolicy recoverDuration='5'/>"
            "</subscriptionRecoveryPolicy>",
            "so many ms",
        ),
        (
            "<subscriptionRecoveryPolicy><lastImageSubscriptionRecoveryPolicy/></subscriptionRecoveryPolicy>",
            "with alwaysRetroactive it is converted",
        ),
        (
            "<subscriptionRecoveryPolicy><queryBasedSubscriptionRecoveryPolicy query='#q'/>"
            "</subscriptionRecoveryPolicy>",
            "its query is a Java class",
        ),
        ("<dispatchPolicy><priorityDispatchPolicy/></dispatchPolicy>", "in the order of their priority"),
        ("<dispatchPolicy><clientIdFilterDispatchPolicy/></dispatchPolicy>", "to one client id"),
        ("<dispatchPolicy><myPolicy/></dispatchPolicy>", "no bean of Classic"),
        ("<networkBridgeFilterFactory><any/></networkBridgeFilterFactory>", "no networks"),
        ("<pendingQueuePolicy><diskCursor/></pendingQueuePolicy>", "no part of Classic"),
        ("<messageGroupMapFactory><simpleMessageGroupMapFactory/></messageGroupMapFactory>", "message groups"),
    ],
)
def test_a_child_without_an_equal_is_left_out(tmp_path: Path, inner: str, part: str) -> None:
    kind = "queue" if "useQueueForQueueMessages" in inner else "topic"
    made = convert(tmp_path, f'<policyEntry {kind}="news">\n{inner}</policyEntry>')
    assert any(part in sentence for sentence in made.left_out), made.left_out
    assert all(remark.line in (3, 4) for remark in made.conversion.remarks)


@pytest.mark.parametrize(
    "attribute, harmless",
    [
        ("queuePrefetch", "1000"),
        ("queueBrowserPrefetch", "500"),
        ("topicPrefetch", "32767"),
        ("durableTopicPrefetch", "100"),
        ("maxBrowsePageSize", "400"),
        ("maxDestinations", "-1"),
        ("sendFailIfNoSpaceAfterTimeout", "0"),
        ("advisoryForConsumed", "false"),
        ("sendAdvisoryIfNoConsumers", "false"),
        ("persistJMSRedelivered", "false"),
        ("usePrefetchExtension", "true"),
    ],
)
def test_what_is_not_there_yet_is_listed_unless_it_asks_for_nothing(
    tmp_path: Path, attribute: str, harmless: str
) -> None:
    other = {"true": "false", "false": "true"}.get(harmless, "77")
    assert convert(tmp_path, f'<policyEntry queue="q" {attribute}="{harmless}"/>').left_out == []
    if not is_in_effect(POLICY[attribute].to, ADDRESS_SETTING):
        (sentence,) = convert(tmp_path, f'<policyEntry queue="q" {attribute}="{other}"/>').left_out
        assert f"'{attribute}' of policyEntry queue='q' ({other}) is left out" in sentence


def test_a_row_converts_as_soon_as_its_setting_is_in_effect() -> None:
    remarks = Remarks("activemq.xml")
    row = POLICY["queuePrefetch"]
    later = RowReader(POLICY, table([in_effect(row.to, "prefetch")]), "address-setting", remarks)
    assert later.read(row, "7", 1, "'queuePrefetch'") == "7"
    assert remarks.in_order() == ()
    today = RowReader(POLICY, table(), "address-setting", remarks)
    assert today.read(row, "7", 1, "'queuePrefetch'") is None
    assert [remark.kind for remark in remarks.in_order()] == [Kind.NOT_YET]


@pytest.mark.parametrize("row", [*POLICY.values(), *CHILDREN.values()], ids=lambda row: row.name)
def test_each_row_says_what_becomes_of_it(row: Row) -> None:
    assert bool(row.needless) != bool(row.about)
    assert not row.about.endswith(".")


@pytest.mark.parametrize(
    "attribute, rule",
    [
        ('timeBeforeDispatchStarts="soon"', "a whole number"),
        ('strictOrderDispatch="yes"', "true or false"),
        ('memoryLimit="a lot"', "a size in bytes"),
        ('messageGroupMapFactoryType="bucket?bucketCount=0"', "at least 1"),
        ('messageGroupMapFactoryType="clever"', "bucket, cached or simple"),
        ('expireMessagesPeriod="-5"', "at least 0"),
        ('strictOrderDispatch="${order}"', "a placeholder"),
    ],
)
def test_a_wrong_value_is_left_out(tmp_path: Path, attribute: str, rule: str) -> None:
    (line, sentence), *more = convert(tmp_path, f'<policyEntry queue="q" {attribute}/>').said(Kind.WRONG)
    assert (line, more) == (3, [])
    assert rule in sentence


def test_a_memory_limit_counts_where_it_blocks(tmp_path: Path) -> None:
    cursor = "<pendingQueuePolicy><vmQueueCursor/></pendingQueuePolicy>"
    entries = (
        f'<policyEntry queue="vm" memoryLimit="5mb">{cursor}</policyEntry><policyEntry queue="s" memoryLimit="5mb"/>'
    )
    made = convert(tmp_path, entries)
    blocking = made.resolve("vm")
    assert (blocking.max_size_bytes, blocking.address_full_policy) == (5 * 1024**2, AddressFullPolicy.BLOCK)
    assert made.resolve("s").max_size_bytes == -1
    assert ["'memoryLimit' of policyEntry queue='s' (5M)" in sentence for sentence in made.left_out] == [True]


def test_idle_destinations_go_if_the_broker_looks_for_them(tmp_path: Path) -> None:
    entry = '<policyEntry queue="q" gcInactiveDestinations="true" inactiveTimeoutBeforeGC="5000"/>'
    made = convert(tmp_path, entry, "schedulePeriodForDestinationPurge='1000'")
    found = made.resolve("q")
    assert (found.auto_delete_queues, found.auto_delete_queues_delay) == (True, 5000)
    assert (found.auto_delete_addresses, found.auto_delete_addresses_delay) == (True, 5000)
    assert not made.resolve("other").auto_delete_queues
    never = convert(tmp_path, entry)
    assert not never.resolve("q").auto_delete_queues
    assert "in Classic neither" in never.said(Kind.NEEDLESS)[0][1]


def test_a_recovery_policy_for_all_subscribers_is_history(tmp_path: Path) -> None:
    policy = "<fixedCountSubscriptionRecoveryPolicy maximumSize='5'/>"
    policy = f"<subscriptionRecoveryPolicy>{policy}</subscriptionRecoveryPolicy>"
    made = convert(tmp_path, f'<policyEntry topic="news" alwaysRetroactive="true">{policy}</policyEntry>')
    assert made.resolve("news").retroactive_message_count == 5
    assert made.left_out == []


def test_the_closest_policy_decides_alone(tmp_path: Path) -> None:
    made = convert(
        tmp_path,
        '<policyEntry queue=">" strictOrderDispatch="true" timeBeforeDispatchStarts="9"/>'
        '<policyEntry queue="a.>" timeBeforeDispatchStarts="3"/>'
        '<policyEntry queue="a.b"/>',
    )
    found = {name: made.resolve(name) for name in ("x", "a.c", "a.b")}
    assert [found[name].strict_order_dispatch for name in found] == [True, False, False]
    assert [found[name].time_before_dispatch_starts for name in found] == [9, 3, 0]


def test_the_default_policy_is_for_what_no_other_matches(tmp_path: Path) -> None:
    body = (
        "<destinationPolicy><policyMap><defaultEntry><policyEntry strictOrderDispatch='true'/></defaultEntry>"
        "<policyEntries><policyEntry queue='a'/></policyEntries></policyMap></destinationPolicy>"
    )
    made = convert_text(broker(body), tmp_path)
    assert (made.resolve("b").strict_order_dispatch, made.resolve("a").strict_order_dispatch) == (True, False)


def test_a_list_of_names_is_several_matches(tmp_path: Path) -> None:
    made = convert(tmp_path, '<policyEntry queue="a, b.*" strictOrderDispatch="true"/>')
    assert [made.resolve(name).strict_order_dispatch for name in ("a", "b.x", "b")] == [True, True, False]


@pytest.mark.parametrize(
    "entries, part",
    [
        ("<policyEntry/>", 'a policyEntry without queue="..." or topic="..."'),
        ('<policyEntry queue="a.>.b"/>', "'>' at its end only"),
        ('<policyEntry queue="a*"/>', "are words of their own"),
        ('<policyEntry queue="a.#"/>', "'#', too, is one here"),
        ('<policyEntry queue="a::b"/>', "without '::'"),
        ('<policyEntry queue="a"/><policyEntry queue="a"/>', "a second policyEntry for queue 'a'"),
        ('<policyEntry tempQueue="true"/>', "temporary destinations have no settings"),
        ('<policyEntry queue="a" expireMessagesPeriod="5"/>', "one period holds for all addresses"),
    ],
)
def test_entries_that_match_nothing_here_are_left_out(tmp_path: Path, entries: str, part: str) -> None:
    assert [part in sentence for sentence in convert(tmp_path, entries).left_out] == [True]


def test_queues_and_topics_of_one_name_are_told_apart_no_more(tmp_path: Path) -> None:
    one = convert(tmp_path, '<policyEntry queue="a.>" sendFailIfNoSpace="true"/>')
    ((line, sentence),) = one.said(Kind.DIFFERENT)
    assert line == 3
    assert "holds for topics of match 'a.#' as well" in sentence
    both = convert(tmp_path, '<policyEntry queue=">"/>\n<policyEntry topic=">" sendFailIfNoSpace="true"/>')
    ((line, sentence),) = both.said(Kind.IMPOSSIBLE)
    assert line == 4
    assert "address-full-policy" in sentence
    assert both.resolve("t").address_full_policy is AddressFullPolicy.BLOCK
    # What means something for queues only cannot disagree.
    apart = convert(tmp_path, '<policyEntry queue=">" strictOrderDispatch="true"/><policyEntry topic=">"/>')
    assert apart.conversion.remarks == ()


def test_defaults_are_said_where_a_wider_match_says_something_else() -> None:
    wide, narrow = {"strict-order-dispatch": "true"}, {"max-size-bytes": "5"}
    assert restate({"#": wide, "a.#": narrow}) == {
        "#": {**wide, "max-size-bytes": "-1"},
        "a.#": {**narrow, "strict-order-dispatch": "false"},
    }
    assert restate({"a": wide, "b": narrow}) == {"a": wide, "b": narrow}


@pytest.mark.parametrize(
    "one, other, meet, covered",
    [
        ("#", "a.b", True, True),
        ("a.#", "a", True, True),
        ("a.#", "a.*", True, True),
        ("a.*", "a.#", True, False),
        ("a.*", "*.b", True, False),
        ("a.*", "b.*", False, False),
        ("a.*", "a", False, False),
        ("a.b", "a.b", True, True),
    ],
)
def test_matches_meet_and_cover(one: str, other: str, meet: bool, covered: bool) -> None:
    assert (overlap(one, other), overlap(other, one), covers(one, other)) == (meet, meet, covered)


def test_the_wildcard_for_the_rest_has_another_letter() -> None:
    assert [match_of(name) for name in (">", "a.>", "*.b", "a")] == ["#", "a.#", "*.b", "a"]


def test_nothing_is_suggested_for_what_is_merely_named_alike(tmp_path: Path) -> None:
    (sentence,) = convert(tmp_path, '<policyEntry queue="a"><redeliveryPolicy/></policyEntry>').left_out
    assert sentence == "unknown element <redeliveryPolicy> in <policyEntry>; it is left out with all it holds"


def test_names_without_wildcards_are_not_compared_with_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0

    def counting(one: str, other: str) -> bool:
        nonlocal compared
        compared += 1
        return overlap(one, other)

    monkeypatch.setattr("delosmq.config.activemq_xml.policies.overlap", counting)
    names = {f"q{number}": {"default-exclusive-queue": "true"} for number in range(200)}
    assert restate({"#": {"max-delivery-attempts": "3"}, **names})["q7"]["max-delivery-attempts"] == "7"
    assert compared <= 2 * len(names)
