"""Policies that packages bring by an entry point."""

# ROUTE-4

import sys
from pathlib import Path

import pytest

from delosmq.composition.connection_routers import ConnectionRouters
from delosmq.config.broker_xml import load_broker_xml
from delosmq.model.errors import ConfigurationError
from delosmq.model.settings import BrokerSettings
from delosmq.server.clock import SystemClock
from tests.server.support import SystemRandom

MODULE = """
from delosmq.routers.policy import RouterPolicy

class FirstLetter(RouterPolicy):
    def __init__(self, properties, start):
        self.letters = int(properties["LETTERS"])

    def transform(self, key):
        return key[: self.letters]

    def select(self, targets, key):
        return None
"""
BROKER_XML = """<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core"><connection-routers>
<connection-router name="r"><local-target-filter>ab</local-target-filter>
<policy name="{name}">{inner}</policy></connection-router>
</connection-routers></core></configuration>"""
LETTERS = '<property key="LETTERS" value="2"/>'


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package that brings two policies, of which one can't be imported."""
    (tmp_path / "first_letter_policy.py").write_text(MODULE)
    information = tmp_path / "first_letter_policy-1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: first-letter-policy\nVersion: 1\n")
    (information / "entry_points.txt").write_text(
        "[delosmq.router_policies]\nFIRST_LETTER = first_letter_policy:FirstLetter\nLOST = no_such_module:Lost\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "first_letter_policy", raising=False)
    return tmp_path


def settings(package: Path, name: str, inner: str = "") -> BrokerSettings:
    path = package / "broker.xml"
    path.write_text(BROKER_XML.format(name=name, inner=inner))
    return load_broker_xml(path, properties={}, memory_bytes=1024**3).settings


def routers_of(found: BrokerSettings) -> ConnectionRouters:
    return ConnectionRouters(found, SystemClock(), SystemRandom())


def test_a_policy_of_another_package_is_known_and_used(package: Path) -> None:
    router = routers_of(settings(package, "FIRST_LETTER", LETTERS)).by_name["r"]
    assert router.policy is not None
    assert router.policy.transform("abc") == "ab"


def test_one_that_refuses_its_properties_stops_the_start(package: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"'FIRST_LETTER' can't be used: KeyError"):
        routers_of(settings(package, "FIRST_LETTER"))


def test_one_that_can_not_be_loaded_stops_the_start(package: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"'LOST' can't be loaded from no_such_module:Lost"):
        routers_of(settings(package, "LOST"))


def test_a_name_that_no_package_brings_is_a_mistake_that_lists_those_there_are(package: Path) -> None:
    with pytest.raises(ConfigurationError, match="did you mean 'FIRST_LETTER'"):
        settings(package, "FIRST_LETER")
