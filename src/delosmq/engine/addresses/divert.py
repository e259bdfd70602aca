"""Diverts: copies of what is sent to one address, made for others.

Source: Artemis manual, "Diverting and Splitting Message Flows"; DivertImpl.
"""

from typing import Final

from delosmq.engine.base.events import EngineEvents
from delosmq.engine.log.origin import ORIGINAL_ADDRESS, ORIGINAL_MESSAGE_ID, ORIGINAL_QUEUE, annotations_of, copy_for
from delosmq.model.conversion import Conversions
from delosmq.model.message import ANY_ROUTING, Message
from delosmq.model.settings import PASS_ROUTING, STRIP_ROUTING, DivertSettings, Transformer
from delosmq.selectors.selector import Selector, parse_selector

NO_CHANGE: Final = Transformer()


class Divert:
    """One divert.

    Attributes:
        id_name: the property that tells the id of the original; "" when the transformer takes it out.
        copies: that reached a queue, since start; lost_copies: that reached none.
    """

    def __init__(self, settings: DivertSettings, conversions: Conversions) -> None:
        self.settings = settings
        self.name: str = settings.name
        self.exclusive: bool = settings.exclusive
        self.filter: Selector | None = parse_selector(settings.filter) if settings.filter else None
        self.targets: tuple[str, ...] = settings.forwarding_addresses
        self.copies: int = 0
        self.lost_copies: int = 0
        self._conversions = conversions
        self._change: Transformer = settings.transformer if settings.transformer is not None else NO_CHANGE
        self.id_name: str = ""
        if ORIGINAL_MESSAGE_ID not in self._change.drop:
            name = self._change.rename.get(ORIGINAL_MESSAGE_ID, ORIGINAL_MESSAGE_ID)
            self.id_name = "" if name in self._change.add else name

    def routing_of_copies(self, routing: int) -> int:
        """The routing type its copies are sent with, those of the original having been sent with ``routing``."""
        kind = self.settings.routing_type
        if kind == PASS_ROUTING:
            return routing
        return ANY_ROUTING if kind == STRIP_ROUTING else kind

    def copy(self, message: Message, target: str) -> Message:
        """A copy for one target: stamped with where it comes from, changed by the transformer.

        The id of the original is not known yet: `stamp_id`.
        """
        change = self._change
        annotations = annotations_of(message)
        annotations[ORIGINAL_ADDRESS] = message.address
        annotations[ORIGINAL_QUEUE] = self.name
        annotations = _changed(annotations, change)
        head = message.head
        if change.drop or change.rename or change.add:
            # What is added travels as an annotation; the head must not hold another value for it.
            head = self._conversions.rewritten_head(message, change.drop, change.rename, tuple(change.add))
        copy = copy_for(message, target, head, annotations)
        copy.due_at_ms = message.due_at_ms
        copy.delay_ms = message.delay_ms
        return copy

    def tell(self, events: EngineEvents, original: Message, copy: Message) -> None:
        """A copy is in its queues: counts and tells it."""
        self.copies += 1
        events.message_diverted(original, self.name, copy)

    def stamp_id(self, copy: Message, original: Message) -> None:
        """Says in a copy which message it is one of."""
        annotations = copy.annotations
        if self.id_name and annotations is not None:
            annotations[self.id_name] = str(original.message_id)


def _changed(annotations: dict[str, str], change: Transformer) -> dict[str, str]:
    kept: dict[str, str] = {}
    for name, value in annotations.items():
        if name not in change.drop:
            kept[change.rename.get(name, name)] = value
    kept.update(change.add)
    return kept
