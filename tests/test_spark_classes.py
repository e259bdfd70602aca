"""What Java has loaded for Spark is kept for the next start, and tests do without where that can't be."""

from pathlib import Path

import pytest

from delosmq.spark.errors import JavaMissingError
from tools import spark_classes


@pytest.fixture
def classes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    path = tmp_path / "spark-classes.jsa"
    monkeypatch.setattr(spark_classes, "CLASSES", path)
    return path


def test_java_is_started_with_what_is_kept(classes: Path) -> None:
    assert "SharedArchiveFile" not in spark_classes.options()
    classes.write_bytes(b"")
    assert f"-XX:SharedArchiveFile={classes}" in spark_classes.options()


def test_what_is_kept_is_not_made_again(classes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_classes, "ensure_java", lambda _: pytest.fail("Java was looked for"))
    classes.write_bytes(b"as it was")
    assert spark_classes.make() == "Spark's classes are kept already"
    assert classes.read_bytes() == b"as it was"


def test_without_java_nothing_is_kept_and_the_reason_is_told(classes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: object) -> None:
        raise JavaMissingError("DMQ0000", "there is none")

    monkeypatch.setattr(spark_classes, "ensure_java", missing)
    assert "there is none" in spark_classes.make()
    assert not classes.exists()
