"""The base of the handlers of all calls."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from starlette.responses import Response

from delosmq.engine.api import EngineBroker, Slot
from delosmq.manage.control.host import Host
from delosmq.manage.http.arrow import RowStream
from delosmq.manage.http.operations import Answer
from delosmq.manage.http.sync_wait import wait_synced
from delosmq.model.conversion import Conversions
from delosmq.sessions.lease.columns import NO_LIMIT
from delosmq.sessions.outbox import Gate

ITEMS_PER_TURN: Final = 100
"""Entries of a listing before the loop serves others."""

C = TypeVar("C")
K = TypeVar("K")
V = TypeVar("V")


async def peek_all(keys: Sequence[K], peek: Callable[[K], V | None]) -> list[V]:
    """What ``peek`` finds for each key, without what is gone meanwhile; the loop serves others now and then."""
    found: list[V] = []
    for i, key in enumerate(keys, 1):
        if i % ITEMS_PER_TURN == 0:
            await asyncio.sleep(0)
        one = peek(key)
        if one is not None:
            found.append(one)
    return found


@dataclass(frozen=True)
class CallParts:
    """What the handlers of all calls share."""

    broker: EngineBroker
    host: Host
    gate: Gate
    conversions: Conversions
    logger: logging.Logger


class Handlers(Generic[C]):
    """Handlers of calls on a broker, which ask a control of management."""

    def __init__(self, parts: CallParts, control: C) -> None:
        self._parts = parts
        self._control = control
        self._broker = parts.broker
        self._host = parts.host

    def _answer(self, content: V, *, entries: int = 1) -> Answer[V]:
        """An answer that waits until all that is decided so far is synced."""
        self._host.changed()
        return Answer(content, self._broker.log.position, entries)

    async def _rows(
        self, slots: list[Slot], columns: tuple[str, ...], queue: str, most_body_bytes: int = NO_LIMIT
    ) -> Response:
        position = self._broker.log.position
        self._host.changed()
        rows = RowStream(
            slots,
            columns,
            queue,
            conversions=self._parts.conversions,
            logger=self._parts.logger,
            most_body_bytes=most_body_bytes,
        )
        response = await rows.response()
        await wait_synced(self._parts.gate, position)
        return response
