"""docs/several-brokers.md: what it shows is a configuration that starts."""

import re
from pathlib import Path

import pytest

from delosmq.config.broker_xml import load_broker_xml

PAGE = Path(__file__).resolve().parents[1] / "docs" / "several-brokers.md"
APPLIED = ("Takeover", "A router before a pair")
"""Sections whose elements tests/ha/test_manual.py puts into files of brokers that run."""
XML = [
    core
    for section in PAGE.read_text("utf-8").split("\n## ")
    if section.partition("\n")[0] not in APPLIED
    for core in re.findall(r"^```xml\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
]


@pytest.mark.parametrize("core", XML)
def test_each_configuration_of_the_page_starts(core: str, tmp_path: Path) -> None:
    path = tmp_path / "broker.xml"
    path.write_text(
        f'<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">{core}</core></configuration>'
    )
    loaded = load_broker_xml(path, properties={}, memory_bytes=1024**3)
    names = {router.name for router in loaded.settings.connection_routers}
    finds_others = loaded.settings.broadcast_groups and loaded.settings.discovery_groups
    assert names or finds_others or loaded.settings.database
    assert (loaded.settings.ha_policy is not None) == ("<ha-policy>" in core)
    assert {acceptor.router for acceptor in loaded.settings.acceptors} == names
