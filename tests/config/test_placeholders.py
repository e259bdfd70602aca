"""What ``${...}`` in configuration files stands for."""

import pytest

from delosmq.config.placeholders import replace_placeholders


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${a}", "1"),
        ("x ${ a } y ${b}", "x 1 y 2"),
        ("${none:default}", "default"),
        ("${none: with blanks }", "with blanks"),
        ("${none:}", ""),
        ("${a:default}", "1"),
        # Only the first colon counts, and a minus is no part of the form, as in Artemis: the default is -1.
        ("${none:-1}", "-1"),
        ("${none:tcp://localhost:1}", "tcp://localhost:1"),
        ("${none:${a}}", "1"),
        ("${none:${nothing:x}-${b}}y", "x-2y"),
        ("${a:${b}}", "1"),
        # A value is taken as it is.
        ("${nested}", "${a}"),
        ("{a} $a ${a", "{a} $a ${a"),
    ],
)
def test_a_placeholder_is_its_value_or_its_default(text: str, expected: str) -> None:
    known = {"a": "1", "b": "2", "nested": "${a}"}
    unknown: list[str] = []
    assert replace_placeholders(text, known, unknown.append) == expected
    assert unknown == []


def test_one_that_stands_for_nothing_is_named_and_stays() -> None:
    unknown: list[str] = []
    assert replace_placeholders("${none}-${other:${neither}}", {}, unknown.append) == "${none}-${neither}"
    assert unknown == ["none", "neither"]


def test_nesting_beyond_what_anybody_writes_is_left_as_it_is() -> None:
    text = "${a:" * 100_000 + "}" * 100_000
    assert replace_placeholders(text, {}, pytest.fail) == text
