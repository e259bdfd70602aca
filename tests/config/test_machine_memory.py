"""Memory of the machine and of control groups."""

from pathlib import Path

import pytest

from delosmq.config.machine_memory import available_memory_bytes

MEMINFO = "MemTotal:       8388608 kB\nMemFree: 1 kB\n"
GIB = 1024**3


def make_root(tmp_path: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return tmp_path


@pytest.mark.parametrize(
    ("files", "size"),
    [
        ({"proc/meminfo": MEMINFO}, 8 * GIB),
        (
            {
                "proc/meminfo": MEMINFO,
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/a/memory.max": f"{2 * GIB}\n",
                "sys/fs/cgroup/a/b/memory.max": "max\n",
            },
            2 * GIB,
        ),
        (
            # A container whose path is that of the host: only the top is to be seen.
            {
                "proc/meminfo": MEMINFO,
                "proc/self/cgroup": "0::/../host/x\n",
                "sys/fs/cgroup/memory.max": f"{GIB}\n",
            },
            GIB,
        ),
        (
            {
                "proc/meminfo": MEMINFO,
                "proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/docker/x\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
                "sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes": f"{3 * GIB}\n",
            },
            3 * GIB,
        ),
        ({}, GIB),
    ],
    ids=["machine", "version 2, limit above", "version 2, container", "version 1", "nothing to read"],
)
def test_the_smallest_limit_counts(tmp_path: Path, files: dict[str, str], size: int) -> None:
    assert available_memory_bytes(make_root(tmp_path, files)) == size


def test_this_machine_has_memory() -> None:
    assert available_memory_bytes() > 0
