"""`delosmq run` of a broker that shares its store: it waits for its turn, is active, and perhaps waits again."""

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NoReturn

from delosmq.composition import Standby, open_activation, tell_of_activation
from delosmq.config.instance import Instance
from delosmq.model.errors import InvariantError
from delosmq.model.settings import BackupPolicy
from delosmq.server.listener import bind
from delosmq.server.turn_loop import TurnLoop
from delosmq.storage.activation import Activation, Attempt, PairState
from delosmq.storage.port import ServedStore
from delosmq.storage.shared_directory import LockOf, open_unlocked

Restart = Callable[[], NoReturn]


class Turn:
    """The time in which a broker is active.

    Attributes:
        http_socket: open since the broker waited; None for no HTTP.
        made_way: the broker ended as a primary is back.
    """

    def __init__(self, activation: Activation, http_socket: socket.socket | None, *, hands_over: bool) -> None:
        self.activation = activation
        self.http_socket = http_socket
        self.made_way = False
        self._hands_over = hands_over

    def end(self, *, makes_way: bool) -> None:
        """The store is closed, with all that was confirmed. Raises OSError: others were not told."""
        self.made_way = makes_way
        if makes_way:
            state = PairState.FAILING_BACK
        else:
            state = PairState.ACTIVE if self._hands_over else PairState.PAUSED
        self.activation.give_up(state)


def run_in_turn(
    instance: Instance,
    open_store: Callable[..., ServedStore],
    serve: Callable[..., Coroutine[Any, Any, int]],
    logger: logging.Logger,
    *,
    lock_of: LockOf = open_unlocked,
) -> int:
    """Runs until SIGTERM or SIGINT, or until the broker has made way and is not to wait again; gives the exit code."""
    policy = instance.settings.ha_policy
    name = instance.settings.name
    activation = open_activation(instance.settings, lock_of)
    if policy is None or activation is None:
        raise InvariantError("DMQ7021", f"broker '{name}' waits for its turn without an ha-policy")
    with _lock_of_data(instance):
        web = instance.web
        bound = None if web is None else bind(web.host, web.port, "the HTTP interface")
        tls = None if web is None else web.tls
        try:
            with asyncio.Runner() as runner:
                attempt = runner.run(_wait(Standby(activation, bound, name=name, logger=logger, tls=tls)))
            if attempt is None:
                logger.info(f"DMQ7022: broker '{name}' is down; it was not active")
                return 0
            tell_of_activation(attempt, name, logger)
            # Forks the sync process: the threads of the waiting have ended.
            store = open_store(activation=activation)
            turn = Turn(activation, bound, hands_over=policy.failover_on_shutdown)
            with asyncio.Runner(loop_factory=TurnLoop) as runner:
                code = runner.run(serve(store, turn=turn))
        finally:
            activation.close()
            if bound is not None:
                bound.close()
    if turn.made_way and isinstance(policy, BackupPolicy) and policy.restart_backup:
        logger.info(f"DMQ7023: broker '{name}' made way for the primary and starts again, to wait")
        start_again()
    return code


async def _wait(standby: Standby) -> Attempt | None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    try:
        return await standby.wait(stop)
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


def _lock_of_data(instance: Instance) -> AbstractContextManager[object]:
    """The lock of data/, unless the shared directory is that: two brokers have it then."""
    shared, data = Path(instance.settings.journal.directory), instance.paths.data_directory
    same = data.samefile(shared) if data.exists() and shared.exists() else data.absolute() == shared.absolute()
    return nullcontext() if same else instance.lock()


def start_again() -> NoReturn:
    """The same command in the same process, with nothing left of the broker that was."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
