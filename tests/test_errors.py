"""The table of errors: each sentence can be rendered, names a remedy or a cause, and stands in the manual."""

from collections import Counter

import pytest

import delosmq.composition  # noqa: F401 - whatever protocol there is declares its errors then
from delosmq.model.errors import ERRORS, DeclaredError, PeerError, Scope
from delosmq.sessions.openwire.server.java_exceptions import OpenWireError
from tools.errors_page import PAGE, SECTIONS, page, sentence_of

pytestmark = pytest.mark.sources
TWO_CONDITIONS = {"DMQ5273"}
"""Codes of one sentence that is told as one of two exceptions."""


def name_of(error: DeclaredError) -> str:
    return f"{error.code}-{error.sentence.__name__}"


@pytest.mark.parametrize("error", ERRORS, ids=name_of)
def test_each_sentence_is_rendered(error: DeclaredError) -> None:
    text = sentence_of(error)
    assert text
    assert "\n" not in text
    assert not text.startswith("DMQ")


def test_each_error_stands_in_one_section_of_the_page() -> None:
    assert {error.sentence.__module__ for error in ERRORS} == set(SECTIONS.values())


def test_a_code_is_declared_once() -> None:
    assert {code for code, count in Counter(error.code for error in ERRORS).items() if count > 1} == TWO_CONDITIONS


@pytest.mark.parametrize("error", ERRORS, ids=name_of)
def test_an_error_has_a_scope_if_a_peer_causes_it_and_an_exception_over_openwire(error: DeclaredError) -> None:
    assert (error.scope is not None) == issubclass(error.kind, PeerError)
    assert (error.condition != "") == (error.kind is OpenWireError)
    assert error.scope is not Scope.SESSION


def test_the_page_of_the_manual_is_made_from_the_table() -> None:
    assert PAGE.read_text("utf-8") == page(), "run PYTHONPATH=. python -m tools.errors_page"
