"""Directories of ours that hold what was prepared once: below XDG_CACHE_HOME or ~/.cache, else in a temporary place."""

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path


def cached_directory(
    name: str, environment: Mapping[str, str], build: Callable[[Path], None], is_whole: Callable[[Path], bool]
) -> Path:
    """The directory `name`, which `build` fills when it is not there yet.

    Args:
        is_whole: whether a directory that is there is what `build` makes; anything else in its place stays untouched,
            and the next place is tried.
    """
    for parent in _places(environment):
        path = parent / name
        if is_whole(path):
            return path
        try:
            parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            return _create(path, build, is_whole)
        except OSError:
            # A read-only home: try the next place.
            continue
    return _create(Path(tempfile.mkdtemp(prefix="delosmq-")) / name, build, is_whole)


def is_owned(*paths: Path) -> bool:
    """Whether all of them are there and belong to this user."""
    return all(path.lstat().st_uid == os.getuid() for path in paths)


def _create(path: Path, build: Callable[[Path], None], is_whole: Callable[[Path], bool]) -> Path:
    """Build beside `path` and rename, so that another process sees all of it or nothing."""
    building = Path(tempfile.mkdtemp(prefix=f".{path.name.partition('-')[0]}-", dir=path.parent))
    try:
        build(building)
        try:
            building.rename(path)
        except OSError:
            # Another process was faster, which is as good; anything else in that place is not ours to replace.
            if not is_whole(path):
                raise
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return path


def _places(environment: Mapping[str, str]) -> list[Path]:
    places = []
    if environment.get("XDG_CACHE_HOME"):
        places.append(Path(environment["XDG_CACHE_HOME"]) / "delosmq")
    if environment.get("HOME"):
        places.append(Path(environment["HOME"]) / ".cache" / "delosmq")
    return places
