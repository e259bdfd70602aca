"""policyEntry to address-setting."""

from pathlib import Path

import pytest

from delosmq.config.broker_xml.catalog.address_settings import ADDRESS_SETTING
from delosmq.config.broker_xml.catalog.table import in_effect, table
from delosmq.migration.activemq_xml import RemarkKind
from delosmq.migration.activemq_xml.catalog.policies import CHILDREN, POLICY
from delosmq.migration.activemq_xml.catalog.rows import Row, RowReader, is_in_effect
from delosmq.migration.activemq_xml.conversion_report import ConversionReport
from delosmq.migration.activemq_xml.names import covers, match_of, overlap
from delosmq.migration.activemq_xml.policies import restate
from delosmq.model.message import ANYCAST
from delosmq.model.settings import AddressFullPolicy, DispatchPolicy, MessageEviction
from tests.migration.activemq_xml import Converted, broker, convert_text, policies


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
        ('messageGroupMapFactoryType="bucket?cacheSize=7&amp;bucketCount=16"', "default_group_buckets", 16),
        ('messageGroupMapFactoryType="bucket?cacheSize=7"', "default_group_buckets", 1024),
        ('messageGroupMapFactoryType="cached"', "group_cache_size", 1024),
        ('messageGroupMapFactoryType="cached?cacheSize=7"', "group_cache_size", 7),
        ('messageGroupMapFactoryType="simple"', "group_cache_size", -1),
        ('sendFailIfNoSpaceAfterTimeout="500"', "block_timeout", 500),
        ('sendFailIfNoSpaceAfterTimeout="0"', "block_timeout", -1),
        ('maxDestinations="3"', "max_addresses", 3),
        ('maxDestinations="-7"', "max_addresses", -1),
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
        (
            "<deadLetterStrategy><sharedDeadLetterStrategy expiration='5'/></deadLetterStrategy>",
            "dead_letter_expiry_delay",
            5,
        ),
        (
            "<deadLetterStrategy><sharedDeadLetterStrategy expiration='0'/></deadLetterStrategy>",
            "dead_letter_expiry_delay",
            -1,
        ),
        ("<deadLetterStrategy><sharedDeadLetterStrategy/></deadLetterStrategy>", "dead_letter_duplicates", False),
        (
            "<deadLetterStrategy><sharedDeadLetterStrategy enableAudit='false'/></deadLetterStrategy>",
            "dead_letter_duplicates",
            True,
        ),
        (
            "<messageGroupMapFactory><simpleMessageGroupMapFactory/></messageGroupMapFactory>",
            "group_cache_size",
            -1,
        ),
        (
            "<messageGroupMapFactory><cachedMessageGroupMapFactory cacheSize='9'/></messageGroupMapFactory>",
            "group_cache_size",
            9,
        ),
        ("<dispatchPolicy><strictOrderDispatchPolicy/></dispatchPolicy>", "strict_order_dispatch", False),
        ("<pendingQueuePolicy><vmQueueCursor/></pendingQueuePolicy>", "max_size_bytes", -1),
    ],
)
def test_a_child_becomes_a_setting(tmp_path: Path, inner: str, field: str, value: object) -> None:
    made = convert(tmp_path, f'<policyEntry queue="orders">{inner}</policyEntry>')
    assert made.left_out == []
    assert getattr(made.resolve("orders"), field or "default_group_buckets") == value


def test_converted_files_keep_one_dead_letter_of_a_message_as_classic_does(tmp_path: Path) -> None:
    without = "<deadLetterStrategy><sharedDeadLetterStrategy enableAudit='false'/></deadLetterStrategy>"
    made = convert(tmp_path, f'<policyEntry topic="news.>">{without}</policyEntry><policyEntry topic="news.a"/>')
    found = [made.resolve(name).dead_letter_duplicates for name in ("other", "news.b", "news.a")]
    assert found == [False, True, False]


@pytest.mark.parametrize("kind", ["tempQueue", "tempTopic"])
def test_temporary_destinations_may_be_open_to_others(tmp_path: Path, kind: str) -> None:
    made = convert(tmp_path, f'<policyEntry {kind}="true" allowTempDestinationStealing="true"/>')
    assert made.resolve("ID:a-1").allow_temp_destination_stealing
    assert made.left_out == []
    plain = convert(tmp_path, '<policyEntry queue=">" allowTempDestinationStealing="true"/>')
    assert not plain.resolve("ID:a-1").allow_temp_destination_stealing
    assert "counts in a policyEntry for tempQueue or tempTopic" in plain.said(RemarkKind.NEEDLESS)[0][1]


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
    assert "'DLQ::DLQ.NAME'" in made.said(RemarkKind.DIFFERENT)[0][1]


def test_the_prefix_of_individual_dead_letters_may_be_empty(tmp_path: Path) -> None:
    strategy = "<deadLetterStrategy><individualDeadLetterStrategy queuePrefix='' {}/></deadLetterStrategy>"
    made = convert(tmp_path, entry(strategy.format("queueSuffix='.dlq'")))
    found = made.resolve("orders")
    assert (found.dead_letter_address, found.dead_letter_queue_prefix, found.dead_letter_queue_suffix) == (
        "dlq",
        "",
        ".dlq",
    )
    assert (found.expiry_queue_prefix, found.expiry_queue_suffix) == ("", ".dlq")
    # With neither they would go round.
    made = convert(tmp_path, entry(strategy.format("")))
    found = made.resolve("orders")
    assert (found.dead_letter_address, found.auto_create_dead_letter_resources) == ("ActiveMQ.DLQ", False)
    assert any("without a prefix and a suffix" in sentence for sentence in made.left_out)


def test_declared_queues_of_dead_letters_are_named(tmp_path: Path) -> None:
    strategy = "<deadLetterStrategy><individualDeadLetterStrategy queuePrefix='DLQ.'/></deadLetterStrategy>"
    text = f'<destinations><queue physicalName="DLQ.orders"/></destinations>{policies(entry(strategy))}'
    made = convert_text(broker(text), tmp_path)
    assert {queue.name for queue in made.settings.queues} == {"ActiveMQ.DLQ", "DLQ.orders"}
    assert any("as 'DLQ.orders' is, gets them instead" in sentence for _, sentence in made.said(RemarkKind.DIFFERENT))


@pytest.mark.parametrize(
    "text, part",
    [
        ('<policyEntry queue="a" deadLetterStrategy="#dl"/>', "'deadLetterStrategy' of <policyEntry> (#dl)"),
        ('<policyEntry queue="a" slowConsumerStrategy="#x"/>', "'slowConsumerStrategy' of <policyEntry> (#x)"),
        ('<policyEntry queue="a" networkBridgeFilterFactory="#n"/>', "'networkBridgeFilterFactory' of"),
        (
            '<policyEntry queue="a"><deadLetterStrategy><bean class="com.acme.S"/></deadLetterStrategy></policyEntry>',
            "<bean> 'com.acme.S' of <deadLetterStrategy> is left out",
        ),
        (
            '<policyEntry queue="a"><slowConsumerStrategy><ref bean="s"/></slowConsumerStrategy></policyEntry>',
            "<ref> 's' of policyEntry queue='a' is left out",
        ),
    ],
)
def test_a_bean_that_is_not_looked_up_is_no_unknown_name(tmp_path: Path, text: str, part: str) -> None:
    made = convert(tmp_path, text)
    assert made.said(RemarkKind.UNKNOWN) == []
    assert any(part in sentence and "default holds" in sentence for _, sentence in made.said(RemarkKind.IMPOSSIBLE))


def test_a_reference_of_the_broker_is_no_unknown_name(tmp_path: Path) -> None:
    made = convert_text(broker("", 'destinationPolicy="#policy"'), tmp_path)
    assert "'destinationPolicy' of <broker> (#policy) is left out" in made.left_out[0]


def test_the_period_of_looks_for_slow_consumers_is_rounded_and_said(tmp_path: Path) -> None:
    strategy = "<slowConsumerStrategy><abortSlowConsumerStrategy checkPeriod='{}'/></slowConsumerStrategy>"
    made = convert(tmp_path, entry(strategy.format(1500)))
    assert made.resolve("a").slow_consumer_check_period == 2
    assert any("'checkPeriod' 1500" in sentence for _, sentence in made.said(RemarkKind.DIFFERENT))
    assert not any(
        "checkPeriod" in text for _, text in convert(tmp_path, entry(strategy.format(2000))).said(RemarkKind.DIFFERENT)
    )


def entry(inner: str) -> str:
    return f'<policyEntry queue=">">{inner}</policyEntry>'


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
        ("<deadLetterStrategy><shared/></deadLetterStrategy>", "unknown element <shared>"),
        (
            "<subscriptionRecoveryPolicy><queryBasedSubscriptionRecoveryPolicy query='#q'/>"
            "</subscriptionRecoveryPolicy>",
            "its query is a Java class",
        ),
        ("<dispatchPolicy><clientIdFilterDispatchPolicy/></dispatchPolicy>", "to one client id"),
        ("<dispatchPolicy><myPolicy/></dispatchPolicy>", "no bean of Classic"),
        ("<networkBridgeFilterFactory><any/></networkBridgeFilterFactory>", "no networks"),
        ("<pendingQueuePolicy><diskCursor/></pendingQueuePolicy>", "no part of Classic"),
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
    remarks = ConversionReport("activemq.xml")
    row = POLICY["queuePrefetch"]
    later = RowReader(POLICY, table([in_effect(row.to, "prefetch")]), "address-setting", remarks)
    assert later.read(row, "7", 1, "'queuePrefetch'") == "7"
    assert remarks.in_order() == ()
    today = RowReader(POLICY, table(), "address-setting", remarks)
    assert today.read(row, "7", 1, "'queuePrefetch'") is None
    assert [remark.kind for remark in remarks.in_order()] == [RemarkKind.NOT_YET]


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
    (line, sentence), *more = convert(tmp_path, f'<policyEntry queue="q" {attribute}/>').said(RemarkKind.WRONG)
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
    assert "in Classic neither" in never.said(RemarkKind.NEEDLESS)[0][1]


def test_a_recovery_policy_for_all_subscribers_is_history(tmp_path: Path) -> None:
    policy = "<fixedCountSubscriptionRecoveryPolicy maximumSize='5'/>"
    policy = f"<subscriptionRecoveryPolicy>{policy}</subscriptionRecoveryPolicy>"
    made = convert(tmp_path, f'<policyEntry topic="news" alwaysRetroactive="true">{policy}</policyEntry>')
    found = made.resolve("news")
    assert (found.subscription_recovery_count, found.always_retroactive) == (5, True)
    assert "always-retroactive" in made.said(RemarkKind.DIFFERENT)[0][1]
    assert made.left_out == []


@pytest.mark.parametrize(
    "bean, field, value",
    [
        ("fixedCountSubscriptionRecoveryPolicy", "subscription_recovery_count", 100),
        ("fixedCountSubscriptionRecoveryPolicy maximumSize='7'", "subscription_recovery_count", 7),
        ("lastImageSubscriptionRecoveryPolicy", "subscription_recovery_count", 1),
        ("timedSubscriptionRecoveryPolicy", "subscription_recovery_duration", 60_000),
        ("timedSubscriptionRecoveryPolicy recoverDuration='5'", "subscription_recovery_duration", 5),
        ("fixedSizedSubscriptionRecoveryPolicy useSharedBuffer='false'", "subscription_recovery_size", 65_536),
        ("fixedSizedSubscriptionRecoveryPolicy maximumSize='1000'", "subscription_recovery_size", 1_000),
        ("retainedMessageSubscriptionRecoveryPolicy", "subscription_recovery_retained", True),
        ("noSubscriptionRecoveryPolicy", "subscription_recovery_count", 0),
    ],
)
def test_a_recovery_policy_is_for_those_that_ask(tmp_path: Path, bean: str, field: str, value: object) -> None:
    policy = f"<subscriptionRecoveryPolicy><{bean}/></subscriptionRecoveryPolicy>"
    # The broader one says something else, which must not shine through.
    wide = "<subscriptionRecoveryPolicy><fixedCountSubscriptionRecoveryPolicy/></subscriptionRecoveryPolicy>"
    made = convert(
        tmp_path,
        f'<policyEntry topic=">" alwaysRetroactive="true">{wide}</policyEntry><policyEntry topic="news">{policy}'
        "</policyEntry>",
    )
    found = made.resolve("news")
    kept = {
        "subscription_recovery_count": found.subscription_recovery_count,
        "subscription_recovery_duration": found.subscription_recovery_duration,
        "subscription_recovery_size": found.subscription_recovery_size,
        "subscription_recovery_retained": found.subscription_recovery_retained,
    }
    assert {name: kept[name] for name in kept if kept[name]} == ({field: value} if value else {})
    assert found.always_retroactive is False
    assert made.left_out == []


def test_a_retained_message_and_the_policy_that_it_wraps(tmp_path: Path) -> None:
    inner = "<timedSubscriptionRecoveryPolicy recoverDuration='9'/>"
    bean = f"<retainedMessageSubscriptionRecoveryPolicy><wrapped>{inner}</wrapped>"
    bean += "</retainedMessageSubscriptionRecoveryPolicy>"
    policy = f"<subscriptionRecoveryPolicy>{bean}</subscriptionRecoveryPolicy>"
    made = convert(tmp_path, f'<policyEntry topic="news">{policy}</policyEntry>')
    found = made.resolve("news")
    assert (found.subscription_recovery_retained, found.subscription_recovery_duration) == (True, 9)
    assert (made.left_out, found.always_retroactive) == ([], None)


def test_policies_of_topics_alone_do_not_meet_those_of_queues(tmp_path: Path) -> None:
    policy = "<subscriptionRecoveryPolicy><lastImageSubscriptionRecoveryPolicy/></subscriptionRecoveryPolicy>"
    made = convert(
        tmp_path,
        f'<policyEntry queue=">"/><policyEntry topic=">" alwaysRetroactive="true">{policy}</policyEntry>',
    )
    found = made.resolve("news")
    assert (found.subscription_recovery_count, found.always_retroactive) == (1, True)
    assert made.left_out == []


def test_dispatch_by_priority(tmp_path: Path) -> None:
    made = convert(
        tmp_path,
        '<policyEntry topic="news"><dispatchPolicy><priorityDispatchPolicy/></dispatchPolicy></policyEntry>',
    )
    assert made.resolve("news").dispatch_policy is DispatchPolicy.PRIORITY
    assert made.left_out == []


@pytest.mark.parametrize(
    "bean, expected",
    [
        # Duration, count, time since the last acknowledgement, connection, idle ones, looks in s.
        ("abortSlowConsumerStrategy", (30_000, -1, -1, False, True, 30)),
        (
            "abortSlowConsumerStrategy maxSlowDuration='5000' maxSlowCount='3' abortConnection='true' checkPeriod='5'",
            (5_000, 3, -1, True, True, 1),
        ),
        ("abortSlowConsumerStrategy maxSlowDuration='-1' ignoreNetworkConsumers='true'", (-1, -1, -1, False, True, 30)),
        ("abortSlowAckConsumerStrategy", (-1, -1, 30_000, False, True, 30)),
        (
            "abortSlowAckConsumerStrategy maxTimeSinceLastAck='5000' ignoreIdleConsumers='false' checkPeriod='2000'",
            (-1, -1, 33_000, False, False, 2),
        ),
        (
            "abortSlowAckConsumerStrategy maxTimeSinceLastAck='5000' maxSlowCount='3' checkPeriod='2000'",
            (-1, -1, 9_000, False, True, 2),
        ),
        ("abortSlowAckConsumerStrategy maxSlowDuration='-1'", (-1, -1, -1, False, True, 5)),
        ("abortSlowAckConsumerStrategy maxTimeSinceLastAck='-1'", (-1, -1, -1, False, True, 5)),
    ],
)
def test_slow_consumers_are_closed(tmp_path: Path, bean: str, expected: tuple[object, ...]) -> None:
    strategy = f"<slowConsumerStrategy><{bean}/></slowConsumerStrategy>"
    made = convert(tmp_path, f'<policyEntry queue="q">{strategy}</policyEntry>')
    found = made.resolve("q")
    assert expected == (
        found.slow_consumer_max_duration,
        found.slow_consumer_max_count,
        found.slow_consumer_max_time_since_last_ack,
        found.slow_consumer_abort_connection,
        found.slow_consumer_ignore_idle,
        found.slow_consumer_check_period,
    )
    assert made.left_out == []


@pytest.mark.parametrize(
    "bean",
    [
        "slowConsumerStrategy><abortSlowAckConsumerStrategy checkPeriod='often'",
        "slowConsumerStrategy><abortSlowConsumerStrategy maxSlowDuration='long'",
        "subscriptionRecoveryPolicy><timedSubscriptionRecoveryPolicy recoverDuration='-1'",
    ],
)
def test_a_strategy_with_a_wrong_value_is_left_out(tmp_path: Path, bean: str) -> None:
    wrapper = bean.partition(">")[0]
    made = convert(tmp_path, f'<policyEntry topic="t"><{bean}/></{wrapper}></policyEntry>')
    assert len(made.said(RemarkKind.WRONG)) == 1


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
        ('<policyEntry queue="a*"/>', "as words of their own"),
        ('<policyEntry queue="a.#"/>', "'#', too, is one here"),
        ('<policyEntry queue="a::b"/>', "without '::'"),
        ('<policyEntry queue="a"/><policyEntry queue="a"/>', "a second policyEntry for queue 'a'"),
        ('<policyEntry tempQueue="true" queuePrefetch="1"/>', "temporary destinations have no settings"),
        ('<policyEntry queue="a" expireMessagesPeriod="5"/>', "one period holds for all addresses"),
    ],
)
def test_entries_that_match_nothing_here_are_left_out(tmp_path: Path, entries: str, part: str) -> None:
    assert [part in sentence for sentence in convert(tmp_path, entries).left_out] == [True]


def test_queues_and_topics_of_one_name_are_told_apart_no_more(tmp_path: Path) -> None:
    one = convert(tmp_path, '<policyEntry queue="a.>" sendFailIfNoSpace="true"/>')
    ((line, sentence),) = one.said(RemarkKind.DIFFERENT)
    assert line == 3
    assert "holds for topics of match 'a.#' as well" in sentence
    both = convert(tmp_path, '<policyEntry queue=">"/>\n<policyEntry topic=">" sendFailIfNoSpace="true"/>')
    ((line, sentence),) = both.said(RemarkKind.IMPOSSIBLE)
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

    monkeypatch.setattr("delosmq.migration.activemq_xml.policies.overlap", counting)
    names = {f"q{number}": {"default-exclusive-queue": "true"} for number in range(200)}
    assert restate({"#": {"max-delivery-attempts": "3"}, **names})["q7"]["max-delivery-attempts"] == "7"
    assert compared <= 2 * len(names)


_LIMIT = "<pendingMessageLimitStrategy>{}</pendingMessageLimitStrategy>"
_EVICTION = "<messageEvictionStrategy>{}</messageEvictionStrategy>"


@pytest.mark.parametrize(
    ("inner", "field", "value"),
    [
        (_LIMIT.format("<constantPendingMessageLimitStrategy limit='9'/>"), "pending_message_limit", 9),
        (_LIMIT.format("<constantPendingMessageLimitStrategy/>"), "pending_message_limit", -1),
        (_LIMIT.format("<constantPendingMessageLimitStrategy limit='-7'/>"), "pending_message_limit", -1),
        (_LIMIT.format("<prefetchRatePendingMessageLimitStrategy/>"), "pending_message_limit_multiplier", 0.5),
        (
            _LIMIT.format("<prefetchRatePendingMessageLimitStrategy multiplier='2.5'/>"),
            "pending_message_limit_multiplier",
            2.5,
        ),
        (_EVICTION.format("<oldestMessageEvictionStrategy/>"), "message_eviction", MessageEviction.OLDEST),
        (
            _EVICTION.format("<oldestMessageWithLowestPriorityEvictionStrategy/>"),
            "message_eviction",
            MessageEviction.LOWEST_PRIORITY,
        ),
        (
            _EVICTION.format("<uniquePropertyMessageEvictionStrategy propertyName='symbol'/>"),
            "message_eviction",
            MessageEviction.UNIQUE_PROPERTY,
        ),
        (
            _EVICTION.format("<uniquePropertyMessageEvictionStrategy propertyName='symbol'/>"),
            "message_eviction_key",
            "symbol",
        ),
    ],
)
def test_what_waits_for_slow_topic_consumers(tmp_path: Path, inner: str, field: str, value: object) -> None:
    made = convert(tmp_path, f'<policyEntry topic="news.>">{inner}</policyEntry>')
    assert made.left_out == []
    assert getattr(made.resolve("news.today"), field) == value


def test_the_limit_of_a_narrower_policy_replaces_that_of_a_wider_one(tmp_path: Path) -> None:
    rate = _LIMIT.format("<prefetchRatePendingMessageLimitStrategy multiplier='2'/>")
    constant = _LIMIT.format("<constantPendingMessageLimitStrategy limit='9'/>")
    eviction = _EVICTION.format("<oldestMessageWithLowestPriorityEvictionStrategy/>")
    made = convert(
        tmp_path,
        f'<policyEntry topic=">" topicPrefetch="7" usePrefetchExtension="false">{rate}{eviction}</policyEntry>'
        f'<policyEntry topic="news">{constant}</policyEntry>',
    )
    wide, narrow = made.resolve("other"), made.resolve("news")
    assert (wide.pending_message_limit, wide.pending_message_limit_multiplier) == (-1, 2.0)
    assert (narrow.pending_message_limit, narrow.pending_message_limit_multiplier) == (9, -1.0)
    assert (wide.message_eviction, narrow.message_eviction) == (MessageEviction.LOWEST_PRIORITY, MessageEviction.OLDEST)
    assert (wide.topic_prefetch, narrow.topic_prefetch) == (7, 32_767)
    assert (wide.use_prefetch_extension, narrow.use_prefetch_extension) == (False, True)


@pytest.mark.parametrize(
    ("attribute", "field", "value"),
    [
        ('queue="a" queuePrefetch="0"', "queue_prefetch", 0),
        ('queue="a" queueBrowserPrefetch="7"', "queue_browser_prefetch", 7),
        ('topic="a" topicPrefetch="7"', "topic_prefetch", 7),
        ('topic="a" durableTopicPrefetch="7"', "durable_topic_prefetch", 7),
        ('queue="a" usePrefetchExtension="false"', "use_prefetch_extension", False),
        ('queue="a" maxBrowsePageSize="7"', "max_browse_page_size", 7),
        ('queue="a" maxBrowsePageSize="0"', "max_browse_page_size", -1),
    ],
)
def test_prefetches_and_what_browsers_see(tmp_path: Path, attribute: str, field: str, value: object) -> None:
    made = convert(tmp_path, f"<policyEntry {attribute}/>")
    assert made.left_out == []
    assert getattr(made.resolve("a"), field) == value


def test_browsers_see_everything_where_no_policy_of_queues_says_otherwise(tmp_path: Path) -> None:
    # Classic bounds a browser by the policyEntry it finds for the queue, to 400 by default, and by none otherwise.
    made = convert(
        tmp_path,
        '<policyEntry queue="a.>" producerFlowControl="true"/><policyEntry queue="a.wide" maxBrowsePageSize="0"/>'
        '<policyEntry topic=">" advisoryForConsumed="true"/>',
    )
    pages = {name: made.resolve(name).max_browse_page_size for name in ("a", "a.b", "a.wide", "b")}
    assert pages == {"a": 400, "a.b": 400, "a.wide": -1, "b": -1}


def test_the_default_policy_bounds_browsers(tmp_path: Path) -> None:
    policy_map = (
        "<destinationPolicy><policyMap><defaultEntry><policyEntry/></defaultEntry><policyEntries>"
        "<policyEntry queue='a' maxBrowsePageSize='7'/></policyEntries></policyMap></destinationPolicy>"
    )
    made = convert_text(broker(policy_map), tmp_path)
    assert [made.resolve(name).max_browse_page_size for name in ("a", "b")] == [7, 400]


def test_a_prefetch_below_0_is_wrong(tmp_path: Path) -> None:
    made = convert(tmp_path, '<policyEntry queue="a" queuePrefetch="-1"/>')
    assert "'queuePrefetch'" in made.said(RemarkKind.WRONG)[0][1]
    assert made.resolve("a").queue_prefetch == -1
