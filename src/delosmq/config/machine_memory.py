"""How much memory this machine, or the control group of the broker, has."""

from pathlib import Path
from typing import Final

_ROOT: Final = Path("/")

# A control group without a limit shows a number near 2^63 (version 1) or "max" (version 2).
_NO_LIMIT: Final = 2**60

# Where neither can be read. Small enough for any machine that runs a broker.
_FALLBACK_BYTES: Final = 1024**3


def available_memory_bytes(root: Path = _ROOT) -> int:
    """The smaller of the machine's memory and the limits of our control groups.

    Args:
        root: where /proc and /sys are looked for.
    """
    limits = [*_machine_bytes(root), *_control_group_bytes(root)]
    return min(limits, default=_FALLBACK_BYTES)


def _machine_bytes(root: Path) -> list[int]:
    for line in _lines(root / "proc/meminfo"):
        if line.startswith("MemTotal:"):
            return [int(line.split()[1]) * 1024]
    return []


def _control_group_bytes(root: Path) -> list[int]:
    # A limit above us binds us as well, hence all the way up.
    base = root / "sys/fs/cgroup"
    found: list[int] = []
    for line in _lines(root / "proc/self/cgroup"):
        number, controllers, path = [*line.split(":", 2), "", ""][:3]
        if number == "0" and not controllers:
            found += _limits_upwards(base, path, "memory.max")
        elif "memory" in controllers.split(","):
            found += _limits_upwards(base / "memory", path, "memory.limit_in_bytes")
    return found


def _limits_upwards(base: Path, path: str, file: str) -> list[int]:
    # In a container the path may name what the host sees; then only the top exists, and it is ours.
    parts = [part for part in path.split("/") if part and part != ".."]
    found: list[int] = []
    for depth in range(len(parts) + 1):
        for line in _lines(base.joinpath(*parts[:depth]) / file):
            if line.isascii() and line.isdigit() and 0 < int(line) < _NO_LIMIT:
                found.append(int(line))
    return found


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("ascii", "replace").splitlines()
    except OSError:
        return []
