"""One set of checks: what broker.xml refuses of a queue is refused at run time, and the other way round."""

# BROKER-3

from pathlib import Path

import pytest

from delosmq.config.broker_xml import load_broker_xml
from delosmq.model.errors import ConfigurationError, MisuseError
from delosmq.model.settings import AddressMatch, BrokerSettings, QueueSettings
from tests.engine.routing_support import RoutingBench

XML = (
    '<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core"><addresses><address name="a"><anycast>'
    '<queue name="q" {}/></anycast></address></addresses></core></configuration>'
)
NUMBERS = (
    "ring_size",
    "max_consumers",
    "group_buckets",
    "consumers_before_dispatch",
    "delay_before_dispatch",
    "auto_delete_delay",
    "auto_delete_message_count",
)
CASES: list[dict[str, object]] = [
    *({name: value} for name in NUMBERS for value in (-2, -1, 0, 1)),
    {"max_consumers": 1, "consumers_before_dispatch": 2},
    {"max_consumers": 1, "consumers_before_dispatch": 2, "delay_before_dispatch": 5},
    {"max_consumers": 1, "consumers_before_dispatch": 2, "delay_before_dispatch": -1},
    {"max_consumers": 2, "consumers_before_dispatch": 2},
    {"max_consumers": -1, "consumers_before_dispatch": 2},
    {"non_destructive": True, "purge_on_no_consumers": True},
    {"non_destructive": True, "purge_on_no_consumers": False},
    {"exclusive": True, "group_rebalance": True},
]


def written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def refused_by_xml(tmp_path: Path, settings: dict[str, object]) -> bool:
    path = tmp_path / "broker.xml"
    path.write_text(XML.format(" ".join(f'{k.replace("_", "-")}="{written(v)}"' for k, v in settings.items())))
    try:
        load_broker_xml(path, properties={}, memory_bytes=1 << 30)
    except ConfigurationError:
        return True
    return False


def refused_by_engine(settings: dict[str, object]) -> bool:
    try:
        RoutingBench().broker.resources.create_queue(QueueSettings("q", "a", **settings))  # type: ignore[arg-type]
    except MisuseError:
        return True
    return False


@pytest.mark.parametrize("settings", CASES, ids=str)
def test_broker_xml_and_the_running_broker_refuse_the_same(tmp_path: Path, settings: dict[str, object]):
    assert refused_by_engine(settings) == refused_by_xml(tmp_path, settings)


def test_a_change_that_contradicts_what_is_there_is_refused_and_changes_nothing():
    bench = RoutingBench(BrokerSettings(queues=(QueueSettings("q", "a", consumers_before_dispatch=3),)))
    with pytest.raises(MisuseError, match=r"DMQ2626: queue 'q' waits for 3 consumers .* lets in 2 .*"):
        bench.broker.resources.update_queue("q", max_consumers=2)
    assert bench.broker.queues["q"].in_force.max_consumers == -1


def test_what_contradicts_a_default_of_its_address_is_refused():
    settings = BrokerSettings(address_settings=(AddressMatch("#", {"default_purge_on_no_consumers": True}),))
    with pytest.raises(MisuseError, match="set one of the two to false"):
        RoutingBench(settings).broker.resources.create_queue(QueueSettings("q", "a", non_destructive=True))


def test_a_queue_that_contradicts_itself_already_can_be_paused():
    entries = (
        AddressMatch("#", {"default_purge_on_no_consumers": True}),
        AddressMatch("a", {"default_non_destructive": True}),
    )
    bench = RoutingBench(BrokerSettings(address_settings=entries))
    bench.broker.resources.create_queue(QueueSettings("q", "a"))
    bench.broker.resources.update_queue("q", paused=True)
    assert bench.broker.queues["q"].paused
