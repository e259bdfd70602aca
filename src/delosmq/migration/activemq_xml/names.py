"""Names and wildcards of Classic's destinations as DelosMQ writes them."""

from typing import Final

from delosmq.model.names import NAME_LIMIT_BYTES, QUEUE_MARK

QUEUE: Final = "queue"
TOPIC: Final = "topic"
KINDS: Final = (QUEUE, TOPIC)
ROUTING: Final = {QUEUE: "anycast", TOPIC: "multicast"}

ALL: Final = "#"
_CLASSIC_ALL: Final = ">"
_ONE: Final = "*"
# What no word of a name has: samples of what a wildcard may stand for.
_FRESH: Final = "\0"


def split_names(text: str) -> list[str]:
    """The parts of a composite name ``a,b``."""
    return [part.strip() for part in text.split(",") if part.strip()]


def name_of(text: str) -> str:
    """A plain name, without destination options.

    Raises:
        ValueError: with the rest of "... must be".
    """
    name = text.partition("?")[0].strip()
    if not name:
        raise ValueError("a name")
    if any(word in (_CLASSIC_ALL, _ONE, ALL) for word in name.split(".")):
        raise ValueError("a name without wildcards; '#', too, is one here")
    return _checked(name)


def match_of(text: str) -> str:
    """A match of address-settings or security-settings that stands for the same names.

    Raises:
        ValueError: with the rest of "... must be".
    """
    words = text.strip().split(".")
    if _CLASSIC_ALL in words[:-1]:
        raise ValueError("a name with '>' at its end only")
    for word in words:
        if word == ALL or (len(word) > 1 and any(letter in word for letter in f"{_CLASSIC_ALL}{_ONE}{ALL}")):
            raise ValueError("a name with the wildcards '*' and '>' as words of their own; '#', too, is one here")
    return _checked(".".join(ALL if word == _CLASSIC_ALL else word for word in words))


def _checked(name: str) -> str:
    if not name or QUEUE_MARK in name or not name.isprintable() or len(name.encode()) > NAME_LIMIT_BYTES:
        raise ValueError(f"a name of at most {NAME_LIMIT_BYTES} bytes without '{QUEUE_MARK}' and line breaks")
    return name


def is_wild(match: str) -> bool:
    """Whether a match stands for more than one name."""
    return any(word in (ALL, _ONE) for word in match.split("."))


def covers(wider: str, match: str) -> bool:
    """Whether every name of ``match`` is one of ``wider``."""
    for filling in ((), (_FRESH,), (_FRESH, _FRESH)):
        words: list[str] = []
        for word in match.split("."):
            words += filling if word == ALL else (_FRESH,) if word == _ONE else (word,)
        if words and not overlap(wider, ".".join(words)):
            return False
    return True


def overlap(one: str, other: str) -> bool:
    """Whether some name is one of both matches."""
    first, second = one.split("."), other.split(".")
    if first[0] != second[0] and not {first[0], second[0]} & {ALL, _ONE}:
        return False
    # reached[j]: the words of `one` so far and the first j of `other` can stand for the same words.
    reached = [True, *[False] * len(second)]
    for j, word in enumerate(second):
        reached[j + 1] = reached[j] and word == ALL
    for mine in first:
        after = [reached[0] and mine == ALL]
        for j, word in enumerate(second):
            if mine == ALL or word == ALL:
                after.append(reached[j + 1] if mine == ALL else False)
                after[-1] = after[-1] or after[j] or (word == ALL and reached[j + 1])
            else:
                after.append(reached[j] and (mine == word or _ONE in (mine, word)))
        reached = after
    return reached[-1]
