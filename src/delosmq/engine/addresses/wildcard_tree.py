"""Which wildcard addresses stand for a name: a tree of words, so that a look-up costs its words and not the addresses.

Source: Artemis manual, "Understanding the Wildcard Syntax" and "Wildcard Routing".
"""

from delosmq.model.settings import WildcardSyntax
from delosmq.model.wildcard import is_wildcard


class _Node:
    """What may follow a beginning of words.

    Attributes:
        name: the wildcard name that ends here, "" for none.
    """

    def __init__(self) -> None:
        self.following: dict[str, _Node] = {}
        self.name: str = ""


class WildcardTree:
    """Wildcard names, each of which stands for all names that it matches."""

    def __init__(self, syntax: WildcardSyntax) -> None:
        self._syntax = syntax
        self._root = _Node()
        self.count: int = 0

    def is_wild(self, name: str) -> bool:
        """Whether a name stands for others; never while routing by wildcards is off."""
        return self._syntax.enabled and is_wildcard(name, self._syntax)

    def add(self, name: str) -> None:
        """Makes a wildcard name known."""
        node = self._root
        for word in name.split(self._syntax.delimiter):
            following = node.following.get(word)
            if following is None:
                following = _Node()
                node.following[word] = following
            node = following
        self.count += 1 if node.name == "" else 0
        node.name = name

    def remove(self, name: str) -> None:
        """Forgets a wildcard name, and the branch that only led to it."""
        path: list[tuple[_Node, str]] = []
        node = self._root
        for word in name.split(self._syntax.delimiter):
            if word not in node.following:
                return
            path.append((node, word))
            node = node.following[word]
        self.count -= 0 if node.name == "" else 1
        node.name = ""
        while path and not node.following and node.name == "":
            node, word = path.pop()
            del node.following[word]

    def matching(self, name: str) -> list[str]:
        """The wildcard names that stand for ``name``, which is none itself; each once, in alphabetical order."""
        syntax = self._syntax
        # Nodes that can stand for the words so far, and whether the node is an any-words one, which may go on.
        reached: list[tuple[_Node, bool]] = []
        self._reach(reached, self._root, False)
        for word in name.split(syntax.delimiter):
            after: list[tuple[_Node, bool]] = []
            for node, goes_on in reached:
                if goes_on:
                    self._reach(after, node, True)
                for key in (word, syntax.single_word):
                    following = node.following.get(key)
                    if following is not None:
                        self._reach(after, following, False)
            reached = after
        found = {node.name for node, _ in reached if node.name}
        return sorted(found)

    def _reach(self, reached: list[tuple[_Node, bool]], node: _Node, goes_on: bool) -> None:
        # Each node once: what is reached is bounded by the tree, whatever a hostile name looks like.
        while True:
            entry = (node, goes_on)
            if entry in reached:
                return
            reached.append(entry)
            any_words = node.following.get(self._syntax.any_words)
            if any_words is None:
                return
            node, goes_on = any_words, True
