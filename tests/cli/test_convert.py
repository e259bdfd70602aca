"""`delosmq convert` as a user calls it."""

from pathlib import Path

from typer.testing import CliRunner

from delosmq.cli.app import app
from delosmq.config.instance import load_instance

WHOLE = '<broker xmlns="http://activemq.apache.org/schema/core" brokerName="${who}" persistent="false"/>'


def test_an_instance_is_made_of_a_file(tmp_path: Path) -> None:
    source = tmp_path / "activemq.xml"
    source.write_text(WHOLE, encoding="utf-8")
    names = tmp_path / "names.properties"
    names.write_text("who = depot", encoding="ascii")
    words = ["convert", str(source), "-o", str(tmp_path / "new"), "--properties", str(names), "--http-port", "0"]
    made = CliRunner().invoke(app, [*words, "--password-stdin"], input="hidden\n")
    assert made.exit_code == 0, made.output
    assert "hidden" not in made.output
    instance = load_instance(tmp_path / "new", properties={})
    assert instance.settings.name == "depot"
    assert instance.web is not None
    assert instance.web.port == 0


def test_what_is_left_out_is_told_by_the_exit_code(tmp_path: Path) -> None:
    source = tmp_path / "activemq.xml"
    source.write_text(WHOLE, encoding="utf-8")
    made = CliRunner().invoke(app, ["convert", str(source)])
    assert made.exit_code == 3
    assert "DMQ4133" in made.output
