"""What applications do in recorded conversations, by the recordings' names."""

from collections.abc import Callable
from dataclasses import replace

from delosmq.sessions.openwire.client.options import ClientOptions
from delosmq.wire.openwire.structures import QUEUE, TOPIC, Destination
from tests.sessions.openwire_client.support import PREFETCH_4, Player

NAMED = ClientOptions(client_id="recorder")
FOUR = replace(NAMED, prefetch_policy=PREFETCH_4)
Script = Callable[[Player, Destination], None]


class Scripts(dict[str, tuple[ClientOptions, Script]]):
    """By the recording's name."""

    def script(self, name: str, options: ClientOptions) -> Callable[[Script], Script]:
        """Notes what is done in one of them; it gets the queue, or the topic, that the recorder uses."""

        def add(play: Script) -> Script:
            self[name] = (options, play)
            return play

        return add


def address(name: str, suffix: str = "", *, topic: bool = False) -> Destination:
    """As the recorder names them."""
    return Destination(f"interop.{name.replace('-', '_')}_{suffix}", TOPIC if topic else QUEUE)
