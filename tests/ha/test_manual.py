"""docs/several-brokers.md: its commands and the changes of files between them are carried out in their order, in one
shell, from one broker to a pair behind a router."""

# HA-1, ROUTE-3, CLUS-1

import contextlib
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.machine import free_port
from tests.ha import changed_xml
from tests.server.test_discovery_groups import port as port

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "several-brokers.md").read_text("utf-8")
SECTIONS = ("Takeover", "A router before a pair", "Looking at it")
"""Those with commands, in the order in which an operator comes to them."""
FENCE = re.compile(r"^```(?P<kind>sh|xml)\n(?P<text>.*?)^```", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"`(\w+)/etc/broker\.xml`")
PORTS = ("61616", "61613", "8161", "61617", "61614", "8162", "61618", "61615", "8163")
GROUP_PORT = "9876"
PATIENCE_S = 240.0
OVER = "the page is over"


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def steps(here: dict[str, str]) -> Iterator[str]:
    """The commands of the page, with commands that change the files as it says."""
    names = re.compile(r"(?<!\d)(" + "|".join(map(re.escape, here)) + r")(?!\d)")
    for title in SECTIONS:
        for found in FENCE.finditer(section(title)):
            text = names.sub(lambda name: here[name[0]], found["text"])
            if found["kind"] == "sh":
                yield text
                continue
            paragraph = section(title)[: found.start()].rstrip().rpartition("\n\n")[2]
            for instance in FILE.findall(paragraph):
                yield shlex.join([sys.executable, changed_xml.__file__, f"{instance}/etc/broker.xml", text])


def test_each_command_of_the_page_is_run_below() -> None:
    assert PAGE.count("```sh\n") == sum(section(title).count("```sh\n") for title in SECTIONS)


@pytest.mark.timeout(300)
def test_the_commands_of_the_page_make_a_pair_that_takes_over_and_back_and_a_router_before_it(
    tmp_path: Path, port: int
) -> None:
    here = {one: str(free_port()) for one in PORTS} | {GROUP_PORT: str(port), "/srv/shared": str(tmp_path / "shared")}
    programs = tmp_path / "programs"
    programs.mkdir()
    program = programs / "delosmq"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m delosmq.cli.main "$@"\n')
    program.chmod(0o755)
    script = "\n".join(["set -e", *steps(here), f'echo "{OVER}"'])
    with (tmp_path / "log").open("w") as log:
        shell = subprocess.Popen(
            ["bash", "-c", script],
            cwd=tmp_path,
            env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
    try:
        told = _all_of(shell)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)
        assert shell.stdout is not None
        shell.stdout.close()
    assert OVER in told, (tmp_path / "log").read_text()
    ready = re.findall(r'"status":"UP".*?"role":"(\w+)"', told)
    assert ready == ["primary", "backup", "primary"]
    primary, backup = (f"redirect 127.0.0.1:{here[one]}" for one in ("61616", "61617"))
    outcomes = re.findall(r"^outcome +(.*)", told, re.MULTILINE)
    assert outcomes == [primary, backup, primary, backup, backup], told
    stat = told[: told.index(OVER)].rpartition("ROUTER")[2]
    assert re.search(rf"127\.0\.0\.1 +{here['61617']} +yes", stat), stat


def _all_of(shell: "subprocess.Popen[str]") -> str:
    """What the shell prints until it is over; brokers that it leaves behind have its output open still."""
    assert shell.stdout is not None
    told = ""
    for line in shell.stdout:
        told += line
        if OVER in line:
            break
    shell.wait(PATIENCE_S)
    return told
