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
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """More examples than usual take as long as they take."""
    if TIMES <= 1:
        return
    for item in items:
        if item.get_closest_marker("hypothesis"):
            item.add_marker(pytest.mark.timeout(0))


@pytest.fixture
def only_what_a_test_makes() -> Iterator[None]:
    """What other tests have left is not found by `gc.get_objects`; in a whole run these are millions of objects."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
