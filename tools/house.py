"""How orderly the tree is, in numbers that no rule refuses yet: what one message crosses.

    python -m tools.house            each measure with its limit and its aim; exit code 1 when a limit is exceeded
    python -m tools.house --all      names each file that a SEND crosses, too
    python -m tools.house --lower    takes what has become less as the new limit

The limits stand in tools/house.json and only ever become lower. Lines and calls are told and not limited: merged
functions and denser lines would meet a limit.
"""

from __future__ import annotations

import argparse
import json
import sys
from itertools import groupby
from types import FrameType

from benchmarks.engine_worker import DroppingStore
from benchmarks.fixed_work import CLIENT, StompConversation
from tools.source_files import ROOT, read_tree

LIMITS = ROOT / "tools" / "house.json"
AIMS = {"file changes of a durable SEND": 20}
PACKAGE = "/src/delosmq/"


# --- one message


class Stopped(DroppingStore):
    """Ends the watching when a record comes."""

    watching = False

    def append(self, batch: object) -> None:
        if self.watching:
            sys.setprofile(None)


def way_of_a_durable_send() -> tuple[list[str], int]:
    """Files between the arrival of a STOMP SEND and its record at the store, of a broker in use; and calls.

    A file stands there again for each call from another file of the package, and for each return from one.
    """
    conversation = StompConversation()
    store = Stopped()
    conversation.bench = conversation.new_bench(store)
    conversation.hold(64, durable=True)
    files: list[str] = []
    calls = 0

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        runs = frame if event == "call" else frame.f_back if event == "return" else None
        if runs is not None and PACKAGE in runs.f_code.co_filename:
            files.append(runs.f_code.co_filename.partition(PACKAGE)[2])
            calls += event == "call"

    session = conversation.bench.sessions[CLIENT]
    store.watching = True
    sys.setprofile(note)
    session.receive(conversation.frame(durable=True), conversation.bench.now)
    sys.setprofile(None)
    return [file for file, _ in groupby(files)], calls


def exceeded(found: dict[str, int], limits: dict[str, int]) -> list[str]:
    """What has become worse, a sentence each."""
    return [
        f"{name}: {figure}, and {limits.get(name, 0)} are allowed"
        for name, figure in found.items()
        if figure > limits.get(name, 0)
    ]


def lowered(found: dict[str, int], limits: dict[str, int]) -> dict[str, int]:
    """The limits, with what has become less."""
    return {name: min(figure, limits.get(name, figure)) for name, figure in found.items()}


def main(argv: list[str]) -> int:
    """Print the measures; 1 when one is exceeded."""
    parser = argparse.ArgumentParser(prog="python -m tools.house", description=__doc__)
    parser.add_argument("--lower", action="store_true", help="take what has become less as the new limit")
    parser.add_argument("--all", action="store_true", help="name each thing that counts")
    arguments = parser.parse_args(argv)
    files = read_tree(ROOT, ["src/delosmq"])
    limits: dict[str, int] = json.loads(LIMITS.read_text("utf-8")) if LIMITS.exists() else {}
    crossed, calls = way_of_a_durable_send()
    found = dict(zip(AIMS, [len(crossed) - 1], strict=True))
    if arguments.all:
        print("\n".join(crossed))
    for name, figure in found.items():
        print(f"{figure:>6}  {name} ({limits.get(name, 0)} allowed, {AIMS[name]} aimed at)")
    print(f"{calls:>6}  calls of a durable SEND, up to its record")
    print(f"{sum(len(file.text.splitlines()) for file in files):>6}  lines of src/delosmq")
    if arguments.lower:
        LIMITS.write_text(json.dumps(lowered(found, limits), indent=1) + "\n", "utf-8")
        return 0
    for sentence in exceeded(found, limits):
        print(sentence, file=sys.stderr)
    return 1 if exceeded(found, limits) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
