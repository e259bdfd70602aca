"""URLs and destinations: what they say, and how a mistake is answered."""

# ACK-6

import re
from pathlib import Path
from typing import Any

import pytest

from delosmq.client import ClientOptionError, JmsDestination, RedeliveryPolicy, connect
from delosmq.client.destinations import named
from delosmq.client.options.option_texts import bounds_of, kinds_of, names
from delosmq.client.options.option_texts import written as to_text
from delosmq.client.options.redelivery_policies import RedeliveryPolicies
from delosmq.client.options.urls import BrokerAddress, FailoverOptions, TransportOptions, plan_of
from delosmq.sessions.openwire.client.options import (
    DESTINATION_KINDS,
    PRODUCER_KINDS,
    ClientOptions,
    PrefetchPolicy,
    WireFormatOptions,
)

PAGE = Path(__file__).parents[2] / "docs" / "client.md"
OF_OPTIONS = ("The URL", "A connection that is made again")


def test_a_url_without_options_has_the_java_client_s_defaults() -> None:
    plan = plan_of("tcp://broker")
    assert plan.addresses[0] == BrokerAddress("tcp", "broker", 61616)
    assert plan.options.prefetch_policy.queue_prefetch == 1000
    assert plan.options.redelivery_policy.maximum_redeliveries == 6
    assert str(plan_of("ssl://[::1]:1234")) == "ssl://[::1]:1234"


def test_options_of_all_kinds() -> None:
    plan = plan_of(
        "tcp://broker:1?jms.userName=u&jms.password=p%26&jms.clientID=c&jms.useAsyncSend=TRUE"
        "&jms.optimizeAcknowledgeTimeOut=5&jms.prefetchPolicy.all=7&jms.prefetchPolicy.topicPrefetch=8"
        "&jms.redeliveryPolicy.backOffMultiplier=2.5&wireFormat.maxInactivityDuration=0&wireFormat.maxFrameSize=9"
        "&transport.keepAlive=true&connectionTimeout=10&jms.producerWindowSize=11"
    )
    options = plan.options
    assert (plan.user, plan.password, options.client_id) == ("u", "p&", "c")
    assert (options.use_async_send, options.optimize_acknowledge_time_out_ms) == (True, 5)
    assert (options.prefetch_policy.queue_prefetch, options.prefetch_policy.topic_prefetch) == (7, 8)
    assert options.redelivery_policy.back_off_multiplier == 2.5
    assert (options.wire_format.max_inactivity_duration_ms, options.wire_format.max_frame_size_bytes) == (0, 9)
    assert plan.addresses[0].transport == TransportOptions(connection_timeout_ms=10, keep_alive=True)
    assert options.producer_window_size_bytes == 11
    assert "p&" not in repr(plan)


def test_a_list_of_brokers() -> None:
    plan = plan_of(
        "failover:(tcp://a:1?keepAlive=true,ssl://b?wireFormat.maxInactivityDuration=7)?randomize=false"
        "&maxReconnectAttempts=3&jms.useAsyncSend=true&connectionTimeout=5"
    )
    assert str(plan) == "failover:(tcp://a:1,ssl://b:61617)"
    assert [one.transport.keep_alive for one in plan.addresses] == [True, False]
    assert [one.transport.connection_timeout_ms for one in plan.addresses] == [5, 5]
    assert plan.failover == FailoverOptions(randomize=False, max_reconnect_attempts=3)
    assert plan.options.use_async_send
    assert plan.options.wire_format.max_inactivity_duration_ms == 7
    assert str(plan_of("failover://(tcp://a)")) == str(plan_of("failover:tcp://a")) == "failover:(tcp://a:61616)"
    assert plan_of("tcp://a").failover is None


def test_delays_between_rounds_grow_up_to_a_limit() -> None:
    options = FailoverOptions(max_reconnect_delay_ms=50)
    assert [options.delay_ms(rounds) for rounds in (1, 2, 3, 4, 100)] == [10, 20, 40, 50, 50]
    assert FailoverOptions(use_exponential_back_off=False).delay_ms(9) == 10


@pytest.mark.parametrize(
    "url, said",
    [
        ("tcpp://x", "DMQ9052: 'tcpp://x' is no URL of a broker: the scheme 'tcpp' is not known; did you mean tcp://?"),
        ("localhost:61616", "DMQ9052"),
        ("tcp://", "DMQ9052: 'tcp://' is no URL of a broker: it names no host; write tcp://host:61616."),
        ("tcp://x:99999", "DMQ9052"),
        ("tcp://x:0", "DMQ9052: 'tcp://x:0' is no URL of a broker: port 0 is none to connect to; write tcp://x:61616."),
        ("failover:()", "DMQ9052: 'failover:' is no URL of a broker: it lists no broker;"),
        ("failover:(tcp://a", "DMQ9052: 'failover:' is no URL of a broker: write failover:(tcp://a:61616,"),
        ("failover:(tcp://a)?randomise=true", "DMQ9050: failover:(tcp://a:61616): there is no option 'randomise'; did"),
        ("tcp://a?randomize=true", "DMQ9050: tcp://a: there is no option 'randomize'"),
        ("tcp://x/queue", "DMQ9052: 'tcp://x/queue' is no URL of a broker: leave out '/queue'."),
        ("tcp://u:secret@x", "DMQ9052: 'tcp://...' is no URL of a broker: it holds a user;"),
        (
            "tcp://x?jms.prefetchPolicy.queuePrefech=1",
            "DMQ9050: tcp://x: there is no option 'jms.prefetchPolicy.queuePrefech'; did you mean"
            " 'jms.prefetchPolicy.queuePrefetch'?",
        ),
        ("tcp://x?useAsyncSend=true", "DMQ9050: tcp://x: there is no option 'useAsyncSend'; did you mean"),
        ("tcp://x?jms.useAsyncSend=yes", "DMQ9051: tcp://x: 'jms.useAsyncSend' is 'yes', but must be true or false."),
        (
            "tcp://x?jms.closeTimeout=1s",
            "DMQ9051: tcp://x: 'jms.closeTimeout' is '1s', but must be a whole number from 0 to 2**62.",
        ),
        ("tcp://x?jms.closeTimeout", "DMQ9051: tcp://x: 'jms.closeTimeout' is '', but must be written as name=value."),
        (
            "tcp://x?jms.prefetchPolicy.all=40000",
            "DMQ9051: tcp://x: 'jms.prefetchPolicy.all' is '40000', but must be a whole number from 0 to 32767.",
        ),
        (
            "failover:(tcp://a)?maxReconnectAttempts=-2",
            "DMQ9051: failover: 'maxReconnectAttempts' is '-2', but must be a whole number from -1 to 2147483647.",
        ),
        (
            "tcp://x?jms.useAsyncSend=true&jms.useAsyncSend=false",
            "DMQ9051: tcp://x: 'jms.useAsyncSend' is 'false', but must be written once.",
        ),
        (
            "tcp://x?jms.password=my#secret",
            "DMQ9052: 'tcp://x' is no URL of a broker: what follows a '#' is no part of it; write %23 for a '#' in a",
        ),
        ("failover:(tcp://a)?timeout", "DMQ9051: failover: 'timeout' is '', but must be written as name=value."),
    ],
)
def test_a_wrong_url_is_answered_with_what_was_meant(url: str, said: str) -> None:
    with pytest.raises(ClientOptionError) as caught:
        plan_of(url)
    assert str(caught.value).startswith(said)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "option",
    [
        "transport.connectionTimeout=-1",
        "connectionTimeout=-1",
        "jms.sendTimeout=-1",
        "jms.sendTimeout=1.5",
        "jms.closeTimeout=-1",
        "jms.connectResponseTimeout=-1",
        "jms.producerWindowSize=-1",
        "jms.producerWindowSize=4000000000",
        "jms.optimizeAcknowledgeTimeOut=-1",
        "jms.auditDepth=-1",
        "jms.prefetchPolicy.queuePrefetch=-1",
        "jms.prefetchPolicy.all=-1",
        "jms.prefetchPolicy.maximumPendingMessageLimit=-2",
        "jms.redeliveryPolicy.maximumRedeliveries=-2",
        "jms.redeliveryPolicy.initialRedeliveryDelay=-1",
        "jms.redeliveryPolicy.redeliveryDelay=-1",
        "jms.redeliveryPolicy.backOffMultiplier=-1",
        "jms.redeliveryPolicy.backOffMultiplier=0",
        "jms.redeliveryPolicy.backOffMultiplier=nan",
        "jms.redeliveryPolicy.backOffMultiplier=inf",
        "jms.redeliveryPolicy.collisionAvoidancePercent=-1",
        "wireFormat.maxFrameSize=0",
        "wireFormat.maxFrameSize=9999999999999999999",
        "wireFormat.maxInactivityDuration=-1",
        "wireFormat.version=0",
        "wireFormat.version=13",
    ],
)
def test_an_option_that_can_t_be_meant_so_is_refused_by_its_name(option: str) -> None:
    name, _, value = option.partition("=")
    with pytest.raises(ClientOptionError) as caught:
        plan_of(f"tcp://x?{option}")
    written = f"transport.{name}" if "." not in name else name
    assert str(caught.value).startswith(f"DMQ9051: tcp://x: '{written}' is '{value}', but must be a ")


@pytest.mark.parametrize("option", ["initialReconnectDelay=-1", "reconnectDelayExponent=nan", "maxReconnectDelay=-1"])
def test_so_is_one_of_failover(option: str) -> None:
    name, _, value = option.partition("=")
    with pytest.raises(ClientOptionError) as caught:
        plan_of(f"failover:(tcp://x)?{option}")
    assert str(caught.value).startswith(f"DMQ9051: failover: '{name}' is '{value}', but must be a ")


def test_every_default_is_within_its_bounds() -> None:
    for options in (ClientOptions(), PrefetchPolicy(), RedeliveryPolicy(), WireFormatOptions(), FailoverOptions()):
        for name, kind in kinds_of(options).items():
            if kind in (int, float):
                least, most = bounds_of(name)
                assert least <= getattr(options, name) <= most, name


@pytest.mark.sources
def test_each_option_is_on_the_page_and_no_other() -> None:
    accepted = {"jms.userName", "jms.password", "jms.prefetchPolicy.all", *names(FailoverOptions(), "")}
    for prefix, options in (
        ("jms.", ClientOptions()),
        ("jms.prefetchPolicy.", PrefetchPolicy()),
        ("jms.redeliveryPolicy.", RedeliveryPolicy()),
        ("wireFormat.", WireFormatOptions()),
        ("transport.", TransportOptions()),
    ):
        accepted.update(names(options, prefix))
    text = PAGE.read_text("utf-8")
    tables = [text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0] for heading in OF_OPTIONS]
    written: list[str] = []
    for cell in re.findall(r"^\| (`[^|]*) \|[^|]*\|[^|]*\|$", "\n".join(tables), re.MULTILINE):
        for name in re.findall("`([^`]*)`", cell):
            written.append(f"{written[-1].rpartition('.')[0]}{name}" if name.startswith(".") else name)
    assert sorted(written) == sorted(accepted)


@pytest.mark.sources
def test_so_is_each_option_of_a_destination() -> None:
    part = PAGE.read_text("utf-8").partition("\n## Destinations\n")[2].partition("\n## ")[0]
    for prefix, kinds in (("", DESTINATION_KINDS), ("producer.", PRODUCER_KINDS)):
        for name in kinds:
            assert f"`{prefix}{to_text(name)}`" in part


def test_destinations_by_name() -> None:
    assert named("orders") == JmsDestination("orders")
    assert named("prices", topic=True) == named("topic://prices") == JmsDestination("prices", is_topic=True)
    assert named("temp-queue://a:1") == JmsDestination("a:1", is_temporary=True)
    assert named("queue://http://a") == JmsDestination("http://a")
    assert [str(named(one)) for one in ("a", "topic://a", "temp-topic://a")] == [
        "queue://a",
        "topic://a",
        "temp-topic://a",
    ]


def test_a_destination_s_options_are_its_consumers_and_no_part_of_its_name() -> None:
    one = named("orders?consumer.exclusive=true&consumer.prefetchSize=3&consumer.selector=a%20%3D%201")
    assert (one.name, one.options.exclusive, one.options.prefetch_size) == ("orders", True, 3)
    assert one.options.selector == "a = 1"
    assert one == named("orders")


@pytest.mark.parametrize(
    "written, said",
    [
        ("orders?consumer.exclusiv=true", "DMQ9050: destination orders: there is no option 'consumer.exclusiv'; did"),
        ("orders?consumer.priority=high", "DMQ9051: destination orders: 'consumer.priority' is 'high'"),
        ("orders?consumer.priority=200", "DMQ9051: destination orders: 'consumer.priority' is '200', but must be a w"),
        ("orders?consumer.prefetchSize=-1", "DMQ9051: destination orders: 'consumer.prefetchSize' is '-1', but must"),
        (
            "orders?producer.windowSiz=1",
            "DMQ9050: destination orders: there is no option 'producer.windowSiz'; did you mean 'producer.windowSize'?",
        ),
        ("orders?windowSize=1", "DMQ9050: destination orders: there is no option 'windowSize'; did you mean"),
        ("", "DMQ9055"),
        ("topic://", "DMQ9055"),
        (
            "Topic://prices",
            "DMQ9055: 'Topic://prices' is no destination: the scheme 'Topic' is not known; did you mean topic://? Write"
            " queue://Topic://prices for a queue of that name.",
        ),
        (
            "http://prices",
            "DMQ9055: 'http://prices' is no destination: the scheme 'http' is not known; write queue://h",
        ),
    ],
)
def test_a_wrong_destination_is_refused(written: str, said: str) -> None:
    with pytest.raises(ClientOptionError) as caught:
        named(written)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize("given", [None, 5, b"orders"])
def test_a_destination_that_is_no_text_is_refused(given: Any) -> None:
    with pytest.raises(ClientOptionError, match=r"DMQ9056: destination is .*, but must be a str such as 'orders'"):
        named(given)


@pytest.mark.parametrize("given", [None, 5, b"tcp://x"])
def test_a_url_that_is_no_text_is_refused(given: Any) -> None:
    with pytest.raises(ClientOptionError, match=r"DMQ9056: url is .*, but must be a str such as tcp://localhost:61616"):
        connect(given)


def test_a_login_that_is_no_text_is_refused_and_not_shown() -> None:
    secret: Any = b"secret"
    with pytest.raises(ClientOptionError) as caught:
        connect("tcp://localhost:1", user="tea", password=secret)
    assert str(caught.value) == "DMQ9056: password is <class 'bytes'>, but must be a str."


def test_options_of_producers_stand_behind_the_destination_too() -> None:
    one = named("orders?producer.windowSize=2000&producer.dispatchAsync=true&consumer.priority=-3")
    assert (one.producer_options.window_size_bytes, one.producer_options.dispatch_async) == (2000, True)
    assert one.options.priority == -3


def policies(**limits: int) -> RedeliveryPolicies:
    made = {name: RedeliveryPolicy(maximum_redeliveries=limit) for name, limit in limits.items()}
    return RedeliveryPolicies(made, RedeliveryPolicy(maximum_redeliveries=0))


@pytest.mark.parametrize(
    "name, limit",
    [
        ("orders", 1),
        ("orders.tea", 2),
        ("orders.tea.hot", 3),
        ("orders.tea.green.hot", 4),
        ("topic://orders", 0),
        ("topic://prices.tea", 5),
        ("temp-queue://orders.tea", 0),
        ("other,orders", 1),
        ("other", 0),
    ],
)
def test_the_most_exact_redelivery_policy_counts(name: str, limit: int) -> None:
    made = policies(
        **{"orders": 1, "orders.*": 2, "orders.*.hot": 3, "orders.>": 4, "topic://prices.>": 5, "queue://x": 6}
    )
    assert made.policy_of(named(name).wire()).maximum_redeliveries == limit


def test_a_redelivery_policy_that_is_none_is_refused() -> None:
    with pytest.raises(ClientOptionError, match=r"DMQ9056: redelivery_policies\['orders'\] is 3, but must be a Red"):
        connect("tcp://localhost:1", redelivery_policies={"orders": 3})  # type: ignore[dict-item]
    with pytest.raises(ClientOptionError, match="DMQ9055"):
        policies(**{"topic://": 1})


@pytest.mark.parametrize("url", ["tpc://app:s3cret@a:1", "tcp://app:s3cret@a:99999", "failover:(tpc://app:s3cret@a:1)"])
def test_a_password_in_a_url_with_another_mistake_is_not_shown(url: str) -> None:
    with pytest.raises(ClientOptionError, match="DMQ9052") as caught:
        plan_of(url)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "tcp://a:1?transport.trustStore=x.pem",
        "tcp://a:1?keyStorePassword=x",
        "vm://a?transport.verifyHostName=false",
        "failover:(tcp://a:1,tcp://b:1)?trustStore=x.pem",
        "failover:(ssl://a:1,tcp://b:1?transport.keyStore=x.pem)",
    ],
)
def test_an_option_of_tls_is_refused_where_there_is_none(url: str) -> None:
    with pytest.raises(ClientOptionError, match=r"DMQ9085: .*is about TLS.*write ssl://"):
        plan_of(url)


def test_an_option_of_tls_is_for_all_of_a_list_that_have_it() -> None:
    plan = plan_of("failover:(ssl://a:1,tcp://b:1)?trustStore=x.pem")
    assert plan.addresses[0].transport.trust_store == "x.pem"
