"""Virtual topics: queues named after the topic that they get messages of, as ``Consumer.NAME.VirtualTopic.X``.

A rule is written as Artemis writes it in ``virtualTopicConsumerWildcards``: the names of such queues, with ``*`` for
one word and ``>`` for all that follow, and how many words of such a name stand before that of the topic:
``Consumer.*.VirtualTopic.>;2``. Source: OpenWireProtocolManager of Artemis; VirtualTopic of ActiveMQ Classic.
"""

from dataclasses import dataclass
from typing import Final

_SEPARATOR: Final = "."
_ONE_WORD: Final = "*"
_ANY_WORDS: Final = ">"
_RULE_MARK: Final = ";"
_FORM: Final = "a filter and the number of words before the topic, such as Consumer.*.VirtualTopic.>;2"


@dataclass(frozen=True)
class VirtualTopicRule:
    """One of them.

    Attributes:
        words: of the names of queues.
        words_before: how many of them are not the topic's.
    """

    words: tuple[str, ...]
    words_before: int

    def topic_of(self, name: str) -> str:
        """The topic of a queue; "" when the rule has nothing to do with it."""
        parts = name.split(_SEPARATOR)
        words = self.words
        count = len(words)
        if words[-1] == _ANY_WORDS:
            count -= 1
            # As in Classic it stands for one word at least.
            if len(parts) <= count:
                return ""
        elif len(parts) != count:
            return ""
        for i in range(count):
            if words[i] != _ONE_WORD and words[i] != parts[i]:
                return ""
        topic = parts[self.words_before :]
        return _SEPARATOR.join(topic) if all(parts) else ""


def virtual_topic_of(name: str, rules: tuple[VirtualTopicRule, ...]) -> str:
    """The topic that a queue of that name gets messages of; "" for a queue of its own."""
    for rule in rules:
        topic = rule.topic_of(name)
        if topic:
            return topic
    return ""


def parse_virtual_topics(text: str) -> tuple[VirtualTopicRule, ...]:
    """Reads rules, separated by commas; none in an empty text.

    Raises:
        ValueError: one is malformed; says how it is written.
    """
    return tuple([_parse(part.strip()) for part in text.split(",") if part.strip()])


def _parse(text: str) -> VirtualTopicRule:
    pattern, _, rest = text.partition(_RULE_MARK)
    number, mark, options = rest.partition(_RULE_MARK)
    if mark and options.replace(" ", "").lower() != "selectoraware=false":
        raise ValueError(f"{_FORM}, without {options!r}: selectors pick, they don't keep messages out of the queue")
    words = pattern.strip().split(_SEPARATOR)
    if not all(words) or _ANY_WORDS in words[:-1] or not number.strip().isdecimal():
        raise ValueError(_FORM)
    words_before = int(number)
    if not 0 < words_before < len(words):
        raise ValueError(f"{_FORM}; the number must be 1 or more, and less than the words of the filter")
    return VirtualTopicRule(tuple(words), words_before)


CLASSIC: Final = parse_virtual_topics("Consumer.*.VirtualTopic.>;2")
"""What Classic does unless it is told otherwise."""
