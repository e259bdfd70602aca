"""Regular expressions as Artemis's configuration writes them, which are Java's, matched in a bounded number of steps.

Peers choose the values on which filters are tried, and Python's matcher can take for ever on a value of forty letters.
This one tries no place of an expression twice at one place of a value, so that its steps are at most their product.
"""

from typing import Final

from delosmq.model.declared.regex_syntax import Ahead, Choice, OneOf, Position, RegexNode, RegexParser, Repeat, Sequence

MOST_LETTERS: Final = 1_000
"""Of an expression."""
MOST_STEPS: Final = 50_000
"""On one value, which is 48 places of an expression on 1,024 letters: some 40 ms. One that needs more
finds nothing."""
_LARGEST: Final = 2_000
"""Places of an expression, once what it repeats is written out."""

_ONE_OF: Final = 0
_POSITION: Final = 1
_SPLIT: Final = 2
_JUMP: Final = 3
_AGAIN: Final = 4
_AHEAD: Final = 5
_FOUND: Final = 6


class JavaRegex:
    """An expression that finds what Java's would.

    Attributes:
        pattern: as it was written.
        steps: what the last value took; at most `MOST_STEPS`.

    Raises:
        ValueError: the rest of "must be", when it can't be read or is too large.
    """

    def __init__(self, text: str) -> None:
        if len(text) > MOST_LETTERS:
            raise ValueError(f"a regular expression of at most {MOST_LETTERS} letters")
        self.pattern = text
        self.steps: int = 0
        places = _RegexPlaces()
        places.add(RegexParser(text).parse())
        places.put(_FOUND)
        self._places = places

    def search(self, text: str) -> str | None:
        """What it finds first in ``text``."""
        run = _Run(self._places, text, whole=False)
        found = None
        for start in range(len(text) + 1):
            end = run.match(0, start, run.tried)
            if end >= 0:
                found = text[start:end]
                break
        self.steps = run.steps
        return found

    def fullmatch(self, text: str) -> bool:
        """Whether it takes ``text`` whole."""
        run = _Run(self._places, text, whole=True)
        end = run.match(0, 0, run.tried)
        self.steps = run.steps
        return end >= 0


class _RegexPlaces:
    """An expression as a list of places, each of which says what has to come there and where it goes on.

    Attributes:
        kinds, firsts, seconds: of each place; what the numbers mean is the kind's.
        pieces: what a letter or a position is compared with.
    """

    def __init__(self) -> None:
        self.kinds: list[int] = []
        self.firsts: list[int] = []
        self.seconds: list[int] = []
        self.pieces: list[RegexNode] = []
        self._added = 0

    def put(self, kind: int, first: int = 0, second: int = 0) -> int:
        self.kinds.append(kind)
        self.firsts.append(first)
        self.seconds.append(second)
        return len(self.kinds) - 1

    def add(self, node: RegexNode) -> None:
        self._added += 1  # counted, as what is empty can be repeated without becoming a place
        if self._added > 2 * _LARGEST or len(self.kinds) > _LARGEST:
            raise ValueError(
                f"a regular expression of at most {_LARGEST} places when its repetitions are written out, as (ab){{5}} "
                "has ten; let it repeat less"
            )
        if isinstance(node, OneOf):
            self.put(_ONE_OF, len(self.pieces))
            self.pieces.append(node)
        elif isinstance(node, Position):
            self.put(_POSITION, len(self.pieces))
            self.pieces.append(node)
        elif isinstance(node, Sequence):
            for one in node.nodes:
                self.add(one)
        elif isinstance(node, Choice):
            self._add_choice(node)
        elif isinstance(node, Repeat):
            self._add_repeat(node)
        elif isinstance(node, Ahead):
            ahead = self.put(_AHEAD, 0, int(node.wanted))
            self.add(node.node)
            self.put(_FOUND)
            self.firsts[ahead] = len(self.kinds)

    def _add_choice(self, node: Choice) -> None:
        ends: list[int] = []
        for one in node.nodes[:-1]:
            split = self.put(_SPLIT, len(self.kinds) + 1)
            self.add(one)
            ends.append(self.put(_JUMP))
            self.seconds[split] = len(self.kinds)
        self.add(node.nodes[-1])
        for end in ends:
            self.firsts[end] = len(self.kinds)

    def _add_repeat(self, node: Repeat) -> None:
        for _ in range(node.least):
            self.add(node.node)
        splits: list[int] = []
        if node.most < 0:
            split = self.put(_SPLIT)
            splits.append(split)
            self.add(node.node)
            self.put(_AGAIN, split, len(self.kinds) + 1)
        for _ in range(node.most - node.least):
            splits.append(self.put(_SPLIT))
            self.add(node.node)
        for split in splits:
            inner, behind = split + 1, len(self.kinds)
            self.firsts[split], self.seconds[split] = (inner, behind) if node.greedy else (behind, inner)


class _Run:
    """One value, while it is matched."""

    def __init__(self, places: _RegexPlaces, text: str, *, whole: bool) -> None:
        self.tried: set[int] = set()
        self._places = places
        self._text = text
        self._whole = whole
        self.steps = 0
        # What looking ahead found, by its place and that of the value.
        self._seen_ahead: dict[int, bool] = {}

    def match(self, place: int, at: int, tried: set[int]) -> int:
        """Where a match from there ends; -1 for none.

        Args:
            tried: where it has been in vain, or is at work.
        """
        places, text = self._places, self._text
        kinds, firsts, seconds, pieces = places.kinds, places.firsts, places.seconds, places.pieces
        width = len(text) + 1
        # What is left to try, as place * width + at; the last one first.
        left: list[int] = [place * width + at]
        while left:
            state = left.pop()
            place, at = state // width, state % width
            while True:
                state = place * width + at
                if state in tried:
                    break
                if self.steps >= MOST_STEPS:
                    return -1
                self.steps += 1
                tried.add(state)
                kind = kinds[place]
                if kind == _ONE_OF:
                    piece = pieces[firsts[place]]
                    assert isinstance(piece, OneOf)
                    if at + 1 >= width or piece.letters.match(text[at]) is None:
                        break
                    place, at = place + 1, at + 1
                elif kind == _SPLIT:
                    left.append(seconds[place] * width + at)
                    place = firsts[place]
                elif kind == _JUMP:
                    place = firsts[place]
                elif kind == _AGAIN:
                    # Back at the beginning without a letter: Java goes on behind the repetition.
                    place = seconds[place] if firsts[place] * width + at in tried else firsts[place]
                elif kind == _FOUND:
                    if not self._whole or at + 1 == width or tried is not self.tried:
                        return at
                    break
                else:
                    next_place = self._pass(place, at)
                    if next_place < 0:
                        break
                    place = next_place
        return -1

    def _pass(self, place: int, at: int) -> int:
        """The place behind one that takes no letter; -1 when it does not hold."""
        places = self._places
        first = places.firsts[place]
        if places.kinds[place] == _POSITION:
            piece = places.pieces[first]
            assert isinstance(piece, Position)
            return place + 1 if _holds(piece.kind, self._text, at) else -1
        key = place * (len(self._text) + 1) + at
        seen = self._seen_ahead.get(key)
        if seen is None:
            seen = self._seen_ahead[key] = self.match(place + 1, at, set()) >= 0
        # Of a value that is given up nothing is known.
        return first if seen == bool(places.seconds[place]) and self.steps < MOST_STEPS else -1


def _holds(kind: str, text: str, at: int) -> bool:
    if kind == "^" or kind == "A":
        return at == 0
    if kind == "z":
        return at == len(text)
    if kind == "$" or kind == "Z":
        return text[at:] in ("", "\n", "\r\n", "\r", "\x85", "\u2028", "\u2029")
    edge = _is_word(text, at - 1) != _is_word(text, at)
    return edge == (kind == "b")


def _is_word(text: str, at: int) -> bool:
    return 0 <= at < len(text) and text[at].isascii() and (text[at].isalnum() or text[at] == "_")
