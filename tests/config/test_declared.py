"""A setting of a queue is declared once: what is made from the declarations has each of them, and nothing else."""

from dataclasses import fields
from pathlib import Path

from delosmq.cli.options import NUMBERS, SWITCHES
from delosmq.config.broker_xml.catalog.addresses import QUEUE
from delosmq.engine.addresses.binding_codec import queue_from_json, settings_as_json
from delosmq.manage.control.queue_info import QueueInfo
from delosmq.manage.http.requests.resources import CreateQueue, UpdateQueue
from delosmq.model.declared.queue import QUEUE_SETTINGS, ResolvedSettings, resolve
from delosmq.model.settings import AddressSettings, QueueSettings

DOCS = Path(__file__).resolve().parents[2] / "docs"
EXAMPLES: dict[type, object] = {bool: True, int: 7, str: "word"}
NO_SETTINGS_OF_AN_ADDRESS = {
    *("name", "address", "routing_type", "durable", "filter", "enabled", "paused", "auto_created", "user"),
}


def own() -> dict[str, object]:
    """A value for each declared setting."""
    return {name: EXAMPLES[setting.kind] for name, setting in QUEUE_SETTINGS.items()}


def test_every_setting_that_an_address_may_have_a_default_of_is_declared() -> None:
    assert {field.name for field in fields(QueueSettings)} - NO_SETTINGS_OF_AN_ADDRESS == set(QUEUE_SETTINGS)
    assert {field.name for field in fields(ResolvedSettings)} == {*QUEUE_SETTINGS, "last_value"}


def test_every_default_is_a_setting_of_the_address_and_of_one_queue_setting_only() -> None:
    named = [name for setting in QUEUE_SETTINGS.values() for name in setting.defaults]
    assert len(set(named)) == len(named)
    known = {field.name for field in fields(AddressSettings)}
    assert set(named) <= known
    of_no_queue = {"default_address_routing_type", "default_queue_routing_type", "default_consumer_window_size"}
    assert {name for name in known if name.startswith("default_")} - of_no_queue <= set(named)


def test_what_a_queue_says_is_in_force() -> None:
    resolved = resolve(QueueSettings("q", "a", **own()), AddressSettings())  # type: ignore[arg-type]
    assert {name: getattr(resolved, name) for name in QUEUE_SETTINGS} == own()


def test_what_a_queue_says_is_stored() -> None:
    settings = QueueSettings("q", "a", **own())  # type: ignore[arg-type]
    assert queue_from_json(settings_as_json(settings)) == settings
    assert set(QUEUE_SETTINGS) <= settings_as_json(settings).keys()


def test_broker_xml_knows_each() -> None:
    assert {f"@{name.replace('_', '-')}" for name in QUEUE_SETTINGS} | {"@name", "@last-value", "@enabled"} == {
        name for name in QUEUE if name.startswith("@")
    }


def test_management_and_the_command_line_know_each() -> None:
    changeable = {name for name, setting in QUEUE_SETTINGS.items() if not setting.fixed}
    assert set(QUEUE_SETTINGS) <= CreateQueue.model_fields.keys()
    assert QUEUE_SETTINGS.keys() & UpdateQueue.model_fields.keys() == changeable
    assert set(QUEUE_SETTINGS) <= {field.name for field in fields(QueueInfo)}
    assert {name for name, setting in QUEUE_SETTINGS.items() if setting.kind is not str} <= SWITCHES | NUMBERS


def test_the_manual_names_each() -> None:
    for page in ("http.md", "storage-format.md"):
        text = (DOCS / page).read_text("utf-8")
        assert [name for name in QUEUE_SETTINGS if f"`{name}`" not in text] == [], page
