"""docs/several-brokers.md, "Takeover": its commands are run in their order, in one shell."""

# HA-1

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.machine import free_port

PAGE = Path(__file__).resolve().parents[2] / "docs" / "several-brokers.md"
TAKEOVER = PAGE.read_text("utf-8").partition("\n## Takeover\n")[2].partition("\n## ")[0]
COMMANDS = re.findall(r"^```sh\n(.*?)^```", TAKEOVER, re.DOTALL | re.MULTILINE)
CONFIGURATIONS = re.findall(r"^```xml\n(.*?)^```", TAKEOVER, re.DOTALL | re.MULTILINE)
PORTS = ("61616", "61613", "8161", "61617", "61614", "8162")
PATIENCE_S = 120.0
OWN_DIRECTORY = "<journal-directory>data/journal</journal-directory>"


@pytest.mark.timeout(150)
def test_the_commands_of_the_page_make_a_pair_that_takes_over_and_back(tmp_path: Path) -> None:
    ports = {port: str(free_port()) for port in PORTS}
    create, *others = COMMANDS

    def here(text: str) -> str:
        text = re.sub(r"(?<!\d)(" + "|".join(PORTS) + r")(?!\d)", lambda found: ports[found[0]], text)
        return text.replace("/srv/shared", str(tmp_path / "shared"))

    edits = []
    for name, configuration in zip(("primary", "backup"), CONFIGURATIONS, strict=True):
        changed = tmp_path / f"{name}.py"
        path = tmp_path / name / "etc" / "broker.xml"
        changed.write_text(
            f"from pathlib import Path\npath = Path({str(path)!r})\n"
            f"path.write_text(path.read_text().replace({OWN_DIRECTORY!r}, {here(configuration)!r}, 1))\n"
        )
        edits.append(f"{shlex.quote(sys.executable)} {shlex.quote(str(changed))}")
    delosmq = f'delosmq() {{ {shlex.quote(sys.executable)} -m delosmq.cli.main "$@"; }}'
    script = "\n".join(["set -e", delosmq, here(create), *edits, *map(here, others), 'echo "the page is over"'])
    with (tmp_path / "log").open("w") as log:
        shell = subprocess.Popen(
            ["bash", "-c", script], cwd=tmp_path, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        )
    try:
        told, _ = _all_of(shell)
    finally:
        os.killpg(shell.pid, signal.SIGKILL)
        assert shell.stdout is not None
        shell.stdout.close()
    assert told.endswith("the page is over\n"), (tmp_path / "log").read_text()
    ready = re.findall(r'"status":"UP".*?"role":"(\w+)"', told)
    assert ready == ["primary", "backup", "primary"]


def _all_of(shell: "subprocess.Popen[str]") -> tuple[str, int]:
    """What the shell prints until it is over; brokers that it leaves behind have its output open still."""
    assert shell.stdout is not None
    told = ""
    for line in shell.stdout:
        told += line
        if "the page is over" in line:
            break
    return told, shell.wait(PATIENCE_S)
