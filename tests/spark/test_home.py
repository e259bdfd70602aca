"""The SPARK_HOME of ours: all of an installed pyspark but the archives, and nothing where that is not safe."""

import importlib
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from delosmq.spark.machine.home import home_view, use_quick_home


def make_spark(path: Path) -> Path:
    """A stand-in for the directory of an installed pyspark."""
    for name in ("bin/spark-submit", "jars/core.jar", "python/pyspark/x.py", "python/lib/pyspark.zip"):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(name)
    (path / "python" / "lib" / "py4j-0.10-src.zip").write_text("py4j")
    (path / "python" / "lib" / "PY4J_LICENSE.txt").write_text("license")
    return path


def test_a_view_has_all_but_the_archives(tmp_path: Path, cache: dict[str, str]) -> None:
    view = home_view(make_spark(tmp_path / "spark"), cache)
    assert (view / "bin" / "spark-submit").read_text() == "bin/spark-submit"
    assert (view / "jars" / "core.jar").read_text() == "jars/core.jar"
    assert (view / "python" / "pyspark" / "x.py").exists()
    assert [path.name for path in (view / "python" / "lib").iterdir()] == ["PY4J_LICENSE.txt"]


def test_the_installation_is_not_changed(tmp_path: Path, cache: dict[str, str]) -> None:
    spark = make_spark(tmp_path / "spark")
    before = sorted(spark.rglob("*"))
    home_view(spark, cache)
    assert sorted(spark.rglob("*")) == before


def test_a_view_is_made_once_and_leaves_no_litter(tmp_path: Path, cache: dict[str, str]) -> None:
    spark = make_spark(tmp_path / "spark")
    view = home_view(spark, cache)
    assert home_view(spark, cache) == view
    assert list(view.parent.iterdir()) == [view]


def test_what_is_added_to_the_installation_is_in_the_next_view(tmp_path: Path, cache: dict[str, str]) -> None:
    spark = make_spark(tmp_path / "spark")
    home_view(spark, cache)
    (spark / "conf").mkdir()
    (spark / "conf" / "spark-defaults.conf").write_text("spark.x y")
    assert (home_view(spark, cache) / "conf" / "spark-defaults.conf").read_text() == "spark.x y"


@pytest.mark.parametrize("place", ["jars", "python/lib/pyspark.zip", "conf"])
def test_a_view_that_was_changed_is_not_used(place: str, tmp_path: Path, cache: dict[str, str]) -> None:
    spark = make_spark(tmp_path / "spark")
    view = home_view(spark, cache)
    (view / place).unlink(missing_ok=True)
    (view / place).symlink_to(tmp_path)
    elsewhere = home_view(spark, cache)
    assert elsewhere != view
    assert (elsewhere / "jars" / "core.jar").exists()


def test_a_home_that_is_set_stays(cache: dict[str, str]) -> None:
    environment = {**cache, "SPARK_HOME": "/opt/spark"}
    use_quick_home(environment)
    assert environment["SPARK_HOME"] == "/opt/spark"


@pytest.mark.parametrize("missing", ["pyspark", "py4j"])
def test_a_package_that_only_this_process_finds_is_left_alone(
    missing: str, tmp_path: Path, cache: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / missing).mkdir()
    (tmp_path / missing / "__init__.py").touch()
    monkeypatch.delitem(sys.modules, missing, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    environment = dict(cache)
    use_quick_home(environment)
    assert "SPARK_HOME" not in environment


@pytest.mark.spark
def test_the_processes_of_spark_import_what_is_installed(spark: Any) -> None:
    def where(_: int) -> list[str]:
        return [importlib.import_module(package).__file__ or "" for package in ("pyspark", "py4j")]

    (found,) = spark.sparkContext.parallelize([1], 1).map(where).collect()
    assert all(path.startswith(sysconfig.get_paths()["purelib"]) for path in found)
