"""The rules that tools/architecture.py checks hold for the code base, and each of them can fail."""

import importlib.util
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tools import architecture
from tools.check import LINT_IMPORTS

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.sources
def test_the_code_base_keeps_the_rules() -> None:
    assert [str(finding) for finding in architecture.check(ROOT)] == []


def lint_imports(root: Path) -> list[str]:
    """What import-linter says of the contracts in pyproject.toml and the sources below ``root``."""
    environment = {**os.environ, "PYTHONPATH": str(root / "src"), "COLUMNS": "200"}
    return subprocess.run(
        LINT_IMPORTS, cwd=root, env=environment, capture_output=True, text=True, check=False
    ).stdout.split("\n")


def copy_sources(root: Path) -> None:
    shutil.copytree(ROOT / "src", root / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", root)


STRAY_IMPORTS = {
    "model/message.py": ["def late():\n    from delosmq.engine.log.log import Log"],
    "engine/base/jobs.py": ["if ANNOTATED:\n    from ...engine.queues.queue import Queue"],
    "engine/queues/ring.py": ["from . import queue", "from delosmq.engine.addresses import address"],
    "engine/addresses/address.py": ["import delosmq.engine.dispatch.dispatcher"],
    "server/ticker.py": ["from delosmq.engine.queues.queue import Queue"],
    "manage/control/host.py": ["import delosmq.migration.activemq_xml"],
    "wire/stomp/heads.py": ["import delosmq.wire.openwire.codec"],
    "sessions/lease/answers.py": ["from delosmq.sessions import stomp"],
    "sessions/stomp/server/errors.py": ["from delosmq.wire.openwire import codec"],
    "sessions/openwire/server/errors.py": ["from delosmq.wire.stomp import heads"],
    "sessions/core/server/errors.py": ["from delosmq.wire.stomp import heads"],
    "sessions/openwire/client/errors.py": ["from delosmq.sessions.openwire.server import errors as theirs"],
    "client/errors.py": ["from delosmq.engine.api import EngineBroker"],
    "sessions/outbox.py": ["from delosmq.storage.memory import MemoryStore"],
    "config/reload.py": ["from delosmq.engine import api"],
    "spark/source.py": ["from delosmq.storage import journal"],
}


@pytest.mark.sources
def test_packages_import_as_their_contracts_say() -> None:
    assert lint_imports(ROOT)[-2].endswith(" kept, 0 broken."), "\n".join(lint_imports(ROOT))


@pytest.mark.sources
def test_each_contract_about_imports_can_be_broken(tmp_path: Path) -> None:
    copy_sources(tmp_path)
    for name, lines in STRAY_IMPORTS.items():
        with (tmp_path / "src" / "delosmq" / name).open("a", encoding="utf-8") as file:
            file.write("\n" + "\n".join(lines) + "\n")
    broken = "\n".join(line for line in lint_imports(tmp_path) if " BROKEN" in line)
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    assert [contract["name"] for contract in contracts if contract["name"] not in broken] == []


@pytest.mark.sources
@pytest.mark.parametrize(
    ("contract", "folder"), [("Protocols are strangers", "wire"), ("Sessions of protocols are strangers", "sessions")]
)
def test_every_protocol_is_a_stranger_to_the_others(contract: str, folder: str) -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    [named] = [one["modules"] for one in contracts if one["name"] == contract]
    packages = (ROOT / "src" / "delosmq" / folder).glob("*/__init__.py")
    assert sorted(named) == sorted(f"delosmq.{folder}.{package.parent.name}" for package in packages)


@pytest.mark.sources
def test_a_new_package_needs_a_place_among_the_others(tmp_path: Path) -> None:
    copy_sources(tmp_path)
    for name in ("plumbing", "engine/cellar"):
        (tmp_path / "src" / "delosmq" / name).mkdir()
        (tmp_path / "src" / "delosmq" / name / "__init__.py").write_text("", "utf-8")
    assert {"- delosmq.plumbing", "- delosmq.engine.cellar"} <= set(lint_imports(tmp_path))


def found(tmp_path: Path, files: dict[str, str]) -> list[tuple[str, str, int]]:
    """Rule, path and line of each finding in a repository of ``files``."""
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return [(finding.rule, finding.path, finding.line) for finding in architecture.check(tmp_path)]


CAUGHT_TWICE = """
def decode():
    try:
        read()
    except KeyError as error:
        refuse()
    except ValueError as error:
        refuse(error)
"""
LONG_FUNCTION = "def count():\n" + "    x = 1\n" * 70
LONG_FILE = "x = 1\n" * 501
MANY_FIELDS = "class Queue:\n def grow(self):\n" + "".join(f"  self.f{number} = 1\n" for number in range(41))
MANY_NAMES = [f"Name{number}" for number in range(61)]

BROKEN = [
    ("engine_front", "src/delosmq/engine/api.py", f"from delosmq.engine.a import {', '.join(MANY_NAMES)}\n", 1),
    *(
        ("pure_layers", f"src/delosmq/{layer}/part.py", f"import {module}\n", 1)
        for layer in sorted(architecture.PURE)
        for module in ("asyncio", "socket", "threading", "time", "random", "os")
    ),
    ("pure_layers", "src/delosmq/engine/queues/queue.py", "from time import monotonic\n", 1),
    ("pure_layers", "src/delosmq/engine/queues/queue.py", "import os.path\n", 1),
    ("pure_layers", "src/delosmq/engine/queues/queue.py", "import lxml\n", 1),
    ("one_native_base", "src/delosmq/engine/a.py", "class A: ...\nclass B: ...\nclass C(A, B): ...\n", 3),
    ("one_native_base", "tests/fakes.py", "from delosmq.engine.log.log import A, B\nclass C(A, B): ...\n", 2),
    ("one_native_base", "tests/fakes.py", "from delosmq.engine import log\nclass C(log.A, log.B): ...\n", 2),
    ("one_native_base", "src/delosmq/engine/a.py", "from mypy_extensions import trait\n", 1),
    ("one_type_per_caught_name", "src/delosmq/wire/a.py", CAUGHT_TWICE, 7),
    ("light_package", "src/delosmq/__init__.py", "from delosmq.embedded import Broker\n", 1),
    ("light_package", "src/delosmq/__init__.py", "import lxml\n", 1),
    ("light_package", "src/pyspark_delosmq/__init__.py", "from delosmq.client import Client\n", 1),
    ("file_size", "src/delosmq/model/message.py", LONG_FILE, 1),
    ("function_size", "tools/build.py", LONG_FUNCTION, 1),
    ("positional_parameters", "examples/orders.py", "def f(a, b, c, d, e, f): ...\n", 1),
    ("positional_parameters", "src/delosmq/cli/run.py", "class A:\n    def f(self, a, b, c, d, e, f): ...\n", 2),
    ("queue_fields", "src/delosmq/engine/queues/queue.py", MANY_FIELDS, 1),
    ("empty_names", "src/delosmq/model/message_utils.py", "x = 1\n", 1),
    ("empty_names", "src/delosmq/model/data.py", "x = 1\n", 1),
    ("empty_names", "src/delosmq/model/message.py", "class QueueManager: ...\n", 1),
    ("empty_names", "src/delosmq/model/message.py", "def process_frame(): ...\n", 1),
    ("empty_names", "src/delosmq/model/message.py", "def decode(data): ...\n", 1),
    ("code_form", "src/delosmq/cli/run.py", "x = 'DMQ77 wrong'\n", 1),
]


REACHING = [
    "bench.store._open\n",
    "bench.store._limit = 3\n",
    "from delosmq.engine.queue import _order\n",
    "setattr(broker, '_clock', 1)\n",
    "monkeypatch.setattr(broker, '_clock', 1)\n",
]


@pytest.mark.sources
@pytest.mark.parametrize("text", REACHING)
def test_a_test_that_reaches_into_a_private_member_is_found(tmp_path: Path, text: str) -> None:
    assert found(tmp_path, {"tests/storage/test_a.py": text}) == [("private_members", "tests/storage/test_a.py", 1)]


@pytest.mark.sources
def test_a_folder_whose_tests_reach_in_no_more_leaves_the_list(tmp_path: Path) -> None:
    folder = min(architecture.REACH_IN)
    assert found(tmp_path, {f"{folder}/test_a.py": "broker._clock\n"}) == []
    assert found(tmp_path, {f"{folder}/test_a.py": "broker.clock\n"}) == [("private_members", folder, 1)]


@pytest.mark.sources
@pytest.mark.parametrize("rule, path, text, line", BROKEN)
def test_a_broken_rule_is_found(tmp_path: Path, rule: str, path: str, text: str, line: int) -> None:
    assert (rule, path, line) in found(tmp_path, {path: text})


@pytest.mark.sources
def test_a_folder_with_too_many_files_is_found(tmp_path: Path) -> None:
    few = {f"src/delosmq/model/m{number}.py": "x = 1\n" for number in range(16)}
    assert found(tmp_path, few) == []
    more = {"src/delosmq/model/m16.py": "x = 1\n"}
    assert found(tmp_path, more) == [("folder_size", "src/delosmq/model", 1)]


@pytest.mark.sources
def test_one_code_in_two_files_is_found_once(tmp_path: Path) -> None:
    files = {
        "src/delosmq/engine/a.py": "raise MisuseError('DMQ2001', 'no such queue')\n",
        "src/delosmq/engine/b.py": "log.warning('DMQ2001 the disk is full')\n",
    }
    assert found(tmp_path, files) == [("one_meaning_per_code", "src/delosmq/engine/b.py", 1)]


def test_a_class_name_in_two_files_is_found(tmp_path: Path) -> None:
    files = {
        "src/delosmq/engine/a.py": "class A: ...\nclass B: ...\n",
        "src/delosmq/server/b.py": "class C: ...\nclass B: ...\n",
        "tools/c.py": "class C: ...\n",
    }
    assert found(tmp_path, files) == [("one_class_per_name", "src/delosmq/server/b.py", 2)]


def test_an_attribute_is_annotated_by_one_class_of_a_line(tmp_path: Path) -> None:
    session = "class Session:\n    outbox: str\n    def __init__(self):\n        self.turn: int = 0\n"
    mine = (
        "class StompSession(Session):\n"
        "    def __init__(self):\n"
        "        self.turn = 1\n"
        "        self.outbox: str = ''\n"
        "class Webbed(StompSession):\n"
        "    turn: int\n"
    )
    files = {"src/delosmq/sessions/a.py": session, "src/delosmq/sessions/stomp/b.py": mine}
    assert found(tmp_path, files) == [
        ("declared_once", "src/delosmq/sessions/stomp/b.py", 4),
        ("declared_once", "src/delosmq/sessions/stomp/b.py", 6),
    ]


def test_what_is_not_compiled_asks_of_no_abstract_class_that_is(tmp_path: Path) -> None:
    credit = (
        "from abc import ABC\nclass Credit(ABC): ...\nclass OpenCredit(Credit):\n"
        "    def f(self, o):\n        return isinstance(o, Credit)\nclass Plain: ...\n"
    )
    asking = (
        "import ast\nfrom delosmq.engine.queues.credit import Credit, OpenCredit, Plain\n"
        "isinstance(1, (int, Credit))\nissubclass(int, OpenCredit)\nisinstance(1, Plain)\nisinstance(1, ast.Constant)\n"
    )
    files = {
        "src/delosmq/engine/queues/credit.py": credit,
        "src/delosmq/server/a.py": asking,
        "benchmarks/b.py": asking,
    }
    assert found(tmp_path, files) == [
        (rule, path, line)
        for path in ("benchmarks/b.py", "src/delosmq/server/a.py")
        for rule, line in (("exact_types", 3), ("exact_types", 4))
    ]


def test_what_benchmarks_fetched_is_not_looked_at(tmp_path: Path) -> None:
    assert found(tmp_path, {"benchmarks/.cache/foreign.py": "print 'Python 2'\n"}) == []


KEPT = {
    "src/delosmq/__init__.py": (
        "from delosmq.version import __version__\nif TYPE_CHECKING:\n    from delosmq.embedded import Broker\n"
    ),
    "src/delosmq/wire/stomp/heads.py": "from delosmq.wire.first_bytes import detect\nfrom .encoder import encode\n",
    "src/delosmq/engine/queues/ring.py": "from delosmq.engine.base.slots import Slot\nfrom .queue import Queue\n",
    "src/delosmq/engine/broker.py": "from delosmq.engine.consumers import Consuming\n",
    "src/delosmq/engine/queues/queue.py": "import enum\nfrom mypy_extensions import mypyc_attr\n",
    "src/delosmq/selectors/parse.py": "import lark\n",
    "src/delosmq/cli/convert.py": "from delosmq.migration import activemq_xml\n",
    "src/delosmq/cli/decode.py": CAUGHT_TWICE,
    "src/delosmq/wire/first_bytes.py": CAUGHT_TWICE.replace("KeyError as error", "KeyError as missing"),
    "src/delosmq/server/link.py": (
        "import asyncio\nfrom delosmq.engine.api import A\nclass B: ...\nclass C(asyncio.BufferedProtocol, A, B): ...\n"
    ),
    "src/delosmq/engine/api.py": f"from delosmq.engine.a import {', '.join(MANY_NAMES[1:])}\n",
    "src/delosmq/engine/inspect.py": "from delosmq.engine.queues.queue import Queue\n",
    "src/delosmq/sessions/outbox.py": "from delosmq.engine.api import Slot\nfrom delosmq.engine import api\n",
    "src/delosmq/storage/memory.py": "from delosmq.engine.api import Broker\nfrom delosmq.engine.log.log import A\n",
    "src/delosmq/client/calls.py": "from delosmq.sessions.stomp.client_machine import Machine\n",
    "src/delosmq/spark/source.py": "import delosmq\nfrom delosmq.client.http import Calls\n",
    "src/pyspark_delosmq/__init__.py": "from delosmq.spark.source import DefaultSource\n",
    "src/delosmq/server/sync_process.py": (
        "class Reader:\n"
        "    def data_received(self, data): ...\n"
        "    def configure(self, a, b, c, d, e, *, f, g): ...\n"
        "def stop(process): ...\n"
        "def open_data_directory(): ...\n"
    ),
    "src/delosmq/model/errors.py": (
        '"""Raised with DMQ2001."""\nraise LimitError("DMQ2002", "full")\nif code == "DMQ2001": pass\n'
    ),
    "src/delosmq/model/ids.py": 'raise MisuseError("DMQ2001", "no such queue")\n',
    "tests/storage/test_a.py": (
        "class Double:\n    def __init__(self):\n        self._told = 1\n"
        "def test(double):\n    assert (double._told, double.pair._replace(a=1))\n"
    ),
    "tools/build.py": "def f():\n    print('tools talk')\n" + "    x = 1\n" * 68,
}


@pytest.mark.sources
def test_what_the_rules_allow_is_not_found(tmp_path: Path) -> None:
    assert found(tmp_path, KEPT) == []


BROKER_LAYERS = (
    "engine",
    "storage",
    "config",
    "migration",
    "routers",
    "cluster",
    "server",
    "manage",
    "composition",
    "embedded",
)

LOADED = """
import sys
import {module}
print("\\n".join(name for name in sys.modules if name.startswith("delosmq.")))
"""


def loaded_by(module: str) -> list[str]:
    """The modules of DelosMQ that a fresh interpreter holds after importing ``module``."""
    answer = subprocess.run(
        [sys.executable, "-c", LOADED.format(module=module)], capture_output=True, text=True, check=True
    )
    return answer.stdout.split()


def test_importing_the_package_loads_its_version_alone() -> None:
    assert loaded_by("delosmq") == ["delosmq.version"]


# delosmq.client belongs here as soon as it exists.
LIGHT = [name for name in ("delosmq.client", "delosmq.spark") if importlib.util.find_spec(name)]


@pytest.mark.parametrize("module", LIGHT)
def test_importing_what_runs_outside_a_broker_loads_no_broker_code(module: str) -> None:
    assert [name for name in loaded_by(module) if architecture.layer_of(name) in BROKER_LAYERS] == []


@pytest.mark.spark
def test_what_spark_looks_up_loads_no_broker_code() -> None:
    """Spark imports every module called pyspark_*, on executors too."""
    names = loaded_by("pyspark_delosmq")
    assert [name for name in names if architecture.layer_of(name) in BROKER_LAYERS] == []
