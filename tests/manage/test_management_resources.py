"""The resources of management messages: the manual lists what there is, names mean what they mean to Artemis."""

import re
from pathlib import Path

import pytest

from delosmq.manage.control.broker import BrokerControl
from delosmq.manage.control.routers import RouterControl
from delosmq.manage.messages.declarations import Int, Long, Parameter, ResourceKind, attribute, operation
from delosmq.manage.messages.resources import controls_of, resource_kinds
from delosmq.manage.messages.router_resource import router_kind
from delosmq.model.conversion import Conversions
from delosmq.model.errors import MisuseError
from delosmq.security.access import AccessControl, Login
from tests.manage.support import LoopHost

PAGE = Path(__file__).parents[2] / "docs" / "management-messages.md"
NAME = re.compile(r"`([^`]+)`")
ANNA = Login("anna", frozenset())


def kinds() -> list[ResourceKind]:
    host = LoopHost(())
    access = AccessControl({}, {}, (), cache_key=b"k" * 32)
    status = BrokerControl(host.broker, host, clock=host.clock, version="9.9")
    controls = controls_of(host.broker, status, access, Conversions({}))
    return [*resource_kinds(host.broker, controls), router_kind(RouterControl({}, access, host.broker))]


def title_of(kind: ResourceKind) -> str:
    return f"{kind.prefix}<name>" if kind.prefix.endswith(".") else kind.prefix


def test_the_manual_lists_each_resource_with_its_attributes_and_operations() -> None:
    sections = PAGE.read_text("utf-8").split("\n## Resources\n")[1].split("\n### ")[1:]
    listed = {section.splitlines()[0].strip("`"): section for section in sections}
    assert list(listed) == [title_of(kind) for kind in kinds()]
    for kind in kinds():
        section = listed[title_of(kind)]
        paragraph = section.split("Attributes: ")[1].split("\n\n")[0]
        assert NAME.findall(paragraph) == sorted(kind.attributes)
        rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
        known = [one.declaration for named in kind.operations.values() for one in named]
        assert sorted(call for row in rows for call in NAME.findall(row)) == sorted(known)


@pytest.mark.parametrize(
    "kind, value, taken",
    [
        (Int, 5, True),
        (Int, 2**31, False),
        (Int, -(2**31), True),
        (Int, True, False),
        (Int, 5.0, False),
        (Int, "5", False),
        (Int, None, False),
        (Long, 2**63 - 1, True),
        (Long, 2**63, False),
        (bool, True, True),
        (bool, 1, False),
        (bool, "true", False),
        (float, 1, True),
        (float, 1.5, True),
        (float, False, False),
        (str, "", True),
        (str, 5, False),
        (str, ["a"], False),
        (str, {"a": 1}, False),
    ],
)
def test_an_argument_is_of_its_type(kind: object, value: object, taken: bool) -> None:
    assert Parameter("x", kind, may_be_null=False).takes(value) is taken


class Shelf:
    @attribute("Width")
    def width(self, login: Login) -> int:
        return 3

    @attribute("Open")
    def is_open(self, login: Login) -> bool:
        return True

    @operation("put")
    def put_text(self, login: Login, book_name: str) -> str:
        return f"text {book_name}"

    @operation("put")
    def put_number(self, login: Login, number: Int) -> str:
        return f"number {number}"

    @operation("put")
    def put_two(self, login: Login, name: str | None, number: Long) -> str:
        return f"two {name} {number}"


SHELF = ResourceKind("shelf.", Shelf, lambda login, name: Shelf())


@pytest.mark.parametrize(
    "name, arguments, result",
    [
        ("put", ["a"], "text a"),
        ("put", [1], "number 1"),
        ("put", [None, 1], "two None 1"),
        ("getWidth", [], 3),
        ("isOpen", [], True),
    ],
)
def test_the_method_is_found_by_its_arguments(name: str, arguments: list[object], result: object) -> None:
    assert SHELF.method("shelf.a", name, arguments)(Shelf(), ANNA, *arguments) == result


@pytest.mark.parametrize(
    "name, arguments, sentence",
    [
        ("put", [], r"DMQ6324: .* put\(String bookName\) or put\(int number\) or put\(String name, long number\)"),
        ("put", [None], "DMQ6324"),
        ("put", [1.5], "DMQ6324"),
        ("getOpen", [], "DMQ6323"),
        ("width", [], "DMQ6323"),
        ("put_text", ["a"], "DMQ6323"),
        ("getWidth", [1], r"DMQ6324: .* getWidth\(\)"),
    ],
)
def test_what_fits_none_is_refused_with_what_there_is(name: str, arguments: list[object], sentence: str) -> None:
    with pytest.raises(MisuseError, match=sentence):
        SHELF.method("shelf.a", name, arguments)


def test_the_first_letter_of_an_attribute_may_be_small() -> None:
    assert SHELF.attribute("shelf.a", "width") is SHELF.attribute("shelf.a", "Width")
    with pytest.raises(MisuseError, match="DMQ6322"):
        SHELF.attribute("shelf.a", "")


def test_names_are_cut_in_sentences() -> None:
    with pytest.raises(MisuseError) as refused:
        SHELF.method("shelf." + "x" * 100_000, "y\n" * 100_000, [])
    assert len(str(refused.value)) < 1_000
    assert "\n" not in str(refused.value)
