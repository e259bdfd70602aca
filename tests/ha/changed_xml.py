"""Puts elements into a broker.xml, each in place of the one that it has: ``python changed_xml.py FILE ELEMENTS``."""

import re
import sys
from pathlib import Path

ELEMENT = re.compile(r"^<([\w-]+)>.*?</\1>\n", re.DOTALL | re.MULTILINE)


def change(path: Path, elements: str) -> None:
    """New ones stand before the security-settings."""
    text = path.read_text("utf-8")
    for found in ELEMENT.finditer(elements):
        begin, end = text.find(f"<{found[1]}>"), text.find(f"</{found[1]}>")
        if begin < 0:
            begin = end = text.index("<security-settings>")
            text = text[:begin] + found[0] + text[end:]
        else:
            text = text[:begin] + found[0] + text[end + len(f"</{found[1]}>") :]
    path.write_text(text, "utf-8")


if __name__ == "__main__":
    change(Path(sys.argv[1]), sys.argv[2])
