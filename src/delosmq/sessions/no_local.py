"""No-local on a topic: the subscriber's queue filters out what its own connection sends.

What that connection sends carries a mark, and the filter of the queue asks for any other.
"""

from typing import Final

from delosmq.model.reserved_names import CONNECTION_MARK
from delosmq.selectors.selector import (
    CONVERT,
    HYPHENATED,
    NO_CONVERT,
    NO_HYPHENATED,
    WHITESPACE,
    Selector,
    parse_selector,
)

_PREFIXES: Final = (CONVERT, HYPHENATED, NO_CONVERT, NO_HYPHENATED)


def without_own(selector: Selector | None, mark: str) -> str:
    """A filter for what a selector picks and ``mark`` ("" for none) does not keep out.

    As a text that keeps its meaning, and stays equal from one connection to the next.

    Raises:
        SelectorError: with the mark it is more than a selector may be.
    """
    text = selector.text if selector is not None else ""
    if not mark:
        return text
    quoted = mark.replace("'", "''")
    clause = f"({CONNECTION_MARK} <> '{quoted}' OR {CONNECTION_MARK} IS NULL)"
    if not text:
        return clause
    lead = ""
    rest = text
    while rest.startswith(_PREFIXES):
        end = rest.index(":") + 1
        lead += rest[:end]
        rest = rest[end:].lstrip(WHITESPACE)
    both = parse_selector(f"{lead}({rest}) AND {clause}")
    return both.text
