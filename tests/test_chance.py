"""What `DELOSMQ_EXAMPLES` multiplies."""

import re
from pathlib import Path

from hypothesis import settings

from tests.chance import TIMES, tries

TESTS = Path(__file__).parent


def test_a_long_run_tries_more_of_everything() -> None:
    assert settings().max_examples == 100 * TIMES == tries(100)
    said = [
        f"{page.relative_to(TESTS)}: {line.strip()}"
        for page in sorted(TESTS.rglob("*.py"))
        for line in page.read_text("utf-8").splitlines()
        if re.search(r"max_examples=\d", line)
    ]
    assert said == [], "write max_examples=tries(n), of tests.chance"
