"""The commands of the pages about Spark work in the order of their page (see tools/doc_stories.py)."""

from pathlib import Path

import pytest

from tools.doc_stories import Step, failure, steps, stories

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.parametrize("story", [pytest.param(story, id=story[0].place.partition(":")[0]) for story in stories(ROOT)])
def test_a_page_can_be_typed(story: list[Step]) -> None:
    assert failure(story) is None


def test_steps_share_a_folder_and_a_broker_and_the_first_that_fails_is_told(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```sh story\ndelosmq queue stat > stat\n```\n```sh\nfalse\n```\n"
        "```python story\nassert 'orders' in open('stat').read()\n```\n"
        "```sh story\necho gone wrong; false\ntrue\n```\n",
        "utf-8",
    )
    found = steps(page, tmp_path)
    assert [step.place for step in found] == ["page.md:2", "page.md:8", "page.md:11"]
    assert failure(found[:2]) is None
    assert failure(found) == "page.md:11: exit code 1\ngone wrong\n"
