"""Very large and very wrong files are read, or refused with file and line, in time that grows with their size alone."""

from collections.abc import Callable
from pathlib import Path

import pytest

from delosmq.config import findings
from delosmq.config.broker_xml import diverts, load_broker_xml
from delosmq.config.properties import load_users
from delosmq.model.errors import ConfigurationError
from delosmq.model.wildcard import WildcardPattern

pytestmark = pytest.mark.slow

HEAD = '<configuration xmlns="urn:activemq">\n<core xmlns="urn:activemq:core">\n'
TAIL = "</core></configuration>"


def load(tmp_path: Path, inner: str) -> object:
    path = tmp_path / "broker.xml"
    path.write_text(f"{HEAD}{inner}{TAIL}")
    return load_broker_xml(path, properties={})


def many(count: int, one: str) -> str:
    return "\n".join(one.replace("{}", str(number)) for number in range(count))


def test_an_element_with_very_many_attributes_is_refused_before_the_parser_compares_them(tmp_path: Path) -> None:
    attributes = " ".join(f'a{number}="1"' for number in range(100_000))
    with pytest.raises(
        ConfigurationError, match=r"broker\.xml:4: an element has more than 10000 attributes"
    ) as refused:
        load(tmp_path, f"<name>n</name>\n<address-settings {attributes}/>\n")
    assert refused.value.code == "DMQ4003"


def test_comments_and_many_elements_are_no_attributes(tmp_path: Path) -> None:
    load(tmp_path, f"<!--{'=' * 20_000}-->\n<address-settings>{many(6_000, SETTING)}</address-settings>")


SETTING = '<address-setting match="a{}"><max-delivery-attempts>3</max-delivery-attempts></address-setting>'


@pytest.mark.parametrize(
    "inner",
    [
        many(100_000, "<e{}/>"),
        many(100_000, "<name>x</name>"),
        f'<address-settings><address-setting match="a">{many(100_000, "<x{}/>")}</address-setting></address-settings>',
        "<addresses>" + many(50_000, '<address name="a"/>') + "</addresses>",
    ],
)
def test_very_many_mistakes_end_the_reading(tmp_path: Path, inner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0

    def counting(*args: object, **kwargs: object) -> list[str]:
        nonlocal asked
        asked += 1
        return []

    monkeypatch.setattr(findings, "get_close_matches", counting)
    with pytest.raises(findings.FlawedFileError, match="1001 mistakes") as refused:
        load(tmp_path, inner)
    assert refused.value.findings.found[-1].code == "DMQ4037"
    assert asked <= 1_001


def test_very_many_users_without_a_password_end_the_reading(tmp_path: Path) -> None:
    path = tmp_path / "users.properties"
    path.write_text(many(100_000, "u{} = plain"))
    with pytest.raises(findings.FlawedFileError, match="1001 mistakes"):
        load_users(path)


def counted_matches(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    calls = 0

    class Counting:
        def __init__(self, pattern: str, syntax: object) -> None:
            self._pattern = WildcardPattern(pattern, syntax)  # type: ignore[arg-type]
            self.is_literal = self._pattern.is_literal

        def matches(self, name: str) -> bool:
            nonlocal calls
            calls += 1
            return self._pattern.matches(name)

    monkeypatch.setattr(diverts, "WildcardPattern", Counting)
    return lambda: calls


DIVERT = "<divert name='d{}'><address>a{}</address><forwarding-address>b{}</forwarding-address></divert>"


def test_diverts_are_not_compared_with_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted_matches(monkeypatch)
    wild = "<divert name='w'><address>c.#</address><forwarding-address>x</forwarding-address></divert>"
    load(tmp_path, f"<diverts>{many(5_000, DIVERT)}{wild}</diverts>")
    assert calls() <= 5_001


def test_a_long_row_of_diverts_is_no_circle_and_a_circle_in_it_is_found(tmp_path: Path) -> None:
    row = "".join(
        f"<divert name='d{n}'><address>a{n}</address><forwarding-address>a{n + 1}</forwarding-address></divert>"
        for n in range(5_000)
    )
    load(tmp_path, f"<diverts>{row}</diverts>")
    back = "<divert name='back'><address>a5000</address><forwarding-address>a4990</forwarding-address></divert>"
    with pytest.raises(ConfigurationError, match="'d4990' and 'back' send round in a circle"):
        load(tmp_path, f"<diverts>{row}{back}</diverts>")
