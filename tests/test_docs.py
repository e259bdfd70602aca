"""The documentation agrees with the code: links, places named in the architecture, tables of options and calls."""

import ast
import base64
import configparser
import json
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

import delosmq
from delosmq.sessions.stomp.server import headers
from delosmq.spark.options import NAMES, SourceOptions
from delosmq.spark.schema import COLUMNS

pytestmark = pytest.mark.sources

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
CALL = re.compile(r"^\| `([A-Z]+ /[^`]*)`", re.MULTILINE)
CODE = re.compile(r"`([^`]+)`")


def prose(path: Path) -> str:
    return FENCED.sub("", path.read_text("utf-8"))


def anchors(path: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", prose(path), re.MULTILINE)
    return {re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=[page.relative_to(ROOT).as_posix() for page in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    lost = []
    for target in LINK.findall(prose(page)):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        if not path.exists() or (anchor and anchor not in anchors(path)):
            lost.append(target)
    assert lost == []


def definitions(path: Path) -> set[str]:
    found = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef):
            found.add(node.name)
            found |= {f"{node.name}.{item.name}" for item in node.body if hasattr(item, "name")}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


def test_the_path_of_a_message_names_at_most_eight_files_and_what_is_in_them() -> None:
    page = (DOCS / "architecture.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d* ?)\|? ?\[[^]]+\]\(([^)]+)\) \| ([^|]+) \|", page, re.M)
    assert 0 < sum(number != "" for number, _, _ in rows) <= 8 < len(rows)
    for _, file, places in rows:
        missing = set(CODE.findall(places)) - definitions(DOCS / file)
        assert not missing, f"{file} has no {missing}"


def places_of_words() -> dict[str, Path]:
    table = (DOCS / "architecture.md").read_text("utf-8").partition("## Where would you look?")[2]
    return {word: DOCS / place for word, place in re.findall(r"^\| (.+?) \| \[.+?\]\((.+?)\) \|$", table, re.MULTILINE)}


def test_a_reader_is_told_where_to_look_for_sixty_words() -> None:
    assert len(places_of_words()) >= 60


@pytest.mark.parametrize(("word", "place"), places_of_words().items())
def test_the_file_for_a_word_says_what_the_word_means(word: str, place: Path) -> None:
    told = ast.get_docstring(ast.parse(place.read_text("utf-8"))) or ""
    assert word.lower() in " ".join(told.lower().split())


ENGINE_FILES = sorted({path.stem for path in (ROOT / "src" / "delosmq" / "engine").rglob("*.py")} - {"__init__"})


@pytest.mark.parametrize("file", ENGINE_FILES)
def test_the_glossary_has_the_words_that_name_the_files_of_the_engine(file: str) -> None:
    rows = re.findall(r"^\|([^|]+)\|([^|]*)\|", (DOCS / "glossary.md").read_text("utf-8").lower(), re.MULTILINE)
    words = set(re.findall(r"[a-z]+", " ".join(term for row in rows for term in row)))
    for word in file.split("_"):
        assert {word, f"{word}s", word.removesuffix("s"), word.removesuffix("es"), re.sub("ies$", "y", word)} & words, (
            word
        )


def test_each_decision_is_in_the_index() -> None:
    index = (DOCS / "decisions" / "README.md").read_text("utf-8")
    records = sorted((DOCS / "decisions").glob("0*.md"))
    for number, record in enumerate(records, start=1):
        title = record.read_text("utf-8").partition("\n")[0].removeprefix("# ")
        name = title.partition(" ")[2]
        assert title.startswith(f"{number:04d} ")
        assert f"[{number:04d}]({record.name}) {name}" in index


def section(page: str, heading: str) -> str:
    return (DOCS / page).read_text("utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def test_each_option_of_the_data_source_is_in_the_table() -> None:
    cells = re.findall(r"^\| ([^|]*) \|", section("spark-options.md", "Options"), re.MULTILINE)
    assert sorted(name for cell in cells for name in CODE.findall(cell)) == sorted(NAMES)


@pytest.mark.parametrize(
    "option, value",
    [
        ("maxOffsetsPerTrigger", SourceOptions.__dataclass_fields__["max_rows"].default),
        ("maxBytesPerTrigger", SourceOptions.__dataclass_fields__["max_bytes"].default),
        ("pollTimeoutMs", SourceOptions.__dataclass_fields__["poll_timeout_ms"].default),
    ],
)
def test_the_table_states_the_defaults(option: str, value: int) -> None:
    assert f"| `{option}` | {value} |" in section("spark-options.md", "Options")


def test_the_columns_are_those_of_the_schema() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([a-z ]+)(, nullable)? \|", section("spark-options.md", "Columns"), re.MULTILINE)
    kinds = {"map": "map of string to string"}
    wanted = [(column.name, kinds.get(column.kind, column.kind), column.nullable) for column in COLUMNS]
    assert [(name, kind, bool(nullable)) for name, kind, nullable in rows] == wanted


def test_each_header_that_stomp_refuses_is_named() -> None:
    assert set(CODE.findall(section("stomp.md", "Not supported yet"))) == headers.UNSUPPORTED_IN_SEND


def test_each_call_of_the_http_api_is_in_the_table() -> None:
    with delosmq.Broker() as broker:
        token = base64.b64encode(f"{broker.user}:{broker.password}".encode()).decode()
        request = urllib.request.Request(f"{broker.http_url}/openapi.json", headers={"Authorization": f"Basic {token}"})
        with urllib.request.urlopen(request) as answer:
            paths = json.load(answer)["paths"]
    calls = [f"{method.upper()} {path}" for path, methods in paths.items() for method in methods]
    assert sorted(CALL.findall(section("http.md", "Calls"))) == sorted(calls)


def test_the_program_of_the_tutorial_does_what_the_tutorial_says(tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", (DOCS / "tutorial.md").read_text("utf-8"), re.DOTALL)
    assert "61613" in program
    with delosmq.Broker(password="a secret") as broker:
        path = tmp_path / "shop.py"
        path.write_text(program.replace("61613", str(broker.stomp_port)), "utf-8")
        environment = {**os.environ, "DELOSMQ_PASSWORD": "a secret"}
        done = subprocess.run(
            [sys.executable, str(path)], env=environment, capture_output=True, text=True, check=True, timeout=60
        )
        assert done.stdout == "served:  two cups of tea\n" + 10 * "refused: a cup of coffee\n"

        async def dead() -> int:
            return broker.composed.broker.queues["DLQ"].message_count

        assert broker.call(dead()) == 1


def test_the_unit_of_systemd_is_one(tmp_path: Path) -> None:
    (unit,) = re.findall(r"```ini\n(.*?)```", (DOCS / "how-to" / "systemd.md").read_text("utf-8"), re.DOTALL)
    parsed = configparser.ConfigParser(interpolation=None)
    parsed.read_string(unit)
    assert parsed["Service"]["ExecReload"] == "/bin/kill -HUP $MAINPID"
    program, command, _ = parsed["Service"]["ExecStart"].split()
    assert (Path(program).name, command) == ("delosmq", "run")
