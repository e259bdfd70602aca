"""docs/requirements.md says what the tests say (see tools/requirements.py)."""

from pathlib import Path

import pytest

from tools.requirements import BEGIN, END, PAGE, ROOT, citations, renewed, served, table

pytestmark = pytest.mark.sources

# Ids in the samples below are put together, so that this file cites nothing.
ONE = "RING" + "-1"
FOUR = "RING" + "-4"


def cited(tmp_path: Path, text: str) -> dict[str, list[str]]:
    page = tmp_path / "test_a.py"
    page.write_text(text, "utf-8")
    return citations(page, tmp_path)


def test_the_page_is_what_the_tests_say() -> None:
    page = (ROOT / PAGE).read_text("utf-8")
    assert renewed(page, served(ROOT)) == page, "run python tools/requirements.py"


def test_a_comment_at_above_or_inside_a_test_is_that_tests(tmp_path: Path) -> None:
    text = (
        f"def test_a():  # {ONE}\n    x\n\n\n# {ONE}\ndef test_b():\n    x\n\n\ndef test_c():\n    x  # {FOUR}, too\n"
    )
    assert cited(tmp_path, text) == {ONE: ["test_a.py::test_a", "test_a.py::test_b"], FOUR: ["test_a.py::test_c"]}


def test_a_comment_outside_of_functions_is_the_files(tmp_path: Path) -> None:
    assert cited(tmp_path, f'"""Doc."""\n\n# {ONE}, {FOUR}\n\nX = 1\n') == {ONE: ["test_a.py"], FOUR: ["test_a.py"]}


def test_what_is_no_comment_cites_nothing(tmp_path: Path) -> None:
    assert cited(tmp_path, f'"""{ONE}"""\n\ndef test_a():\n    x = "# {FOUR}"\n') == {}


def test_a_row_links_files_and_names_their_tests() -> None:
    cell = table({ONE: ["tests/a/test_a.py::test_x_y", "tests/a/test_a.py::test_z", "tests/test_b.py"]}).splitlines()[6]
    assert cell.endswith("| [a/test_a.py](../tests/a/test_a.py): x y, z<br>[test_b.py](../tests/test_b.py) |")


def test_an_id_without_a_meaning_is_refused() -> None:
    with pytest.raises(ValueError, match="RING" + "-99"):
        table({"RING" + "-99": ["tests/test_b.py"]})


def test_a_page_without_the_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="put both lines back"):
        renewed(f"text {END} {BEGIN}", {})
