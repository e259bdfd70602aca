"""Runs the programs of connection routers with each client, and says what they have shown."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.java import compiled
from interop.brokers import BrokerFailed
from interop.java import Client, sources
from interop.maven import ARTEMIS, ARTEMIS_VERSION, fetched
from interop.missing import Missing
from interop.routers.artemis import ARTEMIS_PROGRAMS, artemis_program
from interop.routers.clients import JavaClient, NotShown, Refused, RoutedClient, StompClient
from interop.routers.programs import PROGRAMS, RouterProgram
from interop.routers.site import Site, free_group_port

NAMES: Final = (*PROGRAMS, *ARTEMIS_PROGRAMS)
# What is wrong with one program does not keep the others from running.
_FAILURES: Final = (NotShown, Refused, BrokerFailed, RuntimeError, OSError)
SOURCES: Final = Path(__file__).resolve().parent / "java"


def run_routers(used: Client, cache: Path, wanted: Sequence[str]) -> list[str]:
    """What was not shown with the Java client and with stomp.py, a sentence each.

    Args:
        wanted: names of programs; all without one.

    Raises:
        Missing: what was asked for by name can't be had, or Artemis can't: then all others have run, and shown what
            they say.
    """
    chosen = wanted or NAMES
    missing: Missing | None = None
    programs = [PROGRAMS[name] for name in chosen if name in PROGRAMS]
    with_artemis = [name for name in ARTEMIS_PROGRAMS if name in chosen]
    if with_artemis:
        try:
            jars = fetched(ARTEMIS_VERSION, cache, ARTEMIS)
            programs += [artemis_program(name, jars) for name in with_artemis]
        except Missing as error:
            missing = error
    directory = cache / "run" / "routers"
    directory.mkdir(parents=True, exist_ok=True)
    clients: list[RoutedClient] = [_java(used, cache, directory / "client.err"), StompClient()]
    problems = [sentence for client in clients for sentence in _with_client(client, programs, directory)]
    if missing is not None and not problems:
        raise missing
    return problems


def _with_client(client: RoutedClient, programs: Sequence[RouterProgram], directory: Path) -> list[str]:
    problems = []
    with client:
        for program in programs:
            place = directory / program.name
            shutil.rmtree(place, ignore_errors=True)
            began = time.monotonic()
            try:
                with Site(place, client, free_group_port()) as site:
                    program.run(site)
                verdict = "shown"
            except _FAILURES as error:
                verdict = "NOT SHOWN"
                problems.append(f"{program.name} with the {client.name}: {error}")
            row = f"{program.name:24}{client.name:34} {verdict:12}{', '.join(program.requirements)}"
            sys.stdout.write(f"{row}\n")
            sys.stdout.flush()
            sys.stderr.write(f"routers: {program.name}: {time.monotonic() - began:.1f} s\n")
    return problems


def _java(used: Client, cache: Path, errors: Path) -> JavaClient:
    written = sources(used.libraries, cache / "jakarta-routers", SOURCES)
    classes = compiled(written, used.libraries, cache / "classes")
    path = ":".join(str(one) for one in (classes, *used.libraries))
    return JavaClient(used.java, path, used.version, errors)
