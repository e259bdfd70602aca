"""Between the encodings of protocols and the hub form: each protocol brings one conversion, only the hub is shared."""

from abc import ABC, abstractmethod
from typing import TypeVar

from mypy_extensions import mypyc_attr

from delosmq.model.errors import MisuseError
from delosmq.model.message import HubMessage, Message

Value = TypeVar("Value")


@mypyc_attr(allow_interpreted_subclasses=True)
class Conversion(ABC):
    """One protocol's way to the hub form and back. Pure."""

    @abstractmethod
    def to_hub(self, message: Message) -> HubMessage:
        """The typed form of a message encoded by this protocol. Broker annotations become properties."""

    def headers_to_hub(self, message: Message) -> HubMessage:
        """The same for callers that do not look at the body, which may be missing from it."""
        return self.to_hub(message)

    def relays_bodies(self) -> bool:
        """Whether the hub form has body and kind of every message as they are, and `headers_to_hub` gives the rest."""
        return False

    def body_to_hub(self, message: Message) -> HubMessage:
        """The same as `to_hub` for callers that look at the body and its kind alone."""
        return self.to_hub(message)

    def message_id(self, message: Message) -> str | None:
        """The id that its sender gave it; None when messages of this protocol have none but the broker's."""
        return None

    def has_id(self, message: Message, message_id: str) -> bool:
        """Whether that is the id; quicker than asking for it."""
        return False

    @abstractmethod
    def from_hub(self, hub: HubMessage, address: str) -> "Encoded":
        """The encoding of a message that came from elsewhere and lies at ``address``."""

    @abstractmethod
    def rewritten_head(
        self, message: Message, drop: tuple[str, ...], rename: dict[str, str], replaced: tuple[str, ...]
    ) -> bytes:
        """The head of a message with properties taken out (drop), then others renamed (a new name replaces what had
        it), then those taken out that annotations replace."""


def rewritten(
    properties: dict[str, Value], drop: tuple[str, ...], rename: dict[str, str], replaced: tuple[str, ...]
) -> dict[str, Value]:
    """Properties by name after what `Conversion.rewritten_head` does to them."""
    kept = {name: value for name, value in properties.items() if name not in rename and name not in drop}
    for name, new_name in rename.items():
        if name in properties and name not in drop:
            kept[new_name] = properties[name]
    for name in replaced:
        kept.pop(name, None)
    return kept


class Encoded:
    """Head, body and tag of a message, as `Message` takes them."""

    def __init__(self, protocol: str, head: bytes, body: bytes, body_kind: int) -> None:
        self.protocol = protocol
        self.head = head
        self.body = body
        self.body_kind = body_kind


class Conversions:
    """The conversions of a broker, by the family of the protocol tag (what stands before its ``/``)."""

    def __init__(self, by_family: dict[str, Conversion]) -> None:
        self._by_family = by_family

    def to_hub(self, message: Message) -> HubMessage:
        """The typed form of any message.

        Raises:
            MisuseError: no conversion is registered for its protocol.
        """
        return self._of(message.protocol).to_hub(message)

    def headers_to_hub(self, message: Message) -> HubMessage:
        """The typed form of any message, maybe without its body.

        Raises:
            MisuseError: no conversion is registered for its protocol.
        """
        return self._of(message.protocol).headers_to_hub(message)

    def find(self, protocol: str) -> Conversion | None:
        """The conversion of a protocol tag; None when none is registered."""
        return self._by_family.get(protocol.partition("/")[0])

    def message_id(self, message: Message) -> str:
        """The id under which clients know a message: that of its sender, else the broker's; "" before it has any."""
        found = self.find(message.protocol)
        given = None if found is None else found.message_id(message)
        if given is not None:
            return given
        return f"ID:{message.message_id}" if message.message_id > 0 else ""

    def has_id(self, message: Message, message_id: str) -> bool:
        """Whether its sender gave a message that id."""
        found = self.find(message.protocol)
        return found is not None and found.has_id(message, message_id)

    def from_hub(self, family: str, hub: HubMessage, address: str) -> Encoded:
        """The encoding of a new message by one protocol.

        Raises:
            MisuseError: no conversion is registered for it.
        """
        return self._of(family).from_hub(hub, address)

    def rewritten_head(
        self, message: Message, drop: tuple[str, ...], rename: dict[str, str], replaced: tuple[str, ...]
    ) -> bytes:
        """The head of any message; see `Conversion.rewritten_head`.

        Raises:
            MisuseError: no conversion is registered for its protocol.
        """
        return self._of(message.protocol).rewritten_head(message, drop, rename, replaced)

    def _of(self, protocol: str) -> Conversion:
        found = self.find(protocol)
        if found is None:
            raise MisuseError("DMQ2150", f"messages of protocol '{protocol}' can't be read: register its conversion")
        return found
