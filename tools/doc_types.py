"""Writes the Python blocks of the pages on the client and the test kit to build/, where the type checker finds them.

`make check` runs mypy --strict on them. Parameters of tests get the types that their fixtures have, as a user who
writes types would give them. A file is named after its page and the line of its first line of code.

    python -m tools.doc_types        writes them to build/doc_types
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Final

from tools.doc_examples import ROOT, examples

FOLDER: Final = ROOT / "build" / "doc_types"
PAGES: Final = ("client.md", "testing-with-delosmq.md")
FIXTURES: Final = {
    "broker": "delosmq.testing.BrokerFixture",
    "durable_broker": "delosmq.testing.BrokerFixture",
    "broker_client": "delosmq.client.ClientConnection",
    "async_broker_client": "delosmq.client.aio.AsyncConnection",
    "tmp_path": "pathlib.Path",
}
TEST: Final = re.compile(r"^((?:async )?def test_\w+)\(([\w, ]*)\):$", re.MULTILINE)
IMPORTS: Final = "import pathlib\n\nimport delosmq.client.aio\nimport delosmq.testing\n"


def typed(code: str) -> str:
    """A program as it is; a file of tests with the types of the fixtures that it uses.

    Raises:
        KeyError: a fixture that has no type here.
    """

    def signature(found: re.Match[str]) -> str:
        names = [name.strip() for name in found[2].split(",") if name.strip()]
        return f"{found[1]}({', '.join(f'{name}: {FIXTURES[name]}' for name in names)}) -> None:"

    changed, count = TEST.subn(signature, code)
    return IMPORTS + changed if count else code


def write(folder: Path) -> list[Path]:
    """The files, each time from nothing."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    written = []
    for page in (ROOT / "docs" / name for name in PAGES):
        for example in examples(page, ROOT):
            line = example.place.rpartition(":")[2]
            written.append(folder / f"{page.stem.replace('-', '_')}_line_{line}.py")
            written[-1].write_text(typed(example.code), "utf-8")
    return written


if __name__ == "__main__":
    write(FOLDER)
