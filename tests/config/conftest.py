"""Files to load, made from the part that a test is about."""

from collections.abc import Callable
from pathlib import Path

import pytest

from delosmq.config.broker_xml import LoadedConfiguration, load_broker_xml
from delosmq.config.broker_xml.filters import CheckSelector, parse_as_selector

HEAD = '<configuration xmlns="urn:activemq">\n<core xmlns="urn:activemq:core">\n'
TAIL = "\n</core>\n</configuration>\n"
MEMORY_BYTES = 8 * 1024**3

Load = Callable[..., LoadedConfiguration]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Loads a broker.xml with the given children of <core>, the first of which is in line 3."""

    def load_core(
        core: str, *, check_selector: CheckSelector = parse_as_selector, mode: int = 0o600, **properties: str
    ) -> LoadedConfiguration:
        path = tmp_path / "broker.xml"
        path.write_text(HEAD + core + TAIL, encoding="utf-8")
        path.chmod(mode)
        return load_broker_xml(path, properties=properties, memory_bytes=MEMORY_BYTES, check_selector=check_selector)

    return load_core


@pytest.fixture
def load_whole(tmp_path: Path) -> Load:
    """Loads a broker.xml with exactly this content."""

    def load_content(content: str | bytes) -> LoadedConfiguration:
        path = tmp_path / "broker.xml"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return load_broker_xml(path, properties={}, memory_bytes=MEMORY_BYTES)

    return load_content
