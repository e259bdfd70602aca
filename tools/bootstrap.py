"""Makes the environments that the Makefile's targets run in.

    tools/python tools/bootstrap.py venv        .venv: DelosMQ editable, Spark, and what tests and checks need
    tools/python tools/bootstrap.py compiled    .venv-compiled: the wheel compiled by mypyc, and what tests need

Standard library only, because it runs before anything is installed. Each environment carries a stamp of what it was
made from; when that has not changed, a call returns at once. uv is used when it is on PATH, else pip.
What is missing is said in one sentence and ends with exit code 1.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 -- said before anything that an older Python can't import
    sys.exit("bootstrap: DelosMQ needs Python 3.11 or newer, and this is " + sys.version.split()[0])

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import time
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parent.parent
PURE = ROOT / ".venv"
COMPILED = ROOT / ".venv-compiled"
SIGN_OF_LIFE_EVERY_S = 20.0
FREE_SPACE_BYTES = 3 * 1024**3
"""pyspark as an archive, as a wheel being built and installed, with the rest beside it: 2.6 GB were seen."""


def stop(sentence: str) -> NoReturn:
    sys.exit(f"bootstrap: {sentence}")


def say(sentence: str) -> None:
    print(f"bootstrap: {sentence}", flush=True)


@dataclass(frozen=True)
class Environment:
    """A virtual environment and the tool that installs into it."""

    root: Path
    uv: str | None

    @property
    def python(self) -> Path:
        return self.root / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    @property
    def stamp(self) -> Path:
        return self.root / ".bootstrap-stamp"

    def is_made_from(self, fingerprint: str) -> bool:
        """Whether the environment is whole and was made from what ``fingerprint`` stands for."""
        return self.python.exists() and self.stamp.exists() and self.stamp.read_text("ascii") == fingerprint

    def make(self) -> None:
        """Make the environment unless it is there; an unusable one is made anew."""
        if self.python.exists() and quiet_run([str(self.python), "-c", "pass"]):
            self.stamp.unlink(missing_ok=True)
            return
        if self.root.exists():
            shutil.rmtree(self.root)
        say(f"making {self.root.name} with Python {sys.version.split()[0]}")
        if self.uv:
            run([self.uv, "venv", "--quiet", "--python", sys.executable, str(self.root)], "the environment")
            return
        if not (importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip")):
            version = f"{sys.version_info.major}.{sys.version_info.minor}"
            stop(
                f"{sys.executable} has no venv or ensurepip module; install them (Debian, Ubuntu: apt install "
                f"python{version}-venv), or uv, or name another Python with PYTHON=..."
            )
        run([sys.executable, "-m", "venv", str(self.root)], "the environment")

    def install(self, arguments: Iterable[str], what: str) -> None:
        if self.uv:
            command = [self.uv, "pip", "install", "--python", str(self.python)]
        else:
            command = [str(self.python), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
            command += [] if sys.stdout.isatty() else ["--quiet", "--progress-bar", "off"]
        run([*command, *arguments], what)


def run(command: list[str], what: str) -> None:
    """Run ``command``, with a line now and then so that nobody takes a long download for a hang."""
    started = time.monotonic()
    try:
        child = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL)
    except OSError as error:
        stop(f"can't start {command[0]}: {error.strerror}")
    while True:
        try:
            code = child.wait(timeout=SIGN_OF_LIFE_EVERY_S)
            break
        except subprocess.TimeoutExpired:
            if not sys.stdout.isatty():  # on a terminal pip and uv draw their own progress
                say(f"still at {what}, {time.monotonic() - started:.0f} s so far")
    if code != 0:
        stop(f"{what} failed (see above); the command was: {' '.join(command)}")


def quiet_run(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False).returncode == 0
    except OSError:
        return False


def project_file() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def extra_requirements(project: dict[str, Any], *extras: str) -> list[str]:
    """What ``extras`` ask for, with the project's own extras among them (``delosmq[arrow]``) resolved."""
    found: list[str] = []
    for extra in extras:
        for requirement in project["project"]["optional-dependencies"][extra]:
            inner = re.fullmatch(r"delosmq\[([\w, -]+)\]", requirement)
            found += extra_requirements(project, *re.split(r"\s*,\s*", inner[1])) if inner else [requirement]
    return found


def development_requirements(project: dict[str, Any]) -> list[str]:
    return list(project["dependency-groups"]["dev"])


def fingerprint_of(paths: Iterable[Path], *more: str) -> str:
    """One hash over the content of ``paths``, this script, the Python that runs it, and ``more``."""
    digest = hashlib.sha256("\0".join([sys.version, sys.executable, str(ROOT), *more]).encode())
    for path in sorted({*paths, Path(__file__)}):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def make_pure() -> Environment:
    """.venv with DelosMQ editable, Spark with a Java runtime of its own, and what tests and checks need."""
    environment = Environment(PURE, shutil.which("uv"))
    project = project_file()
    spark = extra_requirements(project, "spark")
    fingerprint = fingerprint_of([ROOT / "pyproject.toml", ROOT / "setup.py"])
    if environment.is_made_from(fingerprint):
        return environment
    check_space()
    environment.make()
    say("installing what tests and checks need")
    environment.install([*development_requirements(project), *project["project"]["dependencies"]], "the packages")
    if not quiet_run([str(environment.python), "-c", "import pyspark"]):
        say("installing Spark: pyspark is a source package of 456 MB, fetched and built once; this takes minutes")
    environment.install(spark, "Spark")
    environment.install(["--no-deps", "--no-build-isolation", "--editable", "."], "DelosMQ itself")
    environment.stamp.write_text(fingerprint, "ascii")
    say(f"{environment.root.name} is ready")
    return environment


def see_to_postgres() -> None:
    """Debian's package, which tests start: installed where packages may be, else what to do is said."""
    if any(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or shutil.which("initdb"):
        return
    if os.name == "posix" and os.geteuid() == 0 and shutil.which("apt-get"):
        say("installing PostgreSQL, which tests start")
        if quiet_run(["apt-get", "install", "--yes", "--no-install-recommends", "postgresql"]):
            return
    say(
        "there is no PostgreSQL, and tests of the store in it will fail (Debian, Ubuntu: apt install postgresql); "
        "-m 'not postgres' leaves them out"
    )


def build_inputs() -> Iterator[Path]:
    """What a wheel is built from."""
    for name in (
        "pyproject.toml",
        "setup.py",
        "README.md",
        "LICENSE",
        "tools/compile_list.py",
        "tools/build_extensions.py",
    ):
        if (ROOT / name).exists():
            yield ROOT / name
    for path in (ROOT / "src").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".so" and "egg-info" not in str(path):
            yield path


def make_compiled() -> Environment:
    """.venv-compiled with the wheel that mypyc compiled and what tests need; no Spark, no sources.

    The wheel is built from a copy, so that no shared library ever lies beside the sources, where a stale one would
    shadow an edited .py.
    """
    pure = make_pure()
    environment = Environment(COMPILED, pure.uv)
    project = project_file()
    level = os.environ.get("DELOSMQ_OPT", "2")
    wanted = [*development_requirements(project), *project["project"]["dependencies"]]
    wanted += extra_requirements(project, "arrow", "java")
    inputs = list(build_inputs())
    fingerprint = fingerprint_of(inputs, level, *wanted)
    if environment.is_made_from(fingerprint):
        return environment
    if not shutil.which(os.environ.get("CC", "cc")) and not shutil.which("gcc"):
        stop("the compiled form needs a C compiler (Debian, Ubuntu: apt install gcc libc6-dev python3-dev)")
    environment.make()
    say("installing what tests need")
    environment.install(wanted, "the packages")
    wheel = build_wheel(pure, inputs, ROOT / "build" / f"compiled-O{level}", level)
    environment.install(["--no-deps", "--force-reinstall", str(wheel)], "the wheel")
    (environment.root / "compiled-with.txt").write_text(f"-O{level}, a C file for each module\n", "ascii")
    environment.stamp.write_text(fingerprint, "ascii")
    return environment


def build_wheel(pure: Environment, inputs: Iterable[Path], folder: Path, level: str) -> Path:
    """The wheel, built from a copy of ``inputs`` in ``folder``; what the build says is shown when it fails.

    The folder stays: what has not changed is not compiled again.
    """
    source = folder / "source"
    copy_changed(inputs, source)
    for old in (*folder.glob("*.whl"), *source.glob("build/lib*"), *source.glob("build/bdist*")):
        shutil.rmtree(old) if old.is_dir() else old.unlink()  # or modules that are gone would be in the wheel
    say(f"compiling with mypyc at -O{level}")
    started = time.monotonic()
    settings = {"DELOSMQ_COMPILED": "1", "DELOSMQ_OPT": level}
    answer = subprocess.run(
        [str(pure.python), "-c", BUILD, str(folder)],
        cwd=source,
        env={**os.environ, **settings},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        print(answer.stdout[-SHOWN_OF_A_FAILURE:] + answer.stderr[-SHOWN_OF_A_FAILURE:])
        stop("compiling failed (see above)")
    say(f"compiled in {time.monotonic() - started:.0f} s")
    return next(folder.glob("*.whl"))


def copy_changed(inputs: Iterable[Path], source: Path) -> None:
    """Makes what lies in ``source`` a copy of ``inputs``, without touching what is the same; what was built stays."""
    wanted = {source / path.relative_to(ROOT): path for path in inputs}
    for folder in ("src", "tools"):
        for old in (source / folder).rglob("*"):
            if old.is_file() and old not in wanted:
                old.unlink()
    for target, path in wanted.items():
        if not (target.exists() and target.read_bytes() == path.read_bytes()):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)


BUILD = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"
SHOWN_OF_A_FAILURE = 6_000
"""Characters: the compiler's last words, not its thousand warnings."""


def check_space() -> None:
    free = shutil.disk_usage(ROOT).free
    if free < FREE_SPACE_BYTES and not PURE.exists():
        stop(f"{ROOT} has {free / 1e9:.1f} GB free, and the environment with Spark needs {FREE_SPACE_BYTES / 1e9:.1f}")


def main(arguments: list[str]) -> None:
    makers = {"venv": make_pure, "compiled": make_compiled}
    if len(arguments) != 1 or arguments[0] not in makers:
        stop(f"name one of: {', '.join(makers)}")
    try:
        makers[arguments[0]]()
        see_to_postgres()
    except KeyboardInterrupt:
        stop("interrupted; the next call goes on from here")


if __name__ == "__main__":
    main(sys.argv[1:])
