"""The Python examples of README.md and docs/ do what their fences say (see tools/doc_examples.py)."""

import re
from pathlib import Path

import pytest

from delosmq.config.broker_xml import load_broker_xml
from tools import doc_types
from tools.doc_examples import Example, documents, examples, failure

pytestmark = pytest.mark.sources

ROOT = Path(__file__).resolve().parent.parent
FOUND = [example for document in documents(ROOT) for example in examples(document, ROOT)]


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(example, id=example.place, marks=[pytest.mark.spark] if example.needs_spark else [])
        for example in FOUND
    ],
)
def test_an_example_of_the_documentation_works(example: Example) -> None:
    assert failure(example) is None


def blocks(tmp_path: Path, text: str) -> list[Example]:
    page = tmp_path / "page.md"
    page.write_text(text, "utf-8")
    return list(examples(page, tmp_path))


def test_blocks_are_found_with_their_line_and_words(tmp_path: Path) -> None:
    text = "Text\n\n```python run\nx = 1\n```\n\n1. step\n   ```python\n   y = 2\n\n   z = 3\n   ```\n```sh\nls\n```\n"
    assert blocks(tmp_path, text) == [
        Example("page.md:4", "x = 1\n", frozenset({"run"})),
        Example("page.md:9", "y = 2\n\nz = 3\n", frozenset()),
    ]


def test_a_page_that_shows_another_output_is_told(tmp_path: Path) -> None:
    (example,) = blocks(tmp_path, "```python run\nprint('tea')\n```\n\n```text output\ncoffee\n```\n")
    assert example.output == "coffee\n"
    assert failure(example) == "page.md:2: prints this, and the page says otherwise:\ntea\n"
    (right,) = blocks(tmp_path, "```python run\nprint('tea')\n```\n\n```text output\ntea\n```\n")
    assert failure(right) is None


def test_a_misspelt_word_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"page\.md:2: 'runn'"):
        blocks(tmp_path, "```python runn\nx = 1\n```\n")


@pytest.mark.parametrize(
    "words, code, said",
    [
        ("", "x = = 1\n", "p.md:1: does not compile"),
        ("run", "assert False\n", "p.md:1: exit code 1"),
        ("run", "import warnings\nwarnings.warn('old')\n", "UserWarning: old"),
        ("test", "def test_one():\n    assert 1 == 2\n", "assert 1 == 2"),
        ("test", "x = 1\n", "exit code 5"),  # nothing in it is a test
    ],
)
def test_a_failing_example_is_told(words: str, code: str, said: str) -> None:
    assert said in (failure(Example("p.md:1", code, frozenset(words.split()))) or "")


def test_a_block_that_is_not_to_run_only_has_to_compile() -> None:
    assert failure(Example("p.md:1", "broker.send('x')\n", frozenset())) is None


def test_tests_of_the_manual_are_checked_with_the_types_of_their_fixtures(tmp_path: Path) -> None:
    code = "async def test_one(broker, broker_client):\n    pass\n"
    assert doc_types.typed(code) == (
        f"{doc_types.IMPORTS}async def test_one(broker: delosmq.testing.BrokerFixture,"
        " broker_client: delosmq.client.ClientConnection) -> None:\n    pass\n"
    )
    with pytest.raises(KeyError, match="teapot"):
        doc_types.typed("def test_one(teapot):\n    pass\n")
    assert {path.name.partition("_line_")[0] for path in doc_types.write(tmp_path / "types")} == {
        "client",
        "testing_with_delosmq",
    }


XML = re.compile(r"^```xml\n(?P<core>(?!<broker).*?)^```", re.DOTALL | re.MULTILINE)
SNIPPETS = [
    pytest.param(block["core"], id=f"{page.name}:{page.read_text('utf-8').count(chr(10), 0, block.start()) + 1}")
    for page in documents(ROOT)
    for block in XML.finditer(page.read_text("utf-8"))
]


@pytest.mark.parametrize("core", SNIPPETS)
def test_a_snippet_of_broker_xml_loads(core: str, tmp_path: Path) -> None:
    path = tmp_path / "broker.xml"
    head = '<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core">\n'
    path.write_text(f"{head}{core}</core></configuration>\n", "utf-8")
    load_broker_xml(path, properties={}, memory_bytes=1 << 30)
