"""What all tests share. Random order comes from pytest-randomly; warnings are errors (pyproject.toml)."""

import gc
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.chance import TIMES, tries

# Timing is no property of the code under test; a slow machine must not fail a test.
settings.register_profile("delosmq", deadline=None, max_examples=tries(100))
settings.load_profile("delosmq")

WHOLE_FILE_ON_SPARK = re.compile(r"^pytestmark = .*\bmark\.spark\b", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With "not spark" in ``-m`` don't even import a file whose ``pytestmark`` says spark: pyspark may be missing."""
    if "not spark" not in config.option.markexpr or collection_path.suffix != ".py":
        return None
    return True if WHOLE_FILE_ON_SPARK.search(collection_path.read_text("utf-8")) else None


@pytest.hookimpl(trylast=True)  # after Hypothesis has marked its tests
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """More examples than usual take as long as they take. Of several processes (``-n``) one has all that Spark does, as
    there Spark starts once, and each file is of one process."""
    for item in items:
        if TIMES > 1 and item.get_closest_marker("hypothesis"):
            item.add_marker(pytest.mark.timeout(0))
        if config.pluginmanager.has_plugin("xdist"):
            spark = item.get_closest_marker("spark")
            item.add_marker(pytest.mark.xdist_group("spark" if spark else str(item.path)))


@pytest.fixture(autouse=True)
def leaves_nothing_behind() -> Iterator[None]:
    """A socket or a loop that a test leaves open is an error of that test: otherwise it would be one of whatever test
    collects garbage next. What stays in memory is no longer looked at, neither by the collector nor by
    `gc.get_objects`: a test finds there what it has made itself."""
    yield
    gc.collect()
    gc.freeze()
