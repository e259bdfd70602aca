"""Builds the wheel: compiled by mypyc where there is a C compiler, else the pure one, which does the same but slower.

DELOSMQ_COMPILED=1 asks for the compiled form and fails without it; DELOSMQ_COMPILED=0 asks for the pure one.
DELOSMQ_OPT is the C compiler's optimization level: 2 (default) for use, 0 for a quick build in tests.
An editable install runs from the sources, so it is pure. Everything else stands in pyproject.toml.
"""

import os
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "tools"))

from build_extensions import FORCED, PURE, ParallelBuild, say, why_not  # noqa: E402

BUILDING = {"bdist_wheel", "build", "build_ext", "install"}
"""Commands for which there is something to compile."""


def compiled_extensions(level: str) -> list[Extension]:
    """What mypyc makes of the modules that compile.

    Raises:
        ImportError: mypy is not in the environment that builds.
    """
    from compile_list import compiled_files
    from mypyc.build import mypycify

    # One group: calls between modules stay C calls, and one name for its library, so that a newer wheel replaces it.
    # A file for each module, to compile them side by side.
    files = [str(path) for path in compiled_files(ROOT)]
    extensions = mypycify(files, opt_level=level, debug_level="0", group_name="delosmq", multi_file=True)
    for extension in extensions:
        # Only what an interpreter imports is visible outside: calls within the library then need no table.
        extension.extra_compile_args = [*extension.extra_compile_args, "-fvisibility=hidden"]
    return list(extensions)


def extensions() -> list[Extension]:
    """Nothing for a pure wheel."""
    wanted = os.environ.get("DELOSMQ_COMPILED", "")
    if wanted == PURE or not BUILDING & set(sys.argv):
        return []
    level = os.environ.get("DELOSMQ_OPT", "2")
    if level not in {"0", "1", "2", "3"}:
        sys.exit(f"DELOSMQ_OPT must be 0, 1, 2 or 3, not {level!r}")
    reason = why_not([sysconfig.get_path("include")])
    try:
        if not reason:
            return compiled_extensions(level)
    except ImportError as missing:
        reason = f"{missing.name} is missing; pip install mypy lxml-stubs argon2-cffi crc32c lark"
    except SystemExit:  # how mypyc says that it can't, after it has told why
        reason = "mypyc failed, see above"
    if wanted == FORCED:
        sys.exit(f"delosmq: the compiled form can't be built: {reason}")
    say(f"{reason}, so this is the pure form, which is slower")
    return []


setup(ext_modules=extensions(), cmdclass={"build_ext": ParallelBuild})
