"""Checks an instance directory or a broker.xml, and gives all findings at once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from delosmq.config.bootstrap import load_bootstrap_xml
from delosmq.config.broker_xml import LoadedConfiguration, load_broker_xml
from delosmq.config.findings import NO_INSTANCE, Finding, FindingKind, Findings, FlawedFileError
from delosmq.config.instance import InstancePaths, account_notices, require_instance
from delosmq.config.placeholders import known_properties
from delosmq.config.properties import load_certificate_users, load_roles, load_users
from delosmq.model.errors import ConfigurationError

T = TypeVar("T")


@dataclass(frozen=True)
class ConfigurationCheck:
    """What was found.

    Attributes:
        files: those with findings, in the order in which a start reads them.
    """

    files: list[Findings]

    def of(self, kind: FindingKind) -> list[Finding]:
        return [finding for findings in self.files for finding in findings.found if finding.kind is kind]

    def names(self, kind: FindingKind) -> list[str]:
        return list(dict.fromkeys(finding.name for finding in self.of(kind)))

    @property
    def starts(self) -> bool:
        """Whether a broker would start with these files."""
        return not self.of(FindingKind.MISTAKE) and not self.of(FindingKind.UNSUPPORTED)


def check_configuration(
    path: Path, *, properties: Mapping[str, str], without: frozenset[str] = frozenset()
) -> ConfigurationCheck:
    """Reads all files of the instance directory at ``path``, or the one broker.xml there; changes nothing.

    Args:
        properties: what ``${name}`` stands for, beside what is known of the directory.
        without: names that are left out although they should stop the start.

    Raises:
        ConfigurationError: there is nothing at ``path``, or it is a directory and no instance.
    """
    if path.is_dir():
        paths = InstancePaths(path.absolute())
        require_instance(paths, path)
        return _Checker(known_properties(paths.root, properties), without).read_instance(paths)
    if not path.exists():
        what = "broker.xml" if path.suffix == ".xml" else "instance directory"
        raise ConfigurationError(
            NO_INSTANCE, f"there is no {what} {path}; correct its name, or make an instance with `delosmq create`"
        )
    file = path.absolute()
    root = file.parent.parent if file.parent.name == "etc" else file.parent
    inspector = _Checker(known_properties(root, properties), without)
    inspector.read_broker_xml(file, root)
    return ConfigurationCheck(inspector.files)


class _Checker:
    def __init__(self, known: Mapping[str, str], without: frozenset[str]) -> None:
        self._known = known
        self._without = without
        self.files: list[Findings] = []

    def read_instance(self, paths: InstancePaths) -> ConfigurationCheck:
        loaded = self.read_broker_xml(paths.broker_xml, paths.root)
        if paths.bootstrap_xml.exists():
            bootstrap = self._attempt(
                lambda: load_bootstrap_xml(paths.bootstrap_xml, self._known, without=self._without)
            )
            if bootstrap is not None:
                self.files.append(bootstrap.findings)
        users = self._attempt(lambda: load_users(paths.users))
        roles = self._attempt(lambda: load_roles(paths.roles))
        certificates = self._attempt(lambda: load_certificate_users(paths.certificate_users, paths.certificate_roles))
        if loaded is not None and users is not None and roles is not None:
            for file, code, sentence in account_notices(paths, loaded.settings, users, roles, certificates):
                findings = Findings(str(file))
                findings.notice(code, 0, sentence)
                self.files.append(findings)
        return ConfigurationCheck(self.files)

    def read_broker_xml(self, path: Path, root: Path) -> LoadedConfiguration | None:
        loaded = self._attempt(
            lambda: load_broker_xml(path, instance=root, properties=self._known, without=self._without)
        )
        if loaded is not None:
            self.files.append(loaded.findings)
        return loaded

    def _attempt(self, load: Callable[[], T]) -> T | None:
        try:
            return load()
        except FlawedFileError as flawed:
            self.files.append(flawed.findings)
            return None
