"""A coordinator of distributed transactions that does not give up: what it has decided happens, whatever breaks."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Container
from contextlib import suppress
from typing import Any

from delosmq.client import ClientError, TransactionRolledBackError, XaTransactionError, Xid
from delosmq.model.errors import XA_RBROLLBACK, XA_RBTIMEOUT, XAER_NOTA, XAER_RMFAIL

AGAIN_S = 0.005
ROLLED_BACK = range(XA_RBROLLBACK, XA_RBTIMEOUT + 1)
BRANCHES = itertools.count(1)


class CoordinatedSession:
    """A session with the `commit` and `rollback` of a transacted one, each of whose transactions is a branch.

    Args:
        inner: an XA session of either surface, whose methods are awaited.
        name: of this coordinator, among all that use the broker.
    """

    def __init__(self, inner: Any, name: str) -> None:
        self._inner = inner
        self._resource = inner.xa_resource
        self._name = name
        self._xid: Xid | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def begin(self) -> None:
        """What the session does belongs to a branch from now on, if it did not already."""
        if self._xid is None:
            self._xid = Xid(71, f"{self._name}.{next(BRANCHES)}".encode())
            await self._resource.start(self._xid)

    async def commit(self) -> None:
        """
        Raises:
            TransactionRolledBackError: nothing of it has happened, and nothing will.
        """
        xid = self._leave()
        try:
            await self._resource.end(xid)
            prepared = await self._resource.prepare(xid)
        except ClientError as error:
            # No promise to commit was noted, so it is rolled back, also where the broker has prepared it.
            await self._until_done(lambda: self._resource.rollback(xid), ROLLED_BACK)
            raise TransactionRolledBackError(error.code, error.message) from error
        if prepared:
            await self._until_done(lambda: self._resource.commit(xid))

    async def rollback(self) -> None:
        xid = self._leave()
        with suppress(XaTransactionError):  # it can only be rolled back
            await self._resource.end(xid)
        await self._until_done(lambda: self._resource.rollback(xid), ROLLED_BACK)

    def _leave(self) -> Xid:
        xid, self._xid = self._xid, None
        assert xid is not None
        return xid

    async def _until_done(self, end: Callable[[], Awaitable[None]], well: Container[int] = ()) -> None:
        """Asks again while the broker is gone; what it does not know was ended by an answer that did not come."""
        while True:
            try:
                await end()
            except XaTransactionError as error:
                if error.error_code == XAER_NOTA or error.error_code in well:
                    return
                if error.error_code != XAER_RMFAIL:
                    raise
                await asyncio.sleep(AGAIN_S)
            else:
                return
