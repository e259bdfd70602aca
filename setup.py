"""Builds the pure wheel, or with DELOSMQ_COMPILED=1 the one whose hot modules mypyc has compiled.

DELOSMQ_OPT is the C compiler's optimization level: 3 (default) for use, 0 for a quick build in tests.
A compiled build needs mypy and lxml-stubs beside setuptools (``pip wheel --no-build-isolation``); `make compiled` does
all of it. Everything else stands in pyproject.toml.
"""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup

ROOT = Path(__file__).resolve().parent


def compiled_extensions() -> list[Extension]:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        from compile_list import compiled_files
        from mypyc.build import mypycify
    except ImportError as missing:
        sys.exit(
            f"A compiled build needs {missing.name} in the environment that builds:"
            " pip install mypy 'setuptools>=77' lxml-stubs"
        )
    level = os.environ.get("DELOSMQ_OPT", "3")
    if level not in {"0", "1", "2", "3"}:
        sys.exit(f"DELOSMQ_OPT must be 0, 1, 2 or 3, not {level!r}")
    # One group: calls between modules stay C calls, and one name for its library, so that a newer wheel replaces it.
    files = [str(path) for path in compiled_files(ROOT)]
    return list(mypycify(files, opt_level=level, debug_level="0", group_name="delosmq"))


setup(ext_modules=compiled_extensions() if os.environ.get("DELOSMQ_COMPILED") == "1" else [])
