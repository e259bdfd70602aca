"""Ports for processes that are started again on the same one."""

import subprocess
import sys

from delosmq.testing.processes.free_port import free_port

TAKE = (
    "from delosmq.testing.processes.free_port import free_port; print(*(free_port() for _ in range(2_000)), flush=True)"
)


def test_no_two_processes_at_work_are_given_the_same_port() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", f"{TAKE}; input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        theirs = {int(port) for port in other.stdout.readline().split()}
        ours = {free_port() for _ in range(2_000)}
        other.communicate("\n")
    assert (len(theirs), len(ours), ours & theirs) == (2_000, 2_000, set())
