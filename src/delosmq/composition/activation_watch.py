"""The watch of an active broker over its activation: whether another one is active, and whether it should make way.

What leaves the broker leaves while the last look holds (`ActiveLease`). A broker that was paused finds at its next tick
that time has passed, and says nothing before it has looked again.
"""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from delosmq.model.errors import BrokerError
from delosmq.model.ports import Clock
from delosmq.storage.activation import VERIFY_EVERY_S, Activation, ActiveLease


class ActivationWatch:
    """Looks again and again, on a thread of its own, as a disk or a network may keep it waiting.

    Args:
        on_verified: what waited for the lease may leave.
        on_superseded: another broker is active; nothing more is looked at.

    Attributes:
        lease: holds while the last look does.
        failback_wanted: set when a primary waits for this broker to make way.
    """

    def __init__(
        self,
        activation: Activation,
        clock: Clock,
        logger: logging.Logger,
        *,
        on_verified: Callable[[], None],
        on_superseded: Callable[[BaseException], None],
    ) -> None:
        self._activation = activation
        self._clock = clock
        self._logger = logger
        self._on_verified = on_verified
        self._on_superseded = on_superseded
        self._thread = ThreadPoolExecutor(1, "delosmq-activation")
        self._task: asyncio.Task[None] | None = None
        self.lease = ActiveLease(clock)
        self.failback_wanted = asyncio.Event()

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="delosmq activation watch")

    async def stop(self) -> None:
        """Looks no more; what a look under way finds is not taken in. May be repeated."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        self._thread.shutdown(wait=False)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        trouble = ""
        while True:
            held = self.lease.holds()
            try:
                now = self._clock.monotonic_ns()
                found = await loop.run_in_executor(self._thread, self._activation.verify, now)
            except OSError as error:
                if trouble != str(error):
                    trouble = str(error)
                    self._logger.warning(
                        f"DMQ6030: whether this broker is still the active one can't be known: {trouble}; "
                        f"{self._activation.in_doubt}"
                    )
            except BrokerError as error:
                self._on_superseded(error)
                return
            except Exception as error:
                self._on_superseded(error)
                raise
            else:
                if trouble:
                    self._logger.info("DMQ6031: this broker is still the active one, and goes on")
                    trouble = ""
                self.lease.until = found.until
                if not held:
                    self._on_verified()
                if found.failback_wanted:
                    self.failback_wanted.set()
            await asyncio.sleep(VERIFY_EVERY_S)
