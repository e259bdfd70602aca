"""``delosmq run``: the broker process of an instance directory."""

import argparse
import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Final

from delosmq.cli.turns import Turn, run_in_turn
from delosmq.cli.usage import FAILED, WrongCallError, exit_code
from delosmq.composition import Accounts, ComposedBroker, failure_sentence, not_collecting, open_store
from delosmq.config.findings import LEFT_OUT, FindingKind, FlawedFileError
from delosmq.config.instance import Instance, load_instance, read_without
from delosmq.model.errors import BrokerError
from delosmq.model.phrases import in_groups
from delosmq.server.turn_loop import TurnLoop
from delosmq.storage.port import ServedStore
from delosmq.storage.shared_directory import LockOf, open_unlocked

# A full collection at a million messages paused 800 ms; the message path makes no cycles (docs/decisions/0017).
GC_THRESHOLDS: Final = (2_000, 3, 1_000_000)

REMIND_EVERY_S: Final = 3_600.0
"""How often the log repeats what the broker runs without."""

MOST_DRAIN_S: Final = 86_400

_USERS_PER_LINE: Final = 20


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="delosmq run", description="Run the broker of an instance directory.")
    made.add_argument("directory", type=Path, help="instance directory made by `delosmq create`")
    made.add_argument(
        "--define",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="what ${NAME} stands for in the configuration; may be repeated",
    )
    made.add_argument(
        "--without",
        metavar="NAME,NAME",
        action="append",
        default=[],
        help="start although these names of broker.xml or bootstrap.xml are not supported; `delosmq check` lists them",
    )
    made.add_argument(
        "--accept-loss",
        action="store_true",
        help="start although files of the journal are missing or damaged, without what was in them; back it up first",
    )
    made.add_argument(
        "--drain",
        metavar="SECONDS",
        type=_seconds,
        default=10.0,
        help=f"time to finish in at SIGTERM, at most {MOST_DRAIN_S}",
    )
    return made


def run_main(arguments: Sequence[str], lock_of: LockOf = open_unlocked) -> int:
    """Runs until SIGTERM or SIGINT; gives the exit code.

    Args:
        lock_of: makes the lock of a shared directory, for a broker whose ha-policy has one.
    """
    parsed = parser().parse_args(arguments)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logger = logging.getLogger("delosmq")
    # Until the broker can reload its configuration: SIGHUP must not end it while it starts.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        defined = dict(_definition(text) for text in parsed.define)
        without = read_without(parsed.without)
        read = partial(load_instance, parsed.directory, properties={**os.environ, **defined}, without=without)
        instance = read()
        for notice in instance.notices:
            logger.warning(notice)
        _remind_of_what_is_left_out(instance, logger)
        if parsed.accept_loss:
            logger.warning("DMQ7016: started with --accept-loss: leave it out next time, or losses go unnoticed")
        open_it = partial(
            open_store, instance.settings, sync_process=True, accept_loss=parsed.accept_loss, logger=logger
        )
        serve = partial(_serve, instance, logger, read=read, drain_s=parsed.drain)
        if instance.settings.ha_policy is not None:
            return run_in_turn(instance, open_it, serve, logger, lock_of=lock_of)
        # Forks the sync process: before any thread is started.
        store = open_it()
        with _instance_lock(instance), asyncio.Runner(loop_factory=TurnLoop) as runner:
            return runner.run(serve(store))
    except BrokerError as error:
        sys.stderr.write(f"{error}\n")
        if isinstance(error, FlawedFileError) and (names := error.findings.names(FindingKind.UNSUPPORTED)):
            wanted = ",".join(sorted(without.union(names)))
            lists = f"`delosmq check {parsed.directory}` lists everything"
            sys.stderr.write(f"--without {wanted} leaves out what is not supported; {lists}\n")
        return exit_code(error)


def _instance_lock(instance: Instance) -> AbstractContextManager[object]:
    """The lock of data/, unless the journal lies right there and has taken it."""
    journal, data = instance.settings.journal.directory, instance.paths.data_directory
    in_files = journal and instance.settings.database is None
    if in_files and data.exists() and data.samefile(journal):
        return nullcontext()
    return instance.lock()


def _seconds(text: str) -> float:
    with suppress(ValueError):
        seconds = float(text)
        if 0 <= seconds <= MOST_DRAIN_S:  # False for NaN as well
            return seconds
    raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds from 0 to {MOST_DRAIN_S}")


def _definition(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise WrongCallError("DMQ7001", f"--define {text} is not of the form NAME=VALUE")
    return name, value


async def _serve(
    instance: Instance,
    logger: logging.Logger,
    store: ServedStore,
    *,
    read: Callable[[], Instance],
    drain_s: float,
    turn: Turn | None = None,
) -> int:
    accounts = Accounts(instance.users, instance.roles, certificates=instance.certificates)
    composed = ComposedBroker(
        instance.settings,
        accounts,
        store,
        http=instance.web,
        logger=logger,
        activation=None if turn is None else turn.activation,
        http_socket=None if turn is None else turn.http_socket,
    )
    stop_wanted = asyncio.Event()
    loop = asyncio.get_running_loop()
    reloads = Reloads(instance, composed, logger, read)
    reminding = loop.create_task(keep_reminding(lambda: reloads.instance, logger))
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop_wanted.set)
    try:
        _recover(composed)
        await composed.start()
        await composed.start_http()
        _settle_garbage_collection()
        loop.add_signal_handler(signal.SIGHUP, reloads.ask)
        logger.info(f"DMQ7010: broker '{instance.settings.name}' is up, process {os.getpid()}")
        ends = (stop_wanted, composed.failed, composed.failback_wanted)
        waits = {asyncio.create_task(end.wait()) for end in ends}
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
    finally:
        reminding.cancel()
        reloads.end()
        await composed.stop(drain_s)
    if composed.failure is not None:
        sys.stderr.write(f"{failure_sentence(composed.failure)}\n")
        return FAILED
    if turn is not None:
        try:
            turn.end(makes_way=composed.failback_wanted.is_set() and not stop_wanted.is_set())
        except OSError as error:
            logger.error(
                f"DMQ7024: broker '{instance.settings.name}' is down; everything it confirmed is in the shared store, "
                f"but how it stopped could not be said there: {error}. Another broker may take over as if this one had "
                "been killed; check the disk or network of the store"
            )
            return FAILED
    logger.info(f"DMQ7011: broker '{instance.settings.name}' is down; everything it confirmed is on disk")
    return 0


def _remind_of_what_is_left_out(instance: Instance, logger: logging.Logger) -> None:
    if instance.settings.left_out:
        logger.warning(
            f"{LEFT_OUT}: broker '{instance.settings.name}' runs without {', '.join(instance.settings.left_out)}, as "
            f"--without says: `delosmq check {instance.paths.root}` tells what each would do. This is said again "
            "every hour"
        )


async def keep_reminding(present: Callable[[], Instance], logger: logging.Logger) -> None:
    """Repeats what the broker runs without, as the last reload has it."""
    while True:
        await asyncio.sleep(REMIND_EVERY_S)
        _remind_of_what_is_left_out(present(), logger)


def _recover(composed: ComposedBroker) -> None:
    """Recovers, and hides what came up from the garbage collector at once: looking at millions of messages would keep
    the first clients waiting for seconds."""
    with not_collecting():
        composed.recover()
        gc.freeze()


class Reloads:
    """Reads the instance directory again at SIGHUP. What comes while it reads counts afterwards.

    Attributes:
        instance: what is in force.
    """

    def __init__(
        self, instance: Instance, composed: ComposedBroker, logger: logging.Logger, read: Callable[[], Instance]
    ) -> None:
        self.instance = instance
        self._composed = composed
        self._logger = logger
        self._read = read
        self._task: asyncio.Task[None] | None = None
        self._again = False

    def ask(self) -> None:
        """SIGHUP came."""
        self._again = True
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="delosmq reload")

    def end(self) -> None:
        """Reads no more; the signal is ignored from now on."""
        asyncio.get_running_loop().remove_signal_handler(signal.SIGHUP)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        while self._again:
            self._again = False
            try:
                read = await asyncio.to_thread(self._read)
            except BrokerError as error:
                # A line for each mistake.
                head, *mistakes = str(error).splitlines()
                self._logger.error(f"DMQ7013: nothing was reloaded, and what was in force stays: {head}")
                for mistake in mistakes:
                    self._logger.error(f"DMQ7013: {mistake.strip()}")
                continue
            except Exception:
                self._logger.exception("DMQ7018: the files could not be read, and nothing was reloaded; report this")
                continue
            try:
                self._take_over(read)
            except BrokerError as error:
                self._logger.error(
                    "DMQ7017: the reload failed half-way, so that a part of the new configuration is in force and "
                    f"the rest is not: {error}. Mend that and send SIGHUP again, or restart the broker"
                )
            except Exception:
                self._logger.exception("DMQ7015: the reload failed half-way; restart the broker, and report this")
        self._task = None

    def _take_over(self, read: Instance) -> None:
        root = self.instance.paths.root
        for notice in read.notices:
            self._logger.warning(notice)
        before = self.instance
        plan = self._composed.reload(read.settings, read.users, read.roles, read.certificates)
        self.instance = read
        if read.settings.left_out != before.settings.left_out:
            _remind_of_what_is_left_out(read, self._logger)
        if read.web != before.web:
            self._logger.warning(f"DMQ7014: the binding in {read.paths.bootstrap_xml} changed; it waits for a restart")
        gone = sorted(before.users.keys() - read.users.keys())
        for names in in_groups(gone, _USERS_PER_LINE):
            self._logger.warning(
                f"DMQ7020: not in {read.paths.users.name} any more: {', '.join(names)}. Their open connections are "
                "refused whatever they ask for; what they subscribed to before still reaches them until they close"
            )
        changed = list(plan.changed)
        if read.users != before.users:
            changed.append(read.paths.users.name)
        if read.roles != before.roles:
            changed.append(read.paths.roles.name)
        now, then = read.certificates, before.certificates
        if now is not then and (now is None or then is None or now.differs_from(then)):
            changed.append(read.paths.certificate_users.name)
        self._logger.info(f"DMQ7012: {root} was read again; changed: {', '.join(changed) or 'nothing'}")


def _settle_garbage_collection() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
