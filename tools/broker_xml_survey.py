"""How many of many broker.xml start: ``python tools/broker_xml_survey.py DIR``, where DIR holds them at any depth.

For example a clone of https://github.com/apache/activemq-artemis-examples. It prints how many start as they are, how
many start with ``--without`` and which names, and what stops the rest.
"""

import sys
from collections import Counter
from pathlib import Path
from typing import Final, NamedTuple

from delosmq.config.configuration_check import check_configuration
from delosmq.config.findings import Finding, FindingKind

_PATTERN: Final = "broker*.xml"


class Survey(NamedTuple):
    """What became of the files.

    Attributes:
        without: names left out -> files that start so.
        stopping: code and sentence -> files that it stops for good.
    """

    files: int
    starting: int
    without: Counter[str]
    stopping: Counter[str]


def survey(directory: Path) -> Survey:
    """Checks every broker.xml below ``directory``."""
    files = sorted(directory.rglob(_PATTERN))
    starting = 0
    without: Counter[str] = Counter()
    stopping: Counter[str] = Counter()
    for file in files:
        found = check_configuration(file, properties={})
        names = frozenset(found.names(FindingKind.UNSUPPORTED))
        if found.starts:
            starting += 1
        elif check_configuration(file, properties={}, without=names).starts:
            without[",".join(sorted(names))] += 1
        else:
            stopping.update({_reason(finding, file) for finding in found.of(FindingKind.MISTAKE)})
    return Survey(len(files), starting, without, stopping)


def _reason(finding: Finding, file: Path) -> str:
    return f"{finding.code}: {finding.sentence.replace(str(file.parent.absolute()), '.')}"


def main(arguments: list[str]) -> int:
    """Prints the survey of the directory given."""
    if len(arguments) != 1 or not Path(arguments[0]).is_dir():
        sys.stderr.write("write python tools/broker_xml_survey.py DIR, where DIR holds broker.xml files\n")
        return 2
    found = survey(Path(arguments[0]))
    without = sum(found.without.values())
    lines = [
        f"{found.files} files: {found.starting} start as they are, {without} with --without, "
        f"{found.files - found.starting - without} do not start",
        *(f"{count:4}  --without {names}" for names, count in found.without.most_common()),
        *(f"{count:4}  {reason}" for reason, count in found.stopping.most_common()),
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
