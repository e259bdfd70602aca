"""The table of errors: each code of the source stands in the manual with its class, what it ends and what it says."""

from collections import Counter

import pytest

from tools.architecture import codes_of
from tools.errors_page import PAGE, PROTOCOLS, Row, page, table
from tools.source_files import ROOT, read_tree

pytestmark = pytest.mark.sources
TWO_CONDITIONS = {"DMQ5273"}
"""Codes of one sentence that is told as one of two exceptions."""
TABLE = table()
ROWS = [row for rows in TABLE.values() for row in rows]
TOLD_TO_PEERS = [row for rows in list(TABLE.values())[:PROTOCOLS] for row in rows]


def test_each_code_of_the_source_stands_in_the_table() -> None:
    used = {code for file in read_tree(ROOT, ("src",)) for _, code in codes_of(file)}
    assert sorted(used - {row.code for row in ROWS}) == []


def test_the_page_of_the_manual_is_what_the_sources_say() -> None:
    remedy = "run PYTHONPATH=. python -m tools.errors_page"
    assert PAGE.read_text("utf-8").splitlines() == page().splitlines(), remedy


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.code)
def test_each_row_says_something_and_as_what_it_comes(row: Row) -> None:
    assert len(row.says) > 5
    assert not row.says.startswith("DMQ")
    assert row.comes_as or row.ends


def test_a_code_that_peers_are_told_has_one_sentence() -> None:
    assert {code for code, count in Counter(row.code for row in TOLD_TO_PEERS).items() if count > 1} == TWO_CONDITIONS


def test_an_exception_is_named_for_what_openwire_clients_are_told() -> None:
    for row in TABLE["OpenWire: commands"]:
        assert row.condition, row
        assert row.ends in ("the command", "the connection")
