"""Filters: selectors that stand before queues and diverts; equal ones are evaluated once per message."""

from delosmq.engine.queues.queue import Queue
from delosmq.model.conversion import Conversions
from delosmq.model.errors import MisuseError
from delosmq.model.message import Message
from delosmq.selectors.errors import SelectorError
from delosmq.selectors.selector import Selector, parse_selector
from delosmq.selectors.subject import Subject


class Conditions:
    """What queues and diverts ask of one message at a time.

    Attributes:
        evaluations: of selectors, since start.
    """

    def __init__(self, conversions: Conversions) -> None:
        self._conversions = conversions
        self._subject: Subject = Subject(conversions)
        self._message: Message | None = None
        self._verdicts: dict[str, bool] = {}
        self.evaluations: int = 0

    def look_at(self, message: Message) -> None:
        """Asks about this message from now on, as it is now."""
        if message is self._message:
            # It may have been stamped since; the subject would remember what it read before.
            self._subject = Subject(self._conversions)
        self._message = message
        self._subject.look_at(message)
        if self._verdicts:
            self._verdicts.clear()

    def admit(self, queue: Queue) -> bool:
        """Whether the message may enter a queue that it reaches."""
        # Artemis picks an anycast queue first and drops the message when that is disabled; here the next one gets it.
        return not queue.traits.conditional or (not queue.no_entry() and self.match(queue.filter))

    def is_true(self, name: str) -> bool:
        """Whether a property of the message is true, or the text that Java reads as true."""
        value = self._subject.value(name)
        return value is True or (isinstance(value, str) and value.lower() == "true")

    def match(self, selector: Selector | None) -> bool:
        """Whether the message passes a selector; equal ones are evaluated once. None lets all pass."""
        if selector is None:
            return True
        verdict = self._verdicts.get(selector.text)
        if verdict is None:
            self.evaluations += 1
            verdict = selector.matches(self._subject)
            self._verdicts[selector.text] = verdict
        return verdict


def check_filter(owner: str, text: str) -> None:
    """Refuses a filter that is no selector.

    Args:
        owner: what has the filter, such as ``queue 'orders'``.

    Raises:
        MisuseError: says what is wrong and where.
    """
    if text:
        try:
            parse_selector(text)
        except SelectorError as error:
            raise MisuseError("DMQ2623", f"the filter of {owner} is no selector: {error}") from error
