"""Receiving by a listener, for `tests.client.breaks`."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tests.client.ledger import Arrival, Ledger


class Listener:
    """Of one connection: notes each message, and has it settled as the mode says.

    Args:
        settle: what is done with a message in the listener.
        by_return: the message is acknowledged when the listener has returned, which the next call shows.
    """

    def __init__(
        self, ledger: Ledger, client: int, settle: Callable[[int, Any], Awaitable[None]], *, by_return: bool
    ) -> None:
        self._ledger = ledger
        self._client = client
        self._settle = settle
        self._by_return = by_return
        self._returned: list[int] = []
        self._asked = (ledger.over, ledger.noticed)
        """When the call before ended, and the next message could come."""

    async def begin(self, consumer: Any, surface: str) -> None:
        loop = asyncio.get_running_loop()

        def in_thread(message: Any) -> None:
            asyncio.run_coroutine_threadsafe(self._hear(message), loop).result()

        await consumer.set_listener(self._hear if surface == "asyncio" else in_thread)

    async def _hear(self, message: Any) -> None:
        self._note_returned()
        number = int(message.text.partition(" ")[0])
        self._ledger.arrived(number, Arrival(self._client, *self._asked))
        try:
            await self._settle(number, message)
        except Exception as error:
            self._ledger.wrong.append(f"the listener failed with {number}: {error!r}")
            raise
        self._returned.append(number)
        if not self._by_return:
            self._note_returned()
        self._asked = (self._ledger.over, self._ledger.noticed)

    def _note_returned(self) -> None:
        for number in self._returned:
            self._ledger.acknowledged(number, self._client)
        self._returned.clear()
