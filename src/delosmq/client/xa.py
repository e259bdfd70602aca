"""Distributed transactions of the blocking client."""

from delosmq.client.aio_xa import AsyncXaResource, AsyncXaSession, XaFlag, Xid
from delosmq.client.session import ClientSession
from delosmq.client.threads.loop_thread import LoopThread


class XaResource:
    """What a coordinator calls. All but `start` and `end` may be called of any session's resource, for any branch, and
    while another thread uses the session.

    All raise XaTransactionError, whose ``error_code`` is that of X/Open XA.
    """

    def __init__(self, session: ClientSession, thread: LoopThread, inner: AsyncXaResource) -> None:
        self._session = session
        self._thread = thread
        self._inner = inner

    def start(self, xid: Xid, flags: XaFlag = XaFlag.NO_FLAGS) -> None:
        """What the session sends and receives from now on belongs to the branch.

        Args:
            flags: NO_FLAGS; JOIN and RESUME are the same, as the broker knows which branches there are.

        Raises:
            IllegalStateError: DMQ9081, another thread is at work in the session.
        """
        self._session.calls.run_alone(self._inner.start(xid, flags))

    def end(self, xid: Xid, flags: XaFlag = XaFlag.SUCCESS) -> None:
        """The session's part of the branch is done.

        Args:
            flags: SUCCESS; FAIL when it can only be rolled back; SUSPEND when the session goes on with it later.

        Raises:
            IllegalStateError: as `start`.
        """
        self._session.calls.run_alone(self._inner.end(xid, flags))

    def prepare(self, xid: Xid) -> bool:
        """Whether the branch is prepared, and waits for `commit` or `rollback` for as long as it takes.

        False when nothing was done in it, and it has ended."""
        return self._thread.run(self._inner.prepare(xid))

    def commit(self, xid: Xid, *, one_phase: bool = False) -> None:
        """
        Args:
            one_phase: the branch was not prepared.
        """
        self._thread.run(self._inner.commit(xid, one_phase=one_phase))

    def rollback(self, xid: Xid) -> None:
        """What was delivered in the branch is delivered again."""
        self._thread.run(self._inner.rollback(xid))

    def recover(self) -> list[Xid]:
        """The prepared branches of the broker, of all its clients."""
        return self._thread.run(self._inner.recover())

    def forget(self, xid: Xid) -> None:
        """The coordinator knows how an operator has ended the branch."""
        self._thread.run(self._inner.forget(xid))


class XaSession(ClientSession):
    """A session whose transactions are branches of distributed ones.

    Outside a branch it receives nothing; what it sends then is no part of any transaction.
    """

    def __init__(self, thread: LoopThread, inner: AsyncXaSession, connection: object) -> None:
        super().__init__(thread, inner, connection)
        self._resource = XaResource(self, thread, inner.xa_resource)

    @property
    def xa_resource(self) -> XaResource:
        """Starts and ends its branches."""
        return self._resource
