"""Peers from Debian packages, without root: what is not installed is downloaded and unpacked below the cache."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from benchmarks.brokers.base import CACHE, BrokerUnavailable

_TOOLS = ("apt-get", "dpkg", "dpkg-deb", "dpkg-query")


class DebianFiles:
    """The files of a package and of what it depends on, unpacked or installed."""

    def __init__(self, package: str) -> None:
        missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
        if missing:
            raise BrokerUnavailable(f"{package}: this machine has no {missing[0]}, and the peers are Debian packages.")
        self.package = package
        self.root = CACHE / package
        done = self.root / ".unpacked"
        if not _installed(package) and not done.exists():
            self._unpack(self._missing_packages())
            done.touch()

    def version(self) -> str:
        """Of the package."""
        if _installed(self.package):
            command = ["dpkg-query", "-W", "-f", "${Version}", self.package]
        else:
            deb = next((self.root / "debs").glob(f"{self.package}_*.deb"))
            command = ["dpkg-deb", "-f", str(deb), "Version"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def find(self, pattern: str) -> Path:
        """The first match of a pattern relative to the root directory, unpacked files first."""
        found = self.find_all(pattern)
        if not found:
            raise BrokerUnavailable(f"{self.package}: its packages hold no {pattern}.")
        return found[0]

    def find_all(self, pattern: str) -> list[Path]:
        """All matches, unpacked files first."""
        return [path for root in (self.root, Path("/")) for path in sorted(root.glob(pattern))]

    def libraries(self) -> dict[str, str]:
        """The variable that makes unpacked shared libraries found."""
        folders = [str(path.parent) for path in self.find_all("usr/lib/*/lib*.so*") if path.is_relative_to(self.root)]
        return {"LD_LIBRARY_PATH": ":".join(sorted(set(folders)))} if folders else {}

    def _missing_packages(self) -> list[str]:
        command = ["apt-get", "install", "-s", "--no-install-recommends", self.package]
        plan = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}, check=False)
        if plan.returncode:
            raise BrokerUnavailable(
                f"{self.package}: apt-get does not know how to get it ({_last_line(plan.stderr)}); "
                "`apt-get update` as root may help."
            )
        return [line.split()[1] for line in plan.stdout.splitlines() if line.startswith("Inst ")]

    def _unpack(self, packages: list[str]) -> None:
        debs = self.root / "debs"
        debs.mkdir(parents=True, exist_ok=True)
        command = ["apt-get", "download", *packages]
        download = subprocess.run(command, cwd=debs, capture_output=True, text=True, check=False)
        if download.returncode:
            raise BrokerUnavailable(
                f"{self.package}: its packages can't be downloaded ({_last_line(download.stderr)})."
            )
        for deb in debs.glob("*.deb"):
            subprocess.run(["dpkg", "-x", str(deb), str(self.root)], check=True)
        self._relink()

    def _relink(self) -> None:
        """Absolute links point below the cache where their target lies there."""
        for folder, folders, files in os.walk(self.root):
            for name in (*folders, *files):
                path = Path(folder) / name
                if path.is_symlink() and (target := path.readlink()).is_absolute():
                    unpacked = self.root / target.relative_to("/")
                    if os.path.lexists(unpacked):
                        path.unlink()
                        path.symlink_to(unpacked)


def _installed(package: str) -> bool:
    command = ["dpkg-query", "-W", "-f", "${db:Status-Status}", package]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout == "installed"


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[-1]
