"""What all tests share. Random order comes from pytest-randomly; warnings are errors (pyproject.toml)."""

import re
from pathlib import Path

import pytest
from hypothesis import settings

# Timing is no property of the code under test; a slow machine must not fail a test.
settings.register_profile("delosmq", deadline=None)
settings.load_profile("delosmq")

WHOLE_FILE_ON_SPARK = re.compile(r"^pytestmark = .*\bmark\.spark\b", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With ``-m "not spark"`` don't even import a file whose ``pytestmark`` says spark: pyspark may be missing."""
    if config.option.markexpr != "not spark" or collection_path.suffix != ".py":
        return None
    return True if WHOLE_FILE_ON_SPARK.search(collection_path.read_text("utf-8")) else None
