"""Which interpreter the Python processes of Spark run."""

import sys

import pytest

from delosmq.spark.session import choose_python


@pytest.mark.parametrize(
    ("master", "given", "python", "of_driver"),
    [
        ("local[2]", {}, sys.executable, sys.executable),
        ("local[2]", {"PYSPARK_PYTHON": "elsewhere"}, sys.executable, sys.executable),
        ("spark://host:7077", {}, sys.executable, sys.executable),
        ("yarn", {"PYSPARK_PYTHON": "./environment/bin/python"}, *2 * ("./environment/bin/python",)),
        ("yarn", {"PYSPARK_PYTHON": "there", "PYSPARK_DRIVER_PYTHON": "here"}, "there", "here"),
    ],
)
def test_a_cluster_may_have_an_interpreter_of_its_own(master: str, given: dict[str, str], python: str, of_driver: str):
    environment = dict(given)
    choose_python(environment, master)
    assert environment == {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": of_driver}
