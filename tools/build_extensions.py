"""How the compiled form is built: one C file for each module, on all cores, and only what has changed.

mypyc writes one library for all modules, so that they call each other as C functions do. setuptools compiles the files
of a library one after the other, and all of them each time; this compiles as many at once as there are cores, and keeps
an object whose source, headers and command are what they were.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

from setuptools import Extension
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError, CompileError, LinkError

WRITTEN = Path("build")
"""Where mypyc writes, in the folder that is built."""
FORCED = "1"
PURE = "0"
TRIAL = "#include <Python.h>\nint delosmq_trial(void) { return PY_MAJOR_VERSION; }\n"


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def say(sentence: str) -> None:
    """To standard error, where pip shows it with -v and always when a build fails."""
    print(f"delosmq: {sentence}", file=sys.stderr, flush=True)


class ParallelBuild(build_ext):  # type: ignore[misc]  # setuptools has no types
    """Compiles the sources of an extension side by side.

    Unless the compiled form is asked for (``DELOSMQ_COMPILED=1``) a build that fails leaves the pure one.
    """

    extensions: list[Extension]
    parallel: int | bool | None

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or cores()

    def build_extensions(self) -> None:
        self.compiler.compile = in_parallel(self.compiler, digest_of_headers(WRITTEN))
        try:
            super().build_extensions()
        except (BaseError, CCompilerError, CompileError, LinkError) as error:
            if os.environ.get("DELOSMQ_COMPILED") == FORCED:
                raise
            say(f"compiling failed ({error}), so this is the pure form, which is slower")
            for extension in self.extensions:
                Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
            self.extensions = []


def in_parallel(compiler: Any, headers: str) -> Callable[..., list[str]]:
    """What takes the place of the compiler's ``compile``; objects that are made from the same stay.

    Args:
        headers: changes with the headers that the sources include.
    """
    one_by_one = compiler.compile

    def compile_all(sources: list[str], *, depends: object = None, **options: Any) -> list[str]:
        command = repr((compiler.compiler_so, sorted(options.items())))

        def compile_one(source: str) -> list[str]:
            key = key_of(Path(source), headers, command)
            (path,) = compiler.object_filenames([source], output_dir=options.get("output_dir") or "")
            stamp = Path(path + ".key")
            if not (stamp.exists() and stamp.read_text("ascii") == key and Path(path).exists()):
                stamp.unlink(missing_ok=True)
                one_by_one([source], depends=[], **options)
                stamp.write_text(key, "ascii")
            return [path]

        with ThreadPoolExecutor(cores()) as pool:
            return [path for paths in pool.map(compile_one, sources) for path in paths]

    return compile_all


def digest_of_headers(folder: Path) -> str:
    """One hash over the headers that mypyc wrote."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.h")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def key_of(source: Path, headers: str, command: str) -> str:
    """What an object is made from, all in one."""
    digest = hashlib.sha256("\0".join([sys.version, version("mypy"), headers, command]).encode())
    digest.update(source.read_bytes())
    return digest.hexdigest()


def why_not(include_dirs: list[str]) -> str:
    """Why this machine can't compile: "" when it can."""
    command = (os.environ.get("CC") or "cc").split()
    flags = [f"-I{name}" for name in include_dirs]
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory, "trial.c")
        source.write_text(TRIAL, "ascii")
        try:
            answer = subprocess.run(
                [*command, *flags, "-fPIC", "-shared", str(source), "-o", str(Path(directory, "trial.so"))],
                capture_output=True,
                text=True,
                check=False,
            )
        except OSError:
            return f"there is no C compiler ({command[0]})"
    return (
        "" if answer.returncode == 0 else "the C compiler finds no Python.h (Debian, Ubuntu: apt install python3-dev)"
    )
