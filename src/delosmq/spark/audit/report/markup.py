"""Builds HTML. Plain text is escaped; only what was built here is taken as it is, so names can't become markup."""

from html import escape
from typing import Final

LONGEST_NAME: Final = 200
"""Letters of a name that are shown."""
_EMPTY: Final = frozenset({"meta", "line", "path", "rect", "circle"})


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Part = Markup | str | int | None
"""None is nothing: for parts that are there on a condition."""


def el(tag: str, *parts: Part, **attributes: object) -> Markup:
    """An element. ``class_`` is the attribute class, ``view_box`` is viewBox, other underscores are hyphens."""
    names = {"class_": "class", "view_box": "viewBox", "aspect": "preserveAspectRatio"}
    given = "".join(
        f' {names.get(name, name.replace("_", "-"))}="{escape(str(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{tag}{given}/>" if tag in _EMPTY else f"<{tag}{given}>{join(*parts)}</{tag}>")


def join(*parts: Part) -> Markup:
    """Parts one after another, text escaped."""
    return Markup(
        "".join(part if isinstance(part, Markup) else escape(str(part)) for part in parts if part is not None)
    )


def name(value: object) -> Markup:
    """A name out of a message or record: cut when long, its odd letters shown, its direction of writing its own."""
    shown = printable(value)
    if len(shown) > LONGEST_NAME:
        shown = shown[:LONGEST_NAME] + "…"
    return el("bdi", shown or "(empty)")


def printable(value: object) -> str:
    """Text without what moves a terminal or a line about."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in str(value))
