"""The patterns of LIKE as regular expressions of bounded cost."""

import re


def like_pattern(pattern: str, escape: str) -> re.Pattern[str]:
    """The expression that fully matches what ``pattern`` does: ``%`` is any text, ``_`` any one character.

    ``escape`` ("" for none) takes its meaning from a ``%``, ``_`` or ``escape`` that follows; elsewhere it stands for
    itself, as in Artemis.

    What stands between two ``%`` is taken where it is found first and never tried elsewhere, which finds a match
    whenever there is one. So the cost is at most the length of the text times that of the pattern.
    """
    pieces = _pieces(pattern, escape)
    if len(pieces) == 1:
        return re.compile(pieces[0], re.DOTALL)
    middle = "".join([f"(?>.*?{piece})" for piece in pieces[1:-1] if piece])
    return re.compile(f"{pieces[0]}{middle}.*{pieces[-1]}", re.DOTALL)


def _pieces(pattern: str, escape: str) -> list[str]:
    """What stands before, between and after each ``%``, each as a regular expression of fixed length."""
    pieces: list[str] = []
    piece: list[str] = []
    index = 0
    while index < len(pattern):
        char = pattern[index]
        following = pattern[index + 1 : index + 2]
        index += 1
        if char == escape and following != "" and following in ("%", "_", escape):
            piece.append(re.escape(following))
            index += 1
        elif char == "%":
            pieces.append("".join(piece))
            piece = []
        else:
            piece.append("." if char == "_" else re.escape(char))
    pieces.append("".join(piece))
    return pieces
