"""Runs the commands of the pages about Spark, in the order of the page, so that what a page says can be typed.

    ```sh story            runs with the other blocks of its page, in one folder, beside a broker
    ```python story        the same, as a program of its own

The broker holds 100 messages in the queue ``orders``, 50 in ``parcels`` and 10 in ``returns``. Where it is and who asks
is in the environment (``DELOSMQ_SERVERS``, ``DELOSMQ_URL``, ``DELOSMQ_USER``, ``DELOSMQ_PASSWORD``), the password in
the file ``secret`` as well.

    python -m tools.doc_stories [FILE ...]     runs all, or those of the named files
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import delosmq
from tools.doc_examples import ROOT, documents

TIME_LIMIT_S = 300.0
"""Of one block: each starts Spark at most a few times."""
FENCE = re.compile(r"^```(?P<language>sh|python) story\n(?P<code>.*?)^```", re.DOTALL | re.MULTILINE)
MESSAGES = {"orders": 100, "parcels": 50, "returns": 10}


@dataclass(frozen=True)
class Step:
    """A fenced block. Attributes: place: file:line of its first line."""

    place: str
    language: str
    code: str


def steps(document: Path, root: Path) -> list[Step]:
    """The blocks of `document` that tell its story."""
    text = document.read_text("utf-8")
    name = document.relative_to(root).as_posix()
    return [
        Step(f"{name}:{text.count(chr(10), 0, block.start('code')) + 1}", block["language"], block["code"])
        for block in FENCE.finditer(text)
    ]


def stories(root: Path) -> Iterator[list[Step]]:
    """The steps of each page that has any."""
    return (found for document in documents(root) if (found := steps(document, root)))


def failure(story: list[Step]) -> str | None:
    """Why `story` fails, at the first step that does; None when all do what they should."""
    with tempfile.TemporaryDirectory(prefix="delosmq-story-") as folder, delosmq.Broker() as broker:
        with delosmq.connect(broker.openwire_url, user=broker.user, password=broker.password) as connection:
            for queue, count in MESSAGES.items():
                for number in range(count):
                    connection.send(queue, f"{queue} {number}")
        Path(folder, "secret").write_text(f"{broker.password}\n", "utf-8")
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "DELOSMQ_SERVERS": broker.http_url,
            "DELOSMQ_URL": broker.http_url,
            "DELOSMQ_USER": broker.user,
            "DELOSMQ_PASSWORD": broker.password,
        }
        for step in story:
            if wrong := _failure(step, folder, environment):
                return wrong
    return None


def _failure(step: Step, folder: str, environment: Mapping[str, str]) -> str | None:
    shell = ["sh", "-e", "-c", step.code] if step.language == "sh" else [sys.executable, "-W", "error", "-c", step.code]
    try:
        answer = subprocess.run(
            shell,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT_S,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return f"{step.place}: not over after {TIME_LIMIT_S:.0f} s"
    return f"{step.place}: exit code {answer.returncode}\n{answer.stdout}{answer.stderr}" if answer.returncode else None


def main(names: list[str]) -> None:
    told = [steps(Path(name).resolve(), ROOT) for name in names] if names else list(stories(ROOT))
    failures = [sentence for story in told if (sentence := failure(story))]
    for sentence in failures:
        print(sentence)
    print(f"{sum(len(story) for story in told)} steps of {len(told)} pages, {len(failures)} pages failed")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
