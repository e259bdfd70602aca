"""``delosmq check``: prints all findings about a configuration."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final

from delosmq.cli.output import plain_console
from delosmq.cli.usage import FAILED
from delosmq.config.configuration_check import ConfigurationCheck, check_configuration
from delosmq.config.findings import FindingKind
from delosmq.config.instance import read_without
from delosmq.model.phrases import counted

_COUNTED: Final = (
    (FindingKind.MISTAKE, "mistake", "mistakes"),
    (FindingKind.UNSUPPORTED, "unsupported name", "unsupported names"),
    (FindingKind.LEFT_OUT, "name left out", "names left out"),
    (FindingKind.IGNORED, "ignored name", "ignored names"),
    (FindingKind.NOTICE, "notice", "notices"),
)


def check_command(
    path: Path,
    *,
    properties: Mapping[str, str],
    without: Sequence[str] = (),
    file: IO[str] | None = None,
) -> int:
    """Lists everything that a start with the files at ``path`` would say; gives the exit code, 1 when it fails.

    Args:
        path: an instance directory, or a broker.xml.
        properties: what ``${name}`` stands for.
        without: names to be left out, as ``delosmq run`` takes them.

    Raises:
        ConfigurationError: the directory is no instance, or a name in ``without`` is unknown.
    """
    out = plain_console(file=file)
    left_out = read_without(without)
    found = check_configuration(path, properties=properties, without=left_out)
    for findings in found.files:
        shown = path if not path.is_dir() else path / Path(findings.file).relative_to(path.absolute())
        for finding in findings.found:
            place = f"{shown}:{finding.line}" if finding.line else str(shown)
            out.print(f"{place}: {finding.kind.value}: {finding.code}: {finding.sentence}")
    counts = [counted(number, one, more) for kind, one, more in _COUNTED if (number := len(found.of(kind)))]
    out.print(f"{path}: {', '.join(counts) or 'nothing to say'}; {_verdict(path, found, properties, left_out)}")
    return 0 if found.starts else FAILED


def _verdict(path: Path, found: ConfigurationCheck, properties: Mapping[str, str], left_out: frozenset[str]) -> str:
    if found.starts:
        return "a broker starts with it"
    names = frozenset(found.names(FindingKind.UNSUPPORTED))
    if not names:
        return "correct the mistakes, and a broker starts with it"
    wanted = ",".join(sorted(names | left_out))
    if check_configuration(path, properties=properties, without=names | left_out).starts:
        return f"no broker starts with it, but one does with --without {wanted}"
    return f"correct the mistakes, and a broker starts with --without {wanted}"
